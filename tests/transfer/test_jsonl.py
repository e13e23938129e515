"""Memories as JSON Lines, out and in (contract 001, 12; 17.3 and 17.15)."""

from __future__ import annotations

import io
import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.engine import open_session
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import BadRecord, NotFound
from memoranda.note.markdown import Record
from memoranda.note.model import CATEGORIES, FURTHER, Draft
from memoranda.transfer.jsonl import Import, Tally, exported_lines
from transfer.conftest import MOMENT, files

ONE = "550e8400-e29b-41d4-a716-446655440000"
TWO = "7f8d9e00-1111-4222-8333-444455556666"


def opened(home, **more):
    return open_session(home, clock=lambda: MOMENT, **more)


def lines(memory, **options):
    return [*exported_lines(memory, **options)]


def take(memory, text, *, skip_bad=False, said_lines=None, warned=None):
    """Import `text`, JSON Lines or a list of records."""
    if not isinstance(text, str):
        text = "".join(json.dumps(record) + "\n" for record in text)
    importing = Import(
        memory, io.BytesIO(text.encode("utf-8", "surrogateescape")), skip_bad=skip_bad
    )
    if not skip_bad:
        importing.check()
    tally = Tally()
    importing.run(tally, (warned if warned is not None else []).append)
    return tally


def plan(memory, text):
    lines_said = []
    importing = Import(memory, io.BytesIO(text.encode()))
    return importing.plan(lines_said.append, lines_said.append), lines_said


def remember(memory, text, category="people", **more):
    return memory.memory_id(
        memory.write(Draft(text, project="categories", category=category, **more)).id
    )


def hand_made(home, path, text):
    place = home / "categories" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode())


@pytest.mark.promise("001-17.15")
def test_a_line_has_all_keys_in_order_without_blanks_and_utf_8_as_is(memory):
    Upkeep(memory).put(
        [
            Record(
                ONE,
                "use “déjà vu” 中\u2028文",
                "reminders",
                MOMENT,
                MOMENT + timedelta(hours=1),
                tags=("a", "ü"),
                source="claude",
                access_count=3,
                links=(TWO,),
                version=2,
                further={
                    "mine": {"deep": ["1", True]},
                    "due_at": "2026-05-08T15:00:00+08:00",
                    "title": "A call",
                },
            )
        ],
        "import",
    )
    (line,) = lines(memory)
    assert list(json.loads(line)) == [
        "id",
        "content",
        "content_hash",
        "phase",
        "category",
        "scope",
        "tags",
        "source",
        "created_at",
        "updated_at",
        "expires_at",
        "access_count",
        "links",
        "version",
        "title",
        "due_at",
        "extra",
    ]
    assert '"content":"use “déjà vu” 中\u2028文","content_hash":"' in line
    assert line.endswith(
        '"created_at":"2026-05-07T10:00:00Z","updated_at":"2026-05-07T11:00:00Z","expires_at":null,'
        f'"access_count":3,"links":["{TWO}"],"version":2,"title":"A call","due_at":"2026-05-08T07:00:00Z",'
        '"extra":{"mine":{"deep":["1",true]}}}'
    )


def test_export_is_oldest_first_then_by_id(memory):
    ids = [str(uuid.UUID(int=number)) for number in (9, 1, 5, 3)]
    hours = (2, 2, 1, 3)
    Upkeep(memory).put(
        [
            Record(record_id, f"n{record_id}", "people", MOMENT + timedelta(hours=hour), MOMENT)
            for record_id, hour in zip(ids, hours, strict=True)
        ],
        "import",
    )

    line_ids = [json.loads(line)["id"] for line in lines(memory)]
    assert line_ids == [ids[2], ids[1], ids[0], ids[3]]


@pytest.mark.promise("001-17.13")
def test_an_agent_exports_what_it_sees_and_no_id_of_what_it_does_not(memory):
    open_one = remember(memory, "open")
    own_note = remember(memory, "own", scope="agent:claude")
    foreign = remember(memory, "foreign", scope="agent:codex")
    memory.link(open_one, foreign)
    memory.link(open_one, own_note)
    records = {
        record["content"]: record for record in map(json.loads, lines(memory.as_caller("claude")))
    }

    assert records.keys() == {"open", "own"}
    assert records["open"]["links"] == [own_note.id]
    assert lines(memory.as_caller("claude"), scope="agent:codex") == []


