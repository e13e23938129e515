"""Contract 000b, 12.4: where a link leads, step by step (3.4), and in any small vault."""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.home_kinds import with_projects
from contract.note_tools import Tools, put
from contract.tables import tables
from memoranda.engine import open_session

TABLES = tables("note_links")

pytestmark = pytest.mark.promise("000b-12.4")

ID = "5f0c1a52-7d54-4b0e-9a55-0c9d3f2b6e11"
SOURCE = "from/Source.md"


def relations(tools: Tools, source: str = SOURCE, project: str = "notes") -> list[dict[str, Any]]:
    """Return the outgoing relations of a note, as build_context shows them."""
    (result,) = tools("build_context", url=source, project=project)["results"]
    return [relation for relation in result["relations"] if relation["direction"] == "out"]


def leads(tools: Tools, target: str, source: str = SOURCE, project: str = "notes") -> str | None:
    """The permalink `[[target]]` in the note `source` leads to; None when it leads nowhere."""
    tools.put(source, f"see [[{target}]]\n", project)
    (relation,) = relations(tools, source, project)
    assert relation["type"] == "links_to"
    assert relation["target"] in (target.rpartition("::")[2], target)
    assert (relation["permalink"] is None) == (relation["state"] != "resolved")
    return relation["permalink"]


def state(tools: Tools, source: str = SOURCE) -> str:
    (relation,) = relations(tools, source)
    return relation["state"]


STEPS = TABLES["steps"]


@pytest.mark.parametrize(
    ("step", "target", "path", "text"), STEPS, ids=lambda value: str(value)[:24]
)
def test_each_step_finds_its_note(
    emptied: Tools, step: int, target: str, path: str, text: str
) -> None:
    assert leads(emptied, target) is None
    file = emptied.put(path, text)
    assert leads(emptied, target) == emptied("read_note", identifier=path)["permalink"]
    file.unlink()
    assert leads(emptied, target) is None


@pytest.mark.parametrize("target", ["../../Top", "./../../Top", "../..", "./"])
def test_a_relative_path_never_leaves_the_project(tools: Tools, target: str) -> None:
    put(tools.root().parent / "Top.md", "outside")
    tools.put("Top.md")
    assert leads(tools, target) is None


def test_several_at_one_step_are_ambiguous_though_a_later_step_has_one(tools: Tools) -> None:
    tools.put("one.md", "---\ntitle: Twin\n---\n")
    tools.put("two.md", "---\naliases: [Twin]\n---\n")
    tools.put("sub/TWIN.md", "---\ntitle: other\npermalink: third\n---\n")
    assert leads(tools, "Twin") is None
    assert state(tools) == "ambiguous"
    text = tools.text("build_context", url=SOURCE)
    assert "[[Twin]] (ambiguous)" in text
    reply = tools("write_note", title="Counts", content="- near [[Twin]]\n")
    assert reply["relations"] == {"resolved": 0, "unresolved": 1}
    (tools.root() / "two.md").unlink()
    assert leads(tools, "Twin") == "notes/one"


def test_a_forward_reference_resolves_and_unresolves_without_its_source(tools: Tools) -> None:
    source = tools.put(SOURCE, "- waits_for [[Later Note]] (soon)\n")
    before = (source.read_bytes(), source.stat().st_mtime_ns)
    (waiting,) = relations(tools)
    assert (waiting["type"], waiting["state"], waiting["context"]) == (
        "waits_for",
        "unwritten",
        "soon",
    )
    assert "[[Later Note]] (soon) (not written yet)" in tools.text("build_context", url=SOURCE)
    for _ in range(2):
        written = tools("write_note", title="Later Note", content="here\n")
        assert relations(tools) == [
            {**waiting, "permalink": written["permalink"], "state": "resolved"}
        ]
        (note_found,) = tools("build_context", url="Later Note")["results"]
        assert [
            (relation["direction"], relation["target"]) for relation in note_found["relations"]
        ] == [("in", "Source")]
        tools("move_note", identifier="Later Note", destination_path="elsewhere/deep/Later Note.md")
        assert state(tools) == "resolved"
        for old, new in (
            ("title: Later Note", "title: Renamed"),
            (f"permalink: {written['permalink']}", "permalink: renamed"),
        ):
            tools(
                "edit_note",
                identifier=written["permalink"],
                operation="find_replace",
                find_text=old,
                content=new,
            )
            # By its permalink, then by its file name
            assert state(tools) == "resolved"
        tools(
            "move_note",
            identifier="renamed",
            destination_path="Quite else.md",
            update_links=False,
        )
        assert state(tools) == "unwritten"
        tools("delete_note", identifier="renamed")
        assert relations(tools) == [waiting]
    assert (source.read_bytes(), source.stat().st_mtime_ns) == before


