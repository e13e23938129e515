"""The YAML header is read as written, written for every reader, and changed by single lines
(contract 000b, 2, 7).
"""

from __future__ import annotations

import io
import math
import re
import time
from datetime import UTC, date, datetime
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from memoranda.note.frontmatter import REMOVE, dump, entries, parse, scalar, set_keys, split


@pytest.mark.parametrize(
    ("text", "header", "body"),
    [
        ("---\na: 1\n---\nbody", "a: 1\n", "body"),
        ("\ufeff---\r\na: 1\r\n---\r\nbody", "a: 1\r\n", "body"),
        ("--- \t\na: 1\n---\t\nbody\n---\n", "a: 1\n", "body\n---\n"),
        ("---\n---\nbody", "", "body"),
        ("---\na: 1\n---", "a: 1\n", ""),
        ("---\na: 1\n----\n---\n", "a: 1\n----\n", ""),
        ("---\na: 1\n", None, "---\na: 1\n"),
        ("----\na: 1\n---\n", None, "----\na: 1\n---\n"),
        ("\n---\na: 1\n---\n", None, "\n---\na: 1\n---\n"),
        ("\ufeffbody", None, "body"),
        ("", None, ""),
        ("---", None, "---"),
    ],
)
def test_a_header_stands_between_two_fences_at_the_start(
    text: str, header: str | None, body: str
) -> None:
    parts = split(text)
    assert (parts.yaml, text[parts.body_at :]) == (header, body)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("v: 1.10", "1.10"),
        ("v: no", "no"),
        ("v: 012", "012"),
        ("v: 2026-11-01", "2026-11-01"),
        ("v: 12:30", "12:30"),
        ("v: True", "True"),
        ("v: 'true'", "true"),
        ('v: "null"', "null"),
        ("v: true", True),
        ("v: false", False),
        ("v: null", None),
        ("v: ~", None),
        ("v:", None),
        ("v: ''", ""),
        ("v: a: b", ValueError),
        ("v: a:b", "a:b"),
        ("v: a #c", "a"),
        ("v: a#c", "a#c"),
        ("v: a, b", "a, b"),
        ("v: [a, 1.10, true, 'x, y']", ["a", "1.10", True, "x, y"]),
        ("v: []", []),
        ("v: {}", {}),
        ("v: {a: no}", {"a": "no"}),
        ("v:\n- a\n- b", ["a", "b"]),
        ("v:\n  - a: b", [{"a": "b"}]),
        ("v:\n    - a\n\n    # c\n    - null", ["a", None]),
        ("v: |\n  a\n  b\n", "a\nb\n"),
        ("v: >\n  a\n  b\n", "a b\n"),
        ("v: a\n  b", "a b"),
        ('v: "a\\nb"', "a\nb"),
        ("v: 'it''s'", "it's"),
        ("v: &x a", "a"),
        ("v: !!int 3", "3"),
        ("v: !foo bar", "bar"),
        ("v: \t a", "a"),
        ("v: \ue000", "\ue000"),
        ("v: 🎉 x", "🎉 x"),
        ("v: a: ", ValueError),
        ("v: x\nv: y", "y"),
        ("v: x\n  - y", "x - y"),
        ("v: null\n  - y", "null - y"),
        ("v: null\n- y", ValueError),
        ("v: [a\n, b]", ["a", "b"]),
        ("v: @x", ValueError),
        ("v: %x", ValueError),
        ("v: [a", ValueError),
        ("v: x\n- y", ValueError),
        ("v: x\x00", ValueError),
        ("v: []\n  - a", ValueError),
    ],
)
def test_scalars_are_read_as_written(text: str, value: Any) -> None:
    if value is ValueError:
        with pytest.raises(ValueError, match=r".+"):
            parse(text)
    else:
        assert parse(text) == {"v": value}
        assert parse(text.replace("\n", "\r\n")) == {"v": value}


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "~", "---\n"])
def test_an_empty_header_holds_no_keys(text: str) -> None:
    assert parse(text) == {}


@pytest.mark.parametrize(
    "text",
    ["just text", "- a\n- b", "[a]", "? [a]\n: b", "a: 1\n---\nb: 2", "a: *b", "a: b\n c: d\n e"],
)
def test_what_is_no_mapping_of_keys_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "- " * 100_000,
        "{a: " * 50_000,
        "? " * 100_000,
        "a: " + "[" * 500 + "]" * 500,
        "".join(" " * n + "a:\n" for n in range(500)),
        "a: &a [*a]",
        "a: &a [x, x]\n"
        + "".join(
            f"{n}: &{n} [*{p}, *{p}, *{p}, *{p}]\n"
            for p, n in zip("abcdefghijk", "bcdefghijkl", strict=True)
        ),
    ],
    ids=["brackets", "items", "braces", "keys", "closed", "blocks", "itself", "laughs"],
)
def test_a_header_that_would_exhaust_the_parser_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a: " + "x:" * 500_000,
        "a" * 900_000 + ": x",
        "'" * 900_000,
        "a: [" + "x, " * 300_000,
        "a: 'x' " + "# " * 450_000,
        "a: x" + " " * 900_000 + "#",
        "a:\n" + "- x\n" * 225_000 + "!",
    ],
)
def test_long_headers_are_read_in_linear_time(text: str) -> None:
    started = time.process_time()
    try:
        parse(text)
        set_keys(f"---\n{text}\n---\n", {"k": "v"})
    except ValueError:
        pass
    assert time.process_time() - started < 10


