"""The view that jobs have of memories (`MemoryState`), their plans (`Action`), and the one runner
that applies a plan or only shows it.

A job is a name and a `Plan`: a pure function of the memories, the settings and the clock. A `Round`
is one run of several jobs, each of which sees what the ones before it did, or under a dry run would
have done. The report of the last dream is read here, for those who need nothing else of dreams.
Source: contract 001, 4 and 5.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.clock import parse_stamp
from memoranda.engine.contents import contents
from memoranda.engine.telling import is_foreign
from memoranda.engine.upkeep import Upkeep
from memoranda.engine.writing import id_list
from memoranda.errors import (
    Conflict,
    Exists,
    Locked,
    MemorandaError,
    NotFound,
    NotText,
    StorageError,
    internal_sentence,
)
from memoranda.note.frontmatter import REMOVE
from memoranda.note.model import CATEGORY_PROJECT, INBOX, ORGANIZED, REMINDERS
from memoranda.sources.files import read_file, reason
from memoranda.sources.layout import Layout

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession
    from memoranda.index.rows import NoteInfo
    from memoranda.note.markdown import Record

MERGE = "merge"
LINK = "link"
REMIND = "remind"
DREAM = "dream"
REMINDED = "reminded"
"""Header key of a memory: the ids of the reminders made from its text, so that none is made twice.
"""
SET_BY = "category_by"
OWNER = "owner"
"""Header key of a memory whose category somebody set, and its value when that was the owner: others
are compared with it (contract 001, 18.8)."""
# To the archive
_REMOVING = ("expire", "decay")
_ORGANIZING = ("upgrade", "classify")
CHANGED_MEANWHILE = (Conflict, Exists, Locked, NotFound, NotText)
"""Errors of a verb of upkeep when a memory is no longer as the plan saw it."""


@dataclass(frozen=True, slots=True)
class MemoryState:
    """One memory as a plan sees it. Times are aware UTC.

    due_at, repeat: compared for equality only.
    links, unlinked, merged: whole ids (contract 001, 2).
    used: when a search last showed it.
    targets: the targets of its wikilinks as written, outside of code.
    info: the index's entry. In a dry run, other fields may differ from it.
    header: the header of the file when the round read it.
    """

    id: str
    scope: str
    content: str
    category: str
    created: datetime
    phase: str = ORGANIZED
    access_count: int = 0
    updated: datetime | None = None
    expires: datetime | None = None
    due_at: datetime | str | None = None
    repeat: str | None = None
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    unlinked: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    used: datetime | None = None
    targets: tuple[str, ...] = ()
    info: NoteInfo | None = None
    header: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        info: NoteInfo,
        content: str,
        targets: tuple[str, ...] = (),
        used: datetime | None = None,
    ) -> MemoryState:
        """The state of a memory the index knows; `used` if the access log knows of a use."""
        header = info.header
        values = [header.get(key) for key in ("due_at", "repeat", "last_used_at")]
        due, repeat, last = [None if value in (None, "") else str(value) for value in values]
        with suppress(ValueError, OverflowError):
            used = used or (parse_stamp(last) if last else None)
        return cls(
            info.id,
            info.scope,
            content,
            info.category or INBOX,
            parse_stamp(info.created),
            phase=info.phase or ORGANIZED,
            access_count=info.access_count,
            updated=parse_stamp(info.updated) if info.updated else None,
            expires=parse_stamp(info.expires) if info.expires else None,
            due_at=due,
            repeat=repeat,
            tags=info.tags,
            links=info.links,
            unlinked=tuple(id_list(header.get("unlinked"))),
            merged=tuple(id_list(header.get("merged"))),
            used=used,
            targets=targets,
            info=info,
            header=header,
        )

    @property
    def is_pinned(self) -> bool:
        """Whether the owner pinned the memory. A pinned memory does not expire or decay, and is not
        merged into another.
        """
        return self.header.get("pinned") is True

    def is_kept_from(self, *verbs: str) -> bool:
        """Whether a person took back such an action on it.

        For a pair, use `verb:ID` with the other's id.
        """
        return not {*verbs}.isdisjoint(id_list(self.header.get("kept_from")))

    @property
    def path(self) -> str:
        """Where it is, relative to the home."""
        if self.info:
            path = self.info.path
        else:
            path = ""
        if self.info and self.category != self.info.category:
            path = f"{self.category}/{path.rpartition('/')[2]}"
        return f"{CATEGORY_PROJECT}/{path}"

    @property
    def is_foreign(self) -> bool:
        """Whether nobody known wrote it, or it seems to hold instructions."""
        if self.info is None:
            return False
        return bool(self.info.suspicious) or is_foreign(self.info.provenance)

    @property
    def block(self) -> tuple[object, ...]:
        """Only memories of one block are merged or linked as similar: one scope, valid until the
        same time, written by somebody known or not, and reminders only with reminders of equal
        `due_at` and `repeat`."""
        until = self.scope, str(self.header.get("valid_until")), self.is_foreign
        if self.category == REMINDERS:
            return (*until, self.due_at, self.repeat)
        return until


def states_of(
    memory: MemorySession,
    infos: Sequence[NoteInfo],
    targets: Mapping[int, tuple[str, ...]] | None = None,
    uses: Mapping[str, datetime] | None = None,
) -> list[MemoryState]:
    """The states of memories in the index.

    targets: the rows that the wikilinks of each memory lead to.
    uses: the number of uses of each memory, by id.
    """
    links = targets or {}
    used = uses or {}
    return [
        MemoryState.of(info, content, links.get(info.row, ()), used.get(info.id))
        for info, content in zip(infos, contents(memory, infos), strict=True)
    ]


def merged_into(survivor: MemoryState, others_merged_states: Iterable[MemoryState]) -> MemoryState:
    """The survivor after the others were merged into it, in this order (contract 001, 5,
    "Merging").

    It keeps id, content and category. If it is in the inbox, it takes category and phase of the
    first organized memory. Tags and links are united, its own first; access counts are summed;
    `created` is the earliest. `expires` is None if any memory is organized, otherwise the latest.
    `merged` gains the others' ids, and the ids in their `merged`.
    """
    merged_states = list(others_merged_states)
    states = [survivor, *merged_states]
    home = next((state for state in states if state.phase == ORGANIZED), survivor)
    merged_ids = list(survivor.merged)
    for state in merged_states:
        merged_ids += [state.id, *state.merged]
    gone_ids = {survivor.id, *merged_ids}
    links = chain.from_iterable(state.links for state in states)
    return replace(
        survivor,
        category=home.category,
        phase=home.phase,
        tags=_unique(chain.from_iterable(state.tags for state in states)),
        links=_unique(id for id in links if id not in gone_ids),
        merged=_unique(merged_ids),
        access_count=sum(state.access_count for state in states),
        created=min(state.created for state in states),
        expires=_latest_end(states) if home.phase == INBOX else None,
    )


def _latest_end(states: Iterable[MemoryState]) -> datetime | None:
    """The latest `expires` of memories. None if none of them expires."""
    ends = [state.expires for state in states if state.expires is not None]
    return max(ends, default=None)


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    """Each text once, in order."""
    return tuple(dict.fromkeys(texts))


def linked_pairs(memories: Sequence[MemoryState], key: str = "links") -> set[tuple[int, int]]:
    """The pairs of positions (smaller first) in `memories` that either side's `links` name, or
    `unlinked` as `key`. An id merged into one of them counts as that one."""
    positions: dict[str, int] = {}
    for position, memory in enumerate(memories):
        positions |= dict.fromkeys(memory.merged, position)
    # A memory's own id counts more than what was merged into another.
    positions |= {memory.id: position for position, memory in enumerate(memories)}
    pairs: set[tuple[int, int]] = set()
    for position, memory in enumerate(memories):
        for id in getattr(memory, key):
            other_position = positions.get(id, position)
            if other_position != position:
                pairs.add((min(position, other_position), max(position, other_position)))
    return pairs


@dataclass(frozen=True, slots=True)
class Action:
    """One planned change of a memory.

    job, verb: the job that plans it, and what to do.
    id, path: the memory, and its path relative to the home.
    reason: the reason in words.
    category: the new category, for `upgrade` and `classify`; the present one for `expire`.
    words: the words that decided about the category.
    set_by: who set the category, if somebody did.
    target: the survivor of a `merge`, the other end of a `link`, or the memory that a reminder was
        made from (`remind`).
    phrase, record: for `remind`, the words read as a time, and the reminder to store.
    """

    job: str
    verb: str
    id: str
    reason: str
    path: str
    category: str | None = None
    words: tuple[str, ...] = ()
    target: str | None = None
    phrase: str | None = None
    record: Record | None = None
    set_by: str | None = None

    def document(self) -> dict[str, Any]:
        """The action as JSON shows it: job, verb, id, reason, path, then what its verb has as well."""
        row: dict[str, Any] = {
            name: getattr(self, name) for name in ("job", "verb", "id", "reason", "path")
        }
        if self.verb in _ORGANIZING:
            row |= {"category": self.category, "words": list(self.words)}
        return row | {
            key: value for key in ("target", "phrase") if (value := getattr(self, key)) is not None
        }

    def line(self) -> str:
        """The action as a dry run prints it."""
        return f"would {self.verb} {self.id[:8]} {self.reason}"


Plan = Callable[[Sequence[MemoryState], "Settings", datetime], Sequence[Action]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The actions of a job applied (under a dry run: planned), how many were skipped, and the error
    that ended it.
    """

    job: str
    actions: tuple[Action, ...] = ()
    skipped: int = 0
    error: Exception | None = None

    @property
    def failure(self) -> str | None:
        """The error as one sentence that names the place in our code. None without an error."""
        if self.error is None:
            return None
        if isinstance(self.error, MemorandaError):
            return str(self.error)
        return internal_sentence(self.error)


