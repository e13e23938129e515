"""Where a link leads, and which note an identifier names (contracts 000b, 3.4 and 4.2; 001, 1).

Nothing resolved is stored, so nothing can be stale: a link finds its note as soon as that is
indexed, and loses it when it goes. Stored are folded keys of names and of links: where two are
equal, the steps of contract 000b, 3.4 decide.
"""

from __future__ import annotations

import json
import posixpath
import re
import sqlite3
from collections.abc import Callable, Iterable
from typing import NamedTuple

from memoranda.errors import Ambiguous, NotFound
from memoranda.index.database import in_snapshot
from memoranda.index.filters import may_see, quoted
from memoranda.index.rows import NoteInfo, in_order, infos
from memoranda.note.links import fold, fold_title, lead, parse_address, slug
from memoranda.note.model import ARCHIVE_PROJECT, CATEGORY_PROJECT, MEMORY_PROJECTS
from memoranda.text.tokens import fts_text, words
from memoranda.text.unicode import sqlite_text

RESOLVED = "resolved"
UNWRITTEN = "unwritten"
AMBIGUOUS = "ambiguous"

KEY_LENGTH = 48
TITLE_CUT = 100
"""Titles of memories are compared up to here (contract 001, 4)."""

_LAST = "\U0010ffff"
_SUGGESTIONS = 5
_LONGEST_PREFIX = 200
_MOST_VALUES = 400
"""Names looked up by one statement."""
_UUID_BEGIN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f-]{0,27})?", re.IGNORECASE)
_SHORTEST = 8
_SHORTEST_OF_MEMORY = 4
"""Characters an id, or its beginning, has at least where names mean notes too; and where only
memories are meant.
"""

_CANDIDATE = (
    "n.row, p.name, n.path, n.id, n.permalink, n.title, n.aliases, n.scope, n.created,"
    f" case when p.name in {MEMORY_PROJECTS} then"
    " (select substr(t.text, 1, 400) from text t where t.row = n.row) end"
)


def key(name: str) -> str:
    """The key of one name; names without a letter or digit keep their signs, marked by `=`."""
    return fold(name)[:KEY_LENGTH] or "=" + fold_title(name)[:KEY_LENGTH]


def keys_of(
    project: str, path: str, permalink: str, titles: Iterable[str], first_line: str | None
) -> set[str]:
    """The keys a note is kept under, without its id and without the project in front: permalink,
    path, file name, titles, and the first line of a memory."""
    stem = posixpath.splitext(path)[0]
    names = {
        permalink.removeprefix(f"{lead(project)}/"),
        stem,
        path,
        posixpath.basename(stem),
        *titles,
    }
    if first_line is not None:
        names.update((first_line, first_line.lstrip("#").strip()))
    if project in MEMORY_PROJECTS:
        names.update([name[:TITLE_CUT] for name in names])
    return {key(name) for name in names}


def first_line_of(project: str, content: str) -> str | None:
    """The first line with text of a memory, by which links may name it; None for other notes."""
    if project not in MEMORY_PROJECTS:
        return None
    return content.lstrip().split("\n", 1)[0].strip()[:TITLE_CUT]


def root_path(target: str, folder: str) -> str | None:
    """A target as a path from the project's root; None when `./` or `../` leads out of it."""
    if not target.startswith(("./", "../")):
        return target.lstrip("/")
    path = posixpath.normpath(posixpath.join(folder, target))
    if path.startswith("..") or path == ".":
        return None
    return path


def link_key(target: str, path: str) -> str | None:
    """The key a link in the note at `path` is kept under; None for one that leads nowhere."""
    if target.startswith(("./", "../")):
        reached = root_path(target, posixpath.dirname(path))
    else:
        reached = target
    if reached is None:
        return None
    return key(reached)


class Candidate(NamedTuple):
    """A note that a target may mean."""

    row: int
    project: str
    path: str
    id: str
    permalink: str
    title: str
    aliases: str | None
    scope: str
    created: int
    opening: str | None = None

    @property
    def titles(self) -> list[str]:
        """Its title and aliases; of a memory also its first line, with and without leading `#`."""
        titles = [self.title, *(json.loads(self.aliases) if self.aliases else ())]
        if self.opening is not None:
            line = first_line_of(self.project, self.opening) or ""
            titles += [line, line.lstrip("#").strip()]
        return titles


