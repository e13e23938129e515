"""How entries are kept: their files, what others did to them, whose they are, and how often they
were recalled.
"""

from __future__ import annotations

import pytest

from editing import replace_in
from memoranda.sources.path_guard import OutsideError

FILE = """---
type: kv
namespace: default
key: user_name
created_at: 2026-05-07T10:00:00Z
accessed_at: 2026-05-07T10:00:00Z
expires_at: null
access_count: 0
---
Alice Smith
"""


def test_an_entry_is_a_note_with_its_names_in_the_frontmatter(entries):
    entries.remember("user_name", "Alice Smith")
    assert entries.files() == {"default/user_name.md": FILE.encode()}
    entries.ok("remember", key="user_name", value="x", ttl_seconds=90)
    assert b"\nexpires_at: 2026-05-07T10:01:30.250Z\n" in entries.files()["default/user_name.md"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("user_name", "user_name"),
        ("v1.10.x-rc", "v1.10.x-rc"),
        ("k" * 80, "k" * 80),
        ("a/b", "a-b~c14cddc033"),
        ("A_B", "a_b~"),
        ("..", "~"),
        (".x", "x~"),
        ("a..b", "a-b~"),
        ("键", "~"),
        ("-x-", "x~"),
        ("node_modules", "node_modules~"),
        ("k" * 81, "k" * 40 + "~"),
        ("a b" * 20, ("a-b" * 20)[:40] + "~"),
        ("~", "~"),
    ],
)
def test_a_name_is_its_own_file_name_or_a_slug_with_a_hash(entries, name, file):
    entries.remember(name, "v", name)
    (path,) = entries.files()
    folder, file_name = path.removesuffix(".md").split("/")
    assert folder == file_name
    if file.endswith("~"):
        assert file_name[: len(file)] == file
        assert len(file_name) == len(file) + 10
    else:
        assert file_name == file


def test_an_entry_never_takes_the_file_of_another(entries):
    entries.remember("a", "1")
    file = entries.file("default/a.md")
    replace_in(file, "key: a\n", "key: b\n")
    entries.remember("a", "2")
    entries.remember("b", "3")
    assert (entries.value("a"), entries.value("b")) == ("2", "3")
    assert len(entries.files()) == 2
    file.write_text(
        file.read_text()
        .replace("key: b\n", "key: a\n")
        .replace("namespace: default", "namespace: other")
    )
    entries.remember("a", "4", namespace="other")
    assert [entries.value("a"), entries.value("a", "other")] == ["2", "4"]


def test_a_moved_entry_is_still_that_entry(entries):
    entries.remember("a", "1")
    entries.memory.move(("kv", "default/a.md"), "archive/old.md")
    assert entries.value("a") == "1"
    entries.remember("a", "2")
    assert set(entries.files()) == {"archive/old.md"}
    namespace = entries.ok("list_namespaces")["namespaces"][0]["namespace"]
    assert namespace == "default"
    deleted_count = entries.ok("clear_namespace", namespace="default")["deleted_count"]
    assert deleted_count == 1
    assert entries.files() == {}


def test_a_copied_entry_is_forgotten_with_its_copy(entries):
    entries.remember("a", "1")
    entries.put("default/copy.md", entries.file("default/a.md").read_text())
    entries.ok("forget", key="a")
    assert entries.files() == {}


def test_remembering_again_starts_afresh_and_keeps_what_others_wrote_into_the_frontmatter(
    entries, clock
):
    entries.remember("k", "old", ttl=100)
    entries.ok("recall", key="k")
    file = entries.file("default/k.md")
    replace_in(file, "---\nold", "tags: [ui]  # mine\n---\nold")
    clock.later(10)
    entries.remember("k", "new")
    assert entries.file("default/k.md").read_text() == (
        "---\ntype: kv\nnamespace: default\nkey: k\ncreated_at: 2026-05-07T10:00:10Z\n"
        "accessed_at: 2026-05-07T10:00:10Z\nexpires_at: null\naccess_count: 0\ntags: [ui]  # mine\n---\nnew\n"
    )
    fields = entries.ok("recall", key="k")
    assert (fields["created_at"], fields["access_count"]) == ("2026-05-07T10:00:10Z", 1)


def test_counts_are_those_of_the_file_and_the_log_together(entries, clock):
    entries.put(
        "default/k.md",
        FILE.replace("user_name", "k").replace("access_count: 0", "access_count: 40"),
    )
    clock.later(5)
    fields = entries.ok("recall", key="k")
    assert fields["access_count"] == 41
    assert fields["accessed_at"] == "2026-05-07T10:00:05Z"
    access_count = entries.memory.find("k", "kv").access_count
    assert access_count == 41
    entries.memory.read(("kv", "default/k.md"))
    access_count = entries.ok("search", query="alice")["results"][0]["access_count"]
    assert access_count == 42
    entries.ok("forget", key="k")
    entries.remember("k", "new")
    access_count = entries.ok("search", query="new")["results"][0]["access_count"]
    assert access_count == 0
    access_count = entries.ok("recall", key="k")["access_count"]
    assert access_count == 1


