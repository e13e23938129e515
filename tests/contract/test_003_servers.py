"""Contract 003, 11: several servers on one bank, and servers that die."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from contract.home_kinds import BANK
from contract.mcp_server import Server
from contract.memory_bank import Ground

APPENDS = 40


def append(server: Server, text: str) -> None:
    server.begin("update", bank_type="project", bank_id="p", target_file="notes/ideas.md", content=text)


@pytest.mark.folder_home(BANK)
@pytest.mark.promise("003-11.4")
@pytest.mark.parametrize("homes", [("one", "one"), ("one", "two")])
def test_two_servers_with_forty_appends_each_leave_eighty_blocks(tmp_path: Path, homes: tuple[str, str]) -> None:
    root = tmp_path / "root"
    root.mkdir()
    one, two = (
        Server("--as", "memory-bank", "--home", str(tmp_path / home), MEMORY_BANK_ROOT=str(root)) for home in homes
    )
    with one, two:
        for number in range(APPENDS):
            append(one, f"one {number}")
            append(two, f"two {number}")
        for server in (one, two):
            assert not any(server.receive()["result"]["isError"] for _ in range(APPENDS))
    text = (root / "projects/p/notes/ideas.md").read_text()
    for name in ("one", "two"):
        assert re.findall(rf"(?<=\n\n){name} (\d+)\n", text) == [str(number) for number in range(APPENDS)]
    assert text.count("# Project Ideas\n") == 1
    assert len(json.loads((root / "projects/p/.bank.json").read_text())) == 4


@pytest.mark.promise("003-11.4")
def test_what_was_answered_is_there_after_kill_9(ground: Ground) -> None:
    with Server("--tools", "bank", "--home", str(ground.home)) as server:
        append(server, "still here")
        assert not server.receive()["result"]["isError"]
        server.process.kill()
        server.process.wait(60)
    assert (ground.banks / "projects/p/notes/ideas.md").read_text().endswith("\n\nstill here\n")
    assert [each.name for each in ground.banks.rglob(".tmp-*")] == []


@pytest.mark.promise("003-11.9")
def test_stdout_holds_json_rpc_only_with_debug_logging_on(ground: Ground) -> None:
    (ground.home / "config.yaml").write_text("bank:\n  debug: true\n")
    with Server("--tools", "bank", "--home", str(ground.home)) as server:
        assert "instructions" not in server.hello
        assert list(server.hello["capabilities"]) == ["tools"]
        listed = server.ask("tools/list")["result"]["tools"]
        assert [each["name"] for each in listed] == ["activate", "list", "update"]
        server.call("activate", bank_type="global", bank_id="auto")
        server.call("update", bank_type="global", bank_id="auto", content="the user likes to test")
        assert server.close() == 0
        lines = server.errors().splitlines()
    assert any("activated global:default, about" in line for line in lines)
    assert any('"processing_method": "rule-based"' in line for line in lines)
    assert all(line.startswith("DEBUG:commonplace.") for line in lines)
