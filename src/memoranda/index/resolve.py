"""Find the note that a link leads to or an identifier names. No other module resolves names
(AMENDMENTS, 2; contracts 000b, 3.4 and 4.2; 001, 1).

A *form* is a way to compare two names: exactly, without case, without signs (note/names.py). All
forms are tried, the strictest first. In each form the steps are: path, address with the project,
title or alias, permalink, end of a path. The first step that matches decides. If it matches several
notes, the name is ambiguous. So no looser match ever wins over an exact one.

The index stores no resolved links, only a folded *key* of each name and of each link (`key`). The
*candidates* of a link are the notes with its key. So a link works as soon as its note is indexed.
"""

from __future__ import annotations

import json
import posixpath
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple
from zlib import crc32

from memoranda.errors import Ambiguous, NotFound
from memoranda.index.database import in_snapshot
from memoranda.index.filters import may_see, quoted
from memoranda.index.rows import NoteInfo, in_order, infos, original_of
from memoranda.note.links import fold, lead, parse_address, slug
from memoranda.note.model import ARCHIVE_PROJECT, CATEGORY_PROJECT, MEMORY_PROJECTS
from memoranda.note.names import (
    FORMS,
    Form,
    Looseness,
    as_written,
    is_file,
    is_named_by_id,
    is_place,
    stem,
    without_case,
)
from memoranda.note.notion import file_address
from memoranda.text.han import other_forms
from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import sqlite_text, unescaped

# The numbers in FORMS of the form that compares exactly, and of the form that ignores case.
_EXACT_FORM = 0
_CASE_FORM = [form.looseness for form in FORMS].index(Looseness.CASE)
# The number in place of these if nothing matched in any form.
_NO_FORM = -1
RESOLVED = "resolved"
UNWRITTEN = "unwritten"
AMBIGUOUS = "ambiguous"

# Characters of a folded name in the index; a longer one ends in its checksum.
KEY_LENGTH = 48
# The checksum has 8 hexadecimal digits.
_CHARACTERS_BEFORE_CHECKSUM = KEY_LENGTH - 8
TITLE_CUT = 100
"""Titles of memories are compared up to this many characters (contract 001, 4)."""

_LAST_CHARACTER = "\U0010ffff"
# How many similar names an error offers.
_MAX_SUGGESTIONS = 5
# No shorter beginnings of a name are tried once so many notes are found.
_ENOUGH_SIMILAR_NOTES = 20
# How many words of a name are looked for in other names.
_MAX_SIMILAR_WORDS = 8
# A suggestion has at least this `SequenceMatcher.ratio` (1 = equal).
_MIN_LIKENESS = 0.3
# An error gives this many of the matching notes an unambiguous address. The others get permalinks.
_MAX_DISTINCT_ADDRESSES = 10
# A longer text is not looked up as the beginning of an id.
_MAX_ID_CHARACTERS = 200
# How many names one statement looks up.
_NAMES_PER_STATEMENT = 400
# A UUID or its beginning: `1b4e28ba`, `1b4e28ba-2fa1`.
_UUID_BEGIN = lazy_pattern(r"[0-9a-f]{8}(?:-[0-9a-f-]{0,27})?", re.IGNORECASE)
# How many characters the beginning of an id needs where a text may also be a name.
_MIN_ID_CHARACTERS = 8
# How many it needs where only ids of memories are expected.
_MIN_MEMORY_ID_CHARACTERS = 4

# The columns of `Candidate`.
_CANDIDATE = (
    "n.row, p.name, n.path, n.id, n.permalink, n.title, n.aliases, n.scope, n.created,"
    f" case when p.name in {MEMORY_PROJECTS} then"
    " (select substr(t.text, 1, 400) from text t where t.row = n.row) end"
)


def key(name: str) -> str:
    """Return the folded form of a name that the index stores: `My Note!` → `mynote`.

    The key has only the letters and digits of the name. A name without any keeps its signs. A key
    over KEY_LENGTH is cut and ends in a checksum, so that names with one beginning differ.
    """
    if len(name) > TITLE_CUT:
        name = unicodedata.normalize("NFC", name)[:TITLE_CUT]
    # `fold` leaves nothing of an empty name. `=` is in no other folded name.
    folded = fold(name) or "="
    if len(folded) <= KEY_LENGTH:
        return folded
    return f"{folded[:_CHARACTERS_BEFORE_CHECKSUM]}{crc32(folded.encode('utf-8', 'replace')):08x}"


def keys_of(
    project: str, path: str, permalink: str, titles: Iterable[str], first_line: str | None
) -> set[str]:
    """Return all keys that the index stores for a note.

    They are made from its permalink and path (both without the project), file name and titles.

    titles: title and aliases.
    first_line: the first line of a memory, which links may use as its name. None for other notes.
    """
    # `stem` removes the extension: `a/Plan.md` → `a/Plan`
    without_extension = stem(path)
    names = {
        permalink.removeprefix(f"{lead(project)}/"),
        without_extension,
        path,
        posixpath.basename(without_extension),
        posixpath.basename(path),
        *titles,
    }

    # A page that Notion exported has its address in its name. Links may use only the address.
    page = file_address(posixpath.basename(without_extension))
    if page:
        names.add(page)
    if first_line is not None:
        names.update((first_line, first_line.lstrip("#").strip()))
    # A note may be called `std::vector`. The link `[[std::vector]]` has the key of `vector`, since
    # it looks like a link to project `std`.
    names.update([name.partition("::")[2] for name in names if "::" in name])
    # The link `[[C# tips]]` has the key of `C`, since it looks like a link to the heading `tips`.
    names.update([name.partition("#")[0] for name in names if "#" in name])
    if project in MEMORY_PROJECTS:
        names.update([name[:TITLE_CUT] for name in names])
    return {key(name) for name in names}


