"""The only module that knows the names of a home's folders and files (docs/format.md), and those
that are the same on every machine where its notes are in a database: configuration, tokens, ... For
a home in a folder that does nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from memoranda.note.model import ARCHIVE_PROJECT, BUILT_IN_PROJECTS, TRACE_PROJECT
from memoranda.sources.base import sha256
from memoranda.state_place import PRIVATE as PRIVATE
from memoranda.state_place import state_of

TEMP_PREFIX = ".tmp-"
NOTE_SUFFIXES = (".md", ".markdown")
DRAWING_SUFFIX = ".excalidraw.md"
"""The end of the names of Excalidraw's drawings in Obsidian: Markdown around compressed data, no
note."""
# Packages of Node.js carry thousands of READMEs, which are nobody's notes.
SKIPPED_FOLDERS = frozenset({"node_modules"})


class Layout:
    """Where everything is in the home `root` (an absolute folder)."""

    def __init__(self, root: Path):
        self.root = root
        self.private = state_of(root)
        self.config = root / "config.yaml"
        self.overview = root / "memory.md"
        self.pending = root / "pending.md"
        self.socket = root / "memory.sock"
        self.daemon_lock = root / ".daemon.lock"
        self.daemon_log = self.private / "daemon.log"
        self.index = self.private / "index.db"
        self.vectors = self.private / "vectors"
        self.lock = self.private / "lock"
        self.ledger = self.private / "ledger.db"
        self.texts = self.private / "texts"
        self.erasing = self.private / "erasing"
        self.edits = self.private / "edits"
        self.replica = self.private / "replica.json"
        self.incoming = self.private / "incoming"
        self.cold_start = self.private / "cold-start"
        self.erased = self.private / "erased"
        self.dream_report = self.private / "dream-report.json"
        self.sessions = self.private / "sessions"
        self.asked = self.private / "asked"
        self.install = self.private / "install"
        self.citations = self.private / "citations.json"
        self.transcripts = self.private / "transcripts.db"
        self.review = self.private / "review.json"
        self.requests = self.private / "requests.json"
        self.paused = self.private / "paused.json"
        self.served = self.private / "served.log"
        self.access = self.private / "access.json"
        self.access_lock = self.private / "access.lock"
        self.http = self.private / "http"
        self.spaces = root / "spaces"
        self.access_log = self.private / "access.log"
        names = (*BUILT_IN_PROJECTS, ARCHIVE_PROJECT, TRACE_PROJECT)
        self.built_in: Mapping[str, Path] = {name: root / name.removeprefix(".") for name in names}
        """Every built-in project with its folder, the archive and the traces of sessions."""

    @property
    def is_apart(self) -> bool:
        """Whether the private folder is outside the home."""
        return self.private != self.root / PRIVATE

    def place(self, name: str) -> Path:
        """The path of a file that people know by this name in the home."""
        if name == PRIVATE or name.startswith(f"{PRIVATE}/"):
            return self.private / name[len(PRIVATE) + 1 :]
        return self.root / name

    def has_former_files(self) -> bool:
        """Whether there are files of the earlier version that the ledger must take over."""
        places = (
            self.access_log,
            self.review,
            self.requests,
            self.sessions,
            self.served,
            self.paused,
        )
        return any(path.exists() for path in places)

    def pending_of(self, agent: str) -> Path:
        """The list of the reminders of one agent; `agent` is a valid name."""
        return self.pending.with_name(f"pending.{agent}.md")

    def pending_lists(self) -> list[Path]:
        """The files there are that have the name of a list of reminders."""
        return [*self.root.glob("pending.md"), *self.root.glob("pending.*.md")]

    def index_for(self, extra: Mapping[str, str], only: Collection[str] = ()) -> Path:
        """The index file. Each set of extra projects (name -> folder), or of `only` some, has a
        separate one.
        """
        if not extra and not only:
            return self.index
        digest = sha256(
            "\0".join([f"{name}\0{extra[name]}" for name in sorted(extra)] + sorted(only)).encode()
        )
        return self.index.with_name(f"index-{digest[:12]}.db")

    def indexes(self) -> list[Path]:
        """All existing index files, even of other processes."""
        return sorted(self.private.glob("index*.db"))


class SharedSource(Protocol):
    """Where shared files come from: see `follow_shared`, `changing_shared`."""

    space: str

    def follow(self) -> None: ...

    def changing(self, path: Path) -> AbstractContextManager[None]: ...


# By the root of the home, for this process.
_SOURCES: dict[Path, SharedSource] = {}


def share(root: Path, source: SharedSource) -> None:
    """Take the files of the home at `root` from `source` from now on."""
    _SOURCES[root] = source


def shared_space(root: Path) -> str | None:
    """The space of the database that has the files at `root`. None for a home in a folder."""
    source = _SOURCES.get(root)
    if source is None:
        return None
    return source.space


def follow_shared(root: Path) -> None:
    """Have the files at `root` as they are now; as they were if the database cannot be asked."""
    source = _SOURCES.get(root)
    if source is not None:
        source.follow()


@contextmanager
def changing_shared(root: Path, path: Path) -> Iterator[None]:
    """A context for changing the file at `path`, which all machines of a home share.

    Inside, no other machine changes it. At its end, all machines have the new file. Raises
    DatabaseAway, DatabaseRefused; then the file is as before.
    """
    source = _SOURCES.get(root)
    if source is None:
        yield
    else:
        with source.changing(path):
            yield
