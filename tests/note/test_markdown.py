"""A file's text as a note: each key of contract 000b, 2, its default, and what is warned about; and
new files.
"""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.note.frontmatter import parse, split
from memoranda.note.markdown import Record, compose_note, names, parse_note
from memoranda.note.model import Note, flag

CHANGED = datetime(2026, 5, 7, 10, tzinfo=UTC)


def note(
    header: str | None = None,
    body: str = "body\n",
    *,
    project: str = "notes",
    path: str = "a/Some note.md",
    born: datetime | None = None,
) -> Note:
    if header is None:
        text = body
    else:
        text = f"---\n{header}\n---\n{body}"
    return parse_note(text, project=project, path=path, changed=CHANGED, born=born)


def test_a_file_without_header_has_every_default() -> None:
    parsed = note()
    assert (parsed.title, parsed.type, parsed.permalink, parsed.scope) == (
        "Some note",
        "note",
        "notes/a/some-note",
        "global",
    )
    assert parsed.id == str(uuid.uuid5(uuid.NAMESPACE_URL, "memory://notes/a/Some note.md"))
    assert (parsed.created, parsed.changed, parsed.date, parsed.source) == (
        CHANGED,
        CHANGED,
        None,
        None,
    )
    assert (parsed.tags, parsed.aliases, parsed.locked, parsed.warnings, parsed.header) == (
        (),
        (),
        False,
        [],
        {},
    )
    assert not parsed.own_id
    assert not parsed.own_permalink
    assert parsed.body == "body\n"


def test_every_key_is_read() -> None:
    parsed = note(
        "id: abc-1\ntitle: A title\naliases: [B, c]\ntype: Design Spec\npermalink: Old/Place\ntags: '#x, y,, X'\n"
        "created_at: 2026-01-02T03:04:05+02:00\ndate: 2025-12-24\nscope: agent:claude\nlocked: true\n"
        "source: web\nstatus: no\n"
        "updated_at: 2026-01-03T00:00:00Z\nexpires_at: 2027-01-01\naccess_count: 3\nversion: 2"
    )
    assert (parsed.id, parsed.own_id, parsed.title, parsed.aliases) == (
        "abc-1",
        True,
        "A title",
        ("B", "c"),
    )
    assert (parsed.type, parsed.permalink, parsed.own_permalink) == (
        "Design Spec",
        "Old/Place",
        True,
    )
    assert parsed.tags == ("x", "y")
    assert parsed.created == datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)
    assert (parsed.date, parsed.scope, parsed.locked, parsed.source) == (
        "2025-12-24",
        "agent:claude",
        True,
        "web",
    )
    assert (parsed.updated, parsed.expires) == (
        datetime(2026, 1, 3, tzinfo=UTC),
        datetime(2027, 1, 1, tzinfo=UTC),
    )
    assert (parsed.access_count, parsed.version, parsed.header["status"], parsed.warnings) == (
        3,
        2,
        "no",
        [],
    )


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ("title: [a, 1.10]", "a, 1.10"),
        ("title: true", "true"),
        ("title: 2026-11-01", "2026-11-01"),
        ("title:", "Some note"),
        ("title: ''", "Some note"),
        ("title: {a: b}", "Some note"),
        ("key: k", "Some note"),
    ],
)
def test_a_title_is_text_as_written(header: str, title: str) -> None:
    assert note(header).title == title


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("x.markdown", "x"),
        ("x.MD", "x"),
        ("a/b.txt", "b.txt"),
        ("v1.2", "v1.2"),
        ("a.md.md", "a.md"),
    ],
)
def test_the_title_of_a_file_is_its_name_without_extension(path: str, title: str) -> None:
    assert note(path=path, project="memories").title == title


def test_the_title_in_kv_is_the_key() -> None:
    assert note("title: x\nkey: ' user name '", project="kv").title == " user name "
    assert note(project="kv", path="default/user_name.md").title == "user_name"


def test_a_graph_name_and_type_are_exact() -> None:
    parsed = note('title: ""\ntype: " x "', project="graph")
    assert (parsed.title, parsed.type) == ("", " x ")
    assert note("type: ''", project="graph").type == ""
    assert note("type: ''").type == "note"


def test_tags_may_be_a_list() -> None:
    assert note("tags:\n  - '#a'\n  - b c\n  - 1.10\n  - true\n  - null\n  - A\n  - [x]").tags == (
        "a",
        "b c",
        "1.10",
        "true",
    )


