"""Who is named as the holder of a lock is a process that is there."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys

import pytest

from memoranda.sources.files import is_alive, lock_file, lock_owner, remove_left


@pytest.mark.promise("lock-holder")
@pytest.mark.parametrize(
    "lock_text", ["{gone}\n", "{gone}\n1700000000.5 memory serve\n", "", "no number"]
)
def test_a_process_that_has_ended_is_never_named(tmp_path, lock_text):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    place = tmp_path / "lock"
    place.write_text(lock_text.format(gone=ended.pid))
    fd = lock_file(place, fcntl.LOCK_EX)
    try:
        owner = lock_owner(place)
        assert owner is not None
        assert owner.pid in (str(os.getpid()), "")
    finally:
        os.close(fd)
    assert lock_owner(place) is None


@pytest.mark.promise("lock-holder")
@pytest.mark.parametrize("number", [0, -1, 2**31, 10**30])
def test_a_number_that_no_process_has_is_none_of_a_running_one(tmp_path, number):
    assert not is_alive(number)
    place = tmp_path / "lock"
    place.write_text(f"{number}\n")
    fd = lock_file(place, fcntl.LOCK_EX)
    try:
        owner = lock_owner(place)
        assert owner is not None
        assert owner.pid in (str(os.getpid()), "")
    finally:
        os.close(fd)


@pytest.mark.promise("lock-holder")
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_a_process_that_has_ended_and_was_not_asked_for_is_not_running():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    # Waits for its end, and leaves its number
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(ended.pid)
    assert is_alive(os.getpid())
    ended.wait()


@pytest.mark.promise("lock-holder")
def test_a_temporary_file_with_any_number_hinders_nobody(tmp_path):
    names = re.compile(r"\.tmp-(\d+)-x")
    for name in (f".tmp-{10**30}-x", f".tmp-{os.getpid()}-x", "note.md"):
        (tmp_path / name).touch()
    remove_left(str(tmp_path), names)

    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f".tmp-{os.getpid()}-x", "note.md"]