@pytest.fixture
def projects(tmp_path: Path):
    for name in "wp":
        (tmp_path / name).mkdir()
    folders = with_projects(tmp_path / "home", Work=tmp_path / "w", play=tmp_path / "p")
    with open_session(tmp_path / "home", **folders) as memory:
        yield Tools(memory)


def test_a_project_in_front_looks_there_only(projects: Tools) -> None:
    projects.put("Plan.md", "here")
    assert leads(projects, "Plan") == "notes/plan"
    assert leads(projects, "work::Plan") is None
    projects.put("sub/Plan.md", "there", "Work")
    assert leads(projects, "work::Plan") == "work/sub/plan"
    assert leads(projects, "WORK::sub/Plan.md") == "work/sub/plan"
    assert leads(projects, "play::Plan") is None
    assert leads(projects, "nobody::Plan") is None
    target = relations(projects)[0]["target"]
    assert target == "nobody::Plan"
    assert leads(projects, "Plan") == "notes/plan"


def test_other_projects_are_asked_by_permalink_and_title_when_there_is_nothing_here(
    projects: Tools,
) -> None:
    projects.put("sub/Far Note.md", "---\ntitle: Far\n---\n", "Work")
    assert leads(projects, "Far") == "work/sub/far-note"
    assert leads(projects, "work/sub/far-note") == "work/sub/far-note"
    # 5, 6, 7, 3 stay at home
    for step in (
        "sub/Far Note.md",
        "Far Note",
        "fAR",
        "Work/sub/Far Note",
    ):
        assert leads(projects, step) is None, step
    projects.put("again/Other.md", "---\ntitle: Far\n---\n", "play")
    assert leads(projects, "Far") is None
    assert state(projects) == "ambiguous"
    projects.put("deep/Home.md", "---\ntitle: fAr\npermalink: at/home\n---\n")
    # Even by its last step, home goes first
    assert leads(projects, "Far") == "at/home"


def test_a_note_the_caller_may_not_see_is_no_target(tools: Tools) -> None:
    tools.put("one/Hidden.md", "---\ntitle: Secret\nscope: agent:ada\n---\n")
    tools.put("two/Open.md", "---\ntitle: Secret\npermalink: open\n---\n")
    assert leads(tools, "Secret") is None
    assert state(tools) == "ambiguous"
    ada = tools.as_agent("ada")
    bob = tools.as_agent("bob")
    assert relations(ada)[0]["state"] == "ambiguous"
    permalink = relations(bob)[0]["permalink"]
    assert permalink == "open"
    (tools.root() / "two/Open.md").unlink()
    permalink = relations(ada)[0]["permalink"]
    assert permalink == "notes/one/hidden"
    assert relations(bob)[0] == {**relations(ada)[0], "permalink": None, "state": "unwritten"}


def test_a_link_in_a_note_the_caller_may_not_see_is_no_backlink(tools: Tools) -> None:
    tools.put("Hub.md")
    tools.put("mine.md", "---\nscope: agent:ada\n---\n[[Hub]]\n")
    for agent, number in (("ada", 1), ("bob", 0)):
        (result,) = tools.as_agent(agent)("build_context", url="Hub")["results"]
        assert len(result["relations"]) == number
        assert len(result["related_results"]) == number


