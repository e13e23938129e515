"""Observations and relations, sentence by sentence (contract 000b, 3.2 and 3.3)."""

from __future__ import annotations

import pytest

from memoranda.note.grammar import scan
from memoranda.note.model import Observation, Relation


def observed(text: str) -> list[tuple[str | None, str, tuple[str, ...], str | None]]:
    return [
        (observation.category, observation.content, observation.tags, observation.context)
        for observation in scan(text)[0]
    ]


def related(text: str) -> list[tuple[str, str, str | None]]:
    return [(relation.type, relation.target, relation.context) for relation in scan(text)[1]]


@pytest.mark.promise("000b-12.3")
@pytest.mark.parametrize(
    ("item", "category", "content", "tags", "context"),
    [
        ("[fact] uses SQLite", "fact", "uses SQLite", (), None),
        ("[fact] uses SQLite #db (work)", "fact", "uses SQLite #db", ("db",), "work"),
        ("[fact] text (a) (b)", "fact", "text (a)", (), "b"),
        ("[fact] text (a (b))", "fact", "text", (), "a (b)"),
        ("[fact] text (a) b", "fact", "text (a) b", (), None),
        ("[fact] text a) (b)", "fact", "text a)", (), "b"),
        ("[fact] text a)", "fact", "text a)", (), None),
        ("[fact] (only)", "fact", "(only)", (), None),
        ("[fact] call it()", "fact", "call it()", (), None),
        ("[ Two words ] x", "Two words", "x", (), None),
        ("[Kept-As_is] x", "Kept-As_is", "x", (), None),
        ("[决定] 用这个 #标签", "决定", "用这个 #标签", ("标签",), None),
        ("[a] one letter", "a", "one letter", (), None),
        ("[1] one digit", "1", "one digit", (), None),
        ("[xx] two letters", "xx", "two letters", (), None),
        ("[fact]    blanks", "fact", "blanks", (), None),
        (f"[{'c' * 64}] x", "c" * 64, "x", (), None),
        ("[fact] @2026-06-10 a time mark stays", "fact", "@2026-06-10 a time mark stays", (), None),
        ("[fact] [[Bob]] likes tea", "fact", "[[Bob]] likes tea", (), None),
        ("[fact] #a#b c#d #a", "fact", "#a#b c#d #a", ("a", "b"), None),
        ("[fact] #12 #12b #x/y-z_1", "fact", "#12 #12b #x/y-z_1", ("12b", "x/y-z_1"), None),
        ("[fact] #Tag #tag", "fact", "#Tag #tag", ("Tag",), None),
        ("[fact] #12#x is no tag either", "fact", "#12#x is no tag either", (), None),
        ("[fact] `#define X` (`(`)", "fact", "`#define X`", (), "`(`"),
        ("[fact] #हिन्दी", "fact", "#हिन्दी", ("हिन्दी",), None),
        ("[10:30 standup] no clock value alone", "10:30 standup", "no clock value alone", (), None),
        ("buy milk #errand", None, "buy milk #errand", ("errand",), None),
        ("#errand buy milk (soon)", None, "#errand buy milk", ("errand",), "soon"),
        ("[text](url) #read", None, "[text](url) #read", ("read",), None),
    ],
)
def test_an_item_is_an_observation(
    item: str, category: str | None, content: str, tags: tuple[str, ...], context: str | None
) -> None:
    assert observed(f"- {item}") == [(category, content, tags, context)]


@pytest.mark.promise("000b-12.3")
@pytest.mark.parametrize(
    "line",
    [
        "- [ ] open",
        "- [x] done",
        "- [X] done",
        "- [-] dropped",
        "- [>] moved",
        "- [✓] done",
        "- [✔️] done",
        "- [ ] open #tag",
        "- [x] done #tag",
        "- [text](https://example.org)",
        "- [text][ref]",
        "- [ref]: https://example.org",
        "- [^1] note",
        "- [^1]: note",
        "- [[Link]]",
        "- [[Link]] #tag",
        "- see [[Link]] #tag",
        "- [00:11] he speaks",
        "- [1:02:03] he speaks",
        "- [24:33.098 - 24:41.260] he speaks",
        "- [00:01 --> 00:02] x",
        "- [fact]",
        "- [fact] ",
        "- [fact]glued",
        "- [] empty",
        "- [  ] blank",
        "- [a(b)] x",
        "- [a [b]] x",
        f"- [{'c' * 65}] x",
        "- \\[fact] x",
        "- [fact\\] x",
        "- plain text",
        "- 50% of #12",
        "- a#b",
        "- (see #12)",
        "[fact] a paragraph",
        "# [fact] a heading",
        "| [fact] a cell |",
        "> - [fact] quoted",
        "-[fact] no blank",
        "text\n2. [fact] no item",
        "- `[fact] x`",
    ],
)
def test_a_line_is_no_observation(line: str) -> None:
    assert observed(line) == []