def test_counts_of_reads_still_in_the_log_are_exported(memory):
    info = remember(memory, "read me")
    memory.read(info)
    memory.read(info)
    assert json.loads(lines(memory)[0])["access_count"] == 2


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    [
        "a\r\nb\r\n",
        "---\nx\n---\n",
        "\ufeffx",
        "👩‍🚀 e\u0301",
        "a\u2028b\u2029",
        "x\x00y",
        "\n\n",
        "  ",
        "[[x]]",
        "a\rb",
    ]
)
YAMLISH = st.sampled_from(
    [
        "yes",
        "no",
        "~",
        "null",
        "true",
        "1.10",
        "0x1f",
        "1e3",
        "2026-11-01",
        "12:30",
        "- a",
        "a: b",
        "# c",
        "*x",
        "&a",
        "!t",
        "|",
        ">",
        "%",
        "@",
        "`",
        "{a}",
        "[a]",
        "'",
        '"',
        "",
        " a ",
        "a #b",
        "---",
        "...",
        "=",
        "<<",
        "?",
    ]
)
SCALARS = TEXTS | YAMLISH | st.none() | st.booleans()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | YAMLISH, inner, max_size=3),
    max_leaves=6,
)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)
KEYS = (TEXTS | YAMLISH).filter(lambda key: key not in frontmatter_keys())


def frontmatter_keys():
    from memoranda.note.model import MEMORY_KEYS

    return {*MEMORY_KEYS, *FURTHER, "type"}


RECORDS = st.builds(
    Record,
    st.uuids(version=4).map(str),
    TEXTS,
    st.sampled_from(CATEGORIES),
    MOMENTS,
    MOMENTS,
    scope=st.sampled_from(["global", "agent:claude"]),
    phase=st.sampled_from(["inbox", "organized"]),
    tags=st.lists(TEXTS | YAMLISH, max_size=3).map(tuple),
    source=TEXTS | YAMLISH,
    expires=st.none() | MOMENTS,
    access_count=st.integers(0, 10**17),
    links=st.lists(TEXTS | YAMLISH, max_size=3).map(tuple),
    version=st.integers(1, 10**17),
    further=st.dictionaries(st.sampled_from(FURTHER), VALUES, max_size=4).flatmap(
        lambda first: st.dictionaries(KEYS, VALUES, max_size=4).map(
            lambda second: {**first, **second}
        )
    ),
)


@pytest.mark.slow
@pytest.mark.promise("001-17.15", "001-17.5")
@settings(max_examples=15)
@given(records=st.lists(RECORDS, min_size=1, max_size=12, unique_by=lambda record: record.id))
def test_export_and_import_into_an_empty_home_and_export_are_equal(tmp_path_factory, records):
    folder = tmp_path_factory.mktemp("homes")
    with opened(folder / "one") as first, opened(folder / "two") as second:
        Upkeep(first).put(records, "import")
        before = lines(first)
        assert len(before) == len(records)
        text = "".join(f"{line}\n" for line in before)
        assert take(second, text) == Tally(imported=len(records))
        assert lines(second) == before
        assert take(second, text) == Tally(unchanged=len(records))
        assert take(first, text) == Tally(unchanged=len(records))


@pytest.mark.promise("001-17.3")
def test_a_tree_of_the_reference_program_is_exported_with_nothing_lost(tmp_path, memory):
    head = "---\nid: {id}\ncontent_hash: {hash}\ntype: {type}\ncategory: {category}\nscope: global\ntags:\n  - a\nsource: manual\ncreated_at: 2026-05-07T10:00:00+08:00\nupdated_at: 2026-05-07T10:00:00.5Z\nexpires_at: {expires}\naccess_count: 3\nlinks:\n  - {link}\n  - Some title\nversion: 1\nconfidence: high\n---\n"  # noqa: E501
    first_head = head.format(
        id=ONE,
        hash="0" * 64,
        type="short",
        category="inbox",
        expires="2026-05-14T10:00:00Z",
        link=TWO,
    )
    second_head = head.format(
        id=TWO, hash="0" * 64, type="long", category="decisions", expires="null", link=ONE
    )
    hand_made(memory.home, f"short-term/inbox/{ONE}.md", first_head + "first\r\nline\r\n\n")
    hand_made(memory.home, f"long-term/decisions/{TWO}.md", second_head + "second")
    records = [json.loads(line) for line in lines(memory)]
    assert [(row["id"], row["content"], row["phase"], row["category"]) for row in records] == [
        (ONE, "first\r\nline\r\n", "inbox", "inbox"),
        (TWO, "second", "organized", "decisions"),
    ]
    for record, link, expires in zip(
        records, (TWO, ONE), ("2026-05-14T10:00:00Z", None), strict=True
    ):
        assert (record["tags"], record["links"], record["access_count"]) == (
            ["a"],
            [link, "Some title"],
            3,
        )
        assert record["created_at"] == "2026-05-07T02:00:00Z"
        assert record["updated_at"] == "2026-05-07T10:00:00.500000Z"
        assert (record["expires_at"], record["extra"]) == (expires, {"confidence": "high"})
    with opened(tmp_path / "other") as other_memory:
        take(other_memory, "\n".join(lines(memory)))
        assert lines(other_memory) == lines(memory)


