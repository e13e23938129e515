"""A home folder of a person with the transcripts of every agent that is read."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoranda.engine import open_session
from memoranda.text.gate import default_rules
from memoranda.transcripts.mask import Mask
from movable_clock import Clock

DATA = Path(__file__).parents[1] / "data" / "transcripts"
_DATABASES = {
    "opencode.sql": ".local/share/opencode/opencode.db",
    "goose.sql": ".local/share/goose/sessions/sessions.db",
    "cursor.sql": ".config/Cursor/User/globalStorage/state.vscdb",
}
ZED = ".local/share/zed/threads/threads.db"
_VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
    "CURSOR_CONFIG_DIR",
    "COPILOT_HOME",
    "CLINE_DIR",
    "CLINE_SESSION_DATA_DIR",
    "GEMINI_CLI_HOME",
    "CONTINUE_GLOBAL_DIR",
    "FLATPAK_XDG_DATA_HOME",
    "AIDER_CHAT_HISTORY_FILE",
)


def database(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def zstd_frame(data: bytes) -> bytes:
    """`data` as a Zstandard frame with one block that is not compressed."""
    header = (len(data) << 3) | 1
    size = len(data).to_bytes(4, "little")
    return b"\x28\xb5\x2f\xfd\xa0" + size + header.to_bytes(3, "little") + data


def zed_threads(path: Path, *, compressed: bool) -> None:
    modern = {
        "version": "0.3.0",
        "title": "read the threads",
        "messages": [
            {
                "User": {
                    "id": "u1",
                    "content": [
                        {"Text": "where are the threads kept?"},
                        {"Mention": {"uri": {"File": {"abs_path": "/a"}}, "content": "a file"}},
                    ],
                }
            },
            {
                "Agent": {
                    "content": [
                        {"Thinking": {"text": "hidden"}},
                        {"Text": "In threads.db below the data folder."},
                        {
                            "ToolUse": {
                                "id": "z",
                                "name": "terminal",
                                "input": {"command": "zedctl"},
                            }
                        },
                    ],
                    "tool_results": {
                        "z": {"is_error": True, "content": [{"Text": "zedctl: not running"}]}
                    },
                }
            },
            "Resume",
        ],
    }
    legacy = {
        "version": "0.2.0",
        "summary": "older",
        "messages": [
            {"role": "user", "segments": [{"type": "text", "text": "does the old shape load?"}]},
            {
                "role": "assistant",
                "segments": [{"type": "text", "text": "It does."}],
                "tool_uses": [{"id": "o", "name": "terminal", "input": {"command": "zed --old"}}],
            },
            {
                "role": "user",
                "segments": [],
                "tool_results": [{"tool_use_id": "o", "is_error": False, "content": "an old one"}],
            },
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "create table threads (id text primary key, summary text not null, updated_at text,"
            " data_type text, data blob, folder_paths text, created_at text,"
            " folder_paths_order text, parent_id text)"
        )
        rows = [("legacy", "2026-07-19T08:00:02+00:00", "json", json.dumps(legacy).encode())]
        data = json.dumps(modern).encode()
        if compressed:
            rows.append(("modern", "2026-07-19T09:00:02+00:00", "zstd", zstd_frame(data)))
        else:
            rows.append(("modern", "2026-07-19T09:00:02+00:00", "json", data))
        connection.executemany(
            "insert into threads (id, summary, updated_at, data_type, data, folder_paths,"
            " folder_paths_order) values (?, '', ?, ?, ?, '/work/a\n/work/zed', '1,0')",
            rows,
        )
        # A thread of a subagent, which is not read.
        connection.execute(
            "insert into threads (id, summary, updated_at, data_type, data, parent_id)"
            " values ('subagent', '', '2026-07-19T09:00:03+00:00', 'json', ?, 'modern')",
            (data,),
        )
        connection.commit()


@pytest.fixture
def empty_person(tmp_path, monkeypatch):
    """The home folder of a person without any transcript."""
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def person(empty_person):
    """The home folder of a person, with a transcript of each kind."""
    shutil.copytree(DATA / "home", empty_person, dirs_exist_ok=True)
    for name, place in _DATABASES.items():
        database(empty_person / place, (DATA / "sql" / name).read_text("utf-8"))
    zed_threads(empty_person / ZED, compressed=False)
    return empty_person


@pytest.fixture
def mask():
    return Mask(default_rules())


@pytest.fixture
def memory(tmp_path, empty_person):
    """An open memory that may read transcripts."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("transcripts:\n  enabled: true\n")
    clock = Clock(datetime(2026, 11, 28, 10, 0, tzinfo=UTC))
    with open_session(home, clock=clock, watch=False) as memory:
        yield memory


class ClaudeSession:
    """Writes a transcript as Claude Code does."""

    def __init__(self, person: Path, name: str = "s1", folder: str = "/work/fjord"):
        self.name = name
        self.folder = folder
        self.path = person / ".claude" / "projects" / folder.replace("/", "-") / f"{name}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._calls = 0
        self.hour = 9

    def _write(self, role: str, content: object, **more: object) -> None:
        entry = {
            "type": role,
            "sessionId": self.name,
            "cwd": self.folder,
            "timestamp": f"2026-11-02T{self.hour:02d}:00:00Z",
            "message": {"role": role, "content": content},
        }
        with self.path.open("a") as file:
            file.write(json.dumps(entry | more) + "\n")

    def say(self, text: str, **more: object) -> ClaudeSession:
        self._write("user", text, **more)
        return self

    def answer(self, text: str) -> ClaudeSession:
        self._write("assistant", [{"type": "text", "text": text}])
        return self

    def call(self, name: str, **arguments: object) -> str:
        self._calls += 1
        id = f"toolu_{self._calls}"
        block = {"type": "tool_use", "id": id, "name": name, "input": arguments}
        self._write("assistant", [block])
        return id

    def run(self, command: str, output: str = "ok", *, fails: bool = False) -> ClaudeSession:
        id = self.call("Bash", command=command)
        result = {"type": "tool_result", "tool_use_id": id, "content": output}
        if fails:
            result |= {"is_error": True, "content": f"Exit code 1\n{output}"}
        self._write("user", [result])
        return self

    def edit(self, path: str) -> ClaudeSession:
        id = self.call("Edit", file_path=path, old_string="a", new_string="b")
        self._write("user", [{"type": "tool_result", "tool_use_id": id, "content": "done"}])
        return self


@pytest.fixture
def claude(empty_person):
    return ClaudeSession(empty_person)
