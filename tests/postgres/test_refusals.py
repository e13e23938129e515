"""What people read when an address, a role or a server is not what they think; and paths no copy
could show.
"""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest

from conftest import Terminal
from memoranda import Draft
from memoranda.config import load
from memoranda.engine import open_session
from memoranda.errors import ConfigError, DatabaseAway, DatabaseRefused, MemorandaError
from postgres.conftest import Replica
from postgres.server import ROLE, admin_of


@pytest.fixture
def admin(database: str) -> psycopg.Connection[tuple[object, ...]]:
    """A superuser's connection."""
    if os.environ.get("MEMORY_TEST_PG_URL"):
        pytest.skip("only of a server started here are we the superuser")
    with psycopg.connect(admin_of(database), autocommit=True) as db:
        yield db


@pytest.mark.parametrize(
    "home", ["mysql://h/notes", "http://h/notes", "postgres+asyncpg://h/notes"]
)
def test_an_address_of_something_else_is_no_name_of_a_folder(home: str):
    with pytest.raises(ConfigError, match=r"a folder or postgresql://HOST/DATABASE\?space=NAME"):
        load(home)


def test_an_address_without_a_host_is_the_server_of_this_machine():
    settings = load("postgresql:///team?host=/run/pg&space=one")
    assert (settings.url, settings.space) == ("postgresql:///team?host=%2Frun%2Fpg", "one")


def test_no_password_of_an_address_is_shown():
    settings = load(
        "postgresql://me:secret@h/notes?password=secret&sslpassword=secret&port=1&space=one"
    )
    assert settings.shown_home == "postgresql://me@h/notes?port=1&space=one"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("/team", "/nowhere", "no database of this name; make it with createdb"),
        (f"{ROLE}@", "nobody@", "this user"),
    ],
)
def test_a_wrong_database_and_a_wrong_user_are_told_apart(
    space: str, admin: object, old: str, new: str, words: str
):
    with pytest.raises(DatabaseAway, match=words):
        open_session(space.replace(old, new))


def test_a_server_without_a_free_connection_answers_from_the_copy_and_says_so(
    space: str, terminal: Terminal, admin: psycopg.Connection[tuple[object, ...]]
):
    terminal.write("--home", space, "green tea")
    admin.execute(f"alter role {ROLE} connection limit 0")
    try:
        ran = terminal("search", "tea", "--home", space)
        assert "green tea" in ran.out
        assert ran.err.startswith(
            "warning: What others changed lately may be missing here: all its connections"
        )
        ran = terminal("write", "more", "--home", space)
        assert "all its connections are in use. Nothing was changed." in ran.error
    finally:
        admin.execute(f"alter role {ROLE} connection limit -1")
    assert terminal("search", "tea", "--home", space).err == ""


def test_a_role_that_may_only_read_reads_and_its_writes_are_refused_in_one_line(
    space: str,
    terminal: Terminal,
    admin: psycopg.Connection[tuple[object, ...]],
    capfd: pytest.CaptureFixture[str],
):
    terminal.write("--home", space, "green tea")
    admin.execute("create role reader login")
    admin.execute("grant usage on schema memoranda to reader")
    admin.execute("grant select on all tables in schema memoranda to reader")
    try:
        only = space.replace(f"{ROLE}@", "reader@")
        with open_session(only) as memory:
            assert memory.search("tea").total == 1
            with pytest.raises(
                DatabaseRefused, match=r"may not do that; see docs/teams\.md.*Nothing was changed"
            ):
                memory.write(Draft("more"))
        assert capfd.readouterr().err == ""
    finally:
        admin.execute("drop owned by reader")
        admin.execute("drop role reader")


def test_the_project_a_refusal_names_can_be_added_by_the_command(
    space: str, terminal: Terminal, tmp_path: Path
):
    complaint = terminal("project", "add", "plans", str(tmp_path), "--home", space).error
    assert "name projects/plans, which all machines share" in complaint
    assert terminal.ok("project", "add", "plans", "projects/plans", "--home", space).startswith(
        "Added project plans"
    )
    with pytest.raises(
        MemorandaError,
        match=f"Cannot use {tmp_path}/memory.jsonl as a project: the notes are in Po",
    ):
        open_session(space, projects={"memory": tmp_path / "memory.jsonl"})


def test_no_note_goes_through_a_link_or_into_a_file(replica: Replica, tmp_path: Path):
    a = replica("a")
    note = a.write(Draft("text", title="Note"))
    (tmp_path / "away").mkdir()
    (a.home / "notes/link").symlink_to(tmp_path / "away")
    for path in ("link/Note.md", "link/new/Note.md", "Note.md/Other.md"):
        with pytest.raises(MemorandaError):
            a.move(a.write(Draft("other", title="Other")).id, path)
        a.undo()

    assert (a.home / "notes/link").is_symlink()
    paths = [info.path for info in a.list("project:notes")[0]]
    assert paths == [note.path]
    content = replica("b").read(note.id).content
    assert content == "text"
