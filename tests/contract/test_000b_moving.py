"""AMENDMENTS, 4.1 and 4.2: every kind of link to a note, and what a move does to it."""

from __future__ import annotations

import posixpath
import shutil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.note_tools import Tools

OUT = "out"


def relations(tools: Tools, source: str) -> list[tuple[str, str, str | None]]:
    """The relations of a note: type, target and where each leads."""
    (result,) = tools("build_context", url=source, project="notes")["results"]
    return [
        (relation["type"], relation["target"], relation["permalink"])
        for relation in result["relations"]
        if relation["direction"] == OUT
    ]


LINKS = {
    "[[Target]]": ("links_to", "Target"),
    "![[Target]]": ("embeds", "Target"),
    "- needs [[Target]]": ("needs", "Target"),
    "[x](Target.md)": ("links_to", "Target.md"),
    "![x](Target.md)": ("embeds", "Target.md"),
    "[x](./Target.md)": ("links_to", "./Target.md"),
    "[x](<Target.md>)": ("links_to", "Target.md"),
    '[x](Target.md "its title")': ("links_to", "Target.md"),
    "[x](Target.md#Some%20heading)": ("links_to", "Target.md"),
    "[x](%54arget.md)": ("links_to", "Target.md"),
    "- [x](Target.md) and more": ("links_to", "Target.md"),
    "| [a \\| b](Target.md) |": ("links_to", "Target.md"),
    "[a [nested] label](Target.md)": ("links_to", "Target.md"),
    "[x](sub/../Target.md)": ("links_to", "./Target.md"),
    "> quoted [x](Target.md)": ("links_to", "Target.md"),
    "# [x](Target.md)": ("links_to", "Target.md"),
    "[x](/from/Target.md)": ("links_to", "/from/Target.md"),
}
NO_LINKS = (
    "`[x](Target.md)`",
    "[x](https://example.com/Target.md)",
    "[x](mailto:Target.md)",
    "[x](Target.pdf)",
    "![x](picture.png)",
    "\\[x](Target.md)",
    "[x] (Target.md)",
    "```\n[x](Target.md)\n```",
    "[x](#Target.md)",
)


@pytest.mark.promise("amendments-4.1")
@pytest.mark.parametrize("text", LINKS, ids=ascii)
def test_each_way_to_write_a_link_is_a_relation(emptied: Tools, text: str) -> None:
    emptied.put("from/Target.md")
    emptied.put("from/Source.md", f"{text}\n")
    assert relations(emptied, "from/Source") == [(*LINKS[text], "notes/from/target")]
    (back,) = emptied("build_context", url="from/Target")["results"]
    targets = [relation["target"] for relation in back["relations"]]
    assert targets == ["Source"]


@pytest.mark.promise("amendments-4.1")
@pytest.mark.parametrize("text", NO_LINKS, ids=ascii)
def test_what_leads_to_no_note_is_no_relation(emptied: Tools, text: str) -> None:
    emptied.put("from/Target.md")
    emptied.put("from/Source.md", f"{text}\n")
    assert relations(emptied, "from/Source") == []


@pytest.mark.promise("amendments-4.1")
@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ('up: "[[Target]]"', "up"),
        ("up: '[[Target]]'", "up"),
        ("up: [[Target]]", "up"),
        ('related:\n  - "[[Target]]"', "related"),
        ('related: ["[[Target]]"]', "related"),
        ('"next page": "[[Target|shown]]"', "links_to"),
        ('source: "see [[Target#Part]] there"', "source"),
        ('deep:\n  up: "[[Target]]"', "deep"),
    ],
)
def test_a_link_in_a_header_value_is_a_relation(emptied: Tools, header: str, kind: str) -> None:
    emptied.put("Target.md")
    emptied.put("Source.md", f"---\n{header}\n---\ntext\n")
    assert relations(emptied, "Source") == [(kind, "Target", "notes/target")]


@pytest.mark.promise("amendments-4.1")
@pytest.mark.parametrize(
    "header",
    ["matrix: [[1, 2], [3, 4]]", "one: [[1, 2]]", "# up: [[Target]]", "title: '[[Target]]'"],
)
def test_other_header_values_are_no_relations(emptied: Tools, header: str) -> None:
    emptied.put("Target.md")
    emptied.put("Source.md", f"---\n{header}\n---\ntext\n")
    assert relations(emptied, "Source.md") == []


