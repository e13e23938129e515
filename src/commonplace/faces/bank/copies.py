"""Banks in memory: read at first use, read again when a file changed (contract 003, 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from commonplace.clock import parse_stamp, stamp
from commonplace.errors import CommonplaceError, NotFound
from commonplace.faces.bank import templates
from commonplace.faces.bank.bank import Bank
from commonplace.text.tokens import runs

if TYPE_CHECKING:
    from commonplace.store.base import Stamp

MANY_TOKENS = 6000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Copy:
    """A bank's files in the order they are shown: texts, stamps, and those that cannot be read (path -> why)."""

    texts: dict[str, str] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


class Copies:
    """The banks one server has in memory, for each caller its own."""

    def __init__(self) -> None:
        self._copies: dict[tuple[str | None, str], Copy] = {}

    def load(self, bank: Bank) -> tuple[Copy, bool]:
        """The bank as it is on disk now, and whether it was in memory just so. Raises as `Files.notes`."""
        key = (bank.agent, bank.key)
        known = self._copies.get(key)
        stamps = bank.notes()
        if known is not None and known.stamps == stamps and not known.unreadable:
            return known, True
        copy = Copy(stamps={path: stamps[path] for path in templates.in_order(bank.kind, list(stamps))})
        for path in list(copy.stamps):
            if known is not None and path in known.texts and known.stamps.get(path) == copy.stamps[path]:
                copy.texts[path] = known.texts[path]
            else:
                _read(bank, path, copy)
        self._copies[key] = copy
        return copy, False


def _read(bank: Bank, path: str, copy: Copy) -> None:
    try:
        file = bank.files.read(path)
        copy.texts[path] = file.data.decode()
        copy.stamps[path] = file.stamp
    except NotFound:
        del copy.stamps[path]  # it went away just now
    except UnicodeDecodeError:
        copy.unreadable[path] = "it is not UTF-8 text"
    except CommonplaceError as error:
        copy.unreadable[path] = getattr(error, "reason", "it cannot be read")


def last_change(bank: Bank, stamps: Iterable[Stamp]) -> str:
    """When the newest of the bank's files was changed, UTC in whole seconds; for a bank whose files were all
    deleted, when it was made."""
    times = [each.mtime_ns for each in stamps]
    if times:
        return stamp(_EPOCH + timedelta(seconds=max(times) // 1_000_000_000))
    try:
        return stamp(parse_stamp(str(bank.record().get("created_at"))).replace(microsecond=0))
    except ValueError:
        return stamp(_EPOCH)


def tokens(texts: Iterable[str]) -> int:
    """About how many tokens some texts have: four characters each, a CJK character by itself."""
    length = wide = 0
    for text in texts:
        length += len(text)
        wide += 0 if text.isascii() else sum(len(run) for run in runs().findall(text))
    return (length - wide) // 4 + wide