def test_files_made_by_hand_come_through(tmp_path, memory):
    hand_made(memory.home, "people/ann.md", "Ann likes tea")
    hand_made(memory.home, "soul/a.md", "---\nid: My own id\npath: /x\ncontent: y\n---\n")
    hand_made(memory.home, "soul/b.md", "---\nid: My own id too\n---\n")
    hand_made(memory.home, "soul/none.md", "---\ntags: [a, b]\n---\nno source")
    with opened(tmp_path / "other") as other_memory:
        imported = take(other_memory, "\n".join(lines(memory))).imported
        assert imported == 4
        assert lines(other_memory) == lines(memory)
        assert other_memory.memory_id(memory.list()[0][0].id)


def test_what_a_record_lacks_gets_defaults(memory):
    assert take(memory, [{"content": "just this", "tags": None, "links": None}]).imported == 1
    (line,) = lines(memory)
    record = json.loads(line)
    assert (record["phase"], record["category"]) == ("inbox", "inbox")
    assert (record["scope"], record["source"]) == ("global", "manual")
    assert (record["created_at"], record["expires_at"]) == (
        "2026-05-07T10:00:00Z",
        "2026-05-14T10:00:00Z",
    )
    assert (record["tags"], record["links"], record["access_count"], record["version"]) == (
        [],
        [],
        0,
        1,
    )


def test_phases_of_older_exports_are_read(memory):
    long = {"id": ONE, "content": "a", "type": "long", "category": "soul"}
    take(memory, [long, {"id": TWO, "content": "b", "type": "short"}])
    assert [json.loads(line)["phase"] for line in lines(memory)] == ["organized", "inbox"]
    assert "extra" not in lines(memory)[0]


def test_a_number_under_a_key_nobody_knows_is_a_number_in_the_next_home_too(memory, tmp_path):
    values = {
        "stars": 5,
        "ratio": 0.5,
        "code": "5",
        "edition": "1.50",
        "list": [1, "1", None],
    }
    record = {"id": ONE, "content": "a", "extra": values}
    take(memory, [record])
    exported = lines(memory)
    exported_record = json.loads(exported[0])
    assert exported_record["extra"] == values

    with open_session(tmp_path / "next") as next_memory:
        take(next_memory, [exported_record])
        assert lines(next_memory) == exported
        note = next_memory.find(ONE)
        text = next_memory.text_of(note)
    assert "\nstars: 5\n" in text
    assert '\ncode: "5"\n' in text


def test_keys_nobody_knows_are_kept_and_path_is_not(memory):
    take(
        memory, [{"id": ONE, "content": "a", "path": "x/y.md", "stars": 5, "extra": {"ratio": 0.5}}]
    )
    extra = json.loads(lines(memory)[0])["extra"]
    assert extra == {"stars": 5, "ratio": 0.5}
    assert take(
        memory, [{"id": ONE, "content": "a", "stars": 5, "extra": {"ratio": 0.5}}]
    ) == Tally(unchanged=1)


