"""Puts the truth of every home in a folder into a space of a database, its folder being the replica
of it.

Python runs this at its start where this folder is on PYTHONPATH; `--home-kind=postgres` calls it in
the tests' process.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import contextmanager, suppress
from hashlib import sha256

VARIABLE = "MEMORANDA_HOMES_IN"


def install(url: str, put=setattr) -> None:
    """From now on homes that would be folders are spaces of the database at `url`, one for each
    folder. What it changes for that it changes by `put`.

    What a test put into the folder before it was opened first is moved there. What it writes, moves
    or removes there by hand later another client commits, before the next call: that is what a hand
    edit is to notes in a database.
    """
    from memoranda.config import Settings, _File
    from memoranda.ledger.postgres.replica import SharedFiles
    from memoranda.ledger.postgres.replica_ledger import ReplicaLedger
    from memoranda.sources.layout import Layout

    ours = url
    adopting = [False]
    adopted = set()
    original_init = Settings.__init__
    read = _File.settings
    follow, writing, follow_shared = ReplicaLedger.follow, ReplicaLedger.writing, SharedFiles.follow

    def init(self, home, file, url=None, space="", **options):
        if url is None and not adopting[0]:
            url = ours
            space = space_of(home)
        original_init(self, home, file, url, space, **options)

    def settings(self, home, environ, where=None, space=""):
        return read(
            self,
            home,
            environ,
            *((where, space) if where or adopting[0] else (ours, space_of(home))),
        )

    def space_of(home):
        return f"t{sha256(os.path.realpath(home).encode()).hexdigest()[:24]}"

    def opened(self):
        layout = Layout(self._places["config.yaml"].parent)
        projects = [place for place in layout.built_in.values() if place.is_dir()]
        if self._url == url and not adopting[0]:
            if (
                layout.root not in adopted
                and not layout.replica.exists()
                and (projects or layout.config.exists())
            ):
                adopting[0] = True
                try:
                    _adopt(layout.root, f"{url}&space={self.space}")
                finally:
                    adopting[0] = False
            adopted.add(layout.root)
            _share_configuration(self, layout)
        follow_shared(self)

    def followed(self):
        _commit_what_was_done_by_hand(self, writing)
        return follow(self)

    @contextmanager
    def written(self):
        _commit_what_was_done_by_hand(self, writing)
        with writing(self):
            yield

    put(Settings, "__init__", init)
    put(_File, "settings", settings)
    put(SharedFiles, "follow", opened)
    put(ReplicaLedger, "follow", followed)
    put(ReplicaLedger, "writing", written)


def _adopt(root, address: str) -> None:
    from memoranda.engine.exchange import IntoDatabase
    from memoranda.engine.memory import MemorySession
    from memoranda.errors import InvalidInput

    with MemorySession.open(root, watch=False) as memory:
        try:
            IntoDatabase(memory, address).run(dry_run=False, progress=None)
        except InvalidInput:
            # The space has notes: they count
            return


def _share_configuration(shared, layout) -> None:
    from memoranda.errors import DatabaseRefused

    with suppress(DatabaseRefused), shared._thread_lock:
        shared._database.prepare()
        if layout.config.exists():
            local_config = layout.config.read_bytes()
        else:
            local_config = None
        if (
            layout.replica.exists()
            and shared._database.shared_files().get(layout.config.name) != local_config
        ):
            with shared._database.sharing():
                shared._database.put_shared(layout.config.name, local_config)


def _commit_what_was_done_by_hand(home, writing) -> None:
    from memoranda.clock import stamp
    from memoranda.errors import Busy, DatabaseAway
    from memoranda.ledger.change import Change, touched_by

    if home._is_writing or not home.layout.replica.exists():
        return
    with suppress(Busy, DatabaseAway):
        # Nobody is kept waiting for nothing
        if not _steps(home):
            return
        with writing(home):
            steps = _steps(home)
            if steps:
                about = next((step for step in steps if step.do == "put"), steps[0])
                touched = [touched_by(step) for step in steps]
                change = Change(
                    home.history.last + 1,
                    stamp(home._clock()),
                    "write",
                    about.project,
                    about.path,
                    None,
                    None,
                    touched,
                )
                home._database.commit([(change, steps)])
                home.history.append_all([change])


def _files_of(home) -> dict:
    """(project, path) -> (place, kind, content, status) of everything in the folder."""
    from memoranda.sources.layout import TEMP_PREFIX

    content_by_stamp = vars(home).setdefault("_known_by_stamp", {})
    files = {}
    for project, path in home._folder.all_places():
        if TEMP_PREFIX in path:
            continue
        # A name that is no text is in no row
        with suppress(OSError, UnicodeEncodeError):
            path.encode()
            place = os.path.join(home._folder.root(project), path)
            files[project, path] = (place, *_content(place, content_by_stamp))
    return files


def _rows_of(home) -> dict:
    """(project, path) -> (kind, content, body) of everything in the space."""
    rows = {}
    with home._database.snapshot() as snapshot:
        for row in snapshot.rows(-1):
            rows[row.project, row.path] = (row.kind, row.sha256 or row.link, row.body)
    return rows


def _is_there(file: tuple | None, kind: str, content) -> bool:
    """Whether the folder has what a row of this kind stands for; only a link is its content."""
    if file is None or file[1] != kind:
        return False
    return kind != "link" or file[2] == content


def _removal(home, key: tuple, row: tuple):
    """The step that removes what a row stands for."""
    from memoranda.sources.base import File, Stamp
    from memoranda.sources.step import Step

    project, path = key
    kind, content, body = row
    do = {"file": "remove", "folder": "rmdir", "link": "unlink"}[kind]
    old = None
    if do == "remove":
        old = File(b"", Stamp(0, 0, 0), content)
    root = str(home._folder.root(project))
    return Step(do, project, root, path, old=old, scope=_scope(body))


def _addition(home, key: tuple, file: tuple, row: tuple | None):
    """The step that makes a row as the file is."""
    from memoranda.sources.base import File, Stamp
    from memoranda.sources.step import Step

    project, path = key
    place, kind, content, status = file
    step = Step("put", project, str(home._folder.root(project)), path)
    if kind == "folder":
        step.do = "mkdir"
        return step
    if kind == "link":
        step.do = "symlink"
        step.link = content
        return step
    with open(place, "rb") as stream:
        step.data = stream.read()
    step.scope = _scope(step.data)
    step.mode = stat.S_IMODE(status.st_mode)
    step.stamp = Stamp(status.st_size, status.st_mtime_ns, 0)
    step.old = None
    if row and row[0] == "file":
        step.old = File(b"", Stamp(0, 0, 0), row[1])
    return step


def _steps(home) -> list:
    """Return the steps that make the rows of the space equal to the folder."""
    files = _files_of(home)
    stamps = {key: (kind, content) for key, (_, kind, content, _) in files.items()}
    state = (home.history.last, stamps)
    if vars(home).get("_compared") == state:
        return []
    rows = _rows_of(home)
    steps = []
    # The contents of a folder before the folder itself
    for key in sorted(rows, reverse=True):
        kind, content, _ = rows[key]
        if not _is_there(files.get(key), kind, content):
            steps.append(_removal(home, key, rows[key]))
    for key in sorted(files):
        row = rows.get(key)
        if row is None or row[:2] != files[key][1:3]:
            steps.append(_addition(home, key, files[key], row))
    if not steps:
        home._compared = state
    return steps


def _scope(data: bytes | None) -> str:
    match = re.search(rb"^scope: *['\"]?([a-z0-9:._-]+)", (data or b"")[:2000], re.MULTILINE)
    if match:
        return match[1].decode()
    return "global"


def _content(place: str, content_by_stamp: dict) -> tuple:
    """(kind, SHA-256 or goal, status) of the file at a path. Raises OSError for what no row can hold."""
    status = os.lstat(place)
    if stat.S_ISDIR(status.st_mode):
        return "folder", None, status
    if stat.S_ISLNK(status.st_mode):
        return "link", os.readlink(place), status
    if not stat.S_ISREG(status.st_mode):
        raise OSError(place)
    key = (place, status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns)
    if key not in content_by_stamp:
        with open(place, "rb") as file:
            content_by_stamp[key] = sha256(file.read()).hexdigest()
    return "file", content_by_stamp[key], status


database_url = os.environ.get(VARIABLE)
if database_url:
    install(database_url)
