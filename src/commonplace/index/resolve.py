"""Where a link leads: the steps of contract 000b, 3.4, taken when somebody asks.

Nothing resolved is stored, so nothing can be stale: a link finds its note as soon as that is
indexed, and loses it when it goes.
"""

from __future__ import annotations

import json
import posixpath
import sqlite3
from collections.abc import Callable, Iterable
from typing import NamedTuple

from commonplace.index.facets import may_see
from commonplace.index.keys import CATEGORIES_PROJECT, TITLE_CUT, first_line_of, key, lead, root_path
from commonplace.index.lookup import in_order
from commonplace.index.rows import Resolution
from commonplace.note.links import fold_title, slug
from commonplace.text.unicode import sqlite_text

RESOLVED, UNWRITTEN, AMBIGUOUS = "resolved", "unwritten", "ambiguous"

_CANDIDATE = (
    "n.row, p.name, n.path, n.id, n.permalink, n.title, n.aliases, n.scope, n.created,"
    f" case p.name when '{CATEGORIES_PROJECT}' then"
    " (select substr(t.text, 1, 400) from text t where t.row = n.row) end"
)
_BATCH = 400


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


class Answer(NamedTuple):
    """What a target means: a row when resolved, several when ambiguous, none when not written."""

    state: str
    rows: tuple[int, ...] = ()


_NOTHING = Answer(UNWRITTEN)


def resolve(
    db: sqlite3.Connection, target: str, *, project: str, folder: str = "", viewer: str | None,
    target_project: str | None = None, source_scope: str | None = None,
) -> Resolution:  # fmt: skip
    """Where `[[target]]`, written in a note of `project` in `folder`, leads for `viewer`.

    `target_project` is the project of `[[project::target]]`. `source_scope` is the linking
    note's scope, by which `categories` chooses among equals (contract 001, 4).
    """
    answer = Resolver(db, viewer).link(sqlite_text(target), project, folder, target_project, source_scope)
    notes = in_order(db, answer.rows)
    if answer.state == RESOLVED and notes:
        return Resolution(RESOLVED, notes[0])
    return Resolution(answer.state, None, notes)


