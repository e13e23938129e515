"""What is read of the transcripts of each agent, against golden files."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from itertools import chain

import pytest

from memoranda.transcripts import places
from memoranda.transcripts.blocks import tool_result
from memoranda.transcripts.databases import _can_decompress
from memoranda.transcripts.formats import FORMATS
from memoranda.transcripts.turn import NotUnderstood
from transcripts.conftest import DATA, ZED, database, zed_threads

GOLDEN = DATA / "golden.json"
AGENTS = (
    "claude-code",
    "codex",
    "gemini-cli",
    "opencode",
    "cursor",
    "copilot-cli",
    "cline",
    "goose",
    "amp",
    "windsurf",
    "aider",
    "continue",
    "zed",
)


def read_all(person):
    """The turns of every file, as JSON, by agent and file."""
    sessions_by_agent = {}
    for file in places.find():
        name = str(file.path.relative_to(person))
        sessions = sessions_by_agent.setdefault(file.agent, {}).setdefault(name, [])
        for session in FORMATS[file.format].read(file.path, {}):
            turns = [
                [turn.kind.name, turn.text, turn.position, round(turn.time), turn.has_failed]
                for turn in session.turns
            ]
            about = session.session
            folder = about.folder.replace(str(person), "~")
            sessions.append([about.name.replace(str(person), "~"), folder, turns])
    return sessions_by_agent


def test_transcripts_of_each_agent_are_read_as_the_golden_file_says(person, monkeypatch):
    # A turn without a time has the time of its file
    for path in person.rglob("*"):
        os.utime(path, (1_790_000_000, 1_790_000_000))
    # Aider writes times of the clock on the wall
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    sessions_by_agent = read_all(person)
    if os.environ.get("WRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(sessions_by_agent, indent=1, ensure_ascii=False) + "\n")

    document = json.loads(GOLDEN.read_text())
    assert sessions_by_agent == document
    assert sorted(sessions_by_agent) == sorted(AGENTS)


def test_the_table_names_every_agent_and_a_format_for_each_of_its_stores(person):
    assert set(places.agents()) == set(AGENTS)
    assert {store.format for store in places.stores()} == set(FORMATS)
    for system in ("linux", "macos"):
        assert all(store.roots for store in places.stores(system))


def test_each_passage_is_found_again_where_the_index_says_it_is(person):
    count = 0
    for file in places.find():
        form = FORMATS[file.format]
        for session in form.read(file.path, {}):
            for turn in session.turns:
                count += 1
                assert form.passage(file.path, session.session.name, turn.position) == turn.text
    assert count > 50


def test_a_file_that_grew_is_read_from_where_it_ended(person):
    path = next(person.glob(".claude/projects/*/*.jsonl"))
    form = FORMATS["claude-code"]
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    expected = []
    for outcome in form.read(path, {}):
        expected.extend(outcome.turns)
    state = {}
    turns = []
    # Cut in the middle of a line, too
    for end in (len(lines[0]) + 5, len(whole) // 2, len(whole) - 3, len(whole)):
        path.write_bytes(whole[:end])
        for outcome in form.read(path, state):
            turns += outcome.turns

    assert turns == expected


def test_a_block_of_memory_is_left_out_of_an_output_and_beginnings_alone_cost_no_time():
    output = "a <memoranda-memory x>told</memoranda-memory>b <memoranda-memory x>c"
    texts = [part.text for part in tool_result(output)]
    assert texts == ["a b <memoranda-memory x>c"]
    begin = time.process_time()
    list(tool_result(output + "<memoranda-memory x> line\n" * 20_000))
    assert time.process_time() - begin < 2


DEEP = "[" * 800 + "]" * 800
ODD = {
    "claude-code": '{"type": "assistant", "message": {"role": "assistant", "content": ['
    '{"type": "tool_use", "name": "Edit", "input": {"command": ["view"]}},'
    ' {"type": "text", "text": "the kelp grows"}]}}\n'
    f'{{"type": "user", "message": {{"content": [{{"type": "tool_result", "content": {DEEP}}}]}}}}\n',
    "codex": '{"type": "response_item", "payload": {"type": "function_call_output",'
    ' "output": "{\\"metadata\\": [1], \\"output\\": \\"the kelp grows\\"}"}}\n',
    "goose-lines": '{"role": "user", "content": [{"type": "toolRequest", "toolCall": "x"},'
    ' {"type": "toolRequest", "toolCall": {"value": [1]}}, {"type": "toolResponse", "toolResult": 1},'
    ' {"type": "text", "text": "the kelp grows"}]}\n',
    "gemini-cli": '{"sessionId": "s", "messages": [{"type": "gemini", "content": "the kelp grows",'
    ' "toolCalls": 7}, {"type": "gemini", "toolCalls": [{"result": 5},'
    ' {"result": [{"functionResponse": "x"}]}]}]}',
    "continue": '{"history": [{"message": {"role": "assistant", "content": "the kelp grows",'
    ' "toolCalls": 3}, "toolCallStates": true},'
    ' {"message": {"role": "assistant", "toolCalls": [{"function": "x"}]}}]}',
}


@pytest.mark.parametrize("format", sorted(ODD))
def test_a_value_of_an_unexpected_type_does_not_keep_a_file_from_being_read(format, tmp_path):
    path = tmp_path / ("x.json" if ODD[format].startswith(('{"s', '{"h')) else "x.jsonl")
    path.write_text(ODD[format])
    turns = []
    for outcome in FORMATS[format].read(path, {}):
        turns += [turn.text for turn in outcome.turns]
    assert any("the kelp grows" in text for text in turns)


def test_a_value_of_an_unexpected_type_does_not_keep_a_database_from_being_read(tmp_path):
    path = tmp_path / "opencode.db"
    odd = [
        {"type": "text", "text": "the kelp grows", "time": 1},
        {"type": "tool", "tool": "bash", "state": [1]},
        {"type": "tool", "tool": "bash", "state": {"metadata": "x"}},
    ]
    rows = ", ".join(f"('p{number}', 'm', '{json.dumps(part)}')" for number, part in enumerate(odd))
    database(
        path,
        "create table session (id, directory, time_created, time_updated);"
        "create table message (id, session_id, time_created, data);"
        "create table part (id, message_id, data);"
        "insert into session values ('s', '/work', 1, 1);"
        """insert into message values ('m', 's', 1, '{"role": "user", "time": "x"}');"""
        f"insert into part values {rows};",
    )
    turns = []
    for outcome in FORMATS["opencode"].read(path, {}):
        turns += [turn.text for turn in outcome.turns]
    assert turns == ["the kelp grows"]


def test_closed_stores_are_named_with_the_reason(person):
    assert "encrypts" in places.closed()["windsurf"]


@pytest.mark.parametrize("format", sorted(set(FORMATS) - {"windsurf"}))
def test_a_file_of_another_form_is_refused_with_a_reason(format, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f'["no", "transcript", {number}]\n' for number in range(5)))
    with pytest.raises(NotUnderstood) as refused:
        list(FORMATS[format].read(path, {}))

    assert str(refused.value)


def test_a_compressed_thread_is_read_or_the_reason_is_named(person):
    path = person / ZED
    path.unlink()
    zed_threads(path, compressed=True)
    if _can_decompress():
        turns = []
        for outcome in FORMATS["zed"].read(path, {}):
            turns += [turn.text for turn in outcome.turns]
        assert "In threads.db below the data folder." in turns
        assert "It does." in turns
    else:
        with pytest.raises(NotUnderstood, match="Zstandard"):
            list(FORMATS["zed"].read(path, {}))


def test_reading_changes_no_file_and_makes_none(person):
    def state():
        return {
            str(path): (path.stat().st_mtime_ns, path.read_bytes())
            for path in person.rglob("*")
            if path.is_file() and not re.search(r"-(wal|shm)\Z", path.name)
        }

    before = state()
    read_all(person)
    assert state() == before


# Sessions that tools/try_transcripts.py had the real clients write, with a fake model. The agent,
# and whether it runs commands that nobody asked for.
REAL = {
    "gemini-cli": True,
    "opencode": True,
    "copilot-cli": True,
    "cline": True,
    "continue": True,
    "aider": False,
}
PROMPT = "Please look how the kelp of the northern bay is doing today."


@pytest.mark.parametrize(("agent", "runs_commands"), REAL.items())
def test_a_session_of_the_real_client_is_read_whole(agent, runs_commands, empty_person):
    shutil.copytree(DATA / "real", empty_person, dirs_exist_ok=True)
    script = (DATA / "real" / "opencode.sql").read_text("utf-8")
    database(empty_person / ".local" / "share" / "opencode" / "opencode.db", script)
    (file,) = [file for file in places.find() if file.agent == agent]
    form = FORMATS[file.format]
    outcomes = list(form.read(file.path, {}))
    turns_read = list(chain.from_iterable(outcome.turns for outcome in outcomes))
    turns = [(turn.kind.name, turn.text.strip('"'), turn.has_failed) for turn in turns_read]
    assert turns[0] == ("SAID", PROMPT, None)
    assert turns[-1] == ("ANSWERED", "The kelp of the northern bay grows.", None)
    session = outcomes[0].session
    for turn in turns_read:
        assert form.passage(file.path, session.name, turn.position) == turn.text
    if not runs_commands:
        assert len(turns) == 2
        return
    assert session.folder == "/work/kelp"
    _, command, failure, other_command, success, _ = turns
    assert command == ("RAN", "cat kelp-that-is-missing", None)
    assert other_command == ("RAN", "echo kelp is there", None)
    assert failure[0] == "RESULT"
    assert failure[2] is True
    assert "No such file or directory" in failure[1]
    assert success[0] == "RESULT"
    assert success[1].startswith("kelp is there")
    assert not success[2]
