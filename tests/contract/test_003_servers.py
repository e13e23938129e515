"""Contract 003, 11: several servers on one bank, and servers that die."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from contract.mcp_server import Server
from contract.memory_bank import Ground

APPENDS = 40


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    for name in ("MEMORY_AGENT", "MEMORY_BANK_DEBUG", "MEMORY_BANK_ROOT", "LLM_API_URL"):
        monkeypatch.delenv(name, raising=False)
    return Ground(tmp_path)


def append(text: str) -> dict[str, object]:
    arguments = {"bank_type": "project", "bank_id": "p", "target_file": "notes/ideas.md", "content": text}
    return {"name": "update", "arguments": arguments}


@pytest.mark.promise("003-11.4")
def test_two_servers_with_forty_appends_each_leave_eighty_blocks(ground: Ground) -> None:
    options = ("--tools", "bank", "--home", str(ground.home))
    with Server(*options) as one, Server(*options) as two:
        for number in range(APPENDS):
            one.send("tools/call", append(f"one {number}"))
            two.send("tools/call", append(f"two {number}"))
        for server in (one, two):
            for _ in range(APPENDS):
                assert not server.receive()["result"]["isError"]
    text = (ground.banks / "projects/p/notes/ideas.md").read_text()
    for name in ("one", "two"):
        assert re.findall(rf"(?<=\n\n){name} (\d+)\n", text) == [str(number) for number in range(APPENDS)]
    assert text.count("# Project Ideas\n") == 1
    assert len(json.loads((ground.banks / "projects/p/.bank.json").read_text())) == 4


@pytest.mark.promise("003-11.4")
def test_servers_of_two_homes_on_one_root_lose_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()

    def server(home: str) -> Server:
        return Server("--as", "memory-bank", "--home", str(tmp_path / home), MEMORY_BANK_ROOT=str(root))

    with server("one") as one, server("two") as two:
        one.call("activate", bank_type="project", bank_id="p")
        for number in range(APPENDS):
            one.send("tools/call", append(f"one {number}"))
            two.send("tools/call", append(f"two {number}"))
        for each in (one, two):
            assert not any(each.receive()["result"]["isError"] for _ in range(APPENDS))
    text = (root / "projects/p/notes/ideas.md").read_text()
    for name in ("one", "two"):
        assert re.findall(rf"(?<=\n\n){name} (\d+)\n", text) == [str(number) for number in range(APPENDS)]


@pytest.mark.promise("003-11.4")
def test_what_was_answered_is_there_after_kill_9(ground: Ground) -> None:
    with Server("--tools", "bank", "--home", str(ground.home)) as server:
        server.ask("tools/call", append("still here"))
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
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.stderr is not None
        said = server.process.stderr.read().decode()
        assert server.process.wait(60) == 0
    lines = said.splitlines()
    assert any("activated global:default, about" in line for line in lines)
    assert any('"processing_method": "rule-based"' in line for line in lines)
    assert all(line.startswith("DEBUG:commonplace.") for line in lines)
