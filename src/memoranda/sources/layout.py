"""Knows the names of a home's folders and files (docs/format.md). No other module does.

If the notes of a home are in a database, some files are shared by all machines: configuration,
tokens and others. `follow_shared` and `changing_shared` keep them equal. For a home that is only a
folder, these functions do nothing.
"""

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
"""The end of the names of Excalidraw's drawings in Obsidian. They are Markdown around compressed
data, and not notes."""
# Packages of Node.js carry thousands of READMEs, which are nobody's notes.
SKIPPED_FOLDERS = frozenset({"node_modules"})


class Layout:
    """The paths of everything in the home `root` (an absolute folder).

    private: the folder for the ledger, the index and other files that are not for people.
    """

    def __init__(self, root: Path):
        self.root = root
        self.private = state_of(root)

        # Files for people.
        self.config = root / "config.yaml"
        self.overview = root / "memory.md"
        self.pending = root / "pending.md"

        # The daemon, and the server for HTTP.
        self.socket = root / "memory.sock"
        self.daemon_lock = root / ".daemon.lock"
        self.daemon_log = self.private / "daemon.log"
        self.http = self.private / "http"
        self.spaces = root / "spaces"
        self.access = self.private / "access.json"

        # The ledger.
        self.lock = self.private / "lock"
        self.ledger = self.private / "ledger.db"
        self.texts = self.private / "texts"
        self.edits = self.private / "edits"
        self.erasing = self.private / "erasing"
        self.erased = self.private / "erased"

        # The state of a copy of a space of a database.
        self.replica = self.private / "replica.json"
        self.incoming = self.private / "incoming"
        self.cold_start = self.private / "cold-start"

        # Files that can be made again from the notes and the files of other programs.
        self.index = self.private / "index.db"
        self.vectors = self.private / "vectors"
        self.citations = self.private / "citations.json"
        self.transcripts = self.private / "transcripts.db"

        # The requests that hooks put aside, the last dream, and the edited files of clients.
        self.asked = self.private / "asked"
        self.dream_report = self.private / "dream-report.json"
        self.install = self.private / "install"

        # Files of earlier versions. What they had is in the ledger now.
        self.sessions = self.private / "sessions"
        self.review = self.private / "review.json"
        self.requests = self.private / "requests.json"
        self.paused = self.private / "paused.json"
        self.served = self.private / "served.log"
        self.access_log = self.private / "access.log"
        self.access_lock = self.private / "access.lock"

        names = (*BUILT_IN_PROJECTS, ARCHIVE_PROJECT, TRACE_PROJECT)
        self.built_in: Mapping[str, Path] = {name: root / name.removeprefix(".") for name in names}
        """Name -> folder of the built-in projects, the archive and the traces of sessions."""

    @property
    def is_apart(self) -> bool:
        """Whether the private folder is outside the home."""
        return self.private != self.root / PRIVATE

    def place(self, name: str) -> Path:
        """Return the path of a file from its name in the home, such as `.memoranda/index.db`.

        The private folder may be elsewhere.
        """
        if name == PRIVATE or name.startswith(f"{PRIVATE}/"):
            return self.private / name[len(PRIVATE) + 1 :]
        return self.root / name

    def has_former_files(self) -> bool:
        """Whether an earlier version left files whose contents belong into the ledger."""
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
        """Return the file with the reminders of one agent; `agent` is a valid name."""
        return self.pending.with_name(f"pending.{agent}.md")

    def pending_lists(self) -> list[Path]:
        """Return the files named as lists of reminders: `pending.md`, `pending.NAME.md`."""
        return [*self.root.glob("pending.md"), *self.root.glob("pending.*.md")]

    def index_for(self, extra: Mapping[str, str], only: Collection[str] = ()) -> Path:
        """Return the index file of a process that sees these projects.

        extra: further projects, name -> folder.
        only: the names of the only projects that it sees. Empty for all.

        Each combination has a separate file, such as `index-9f86d081884c.db`.
        """
        if not extra and not only:
            return self.index
        extra_names = [f"{name}\0{extra[name]}" for name in sorted(extra)]
        digest = sha256("\0".join([*extra_names, *sorted(only)]).encode())
        return self.index.with_name(f"index-{digest[:12]}.db")

    def indexes(self) -> list[Path]:
        """Return all existing index files, also of other processes."""
        return sorted(self.private.glob("index*.db"))


class SharedSource(Protocol):
    """The database that has the shared files of a home, such as its `config.yaml`.

    The homes on all machines that use one space of a database have the same shared files.
    """

    space: str

    def follow(self) -> None: ...

    def changing(self, path: Path) -> AbstractContextManager[None]: ...


# Root of a home -> the database that has its shared files, in this process.
_SOURCES: dict[Path, SharedSource] = {}


def share(root: Path, source: SharedSource) -> None:
    """Have the shared files of the home at `root` come from `source` from now on."""
    _SOURCES[root] = source


def shared_space(root: Path) -> str | None:
    """Return the space of the database that has the shared files of the home at `root`.

    None for a home that is only a folder.
    """
    source = _SOURCES.get(root)
    if source is None:
        return None
    return source.space


def follow_shared(root: Path) -> None:
    """Bring the shared files of the home at `root` up to date, if the database can be reached."""
    source = _SOURCES.get(root)
    if source is not None:
        source.follow()


@contextmanager
def changing_shared(root: Path, path: Path) -> Iterator[None]:
    """Keep other machines from changing a shared file, until the end of the block.

    At the end, the new file at `path` is sent to the database, where all machines get it. Raises
    DatabaseAway, DatabaseRefused; then the file is as before.
    """
    source = _SOURCES.get(root)
    if source is None:
        yield
    else:
        with source.changing(path):
            yield
