"""Counts how many notes were learned, changed and forgotten, for the sentence at the top of Today."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from memoranda.engine import MemorySession
from memoranda.engine.history.former_places import Place
from memoranda.ledger.change import Change, Standing
from memoranda.serve.page.today.change_rows import CHANGED, FORGOT, LEARNED, is_machinery, word_of
from memoranda.serve.page.words.wording import counted
from memoranda.serve.page.words.writers import is_upkeep

# Changes that are counted.
_MAX_COUNTED_CHANGES = 2_000
# The verb of a change that merges notes.
_MERGE = "merge"


@dataclass
class Summary:
    """How many notes were learned, changed and forgotten since a moment.

    since: the moment.
    is_week: whether the moment is seven days ago, because nothing happened today.
    by_agents: LEARNED, CHANGED or FORGOT -> to how many notes agents did that.
    by_owner: LEARNED, CHANGED or FORGOT, of which the owner did something.
    agents: LEARNED, CHANGED or FORGOT -> the names of the agents that did that.
    merged: how many of the learned notes were merged into others since, so that lists lack them.
    """

    since: datetime
    is_week: bool = False
    learned: int = 0
    changed: int = 0
    forgot: int = 0
    by_agents: Counter[str] = field(default_factory=Counter)
    by_owner: set[str] = field(default_factory=set)
    agents: dict[str, list[str]] = field(default_factory=dict)
    merged: int = 0


class DifferentNotes:
    """Counts the notes that changes learned, changed or forgot, each once for each of these words.

    A change without texts, such as a move of a folder, counts as one note. Notes that a deletion
    only took links out of do not count.
    """

    def __init__(self) -> None:
        self._notes: dict[str, set[Place]] = {}
        # Where a note went later, by its former place.
        self._moved: dict[Place, Place] = {}
        self._merged: set[Place] = set()

    def add(self, change: Change) -> None:
        """Add a change. Changes must be added in order, the newest first."""
        notes = self._notes.setdefault(word_of(change), set())
        notes.update(self._moved.get(place, place) for place in self._follow_to_places(change))

    def follow(self, change: Change) -> None:
        """Note where a change moved notes, and which it merged into others, without counting it.

        The changes must be followed in order, the newest first, before any is added.
        """
        # This is also called to record moves.
        places = self._follow_to_places(change)
        if change.verb == _MERGE:
            files = change.texts()
            removed = {(file.project, file.path) for file in files if file.do == "remove"}
            # What only came to another place is not among `places`.
            self._merged.update(removed.intersection(places))

    def merged(self, word: str) -> int:
        """Return how many of the notes with a word were merged into others."""
        return len(self._notes.get(word, set()) & self._merged)

    def counts(self) -> dict[str, int]:
        """Return LEARNED, CHANGED or FORGOT -> the number of notes, the largest number first."""
        counts = {word: len(notes) for word, notes in self._notes.items()}
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    def _follow_to_places(self, change: Change) -> list[Place]:
        """Return the places of the notes that a change is about.

        Also records where it moved notes. Earlier changes, which come after it here, name the places
        that these notes had before.
        """
        files = list(change.texts())
        removed = [(file.project, file.path) for file in files if file.do == "remove"]
        if not files or (change.verb == "delete" and not removed):
            return [(change.project, change.path)]
        if change.verb == "delete":
            return removed
        for file in files:
            if file.do == "move":
                self._move((file.project, file.path), (file.project, file.to))
        written = [(file.project, file.to or file.path) for file in files if file.do != "remove"]
        new = [(file.project, file.path) for file in files if file.do == "put" and file.old is None]
        # A note that came to another place is removed at one place and made at another.
        moved_count = min(len(removed), len(new))
        for old_place, new_place in zip(removed, new, strict=False):
            self._move(old_place, new_place)
        # What was only removed counts, too.
        return written + removed[moved_count:]

    def _move(self, old_place: Place, new_place: Place) -> None:
        """Record that a note went from one place to another, and on to where it is known to be later."""
        self._moved[old_place] = self._moved.get(new_place, new_place)


def summary_since(
    memory: MemorySession,
    since: datetime,
    before: int | None = None,
    *,
    agent: str = "",
    is_owner: bool = False,
) -> Summary:
    """Count the changes since a moment, without upkeep, machinery and undos.

    before: only changes with lower numbers. None means all.
    agent: only changes of this agent. "" means everybody's.
    is_owner: whether only changes of the owner count.
    """
    summary = Summary(since)
    all_notes = DifferentNotes()
    # An undone change, and its undo, do not count.
    standing = Standing()
    # All later moves and merges count, also those by upkeep, and after the time that is counted.
    for change in memory.log(limit=_MAX_COUNTED_CHANGES, since=since):
        if standing.counts(change):
            all_notes.follow(change)
    notes_of_agents = DifferentNotes()
    changes = memory.log(
        limit=_MAX_COUNTED_CHANGES, since=since, before=before, agent=agent or None
    )
    for change in changes:
        if is_machinery([change]) or is_upkeep([change]) or change.undoes is not None:
            continue
        if is_owner and change.agent is not None:
            continue
        word = word_of(change)
        all_notes.add(change)
        if not change.agent:
            summary.by_owner.add(word)
            continue
        notes_of_agents.add(change)
        agents = summary.agents.setdefault(word, [])
        if change.agent not in agents:
            agents.append(change.agent)
    summary.by_agents.update(notes_of_agents.counts())
    counts = all_notes.counts()
    summary.learned = counts.get(LEARNED, 0)
    summary.changed = counts.get(CHANGED, 0)
    summary.forgot = counts.get(FORGOT, 0)
    summary.merged = all_notes.merged(LEARNED)
    return summary


def deeds_in(language: str, summary: Summary) -> list[str]:
    """Summarize changes in words that follow a name: `learned 3 things`, `removed one note`."""
    deeds = (
        ("learned one thing", "learned {n} things", summary.learned),
        ("changed one note", "changed {n} notes", summary.changed),
        ("removed one note", "removed {n} notes", summary.forgot),
    )
    return [
        counted(language, singular, plural, count) for singular, plural, count in deeds if count
    ]
