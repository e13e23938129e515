"""Plan and apply changes of memories: the base of all jobs, such as expiring and merging.

A job is a name and a `Plan`, a pure function that turns memories (`MemoryState`) into planned
changes (`Action`). A `Round` runs several jobs one after the other, and applies their actions. Under
a dry run it only shows them. Each job sees the memories as the jobs before it left them.
The report of the last dream is read here too, so that its readers need not import dreams.
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
from memoranda.engine.telling.manner import is_foreign
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
from memoranda.note.model import CATEGORY_PROJECT, INBOX, ORGANIZED, REMINDERS, flag
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
"""Header key with the ids of the reminders made from a memory's text. It prevents second ones."""
SET_BY = "category_by"
"""Header key that says who chose the category of a memory by hand."""
OWNER = "owner"
"""Value of SET_BY for the owner. The classifier learns from these memories (contract 001, 18.8)."""
# Verbs that move a memory to the archive.
_REMOVING = ("expire", "decay")
# Verbs that take a memory out of the inbox.
_ORGANIZING = ("upgrade", "classify")
CHANGED_MEANWHILE = (Conflict, Exists, Locked, NotFound, NotText)
"""Errors that mean that a memory changed or went away after the plan was made."""


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Describe one memory to the plans of jobs. Times are aware UTC.

    scope: which agents may see it.
    content: its text.
    category: its category. `inbox` for a memory that has none yet.
    created: when it was written.
    phase: `inbox`, `organized` or `archived`.
    access_count: how often it was read.
    updated: when it was last changed. None if unknown.
    expires: when it expires. None for never.
    due_at, repeat: as the header has them. They are only compared for equality.
    tags: the tags in its header, as written. Tags in its text (`#tag`) are not among them.
    links: whole ids of the memories that it is linked to (contract 001, 2).
    unlinked: whole ids of memories from which somebody removed the link.
    merged: whole ids of memories that were merged into it.
    used: when a search last showed it. None if never.
    targets: the targets of its wikilinks as written, without wikilinks in code.
    info: the memory's entry in the index. In a dry run, other fields may differ from the entry.
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
        """Return the state of a memory that is in the index.

        used: when the access log last saw a use. None takes `last_used_at` of the header.
        """
        header = info.header
        last_used_at = _header_text(header, "last_used_at")
        if used is None and last_used_at is not None:
            # A person may have written something else there.
            with suppress(ValueError, OverflowError):
                used = parse_stamp(last_used_at)
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
            due_at=_header_text(header, "due_at"),
            repeat=_header_text(header, "repeat"),
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
        """Whether the owner pinned the memory.

        A pinned memory does not expire or decay, and is not merged into another.
        """
        return flag(self.header.get("pinned")) is True

    def is_kept_from(self, *verbs: str) -> bool:
        """Whether a person undid one of these actions on the memory, so that no job repeats it.

        verbs: `expire`, `decay` and so on. For an action on two memories, the verb and the id of
            the other memory: `merge:ID`, `link:ID`.
        """
        return not {*verbs}.isdisjoint(id_list(self.header.get("kept_from")))

    @property
    def path(self) -> str:
        """The path of the memory's file relative to the home."""
        if self.info is None:
            return f"{CATEGORY_PROJECT}/"
        path = self.info.path
        # A dry run may have given it another category, which is the name of its folder.
        if self.category != self.info.category:
            file_name = path.rpartition("/")[2]
            path = f"{self.category}/{file_name}"
        return f"{CATEGORY_PROJECT}/{path}"

    @property
    def is_foreign(self) -> bool:
        """Whether the memory's writer is unknown, or its text seems to give orders to a model."""
        if self.info is None:
            return False
        return bool(self.info.suspicious) or is_foreign(self.info.provenance)

    @property
    def block(self) -> tuple[object, ...]:
        """The values that two memories must share before they are merged or linked as similar.

        They are the scope, the end (`valid_until`) and whether the writer is unknown. Reminders
        must also share `due_at` and `repeat`.
        """
        shared_values = (self.scope, str(self.header.get("valid_until")), self.is_foreign)
        if self.category == REMINDERS:
            return (*shared_values, self.due_at, self.repeat)
        return shared_values


