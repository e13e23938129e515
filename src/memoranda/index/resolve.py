"""Where a link leads, and which note an identifier names: the one place that resolves names
(AMENDMENTS, 2; contracts 000b, 3.4 and 4.2; 001, 1).

A name is compared form by form, the strictest first (note/names.py). In each form the steps are:
path, title or alias, permalink, end of a path. The first step that matches decides, and where it
matches several notes the name is ambiguous. So no looser match ever wins over an exact one.

Nothing resolved is stored, so nothing can be stale: a link finds its note as soon as that is
indexed, and loses it when it goes. Stored are folded keys of names and of links; notes with equal
keys are the candidates.
"""

from __future__ import annotations

import json
import posixpath
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from memoranda.errors import Ambiguous, NotFound
from memoranda.index.database import in_snapshot
from memoranda.index.filters import may_see, quoted
from memoranda.index.rows import NoteInfo, in_order, infos, original_of
from memoranda.note.links import fold, lead, parse_address, slug
from memoranda.note.model import ARCHIVE_PROJECT, CATEGORY_PROJECT, MEMORY_PROJECTS
from memoranda.note.names import FORMS, Form, Looseness, as_written, stem, without_case
from memoranda.note.notion import file_address
from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import sqlite_text, unescaped

_CASE = [form.looseness for form in FORMS].index(Looseness.CASE)
RESOLVED = "resolved"
UNWRITTEN = "unwritten"
AMBIGUOUS = "ambiguous"

# Characters of a folded name in the index; a longer one ends in its checksum.
KEY_LENGTH = 48
_BEGINNING = KEY_LENGTH - 8
TITLE_CUT = 100
"""Titles of memories are compared up to here (contract 001, 4)."""

_LAST = "\U0010ffff"
# Near names that an error offers.
_SUGGESTIONS = 5
# Notes a refusal names.
_NAMED = 10
# Characters of an address that may be the beginning of an id.
_LONGEST_PREFIX = 200
# Names looked up by one statement.
_MOST_VALUES = 400
# An id, or its first eight digits and more.
_UUID_BEGIN = lazy_pattern(r"[0-9a-f]{8}(?:-[0-9a-f-]{0,27})?", re.IGNORECASE)
# Fewer digits than these could be several ids.
_SHORTEST = 8
# Characters an id, or its beginning, has at least where names mean notes too; and where only
# memories are meant.
_SHORTEST_OF_MEMORY = 4

_CANDIDATE = (
    "n.row, p.name, n.path, n.id, n.permalink, n.title, n.aliases, n.scope, n.created,"
    f" case when p.name in {MEMORY_PROJECTS} then"
    " (select substr(t.text, 1, 400) from text t where t.row = n.row) end"
)


def key(name: str) -> str:
    """The key of a name: its letters and digits, or its signs if it has no others.

    A long key is cut, with a checksum that keeps names with the same beginning apart.
    """
    if len(name) > TITLE_CUT:
        name = unicodedata.normalize("NFC", name)[:TITLE_CUT]
    folded = fold(name) or "="
    if len(folded) <= KEY_LENGTH:
        return folded
    return f"{folded[:_BEGINNING]}{crc32(folded.encode('utf-8', 'replace')):08x}"


def keys_of(
    project: str, path: str, permalink: str, titles: Iterable[str], first_line: str | None
) -> set[str]:
    """The keys a note is kept under, without its id and without the project in front: permalink,
    path, file name, titles, and the first line of a memory."""
    without_extension = stem(path)
    names = {
        permalink.removeprefix(f"{lead(project)}/"),
        without_extension,
        path,
        posixpath.basename(without_extension),
        posixpath.basename(path),
        *titles,
    }
    page = file_address(posixpath.basename(without_extension))
    if page:
        names.add(page)
    if first_line is not None:
        names.update((first_line, first_line.lstrip("#").strip()))
    # `[[std::vector]]` was read as a link to `vector` of a project `std`
    names.update([name.partition("::")[2] for name in names if "::" in name])
    # And `[[C# tips]]` as one to the heading `tips` of `C`
    names.update([name.partition("#")[0] for name in names if "#" in name])
    if project in MEMORY_PROJECTS:
        names.update([name[:TITLE_CUT] for name in names])
    return {key(name) for name in names}