MOVES: dict[str, tuple[str, str]] = {
    # In the note from/Source.md, when Topics/Espresso.md becomes Drinks/Strong Coffee.md
    "[[Topics/Espresso]]": ("[[Drinks/Strong Coffee]]", "path"),
    "[[Topics/Espresso.md]]": ("[[Drinks/Strong Coffee.md]]", "path with extension"),
    "[[Espresso]]": ("[[Strong Coffee]]", "name"),
    "[[Espresso|the drink]]": ("[[Strong Coffee|the drink]]", "shown text"),
    "[[Topics/Espresso#Brewing|x]]": ("[[Drinks/Strong Coffee#Brewing|x]]", "heading"),
    "[[Topics/Espresso#^b1]]": ("[[Drinks/Strong Coffee#^b1]]", "block"),
    "| [[Topics/Espresso\\|cell]] |": ("| [[Drinks/Strong Coffee\\|cell]] |", "table"),
    "![[Topics/Espresso]]": ("![[Drinks/Strong Coffee]]", "embed"),
    "- needs [[Topics/Espresso]] (now)": ("- needs [[Drinks/Strong Coffee]] (now)", "relation"),
    "[[../Topics/Espresso]]": ("[[../Drinks/Strong Coffee]]", "relative"),
    "[[topics/espresso]]": ("[[drinks/strong-coffee]]", "permalink"),
    "[[notes/topics/espresso]]": ("[[notes/drinks/strong-coffee]]", "long permalink"),
    "[x](../Topics/Espresso.md)": ("[x](../Drinks/Strong%20Coffee.md)", "Markdown"),
    "[x](<../Topics/Espresso.md>)": ("[x](<../Drinks/Strong Coffee.md>)", "in angles"),
    "[x](../Topics/Espresso.md#a)": ("[x](../Drinks/Strong%20Coffee.md#a)", "its heading"),
    "[x](/Topics/Espresso.md)": ("[x](/Drinks/Strong%20Coffee.md)", "from the root"),
    "[x](Topics/Espresso.md)": ("[x](Drinks/Strong%20Coffee.md)", "path in the project"),
    '[x](../Topics/Espresso.md "t")': ('[x](../Drinks/Strong%20Coffee.md "t")', "title"),
    "`[[Topics/Espresso]]` and [[Topics/Espresso]]": (
        "`[[Topics/Espresso]]` and [[Drinks/Strong Coffee]]",
        "code stays",
    ),
    "[[Topics/Espresso]] [[Topics/Espresso]]": (
        "[[Drinks/Strong Coffee]] [[Drinks/Strong Coffee]]",
        "twice",
    ),
    "[[Espresso Machine]] [[Other]]": ("[[Espresso Machine]] [[Other]]", "other links"),
}


@pytest.mark.promise("amendments-4.2")
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("text", MOVES, ids=lambda text: MOVES[text][1])
def test_a_move_updates_each_form_of_link_in_its_form(emptied: Tools, text: str, end: str) -> None:
    tools = emptied
    tools.put("Topics/Espresso.md", "short\n")
    tools.put("Espresso Machine.md", "x\n")
    tools.put("from/Source.md", f"before{end}{text}{end}after".encode())
    before = tools.snapshot()
    reply = tools(
        "move_note", identifier="Topics/Espresso.md", destination_path="Drinks/Strong Coffee"
    )
    expected = MOVES[text][0]
    content = tools.file("from/Source.md").read_bytes()
    assert content == f"before{end}{expected}{end}after".encode()
    assert reply.get("updated_links", []) == ([] if expected == text else ["from/Source.md"])
    assert reply["broken_links"] == []
    tools.memory.undo()
    assert tools.snapshot() == before


@pytest.mark.promise("amendments-4.2")
def test_a_move_updates_links_in_headers(tools: Tools) -> None:
    tools.put("Topics/Espresso.md", "short\n")
    head = "---\nup: \"[[Topics/Espresso]]\"\nalso:\n  - '[[Topics/Espresso|x]]'\n---\n"
    tools.put("Source.md", f"{head}text\n")
    tools("move_note", identifier="Topics/Espresso.md", destination_path="Drinks/Bob's")
    expected = "---\nup: \"[[Drinks/Bob's]]\"\nalso:\n  - '[[Drinks/Bob''s|x]]'\n---\ntext\n"

    text = tools.file("Source.md").read_text()
    assert text == expected
    assert [relation[2] for relation in relations(tools, "Source")] == ["notes/drinks/bobs"] * 2


@pytest.mark.promise("amendments-4.2")
def test_the_moved_notes_own_links_lead_on(tools: Tools) -> None:
    tools.put("a/Beside.md", "x\n")
    tools.put("README.md", "root\n")
    tools.put("a/README.md", "inner\n")
    tools.put("a/Note.md", "[[./Beside]] [x](Beside.md) [[README]] [[Beside]]\n")
    before = tools.snapshot()
    tools("move_note", identifier="a/Note.md", destination_path="b/c/Note.md")
    moved = "[[../../a/Beside]] [x](../../a/Beside.md) [[a/README]] [[Beside]]\n"
    assert tools.file("b/c/Note.md").read_text() == moved
    tools.memory.undo()
    assert tools.snapshot() == before


