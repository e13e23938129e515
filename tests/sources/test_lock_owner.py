"""Who is named as the holder of a lock is a process that is there."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys

import pytest

from memoranda.sources.files import lock_file, lock_owner


@pytest.mark.promise("lock-holder")
@pytest.mark.parametrize(
    "left", ["{gone}\n", "{gone}\n1700000000.5 memory serve\n", "", "no number"]
)
def test_a_process_that_has_ended_is_never_named(tmp_path, left):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    place = tmp_path / "lock"
    place.write_text(left.format(gone=ended.pid))
    fd = lock_file(place, fcntl.LOCK_EX)
    try:
        owner = lock_owner(place)
        assert owner is not None
        assert owner.pid in (str(os.getpid()), "")
    finally:
        os.close(fd)
    assert lock_owner(place) is None
