"""The commands `write`, `supersede`, `read`, `delete`, `tag`, `link`, `unlink`, `resolve-links`
(contract 001, 3 and 4), and `edit`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda import documents
from memoranda.cli import output
from memoranda.cli.invocation import Invocation, text_from
from memoranda.cli.output import Failure, error_sentence, remedy
from memoranda.cli.syntax import Names, Text, command, flag, option
from memoranda.clock import to_utc
from memoranda.documents.wording import day, place, whole_note
from memoranda.engine.contents import home_path
from memoranda.errors import Conflict, Locked, MemorandaError, NotFound, TimeframeError
from memoranda.note.model import (
    ARCHIVE_PROJECT,
    CATEGORIES,
    CATEGORY_PROJECT,
    GLOBAL,
    INBOX,
    MEMORY_PROJECTS,
    NOT_UTF8_CODE,
    UTF16_CODE,
    Draft,
    warning_text,
)
from memoranda.note.names import Looseness
from memoranda.query import check_memory, split_list
from memoranda.text.pattern import lazy_pattern

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.note_session import NoteSession
    from memoranda.engine.read_session import ReadSession
    from memoranda.engine.reading import ReadVerbs
    from memoranda.index.rows import NoteInfo
    from memoranda.note.model import Note

# An argument that can only be the id or the address of a note, and not a text.
_REFERENCE = lazy_pattern(
    r"(?=.*[0-9/])(?:memory://\S+|[0-9a-fA-F][0-9a-fA-F-]{3,35}|[^\s:]+/[^\s:]+)"
)
# The keys of a JSON document that name a note.
_PLACE_KEYS = ("id", "project", "path")
# The file descriptor of stderr.
_STDERR = 2
# The editors to try if neither VISUAL nor EDITOR is set.
_EDITORS = ("sensible-editor", "editor", "nano", "vi")
_CATEGORIES_HELP = f"One of {', '.join(CATEGORIES)}."


def category_option(help: str = _CATEGORIES_HELP) -> Callable[..., Any]:
    """Return the option `--category`."""
    return option("--category", type=Names("category", lambda _: CATEGORIES), help=help)


def tags_option(help: str) -> Callable[..., Any]:
    """Return the option `--tags`, whose value is a list separated by commas."""
    return option(
        "--tags",
        type=Names("A,B", "tag"),
        callback=lambda _, __, value: split_list(value),
        help=help,
    )


scope_option = option("--scope", type=Names("text", "scope"), help="global or agent:NAME.")
as_of_option = option(
    "--as-of",
    metavar="DATE",
    help="Show what was valid at this date, e.g. 2025-03-01, 2025-03, yesterday.",
)


def new_memory_options(function: Any) -> Any:
    """Add the options `--tags`, `--scope` and `--source` of a new memory to a command."""
    source = option("--source", default="manual", help="Where the memory comes from.")
    scope = option(
        "--scope", type=Names("text", "scope"), default=GLOBAL, help="global or agent:NAME."
    )
    return tags_option("Tags, separated by commas.")(scope(source(function)))


def content_from(words: tuple[str, ...], **fields: Text) -> str:
    """Return the content of a new memory: the words joined by blanks, or stdin for `-`.

    fields: other fields of the memory, such as `category`, which are checked first.

    Raises Failure if the content is blank, and InvalidInput for a field that is not valid.
    """
    check_memory(**fields)
    text = text_from(words)
    if not text.strip():
        raise Failure("content must not be empty")
    return text


@command(
    "write",
    "CONTENT...",
    keys=("memory",),
    now=True,
    example="memory write The staging server is called heron",
)
@category_option()
@new_memory_options
@option("--valid-from", metavar="DATE", help="Date from which this is true [its date, or now].")
@option("--valid-until", metavar="DATE", help="Date from which this is no longer true.")
def write(call: Invocation, *words: str, category: Text, **note_options: Any) -> None:
    """Store a memory in the inbox, or in the category you name.

    The words of CONTENT are joined by blanks; `-` reads the text from stdin.
    """
    text = content_from(words, category=category, scope=note_options["scope"])
    with call.changing() as memory:
        note = memory.write(Draft(text, CATEGORY_PROJECT, category=category, **note_options))
        kind = "inbox" if note.phase == INBOX else f"{note.category}/organized"
        lines = [f"Created {kind} memory: {note.id}"]
        if note.expires is not None and output.is_terminal():
            lines.append(_expiry_hint(memory, note.expires, note.source))
        call.answer("\n".join(lines), memory=documents.note(memory, note, note.content))
        _show_contradiction(memory, note)


def _expiry_hint(memory: NoteSession, expires: datetime, source: str | None) -> str:
    """Return a sentence that tells when a new memory will be archived, and how to keep it.

    The memory is in the inbox, where it has not been sorted yet.

    expires: when the memory expires.
    source: the source of the memory, such as `manual`.
    """
    end = day(expires, memory.settings.zone)
    # The daemon never archives a memory that the owner wrote by hand (contract 001, 18.4).
    if memory.agent is None and source == "manual":
        return (
            f"memory consolidate archives it after {end} unless it is sorted or pinned;"
            " memory serve never."
        )
    reads = memory.settings.upgrade_access_threshold
    return f"Archived after {end} unless it is read {reads} times, sorted or pinned before."


def _show_contradiction(memory: NoteSession, note: Note) -> None:
    """If the new note contradicts an older one, tell the person on stderr.

    The line also has the command that marks the older note as replaced.
    """
    from memoranda.engine.telling.contested import contradicted_by, remark_on_older

    contradiction = contradicted_by(memory, note.project, note.path)
    if contradiction is None:
        return
    remedy = f"memory supersede {contradiction.old.info.id[:8]} {note.id[:8]}"
    output.notice(f"{remark_on_older(memory, contradiction)} If it holds no more: {remedy}")


def _replacement_draft(old: NoteInfo, content: str) -> Draft:
    """Return the draft of a note that replaces another one. It gets the same folder or category."""
    if old.project in MEMORY_PROJECTS:
        # The new text is valid even if the old memory is archived, so it does not go to the archive.
        return Draft(
            content, CATEGORY_PROJECT, category=old.category, scope=old.scope, tags=old.tags
        )
    folder = old.path.rpartition("/")[0]
    return Draft(content, old.project, folder=folder, type=old.type, scope=old.scope, tags=old.tags)


@command(
    "supersede",
    "OLD",
    "NEW...",
    keys={"old": _PLACE_KEYS, "new": _PLACE_KEYS},
    now=True,
    example="memory supersede 5a1f The staging server is called egret",
)
@option("--valid-from", metavar="DATE", help="Date from which NEW is true [its date, or now].")
def supersede(call: Invocation, ref: str, *words: str, valid_from: Text) -> None:
    """Mark OLD as replaced by NEW; OLD can still be read.

    NEW is the id of a memory, an address with a slash, or the text of a new memory. A new memory
    gets the category, the scope and the tags of OLD. `-` reads the text from stdin.
    """
    with call.changing() as memory:
        old = memory.find_any(ref, looseness=Looseness.CASE)
        # The replacement is an existing note, or the draft of a new one.
        new: NoteInfo | Draft
        if len(words) == 1 and _REFERENCE.fullmatch(words[0]):
            new = memory.find_any(words[0], looseness=Looseness.CASE)
        else:
            new = _replacement_draft(old, content_from(words))
        old_note, new_note = memory.supersede(old, new, valid_from=valid_from)
        end = old_note.header["valid_until"]
        call.answer(
            f"{new_note.id} supersedes {old_note.id[:8]}, valid until {end}",
            old={key: getattr(old_note, key) for key in _PLACE_KEYS},
            new={key: getattr(new_note, key) for key in _PLACE_KEYS},
        )


@command("read", "ID...", keys=("memory", "provenance"), example="memory read 5a1f notes/Plan.md")
@as_of_option
@option("--at", metavar="CHANGE|TIME", help="Show the text after this change, or at this time.")
def read(call: Invocation, *refs: str, as_of: Text, at: Text) -> None:
    """Show a note. This counts as one access.

    ID is the id of a memory, or names a note of any project: by a path as `log` shows it, a
    permalink, a title or an address. In JSON, a memory is under the key `memory`, and another note
    under `note`. If you name several notes, they are shown one below the other, and JSON has the
    list `results`.
    """
    if at is not None:
        return _read_at(call, refs, at)
    with call.reading() as memory:
        infos = [memory.find_any(ref) for ref in refs]
        moment = as_of_moment(memory, as_of)
        if moment is not None:
            infos = [memory.version_at(info, moment) for info in infos]
        texts = []
        rows = []
        for info in infos:
            # A note of another project stays a note when it is archived.
            is_memory = info.project in MEMORY_PROJECTS and not info.header.get("archived_from")
            session = _session_to_read(memory, info)
            document = documents.read_note(session, info, is_named=not is_memory)
            key = "memory" if is_memory else "note"
            rows.append({key: document, "provenance": info.provenance.row()})
            if not call.json:
                texts.append(whole_note(document, memory.settings.zone))
        output.warnings([line for info in infos for line in _encoding_warnings(info)])
        call.answer_each(texts, rows, "\n\n")


def _encoding_warnings(info: NoteInfo) -> list[str]:
    """Return what to say of a file that is not UTF-8 text. Empty for any other note."""
    complaints = [warning_text(info.warnings, code) for code in (NOT_UTF8_CODE, UTF16_CODE)]
    return [f"{place(info)}: {complaint}" for complaint in complaints if complaint is not None]


def _session_to_read(memory: ReadSession, info: NoteInfo) -> ReadVerbs:
    """Return a session that can read a note.

    Reading an archived memory needs a session that can write, because it brings the memory back.
    """
    if info.project != ARCHIVE_PROJECT:
        return memory
    from memoranda.engine.memory import as_writer

    return as_writer(memory)


def _read_at(call: Invocation, refs: tuple[str, ...], at: str) -> None:
    """Show whole texts of notes as they were at an earlier time. This does not count as access.

    at: the value of `--at`: a time, or the number of a change, after which the texts are shown.
    """
    from memoranda.cli.older_texts import is_number, text_at

    with call.memory() as memory:
        moment = None if is_number(at) else _moment_of_at(memory, at)
        rows = []
        for ref in refs:
            # Of a deleted note, only the log knows the path, so `ref` itself is looked up there.
            note_place = ref
            with suppress(MemorandaError):
                note_place = place(memory.find_any(ref))
            rows.append({"ref": ref, "at": at, "text": text_at(memory, note_place, at, moment)})
        call.answer_each([row["text"].rstrip("\n") for row in rows], rows, "\n\n")


def _moment_of_at(memory: MemorySession, time_text: str) -> datetime:
    """Read a time that a person typed, such as `2026-05-07T10:00`, `yesterday` or `7d`.

    time_text: the text that the person typed.

    Raises Failure.
    """
    try:
        return to_utc(datetime.fromisoformat(time_text.strip()), memory.settings.zone)
    except (ValueError, OverflowError):
        hint = "Use the number of a change, 2026-05-07T10:00, yesterday or 7d."
        return moment_of(memory.as_of, time_text, "--at time", hint)


def as_of_moment(memory: ReadVerbs, text: Text) -> datetime | None:
    """Read the value of the option `--as-of` as a time. None if the option was not given.

    Raises Failure if the value is not a time.
    """
    if text is None:
        return None
    hint = "Use e.g. 2025-03-01, 2025-03 or yesterday."
    return moment_of(memory.as_of, text, "--as-of date", hint)


def moment_of(read_time: Callable[[str], datetime], text: str, name: str, hint: str) -> datetime:
    """Return the time that the value of an option means.

    read_time: reads the value, and raises TimeframeError for a value that is not a time.
    name: the option, for the error.
    hint: examples of times, for the error.

    Raises Failure.
    """
    try:
        return read_time(text)
    except TimeframeError:
        raise Failure(f'invalid {name}: "{text}"', TimeframeError.code, hint) from None


@command("delete", "ID...", keys=("id", "path"), example="memory delete 5a1f 77c2")
@flag("--dry-run", "Only say what would be deleted.")
def delete(call: Invocation, *refs: str, dry_run: bool) -> None:
    """Delete a note of any project. `memory undo` brings it back.

    ID may also be the exact name of a note, with the same capital letters. If you name several
    notes, all of them are deleted as one change, or none is. JSON then has the list `results`.
    """
    with call.changing() as memory:
        infos = notes_named(memory, refs, looseness=Looseness.EXACT)
        if not dry_run:
            memory.delete(*infos)
        verb = "Would delete" if dry_run else "Deleted"
        rows = [{"id": info.id, "path": home_path(info)} for info in infos]
        call.answer_each([f"{verb} {_label_of(info)}" for info in infos], rows)


def _label_of(info: NoteInfo) -> str:
    """Return how `delete` names a note: by its id if it is a memory, else by its place."""
    if info.project in MEMORY_PROJECTS:
        return f"memory: {info.id}"
    return f"note: {place(info)}"


def notes_named(
    memory: ReadVerbs, refs: Iterable[str], *, looseness: Looseness = Looseness.CASE
) -> list[NoteInfo]:
    """Return the notes of any project that these references name, each once.

    looseness: how exactly a reference must match the name of a note.

    Raises NotFound, Ambiguous.
    """
    infos = [memory.find_any(ref, looseness=looseness) for ref in refs]
    return list({info.row: info for info in infos}.values())


@command("tag", "ID...", keys=("id", "tags"), example="memory tag 5a1f --add infra,naming")
@option("--add", type=Names("A,B", "tag"), help="Tags to add.")
@option("--remove", type=Names("A,B", "tag"), help="Tags to remove.")
def tag(call: Invocation, *refs: str, add: str | None, remove: str | None) -> None:
    """Add tags to a note of any project, or remove them.

    If you name several notes, all of them are tagged as one change, or none is. JSON then has the
    list `results`.
    """
    with call.changing() as memory:
        try:
            infos = notes_named(memory, refs)
        except NotFound as error:
            # `memory tag 5a1f infra`: the first word names a note, so the person probably meant
            # `--add infra`.
            has_tags_as_words = len(refs) > 1 and error.identifier != refs[0]
            if add or remove or not has_tags_as_words:
                raise
            guess = f"--add {','.join(refs[1:])}"
            raise Failure(output.error_sentence(error), error.code, guesses=[guess]) from None
        notes = memory.tag_many(infos, split_list(add), split_list(remove))
        texts = [f"Tags of {note.id[:8]}: [{' '.join(note.tags)}]" for note in notes]
        call.answer_each(texts, [{"id": note.id, "tags": list(note.tags)} for note in notes])


@command("link", "A", "B", keys=("source", "target", "changed"), example="memory link 5a1f 77c2")
def link(call: Invocation, a: str, b: str) -> None:
    """Link two memories in both directions; between other notes, add a relation.

    A and B are ids of memories. They can also name a note of any project by its path as `log` shows
    it, its permalink, its title or its address.
    """
    _change_links(call, "Linked", a, b)


@command(
    "unlink", "A", "B", keys=("source", "target", "changed"), example="memory unlink 5a1f 77c2"
)
def unlink(call: Invocation, a: str, b: str) -> None:
    """Remove the links between two memories in both directions."""
    _change_links(call, "Unlinked", a, b)


def _change_links(call: Invocation, verb: str, *refs: str) -> None:
    """Link or unlink two notes.

    verb: `Linked` links them, `Unlinked` removes their links.
    refs: the two notes.

    Raises Failure if a note does not exist, or if both are the same note.
    """
    ends: list[NoteInfo] = []
    with call.changing() as memory:
        for name, ref in zip(("source", "target"), refs, strict=True):
            try:
                ends.append(memory.find_any(ref, looseness=Looseness.CASE))
            except NotFound as error:
                message = f"{name} not found: {error_sentence(error)}"
                raise Failure(message, error.code, remedy(error)) from None
        source, target = ends
        if source.row == target.row:
            raise Failure("cannot link a memory to itself")
        change_links = memory.link if verb == "Linked" else memory.unlink
        changed = change_links(source, target)
        if {source.project, target.project} <= {*MEMORY_PROJECTS}:
            text = f"{verb} {source.id[:8]} <-> {target.id[:8]}"
        else:
            text = f"{verb} {place(source)} -> {place(target)}"
        call.answer(text, source=source.id, target=target.id, changed=changed)


@command(
    "resolve-links",
    keys={"resolved": (), "links_added": (), "unresolved": ("id", "target")},
    example="memory resolve-links --dry-run",
)
@flag("--dry-run", "Only say what would be linked.")
def resolve_links(call: Invocation, *, dry_run: bool) -> None:
    """Turn [[wikilinks]] in the text of memories into links."""
    with call.changing() as memory:
        outcome = memory.resolve_links(dry_run)
        text = f"Resolved backlinks for {outcome.resolved} memories"
        if dry_run:
            text = "\n".join(
                f"would link {action.source[:8]} {action.reason}" for action in outcome.actions
            )
        unresolved = [{"id": source, "target": target} for source, target in outcome.unresolved]
        call.answer(
            text or "Nothing to link.",
            resolved=outcome.resolved,
            links_added=outcome.added,
            unresolved=unresolved,
        )


@command("edit", "REF", keys=("id", "path", "changed"), example="memory edit 5a1f")
def edit(call: Invocation, ref: str) -> None:
    """Edit a note of any project in your editor.

    The editor is VISUAL or EDITOR, e.g. "code --wait". REF is an id, a path as `log` shows it, a
    permalink or a title. An unchanged text is not written. If another program changed the note in
    the meantime, nothing is written and your text is kept in a file.
    """
    import shutil

    from memoranda.note.edit import Rewrite

    editor_command = _editor_command()
    with call.changing() as memory:
        info = memory.find_any(ref, looseness=Looseness.CASE)
        if info.locked:
            raise Locked(info.permalink)
        note = memory.read(info, count=False)
        file = _file_for_editor(memory, note)
    before = file.read_bytes()
    try:
        after = _bytes_from_editor(editor_command, file, before, as_json=call.json)
        if after == before:
            shutil.rmtree(file.parent, ignore_errors=True)
            return call.answer("Nothing changed.", id=note.id, path=place(note), changed=False)
        text = _text_of(after)
        # The settings may have changed while the editor was open. Without the cached value, they
        # are read again.
        del call.settings
        with call.memory() as memory:
            place_of_note = (note.project, note.path)
            written = memory.edit(place_of_note, Rewrite(text), checksum=note.checksum).note
    except MemorandaError as error:
        # The person's text is kept, but an unchanged draft is not.
        if not file.exists() or file.read_bytes() == before:
            shutil.rmtree(file.parent, ignore_errors=True)
            raise
        problem = _problem_of_edit(error, note)
        raise Failure(f"{problem}. Your text is in {file}", error.code) from None
    shutil.rmtree(file.parent, ignore_errors=True)
    call.answer(f"Edited {place(written)}", id=written.id, path=place(written), changed=True)


def _problem_of_edit(error: MemorandaError, note: Note) -> str:
    """Return why an edited text could not be written, without the period at the end."""
    if isinstance(error, Conflict):
        return f"{place(note)} changed while you edited it; nothing was written"
    if isinstance(error, NotFound):
        return f"{place(note)} was moved or deleted while you edited it; nothing was written"
    return str(error).rstrip(".")


def _bytes_from_editor(command: list[str], file: Path, before: bytes, *, as_json: bool) -> bytes:
    """Run an editor on a file, and return the bytes of the file afterwards.

    command: the command line of the editor, without the file.
    before: the bytes of the file now.
    as_json: whether stdout is for a JSON document. Then the editor writes to stderr.

    Raises Failure if the editor cannot be run, or if it fails.
    """
    import subprocess

    stdout = _STDERR if as_json else None
    try:
        status = subprocess.run([*command, str(file)], check=False, stdout=stdout).returncode
    except OSError as error:
        raise Failure(
            f"cannot run {command[0]}: {error.strerror}; set EDITOR to another editor"
        ) from None
    # The editor may have removed the file.
    after = file.read_bytes() if file.exists() else before
    if status:
        consequence = "nothing was changed" if after == before else "nothing was written"
        raise Failure(f"{command[0]} ended with status {status}; {consequence}")
    return after


def _text_of(data: bytes) -> str:
    """Decode the text that a person wrote. Raises Failure if it is not UTF-8, or is blank."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Failure("the text is not valid UTF-8; nothing was written", "not_text") from None
    if not text.strip():
        raise Failure("the text is empty; nothing was written. To remove the note: memory delete")
    return text


def _editor_command() -> list[str]:
    """Return the command line of the person's editor. Raises Failure if no editor is found."""
    import shlex
    import shutil

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        installed_editors = [name for name in _EDITORS if shutil.which(name)]
        editor = installed_editors[0] if installed_editors else ""
    try:
        command = shlex.split(editor)
    except ValueError as error:
        raise Failure(f"the editor {editor} cannot be run: {error}") from None
    if not command:
        raise Failure("no editor found: set EDITOR, e.g. to nano")
    return command


def _file_for_editor(memory: NoteSession, note: Note) -> Path:
    """Make a file with the text of a note for the editor, and return its path. Raises Failure.

    The file is in the home, so that the text survives a crash of the machine.
    """
    import tempfile

    from memoranda.sources.layout import Layout

    folder = Layout(memory.home).edits
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        # In a separate folder, the file can have the name of the note.
        own_folder = tempfile.mkdtemp(prefix="", dir=folder)
        file = Path(own_folder, Path(note.path).name)
        file.write_bytes(note.text.encode("utf-8", "surrogatepass"))
        file.chmod(0o600)
    except OSError as error:
        raise Failure(f"cannot write a file for the editor: {error.strerror}", "storage") from None
    return file
