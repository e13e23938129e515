"""Check the code that notes cite, and say whether it changed since: `app/main.go:10 is gone`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.citations.code import (
    Expectation,
    Repository,
    State,
    Verdict,
    as_row,
    compared,
    expectation_of,
    is_of,
    of_row,
    read_text,
    same_if,
    stamp_of,
)
from memoranda.note.citations import Citation, citations
from memoranda.sources.files import put_derived
from memoranda.sources.layout import Layout
from memoranda.text.user_path import user_folder

if TYPE_CHECKING:
    from memoranda.engine.read_session import ReadSession
    from memoranda.index.rows import NoteInfo

# The version of the form of the cache file.
_VERSION = 1
# The number of rows of the cache. The oldest go first.
_MOST_ROWS = 20_000
# Header keys of a note that may name the folder of its repository.
_REPO_KEYS = ("repo", "repository", "root")
_UNNAMED = "a file whose name may hold instructions"


class CitedNote(NamedTuple):
    """A note, a place in code that it cites, and the result of the check.

    info: the note.
    citation: the place that it cites.
    root: the folder in which the cited path was found.
    verdict: whether the place is still as it was.
    is_named: whether the names of the files may be shown. A file may have a name that gives orders
        to its reader.
    """

    info: NoteInfo
    citation: Citation
    root: str
    verdict: Verdict
    is_named: bool = True

    @property
    def is_stale(self) -> bool:
        """Whether the cited code changed or is gone, so that the note may no longer be true."""
        return self.verdict.state in (State.CHANGED, State.GONE)

    def sentence(self) -> str:
        """Say the state of the cited code in words: `app/main.go:10 changed since`."""
        state = self.verdict.state
        place = str(self.citation)
        new_place = self.verdict.now
        if not self.is_named:
            place = _UNNAMED
            new_place = ""
        if state is State.GONE:
            return f"{place} is gone"
        if state is State.CHANGED:
            if new_place:
                return f"{place} changed since, now in {new_place}"
            return f"{place} changed since"
        if state is State.MOVED:
            if new_place:
                return f"{place} is now {new_place}"
            return f"{place} was renamed"
        return f"{place} is as it was"


class CitationCheck:
    """Check citations of notes against folders of code.

    Git's answers are kept in a file of the home, which may be deleted.

    memory: the memory whose notes are checked.
    folders: folders with code, in which relative paths of citations are looked up.
    """

    def __init__(self, memory: ReadSession, folders: Iterable[str | Path] = ()):
        self._memory = memory
        self._folders = [Path(folder) for folder in folders]
        # The repository that each folder is in. None: it is in no repository.
        self._repositories: dict[Path, Repository | None] = {}
        self._path = Layout(memory.home).citations
        # The rows of the cache file, by root, citation and time.
        self._rows = self._load()
        self._has_new_rows = False
        # The stamp and text of each file that was read, by path.
        self._files: dict[str, tuple[str, str | None]] = {}

    def _load(self) -> dict[str, Any]:
        """Read the rows of the cache file. Empty if it is missing, damaged or of another version."""
        try:
            content = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            return {}
        rows = content.get("rows")
        return rows if isinstance(rows, dict) else {}

    def save(self) -> None:
        """Store git's answers for the next check."""
        if not self._has_new_rows or self._memory.only_reads:
            return
        # A dict keeps the order, so the first rows are the oldest.
        rows = dict(list(self._rows.items())[-_MOST_ROWS:])
        with suppress(OSError):
            put_derived(self._path, json.dumps({"version": _VERSION, "rows": rows}).encode())

    def notes(self, infos: Iterable[NoteInfo], texts: Iterable[str]) -> Iterator[CitedNote]:
        """Yield the result for each place in code that these notes cite.

        Places whose state cannot be known are left out.

        texts: the text of each note.
        """
        for info, text in zip(infos, texts, strict=True):
            for citation in citations(info.header, text):
                result = self._check_citation(info, citation)
                if result is not None:
                    yield result

    def stale(self, info: NoteInfo, text: str) -> str:
        """Return a remark on a note whose cited code changed or is gone. "" for other notes.

        text: the text of the note.
        """
        cited_places = self.notes([info], [text])
        return "; ".join(place.sentence() for place in cited_places if place.is_stale)

    def _check_citation(self, info: NoteInfo, citation: Citation) -> CitedNote | None:
        """Check a citation in the first folder where the cited code may be. None if it is not
        found.
        """
        for root, path in self._places(info, citation):
            verdict = self._verdict(root, path, citation, info.updated or info.changed)
            if verdict.state is not State.UNKNOWN:
                is_named = verdict.state is State.SAME or self._may_name(citation, verdict)
                return CitedNote(info, citation, str(root), verdict, is_named)
        return None

    def _may_name(self, citation: Citation, verdict: Verdict) -> bool:
        """Whether the names of these files may be shown: none seems to give orders to its reader.

        citation: the place as the note names it.
        verdict: the result, which may name the present place.
        """
        rules = self._memory.rules_for_reading()
        places = (str(citation), verdict.now)
        return not any(rules.name_suspicions(place) for place in places)

    def _places(self, info: NoteInfo, citation: Citation) -> Iterator[tuple[Path, str]]:
        """Yield each folder that a citation may mean, with the path in this folder."""
        if citation.path.startswith(("/", "~/")):
            place = Path(citation.path).expanduser()
            root = self._root(place.parent)
            yield root, str(place.relative_to(root))
            return
        names = [info.header.get(key) for key in _REPO_KEYS]
        folders = [Path(name).expanduser() for name in names if isinstance(name, str)]
        # A relative folder would depend on where the program was started.
        folders = [folder for folder in folders if folder.is_absolute()]
        for folder in dict.fromkeys([*folders, *self._folders, *self._project_folders(info)]):
            yield self._root(folder), citation.path

    def _root(self, folder: Path) -> Path:
        """Return the root of the repository that a folder is in, or else the folder itself."""
        repository = self._repository(folder)
        return folder if repository is None else repository.root

    def _project_folders(self, info: NoteInfo) -> Iterator[Path]:
        """Yield the folder of the note's project, if it is outside the home."""
        for project in self._memory.projects:
            if project.name == info.project and not project.built_in:
                yield Path(project.root)

    def _repository(self, folder: Path) -> Repository | None:
        """Return the repository that a folder is in. None if it is in no repository of code."""
        if folder not in self._repositories:
            self._repositories[folder] = self._repository_of(folder)
        return self._repositories[folder]

    def _repository_of(self, folder: Path) -> Repository | None:
        """Find the repository that a folder is in. None if it is in no repository of code."""
        repository = Repository.of(folder)
        # A home folder kept in git holds settings, not the code that notes cite.
        if repository is None or repository.root == user_folder():
            return None
        # All folders of a repository share git's answers.
        for known_repository in self._repositories.values():
            if known_repository is not None and known_repository.root == repository.root:
                return known_repository
        return repository

    def _verdict(self, root: Path, path: str, citation: Citation, moment: str) -> Verdict:
        """Return the state of a citation, from the cache if nothing has changed since.

        root: the folder in which the citation is looked for.
        path: the path of the cited file in this folder.
        citation: the place as the note names it.
        moment: when the note was written, as a stamp.

        A row of the cache has these keys:

        then: the cited place as it was when the note was written. Git finds it slowly. It never
            changes, so it is computed once.
        stamp: the stamp of the file at the last check. "" if the file was missing.
        head: the commit at the last check, if the file was missing. Otherwise "".
        state, now: the verdict of the last check.
        """
        file = root / path
        # A hash of the cited lines is compared with the file alone: no git, and so no cache.
        if citation.sha256:
            return self._by_hash(file, citation)
        stamp = stamp_of(file)
        head = ""
        if not stamp:
            # A commit may have renamed the missing file. So the next commit needs a new check.
            head = self._head(root)

        # The value of `then` depends on the commit that the citation names, or else on the time.
        key = "\0".join((str(root), str(citation), citation.commit or moment))
        row = self._rows.get(key)
        # If nothing has changed since the last check, its verdict is still right.
        if row is not None and row["stamp"] == stamp and row["head"] == head:
            return Verdict(State(row["state"]), row["now"])

        if row is None:
            row = {"then": as_row(self._past_place(root, path, citation, moment))}
        verdict = self._state_of(root, path, citation, moment, of_row(row["then"]))
        row |= {"stamp": stamp, "head": head, "state": verdict.state.value, "now": verdict.now}
        self._rows[key] = row
        self._has_new_rows = True
        return verdict

    def _head(self, root: Path) -> str:
        """Return the present commit of the repository at `root`. "" if there is no repository."""
        repository = self._repository(root)
        return "" if repository is None else repository.head()

    def _past_place(
        self, root: Path, path: str, citation: Citation, moment: str
    ) -> Expectation | None:
        """Return the cited place as it was when the note was written. None if nobody knows.

        root: the folder in which the citation is looked for.
        path: the path of the cited file in this folder.
        citation: the place as the note names it.
        moment: when the note was written, as a stamp.
        """
        repository = self._repository(root)
        if repository is None:
            return None
        return expectation_of(repository, citation, path, moment)

    def _by_hash(self, file: Path, citation: Citation) -> Verdict:
        """Return the state of a citation that has a hash of the cited lines. It needs no git."""
        text = read_text(file)
        if text is None:
            return Verdict(State.GONE)
        return Verdict(same_if(is_of(citation, text)))

    def _state_of(
        self,
        root: Path,
        path: str,
        citation: Citation,
        moment: str,
        past_place: Expectation | None,
    ) -> Verdict:
        """Return the state of a citation whose file changed, or was never checked.

        root: the folder in which the citation is looked for.
        path: the path of the cited file in this folder.
        citation: the place as the note names it.
        moment: when the note was written, as a stamp.
        past_place: the cited place as it was when the note was written. None if nobody knows.
        """
        text = self._text(root / path)
        repository = self._repository(root)
        is_missing = text is None
        # An earlier check may know the past place from a repository that is gone by now, with the
        # file. Then nobody can say whether the file was renamed.
        is_unknown = past_place is None or (is_missing and repository is None)
        if is_unknown:
            # Words in a text may look like a citation by chance. Only in the header, a missing file
            # is surely a cited one.
            if is_missing and citation.is_declared:
                return Verdict(State.GONE)
            return Verdict(State.UNKNOWN)
        assert past_place is not None
        if text is not None:
            return compared(past_place, text, citation)

        # The file is missing, so it may have been renamed.
        assert repository is not None
        commit = repository.commit(citation.commit, moment)
        new_path = repository.name_now(commit, path)
        return self._state_after_rename(root, new_path, citation, past_place)

    def _state_after_rename(
        self, root: Path, new_path: str, citation: Citation, past_place: Expectation
    ) -> Verdict:
        """Return the state of a citation whose file has another name now.

        root: the folder in which the citation is looked for.
        new_path: the present path of the file in this folder. "" if the file is gone.
        citation: the place as the note names it.
        past_place: the cited place as it was when the note was written.
        """
        new_text = self._text(root / new_path) if new_path else None
        if new_text is None:
            return Verdict(State.GONE)
        new_citation = citation._replace(path=new_path)
        verdict = compared(past_place, new_text, new_citation)
        if verdict.state is State.CHANGED:
            return Verdict(State.CHANGED, new_path)
        # The cited code is the same, in a file with another name. `verdict.now` is set if the lines
        # also moved within the file.
        return Verdict(State.MOVED, verdict.now or str(new_citation))

    def _text(self, file: Path) -> str | None:
        """Return the text of a file, cached until the file changes. None if it cannot be read."""
        stamp = stamp_of(file)
        cached = self._files.get(str(file))
        if cached is None or cached[0] != stamp:
            cached = (stamp, read_text(file))
            self._files[str(file)] = cached
        return cached[1]
