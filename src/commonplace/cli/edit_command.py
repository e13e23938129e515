"""`edit`: a note in the person's own editor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.cli.invocation import Invocation
from commonplace.cli.memory_commands import any_note, place_of
from commonplace.cli.output import Failure
from commonplace.cli.syntax import command
from commonplace.errors import CommonplaceError, Conflict, Locked, NotFound

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.note.model import Note

_EDITORS = ("sensible-editor", "editor", "nano", "vi")


@command("edit", "REF", keys=("id", "path", "changed"), example="memory edit 5a1f")
def edit(call: Invocation, ref: str) -> None:
    """Edit a note of any project in your editor.

    The editor is VISUAL, else EDITOR, e.g. "code --wait". REF is an id, a path as `log` shows it, a permalink or a
    title. A text you left as it was is not written. When another program changed the note meanwhile, nothing is
    written and your text is kept in a file.
    """
    command = _editor()
    with call.memory() as memory:
        info = any_note(memory, ref)
        if info.locked:
            raise Locked(info.permalink)
        note = memory.read(info, count=False)
        file = _draft(memory, note)
    before = file.read_bytes()
    try:
        try:  # its output never mixes with the JSON document
            ended = subprocess.run([*command, str(file)], check=False, stdout=2 if call.json else None).returncode
        except OSError as error:
            why = f"cannot run {command[0]}: {error.strerror}; set EDITOR to another editor"
            raise Failure(why) from None
        after = file.read_bytes() if file.exists() else before
        if ended:
            done = "nothing was changed" if after == before else "nothing was written"
            raise Failure(f"{command[0]} ended with status {ended}; {done}")
        if after == before:
            shutil.rmtree(file.parent, ignore_errors=True)
            return call.answer("Nothing changed.", id=note.id, path=place_of(note), changed=False)
        with call.memory() as memory:
            written = _store(memory, note, after)
    except CommonplaceError as error:
        if not file.exists() or file.read_bytes() == before:
            shutil.rmtree(file.parent, ignore_errors=True)
            raise
        said = str(error).rstrip(".")
        if isinstance(error, (Conflict, NotFound)):
            what = "changed" if isinstance(error, Conflict) else "was moved or deleted"
            said = f"{place_of(note)} {what} while you edited it; nothing was written"
        raise Failure(f"{said}. Your text is in {file}", error.code) from None
    shutil.rmtree(file.parent, ignore_errors=True)
    call.answer(f"Edited {place_of(written)}", id=written.id, path=place_of(written), changed=True)


def _editor() -> list[str]:
    """The command of the person's editor. Raises Failure when there is none."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    try:
        command = shlex.split(chosen or next(filter(shutil.which, _EDITORS), ""))
    except ValueError as error:
        raise Failure(f"the editor {chosen} cannot be run: {error}") from None
    if not command:
        raise Failure("no editor found: set EDITOR, e.g. to nano")
    return command


def _draft(memory: Memory, note: Note) -> Path:
    """A file with the note's text for the editor, in the home, so that it outlives a crash of the machine."""
    from commonplace.store.layout import Layout

    folder = Layout(memory.home).edits
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        inner = tempfile.mkdtemp(prefix="", dir=folder)
        file = Path(inner, Path(note.path).name)
        file.write_bytes(note.text.encode("utf-8", "surrogatepass"))
        file.chmod(0o600)
    except OSError as error:
        raise Failure(f"cannot write a file for the editor: {error.strerror}", "storage") from None
    return file


def _store(memory: Memory, note: Note, data: bytes) -> Note:
    """Write what the person made of the note. Raises Conflict when the note is no longer as it was read."""
    from commonplace.note.edit import Rewrite

    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Failure("the text is not valid UTF-8; nothing was written", "not_text") from None
    if not text.strip():
        raise Failure("the text is empty; nothing was written. To remove the note: memory delete") from None
    return memory.edit((note.project, note.path), Rewrite(text), checksum=note.checksum).note
