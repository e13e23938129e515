"""AMENDMENTS, 2: which note a name means. No name of one note ever reaches another one."""

from __future__ import annotations

import posixpath
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.note_tools import Tools
from contract.tables import tables
from memoranda.errors import MemorandaError
from memoranda.serve.mcp import resource_result

TABLES = tables("note_names")
GROUPS: list[list[str]] = TABLES["groups"]

pytestmark = pytest.mark.promise("amendments-2.1")


def contents(tools: Tools) -> dict[str, bytes]:
    """Every note of the project with its bytes."""
    return tools.snapshot()


def written(tools: Tools, titles: list[str]) -> dict[str, str]:
    """Notes with these titles, written in this order: the file of each."""
    return {
        title: tools.write(title, f"The text of note {number}.")["file_path"]
        for number, title in enumerate(titles)
    }


def changed_files(before: dict[str, bytes], after: dict[str, bytes]) -> set[str]:
    """The files that differ, are new or are gone."""
    return {path for path in before | after if before.get(path) != after.get(path)}


def erase(tools: Tools, name: str) -> Any:
    return tools.memory.erase(name)


CHANGES: dict[str, Callable[[Tools, str], Any]] = {
    "append": lambda tools, name: tools.call(
        "edit_note", identifier=name, operation="append", content="more"
    ),
    "replace": lambda tools, name: tools.call(
        "edit_note",
        identifier=name,
        operation="find_replace",
        find_text="The text",
        content="A text",
    ),
    "overwrite": lambda tools, name: tools.call(
        "write_note", title=name, content="other", overwrite=True
    ),
    "delete": lambda tools, name: tools.call("delete_note", identifier=name),
    "tag": lambda tools, name: tools.memory.tag(name, ["seen"]),
    "erase": erase,
}


@pytest.mark.parametrize("titles", GROUPS, ids=ascii)
def test_titles_that_differ_in_any_character_are_different_notes(
    emptied: Tools, titles: list[str]
) -> None:
    tools = emptied
    files = written(tools, titles)
    assert len(set(files.values())) == len(titles)
    permalinks = set()
    for number, title in enumerate(titles):
        read = tools("read_note", identifier=title)
        assert f"The text of note {number}." in read["content"], title
        assert read["title"] == title
        permalinks.add(read["permalink"])
        for name in (read["permalink"], read["file_path"], f"notes/{read['file_path']}"):
            file_path = tools("read_note", identifier=name)["file_path"]
            assert file_path == files[title], name
        address = f"memory://notes/{quote(read['file_path'], safe='')}"
        resource = resource_result(tools.memory, tools.registry.templates, address)
        assert f"The text of note {number}." in resource["contents"][0]["text"]
        primary = tools("build_context", url=title)["results"][0]["primary_result"]
        assert primary["file_path"] == files[title]
    assert len(permalinks) == len(titles)


@pytest.mark.parametrize("titles", GROUPS, ids=ascii)
def test_a_link_leads_to_the_note_of_that_very_title(emptied: Tools, titles: list[str]) -> None:
    tools = emptied
    titles = [title for title in titles if title not in TABLES["no_links"]]
    files = written(tools, titles)
    for title, path in files.items():
        tools.put("from/Source.md", f"see [[{title}]]\n")
        (result,) = tools("build_context", url="from/Source")["results"]
        (relation,) = [
            outgoing for outgoing in result["relations"] if outgoing["direction"] == "out"
        ]
        permalink = tools("read_note", identifier=path)["permalink"]
        assert relation["permalink"] == permalink, title


@pytest.mark.parametrize("verb", CHANGES)
@pytest.mark.parametrize("titles", GROUPS[:8], ids=ascii)
def test_a_change_concerns_the_named_note_alone_and_none_when_it_is_gone(
    emptied: Tools, titles: list[str], verb: str
) -> None:
    tools = emptied
    files = written(tools, titles)
    for title, path in files.items():
        before = contents(tools)
        reply = CHANGES[verb](tools, title)
        assert not getattr(reply, "is_error", False), reply
        assert changed_files(before, contents(tools)) == {path}, title
        if verb in ("delete", "erase"):
            before = contents(tools)
            try:
                CHANGES[verb](tools, title)
            except MemorandaError:
                pass
            assert contents(tools) == before, title


def test_a_refusal_names_notes_by_names_the_tool_takes(tools: Tools) -> None:
    tools.put("a/Twin.md", "one")
    tools.put("b/Twin.md", "two")
    tools.put("x.md", "---\npermalink: same\ntitle: Twin\n---\nthree")
    tools.put("y.md", "---\npermalink: same\n---\nfour")
    refused = tools.call("read_note", identifier="Twin")
    names = refused.data["candidates"]
    assert len(names) == 3
    read = {tools("read_note", identifier=name)["file_path"] for name in names}
    assert read == {"a/Twin.md", "b/Twin.md", "x.md"}


