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

    with suppress(DatabaseRefused), shared._threads:
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

    if home._depth or not home.layout.replica.exists():
        return
    with suppress(Busy, DatabaseAway):
        # Nobody is kept waiting for nothing
        if not _steps(home):
            return
        with writing(home):
            steps = _steps(home)
            if steps:
                number, (about, *_) = (
                    home.history.last + 1,
                    (*(step for step in steps if step.do == "put"), *steps),
                )
                touched = [touched_by(step) for step in steps]
                change = Change(
                    number,
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


def _steps(home) -> list:
    """Return the steps that make the rows of the space equal to the folder."""
    from memoranda.sources.base import File, Stamp
    from memoranda.sources.layout import TEMP_PREFIX
    from memoranda.sources.step import Step

    content_by_stamp = vars(home).setdefault("_known_by_stamp", {})
    files_here = {}
    for project, path in home._folder.listed():
        if TEMP_PREFIX in path:
            continue
        # A name that is no text is in no row
        with suppress(OSError, UnicodeEncodeError):
            path.encode()
            place = os.path.join(home._folder.root(project), path)
            files_here[project, path] = (place, *_content(place, content_by_stamp))
    seen_here = home.history.last, {key: file_facts[1:3] for key, file_facts in files_here.items()}
    if vars(home).get("_compared") == seen_here:
        return []
    with home._database.snapshot() as snapshot:
        rows = {
            (row.project, row.path): (row.kind, row.sha256 or row.link, row.body)
            for row in snapshot.rows(-1)
        }
    removed_steps = []
    added_steps = []
    for key in sorted(rows, reverse=True):
        kind, content, body = rows[key]
        if (
            key not in files_here
            or files_here[key][1] != kind
            or (kind == "link" and files_here[key][2] != content)
        ):
            do = {"file": "remove", "folder": "rmdir", "link": "unlink"}[kind]
            if do == "remove":
                old = File(b"", Stamp(0, 0, 0), content)
            else:
                old = None
            removed_steps.append(
                Step(
                    do, key[0], str(home._folder.root(key[0])), key[1], old=old, scope=_scope(body)
                )
            )
    for key in sorted(files_here):
        place, kind, content, status = files_here[key]
        was, before, _ = rows.get(key, ("", None, None))
        if (was, before) == (kind, content):
            continue
        step = Step("put", key[0], str(home._folder.root(key[0])), key[1])
        if kind == "folder":
            step.do = "mkdir"
        elif kind == "link":
            step.do = "symlink"
            step.link = content
        else:
            with open(place, "rb") as file:
                step.data = file.read()
            step.scope = _scope(step.data)
            step.mode, step.stamp = (
                stat.S_IMODE(status.st_mode),
                Stamp(status.st_size, status.st_mtime_ns, 0),
            )
            if was == "file":
                step.old = File(b"", Stamp(0, 0, 0), before)
            else:
                step.old = None
        added_steps.append(step)
    if not removed_steps + added_steps:
        home._compared = seen_here
    return removed_steps + added_steps


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