def first_line_of(project: str, content: str) -> str | None:
    """The first line with text of a memory, which links may use as its name.

    None for other notes.
    """
    if project not in MEMORY_PROJECTS:
        return None
    return content.lstrip().split("\n", 1)[0].strip()[:TITLE_CUT]


def root_path(target: str, folder: str) -> str | None:
    """A target as a path from the project's root. None if `./` or `../` leads out of it."""
    if not target.startswith(("./", "../")):
        return target.lstrip("/")
    path = posixpath.normpath(posixpath.join(folder, target))
    if path.startswith("..") or path == ".":
        return None
    return path


def link_key(target: str, path: str) -> str | None:
    """The key under which a link in the note at `path` is stored.

    None if it leads out of the project.
    """
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
        """The titles a note answers to: its title and aliases.

        A memory also answers to its first line, with and without leading `#`, and a page of Notion
        to its address.
        """
        titles = [self.title, *(json.loads(self.aliases) if self.aliases else ())]
        if self.opening is not None:
            line = first_line_of(self.project, self.opening) or ""
            titles += [line, line.lstrip("#").strip()]
        page = file_address(stem(posixpath.basename(self.path)))
        if page:
            titles.append(page)
        return titles


class LinkTarget(NamedTuple):
    """The meaning of a link's target.

    state: `resolved` (it has a row), `unwritten` or `ambiguous`.
    row: the note.
    """

    state: str
    row: int | None = None
    is_whole: bool = False
    """What looks like a heading is the end of the note's name: `C# tips`."""


class _Question(NamedTuple):
    """A link without its folder: links that ask the same have one answer, except notes beside
    them."""

    target: str
    project: str
    target_project: str | None
    scope: str | None


class _Answer(NamedTuple):
    """Where a link leads from any folder; and the notes that come first for links beside them, by
    their folder, where they fit in form number `form` or a stricter one."""

    target: LinkTarget
    form: int
    beside: dict[str, list[Candidate]]