TEXTS = st.one_of(
    st.text(),
    st.text(st.sampled_from("0123456789.:-+_eExob TZ"), max_size=12),
    st.sampled_from(
        [
            "no",
            "Yes",
            "on",
            "y",
            "N",
            "null",
            "~",
            "True",
            "1.10",
            "012",
            "0o17",
            "0x1F",
            "1_000",
            "-_",
            "12:30",
            ".5",
            "5.",
            "1e3",
            ".inf",
            "-.INF",
            ".NaN",
            "2026-11-01",
            "=",
            "<<",
            "-x",
            "?x",
            ":x",
            "2026-11-01T10:00:00Z",
            "a#b",
            "a:b",
            "a:",
            "#a",
            "...",
            "[[x]]",
            "{x}",
            "1.2.3",
            "50%",
            "@x",
            "`x`",
            "!x",
            "it's",
            '"q"',
        ]
    ),
    st.sampled_from(
        [
            "2026-11-01 10:00:00",
            "- x",
            "a: b",
            "a #b",
            "--- a",
            "",
            " a",
            "a ",
            "a\tb",
            "a\nb",
            "Ä, Ö",
        ]
    ),
    st.sampled_from(["\ufeff", "\x85", "\u2028", "2026-11-01 Meeting"]),
)


def readings(text: str) -> list[Any]:
    """What readers of YAML 1.1 and 1.2 make of it, and ours."""
    newer = YAML(typ="safe", pure=True)
    newer.version = (1, 2)  # type: ignore[assignment]
    return [yaml.safe_load(text)["k"], newer.load(io.StringIO(text))["k"], parse(text)["k"]]


@given(TEXTS)
def test_every_reader_reads_back_the_text_that_was_written(text: str) -> None:
    for value in readings(f"k: {scalar(text)}\n"):
        assert value == text
    assert parse(dump({"k": [text], text: "x"})) == (
        {"k": [text], text: "x"} if text != "k" else {"k": "x"}
    )


@pytest.mark.parametrize(
    "text",
    [
        "a note",
        "v1.2.3",
        "-x",
        "a:b",
        "C#",
        "日本語",
        "agent:claude",
        "it's",
        "3 apples",
        "2026-11-01 Meeting",
    ],
)
def test_text_that_needs_no_quotes_gets_none(text: str) -> None:
    assert scalar(text) == text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("no", '"no"'),
        ("1.10", '"1.10"'),
        ("", '""'),
        ("a\nb", '"a\\nb"'),
        ("2026-11-01", '"2026-11-01"'),
        ("12:30", '"12:30"'),
        ("\ud800", '"\ufffd"'),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (3, "3"),
        (1.5, "1.5"),
        (math.inf, ".inf"),
        (-math.inf, "-.inf"),
        (date(2026, 5, 7), "2026-05-07"),
        (datetime(2026, 5, 7, 10, tzinfo=UTC), "2026-05-07T10:00:00Z"),
    ],
)
def test_a_value_is_written_as_one_scalar(value: Any, written: str) -> None:
    assert scalar(value) == written


def test_lists_and_mappings_are_written_as_blocks() -> None:
    assert dump(
        {
            "tags": ["a", "no"],
            "none": [],
            "map": {"a": {"b": 1}, "c": {}},
            "rows": [{"x": 1, "y": ["z"]}, ["p", "q"]],
        }
    ) == (
        'tags:\n  - a\n  - "no"\nnone: []\nmap:\n  a:\n    b: 1\n  c: {}\n'
        'rows:\n  - x: 1\n    "y":\n      - z\n  - ["p", "q"]\n'
    )


def test_a_written_time_is_plain_under_the_key_of_a_time() -> None:
    assert dump({"updated_at": "2026-05-07T10:00:00Z", "title": "2026-05-07T10:00:00Z"}) == (
        'updated_at: 2026-05-07T10:00:00Z\ntitle: "2026-05-07T10:00:00Z"\n'
    )


