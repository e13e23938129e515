"""Headers and page properties as other programs write them (docs/moving-in.md, "What other
programs write"): which tags, names, titles and times they say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memoranda.note.frontmatter import set_keys, split
from memoranda.note.inline import inline
from memoranda.note.markdown import compose_note, parse_note
from memoranda.note.model import Note

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DIGITS = "0123456789abcdef0123456789abcdef"


def note(text: str, path: str = "A.md") -> Note:
    return parse_note(text, project="notes", path=path, changed=NOW)


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        ("tag: heron", ["heron"]),
        ("tag: heron, marsh", ["heron", "marsh"]),
        ("tag:\n- heron\n- marsh", ["heron", "marsh"]),
        ("Tags: [heron, marsh]", ["heron", "marsh"]),
        ("TAGS: heron", ["heron"]),
        ("tags: [heron]\ntag: marsh", ["heron", "marsh"]),
        ("tags: heron\nTags: [Heron, reed]", ["heron", "reed"]),
        ('tags: \'["heron", "reed bed"]\'', ["heron", "reed bed"]),
        ("tags: \"['heron', 'reed bed']\"", ["heron", "reed bed"]),
        ("tags: '[heron, reed]'", ["heron", "reed"]),
        ("tags: '[]'", []),
        ("tags: '#heron #marsh'", ["heron", "marsh"]),
        ("tags: '#heron, #marsh'", ["heron", "marsh"]),
        ("tags: reed bed, marsh", ["reed bed", "marsh"]),
        ("tags: '[half'", ["[half"]),
        ('tags:\n  - \'["heron", "reed"]\'', ["heron", "reed"]),
        ("tags: '[[reed bed]], heron'", ["reed bed", "heron"]),
        ("tags: [[reed bed]]", ["reed bed"]),
        ("tags: [[heron], [marsh]]", []),
        ("tags:\n  - [[heron]]\n  - [[reed bed]]\n  - marsh", ["heron", "reed bed", "marsh"]),
        ("tags: [[[[heron]]]]", []),
        ("tags: [[]]", []),
        ("tag:", []),
        ("stage: heron\nmytags: x", []),
    ],
)
def test_tags_count_under_each_spelling_of_their_key_and_as_a_list_in_text(
    header: str, tags: list[str]
) -> None:
    assert list(note(f"---\n{header}\n---\nx").tags) == tags


@pytest.mark.parametrize(
    ("header", "aliases"),
    [
        ("alias: Grey", ["Grey"]),
        ("Alias: [Grey, Blue]", ["Grey", "Blue"]),
        ("aliases: Grey\nalias: Blue", ["Grey", "Blue"]),
        ("Aliases:\n  - Grey\n  - Grey", ["Grey"]),
        ("aliases: '[\"Grey heron\"]'", ["Grey heron"]),
    ],
)
def test_aliases_count_under_each_spelling_of_their_key(header: str, aliases: list[str]) -> None:
    assert list(note(f"---\n{header}\n---\nx").aliases) == aliases


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\ntitle: T\n...\nbody", "body"),
        ("---\r\ntitle: T\r\n...\r\nbody", "body"),
        ("---\n'a b': c\n... \nbody\n---\nmore", "body\n---\nmore"),
        ("---\ntitle: T\n...", ""),
        ("---\n...\nbody", None),
        ("---\nA pause, then\n...\nsilence", None),
        ("---\ntitle: wait ... what\n---\nbody", "body"),
        ("---\n# A remark\n...\n---\nbody", "body"),
    ],
)
def test_three_dots_end_a_header_that_has_a_key(text: str, body: str | None) -> None:
    parts = split(text)
    assert (None if parts.yaml is None else text[parts.body_at :]) == body


def test_a_header_that_three_dots_end_keeps_them_when_it_changes() -> None:
    assert set_keys("---\ntitle: T\n...\nbody", {"tags": ["a"]}).endswith("...\nbody")


@pytest.mark.parametrize(
    ("written", "created"),
    [
        ("1602144000000", datetime(2020, 10, 8, 8, 0, tzinfo=UTC)),
        ("1612010211234", datetime(2021, 1, 30, 12, 36, 51, 234_000, tzinfo=UTC)),
        ("'1602144000000'", datetime(2020, 10, 8, 8, 0, tzinfo=UTC)),
        ("1602144000", datetime(2020, 10, 8, 8, 0, tzinfo=UTC)),
        ("20201008", datetime(2020, 10, 8, tzinfo=UTC)),
        ("2020-10-08", datetime(2020, 10, 8, tzinfo=UTC)),
        ("160214400000012345", NOW),
        ("42", NOW),
    ],
)
def test_thirteen_digits_are_milliseconds_and_ten_are_seconds(
    written: str, created: datetime
) -> None:
    assert note(f"---\nid: abc\ncreated: {written}\n---\nx").created == created


@pytest.mark.parametrize(
    ("path", "title"),
    [
        (f"Heron {DIGITS}.md", "Heron"),
        (f"Trip 2024 {DIGITS}/Day 1 {DIGITS}.md", "Day 1"),
        (f"{DIGITS}.md", DIGITS),
        (f"Heron-{DIGITS}.md", f"Heron-{DIGITS}"),
        (f"Heron {DIGITS[:31]}.md", f"Heron {DIGITS[:31]}"),
        (f"Heron {DIGITS.upper()}.md", f"Heron {DIGITS.upper()}"),
        (f"Heron {DIGITS} copy.md", f"Heron {DIGITS} copy"),
    ],
)
def test_the_digits_at_the_end_of_a_name_of_notion_are_no_part_of_the_title(
    path: str, title: str
) -> None:
    assert note("x", path).title == title


def test_a_title_in_the_header_stays_as_it_is() -> None:
    assert note(f"---\ntitle: Heron {DIGITS}\n---\n").title == f"Heron {DIGITS}"


@pytest.mark.parametrize(
    ("text", "title", "aliases"),
    [
        (
            "title:: Grey heron\nalias:: [[A. cinerea]], Heron\n\n- x",
            "Grey heron",
            ["A. cinerea", "Heron"],
        ),
        ("- alias:: Heron\n- x", "A", ["Heron"]),
        ("alias::\n- x", "A", []),
        ("Text first\nalias:: Heron", "A", []),
        ("---\ntitle: T\nalias: H\n---\ntitle:: U\nalias:: I", "T", ["H", "I"]),
    ],
)
def test_the_fields_a_page_of_logseq_begins_with_name_it(
    text: str, title: str, aliases: list[str]
) -> None:
    page = note(text)
    assert (page.title, list(page.aliases)) == (title, aliases)


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("tags:: heron, [[reed bed]]", ["heron", "reed bed"]),
        ("tags:: [[reed bed]] [[heron]]", ["reed bed", "heron"]),
        ("tags:: #[[reed bed]] #heron", ["reed bed", "heron"]),
        ("tags:: [[Smith, John]]", ["Smith, John"]),
        ("tags:: heron marsh", ["heron", "marsh"]),
        ("- tag:: heron，marsh", ["heron", "marsh"]),
        ("tags::", []),
        ("tags:: ", []),
        ("tags:: , ,", []),
    ],
)
def test_a_field_of_tags_holds_words_and_pages_in_brackets(line: str, tags: list[str]) -> None:
    assert list(inline(f"{line}\n").tags) == tags


def test_a_new_note_reads_tags_in_its_content_as_a_list_in_text() -> None:
    text = compose_note(
        '---\ntags: \'["heron", "reed"]\'\n---\nx\n',
        title="T",
        permalink="t",
        created=NOW,
        tags=("marsh",),
    )
    assert note(text).tags == ("heron", "reed", "marsh")