def _header_text(header: Mapping[str, Any], key: str) -> str | None:
    """Return the value of a header key as text. None if the key is missing or empty."""
    value = header.get(key)
    is_empty = value is None or value == ""
    return None if is_empty else str(value)


def states_of(
    memory: MemorySession,
    infos: Sequence[NoteInfo],
    targets: Mapping[int, tuple[str, ...]] | None = None,
    uses: Mapping[str, datetime] | None = None,
) -> list[MemoryState]:
    """Return the states of memories that are in the index, in the order of `infos`.

    targets: the targets of the wikilinks of each memory, by its row in the index. None for none.
    uses: when each memory was last used, by its id. A memory that is missing here was last used
        when its header says. None for no such times.
    """
    targets_by_row = targets or {}
    uses_by_id = uses or {}
    return [
        MemoryState.of(info, content, targets_by_row.get(info.row, ()), uses_by_id.get(info.id))
        for info, content in zip(infos, contents(memory, infos), strict=True)
    ]


def merged_into(survivor: MemoryState, merged_states: Iterable[MemoryState]) -> MemoryState:
    """Return the survivor as it is after other memories were merged into it, in their order.

    The survivor keeps its id, content and category. But if it is in the inbox, it takes the
    category and the phase of the first memory that is organized. Tags and links are united, its own
    first. Access counts are summed, and `created` is the earliest.

    `expires` is None if any memory is organized, or else the latest. `merged` gains the ids of the
    merged memories, and the ids in their `merged`. Source: contract 001, 5, "Merging".

    merged_states: the other memories.
    """
    states = [survivor, *merged_states]
    organized_states = [state for state in states if state.phase == ORGANIZED]
    # The memory whose category and phase the survivor gets
    model = organized_states[0] if organized_states else survivor
    merged_ids = list(survivor.merged)
    for state in states[1:]:
        merged_ids += [state.id, *state.merged]
    # A link to any of these would be a link from the survivor to itself.
    united_ids = {survivor.id, *merged_ids}
    links = chain.from_iterable(state.links for state in states)
    return replace(
        survivor,
        category=model.category,
        phase=model.phase,
        tags=_unique(chain.from_iterable(state.tags for state in states)),
        links=_unique(id for id in links if id not in united_ids),
        merged=_unique(merged_ids),
        access_count=sum(state.access_count for state in states),
        created=min(state.created for state in states),
        expires=_latest_end(states) if model.phase == INBOX else None,
    )


def _latest_end(states: Iterable[MemoryState]) -> datetime | None:
    """Return the latest `expires` of these memories. None if no memory expires."""
    ends = [state.expires for state in states if state.expires is not None]
    return max(ends, default=None)


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts without repetitions, in order of their first place."""
    return tuple(dict.fromkeys(texts))


def linked_pairs(memories: Sequence[MemoryState], key: str = "links") -> set[tuple[int, int]]:
    """Return the linked memories as pairs of positions in `memories`, the smaller first.

    A link in one of the two memories is enough. An id that was merged into a memory counts as that
    memory.

    key: `links`, or `unlinked` for the pairs whose link somebody removed.
    """
    positions: dict[str, int] = {}
    for position, memory in enumerate(memories):
        positions |= dict.fromkeys(memory.merged, position)
    # A memory's own id counts more than what was merged into another.
    positions |= {memory.id: position for position, memory in enumerate(memories)}
    pairs: set[tuple[int, int]] = set()
    for position, memory in enumerate(memories):
        for id in getattr(memory, key):
            other_position = positions.get(id)
            # A memory outside of `memories`, or one that was merged into this memory
            if other_position is None or other_position == position:
                continue
            pairs.add((min(position, other_position), max(position, other_position)))
    return pairs


@dataclass(frozen=True, slots=True)
class Action:
    """Describe one planned change of a memory.

    job: the job that plans the change.
    verb: `expire`, `decay`, `upgrade`, `classify`, `merge`, `link` or `remind`.
    id, path: the memory, and its path relative to the home.
    reason: the reason in words.
    category: the new category for `upgrade` and `classify`, the present one for `expire`.
    words: the words that decided about the category.
    set_by: who set the category by hand. None if a job chose it.
    target: the id of the survivor of a `merge`, of the other end of a `link`, or of the memory that
        a reminder was made from (`remind`).
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
        """Return the action as JSON shows it.

        Keys that only some verbs have (`category`, `words`, `target`, `phrase`) come last.
        """
        row: dict[str, Any] = {
            name: getattr(self, name) for name in ("job", "verb", "id", "reason", "path")
        }
        if self.verb in _ORGANIZING:
            row |= {"category": self.category, "words": list(self.words)}
        if self.target is not None:
            row["target"] = self.target
        if self.phrase is not None:
            row["phrase"] = self.phrase
        return row

    def line(self) -> str:
        """Return the action as a dry run prints it: `would expire 01234567 expired 2026-…`."""
        return f"would {self.verb} {self.id[:8]} {self.reason}"


