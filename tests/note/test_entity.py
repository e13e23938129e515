"""Entities as notes: exact text in one line, file names, changes by lines (contract 002, 5)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memoranda.note import frontmatter
from memoranda.note.entity import (
    EntityText,
    compose,
    file_stem,
    folded_name,
    observation_item,
    relation_item,
)
from memoranda.note.markdown import parse_note

pytestmark = pytest.mark.promise("002-14.16", "002-14.17", "002-14.18")

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
ANY = st.text(st.characters(exclude_categories=["Cs"]))
MARKUP = st.text(st.sampled_from(list('`"[]()#|^:\\-*+>=~_%! \t\n\rab1.é\u2028\ufeff<\0')))
TEXT = st.one_of(ANY, MARKUP)


def note_of(text):
    return parse_note(text, project="graph", path="x.md", changed=MOMENT)


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("likes tea", "likes tea"),
        ("[fact] uses SQLite #db (work)", "[fact] uses SQLite #db (work)"),
        ("C:\\new", "C:\\new"),
        ("see [[Bob]]", "see [[Bob]]"),
        ('"quoted"', '"quoted"'),
        ("two\nlines", '`"two\\nlines"`'),
        ("", '`""`'),
        ("trailing ", '`"trailing "`'),
        ("---", '`"---"`'),
        ("[x] done", '`"[x] done"`'),
        ("1. one", '`"1. one"`'),
        ('`"a"`', '`"\\u0060\\"a\\"\\u0060"`'),
        ("a <!-- b", '`"a <!-- b"`'),
        ("50%% off", '`"50%% off"`'),
        ("no\u2028break", '`"no\\u2028break"`'),
    ],
)
def test_an_observation_is_written_plain_or_coded(text, item):
    assert observation_item(text) == item


@pytest.mark.parametrize(
    ("type", "target", "item"),
    [
        ("works_at", "Acme", "works_at [[Acme]]"),
        ("works at", "Acme Corp", '"works at" [[Acme Corp]]'),
        ("knows", "A|b", 'knows `"A|b"`'),
        ("", "", '`""` `""`'),
        ("a/b:c", "x", "a/b:c [[x]]"),
        ("1st", "x", '"1st" [[x]]'),
        ("is", "ends\\", 'is `"ends\\\\"`'),
        ("is", "notes::x", 'is `"notes::x"`'),
    ],
)
def test_a_relation_is_written_type_then_target(type, target, item):
    assert relation_item(type, target) == item


@given(
    st.lists(TEXT, max_size=4), st.lists(st.tuples(TEXT, TEXT), max_size=4, unique=True), TEXT, TEXT
)
@example(["1.", "a\r", "\\"], [("_", "a b"), ("x", "./y"), ('"', "`")], "null", "~")
def test_every_string_comes_back_from_every_place(observations, relations, name, kind):
    text = compose("7f8d9e00", name, kind, 5, observations, relations)
    note = note_of(text)
    assert note.title == name
    assert note.type == kind
    texts = [observation.text for observation in note.observations]
    assert texts == observations
    assert [
        (relation.type, relation.target) for relation in note.relations if relation.is_item
    ] == relations
    items = [observation_item(observation) for observation in observations] + [
        relation_item(*relation) for relation in relations
    ]
    assert not any("\n" in item or "\r" in item for item in items)


@given(TEXT, TEXT)
def test_title_and_type_are_the_same_strings_to_yaml_readers(name, kind):
    import yaml
    from ruamel.yaml import YAML

    header = frontmatter.split(compose("i", name, kind, 5)).yaml
    assert header is not None
    old = yaml.safe_load(header)
    new = YAML(typ="safe").load(header)
    assert old["title"] == new["title"]
    assert old["type"] == new["type"]
    assert name == new["title"]
    assert kind == new["type"]


def test_the_note_of_the_contract_byte_for_byte():
    text = compose(
        "7f8d9e00-1111-4222-8333-444455556666",
        "useState",
        "hook",
        1778148000000213,
        ["Returns [state, setState] tuple", "two\nlines"],
        [("is_a", "React Hooks"), ("leads to", "Not yet")],
    )
    assert text == (
        "---\nid: 7f8d9e00-1111-4222-8333-444455556666\ntitle: useState\ntype: hook\n"
        "created_at: 2026-05-07T10:00:00.000213Z\n---\n\n## Observations\n\n- Returns [state, setState] tuple\n"
        '- `"two\\nlines"`\n\n## Relations\n\n- is_a [[React Hooks]]\n- "leads to" [[Not yet]]\n'
    )


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("Acme Corp", "Acme Corp"),
        ("记忆", "记忆"),
        ("a/b", "a-b-c14cddc0"),
        ("..", "entity-5ec1f7e7"),
        ("", "entity-e3b0c442"),
        (".x", "x-bb42e4c6"),
        ("x" * 300, "x" * 80 + "-0d4e2ca9"),
        ("a\0b", "a-b-59b271ae"),
        (" a", "a-7de598b3"),
        ("NUL", "NUL-ae6de182"),
    ],
)
def test_a_name_is_its_file_name_where_every_system_takes_it(name, stem):
    assert file_stem(name, lambda _: False) == stem


def test_names_that_are_one_on_some_system_get_files_of_their_own():
    names: set[str] = set()
    for name in ("Ada", "ada", "ADA", "é", "e\u0301"):
        stem = file_stem(name, lambda stem_tried: folded_name(stem_tried) in names)
        assert folded_name(stem) not in names
        names.add(folded_name(stem))


FOREIGN = """---\r
# a comment\r
title: Ada   # hers\r
mood: [a, b]\r
---\r
Text before.\r
\r
### OBSERVATIONS\r
\r
* likes tea\r
  and more of it\r
