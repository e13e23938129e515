"""Makes the addresses of notes' pages, and finds the note at an address.

The file of a memory is named by the beginning of its text, and by its id: `people/ann-1a2b3c4d.md`.
An address must not repeat the text, which may be a secret, so it has the id alone:
`people/1a2b3c4d`. Another path with a secret is replaced by its hash: `~0a1b2c3d4e5f6071`.

Copies of one memory in one folder have one id, so they share an address. Each of them is found by
the hash of its path.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from urllib.parse import quote, urlencode

from memoranda.engine import MemorySession
from memoranda.engine.history.former_places import Place
from memoranda.engine.history.whereabouts import last_place_of_memory
from memoranda.errors import Ambiguous, MemorandaError, NotFound
from memoranda.index.rows import NoteInfo
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.note.names import Looseness
from memoranda.query import Query
from memoranda.text.gate import SECRET, default_rules

# The name of a memory's file, with the first digits of its id.
_NAME_OF_MEMORY = re.compile(r"[^/]*-([0-9a-f]{8})\.md$")
_ID = re.compile(r"[0-9a-f]{8}")
_HASH_DIGITS = 16
_HASH = re.compile(r"~[0-9a-f]{16}")


@lru_cache(maxsize=20_000)
def short_path(project: str, path: str) -> str:
    """Return a path as addresses have it: `people/ann-1a2b3c4d.md` of a memory is `people/1a2b3c4d`."""
    short = _NAME_OF_MEMORY.sub(r"\1", path) if project in MEMORY_PROJECTS else path
    if default_rules().find(short, SECRET):
        return _hashed(path)
    return short


def _hashed(path: str) -> str:
    digest = sha256(path.encode("utf-8", "surrogatepass")).hexdigest()
    return f"~{digest[:_HASH_DIGITS]}"


def note_ref(project: str, path: str) -> str:
    """Return the name of a note for a field of an address: its project and its short path.

    Examples: `notes/plans/Plan.md`, and `categories/people/1a2b3c4d` of a memory. `note_of_ref` finds the
    note by it.
    """
    return f"{project}/{short_path(project, path)}"


def note_url(project: str, path: str, asked: str = "") -> str:
    """Return the address of a note's page.

    asked: the path in the address of the request. If it is the hash of this note's path, the note
        keeps that address, which no copy shares.
    """
    if asked and asked == _hashed(path):
        return hashed_url(project, path)
    return "/page/note/" + quote(note_ref(project, path), safe="/", errors="replace")


def hashed_url(project: str, path: str) -> str:
    """Return the address of a note's page by the hash of its path, which no copy shares."""
    return "/page/note/" + quote(f"{project}/{_hashed(path)}", safe="/~", errors="replace")


def id_url(note_id: str) -> str:
    """Return the address of a note's page by its id. Its path may have words nobody should see."""
    return "/page/id/" + quote(note_id, safe="", errors="replace")


def about_url(name: str, note_id: str) -> str:
    """Return the address of the page about a name.

    The address has the name, or the id of its note if the name has a secret.

    note_id: the id of a note that has the name as its title.
    """
    if default_rules().find(name, SECRET):
        return f"/page/about?{urlencode({'note': note_id}, errors='replace')}"
    return f"/page/about?{urlencode({'name': name}, errors='replace')}"


def place_at(memory: MemorySession, project: str, path: str) -> Place:
    """Return the place of the note at an address. It may be gone, or elsewhere now.

    project: the project that the address names.
    path: the rest of the address, which has one of three forms (`short_path`, `hashed_url`):

        `~0a1b2c3d4e5f6071`: the hash of a path.
        `people/1a2b3c4d`: the folder of a memory, and the beginning of its id. Only in the projects
            of memories.
        `plans/Plan.md`: a path.
    """
    if _HASH.fullmatch(path):
        return project, _path_of_short(memory, project, path)
    name = path.rpartition("/")[2]
    if project in MEMORY_PROJECTS and _ID.fullmatch(name):
        return _place_of_memory(memory, project, path)
    return project, path


def _place_of_memory(memory: MemorySession, project: str, short: str) -> Place:
    """Return the place of a memory, by its folder and its id: `people/1a2b3c4d`.

    A memory in that folder comes before copies of it in others. If the memory has moved, its id still
    finds it, and if it is gone, the history does.
    """
    folder, _, id_start = short.rpartition("/")
    infos = _notes_of_id(memory, id_start)
    infos_in_folder = [info for info in infos if (info.project, _folder(info)) == (project, folder)]
    if infos:
        best_info = (infos_in_folder or infos)[0]
        return best_info.project, best_info.path
    last_place = last_place_of_memory(memory, id_start)
    if last_place is not None:
        return last_place
    # A person may have named a file by a day: `journal-20261128.md`. That is not its id.
    return project, _path_of_short(memory, project, short)


def notes_sharing(memory: MemorySession, project: str, path: str) -> list[NoteInfo]:
    """Return all notes at an address of the page, if several share it. Otherwise an empty list.

    The address of a memory has only its folder and its id. Copies of the memory in the same folder
    have the same id, and so the same address.
    """
    folder, _, name = path.rpartition("/")
    if project not in MEMORY_PROJECTS or not _ID.fullmatch(name):
        return []
    infos = [
        info
        for info in _notes_of_id(memory, name)
        if (info.project, _folder(info)) == (project, folder)
    ]
    return infos if len(infos) > 1 else []


def _path_of_short(memory: MemorySession, project: str, short: str) -> str:
    """Return the path that addresses have as `short`. `short` itself if no note has it.

    short: a short path, or the hash of a path.
    """
    # Hardly any address needs this, so looking at all notes is fast enough.
    infos, _ = memory.list(Query(projects=(project,)), limit=0)
    for info in infos:
        if short in (short_path(project, info.path), _hashed(info.path)):
            return info.path
    return short


def place_of_id(memory: MemorySession, note_id: str) -> Place:
    """Return the (project, path) of the note with this id. For a deleted note, its last place.

    Raises NotFound.
    """
    infos = _notes_of_id(memory, note_id)
    # Copies of a file have the same id. The address means one of them, no matter which.
    if infos:
        return infos[0].project, infos[0].path
    place = last_place_of_memory(memory, note_id)
    if place is None:
        raise NotFound(note_id)
    return place


def note_of_ref(
    memory: MemorySession, ref: str, *, looseness: Looseness = Looseness.SIGNS
) -> NoteInfo:
    """Return the note that a field of an address names. Raises the errors of `find`.

    ref: the text of the field: what `note_ref` returned, or a name of the note.
    looseness: how much a name may differ from the note's own name.
    """
    project, _, path = ref.partition("/")
    if project in MEMORY_PROJECTS or _HASH.fullmatch(path):
        return memory.find(place_at(memory, project, path))
    return memory.find(ref, looseness=looseness)


def _folder(info: NoteInfo) -> str:
    return info.path.rpartition("/")[0]


def _notes_of_id(memory: MemorySession, id_start: str) -> Sequence[NoteInfo]:
    """Return the notes whose id begins with some digits. Copies of a file have the same id.

    A note into which that note was merged is another note.
    """
    infos = []
    try:
        infos = [memory.find(id_start)]
    except Ambiguous as error:
        for candidate in error.candidates:
            with suppress(MemorandaError):
                infos.append(memory.find(candidate))
    except MemorandaError:
        pass
    return [info for info in infos if info.id.startswith(id_start)]
