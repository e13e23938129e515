"""Links between notes, and facts that change.

Memories are linked by ids in their headers, other notes by relations. The verbs here write and
follow both. Header keys say from when until when a note is valid, and which notes it supersedes
(docs/format.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from memoranda import clock
from memoranda.clock import microseconds, parse_stamp, stamp
from memoranda.engine.attachments import vault_of, with_attachments_marked
from memoranda.engine.engine import verb
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
    from memoranda.index.rows import Edge, Reached
    from memoranda.note.model import Observation

_NO_ENTRY = (
    "A key-value entry holds one value, the present one, so it supersedes nothing. Write the key anew; `memory log` "
    "keeps what it said."
)


@dataclass(slots=True)
class NoteContext:
    """A note with its observations and the notes it is linked to, nearest first.

    edges: its links. For a note with very many, only the newest links to it.
    more: how many more links name it.
    """

    note: NoteInfo
    observations: list[Observation]
    edges: list[Edge]
    more: int
    reached: list[Reached]


@dataclass(slots=True)
class LinkAction:
    """One planned link of `resolve_links`: `source` gains `target` (both directions are written)."""

    source: str
    target: str
    reason: str
    path: str


@dataclass(slots=True)
class ResolvedLinks:
    """The result of `resolve_links`.

    actions: what was done or would be done, by source.
    resolved: how many sources gained a link.
    added: how many links were added.
    unresolved: (source, target) of links whose target does not exist.
    """

    actions: list[LinkAction]
    resolved: int
    added: int
    unresolved: list[tuple[str, str]]


class LinkVerbs(ReadVerbs, WritingSession):
    """The verbs that link, and those that follow links."""

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
        """Collect the notes linked to a note (see `Memory.related`)."""
        info = self.find(ref, project)
        edges, more_count, reached = self.index.links.around(
            info, depth=depth, viewer=self.agent, since=since, limit=limit
        )
        edges = with_attachments_marked(self, info, edges)
        return NoteContext(info, self.index.notes.observations(info), edges, more_count, reached)

    @verb
    def outgoing(self, ref: Ref) -> list[Edge]:
        """The note's relations, in the order of its text."""
        info = self.find(ref)
        return with_attachments_marked(self, info, self.index.links.outgoing(info, self.agent))

    @verb
    def incoming(self, ref: Ref, limit: int | None = None, offset: int = 0) -> list[Edge]:
        """Relations that lead to the note, newest source first."""
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
        """Link two notes. Returns whether the link is new (see `Memory.link`)."""
        with self.change("link") as change:
            first, second = self._pair(a, b)
            if {first.project, second.project} <= {*MEMORY_PROJECTS}:
                for info, partner in ((first, second), (second, first)):
                    if partner.id not in info.links:
                        set_keys(self, change, info, linked_keys(info, partner))
            elif not self._is_related(first, second, type):
                self._write_relation(change, first, second, type)
            change.about = (first.project, first.path)
        return change.done is not None

    def _is_related(self, first: NoteInfo, second: NoteInfo, type: str) -> bool:
        """Whether a note has a relation of this type to another."""
        rows = [
            edge.note.row
            for edge in self.index.links.outgoing(first, self.agent)
            if edge.type == type and edge.note is not None
        ]
        return second.row in rows

    def _write_relation(
        self, change: Transaction, first: NoteInfo, second: NoteInfo, type: str
    ) -> None:
        """Add `- type [[Target]]` to the Relations of the first note."""
        from memoranda.note.edit import AddItem

        kind = f'"{type}"' if " " in type else type
        name = self._link_name(first, second)
        file, text = editable(self, first)
        edited = AddItem("Relations", f"- {kind} [[{name}]]").apply(text).text
        change.put(first.project, first.path, edited.encode(), old=file, scope=first.scope)

    def _link_name(self, first: NoteInfo, second: NoteInfo) -> str:
        """The text of a link in the first note that leads to the second: its title, if
        that is enough.
        """
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
        first = self.find(a, looseness=Looseness.CASE)
        second = self.find(b, looseness=Looseness.CASE)
        if (first.project, first.path) == (second.project, second.path):
            raise InvalidInput("cannot link a memory to itself")
        return first, second

    @verb
    def unlink(self, a: Ref, b: Ref) -> bool:
        """Remove the link between two memories, and remember that the pair is not wanted.

        Returns whether a link existed (see `Memory.unlink`).
        """
        with self.change("unlink") as change:
            first, second = self._pair(a, b)
            if not {first.project, second.project} <= {*MEMORY_PROJECTS}:
                raise InvalidInput(
                    "Only links between memories can be removed here; edit the note's text instead."
                )
            if second.id not in first.links and first.id not in second.links:
                return False
            for info, partner in ((first, second), (second, first)):
                unlinked = id_list(info.header.get("unlinked"))
                if partner.id in unlinked:
                    unwanted = unlinked
                else:
                    unwanted = [*unlinked, partner.id]
                set_keys(
                    self, change, info, links_without(info, partner.id) | {"unlinked": unwanted}
                )
        return True

    @verb
    def resolve_links(self, dry_run: bool = False) -> ResolvedLinks:
        """Turn the wikilinks of memories into ids in both directions (contract 001, 4).

        Locked memories are left out: they cannot be written, and a link must be on both sides.
        """
        with self.change("link", (CATEGORY_PROJECT, "")) as change:
            infos, _ = self.list(Query(projects=(CATEGORY_PROJECT,), order="path"), limit=0)
            by_row = {info.row: info for info in infos}
            rows = list(by_row)
            leading = self.index.links.resolved_links_of(sorted(rows), self.agent)
            place = {row: number for number, row in enumerate(rows)}
            leading.sort(key=lambda link: place[link[0]])
            plan, links_by_row = _planned_links(by_row, leading)
            for row, ids in links_by_row.items() if not dry_run else ():
                if ids != list(by_row[row].links):
                    set_keys(self, change, by_row[row], {"links": ids})
        return plan


