"""What every tool answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Reply:
    """What a tool answers: a readable text, and data that says the same by itself (None = text only).

    `meta` is what a client may show beside it, under keys with our prefix.
    """

    text: str
    data: dict[str, Any] | None = None
    is_error: bool = False
    meta: dict[str, Any] | None = None
