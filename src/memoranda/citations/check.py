"""Says of notes what became of the code they cite."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.citations.code import (
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
    from memoranda.engine import MemorySession
    from memoranda.index.rows import NoteInfo

# Raised when what is cached changes its form.
_VERSION = 1
# Rows of the cache; the oldest go first.
_MOST_KEPT = 20_000
_REPO_KEYS = ("repo", "repository", "root")


class CitedNote(NamedTuple):
    """A note, a place in code that it cites, and the result of the check."""

    info: NoteInfo
    citation: Citation
    root: str
    verdict: Verdict

    @property
    def is_stale(self) -> bool:
        """Whether what the note says may no longer hold."""
        return self.verdict.state in (State.CHANGED, State.GONE)

    def sentence(self) -> str:
        """The state of the cited code, in words."""
        state = self.verdict.state
        if state is State.GONE:
            return f"{self.citation} is gone"
        if state is State.CHANGED:
            if self.verdict.now:
                return f"{self.citation} changed since, now in {self.verdict.now}"
            return f"{self.citation} changed since"
        if state is State.MOVED:
            return f"{self.citation} is now {self.verdict.now}"
        return f"{self.citation} is as it was"


class CitationCheck:
    """Checks citations of notes against folders of code. What git said is kept in a file of the
    home, which may be deleted.
    """

    def __init__(self, memory: MemorySession, folders: Iterable[str | Path] = ()):
        self._memory = memory
        self._folders = [Path(folder) for folder in folders]
        self._repositories: dict[Path, Repository | None] = {}
        self._path = Layout(memory.home).citations
        self._known = self._load()
        self._has_news = False
        self._files: dict[str, tuple[str, str | None]] = {}

    def _load(self) -> dict[str, Any]:
        try:
            result = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(result, dict) or result.get("version") != _VERSION:
            return {}
        rows = result.get("rows")
        if not isinstance(rows, dict):
            return {}
        return rows

    def save(self) -> None:
        """Keep what git said for the next look."""
        if not self._has_news or self._memory.only_reads:
            return
        # The oldest entries go first: a dict keeps the order.
        rows = dict(list(self._known.items())[-_MOST_KEPT:])
        with suppress(OSError):
            put_derived(self._path, json.dumps({"version": _VERSION, "rows": rows}).encode())

    def notes(self, infos: Iterable[NoteInfo], texts: Iterable[str]) -> Iterator[CitedNote]:
        """Check the places in code that these notes cite. Places that are not known are left out."""
        for info, text in zip(infos, texts, strict=True):
            for citation in citations(info.header, text):
                result = self._check_citation(info, citation)
                if result is not None:
                    yield result

    def stale(self, info: NoteInfo, text: str) -> str:
        """The remark to a note whose cited code changed or went; "" for any other."""
        return "; ".join(item.sentence() for item in self.notes([info], [text]) if item.is_stale)

    def _check_citation(self, info: NoteInfo, citation: Citation) -> CitedNote | None:
        for root, path in self._places(info, citation):
            verdict = self._verdict(root, path, citation, info.updated or info.changed)
            if verdict.state is not State.UNKNOWN:
                return CitedNote(info, citation, str(root), verdict)
        return None

    def _places(self, info: NoteInfo, citation: Citation) -> Iterator[tuple[Path, str]]:
        """The folders in which a citation may be meant, each with the path in it."""
        if citation.path.startswith(("/", "~/")):
            place = Path(citation.path).expanduser()
            root = self._root(place.parent)
            yield root, str(place.relative_to(root))
            return
        names = [info.header.get(key) for key in _REPO_KEYS]
        folders = [Path(name).expanduser() for name in names if isinstance(name, str)]
        # A relative folder would depend on where the program was started.
        folders = [folder for folder in folders if folder.is_absolute()]
        for folder in dict.fromkeys([*folders, *self._folders, *self._own(info)]):
            yield self._root(folder), citation.path

    def _root(self, folder: Path) -> Path:
        """The root of the repository that a folder is in, or the folder itself outside a
        repository.
        """
        repository = self._repository(folder)
        if repository is None:
            return folder
        return repository.root

    def _own(self, info: NoteInfo) -> Iterator[Path]:
        """The repository in which the note itself is."""
        for project in self._memory.projects:
            if project.name == info.project and not project.built_in:
                yield Path(project.root)

    def _repository(self, folder: Path) -> Repository | None:
        if folder not in self._repositories:
            result = Repository.of(folder)
            # A home folder kept in git holds settings, not the code that notes cite.
            if result is not None and result.root == user_folder():
                result = None
            # All folders of a repository share git's answers.
            for repository in filter(None, self._repositories.values()):
                if result is not None and repository.root == result.root:
                    result = repository
            self._repositories[folder] = result
        return self._repositories[folder]

    def _verdict(self, root: Path, path: str, citation: Citation, moment: str) -> Verdict:
        file = root / path
        if citation.sha256:
            return self._by_hash(file, citation)
        key = "\0".join((str(root), str(citation), citation.commit or moment))
        row = self._known.get(key)
        stamp = stamp_of(file)
        repository = self._repository(root)
        # A file that is there is known by its stamp. One that is not may have been renamed.
        head = ""
        if not stamp and repository is not None:
            head = repository.head()
        # Neither the file nor the history has changed since the last look.
        if row is not None and row["stamp"] == stamp and row["head"] == head:
            return Verdict(State(row["state"]), row["now"])
        if row is None:
            past_place = None
            if repository is not None:
                past_place = expectation_of(repository, citation, path, moment)
            row = {"then": as_row(past_place)}
        verdict = self._state_of(root, path, citation, moment, row)
        row |= {"stamp": stamp, "head": head, "state": verdict.state.value, "now": verdict.now}
        self._known[key] = row
        self._has_news = True
        return verdict

    def _by_hash(self, file: Path, citation: Citation) -> Verdict:
        text = read_text(file)
        if text is None:
            return Verdict(State.GONE)
        return Verdict(same_if(is_of(citation, text)))

    def _state_of(
        self, root: Path, path: str, citation: Citation, moment: str, row: dict[str, Any]
    ) -> Verdict:
        """The state of a citation whose file changed, or was never looked at."""
        past_place = of_row(row["then"])
        text = self._text(root / path)
        if past_place is None:
            # Nobody knows what it was. Only a citation in the header is sure to be one.
            if text is None and citation.is_declared:
                return Verdict(State.GONE)
            return Verdict(State.UNKNOWN)
        if text is not None:
            return compared(past_place, text, citation)
        repository = self._repository(root)
        assert repository is not None
        new = repository.name_now(repository.commit(citation.commit, moment), path)
        if not new:
            return Verdict(State.GONE)
        moved = self._text(root / new)
        if moved is None:
            return Verdict(State.GONE)
        verdict = compared(past_place, moved, citation._replace(path=new))
        if verdict.state is State.CHANGED:
            return Verdict(State.CHANGED, new)
        return Verdict(State.MOVED, verdict.now or str(citation._replace(path=new)))

    def _text(self, file: Path) -> str | None:
        """The text of a file, cached until the file changes. None if it cannot be read."""
        stamp = stamp_of(file)
        cached = self._files.get(str(file))
        if cached is None or cached[0] != stamp:
            cached = (stamp, read_text(file))
            self._files[str(file)] = cached
        return cached[1]
