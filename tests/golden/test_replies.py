"""Every reply of every tool and command is as it was: the files in `replies/` hold them.

A call that changes one is either wanted, and the file is written again with
`pytest tests/golden --update` and read before it is committed, or it is a fault. Ids and times are
those of a fixed clock and a fixed chance. What differs from run to run is masked: the moment a file
was written, the folder of the home, sizes on disk.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shlex
import types
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from golden import calls
from memoranda import clock
from memoranda.cli import COMMANDS
from memoranda.cli.presets import preset
from memoranda.config import load
from memoranda.engine import open_session
from memoranda.faces import TOOLSETS, registry
from memoranda.faces.agent.session import call_tool

FOLDER = Path(__file__).parent / "replies"
NOW = datetime(2025, 5, 7, 10, tzinfo=UTC)
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = r"[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?"


class FixedChance:
    """Random bytes that are the same in each run, from `restart` on."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def restart(self) -> None:
        """Start with new ids: an import for the first time may have used some."""
        self._numbers = count(1)

    def urandom(self, size: int) -> bytes:
        return hashlib.sha256(str(next(self._numbers)).encode()).digest()[:size]

    def token_hex(self, size: int) -> str:
        return self.urandom(size).hex()


@pytest.fixture(autouse=True)
def chance(monkeypatch: pytest.MonkeyPatch) -> FixedChance:
    """Make ids and tokens the same in each run."""
    fixed = FixedChance()
    monkeypatch.setattr(uuid, "os", types.SimpleNamespace(urandom=fixed.urandom))
    monkeypatch.setattr(secrets, "token_hex", fixed.token_hex)
    monkeypatch.setattr(secrets, "token_urlsafe", fixed.token_hex)
    return fixed


def masked(text: str, home: Path) -> str:
    """`text` without what differs from run to run."""
    today = datetime.now(UTC).date().isoformat()
    text = text.replace(str(home), "HOME")
    text = re.sub(rf"{today}({_TIME})?", "<now>", text)
    text = re.sub(r"\b\d+(\.\d)? (bytes|KB|MB|GB|kB)\b", "<size>", text)
    text = re.sub(r"(\"(?:\w+_)?(?:bytes|size|pid|inode|seconds)\": )[\d.]+", r"\1<number>", text)
    text = re.sub(r"\bcpl_\w{20,}", "cpl_<secret>", text)
    return re.sub(r"\b\d+(\.\d+)? (ms|s)\b", "<span>", text)


def pretty(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=1, sort_keys=False)


def compare(name: str, entries: list[str], update: bool) -> None:
    """The entries are those of the file `name`, which `update` writes."""
    file = FOLDER / f"{name}.txt"
    replies_now = "\n\n".join(entries) + "\n"
    if update:
        FOLDER.mkdir(exist_ok=True)
        file.write_text(replies_now, "utf-8")
    assert replies_now == file.read_text("utf-8")


class Known:
    """The ids the replies named, which later calls may use as {ID1} and so on."""

    def __init__(self, home: Path):
        self.ids: list[str] = []
        self.home = home

    def filled(self, text: str) -> str:
        for number, identity in enumerate(self.ids, 1):
            text = text.replace(f"{{ID{number}}}", identity)
        return text.replace("{HOME}", str(self.home))

    def learn(self, text: str) -> None:
        self.ids = list(dict.fromkeys([*self.ids, *_UUID.findall(text)]))


def play(call: Callable[[str, Any], Any], script: list[calls.Call], home: Path) -> Iterator[str]:
    """The entry of each call."""
    known_values = Known(home)
    for name, arguments in script:
        filled = json.loads(known_values.filled(json.dumps(arguments)))
        reply = call(name, filled)
        known_values.learn(reply.text)
        head = f"### {name} {json.dumps(arguments, ensure_ascii=False)}"
        parts = [head + (" -> error" if reply.is_error else ""), reply.text]
        if reply.data is not None:
            parts.append(f"--- data\n{pretty(reply.data)}")
        if reply.meta:
            parts.append(f"--- meta\n{pretty(reply.meta)}")
        if reply.hint:
            parts.append(f"--- hint\n{reply.hint}")
        yield masked("\n".join(parts), home)


