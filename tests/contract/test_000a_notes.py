"""Contract 000a, 12.10: files of the memory tool are at once notes to other tools, in every
process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contract.memory_tool import answered
from serve.process import ServerProcess, connected

TEXT = """\
# Pen

- [style] likes short answers #talk
- [tool] writes with a zebrapen
- knows [[Customer database]]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("notes") / "home"


@pytest.fixture(scope="module")
def servers(home: Path) -> Iterator[list[ServerProcess]]:
    """Two servers with both toolsets on one home: what one writes, both must find."""
    with connected(home) as first, connected(home) as second:
        for server in (first, second):
            assert found(server, "anything") == []
        yield [first, second]


@pytest.fixture
def memory(servers) -> Iterator[Any]:
    """The memory tool of the first server; all files go afterwards."""

    def call(command: str, **arguments: Any) -> str:
        text, failed = answered(servers[0].call("memory", {"command": command, **arguments}))
        assert not failed, text
        return text

    yield call
    for line in call("view", path="/memories").split("\n")[2:]:
        path = line.split("\t")[1]
        if path.strip("/").count("/") == 1:
            call("delete", path=path)


def found(server: ServerProcess, query: str) -> list[str]:
    results = server.call("search_notes", {"project": "memories", "query": query})[
        "structuredContent"
    ]["results"]
    return [hit["file_path"] for hit in results]


def recent(server: ServerProcess) -> list[str]:
    arguments = {"project": "memories", "timeframe": "1h", "page_size": 100}
    return [
        result["file_path"]
        for result in server.call("recent_activity", arguments)["structuredContent"]["results"]
    ]


def context(server: ServerProcess, address: str) -> dict[str, Any] | None:
    """Return what build_context says of one note; None for a missing note."""
    result = server.call("build_context", {"url": address})
    if result["isError"]:
        return None
    return result["structuredContent"]["results"][0]


@pytest.mark.promise("000a-12.10")
def test_a_file_is_shown_at_once_under_its_new_path_after_a_rename_and_not_after_delete(
    servers, memory
):
    memory("create", path="/memories/user/pen.md", file_text=TEXT)
    for server in servers:
        assert found(server, "zebrapen") == ["user/pen.md"]
        assert recent(server) == ["user/pen.md"]
        around = context(server, "memory://memories/user/pen")
        assert [
            (observation["category"], observation["tags"]) for observation in around["observations"]
        ] == [
            ("style", ["talk"]),
            ("tool", []),
        ]
        assert [(relation["type"], relation["target"]) for relation in around["relations"]] == [
            ("knows", "Customer database")
        ]
    memory("rename", old_path="/memories/user/pen.md", new_path="/memories/patterns/writing/pen.md")
    for server in servers:
        assert found(server, "zebrapen") == ["patterns/writing/pen.md"]
        assert recent(server) == ["patterns/writing/pen.md"]
        assert context(server, "memory://memories/user/pen") is None
        assert context(server, "memory://memories/patterns/writing/pen")["primary_result"][
            "file_path"
        ] == ("patterns/writing/pen.md")
    memory("delete", path="/memories/patterns/writing/pen.md")
    for server in servers:
        assert found(server, "zebrapen") == recent(server) == []
        assert context(server, "memory://memories/patterns/writing/pen") is None


@pytest.mark.promise("000a-12.10")
def test_edits_are_found_at_once_and_what_they_replaced_is_not(servers, memory):
    memory("create", path="/memories/a.txt", file_text="the quick giraffe\n")
    memory("str_replace", path="/memories/a.txt", old_str="giraffe", new_str="okapi")
    memory(
        "insert", path="/memories/a.txt", insert_line=1, insert_text="- [fact] tapirs sleep #zoo"
    )
    for server in servers:
        assert found(server, "giraffe") == []
        assert (
            found(server, "okapi")
            == found(server, "tapirs")
            == found(server, "tag:zoo")
            == ["a.txt"]
        )
    memory("create", path="/memories/a.txt", file_text="")
    for server in servers:
        assert found(server, "okapi") == []
        assert recent(server) == ["a.txt"]


@pytest.mark.promise("000a-12.10")
def test_a_folder_is_renamed_and_deleted_with_all_its_notes(servers, memory):
    for name in ("one", "two", "deep/three"):
        memory("create", path=f"/memories/zoo/{name}.md", file_text="a wombat\n")
    memory("rename", old_path="/memories/zoo", new_path="/memories/park")
    for server in servers:
        assert sorted(found(server, "wombat")) == [
            "park/deep/three.md",
            "park/one.md",
            "park/two.md",
        ]
    memory("delete", path="/memories/park")
    for server in servers:
        assert found(server, "wombat") == recent(server) == []