VALUES = st.recursive(
    st.none() | st.booleans() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_dumped_is_parsed_again(mapping: dict[str, Any]) -> None:
    assert parse(dump(mapping)) == mapping


NOTE = """---
# about this note
title: 'A note'   # its name
tags: # mine
  - a
  # the second
  - b

date: 2026-11-01
"status": open
text: |
  # no comment
  x

# last words
version: 1.10
---
status: body
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        (
            {"title": "Another: one"},
            "title: 'A note'   # its name",
            'title: "Another: one"   # its name',
        ),
        ({"title": "A note"}, "", ""),
        ({"status": "done"}, '"status": open', "status: done"),
        ({"status": REMOVE}, '"status": open\n', ""),
        ({"tags": ["c"]}, "  - a\n  # the second\n  - b\n", "  - c\n"),
        ({"tags": REMOVE}, "tags: # mine\n  - a\n  # the second\n  - b\n", ""),
        ({"tags": ["a", "b"], "missing": REMOVE}, "", ""),
        ({"date": "2027-01-01"}, "2026-11-01", "2027-01-01"),
        ({"text": "z"}, "text: |\n  # no comment\n  x\n", "text: z\n"),
        ({"version": "no"}, "version: 1.10\n", 'version: "no"\n'),
        ({"new": True, "more": None}, "version: 1.10\n", "version: 1.10\nnew: true\nmore: null\n"),
    ],
)
def test_setting_a_key_changes_its_lines_alone(
    newline: str, bom: str, changes: dict[str, Any], old: str, new: str
) -> None:
    def made(text: str) -> str:
        return bom + text.replace("\n", newline)

    assert set_keys(made(NOTE), changes) == made(NOTE.replace(old, new, 1) if old else NOTE)


@pytest.mark.parametrize("body", ["", "text", "\ufefftext\n", "---\nno header\n", "a\r\nb\r\n"])
def test_a_header_is_made_when_there_is_none(body: str) -> None:
    newline = "\r\n" if "\r" in body else "\n"
    bom, rest = ("\ufeff", body[1:]) if body.startswith("\ufeff") else ("", body)
    header = "---\nlocked: true\n---\n".replace("\n", newline)
    assert set_keys(body, {"locked": True, "x": REMOVE}) == bom + header + rest
    assert set_keys(body, {"x": REMOVE}) == body


@pytest.mark.parametrize(
    ("header", "changed"),
    [
        ("{a: 1, b: no, d: 2026-11-01}", '{a: "2", b: no, d: 2026-11-01}'),
        ("a: 1\na: 3", 'a: "2"'),
        ("# c", '# c\na: "2"'),
        ("", 'a: "2"'),
        ('"a": [x,\n  y]\nb: z', 'a: "2"\nb: z'),
        ("a: &x 1\nb: 3", 'a: "2"\nb: 3'),
        ("b: 'a\n  a: 1'", "b: 'a\n  a: 1'\na: \"2\""),
    ],
)
def test_unusual_headers_can_be_changed(header: str, changed: str) -> None:
    after = set_keys(f"---\n{header}\n---\n" if header else "---\n---\n", {"a": "2"})
    assert after == f"---\n{changed}\n---\n"


def test_a_header_that_cannot_be_read_is_not_changed() -> None:
    with pytest.raises(ValueError, match=r".+"):
        set_keys("---\na: b: c\n---\n", {"x": 1})


def test_the_entries_of_a_header_are_its_keys_with_their_lines() -> None:
    assert entries("# c\na: 1 # d\nb:\n- x\n\n# e\n'c d': |\n  # f\n") == [
        ("a", "a: 1 # d\n"),
        ("b", "b:\n- x\n"),
        ("c d", "'c d': |\n  # f\n"),
    ]


HEADERS = st.dictionaries(st.sampled_from(["a", "b", "c", "tags", "x-y"]), VALUES, max_size=4)


@given(
    HEADERS,
    st.dictionaries(st.sampled_from(["a", "c", "new"]), VALUES | st.just(REMOVE), min_size=1),
    st.booleans(),
    st.booleans(),
)
def test_every_other_line_stays_byte_for_byte(
    header: dict[str, Any], changes: dict[str, Any], crlf: bool, comments: bool
) -> None:
    lines = "".join(
        ("# note\n\n" if comments else "") + dump({key: value}) for key, value in header.items()
    )
    text = f"---\n{lines}---\nbody a: 1\n".replace("\n", "\r\n" if crlf else "\n")
    after = set_keys(text, changes)
    expected = {key: value for key, value in (header | changes).items() if value is not REMOVE}
    assert parse(split(after).yaml or "") == expected
    assert text[split(text).body_at :] == after[split(after).body_at :]
    for key, value in header.items():
        if key not in changes or (
            changes[key] is not REMOVE
            and changes[key] == value
            and type(changes[key]) is type(value)
        ):
            block = dump({key: value}).replace("\n", "\r\n" if crlf else "\n")
            assert block in after
    assert after.count("# note") == text.count("# note")
    assert bool(re.search(r"(?<!\r)\n", after)) == (not crlf)


def test_the_comment_beside_an_empty_header_stays() -> None:
    assert "# mine" in set_keys("---\n{} # mine\n---\nx\n", {"a": 1})
