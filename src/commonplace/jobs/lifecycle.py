"""The four jobs of `memory consolidate` (expire, decay, upgrade, consolidate), and which category a text belongs to.

Source: contract 001, 5 and 7.
"""

from __future__ import annotations

import os
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.clock import stamp
from commonplace.jobs.dedup import plan_duplicates
from commonplace.jobs.job import Action, MemoryState, Outcome, Plan, Round
from commonplace.note.model import INBOX, ORGANIZED
from commonplace.note.reminder import CATEGORY as REMINDERS
from commonplace.note.reminder import Reminder

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.engine import Memory

FALLBACK = "knowledge"
"""The category of a text without any word of the table."""

_WEIGHTS = {"strong": 3, "normal": 2, "exact": 2, "weak": 1}
_BY_HAND = ("manual", "file")
"""Sources of what a person typed: into the command, or into a file of the home."""
_WORD_START = re.compile("[a-z0-9]+|[^\x00-\x7f]")


def plan_expire(memories: Sequence[MemoryState], settings: Settings, now: datetime) -> list[Action]:
    """Memories of the inbox whose `expires_at` is before `now` go to the archive, into the category their words say."""
    return [
        Action(
            "expire", "expire", each.id, f"expired {stamp(each.expires)}", each.path, organize("", "", each).category
        )
        for each in _expiring(memories)
        if each.expires is not None and each.expires < now
    ]


def _expiring(memories: Sequence[MemoryState]) -> Iterator[MemoryState]:
    """The memories that expire one day unless somebody organizes them."""
    may = (each for each in memories if each.phase == INBOX and each.expires is not None)
    return (each for each in may if not each.is_pinned and not each.is_kept_from("expire"))


def plan_decay(
    memories: Sequence[MemoryState], settings: Settings, now: datetime, *, careful: bool = False
) -> list[Action]:
    """Organized memories that were never read, and not used within `daemon.decay_threshold`, go to the archive, but for
    exempt categories, pinned ones and reminders still to fire. `careful`: but for what the daemon leaves alone."""
    return [
        Action("decay", "decay", each.id, f"never read since {stamp(each.created)}", each.path)
        for each in _unread(memories, settings)
        if now - _last_use(each) > settings.decay_threshold and not (careful and _is_left_alone(each, settings))
    ]


def _is_left_alone(memory: MemoryState, settings: Settings) -> bool:
    """Whether the daemon lets it be, however old: its category is one of `daemon.keep`, a person wrote it by hand, or
    it was made from another program's file that is still there (contract 001, 18.4)."""
    is_by_hand = memory.info is not None and memory.info.source in _BY_HAND
    return memory.category in settings.keep or is_by_hand or _has_source(memory.header)


def _has_source(header: Mapping[str, Any]) -> bool:
    """Whether the file a memory was ingested from may still be there: its folder may be away for a while."""
    ref, root = header.get("source_ref"), header.get("source_root")
    if not isinstance(ref, str) or not isinstance(root, str) or not os.path.isdir(root):
        return isinstance(ref, str)
    path = ref.partition(":")[2]
    return any(os.path.lexists(os.path.join(root, each)) for each in (path, unicodedata.normalize("NFD", path)))


def _last_use(memory: MemoryState) -> datetime:
    return max(memory.created, memory.used or memory.created)


def _unread(memories: Sequence[MemoryState], settings: Settings) -> Iterator[MemoryState]:
    """The memories that decay one day unless somebody reads them."""
    for each in memories:
        is_exempt = each.category in settings.decay_exempt or each.is_pinned or each.is_kept_from("decay")
        if each.phase == ORGANIZED and each.access_count == 0 and not is_exempt:
            reminder = Reminder.of(each.header)
            # A reminder whose time nobody can read stays, too: somebody who mends it still wants it.
            if each.category != REMINDERS or not (reminder.is_waiting or reminder.unreadable is not None):
                yield each


def plan_upgrade(memories: Sequence[MemoryState], settings: Settings, now: datetime) -> list[Action]:
    """Memories of the inbox read `daemon.upgrade_access_threshold` times or more are organized."""
    return [
        organize(
            "upgrade", "upgrade", each, "read once" if each.access_count == 1 else f"read {each.access_count} times"
        )
        for each in memories
        if each.phase == INBOX and each.access_count >= settings.upgrade_access_threshold
    ]


def plan_upgrade_of(memory: MemoryState, category: str | None = None) -> Action | None:
    """What `memory upgrade ID` does: into `category`, else where the table says; None when it is there already."""
    if category is None:
        return organize("upgrade", "upgrade", memory, "asked for") if memory.phase == INBOX else None
    if memory.phase != INBOX and memory.category == category:
        return None
    return Action("upgrade", "upgrade", memory.id, f"asked for: {category}", memory.path, category=category)


