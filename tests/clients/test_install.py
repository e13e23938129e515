"""`memory install` and `memory uninstall`, in a user's folder of their own."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from clients.random_files import MAKERS, yaml_file
from editing import replace_in
from memoranda.cli import install_commands
from memoranda.clients import install as module
from memoranda.clients.editing import Unsure
from memoranda.clients.table import Client, Server, clients, entry

ALL = list(clients())
ARGV = ("/opt/bin/memory", "mcp")
COMMENTED = {
    "zed": '// Zed\n//\n{\n  "theme": "One Dark", // dark\n  "context_servers": {\n    /* none yet */\n  },\n}\n',
    "cursor": '\ufeff{\r\n\t"mcpServers": {\r\n\t\t// mine\r\n\t\t"other": {"command": "true"} // last\r\n\t}\r\n}',
    "codex": '# mine\nmodel = "gpt-5" # fast\n\n[mcp_servers.other]\ncommand = "true" # kept\nenv = { A = "1" }',
    "goose": "# mine\nextensions:\n  developer:   # built in\n    enabled: true\n\n# models\nGOOSE_MODEL: x",
    "continue": "name: mine\nmcpServers:\n  - name: other\n    command: 'true'\n# end\n",
    "opencode": '{"mcp": {}, "theme": "x"}',
    "vscode": '{\n    "inputs": [],\n    "servers": {}\n}\n',
    "amp": '{\n  "amp.url": "x",\n}\n',
    "claude-code": '{"numStartups": 3, "mcpServers": {}, "projects": {"/a": {"mcpServers": {}}}}',
}


@pytest.fixture
def user(terminal: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user on whose machine no client is, and where no server is started."""
    for name in (
        "XDG_CONFIG_HOME",
        "FLATPAK_XDG_CONFIG_HOME",
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "CLINE_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    empty = terminal.folder / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    started = {"command": [], "tools": 13, "seconds": 0.1, "error": None}
    monkeypatch.setattr(install_commands, "_start", lambda argv: started | {"command": [*argv]})
    return terminal.folder / "user"


def placed(client: str, text: str | None = None) -> Path:
    """The client's file, with this text or none, in a folder that is there."""
    file = clients()[client].place(os.environ)
    assert file is not None
    for folder in (
        file.parent,
        *(module.table.expand(place, os.environ) for place in here(clients()[client])),
    ):
        folder.mkdir(parents=True, exist_ok=True)
    if text is not None:
        file.write_bytes(text.encode())
    return file


def here(client: Client) -> list[str]:
    folders = client.installed_if
    if isinstance(folders, dict):
        folders = folders[module.table._SYSTEM]
    return folders[:1]


def ours(client: str, text: str) -> Any:
    """What another parser reads as our entry."""
    chosen = clients()[client]
    load = {"json": json.loads, "toml": tomllib.loads}.get(chosen.format, yaml.safe_load)
    servers = load(text.removeprefix("\ufeff"))[chosen.key[0]]
    if isinstance(servers, list):
        return servers[0]
    return servers["memory"]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.promise("install-1")
def test_without_a_client_a_table_is_shown_and_nothing_written(terminal: Any, user: Path) -> None:
    placed("cursor", '{"mcpServers": {"memory": {"command": "/opt/other", "args": []}}}')
    placed("zed", "{broken")
    placed("codex")
    before = snapshot(user)
    rows = {client["client"]: client for client in terminal("install", "--json").json["clients"]}
    assert list(rows) == ALL
    assert (rows["cursor"]["found"], rows["cursor"]["entry"], rows["cursor"]["hooks"]) == (
        True,
        "not ours",
        False,
    )
    assert rows["zed"]["entry"] == "unreadable: line 1 is not JSON"
    assert (rows["codex"]["found"], rows["codex"]["entry"], rows["junie"]["found"]) == (
        True,
        "none",
        False,
    )
    assert "\ncursor            yes    not ours" in terminal.ok("install")
    assert snapshot(user) == before


@pytest.mark.parametrize("client", ALL)
@pytest.mark.promise("install-1")
def test_a_client_gets_its_entry_and_loses_it_again(terminal: Any, user: Path, client: str) -> None:
    file = placed(client)
    before = snapshot(user)
    assert terminal("install", client).status == 0
    command = module.table.command_of(ours(client, file.read_text()))
    assert os.path.isabs(command[0])
    assert command[-1] == "mcp"
    rows_of_clients = terminal("install", "--json").json["clients"]
    row = next(candidate for candidate in rows_of_clients if candidate["client"] == client)
    assert row["entry"] == "ok"
    assert row["hooks"] == (True if clients()[client].hooks else None)
    mode = stat.S_IMODE(file.stat().st_mode)
    assert mode == 0o600
    after = snapshot(user)
    document = terminal("install", client, "--json").json
    assert document["clients"][0]["result"] == "unchanged"
    assert snapshot(user) == after
    assert terminal("uninstall", client).status == 0
    assert {name: data for name, data in snapshot(user).items() if ".memory" not in name} == before


@pytest.mark.parametrize("client", COMMENTED)
@pytest.mark.promise("install-3")
def test_comments_order_line_ends_modes_and_links_stay(
    terminal: Any, user: Path, client: str
) -> None:
    text = COMMENTED[client]
    file = placed(client)
    real = user / "dotfiles" / "config"
    real.parent.mkdir()
    real.write_bytes(text.encode())
    real.chmod(0o640)
    file.symlink_to(real)
    ran = terminal("install", client, "--no-hooks")
    assert ran.status == 0
    changed = real.read_bytes().decode()
    assert "memory" in changed
    rest = iter(changed)
    # All of it is there, in its order
    for part in text:
        assert part in rest
    assert changed.count("\n") == changed.count("\r\n") or "\r" not in text
    assert terminal("uninstall", client).status == 0
    assert real.read_bytes().decode() == text
    assert file.is_symlink()
    mode = stat.S_IMODE(real.stat().st_mode)
    assert mode == 0o640
    names = [path.name for path in real.parent.iterdir()]
    assert names == ["config"]


@pytest.mark.promise("install-4")
def test_a_copy_of_the_file_is_kept_for_the_user_alone(terminal: Any, user: Path) -> None:
    placed("zed", COMMENTED["zed"])
    (row,) = terminal("install", "zed", "--json").json["clients"]
    (backup,) = map(Path, row["backup"])
    text = backup.read_text()
    assert text == COMMENTED["zed"]
    mode = stat.S_IMODE(backup.stat().st_mode)
    assert mode == 0o600
    for _ in range(5):
        terminal("uninstall", "zed")
        terminal("install", "zed")
    assert len([*backup.parent.glob("zed-*")]) == 5


@pytest.mark.parametrize(
    ("client", "text", "reason"),
    [
        ("zed", '{"a": "\udcff"}', "it is not UTF-8 text"),
        ("zed", "{broken", "line 1 is not JSON"),
        ("zed", "{\n  'theme': 1}", "line 2 is not JSON"),
        ("zed", '{"context_servers": 1}', "line 1 has something other than {"),
        ("zed", "[]", "line 1 has something other than {"),
        ("zed", "// nothing\n", "it holds nothing but comments"),
        (
            "zed",
            '{"context_servers": {}, "context_servers": {}}',
            '"context_servers" stands there twice',
        ),
        ("zed", '{"context_servers": {"memory": 1, "memory": 2}}', '"memory" stands there twice'),
        ("zed", '{"a": 1}\r{"b": 2}', "line 1 is not JSON"),
        ("zed", '{"a":\r1}', "a line ends in a carriage return alone"),
        ("zed", "{" * 500, "line 1 is not JSON"),
        ("zed", "[" * 100_000, "it is nested too deeply"),
        (
            "zed",
            '{"context_servers": {"memory": {"command": "x"}}}',
            'an entry "memory" already that is not ours',
        ),
        ("codex", "a = ", "it is not TOML"),
        ("codex", "mcp_servers = 1", "something other than a table has that name"),
        ("codex", 'mcp_servers = { other = { command = "x" } }', "it is not TOML"),
        (
            "codex",
            '[mcp_servers]\nmemory = { command = "memory", args = ["mcp"] }',
            "has no header",
        ),
        ("codex", '[[mcp_servers]]\nname = "a"', "something other than a table has that name"),
        ("goose", "a: b: c", "it is not one YAML document"),
        ("goose", "a: 1\n---\nb: 2\n", "it is not one YAML document"),
        ("goose", "- a\n", "line 1 has something other than {"),
        ("goose", "extensions: 1\n", "line 1 has something other than {"),
        ("goose", "extensions: ~\n", "extensions is written as ~"),
        ("goose", "{a: 1}\n", "it is written in brackets"),
        ("goose", "extensions: {a: 1,}\n", "ends in a comma"),
        ("continue", "mcpServers: {a: 1}\n", "line 1 has something other than ["),
    ],
)
@pytest.mark.promise("install-3")
def test_what_is_not_understood_is_not_changed(
    terminal: Any, user: Path, client: str, text: str, reason: str
) -> None:
    file = placed(client)
    before = text.encode("utf-8", "surrogateescape")
    file.write_bytes(before)
    ran = terminal("install", client, "--no-hooks", "--json")
    (row,) = ran.json["clients"]

    assert ran.status == 1
    assert row["result"] == "refused"
    assert reason in row["reason"], row["reason"]
    assert file.read_bytes() == before
    assert module.table.command_of(ours(client, row["snippet"]))[-1] == "mcp"
    ran = terminal("install", client, "--no-hooks")
    assert f"Paste this into {file}:" in ran.out


@pytest.mark.promise("install-3")
def test_somebody_elses_entry_goes_only_when_told(terminal: Any, user: Path) -> None:
    text = '{"context_servers": {"memory": {"command": "x", "args": ["other"]}}}'
    file = placed("zed", text)
    assert terminal("uninstall", "zed").status == 1
    assert file.read_text() == text
    assert terminal("install", "zed", "--replace").status == 0
    assert "other" not in file.read_text()
    file = placed("codex", "[mcp_servers]\nmemory = 1\n")
    assert "memory is no table" in terminal("install", "codex", "--replace").out
    assert file.read_text() == "[mcp_servers]\nmemory = 1\n"


def test_an_item_of_a_list_that_is_somebody_elses_stays_too(terminal: Any, user: Path) -> None:
    file = placed("continue", "mcpServers:\n  - name: memory\n    command: other-memory\n")
    before = file.read_bytes()
    for verb in ("install", "uninstall"):
        ran = terminal(verb, "continue")
        assert ran.status == 1
        assert 'entry "memory"' in ran.out
        assert file.read_bytes() == before

    assert terminal("install", "continue", "--replace").status == 0
    assert "other-memory" not in file.read_text()


def test_an_entry_with_another_command_is_mended_in_place(terminal: Any, user: Path) -> None:
    old = '{"mcpServers": {"memory": {"command": "/gone/memory", "args": ["mcp"], "timeout": 9}, "b": {}}}'
    file = placed("cursor", old)
    state = next(
        client
        for client in terminal("install", "--json").json["clients"]
        if client["client"] == "cursor"
    )
    assert (state["entry"], state["version"]) == ("broken command", None)
    assert terminal("install", "cursor", "--no-hooks").status == 0
    servers = json.loads(file.read_text())["mcpServers"]
    assert list(servers) == ["memory", "b"]
    assert (servers["memory"]["timeout"], servers["memory"]["command"] == "/gone/memory") == (
        9,
        False,
    )
    codex = placed(
        "codex",
        '# a\n[mcp_servers.memory] # b\ncommand = "/gone/memory" # c\nargs = ["mcp"]\ntimeout = 1\n',
    )
    assert terminal("install", "codex", "--no-hooks").status == 0
    new = codex.read_text()
    assert new.startswith("# a\n[mcp_servers.memory] # b\ncommand = ")
    assert new.endswith("\ntimeout = 1\n")
    assert "# c" in new
    assert "/gone" not in new


def test_uninstall_leaves_nothing_that_was_not_there(terminal: Any, user: Path) -> None:
    def there() -> list[str]:
        return sorted(str(path) for path in user.rglob("*") if ".memory" not in path.parts)

    hooks = user / ".cursor" / "hooks.json"
    placed("cursor")
    hooks.write_text('{"hooks": {"stop": [{"command": "true"}]}}\n')
    link = placed("zed")
    # Which nobody made yet
    link.symlink_to(user / "dotfiles" / "zed" / "settings.json")
    (user / ".cline").mkdir()
    # Nor this
    (user / ".codex").symlink_to(user / "dotfiles" / "codex")
    for program in ("codex", "copilot"):
        (user.parent / "bin" / program).touch(0o755)
    before = there(), hooks.read_text()
    terminal.ok("install", "cursor", "zed", "cline-cli", "codex", "copilot-cli")
    terminal.ok("uninstall", "cursor", "zed", "cline-cli", "codex", "copilot-cli")
    assert (there(), hooks.read_text()) == before


def test_hooks_of_others_stay(terminal: Any, user: Path) -> None:
    placed("claude-code")
    settings = user / ".claude" / "settings.json"
    mine = '{"hooks": [{"type": "command", "command": "mine"}]}'
    text = '{"hooks": {"SessionStart": [' + mine + '], "Stop": []}, "model": "x"}'
    settings.write_text(text)
    assert terminal("install", "claude-code").status == 0
    hooks = json.loads(settings.read_text())["hooks"]
    assert [
        len(hooks[event_name]) for event_name in ("SessionStart", "Stop", "UserPromptSubmit")
    ] == [2, 0, 1]
    assert hooks["SessionStart"][1]["hooks"][0]["command"].endswith(" hook claude-code")
    assert terminal("uninstall", "claude-code").status == 0
    assert settings.read_text() == text


@pytest.mark.parametrize("client", [name for name in ALL if clients()[name].hooks])
def test_without_hooks_ours_are_taken_out_again(terminal: Any, user: Path, client: str) -> None:
    file = placed(client)
    terminal.ok("install", client, "--no-hooks")
    before = snapshot(user)
    terminal.ok("install", client)
    assert terminal.ok("install", client, "--no-hooks").startswith(
        f"{clients()[client].title}: written"
    )
    files = []
    for files_then in (before, snapshot(user)):
        files.append({name: data for name, data in files_then.items() if "install/" not in name})
    assert files[0] == files[1]
    assert "memory" in file.read_text()


def test_a_group_of_hooks_with_those_of_others_is_left_to_the_owner(
    terminal: Any, user: Path
) -> None:
    placed("claude-code")
    settings = user / ".claude" / "settings.json"
    group = {"hooks": [{"command": "mine"}, {"command": "memory hook claude-code"}]}
    text = json.dumps({"hooks": {"SessionStart": [group]}})
    settings.write_text(text)
    assert terminal("install", "claude-code").status == 0
    assert json.loads(settings.read_text())["hooks"]["SessionStart"] == [group]
    ran = terminal("uninstall", "claude-code")
    assert ran.status == 1
    assert "our hook for SessionStart stands in one group with another" in ran.out


@pytest.mark.parametrize(
    ("client", "place", "text"),
    [
        (
            "claude-code",
            ".claude/settings.json",
            '{"enabledPlugins": {"memoranda@memoranda": true}}',
        ),
        ("codex", ".codex/config.toml", '[plugins."memoranda@memoranda"]\nenabled = true\n'),
    ],
)
def test_with_the_plugin_nothing_is_written(
    terminal: Any, user: Path, client: str, place: str, text: str
) -> None:
    placed(client)
    (user / place).write_text(text)
    before = snapshot(user)
    (row,) = terminal("install", client, "--json").json["clients"]
    assert row["result"] == "unchanged"
    assert row["reason"] == "its plugin brings server and hooks"
    assert snapshot(user) == before
    output = terminal.ok("install")
    assert f"\n{client:<17} yes    plugin                   yes" in output
    (user / place).write_text(text.replace("true", "false"))
    document = terminal("install", client, "--json").json
    assert document["clients"][0]["result"] == "written"


@pytest.mark.promise("install-4")
def test_a_change_made_meanwhile_is_kept(
    terminal: Any, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = placed("cursor", '{"a": 1}')
    write = module.write_file
    times = []

    def busy(name: str, data: bytes, **more: Any) -> Any:
        if ".cursor/" in name and len(times) < limit:
            times.append(name)
            replace_in(file, '"a": ', '"a": 1')
        return write(name, data, **more)

    monkeypatch.setattr(module, "write_file", busy)
    limit = 2
    assert terminal("install", "cursor", "--no-hooks").status == 0
    assert json.loads(file.read_text())["a"] == 111
    assert list(json.loads(file.read_text())["mcpServers"]) == ["memory"]
    times.clear()
    limit = 100
    ran = terminal("uninstall", "cursor")
    assert ran.status == 1
    assert "another program keeps changing it" in ran.out
    assert len([*file.parent.iterdir()]) == 1
    assert len([*(terminal.home / ".memoranda" / "install").glob("cursor-*")]) == 1


def test_a_folder_that_cannot_be_written_is_named(
    terminal: Any, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = placed("zed", "{}")

    def refuse(name: str, data: bytes, **more: Any) -> Any:
        raise PermissionError(13, "no")

    monkeypatch.setattr(module, "write_file", refuse)
    ran = terminal("install", "zed")
    assert ran.status == 1
    assert "permission denied. Nothing was changed." in ran.out
    assert file.read_text() == "{}"


def test_a_dry_run_shows_the_difference_alone(terminal: Any, user: Path) -> None:
    placed("codex", COMMENTED["codex"])
    before = snapshot(user)
    out = terminal.ok("install", "codex", "--dry-run")
    assert "\n+[mcp_servers.memory]\n" in out
    assert not [
        line
        for line in out.splitlines()
        if line.startswith("-") and not line.startswith(("---", "-env"))
    ]
    assert snapshot(user) == before
    terminal.ok("install", "codex", "--no-hooks")
    assert "\n-[mcp_servers.memory]\n" in terminal.ok("uninstall", "codex", "--dry-run")


def test_a_client_that_is_not_there_gets_no_folder(terminal: Any, user: Path) -> None:
    assert terminal.ok("install", "--all").startswith(
        "No client was found on this machine. Name one: memory install"
    )
    ran = terminal("install", "windsurf")
    assert ran.status == 1
    assert "Windsurf is not on this machine" in ran.out
    assert '"mcpServers"' in ran.out
    assert not (user / ".codeium").exists()
    (terminal.folder / "bin" / "codex").touch(0o755)
    assert terminal("install", "codex").status == 0
    assert (user / ".codex" / "config.toml").exists()


def test_the_files_of_a_project_get_the_bare_command(
    terminal: Any, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(user)
    (terminal.folder / "bin" / "memory").touch(0o755)
    assert terminal("install", "claude-code", "vscode", "--project").status == 0
    assert (
        json.loads((user / ".mcp.json").read_text())["mcpServers"]["memory"]["command"] == "memory"
    )
    assert (
        json.loads((user / ".vscode" / "mcp.json").read_text())["servers"]["memory"]["args"][-1]
        == "mcp"
    )
    assert terminal("uninstall", "claude-code", "vscode", "--project").status == 0
    assert not (user / ".mcp.json").exists()
    assert not (user / ".vscode").exists()
    ran = terminal("install", "goose", "--project")
    assert ran.status == 1
    assert "Goose has no file for projects" in ran.out


def test_another_home_is_named_in_the_entry(terminal: Any, user: Path) -> None:
    file = placed("zed")
    assert terminal("install", "zed", "--home", str(user / "other"), "--agent", "z").status == 0
    assert ours("zed", file.read_text())["args"][-5:] == [
        "mcp",
        "--home",
        str(user / "other"),
        "--agent",
        "z",
    ]
    assert (user / "other" / ".memoranda" / "install").is_dir()


HTTP = ["--http", "http://127.0.0.1:8377/mcp", "--token-env", "MEMORY_TOKEN"]


@pytest.mark.parametrize("client", ALL)
@pytest.mark.promise("install-4")
def test_an_address_comes_with_the_name_of_the_token_alone(
    terminal: Any, user: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_TOKEN", "cpl_secret")
    file = placed(client)
    chosen = clients()[client]
    ran = terminal("install", client, "--no-hooks", *HTTP)
    if chosen.http is None or chosen.token is None:
        assert ran.status == 1
        assert not file.exists()
        return
    assert ran.status == 0
    text = file.read_text()
    assert "http://127.0.0.1:8377/mcp" in text
    assert "MEMORY_TOKEN" in text
    assert "cpl_secret" not in text
    assert "command" not in text
    state = next(
        candidate
        for candidate in terminal("install", "--json").json["clients"]
        if candidate["client"] == client
    )
    assert state["entry"] == "address"
    assert terminal("uninstall", client).status == 0
    assert not file.exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["cursor", *HTTP[:-1], "cpl_aSecret"], "--token-env takes the NAME of a variable"),
        (["cursor", "--http", "http://u:aSecret@h/mcp"], "invalid address"),
        (["cursor", "--http", "http://h/mcp?token=x"], "invalid address"),
        (["cursor", "--http", "ftp://h"], "invalid address"),
        (["cursor", "--token-env", "A"], "--token-env needs --http"),
        (["cursor", "--name", "a.b"], 'invalid name "a.b"'),
        (["nope"], 'unknown client "nope"; clients: claude-code, '),
        (["claude"], "Did you mean claude-code or claude-desktop?"),
    ],
)
def test_wrong_arguments_are_refused(
    terminal: Any, user: Path, argv: list[str], message: str
) -> None:
    placed("cursor")
    ran = terminal("install", *argv)

    assert (ran.status, ran.out) in ((1, ""), (2, ""))
    assert message in ran.err
    assert not (user / ".cursor" / "mcp.json").exists()
    assert terminal("uninstall").status == 2


def test_what_to_paste_is_printed_for_any_client(terminal: Any, user: Path) -> None:
    assert (
        json.loads(terminal.ok("install", "--print"))["mcpServers"]["memory"]["args"][-1] == "mcp"
    )
    assert "${env:MEMORY_TOKEN}" in terminal.ok("install", "--print", *HTTP)
    assert terminal.ok("install", "goose", "--print").splitlines()[1:3] == [
        "extensions:",
        "  memory:",
    ]
    assert snapshot(user) == {}


@pytest.mark.slow
@pytest.mark.promise("install-1")
def test_the_written_command_is_started(
    terminal: Any, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    placed("zed")
    started = terminal("install", "zed", "--json").json["server"]
    assert started["tools"] == 13
    assert started["error"] is None
    broken = install_commands._start(["/gone/memory", "mcp"])
    assert broken["error"] == "the server did not answer (FileNotFoundError); try: /gone/memory mcp"


@pytest.mark.parametrize("system", ["linux", "macos"])
def test_each_client_has_places_on_each_system(system: str) -> None:
    for client in clients().values():
        file = client.place({"HOME": "/h"}, system=system)
        assert str(file).startswith("/h/"), client.id
        assert client.is_here({"HOME": "/h", "PATH": ""}, system) is False
        assert entry(client, Server("memory", ARGV)).is_ours(
            entry(client, Server("memory", ARGV)).value
        )
    desktop = clients()["claude-desktop"].place({"HOME": "/h"}, system="macos")

    assert str(desktop) == "/h/Library/Application Support/Claude/claude_desktop_config.json"


def test_variables_move_the_files() -> None:
    moved = {"HOME": "/h", "CODEX_HOME": "/c", "XDG_CONFIG_HOME": "/x", "CLAUDE_CONFIG_DIR": "/d"}
    places = {
        name: str(clients()[name].place(moved, system="linux"))
        for name in ("codex", "zed", "claude-code")
    }
    assert places == {
        "codex": "/c/config.toml",
        "zed": "/x/zed/settings.json",
        "claude-code": "/d/.claude.json",
    }


def test_an_entry_of_ours_may_be_taken_out_after_it_was_edited(terminal: Any, user: Path) -> None:
    file = placed("codex", "a = 1\n")
    terminal.ok("install", "codex", "--no-hooks")
    file.write_text(
        file.read_text() + '\n[mcp_servers.memory.env]\nX = "1"\n\n[later] # mine\nb = 2\n'
    )
    terminal.ok("uninstall", "codex")
    assert file.read_text() == "a = 1\n\n[later] # mine\nb = 2\n"
    file = placed("zed", '{"theme": 1}')
    terminal.ok("install", "zed")
    entries = json.loads(file.read_text())
    entries["context_servers"] = {"memory": entries["context_servers"]["memory"], "b": {}}
    file.write_text(json.dumps(entries))
    terminal.ok("uninstall", "zed")
    assert json.loads(file.read_text()) == {"theme": 1, "context_servers": {"b": {}}}


def test_a_line_comment_never_swallows_what_follows() -> None:
    text = '{"m": {"a": 1, // x\n "memory": 2 }}'
    assert module.EDITORS["json"].drop(text, ["m"], "memory") == '{"m": {"a": 1 // x\n  }}'
    with pytest.raises(Unsure):
        module.EDITORS["json"].put("{]", ["m"], "memory", 1)


@pytest.mark.parametrize("client", ["cursor", "codex", "goose", "continue"])
@pytest.mark.promise("install-2")
def test_random_files_are_what_they_were_after_install_and_uninstall(
    user: Path, client: str, tmp_path: Path
) -> None:
    chosen = clients()[client]
    edits = [entry(chosen, Server("memory", ARGV))]
    installer = module.Installer(tmp_path / "home")
    refused = 0
    for seed in range(60):
        random = Random(seed)
        if chosen.format == "yaml-list":
            of_list = {"of_list": True}
        else:
            of_list = {}
        if "yaml" in chosen.format:
            text = yaml_file(random, chosen.key[0], **of_list)
        else:
            text = MAKERS[chosen.format](random)
        file = tmp_path / f"{seed}"
        file.write_bytes(text.encode())
        target = module.Target(chosen, file, chosen.format, edits)
        try:
            assert "/opt/bin/memory" in (installer.add(target).new or "")
        except Unsure:
            refused += 1
        else:
            installer.remove(target)
        assert file.read_bytes() == text.encode()
    assert refused < 6


def test_nothing_is_changed_when_one_of_two_files_is_refused(terminal: Any, user: Path) -> None:
    file = placed("claude-code", "{}")
    (user / ".claude" / "settings.json").write_text('{"hooks": []}')
    ran = terminal("install", "claude-code")
    assert ran.status == 1
    assert "settings.json was not changed: line 1 has something other than {" in ran.out
    assert file.read_text() == "{}"
    assert terminal("install", "claude-code", "--no-hooks").status == 0


def test_nothing_is_changed_when_one_of_two_folders_is_read_only(
    terminal: Any, user: Path, monkeypatch: Any
) -> None:
    file = placed("copilot-cli")
    hooks = user / ".copilot" / "hooks"
    hooks.mkdir()
    writable = os.access
    monkeypatch.setattr(
        module.os, "access", lambda path, mode: Path(path) != hooks and writable(path, mode)
    )
    for more in ((), ("--dry-run",)):
        ran = terminal("install", "copilot-cli", *more)
        assert (
            ran.status,
            "permission denied. Nothing was changed." in ran.out,
            file.exists(),
        ) == (1, True, False)


def test_hooks_that_were_never_ours_do_not_keep_the_entry(terminal: Any, user: Path) -> None:
    file = placed("copilot-cli")
    hooks = user / ".copilot" / "hooks" / "memoranda.json"
    hooks.parent.mkdir()
    hooks.write_text("{broken")
    assert terminal("install", "copilot-cli", "--no-hooks").status == 0
    assert "memoranda.json was not changed: line 1 is not JSON" in terminal.ok(
        "uninstall", "copilot-cli"
    )
    assert (file.exists(), hooks.read_text()) == (False, "{broken")


def test_claude_code_can_keep_its_own_memories_in_a_project_here(terminal: Any, user: Path) -> None:
    placed("claude-code", "{}")
    settings = user / ".claude" / "settings.json"
    settings.write_text('{"theme": "dark"} // mine\n')
    before = snapshot(user / ".claude")
    folder = terminal.home / "projects" / "claude-memory"
    output = terminal.ok("install", "--native-memory", "--dry-run")
    assert "autoMemoryDirectory" in output
    assert not folder.exists()
    ran = terminal("install", "claude-code", "--native-memory")
    assert ran.status == 0
    assert json.loads(settings.read_text().partition(" //")[0])["autoMemoryDirectory"] == str(
        folder
    )
    (folder / "MEMORY.md").write_text("The kiln needs cone 6.\n")
    assert "cone 6" in terminal.ok("context", "what does the kiln need?")
    # Which leaves it
    assert terminal("install", "claude-code").status == 0
    assert str(folder) in settings.read_text()
    assert terminal("uninstall", "claude-code").status == 0
    assert snapshot(user / ".claude") == before


def test_a_folder_for_claudes_memories_that_is_not_ours_stays(terminal: Any, user: Path) -> None:
    placed("claude-code", "{}")
    settings = user / ".claude" / "settings.json"
    settings.write_text('{"autoMemoryDirectory": "/mine"}')
    assert "not ours" in terminal("install", "--native-memory").out
    assert terminal("install", "claude-code").status == 0
    assert terminal("uninstall", "claude-code").status == 0
    assert settings.read_text() == '{"autoMemoryDirectory": "/mine"}'
    for wrong in (("codex",), ("--project",), ("--print",)):
        ran = terminal("install", "--native-memory", *wrong)
        assert ran.status == 2


@pytest.mark.parametrize("text", [None, "", "# Mine", "# Mine\n", "# Mine\r\n\r\nx\r\n", "\n\n"])
def test_a_paragraph_in_agents_md_comes_and_goes(
    terminal: Any, user: Path, monkeypatch: Any, text: str | None
) -> None:
    monkeypatch.chdir(user)
    file = user / "AGENTS.md"
    if text is not None:
        file.write_bytes(text.encode())
    for _ in range(2):
        assert terminal("install", "--agents-md").status == 0
        content = file.read_bytes()
        assert content.count(b"Never store secrets.") == 1
        content = file.read_bytes()
        assert content.startswith((text or "").encode())
    file.write_bytes(file.read_bytes() + b"later\n")
    terminal("install", "--agents-md")
    file.write_bytes(file.read_bytes().removesuffix(b"later\n"))

    assert terminal("uninstall", "--agents-md").status == 0
    assert (file.read_bytes().decode() if file.exists() else None) == text


def test_erasing_a_memory_takes_copies_of_clients_files_that_quote_it(
    terminal: Any, user: Path
) -> None:
    for name in ("zanzibar-lighthouse-4711", "other"):
        placed("cursor", json.dumps({"mcpServers": {name: {"command": "true"}}}))
        assert terminal("install", "cursor").status == 0
    written = json.loads(terminal.ok("write", "The zanzibar-lighthouse-4711 is green.", "--json"))
    folder = terminal.home / ".memoranda" / "install"

    output = terminal.ok("erase", written["memory"]["id"], "--yes")
    assert "nothing of it is left" in output
    assert [b"other" in path.read_bytes() for path in folder.glob("cursor-*")] == [True]


def test_printed_entry_comes_with_the_hooks_in_their_file(terminal):
    printed = terminal("install", "codex", "--print", "--json").json["clients"][0]
    assert printed["hooks"]["file"].endswith("hooks.json")
    assert "SessionStart" in json.loads(printed["hooks"]["snippet"])["hooks"]
    assert printed["hooks"]["snippet"].rstrip() in terminal.ok("install", "codex", "--print")


def test_printed_entry_without_hooks_is_the_entry_alone(terminal):
    printed = terminal("install", "codex", "--print", "--no-hooks", "--json").json["clients"][0]
    assert "hooks" not in printed


def test_empty_address_is_refused(terminal):
    ran = terminal("install", "codex", "--print", "--http", "")
    assert ran.status == 1
    assert 'invalid address ""' in ran.err
