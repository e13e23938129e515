"""UTF-16 files are said to be so, listed, and no garbage (issue 33, 10)."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.faces import registry
from memoranda.faces.reply import Reply
from memoranda.text.utf16 import utf16_text

TEXTS = [
    "Hello zebra",
    "# Title\r\n\r\nzebra text\r\n",
    "---\ntitle: Named\n---\nzebra\n",
    "zebra café größe",
    "zebra " * 3_000,
]
CODINGS = {
    "little endian": lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
    "big endian": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
    "little endian without mark": lambda text: text.encode("utf-16-le"),
    "big endian without mark": lambda text: text.encode("utf-16-be"),
}
CHINESE = "zebra 预算会议 日本"


class Caller:
    """Calls tools of one memory, whose folders are in `home`."""

    def __init__(self, memory: MemorySession, home: Path):
        self.memory = memory
        self.home = home
        self.tools = registry(("memory", "notes"), memory.settings)

    def __call__(self, tool: str, **arguments: object) -> Reply:
        return self.tools.call(self.memory, tool, arguments)


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    home = tmp_path / "home"
    with open_session(home, watch=False) as memory:
        for folder in ("notes", "memories"):
            (home / folder).mkdir(exist_ok=True)
        yield Caller(memory, home)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("text", TEXTS)
def test_utf16_note_is_found_and_shown_as_text(caller: Caller, coding: str, text: str) -> None:
    (caller.home / "notes/wide.md").write_bytes(CODINGS[coding](text))

    assert "1 note for" in caller("search_notes", query="zebra").text
    text_shown = caller("read_note", identifier="wide.md").text
    assert "zebra" in text_shown
    assert "\0" not in text_shown
    assert "\ufffd" not in text_shown
    assert "wide.md is UTF-16 text" in text_shown or len(text) > 10_000


@pytest.mark.parametrize("coding", ["little endian", "big endian"])
def test_utf16_note_in_chinese_is_shown_as_text(caller: Caller, coding: str) -> None:
    (caller.home / "notes/wide.md").write_bytes(CODINGS[coding](CHINESE))

    assert CHINESE in caller("read_note", identifier="wide.md").text


@pytest.mark.parametrize("coding", CODINGS)
def test_utf16_note_is_not_changed(caller: Caller, coding: str) -> None:
    file = caller.home / "notes/wide.md"
    file.write_bytes(CODINGS[coding](TEXTS[0]))

    edited = caller("edit_note", identifier="wide.md", operation="append", content="x")

    assert edited.is_error
    assert "Convert it to UTF-8 first" in edited.text
    content = file.read_bytes()
    assert content == CODINGS[coding](TEXTS[0])


@pytest.mark.parametrize("coding", CODINGS)
def test_memory_tool_lists_a_utf16_file_and_says_what_it_is(caller: Caller, coding: str) -> None:
    file = caller.home / "memories/wide.txt"
    data = CODINGS[coding](TEXTS[0])
    file.write_bytes(data)
    path = "/memories/wide.txt"

    text = caller("memory", command="view", path="/memories").text
    assert path in text
    reply = caller("memory", command="view", path=path)
    assert reply.is_error
    assert "is UTF-16 text" in reply.text
    reply = caller("memory", command="insert", path=path, insert_line=0, insert_text="x")
    assert reply.is_error
    assert file.read_bytes() == data


def test_converted_note_is_a_note_like_others(caller: Caller) -> None:
    file = caller.home / "notes/wide.md"
    file.write_bytes(CODINGS["little endian"](TEXTS[0]))
    caller("read_note", identifier="wide.md")

    file.write_text(TEXTS[0])

    assert "UTF-16" not in caller("read_note", identifier="wide.md").text
    reply = caller("edit_note", identifier="wide.md", operation="append", content="x")
    assert not reply.is_error


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"a",
        b"plain text",
        "é中".encode(),
        b"a\0b",
        b"\0",
        b"\0\0\0\0",
        b"a\0b\0c",
        b"\xff",
        b"caf\xe9",
    ],
)
def test_other_bytes_are_not_taken_for_utf16(data: bytes) -> None:
    assert utf16_text(data) is None