class LinkTarget(NamedTuple):
    """What a target means: `state` is `resolved`, which has a row, `unwritten` or `ambiguous`."""

    state: str
    row: int | None = None


class Resolver:
    """Resolves targets for one caller; what it looked up it remembers, so use it for one call."""

    def __init__(self, db: sqlite3.Connection, viewer: str | None):
        self.db = db
        self.viewer = viewer
        self._candidates: dict[str, list[Candidate]] = {}
        names = [name for (name,) in db.execute("select name from project")]
        self._projects = {prefix.casefold() for name in names for prefix in (name, lead(name))}
        self._answers: dict[tuple[str, str, str, str | None, str | None], LinkTarget] = {}

    def prefetch(self, targets: Iterable[str]) -> None:
        """Looks up the candidates of many targets in a few queries."""
        missing = {
            name for target in targets for name in self._names(target, "")
        } - self._candidates.keys()
        names = list(missing)
        for at in range(0, len(names), _MOST_VALUES):
            self._fetch(names[at : at + _MOST_VALUES])

    def link(
        self, target: str, project: str, folder: str, target_project: str | None, scope: str | None
    ) -> LinkTarget:
        """What a link in `folder` of `project` means (contract 000b, 3.4)."""
        relative = target.startswith(("./", "../"))
        asked = (
            target,
            project,
            folder if relative else "",
            target_project,
            scope if CATEGORY_PROJECT in (project, target_project) else None,
        )
        if asked not in self._answers:
            folder = asked[2]
            home = project if target_project is None else target_project
            candidates = self.candidates(target, folder)
            found = _first_step(target, folder, _inside(candidates, home))
            if len(found) > 1 and home == project == CATEGORY_PROJECT:
                found = [
                    min(found, key=lambda one: (one.scope != scope, one.created, one.id, one.path))
                ]
            if not found and target_project is None:
                outside = [one for one in candidates if one.project != project]
                found = _by_permalink(target, outside) or _by_title(target, outside)
            answer = LinkTarget(AMBIGUOUS if found else UNWRITTEN)
            self._answers[asked] = LinkTarget(RESOLVED, found[0].row) if len(found) == 1 else answer
        return self._answers[asked]

    def candidates(self, target: str, folder: str = "") -> list[Candidate]:
        """The notes the caller sees which any step could mean by `target`."""
        names = self._names(target, folder)
        missing = [name for name in names if name not in self._candidates]
        if missing:
            self._fetch(missing)
        found = [one for name in names for one in self._candidates[name]]
        if len(names) > 1:
            return list(dict.fromkeys(found))
        return found

    def _names(self, target: str, folder: str) -> list[str]:
        """What to look a target up under: its link key, with and without a project's name in front,
        and the target as an id, marked by a NUL."""
        if target.startswith(("./", "../")):
            path = root_path(target, folder)
            if path is None:
                return []
            return [key(path)]
        keys = {key(target), key(target[:TITLE_CUT])}
        head, slash, rest = target.partition("/")
        if slash and (head.casefold() in self._projects or slug(head) in self._projects):
            keys.add(key(rest))
        if target:
            return [*keys, "\0" + target]
        return list(keys)

    def _fetch(self, names: list[str]) -> None:
        """Names are link keys, or ids marked by a NUL in front."""
        self._candidates |= {name: [] for name in names}
        ids = [name[1:] for name in names if name[0] == "\0"]
        keys = [name for name in names if name[0] != "\0"]
        join = "join project p on p.id = n.project"
        found = list[tuple[str, Candidate]]()
        if keys:
            sql = f"select f.fold, {_CANDIDATE} from note_fold f join note n on n.row = f.note {join} where f.fold in "
            every = self.db.execute(f"{sql}({', '.join('?' * len(keys))})", keys)
            found += [(name, Candidate(*values)) for name, *values in every]
        if ids:
            sql = f"select {_CANDIDATE} from note n {join} where n.id in ({', '.join('?' * len(ids))})"
            found += [
                ("\0" + one.id, one) for one in map(Candidate._make, self.db.execute(sql, ids))
            ]
        for name, candidate in found:
            if may_see(candidate.scope, self.viewer):
                self._candidates[name].append(candidate)