def first_line_of(project: str, content: str) -> str | None:
    """Return the first line of a memory that is not empty. Links may use it as the memory's name.

    content: the text after the frontmatter.
    None for a note of another project.
    """
    if project not in MEMORY_PROJECTS:
        return None
    return content.lstrip().split("\n", 1)[0].strip()[:TITLE_CUT]


def root_path(target: str, folder: str) -> str | None:
    """Turn a target into a path from the project's root: `../b` in folder `x/y` → `x/b`.

    None if `./` or `../` leads out of the project. A target without these is from the root already.
    """
    if not target.startswith(("./", "../")):
        return target.lstrip("/")
    path = posixpath.normpath(posixpath.join(folder, target))
    if path.startswith("..") or path == ".":
        return None
    return path


def link_key(target: str, path: str) -> str | None:
    """Return the key that a link in the note at `path` is stored with.

    None if it leads out of the project.
    """
    if not target.startswith(("./", "../")):
        return key(target)
    target_path = root_path(target, posixpath.dirname(path))
    if target_path is None:
        return None
    return key(target_path)


class Candidate(NamedTuple):
    """A note that a target may mean.

    row, project, path, id, permalink, title, scope: the properties of the note.
    aliases: a JSON list. None if it has no aliases.
    created: in microseconds since 1970.
    opening: the beginning of a memory's text. None for other notes.
    """

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
        """All titles that a link may use for this note: its title and aliases.

        A memory may also be named by its first line, with and without leading `#`. A page exported
        from Notion may be named by its web address.
        """
        titles = [self.title, *(json.loads(self.aliases) if self.aliases else ())]
        if self.opening is not None:
            line = first_line_of(self.project, self.opening) or ""
            titles += [line, line.lstrip("#").strip()]
        page = file_address(stem(posixpath.basename(self.path)))
        if page:
            titles.append(page)
        return titles


class LinkText(NamedTuple):
    """The parts of a link as written: `[[work::Plan#Next]]` has `Plan`, `work` and `#Next`.

    target: the name of the note.
    project: the project that the link names. None if it names none.
    rest: `#` and the text after it, or "". It is a heading, unless it belongs to the note's name as
        in `[[C# tips]]`.
    """

    target: str
    project: str | None = None
    rest: str = ""


class LinkSource(NamedTuple):
    """The note that has a link.

    project, folder: where it is.
    scope: who may see it. If several memories have the name, one of this scope is preferred. None
        if it does not matter.
    """

    project: str
    folder: str
    scope: str | None


class LinkTarget(NamedTuple):
    """The note that a link leads to, or the reason why it leads to no note.

    state: `resolved`, `unwritten` (no note has the name) or `ambiguous`.
    row: the row of the note. None unless `resolved`.
    is_whole: whether the text after `#` belongs to the note's name, as in `C# tips`, and not to
        a heading.
    """

    state: str
    row: int | None = None
    is_whole: bool = False


class _Question(NamedTuple):
    """All facts that decide where a link leads, except its folder. Equal questions are looked up
    once.

    target: the text of the link, without its project and heading.
    project: the project of the note with the link.
    target_project: the project that the link names. None if it names none.
    scope: the scope of that note, if it helps to choose between memories. Else None.
    """

    target: str
    project: str
    target_project: str | None
    scope: str | None


class _Answer(NamedTuple):
    """The answer to a `_Question`, for links in any folder.

    target: the note that the link leads to unless its own folder has a note that fits as well.
    form: the number in FORMS of the form in which `target` matched, or _NO_FORM. A note in the
        link's own folder wins if it matches in this form or a stricter one.
    notes_by_folder: the candidates of the project, by folder. Empty if `target` holds in every folder.
    """

    target: LinkTarget
    form: int
    notes_by_folder: dict[str, list[Candidate]]