class Resolver:
    """Resolves targets for one caller; what it looked up it remembers, so use it for one call."""

    knows_former_addresses = True

    def __init__(self, db: sqlite3.Connection, viewer: str | None, projects: Iterable[str] = ()):
        self.db = db
        self.viewer = viewer
        self._candidates: dict[str, list[Candidate]] = {}
        names = [*projects, *(name for (name,) in db.execute("select name from project"))]
        self._projects = {prefix.casefold() for prefix in (*names, *map(lead, names))}
        # The names under which targets were looked up together.
        self._names_of: dict[str, list[str]] = {}
        self._answers: dict[_Question, _Answer] = {}

    def prefetch(self, targets: Iterable[str]) -> None:
        """Looks up the candidates of many targets in a few queries."""
        self._names_of.update({target: self._names(target, "") for target in targets})
        names = list(set(chain.from_iterable(self._names_of.values())) - self._candidates.keys())
        for at in range(0, len(names), _MOST_VALUES):
            self._fetch(names[at : at + _MOST_VALUES])

    def link(
        self,
        target: str,
        project: str,
        folder: str,
        target_project: str | None,
        scope: str | None,
        rest: str = "",
    ) -> LinkTarget:
        """Resolve a link in `folder` of `project`.

        A note in the link's own folder counts first, then a note whose path ends with the target,
        then any note of the project. `rest` (`#` and the text after it) is a heading, unless a note
        has that name.
        """
        if rest:
            whole = self.link(target + rest, project, folder, target_project, scope)
            if whole.state != UNWRITTEN and self._is_written(whole, target + rest):
                return whole._replace(is_whole=True)
        if target_project is not None and not self.is_project(target_project):
            # `[[std::vector]]` names no project
            target = f"{target_project}::{target}"
            target_project = None
        if target_project is None:
            home = project
        else:
            home = target_project
        if target.startswith(("./", "../")):
            return self._relative_link(target, home, folder)
        is_chosen = CATEGORY_PROJECT in (project, target_project)
        question = _Question(target, project, target_project, scope if is_chosen else None)
        if question not in self._answers:
            self._answers[question] = self._answer(question, home)
        answer = self._answers[question]
        is_from_root = target.startswith("/")
        if target_project is None and answer.beside and not is_from_root:
            return self._beside(target, folder, answer)
        return answer.target

    def is_project(self, name: str) -> bool:
        """Whether this is the name of a project."""
        return name.casefold() in self._projects

    def _is_written(self, matches: LinkTarget, name: str) -> bool:
        """Whether a note that was found has this name, case aside: `C#Tips` is a heading of `C`."""
        folded_name = without_case(name)
        for note in self.candidates(name):
            names = [*note.titles, note.path, stem(note.path), posixpath.basename(stem(note.path))]
            if matches.row in (None, note.row) and folded_name in map(without_case, names):
                return True
        return False

    def _relative_link(self, target: str, home: str, folder: str) -> LinkTarget:
        path = root_path(target, folder)
        if path is None:
            return LinkTarget(UNWRITTEN)
        inside = _inside(self.candidates(target, folder), home)
        for form in FORMS:
            matches = _by_path(path, inside, form)
            if matches:
                return _target(matches)
        return self._former_target(path, home, self.candidates(target, folder))

    def _answer(self, question: _Question, home: str) -> _Answer:
        """Where the link leads when no note beside it comes first."""
        target = question.target
        candidates = self.candidates(target)
        inside = _inside(candidates, home)
        other_notes: list[Candidate] = []
        if question.target_project is None:
            other_notes = [note for note in candidates if note.project != question.project]
        beside: dict[str, list[Candidate]] = {}
        if home not in MEMORY_PROJECTS:
            for note in inside:
                beside.setdefault(note.path.rpartition("/")[0], []).append(note)
        if len(inside) == 1 and _by_title(target, inside, FORMS[0]):
            # Most links: no step could mean another note
            return _Answer(_target(inside), 0, beside)
        for number, form in enumerate(FORMS):
            if form.looseness is Looseness.SIGNS:
                # An exact name in another project says more than a loose one here
                matches = _by_permalink(target, other_notes, FORMS[0]) or _by_title(
                    target, other_notes, FORMS[0]
                )
                if matches:
                    return _Answer(_target(matches), number - 1, beside)
            matches = _linked(target, inside, form)
            strictness = number
            if not matches:
                # A permalink is derived from a name: `[[readme]]` first means the `README.md`
                # beside the link.
                matches = _by_permalink(target, inside, form)
                strictness = max(number, _CASE)
            if len(matches) > 1 and home == question.project == CATEGORY_PROJECT:
                matches = [min(matches, key=lambda note: _preference(note, question.scope))]
            if matches:
                return _Answer(_target(matches), strictness, beside)
        return _Answer(self._former_target(target, home, candidates), -1, {})

    def _former_target(self, target: str, home: str, candidates: list[Candidate]) -> LinkTarget:
        """Where a link leads that no note's name fits: to the note that was at this address."""
        if not self.knows_former_addresses or "/" not in target:
            return LinkTarget(UNWRITTEN)
        from memoranda.index.former_addresses import former_rows

        rows = former_rows(self.db, target, home, candidates, self.viewer)
        if len(rows) == 1:
            return LinkTarget(RESOLVED, rows[0])
        return LinkTarget(AMBIGUOUS if rows else UNWRITTEN)

    def _beside(self, target: str, folder: str, answer: _Answer) -> LinkTarget:
        """The note in the link's own folder, if one fits as well as the answer does.

        Otherwise the answer.
        """
        inner, _, name = target.rpartition("/")
        near = answer.beside.get(posixpath.join(folder, inner) if inner else folder, [])
        for form in FORMS[: answer.form + 1] if near else ():
            matches = _by_file_name(name, near, form)
            if not matches and not inner:
                matches = _by_title(target, near, form)
            if matches:
                return _target(matches)
        return answer.target

    def candidates(self, target: str, folder: str = "") -> list[Candidate]:
        """The notes the caller sees which any step could mean by `target`."""
        names = self._names_of.get(target)
        if names is None or folder:
            names = self._names(target, folder)
        missing = [name for name in names if name not in self._candidates]
        if missing:
            self._fetch(missing)
        matches = list(chain.from_iterable(map(self._candidates.__getitem__, names)))
        if len(names) > 1:
            return list(dict.fromkeys(matches))
        return matches

    def _names(self, target: str, folder: str) -> list[str]:
        """The keys under which to look a target up.

        They are its link key, with and without a project's name in front, and the target as an id,
        marked by a NUL.
        """
        if target.startswith(("./", "../")):
            path = root_path(target, folder)
            if path is None:
                return []
            return [key(path)]
        keys = {key(target)}
        if len(target) > TITLE_CUT:
            keys.add(key(target[:TITLE_CUT]))
        head, slash, rest = target.partition("/")
        if slash:
            # The end of a path is found by the name of its file
            keys.add(key(target.rpartition("/")[2]))
        if slash and (head.casefold() in self._projects or slug(head) in self._projects):
            keys.add(key(rest))
        if target:
            return [*keys, "\0" + target]
        return list(keys)

    def _fetch(self, names: list[str]) -> None:
        """Names are link keys, or ids marked by a NUL in front."""
        self._candidates |= {name: [] for name in names}
        ids = [name[1:] for name in names if name[:1] == "\0"]
        keys = [name for name in names if name[:1] != "\0"]
        join = "join project p on p.id = n.project"
        matches = list[tuple[str, Candidate]]()
        if keys:
            sql = (
                f"select f.fold, {_CANDIDATE} from note_fold f join note n on n.row = f.note {join}"
            )
            marks = ", ".join("?" * len(keys))
            rows = self.db.execute(f"{sql} where f.fold in ({marks})", keys)
            matches += [(name, Candidate(*values)) for name, *values in rows]
        if ids:
            marks = ", ".join("?" * len(ids))
            sql = f"select {_CANDIDATE} from note n {join} where n.id in ({marks})"
            notes = map(Candidate._make, self.db.execute(sql, ids))
            matches += [("\0" + note.id, note) for note in notes]
        for name, candidate in matches:
            if may_see(candidate.scope, self.viewer):
                self._candidates[name].append(candidate)


