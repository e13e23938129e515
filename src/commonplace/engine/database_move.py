"""Moving a home in a folder into a space of a PostgreSQL database, with its history."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from commonplace import config, config_text
from commonplace.engine.contents import OWN, Contents, is_kept_name
from commonplace.engine.exchange import batches
from commonplace.engine.transaction import HomeSession
from commonplace.errors import CommonplaceError, ConfigError, StorageError
from commonplace.store.base import Values, sha256
from commonplace.store.files import read_file, stamp_of
from commonplace.store.journal import Change
from commonplace.store.layout import PRIVATE
from commonplace.store.path_guard import clean
from commonplace.store.postgres.new_space import Key, NewSpace
from commonplace.store.postgres.space_rows import FileRow

T = TypeVar("T")
_ROWS, _BYTES = 500, 8 << 20


@dataclass(slots=True)
class IntoDatabase:
    """Moves `session`'s home, the owner's, to the database at `address`.

    After `run`: `digests` are the SHA-256 of the files by their name in a copy, as the server has them too, `size`
    their bytes together; so many `texts` of the history, and `changes`. `left` is what a database does not take,
    `outside` projects whose notes do not lie in the home.
    """

    session: HomeSession
    address: str
    digests: dict[str, str] = field(default_factory=dict)
    size: int = 0
    texts: int = 0
    changes: int = 0
    left: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    _seen: dict[Key, tuple[Values, str, str]] = field(default_factory=dict)

    def run(self, *, dry_run: bool, progress: Callable[[int, int], None] | None) -> None:
        """Move, or go on. Raises InvalidInput for a space with notes, DatabaseAway, DatabaseRefused, StorageError."""
        target = config.load(self.address, unread=True)
        if target.url is None:
            raise ConfigError("the address of a database begins with postgresql://")
        space = NewSpace(target.url, target.space, str(self.session.engine.layout.root))
        try:
            space.check_free()
            places = self._places()
            if dry_run:
                for _, (name, place) in places.items():
                    if stat.S_ISREG((status := os.lstat(place)).st_mode):
                        self.digests[name] = ""
                        self.size += status.st_size
                self.texts = sum(len(files) for _, _, files in os.walk(self.session.engine.layout.objects))
                self.changes = len(self._lines())
                return
            space.begin()
            self._fill(space, places, progress)
            with self.session.exclusive():
                self._fill(space, self._places(), None)
                self._check(space)
                access = self.session.engine.access
                counts, last = access.counts(), self.session.engine.home.history.last
                space.finish(last, counts, access.used(), self._shared())
        finally:
            space.close()

    def _places(self) -> dict[Key, tuple[str, str]]:
        """(project, path) of every file, folder and link → its name in a copy, and where it lies."""
        engine, contents = self.session.engine, Contents(self.session)
        self.left, self.outside, found = [], [], dict[Key, tuple[str, str]]()
        inside = f"{os.path.realpath(engine.layout.root)}/"
        for name, store in engine.stores.items():
            if store.holds_entities or not f"{os.path.realpath(store.root)}/".startswith(inside):
                self.outside.append(name)
                continue
            for path in self._below(name, store.root):
                found[name, path] = f"{contents.folder(name)}/{path}", f"{store.root}/{path}"
        for place in (engine.layout.review, engine.layout.requests):
            if place.exists():
                found[PRIVATE, place.name] = f"{PRIVATE}/{place.name}", str(place)
        return found

    def _below(self, project: str, root: str) -> Iterator[str]:
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                entries = sorted(os.scandir(os.path.join(root, folder)), key=lambda each: each.name)
            except FileNotFoundError:
                continue
            for each in entries:
                path = f"{folder}/{each.name}" if folder else each.name
                is_kept = is_kept_name(project, each.name)
                with suppress(CommonplaceError):
                    is_kept = is_kept and clean(path, project, hidden=True) == path
                    if is_kept and (each.is_symlink() or each.is_file() or each.is_dir()):
                        yield path
                        waiting += [path] if each.is_dir(follow_symlinks=False) else []
                        continue
                self.left.append(f"{project}/{path}")

    def _fill(
        self, space: NewSpace, places: dict[Key, tuple[str, str]], progress: Callable[[int, int], None] | None
    ) -> None:
        """Make the database hold what is here: files, then the history."""
        there = space.files()
        space.remove_files([key for key in there if key not in places])
        self._seen = {key: seen for key, seen in self._seen.items() if key in places}
        done = 0
        for batch in batches(self._rows(places, there), _ROWS, lambda row: len(row.body or b""), _BYTES):
            space.put_files([row for row in batch if row.kind])
            done += len(batch)
            if progress is not None:
                progress(done, len(places))

        lines, known_lines = self._lines(), space.lines()
        space.remove_lines([number for number in known_lines if number not in lines])
        for part in _parts([row for number, row in lines.items() if known_lines.get(number) != sha256(row[1])]):
            space.put_lines(part)
        here = {name: os.path.join(place, name) for place, _, names in os.walk(self.session.engine.layout.objects)
                for name in names}  # fmt: skip
        known = space.texts()
        space.remove_texts(known - here.keys())
        for names in _parts(sorted(here.keys() - known)):
            texts = [(name, read_file(here[name])) for name in names]
            if damaged := next((name for name, file in texts if file.etag != name), None):
                raise StorageError(f"the older text {damaged[:12]}", "it is damaged; see memory doctor")
            space.put_texts((name, file.data) for name, file in texts)
        self.texts, self.changes = len(here), len(lines)

    def _rows(
        self, places: dict[Key, tuple[str, str]], there: dict[Key, tuple[str, str | None, int | None]]
    ) -> Iterator[FileRow]:
        """A row for each place; of kind "" for one that is in the database already."""
        for (project, path), (_, place) in places.items():
            with suppress(FileNotFoundError):  # gone since; the second time nobody writes
                status = os.lstat(place)
                stamp, mode = stamp_of(status), stat.S_IMODE(status.st_mode)
                known = self._seen.get((project, path))
                if known is not None and known[0] == stamp:
                    continue
                if stat.S_ISLNK(status.st_mode):
                    row = FileRow(project, path, "link", None, None, os.readlink(place), 0o700, None)
                elif stat.S_ISDIR(status.st_mode):
                    row = FileRow(project, path, "folder", None, None, None, 0o700, None)
                else:
                    file = read_file(place)
                    row = FileRow(project, path, "file", file.data, file.etag, None, mode, file.stamp.mtime_ns)
                self._seen[project, path] = stamp, row.kind, row.sha256 or ""
                is_there = there.get((project, path)) == (row.kind, row.sha256 or row.link, row.mode)
                yield row._replace(kind="", body=None) if is_there else row

    def _lines(self) -> dict[int, tuple[Change, bytes]]:
        """The journal: each line that can be read, by its number."""
        found = {}
        with suppress(FileNotFoundError):
            for line in self.session.engine.layout.journal.read_bytes().split(b"\n"):
                with suppress(ValueError):
                    change = Change.load(line)
                    found[change.number] = change, line + b"\n"
        return found

    def _check(self, space: NewSpace) -> None:
        """Compare what the server makes of its bytes with what was read here. Raises StorageError."""
        read = {key: digest for key, (_, kind, digest) in self._seen.items() if kind == "file"}
        there = space.read_again()
        lines = {number: sha256(line) for number, (_, line) in self._lines().items()}
        if there != read or space.lines() != lines or len(space.texts()) != self.texts:
            raise StorageError(
                self.address.rpartition("@")[2], "what it holds is not what was read; run the move again"
            )
        names = {key: name for key, (name, _) in self._places().items()}
        self.digests = {names[key]: digest for key, digest in there.items()}
        self.size = sum(stamp[0] for stamp, kind, _ in self._seen.values() if kind == "file")

    def _shared(self) -> dict[str, bytes]:
        """The files all replicas share, as they are to be there."""
        layout, settings = self.session.engine.layout, self.session.engine.settings
        changes = {f"projects.{name}": None if name in self.outside else f"{OWN}/{name}" for name in settings.projects}
        changes |= {"storage.root": None} if config_text.stored(layout.config, "storage.root") else {}
        found = {}
        if layout.config.exists():
            found[layout.config.name] = config_text.change(layout.config, changes).encode()
        for each in (layout.access, layout.dream_report):
            if each.exists():
                found[each.name] = each.read_bytes()
        return found


def _parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    return (rows[at : at + _ROWS] for at in range(0, len(rows), _ROWS))
