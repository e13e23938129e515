"""Sessions: batches, context, hooks and events (contract 001, 14)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memoranda import InvalidInput, Session
from memoranda.engine import open_session
from memoranda.errors import ConfigError
from memoranda.faces.reply import Reply

pytestmark = pytest.mark.promise("001-17.12")

PAGE = Path(__file__).parents[3] / "docs" / "faces" / "agent.md"
WRITE = {"name": "memory_write", "params": {"content": "dark mode"}}
LIST = {"name": "memory_list"}


class Recorder:
    """A hook that keeps the events."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_event(self, event: Any) -> None:
        self.events.append(event)

    @property
    def order(self) -> list[tuple[str, str | None]]:
        return [(event.type, event.tool_name) for event in self.events]


def test_a_batch_gives_each_call_its_result(desk: Any) -> None:
    results = desk.session.run([WRITE, {"name": "memory_write"}, LIST])
    assert [list(result_row) for result_row in results] == [["name", "params", "result"]] * 3
    assert results[0]["params"] == WRITE["params"]
    assert results[1]["result"] == {"content": "content is required", "is_error": True}
    assert results[2]["params"] == {}
    assert results[2]["result"]["metadata"] == {"count": 1}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ({"name": "nope", "params": {}}, "tool not found: nope"),
        ({"params": {}}, "tool not found: "),
        ({"name": "memory_read", "params": {"id": "gone"}}, "memory not found: gone"),
    ],
)
def test_a_hard_error_ends_the_batch_and_shows_what_was_done(
    desk: Any, call: dict[str, Any], error: str
) -> None:
    results = desk.session.run([WRITE, call, WRITE])
    assert results[0]["result"]["is_error"] is False
    assert results[1:] == [{"name": call.get("name", ""), "params": call["params"], "error": error}]
    assert len(desk("memory_list")) == 1


@pytest.mark.parametrize(
    "call", [5, None, "memory_list", {"name": 5}, {"name": "x", "params": []}, []]
)
def test_what_is_no_call_is_refused_before_anything_is_run(desk: Any, call: Any) -> None:
    with pytest.raises(InvalidInput, match="parse tool calls: call 2 is not of the form"):
        desk.session.run([WRITE, call])
    with pytest.raises(InvalidInput, match="parse tool calls: call 2 is not of the form"):
        desk.session.run_json(json.dumps([WRITE, call]))

    assert desk("memory_list") == []


def test_json_is_run_from_an_array_and_from_an_object(desk: Any) -> None:
    session = desk.session
    assert list(session.run_json(json.dumps([WRITE]).encode())) == ["tool_calls"]
    for key in ("tool_calls", "calls"):
        answer = session.run_json(json.dumps({"prompt": "dark", key: [LIST]}))
        assert list(answer) == ["tool_calls", "context"]
        assert answer["context"] == "dark mode"
        assert answer["tool_calls"][0]["name"] == "memory_list"
    assert session.run_json('{"prompt": "mode"}') == {"tool_calls": [], "context": "dark mode"}
    assert session.run_json("[]") == []
    assert session.run_json(b" \n") == []