class Resolver:
    """Resolves targets for one caller; what it looked up it remembers, so use it for one call."""

    def __init__(self, db: sqlite3.Connection, viewer: str | None):
        self.db = db
        self.viewer = viewer
        self._candidates: dict[str, list[Candidate]] = {}
        names = [name for (name,) in db.execute("select name from project")]
        self._projects = {prefix.casefold() for name in names for prefix in (name, lead(name))}
        self._answers: dict[tuple[str, str, str, str | None, str | None], Answer] = {}

    def prefetch(self, targets: Iterable[str], folder: str = "") -> None:
        """Looks up the candidates of many targets in a few queries."""
        missing = {name for target in targets for name in self._names(target, folder)} - self._candidates.keys()
        names = list(missing)
        for at in range(0, len(names), _BATCH):
            self._fetch(names[at : at + _BATCH])

    def link(self, target: str, project: str, folder: str, target_project: str | None, scope: str | None) -> Answer:
        """What a link in `folder` of `project` means (contract 000b, 3.4)."""
        relative = target.startswith(("./", "../"))
        asked = (target, project, folder if relative else "", target_project,
                 scope if CATEGORIES_PROJECT in (project, target_project) else None)  # fmt: skip
        if asked not in self._answers:
            self._answers[asked] = self._link(target, project, asked[2], target_project, scope)
        return self._answers[asked]

    def _link(self, target: str, project: str, folder: str, other: str | None, scope: str | None) -> Answer:
        candidates = self.candidates(target, folder)
        home = other if other is not None else project
        inside = [one for one in candidates if one.project.casefold() == home.casefold()]
        found = _first_step(target, folder, inside)
        if found:
            if len(found) > 1 and home == project == CATEGORIES_PROJECT:
                found = [min(found, key=lambda one: (one.scope != scope, one.created, one.id, one.path))]
            return _answer(found)
        if other is not None:
            return _NOTHING
        outside = [one for one in candidates if one.project != project]
        return _answer(_by_permalink(target, outside) or _by_title(target, outside))

    def candidates(self, target: str, folder: str = "") -> list[Candidate]:
        """The notes the caller sees which any step could mean by `target`."""
        names = self._names(target, folder)
        if any(name not in self._candidates for name in names):
            self._fetch([name for name in names if name not in self._candidates])
        found = [one for name in names for one in self._candidates[name]]
        return list(dict.fromkeys(found)) if len(names) > 1 else found

    def _names(self, target: str, folder: str) -> list[str]:
        """What to look a target up under: its link key, with and without a project's name in front,
        and the target as an id, marked by a NUL."""
        if target.startswith(("./", "../")):
            path = root_path(target, folder)
            return [] if path is None else [key(path)]
        keys = {key(target), key(target[:TITLE_CUT])}
        head, slash, rest = target.partition("/")
        if slash and (head.casefold() in self._projects or slug(head) in self._projects):
            keys.add(key(rest))
        return [*keys, "\0" + target] if target else list(keys)

    def _fetch(self, names: list[str]) -> None:
        """Names are link keys, or ids marked by a NUL in front."""
        for name in names:
            self._candidates[name] = []
        ids = [name[1:] for name in names if name[0] == "\0"]
        keys = [name for name in names if name[0] != "\0"]
        join = "join project p on p.id = n.project"
        if keys:
            for name, *values in self.db.execute(
                f"select f.fold, {_CANDIDATE} from note_fold f join note n on n.row = f.note {join}"
                f" where f.fold in ({', '.join('?' * len(keys))})", keys,
            ):  # fmt: skip
                self._keep(name, Candidate(*values))
        if ids:
            for values in self.db.execute(
                f"select {_CANDIDATE} from note n {join} where n.id in ({', '.join('?' * len(ids))})", ids
            ):
                candidate = Candidate(*values)
                self._keep("\0" + candidate.id, candidate)

    def _keep(self, name: str, candidate: Candidate) -> None:
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
        return [] if path is None else [one for one in candidates if _is_path(one, path)]
    steps: tuple[Callable[[], list[Candidate]], ...] = (
        lambda: [one for one in candidates if one.id == target],
        lambda: _by_permalink(target, candidates),
        # A whole path with its extension says more than the slug it would become.
        lambda: [one for one in candidates if one.path == path],
        lambda: _by_permalink(slug(target), candidates),
        lambda: _by_title(target, candidates),
        lambda: [one for one in candidates if _is_path(one, path or "")],
    )
    for step in steps:
        found = step()
        if found:
            return found
    stems = [one for one in candidates if _stem(one.path) == target.removesuffix(".md")]
    if len(stems) == 1:
        return stems
    folded = fold_title(target)
    return [one for one in candidates if any(fold_title(name) == folded for name in one.titles)] or stems


def _by_permalink(target: str, candidates: list[Candidate]) -> list[Candidate]:
    return [
        one
        for one in candidates
        if target and (
            one.permalink in (target, f"{lead(one.project)}/{target}")
            or target in (f"{one.project}/{one.permalink}", f"{lead(one.project)}/{one.permalink}")
        )
    ]  # fmt: skip


def _by_title(target: str, candidates: list[Candidate]) -> list[Candidate]:
    memory = _memory_title(target)
    return [
        one
        for one in candidates
        if (memory in map(_memory_title, one.titles) if one.project == CATEGORIES_PROJECT else target in one.titles)
    ]


def _memory_title(text: str) -> str:
    """A title as `categories` compares it: lower case, trimmed, cut (contract 001, 4)."""
    return text.strip().lower()[:TITLE_CUT]


def _is_path(one: Candidate, path: str) -> bool:
    return path in (one.path, posixpath.splitext(one.path)[0])


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


def _answer(found: list[Candidate]) -> Answer:
    if not found:
        return _NOTHING
    return Answer(RESOLVED if len(found) == 1 else AMBIGUOUS, tuple(one.row for one in found))
