"""The kinds of stores that `memory import --from` takes: how each is read, and which one a path holds.

A wrong kind is refused with the command that imports what is there (docs/moving-in.md).
"""

from __future__ import annotations

import json
import shlex
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.cli.output import Failure
from memoranda.errors import MemorandaError

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.transfer.moving import MovePlan

EXPORT_KINDS = ("chatgpt", "claude", "mem0", "claude-mem", "mcp-memory-service")
"""The kinds of exports that a person downloads from another program."""
STORE_KINDS = ("anthropic-memory", "deja-vu", "agent-files")
"""The kinds of stores that other programs keep on disk."""
KINDS = (
    "graph-jsonl",
    "agent-memory",
    "memory-bank",
    "basic-memory",
    "mirror",
    "okf",
    *EXPORT_KINDS,
    *STORE_KINDS,
)
"""All values of `import --from`."""
# The kinds that a store is recognized as, in this order. Folders of other kinds have no mark.
_RECOGNIZED = ("mirror", *EXPORT_KINDS, "deja-vu", "agent-memory")
# A folder with more files is not looked through to recognize what it is.
_MOST_FILES_LOOKED_AT = 2_000
_BANK_FOLDERS = ("global", "projects", "code")


def plan_of_kind(
    memory: MemorySession, kind: str, place: Path, project: str, *, skip_bad: bool
) -> MovePlan:
    """Return the plan for importing the store at `place`, if it is of this kind.

    Raises WrongStore if it is not. If it is of another kind, the error has the right command.

    The parameters mean the same as in `_plan`.
    """
    from memoranda.transfer.moving import WrongStore

    if not can_be_read_again(place):
        return _plan(memory, kind, place, project, skip_bad=skip_bad)

    why = f"{place} holds nothing that --from {kind} imports"
    plan: MovePlan | None = None
    try:
        # The readers of other kinds would take lines of `memory export` for theirs.
        if not _has_exported_lines(place):
            plan = _plan(memory, kind, place, project, skip_bad=skip_bad)
    except WrongStore as error:
        why = str(error)

    # A kind that takes any text would also take the files of another kind, which its contents
    # identify.
    has_no_mark = plan is not None and _takes_any_text(kind, place)
    if plan is not None and not has_no_mark and (plan.items or plan.unchanged or plan.skipped):
        return plan

    # What the right command would say between `memory import` and the path.
    if has_no_mark:
        words = _words_of_marked_store(memory, place)
    else:
        words = words_to_import(memory, place)
    if words is not None and words != f"--from {kind}":
        raise WrongStore(f"{why}. {right_command(words, place)}")
    if plan is None:
        raise WrongStore(why)
    return plan


def _plan(
    memory: MemorySession, kind: str, place: Path, project: str, *, skip_bad: bool
) -> MovePlan:
    """Return the plan for importing the store at `place`.

    kind: the kind of store, such as `basic-memory`.
    project: the project for the notes, for the kinds that need one.
    skip_bad: whether to leave out notes that cannot be read.

    Raises Failure if the store contains the memory itself.
    """
    from memoranda.transfer import moving

    # `agent-files` reads only known folders of other programs below `place`. No home is in them.
    if kind != "agent-files" and _takes_home(memory, place):
        raise Failure(f"{place} holds the memory home itself: {memory.home}")

    # Each kind of store has its own way to be read.
    if kind in EXPORT_KINDS:
        from memoranda.transfer.exports import plan_export

        return plan_export(memory, kind, place, project)
    if kind in STORE_KINDS:
        from memoranda.transfer.agent_stores import STORES
        from memoranda.transfer.exports import plan_export

        return plan_export(memory, kind, place, project, STORES[kind])
    if kind == "agent-memory":
        return moving.plan_agent_memory(memory, place, skip_bad=skip_bad)
    if kind == "mirror":
        return moving.plan_mirror(memory, place)
    if kind == "okf":
        from memoranda.transfer.okf import plan_bundle

        return plan_bundle(memory, place, project)
    if kind == "basic-memory":
        return moving.plan_vault(memory, place, project)
    from memoranda.faces.bank.bank import is_bank_id

    return moving.plan_banks(memory, place, _bank_of_folder, is_bank_id)


