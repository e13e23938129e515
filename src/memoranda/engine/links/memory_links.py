"""Links between notes, and facts that change.

Memories are linked by ids in their headers (`links: [ID]`). Other notes are linked by relations in
their text (`- uses [[Other]]`). `LinkVerbs` writes and follows both kinds. If a fact changes, a new
note supersedes the old one. The header of the new note gets `supersedes: ID`, and the header of the
old note gets `valid_until` (docs/format.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from memoranda import clock
from memoranda.clock import microseconds, parse_stamp, stamp
from memoranda.engine.engine import verb
from memoranda.engine.links.attachments import vault_of, with_attachments_marked
from memoranda.engine.reading import ReadVerbs, Ref
from memoranda.engine.transaction import Transaction, WritingSession
from memoranda.engine.writing import editable, id_list, linked_keys, links_without, set_keys
from memoranda.errors import InvalidInput, TimeframeError
from memoranda.index.filters import valid_span
from memoranda.index.rows import NoteInfo
from memoranda.note.model import CATEGORY_PROJECT, GLOBAL, KV_PROJECT, MEMORY_PROJECTS, Draft
from memoranda.note.names import Looseness, stem
from memoranda.query import Query
from memoranda.sources.step import Step

if TYPE_CHECKING:
    from memoranda.index.link_queries import ResolvedLink
    from memoranda.index.rows import Edge, Reached
    from memoranda.note.model import Note, Observation
    from memoranda.note.timephrase.reading import Reading

_NO_ENTRY = (
    "A key-value entry holds one value, the present one, so it supersedes nothing. "
    "Write the key anew; `memory log` keeps what it said."
)
_DAY_MICROSECONDS = 86_400_000_000
# `2025-03-01` at the beginning of a time stamp.
_DAY_CHARACTERS = 10
_EARLIEST_DAY = "0001-01-01"


@dataclass(slots=True)
class NoteContext:
    """A note with its observations, its links, and the linked notes.

    edges: the links from and to the note. If very many notes link to it, only the newest of these
        links are included.
    more: how many links to the note are left out of `edges`.
    reached: the linked notes with their distance, the nearest first.
    """

    note: NoteInfo
    observations: list[Observation]
    edges: list[Edge]
    more: int
    reached: list[Reached]


@dataclass(slots=True)
class LinkAction:
    """One link that `resolve_links` plans. It is written into the headers of both memories.

    source: the id of the memory with the wikilink.
    target: the id of the memory to which the wikilink leads.
    reason: the wikilink in the text of the source, `[[Target]]`.
    path: the path of the source.
    """

    source: str
    target: str
    reason: str
    path: str


@dataclass(slots=True)
class ResolvedLinks:
    """The result of `resolve_links`.

    actions: the links that were written or, in a dry run, would be written, by source.
    resolved: how many sources got a link.
    added: how many links were added.
    unresolved: (source, target) of each wikilink whose target does not exist.
    """

    actions: list[LinkAction]
    resolved: int
    added: int
    unresolved: list[tuple[str, str]]


class LinkVerbs(ReadVerbs, WritingSession):
    """The verbs that write links, and the verbs that follow them."""

    @verb
    def context(
        self,
        ref: Ref,
        *,
        depth: int = 1,
        since: datetime | None = None,
        limit: int = 10,
        project: str | None = None,
    ) -> NoteContext:
        """Return a note with the notes that are linked to it (see `Memory.related`).

        depth: how many links may be between the note and another note of the result.
        since: leave out notes that were not changed since this time; None for no limit.
        limit: the most linked notes to return.
        project: the project of the note; None for all projects.
        """
        info = self.find(ref, project)
        edges, more_count, reached = self.index.links.around(
            info, depth=depth, viewer=self.agent, since=since, limit=limit
        )
        edges = with_attachments_marked(self, info, edges)
        return NoteContext(
            note=info,
            observations=self.index.notes.observations(info),
            edges=edges,
            more=more_count,
            reached=reached,
        )

    @verb
    def outgoing(self, ref: Ref) -> list[Edge]:
        """Return the links from a note, in the order of its text."""
        info = self.find(ref)
        return with_attachments_marked(self, info, self.index.links.outgoing(info, self.agent))

    @verb
    def incoming(self, ref: Ref, limit: int | None = None, offset: int = 0) -> list[Edge]:
        """Return the links to a note. Links from the newest notes come first.

        limit: how many links to return at most. None means all.
        offset: how many links to skip.
        """
        return self.index.links.incoming(self.find(ref), self.agent, limit=limit, offset=offset)

    def backlinks(self, ref: Ref) -> list[NoteInfo]:
        """List the notes that link to a note (see `Memory.backlinks`)."""
        info = self.find(ref)
        linking_notes = {
            edge.note.row: edge.note
            for edge in self.incoming(info)
            if edge.note and edge.note.row != info.row
        }
        return sorted(
            linking_notes.values(), key=lambda note: (note.created, note.id), reverse=True
        )

    @verb
    def link(self, a: Ref, b: Ref, type: str = "links_to") -> bool:
        """Link two notes (see `Memory.link`). Returns whether the link is new.

        a, b: the notes.
        type: the type of the relation. Links between memories have no type.
        """
        with self.change("link") as transaction:
            first, second = self._pair(a, b)
            are_memories = {first.project, second.project} <= {*MEMORY_PROJECTS}
            # The headers of both memories list the link. For other notes, the first gets a line of
            # text.
            if are_memories:
                for info, partner in ((first, second), (second, first)):
                    if partner.id not in info.links:
                        set_keys(self, transaction, info, linked_keys(info, partner))
            elif not self._is_related(first, second, type):
                self._write_relation(transaction, first, second, type)
            transaction.about = (first.project, first.path)
        return transaction.done is not None

    def _is_related(self, first: NoteInfo, second: NoteInfo, type: str) -> bool:
        """Whether the first note has a relation of this type to the second note."""
        for edge in self.index.links.outgoing(first, self.agent):
            if edge.type == type and edge.note is not None and edge.note.row == second.row:
                return True
        return False

    def _write_relation(
        self, transaction: Transaction, first: NoteInfo, second: NoteInfo, type: str
    ) -> None:
        """Add the step that adds `- type [[Target]]` to the section Relations of the first note.

        second: the note to which the relation leads.
        """
        from memoranda.note.edit import AddItem

        # A type of several words is written between quotes: `- "part of" [[Target]]`.
        kind = f'"{type}"' if " " in type else type
        name = self._link_name(first, second)
        file, text = editable(self, first)
        edited = AddItem("Relations", f"- {kind} [[{name}]]").apply(text).text
        transaction.put(first.project, first.path, edited.encode(), old=file, scope=first.scope)

    def _link_name(self, first: NoteInfo, second: NoteInfo) -> str:
        """Return the text of a link in the first note that leads to the second note.

        It is the title, if the title leads to the second note. If it does not, because another note
        has the same title, it is the permalink. For a note in a folder that another program uses,
        it is the file name then.
        """
        # None means that the link needs no project in front.
        project = None if first.project == second.project else second.project
        target = self.index.links.resolve(
            second.title,
            project=first.project,
            folder="",
            viewer=self.agent,
            target_project=project,
        )
        if target is not None and target.row == second.row:
            return second.title if project is None else f"{project}::{second.title}"
        if project is None and vault_of(self, second.project) is not None:
            return stem(second.path)
        return second.permalink

    def _pair(self, a: Ref, b: Ref) -> tuple[NoteInfo, NoteInfo]:
        """Find two notes.

        a, b: the names of the notes. They may differ from the notes' own names only in case.

        Raises InvalidInput if they are the same note, and the errors of `find`.
        """
        first = self.find(a, looseness=Looseness.CASE)
        second = self.find(b, looseness=Looseness.CASE)
        if (first.project, first.path) == (second.project, second.path):
            raise InvalidInput("cannot link a memory to itself")
        return first, second

    @verb
    def unlink(self, a: Ref, b: Ref) -> bool:
        """Remove the link between two memories, and record in both that the link is unwanted.

        Jobs do not make an unwanted link again.

        a, b: the memories.

        Returns whether there was a link (see `Memory.unlink`).
        """
        with self.change("unlink") as transaction:
            first, second = self._pair(a, b)
            are_memories = {first.project, second.project} <= {*MEMORY_PROJECTS}
            if not are_memories:
                raise InvalidInput(
                    "Only links between memories can be removed here; edit the note's text instead."
                )
            if second.id not in first.links and first.id not in second.links:
                return False
            for info, partner in ((first, second), (second, first)):
                unlinked_ids = id_list(info.header.get("unlinked"))
                if partner.id not in unlinked_ids:
                    unlinked_ids = [*unlinked_ids, partner.id]
                keys = links_without(info, partner.id) | {"unlinked": unlinked_ids}
                set_keys(self, transaction, info, keys)
        return True

    @verb
    def resolve_links(self, dry_run: bool = False) -> ResolvedLinks:
        """Add the targets of the wikilinks in memories to the headers, in both directions (contract
        001, 4).

        dry_run: whether to plan the links without writing.

        Locked memories are left out. They cannot be written, and a link must be on both sides.
        """
        with self.change("link", (CATEGORY_PROJECT, "")) as transaction:
            infos, _ = self.list(Query(projects=(CATEGORY_PROJECT,), order="path"), limit=0)
            infos_by_row = {info.row: info for info in infos}
            resolved_links = self.index.links.resolved_links_of(sorted(infos_by_row), self.agent)
            # Put the links of each memory together, in the order of the paths of the memories.
            positions = {row: position for position, row in enumerate(infos_by_row)}
            resolved_links.sort(key=lambda link: positions[link.row])
            plan, links_by_row = _planned_links(infos_by_row, resolved_links)
            if not dry_run:
                for row, ids in links_by_row.items():
                    info = infos_by_row[row]
                    if ids != list(info.links):
                        set_keys(self, transaction, info, {"links": ids})
        return plan


def _planned_links(
    infos_by_row: Mapping[int, NoteInfo], resolved_links: Iterable[ResolvedLink]
) -> tuple[ResolvedLinks, dict[int, list[str]]]:
    """Plan which ids to add to headers of memories because their texts have wikilinks.

    infos_by_row: all memories, by row.
    resolved_links: the links in the texts of the memories.

    Returns the plan, and the new `links` of each memory by row.
    """
    links_by_row = {row: list(info.links) for row, info in infos_by_row.items()}
    plan = ResolvedLinks(actions=[], resolved=0, added=0, unresolved=[])
    rows_with_new_links: set[int] = set()
    for link in resolved_links:
        info = infos_by_row[link.row]
        if link.target_row is None:
            # The ids in the header are among these links. If such an id leads to no note, the note
            # may be another agent's, so it is not reported as missing.
            if link.name not in info.links:
                plan.unresolved.append((info.id, link.name))
            continue
        target = infos_by_row.get(link.target_row)
        if target is None or target.row == info.row:
            continue
        # A link is on both sides, so both memories must be writable.
        if info.locked or target.locked:
            continue
        # An action is shown at the memory with the wikilink. The ids are added on both sides.
        if target.id not in links_by_row[info.row]:
            plan.actions.append(LinkAction(info.id, target.id, f"[[{link.name}]]", info.path))
            rows_with_new_links.add(info.row)
        for source, partner in ((info, target), (target, info)):
            if partner.id not in links_by_row[source.row]:
                links_by_row[source.row].append(partner.id)
                plan.added += 1
    plan.resolved = len(rows_with_new_links)
    return plan, links_by_row


def with_validity(session: ReadVerbs, draft: Draft, old: Sequence[NoteInfo]) -> Draft:
    """Return the draft with the header keys that say when it is valid and which notes it
    supersedes.

    old: the notes that the draft supersedes. They end when the draft begins. So if the draft has
        `valid_from` only in its metadata, this text is read as a time, too.

    Raises TimeframeError for a time that cannot be read, and InvalidInput if the end is before the
    beginning.
    """
    if draft.project == KV_PROJECT:
        raise InvalidInput(_NO_ENTRY)
    keys: dict[str, Any] = {}
    times = {"valid_from": draft.valid_from, "valid_until": draft.valid_until}
    begin_in_metadata = draft.metadata.get("valid_from")
    is_begin_only_in_metadata = not draft.valid_from and bool(begin_in_metadata)
    if old and is_begin_only_in_metadata:
        times["valid_from"] = str(begin_in_metadata)
    for key, text in times.items():
        if text:
            keys[key] = header_time(session, text)

    begins = keys.get("valid_from", "")
    ends = keys.get("valid_until")
    if ends and parse_stamp(ends) <= parse_stamp(begins or _EARLIEST_DAY):
        raise InvalidInput(f"`valid_until` must be after `valid_from`; got {ends}, {begins}.")
    if old:
        keys["supersedes"] = _one_or_list([info.id for info in old])
    return replace(draft, metadata={**draft.metadata, **keys})


def _one_or_list(ids: list[str]) -> str | list[str]:
    """Return a single id as it is, and several ids as a list. A header may have both forms."""
    return ids if len(ids) > 1 else ids[0]


def header_time(session: ReadVerbs, text: str) -> str:
    """Return words for a time in the form of a header.

    The words may be `2025-03-01`, `yesterday`, `2 weeks ago` or `next friday`. A day gives
    `2025-03-01`, and a moment gives `2025-03-01T09:30:00Z`. Raises TimeframeError.
    """
    zone = session.settings.zone
    try:
        moment = clock.since(text, session.clock(), zone)
    except TimeframeError:
        reading = _future_time(session, text)
        moment = reading.due
        is_day = reading.all_day
    else:
        # Midnight stands for the whole day.
        is_day = moment.astimezone(zone).time() == time()
    local = moment.astimezone(zone)
    if is_day:
        return f"{local:%Y-%m-%d}"
    return stamp(local.replace(microsecond=0))


def _future_time(session: ReadVerbs, text: str) -> Reading:
    """Read words for a future time, such as `next friday`.

    Raises TimeframeError if the text has other words, too, or words for a repeated time.
    """
    # Only words for a future time need this module, whose import takes 10 ms.
    from memoranda.note import timephrase

    settings = session.settings
    try:
        reading = timephrase.read(text, session.clock(), settings.reading_zone, settings.day_hour)
    except InvalidInput:
        raise TimeframeError(text) from None
    is_whole_text = reading.phrase.strip() == text.strip()
    if not is_whole_text or reading.repeat:
        raise TimeframeError(text)
    return reading


def supersedable(session: ReadVerbs, refs: Iterable[Ref]) -> list[NoteInfo]:
    """Return the notes that a new note will supersede.

    refs: the names of these notes.

    Raises NotFound, Ambiguous, and InvalidInput for a note that is superseded already.
    """
    infos = [session.find(ref, looseness=Looseness.CASE) for ref in refs]
    infos_by_place = {(info.project, info.path): info for info in infos}
    for info in infos_by_place.values():
        if info.project == KV_PROJECT:
            raise InvalidInput(_NO_ENTRY)
        for successor in session.index.notes.successors(info):
            # A successor that fewer agents may see does not supersede the note for the others.
            is_for_all_readers = successor.scope in (GLOBAL, info.scope)
            is_other_note = successor.row != info.row
            if session.sees(successor.scope) and is_for_all_readers and is_other_note:
                raise InvalidInput(
                    f"{info.permalink} is superseded by {successor.permalink} already. "
                    "Supersede that one, or take the change back with `memory undo`."
                )
    return [*infos_by_place.values()]


def supersede(
    session: ReadVerbs,
    transaction: Transaction,
    before: NoteInfo,
    after: NoteInfo,
    valid_from: str | None,
) -> Step:
    """End the validity of `before`, and record in `after` that it supersedes `before`.

    before: the older note.
    after: the newer note.
    valid_from: words for the time from which `after` is valid. None means that `after` keeps its
        time.

    Returns the step that writes `after`. Raises InvalidInput if `before` supersedes `after`.
    """
    # Both raise an error if `before` may not be superseded by `after`.
    supersedable(session, [(before.project, before.path)])
    _check_circle(session, before, after)
    file, text = editable(session, after)
    note = session.parse(after.project, after.path, file)
    keys: dict[str, Any] = {}
    if valid_from:
        begins = header_time(session, valid_from)
        keys["valid_from"] = begins
    else:
        begins = _beginning_of(note)
    keys["supersedes"] = _one_or_list([*note.supersedes, before.id])
    is_explicit = bool(valid_from or note.valid_from)
    end_validity(session, transaction, [before], begins, after.scope, explicit=is_explicit)
    transaction.about = (after.project, after.path)
    return set_keys(session, transaction, after, keys, file=file, text=text)


def _beginning_of(note: Note) -> str:
    """Return when a note begins to be valid, as a header writes it: a day or a moment."""
    begins, *_ = valid_span(note)
    moment = clock.EPOCH + timedelta(microseconds=begins)
    is_midnight = begins % _DAY_MICROSECONDS == 0
    # A day in a header means its midnight.
    if is_midnight:
        return moment.date().isoformat()
    return stamp(moment)


def end_validity(
    session: ReadVerbs,
    transaction: Transaction,
    old: Iterable[NoteInfo],
    begins: str,
    scope: str,
    *,
    explicit: bool = True,
) -> None:
    """Add the steps that write `valid_until` into superseded notes.

    A note that ends earlier keeps its end. An agent writes no end into a note of the owner.

    old: the superseded notes.
    begins: when the new note begins to be valid, as a header has it. The old notes end at this
        time.
    scope: the scope of the new note.
    explicit: whether somebody named the time `begins`. If not, an old note that begins later than
        `begins` ends now.

    Raises Locked, and InvalidInput if somebody who sees an old note would not see the new note.
    """
    for info in old:
        if scope not in (GLOBAL, info.scope):
            raise InvalidInput(
                f"{info.permalink} is seen by others than its successor would be ({scope}). "
                f"Give the new note the scope {info.scope}."
            )
        file, text = editable(session, info)
        note = session.parse(info.project, info.path, file)
        ends = begins
        if not explicit and _begins_after(note, begins):
            ends = stamp(session.clock())
        ends_earlier = note.valid_until is not None and note.valid_until <= parse_stamp(ends)
        if ends_earlier:
            continue

        keys = {}
        # The owner's note holds until the owner confirms the new one (`upheld_rows`).
        if session.agent is None or info.provenance.trust != "owner":
            keys["valid_until"] = ends
        if not note.own_id:
            # The new note names the old one by its id, which must not change with the path.
            keys["id"] = note.id
        if keys:
            set_keys(session, transaction, info, keys, file=file, text=text)


def _begins_after(note: Note, moment: str) -> bool:
    """Whether a note begins to be valid at this moment or later.

    moment: a time as a header has it.
    """
    begins, *_ = valid_span(replace(note, valid_until=None))
    return microseconds(parse_stamp(moment)) <= begins


def end_superseded(
    session: ReadVerbs, transaction: Transaction, old: Sequence[NoteInfo], draft: Draft, step: Step
) -> None:
    """Add the steps that end the validity of the notes that a new note supersedes.

    old: the superseded notes.
    draft: the new note, as `with_validity` returned it.
    step: the step that writes the new note.
    """
    # The draft may be a new text for an existing note. That note must not supersede itself, nor a
    # note that supersedes it.
    overwritten = session.index.notes.get(step.project, step.path)
    if overwritten is not None:
        for info in old:
            _check_circle(session, info, overwritten)
    valid_from = draft.metadata.get("valid_from")
    begins = valid_from or _past_day_or_now(session, draft)
    end_validity(session, transaction, old, begins, step.scope, explicit=bool(valid_from))
    transaction.about = transaction.about or (step.project, step.path)
    # The new note is written last, so that it comes first where the latest changes are listed.
    transaction.drop(step)
    transaction.steps.append(step)


def _past_day_or_now(session: ReadVerbs, draft: Draft) -> str:
    """Return the day that a new note is about if that day is past, or else the present time.

    A date that cannot be read counts as no date.
    """
    now = stamp(session.clock())
    if draft.date and draft.date < now:
        day = draft.date[:_DAY_CHARACTERS]
        with suppress(ValueError):
            parse_stamp(day)
            return day
    return now


def _check_circle(session: ReadVerbs, before: NoteInfo, after: NoteInfo) -> None:
    """Raise InvalidInput if both notes are the same, or if `before` supersedes `after` already.

    It may supersede `after` in any number of steps.
    """
    if after.row not in session.versions(before):
        return
    if after.row == before.row:
        obstacle = "itself"
    else:
        obstacle = f"{before.permalink}, which supersedes it"
    raise InvalidInput(f"{after.permalink} cannot supersede {obstacle}. Write a new note instead.")
