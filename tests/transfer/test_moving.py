"""Moving in from other programs: nothing lost, nothing written over, twice is once (contracts 002,
11; 004, 7).
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from memoranda.engine.entries import NoteEntries
from memoranda.engine.graph import graph_lines, parse_graph
from memoranda.engine.graphs import NoteGraph
from memoranda.faces.bank.bank import is_bank_id
from memoranda.note.model import Draft
from memoranda.transfer import moving
from memoranda.transfer.moving import BATCH, WrongStore
from transfer.conftest import MOMENT, files


def laid(root, **texts):
    """Files below `root`; `__` in a name means `/`, a final `_md` for `.md`."""
    for name, text in texts.items():
        put(root, name.replace("__", "/").replace("_md", ".md"), text)
    return root


def put(root, path, text):
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text if isinstance(text, bytes) else text.encode())


def counts(plan):
    return plan.count("import"), plan.count("update"), plan.unchanged, len(plan.skipped)


GRAPH = """{"type":"entity","name":"Ada","entityType":"person","observations":["likes tea"],"createdAt":"2024-01-02","stars":5}
not json
{"type":"relation","from":"Ada","to":"Bob","relationType":"knows","since":1}
{"type":"relation","from":"Nobody","to":"Ada","relationType":"saw"}

{"type":"entity","name":"Ada","entityType":"person","observations":["likes tea","plays chess"]}
{"type":"note","name":"x"}
{"type":"entity","name":"Bob","entityType":"","observations":[],"id":"b-1","scope":"agent:nobody"}
"""  # noqa: E501


def graph_plan(memory, text=GRAPH):
    return moving.plan_graph(NoteGraph(memory), parse_graph(text))


@pytest.mark.promise("002-14.30")
def test_a_graph_with_twins_bad_lines_and_unknown_keys_is_moved_in_whole(memory):
    plan = graph_plan(memory)
    assert plan.skipped == [
        ("line 2", "not a JSON object"),
        ("line 7", "neither entity nor relation"),
    ]
    assert list(plan.lines()) == [
        "would import entity Ada",
        "would import relation Ada knows Bob",
        "would import entity Bob",
        "would import relation Nobody saw Ada",
    ]
    assert files(memory.home) == {}
    plan.carry_out()
    assert [json.loads(line) for line in graph_lines(NoteGraph(memory))] == [
        {
            "type": "entity",
            "name": "Ada",
            "entityType": "person",
            "observations": ["likes tea", "plays chess"],
            "createdAt": "2024-01-02",
            "stars": 5,
        },
        {
            "type": "entity",
            "name": "Bob",
            "entityType": "",
            "observations": [],
            "id": "b-1",
            "scope": "agent:nobody",
        },
        {"type": "relation", "from": "Ada", "to": "Bob", "relationType": "knows"},
        {"type": "relation", "from": "Nobody", "to": "Ada", "relationType": "saw"},
    ]
    assert memory.read(("graph", "Ada.md")).header["createdAt"] == "2024-01-02"
    bob = memory.read(("graph", "Bob.md"))
    assert (bob.header["fields"], bob.scope) == ({"id": "b-1", "scope": "agent:nobody"}, "global")


@pytest.mark.promise("002-14.30")
def test_an_entity_with_null_for_type_or_observations_is_moved_in_as_a_graph_file_shows_it(memory):
    plan = graph_plan(
        memory, '{"type":"entity","name":"Ada","entityType":null,"observations":null}\n'
    )
    assert plan.skipped == []
    plan.carry_out()
    assert list(graph_lines(NoteGraph(memory))) == [
        '{"type":"entity","name":"Ada","entityType":"","observations":[]}'
    ]


def test_an_entity_that_is_there_gains_what_it_lacks(memory):
    text = '{"type":"entity","name":"Ada","entityType":"other","observations":["likes tea"]}'
    graph_plan(memory, text).carry_out()
    plan = graph_plan(memory)
    assert counts(plan) == (3, 1, 0, 2)
    plan.carry_out()
    ada = memory.read(("graph", "Ada.md"))
    assert ada.type == "other"
    assert ada.header["createdAt"] == "2024-01-02"
    assert ada.header["stars"] == "5"
    assert "- plays chess" in ada.text
    assert counts(graph_plan(memory)) == (0, 0, 4, 2)
    graph_plan(
        memory, text.replace("other", "x").replace('"observations"', '"mood":"good","observations"')
    ).carry_out()
    mood = memory.read(("graph", "Ada.md")).header["mood"]
    assert mood == "good"


def test_a_placeholder_that_becomes_an_entity_keeps_the_keys_that_come_with_it(memory):
    graph_plan(
        memory, '{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}'
    ).carry_out()
    graph_plan(memory).carry_out()
    header = memory.read(("graph", "Ada.md")).header
    assert header["createdAt"] == "2024-01-02"
    assert "placeholder" not in header


def test_a_large_graph_goes_in_by_batches_that_can_be_taken_back(memory):
    names = [f"n{number}" for number in range(BATCH + 20)]
    lines = [
        json.dumps({"type": "entity", "name": name, "entityType": "t", "observations": []})
        for name in names
    ]
    relations = [
        json.dumps({"type": "relation", "from": name, "to": names[0], "relationType": "r"})
        for name in names
    ]
    progress = []
    plan = graph_plan(memory, "\n".join([*relations, *lines]))
    plan.carry_out(lambda count, total: progress.append((count, total)))
    assert progress == [(200, 440), (400, 440), (440, 440)]
    assert len(NoteGraph(memory).keys()) == len(NoteGraph(memory).relations()) == len(names)
    verbs = {change.verb for change in memory.log(limit=0)}
    assert verbs == {"import"}
    for _ in progress:
        memory.undo()
    assert files(memory.home) == {}


def row(key, value="v", **more):
    fixed = {
        "created_at": "2026-05-01T10:00:00Z",
        "accessed_at": "2026-05-02T10:00:00Z",
        "expires_at": None,
    }
    return {"key": key, "value": value, **fixed, "access_count": 4, **more}


def agent_folder(root, **namespaces):
    for name, rows in namespaces.items():
        put(root, f"{name}.json", json.dumps(rows, indent=2))
    put(root, "_meta.json", json.dumps({"total_entries": 1, "namespace_count": 1}))
    return root


@pytest.fixture
def agent_plan(memory, tmp_path):
    """The plan for a folder of these namespaces, each with its rows."""
    return lambda **namespaces: moving.plan_agent_memory(
        memory, agent_folder(tmp_path / "am", **namespaces)
    )


def test_entries_become_notes_with_all_they_carry(memory, agent_plan):
    later = (MOMENT + timedelta(days=1)).timestamp()
    plan = agent_plan(
        default=[
            row(" odd/key\r\n", "---\nline\r\n\n", stars=5, type="x"),
            row("ends", expires_at=later),
        ],
        a_b=[row("k", "one"), row("k", "two", namespace="a/b")],
    )
    assert sorted(plan.lines()) == [
        "would import kv/a/b/k",
        "would import kv/a_b/k",
        "would import kv/default/ odd/key\r\n",
        "would import kv/default/ends",
    ]
    assert files(memory.home) == {}
    plan.carry_out()
    entries = NoteEntries(memory)
    odd = entries.get("default", " odd/key\r\n")
    assert (odd.value, odd.access_count, odd.created) == (
        "---\nline\r\n\n",
        4,
        datetime(2026, 5, 1, 10, tzinfo=UTC),
    )
    assert entries.get("default", "ends").expires == MOMENT + timedelta(days=1)
    assert (entries.get("a_b", "k").value, entries.get("a/b", "k").value) == ("one", "two")
    header = next(
        memory.read(info).header for info in memory.list()[0] if info.title.startswith(" odd")
    )
    assert (header["stars"], header["fields"]) == ("5", {"type": "x"})
    assert (header["type"], header["accessed_at"]) == ("kv", "2026-05-02T10:00:00Z")


def test_expired_entries_and_blank_keys_stay_behind_and_are_named(memory, agent_plan):
    plan = agent_plan(default=[row("old", expires_at=1.5), row(" "), row("good")])
    assert plan.skipped == [
        ("kv/default/old", "its time to live is over"),
        ("kv/default/ ", "its key is blank"),
    ]
    plan.carry_out()
    assert NoteEntries(memory).get("default", "good").value == "v"
    assert len(files(memory.home)) == 1


def test_a_newer_entry_takes_the_place_of_the_one_here_which_goes_to_the_history(
    memory, agent_plan
):
    NoteEntries(memory).put("default", "k", "here")
    plan = agent_plan(default=[row("k", "newer", created_at="2026-05-07T11:00:00Z")])
    assert counts(plan) == (0, 1, 0, 0)
    plan.carry_out()
    value = NoteEntries(memory).get("default", "k").value
    assert value == "newer"
    memory.undo()
    value = NoteEntries(memory).get("default", "k").value
    assert value == "here"


def test_an_older_entry_goes_to_the_history_once(memory, agent_plan):
    entries = NoteEntries(memory)
    entries.put("default", "k", "here")
    for _ in range(2):
        plan = agent_plan(default=[row("k", "older")])
        assert counts(plan) == (0, 0, 0, 1)
        assert list(plan.lines()) == []
        plan.carry_out()
        present = entries.get("default", "k")
        assert present.value == "here"
        changes = memory.log(limit=0)
        assert len(changes) == 2
    memory.restore("kv/default/k.md")

    restored = entries.get("default", "k")
    assert restored.value == "older"


def test_of_an_entry_with_a_time_to_live_no_copy_is_kept(memory, agent_plan):
    NoteEntries(memory).put("default", "k", "here")
    agent_plan(default=[row("k", "secret", expires_at="2027-01-01T00:00:00Z")]).carry_out()
    texts_kept = [
        path.read_bytes()
        for path in (memory.home / ".memoranda" / "history").rglob("*")
        if path.is_file()
    ]
    assert not any(b"secret" in data for data in texts_kept)


def test_counts_of_an_entry_that_was_here_are_not_those_of_the_one_that_comes(memory, agent_plan):
    entries = NoteEntries(memory)
    entries.count(entries.put("default", "k", "here"))
    agent_plan(default=[row("k", "newer", created_at="2026-05-07T11:00:00Z")]).carry_out()
    assert memory.list()[0][0].access_count == 4


def test_of_two_entries_with_one_key_the_newer_one_comes(memory, agent_plan):
    rows = [
        row("k", "new", created_at="2026-05-03T00:00:00Z"),
        row("k", "old", created_at="2026-05-01T00:00:00Z"),
    ]
    plan = agent_plan(default=rows)
    assert plan.skipped == [("kv/default/k", "another with its key is newer")]
    plan.carry_out()
    assert NoteEntries(memory).get("default", "k").value == "new"


def test_a_file_that_is_no_list_of_entries_stops_the_move_unless_bad_ones_are_left_out(
    memory, tmp_path
):
    place = agent_folder(tmp_path / "am", default=[row("a")], broken={"no": "list"})
    with pytest.raises(WrongStore, match=r"broken\.json is no list of entries"):
        moving.plan_agent_memory(memory, place)
    plan = moving.plan_agent_memory(memory, place, skip_bad=True)

    assert counts(plan) == (1, 0, 0, 1)
    assert plan.skipped == [("broken.json", "it is no list of entries")]


def test_an_expiry_that_is_no_time_stops_the_move_and_is_named(memory, tmp_path):
    entry = row("a") | {"expires_at": "soon"}
    place = agent_folder(tmp_path / "am", default=[entry])
    message = r'default\.json is no list of entries \(expires_at of entry "a" is no time: "soon"; '
    with pytest.raises(WrongStore, match=message):
        moving.plan_agent_memory(memory, place)


def bank_plan(memory, place):
    return moving.plan_banks(memory, place, lambda folder: ("code", "my_repo"), is_bank_id)


def test_a_root_of_banks_is_copied_byte_for_byte(memory, tmp_path):
    root = laid(
        tmp_path / "banks",
        README_md="about all banks",
        global__default__context_md="# C\r\n",
        projects__alpha__doc__a_md=b"\xff\xfe",
        code__x__readme_md="\ufeff# X",
        code__x__picture="png",
        code__x__cache="",
    )
    put(root, "code/x/.bank.json", '{"name": "X"}')
    put(root, "code/x/cache.json", "{}")
    put(root, "code/x/.git/config", "[core]")
    plan = bank_plan(memory, root)
    assert counts(plan) == (6, 0, 0, 0)
    plan.carry_out()
    moved = {name.removeprefix("banks/"): data for name, data in files(memory.home).items()}
    files_there = files(root)
    for name in ("README.md", "code/x/cache.json", "code/x/.git/config"):
        del files_there[name]
    assert moved == files_there
    assert counts(bank_plan(memory, root)) == (0, 0, 6, 0)
    memory.undo()
    assert files(memory.home) == {}


@pytest.mark.parametrize(
    ("folder", "texts", "banks"),
    [
        (
            "repo/memory-bank",
            ["projectbrief_md", "features__login_md"],
            ["code/my_repo/features/login.md", "code/my_repo/projectbrief.md"],
        ),
        (
            "bank-root",
            ["alpha__progress_md", "beta__progress_md", "empty__x"],
            ["projects/alpha/progress.md", "projects/beta/progress.md"],
        ),
        ("code", ["alpha__readme_md"], ["code/alpha/readme.md"]),
    ],
    ids=["files are one bank", "projects", "of one kind"],
)
def test_a_folder_is_taken_for_the_banks_it_looks_like(memory, tmp_path, folder, texts, banks):
    bank_plan(memory, laid(tmp_path / folder, **dict.fromkeys(texts, "text"))).carry_out()
    assert sorted(files(memory.home)) == [f"banks/{bank}" for bank in banks]


def test_a_bank_file_with_another_text_is_left_and_named(memory, tmp_path):
    root = laid(tmp_path / "bank-root", alpha__a_md="old", alpha__b_md="b")
    bank_plan(memory, root).carry_out()
    put(memory.home, "banks/projects/alpha/a.md", "newer here")
    plan = bank_plan(memory, root)
    assert (counts(plan), plan.skipped) == (
        (0, 0, 1, 1),
        [("banks/projects/alpha/a.md", "another text is there")],
    )


def test_a_folder_whose_name_is_no_bank_id_is_named(memory, tmp_path):
    root = laid(tmp_path / "bank-root", alpha__a_md="a")
    put(root, "x (1)/a.md", "a")
    assert bank_plan(memory, root).skipped == [
        ("projects/x (1)/", "its name cannot be a bank's id")
    ]


def test_a_vault_is_copied_with_its_folders_and_other_files(memory, tmp_path):
    root = laid(
        tmp_path / "vault",
        a_md="---\ntitle: A\npermalink: x/a\nbroken: [\n---\r\n",
        deep__folder__b_md="b\r\n",
        images__c="\x00png",
        node_modules__d_md="no",
    )
    put(root, ".obsidian/app.json", "{}")
    put(root, "deep/odd \u2028 name.md", "x")
    os.symlink("/etc/passwd", root / "link.md")
    plan = moving.plan_vault(memory, root, "notes")
    assert counts(plan) == (3, 0, 0, 2)
    assert [name for name, _ in plan.skipped] == ["notes/link.md", "notes/deep/odd \u2028 name.md"]
    plan.carry_out()
    assert files(memory.home) == {
        "notes/a.md": (root / "a.md").read_bytes(),
        "notes/deep/folder/b.md": b"b\r\n",
        "notes/images/c": b"\x00png",
    }
    assert memory.find("deep/folder/b").path == "deep/folder/b.md"
    assert counts(moving.plan_vault(memory, root, "notes")) == (0, 0, 3, 2)
    memory.undo()
    assert files(memory.home) == {}


def test_a_note_whose_permalink_or_id_another_has_is_named_and_nothing_is_written_over(
    memory, tmp_path
):
    memory.write(
        Draft("mine", title="Mine", folder="x", metadata={"permalink": "x/taken", "id": "n-1"})
    )
    before = files(memory.home)
    root = laid(
        tmp_path / "vault",
        one_md="---\npermalink: x/taken\n---\n",
        two_md="---\nid: n-1\n---\n",
        three_md="---\npermalink: t\n---\n",
        zwei_md="---\npermalink: t\n---\n",
    )
    plan = moving.plan_vault(memory, root, "notes")
    assert [(name, why.partition(";")[0]) for name, why in plan.skipped] == [
        ("notes/one.md", 'its permalink "x/taken" is that of notes/x/Mine.md'),
        ("notes/two.md", 'its id "n-1" is that of notes/x/Mine.md'),
        ("notes/zwei.md", 'its permalink "t" is that of notes/three.md'),
    ]
    plan.carry_out()
    assert files(memory.home) == {**before, "notes/three.md": b"---\npermalink: t\n---\n"}


def test_names_that_differ_in_case_only_do_not_meet(memory, tmp_path):
    memory.write(Draft("mine", title="Plan"))
    root = laid(tmp_path / "vault", plan_md="theirs", a_md="one", A_md="two")
    plan = moving.plan_vault(memory, root, "notes")
    assert sorted(name for name, _ in plan.skipped) == ["notes/a.md", "notes/plan.md"]


@pytest.mark.promise("001-17.13")
def test_an_agent_moves_in_nothing_of_another_scope_and_learns_nothing_of_it(memory, tmp_path):
    memory.write(Draft("secret", title="Secret", scope="agent:codex"))
    root = laid(
        tmp_path / "vault",
        mine_md="---\nscope: agent:claude\n---\n",
        theirs_md="---\nscope: agent:codex\n---\n",
        Secret_md="x",
    )
    plan = moving.plan_vault(memory.as_caller("claude"), root, "notes")
    assert plan.skipped == [
        ("notes/Secret.md", "something else is there"),
        ("notes/theirs.md", 'its scope is "agent:codex"'),
    ]
    assert [item.name for item in plan.items] == ["notes/mine.md"]


def test_a_folder_that_holds_no_such_store_is_named(memory, tmp_path):
    empty = laid(tmp_path / "empty", sub__x="x")
    for plan in (
        moving.plan_agent_memory,
        bank_plan,
        lambda *arguments: moving.plan_vault(*arguments, "notes"),
    ):
        with pytest.raises(WrongStore, match=f"^{empty} holds no "):
            plan(memory, empty)
