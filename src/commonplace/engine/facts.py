"""Facts that change: which header keys say from when until when a note is valid, and what it supersedes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from commonplace import clock
from commonplace.clock import microseconds, parse_stamp, stamp
from commonplace.engine.reading import ReadVerbs, Ref
from commonplace.engine.transaction import Transaction
from commonplace.engine.writing import editable, id_list, set_keys
from commonplace.errors import InvalidInput, TimeframeError
from commonplace.index.filters import valid_span
from commonplace.index.rows import NoteInfo
from commonplace.note.model import GLOBAL, KV_PROJECT, Draft
from commonplace.store.change import Step

_NO_ENTRY = (
    "A key-value entry holds one value, the present one, so it supersedes nothing. Write the key anew; `memory log` "
    "keeps what it said."
)


def with_keys(session: ReadVerbs, draft: Draft, old: Sequence[NoteInfo]) -> Draft:
    """The draft with the header keys of its validity, and of the notes it supersedes. Raises TimeframeError,
    InvalidInput when it ends before it begins."""
    if draft.project == KV_PROJECT:
        raise InvalidInput(_NO_ENTRY)
    keys = {key: written(session, text) for key in ("valid_from", "valid_until") if (text := getattr(draft, key))}
    first, last = keys.get("valid_from", ""), keys.get("valid_until")
    if last and parse_stamp(last) <= parse_stamp(first or "0001-01-01"):
        raise InvalidInput(f"`valid_until` must be after `valid_from`; got {last}, {first}.")
    ids = [info.id for info in old]
    supersedes = {"supersedes": ids if len(ids) > 1 else ids[0]} if ids else {}
    return replace(draft, metadata={**draft.metadata, **keys, **supersedes})


def written(session: ReadVerbs, text: str) -> str:
    """A day or moment as the header has it, from `2025-03-01`, `yesterday`, `2 weeks ago`, `next friday`. Raises
    TimeframeError."""
    now, zone = session.clock(), session.settings.zone
    try:
        local = clock.since(text, now, zone).astimezone(zone)
        is_day = f"{local:%H%M%S%f}" == "000000000000"
    except TimeframeError:
        from commonplace.note import timephrase  # 10 ms, for the words of a time to come

        try:
            found = timephrase.read(text, now, session.settings.reading_zone, session.settings.day_hour)
        except InvalidInput:
            raise TimeframeError(text) from None
        if found.phrase.strip() != text.strip() or found.repeat:
            raise TimeframeError(text) from None
        local, is_day = found.due.astimezone(zone), found.all_day
    return f"{local:%Y-%m-%d}" if is_day else stamp(local.replace(microsecond=0))


def refs(session: ReadVerbs, named: Iterable[Ref]) -> list[NoteInfo]:
    """The notes to be superseded. Raises NotFound, Ambiguous, InvalidInput for one that is superseded already."""
    found = {(info.project, info.path): info for info in map(session.find_ref, named)}
    for info in found.values():
        if info.project == KV_PROJECT:
            raise InvalidInput(_NO_ENTRY)
        for other in session.index.notes.successors(info.id):
            if session.sees(other.scope) and other.scope in (GLOBAL, info.scope) and other.row != info.row:
                raise InvalidInput(
                    f"{info.permalink} is superseded by {other.permalink} already. Supersede that one, or take the "
                    "change back with `memory undo`."
                )
    return [*found.values()]


def supersede(
    session: ReadVerbs, change: Transaction, before: NoteInfo, after: NoteInfo, valid_from: str | None
) -> Step:
    """End `before` and note in `after` that it supersedes it. Raises InvalidInput for a circle."""
    refs(session, [(before.project, before.path)])
    _check_circle(session, before, after)
    file, text = editable(session, after)
    note = session.parse(after.project, after.path, file)
    keys: dict[str, Any] = {"valid_from": written(session, valid_from)} if valid_from else {}
    start = valid_span(note)[0]
    moment = clock.EPOCH + timedelta(microseconds=start)
    begins = keys.get("valid_from") or (stamp(moment) if start % 86_400_000_000 else moment.date().isoformat())
    ids = [*note.supersedes, before.id]
    keys["supersedes"] = ids if len(ids) > 1 else ids[0]
    end(session, change, [before], begins, after.scope, explicit=bool(valid_from or note.valid_from))
    change.about = (after.project, after.path)
    return set_keys(session, change, after, keys, file, text)


def end(
    session: ReadVerbs, change: Transaction, old: Iterable[NoteInfo], begins: str, scope: str, *, explicit: bool = True
) -> None:
    """Write `valid_until: begins` into notes that are superseded by one of `scope`; what ended before stays so. Unless
    it is `explicit`, a beginning that lies before an old one's becomes the present. Raises Locked, InvalidInput where
    some who see the old note would not see the new one."""
    for info in old:
        if scope not in (GLOBAL, info.scope):
            raise InvalidInput(
                f"{info.permalink} is seen by others than its successor would be ({scope}). Give the new note the "
                f"scope {info.scope}."
            )
        file, text = editable(session, info)
        note = session.parse(info.project, info.path, file)
        until = begins
        if not explicit and microseconds(parse_stamp(begins)) <= valid_span(replace(note, valid_until=None))[0]:
            until = stamp(session.clock())
        keys = {"valid_until": until} | ({} if note.own_id else {"id": note.id})
        if note.valid_until is None or note.valid_until > parse_stamp(until):
            set_keys(session, change, info, keys, file, text)


def end_for(session: ReadVerbs, change: Transaction, old: Sequence[NoteInfo], draft: Draft, step: Step) -> None:
    """The same for the note that `step` writes for `draft`."""
    if (replaced := session.index.notes.get(step.project, step.path)) is not None:
        for info in old:
            _check_circle(session, info, replaced)
    given, now = draft.metadata.get("valid_from"), stamp(session.clock())
    begins = given or (draft.date[:10] if draft.date and draft.date < now else now)
    end(session, change, old, begins, step.scope, explicit=bool(given))


def _check_circle(session: ReadVerbs, before: NoteInfo, after: NoteInfo) -> None:
    """Raises InvalidInput when `after` is `before`, which nothing supersedes yet, or superseded by it."""
    if after.row in chain(session, before):
        which = "itself" if after.row == before.row else f"{before.permalink}, which supersedes it"
        raise InvalidInput(f"{after.permalink} cannot supersede {which}. Write a new note instead.")


def chain(session: ReadVerbs, info: NoteInfo) -> dict[int, NoteInfo]:
    """The note, and by row all that the caller sees of what it supersedes and is superseded by, in however many
    steps."""
    notes, projects = session.index.notes, list(session.engine.stores)
    found, left = {info.row: info}, [info]
    while left:
        one = left.pop()
        ids = id_list(one.header.get("supersedes"), single=True) if one.may_say(("supersedes",)) else ()
        near = [*notes.successors(one.id), *(notes.with_ids(ids, projects) if ids else ())]
        new = {each.row: each for each in near if each.row not in found and session.sees(each.scope)}
        found |= new
        left += new.values()
    return found
