"""The clock of tests whose time must stand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class Clock:
    """A clock that stands until it is told."""

    def __init__(self, now: datetime = datetime(2026, 5, 7, 10, 0, 0, 250_000, tzinfo=UTC)):
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def later(self, seconds: float = 0, **span: float) -> None:
        """`span` as of timedelta."""
        self.now += timedelta(seconds=seconds, **span)


class Ticking(Clock):
    """A clock that moves a second at each look."""

    def __call__(self) -> datetime:
        self.later(1)
        return self.now
