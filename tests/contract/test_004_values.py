"""Contract 004, 9.3, 9.4, 9.8, 9.10 and 9.12: what is kept comes back exactly, in pieces if need be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace import open_memory
from contract.key_value import LIMIT, Clock, KeyValue

VALUES = {
    "blanks": "  \t ", "line breaks": "\n\nx\n\n\n", "one line break": "\n", "crlf": "a\r\nb\r\n", "cr": "\r",
    "nul": "a\0b", "fence": "---", "frontmatter": "---\nkey: other\nexpires_at: 2001-01-01\n---\n", "dots": "...\n",
    "emoji": "👩‍👩‍👧 🏳️‍🌈", "right to left": "\u202eabc\u202c ‏שלום", "bom": "\ufeffx", "separators": "a\u2028b\x85c",
    "markup": "- [fact] likes [[tea]] #drink\n```\nx\n", "replacement": "\ufffd", "last plane": "\U0010ffff\uffff",
    "a megabyte": "0123456789abcdef" * 65536,
}  # fmt: skip
KEYS = (
    " a ", "a", "../../x", "..", ".", "/etc/passwd", "~", "con", "nul.md", "a\nb", "a\0b", "A", "a/b", "a b", "a_b",
    "A_B", "a-b", "a.b", "node_modules", "true", "null", "1.10", "2026-05-07", "- x", "key: value", "#tag", '"q"',
    "é", "e\u0301", "键", "k" * 80, "k" * 81, "k" * 900, "键" * 1000, ".hidden", "-", "_meta", "%2e%2e", "a\\b",
    "[[x]]", "a\u2028b", "~a~",
)  # fmt: skip


@pytest.fixture
def entries(tmp_path: Path) -> Iterator[KeyValue]:
    with open_memory(tmp_path / "home", clock=Clock(), watch=False) as memory:
        yield KeyValue(memory)


@pytest.mark.promise("004-9.3")
@pytest.mark.parametrize("name", VALUES)
def test_a_hard_value_comes_back_exactly(entries, name):
    entries.remember("k", VALUES[name])
    assert entries.value("k") == VALUES[name]
    _, kept = entries.file("default/k.md").read_bytes().split(b"access_count: 0\n---\n", 1)
    assert kept == VALUES[name].encode() + b"\n"


@pytest.mark.promise("004-9.3", "004-9.10")
def test_hard_keys_and_namespaces_are_all_different(entries, tmp_path):
    for name in KEYS:
        entries.remember(name, f"key {name}")
        entries.remember("x", f"namespace {name}", namespace=name)
    for name in KEYS:
        assert entries.value(name) == f"key {name}"
        assert entries.value("x", namespace=name) == f"namespace {name}"
    assert set(entries.found("key ", limit=1000, namespace="default")) == {("default", name) for name in KEYS}
    listed = [each["namespace"] for each in entries.ok("list_namespaces")["namespaces"]]
    assert listed == sorted([*KEYS, "default"])[: len(listed)]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["home"]
    assert all(each.stat().st_mode & 0o777 == (0o700 if each.is_dir() else 0o600) for each in entries.root.rglob("*"))
    for name in KEYS:
        entries.ok("forget", key=name)
        assert entries.ok("clear_namespace", namespace=name)["deleted_count"] == 1
    assert list(entries.root.iterdir()) == []


@pytest.mark.promise("004-9.3")
def test_any_text_is_a_value_a_key_and_a_namespace(tmp_path):
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)

    with open_memory(tmp_path / "home", clock=Clock(), watch=False) as memory:
        entries = KeyValue(memory)

        @settings(max_examples=150, deadline=None)
        @given(key=texts.filter(str.strip), namespace=texts.filter(str.strip), value=texts.filter(bool))
        def round_trip(key: str, namespace: str, value: str) -> None:
            entries.remember(key, value, namespace)
            assert entries.value(key, namespace) == value
            assert (namespace, key) in entries.found(key, namespace=namespace, limit=400)
            text, failed = entries.call("recall", key=key, namespace=namespace)
            assert (text.split("**value:** ", 1)[1].startswith(value), failed) == (True, False)
            entries.ok("forget", key=key, namespace=namespace)
            assert entries.refused("recall", key=key, namespace=namespace).startswith("Key '")

        round_trip()
        assert entries.files() == {}


@pytest.mark.promise("004-9.4")
@pytest.mark.parametrize("sign", ["A", "世", "🎉", "\n", '"', "\x07"])
def test_a_long_value_comes_in_pieces_that_join_to_it(entries, sign):
    value = "".join(f"{number:04d}{sign}" * 6 for number in range(1250))
    entries.remember("long", value)
    joined, offset, count = "", 0, 0
    while offset is not None:
        text, _ = entries.call("recall", key="long", offset=offset, format="json")
        fields = json.loads(text)
        assert (fields["offset"], fields["value_length"]) == (offset, len(value))
        joined += fields["value"]
        offset, count = fields["next_offset"], fields["access_count"]
        assert fields["truncated"] == (offset is not None)
        if offset is not None:  # no longer beginning would have fitted
            assert LIMIT - 12 < len(text) <= LIMIT
    assert joined == value
    assert count >= 2


@pytest.mark.promise("004-9.4")
def test_in_markdown_a_mark_follows_the_piece_shown(entries):
    entries.remember("long", "世" * 30_000)
    text, _ = entries.call("recall", key="long")
    assert len(text) == LIMIT
    assert "世... [TRUNCATED at 25000 chars]\n**created_at:** " in text
    shown = text.count("世")
    assert text.endswith(f"**truncated:** True\n**value_length:** 30000\n**offset:** 0\n**next_offset:** {shown}")
    rest, _ = entries.call("recall", key="long", offset=shown)
    assert rest.count("世") == 30_000 - shown
    assert "TRUNCATED" not in rest
    assert rest.endswith(f"**truncated:** False\n**value_length:** 30000\n**offset:** {shown}\n**next_offset:** None")


@pytest.mark.promise("004-9.4")
def test_names_that_fill_a_reply_leave_room_for_the_value(entries):
    key, namespace = "🔑" * 1000, "📦" * 1000
    stored = entries.ok("remember", key=key, value="🎉" * 200, namespace=namespace)
    assert stored["key"] == "🔑" * 470 + "... [TRUNCATED at 500 chars]"
    assert entries.value(key, namespace) == "🎉" * 200
    (found,) = entries.ok("search", query="🎉")["results"]
    assert found["key"].endswith("... [TRUNCATED at 100 chars]")
    assert entries.ok("list_namespaces")["namespaces"][0]["namespace"] == namespace
    entries.ok("forget", key=key, namespace=namespace)


def state(root: Path) -> dict[Path, tuple[bytes, int, int]]:
    """Bytes, time and inode of every file."""
    files = {each: each.stat() for each in root.rglob("*.md")}
    return {each: (each.read_bytes(), status.st_mtime_ns, status.st_ino) for each, status in files.items()}


@pytest.mark.promise("004-9.8")
def test_recall_and_search_leave_every_file_as_it_was(entries):
    for number in range(20):
        entries.remember(f"k{number}", f"value {number}", namespace=f"n{number % 3}")
    before = state(entries.root)
    for number in range(20):
        assert entries.ok("recall", key=f"k{number}", namespace=f"n{number % 3}")["access_count"] == 1
    assert len(entries.found("value", limit=50)) == 20
    assert state(entries.root) == before


@pytest.mark.promise("004-9.10")
def test_no_reply_tells_a_path_but_where_the_entries_lie(entries, tmp_path):
    entries.remember("k", "v")
    entries.file("default/broken.md").mkdir()
    replies = [
        entries.call("recall", key="broken"), entries.call("remember", key="broken", value="v"),
        entries.call("forget", key="../../etc"), entries.call("clear_namespace", namespace="/"),
        entries.call("recall", key="k", namespace="n" * 300), entries.call("search", query="k", namespace=".."),
        entries.call("remember", key="k", value="v", namespace="n" * 300), entries.call("list_namespaces"),
    ]  # fmt: skip
    assert not [text for text, _ in replies if str(tmp_path) in text or "Traceback" in text]
    assert replies[0] == replies[1] == ("## ❌ Error\n**Namespace 'default' cannot be read; run memory doctor**", True)
    assert entries.ok("stats")["storage_path"] == str(tmp_path / "home" / "kv")


@pytest.mark.promise("004-9.12")
def test_what_an_editor_does_to_a_file_counts_at_once(entries):
    entries.remember("k", "before")
    file = entries.file("default/k.md")
    file.write_text(file.read_text().replace("before", "after"))
    assert entries.value("k") == "after"
    assert entries.found("after") == [("default", "k")]
    file.unlink()
    assert entries.refused("recall", key="k") == "Key 'k' not found in namespace 'default'"
    assert entries.refused("forget", key="k") == "Key 'k' not found in namespace 'default'"
    assert entries.ok("list_namespaces") == {"namespace_count": 0, "namespaces": []}


@pytest.mark.promise("004-9.12")
def test_a_file_made_by_hand_is_an_entry_named_by_its_place_or_its_frontmatter(entries):
    entries.put("Work/To Do.md", "buy milk\n")
    entries.put("Work/b.md", "---\nnamespace: home\nkey: garden\n---\nwater")
    entries.put("top.md", "at the top")
    assert entries.value("To Do", "Work") == "buy milk"
    assert entries.value("garden", "home") == "water"
    assert entries.value("top") == "at the top"
    assert sorted(entries.found("a", limit=50)) == [("default", "top"), ("home", "garden")]
    entries.remember("To Do", "done", "Work")
    assert entries.value("To Do", "Work") == "done"
    assert set(entries.files()) == {"Work/To Do.md", "Work/b.md", "top.md"}
    entries.ok("forget", key="To Do", namespace="Work")
    assert entries.ok("clear_namespace", namespace="home")["deleted_count"] == 1
    assert set(entries.files()) == {"top.md"}