Plan = Callable[[Sequence[MemoryState], "Settings", datetime], Sequence[Action]]
"""A function that plans a job from the memories, the settings and the present time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one job.

    actions: the actions that were applied, or, under a dry run, planned.
    skipped: the number of actions left out because their memories had changed.
    error: the error that ended the job early. None without one.
    """

    job: str
    actions: tuple[Action, ...] = ()
    skipped: int = 0
    error: Exception | None = None

    @property
    def failure(self) -> str | None:
        """The error as one sentence. An error of our own code names its place. None without one."""
        if self.error is None:
            return None
        if isinstance(self.error, MemorandaError):
            return str(self.error)
        return internal_sentence(self.error)


@dataclass
class _Tally:
    """The actions of a job so far.

    carried_out: the actions that were carried out.
    skipped: how many were left out, because their memories had changed.
    """

    carried_out: list[Action] = field(default_factory=list)
    skipped: int = 0

    def has_only_known_results(self) -> bool:
        """Whether the present memories follow from the actions, so that they need not be read.

        They do not if an action was skipped, as somebody else changed a memory then, or if one made
        a new memory.
        """
        if self.skipped or not self.carried_out:
            return False
        return all(action.record is None for action in self.carried_out)


class Round:
    """Run jobs, one after the other, over the memories that the caller sees.

    now: the present time, the same for all jobs.
    stop: called before each action. If it returns True, the rest of the round is left out.
    progress: called before each action with its number in the job, and the number of all actions.
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
        # The states of all memories. None if they must be read before the next job.
        self._memories: list[MemoryState] | None = None
        # The categories of the memories that jobs may not touch.
        self._excluded_categories: set[str] = set()

    @property
    def memories(self) -> list[MemoryState]:
        """The present memories that jobs may touch, oldest first.

        Locked and broken memories are left out, and so are files that claim the same id.
        """
        if self._memories is None:
            all_infos = self.upkeep.every()
            id_counts = Counter(info.id for info in all_infos)
            infos: list[NoteInfo] = []
            self._excluded_categories = set()
            for info in all_infos:
                claims_taken_id = id_counts[info.id] > 1
                if info.locked or info.is_broken or claims_taken_id:
                    self._excluded_categories.add(info.category or "")
                else:
                    infos.append(info)
            self._memories = states_of(
                self.memory, infos, self.upkeep.targets(infos), self.upkeep.uses()
            )
        return self._memories

    @property
    def categories(self) -> set[str]:
        """The categories that hold a memory, even one that jobs may not touch."""
        return {memory.category for memory in self.memories} | self._excluded_categories

    def run(self, job: str, plan: Plan) -> Outcome:
        """Plan a job and apply its actions one by one. Under a dry run, only plan it.

        An action is skipped if its memories changed since the plan was made. An error is not
        raised, but is in the outcome.
        """
        tally = _Tally()
        # All changes of a job are one run in the history. 0 begins a new run.
        self.memory.run = 0
        try:
            states = {memory.id: memory for memory in self.memories}
            planned = plan(self.memories, self.memory.settings, self.now)
            actions = list(_without_undone(planned, states))
            if self.dry_run:
                self._memories = after_actions(self.memories, actions, self.now)
                return Outcome(job, tuple(actions))
            infos = {memory.id: memory.info for memory in self.memories if memory.info}
            # The actions change memories, so the next job must read all memories again.
            if actions:
                self._memories = None
            self._apply_all(actions, infos, tally)
            # Reading them is spared if their new states follow from the actions.
            if tally.has_only_known_results():
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
        """Apply an action, and keep `infos` (index entries by id) up to date.

        Returns False if a memory changed after the plan was made.
        """
        info = infos.get(action.id)
        target_info = infos.get(action.target or "")
        try:
            for written_info in apply(self.upkeep, action, info, target_info):
                infos[written_info.id] = written_info
        except CHANGED_MEANWHILE:
            return False
        takes_memory_away = action.verb in _REMOVING or action.verb == MERGE
        if takes_memory_away:
            infos.pop(action.id, None)
        return True


def _without_undone(
    actions: Iterable[Action], states: Mapping[str, MemoryState]
) -> Iterator[Action]:
    """Yield the actions, but leave out those that a person undid earlier.

    states: all memories, by id.
    """
    # The ids that each memory consists of, once the actions before are done.
    joined_ids = {id: [id, *state.merged] for id, state in states.items()}
    for action in actions:
        target = action.target or ""
        if action.verb in (MERGE, LINK):
            own_ids = joined_ids[action.id]
            target_ids = joined_ids.get(target, [])
            is_undone = _is_kept_apart(action.verb, own_ids, target_ids, states)
        elif action.verb == REMIND:
            # A new reminder is recorded with the memory that it was made from.
            is_undone = states[target].is_kept_from(action.verb)
        else:
            is_undone = states[action.id].is_kept_from(action.verb)
        if is_undone:
            continue
        if action.verb == MERGE:
            # From here on, the target consists of this memory, too
            target_ids += own_ids
        yield action


def _is_kept_apart(
    verb: str, own_ids: Sequence[str], target_ids: Sequence[str], states: Mapping[str, MemoryState]
) -> bool:
    """Whether a person once undid the same merge or link of any two memories of the two sides.

    verb: `merge` or `link`.
    own_ids, target_ids: for each side, the ids of a memory and of the memories merged into it.
    states: the memories by id.
    """
    for ids, other_ids in ((own_ids, target_ids), (target_ids, own_ids)):
        pair_verbs = [f"{verb}:{other_id}" for other_id in other_ids]
        if any(id in states and states[id].is_kept_from(*pair_verbs) for id in ids):
            return True
    return False


def _states_after(
    states: Mapping[str, MemoryState], infos: Mapping[str, NoteInfo]
) -> list[MemoryState]:
    """Return the memories after actions that left their texts as they were, oldest first.

    states: the memories before the actions, by id.
    infos: the index entries after the actions, by id.
    """
    states_after = []
    for id, info in infos.items():
        state = states[id]
        has_changed = info is not state.info
        if has_changed:
            # `targets` are wikilinks to notes that the memory is not linked to yet
            targets = tuple(target for target in state.targets if target not in info.links)
            state = MemoryState.of(info, state.content, targets, state.used)
        states_after.append(state)
    return sorted(states_after, key=lambda state: (state.created, state.id))


def apply(
    upkeep: Upkeep, action: Action, info: NoteInfo | None, target_info: NoteInfo | None
) -> list[NoteInfo]:
    """Carry out one action as one change, which `undo` can reverse. Returns the memories it wrote.

    upkeep: makes the change.
    info: the index entry of the memory to change. None if the memory is gone.
    target_info: the index entry of the action's target. None without a target, or if it is gone.

    Raises an error of `CHANGED_MEANWHILE` if a memory has changed or is gone.
    """
    if action.verb == REMIND and action.record is not None and target_info is not None:
        reminder_ids = [*id_list(target_info.header.get(REMINDED)), action.id]
        return upkeep.derive(target_info, action.record, {REMINDED: reminder_ids}, REMIND)
    is_target_gone = action.target is not None and target_info is None
    if info is None or is_target_gone:
        raise NotFound(action.id, CATEGORY_PROJECT)

    # Each verb has its own way to change a memory.
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
    """Take memories out of the inbox as one change: all or none. Returns their new index entries.

    upkeep: makes the change.
    actions: one action for each memory. None leaves the memory as it is.

    Raises the errors of `apply`.
    """
    planned = [
        (info, action) for info, action in zip(infos, actions, strict=True) if action is not None
    ]
    if not planned:
        return list(infos)
    keys: dict[str, Any] = {"phase": ORGANIZED, "expires_at": None}
    # All actions of one call have the same verb and author
    _, first_action = planned[0]
    set_by = first_action.set_by
    verb = first_action.verb
    has_former_author = any(SET_BY in info.header for info, _ in planned)
    if set_by or has_former_author:
        # If the classifier chose, the header must not name the person who chose before
        keys[SET_BY] = set_by or REMOVE

    # All memories change together, so that one undo brings all back.
    categories = [(info, action.category) for info, action in planned]
    written_infos = {info.id: info for info in upkeep.change_all(categories, keys, verb)}
    return [written_infos.get(info.id, info) for info in infos]


def after_actions(
    memories: Iterable[MemoryState], actions: Sequence[Action], now: datetime | None = None
) -> list[MemoryState]:
    """Return the memories as they will be once these actions are applied.

    Links to merged memories lead to the survivor. New reminders are left out.

    now: the new `updated` of changed memories. None leaves `updated` as it is.
    """
    states = {memory.id: memory for memory in memories}
    effects = _Effects()
    # Merges come last, because a merged memory may be organized by another action.
    for action in sorted(actions, key=lambda action: action.verb == MERGE):
        target = action.target or ""
        if action.verb in _REMOVING:
            del states[action.id]
        elif action.verb in _ORGANIZING:
            states[action.id] = _organized(states[action.id], action, now)
        elif action.verb == LINK:
            effects.link(action.id, target)
        elif action.verb == MERGE:
            effects.merge(states[action.id], target)
    remaining_states = [state for state in states.values() if state.id not in effects.survivors]
    return [effects.on(state, now) for state in remaining_states]


class _Effects:
    """The effects of links and merges on the memories that remain.

    survivors: the id of the survivor of each merged memory, by the merged memory's id.
    """

    def __init__(self) -> None:
        self.survivors: dict[str, str] = {}
        # By the id of a memory, the ids of the memories to link it with.
        self._new_links = defaultdict[str, list[str]](list)
        # By the id of a survivor, the memories that are merged into it.
        self._merged_states = defaultdict[str, list[MemoryState]](list)

    def link(self, a: str, b: str) -> None:
        """Link the memories with these ids in both directions."""
        self._new_links[a].append(b)
        self._new_links[b].append(a)

    def merge(self, merged_state: MemoryState, survivor: str) -> None:
        """Merge a memory into the one with the id `survivor`."""
        self.survivors[merged_state.id] = survivor
        self._merged_states[survivor].append(merged_state)

    def on(self, state: MemoryState, now: datetime | None) -> MemoryState:
        """Return a memory that remains, as it is with these effects.

        now: its new `updated` if it changes. None leaves `updated` as it is.
        """
        new_state = state
        if state.id in self._merged_states:
            new_state = merged_into(state, self._merged_states[state.id])
        new_state = _relinked(new_state, self.survivors, self._new_links.get(state.id, ()))
        has_changed = new_state is not state
        if now is not None and has_changed:
            return replace(new_state, updated=now)
        return new_state


def _organized(state: MemoryState, action: Action, now: datetime | None) -> MemoryState:
    """Return a memory after an action has taken it out of the inbox."""
    category = action.category or state.category
    updated = now or state.updated
    return replace(state, phase=ORGANIZED, category=category, expires=None, updated=updated)


def _relinked(
    state: MemoryState, survivors: Mapping[str, str], new_links: Sequence[str]
) -> MemoryState:
    """Return a memory with its new links. Links to merged memories lead to their survivors.

    survivors: the id of the survivor of each merged memory, by the merged memory's id.
    new_links: the ids of further memories to link.
    """
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
    """Return when the last dream ran, even if it did nothing. None before the first dream."""
    try:
        return parse_stamp(stored_report(home)["last_dream"])
    except (KeyError, TypeError, ValueError, AttributeError, StorageError):
        return None