def organize(job: str, verb: str, memory: MemoryState, why: str = "") -> Action:
    """The action that takes a memory out of the inbox: into the category it has, else where the table says."""
    category, reason = memory.category, memory.category
    words: tuple[str, ...] = ()
    if category == INBOX:
        category, words, _ = classify(memory.content)
        reason = f"{category} ({', '.join(words) or 'no word of the table'})"
    return Action(job, verb, memory.id, f"{why}: {reason}" if why else reason, memory.path, category, words)


JOBS: dict[str, Plan] = {
    "expire": plan_expire,
    "decay": plan_decay,
    "upgrade": plan_upgrade,
    "consolidate": lambda memories, settings, now: plan_duplicates(memories),
}
"""The four jobs in their order."""
ROUND = JOBS | {"decay": partial(plan_decay, careful=True)}
"""The same as the daemon does them (contract 001, 18.4)."""


def next_due(memories: Sequence[MemoryState], settings: Settings) -> datetime | None:
    """The moment after which the daemon's jobs have something to do, if they have nothing to do now and no memory
    changes until then (`Upkeep.state` tells); None: never."""
    moments = [each.expires for each in _expiring(memories) if each.expires]
    decaying = (each for each in _unread(memories, settings) if not _is_left_alone(each, settings))
    oldest = min(map(_last_use, decaying), default=None)
    try:
        moments += [oldest + settings.decay_threshold] if oldest is not None else []
    except OverflowError:
        pass
    return min(moments, default=None)


def consolidate(memory: Memory, *, dry_run: bool = False) -> list[Outcome]:
    """Fold the counts of reads (not under a dry run), then expire, decay, upgrade, consolidate.

    One that fails does not stop the others.
    """
    turn = Round(memory, dry_run=dry_run)
    if not dry_run:
        turn.upkeep.fold()
    return [turn.run(name, plan) for name, plan in JOBS.items()]


class Classified(NamedTuple):
    """`words` are the entries that decided, as the table has them, in the order the text first has them;
    `scores` the categories that scored at all, in the table's order."""

    category: str
    words: tuple[str, ...]
    scores: Mapping[str, int]


class _Entry(NamedTuple):
    """An entry of the table. `sought` in lower case, or as written when `exact`."""

    word: str
    sought: str
    category: str
    weight: int
    exact: bool

    def is_at(self, at: int, text: str) -> bool:
        """Whether it stands at a position of `text`, an English entry as a word of its own."""
        end = at + len(self.sought)
        if not text.startswith(self.sought, at):
            return False
        return not self.sought.isascii() or not (_in_word(text[at - 1 : at]) or _in_word(text[end : end + 1]))


def classify(text: str) -> Classified:
    """The category with the highest score, of equal ones the first in the table; `knowledge` when no word matches.

    An entry counts once; a match inside a longer match of any entry does not count. `text` is the memory's content.
    Source: contract 001, 7.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.replace("’", "'"))
    text = " ".join(text.split())
    low = text.lower()
    if len(low) != len(text):  # a letter that grows in lower case stays, so that every character keeps its place
        low = "".join(char if len(char.lower()) != 1 else char.lower() for char in text)
    categories, table = _table()
    found: dict[_Entry, None] = {}
    reached = 0
    for match in _WORD_START.finditer(low):
        at = match.start()
        entry = next((each for each in table.get(match[0], ()) if each.is_at(at, text if each.exact else low)), None)
        if entry is not None and at + len(entry.sought) > reached:
            reached = at + len(entry.sought)
            found[entry] = None
    totals = Counter[str]()
    for entry in found:
        totals[entry.category] += entry.weight
    scores = {name: totals[name] for name in categories if name in totals}
    best = max(scores, key=scores.__getitem__, default=FALLBACK)
    return Classified(best, tuple(each.word for each in found if each.category == best), scores)


@cache
def _table() -> tuple[tuple[str, ...], dict[str, list[_Entry]]]:
    """The categories of classify.toml in their order, and its entries by what they begin with, the longest first."""
    tables = tomllib.loads(Path(__file__).with_name("classify.toml").read_text(encoding="utf-8"))
    found: dict[str, list[_Entry]] = {}
    for category, kinds in tables.items():
        for kind, word in ((kind, word) for kind, words in kinds.items() for word in words):
            is_exact = kind == "exact"
            entry = _Entry(word, word if is_exact else word.lower(), category, _WEIGHTS[kind], is_exact)
            found.setdefault(_WORD_START.findall(word.lower())[0], []).append(entry)
    for entries in found.values():
        entries.sort(key=lambda each: -len(each.sought))
    return tuple(tables), found


def _in_word(char: str) -> bool:
    """Whether an English word goes on with `char`. Chinese, Japanese and Korean letters end it: `这个API的`."""
    return char == "_" or (char < "\u2e80" and char.isalnum())
