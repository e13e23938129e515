"""Contract 000b, 12.4: links in any small vault lead where a plain reading of 3.4 says."""

from __future__ import annotations

import posixpath
import re
import shutil
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.note.links import slug

pytestmark = pytest.mark.promise("000b-12.4")

NAMES = ("Alpha", "alpha", "ALPHA beta", "alpha-beta", "Alpha_Beta", "b", "B", "测试 b", "c.d", "notes")
FOLDERS = ("", "b/", "Alpha/", "b/Alpha/")
PROJECTS = ("notes", "memories")
SOURCE = "b/source.md"


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
        return f"---\n{lines}---\nbody\n" if lines else "body\n"

    @property
    def titles(self) -> set[str]:
        return {self.title or posixpath.basename(self.path)[:-3], *([self.alias] if self.alias else [])}


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
    unique_by=lambda each: (each.project, each.path.lower()),
)
TARGETS = st.one_of(
    st.sampled_from(NAMES),
    st.builds("{}{}{}".format, st.sampled_from(FOLDERS), st.sampled_from(NAMES), st.sampled_from(["", ".md"])),
    st.builds("{}{}".format, st.sampled_from(["./", "../", "../b/", "./Alpha/"]), st.sampled_from(NAMES)),
    st.builds("{}/{}".format, st.sampled_from(PROJECTS), st.sampled_from(["alpha", "b", "b/alpha", "Alpha"])),
    st.sampled_from(["Own/Place", "notes/Own/Place", "own/place", "OWN/PLACE"]),
    st.builds("{}::{}".format, st.sampled_from(["memories", "Notes"]), st.sampled_from(NAMES)),
)


def folded(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text.casefold())


def expected(notes: list[Given], permalinks: dict[Given, str], target: str) -> list[Given]:
    """The notes of the first step of 3.4 that matches, for a link in SOURCE of the project `notes`."""
    home, _, name = target.rpartition("::")
    project = home.lower() or "notes"
    inside = [each for each in notes if each.project == project]
    relative = name.startswith(("./", "../"))
    path = posixpath.normpath(posixpath.join("b", name)) if relative else name

    def by_permalink(among: list[Given], wanted: str) -> list[Given]:
        return [
            one
            for one in among
            if wanted in (permalinks[one], f"{one.project}/{permalinks[one]}")
            or f"{one.project}/{wanted}" == permalinks[one]
        ]

    stems = [one for one in inside if posixpath.basename(one.path)[:-3] == name.removesuffix(".md")]
    steps = [
        [one for one in inside if one.id == name],
        by_permalink(inside, name),
        by_permalink(inside, slug(name)),
        [one for one in inside if name in one.titles],
        [one for one in inside if path in (one.path, one.path[:-3])],
        stems if len(stems) == 1 else [],
        [one for one in inside if folded(name) in map(folded, one.titles)],
    ]
    if relative:
        steps = [steps[4]]
    elif not home:
        others = [each for each in notes if each.project != project]
        steps += [by_permalink(others, name), [one for one in others if name in one.titles]]
    return next((step for step in steps if step), stems if not relative else [])


@settings(max_examples=150, deadline=None)
@given(NOTES, st.lists(TARGETS, min_size=1, max_size=6, unique=True))
def test_every_link_leads_where_the_steps_say(shared, notes, targets):
    for project in PROJECTS:
        shutil.rmtree(shared.root(project), ignore_errors=True)
    for note in notes:
        shared.put(note.path, note.text, note.project)
    shared.put(SOURCE, "".join(f"- [[{target}]]\n" for target in targets))
    source = Given("notes", SOURCE, None, None, None, None)
    every = [*notes, source] if all(each.path != SOURCE for each in notes) else notes
    infos, _ = shared.memory.list(limit=0)
    known = {(info.project, info.path): info.permalink for info in infos}
    permalinks = {each: known[each.project, each.path] for each in every}
    (result,) = shared("build_context", url=SOURCE, project="notes")["results"]
    out = [each for each in result["relations"] if each["direction"] == "out"]
    for target in targets:
        wanted = expected(every, permalinks, target)
        answer = ("ambiguous" if wanted else "unwritten", None)
        if len(wanted) == 1:
            answer = ("resolved", permalinks[wanted[0]])
        found = [(each["state"], each["permalink"]) for each in out if each["target"] == target.rpartition("::")[2]]
        assert answer in found, (target, wanted)