def toolset_registry(name: str, home: Path) -> tuple[Any, Any]:
    """A session and the registry of a toolset, or of a preset `as-NAME`."""
    if name == "as-basic-memory":
        (home / "main").mkdir(parents=True)
        (home / "bm").mkdir()
        config = {"projects": {"main": str(home / "main")}, "default_project": "main"}
        (home / "bm/config.json").write_text(json.dumps(config))
        chosen = preset("basic-memory", {"BASIC_MEMORY_CONFIG_DIR": str(home / "bm")})
        settings = replace(load(home / "home", None), default_project="main")
        memory = open_session(
            projects=chosen.projects, config=settings, watch=False, clock=lambda: NOW
        )
        return memory, registry(chosen.tools, settings, manners=chosen.manners)
    memory = open_session(home / "home", watch=False, clock=lambda: NOW)
    like = name.removeprefix("as-") if name.startswith("as-") else None
    names = ["graph"] if like else [name]
    return memory, registry(names, memory.settings, like=like)


@pytest.mark.parametrize("name", calls.PRESETS)
def test_tool_called_reply_is_the_stored_one(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    memory, tools = toolset_registry(name, tmp_path)
    script = calls.PRESETS[name]
    with memory:
        entries = list(
            play(lambda tool, args: call_tool(tools, memory, tool, args), script, tmp_path)
        )
        listed = {tool.name for tool in tools.tools.values()}
    assert listed - {tool for tool, _ in script} - set(calls.NOT_CALLED) == set()
    compare(name, entries, request.config.getoption("--update"))


def test_tool_listed_schema_is_the_stored_one(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    entries = []
    for name in calls.PRESETS:
        memory, tools = toolset_registry(name, tmp_path / name)
        memory.close()
        for tool in tools.tools.values():
            schema_shown = {
                "title": tool.title,
                "schema": tool.schema,
                "annotations": dict(tool.annotations),
                "output_schema": tool.output_schema,
            }
            entries.append(f"### {name}: {tool.name}\n{tool.description}\n{pretty(schema_shown)}")
    compare("schemas", entries, request.config.getoption("--update"))


@pytest.mark.parametrize("form", ["text", "json"])
def test_command_run_output_is_the_stored_one(
    form: str, terminal: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(clock, "now", lambda: NOW)
    known_values = Known(terminal.folder)
    options = ["--json"] if form == "json" else []
    entries = []
    for line in calls.COMMANDS:
        words = line.split() if '{"' in line else shlex.split(known_values.filled(line))
        ran = terminal(*options, *words)
        known_values.learn(ran.out + _written_ids(terminal))
        parts = [f"$ memory {line}" + (f"  (exit {ran.status})" if ran.status else ""), ran.out]
        parts += [f"--- stderr\n{ran.err}"] if ran.err else []
        entries.append(masked("\n".join(part.rstrip("\n") for part in parts), terminal.folder))
    run = {line.split()[0] for line in calls.COMMANDS}
    assert set(COMMANDS) - run == set(calls.NOT_RUN)
    compare(f"commands-{form}", entries, request.config.getoption("--update"))


def _written_ids(terminal: Any) -> str:
    """The ids of all memories, in the order they were written."""
    files = [*terminal.home.glob("categories/**/*.md")]
    files.sort(key=lambda file: file.stat().st_mtime_ns)
    return "\n".join(match[0] for file in files if (match := _UUID.search(file.read_text("utf-8"))))


@pytest.mark.anyio
async def test_api_asked_answer_is_the_stored_one(
    tmp_path: Path, request: pytest.FixtureRequest, chance: FixedChance
) -> None:
    from serve.web import Web, bearer

    web = Web(tmp_path / "home")
    web.now = NOW
    tools = registry(["notes", "agent"], web.memory.settings)
    chance.restart()
    for tool, arguments in (*calls.NOTES[2:4], *calls.AGENT[:2]):
        call_tool(tools, web.memory, tool, arguments)
    secret = web.token(scope="admin")
    entries = []
    async with web.served() as client:
        client.headers.update(bearer(secret))
        for path in calls.API:
            answer = await client.get(path)
            reply_now = f"### GET {path} -> {answer.status_code}\n{pretty(answer.json())}"
            entries.append(masked(reply_now, tmp_path))
    web.close()
    compare("api", entries, request.config.getoption("--update"))


def test_every_toolset_has_its_calls() -> None:
    assert set(TOOLSETS) <= set(calls.PRESETS)
