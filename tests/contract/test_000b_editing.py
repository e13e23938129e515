"""Contract 000b, 12.9: edit_note changes the bytes concerned and no other, in whatever form the
file is.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from contract.note_tools import Tools, texts
from contract.tables import tables

TABLES = tables("note_editing")

pytestmark = pytest.mark.promise("000b-12.9")

TEXT = (
    "---\n# our own comment\ntitle:   'Doc'\nodd: [ 1,  2 ]\n---\n"
    "\n# Top\nintro\n\n## One\nfirst\n\n### Inner\ninner\n\n"
    "```\n## Two\n```\n    ## Two\n<!--\n## Two\n-->\n## Two ##\nsecond same\n\n## Three\nthird same"
)
FORMS = {
    "LF": ("", "\n", "\n"),
    "CRLF": ("", "\r\n", "\r\n"),
    "BOM": ("\ufeff", "\n", "\n"),
    "no final newline": ("", "\n", ""),
    "BOM, CRLF, no final newline": ("\ufeff", "\r\n", ""),
    "CRLF, no final newline": ("", "\r\n", ""),
}
NEW = "new\nlines\n"
EDITS = TABLES["edits"]


def formed(text: str, form: str, whole: bool = True) -> bytes:
    mark, newline, end = FORMS[form]
    return ((mark if whole else "") + text.replace("\n", newline) + (end if whole else "")).encode()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("operation", "arguments", "old", "new"), EDITS, ids=lambda value: str(value)[:30]
)
def test_an_edit_changes_only_its_place(shared, form, operation, arguments, old, new):
    file = shared.put("Doc.md", formed(TEXT, form))
    file.chmod(0o640)
    reply = shared("edit_note", identifier="Doc", operation=operation, **arguments)
    content = file.read_bytes()
    assert content == formed(TEXT.replace(old, new), form)
    assert file.stat().st_mode & 0o777 == 0o640
    checksum = shared("read_note", identifier="Doc")["checksum"]
    assert reply["checksum"] == checksum
    shared.memory.undo()
    content = file.read_bytes()
    assert content == formed(TEXT, form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("content", [NEW, "one line"])
def test_append_begins_a_new_line_and_leaves_the_end_of_the_file_as_it_was(shared, form, content):
    file = shared.put("Doc.md", formed(TEXT, form))
    shared("edit_note", identifier="Doc", operation="append", content=content)
    before = formed(TEXT, form)
    added = formed(content, form, whole=False)
    newline = FORMS[form][1].encode()
    if before.endswith(newline):
        assert file.read_bytes() == before + added.removesuffix(newline) + newline
    else:
        assert file.read_bytes() == before + newline + added


@pytest.mark.parametrize("form", ["LF", "CRLF"])
def test_a_find_text_of_several_lines_matches_whatever_the_line_breaks(
    tools: Tools, form: str
) -> None:
    file = tools.put("Doc.md", formed("a\nb\nc\n", form))
    tools("edit_note", identifier="Doc", operation="find_replace", find_text="a\nb", content="A\nB")
    assert file.read_bytes() == formed("A\nB\nc\n", form)


def test_mixed_line_breaks_stay_mixed(tools: Tools) -> None:
    file = tools.put("Doc.md", b"a\r\nb\nc\rd\r\n")
    tools("edit_note", identifier="Doc", operation="append", content="e\nf\n")
    assert file.read_bytes() == b"a\r\nb\nc\rd\r\ne\nf\n"
    tools("edit_note", identifier="Doc", operation="find_replace", find_text="b\nc", content="B\nC")
    assert file.read_bytes() == b"a\r\nB\nC\rd\r\ne\nf\n"


REFUSED = TABLES["refused"]


@pytest.mark.parametrize(
    ("operation", "arguments", "code"), REFUSED, ids=lambda value: str(value)[:30]
)
def test_a_refused_edit_changes_nothing(
    shared: Tools, operation: str, arguments: dict, code: str
) -> None:
    file = shared.put("Doc.md", formed(TEXT, "CRLF"))
    before = (texts(shared.root()), file.stat().st_mtime_ns, file.stat().st_ino)
    changes = len(shared.memory.log())
    shared.refused("edit_note", code, identifier="Doc", operation=operation, **arguments)

    assert (texts(shared.root()), file.stat().st_mtime_ns, file.stat().st_ino) == before
    assert len(shared.memory.log()) == changes


def test_equal_headings_are_told_by_their_lines_unless_the_level_tells_them_apart(
    tools: Tools,
) -> None:
    file = tools.put("Doc.md", "# A\n## Same\nx\n### Same\ny\n## Same\nz\n")
    for section, lines in (("Same", "2, 4, 6"), ("## Same", "2, 6")):
        text = tools.refused(
            "edit_note",
            "section",
            identifier="Doc",
            operation="replace_section",
            section=section,
            content="n",
        )
        assert f"(lines {lines})" in text
    tools(
        "edit_note",
        identifier="Doc",
        operation="replace_section",
        section="### Same",
        content="Y\n",
    )
    assert file.read_text() == "# A\n## Same\nx\n### Same\nY\n## Same\nz\n"


def test_a_missing_section_is_refused_and_nothing_is_added(tools: Tools) -> None:
    file = tools.put("Doc.md", "# A\ntext\n## Plan\n")
    refusal = tools.refused(
        "edit_note",
        "section",
        identifier="Doc",
        operation="replace_section",
        section="## New",
        content="here\n",
    )
    assert "A, Plan" in refusal
    assert file.read_text() == "# A\ntext\n## Plan\n"


LINES = st.sampled_from(
    [
        "# A",
        "## B",
        "text",
        "",
        "- [fact] x",
        "```",
        "---",
        "title: x",
        "    code",
        "\ufeff",
        "中文 😀",
        "<!--",
        "-->",
    ]
)
BODIES = st.one_of(
    st.builds(
        lambda lines, newline, end: newline.join(lines) + end,
        st.lists(LINES, max_size=12),
        st.sampled_from(["\n", "\r\n"]),
        st.sampled_from(["", "\n", "\r\n"]),
    ),
    st.text(max_size=60),
)


@given(
    BODIES,
    BODIES,
    st.sampled_from(
        ["append", "prepend", "replace_section", "insert_before_section", "insert_after_section"]
    ),
)
def test_bytes_outside_an_edit_stay_whatever_the_note(
    shared: Tools, body: str, content: str, operation: str
) -> None:
    file = shared.put("Any.md", body)
    before = body.encode()
    reply = shared.call(
        "edit_note", identifier="Any.md", operation=operation, content=content, section="B"
    )
    after = file.read_bytes()
    if reply.is_error:
        assert reply.data["code"] in ("section", "invalid")
        assert after == before
        return
    if operation == "append":
        assert after.startswith(before)
    head, tail = shared_ends(before, after)
    if operation != "replace_section":
        # Nothing was taken away: the old bytes stand around the new ones
        assert head + tail >= len(before)
    if "\r" not in body and "\r" not in content:
        assert b"\r" not in after


def shared_ends(first: bytes, second: bytes) -> tuple[int, int]:
    """How many bytes two texts share at their beginning, and at their end."""
    head = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    tail = next(
        (n for n, (a, b) in enumerate(zip(first[::-1], second[::-1], strict=False)) if a != b),
        min(len(first), len(second)),
    )
    return head, tail


@given(BODIES, st.text(min_size=1, max_size=4), st.text(max_size=6))
def test_find_replace_is_what_replace_is(shared: Tools, body: str, find: str, content: str) -> None:
    assume(find.strip() and "\r" not in body + find + content)
    file = shared.put("Any.md", body)
    count = body.count(find)
    reply = shared.call(
        "edit_note",
        identifier="Any.md",
        operation="find_replace",
        find_text=find,
        content=content,
        expected_replacements=max(count, 1),
    )
    if reply.is_error:
        assert reply.data["code"] == ("count" if not count else "invalid")
        assert file.read_bytes() == body.encode()
    else:
        assert file.read_bytes() == body.replace(find, content).encode()
        assert reply.data["replacements"] == count