def _target(matches: list[Candidate]) -> LinkTarget:
    if len(matches) == 1:
        return LinkTarget(RESOLVED, matches[0].row)
    return LinkTarget(AMBIGUOUS if matches else UNWRITTEN)


def _preference(note: Candidate, scope: str | None) -> tuple[bool, int, str, str]:
    """Of memories with one name, the one of the link's scope comes first, then the oldest."""
    return note.scope != scope, note.created, note.id, note.path


def _linked(target: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """The notes a link means in one form, wherever it is: by id, path, end of a path and title."""
    if not notes:
        return []
    if form.title is as_written:
        by_id = [note for note in notes if note.id == target]
        if by_id:
            return by_id
    path = target.lstrip("/")
    return (
        _by_path(path, notes, form)
        or _by_path_end(path, notes, form)
        or _by_title(target, notes, form)
    )


def _named(name: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """The notes an identifier means in one form, by path, title, permalink and end of a path. Paths
    and titles may have the project's name in front."""
    path = name.lstrip("/")
    by_path = _by_path(path, notes, form)
    if by_path:
        # Where a folder has the project's name, `notes/x` is a path and may be a printed permalink
        printed = [note for note in notes if note.permalink == name and "/" in name]
        return list(dict.fromkeys([*by_path, *printed]))
    inner = [(note, _without_project(name, note.project)) for note in notes]
    return (
        _by_title(name, notes, form)
        or _by_permalink(name, notes, form)
        or [note for note, rest in inner if _by_path(rest, [note], form)]
        or [note for note, rest in inner if _by_title(rest, [note], form)]
        or _by_path_end(path, notes, form)
    )


def _without_project(name: str, project: str) -> str:
    """The part of an address after the project's name. Empty if it does not begin with the name."""
    head, _, rest = name.partition("/")
    if head.casefold() in (project.casefold(), lead(project)):
        return rest
    return ""


def _by_path(path: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    address = form.address(path)
    if not address.strip("/ "):
        return []
    return [
        note
        for note in notes
        if address in (form.address(note.path), form.address(stem(note.path)))
    ]


def _by_path_end(path: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """The notes whose path ends in whole names that are `path`."""
    ending = f"/{form.address(path)}"
    if not ending.strip("/ "):
        return []
    return [
        note
        for note in notes
        if form.address(note.path).endswith(ending)
        or form.address(stem(note.path)).endswith(ending)
    ]


def _by_file_name(name: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    address = form.address(name)
    matches = []
    for note in notes:
        file_name = posixpath.basename(note.path)
        if address in (form.address(file_name), form.address(stem(file_name))):
            matches.append(note)
    return matches


def _by_permalink(name: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """The notes of this permalink, the project's name in front or not."""
    address = form.address(name)
    matches = []
    for note in notes:
        permalink = form.address(note.permalink)
        fronts = {form.address(note.project), lead(note.project)}
        is_short = any(permalink == f"{front}/{address}" for front in fronts)
        is_long = any(address == f"{front}/{permalink}" for front in fronts)
        if address and (permalink == address or is_short or is_long):
            matches.append(note)
    return matches


def _by_title(name: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """The notes with this title or alias. Titles of memories are compared up to TITLE_CUT, but not
    where the name should be exact (contract 001, 4)."""
    title_key = form.title(name)
    cut = form.title(name.strip()[:TITLE_CUT])
    matches = []
    for note in notes:
        if note.project in MEMORY_PROJECTS and form.looseness is not Looseness.EXACT:
            titles = [form.title(title.strip()[:TITLE_CUT]) for title in note.titles]
            is_named = cut in titles
        else:
            is_named = title_key in [form.title(title) for title in note.titles]
        if is_named and title_key:
            matches.append(note)
    return matches


def _inside(notes: list[Candidate], project: str) -> list[Candidate]:
    return [note for note in notes if note.project.casefold() == project.casefold()]


# In a snapshot, since another process could replace the row before it is read.
@in_snapshot
def find(
    db: sqlite3.Connection,
    identifier: str,
    *,
    project: str | None = None,
    default_project: str,
    viewer: str | None,
    looseness: Looseness = Looseness.SIGNS,
) -> NoteInfo:
    """The note that an identifier names.

    identifier: an address with or without `memory://`, a title, an id, or a unique beginning of an
        id of at least 8 characters.
    project: the project to look in. By default the default project or the one that the first
        segment names, then all others together.
    looseness: how far the name may differ from the note's.

    Ids and beginnings of UUIDs come first, because anybody can choose a name. Raises NotFound with
    suggestions, Ambiguous with candidates, and what `parse_address` raises.
    """
    target = sqlite_text(parse_address(identifier))
    search = _Search(Resolver(db, viewer), target, project, default_project)
    matches = search.by_id() or search.by_name(looseness)
    if len(matches) == 1:
        return in_order(db, [matches[0].row])[0]
    if matches:
        raise Ambiguous(identifier, search.addresses(matches))
    nearest = search.addresses(search.by_name(Looseness.SIGNS))
    suggestions = _suggestions(db, target, viewer, project)
    where = project or default_project
    raise NotFound(identifier, where, list(dict.fromkeys([*nearest, *suggestions]))[:_SUGGESTIONS])


class _Search:
    """The search for the note that one identifier means to one caller."""

    def __init__(self, resolver: Resolver, target: str, project: str | None, default_project: str):
        self.resolver = resolver
        self.target = target
        self.project = project
        self.default_project = default_project
        self.candidates = resolver.candidates(target)
        # A reply shows what cannot be seen as an escape
        plain = unescaped(target)
        if plain != target:
            more = resolver.candidates(plain)
            self.candidates = list(dict.fromkeys([*self.candidates, *more]))

    def by_id(self) -> list[Candidate]:
        """The notes with this id, or whose UUID begins with it.

        Notes of the default project come first.
        """
        db = self.resolver.db
        viewer = self.resolver.viewer
        head, _, rest = self.target.partition("/")
        for project, text in ((self.project, self.target), (head, rest)):
            if _UUID_BEGIN.fullmatch(text):
                matches = _by_prefix(db, text.lower(), viewer, project)
            else:
                inside = self.candidates
                if project is not None:
                    inside = _inside(inside, project)
                matches = [note for note in inside if note.id == text and len(text) >= _SHORTEST]
            if matches:
                original = original_of(matches)
                if original is not None:
                    return [original]
                return _inside(matches, self.default_project) or matches
        return []

    def by_name(self, looseness: Looseness) -> list[Candidate]:
        """The notes of the first step that matches, in the strictest form that matches."""
        for form in FORMS:
            if form.looseness > looseness:
                break
            if form.looseness is Looseness.SIGNS:
                # The beginning of an id says more than a name without its signs
                matches = self._by_beginning()
                if matches:
                    return matches
            for notes in self._stages():
                matches = _named(self.target, notes, form)
                if matches:
                    return matches
        former = self._by_former_address() if looseness is not Looseness.EXACT else []
        if former or looseness is Looseness.SIGNS:
            return former
        return self._by_beginning()

    def _by_former_address(self) -> list[Candidate]:
        """The notes that upkeep moved away from this address. Not for who needs an exact name."""
        if "/" not in self.target:
            return []
        from memoranda.index.former_addresses import former_rows

        db = self.resolver.db
        home = self.project or self.default_project
        rows = former_rows(db, self.target, home, self.candidates, self.resolver.viewer)
        known = {note.row: note for note in self.candidates}
        return [known.get(row) or _candidate(info) for row, info in infos(db, rows).items()]

    def _stages(self) -> list[list[Candidate]]:
        """The candidates of the projects that are asked first, of the others, and archived ones."""
        if self.project is not None:
            return [_inside(self.candidates, self.project)]
        default = self.default_project.casefold()
        head, slash, _ = self.target.partition("/")
        first, other_notes, archived = [], [], []
        for note in self.candidates:
            is_named = slash and head.casefold() in (note.project.casefold(), lead(note.project))
            if note.project.casefold() == default or is_named:
                first.append(note)
            elif note.project == ARCHIVE_PROJECT:
                archived.append(note)
            else:
                other_notes.append(note)
        return [first, other_notes, archived]

    def _by_beginning(self) -> list[Candidate]:
        """The notes whose id begins with the target, in the order of projects."""
        db = self.resolver.db
        viewer = self.resolver.viewer
        head, slash, _ = self.target.partition("/")
        projects = [self.project]
        if self.project is None:
            projects = [self.default_project, *([head] if slash else []), None]
        for project in projects:
            matches = _by_prefix(db, self.target, viewer, project)
            if matches:
                return matches
        return []

    def addresses(self, notes: list[Candidate]) -> list[str]:
        """A name for each note that means only this note, for a refusal."""
        return sorted(self._address(note) for note in notes[:_NAMED]) + [
            note.permalink for note in notes[_NAMED:]
        ]

    def _address(self, note: Candidate) -> str:
        """The first of permalink, path and id that names only this note."""
        names = (note.permalink, note.path, f"{note.project}/{note.path}", note.id)
        for name in names:
            if not name.isprintable():
                continue
            search = _Search(self.resolver, name, self.project, self.default_project)
            matches = search.by_id() or search.by_name(Looseness.EXACT)
            if [match.row for match in matches] == [note.row]:
                return name
        return f"{note.project}/{note.path}"


@in_snapshot
def find_id(db: sqlite3.Connection, text: str, *, viewer: str | None) -> NoteInfo:
    """The memory whose id is `text` or uniquely begins with it, four characters at least.

    An archived memory is one of `categories`. An id that was merged into another note answers that
    one. Raises NotFound, or Ambiguous with `total` notes.
    """
    text = sqlite_text(text.strip())
    for spelling in dict.fromkeys((text, text.lower())):
        notes = in_order(db, _ids(db, spelling, _SHORTEST_OF_MEMORY, viewer, CATEGORY_PROJECT))
        if not notes:
            continue
        original = original_of(notes)
        if original is None:
            raise Ambiguous(text, [note.permalink for note in notes], is_id=True)
        return original
    raise NotFound(text, CATEGORY_PROJECT)


def _suggestions(
    db: sqlite3.Connection, target: str, viewer: str | None, project: str | None
) -> list[str]:
    """Some permalinks that come near `target`, the nearest first."""
    # 3 ms, for errors only
    import difflib

    target_key = key(target.rpartition("/")[2] or target)
    near: list[tuple[float, str]] = []
    for note in infos(db, _similar_rows(db, target, target_key)).values():
        is_inside = project is None or note.project.casefold() == project.casefold()
        if not is_inside or not may_see(note.scope, viewer):
            continue
        likeness = 0.0
        for name in (note.title, note.permalink.rpartition("/")[2]):
            matcher = difflib.SequenceMatcher(None, target_key, key(name))
            likeness = max(likeness, matcher.ratio())
        if likeness > 0.3:
            near.append((-likeness, note.permalink))
    near.sort()
    return list(dict.fromkeys(permalink for _, permalink in near))[:_SUGGESTIONS]


def _similar_rows(db: sqlite3.Connection, target: str, target_key: str) -> dict[int, None]:
    """Rows of notes whose name begins like `target`, or has one of its words."""
    from memoranda.text.tokens import fts_text, words

    rows: dict[int, None] = {}
    for length in dict.fromkeys((len(target_key), max(3, len(target_key) * 2 // 3), 3)):
        beginning = target_key[:length]
        sql = "select note from note_fold where fold >= ? and fold < ? limit 50"
        for (row,) in db.execute(sql, (beginning, beginning + _LAST)):
            rows[row] = None
        if len(rows) >= 20:
            break
    prefixes = [quoted(fts_text(word).strip()) + "*" for word in words(target)[:8]]
    if prefixes:
        sql = "select rowid from name_fts where name_fts match ? order by rowid desc limit 50"
        for (row,) in db.execute(sql, (" OR ".join(prefixes),)):
            rows[row] = None
    return rows


def _by_prefix(
    db: sqlite3.Connection, target: str, viewer: str | None, project: str | None
) -> list[Candidate]:
    """The notes of `project` with this id. If none has it, those whose id begins with it."""
    if len(target) < _SHORTEST or len(target) > _LONGEST_PREFIX or " " in target:
        return []
    rows = _ids(db, target, _SHORTEST, viewer, project)
    return [_candidate(info) for info in in_order(db, rows)]


def _candidate(info: NoteInfo) -> Candidate:
    """A note that was found by other means than its name."""
    return Candidate(
        info.row, info.project, info.path, info.id, info.permalink, info.title, None, info.scope, 0
    )


def _ids(
    db: sqlite3.Connection, text: str, minimum: int, viewer: str | None, project: str | None
) -> list[int]:
    """The rows of visible notes that have this id.

    If none has it, a `text` of at least `minimum` characters may be the beginning of an id. After
    that, the ids of notes that were merged into others count.
    """
    condition: Sequence[str] | None = None
    if project == CATEGORY_PROJECT:
        condition = MEMORY_PROJECTS
    elif project is not None:
        condition = (project.casefold(),)
    for having in ("n.id", "n.row in (select note from merged where id"):
        for last in (text, text + _LAST) if len(text) >= minimum else (text,):
            id_rows = db.execute(
                "select n.row, n.scope, p.name from note n join project p on p.id = n.project"
                f" where {having} between ? and ?{')' * having.count('(')} order by n.permalink limit 1000",
                (text, last),
            )
            rows = [
                row
                for row, scope, name in id_rows
                if may_see(scope, viewer) and (condition is None or name.casefold() in condition)
            ]
            if rows:
                return rows
    return []