@pytest.mark.promise("amendments-4.2")
def test_a_move_takes_no_link_from_another_note(tools: Tools) -> None:
    tools.put("README.md", "root\n")
    tools.put("other/README.md", "other\n")
    tools.put("a/Source.md", "[[README]]\n")
    tools("move_note", identifier="other/README.md", destination_path="a/README.md")
    (relation,) = relations(tools, "a/Source")
    assert relation[2] == "notes/readme"


@pytest.mark.promise("amendments-4.2")
def test_a_folder_moves_with_the_links_in_it_and_to_it(tools: Tools) -> None:
    tools.put("Topics/One.md", "[[Topics/Two]] [[./Two]]\n")
    tools.put("Topics/Two.md", "[[One]]\n")
    tools.put("Topics/picture.png", b"\x89PNG")
    tools.put("Source.md", "[[Topics/One]] [x](Topics/Two.md)\n")
    before = tools.snapshot()
    reply = tools(
        "move_note", identifier="Topics", destination_path="Old/Subjects", is_directory=True
    )
    assert reply["updated_links"] == ["Old/Subjects/One.md", "Source.md"]
    assert tools.snapshot() == {
        "Old/Subjects/One.md": b"[[Old/Subjects/Two]] [[./Two]]\n",
        "Old/Subjects/Two.md": b"[[One]]\n",
        "Old/Subjects/picture.png": b"\x89PNG",
        "Source.md": b"[[Old/Subjects/One]] [x](Old/Subjects/Two.md)\n",
    }
    assert not tools.file("Topics").exists()
    tools.memory.undo()
    assert tools.snapshot() == before


@pytest.mark.promise("amendments-4.2")
def test_what_cannot_be_changed_is_named(tools: Tools) -> None:
    tools.put("Topics/Espresso.md", "x\n")
    tools.put("Locked.md", "---\nlocked: true\n---\n[[Topics/Espresso]]\n")
    tools.put("Open.md", "[[Topics/Espresso]]\n")
    reply = tools("move_note", identifier="Topics/Espresso.md", destination_path="Coffee.md")

    assert reply["broken_links"] == ["Locked.md"]
    assert reply["updated_links"] == ["Open.md"]
    text = tools.file("Locked.md").read_text()
    assert "[[Topics/Espresso]]" in text


@pytest.mark.promise("amendments-4.2")
def test_an_updated_note_is_still_its_authors(tools: Tools) -> None:
    tools.put("Topics/Espresso.md", "x\n")
    tools.write("Source", "[[Topics/Espresso]]")
    claude = tools.as_agent("claude")
    claude("move_note", identifier="Topics/Espresso.md", destination_path="Coffee.md")
    info = tools.memory.find("Source")

    text = tools.memory.text_of(info)
    assert "[[Coffee]]" in text
    assert info.provenance.who == "owner"
    assert info.provenance.trust == "owner"


@pytest.mark.promise("amendments-4.2")
def test_links_stay_as_they_are_where_that_is_asked_for(tools: Tools) -> None:
    tools.put("Topics/Espresso.md", "x\n")
    tools.put("Source.md", "[[Topics/Espresso]]\n")
    reply = tools(
        "move_note",
        identifier="Topics/Espresso.md",
        destination_path="Coffee.md",
        update_links=False,
    )
    assert (reply["broken_links"], "updated_links" in reply) == (["Source.md"], False)
    assert tools.file("Source.md").read_text() == "[[Topics/Espresso]]\n"


@pytest.mark.promise("amendments-4.2")
def test_the_memory_tool_renames_with_the_links(tools: Tools) -> None:
    def memory(**arguments: Any) -> str:
        return tools.text("memory", **arguments)

    for path, text in (
        ("projects/plan.md", "[[projects/tasks]] [[./tasks]]\n"),
        ("projects/tasks.md", "none\n"),
        ("index.md", "- see [[projects/plan]] and [x](projects/tasks.md)\n"),
    ):
        memory(command="create", path=f"/memories/{path}", file_text=text)
    before = _memories(tools)
    reply_text = memory(command="rename", old_path="/memories/projects", new_path="/memories/work")
    assert reply_text == "Successfully renamed /memories/projects to /memories/work"
    assert _memories(tools) == {
        "work/plan.md": "[[work/tasks]] [[./tasks]]\n",
        "work/tasks.md": "none\n",
        "index.md": "- see [[work/plan]] and [x](work/tasks.md)\n",
    }
    assert not tools.file("projects", "memories").exists()
    tools.memory.undo()
    assert _memories(tools) == before
    memory(command="rename", old_path="/memories/projects/plan.md", new_path="/memories/p.md")
    assert _memories(tools)["p.md"] == "[[projects/tasks]] [[projects/tasks]]\n" or (
        _memories(tools)["p.md"] == "[[projects/tasks]] [[./projects/tasks]]\n"
    )
    assert "[[p]]" in _memories(tools)["index.md"]