class Resolver:
    """Finds the notes that links mean, for one caller and one call.

    It remembers the notes that it looked up, which may change before the next call.
    """

    # False in a subclass that must not follow addresses which notes had earlier.
    knows_former_addresses = True

    def __init__(self, db: sqlite3.Connection, viewer: str | None, projects: Iterable[str] = ()):
        """Prepare to resolve links for `viewer` (an agent; None is the owner).

        projects: names of projects, in addition to those in the index.
        """
        self.db = db
        self.viewer = viewer
        # The visible notes of each lookup name (see `_names`) that was fetched.
        self._candidates: dict[str, list[Candidate]] = {}
        # The names of projects in small letters, as they are and as permalinks have them.
        self._projects: set[str] = set()
        indexed_projects = [name for (name,) in db.execute("select name from project")]
        for name in [*projects, *indexed_projects]:
            self._projects |= {name.casefold(), lead(name).casefold()}
        # The lookup names of each target that was prefetched.
        self._names_of: dict[str, list[str]] = {}
        self._answers: dict[_Question, _Answer] = {}

    def prefetch(self, targets: Iterable[str]) -> None:
        """Look up the candidates of many targets in a few queries."""
        missing_names: set[str] = set()
        for target in targets:
            names = self._names(target, folder="")
            self._names_of[target] = names
            missing_names.update(names)
        names_to_fetch = list(missing_names - self._candidates.keys())
        for start in range(0, len(names_to_fetch), _NAMES_PER_STATEMENT):
            self._fetch(names_to_fetch[start : start + _NAMES_PER_STATEMENT])

    def link(self, text: LinkText, source: LinkSource) -> LinkTarget:
        """Find the note that a link means.

        A note in the link's own folder counts first, then a note whose path ends with the target,
        then any note of the project.
        """
        # `[[C# tips]]` may be a whole name, or the heading `tips` of the note `C`.
        if text.rest:
            whole_name = text.target + text.rest
            target_of_whole = self.link(LinkText(whole_name, text.project), source)
            is_written = target_of_whole.state != UNWRITTEN
            if is_written and self._has_name(target_of_whole, whole_name):
                return target_of_whole._replace(is_whole=True)

        # `[[std::vector]]` names no project, unless a project is called `std`.
        target = text.target
        target_project = text.project
        if target_project is not None and not self.is_project(target_project):
            target = f"{target_project}::{target}"
            target_project = None
        searched_project = source.project if target_project is None else target_project
        if target.startswith(("./", "../")):
            return self._relative_link(target, searched_project, source.folder)

        # Look the target up, unless a link with the same question was looked up before. The scope
        # matters only between memories. Without it, more links share an answer.
        is_about_memories = CATEGORY_PROJECT in (source.project, target_project)
        scope = source.scope if is_about_memories else None
        question = _Question(target, source.project, target_project, scope)
        if question not in self._answers:
            self._answers[question] = self._answer(question, searched_project)
        answer = self._answers[question]

        # A link without a project means the note next to it, if several have its name.
        is_from_root = target.startswith("/")
        if target_project is None and answer.notes_by_folder and not is_from_root:
            return self._target_in_folder(target, source.folder, answer)
        return answer.target

    def is_project(self, name: str) -> bool:
        """Whether a project has this name. The form that permalinks begin with counts, too."""
        return name.casefold() in self._projects

    def _has_name(self, matches: LinkTarget, name: str) -> bool:
        """Whether a note that `name` leads to has exactly this name, without regard to case.

        `C#Tips` also leads to a note `C Tips`, which does not have the name: `Tips` is a heading.

        matches: the result of resolving `name`. If it is ambiguous, any of its notes counts.
        """
        folded_name = without_case(name)
        for note in self.candidates(name):
            is_match = matches.state == AMBIGUOUS or note.row == matches.row
            if not is_match:
                continue
            path = stem(note.path)
            names = [*note.titles, note.path, path, posixpath.basename(path)]
            if folded_name in map(without_case, names):
                return True
        return False

    def _relative_link(self, target: str, searched_project: str, folder: str) -> LinkTarget:
        """Resolve a target that begins with `./` or `../`. It can only be a path in one project.

        searched_project: the project that the link leads into.
        """
        path = root_path(target, folder)
        # The target leads out of the project.
        if path is None:
            return LinkTarget(UNWRITTEN)
        candidates = self.candidates(target, folder)
        notes_of_project = _inside(candidates, searched_project)
        # From the strictest form to the loosest.
        for form in FORMS:
            matches = _by_path(path, notes_of_project, form)
            if matches:
                return _target(matches)
        return self._former_target(path, searched_project, candidates)

    def _answer(self, question: _Question, searched_project: str) -> _Answer:
        """Look up a link without regard to its folder.

        searched_project: the project that the link leads into.
        """
        target = question.target
        candidates = self.candidates(target)
        if not candidates:
            # Most links of a note with very many lead nowhere
            former_target = self._former_target(target, searched_project, candidates)
            return _Answer(former_target, _NO_FORM, notes_by_folder={})
        notes_of_project = _inside(candidates, searched_project)
        if len(notes_of_project) == 1 and _by_title(target, notes_of_project, FORMS[0]):
            # A shortcut for most links: the only candidate has exactly this title. So no other
            # note can be meant in any folder.
            return _Answer(_target(notes_of_project), _EXACT_FORM, notes_by_folder={})

        notes_by_folder = self._by_folder(notes_of_project, searched_project)
        # From the strictest form to the loosest: as written, in any case, without signs.
        for form_number, form in enumerate(FORMS):
            if form.looseness is Looseness.SIGNS and question.target_project is None:
                # An exact name in another project counts more than a loose name in this one.
                notes_elsewhere = _exactly_named(target, candidates, question.project)
                if notes_elsewhere:
                    # A note in the link's folder wins in any of the forms before this one.
                    last_form = form_number - 1
                    return _Answer(_target(notes_elsewhere), last_form, notes_by_folder)
            by_name = _by_id_or_path(target, notes_of_project, form)
            # Anybody may give a note the permalink of another one for a title.
            if not by_name and not _by_whole_permalink(target, notes_of_project, form):
                by_name = _by_title(target, notes_of_project, form)
            if by_name:
                matches = _preferred(by_name, question, searched_project)
                return _Answer(_target(matches), form_number, notes_by_folder)
            by_permalink = _by_permalink(target, notes_of_project, form)
            if by_permalink:
                matches = _preferred(by_permalink, question, searched_project)
                # A permalink is lower case: `[[readme]]` may equal one, and still means the
                # `README.md` in its own folder.
                last_form = max(form_number, _CASE_FORM)
                return _Answer(_target(matches), last_form, notes_by_folder)
        former_target = self._former_target(target, searched_project, candidates)
        return _Answer(former_target, _NO_FORM, notes_by_folder={})

    @staticmethod
    def _by_folder(notes: Iterable[Candidate], project: str) -> dict[str, list[Candidate]]:
        """Return the notes of a project by folder.

        The result is empty for memories, because links do not mean their folders.
        """
        by_folder: dict[str, list[Candidate]] = {}
        if project in MEMORY_PROJECTS:
            return by_folder
        for note in notes:
            folder = posixpath.dirname(note.path)
            by_folder.setdefault(folder, []).append(note)
        return by_folder

    def _former_target(
        self, target: str, searched_project: str, candidates: list[Candidate]
    ) -> LinkTarget:
        """Return the note that was at this address before upkeep moved it.

        It counts only when no note has the name now.

        target: the address, such as `decisions/use-tea`.
        searched_project: the project that the link leads into.
        candidates: the notes that have a name like the end of `target`.
        """
        # Only an address with a folder is remembered.
        if not self.knows_former_addresses or "/" not in target:
            return LinkTarget(UNWRITTEN)
        from memoranda.index.former_addresses import former_rows

        rows = former_rows(self.db, target, searched_project, candidates, self.viewer)
        if len(rows) == 1:
            return LinkTarget(RESOLVED, rows[0])
        return LinkTarget(AMBIGUOUS if rows else UNWRITTEN)

    def _target_in_folder(self, target: str, folder: str, answer: _Answer) -> LinkTarget:
        """Return the note in the link's own folder, if it matches as strictly as the answer did.

        Else return the answer's target. `a/b` in folder `x` is looked for as `x/a/b`.
        """
        inner_folder, _, name = target.rpartition("/")
        target_folder = folder
        if inner_folder:
            target_folder = posixpath.join(folder, inner_folder)
        notes_in_folder = answer.notes_by_folder.get(target_folder, [])
        if not notes_in_folder:
            return answer.target
        # Only the form of the answer and stricter ones: a looser match must not win over it.
        for form in FORMS[: answer.form + 1]:
            matches = self._by_file_name(name, notes_in_folder, form)
            # A title has no folder before it.
            if not matches and not inner_folder:
                matches = _by_title(target, notes_in_folder, form)
            if matches:
                return _target(matches)
        return answer.target

    @staticmethod
    def _by_file_name(name: str, notes: list[Candidate], form: Form) -> list[Candidate]:
        """Return the notes whose file has this name, with or without the extension.

        form: the form in which names are compared.
        """
        address = form.address(name)
        matches = []
        for note in notes:
            file_name = posixpath.basename(note.path)
            if address in (form.address(file_name), form.address(stem(file_name))):
                matches.append(note)
        return matches

    def candidates(self, target: str, folder: str = "") -> list[Candidate]:
        """Return the notes that `target` could mean in any form, if the caller may see them.

        folder: the folder of the link, for a target that begins with `./` or `../`.
        """
        names = self._names_of.get(target)
        # A prefetched target was looked up without a folder.
        if names is None or folder:
            names = self._names(target, folder)
        missing_names = [name for name in names if name not in self._candidates]
        if missing_names:
            self._fetch(missing_names)

        # Several names of the target may lead to the same note.
        notes: dict[Candidate, None] = {}
        for name in names:
            notes.update(dict.fromkeys(self._candidates[name]))
        return list(notes)

    def _names(self, target: str, folder: str) -> list[str]:
        r"""Return the names to look up in the index for a target.

        A target may be a title, a path, a file name, or a path after the name of a project. For
        each of these, the result has the key. A target may also be an id, which the index stores
        as it is. So the last name is the target itself, after a NUL, which no key contains.

        `notes/My Plan` gives `notesmyplan` (a title or path), `myplan` (a file name) and
        `\0notes/My Plan` (an id).
        """
        if target.startswith(("./", "../")):
            path = root_path(target, folder)
            if path is None:
                return []
            return [key(path)]
        keys = {key(target)}
        # Titles of memories are compared up to TITLE_CUT.
        if len(target) > TITLE_CUT:
            keys.add(key(target[:TITLE_CUT]))
        first_segment, slash, path_after_it = target.partition("/")
        if slash:
            # A note whose path ends in the target is found by its file name.
            file_name = target.rpartition("/")[2]
            keys.add(key(file_name))
            if self.is_project(first_segment) or slug(first_segment) in self._projects:
                keys.add(key(path_after_it))
        if target:
            return [*keys, "\0" + target]
        return list(keys)

    def _fetch(self, names: list[str]) -> None:
        """Read the visible notes of lookup names into `_candidates`.

        names: keys and ids. `_names` puts a NUL before an id.
        """
        # A name without any note keeps an empty list, so that it is not looked up again.
        self._candidates |= {name: [] for name in names}
        ids = [name[1:] for name in names if name[:1] == "\0"]
        keys = [name for name in names if name[:1] != "\0"]
        join_project = "join project p on p.id = n.project"
        if keys:
            marks = ", ".join("?" * len(keys))
            sql = (
                f"select f.fold, {_CANDIDATE} from note_fold f"
                f" join note n on n.row = f.note {join_project} where f.fold in ({marks})"
            )
            for fold_of_name, *columns in self.db.execute(sql, keys):
                self._add_candidate(fold_of_name, Candidate(*columns))
        if ids:
            marks = ", ".join("?" * len(ids))
            sql = f"select {_CANDIDATE} from note n {join_project} where n.id in ({marks})"
            for columns in self.db.execute(sql, ids):
                note = Candidate(*columns)
                self._add_candidate("\0" + note.id, note)

    def _add_candidate(self, name: str, note: Candidate) -> None:
        """Keep a note of a lookup name, unless the caller may not see it."""
        if may_see(note.scope, self.viewer):
            self._candidates[name].append(note)