def first_step(target: str, candidates: list[Candidate], project: str | None) -> list[Candidate]:
    """The candidates of the first of steps 1 to 7 that matches; none when no step does.

    Identifiers of contract 000b, 4.2 may name the project in front of a path too.
    """
    found = _first_step(target, "", candidates)
    if not found and project is not None and target.casefold().startswith(f"{project.casefold()}/"):
        found = _first_step(target[len(project) + 1 :], "", candidates)
    return found


def _first_step(target: str, folder: str, candidates: list[Candidate]) -> list[Candidate]:
    if not candidates:
        return []
    path = root_path(target, folder)
    if target.startswith(("./", "../")):
        return [one for one in candidates if path in (one.path, posixpath.splitext(one.path)[0])]
    steps: tuple[Callable[[], list[Candidate]], ...] = (
        lambda: [one for one in candidates if one.id == target],
        lambda: _by_permalink(target, candidates),
        # A whole path with its extension says more than the slug it would become.
        lambda: [one for one in candidates if one.path == path],
        lambda: _by_permalink(slug(target), candidates),
        lambda: _by_title(target, candidates),
        lambda: [one for one in candidates if path in (one.path, posixpath.splitext(one.path)[0])],
    )
    found = next(filter(None, (step() for step in steps)), None)
    if found:
        return found
    stems = [
        one
        for one in candidates
        if posixpath.splitext(posixpath.basename(one.path))[0] == target.removesuffix(".md")
    ]
    if len(stems) == 1:
        return stems
    folded = fold_title(target)
    return [
        one for one in candidates if any(fold_title(name) == folded for name in one.titles)
    ] or stems


def _by_permalink(target: str, candidates: list[Candidate]) -> list[Candidate]:
    return [
        one
        for one in candidates
        if target
        and (
            one.permalink in (target, f"{lead(one.project)}/{target}")
            or target in (f"{one.project}/{one.permalink}", f"{lead(one.project)}/{one.permalink}")
        )
    ]


def _by_title(target: str, candidates: list[Candidate]) -> list[Candidate]:
    # As `categories` compares titles (contract 001, 4)
    found = []
    in_lower_case = target.strip().lower()[:TITLE_CUT]
    for one in candidates:
        if one.project in MEMORY_PROJECTS:
            is_named = in_lower_case in [title.strip().lower()[:TITLE_CUT] for title in one.titles]
        else:
            is_named = target in one.titles
        if is_named:
            found.append(one)
    return found


def _inside(candidates: list[Candidate], project: str) -> list[Candidate]:
    return [one for one in candidates if one.project.casefold() == project.casefold()]


# Else another process may replace the row before it is read
@in_snapshot
def find(
    db: sqlite3.Connection,
    identifier: str,
    *,
    project: str | None = None,
    default_project: str,
    viewer: str | None,
) -> NoteInfo:
    """The note an identifier names: an address with or without `memory://`, a title, an id, or a
    unique beginning of an id of at least 8 characters.

    With `project`: there. Without: in the default project; then, when the first segment names a
    project, in that one; then in all others together. An id, and the beginning of a UUID, come
    before all of this: names are given by anybody. Raises NotFound with suggestions, Ambiguous with
    candidates, and what `parse_address` raises for addresses that are refused.
    """
    target = sqlite_text(parse_address(identifier))
    resolver = Resolver(db, viewer)
    candidates = resolver.candidates(target)
    head, slash, rest = target.partition("/")
    for name, text in ((project, target), (head, rest)):
        if _UUID_BEGIN.fullmatch(text):
            found = _by_prefix(db, text.lower(), viewer, name)
        else:
            if name is None:
                inside = candidates
            else:
                inside = _inside(candidates, name)
            found = [one for one in inside if one.id == text and len(text) >= _SHORTEST]
        if found:
            return _only(db, identifier, _inside(found, default_project) or found)
    for name in [project] if project is not None else [default_project, *([head] if slash else [])]:
        found = first_step(target, _inside(candidates, name), name) or _by_prefix(
            db, target, viewer, name
        )
        if found:
            return _only(db, identifier, found)
    if project is None:
        outside = [
            one for one in candidates if one.project.casefold() != default_project.casefold()
        ]
        # An archived one of that name comes last
        live = [one for one in outside if one.project != ARCHIVE_PROJECT]
        found = first_step(target, live, None) or _by_prefix(db, target, viewer, None)
        found = found or first_step(target, outside, None)
        if found:
            return _only(db, identifier, found)
    where = project or default_project
    raise NotFound(identifier, where, _suggestions(db, target, viewer, project))