@dataclass
class _Tally:
    """The actions of a job that were carried out so far, and the number of those skipped."""

    carried_out: list[Action] = field(default_factory=list)
    skipped: int = 0

    def tells_states(self) -> bool:
        """Whether the memories as they are now follow from the actions, without reading them."""
        if self.skipped or not self.carried_out:
            return False
        return all(action.record is None for action in self.carried_out)


class Round:
    """One run of jobs over the memories that its caller sees.

    now: the time for all jobs.
    stop: called before each action. If it returns True, the rest of the round is left out.
    progress: called before each action with its number within the job, and the number of all.
    """

    def __init__(
        self,
        memory: MemorySession,
        *,
        dry_run: bool = False,
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], None] | None = None,
    ):
        self.memory = memory
        self.upkeep = Upkeep(memory)
        self.now = memory.clock()
        self.dry_run = dry_run
        self._stop = stop
        self._progress = progress
        self._memories: list[MemoryState] | None = None
        self._excluded: set[str] = set()

    @property
    def memories(self) -> list[MemoryState]:
        """The memories jobs may touch, as they stand now, oldest first: not those their owner
        locked, nor files that claim one id."""
        if self._memories is None:
            states = self.upkeep.every()
            files = Counter(info.id for info in states)
            infos = [
                info
                for info in states
                if not (info.locked or info.is_broken) and files[info.id] == 1
            ]
            self._excluded = {
                info.category or ""
                for info in states
                if info.locked or info.is_broken or files[info.id] > 1
            }
            self._memories = states_of(
                self.memory, infos, self.upkeep.targets(infos), self.upkeep.uses()
            )
        return self._memories

    @property
    def categories(self) -> set[str]:
        """The categories that hold a memory."""
        return {memory.category for memory in self.memories} | self._excluded

    def run(self, job: str, plan: Plan) -> Outcome:
        """Plan a job and apply its actions one by one.

        An action is skipped if its memories changed since the plan. Errors are not raised: the
        outcome has them.
        """
        tally = _Tally()
        self.memory.run = 0
        try:
            states = {memory.id: memory for memory in self.memories}
            planned = plan(self.memories, self.memory.settings, self.now)
            actions = list(_not_taken_back(planned, states))
            if self.dry_run:
                self._memories = after_actions(self.memories, actions, self.now)
                return Outcome(job, tuple(actions))
            infos = {memory.id: memory.info for memory in self.memories if memory.info}
            if actions:
                # Read again when they are needed next, unless they can be told from the actions.
                self._memories = None
            self._apply_all(actions, infos, tally)
            if tally.tells_states():
                self._memories = _states_after(states, infos)
        except Exception as error:
            # One of the outermost loops: errors are reported, and the next job runs.
            return Outcome(job, tuple(tally.carried_out), tally.skipped, error)
        finally:
            self.memory.run = None
        return Outcome(job, tuple(tally.carried_out), tally.skipped)

    def _apply_all(
        self, actions: Sequence[Action], infos: dict[str, NoteInfo], tally: _Tally
    ) -> None:
        """Apply the actions one by one, until the round is stopped, and count them in `tally`."""
        for number, action in enumerate(actions, 1):
            if self._stop():
                return
            if self._progress is not None:
                self._progress(number, len(actions))
            if self._apply(action, infos):
                tally.carried_out.append(action)
            else:
                tally.skipped += 1

    def _apply(self, action: Action, infos: dict[str, NoteInfo]) -> bool:
        """Apply an action, and update `infos`.

        Returns False if a memory changed after the plan was made.
        """
        info = infos.get(action.id)
        target_info = infos.get(action.target or "")
        try:
            for written in apply(self.upkeep, action, info, target_info):
                infos[written.id] = written
        except CHANGED_MEANWHILE:
            return False
        if action.verb in (*_REMOVING, MERGE):
            infos.pop(action.id, None)
        return True