def _target(matches: list[Candidate]) -> LinkTarget:
    """Return where a link leads that matches these notes: only one match resolves it."""
    if len(matches) == 1:
        return LinkTarget(RESOLVED, matches[0].row)
    if matches:
        return LinkTarget(AMBIGUOUS)
    return LinkTarget(UNWRITTEN)


def _exactly_named(target: str, notes: Iterable[Candidate], project: str) -> list[Candidate]:
    """Return the notes outside of a project whose permalink is exactly `target`.

    If no permalink is, return those whose title is.
    """
    exact = FORMS[0]
    other_notes = [note for note in notes if note.project != project]
    return _by_permalink(target, other_notes, exact) or _by_title(target, other_notes, exact)


def _preferred(
    matches: list[Candidate], question: _Question, searched_project: str
) -> list[Candidate]:
    """Return the one memory that a link between memories means. Other links keep all matches.

    So a link between memories is never ambiguous: it means the first memory by `_preference`.
    """
    is_between_memories = searched_project == question.project == CATEGORY_PROJECT
    if not is_between_memories:
        return matches
    return [min(matches, key=lambda note: _preference(note, question.scope))]


def _preference(note: Candidate, scope: str | None) -> tuple[bool, int, str, str]:
    """Return a sort key for memories with one name: memories of `scope` first, then the oldest.

    scope: the scope of the note with the link. None if it does not matter.
    """
    is_other_scope = note.scope != scope
    return is_other_scope, note.created, note.id, note.path