@pytest.mark.parametrize(
    "marker", ["-", "*", "+", "1.", "1)", "12.", "- -", "1. *", "  -", "   1)"]
)
def test_every_list_marker_makes_an_item(marker: str) -> None:
    assert observed(f"{marker} [fact] x") == [("fact", "x", (), None)]


def test_items_count_at_any_nesting() -> None:
    text = (
        "- a\n    - [one] x\n\t\t- [two] y\n              * [three] z\n1. [four] w\n   - [five] v\n"
    )
    assert [observation.category for observation in scan(text)[0]] == [
        "one",
        "two",
        "three",
        "four",
        "five",
    ]
    assert [observation.line for observation in scan(text)[0]] == [2, 3, 4, 5, 6]


def test_an_items_text_is_its_paragraph() -> None:
    assert observed("- [fact] first\n  second #tag (ctx)\n") == [
        ("fact", "first second #tag", ("tag",), "ctx")
    ]


def test_an_observation_keeps_the_whole_items_text() -> None:
    assert scan("- [fact] uses SQLite #db (work)")[0][0].text == "[fact] uses SQLite #db (work)"


@pytest.mark.promise("000b-12.3")
@pytest.mark.parametrize(
    ("item", "relation"),
    [
        ("implements [[Spec]]", ("implements", "Spec", None)),
        ("part_of [[Engine]] (since May)", ("part_of", "Engine", "since May")),
        ("a-b./:+c [[X]]", ("a-b./:+c", "X", None)),
        ("依赖 [[测试]]", ("依赖", "测试", None)),
        ('"was inspired by" [[X]]', ("was inspired by", "X", None)),
        ('"one" [[X]] (a (b) c)', ("one", "X", "a (b) c")),
        ("type [[X|shown]]", ("type", "X", None)),
        ("type [[X#Heading]]", ("type", "X", None)),
        ("type [[ X #^block]]", ("type", "X", None)),
        ("type\t[[X]]  ", ("type", "X", None)),
        ("[[X]]", ("links_to", "X", None)),
        ("type [[X]] #tag", ("links_to", "X", None)),
        ("type [[X]] and more", ("links_to", "X", None)),
        ("type [[X]] (a) (b)", ("links_to", "X", None)),
        ("two words [[X]]", ("links_to", "X", None)),
        ("1st [[X]]", ("links_to", "X", None)),
        ('" " [[X]]', ("links_to", "X", None)),
        ("[ ] type [[X]]", ("links_to", "X", None)),
        ("[fact] likes [[X]]", ("links_to", "X", None)),
        ("type ![[X]]", ("embeds", "X", None)),
        ("type \\\\[[X]]", ("links_to", "X", None)),
    ],
)
def test_an_item_gives_a_relation(item: str, relation: tuple[str, str, str | None]) -> None:
    assert related(f"- {item}") == [relation]


@pytest.mark.parametrize(
    "text",
    [
        "a [[X]] b",
        "# [[X]]",
        "| [[X]] |",
        "> [[X]]",
        "> - t [[X]]",
        "**[[X]]**",
        "type [[X]]",
        "[[X\\|shown]]",
        "[[[X]]]",
        "- a\n\n  [[X]]",
        "(`[[` [[X]])",
    ],
)
def test_a_link_anywhere_else_is_links_to(text: str) -> None:
    (relation,) = scan(text)[1]
    assert (relation.type, relation.is_item) == ("links_to", False)
    assert relation.target in ("X", "X.md", "X v1.2")


@pytest.mark.promise("000b-12.3")
@pytest.mark.parametrize(
    "text",
    [
        "[[]]",
        "[[ ]]",
        "[[#Heading]]",
        "[[|shown]]",
        "- type [[]]",
        "- type [[ ]]",
        "[[a",
        "[[a\nb]]",
        "[a]]",
        "\\[[x]]",
        "[\\[x]]",
        "[[x\\]]",
        "![[picture.png]]",
        "![[clip.MP4]]",
        "`[[x]]`",
        "``[[x]] ` ``",
        "`a\n[[x]]`",
    ],
)
def test_a_text_is_no_link(text: str) -> None:
    assert related(text) == []


def test_several_links_on_a_line_count() -> None:
    assert related("- type [[A]] [[B]]") == [("links_to", "A", None), ("links_to", "B", None)]
    assert related("- type [[A]] (see [[B]])") == [
        ("type", "A", "see [[B]]"),
        ("links_to", "B", None),
    ]


def test_a_target_may_name_its_project() -> None:
    (relation,) = scan("- uses [[notes::Search spec#Goals|here]]")[1]
    assert (relation.type, relation.project, relation.target) == ("uses", "notes", "Search spec")


def test_a_relation_is_there_once() -> None:
    text = "[[A]] [[A|b]] [[a]]\n- uses [[A]]\n- uses [[A]] (again)\n- uses [[p::A]]\n"
    assert [
        (relation.type, relation.project, relation.target, relation.line)
        for relation in scan(text)[1]
    ] == [
        ("links_to", None, "A", 1),
        ("links_to", None, "a", 1),
        ("uses", None, "A", 2),
        ("uses", "p", "A", 4),
    ]