def test_created_stands_for_created_at_and_the_file_for_both() -> None:
    created = note("created: 2020-01-01").created
    assert created == datetime(2020, 1, 1, tzinfo=UTC)
    assert note("created_at: 2021-01-01\ncreated: 2020-01-01").created == datetime(
        2021, 1, 1, tzinfo=UTC
    )
    older = CHANGED - timedelta(days=3)
    created = note(born=older).created
    assert created == older
    created = note(born=CHANGED + timedelta(days=1)).created
    assert created == CHANGED


@pytest.mark.parametrize("value", ["soon", "2026-13-01", "[a]", "12:30", "true"])
@pytest.mark.parametrize("key", ["created_at", "date", "updated_at", "expires_at"])
def test_a_bad_date_is_ignored_with_a_warning(key: str, value: str) -> None:
    parsed = note(f"{key}: {value}\ntitle: kept")
    assert (parsed.title, parsed.created, parsed.date, parsed.updated, parsed.expires) == (
        "kept",
        CHANGED,
        None,
        None,
        None,
    )
    assert [warning[:10] for warning in parsed.warnings] == ['bad date "']
    if value == "soon":
        assert parsed.warnings == ['bad date "soon" ignored']


@pytest.mark.parametrize("value", ["maybe", "2", "[true]", "{a: true}"])
@pytest.mark.parametrize("key", ["pinned", "locked"])
def test_a_flag_that_does_not_count_is_named(key: str, value: str) -> None:
    warnings = note(f"{key}: {value}").warnings
    assert len(warnings) == 1
    assert warnings[0].startswith(f'bad {key} "')


@pytest.mark.parametrize("value", ["true", "yes", "false", "no", "off", "0", "null", ""])
@pytest.mark.parametrize("key", ["pinned", "locked"])
def test_a_flag_that_counts_has_no_warning(key: str, value: str) -> None:
    assert note(f"{key}: {value}").warnings == []


@pytest.mark.parametrize("value", ["{a: b}", "[{a: b}]", "[Tea, [Milk, Cha]]"])
def test_what_cannot_be_superseded_is_named(value: str) -> None:
    warnings = note(f"supersedes: {value}").warnings
    assert [warning[:16] for warning in warnings] == ['bad supersedes "']


@pytest.mark.parametrize("value", ["Tea", "[Tea, Milk]", "[[Tea]]", '["[[Tea]]"]', "null", "[]"])
def test_names_that_can_be_superseded_have_no_warning(value: str) -> None:
    assert note(f"supersedes: {value}").warnings == []


@pytest.mark.parametrize(
    "value",
    [
        "2026-05-07T10:00:00Z",
        "2026-05-07t10:00:00z",
        "2026-05-07 10:00:00",
        "2026-05-07T12:00:00.000000000+02:00",
    ],
)
def test_any_written_time_is_read(value: str) -> None:
    assert note(f"created_at: {value}").created == CHANGED


@pytest.mark.parametrize(
    "value", ["everyone", "'agent:'", "agent:X y", "[a]", "''", "true", "agent:../x"]
)
def test_a_scope_nobody_can_read_hides_the_note(value: str) -> None:
    parsed = note(f"scope: {value}")
    assert parsed.scope not in ("global", "")
    assert parsed.warnings[0].startswith("bad scope")


@pytest.mark.parametrize(
    ("value", "scope"),
    [
        ("Global", "global"),
        ("GLOBAL", "global"),
        ("Agent:Bob", "agent:bob"),
        (" 'AGENT:x' ", "agent:x"),
    ],
)
def test_a_scope_counts_without_case(value: str, scope: str) -> None:
    parsed = note(f"scope: {value}")
    assert (parsed.scope, parsed.warnings) == (scope, [])


def test_an_empty_scope_is_global() -> None:
    assert note("scope:").scope == "global"


@pytest.mark.parametrize("value", ["true", "True", "'true'"])
def test_a_note_can_be_locked(value: str) -> None:
    assert note(f"locked: {value}").locked
    assert not note("locked: no").locked


@pytest.mark.parametrize("header", ["title: a: b", "just text", "- a", "title: [x"])
def test_a_header_that_cannot_be_read_leaves_a_note(header: str) -> None:
    parsed = note(header, "- [fact] x [[Y]]\n")
    assert parsed.title == "Some note"
    assert parsed.header == {}
    assert parsed.body == parsed.text
    assert parsed.warnings[0].startswith("bad_frontmatter")
    (observation,) = parsed.observations
    assert observation.line == 4
    assert len(parsed.relations) == 1


def test_a_broken_header_still_closes_the_note() -> None:
    parsed = note("title: a: b\nscope: 'agent:x'\nlocked: true")
    assert (parsed.scope, parsed.locked) == ("agent:x", True)