def _planned_links(
    by_row: Mapping[int, NoteInfo], leading: Iterable[tuple[int, str, int | None]]
) -> tuple[ResolvedLinks, dict[int, list[str]]]:
    """Plan the ids for the wikilinks of memories. Returns the plan, and the ids by row.

    leading: the row of a memory, the name its link has, and the row that leads to or None.
    """
    links_by_row = {row: list(info.links) for row, info in by_row.items()}
    plan = ResolvedLinks([], 0, 0, [])
    gained = set[int]()
    for row, name, reached in leading:
        info = by_row[row]
        if reached is None:
            # An id in the header is no wikilink, and may be another agent's
            if name not in info.links:
                plan.unresolved.append((info.id, name))
            continue
        target = by_row.get(reached)
        if target is None or target.row == info.row or info.locked or target.locked:
            continue
        if target.id not in links_by_row[info.row]:
            plan.actions.append(LinkAction(info.id, target.id, f"[[{name}]]", info.path))
            gained.add(info.row)
        for info_from, info_to in ((info, target), (target, info)):
            if info_to.id not in links_by_row[info_from.row]:
                links_by_row[info_from.row].append(info_to.id)
                plan.added += 1
    plan.resolved = len(gained)
    return plan, links_by_row


def with_validity(session: ReadVerbs, draft: Draft, old: Sequence[NoteInfo]) -> Draft:
    """The draft with the header keys of its validity, and of the notes it supersedes. Raises
    TimeframeError, InvalidInput when it ends before it begins."""
    if draft.project == KV_PROJECT:
        raise InvalidInput(_NO_ENTRY)
    keys = {
        key: header_time(session, text)
        for key in ("valid_from", "valid_until")
        if (text := getattr(draft, key))
    }
    first = keys.get("valid_from", "")
    last = keys.get("valid_until")
    if last and parse_stamp(last) <= parse_stamp(first or "0001-01-01"):
        raise InvalidInput(f"`valid_until` must be after `valid_from`; got {last}, {first}.")
    ids = [info.id for info in old]
    if ids:
        supersedes = {"supersedes": ids if len(ids) > 1 else ids[0]}
    else:
        supersedes = {}
    return replace(draft, metadata={**draft.metadata, **keys, **supersedes})


def header_time(session: ReadVerbs, text: str) -> str:
    """A day or moment as the header has it, from `2025-03-01`, `yesterday`, `2 weeks ago`, `next
    friday`. Raises TimeframeError."""
    now = session.clock()
    zone = session.settings.zone
    try:
        local = clock.since(text, now, zone).astimezone(zone)
        is_day = f"{local:%H%M%S%f}" == "000000000000"
    except TimeframeError:
        # 10 ms, for the words of a time to come
        from memoranda.note import timephrase

        try:
            reading = timephrase.read(
                text, now, session.settings.reading_zone, session.settings.day_hour
            )
        except InvalidInput:
            raise TimeframeError(text) from None
        if reading.phrase.strip() != text.strip() or reading.repeat:
            raise TimeframeError(text) from None
        local = reading.due.astimezone(zone)
        is_day = reading.all_day
    if is_day:
        return f"{local:%Y-%m-%d}"
    return stamp(local.replace(microsecond=0))