def _not_taken_back(
    actions: Iterable[Action], states: Mapping[str, MemoryState]
) -> Iterator[Action]:
    """The actions except those a person took back once."""
    # The ids that each memory consists of, once the actions before are done.
    ids_joined = {id: [id, *state.merged] for id, state in states.items()}
    for action in actions:
        if action.verb not in (MERGE, LINK):
            if action.verb == REMIND:
                owner = action.target or ""
            else:
                owner = action.id
            if not states[owner].is_kept_from(action.verb):
                yield action
            continue
        ours = ids_joined[action.id]
        theirs = ids_joined.get(action.target or "", [])
        if _is_kept_apart(action.verb, ours, theirs, states):
            continue
        if action.verb == MERGE:
            theirs += ours
        yield action


def _is_kept_apart(
    verb: str, ours: Sequence[str], theirs: Sequence[str], states: Mapping[str, MemoryState]
) -> bool:
    """Whether a person took back that a memory of one side was merged or linked with the other."""
    for ids, other_ids in ((ours, theirs), (theirs, ours)):
        taken_back = [f"{verb}:{other_id}" for other_id in other_ids]
        if any(id in states and states[id].is_kept_from(*taken_back) for id in ids):
            return True
    return False


def _states_after(
    states: Mapping[str, MemoryState], infos: Mapping[str, NoteInfo]
) -> list[MemoryState]:
    """The memories after actions that left their texts as they were, oldest first."""
    after = []
    for id, info in infos.items():
        state = states[id]
        if info is not state.info:
            targets = tuple(target for target in state.targets if target not in info.links)
            state = MemoryState.of(info, state.content, targets, state.used)
        after.append(state)
    return sorted(after, key=lambda state: (state.created, state.id))