def test_ids_in_the_links_of_memories_are_relations(tools: Tools) -> None:
    first = tools(
        "write_note", title="one", content="the first", directory="inbox", project="categories"
    )
    second = tools(
        "write_note", title="two", content="the second", directory="inbox", project="categories"
    )
    tools.memory.link(("categories", first["file_path"]), ("categories", second["file_path"]))
    (relation,) = relations(tools, first["permalink"], "categories")
    assert (relation["type"], relation["permalink"], relation["state"]) == (
        "links_to",
        second["permalink"],
        "resolved",
    )


NAMES = (
    "Alpha",
    "alpha",
    "ALPHA beta",
    "alpha-beta",
    "Alpha_Beta",
    "b",
    "B",
    "测试 b",
    "c.d",
    "notes",
)
FOLDERS = ("", "b/", "Alpha/", "b/Alpha/")
PROJECTS = ("notes", "memories")
PLACE = "b/source.md"


@dataclass(frozen=True)
class Given:
    """One note of the vault as its file says."""

    project: str
    path: str
    title: str | None
    alias: str | None
    permalink: str | None
    id: str | None

    @property
    def text(self) -> str:
        keys = {
            "title": self.title,
            "aliases": self.alias and f"[{self.alias}]",
            "permalink": self.permalink,
            "id": self.id,
        }
        lines = "".join(f"{key}: {value}\n" for key, value in keys.items() if value)
        if lines:
            return f"---\n{lines}---\nbody\n"
        return "body\n"

    @property
    def titles(self) -> set[str]:
        return {
            self.title or posixpath.basename(self.path)[:-3],
            *([self.alias] if self.alias else []),
        }


def some(values: Any) -> Any:
    return st.one_of(st.none(), st.none(), st.sampled_from(values))


NOTES = st.lists(
    st.builds(
        Given,
        st.sampled_from(PROJECTS),
        st.builds("{}{}.md".format, st.sampled_from(FOLDERS), st.sampled_from(NAMES)),
        some(NAMES),
        some(NAMES),
        some(["Own/Place", "alpha", "notes/alpha", "b"]),
        some(["alpha", "c.d"]),
    ),
    min_size=1,
    max_size=7,
    unique_by=lambda note: (note.project, note.path.lower()),
)
TARGETS = st.one_of(
    st.sampled_from(NAMES),
    st.builds(
        "{}{}{}".format,
        st.sampled_from(FOLDERS),
        st.sampled_from(NAMES),
        st.sampled_from(["", ".md"]),
    ),
    st.builds(
        "{}{}".format, st.sampled_from(["./", "../", "../b/", "./Alpha/"]), st.sampled_from(NAMES)
    ),
    st.builds(
        "{}/{}".format,
        st.sampled_from(PROJECTS),
        st.sampled_from(["alpha", "b", "b/alpha", "Alpha"]),
    ),
    st.sampled_from(["Own/Place", "notes/Own/Place", "own/place", "OWN/PLACE"]),
    st.builds("{}::{}".format, st.sampled_from(["memories", "Notes"]), st.sampled_from(NAMES)),
)


def forms(name: str) -> list[str]:
    """A name as written, in one case, and without signs, marks and blanks."""
    bare = "/".join(
        re.sub(r"[^\w]|_", "", part.removesuffix(".md").casefold()) for part in name.split("/")
    )
    return [name, name.casefold(), bare]


Names = Callable[[Given], Iterable[str]]
"""The names of one kind that a note has."""


def matching(among: list[Given], level: int, name: str, names: Names) -> list[Given]:
    """The notes with a name that is `name` at a level of strictness (an index of `forms`)."""
    form = forms(name)[level]
    matches = []
    for note in among:
        forms_of_note = [forms(name_of_note)[level] for name_of_note in names(note)]
        if form in forms_of_note:
            matches.append(note)
    return matches


def titles(note: Given) -> set[str]:
    return note.titles


def paths(note: Given) -> list[str]:
    return [note.path, note.path[:-3]]


