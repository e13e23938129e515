"""From what a caller calls a note to the note: identifiers and ids (contracts 000b, 4.2 and 001, 1)."""

from __future__ import annotations

import sqlite3

from commonplace.errors import Ambiguous, NotFound
from commonplace.index.facets import may_see, quoted
from commonplace.index.keys import key
from commonplace.index.lookup import in_order, infos
from commonplace.index.resolve import Candidate, Resolver, first_step
from commonplace.index.rows import NoteInfo
from commonplace.note.links import parse_address
from commonplace.text.tokens import fts_text, words
from commonplace.text.unicode import sqlite_text

_LAST = "\U0010ffff"
_SUGGESTIONS = 5
_LONGEST_PREFIX = 200


def find(
    db: sqlite3.Connection, identifier: str, *, project: str | None = None, default_project: str,
    viewer: str | None,
) -> NoteInfo:  # fmt: skip
    """The note an identifier names: an address with or without `memory://`, a title, an id, or a
    unique beginning of an id of at least 8 characters.

    With `project`: there. Without: in the default project; then, when the first segment names a
    project, in that one; then in all others together. Raises NotFound with suggestions, Ambiguous
    with candidates, and what `parse_address` raises for addresses that are refused.
    """
    target = sqlite_text(parse_address(identifier))
    resolver = Resolver(db, viewer)
    candidates = resolver.candidates(target)
    head, slash, _ = target.partition("/")
    for name in [project] if project is not None else [default_project, *([head] if slash else [])]:
        inside = [one for one in candidates if one.project.casefold() == name.casefold()]
        found = first_step(target, inside, name) or _by_prefix(db, target, 8, viewer, name)
        if found:
            return _only(db, identifier, found)
    if project is None:
        outside = [one for one in candidates if one.project.casefold() != default_project.casefold()]
        found = first_step(target, outside, None) or _by_prefix(db, target, 8, viewer, None)
        if found:
            return _only(db, identifier, found)
    where = project or default_project
    raise NotFound(identifier, where, suggestions(db, target, viewer=viewer, project=project))


def find_id(
    db: sqlite3.Connection, text: str, *, viewer: str | None, project: str | None = "categories", minimum: int = 4
) -> NoteInfo:
    """The note whose id is `text` or uniquely begins with it, `minimum` characters at least.

    An id that was merged into another note answers that one. Raises NotFound, or Ambiguous with
    `total` notes. `project` None looks everywhere.
    """
    text = sqlite_text(text.strip())
    for wanted in dict.fromkeys((text, text.lower())):
        rows = _ids(db, wanted, wanted, viewer, project)
        if not rows and len(wanted) >= minimum:
            rows = _ids(db, wanted, wanted + _LAST, viewer, project)
        notes = in_order(db, rows)
        if len(notes) == 1:
            return notes[0]
        if notes:
            raise Ambiguous(text, [note.permalink for note in notes])
    raise NotFound(text, project or "")


def suggestions(
    db: sqlite3.Connection, target: str, *, viewer: str | None, project: str | None = None, limit: int = _SUGGESTIONS
) -> list[str]:
    """Up to `limit` permalinks that come near `target`, the nearest first."""
    target = sqlite_text(target)
    wanted = key(target.rpartition("/")[2] or target)
    rows: dict[int, None] = {}
    for length in dict.fromkeys((len(wanted), max(3, len(wanted) * 2 // 3), 3)):
        begin = wanted[:length]
        rows.update(dict.fromkeys(row for (row,) in db.execute(
            "select note from note_fold where fold >= ? and fold < ? limit 50", (begin, begin + _LAST)
        )))  # fmt: skip
        if len(rows) >= 20:
            break
    telling = [quoted(fts_text(word).strip()) + "*" for word in words(target)[:8]]
    if telling:
        rows.update(dict.fromkeys(row for (row,) in db.execute(
            "select rowid from name_fts where name_fts match ? order by rowid desc limit 50", (" OR ".join(telling),)
        )))  # fmt: skip
    near = [
        (max(_likeness(wanted, key(name)) for name in (note.title, note.permalink.rpartition("/")[2])), note)
        for note in infos(db, rows).values()
        if may_see(note.scope, viewer) and (project is None or note.project.casefold() == project.casefold())
    ]
    near.sort(key=lambda one: (-one[0], one[1].permalink))
    return list(dict.fromkeys(note.permalink for likeness, note in near if likeness > 0.3))[:limit]


def _likeness(one: str, other: str) -> float:
    import difflib  # 3 ms, for errors only

    return difflib.SequenceMatcher(None, one, other).ratio()


def _only(db: sqlite3.Connection, identifier: str, found: list[Candidate]) -> NoteInfo:
    if len(found) > 1:
        names = [one.permalink for one in found]
        if len(set(names)) < len(names):
            names = [f"{one.project}/{one.path}" for one in found]
        raise Ambiguous(identifier, names)
    return in_order(db, [found[0].row])[0]


def _by_prefix(
    db: sqlite3.Connection, target: str, minimum: int, viewer: str | None, project: str | None
) -> list[Candidate]:
    if len(target) < minimum or len(target) > _LONGEST_PREFIX or " " in target:
        return []
    rows = _ids(db, target, target + _LAST, viewer, project)
    return [
        Candidate(one.row, one.project, one.path, one.id, one.permalink, one.title, None, one.scope, 0)
        for one in in_order(db, rows)
    ]


def _ids(db: sqlite3.Connection, first: str, last: str, viewer: str | None, project: str | None) -> list[int]:
    """Rows of the visible notes that have, or took over, an id from `first` to `last`."""
    found = db.execute(
        "select n.row, n.scope, p.name from note n join project p on p.id = n.project"
        " where n.row in (select row from note where id between ?1 and ?2"
        " union select note from merged where id between ?1 and ?2) order by n.permalink limit 1000",
        (first, last),
    )
    return [
        row
        for row, scope, name in found
        if may_see(scope, viewer) and (project is None or name.casefold() == project.casefold())
    ]
