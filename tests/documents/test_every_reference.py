"""A note is named in the same ways whatever is done with it, and through whatever face."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from documents.test_every_face import Faces
from memoranda import Draft
from memoranda.errors import NotFound
from memoranda.faces import registry
from memoranda.note.model import Note

REFERENCES: dict[str, Callable[[Note], str]] = {
    "id": lambda note: note.id,
    "beginning of the id": lambda note: note.id[:12],
    "title": lambda note: note.title,
    "permalink": lambda note: note.permalink,
    "permalink without project": lambda note: note.permalink.removeprefix(f"{note.project}/"),
    "project and path": lambda note: f"{note.project}/{note.path}",
    "project and path without extension": lambda note: f"{note.project}/{note.path}"[:-3],
    "path": lambda note: note.path,
    "path without extension": lambda note: note.path[:-3],
    "permalink after the project": lambda note: f"{note.project}: {note.permalink}",
    "title after the project": lambda note: f"{note.project}: {note.title}",
    "path after the project": lambda note: f"{note.project}: {note.path}",
    "address": lambda note: f"memory://{note.permalink}",
    "address of the path": lambda note: f"memory://{note.project}/{note.path}",
    "link": lambda note: f"[[{note.title}]]",
}

Act = Callable[[Faces, str], None]


def command(*words: str) -> Act:
    """What a command does to the note REF."""

    def act(faces: Faces, ref: str) -> None:
        faces.command(*[ref if word == "REF" else word for word in words])

    return act


def tool(toolset: str, name: str, key: str, **arguments: Any) -> Act:
    """What a tool does to the note that its argument `key` names."""

    def act(faces: Faces, ref: str) -> None:
        reply = registry([toolset], faces.memory.settings).call(
            faces.memory, name, {key: ref, **arguments}
        )
        assert not reply.is_error, reply.text

    return act


ACTS = {
    "memory read": command("read", "REF"),
    "memory read --at": command("read", "REF", "--at", "2099-01-01T00:00"),
    "memory tag": command("tag", "REF", "--add", "sea"),
    "memory backlinks": command("backlinks", "REF"),
    "memory log": command("log", "REF"),
    "memory diff": command("diff", "REF"),
    "memory pin": command("pin", "REF"),
    "memory unpin": command("unpin", "REF"),
    "memory link": command("link", "REF", "Other"),
    "memory link to": command("link", "Other", "REF"),
    "memory archive": command("archive", "REF"),
    "memory erase": command("erase", "REF", "--dry-run"),
    "memory delete": command("delete", "REF"),
    "read_note": tool("notes", "read_note", "identifier"),
    "edit_note": tool("notes", "edit_note", "identifier", operation="append", content="End"),
    "build_context": tool("notes", "build_context", "url"),
    "move_note": tool("notes", "move_note", "identifier", destination_path="other/"),
    "delete_note": tool("notes", "delete_note", "identifier"),
    "memory_read": tool("agent", "memory_read", "id"),
    "memory_tag": tool("agent", "memory_tag", "id", add=["sea"]),
    "memory_delete": tool("agent", "memory_delete", "id"),
    "Memory.read": lambda faces, ref: faces.memory.read(ref) and None,
    "Memory.tag": lambda faces, ref: faces.memory.tag(ref, ["sea"], []) and None,
    "Memory.log": lambda faces, ref: faces.memory.log(ref) and None,
    "Memory.delete": lambda faces, ref: faces.memory.delete(ref) and None,
}


ACTS_THAT_CHANGE_NOTHING = {
    "memory read",
    "memory read --at",
    "memory backlinks",
    "memory log",
    "memory diff",
    "memory erase",
    "read_note",
    "build_context",
    "memory_read",
    "Memory.read",
    "Memory.log",
}


@pytest.fixture
def faces(terminal: Any) -> Iterator[Faces]:
    opened = Faces(terminal)
    try:
        yield opened
    finally:
        opened.web.close()


def note_of(faces: Faces, number: int) -> Note:
    """A note of a project, whose title is not the name of its file."""
    draft = Draft("It opens in May", project="notes", folder="sea", title=f"Harbour {number}: plan")
    return faces.memory.write(draft)


def memory_of(faces: Faces, number: int) -> Note:
    return faces.memory.write(Draft(f"Harbour {number} opens in May", category="knowledge"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [note_of, memory_of])
@pytest.mark.parametrize("act", ACTS)
def test_note_is_named_in_every_way_for_every_act(faces: Faces, act: str, kind: Any) -> None:
    faces.memory.write(Draft("It is another one", project="notes", title="Other"))
    note = kind(faces, 0)
    for number, reference in enumerate(REFERENCES.values(), 1):
        ACTS[act](faces, reference(note))
        if act not in ACTS_THAT_CHANGE_NOTHING:
            note = kind(faces, number)


@pytest.mark.parametrize("name", REFERENCES)
def test_memory_to_organize_or_supersede_is_named_in_every_way(faces: Faces, name: str) -> None:
    old = memory_of(faces, 1)
    ref = REFERENCES[name](old)
    faces.command("upgrade", ref, "--category", "people")
    moved = faces.memory.read(old.id)
    faces.tool("agent", "memory_write", content="June", supersedes=[REFERENCES[name](moved)])
    assert faces.memory.find(old.id).header.get("valid_until")


@pytest.mark.anyio
async def test_note_is_named_in_every_way_on_the_page(faces: Faces) -> None:
    for kind in (note_of, memory_of):
        for number, reference in enumerate(REFERENCES.values()):
            note = kind(faces, number)
            document = await faces.api(f"/note?ref={reference(note).replace(' ', '%20')}")
            assert document["note"]["id"] == note.id


def test_title_that_looks_like_project_and_name_means_its_own_note(faces: Faces) -> None:
    faces.memory.write(Draft("One", project="notes", title="Plan"))
    exact = faces.memory.write(Draft("Two", project="notes", title="notes: Plan"))
    assert faces.memory.find("notes: Plan").id == exact.id


def test_name_after_a_project_means_no_note_of_another_project(faces: Faces) -> None:
    faces.memory.write(Draft("One", project="notes", title="Plan"))
    with pytest.raises(NotFound):
        faces.memory.find("categories: Plan")
    with pytest.raises(NotFound):
        faces.memory.find("notes: Plan", "categories")


def test_note_to_delete_is_not_guessed_from_another_case(faces: Faces) -> None:
    note = faces.memory.write(Draft("One", project="notes", title="Plan B"))
    for ref in ("plan b", "notes: plan b"):
        reply = registry(["agent"], faces.memory.settings).call(
            faces.memory, "memory_delete", {"id": ref}
        )
        assert reply.is_error
        assert faces.memory.find(ref).id == note.id