def ends(note: Given) -> list[str]:
    """The ends of the path that begin at a folder or at the file's name."""
    parts = note.path.split("/")
    whole = ["/".join(parts[at:]) for at in range(len(parts))]
    return whole + [path_end[:-3] for path_end in whole]


def paths_inside_b(note: Given) -> list[str]:
    return [path[2:] for path in paths(note)]


def beside(inside: list[Given], name: str, level: int) -> list[Given]:
    """The notes below the source's folder `b` that a name means, by their paths or titles."""
    inner = [note for note in inside if note.path.startswith("b/")]
    by_path = matching(inner, level, name, paths_inside_b)
    if by_path or "/" in name:
        return by_path
    near = [note for note in inside if posixpath.dirname(note.path) == "b"]
    return matching(near, level, name, titles)


def first_of(steps: Iterable[list[Given]]) -> list[Given]:
    """The first step that led somewhere, or nothing."""
    return next((notes for notes in steps if notes), [])


def expected(notes: list[Given], permalinks: dict[Given, str], target: str) -> list[Given]:
    """The notes a link in PLACE of the project `notes` means, as AMENDMENTS, 2.1 say."""
    home, _, name = target.rpartition("::")
    project = home.lower() or "notes"
    inside = [note for note in notes if note.project == project]
    notes_elsewhere = [note for note in notes if note.project != project and not home]
    is_beside_source = project == "notes" and not home

    def addresses(note: Given) -> list[str]:
        permalink = permalinks[note]
        return [
            permalink,
            f"{note.project}/{permalink}",
            permalink.removeprefix(f"{note.project}/"),
        ]

    if name.startswith(("./", "../")):
        path = posixpath.normpath(posixpath.join("b", name))
        return first_of(matching(inside, level, path, paths) for level in range(3))

    def beside_source(level: int) -> list[Given]:
        return beside(inside, name, level) if is_beside_source else []

    def in_project(level: int) -> list[Given]:
        by_name = first_of(
            [
                beside_source(level),
                matching(inside, level, name, paths),
                matching(inside, level, name, ends),
                matching(inside, level, name, titles),
            ]
        )
        if by_name:
            return by_name
        by_address = matching(inside, level, name, addresses)
        # A looser match beside the source comes before an address
        return (by_address and first_of(map(beside_source, range(2)))) or by_address

    return first_of(
        [
            [note for note in inside if note.id == name],
            in_project(0),
            in_project(1),
            # Home comes first, but not by a name without its signs
            matching(notes_elsewhere, 0, name, addresses),
            matching(notes_elsewhere, 0, name, titles),
            in_project(2),
        ]
    )


@given(NOTES, st.lists(TARGETS, min_size=1, max_size=6, unique=True))
def test_every_link_leads_where_the_steps_say(shared, notes, targets):
    for project in PROJECTS:
        shutil.rmtree(shared.root(project), ignore_errors=True)
    for note in notes:
        shared.put(note.path, note.text, note.project)
    shared.put(PLACE, "".join(f"- [[{target}]]\n" for target in targets))
    source = Given("notes", PLACE, None, None, None, None)
    if all(given_note.path != PLACE for given_note in notes):
        possible_notes = [*notes, source]
    else:
        possible_notes = notes
    infos, _ = shared.memory.list(limit=0)
    permalink_by_place = {(info.project, info.path): info.permalink for info in infos}
    permalinks = {note: permalink_by_place[note.project, note.path] for note in possible_notes}
    outgoing = relations(shared, PLACE)

    for target in targets:
        expected_notes = expected(possible_notes, permalinks, target)
        if len(expected_notes) == 1:
            answer = ("resolved", permalinks[expected_notes[0]])
            shown = target.rpartition("::")[2]
        else:
            answer = ("ambiguous" if expected_notes else "unwritten", None)
            # The project stays, so that no reply tells which hidden projects exist.
            shown = target
        links = [relation for relation in outgoing if relation["target"] == shown]
        answers = [(link["state"], link["permalink"]) for link in links]
        assert answer in answers, (target, expected_notes)
