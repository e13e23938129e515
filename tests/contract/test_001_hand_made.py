"""Contract 001, 17.17: files made or moved by hand are listed or reported, never overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from contract.home_kinds import prepared
from contract.note_tools import put, seen

pytestmark = pytest.mark.promise("001-17.17")

FULL = (
    "---\nid: 0f0e1111-2222-4333-8444-55556666{:04}\nphase: organized\ncategory: {}\nscope: global\n"
    "created_at: 2026-05-07T10:00:00Z\n---\n{}\n"
)
LISTED = {
    "categories/knowledge/bare.md": "no frontmatter at all\n",
    "categories/inbox/bare.md": "bare in the inbox\n",
    "categories/knowledge/sub/deep.md": "in a folder of a category\n",
    "categories/soul/x.md": FULL.format(1, "soul", "a short name"),
    "categories/habits/moved.md": FULL.format(2, "skills", "moved between categories"),
    "categories/skills/no id.md": "---\ntags: [a]\n---\nno id given\n",
    "categories/skills/unknown keys.md": "---\nmine: {a: 1}\n# a comment\n---\nunknown keys\n",
    "categories/lessons/wrong values.md": (
        "---\nphase: nowhere\ncreated_at: never\naccess_count: many\nversion: x\nscope: global\n---\nwrong values\n"
    ),
    "categories/lessons/crlf.md": "---\r\ntags: [b]\r\n---\r\nwindows line\r\n",
    "categories/lessons/no end.md": "---\ntitle: never closed\nonly text\n",
    "categories/people/UPPER.MD": "capital extension\n",
    "categories/knowledge/broken.md": "---\ntitle: [unclosed\n---\nbroken yaml\n",
}
REPORTED = {
    "categories/knowledge/latin1.md": b"caf\xe9\n",
}
IGNORED = {
    "categories/knowledge/.hidden.md": b"hidden\n",
    "categories/knowledge/picture.png": b"\x89PNG",
    "categories/knowledge/.tmp-999999-1-abc": b"half",
    "categories/readme.txt": b"text",
}


@pytest.fixture
def home(terminal: Any) -> Path:
    for path, text in {**LISTED, **REPORTED, **IGNORED}.items():
        put(prepared(terminal.home) / path, text)
        os.utime(terminal.home / path, (1_777_000_000, 1_777_000_000))
    return terminal.home


def memories(terminal: Any) -> dict[str, dict[str, Any]]:
    ran = terminal("list", "--limit", "0", "--json")
    assert ran.status == 0
    return {memory["path"]: memory for memory in ran.json["memories"]}


def files(home: Path) -> dict[str, Any]:
    return {
        name: content
        for name, content in seen(home / "categories").items()
        if isinstance(content[2], bytes)
    }


def test_each_file_is_listed_or_reported(terminal: Any, home: Path) -> None:
    before = files(home)
    ran = terminal("list", "--limit", "0", "--json")
    paths = {memory["path"] for memory in ran.json["memories"]}
    assert paths == set(LISTED)
    assert ran.err == f"warning: {len(REPORTED)} unreadable file, run memory doctor\n"
    paths_reported = set()
    for finding in terminal("doctor", "--json").json["findings"]:
        if finding["code"] in ("unreadable", "bad_frontmatter"):
            paths_reported.add(finding["path"])
    assert paths_reported >= set(REPORTED)
    assert terminal("doctor").status == 1
    status = json.loads(terminal.ok("status", "--json"))
    assert status["unreadable_files"] == len(REPORTED)
    assert files(home) == before


def test_what_a_file_does_not_say_comes_from_its_place(terminal: Any, home: Path) -> None:
    by_path = memories(terminal)
    bare = by_path["categories/knowledge/bare.md"]
    boxed = by_path["categories/inbox/bare.md"]
    assert (bare["phase"], bare["category"], bare["scope"], bare["source"], bare["content"]) == (
        "organized",
        "knowledge",
        "global",
        "file",
        "no frontmatter at all",
    )
    assert (boxed["phase"], boxed["category"]) == ("inbox", "inbox")
    assert bare["created_at"] == "2026-04-24T03:06:40Z"
    assert by_path["categories/habits/moved.md"]["category"] == "habits"
    assert by_path["categories/lessons/wrong values.md"]["content"] == "wrong values"
    assert by_path["categories/lessons/crlf.md"]["content"] == "windows line\r"
    assert (
        by_path["categories/lessons/no end.md"]["content"] == "---\ntitle: never closed\nonly text"
    )
    assert len({memory["id"] for memory in by_path.values()}) == len(LISTED)
    assert memories(terminal) == by_path


def test_a_hand_made_file_is_changed_only_where_asked(terminal: Any, home: Path) -> None:
    before = files(home)
    by_path = memories(terminal)
    for path in (
        "categories/skills/unknown keys.md",
        "categories/lessons/crlf.md",
        "categories/knowledge/bare.md",
        "categories/soul/x.md",
    ):
        ref = by_path[path]["id"]
        assert terminal("tag", ref, "--add", "new").status == 0
        text = (home / path).read_bytes()
        body = LISTED[path].encode()
        assert text.endswith(body.split(b"---")[-1].lstrip(b"\r\n") if b"---" in body else body)
        document = terminal("read", ref, "--json").json["memory"]
        assert "new" in document["tags"]
        assert document["id"] == ref
    assert (
        b"mine: {a: 1}\n# a comment\n" in (home / "categories/skills/unknown keys.md").read_bytes()
    )
    changed = {name for name, content in files(home).items() if before.get(name) != content}
    assert changed == {
        "skills/unknown keys.md",
        "lessons/crlf.md",
        "knowledge/bare.md",
        "soul/x.md",
    }


def test_no_command_overwrites_or_deletes_what_it_cannot_read(terminal: Any, home: Path) -> None:
    broken = {
        name: content
        for name, content in files(home).items()
        if f"categories/{name}" in {**REPORTED, **IGNORED}
    }
    for argv in (
        ["write", "broken yaml"],
        ["write", "x", "--category", "knowledge"],
        ["resolve-links"],
        ["search", "broken"],
        ["reindex"],
        ["doctor", "--fix"],
        ["undo"],
        ["list"],
    ):
        terminal(*argv)
        now = files(home)
        assert {name: now.get(name) for name in broken if ".tmp-" not in name} == {
            name: content for name, content in broken.items() if ".tmp-" not in name
        }, argv


def test_a_file_mended_by_hand_is_listed_again(terminal: Any, home: Path) -> None:
    header_error = memories(terminal)["categories/knowledge/broken.md"]["header_error"]
    assert header_error
    put(home / "categories/knowledge/broken.md", "---\ntitle: closed\n---\nmended\n")
    content = memories(terminal)["categories/knowledge/broken.md"]["content"]
    assert content == "mended"
    put(home / "categories/knowledge/broken.md", "---\ntitle: [open again\n---\nbroken\n")
    assert memories(terminal)["categories/knowledge/broken.md"]["header_error"]


def test_a_memory_moved_to_another_category_by_hand_keeps_its_id_and_place(terminal: Any) -> None:
    ref = terminal.write("moved by hand", "--category", "skills")
    (file,) = (terminal.home / "categories/skills").iterdir()
    (terminal.home / "categories/habits").mkdir()
    os.rename(file, terminal.home / "categories/habits/short.md")
    document = terminal("read", ref, "--json").json["memory"]
    assert document["category"] == "habits"
    assert document["path"] == "categories/habits/short.md"
    terminal.ok("tag", ref, "--add", "t")
    assert (terminal.home / "categories/habits/short.md").exists()
    assert not file.exists()


def test_two_files_of_one_id_are_reported_and_both_kept(terminal: Any) -> None:
    ref = terminal.write("twice", "--category", "skills")
    (file,) = (terminal.home / "categories/skills").iterdir()
    put(file.with_name("copy.md"), file.read_bytes())
    assert len(memories(terminal)) == 2
    assert "duplicate_id" in terminal("doctor").out
    ran = terminal("delete", ref)
    assert ran.status == 1
    paths = list((terminal.home / "categories/skills").iterdir())
    assert len(paths) == 2
