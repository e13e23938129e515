"""What of a body is read, graph notes, and hostile input (contract 000b, 3.1; contract 002, 5)."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.note.grammar import scan
from memoranda.note.markdown import parse_note


def targets(text: str) -> list[str]:
    return [link.target for link in scan(text)[1]]


def categories(text: str) -> list[str | None]:
    return [observation.category for observation in scan(text)[0]]


@pytest.mark.promise("000b-12.3")
@pytest.mark.parametrize(
    "text",
    [
        "```\n[[x]]\n```",
        "~~~ py\n[[x]]\n~~~",
        "   ```\n[[x]]\n   ```",
        "````\n```\n[[x]]\n````",
        "```\n[[x]]",
        "```\n~~~\n[[x]]\n```",
        "```\n[[x]]\n``\n[[x]]",
        "- a\n  ```\n  [[x]]\n  ```",
        "- a\n        ```\n        [[x]]\n",
        "- ```\n  [[x]]\n  ```",
        "> ```\n> [[x]]\n> ```",
        "```\n[[x]]\n    ```\n[[x]]",
        "    [[x]]",
        "\t[[x]]",
        "a\n\n    [[x]]",
        "# a\n    [[x]]",
        "- a\n\nb\n\n    [[x]]",
        "    - [x x] [[x]]",
        "<!-- [[x]] -->",
        "a <!-- [[x]] --> b",
        "<!--\n\n[[x]]\n-->",
        "a <!-- b\n\n[[x]]\n-->",
        "<!-- never closed\n[[x]]",
        "%% [[x]] %%",
        "a %%\n\n[[x]]\n\n%% b",
        "%%[[x]]%%%%[[x]]%%",
    ],
)
def test_code_and_comments_are_skipped(text: str) -> None:
    assert targets(text) == []


@pytest.mark.promise("000b-12.3")
@pytest.mark.parametrize(
    "text",
    [
        "a\n    [[x]]",
        "- a\n    [[x]]",
        "- a\n\n    [[x]]",
        "``` a`b\n[[x]]",
        "    ```\n[[x]]",
        "```\n```\n[[x]]",
        "- a\n  ```\n[[x]]",
        "> ```\n[[x]]",
        "<!-- a --> [[x]]",
        "a <!-- never closed [[x]]",
        "100%% [[x]]",
        "%% [[x]]",
        "`<!--` [[x]] `-->`",
        "\\<!-- [[x]] -->",
        "```\n<!--\n```\n[[x]]",
        "<!--\n```\n-->\n[[x]]",
        "`a [[x]]",
        "a `b\n\n[[x]] c`",
        "\\`[[x]]`",
        "%% a %% [[x]] %% b %%",
        "- <!-- a --> [[x]]",
        "| `a` | [[x]] |",
    ],
)
def test_what_is_neither_code_nor_comment_is_read(text: str) -> None:
    assert targets(text) == ["x"]


def test_items_in_comments_code_and_quotes_are_no_items() -> None:
    text = "<!--\n- [a1] x\n-->\n%%\n- [b1] x\n%%\n```\n- [c1] x\n```\n> - [d1] x\n\n    - [e1] x\n\n- [ok] x\n"
    assert categories(text) == ["ok"]


def test_a_comment_is_taken_out_of_an_item() -> None:
    (observation,) = scan("- [fact] tea <!-- or coffee --> #drink %% x %%\n")[0]
    assert (observation.content, observation.tags) == ("tea  #drink", ("drink",))


def test_what_follows_a_comment_on_its_line_is_no_item() -> None:
    assert categories("<!-- a --> - [fact] x\n- [ok] y\n") == ["ok"]
    assert categories("<!--\n--> - [fact] x\n- [ok] y\n") == ["ok"]


def test_lines_count_from_one_in_the_whole_file() -> None:
    text = "---\r\ntitle: x\r\n---\r\n\r\n# H\r\n- [fact] x\r\n`a\r\nb` [[Y]]\r\n"
    observations, relations, headings = scan(text, text.index("\r\n\r\n") + 2)
    assert [observations[0].line, relations[0].line, headings[0].line] == [6, 8, 5]
    assert (observations[0].content, headings[0].text) == ("x", "H")


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# One", (1, "One")),
        ("###### Six ##", (6, "Six")),
        ("  ## Two  ", (2, "Two")),
        ("#", (1, "")),
        ("# C#", (1, "C#")),
        ("####### x", None),
        ("#tag", None),
        ("    # code", None),
        ("> # quoted", None),
        ("- # item", None),
    ],
)
def test_headings_are_those_with_signs_outside_lists_and_quotes(
    line: str, heading: tuple[int, str] | None
) -> None:
    assert [(found_heading.level, found_heading.text) for found_heading in scan(line)[2]] == (
        [heading] if heading else []
    )


def test_an_item_without_text_does_not_hide_what_follows() -> None:
    assert categories("-\n\n- [ok] x\n-\n# h\n\n- [too] y\n") == ["ok", "too"]


GRAPH = """---
title: useState
---