def test_an_offset_past_the_end_is_no_recall(entries):
    entries.remember("k", "abc")
    assert (
        entries.refused("recall", key="k", offset=3)
        == "offset 3 is past the end of the value (3 characters)"
    )
    assert entries.ok("recall", key="k", offset=2)["access_count"] == 1


def test_a_scope_written_by_hand_hides_an_entry_from_the_tools_of_others(entries):
    entries.remember("k", "secret")
    file = entries.file("default/k.md")
    replace_in(file, "type: kv\n", "type: kv\nscope: agent:claude\n")
    claude = entries.as_agent("claude")
    cursor = entries.as_agent("cursor")
    assert claude.value("k") == "secret"
    assert entries.value("k") == "secret"
    for tool in ("recall", "forget"):
        assert cursor.refused(tool, key="k") == "Key 'k' not found in namespace 'default'"
    assert cursor.found("secret") == []
    namespace_count = cursor.ok("list_namespaces")["namespace_count"]
    assert namespace_count == 0
    assert cursor.ok("stats")["total_entries"] == 0
    deleted_count = cursor.ok("clear_namespace", namespace="default")["deleted_count"]
    assert deleted_count == 0
    cursor.remember("k", "mine")
    assert claude.value("k") == "secret"
    assert cursor.value("k") == "mine"
    claude.remember("k", "changed")
    assert b"scope: agent:claude\n" in file.read_bytes()
    assert claude.value("k") == "changed"
    assert cursor.value("k") == "mine"


def test_a_foreign_entry_whose_time_is_over_is_counted_for_nobody_else_and_still_purged(
    entries, clock
):
    entries.put("n/k.md", "---\nscope: agent:claude\nexpires_at: 2026-05-07T10:00:01Z\n---\nv\n")
    clock.later(9)
    cursor = entries.as_agent("cursor")
    namespace_count = cursor.ok("list_namespaces")["namespace_count"]
    assert namespace_count == 0
    namespace_count = entries.as_agent("claude").ok("list_namespaces")["namespace_count"]
    assert namespace_count == 1
    cursor.remember("x", "y")
    assert set(entries.files()) == {"default/x.md"}


def test_a_locked_entry_is_neither_replaced_nor_removed(entries):
    file = entries.put("default/k.md", "---\nlocked: true\n---\nv\n")
    before = file.read_bytes()
    for tool, arguments in (
        ("remember", {"key": "k", "value": "w"}),
        ("forget", {"key": "k"}),
        ("clear_namespace", {"namespace": "default"}),
    ):
        message = entries.refused(tool, **arguments)
        assert message.startswith(f"Internal error in memory_{tool}: kv/default/k.md is locked.")
    assert file.read_bytes() == before
    assert entries.value("k") == "v"


def test_a_header_nobody_can_read_is_shown_and_replaced_but_not_lost(entries):
    text = "---\nkey: [\n---\nvalue"
    entries.put("default/k.md", text)
    assert entries.value("k") == text
    entries.remember("k", "new")
    assert entries.value("k") == "new"
    entries.memory.undo()
    assert entries.file("default/k.md").read_text() == text


def test_an_unreadable_namespace_is_said_and_nothing_is_overwritten(entries, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "k.md").write_text("not yours")
    entries.remember("k", "v", "good")
    (entries.root / "file").write_text("no folder")
    (entries.root / "link").symlink_to(elsewhere)
    for namespace in ("file", "link"):
        message = f"Namespace '{namespace}' cannot be read; run memory doctor"
        assert entries.refused("recall", key="k", namespace=namespace) == message
        assert entries.refused("forget", key="k", namespace=namespace) == message
        assert entries.refused("remember", key="k", value="v", namespace=namespace) == message
        assert entries.refused("search", query="k", namespace=namespace) == message
        assert entries.refused("clear_namespace", namespace=namespace) == message
    assert (elsewhere / "k.md").read_text() == "not yours"
    assert entries.value("k", "good") == "v"
    with pytest.raises(OutsideError):
        entries.memory.engine.source("kv").read("link/k.md")


def test_a_disk_that_refuses_is_said_and_leaves_the_old_value(entries, monkeypatch):
    import errno
    import os

    entries.remember("k", "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", full)
        message = entries.refused("remember", key="k", value="new")
    assert message.startswith(
        "Internal error in memory_remember: Could not write default/k.md: the disk is full."
    )
    assert entries.value("k") == "old"


def test_an_entry_of_a_name_without_latin_letters_can_be_listed_and_restored_by_its_path(entries):
    entries.remember("键", "一", "空间")
    entries.remember("键", "二", "空间")
    (path,) = entries.files()
    listed = entries.memory.directory("kv", path.partition("/")[0])
    titles = [entry.title for entry in listed.entries]
    assert titles == ["键"]
    entries.memory.restore(f"kv/{path}")
    assert entries.value("键", "空间") == "一"
