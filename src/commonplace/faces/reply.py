"""What every tool answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Reply:
    """What a tool answers: a readable text, and data that says the same by itself (None = text only)."""

    text: str
    data: dict[str, Any] | None = None
    is_error: bool = False
