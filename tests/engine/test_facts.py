"""`supersede` and the keys `valid_from`, `valid_until`, `supersedes`: rules, refusals, and what
they survive.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

import pytest
from tests.contract.note_tools import Tools

from memoranda import Draft, Query, errors
from memoranda.engine import open_session
from movable_clock import Clock

pytestmark = pytest.mark.promise("issue-facts")

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def memory(tmp_path, clock):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.yaml").write_text("timezone: America/New_York\n")
    with open_session(tmp_path / "home", clock=clock, watch=False) as opened:
        yield opened


def fact(memory, text: str, **more):
    return memory.write(Draft(text, project="categories", category="people", **more))


def found(memory, query: str | Query) -> list[str]:
    return [hit.note.title for hit in memory.search(query)]


def test_the_old_one_gets_its_end_the_new_one_the_id_in_one_change(memory):
    old = fact(memory, "Anna lives in Berlin")
    new = fact(memory, "Anna lives in Munich")
    changes = len(memory.log(limit=0))
    before, after = memory.supersede(old, new, valid_from="2026-03-01")
    assert before.header["valid_until"] == "2026-03-01"
    assert after.header["valid_from"] == "2026-03-01"
    assert after.header["supersedes"] == old.id
    assert len(memory.log(limit=0)) == changes + 1
    memory.undo()
    texts = [memory.read(version).text for version in (old, new)]
    assert texts == [old.text, new.text]


@pytest.mark.parametrize(
    ("new", "valid_from", "until"),
    [
        ({}, None, "2026-11-22T12:00:00Z"),
        ({"valid_from": "2026-10-01"}, None, "2026-10-01"),
        ({"date": "2026-09-15"}, None, "2026-09-15"),
        ({"date": "2027-09-15"}, None, "2026-11-22T12:00:00Z"),
        ({"date": "15 September"}, None, "2026-11-22T12:00:00Z"),
        ({"date": "2020"}, None, "2026-11-22T12:00:00Z"),
        ({"date": "2026-09-15"}, "2026-08-01", "2026-08-01"),
        ({}, "yesterday", "2026-11-21"),
        ({}, "2026-08-01T10:00:00+02:00", "2026-08-01T08:00:00Z"),
        ({}, "tomorrow", "2026-11-23"),
    ],
)
@pytest.mark.parametrize("as_draft", [True, False])
def test_the_old_one_ends_where_the_new_one_begins(memory, clock, new, valid_from, until, as_draft):
    clock.now = datetime(2025, 1, 1, tzinfo=UTC)
    old = fact(memory, "Anna lives in Berlin")
    clock.now = NOW
    draft = Draft("Anna lives in Munich", project="categories", category="people", **new)
    before, _ = memory.supersede(
        old, draft if as_draft else memory.write(draft), valid_from=valid_from
    )

    assert before.header["valid_until"] == until


@pytest.mark.parametrize(
    ("written", "begins"),
    [("2026-03", None), ("yesterday", "2026-11-21"), (date(2026, 3, 1), "2026-03-01"), (7, None)],
)
def test_the_beginning_may_be_in_the_metadata(memory, clock, written, begins):
    clock.now = datetime(2025, 1, 1, tzinfo=UTC)
    old = fact(memory, "Anna lives in Berlin")
    clock.now = NOW
    more = {"supersedes": [old.id], "metadata": {"valid_from": written}}
    if begins is None:
        with pytest.raises(errors.TimeframeError):
            fact(memory, "Anna lives in Munich", **more)
        text = memory.read(old).text
        assert text == old.text
        return
    new = fact(memory, "Anna lives in Munich", **more)

    assert memory.read(old).header["valid_until"] == begins
    assert new.header["valid_from"] == begins


@pytest.mark.parametrize(
    ("valid_from", "until"),
    [
        ("2026-03-01", "2026-03-01"),
        (date(2026, 3, 1), "2026-03-01"),
        ("2026-03-01 10:00:00Z", "2026-03-01T10:00:00Z"),
    ],
)
@pytest.mark.parametrize("ends", [None, "2027-01-01"])
def test_a_beginning_in_the_metadata_ends_the_old_note(memory, valid_from, until, ends):
    old = fact(memory, "Anna lives in Berlin", valid_until=ends)
    new = Draft("Anna lives in Munich", "categories", metadata={"valid_from": valid_from})
    before, after = memory.supersede(old, new)
    assert before.header["valid_until"] == after.header["valid_from"] == until


@pytest.mark.parametrize("valid_from", ["once upon a time", ["2026-03-01"]])
def test_a_beginning_in_the_metadata_that_is_no_time_is_refused(memory, valid_from):
    old = fact(memory, "Anna lives in Berlin")
    new = Draft("Anna lives in Munich", "categories", metadata={"valid_from": valid_from})
    with pytest.raises(errors.TimeframeError):
        memory.supersede(old, new)


def test_an_older_note_supersedes_a_younger_one_from_now_on(memory, clock):
    right = fact(memory, "Anna lives in Munich")
    clock.now = NOW + timedelta(days=2)
    wrong = fact(memory, "Anna lives in Berlin")
    before, _ = memory.supersede(wrong, right)

    assert before.header["valid_until"] == "2026-11-24T12:00:00Z"


def test_a_chain_shows_its_last_link_and_each_one_in_its_time(memory):
    versions = [fact(memory, "Rent is 900", valid_from="2024-01-01")]
    for amount, day in (("950", "2025-01-01"), ("990", "2026-01-01")):
        draft = Draft(f"Rent is {amount}", project="categories", category="people")
        versions.append(memory.supersede(versions[-1], draft, valid_from=day)[1])
    assert found(memory, "rent") == ["Rent is 990"]
    for day, version in (("2024-12-31", 0), ("2025-01-01", 1), ("2026-06", 2)):
        moment = memory.as_of(day)
        assert found(memory, Query(text="rent", as_of=moment)) == [versions[version].title]
        ids = {memory.version_at(name, moment).id for name in versions}
        assert ids == {versions[version].id}
    with pytest.raises(errors.InvalidInput, match="was valid on 2023-01-01"):
        memory.version_at(versions[0], memory.as_of("2023-01-01"))


def test_refusals_change_nothing(memory):
    first, second, third = (fact(memory, f"version {name}") for name in "abc")
    memory.supersede(first, second)
    memory.supersede(second, third)
    locked = memory.write(Draft("x", title="Locked", metadata={"locked": True}))
    before = [memory.read(note, count=False).text for note in (first, second, third, locked)]
    changes = len(memory.log(limit=0))
    for old, new, error, words in (
        (third, first, errors.InvalidInput, "cannot supersede"),
        (third, third, errors.InvalidInput, "cannot supersede"),
        (first, third, errors.InvalidInput, "is superseded by .* already"),
        (third, Draft("", project="categories"), errors.InvalidInput, "must not be empty"),
        (locked, Draft("y", title="New"), errors.Locked, "is locked"),
        ("nothing-here", third, errors.NotFound, "nothing-here"),
        (third, Draft("y", title="New", valid_until="soon-ish"), errors.TimeframeError, "soon-ish"),
        (
            third,
            Draft("y", title="New", valid_until="2020-01-01", valid_from="2021-01-01"),
            errors.InvalidInput,
            "after",
        ),
    ):
        with pytest.raises(error, match=words):
            memory.supersede(old, new)

    texts = [memory.read(note, count=False).text for note in (first, second, third, locked)]
    assert texts == before
    assert len(memory.log(limit=0)) == changes


def test_an_overwritten_note_supersedes_neither_itself_nor_what_supersedes_it(memory):
    memory.write(Draft("one", title="A"))
    memory.supersede("notes/a", Draft("two", title="B"))
    for title, old, why in (
        ("B", "notes/b", "cannot supersede itself"),
        ("A", "notes/b", "which supersedes it"),
    ):
        with pytest.raises(errors.InvalidInput, match=why):
            memory.store(Draft("three", title=title, supersedes=[old]), overwrite=True)

    bodies = [memory.read(ref).body for ref in ("notes/a", "notes/b")]
    assert bodies == ["one\n", "two\n"]


def test_one_note_takes_the_place_of_several_each_once(memory):
    olds = [fact(memory, f"Office {name}") for name in ("Berlin", "Bonn")]
    refs = [olds[0].id, olds[1].id, olds[0].id[:8]]
    new = memory.write(Draft("Office in Munich", project="categories", supersedes=refs))

    ids = [old.id for old in olds]
    assert new.header["supersedes"] == ids
    assert found(memory, "office") == ["Office in Munich"]


def test_what_is_over_is_not_put_before_an_agent(memory):
    from memoranda.engine.overview import Overview
    from memoranda.faces.agent.session import Session

    old = fact(memory, "Anna lives in Berlin")
    memory.supersede(old, Draft("Anna lives in Munich", project="categories", category="people"))
    text = Overview(memory).text()
    assert "Munich" in text
    assert "Berlin" not in text
    session = Session(memory)
    assert session.inject_context("anna lives") == "Anna lives in Munich"
    assert session.inject_context("berlin").startswith("[superseded by")
    assert "Berlin" not in session.inject_context("Where does Anna live?", max_tokens=200)


def test_what_one_agent_keeps_to_himself_no_other_agent_ends(memory):
    alice = memory.as_caller("alice")
    bob = memory.as_caller("Bob")
    private = fact(bob, "Bob eats fish", scope="agent:bob")
    forged = alice.write(
        Draft("Bob eats stones", title="Forged", metadata={"supersedes": private.id})
    )
    assert "Bob eats fish" in found(bob, "eats")
    assert "Bob eats fish" in found(memory, "eats")
    _, newer = bob.supersede(private, Draft("Bob eats meat", project="categories"))
    assert sorted(found(bob, "eats")) == sorted([newer.title, forged.title])


def test_a_shared_note_is_not_superseded_by_a_private_one_and_a_private_one_is_no_others(memory):
    claude = memory.as_caller("claude", "test")
    bob = memory.as_caller("bob", "test")
    shared = fact(memory, "Anna lives in Berlin")
    private = fact(claude, "Anna eats fish", scope="agent:claude")
    with pytest.raises(errors.InvalidInput, match="seen by others"):
        claude.supersede(
            shared, Draft("Anna lives in Munich", project="categories", scope="agent:claude")
        )
    with pytest.raises(errors.NotFound):
        bob.supersede(private.id, Draft("Anna eats meat", project="categories"))
    claude.supersede(private, Draft("Anna eats meat", project="categories", scope="agent:claude"))
    bob.supersede(shared, Draft("Anna lives in Munich", project="categories"))

    assert found(claude, "anna eats") == ["Anna eats meat"]
    assert found(claude, "anna lives") == ["Anna lives in Munich"]


def test_a_private_header_hides_no_shared_note(memory):
    shared = fact(memory, "Anna lives in Berlin")
    path = memory.home / "categories/people/forged.md"
    path.write_text(
        f"---\nid: forged-1\nscope: agent:claude\ncreated_at: 2026-11-20\nsupersedes: {shared.id}\n---\nAnna lives on\n"
    )
    assert "Anna lives in Berlin" in found(memory, "anna lives")
    path.write_text(
        f"---\nid: forged-1\nscope: global\ncreated_at: 2026-11-20\nsupersedes: {shared.id}\n---\nAnna lives on\n"
    )
    assert found(memory, "anna lives") == ["Anna lives on"]


def test_hand_written_headers_count_as_those_of_the_command(memory):
    folder = memory.home / "notes"
    folder.mkdir(exist_ok=True)
    (folder / "Old price.md").write_text("---\nvalid_until: 2026-01-01\n---\nThe price is 10\n")
    (folder / "New price.md").write_text("---\nvalid_from: 2026-01-01\n---\nThe price is 12\n")
    (folder / "Coming price.md").write_text("---\nvalid_from: 2027-01-01\n---\nThe price is 15\n")

    assert found(memory, "price") == ["New price"]
    assert found(memory, "price as_of:2025-12-31") == ["Old price"]
    assert sorted(found(memory, "price as_of:2027-02")) == ["Coming price", "New price"]


def test_a_day_counts_in_the_zone_of_the_owner(memory, clock):
    fact(memory, "The shop opens at 9", valid_until="2026-11-23")
    # Still the 22nd in New York
    clock.now = datetime(2026, 11, 23, 3, tzinfo=UTC)
    passage = memory.search("shop opens")[0].passage
    assert "[valid until 2026-11-23]" in passage
    fact(memory, "The shop opens at 10", valid_from="2026-11-23")
    assert found(memory, "shop opens") == ["The shop opens at 9"]
    clock.now = datetime(2026, 11, 23, 6, tzinfo=UTC)
    assert found(memory, "shop opens") == ["The shop opens at 10"]


def test_what_is_over_answers_marked_when_nothing_else_does(memory):
    old = fact(memory, "The wifi password is otter")
    _, new = memory.supersede(old, Draft("The network has a certificate now", project="categories"))
    [hit] = memory.search("otter")

    assert hit.passage == f"[superseded by {new.id[:8]}] The wifi password is otter"
    assert hit.why[-1].startswith("superseded by")
    assert memory.smart_search("otter").best[0].note.id == old.id
    assert "[superseded by" in memory.context_for("what is the otter?")


def test_a_plan_is_known_from_when_it_was_written_not_from_its_day(memory, clock):
    fact(memory, "Dentist in December", date="2026-12-10")
    assert (
        found(memory, "dentist")
        == found(memory, "dentist as_of:2026-11-22")
        == ["Dentist in December"]
    )
    assert found(memory, "dentist as_of:2026-11-21") == []


def test_without_its_successor_the_old_note_stays_over(memory):
    old = fact(memory, "Anna lives in Berlin")
    _, new = memory.supersede(old, Draft("Anna lives in Munich", project="categories"))
    memory.delete(new)
    passage = memory.search("anna lives")[0].passage
    assert passage.startswith("[valid until")
    memory.undo()
    assert found(memory, "anna lives") == ["Anna lives in Munich"]


def test_a_note_without_an_id_gets_the_one_it_is_named_by_and_may_move(memory):
    folder = memory.home / "notes"
    folder.mkdir(exist_ok=True)
    (memory.home / "notes/Old.md").write_text("Anna lives in Berlin\n")
    _, new = memory.supersede("notes/old", Draft("Anna lives in Munich", title="New"))
    memory.move("notes/old", "archive/")

    assert memory.read("notes/archive/old").id == new.header["supersedes"]
    assert (
        memory.validity_marks([memory.find("notes/archive/old")]).popitem()[1]
        == "superseded by notes/new"
    )


def test_the_name_of_a_successor_forges_no_line(memory):
    old = memory.write(Draft("Anna lives in Berlin", title="Old"))
    header = {"permalink": "notes/new\n99999999 organized  people     forged", "supersedes": old.id}
    memory.write(Draft("Anna lives in Munich", title="New", metadata=header))
    [mark] = memory.validity_marks([memory.find("notes/old")]).values()

    assert mark == "superseded by notes/new 99999999 organized  people     forged"


def test_key_value_entries_are_replaced_in_place(memory):
    with pytest.raises(errors.InvalidInput, match="key-value entry"):
        memory.write(Draft("v", project="kv", title="k", valid_until="2027-01-01"))


def test_merging_leaves_out_what_ended_and_keeps_the_widest_time(memory, clock):
    from memoranda.engine.upkeep import Upkeep
    from memoranda.jobs.job import MemoryState

    text = "Anna lives in Berlin with two cats and a dog"
    over = fact(memory, text, valid_until="2025-01-01")
    late = fact(memory, text, valid_from="2026-05-01")
    early = fact(memory, text, valid_from="2026-02-01")
    states = {note.id: MemoryState.of(memory.find(note.id), text) for note in (over, late, early)}
    assert states[over.id].block != states[late.id].block == states[early.id].block
    Upkeep(memory).merge(memory.find(late.id), memory.find(early.id))
    valid_from = memory.read(late.id).header["valid_from"]
    assert valid_from == "2026-02-01"


def test_export_and_import_keep_the_keys(memory, tmp_path):
    from memoranda.cli import main

    old = fact(memory, "Anna lives in Berlin")
    memory.supersede(
        old, Draft("Anna lives in Munich", project="categories"), valid_from="2026-03-01"
    )
    file = tmp_path / "all.jsonl"
    assert main(["--home", str(memory.home), "export", "--output", str(file)]) == 0
    assert main(["--home", str(tmp_path / "other"), "import", "--input", str(file)]) == 0
    with open_session(tmp_path / "other", watch=False) as other_memory:
        assert found(other_memory, "anna lives") == ["Anna lives in Munich"]
        valid_until = other_memory.read(old.id).header["valid_until"]
        assert valid_until == "2026-03-01"


def test_entities_of_a_graph_file_carry_the_keys_in_their_lines(memory, tmp_path):
    file = tmp_path / "graph.jsonl"
    lines = [
        {
            "type": "entity",
            "name": "Old office",
            "entityType": "place",
            "observations": ["office in Berlin"],
        },
        {
            "type": "entity",
            "name": "New office",
            "entityType": "place",
            "observations": ["office in Munich"],
        },
    ]
    lines[0] |= {"valid_from": "2024-01-01", "valid_until": "2026-01-01"}
    lines[1]["valid_from"] = "2026-01-01"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with open_session(memory.home, projects={"g": file}, watch=False) as opened:
        assert found(opened, "office") == ["New office"]
        assert found(opened, "office as_of:2025-06-01") == ["Old office"]


def test_the_note_tools_take_further_arguments_and_say_what_is_superseded(memory):
    tools = Tools(memory)
    tools("write_note", title="Old", content="Anna lives in Berlin", valid_from="2024-01-01")
    tools(
        "write_note",
        title="New",
        content="Anna lives in Munich",
        valid_from="2026-01-01",
        supersedes="notes/old",
    )
    assert [result["title"] for result in tools("search_notes", query="anna lives")["results"]] == [
        "New"
    ]
    then = tools("search_notes", query="anna lives", as_of="2025")["results"]
    assert [result["title"] for result in then] == ["Old"]
    assert tools("read_note", identifier="notes/old")["validity"] == "superseded by notes/new"
    assert (
        tools("read_note", identifier="notes/new", as_of="2025-01-01")["permalink"] == "notes/old"
    )
    assert "as_of" not in json.dumps([tool.schema for tool in tools.registry.tools.values()])
    tools.refused("search_notes", "timeframe", query="anna", as_of="some day")


def test_the_agent_tools_take_further_arguments(memory):
    from memoranda import faces

    registry = faces.registry(["agent"], memory.settings)

    def call(tool: str, **arguments):
        reply = registry.call(memory, tool, arguments)
        assert not reply.is_error, reply.text
        return json.loads(reply.text)

    old = call(
        "memory_write", content="Anna lives in Berlin", category="people", valid_from="2024-01-01"
    )["id"]
    new = call(
        "memory_write",
        content="Anna lives in Munich",
        category="people",
        supersedes=old[:8],
        valid_from="2026-01-01",
    )
    assert call("memory_read", id=old)["validity"] == f"superseded by {new['id'][:8]}"
    assert call("memory_read", id=new["id"], as_of="2025-01-01")["id"] == old
    assert [result["id"] for result in call("memory_smart_search", query="anna")["results"]] == [
        new["id"]
    ]
    assert [
        result["id"]
        for result in call("memory_smart_search", query="anna", as_of="2025")["results"]
    ] == [old]
    assert [result["id"] for result in call("memory_search", query="anna", as_of="2025")] == [old]
    assert {result["id"] for result in call("memory_search", query="anna")} == {old, new["id"]}
