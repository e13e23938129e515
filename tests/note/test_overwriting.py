"""What the header of a note that is overwritten keeps, and content that begins with `---`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import yaml

from memoranda.errors import InvalidInput
from memoranda.note.markdown import compose_note

CREATED = datetime(2026, 11, 1, tzinfo=UTC)


def composed(content: str, old: str = "") -> str:
    return compose_note(content, title="T", permalink="t", created=CREATED, old=old)


def header_of(text: str) -> dict[str, object]:
    """The header as other programs read it, with numbers as numbers."""
    header: dict[str, object] = yaml.safe_load(text.split("---\n")[1])
    return header


HEADERS = [
    "base: &b 10\nother: *b",
    "base: &b 1.5\nrate: 2.50\nother: *b",
    "n: 5\nn: 6",
    "n: 5\nm: 007\nn: 6",
    "on: &x true\noff: *x",
    "day: &d 2024-01-02\nend: *d",
    "list: &l [1, 2, 3]\nagain: *l",
    "list: &l\n  - 1\n  - 2.5\nagain: *l",
    "map: &m {a: 1, b: 2}\nagain: *m",
    "map: &m\n  a: 1\n  b: [1, 2]\nagain: *m",
    "deep: &d [[1, 2], [3]]\nagain: *d",
    "deep: &d [{a: 1}, {b: 2.5}]\nagain: *d",
    "text: &t '10'\nagain: *t",
    'text: &t "1.10"\nagain: *t',
    "empty: &e\nagain: *e",
    "none: &e ~\nagain: *e",
    "yes: &y yes\nagain: *y",
    "hex: &h 0x1F\nagain: *h\nhex2: 0o17",
    "base: &m {a: 1}\nmerged:\n  <<: *m\n  b: 2",
    "words: &w some plain words\nagain: *w",
    "1: &k one\ntwo: *k",
    "url: &u https://x.org/a#b\nagain: *u",
    "long: &l |\n  a\n  b\nagain: *l",
    "folded: &f >\n  a\n  b\nagain: *f\nn: 1e3",
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("is_replaced", [True, False])
def test_values_of_a_header_stay_what_they_are(header: str, is_replaced: bool) -> None:
    note = f"---\n{header}\n---\nold\n"

    if is_replaced:
        text = composed("new", old=note)
    else:
        text = composed(note)

    ours = header_of(text)
    for key, value in yaml.safe_load(header).items():
        assert ours[key] == value
        assert type(ours[key]) is type(value)


def test_comment_and_quotes_of_a_key_given_twice_stay() -> None:
    text = composed("new", old="---\nn: 5\nrate: '1.50' # dollars\nn: 6 # six\n---\n")

    assert "\nrate: '1.50' # dollars\n" in text
    assert "\nn: 6 # six\n" in text
    assert "n: 5" not in text


@pytest.mark.parametrize(
    "content",
    [
        "---\nnot a header at all\n---\nrest\n",
        "---\n- list\n- two\n---\nmore\n",
        "---\n> quoted\n---\n",
        "---\n# Heading\n\nText here.\n---\nmore\n",
        "---\nText: with a colon\n\nand more text\n---\nmore\n",
        "---\n* * *\n---\n",
        "---\n[[Link]] and words\n---\nx\n",
        "---\n1. one\n2. two\n---\nx\n",
        "---\n今天开会\n---\n内容\n",
        "---\n| a | b |\n|---|---|\n| 1 | 2 |\n---\n",
        "---\n```\ncode\n```\n---\n",
        "---\nA rule first, never closed\n",
        "--- title ---\nx\n",
        "----\nx\n----\n",
        '---\n"quoted words"\n---\nx\n',
        "---\n**bold**: text\n---\nx\n",
        "---\n@mention and #tag\n---\nx\n",
        "---\n# Only a heading\n---\nx\n",
        "---\nnull\n---\nx\n",
        "---\r\nnot a header\r\n---\r\nrest\r\n",
    ],
)
def test_content_that_begins_with_a_rule_is_text(content: str) -> None:
    text = composed(content)

    assert text.endswith(content)
    assert "title: T" in text


@pytest.mark.parametrize(
    "content",
    [
        "---\ntitle: a: b\n---\nx",
        "---\nkey: [unclosed\n---\nx",
        "---\ntitle: 'x\n---\nx",
        "---\ntags:\n- a\n- b: [\n---\nx",
        "---\na: 1\n\tb: 2\n---\nx",
    ],
)
def test_content_with_a_broken_header_is_refused(content: str) -> None:
    with pytest.raises(InvalidInput, match="not valid YAML"):
        composed(content)