def _memories(tools: Tools) -> dict[str, str]:
    root = tools.root("memories")
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.md")}


FOLDERS = ("", "a", "b", "a/c")
NAMES = ("One", "Two", "One Two", "C++", "C", "é")
PLACES = st.builds(posixpath.join, st.sampled_from(FOLDERS), st.sampled_from(NAMES))
FORMS = ("[[{}]]", "[[{}.md]]", "[[{}|shown]]", "[x](<{}.md>)", "- rel [[{}]]", "![[{}]]")


@pytest.mark.promise("amendments-4.2")
@given(
    st.lists(PLACES, min_size=2, max_size=6, unique_by=str.casefold),
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(FORMS), PLACES), max_size=8),
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(FORMS), st.sampled_from(NAMES)), max_size=6
    ),
    st.integers(0, 5),
    PLACES,
)
def test_every_link_leads_where_it_led_after_any_move_and_undo_gives_every_byte_back(
    shared: Tools, paths: list[str], by_path: Any, by_name: Any, moved_index: int, target: str
) -> None:
    shutil.rmtree(shared.root(), ignore_errors=True)
    lines: dict[str, list[str]] = {path: [] for path in paths}
    for number, form, name in [*by_path, *by_name]:
        lines[paths[number % len(paths)]].append(form.format(name))
    for number, (path, links) in enumerate(lines.items()):
        shared.put(f"{path}.md", f"id {number}\n" + "".join(f"{link}\n" for link in links))
    before = shared.snapshot()
    led = {path: _leads(shared, f"{path}.md") for path in paths}
    moved = paths[moved_index % len(paths)]
    reply = shared.call("move_note", identifier=f"{moved}.md", destination_path=f"{target}.md")
    if reply.is_error:
        assert target.casefold() in map(str.casefold, paths)
        return
    places = {path: target if path == moved else path for path in paths}
    for path in paths:
        now = _leads(shared, f"{places[path]}.md")
        if places[path] + ".md" in reply.data["broken_links"]:
            continue
        for target_before, target_now in zip(led[path], now, strict=True):
            assert target_before is None or target_before == target_now, (
                path,
                before,
                shared.snapshot(),
            )
    shared.memory.undo()

    assert shared.snapshot() == before


def _leads(tools: Tools, path: str) -> list[str | None]:
    """Which note each link of a note leads to, by the number in its text."""
    info = tools.memory.find(("notes", path))
    return [
        edge.note and tools.memory.text_of(edge.note).partition("\n")[0]
        for edge in tools.memory.outgoing(info)
    ]


@pytest.mark.promise("amendments-4.2")
def test_link_to_a_note_of_the_root_keeps_it_when_one_of_its_name_comes_beside(
    emptied: Tools,
) -> None:
    emptied.put("Ideas.md", "at the root\n")
    emptied.put("far/Ideas.md", "elsewhere\n")
    source = emptied.put("sub/Source.md", "[[Ideas]] and [[Ideas#Part|shown]]\n")
    emptied("move_note", identifier="far/Ideas.md", destination_path="sub/Ideas.md")

    assert source.read_text() == "[[/Ideas]] and [[/Ideas#Part|shown]]\n"
    links = relations(emptied, "sub/Source")
    assert {link[2] for link in links} == {"notes/ideas"}


@pytest.mark.promise("000b-12.10")
@pytest.mark.parametrize("ending", [".MD", ".Markdown"])
def test_the_ending_of_a_note_in_capitals_stays_in_a_destination(
    emptied: Tools, ending: str
) -> None:
    emptied.put(f"Old{ending}", "---\npermalink: notes/old\n---\ntext\n")
    moved = emptied("move_note", identifier="Old", destination_path=f"sub/New{ending}")
    assert moved["new_path"] == f"sub/New{ending}"


@pytest.mark.promise("000b-12.10")
def test_a_text_file_of_the_memories_keeps_its_ending_when_it_moves(emptied: Tools) -> None:
    emptied.put("user/p.txt", "text\n", project="memories")
    moved = emptied(
        "move_note", identifier="user/p.txt", destination_path="user/q.txt", project="memories"
    )
    assert moved["new_path"] == "user/q.txt"


@pytest.mark.promise("000b-12.10")
def test_another_ending_than_that_of_a_note_gets_one_behind_it(emptied: Tools) -> None:
    emptied.put("Old.md")
    moved = emptied("move_note", identifier="Old", destination_path="v1.2")
    assert moved["new_path"] == "v1.2.md"


@pytest.mark.promise("000b-12.10")
def test_an_append_to_a_missing_note_takes_its_ending_in_capitals_for_one(emptied: Tools) -> None:
    created = emptied("edit_note", identifier="New.MD", operation="append", content="text")
    assert created["file_path"] == "New.md"