def apply(
    upkeep: Upkeep, action: Action, info: NoteInfo | None, target_info: NoteInfo | None
) -> list[NoteInfo]:
    """Carry out one action on the memory `info` (and `target_info`, its target): one change, which `undo`
    takes back. Returns the memories it wrote. Raises what `CHANGED_MEANWHILE` names when they are
    not as given, or there are not any."""
    if action.verb == REMIND and action.record is not None and target_info is not None:
        reminded = [*id_list(target_info.header.get(REMINDED)), action.id]
        return upkeep.derive(target_info, action.record, {REMINDED: reminded}, REMIND)
    if info is None or (action.target is not None and target_info is None):
        raise NotFound(action.id, CATEGORY_PROJECT)
    if action.verb in _ORGANIZING:
        return organize_all(upkeep, [info], [action])
    if action.verb in _REMOVING:
        return upkeep.archive(info, action.verb, action.verb, action.category)
    assert target_info is not None
    if action.verb == MERGE:
        return upkeep.merge(target_info, info)
    return upkeep.link(info, target_info)


def organize_all(
    upkeep: Upkeep, infos: Sequence[NoteInfo], actions: Sequence[Action | None]
) -> list[NoteInfo]:
    """Carry out the organizing of these memories as one change, all or none; a memory without an
    action stays. Returns them as they are then. Raises as `apply`."""
    planned = [
        (info, action) for info, action in zip(infos, actions, strict=True) if action is not None
    ]
    if not planned:
        return list(infos)
    keys: dict[str, Any] = {"phase": ORGANIZED, "expires_at": None}
    set_by = planned[0][1].set_by
    verb = planned[0][1].verb
    if set_by or any(SET_BY in info.header for info, _ in planned):
        keys[SET_BY] = set_by or REMOVE
    categories = [(info, action.category) for info, action in planned]
    written = {info.id: info for info in upkeep.change_all(categories, keys, verb)}
    return [written.get(info.id, info) for info in infos]