def test_a_byte_order_mark_belongs_to_no_part() -> None:
    parsed = parse_note(
        "\ufeff---\r\ntitle: x\r\n---\r\nbody\r\n", project="notes", path="a.md", changed=CHANGED
    )
    assert (parsed.title, parsed.body) == ("x", "body\r\n")
    assert (
        parse_note("\ufeffbody", project="categories", path="inbox/a.md", changed=CHANGED).title
        == "body"
    )


MEMORY = """id: 550e8400-e29b-41d4-a716-446655440000
phase: organized
category: preferences
scope: global
source: claude
created_at: 2026-05-07T10:00:00Z
links:
  - 7f8d9e00-1111-4222-8333-444455556666
  - 7f8d9e00-1111-4222-8333-444455556667
version: 1"""


def memory(
    header: str | None, body: str = "user prefers dark mode\n", path: str = "preferences/x.md"
) -> Note:
    return note(header, body, project="categories", path=path)


def test_a_memory_is_read() -> None:
    parsed = memory(MEMORY, "user prefers [[7f8d9e00-1111-4222-8333-444455556667]]\n")
    assert (parsed.category, parsed.phase, parsed.type, parsed.source) == (
        "preferences",
        "organized",
        "preferences",
        "claude",
    )
    assert parsed.title == parsed.content == "user prefers [[7f8d9e00-1111-4222-8333-444455556667]]"
    assert [
        (relation.type, relation.target[-1], relation.line) for relation in parsed.relations
    ] == [
        ("links_to", "7", 13),
        ("links_to", "6", 8),
    ]


@pytest.mark.parametrize(
    ("header", "path", "category", "phase"),
    [
        (None, "preferences/x.md", "preferences", "organized"),
        (None, "inbox/x.md", "inbox", "inbox"),
        ("type: short", "inbox/x.md", "inbox", "inbox"),
        ("type: long", "people/x.md", "people", "organized"),
        ("category: people\nphase: organized", "people/sub/x.md", "people", "organized"),
        ("category: people\nphase: inbox", "short-term/x.md", "people", "inbox"),
        (None, "short-term/x.md", "inbox", "inbox"),
        ("type: long", "long-term/people/x.md", "people", "organized"),
        (None, "long-term/x.md", "knowledge", "organized"),
        ("category: skills", "x.md", "skills", "organized"),
        ("a: b", "x.md", "inbox", "inbox"),
        ("category: inbox\nphase: organized", "inbox/x.md", "inbox", "organized"),
    ],
)
def test_category_and_phase_come_from_folder_and_header(
    header: str | None, path: str, category: str, phase: str
) -> None:
    parsed = memory(header, path=path)
    assert (parsed.category, parsed.phase, parsed.type, parsed.warnings) == (
        category,
        phase,
        category,
        [],
    )


def test_the_folder_outranks_the_header() -> None:
    parsed = memory("category: inbox\nphase: inbox", path="people/x.md")
    assert (parsed.category, parsed.phase) == ("people", "organized")
    assert parsed.warnings[0].startswith("category_differs")


def test_a_memory_without_header_comes_from_a_file() -> None:
    assert memory(None).source == "file"
    assert memory("scope: global").source is None


def test_bad_keys_of_a_memory_are_named() -> None:
    parsed = memory("category: cats\nphase: soon\naccess_count: many\nversion: 1.5")
    assert (parsed.category, parsed.phase, parsed.access_count, parsed.version) == (
        "preferences",
        "organized",
        0,
        1,
    )
    assert parsed.warnings == [
        'bad access_count "many" ignored',
        'bad version "1.5" ignored',
        'bad category "cats" ignored',
        'bad phase "soon" ignored',
    ]


@pytest.mark.parametrize("value", ["true", "True", "yes", "on", "1", '"true"'])
def test_a_flag_of_a_memory_is_set_by_each_usual_word(value: str) -> None:
    parsed = memory(f"locked: {value}\npinned: {value}")
    assert (parsed.locked, flag(parsed.header["pinned"]), parsed.warnings) == (True, True, [])


@pytest.mark.parametrize("value", ["false", "no", "off", "0", "", "null"])
def test_a_flag_of_a_memory_is_not_set_by_the_opposite(value: str) -> None:
    parsed = memory(f"locked: {value}\npinned: {value}")
    assert (parsed.locked, flag(parsed.header["pinned"]), parsed.warnings) == (False, False, [])


def test_a_memory_is_titled_by_its_first_line() -> None:
    assert memory(None, "\n## User *prefers* tea\nmore\n").title == "## User *prefers* tea"
    assert memory("title: T", "x\n").title == "T"
    assert memory(None, "\n").title == "x"