def test_what_is_missing_is_suggested_by_a_name_that_reaches_it(tools: Tools) -> None:
    tools.write("Résumé")
    refused = tools.call("delete_note", identifier="Resume")

    assert refused.data["code"] == "not_found"
    assert refused.data["suggestions"][0] == "notes/resume"
    paths = tools("delete_note", identifier="notes/resume")["paths"]
    assert paths == ["Résumé.md"]


def test_a_name_is_taken_as_a_listing_shows_it(tools: Tools) -> None:
    tools.put("with\ttab.md", "tabbed")
    tools.put(unicodedata.normalize("NFD", "Größe.md"), "size")
    names = [entry["title"] for entry in tools("list_directory")["entries"]]
    content = tools("read_note", identifier="with tab")["content"]
    assert content == "tabbed"
    content = tools("read_note", identifier="Größe")["content"]
    assert content == "size"
    for name in names:
        assert tools("read_note", identifier=name)["title"] == name
    tools.refused("write_note", "exists", title="Größe", content="twin")


def test_an_exact_name_in_another_project_wins_over_a_loose_one_here(
    tools: Tools, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    tools("create_memory_project", project_name="Work", project_path=str(tmp_path / "work"))
    tools.write("C")
    tools.write("C++", project="Work")
    project = tools("read_note", identifier="C++")["project"]
    assert project == "Work"
    project = tools("delete_note", identifier="C++")["project"]
    assert project == "Work"
    tools.refused("delete_note", "not_found", identifier="C++")


def test_a_folder_with_the_name_of_the_project_makes_an_address_ambiguous(tools: Tools) -> None:
    tools.put("plan.md", "outer")
    tools.put("notes/plan.md", "inner")
    refused = tools.call("delete_note", identifier="notes/plan")
    assert refused.data["code"] == "ambiguous"
    read = {tools("read_note", identifier=name)["file_path"] for name in refused.data["candidates"]}
    assert read == {"plan.md", "notes/plan.md"}


@pytest.mark.parametrize("name", ["2026", "cafe", "beef", "decade"])
def test_a_title_that_begins_an_id_is_refused_and_erases_nothing(terminal: Any, name: str) -> None:
    id_begun_by_name = f"{name:0<8}-1111-4222-8333-444455556666"
    head = f"---\nid: {id_begun_by_name}\n---\n"
    memory = terminal.home / "categories/skills/x.md"
    memory.parent.mkdir(parents=True)
    memory.write_text(f"{head}knows how\n")
    note = terminal.home / f"notes/{name}.md"
    note.parent.mkdir(parents=True)
    note.write_text("a note\n")
    ran = terminal("erase", name, "--yes")

    assert ran.status != 0
    assert "names 2 notes" in ran.err
    assert memory.exists()
    assert note.exists()


LETTERS = ("a", "A", "á", "á", "à", "ß", "ss", "ı", "i", "İ", "カ", "ガ", "中", "ё", "е", "²", "2")
SIGNS = (
    "",
    "+",
    "#",
    "!",
    "%",
    "&",
    "-",
    "_",
    " ",
    "  ",
    ".",
    "'",
    "’",
    "🎉",
    "/",
    ":",
    "?",
    "(",
    ")",
)
TITLES = st.lists(
    st.lists(st.sampled_from(LETTERS + SIGNS), min_size=1, max_size=4).map("".join),
    min_size=2,
    max_size=4,
    unique_by=str.strip,
).filter(lambda titles: all(title.strip() and title.strip()[0] != "/" for title in titles))
"""Titles that differ in signs, case and marks."""


def forms(name: str) -> list[str]:
    """A name as written, composed, in one case, and without signs, marks and blanks."""
    composed = unicodedata.normalize("NFC", name).strip()
    in_one_case = unicodedata.normalize("NFC", composed.casefold())
    letters = [letter for letter in composed if letter.isalnum()]
    decomposed = unicodedata.normalize("NFKD", "".join(letters).casefold())
    bare = "".join(letter for letter in decomposed if letter.isalnum())
    return [name, composed, in_one_case, bare or in_one_case]


def meant(name: str, notes: dict[str, str], permalinks: dict[str, str]) -> set[str]:
    """The titles of the notes a name means, of notes in the root of one project: title -> file."""
    for level, form in enumerate(forms(name)):
        steps = [
            {
                title
                for title, path in notes.items()
                if form in (forms(path)[level], forms(path[:-3])[level])
            },
            {title for title in notes if forms(title)[level] == form},
            {title for title in notes if permalinks[title] == name},
        ]
        for step in steps:
            if step:
                return step
    return set()


def in_one_case(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def written_or_refused(tools: Tools, titles: list[str]) -> dict[str, str]:
    """Write a note of every title; title -> path. A title is refused only for a file of its name."""
    files: dict[str, str] = {}
    for title in titles:
        reply = tools.call("write_note", title=title, content=f"The text of {title}")
        if not reply.is_error:
            files[title] = reply.data["file_path"]
        else:
            stems = {in_one_case(path[:-3]) for path in files.values()}
            file_name = title.rstrip(". ").translate(dict.fromkeys(map(ord, "/:?"), "-"))
            assert in_one_case(file_name) in stems, (title, reply.text)
    return files


@given(TITLES, st.sampled_from([*CHANGES, "read"]), st.data())
def test_every_verb_reaches_the_note_its_name_means_or_none(
    shared: Tools, titles: list[str], verb: str, data: st.DataObject
) -> None:
    shutil.rmtree(shared.root(), ignore_errors=True)
    files = written_or_refused(shared, [title.strip() for title in titles])
    name = data.draw(st.sampled_from(sorted(files)))
    is_absent = data.draw(st.booleans())
    if is_absent:
        (shared.root() / files.pop(name)).unlink()
    infos, _ = shared.memory.list(limit=0)
    permalinks = {info.title: info.permalink for info in infos if info.project == "notes"}
    expected = meant(name, files, permalinks)
    before = contents(shared)
    if verb == "read":
        reply = shared.call("read_note", identifier=name)
        if len(expected) == 1:
            assert reply.data["title"] in expected
        else:
            assert reply.is_error
        return
    try:
        CHANGES[verb](shared, name)
    except MemorandaError:
        assert is_absent or len(expected) > 1
    touched = changed_files(before, contents(shared)) & set(before)
    if is_absent:
        # A change takes a name without case at most, a removal only the exact one
        alike = {files[title] for title in files if forms(title)[2] == forms(name)[2]}
        assert touched <= (set() if verb in ("delete", "erase") else alike)
    else:
        assert touched == {files[name]}


def test_the_own_folder_comes_first_then_the_end_of_a_path_then_the_project(tools: Tools) -> None:
    for path in ("README.md", "One/README.md", "One/Two/Unique.md", "Three/Unique Name.md"):
        tools.put(path, path)
    tools.put("titled.md", "---\ntitle: Elsewhere\n---\n")
    cases = {
        ("One/from.md", "README"): "One/README.md",
        ("One/from.md", "readme"): "One/README.md",
        ("from.md", "README"): "README.md",
        ("Three/from.md", "README"): "README.md",
        ("Three/from.md", "One/README"): "One/README.md",
        ("Three/from.md", "Two/Unique"): "One/Two/Unique.md",
        ("One/from.md", "Two/Unique"): "One/Two/Unique.md",
        ("Three/from.md", "two/unique"): "One/Two/Unique.md",
        ("One/from.md", "Unique Name"): "Three/Unique Name.md",
        ("One/from.md", "Three/Unique Name.md"): "Three/Unique Name.md",
        ("One/from.md", "Elsewhere"): "titled.md",
        ("One/from.md", "wo/Unique"): None,
    }
    for (source, target), path in cases.items():
        tools.put(source, f"[[{target}]]\n")
        (result,) = tools("build_context", url=source)["results"]
        (relation,) = [
            outgoing for outgoing in result["relations"] if outgoing["direction"] == "out"
        ]
        permalink = path and tools("read_note", identifier=path)["permalink"]
        assert relation["permalink"] == permalink, (source, target)
        tools.file(source).unlink()


def test_two_colons_name_a_project_only_where_there_is_one(tools: Tools) -> None:
    tools.write("std::vector", "the class")
    tools.write("vector", "the arrow")
    tools.put("memories.md", "a note")
    tools.put("a.md", "deep", "memories")
    tools.put("from.md", "[[std::vector]] [[memories::a]] [[std::map]]\n")
    (result,) = tools("build_context", url="from.md")["results"]
    states = {relation["target"]: relation["permalink"] for relation in result["relations"]}
    permalink = tools("read_note", identifier="std::vector")["permalink"]
    assert states["std::vector"] == permalink
    assert states["a"] == "memories/a"
    assert states["std::map"] is None
    (result,) = tools("build_context", url="std::vector")["results"]
    targets = [relation["target"] for relation in result["relations"]]
    assert targets == ["from"]


def test_equal_slugs_are_numbered_in_the_order_of_writing(tools: Tools) -> None:
    permalinks = [tools.write(title)["permalink"] for title in ("C++", "C", "C#", "c 1", "c-1")]
    assert permalinks == ["notes/c", "notes/c-1", "notes/c-2", "notes/c-1-1", "notes/c-1-2"]
    assert posixpath.basename(tools.file("C++.md")) == "C++.md"