def supersedable(session: ReadVerbs, refs: Iterable[Ref]) -> list[NoteInfo]:
    """The notes to be superseded. Raises NotFound, Ambiguous, InvalidInput for one that is
    superseded already.
    """
    infos = [session.find(ref, looseness=Looseness.CASE) for ref in refs]
    infos_by_place = {(info.project, info.path): info for info in infos}
    for info in infos_by_place.values():
        if info.project == KV_PROJECT:
            raise InvalidInput(_NO_ENTRY)
        for successor in session.index.notes.successors(info):
            if (
                session.sees(successor.scope)
                and successor.scope in (GLOBAL, info.scope)
                and successor.row != info.row
            ):
                raise InvalidInput(
                    f"{info.permalink} is superseded by {successor.permalink} already. Supersede that one, or take the "
                    "change back with `memory undo`."
                )
    return [*infos_by_place.values()]


def supersede(
    session: ReadVerbs,
    change: Transaction,
    before: NoteInfo,
    after: NoteInfo,
    valid_from: str | None,
) -> Step:
    """End `before` and note in `after` that it supersedes it. Raises InvalidInput for a circle."""
    supersedable(session, [(before.project, before.path)])
    _check_circle(session, before, after)
    file, text = editable(session, after)
    note = session.parse(after.project, after.path, file)
    keys: dict[str, Any] = {"valid_from": header_time(session, valid_from)} if valid_from else {}
    start = valid_span(note)[0]
    moment = clock.EPOCH + timedelta(microseconds=start)
    begins = keys.get("valid_from") or (
        stamp(moment) if start % 86_400_000_000 else moment.date().isoformat()
    )
    ids = [*note.supersedes, before.id]
    keys["supersedes"] = ids if len(ids) > 1 else ids[0]
    end_validity(
        session, change, [before], begins, after.scope, explicit=bool(valid_from or note.valid_from)
    )
    change.about = (after.project, after.path)
    return set_keys(session, change, after, keys, file, text)


def end_validity(
    session: ReadVerbs,
    change: Transaction,
    old: Iterable[NoteInfo],
    begins: str,
    scope: str,
    *,
    explicit: bool = True,
) -> None:
    """Write `valid_until: begins` into superseded notes. A note that ended earlier keeps its end.

    scope: the scope of the new note.
    explicit: whether the beginning was given. Otherwise, a beginning before the old note's becomes
        the present.

    Raises Locked; InvalidInput if somebody who sees the old note would not see the new one.
    """
    for info in old:
        if scope not in (GLOBAL, info.scope):
            raise InvalidInput(
                f"{info.permalink} is seen by others than its successor would be ({scope}). Give the new note the "
                f"scope {info.scope}."
            )
        file, text = editable(session, info)
        note = session.parse(info.project, info.path, file)
        until = begins
        if (
            not explicit
            and microseconds(parse_stamp(begins)) <= valid_span(replace(note, valid_until=None))[0]
        ):
            until = stamp(session.clock())
        keys = {"valid_until": until} | ({} if note.own_id else {"id": note.id})
        if note.valid_until is None or note.valid_until > parse_stamp(until):
            set_keys(session, change, info, keys, file, text)


def end_superseded(
    session: ReadVerbs, change: Transaction, old: Sequence[NoteInfo], draft: Draft, step: Step
) -> None:
    """End the notes that a new note supersedes (see `supersede`).

    step: the step that writes the new note.
    draft: the new note.
    """
    replaced = session.index.notes.get(step.project, step.path)
    if replaced is not None:
        for info in old:
            _check_circle(session, info, replaced)
    valid_from = draft.metadata.get("valid_from")
    now = stamp(session.clock())
    begins = valid_from or (draft.date[:10] if draft.date and draft.date < now else now)
    end_validity(session, change, old, begins, step.scope, explicit=bool(valid_from))
    change.about = change.about or (step.project, step.path)
    # The new note is written last, so that it comes first where the latest changes are listed
    change.steps.remove(step)
    change.steps.append(step)


def _check_circle(session: ReadVerbs, before: NoteInfo, after: NoteInfo) -> None:
    """Raises InvalidInput when `after` is `before`, which nothing supersedes yet, or superseded by
    it.
    """
    if after.row in session.versions(before):
        if after.row == before.row:
            circle = "itself"
        else:
            circle = f"{before.permalink}, which supersedes it"
        raise InvalidInput(
            f"{after.permalink} cannot supersede {circle}. Write a new note instead."
        )
