"""What the project left under its former name is carried over, and nothing else says that name."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clients.test_install import placed
from clients.test_install import user as user
from memoranda import Draft, NotFound, former_name, open_memory
from memoranda.clients.hook_words import FENCED
from memoranda.clients.table import clients
from memoranda.errors import MemorandaError

ROOT = Path(__file__).parents[1]
OLD = former_name.NAME
ALLOWED = {
    "CHANGELOG.md",
    "docs/lab/changes-2026-11.md",
    "src/memoranda/former_name.py",
}


def test_no_file_says_the_former_name_but_the_changelog_and_the_migration() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no checkout")
    saying = set()
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if OLD in name.lower() or (path.is_file() and OLD.encode() in path.read_bytes().lower()):
            saying.add(name)
    assert saying <= ALLOWED


def former_home(home: Path) -> Path:
    """A home as an earlier checkout left it, with one note. Returns its private folder."""
    private = home / former_name.PRIVATE
    (private / "history").mkdir(parents=True, mode=0o700)
    (private / "history" / "journal.jsonl").write_text('{"number": 1}\n', "utf-8")
    (private / "index.db").write_bytes(b"an index")
    (private / "access.json").write_text('{"tokens": []}', "utf-8")
    (private / "review.json").write_text('{"merge:a": {"choice": "k"}}', "utf-8")
    (private / "requests.json").write_text("{}", "utf-8")
    (private / "install").mkdir()
    (private / "install" / "records.json").write_text("{}", "utf-8")
    (private / "secret.md").write_text("# Hidden\n\nheron", "utf-8")
    (home / "notes").mkdir(exist_ok=True)
    (home / "notes" / "Tea.md").write_text("# Tea\n\ngreen at four", "utf-8")
    return private


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_home_opens_with_its_notes_tokens_and_answers_and_its_former_folder_stays(
    tmp_path: Path,
) -> None:
    private = former_home(tmp_path)
    before = contents(private)
    for _ in range(2):
        with open_memory(tmp_path) as memory:
            assert memory.read("Tea").title == "Tea"
            assert memory.stats().total == 1
            memory.write("another", overwrite=True)
            memory.delete("another")
    new = tmp_path / ".memoranda"
    assert (new / "install/records.json").read_bytes() == before["install/records.json"]
    with open_memory(tmp_path) as memory:
        assert memory.session.decision("merge:a") == "k"
    assert contents(private) == before
    assert not list(tmp_path.glob(".tmp-*"))


def test_what_was_carried_over_once_is_not_carried_over_again(tmp_path: Path) -> None:
    private = former_home(tmp_path)
    open_memory(tmp_path).close()
    file = tmp_path / ".memoranda" / "install" / "records.json"
    file.unlink()
    (private / "access.json").write_text("{}", "utf-8")
    open_memory(tmp_path).close()

    path = tmp_path / ".memoranda" / "install" / "records.json"
    assert not path.exists()
    text = (tmp_path / ".memoranda" / "access.json").read_text()
    assert "tokens" in text


def test_a_copy_that_was_cut_off_is_made_again_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    former_home(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(os, "rename", refuse)
        former_name.adopt(tmp_path, tmp_path / ".memoranda")
    assert not (tmp_path / ".memoranda").exists()
    assert not list(tmp_path.glob(".tmp-*"))
    former_name.adopt(tmp_path, tmp_path / ".memoranda")
    assert (tmp_path / ".memoranda" / "review.json").is_file()


def test_nothing_reaches_the_former_folder(tmp_path: Path) -> None:
    former_home(tmp_path)
    hidden = f"{former_name.PRIVATE}/secret.md"
    with open_memory(tmp_path) as memory:
        assert memory.search("heron").total == 0
        for ref in (hidden, f"../{hidden}", f"notes/../{hidden}", str(tmp_path / hidden)):
            with pytest.raises(MemorandaError):
                memory.read(ref)
        for folder in (former_name.PRIVATE, f"../{former_name.PRIVATE}"):
            with pytest.raises(MemorandaError):
                memory.write(Draft("x", title="X", folder=folder))
        with pytest.raises(MemorandaError):
            memory.add_project("old", tmp_path / former_name.PRIVATE)
        with pytest.raises(MemorandaError):
            memory.add_project("old", tmp_path / former_name.PRIVATE / "memory.jsonl")
        with pytest.raises(NotFound):
            memory.directory("notes", "secret")


def test_doctor_names_the_former_folder_and_that_it_may_be_deleted(terminal: Any) -> None:
    former_home(terminal.home)
    unit = terminal.folder / f"user/.config/systemd/user/{OLD}.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Unit]", "utf-8")
    output = terminal("doctor").out
    assert f"{former_name.PRIVATE}: the private folder of an earlier checkout" in output
    assert "It may be deleted" in output
    assert f"systemctl --user disable --now {OLD}" in output


@pytest.mark.parametrize("tag", [former_name.TAG, "memoranda-memory"])
def test_a_fenced_memory_in_a_transcript_is_stripped_under_either_name(tag: str) -> None:
    text = f'before <{tag} note="Data">heron\n</{tag}> after <{tag}>cut off'
    assert FENCED.sub("", text) == "before  after "


ENTRIES = [
    {"command": f"/opt/bin/{OLD}", "args": ["mcp"]},
    {"command": "/usr/bin/python3", "args": ["-m", OLD, "mcp"], "env": {"A": "1"}},
    {"command": "/opt/bin/memory", "args": ["mcp"]},
]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("client", ["cursor", "claude-code", "copilot-cli"])
def test_install_replaces_an_entry_of_an_earlier_checkout(
    user: Path, terminal: Any, client: str, entry: dict[str, Any]
) -> None:
    file = placed(client, json.dumps({"mcpServers": {"memory": entry, "other": {"command": "x"}}}))
    assert terminal("install", client).status == 0
    servers = json.loads(file.read_text())["mcpServers"]
    assert list(servers) == ["memory", "other"]
    assert OLD not in json.dumps(servers)
    assert servers["memory"].get("env") == entry.get("env")


@pytest.mark.parametrize("entry", ENTRIES)
def test_uninstall_takes_an_entry_of_an_earlier_checkout_out(
    user: Path, terminal: Any, entry: dict[str, Any]
) -> None:
    file = placed("cursor", json.dumps({"mcpServers": {"memory": entry}}))
    assert terminal("uninstall", "cursor").status == 0
    assert "memory" not in json.loads(file.read_text()).get("mcpServers", {})


@pytest.mark.parametrize("command", [f"/usr/bin/python3 -m {OLD}", f"/opt/{OLD}", "/opt/memory"])
@pytest.mark.parametrize("client", ["codex", "claude-code", "cursor"])
def test_a_hook_of_an_earlier_checkout_is_replaced_and_taken_out(
    user: Path, terminal: Any, client: str, command: str
) -> None:
    placed(client)
    event = "beforeSubmitPrompt" if client == "cursor" else "UserPromptSubmit"
    hook = {"type": "command", "command": f"{command} hook {client}", "timeout": 3}
    item = {"command": hook["command"]} if client == "cursor" else {"hooks": [hook]}
    place = clients()[client].hook_file(os.environ)
    assert place is not None
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"hooks": {event: [item]}}), "utf-8")
    assert terminal("install", client).status == 0
    text = place.read_text()
    assert text.count(f" hook {client}") == sum(
        len(items) for items in json.loads(text)["hooks"].values()
    )
    assert len(json.loads(text)["hooks"][event]) == 1
    assert OLD not in text
    assert terminal("uninstall", client).status == 0
    assert not place.exists() or " hook " not in place.read_text()


def installed_before(terminal: Any, client: str) -> dict[Path, str]:
    """The client as an install of an earlier checkout left it. Returns its files and their texts."""
    user = terminal.folder / "user"
    assert terminal("install", client).status == 0
    os.rename(terminal.home / ".memoranda", terminal.home / former_name.PRIVATE)
    for path in [path for path in user.rglob("*") if path.is_file()]:
        text = (
            path.read_text("utf-8").replace("memoranda", OLD).replace("/bin/memory", f"/bin/{OLD}")
        )
        path.unlink()
        path.with_name(path.name.replace("memoranda", OLD)).write_text(text, "utf-8")
    return files_of_clients(user)


def files_of_clients(user: Path) -> dict[Path, str]:
    return {
        path: path.read_text("utf-8")
        for path in sorted(user.rglob("*"))
        if path.is_file() and ".memory" not in path.parts
    }


@pytest.mark.parametrize("client", ["copilot-cli", "claude-code", "codex", "cursor", "gemini-cli"])
def test_uninstall_leaves_files_as_they_were_before_an_install_of_an_earlier_checkout(
    user: Path, terminal: Any, client: str
) -> None:
    file = placed(client, 'model = "x"\n' if client == "codex" else '{"a": 1}')
    before = files_of_clients(user)

    assert OLD in "".join(map(str, installed_before(terminal, client).items()))
    assert terminal("uninstall", client).status == 0
    assert files_of_clients(user) == before
    assert file in before


@pytest.mark.parametrize("client", ["copilot-cli", "claude-code", "codex", "cursor", "gemini-cli"])
def test_install_after_one_of_an_earlier_checkout_is_as_one_alone(
    user: Path, terminal: Any, client: str
) -> None:
    placed(client, 'model = "x"\n' if client == "codex" else '{"a": 1}')
    before = files_of_clients(user)
    assert terminal("install", client).status == 0
    alone = files_of_clients(user)
    assert terminal("uninstall", client).status == 0
    assert files_of_clients(user) == before
    installed_before(terminal, client)
    assert terminal("install", client).status == 0
    assert files_of_clients(user) == alone
    assert terminal("uninstall", client).status == 0
    assert files_of_clients(user) == before


@pytest.mark.parametrize("act", ["install", "uninstall"])
def test_the_former_plugin_is_switched_off(user: Path, terminal: Any, act: str) -> None:
    placed("claude-code")
    settings = terminal.folder / "user/.claude/settings.json"
    settings.write_text(json.dumps({"enabledPlugins": {former_name.PLUGIN: True, "b@c": True}}))
    placed("codex")
    toml = terminal.folder / "user/.codex/config.toml"
    toml.write_text(f'model = "x"\n\n[plugins."{former_name.PLUGIN}"]\nenabled = true\n')

    ran = terminal(act, "claude-code", "codex")
    assert ran.status == 0
    assert json.loads(settings.read_text())["enabledPlugins"] == {"b@c": True}
    assert former_name.PLUGIN not in toml.read_text()
    assert 'model = "x"' in toml.read_text()


def test_a_dry_run_of_install_makes_nothing(user: Path, terminal: Any) -> None:
    former_home(terminal.home)
    placed("cursor")
    assert terminal("install", "cursor", "--dry-run").status == 0
    assert not (terminal.home / ".memoranda").exists()
