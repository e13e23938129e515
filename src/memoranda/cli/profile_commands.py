"""The command `profile`: what the memory knows about the person, which each session is told first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memoranda.cli.invocation import Invocation
from memoranda.cli.rows import limit_option
from memoranda.cli.syntax import command
from memoranda.documents import validity
from memoranda.documents.wording import kind, origin
from memoranda.engine.contents import home_path
from memoranda.engine.reading import ReadVerbs
from memoranda.engine.telling.contested import newer_marks
from memoranda.engine.telling.profile import PINNED, ProfileEntry
from memoranda.engine.telling.profile import profile as entries_about_person
from memoranda.index.rows import NoteInfo
from memoranda.text.unicode import one_line

_KEYS = ("id", "path", "title", "why", "by", "confirmed", "text")
_ROW = "{:<8} {:<12} {:<12} {}"
# More than any profile has.
_NO_LIMIT = 1 << 30


@command("profile", keys={"entries": _KEYS}, example="memory profile")
@limit_option(30)
def profile_(call: Invocation, *, limit: int) -> None:
    """Show what each session of an agent is told about you at its start.

    These are pinned notes, the category preferences, /memories/user and the files directly in
    /memories, the `- [preference]` lines of all notes, key-value entries that never expire, and the
    entity of the graph that is you. Notes of agents are unconfirmed until you pin them.
    """
    with call.memory() as memory:
        entries = entries_about_person(memory, limit or _NO_LIMIT)
        newer = newer_marks(memory, [entry.info for entry in entries])
        moved = {entry.info.row: _moved(memory, entry.info) for entry in entries}
    if call.json:
        documents = [
            _document(entry) | moved[entry.info.row] | validity(newer, entry.info)
            for entry in entries
        ]
        return call.document(entries=documents)
    if not entries:
        hint = 'memory write "prefers dark mode" --category preferences'
        return call.answer(f"Nothing is known about you yet. For example: {hint}")
    call.table(("ID", "Category", "By", "Text"), _rows(entries, newer, moved), form=_ROW)


def _moved(memory: ReadVerbs, info: NoteInfo) -> dict[str, str]:
    """Return the remark, for `--json`, that an agent moved a note of the owner, or {}."""
    marks = memory.name_marks(info)
    return {"moved": marks[0].words} if marks else {}


def _rows(
    entries: Sequence[ProfileEntry],
    newer: Mapping[int, str],
    moved: Mapping[int, Mapping[str, str]],
) -> list[tuple[str, str, str, str]]:
    """Return the cells of each entry: id, kind, writer, and the text in one line with its marks.

    newer: what a newer note says instead, by the row of the entry's note.
    moved: the remark that an agent moved the note (`_moved`), by row.
    """
    rows: list[tuple[str, str, str, str]] = []
    for entry in entries:
        text = entry.text.strip()
        title = entry.info.title
        is_memory = entry.info.phase is not None
        # A memory has no title. The text of another note may begin with its title as a heading.
        is_titled = not is_memory and not text.lstrip("# ").startswith(title)
        if is_titled:
            text = f"{title}: {text}"
        mark = ""
        if not entry.is_confirmed:
            mark = "(unconfirmed) "
        elif entry.why == PINNED:
            mark = "(pinned) "
        if is_titled and moved[entry.info.row]:
            mark += f"({moved[entry.info.row]['moved']}) "
        if entry.info.row in newer:
            mark += f"({newer[entry.info.row]}) "
        rows.append((entry.info.id[:8], kind(entry.info), _writer(entry), mark + one_line(text)))
    return rows


def _writer(entry: ProfileEntry) -> str:
    """Return who wrote an entry. For a note that is not a memory, its source comes first."""
    if entry.info.phase is None:
        return origin(entry.info)
    return entry.info.provenance.writer


def _document(entry: ProfileEntry) -> dict[str, object]:
    """Return an entry of the profile as data for `--json`."""
    return {
        "id": entry.info.id,
        "path": home_path(entry.info),
        "title": entry.info.title,
        "why": entry.why,
        "by": _writer(entry),
        "confirmed": entry.is_confirmed,
        "text": entry.text,
    }
