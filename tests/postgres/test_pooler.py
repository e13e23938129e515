"""A pooler that keeps no session is refused in one sentence; one that keeps it serves."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.errors import DatabaseRefused
from memoranda.ledger.postgres import server_connection
from memoranda.ledger.postgres.pooler import shares_processes

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
SETTINGS = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listens}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
logfile = {folder}/log
ignore_startup_parameters = extra_float_digits
"""


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "_KEEPS_SESSIONS", set())


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def pooled(space: str, folder: Path, mode: str) -> Iterator[str]:
    """The address of the space through pgbouncer."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not here")
    parts = urlsplit(space)
    query = parse_qs(parts.query)
    host = query.get("host", [parts.hostname or ""])[0]
    port = free_port()
    values = {
        "host": host,
        "port": query.get("port", ["5432"])[0],
        "folder": folder,
        "user": parts.username,
    }
    settings = folder / "pgbouncer.ini"
    settings.write_text(SETTINGS.format(listens=port, mode=mode, **values))
    user: list[str] = []
    if os.geteuid() == 0:
        folder.chmod(0o777)
        for parent in folder.parents:
            with suppress(OSError):
                parent.chmod(parent.stat().st_mode | 0o011)
        user = ["-u", "nobody"]
    process = subprocess.Popen(
        [PGBOUNCER, "-q", *user, str(settings)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        _wait_for(port, process)
        name = query["space"][0]
        yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}?space={name}"
    finally:
        process.kill()
        process.communicate(timeout=10)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    assert process.stdout is not None
    pytest.fail(process.stdout.read().decode())


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_that_keeps_no_session_is_refused_at_the_first_connection(
    space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pooled(space, tmp_path, mode) as address, pytest.raises(DatabaseRefused) as refused:
        open_session(address, watch=False)
    assert "pooler in transaction mode" in str(refused.value)


def test_a_pooler_that_keeps_sessions_serves(
    space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pooled(space, tmp_path, "session") as address, open_session(address, watch=False) as home:
        home.write(Draft("tea", title="Tea"))
        assert home.read("Tea").content.strip() == "tea"


class FakeConnection:
    """A connection through a pooler, whose transactions run in the processes `process_ids`, in turn."""

    def __init__(self, told_id: int, process_ids: list[int]):
        self.info = SimpleNamespace(backend_pid=told_id)
        self._given = process_ids

    def execute(self, _: str) -> Any:
        number = self._given.pop(0) if len(self._given) > 1 else self._given[0]
        return SimpleNamespace(fetchall=lambda: [(number,)])

    def transaction(self) -> FakeConnection:
        return self

    def __enter__(self) -> FakeConnection:
        return self

    def __exit__(self, *_: object) -> None:
        return


@pytest.mark.parametrize(
    ("first", "later_ids", "is_shared"),
    [
        ([7, 7], [[8], [9], [10]], False),
        ([7, 7], [[7]], True),
        ([7, 7], [[8], [7], [9]], True),
        ([7, 8], [[9], [10], [11]], True),
    ],
)
def test_processes_that_are_shared_are_seen(
    first: list[int], later_ids: list[list[int]], is_shared: bool
) -> None:
    waiting = [FakeConnection(99, process_ids) for process_ids in later_ids]
    answer = shares_processes(FakeConnection(98, first), lambda: waiting.pop(0))  # type: ignore[arg-type, return-value]
    assert answer is is_shared


def test_the_server_itself_is_asked_once_and_no_second_connection_is_made(space: str) -> None:
    def connect() -> psycopg.Connection[Any]:
        raise AssertionError("a second connection")

    with psycopg.connect(space.partition("&space")[0], autocommit=True) as db:
        assert not shares_processes(db, connect)