@pytest.mark.parametrize(
    "data",
    [
        "notjson",
        "{",
        b"\xff",
        '"text"',
        "5",
        "null",
        '[{"name": "x", "params": {"y": NaN}}]',
        '{"prompt": 5}',
        '{"calls": {}}',
        "[" * 100_000,
    ],
)
def test_what_cannot_be_read_is_refused(desk: Any, data: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^parse tool calls: .") as refused:
        desk.session.run_json(data)
    assert len(str(refused.value)) < 200


def test_the_context_is_the_best_hits_one_after_the_other(desk: Any) -> None:
    desk.write("dark")
    desk.write("nothing")
    desk.write("dark\nmode")
    session = desk.session
    assert session.context == ""
    assert session.inject_context("dark mode") == session.context == "dark\nmode\ndark"
    assert session.inject_context("?!") == session.context == ""
    assert session.inject_context("unknown") == ""


def test_the_context_within_a_number_of_tokens_is_the_best_evidence(desk: Any) -> None:
    desk.write("Ada keeps a tortoise called Ozzy in the kitchen.")
    desk.write("The kitchen was painted, and Ada was there; a tortoise is slow.")
    session = desk.session
    text = session.inject_context("What is Ada's tortoise called?", max_tokens=60)
    assert (
        text
        == session.context
        == desk.memory.context_for("What is Ada's tortoise called?", max_tokens=60)
    )
    assert "Ada keeps a tortoise called Ozzy in the kitchen." in text
    assert len(text) <= 240
    assert session.inject_context("zebra", max_tokens=60) == session.context == ""


def test_the_context_has_all_hits_that_fit(desk: Any) -> None:
    for number in range(60):
        desk.write(f"dark {number:02}")
    assert len(desk.session.inject_context("dark").split("\n")) == 60


def test_the_context_has_no_more_characters_than_configured(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("agent:\n  context_chars: 12\n")
    call = {"name": "memory_write", "params": {"content": "深色模式 mode"}}
    with open_session(home, watch=False) as memory:
        session = Session(memory)
        session.run([call, call, call])
        assert session.inject_context("mode") == "深色模式 mode\n深色"


def test_a_hook_blocks_a_call_and_ends_the_batch(desk: Any) -> None:
    class NoWriting:
        def before_tool_call(self, ctx: Any, name: str, params: Any) -> bool:
            return name != "memory_write" and ctx.agent == "claude"

    session = Session(desk.memory.as_caller("claude"), hooks=[NoWriting()])
    results = session.run([LIST, WRITE, LIST])
    assert "result" in results[0]
    assert results[1:] == [WRITE | {"error": "tool memory_write blocked by before_tool_call hook"}]
    assert desk("memory_list") == []


def test_a_hook_that_fails_before_the_call_blocks_it(desk: Any) -> None:
    class Broken:
        def before_tool_call(self, ctx: Any, name: str, params: Any) -> bool:
            raise RuntimeError("broken")

    (result,) = Session(desk.memory, hooks=[Broken()]).run([WRITE])
    assert result["error"] == "tool memory_write blocked by before_tool_call hook"


def test_a_hook_changes_a_result(desk: Any) -> None:
    class Shouting:
        def after_tool_call(self, ctx: Any, name: str, params: Any, result: Reply) -> Reply | None:
            if name == "memory_list":
                return Reply(result.text.upper())
            return None

    class Broken:
        def after_tool_call(self, ctx: Any, name: str, params: Any, result: Reply) -> Reply | None:
            raise RuntimeError("broken")

    class Wrong:
        def after_tool_call(self, ctx: Any, name: str, params: Any, result: Reply) -> Any:
            return "a text"

    results = Session(desk.memory, hooks=[Broken(), Wrong(), Shouting()]).run([WRITE, LIST])
    assert '"id"' in results[0]["result"]["content"]
    assert '"CONTENT":"DARK MODE"' in results[1]["result"]["content"]


def test_events_come_in_order(desk: Any) -> None:
    recorder = Recorder()
    session = Session(desk.memory, hooks=[recorder])
    waiting = session.subscribe()
    session.run([WRITE, LIST, {"name": "nope", "params": {"a": 1}}, WRITE])
    assert recorder.order == [
        ("agent_start", None),
        ("tool_start", "memory_write"),
        ("tool_end", "memory_write"),
        ("tool_start", "memory_list"),
        ("tool_end", "memory_list"),
        ("tool_start", "nope"),
        ("error", "nope"),
        ("agent_end", None),
    ]
    assert waiting.drain() == recorder.events
    assert waiting.drain() == []
    events = recorder.events
    assert (events[1].data, events[5].data) == (WRITE["params"], {"a": 1})
    assert json.loads(events[2].data.text)["phase"] == "inbox"
    assert events[6].error == "tool not found: nope"
    stamps = [event.timestamp for event in events]
    assert stamps == sorted(stamps)
    assert stamps[0].startswith("2026-05-07T10:")


def test_a_blocked_call_has_its_start_and_its_error(desk: Any) -> None:
    class Never(Recorder):
        def before_tool_call(self, ctx: Any, name: str, params: Any) -> bool:
            return False

    hook = Never()
    Session(desk.memory, hooks=[hook]).run([LIST])
    kinds = [kind for kind, _ in hook.order]
    assert kinds == ["agent_start", "tool_start", "error", "agent_end"]
    assert hook.events[2].error == "tool memory_list blocked by before_tool_call hook"


def test_a_batch_without_calls_starts_and_ends(desk: Any) -> None:
    recorder = Recorder()
    assert Session(desk.memory, hooks=[recorder]).run([]) == []
    assert [kind for kind, _ in recorder.order] == ["agent_start", "agent_end"]


def test_a_full_queue_drops_its_oldest_events(desk: Any) -> None:
    waiting = desk.session.subscribe()
    desk.session.run([LIST] * 40)
    events = waiting.drain()

    assert len(events) == 64
    assert events[-1].type == "agent_end"
    types = {event.type for event in events}
    assert "agent_start" not in types


def test_hooks_of_entry_points_come_before_those_given(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import metadata

    heard: list[str] = []

    def hook(name: str) -> Any:
        return SimpleNamespace(before_tool_call=lambda *_: heard.append(name) or True)

    def entry_points(group: str) -> list[Any]:
        assert group == "memoranda.hooks"
        return [SimpleNamespace(load=lambda: lambda: hook("installed"))]

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    Session(desk.memory, hooks=[hook("given")]).run([LIST])
    assert heard == ["installed", "given"]


def test_hooks_that_cannot_be_loaded_are_named(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    hook_points = [EntryPoint("mine", "memoranda_no_such_module:Hook", "memoranda.hooks")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: hook_points)
    with pytest.raises(ConfigError) as refused:
        Session(desk.memory)
    assert str(refused.value) == (
        'the hooks "mine" (memoranda_no_such_module:Hook) cannot be loaded: '
        "No module named 'memoranda_no_such_module'"
    )


def test_a_session_may_have_other_toolsets(desk: Any) -> None:
    session = Session(desk.memory, tools=("agent", "notes"))
    results = session.run(
        [
            {"name": "write_note", "params": {"title": "Tea", "content": "green"}},
            {"name": "read_note", "params": {}},
            {"name": "read_note", "params": {"identifier": "nobody"}},
            LIST,
        ]
    )
    assert [sorted(result_row) for result_row in results] == [["name", "params", "result"]] * 2 + [
        ["error", "name", "params"]
    ]
    assert results[1]["result"]["is_error"] is True


def test_the_example_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MEMORY_HOME", str(tmp_path / "home"))
    text = PAGE.read_text("utf-8")
    example, printed = (
        re.search(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S) for kind in ("python", "text")
    )
    assert example
    assert printed
    exec(compile(example[1], PAGE.name, "exec"), {})
    out = capsys.readouterr().out
    assert out == printed[1]
