"""The YAML header is read as written (contract 000b, 2)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from commonplace.note.frontmatter import parse, set_keys, split


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
def test_a_header_stands_between_two_fences_at_the_start(text: str, header: str | None, body: str) -> None:
    found = split(text)
    assert (found.yaml, text[found.body_at :]) == (header, body)


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
    "text", ["just text", "- a\n- b", "[a]", "? [a]\n: b", "a: 1\n---\nb: 2", "a: *b", "a: b\n c: d\n e"]
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
        + "".join(f"{n}: &{n} [*{p}, *{p}, *{p}, *{p}]\n" for p, n in zip("abcdefghijk", "bcdefghijkl", strict=True)),
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
