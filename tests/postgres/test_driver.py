"""A home in a database on a machine that cannot reach one."""

from __future__ import annotations

import sys

import pytest

ADDRESS = "postgresql://nobody@127.0.0.1:1/notes?space=team"


@pytest.mark.parametrize(
    ("has_driver", "complaint"),
    [(False, "pip install '.[postgres]' 'psycopg[binary]'"), (True, "cannot be reached")],
)
def test_a_database_that_cannot_be_asked_is_said_with_the_remedy(
    terminal, monkeypatch, has_driver, complaint
):
    if not has_driver:
        monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(terminal.folder / "cache"))
    ran = terminal("--home", ADDRESS, "list")
    assert ran.status == 1
    assert complaint in ran.err
    assert "inside memoranda" not in ran.err