def test_a_relation_item_outranks_a_link_in_the_text() -> None:
    (relation,) = scan("see [[A]]\n\n- links_to [[A]] (ctx)\n")[1]
    assert relation == Relation("links_to", "A", "ctx", None, 3, True)


@pytest.mark.parametrize(
    ("item", "type", "target"),
    [
        ('knows `"A|b"`', "knows", "A|b"),
        ('`"two\\nlines"` [[B]]', "two\nlines", "B"),
        ('`""` `""`', "", ""),
        ('"works at" `"[x]"` (since May)', "works at", "[x]"),
        ('is_a `"\\ud800"`', "is_a", "\ufffd"),
    ],
)
def test_names_and_types_may_be_coded(item: str, type: str, target: str) -> None:
    (relation,) = scan(f"- {item}")[1]
    assert (relation.type, relation.target, relation.is_item) == (type, target, True)


@pytest.mark.parametrize(
    "item", ['knows `"A`', "knows `A|b`", 'knows `"\\x"`', "knows `1`", '`"a"` `"b"` more']
)
def test_what_is_no_json_string_is_not_coded(item: str) -> None:
    assert scan(f"- {item}")[1] == []


def test_a_coded_item_is_read_by_its_text() -> None:
    assert scan('- `"[fact] two\\nlines #x"`')[0] == [
        Observation("fact", "two\nlines #x", ("x",), None, 1, "[fact] two\nlines #x")
    ]
    assert scan('- `"[x] done"`')[0] == []


@pytest.mark.parametrize(
    ("text", "content", "tags", "context"),
    [
        ("- [fact] uses\n  SQLite", "uses SQLite", (), None),
        ("- [fact] uses\n  SQLite #db\n  (work)", "uses SQLite #db", ("db",), "work"),
        ("- [fact] a\n\tb", "a b", (), None),
        ("- [fact] a\n b", "a b", (), None),
        ("- [fact] a\n      b", "a b", (), None),
        ("- [fact] a  \n  b", "a b", (), None),
        ("- [fact] a\r\n  b\r\n  c", "a b c", (), None),
        ("- [fact] a (b\n  c)", "a", (), "b c"),
        ("- [fact] `a\n  b` c", "`a b` c", (), None),
        ("- [fact] a `x`\n  #t `#no`", "a `x` #t `#no`", ("t",), None),
        ("- [fact] a\n  [[Link]] b", "a [[Link]] b", (), None),
        ("* [fact] a\n  b", "a b", (), None),
        ("1. [fact] a\n   b", "a b", (), None),
        ("- x\n  - [fact] a\n    b", "a b", (), None),
        ("- [fact] 预算\n  会议", "预算会议", (), None),
        ("- [fact] 使用\n  SQLite", "使用 SQLite", (), None),
        ("- [fact] 회의\n  예산", "회의 예산", (), None),
        ("- [fact] a\n  1984 was b", "a 1984 was b", (), None),
        ("- [fact] a\n  2. b", "a 2. b", (), None),
        ("- [fact] a\n  id:: 64ab\n  b", "a b", (), None),
        ("- [fact] a\n  *b* c", "a *b* c", (), None),
        ("- [fact] a\n  #b c", "a #b c", ("b",), None),
        # What ends an item's text
        ("- [fact] a\n\n  b", "a", (), None),
        ("- [fact] a\nb", "a", (), None),
        ("- [fact] a\n  - b", "a", (), None),
        ("- [fact] a\n  1. b", "a", (), None),
        ("- [fact] a\n  > b", "a", (), None),
        ("- [fact] a\n  ```\n  b\n  ```", "a", (), None),
        ("- [fact] a\n  # b", "a", (), None),
        ("- [fact] a\n  ---\n  b", "a", (), None),
        ("- [fact] a\n  <!-- b -->", "a", (), None),
        ("- [fact] a\n  %% b %%", "a", (), None),
        ("- [fact] a\n   \n  b", "a", (), None),
    ],
)
def test_an_observation_goes_on_on_indented_lines(
    text: str, content: str, tags: tuple[str, ...], context: str | None
) -> None:
    assert observed(text) == [("fact", content, tags, context)]


def test_a_tag_on_an_indented_line_makes_an_item_an_observation() -> None:
    assert observed("- buy milk\n  and tea #errand") == [
        (None, "buy milk and tea #errand", ("errand",), None)
    ]


def test_lines_of_items_stay_those_where_they_begin() -> None:
    observations = scan("- [a] b\n  c\n- [d] e\n  f\n")[0]
    assert [(observation.line, observation.text) for observation in observations] == [
        (1, "[a] b c"),
        (3, "[d] e f"),
    ]


def test_links_on_indented_lines_are_found_once() -> None:
    assert related("- [a] b\n  [[C]] d\n  [[C]]") == [("links_to", "C", None)]