@pytest.mark.promise("000a-12.10")
def test_a_link_resolves_when_its_note_is_written_and_is_open_when_it_goes(servers, memory):
    memory("create", path="/memories/user/pen.md", file_text=TEXT)
    memory(
        "create",
        path="/memories/projects/customers.md",
        file_text="---\ntitle: Customer database\n---\nrows\n",
    )
    for server in servers:
        (relation,) = context(server, "memory://memories/user/pen")["relations"]
        assert relation["permalink"] == "memories/projects/customers"
    memory("delete", path="/memories/projects/customers.md")
    for server in servers:
        (relation,) = context(server, "memory://memories/user/pen")["relations"]
        assert relation["permalink"] is None


HIDDEN = [
    "/memories/.secret.md",
    "/memories/.folder/a.md",
    "/memories/b/.c/d.md",
    "/memories/node_modules/e.md",
    "/memories/b/node_modules/f.md",
]


@pytest.mark.promise("000a-12.10", "000a-12.1")
@pytest.mark.parametrize("path", HIDDEN)
def test_a_hidden_name_works_by_its_exact_path_and_is_never_listed_or_found(servers, memory, path):
    memory("create", path=path, file_text="a platypus\n")
    memory("str_replace", path=path, old_str="a ", new_str="the ")
    memory("insert", path=path, insert_line=1, insert_text="platypus again")
    assert memory("view", path=path).endswith(
        "     1\tthe platypus\n     2\tplatypus again\n     3\t"
    )
    name = path.removeprefix("/memories/")
    listing = memory("view", path="/memories").split("\n", 1)[1]
    assert name not in listing
    assert not any(
        part in listing for part in name.split("/") if part.startswith((".", "node_modules"))
    )
    for server in servers:
        assert found(server, "platypus") == recent(server) == []
    memory("rename", old_path=path, new_path="/memories/seen/now.md")
    for server in servers:
        assert found(server, "platypus") == ["seen/now.md"]
    memory("rename", old_path="/memories/seen/now.md", new_path=path)
    for server in servers:
        assert found(server, "platypus") == []
    memory("delete", path=path)


@pytest.mark.promise("000a-12.10")
def test_a_folder_that_stops_being_hidden_is_found_and_the_other_way_round(servers, memory):
    memory("create", path="/memories/.drafts/a/b.md", file_text="an axolotl\n")
    memory("rename", old_path="/memories/.drafts", new_path="/memories/drafts")
    for server in servers:
        assert found(server, "axolotl") == ["drafts/a/b.md"]
    memory("rename", old_path="/memories/drafts", new_path="/memories/.drafts")
    for server in servers:
        assert found(server, "axolotl") == []
    assert "drafts" not in memory("view", path="/memories").split("\n", 1)[1]
    memory("delete", path="/memories/.drafts")


@pytest.mark.promise("000a-12.10", "000a-12.1")
@pytest.mark.parametrize(
    ("old", "new"), [("notes/read me.md", "notes/Read Me.md"), ("notes", "NOTES")]
)
def test_a_rename_in_case_only_works_for_files_and_folders(servers, memory, home, old, new):
    memory("create", path="/memories/notes/read me.md", file_text="a quokka\n")
    assert memory("rename", old_path=f"/memories/{old}", new_path=f"/memories/{new}").startswith(
        "Successfully renamed"
    )
    path = "notes/read me.md".replace(old, new)
    assert [
        str(file.relative_to(home / "memories")) for file in (home / "memories").rglob("*.md")
    ] == [path]
    for server in servers:
        assert found(server, "quokka") == [path]


@pytest.mark.promise("000a-12.10")
def test_text_of_any_length_is_found_to_its_end_and_bytes_that_are_no_text_are_left_alone(
    servers, memory, home
):
    memory("create", path="/memories/long.log", file_text="word " * 100_000 + "numbat\n")
    (home / "memories" / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\xff numbat")
    for server in servers:
        assert found(server, "numbat") == ["long.log"]
        text, failed = answered(
            server.call("memory", {"command": "view", "path": "/memories/image.png"})
        )
        assert failed
        assert "UTF-8" in text
    assert (home / "memories" / "image.png").read_bytes() == b"\x89PNG\r\n\x1a\n\xff numbat"


@pytest.mark.promise("000a-12.10")
def test_a_view_counts_as_a_read_and_a_listing_does_not(servers, memory, home):
    def reads() -> int:
        with closing(sqlite3.connect(home / ".memoranda" / "ledger.db")) as ledger:
            return ledger.execute("select total(count) from read").fetchone()[0]

    memory("create", path="/memories/read/me.md", file_text="x\n")
    before = reads()
    memory("view", path="/memories/read")
    memory("view", path="/memories")
    assert reads() == before
    memory("view", path="/memories/read/me.md")
    assert reads() == before + 1
