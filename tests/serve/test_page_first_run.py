"""The first page of an empty memory: which programs it offers to connect, and what it says of each."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from memoranda.clients.preview import InstalledProgram, installed_programs
from memoranda.serve.page import routes
from memoranda.serve.page.visit import Visit
from serve.web import plain

pytestmark = pytest.mark.anyio


@pytest.fixture
def home_of_user(tmp_path, monkeypatch):
    """A home folder of a user in which Claude Code is connected and Cursor is not."""
    folder = tmp_path / "user"
    (folder / ".cursor").mkdir(parents=True)
    (folder / ".claude").mkdir()
    (folder / ".claude.json").write_text('{"mcpServers": {"memory": {"command": "memoranda"}}}')
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_each_program_found_is_named_with_the_files_that_would_change(home_of_user):
    programs = {program.id: program for program in installed_programs()}
    assert programs["claude-code"] == InstalledProgram(
        "claude-code", "Claude Code", True, "~/.claude.json", "~/.claude/settings.json"
    )
    assert programs["cursor"] == InstalledProgram(
        "cursor", "Cursor", False, "~/.cursor/mcp.json", "~/.cursor/hooks.json"
    )
    assert next(iter(programs)) == "claude-code", "connected ones come first"


def test_a_program_whose_file_cannot_be_read_is_not_connected(home_of_user):
    (home_of_user / ".claude.json").unlink()
    # The system lets nobody read the beginning of this file.
    (home_of_user / ".claude.json").symlink_to("/proc/self/mem")
    programs = {program.id: program for program in installed_programs()}
    assert not programs["claude-code"].is_connected


async def first_page(page, monkeypatch, *names):
    """The first page while clients of these names are connected."""
    sessions = [SimpleNamespace(client=name) for name in names]
    monkeypatch.setattr(Visit, "connected", lambda visit: sessions)
    return await page.see("/page")


async def test_the_first_page_lists_every_program_with_what_is_done_to_it(
    web, page, monkeypatch, home_of_user
):
    monkeypatch.setattr(
        "memoranda.serve.page.today.first_run.programs_of", lambda visit: installed_programs()
    )
    html = await first_page(page, monkeypatch)
    html_shown = plain(html)
    assert "✓ Claude Code connected" in html_shown
    assert "Cursor memory install cursor" in html_shown
    assert (
        "One entry comes into ~/.cursor/mcp.json, and hooks into ~/.cursor/hooks.json."
        in html_shown
    )
    assert "a copy of each is kept" in html_shown
    assert "Waiting for the first call." in html_shown


async def test_the_first_page_says_where_the_notes_are(web, page, monkeypatch):
    sentence = "Nothing leaves this machine."
    assert sentence in await first_page(page, monkeypatch)
    url = "postgresql://ann:pa55word@db.example/memory"
    settings = replace(web.memory.settings, url=url, space="ann")
    monkeypatch.setattr(type(web.memory), "settings", property(lambda memory: settings))
    html = await first_page(page, monkeypatch)
    assert sentence not in html
    assert "pa55word" not in html
    assert "Plain Markdown in the database postgresql://ann@db.example/memory?space=ann." in html


async def test_the_step_is_ticked_once_a_program_has_called(web, page, monkeypatch):
    before = await first_page(page, monkeypatch, "")
    assert "Waiting for the first call." in plain(before)
    after = await first_page(page, monkeypatch, "claude-code")
    words = plain(after)
    assert "✓ Claude Code is here now" in words
    assert "✓ claude-code is here." in words
    assert after.count('<li class="card done">') == 2


async def test_a_page_is_told_when_a_program_connects():
    sessions = SimpleNamespace(clients=[])
    sessions.connected = lambda: sessions.clients
    server = SimpleNamespace(
        app=SimpleNamespace(state=SimpleNamespace(sessions=sessions)),
        homes=SimpleNamespace(memory=lambda name: SimpleNamespace(journal_stamp=lambda: "1")),
        stopping=asyncio.Event(),
    )
    visitors = SimpleNamespace(knows=lambda secret: True)
    events = routes._events(server, visitors, "secret", "1")
    assert (await anext(events)).startswith("retry")
    event = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    sessions.clients = [SimpleNamespace(client="claude-code")]
    assert (await event).startswith("event: change")
    await events.aclose()