BAD = {
    "{": "Expecting property name",
    "[]": "it is no JSON object",
    "5": "it is no JSON object",
    '{"content":NaN}': "NaN is no JSON",
    "{}": "content is missing",
    '{"content":5}': "content must be a text",
    '{"content":"  "}': "content must not be empty",
    '{"content":"\\ud800"}': "it holds half of a surrogate pair",
    '{"content":"a","category":"nope"}': 'invalid category "nope"',
    '{"content":"a","category":"../../x"}': 'invalid category "../../x"',
    '{"content":"a","category":["soul"]}': "category must be a text",
    '{"content":"a","phase":"x"}': 'invalid phase "x"',
    '{"content":"a","scope":"x"}': 'invalid scope "x"',
    '{"content":"a","scope":"agent:../x"}': 'invalid scope "agent:../x"',
    '{"content":"a","tags":5}': "tags must be a list of texts",
    '{"content":"a","links":[1]}': "links must be a list of texts",
    '{"content":"a","source":[]}': "source must be a text",
    '{"content":"a","created_at":"soon"}': 'created_at is no time: "soon"',
    '{"content":"a","expires_at":12}': "expires_at is no time: 12",
    '{"content":"a","access_count":-1}': "access_count must be a whole number from 0",
    '{"content":"a","version":0}': "version must be a whole number from 1",
    '{"content":"a","version":true}': "version must be a whole number from 1",
    '{"content":"a","extra":[]}': "extra must be an object",
    '{"content":"a","extra":{"id":"x","scope":"y"}}': "extra must not hold id, scope",
    '{"content":"a","id":"../../x"}': 'invalid id "../../x"',
    '{"content":"a","id":"a/b"}': 'invalid id "a/b"',
    '{"content":"a","id":""}': 'invalid id ""',
    '{"content":"a","id":7}': "invalid id 7",
    '{"content":"a\udcff"}': "it is not valid UTF-8",
    '{"content":"a","x":' + "[" * 9000 + "]" * 9000 + "}": "it is nested too deeply",
    '{"content":"a","x":' + "[" * 60 + "]" * 60 + "}": "it is nested too deeply",
    '{"content":"a","x":[' + "1," * 60_000 + "1]}": "it has more than 50000 values",
    '{"content":"a","x":' + "9" * 5000 + "}": "Exceeds the limit",
}


@pytest.mark.promise("001-17.15", "001-17.8")
def test_a_bad_record_imports_nothing_and_is_named(memory):
    reasons = []
    for line, why in BAD.items():
        with pytest.raises(BadRecord) as caught:
            take(memory, '{"content":"fine"}\n\n' + line + '\n{"content":"fine too"}\n')
        assert str(caught.value).startswith(f"malformed JSON at record 2: {why}"), line[:40]
        reasons.append(str(caught.value).partition("record 2: ")[2])
    assert files(memory.home) == {}
    warned = []
    text = "\n".join(['{"content":"fine"}', *BAD, '{"content":"fine too"}'])
    assert take(memory, text, skip_bad=True, warned=warned) == Tally(imported=2, skipped=len(BAD))
    assert warned == [
        f"warning: malformed JSON at record {at}: {why}" for at, why in enumerate(reasons, 2)
    ]


@pytest.mark.promise("001-17.13")
def test_an_agent_cannot_take_the_id_of_a_memory_it_does_not_see(memory):
    foreign = remember(memory, "foreign", scope="agent:codex")
    before = files(memory.home)
    record = {"id": foreign.id, "content": "mine now", "updated_at": "2027-01-01T00:00:00Z"}
    with pytest.raises(BadRecord, match="is taken"):
        take(memory.as_caller("claude"), [record])

    assert files(memory.home) == before


def edited(line, **more):
    return json.dumps({**json.loads(line), **more})


def test_a_newer_record_replaces_the_memory_which_goes_to_the_history(memory):
    info = remember(memory, "old", tags=["x"])
    newer = edited(lines(memory)[0], content="new", updated_at="2026-06-01T00:00:00Z", tags=[])
    assert take(memory, newer) == Tally(updated=1)
    note = memory.read(info.id)
    assert note.content == "new"
    assert note.tags == ()
    assert note.path == info.path
    memory.undo()
    content = memory.read(info.id).content
    assert content == "old"


def test_an_older_record_leaves_the_memory_and_can_be_restored(memory):
    info = remember(memory, "here")
    older = edited(lines(memory)[0], content="once", updated_at="2026-01-01T00:00:00Z")
    before = files(memory.home)
    assert take(memory, older) == Tally(skipped=1)
    assert take(memory, older) == Tally(skipped=1)
    assert files(memory.home) == before
    changes = memory.log(info.id)
    assert len(changes) == 2
    memory.restore(info.id)
    content = memory.read(info.id).content
    assert content == "once"


def test_how_often_a_memory_was_read_makes_no_other_record(memory):
    info = remember(memory, "read")
    backup = lines(memory)[0]
    memory.read(info)

    assert take(memory, backup) == Tally(unchanged=1)
    access_count = memory.memory_id(info.id).access_count
    assert access_count == 1


