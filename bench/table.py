"""Figures as rows: what was measured, beside its raw baseline and its budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median

COLUMNS = ("what", "ours", "mean", "p99", "baseline", "p99", "ratio", "budget", "")


@dataclass(frozen=True)
class Budget:
    """The most that a figure's median may be.

    most: a number in the figure's unit.
    times: a multiple of its baseline.
    above: a number above its baseline.
    """

    most: float | None = None
    times: float | None = None
    above: float | None = None

    def limit(self, plain: float) -> float:
        """Return the limit in the figure's unit.

        plain: the median of the baseline; nan without a baseline.
        """
        if self.most is not None:
            return self.most
        if self.times is not None:
            return plain * self.times
        return plain + (self.above or 0.0)

    def words(self, unit: str) -> str:
        """The budget as the table shows it."""
        if self.most is not None:
            return f"≤ {amount(self.most, unit)}"
        if self.times is not None:
            return f"≤ {self.times:g} × baseline"
        return f"≤ baseline + {amount(self.above or 0.0, unit)}"


@dataclass(frozen=True)
class Row:
    """One line of the table: all measurements of ours and of the baseline, in `unit`."""

    label: str
    unit: str
    ours: Sequence[float]
    plain: Sequence[float] = ()
    baseline: str = ""
    budget: Budget | None = None

    @property
    def median(self) -> float:
        return median(self.ours)

    @property
    def plain_median(self) -> float:
        """The baseline's median, nan without a baseline."""
        if self.plain:
            return median(self.plain)
        return math.nan

    @property
    def verdict(self) -> str:
        """`ok`, `over`, or nothing for a figure without a budget."""
        if self.budget is None:
            return ""
        if self.median <= self.budget.limit(self.plain_median):
            return "ok"
        return "over"

    def cells(self) -> tuple[str, ...]:
        """The row's cells, in the order of COLUMNS."""
        mean_of_ours = ""
        if len(self.ours) > 4:
            mean_of_ours = amount(mean(self.ours), self.unit)
        plain = ""
        ratio = ""
        if self.plain:
            plain = f"{amount(self.plain_median, self.unit)} {self.baseline}"
        if self.plain and self.plain_median:
            ratio = f"{self.median / self.plain_median:.2f}"
        return (
            self.label,
            amount(self.median, self.unit),
            mean_of_ours,
            self._p99(self.ours),
            plain,
            self._p99(self.plain),
            ratio,
            self.budget.words(self.unit) if self.budget else "",
            self.verdict,
        )

    def _p99(self, values: Sequence[float]) -> str:
        """Nothing for a rate, where more is better, and for a handful of values."""
        if len(values) > 4 and not self.unit.endswith("/s"):
            return amount(p99(values), self.unit)
        return ""


def p95(values: Sequence[float]) -> float:
    """The value that 95 of 100 do not exceed."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def p99(values: Sequence[float]) -> float:
    """The value that 99 of 100 do not exceed; of few values the highest."""
    return sorted(values)[math.ceil(0.99 * len(values)) - 1]


def amount(value: float, unit: str) -> str:
    """A number in its unit, with about three digits: `2.31 ms`, `12,000 characters`."""
    if value >= 100 or value == int(value):
        digits = 0
    elif value >= 10:
        digits = 1
    else:
        digits = 2
    return f"{value:,.{digits}f} {unit}".strip()


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes, in seconds."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def milliseconds(call: Callable[[], object]) -> float:
    """How long one call takes, in milliseconds."""
    return seconds(call) * 1e3


def interleaved(rounds: int, *sides: Callable[[], float]) -> list[list[float]]:
    """What each side measures, the sides taking turns (A B A B), so that a busy machine slows all
    of them.
    """
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for values, side in zip(times, sides, strict=True):
            values.append(side())
    return times


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of as many cells each as lines, with the cells below each other."""
    widths = []
    for column in zip(*rows, strict=True):
        widths.append(max(map(len, column)))
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines


def table(rows: Sequence[Row]) -> str:
    """All rows, in columns."""
    lines = aligned([COLUMNS, *(row.cells() for row in rows)])
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def block(rows: Sequence[Row]) -> str:
    """The same figures for a page of documentation: one plain line each."""
    width = max((len(row.label) for row in rows), default=0)
    lines = []
    for row in rows:
        if row.plain:
            plain = f"   ({row.baseline}: {amount(row.plain_median, row.unit)})"
        else:
            plain = ""
        lines.append(f"{row.label.ljust(width)}   {amount(row.median, row.unit)}{plain}")
    return "\n".join(lines)
