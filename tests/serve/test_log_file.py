"""The daemon's log keeps no secret, and nobody else may read it."""

from __future__ import annotations

import logging

import pytest

from memoranda.serve.log_file import PrivateLog

# No scanner takes it for a real one
SECRET = "gh" + "p_9vXz7LmB4nR8sYwE1uC6pJ2dF5gA0iKoMqZt"
PIECE = 12
"""Characters of a secret of which nothing may be left."""


@pytest.mark.parametrize("before", [0, 3_960, 3_975, 3_990, 4_100])
def test_of_a_secret_nothing_is_left_where_a_line_is_cut(tmp_path, before):
    place = tmp_path / "day.log"
    log = PrivateLog(str(place))
    message = "x" * before + " " + SECRET
    log.emit(logging.LogRecord("test", logging.WARNING, __file__, 1, message, None, None))
    log.close()
    line = place.read_text("utf-8")

    assert line.startswith("x" * min(before, 4_000))
    for at in range(len(SECRET) - PIECE + 1):
        assert SECRET[at : at + PIECE] not in line


@pytest.mark.parametrize("mode", [0o644, 0o666, 0o640])
def test_a_log_that_others_could_read_is_closed_to_them(tmp_path, mode):
    place = tmp_path / "day.log"
    place.write_text("of yesterday\n", "utf-8")
    place.chmod(mode)
    PrivateLog(str(place)).close()
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.read_text("utf-8") == "of yesterday\n"