\r
  a paragraph of the item\r
* `- fenced`\r
\r
```\r
## Relations\r
- not [[this]]\r
```\r
\r
## Own section\r
- [ ] a task\r
"""


def test_adding_an_observation_to_a_foreign_note_adds_one_line():
    text = EntityText(FOREIGN)
    assert text.observations == ["likes tea and more of it", "`- fenced`"]
    text.add_observations(["new"])
    assert text.text == FOREIGN.replace("* `- fenced`\r\n", "* `- fenced`\r\n- new\r\n")
    text.drop_observations({"new"})
    assert text.text == FOREIGN


def test_a_deleted_item_takes_its_continuation_lines_with_it():
    text = EntityText(FOREIGN)
    text.drop_observations({"likes tea and more of it"})
    assert text.text == FOREIGN.replace(
        "* likes tea\r\n  and more of it\r\n\r\n  a paragraph of the item\r\n", ""
    )


def test_a_missing_section_is_added_where_it_belongs():
    text = EntityText("---\ntitle: A\n---\nProse.\n\n## Relations\n\n- a [[b]]\n\n## Mine\n")
    text.add_observations(["x"])
    assert text.text == (
        "---\ntitle: A\n---\nProse.\n\n## Observations\n\n- x\n\n## Relations\n\n- a [[b]]\n\n## Mine\n"
    )
    bare = EntityText("no header, no final newline")
    bare.add_relations([("a", "b")])
    assert bare.text == "no header, no final newline\n\n## Relations\n\n- a [[b]]\n"


def test_an_empty_section_takes_its_first_item_below_the_heading():
    text = EntityText(compose("i", "A", "t", 5, [], [("a", "b")]))
    text.add_observations(["x"])
    assert text.text == compose("i", "A", "t", 5, ["x"], [("a", "b")])


def test_a_change_that_an_open_comment_would_swallow_is_refused():
    text = EntityText("## Observations\n\n- a\n\n<!-- open\n")
    with pytest.raises(ValueError, match="open comment"):
        text.add_relations([("a", "b")])


def test_hand_written_links_mean_their_target_and_other_items_are_left_alone():
    text = EntityText(
        "## Relations\n\n- knows [[Bob|Robert]] (since 2020)\n- read [[Bob#Early life]]\n- just text\n"
    )
    assert [(relation.type, relation.target) for relation in text.relations] == [
        ("knows", "Bob"),
        ("read", "Bob"),
    ]
    text.drop_relations(lambda link: link.type == "knows")
    assert text.text == "## Relations\n\n- read [[Bob#Early life]]\n- just text\n"


def test_a_placeholder_becomes_an_entity_in_place():
    text = EntityText(compose("i", "A", None, 5, (), [("a", "b")]))
    text.make_entity("kind", 7)
    text.add_observations(["x"])
    assert text.text == compose("i", "A", "kind", 7, ["x"], [("a", "b")])


@pytest.mark.parametrize(
    ("lines", "texts"),
    [
        ("- green tea\n  of Japan", ["green tea of Japan"]),
        ("- green tea\n  of\n\tJapan #origin", ["green tea of Japan #origin"]),
        ("- one\n- two\n  goes on\n- three", ["one", "two goes on", "three"]),
        ("- 绿茶\n  产于日本", ["绿茶产于日本"]),
        ("- tea\n  - cup", ["tea", "cup"]),
        ("- tea\n  1. cup", ["tea", "cup"]),
        ("- tea\n\n  a paragraph of its own", ["tea"]),
        ("- tea\n  > a quotation", ["tea"]),
        ("- tea\n  ```\n  code\n  ```\n- cup", ["tea", "cup"]),
        ("- tea\n  ## no heading", ["tea"]),
        ("- tea\nwithout indentation", ["tea"]),
        ("- tea  \n  with blanks  ", ["tea with blanks"]),
        ("- in 1998.\n  2 cups", ["in 1998. 2 cups"]),
        ("- tea\r\n  of Japan\r", ["tea of Japan"]),
        ('- `"exact"`\n  and more', ["exact"]),
    ],
)
def test_an_observation_goes_on_on_indented_lines(lines: str, texts: list[str]) -> None:
    text = f"# Tea\n\n## Observations\n{lines}\n\n## Relations\n- likes [[Cup]]\n"
    entity = EntityText(text)
    assert entity.observations == texts
    assert entity.text == text


def test_a_wrapped_observation_goes_as_a_whole() -> None:
    entity = EntityText("## Observations\n- green tea\n  of Japan\n- black\n  tea\n")
    entity.drop_observations({"green tea of Japan"})
    assert entity.text == "## Observations\n- black\n  tea\n"
    entity.add_observations(["red"])
    assert entity.observations == ["black tea", "red"]


@pytest.mark.parametrize(
    "lines",
    [
        "- likes\n  [[Cup]]",
        "- likes [[Cup]]\n  (since\n  2020)",
        "- likes [[The\n  Cup]]",
        "-  likes\n\t[[Cup]]",
    ],
)
def test_a_relation_goes_on_on_indented_lines(lines: str) -> None:
    entity = EntityText(f"## Relations\n{lines}\n- holds [[Water]]\n")
    (likes, holds) = entity.relations
    assert likes.type == "likes"
    assert likes.target in ("Cup", "The Cup")
    assert holds.type == "holds"
    entity.drop_relations(lambda relation: relation.type == "likes")
    assert entity.text == "## Relations\n- holds [[Water]]\n"
