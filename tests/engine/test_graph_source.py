"""A graph file as a project: each entity a note that the index finds and nobody writes (contract
002, 8).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from editing import replace_in
from memoranda.engine import MemorySession, open_session
from memoranda.engine.graphs import open_graph
from memoranda.errors import CannotRead, ReadOnlyProject
from memoranda.note.edit import Append
from memoranda.note.entity import Entity, GraphRelation
from memoranda.note.model import Draft
from memoranda.query import Query

pytestmark = pytest.mark.promise("002-14.14", "002-14.24")


def entity(name: str, *texts: str, kind: str = "thing") -> str:
    row = {"type": "entity", "name": name, "entityType": kind, "observations": [*texts]}
    return json.dumps(row, ensure_ascii=False) + "\n"


def relation(source: str, kind: str, target: str) -> str:
    return (
        json.dumps({"type": "relation", "from": source, "to": target, "relationType": kind}) + "\n"
    )


LINES = (
    entity("Ada", "likes tea", "born in 1815", kind="person")
    + relation("Ada", "works_at", "Acme Corp")
    + entity("Acme Corp", kind="company")
    + relation("Acme Corp", "employs", "Ada")
    + relation("nobody", "knows", "Ada")
)

Opened = Callable[..., MemorySession]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    place = tmp_path / "place" / "people.jsonl"
    place.write_text(LINES)
    return place


@pytest.fixture(params=[False, True], ids=["sweeping", "watching"])
def opened(tmp_path: Path, file: Path, request: pytest.FixtureRequest) -> Opened:
    """Opens the memory with the file as project `people`."""

    def opening(**more: object) -> MemorySession:
        memory = open_session(
            tmp_path / "home", watch=request.param, projects={"people": file}, **more
        )
        request.addfinalizer(memory.close)
        return memory

    return opening


def titles(memory: MemorySession, query: str) -> list[str]:
    return [hit.note.title for hit in memory.search(query)]


def test_entities_are_found_read_and_walked_as_notes(opened: Opened, file: Path) -> None:
    memory = opened()
    (hit,) = memory.search("tea")
    assert (hit.note.project, hit.note.path, hit.note.type) == ("people", "Ada.md", "person")
    assert hit.note.permalink == "people/ada"
    assert memory.read("people/ada").text == (
        "---\ntitle: Ada\ntype: person\n---\n\n## Observations\n\n- likes tea\n- born in 1815\n"
        "\n## Relations\n\n- works_at [[Acme Corp]]\n"
    )
    context = memory.context("Ada", project="people")
    assert [observation.content for observation in context.observations] == [
        "likes tea",
        "born in 1815",
    ]
    assert {(edge.type, edge.note.title) for edge in context.edges if edge.note} == {
        ("works_at", "Acme Corp"),
        ("employs", "Acme Corp"),
    }
    assert [backlink.title for backlink in memory.backlinks("people/ada")] == ["Acme Corp"]
    assert file.read_text() == LINES
    assert os.listdir(file.parent) == ["people.jsonl"]


def test_of_a_file_another_program_changes_only_what_changed_is_indexed_again(
    opened: Opened, file: Path
) -> None:
    memory = opened()

    def changes() -> tuple[int, int, int]:
        """Notes added, modified and removed since the last look; no other was touched."""
        result = memory.sync()
        assert result.total == result.added + result.modified + result.removed
        return result.added, result.modified, result.removed

    assert changes() == (2, 0, 0)
    assert changes() == (0, 0, 0)
    with file.open("a") as lines:
        lines.write(entity("Bob", "plays chess"))
    assert changes() == (1, 0, 0)
    assert titles(memory, "chess") == ["Bob"]
    with file.open("a") as lines:
        lines.write(relation("Acme Corp", "likes", "Ada"))
    assert changes() == (0, 1, 0)
    text = memory.read(("people", "Acme Corp.md")).text
    assert "- likes [[Ada]]" in text
    replacement = file.with_name("new")
    replacement.write_text(file.read_text().replace("likes tea", "likes coffee"))
    os.replace(replacement, file)
    assert changes() == (0, 1, 0)
    assert titles(memory, "tea") == []
    assert titles(memory, "coffee") == ["Ada"]
    before = memory.read("people/ada").changed
    replace_in(file, '"name": "Ada"', '"name":  "Ada"')
    memory.sync()
    # It says the same
    changed = memory.read("people/ada").changed
    assert changed == before
    file.write_text(entity("Acme Corp", kind="company"))
    # The one that stays had relations
    assert changes() == (0, 1, 2)
    assert titles(memory, "coffee") == []


def test_what_the_graph_tools_write_is_found_at_once(opened: Opened) -> None:
    memory = opened()
    memory.sync()
    graph = open_graph(memory, "people")
    graph.create_entities([Entity("Eve", "person", ("sings",))])
    assert memory.sync().total == 1
    assert titles(memory, "sings") == ["Eve"]
    graph.add_observations([("Eve", ["dances"])])
    graph.create_relations([GraphRelation("Eve", "Ada", "knows")])
    assert titles(memory, "dances") == ["Eve"]
    assert memory.sync().total == 0
    graph.delete_entities(["Eve"])
    assert titles(memory, "sings") == []


def test_another_process_learns_from_the_digests_what_changed(opened: Opened, file: Path) -> None:
    opened().sync()
    with file.open("a") as lines:
        lines.write(entity("Bob"))
    result = opened().sync()

    assert result.added == 1
    assert result.total == 1


def test_an_entity_is_as_old_as_the_change_that_brought_it(opened: Opened, file: Path) -> None:
    os.utime(file, (1_000_000_000, 1_000_000_000))
    now = datetime(2026, 5, 7, tzinfo=UTC)
    memory = opened(clock=lambda: now)
    _, total = memory.list(Query(after=memory.since("7d")))
    assert total == 0
    with file.open("a") as lines:
        lines.write(entity("Bob"))
    os.utime(file, (now.timestamp() - 60, now.timestamp() - 60))
    info_titles = [info.title for info in memory.list(Query(after=memory.since("7d")))[0]]
    assert info_titles == ["Bob"]
    year = memory.read("people/ada").changed.year
    assert year == 2001
    year = memory.read("people/bob").changed.year
    assert year == 2026


def test_note_tools_are_told_where_to_change_an_entity(opened: Opened, file: Path) -> None:
    memory = opened()
    for change in (
        lambda: memory.edit("people/ada", Append("x")),
        lambda: memory.delete("people/ada"),
        lambda: memory.move("people/ada", "other.md"),
        lambda: memory.tag("people/ada", add=["x"]),
        lambda: memory.link("people/ada", "people/acme-corp"),
        lambda: memory.write(Draft("x", project="people", title="New")),
        lambda: memory.set_default("people"),
    ):
        with pytest.raises(ReadOnlyProject, match=r"the graph file people\.jsonl.*graph tools"):
            change()
    assert file.read_text() == LINES
    assert list(memory.log()) == []


def test_twins_are_two_notes_and_the_first_has_the_relations(opened: Opened, file: Path) -> None:
    file.write_text(LINES + entity("Ada", "another"))
    memory = opened()
    first, second = sorted(
        memory.list("project:people type:person")[0]
        + [
            info
            for info in memory.list("project:people")[0]
            if info.title == "Ada" and info.type == "thing"
        ],
        key=lambda info: info.type,
    )
    assert (first.path, "works_at" in memory.read(first).text) == ("Ada.md", True)
    assert second.path != first.path
    text = memory.read(second).text
    assert "- another" in text
    text = memory.read(second).text
    assert "works_at" not in text
    open_graph(memory, "people").delete_entities(["Ada"])
    info_titles = [info.title for info in memory.list("project:people")[0]]
    assert info_titles == ["Acme Corp"]


def test_names_no_file_could_have_are_notes_all_the_same(opened: Opened, file: Path) -> None:
    names = [
        "",
        "a/b",
        "a\nb",
        "..",
        "\0",
        "con",
        "Ada ",
        "ADA",
        "é",
        "e\u0301",
        "x" * 300,
        ".md",
        "a-b",
        "[[x]]",
    ]
    file.write_text(
        LINES + "".join(entity(name, f"says number{at}x") for at, name in enumerate(names))
    )
    memory = opened()
    for at, name in enumerate(names):
        (hit,) = memory.search(f"number{at}x")
        assert memory.read(hit.note).title == name
        assert "/" not in hit.note.path


def test_a_file_that_is_gone_or_of_another_shape_keeps_its_notes_and_says_so(
    opened: Opened, file: Path
) -> None:
    memory = opened()
    memory.sync()
    file.rename(file.with_name("away"))
    assert titles(memory, "tea") == ["Ada"]
    assert memory.warnings == ["The file of project people is missing; its notes are as last seen."]
    with pytest.raises(CannotRead, match="the file of project people is missing"):
        memory.read("people/ada")
    file.with_name("away").rename(file)
    assert memory.read("people/ada").title == "Ada"
    assert memory.warnings == []
    file.write_text("[1]\n")
    assert titles(memory, "tea") == ["Ada"]
    (warning,) = memory.warnings
    assert warning.startswith("people.jsonl is a JSON array")


def test_a_file_that_is_not_there_yet_is_an_empty_project(tmp_path: Path) -> None:
    place = tmp_path / "new" / "later.jsonl"
    with open_session(tmp_path / "home", projects={"later": place}, watch=False) as memory:
        assert memory.sync().total == 0
        assert memory.warnings == []
        open_graph(memory, "later").create_entities([Entity("Ada", "person", ("likes tea",))])
        assert titles(memory, "tea") == ["Ada"]


def test_a_folder_that_takes_the_name_of_a_graph_file_shows_its_own_notes(
    tmp_path: Path, file: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "one.md").write_text("# One\n\n## Observations\n\n- plain item\n")
    home = tmp_path / "home"
    with open_session(home, watch=False) as memory:
        memory.add_project("people", str(file))
        assert titles(memory, "tea") == ["Ada"]
        memory.remove_project("people")
    with open_session(home, watch=False) as memory:
        memory.add_project("people", str(folder))
        assert titles(memory, "tea") == []
        assert memory.observations("people/one") == []


@pytest.mark.slow
@example([("n", "k", ["0(0)", "a (b)", "[a] b (c)", "(x)"])], "of")
@given(
    st.lists(
        st.tuples(
            st.text(max_size=30), st.text(max_size=20), st.lists(st.text(max_size=40), max_size=3)
        ),
        max_size=6,
    ),
    st.text(max_size=20),
)
def test_any_entity_reads_back_from_its_note(
    tmp_path_factory: pytest.TempPathFactory, rows: list, kind: str
) -> None:
    place = tmp_path_factory.mktemp("any") / "any.jsonl"
    entities = {name: Entity(name, type, tuple(dict.fromkeys(texts))) for name, type, texts in rows}
    place.write_text(
        "".join(entity(row.name, *row.observations, kind=row.type) for row in entities.values())
        + "".join(relation(name, kind, "target") for name in entities),
        "utf-8",
    )
    with open_session(place.parent / "home", projects={"any": place}, watch=False) as memory:
        infos, total = memory.list("project:any", limit=0)
        assert total == len(entities)
        for info in infos:
            note = memory.read(info)
            entity_in_file = entities[note.title]
            assert note.type == entity_in_file.type
            assert info.title == entity_in_file.name
            assert (
                tuple(observation.text for observation in note.observations)
                == entity_in_file.observations
            )
            assert [(link.type, link.target) for link in note.relations if link.is_item] == [
                (kind, "target")
            ]


def test_an_entity_that_was_left_out_and_is_gone_is_not_named_any_more(
    opened: Opened, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(text: str) -> list[object]:
        if "zqbad" in text:
            raise IndexError("list index out of range")
        return []

    monkeypatch.setattr("memoranda.note.claims.sentences_in", fails)
    memory = opened()
    memory.sync()
    file.write_text(LINES + entity("Bad", "words of zqbad"))
    memory.sync()
    assert [*memory.unreadable] == [("people", "Bad.md")]
    file.write_text(LINES)
    memory.sync()
    assert memory.unreadable == {}
