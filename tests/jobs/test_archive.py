"""The archive, use, pins, and a person's undo (contract 001, 18.1 to 18.5)."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from editing import replace_in
from jobs.homes import ONE, Home
from memoranda.errors import CannotUndo, NotFound
from memoranda.faces import registry as tools
from memoranda.faces.notes import read_tools
from memoranda.jobs import dream, lifecycle
from memoranda.jobs.job import Round
from memoranda.note.model import BUILT_IN_PROJECTS
from memoranda.query import Query, memory_query
from memoranda.transfer.jsonl import exported_lines

ARCHIVED = memory_query(archived=True)


def decayed(
    home: Home, text: str = "the heron nests by the weir", category: str = "knowledge", **more: Any
) -> str:
    """A memory that was written, forgotten and archived."""
    memory_id = home.write(text, category, **more)
    home.later(days=31)
    assert memory_id in [action.id for action in home.job("decay").actions]
    return memory_id


@pytest.mark.promise("001-18.1")
def test_decayed_memory_is_archived_with_its_category_and_why(home: Home) -> None:
    info = home.info(decayed(home))
    assert info.phase == "archived"
    assert info.category == "knowledge"
    assert info.header["archived_by"] == "decay"


@pytest.mark.promise("001-18.1")
def test_decayed_memory_is_a_plain_file_of_the_archive(home: Home) -> None:
    decayed(home)
    (file,) = (home.memory.home / "archive" / "knowledge").iterdir()
    assert "the heron nests by the weir" in file.read_text()


@pytest.mark.promise("001-18.1")
def test_decayed_memory_is_shown_by_no_list_of_live_notes(home: Home) -> None:
    decayed(home)
    queries = (
        Query(),
        memory_query(category="knowledge"),
        memory_query().replace(contains="heron"),
    )
    for query in queries:
        infos, _ = home.memory.list(query)
        assert infos == [], query


@pytest.mark.promise("001-18.1")
def test_decayed_memory_is_shown_by_lists_of_the_archive(home: Home) -> None:
    memory_id = decayed(home)
    for query in (ARCHIVED, memory_query(phase="archived"), ARCHIVED.replace(contains="HERON")):
        infos, _ = home.memory.list(query)
        assert [info.id for info in infos] == [memory_id], query


@pytest.mark.promise("001-18.1")
def test_decayed_memory_is_left_alone_by_every_later_job(home: Home) -> None:
    decayed(home)
    for outcome in lifecycle.consolidate(home.memory):
        assert not outcome.actions
    assert dream.run(home.memory, 3).actions == []


@pytest.mark.promise("001-18.1")
def test_decayed_memory_is_read_after_its_history_was_purged(home: Home) -> None:
    memory_id = decayed(home)
    home.later(days=350)
    home.memory.purge_history()
    content = home.memory.read(memory_id).content
    assert content == "the heron nests by the weir"


@pytest.mark.promise("001-18.1")
def test_what_expires_is_classified_on_its_way_and_keeps_its_links(home: Home) -> None:
    first_id = home.write("we decided to use SQLite")
    second_id = home.write("the schema", "people")
    home.memory.link(first_id, second_id)
    home.later(days=8)
    (action,) = home.job("expire").actions
    assert action.verb == "expire"
    assert action.reason == "expired 2026-05-13T10:00:00Z"
    path = home.info(first_id).path
    assert path.startswith("decisions/")
    links = home.info(first_id).links
    assert links == (second_id,)
    assert home.info(second_id).links == (first_id,)
    note = home.memory.read(first_id)
    assert note.project == "categories"
    assert note.phase == "organized"
    assert note.category == "decisions"
    assert note.expires is None


@pytest.fixture
def archived_and_live(home: Home) -> tuple[str, str]:
    """The ids of an archived memory and of a live one with nearly the same words."""
    archived_id = decayed(home)
    live_id = home.write("the heron nests by the mill", "knowledge")
    return archived_id, live_id


def ids_found(home: Home, query: Any) -> list[str]:
    return [hit.note.id for hit in home.memory.search(query)]


@pytest.mark.promise("001-18.1")
def test_archived_memory_is_found_below_a_live_one(home: Home, archived_and_live) -> None:
    archived_id, live_id = archived_and_live
    words = memory_query().replace(text="heron nests")
    for query in (words, "heron nests", "where does the heron nest?"):
        assert ids_found(home, query) == [live_id, archived_id], query


@pytest.mark.promise("001-18.1")
def test_archived_memory_is_marked_in_a_search_and_scores_less(
    home: Home, archived_and_live
) -> None:
    live, archived = home.memory.search(memory_query().replace(text="heron nests"))
    assert "archived" in archived.why
    assert archived.score < live.score


@pytest.mark.promise("001-18.1")
def test_archived_memory_has_half_the_score_in_a_smart_search(
    home: Home, archived_and_live
) -> None:
    archived_id, live_id = archived_and_live
    best = home.memory.smart_search("heron").best
    assert [(hit.note.id, hit.score) for hit in best] == [(live_id, 1.0), (archived_id, 0.5)]


@pytest.mark.promise("001-18.1")
def test_archived_memory_is_marked_in_a_context(home: Home, archived_and_live) -> None:
    context_text = home.memory.context_for("where does the heron nest?")
    assert "archived, archive/knowledge" in context_text
    assert context_text.count("archived") == 1


@pytest.mark.promise("001-18.1")
def test_search_of_the_archive_finds_archived_memories_alone(home: Home, archived_and_live) -> None:
    archived_id, _ = archived_and_live
    assert ids_found(home, ARCHIVED.replace(text="heron")) == [archived_id]


@pytest.mark.promise("001-18.1")
def test_search_without_the_archive_finds_live_memories_alone(
    home: Home, archived_and_live
) -> None:
    _, live_id = archived_and_live
    query = memory_query(archived=False).replace(text="heron")
    assert ids_found(home, query) == [live_id]


@pytest.mark.promise("001-18.1")
def test_an_agent_finds_and_brings_back_only_what_it_may_see(home: Home) -> None:
    archived_id = decayed(home, scope="agent:a")
    other_agent = home.memory.as_caller("b")
    with pytest.raises(NotFound):
        other_agent.read(archived_id)

    hits = other_agent.search("heron").hits
    assert hits == []
    assert other_agent.list(ARCHIVED)[1] == 0
    assert home.info(archived_id).phase == "archived"
    its_agent = home.memory.as_caller("a")
    assert its_agent.read(archived_id).phase == "organized"


@pytest.mark.promise("001-18.1")
@pytest.mark.parametrize("way", ["read", "read_note", "restore", "archived file moved by hand"])
def test_reading_it_through_any_face_brings_it_back(home: Home, way: str) -> None:
    archived_id = decayed(home)
    live_id = home.write("about birds", "people")
    home.memory.link(archived_id, live_id)
    if way == "read":
        home.memory.read(archived_id[:8])
    elif way == "read_note":
        reply = read_tools.read_note(
            home.memory, {"identifier": "the heron nests by the weir", "as_json": False}
        )
        assert "heron" in reply.text
    elif way == "restore":
        assert home.memory.restore(archived_id)[0] == f"categories/{home.info(archived_id).path}"
    else:
        path = home.memory.home / "archive" / home.info(archived_id).path
        (home.memory.home / "categories" / "knowledge").mkdir(exist_ok=True)
        os.rename(path, home.memory.home / "categories" / "knowledge" / path.name)
    info = home.info(archived_id)
    assert (info.project, info.phase, info.category, info.links) == (
        "categories",
        "organized",
        "knowledge",
        (live_id,),
    )
    assert home.info(live_id).links == (archived_id,)
    if way != "archived file moved by hand":
        assert "archived_at" not in info.header
        home.later(days=1)
        # It was wanted yesterday
        assert home.job("decay").actions == ()


@pytest.mark.promise("001-18.1")
def test_note_tools_mark_it_and_write_no_note_there(home: Home) -> None:
    decayed(home)
    registry = tools(["notes"], home.memory.settings)
    assert (
        ", knowledge, archived, "
        in registry.call(home.memory, "search_notes", {"query": "heron"}).text
    )
    assert "heron" not in registry.call(home.memory, "recent_activity", {"timeframe": "90d"}).text
    reply = registry.call(
        home.memory,
        "write_note",
        {"title": "x", "content": "y", "directory": "z", "project": ".archive"},
    )
    assert reply.is_error
    assert [project.name for project in home.memory.projects] == list(BUILT_IN_PROJECTS)


@pytest.mark.promise("001-18.1")
def test_a_locked_one_is_read_and_stays(home: Home) -> None:
    archived_id = decayed(home)
    file = home.memory.home / "archive" / home.info(archived_id).path
    replace_in(file, "version: 1\n", "version: 1\nlocked: true\n")

    content = home.memory.read(archived_id).content
    assert content == "the heron nests by the weir"
    phase = home.info(archived_id).phase
    assert phase == "archived"


@pytest.mark.promise("001-18.1")
def test_an_export_holds_the_archive_and_an_import_brings_it_there(
    home: Home, tmp_path: Any
) -> None:
    archived_id = decayed(home)
    (line,) = [json.loads(exported_line) for exported_line in exported_lines(home.memory)]
    assert (line["id"], line["phase"]) == (archived_id, "archived")


@pytest.mark.promise("001-18.3")
@pytest.mark.parametrize("way", ["search", "context", "smart search", "list"])
def test_being_shown_by_a_search_is_use_which_keeps_a_memory(home: Home, way: str) -> None:
    memory_id = home.write("the heron nests by the weir", "knowledge")
    home.later(days=20)
    before = home.file(memory_id).read_bytes()
    if way == "search":
        home.memory.search(memory_query().replace(text="heron"))
    elif way == "context":
        home.memory.context_for("where does the heron nest?")
    elif way == "smart search":
        home.memory.smart_search("heron")
    else:
        home.memory.list(memory_query().replace(contains="heron"))
    content = home.file(memory_id).read_bytes()
    assert content == before
    home.later(days=15)
    actions = home.job("decay", dry_run=True).actions
    assert bool(actions) == (way == "list")
    home.upkeep.fold()
    used = "2026-05-26T10:00:00Z" if way != "list" else None
    assert home.info(memory_id).header.get("last_used_at") == used
    access_count = home.info(memory_id).access_count
    assert access_count == 0
    actions = home.job("decay", dry_run=True).actions
    assert bool(actions) == (way == "list")
    home.later(days=16)
    ids = [action.id for action in home.job("decay").actions]
    assert ids == [memory_id]


@pytest.mark.promise("001-18.2")
def test_a_pinned_memory_neither_expires_nor_decays_nor_merges_away(home: Home) -> None:
    inbox = home.write("in the inbox")
    old = home.write("an old thing", "knowledge")
    first = home.write("the same words", "knowledge")
    home.later(days=1)
    pinned = home.write("the same words", "people")
    home.upkeep.pin([home.info(memory_id) for memory_id in (inbox, old, pinned)])
    home.memory.read(first)
    home.later(days=60)
    assert home.job("expire").actions == ()
    assert home.job("decay").actions == ()
    home.job("consolidate")
    assert home.info(first).id == pinned
    home.upkeep.pin([home.info(old)], pinned=False)
    ids = [action.id for action in home.job("decay").actions]
    assert ids == [old]


def rounds(home: Home) -> list[str]:
    """What a round of the daemon archives."""
    home.round()
    return [info.id for info in home.memory.list(ARCHIVED, limit=0)[0]]


@pytest.mark.promise("001-18.4")
@pytest.mark.parametrize(
    ("category", "source", "further", "goes"),
    [
        ("knowledge", "claude", {}, True),
        ("knowledge", "manual", {}, False),
        ("knowledge", "file", {}, False),
        ("preferences", "claude", {}, False),
        ("knowledge", "claude", {"pinned": True}, False),
        ("knowledge", "obsidian", {"source_ref": "obsidian:a.md"}, False),
        ("knowledge", "obsidian", {"source_ref": "obsidian:a.md", "source_root": "VAULT"}, False),
        ("knowledge", "obsidian", {"source_ref": "obsidian:gone.md", "source_root": "VAULT"}, True),
        (
            "knowledge",
            "obsidian",
            {"source_ref": "obsidian:a.md", "source_root": "/nowhere/at/all"},
            False,
        ),
    ],
)
def test_the_daemon_leaves_alone_what_a_person_would_miss(
    home: Home, tmp_path: Any, category: str, source: str, further: dict[str, Any], goes: bool
) -> None:
    (tmp_path / "a.md").write_text("x")
    further = {key: str(tmp_path) if value == "VAULT" else value for key, value in further.items()}
    home.put(ONE, "some words", category, source=source, further=further)
    home.later(days=31)

    assert rounds(home) == ([ONE] if goes else [])
    # The command is as it was
    actions = home.job("decay").actions
    assert len(actions) == (0 if goes or "pinned" in further else 1)


@pytest.mark.promise("001-18.5")
def test_a_run_is_one_line_and_is_taken_back_as_one_change_for_good(home: Home) -> None:
    ids = [home.write(f"thing number {n}", "knowledge") for n in range(3)]
    home.write("kept", "soul")
    before = home.tree()
    home.later(days=31)
    home.job("decay")
    (run, *_) = home.memory.log_by_run()
    verbs = [change_of_run.verb for change_of_run in run]
    assert verbs == ["decay"] * 3
    runs = {change_of_run.run for change_of_run in run}
    assert runs == {run[-1].number}
    with pytest.raises(CannotUndo, match="There is no run #1"):
        home.memory.undo_run(1)
    number = run[-1].number
    last = home.memory.log(limit=1)[0].number
    change, undone = home.memory.undo_run(number)
    assert change.number == last + 1
    assert len(undone) == 3
    assert home.forgotten_undos() == before
    memory_ids = {memory.id for memory in home.upkeep.every()}
    assert memory_ids >= {*ids}
    with pytest.raises(CannotUndo, match="it was undone"):
        home.memory.undo_run(number)
    with pytest.raises(CannotUndo, match="undone already"):
        home.memory.undo(number)
    home.later(days=400)
    actions = home.job("decay").actions
    assert actions == ()
    assert rounds(home) == []
    home.memory.undo(change.number)
    infos, _ = home.memory.list(ARCHIVED)
    assert len(infos) == 3


@pytest.mark.promise("001-18.5")
def test_a_run_of_which_a_memory_changed_since_is_not_taken_back_at_all(home: Home) -> None:
    ids = [home.write(f"thing number {n}", "knowledge") for n in range(3)]
    home.later(days=31)
    home.job("decay")
    run = home.memory.log_by_run()[0][-1].number
    home.memory.tag(ids[1], ["x"])
    before = home.tree()
    with pytest.raises(CannotUndo, match="changed later"):
        home.memory.undo_run(run)

    assert home.tree() == before


@pytest.mark.promise("001-18.5")
def test_a_run_whose_changes_touch_one_memory_several_times_is_taken_back(home: Home) -> None:
    words = "Kestrel 4.2.7 hawk-prod billing"
    for category in ("project", "lessons", "decisions", "knowledge"):
        home.write(f"{category}: {words}", category, tags=["kestrel", "hawk"])
    before = home.tree()
    actions = dream.run(home.memory, 3).actions
    assert len(actions) > 3
    for run in home.memory.log_by_run():
        if run[0].run is not None:
            home.memory.undo_run(run[0].run)
    assert home.forgotten_undos() == before


@pytest.mark.promise("001-18.5")
def test_two_memories_somebody_parted_again_are_not_merged_again(home: Home) -> None:
    first_id = home.write("the same words here", "knowledge")
    second_id = home.write("the same words here", "knowledge")
    (merged,) = home.job("consolidate").actions
    home.memory.undo()
    kept_from = home.info(merged.id).header["kept_from"]
    assert kept_from == [f"merge:{merged.target}"]
    actions = home.job("consolidate").actions
    assert actions == ()
    # Joins one of them, and not both
    home.write("the same words here", "knowledge")
    actions = home.job("consolidate").actions
    assert len(actions) == 1
    actions = home.job("consolidate").actions
    assert actions == ()
    assert home.info(first_id).id != home.info(second_id).id


def test_a_run_number_belongs_to_one_job_alone(home: Home) -> None:
    home.write("we decided to use SQLite")
    decayed(home)
    turn = Round(home.memory)
    turn.run("expire", lifecycle.plan_expire)
    home.write("by hand", "people")
    runs = {change.verb: change.run for change in home.memory.log(limit=0)}

    assert runs["write"] is None
    assert runs["decay"] != runs["expire"]