@in_snapshot
def find_id(db: sqlite3.Connection, text: str, *, viewer: str | None) -> NoteInfo:
    """The memory whose id is `text` or uniquely begins with it, four characters at least.

    An archived memory is one of `categories`. An id that was merged into another note answers that
    one. Raises NotFound, or Ambiguous with `total` notes.
    """
    text = sqlite_text(text.strip())
    for wanted in dict.fromkeys((text, text.lower())):
        notes = in_order(db, _ids(db, wanted, _SHORTEST_OF_MEMORY, viewer, CATEGORY_PROJECT))
        if len(notes) > 1:
            raise Ambiguous(text, [note.permalink for note in notes])
        if notes:
            return notes[0]
    raise NotFound(text, CATEGORY_PROJECT)


def _suggestions(
    db: sqlite3.Connection, target: str, viewer: str | None, project: str | None
) -> list[str]:
    """Some permalinks that come near `target`, the nearest first."""
    wanted = key(target.rpartition("/")[2] or target)
    rows: dict[int, None] = {}
    for length in dict.fromkeys((len(wanted), max(3, len(wanted) * 2 // 3), 3)):
        begin = wanted[:length]
        rows.update(
            dict.fromkeys(
                row
                for (row,) in db.execute(
                    "select note from note_fold where fold >= ? and fold < ? limit 50",
                    (begin, begin + _LAST),
                )
            )
        )
        if len(rows) >= 20:
            break
    telling = [quoted(fts_text(word).strip()) + "*" for word in words(target)[:8]]
    if telling:
        rows.update(
            dict.fromkeys(
                row
                for (row,) in db.execute(
                    "select rowid from name_fts where name_fts match ? order by rowid desc limit 50",
                    (" OR ".join(telling),),
                )
            )
        )
    # 3 ms, for errors only
    import difflib

    near = [
        (
            max(
                difflib.SequenceMatcher(None, wanted, key(name)).ratio()
                for name in (note.title, note.permalink.rpartition("/")[2])
            ),
            note,
        )
        for note in infos(db, rows).values()
        if may_see(note.scope, viewer)
        and (project is None or note.project.casefold() == project.casefold())
    ]
    near.sort(key=lambda one: (-one[0], one[1].permalink))
    return list(dict.fromkeys(note.permalink for likeness, note in near if likeness > 0.3))[
        :_SUGGESTIONS
    ]


def _only(db: sqlite3.Connection, identifier: str, found: list[Candidate]) -> NoteInfo:
    if len(found) > 1:
        names = sorted(one.permalink for one in found)
        if len(set(names)) < len(names):
            names = sorted(f"{one.project}/{one.path}" for one in found)
        raise Ambiguous(identifier, names)
    return in_order(db, [found[0].row])[0]


def _by_prefix(
    db: sqlite3.Connection, target: str, viewer: str | None, project: str | None
) -> list[Candidate]:
    """The notes of `project` with this id, else with one that begins so."""
    if len(target) < _SHORTEST or len(target) > _LONGEST_PREFIX or " " in target:
        return []
    rows = _ids(db, target, _SHORTEST, viewer, project)
    return [
        Candidate(
            one.row, one.project, one.path, one.id, one.permalink, one.title, None, one.scope, 0
        )
        for one in in_order(db, rows)
    ]


def _ids(
    db: sqlite3.Connection, text: str, minimum: int, viewer: str | None, project: str | None
) -> list[int]:
    """Rows of the visible notes with this id, else with one that begins so and `text` has `minimum`
    characters, else of those that took such an id over."""
    wanted = (
        None
        if project is None
        else MEMORY_PROJECTS
        if project == CATEGORY_PROJECT
        else (project.casefold(),)
    )
    for having in ("n.id", "n.row in (select note from merged where id"):
        for last in (text, text + _LAST) if len(text) >= minimum else (text,):
            found = db.execute(
                "select n.row, n.scope, p.name from note n join project p on p.id = n.project"
                f" where {having} between ? and ?{')' * having.count('(')} order by n.permalink limit 1000",
                (text, last),
            )
            rows = [
                row
                for row, scope, name in found
                if may_see(scope, viewer) and (wanted is None or name.casefold() in wanted)
            ]
            if rows:
                return rows
    return []