Text with [[Link]].

## observations

- Returns [state, setState] tuple
- `"two\\nlines"`
- [fact] uses SQLite #db (work), see [[Bob]]
- [x] done

### Deeper

1. `""`

## Relations

- is_a [[React Hooks]]
- "leads to" [[Not yet]] (maybe)
- knows `"A|b"`
- links_to [[Bob]]
- a sentence with [[Cy]]

## Observations

- not read
- is_b [[Dee]]
"""


def graph_scan() -> tuple[list[str], list[tuple[str, str, bool]]]:
    observations, relations, _ = scan(GRAPH, GRAPH.index("\n\nText"), graph=True)
    return [observation.text for observation in observations], [
        (relation.type, relation.target, relation.is_item) for relation in relations
    ]


def test_observations_of_a_graph_note_are_the_items_of_the_first_section() -> None:
    assert graph_scan()[0] == [
        "Returns [state, setState] tuple",
        "two\nlines",
        "[fact] uses SQLite #db (work), see [[Bob]]",
        "[x] done",
        "",
    ]


def test_relations_of_a_graph_note_are_the_items_of_the_first_section_and_other_links_stay() -> (
    None
):
    assert graph_scan()[1] == [
        ("links_to", "Link", False),
        ("is_a", "React Hooks", True),
        ("leads to", "Not yet", True),
        ("knows", "A|b", True),
        ("links_to", "Bob", True),
        ("links_to", "Cy", False),
        ("links_to", "Dee", False),
    ]


def test_an_observation_of_a_graph_note_has_category_and_context_where_written() -> None:
    (observation,) = scan("# Observations\n- [fact] tea #a (work)\n", graph=True)[0]
    assert (observation.category, observation.content, observation.tags, observation.context) == (
        "fact",
        "tea #a",
        ("a",),
        "work",
    )


HOSTILE = {
    "open brackets": "[" * 500_000,
    "items of brackets": "- [" * 166_500,
    "lines of items": "- [\n" * 125_000,
    "markers": "- " * 250_000 + "x",
    "numbers": "1. " * 166_500 + "[[x]]",
    "rules": "* " * 250_000 + "x",
    "quotes": ">" * 500_000,
    "quotes in items": "- > " * 125_000,
    "quoted lines": "> [[a\n" * 80_000,
    "backticks": " ".join("`" * n for n in range(1, 1000)),
    "single backticks": "` a\n" * 125_000,
    "comments": "<!--" * 125_000,
    "percents": "%%" * 250_001,
    "comment lines": "a <!-- b\n" * 50_000,
    "parentheses": "- [a] " + "(" * 250_000 + ")" * 200_000,
    "groups": "- x [[y]] " + "(a" * 200_000,
    "closing": "- [a] x" + ")" * 450_000,
    "tags": "- " + "#a" * 200_000 + "#1" * 50_000,
    "number signs": "- [a] " + "#" * 450_000,
    "backslashes": "\\" * 499_999 + "[[x]]",
    "escaped links": "\\\\[[x]]" * 60_000,
    "fences": "```\n~~~\n" * 60_000,
    "deep list": "".join(" " * (2 * n) + "- x\n" for n in range(600)),
    "headings": "# " + "#" * 450_000 + " x",
    "closing signs": "# a" + " #" * 225_000 + " x",
    "blanks": "- [a] x" + " " * 450_000 + "y",
    "tabs": "\t" * 450_000 + "- x #",
    "clock": "- [" + "1:" * 30 + "] " + "x " * 200_000 + "#a",
    "types": "- " + "a" * 450_000 + " [[",
    "quoted type": '- "' + "a " * 225_000 + "[[x]]",
    "coded": '- `"' + "\\" * 450_000 + '"` [[x]]',
    "sections": "# Observations\n- a\n## Relations\n- b [[c]]\n" * 25_000,
    "lines": "- [fact] text #tag (context) [[Link]]\n" * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_notes_are_read_in_linear_time(name: str) -> None:
    started = time.process_time()
    scan(HOSTILE[name] + "\n[[end]] #", graph=name == "sections")
    # Half a second; a copy of the rest from each place of 500 KB takes 3
    assert time.process_time() - started < 2


@given(
    st.text(st.sampled_from('-*+1.)[]()#`~<!->%\\"|:x \t\n\r>&\ufeff\x00中'), max_size=80),
    st.booleans(),
)
def test_any_text_is_read_without_an_error(text: str, graph: bool) -> None:
    scan(text, graph=graph)


@given(st.text(max_size=200), st.sampled_from(["notes", "categories", "graph", "kv", "memories"]))
def test_any_file_is_a_note(text: str, project: str) -> None:
    note = parse_note(
        text, project=project, path="inbox/a.md", changed=datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert note.text == text