def _by_id_or_path(target: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """Return the notes that a link means in one form by id or path, whatever its folder.

    The first of these that matches decides: id, path, end of a path, path after the project's name
    if it has its extension. Permalinks and titles are not looked at.
    """
    if not notes:
        return []
    # Ids are compared exactly, so only in the strictest form.
    if form.title is as_written:
        by_id = [note for note in notes if note.id == target]
        if by_id:
            return by_id
    path = target.lstrip("/")
    return (
        _by_path(path, notes, form)
        or _by_path_end(path, notes, form)
        or (_by_place(target, notes, form, with_extension=True) if is_file(target) else [])
    )


def _named(name: str, notes: list[Candidate], form: Form, looseness: Looseness) -> list[Candidate]:
    """Return the notes that an identifier means in one form.

    The first of these that matches decides: path, title, permalink, title after the project's name,
    end of a path. Before titles come the place of a file, `work/Tea.md`, and the whole permalink,
    `work/tea`: lists and replies print them, and anybody can give a note such a title or alias.

    looseness: how much the name may differ. Where a note is changed, a path with a folder never
        means the end of a longer path. The `plans/tea` of a note that was deleted is not
        `old/plans/tea.md`.
    """
    path = name.lstrip("/")
    by_path = _by_path(path, notes, form)
    by_file = _by_place(name, notes, form, with_extension=True)
    by_address = _by_whole_permalink(name, notes, form)
    if by_path:
        # In project `notes`, `notes/x` may be a path in a folder `notes` of the project. It may
        # also be the place of another note, `x`, or its permalink. Then it is ambiguous.
        by_exact_address = [note for note in by_address if note.permalink == name]
        return list(dict.fromkeys([*by_path, *by_file, *by_exact_address]))

    may_be_end = looseness is Looseness.SIGNS or not ("/" in path or is_file(path))
    return (
        by_file
        or by_address
        or _by_place(name, notes, form)
        or _by_title(name, notes, form)
        or _by_permalink(name, notes, form)
        or _titled_in_project(name, notes, form)
        or (_by_path_end(path, notes, form) if may_be_end else [])
    )


def _placed(name: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """Return the notes whose file is at the place that a name is, in one form.

    In project `notes`, `notes/x.md` may be the note `x.md`, and a note in a folder `notes`.

    name: the path with its extension, which may follow the project's name. `notes/v1.2` may also
        lack the extension: the file is `v1.2.md` then.
    """
    path = form.address(name.lstrip("/"))
    has_note_extension = is_file(name)
    by_path = [
        note
        for note in notes
        if form.address(note.path) == path
        or (not has_note_extension and form.address(stem(note.path)) == path)
    ]
    by_file = _by_place(name, notes, form, with_extension=has_note_extension)
    return list(dict.fromkeys([*by_path, *by_file]))


def _by_place(
    name: str, notes: list[Candidate], form: Form, *, with_extension: bool = False
) -> list[Candidate]:
    """Return the notes whose path follows their project's name in `name`.

    `work/Tea` and `work/Tea.md` mean the note `Tea.md` of project `Work`.

    form: the form in which paths are compared.
    with_extension: whether the extension must be there: only `work/Tea.md` means the note.
    """
    matches: list[Candidate] = []
    for note in notes:
        inner_path = _without_project(name, note.project)
        if not _by_path(inner_path, [note], form):
            continue
        if not with_extension or form.address(inner_path) == form.address(note.path):
            matches.append(note)
    return matches


def _titled_in_project(name: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """Return the notes whose title follows their project's name in `name`.

    `work/Tea` means the note with the title "Tea" of project `Work`.

    form: the form in which titles are compared.
    """
    return [note for note in notes if _by_title(_without_project(name, note.project), [note], form)]


def _without_project(name: str, project: str) -> str:
    """Return the part of a name after the project: `work/a/b` in project `Work` → `a/b`.

    "" if the name does not begin with the project.
    """
    first_segment, _, path_after_it = name.partition("/")
    if first_segment.casefold() in (project.casefold(), lead(project)):
        return path_after_it
    return ""


def _by_path(path: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """Return the notes at this path, which may lack the extension.

    form: the form in which names are compared.
    """
    address = form.address(path)
    # `/` alone is not a path.
    if not address.strip("/ "):
        return []
    return [
        note
        for note in notes
        if address in (form.address(note.path), form.address(stem(note.path)))
    ]


def _by_path_end(path: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """Return the notes whose path ends in `/path`, with or without the extension.

    `b/c` matches `a/b/c.md` but not `a/xb/c.md`.

    form: the form in which names are compared.
    """
    ending = f"/{form.address(path)}"
    if not ending.strip("/ "):
        return []
    return [
        note
        for note in notes
        if form.address(note.path).endswith(ending)
        or form.address(stem(note.path)).endswith(ending)
    ]


def _by_whole_permalink(name: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """Return the notes with this permalink, which begins with their project: `work/plan`.

    form: the form in which names are compared.
    """
    return [
        note
        for note in notes
        if _without_project(name, note.project)
        and form.address(note.permalink) == form.address(name)
    ]


def _by_permalink(name: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """Return the notes with this permalink. The project may be in front of either, or missing.

    form: the form in which names are compared.
    """
    address = form.address(name)
    if not address:
        return []
    matches = []
    for note in notes:
        permalink = form.address(note.permalink)
        # The project as it is, and as permalinks begin with it.
        projects = {form.address(note.project), lead(note.project)}
        # `plan` for the permalink `work/plan`, and `work/plan` for the permalink `plan`.
        name_lacks_project = any(permalink == f"{project}/{address}" for project in projects)
        name_adds_project = any(address == f"{project}/{permalink}" for project in projects)
        if permalink == address or name_lacks_project or name_adds_project:
            matches.append(note)
    return matches


def _by_title(name: str, notes: list[Candidate], form: Form) -> list[Candidate]:
    """Return the notes with this title or alias.

    Titles of memories are compared up to TITLE_CUT, except in the exact form (contract 001, 4).
    """
    # `form.title` brings a title into the form in which titles are compared.
    title_key = form.title(name)
    if not title_key:
        return []
    cut_title_key = form.title(name.strip()[:TITLE_CUT])
    matches = []
    for note in notes:
        if note.project in MEMORY_PROJECTS and form.looseness is not Looseness.EXACT:
            cut_titles = [title.strip()[:TITLE_CUT] for title in note.titles]
            has_title = cut_title_key in map(form.title, cut_titles)
        else:
            has_title = title_key in map(form.title, note.titles)
        if has_title:
            matches.append(note)
    return matches


def _inside(notes: list[Candidate], project: str) -> list[Candidate]:
    """Return the notes of this project."""
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
    begins_with_project: bool = False,
) -> NoteInfo:
    """Return the note that an identifier names.

    identifier: an address with or without `memory://`, a title, an id, or the first 8 or more
        characters of an id.
    project: the project to look in. None means the default project and the project that the
        identifier begins with, then all others together.
    default_project: the name of the project that is tried first.
    viewer: the agent that asks; None for the owner. Hidden notes are left out.
    looseness: how much the name may differ from the note's name. Unless it is SIGNS, something is
        changed, and the place of a file means nothing else (`is_place`).
    begins_with_project: whether the identifier begins with a project that the caller may use.

    Ids and beginnings of UUIDs come first, because anybody can give a note a name.

    Raises NotFound with suggestions if no note matches, Ambiguous with addresses if several do, and
    the errors of `parse_address`.
    """
    target = sqlite_text(parse_address(identifier))
    search = _Search(Resolver(db, viewer), target, project, default_project, looseness)
    search.begins_with_project = begins_with_project
    matches = search.by_id() or search.by_name()
    if len(matches) == 1:
        return in_order(db, [matches[0].row])[0]
    if matches:
        raise Ambiguous(identifier, search.addresses(matches))

    # Suggest notes that a looser comparison finds, then notes with a similar name.
    search.looseness = Looseness.SIGNS
    loose_matches = search.addresses(search.by_id() or search.by_name())
    similar = _suggestions(db, target, viewer, project)
    suggestions = list(dict.fromkeys([*loose_matches, *similar]))
    raise NotFound(identifier, project or default_project, suggestions[:_MAX_SUGGESTIONS])


class _Search:
    """The search for the note that one identifier means to one caller.

    target: the identifier without `memory://`.
    project: the only project to look in. None means all.
    default_project: the name of the project whose notes come first.
    looseness: how much the name may differ from the note's name.
    begins_with_project: whether `target` begins with a project that the caller may use.
    candidates: the notes that `target` could mean.
    """

    def __init__(
        self,
        resolver: Resolver,
        target: str,
        project: str | None,
        default_project: str,
        looseness: Looseness = Looseness.SIGNS,
    ):
        self.resolver = resolver
        self.target = target
        self.project = project
        self.default_project = default_project
        self.looseness = looseness
        self.begins_with_project = False
        self.candidates = resolver.candidates(target)
        # A reply shows an invisible character as `\u200b`, and its reader may send that back.
        unescaped_target = unescaped(target)
        if unescaped_target != target:
            unescaped_notes = resolver.candidates(unescaped_target)
            self.candidates = list(dict.fromkeys([*self.candidates, *unescaped_notes]))

    @property
    def _is_place_only(self) -> bool:
        """Whether the target is the place of a file, and nothing else may be meant."""
        if self.looseness is Looseness.SIGNS:
            return False
        return is_place(self.target, begins_with_project=self.begins_with_project)

    def by_id(self) -> list[Candidate]:
        """Return the notes with this id, or whose UUID begins with it.

        The id may follow a project: `work/1b4e28ba`. If notes of the default project match, only
        these are returned. A note comes alone if all other matches are copies of it.
        """
        # Somebody may write any id into a file by hand.
        if self._is_place_only:
            return []
        first_segment, _, text_after_it = self.target.partition("/")
        matches = self._with_id(self.target, self.project)
        if not matches:
            matches = self._with_id(text_after_it, first_segment)
        if not matches:
            return []
        original = original_of(matches)
        if original is not None:
            return [original]
        return _inside(matches, self.default_project) or matches

    def _with_id(self, text: str, project: str | None) -> list[Candidate]:
        """Return the notes that have the id `text`, or a UUID that begins with it.

        project: look only in this project. None means all projects.
        """
        if _UUID_BEGIN.fullmatch(text):
            return self._with_beginning(text.lower(), project)
        # A short text is more likely a name.
        if len(text) < _MIN_ID_CHARACTERS:
            return []
        notes = self.candidates
        if project is not None:
            notes = _inside(notes, project)
        return [note for note in notes if note.id == text]

    def by_name(self) -> list[Candidate]:
        """Return the notes with this name, in the strictest form that matches any.

        If no name matches, the address that a note had earlier counts, then the beginning of an id.
        """
        looseness = self.looseness
        for form in FORMS:
            if form.looseness > looseness:
                break
            if form.looseness is Looseness.SIGNS:
                # The beginning of an id says more than a name without its signs
                matches = self._by_beginning()
                if matches:
                    return matches

            # Notes of the default project come before notes of others.
            for notes in self._stages():
                if self._is_place_only:
                    matches = _placed(self.target, notes, form)
                else:
                    matches = _named(self.target, notes, form, looseness)
                if matches:
                    return matches

        # No note has the name now.
        if looseness is not Looseness.EXACT:
            notes_moved = self._by_former_address()
            if notes_moved:
                return notes_moved
        # With SIGNS the beginnings of ids were tried above.
        if looseness is Looseness.SIGNS:
            return []
        return self._by_beginning()

    def _by_former_address(self) -> list[Candidate]:
        """Return the notes that upkeep moved away from this address."""
        # Only an address with a folder is remembered.
        if "/" not in self.target:
            return []
        from memoranda.index.former_addresses import former_rows

        db = self.resolver.db
        searched_project = self.project or self.default_project
        rows = former_rows(db, self.target, searched_project, self.candidates, self.resolver.viewer)
        candidates_by_row = {note.row: note for note in self.candidates}
        notes = []
        for row, info in infos(db, rows).items():
            notes.append(candidates_by_row.get(row) or _candidate(info))
        return notes

    def _stages(self) -> list[list[Candidate]]:
        """Return the candidates in the groups that are tried one after the other.

        First come the notes of the default project and of the project that the target begins with,
        then the notes of other projects, then archived notes. If only one project is searched, its
        notes are the only group.
        """
        if self.project is not None:
            return [_inside(self.candidates, self.project)]
        default = self.default_project.casefold()
        first_segment, slash, _ = self.target.partition("/")
        first_segment = first_segment.casefold()
        preferred_notes: list[Candidate] = []
        other_notes: list[Candidate] = []
        archived_notes: list[Candidate] = []
        for note in self.candidates:
            project = note.project.casefold()
            is_in_named_project = slash and first_segment in (project, lead(note.project))
            if project == default or is_in_named_project:
                preferred_notes.append(note)
            elif note.project == ARCHIVE_PROJECT:
                archived_notes.append(note)
            else:
                other_notes.append(note)
        if self._is_place_only and self.begins_with_project:
            # A folder of another project may be called as this project.
            return [preferred_notes, archived_notes]
        return [preferred_notes, other_notes, archived_notes]

    def _by_beginning(self) -> list[Candidate]:
        """Return the notes whose id begins with the target. The first project that has any decides.

        The projects are tried in the order: default project, the one the target begins with, all.
        """
        if self._is_place_only:
            return []
        first_segment, slash, _ = self.target.partition("/")
        projects: list[str | None] = [self.project]
        if self.project is None:
            projects = [self.default_project]
            if slash:
                projects.append(first_segment)
            # None is all of them together.
            projects.append(None)
        for project in projects:
            matches = self._with_beginning(self.target, project)
            if matches:
                return matches
        return []

    def _with_beginning(self, text: str, project: str | None) -> list[Candidate]:
        """Return the notes that the beginning of an id, or a whole id, names closely enough.

        project: look only in this project. None means all projects.
        """
        matches = _by_prefix(self.resolver.db, text, self.resolver.viewer, project)
        return [note for note in matches if is_named_by_id(text, note.id, self.looseness)]

    def addresses(self, notes: list[Candidate]) -> list[str]:
        """Return an address for each note, for an error. The first addresses name only their note.

        Finding such an address takes a search, so the notes after the first ten get permalinks.
        """
        distinct_addresses = [self._address(note) for note in notes[:_MAX_DISTINCT_ADDRESSES]]
        permalinks = [note.permalink for note in notes[_MAX_DISTINCT_ADDRESSES:]]
        return [*sorted(distinct_addresses), *permalinks]

    def _address(self, note: Candidate) -> str:
        """Return the first of permalink, path and id that names only this note.

        If all of them are ambiguous, return the project and the path.
        """
        names = (note.permalink, note.path, f"{note.project}/{note.path}", note.id)
        for name in names:
            # Nobody could type it.
            if not name.isprintable():
                continue
            search = _Search(
                self.resolver, name, self.project, self.default_project, Looseness.EXACT
            )
            matches = search.by_id() or search.by_name()
            names_only_this_note = [match.row for match in matches] == [note.row]
            if names_only_this_note:
                return name
        return f"{note.project}/{note.path}"


@in_snapshot
def find_id(db: sqlite3.Connection, text: str, *, viewer: str | None) -> NoteInfo:
    """Return the memory with this id.

    Archived memories count, too. The id of a memory that was merged into another one leads to that
    one.

    text: the id, or at least its first four characters.
    viewer: the agent that asks; None for the owner. Hidden notes are left out.

    Raises NotFound if no memory matches, Ambiguous if several do.
    """
    text = sqlite_text(text.strip())
    # Ids are lower case, but a person may have given a memory another id.
    for spelling in dict.fromkeys((text, text.lower())):
        rows = _ids(db, spelling, _MIN_MEMORY_ID_CHARACTERS, viewer, CATEGORY_PROJECT)
        notes = in_order(db, rows)
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
    """Return up to five permalinks of notes with a similar name, the most similar first.

    viewer: the agent that asks; None for the owner.
    project: the only project to look in. None means all.
    """
    # Importing it takes 3 ms, and only errors need it.
    import difflib

    last_name = target.rpartition("/")[2] or target
    target_keys = [key(last_name)]
    rows = _similar_rows(db, target, target_keys[0])
    # A Chinese name may be written in the other kind of characters.
    for form in other_forms(last_name):
        form_key = key(form)
        target_keys.append(form_key)
        rows |= _similar_rows(db, form, form_key)

    likeness_by_permalink: dict[str, float] = {}
    for note in infos(db, rows).values():
        is_inside = project is None or note.project.casefold() == project.casefold()
        if not is_inside or not may_see(note.scope, viewer):
            continue
        # The best likeness of any of its names with any spelling of the target.
        names = (note.title, note.permalink.rpartition("/")[2])
        likeness = max(
            difflib.SequenceMatcher(None, target_key, key(name)).ratio()
            for name, target_key in product(names, target_keys)
        )
        if likeness > _MIN_LIKENESS:
            # Notes of several projects may have one permalink.
            highest = max(likeness, likeness_by_permalink.get(note.permalink, 0.0))
            likeness_by_permalink[note.permalink] = highest

    # The most similar first, equally similar ones in the order of their permalinks.
    permalinks = sorted(likeness_by_permalink)
    permalinks.sort(key=likeness_by_permalink.__getitem__, reverse=True)
    return permalinks[:_MAX_SUGGESTIONS]


def _similar_rows(db: sqlite3.Connection, target: str, target_key: str) -> dict[int, None]:
    """Return the rows of notes whose name begins like `target`, or has one of its words.

    The rows are the keys of the result, in the order in which they were found.

    target_key: the folded form of the last part of `target` (`key`).
    """
    from memoranda.text.tokens import fts_text, words

    rows: dict[int, None] = {}
    # The whole key, two thirds of it, then its first three characters, until enough notes begin so.
    length = len(target_key)
    for beginning_length in dict.fromkeys((length, max(3, length * 2 // 3), 3)):
        beginning = target_key[:beginning_length]
        sql = "select note from note_fold where fold >= ? and fold < ? limit 50"
        for (row,) in db.execute(sql, (beginning, beginning + _LAST_CHARACTER)):
            rows[row] = None
        if len(rows) >= _ENOUGH_SIMILAR_NOTES:
            break

    # Notes with a word that begins with one of the target's words
    target_words = words(target)[:_MAX_SIMILAR_WORDS]
    prefixes = [quoted(fts_text(word).strip()) + "*" for word in target_words]
    if prefixes:
        sql = "select rowid from name_fts where name_fts match ? order by rowid desc limit 50"
        for (row,) in db.execute(sql, (" OR ".join(prefixes),)):
            rows[row] = None
    return rows


def _by_prefix(
    db: sqlite3.Connection, target: str, viewer: str | None, project: str | None
) -> list[Candidate]:
    """Return the notes of `project` with this id, or else the notes whose id begins with it.

    viewer: the agent that asks; None for the owner. Hidden notes are left out.
    project: None means all projects.
    """
    may_be_id = _MIN_ID_CHARACTERS <= len(target) <= _MAX_ID_CHARACTERS and " " not in target
    if not may_be_id:
        return []
    rows = _ids(db, target, _MIN_ID_CHARACTERS, viewer, project)
    return [_candidate(info) for info in in_order(db, rows)]


def _candidate(info: NoteInfo) -> Candidate:
    """Turn a note that was not found by its name into a candidate.

    Aliases and the creation time are left out. They matter only for comparing names.
    """
    return Candidate(
        row=info.row,
        project=info.project,
        path=info.path,
        id=info.id,
        permalink=info.permalink,
        title=info.title,
        aliases=None,
        scope=info.scope,
        created=0,
    )


def _ids(
    db: sqlite3.Connection, text: str, minimum: int, viewer: str | None, project: str | None
) -> list[int]:
    """Return the rows of the visible notes with this id.

    If no note has it, notes whose id begins with `text` count, then notes into which one with this
    id was merged.

    minimum: how many characters `text` needs to be the beginning of an id.
    viewer: the agent that asks; None for the owner. Hidden notes are left out.
    project: None means all projects.
    """
    allowed_projects: Sequence[str] | None = None
    if project == CATEGORY_PROJECT:
        # An archived memory keeps its id.
        allowed_projects = MEMORY_PROJECTS
    elif project is not None:
        allowed_projects = (project.casefold(),)
    # Ids between `text` and `text` equal it. Ids between `text` and `text` with the last character
    # of Unicode behind it begin with it.
    last_ids = [text]
    if len(text) >= minimum:
        last_ids.append(text + _LAST_CHARACTER)
    conditions = (
        "n.id between ? and ?",
        "n.row in (select note from merged where id between ? and ?)",
    )
    # First the id and the ids that begin with it, then the same among the ids of merged notes.
    for condition, last_id in product(conditions, last_ids):
        notes = db.execute(
            "select n.row, n.scope, p.name from note n join project p on p.id = n.project"
            f" where {condition} order by n.permalink limit 1000",
            (text, last_id),
        )
        rows = []
        for row, scope, project_name in notes:
            is_allowed = allowed_projects is None or project_name.casefold() in allowed_projects
            if is_allowed and may_see(scope, viewer):
                rows.append(row)
        if rows:
            return rows
    return []
