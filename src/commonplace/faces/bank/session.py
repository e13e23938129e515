"""What one server knows of its banks beside the files: active ones, copies, recent trouble (contract 003, 6 to 8)."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime
from threading import RLock
from typing import TYPE_CHECKING

from commonplace.clock import stamp
from commonplace.faces.bank.copies import Copies

if TYPE_CHECKING:
    from commonplace.llm import Endpoint

KEPT, SHOWN = 100, 10


class Recent:
    """The last hundred failures of this process, bank by bank."""

    def __init__(self) -> None:
        self._entries: deque[tuple[str, dict[str, str]]] = deque(maxlen=KEPT)

    def add(self, bank: str, description: str, severity: str, moment: datetime) -> None:
        """Remember a failure; `severity` is error, warning or info."""
        when = stamp(moment.replace(microsecond=0))
        self._entries.append((bank, {"timestamp": when, "description": description, "severity": severity}))

    def of(self, bank: str | None, most: int = SHOWN) -> list[dict[str, str]]:
        """The latest failures of a bank, newest last."""
        return [dict(entry) for key, entry in self._entries if key == bank][-most:]


@dataclass(slots=True)
class Session:
    """The state of one server's toolset. `active`: kind -> id of the bank activated last; `last`: of any kind.

    `lock` is held while a call runs: calls may come from several threads.
    """

    debug: bool = False
    llm: Endpoint | None = None
    copies: Copies = field(default_factory=Copies)
    recent: Recent = field(default_factory=Recent)
    active: dict[str, str] = field(default_factory=dict)
    last: tuple[str, str] | None = None
    ways: Counter[tuple[str, str]] = field(default_factory=Counter)
    lock: RLock = field(default_factory=RLock)