def _takes_home(memory: MemorySession, place: Path) -> bool:
    """Whether an import of all files below `place` would also take the files of the memory."""
    home = memory.home.resolve()
    folder = place.resolve()
    if not home.is_relative_to(folder):
        return False
    # Hidden folders are left out.
    return not any(part.startswith(".") for part in home.relative_to(folder).parts)


def _bank_of_folder(folder: Path) -> tuple[str, str]:
    """Return (kind, id) of the memory bank for a plain folder of Markdown files.

    A folder in a repository, such as `memory-bank/`, becomes the bank of the repository. Any other
    folder becomes the bank of a project with the name of the folder.
    """
    from memoranda.faces.bank.bank import find_repository, repository_id

    repository = find_repository(str(folder))
    if repository is not None:
        return "code", repository_id(repository.name)
    folder = folder.resolve()
    # `app/memory-bank` is the bank of `app`.
    plain_name = folder.name.lower().strip("._-").replace("_", "-")
    if plain_name in ("memory-bank", "memorybank"):
        folder = folder.parent
    return "projects", repository_id(folder.name)


def can_be_read_again(place: Path) -> bool:
    """Whether reading what is at `place` leaves it there. Stdin and pipes can be read only once."""
    return place.is_file() or place.is_dir()


def _takes_any_text(kind: str, place: Path) -> bool:
    """Whether a kind takes every text below `place`, so that only its mark shows what it is."""
    from memoranda.transfer.agent_stores import STORE_MARK

    return kind == "anthropic-memory" and place.is_dir() and not (place / STORE_MARK).exists()


def right_command(words: str, place: Path) -> str:
    """Return a sentence with the command that imports what is at `place`.

    words: the result of `words_to_import`.
    """
    return f"This imports it: {shlex.join(['memory', 'import', *words.split(), str(place)])}"


def words_to_import(memory: MemorySession, place: Path) -> str | None:
    """Return the words between `memory import` and a path that import what is there.

    They are `--from KIND`, or nothing for the lines of `memory export`. None for anything else.
    """
    words = _words_of_marked_store(memory, place)
    if words is not None:
        return words
    if any((place / folder).is_dir() for folder in _BANK_FOLDERS):
        return "--from memory-bank"
    if place.is_dir() and any(place.glob("*.md")):
        return "--from basic-memory"
    return None


def _words_of_marked_store(memory: MemorySession, place: Path) -> str | None:
    """Return what `words_to_import` returns, but only for a store that its contents identify."""
    if _has_exported_lines(place):
        return ""
    if place.is_dir() and _has_too_many_files(place):
        return None
    for kind in _RECOGNIZED:
        if _finds_something(memory, kind, place):
            return f"--from {kind}"
    return "--from graph-jsonl" if has_entities(place) else None


def _has_too_many_files(folder: Path) -> bool:
    """Whether a folder, such as a person's whole home folder, takes long to look through."""
    from memoranda.transfer.moving import files_below

    files = files_below(folder, lambda name: True)
    return len(list(islice(files, _MOST_FILES_LOOKED_AT + 1))) > _MOST_FILES_LOOKED_AT


def _finds_something(memory: MemorySession, kind: str, place: Path) -> bool:
    """Whether `import --from KIND` would find notes at `place`."""
    try:
        plan = _plan(memory, kind, place, memory.default_project, skip_bad=True)
    # A folder that one of the readers cannot look through, such as a very deep one, is not its store.
    except (MemorandaError, OSError, RecursionError):
        return False
    return bool(plan.items) or plan.unchanged > 0


def _has_exported_lines(file: Path) -> bool:
    """Whether the first line of a file is one of `memory export`."""
    try:
        with file.open("rb") as stream:
            row = json.loads(stream.readline())
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(row, dict):
        return False
    is_memory = {"id", "content_hash", "phase"} <= row.keys()
    is_note = {"project", "path", "header"} <= row.keys()
    return is_memory or is_note


def has_entities(file: Path) -> bool:
    """Whether a file has the lines of a knowledge graph."""
    from memoranda.engine.graph import parse_graph

    try:
        text = file.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return False
    return bool(parse_graph(text).entities)