def test_a_memory_can_be_named_by_title_alias_and_first_line() -> None:
    assert names(memory("title: T\naliases: [A]", "# First line\nx\n")) == (
        "T",
        "A",
        "# First line",
        "First line",
    )
    assert names(note("title: T\naliases: [A, T]", "# First line\n")) == ("T", "A")


def test_a_target_of_a_memory_has_at_most_200_characters() -> None:
    assert [
        len(relation.target)
        for relation in memory(None, f"[[{'a' * 200}]] [[{'b' * 201}]]\n").relations
    ] == [200]


def composed(content: str, **more: Any) -> str:
    return compose_note(
        content, **{"title": "API", "permalink": "notes/specs/api", "created": CHANGED} | more
    )


def header(text: str) -> dict[str, Any]:
    return parse(split(text).yaml or "")


def test_a_note_has_its_keys_in_order_and_a_final_newline() -> None:
    assert composed(
        "# API\n\ntext",
        type="spec",
        tags=["api", "#x", "API", ""],
        metadata={"status": "no", "n": 3, "v": "1.10"},
    ) == (
        "---\ntitle: API\ntype: spec\npermalink: notes/specs/api\ntags:\n  - api\n  - x\n"
        "created_at: 2026-05-07T10:00:00Z\n"
        'status: "no"\n"n": 3\nv: "1.10"\n---\n# API\n\ntext\n'
    )


def test_the_content_may_bring_its_type_permalink_and_date() -> None:
    content = "---\ntype: decision\npermalink: my/place\ncreated_at: 2020-01-01\nid: abc\n---\nbody"
    assert composed(content).startswith(
        "---\nid: abc\ntitle: API\ntype: decision\npermalink: my/place\ncreated_at: 2020-01-01\n---\nbody\n"
    )
    assert list(header(composed("---\ncreated: 2020-01-01\n---\nx"))) == [
        "title",
        "type",
        "permalink",
        "created",
    ]


def test_metadata_may_set_the_permalink_but_not_the_title() -> None:
    parsed = header(composed("x", metadata={"permalink": "p/q", "title": "no", "type": "no"}))
    assert (parsed["permalink"], parsed["title"], parsed["type"]) == ("p/q", "API", "note")


@pytest.mark.parametrize(
    "body", ["", "x", "x\n", "x\n\n", "---\nno header", "\n---\na: b\n---\n", "x\n---\n"]
)
def test_a_body_is_written_as_given(body: str) -> None:
    text = composed(body)
    assert text[split(text).body_at :] == (body if body.endswith("\n") else body + "\n")


def test_a_body_of_crlf_lines_gets_a_header_of_crlf_lines() -> None:
    text = composed("---\r\nx: y\r\n---\r\na\r\nb")
    assert text.endswith("---\r\na\r\nb\r\n")
    assert text.count("\n") == text.count("\r\n")


@pytest.mark.parametrize("header_text", ["a: &x 1\nb: *x", "{a: 1, b: 1}", "a: 1\nb: 1\nb: 1"])
def test_unusual_frontmatter_keeps_its_values(header_text: str) -> None:
    parsed = header(composed(f"---\n{header_text}\n---\nbody"))
    assert (parsed["a"], parsed["b"]) == ("1", "1")


VALUES = st.text() | st.integers() | st.booleans() | st.none() | st.lists(st.text(), max_size=3)


@given(
    st.text(st.characters(codec="utf-8")),
    st.text(min_size=1),
    st.lists(st.text(), max_size=3),
    st.dictionaries(st.text(), VALUES, max_size=3),
)
def test_what_is_written_is_read_again(
    body: str, title: str, tags: list[str], metadata: dict[str, Any]
) -> None:
    if split(body).yaml is not None:
        return
    parsed = parse_note(
        composed(body, title=title, tags=tags, metadata=metadata),
        project="notes",
        path="x.md",
        changed=CHANGED,
    )
    assert parsed.header["title"] == title
    assert parsed.body.removesuffix("\n") == body.removeprefix("\ufeff").removesuffix("\n")
    for key, value in metadata.items():
        if key not in ("title", "type", "tags", "id", "permalink", "created_at"):
            assert parsed.header[key] == (str(value) if type(value) is int else value)


@given(st.text(st.characters(codec="utf-8")))
def test_a_memorys_content_is_kept_exactly(content: str) -> None:
    text = Record("550e8400-e29b-41d4-a716-446655440000", content, "inbox", CHANGED, CHANGED).text()
    parsed = parse_note(text, project="categories", path="inbox/x.md", changed=CHANGED)

    assert parsed.content == content
    assert parsed.header["content_hash"] == hashlib.sha256(content.encode()).hexdigest()
    assert parsed.warnings == []