def after_actions(
    memories: Iterable[MemoryState], actions: Sequence[Action], now: datetime | None = None
) -> list[MemoryState]:
    """The memories as they are once these actions are applied: links to what was merged lead to
    the survivor. `updated` of what changed becomes `now`, when given. Reminders that would be made
    are left out.
    """
    survivors: dict[str, str] = {}
    states = {memory.id: memory for memory in memories}
    linked = defaultdict[str, list[str]](list)
    merged = defaultdict[str, list[MemoryState]](list)
    # Merged memories must be organized before.
    for action in sorted(actions, key=lambda action: action.verb == MERGE):
        target = action.target or ""
        if action.verb in _REMOVING:
            del states[action.id]
        elif action.verb in _ORGANIZING:
            states[action.id] = _organized(states[action.id], action, now)
        elif action.verb == LINK:
            linked[action.id].append(target)
            linked[target].append(action.id)
        elif action.verb == MERGE:
            survivors[action.id] = target
            merged[target].append(states[action.id])
    after = []
    for state in states.values():
        if state.id in survivors:
            continue
        new = state
        if state.id in merged:
            new = merged_into(state, merged[state.id])
        new = _relinked(new, survivors, linked.get(state.id, ()))
        if now is not None and new is not state:
            new = replace(new, updated=now)
        after.append(new)
    return after


def _organized(state: MemoryState, action: Action, now: datetime | None) -> MemoryState:
    """A memory that an action takes out of the inbox."""
    category = action.category or state.category
    return replace(state, phase=ORGANIZED, category=category, expires=None, updated=now)


def _relinked(
    state: MemoryState, survivors: Mapping[str, str], new_links: Sequence[str]
) -> MemoryState:
    """A memory with more links, and those to merged memories led to their survivors."""
    if not new_links and survivors.keys().isdisjoint(state.links):
        return state
    links = _unique([*(survivors.get(id, id) for id in state.links), *new_links])
    return replace(state, links=tuple(id for id in links if id != state.id))


def stored_report(home: Path) -> dict[str, Any]:
    """Read the report of the last dream. Empty if none exists. Raises StorageError."""
    try:
        report = json.loads(read_file(str(Layout(home).dream_report)).data)
    except (FileNotFoundError, ValueError):
        return {}
    except OSError as error:
        raise StorageError("the dream report", reason(error)) from None
    if isinstance(report, dict):
        return report
    return {}


def last_dream(home: Path) -> datetime | None:
    """When the last dream was, at any level and even if it did nothing. None before the first."""
    try:
        return parse_stamp(stored_report(home)["last_dream"])
    except (KeyError, TypeError, ValueError, AttributeError, StorageError):
        return None
