"""Open Knowledge Format: a bundle of all notes, and back, with nothing lost."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.note.frontmatter import split
from memoranda.transfer.okf import About, bundle_path, packed, plan_bundle, unpack, write_bundle

ABOUT = About(
    "Note",
    'A "title": with # signs',
    "notes",
    "a/b c.md",
    {"by": "claude/1.0", "at": "2026-05-07T10:00:00Z"},
    {"by": "human:owner", "at": "2026-05-07T10:00:00Z"},
    "stable",
    "2027-01-01T00:00:00Z",
    ({"resource": "https://example.org"},),
)
LINES = st.sampled_from(
    [
        "---",
        "...",
        "type: task",
        "type:",
        "type: [a]",
        "status: open",
        "sources: x",
        "tags: [a, b]",
        "title: 'x",
        "# memoranda: added for the Open Knowledge Format",
        'memoranda: {"path": "x"}',
        "memoranda: 1",
        "\ufeff---",
        "",
        "# Heading",
        "text with \u00e4 and \U0001f389",
        "- [fact] x",
    ]
)
TEXTS = st.lists(LINES, max_size=12).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(lines))
)


def is_conformant(data):
    text = data.decode()
    assert text.startswith("---")
    header = yaml.safe_load(split(text).yaml)
    assert isinstance(header["type"], str)
    assert header["type"].strip()
    return header


@given(st.one_of(TEXTS, TEXTS.map(lambda text: f"---\n{text}\n---\nbody\n"), st.text()))
def test_every_text_comes_back_as_it_was(text):
    data = text.encode("utf-8", "surrogatepass")
    document = packed(data, ABOUT)
    assert unpack("x.md", document) == ("notes", "a/b c.md", data)


@given(st.binary(max_size=200))
def test_every_file_comes_back_as_it_was(data):
    assert unpack("x.md", packed(data, ABOUT)).data == data


@pytest.mark.parametrize(
    "text",
    [
        "no header\n",
        "---\ntype: task\nstatus: open\n---\nbody\n",
        "---\r\ntags: [a]\r\n---\r\nbody\r\n",
        "---\ntitle: 'broken\n---\nbody\n",
        "---\ntype: [1]\n---\n",
        "",
    ],
)
def test_each_document_is_a_concept_of_the_format(text):
    header = is_conformant(packed(text.encode(), ABOUT))
    assert header["generated"] == {"by": "claude/1.0", "at": "2026-05-07T10:00:00Z"}
    assert header["verified"] == [{"by": "human:owner", "at": "2026-05-07T10:00:00Z"}]
    assert header["sources"] == [{"resource": "https://example.org"}]
    if "status: open" in text:
        assert header["type"] == "task"
        assert header["status"] == "open"


def test_what_another_program_changed_in_a_document_comes_in():
    document = packed(b"---\ntags: [a]\n---\nold\n", ABOUT).replace(b"old", b"new")
    assert unpack("x.md", document).data == b"---\ntags: [a]\n---\nnew\n"


def test_a_document_of_another_program_is_taken_as_it_is():
    data = (
        b"---\ntype: Metric\nverified: {by: human:x, at: 2026-01-01T00:00:00Z}\nodd: 1\n---\n# D\n"
    )
    assert unpack("m/x.md", data) == ("", "m/x.md", data)


def test_no_note_takes_a_name_that_the_format_has():
    names: set[str] = set()
    assert bundle_path("notes", "index.md", names) == "notes/index-note.md"
    assert bundle_path("notes", "a/log.md", names) == "notes/a/log-note.md"
    assert bundle_path("notes", "x.md", names) == "notes/x.md"
    assert bundle_path("notes", "X.md", names) == "notes/X-2.md"


@pytest.fixture
def memory(tmp_path):
    with open_session(tmp_path / "home", watch=False) as memory:
        yield memory


def files(memory):
    return {
        str(path.relative_to(memory.home)): path.read_bytes()
        for path in memory.home.rglob("*.md")
        if ".memoranda" not in path.parts and path.name != "memory.md"
    }


def test_a_home_goes_out_and_comes_into_an_empty_one_byte_for_byte(memory, tmp_path):
    memory.write(Draft("Prefers tabs", project="categories", category="preferences"))
    memory.write(Draft("# Plan\n\n- [task] x\n", title="Plan", type="task", metadata={"a": [1]}))
    memory.write(Draft("An index", title="index", project="notes"))
    (memory.home / "notes" / "by hand.md").write_bytes(b"\xef\xbb\xbfno header\r\n")
    (memory.home / "notes" / "broken.md").write_bytes(b"---\nx: 'y\n---\nz\n")
    before = files(memory)
    bundle = tmp_path / "bundle"
    assert write_bundle(memory, bundle) == len(before)
    for path in bundle.rglob("*.md"):
        if path.name != "index.md":
            is_conformant(path.read_bytes())
    text = (bundle / "index.md").read_text()
    assert text.startswith('---\nokf_version: "0.2"\n---\n')
    with open_session(tmp_path / "other", watch=False) as other_memory:
        plan = plan_bundle(other_memory, bundle, "notes")
        plan.carry_out(None)
        assert files(other_memory) == before
        again = plan_bundle(other_memory, bundle, "notes")
        assert (len(again.items), again.unchanged, again.skipped) == (0, len(before), [])


def test_a_foreign_bundle_goes_out_again_with_all_its_keys(memory, tmp_path):
    bundle = tmp_path / "finance"
    (bundle / "metrics").mkdir(parents=True)
    text = (
        "---\ntype: Metric\ntitle: Revenue\nsources:\n- {id: p, resource: /p.md}\n"
        "generated: {by: bot/1, at: 2026-06-20T22:53:05Z}\nstatus: draft\nodd: {a: 1}\n---\n# D\n"
    )
    (bundle / "metrics" / "revenue.md").write_text(text)
    (bundle / "log.md").write_text("# 2026\n\n* made\n")
    plan_bundle(memory, bundle, "notes").carry_out(None)
    assert (memory.home / "notes/finance/metrics/revenue.md").read_text() == text
    out = tmp_path / "out"
    write_bundle(memory, out)
    document = (out / "notes/finance/metrics/revenue.md").read_text()
    was = yaml.safe_load(split(text).yaml)
    now = yaml.safe_load(split(document).yaml)
    assert {key: now[key] for key in was} == was
    assert document.endswith("---\n# D\n")


def test_what_is_there_with_another_text_stays(memory, tmp_path):
    bundle = tmp_path / "b"
    bundle.mkdir()
    (bundle / "x.md").write_text("---\ntype: A\n---\nnew\n")
    (memory.home / "notes" / "b").mkdir(parents=True)
    (memory.home / "notes" / "b" / "x.md").write_text("old\n")
    plan = plan_bundle(memory, bundle, "notes")

    assert plan.skipped == [("x.md", "another text is there")]


def test_a_document_that_is_too_large_is_skipped_and_named(memory, tmp_path):
    bundle = tmp_path / "b"
    bundle.mkdir()
    with open(bundle / "large.md", "wb") as file:
        # Without data: it takes no room on the disk.
        file.truncate((64 << 20) + 1)
    plan = plan_bundle(memory, bundle, "notes")

    assert plan.skipped == [("large.md", "larger than 64 MB")]
    assert plan.items == []