def test_a_deleted_memory_comes_back_with_its_count(memory):
    info = remember(memory, "read")
    memory.read(info)
    backup = lines(memory)[0]
    memory.delete(info)

    assert take(memory, backup) == Tally(imported=1)
    assert lines(memory) == [backup]


def test_a_partial_record_of_a_known_id_changes_what_it_names(memory):
    info = remember(memory, "one", "people", tags=["x"])
    # Of the same moment
    assert take(memory, [{"id": info.id, "content": "two"}]) == Tally(skipped=1)
    with open_session(memory.home, clock=lambda: MOMENT + timedelta(days=1)) as later:
        assert take(later, [{"id": info.id, "content": "two"}]) == Tally(updated=1)
        assert take(later, [{"id": info.id, "content": "two"}]) == Tally(unchanged=1)
        note = later.read(info.id)
        assert note.content == "two"
        assert note.tags == ("x",)
        assert note.category == "people"
        assert note.version == 2


def test_a_partial_record_with_a_category_organizes_an_inbox_memory(memory):
    info = remember(memory, "one", "inbox")
    take(
        memory,
        [
            {
                "id": info.id,
                "content": "one",
                "category": "soul",
                "updated_at": "2026-06-01T00:00:00Z",
            }
        ],
    )
    now = memory.memory_id(info.id)
    assert (now.category, now.phase, now.expires) == ("soul", "organized", None)


def test_a_content_without_an_id_is_skipped_only_in_its_scope(memory):
    remember(memory, "one")
    text = [
        {"content": "one"},
        {"content": "one", "scope": "agent:claude"},
        {"content": "one"},
        {"content": "one\n"},
    ]
    assert take(memory, text) == Tally(imported=2, skipped=2)


def test_an_id_that_stands_twice_gives_one_memory_the_newer_one(memory):
    records = [
        {"id": ONE, "content": "first", "updated_at": "2026-01-01T00:00:00Z"},
        {"id": ONE, "content": "third", "updated_at": "2026-03-01T00:00:00Z"},
        {"id": ONE, "content": "second", "updated_at": "2026-02-01T00:00:00Z"},
    ]
    text = "".join(json.dumps(record) + "\n" for record in records)
    planned, lines_said = plan(memory, text)

    assert planned == Tally(imported=1, updated=1, skipped=1)
    assert lines_said == ["would import 550e8400 first", "would update 550e8400 third"]
    assert files(memory.home) == {}
    assert take(memory, text) == planned
    assert memory.read(ONE).content == "third"
    assert len(files(memory.home)) == 1


def test_a_memory_merged_into_another_does_not_come_back_while_that_one_says_it(memory):
    long = remember(memory, "one line\nand more")
    short = remember(memory, "one line")
    backup = [json.loads(line) for line in lines(memory) if json.loads(line)["id"] == short.id]
    Upkeep(memory).merge(long, short)
    assert take(memory, backup) == Tally(skipped=1)
    memory.undo()
    for changed_text in ("One line", "  one line", "one line, and what is new"):
        Upkeep(memory).merge(memory.memory_id(long.id), memory.memory_id(short.id))
        assert take(memory, [{**backup[0], "content": changed_text}]) == Tally(imported=1)
        memory.undo()
        memory.undo()


def test_a_locked_memory_is_not_replaced(memory):
    remember(memory, "mine", metadata={"locked": True})
    before = files(memory.home)
    with pytest.raises(BadRecord, match="is locked"):
        take(memory, edited(lines(memory)[0], content="other", updated_at="2026-06-01T00:00:00Z"))

    assert files(memory.home) == before


def test_ids_that_begin_alike_get_files_of_their_own(memory):
    records = [
        {"id": f"note-0001-{n}", "content": "same line", "category": "people"} for n in range(3)
    ]
    records += [
        {"id": f"odd id {n}:", "content": "same line", "category": "people"} for n in range(3)
    ]
    assert take(memory, records).imported == 6
    assert len(files(memory.home)) == 6
    assert take(memory, records) == Tally(unchanged=6)


def test_each_batch_can_be_taken_back(memory):
    take(memory, [{"content": f"n {n}"} for n in range(300)])
    verbs = [change.verb for change in memory.log(limit=0)]
    assert verbs == ["import", "import"]
    memory.undo()
    assert memory.stats().total == 200
    memory.undo()
    assert files(memory.home) == {}
    with pytest.raises(NotFound):
        memory.memory_id(ONE)
