"""A memory that upkeep sorted, archived or merged is still reached by its old address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.engine import open_session
from memoranda.engine.memory import MemorySession
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import NotFound
from memoranda.index.rows import NoteInfo
from memoranda.note.model import ARCHIVE_PROJECT, Draft
from memoranda.note.names import Looseness


class Home:
    """A home with one memory of category knowledge, and a vault beside it."""

    def __init__(self, memory: MemorySession, vault: Path):
        self.memory = memory
        self.vault = vault
        self.upkeep = Upkeep(memory)
        draft = Draft(text="Wheat grows tall", category="knowledge", source="user")
        self.id = memory.store(draft).note.id

    @property
    def info(self) -> NoteInfo:
        return self.memory.memory_id(self.id)

    def moved(self, way: str) -> NoteInfo:
        """The note that has its text once it went this way."""
        if way == "category":
            self.upkeep.change(self.info, {}, "update", category="project")
        elif way == "twice":
            self.upkeep.change(self.info, {}, "update", category="project")
            self.upkeep.change(self.info, {}, "update", category="people")
        elif way == "archive":
            self.upkeep.archive_all([self.info], {})
        else:
            draft = Draft(text="Wheat grows tall\nand golden", category="lessons", source="user")
            survivor = self.memory.memory_id(self.memory.store(draft).note.id)
            self.upkeep.merge(survivor, self.info)
            return self.memory.memory_id(survivor.id)
        return self.info

    def link(self, target: str, *, of: str = "vault") -> str:
        """The id of the note that a link leads to; "" for one that leads nowhere."""
        if of == "vault":
            (self.vault / "link.md").write_text(f"See {target}.\n")
            edges = self.memory.outgoing("vault/link")
        else:
            draft = Draft(text=f"See {target} there", category="habits", source="user")
            edges = self.memory.outgoing(self.memory.memory_id(self.memory.store(draft).note.id))
        return next((edge.note.id for edge in edges if edge.note is not None), "")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    vault = tmp_path / "vault"
    vault.mkdir()
    with open_session(tmp_path / "home", projects={"vault": vault}, watch=False) as memory:
        yield Home(memory, vault)


WAYS = ["category", "twice", "archive", "merge"]
FORMS = [
    "[[{path}]]",
    "[[{stem}]]",
    "[[{stem}|that]]",
    "[[{stem}#heading]]",
    "[[categories/{stem}]]",
    "[[categories::{stem}]]",
    "![[{stem}]]",
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("of", ["vault", "memory"])
def test_a_link_by_path_leads_on(home: Home, way: str, form: str, of: str) -> None:
    path = home.info.path
    assert path.startswith("knowledge/")
    link = form.format(path=path, stem=path.removesuffix(".md"))
    assert home.link(link, of=of) == home.id
    moved = home.moved(way)
    assert home.link(link, of=of) == moved.id
    if way != "merge":
        sources = [info.project for info in home.memory.backlinks(moved)]
        assert ("vault" if of == "vault" else "categories") in sources


@pytest.mark.parametrize("way", WAYS)
def test_an_old_address_names_the_note_but_does_not_delete_it(home: Home, way: str) -> None:
    path = home.info.path
    permalink = home.info.permalink
    moved = home.moved(way)
    for name in (f"categories/{path}", f"categories/{path.removesuffix('.md')}", permalink):
        assert home.memory.find(name).id == moved.id
        with pytest.raises(NotFound):
            home.memory.find(name, looseness=Looseness.EXACT)


@pytest.mark.parametrize("way", WAYS)
def test_upkeep_edits_no_link(home: Home, way: str) -> None:
    link = home.vault / "link.md"
    link.write_text(f"[[{home.info.path}]] and [[categories/{home.info.path}]]\n")
    before = link.read_bytes()
    home.moved(way)

    assert link.read_bytes() == before


def test_a_note_that_is_there_comes_before_one_that_was(home: Home) -> None:
    path = home.info.path
    home.moved("category")
    new_file = home.vault / path
    new_file.parent.mkdir()
    new_file.write_text("Another wheat\n")
    link = f"[[{path.removesuffix('.md')}]]"

    assert home.link(link) == home.memory.find(f"vault/{path}").id
    assert home.link(f"[[categories::{path}]]") == home.id


def test_an_old_address_that_several_had_is_ambiguous(home: Home) -> None:
    folder = home.memory.home / "categories"
    for category in ("people", "project"):
        (folder / category).mkdir(exist_ok=True)
        (folder / category / "plan.md").write_text(f"Plan of {category}\n")
    home.memory.sync()
    assert home.link("[[knowledge/plan]]") == ""
    (folder / "people" / "plan.md").unlink()
    assert home.link("[[knowledge/plan]]") == home.memory.find("categories/project/plan").id


@pytest.mark.parametrize(
    "link",
    ["[[Topics/Espresso]]", "[[Espresso]]", "[x](Topics/Espresso.md)", "[[/Topics/Espresso]]"],
)
def test_a_note_of_a_vault_that_was_archived_is_reached_by_its_old_path(
    home: Home, link: str
) -> None:
    topics = home.vault / "Topics"
    topics.mkdir()
    (topics / "Espresso.md").write_text("Strong\n")
    home.memory.sync()
    info = home.memory.find("vault/Topics/Espresso")
    assert home.link(link) == info.id
    home.upkeep.archive_all([info], {})
    archived = home.memory.find("vault/Topics/Espresso")
    assert archived.project == ARCHIVE_PROJECT
    assert home.link(link) == archived.id
    paths = [source.path for source in home.memory.backlinks(archived)]
    assert paths == ["link.md"]


def test_an_old_address_of_another_agents_memory_says_nothing(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", agent="ada", watch=False) as memory:
        draft = Draft(text="Wheat of Ada", category="knowledge", scope="agent:ada")
        note = memory.store(draft).note
        Upkeep(memory).change(memory.memory_id(note.id), {}, "update", category="project")
        assert memory.find(f"categories/{note.path}").id == note.id
    with (
        open_session(tmp_path / "home", agent="bob", watch=False) as bobs_memory,
        pytest.raises(NotFound),
    ):
        bobs_memory.find(f"categories/{note.path}")
