"""How people write notes in a folder in which they also use another program.

New notes follow these habits. The habits are found in two places: in the notes of the folder (which
header keys they have), and in the settings of the other programs (`sources/conventions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memoranda.engine.reading import ReadVerbs
from memoranda.note.inline import listed_tags
from memoranda.sources.conventions import Conventions, daily_path
from memoranda.sources.folder import FolderSource
from memoranda.text.pattern import lazy_pattern

# How many notes are looked at, to find the header keys that are a habit.
_SAMPLE_NOTES = 200
# A header key is a habit if at least this part of the notes has it.
_SHARE = 0.25
# A title that is a day: such a note belongs to the folder of daily notes.
_DAY = lazy_pattern(r"(\d{4})-(\d{2})-(\d{2})")
# A tag that Obsidian and Logseq can read in a line of text.
_INLINE_TAG = lazy_pattern(r"[^\s#,.;:!?()\[\]{}'\"]+")
_LOGSEQ = "Logseq"
_BASIC_MEMORY = "Basic Memory"


class Habits(NamedTuple):
    """The habits of a folder.

    keys: the header keys that notes of the folder usually have.
    conventions: the settings of the other programs.
    """

    keys: frozenset[str]
    conventions: Conventions

    @property
    def has_headers(self) -> bool:
        """Whether notes of the folder usually have a header."""
        return bool(self.keys)


def habits_of(session: ReadVerbs, project: str) -> Habits | None:
    """Return how people write notes in a folder of another program, so that we write like them.

    None for the projects of memoranda and of Basic Memory. None for an empty folder in which no
    known program is used.
    """
    source = session.engine.source(project)
    if not isinstance(source, FolderSource) or source.name in session.engine.layout.built_in:
        return None
    conventions = source.conventions
    if _BASIC_MEMORY in conventions.programs:
        return None
    sample_size, counts = session.index.notes.header_keys(source.name, _SAMPLE_NOTES)
    if not sample_size and not conventions.programs:
        return None
    # A key is usual if enough of the notes in the sample have it.
    least_count = _SHARE * sample_size
    usual_keys = frozenset(key for key, count in counts.items() if count >= least_count)
    return Habits(usual_keys, conventions)


def usual_folder(session: ReadVerbs, project: str) -> str:
    """Return the folder for a new note if the caller names none. "" is the project's top folder.

    If the owner has set a folder in which agents write, an agent gets this folder. Otherwise it is
    the folder in the settings of the other program.
    """
    source = session.engine.source(project)
    if not isinstance(source, FolderSource):
        return ""
    write_folder = session.engine.access_to(source.name).write_folder
    if write_folder and not session.is_owner:
        return write_folder
    folder = source.conventions.new_notes
    if source.rules.reason(folder, is_folder=True):
        return ""
    return folder


def usual_place_of_day(session: ReadVerbs, project: str, title: str) -> tuple[str, str] | None:
    """Return the folder and the file name without extension for the note of a day.

    For example, `2026-11-28` may give `("daily", "2026-11-28")`. None if `title` is not a day, or
    if the other program has no notes of days.
    """
    source = session.engine.source(project)
    match = _DAY.fullmatch(title.strip())
    if match is None or not isinstance(source, FolderSource):
        return None
    try:
        path = daily_path(source.conventions, int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None
    folder, _, name = path.rpartition("/")
    if not name:
        return None
    return folder, name


def with_tags(text: str, tags: Sequence[str], habits: Habits) -> tuple[str, Sequence[str]]:
    """Write tags into the text of a note, if notes of the folder have no headers.

    For Logseq, a first line `tags:: tea, work` is added. For other programs, a last line `#tea
    #work` is added.

    habits: the habits of the folder.

    Returns the text, and the tags that still have to be written into a header.
    """
    if habits.has_headers or not tags or text.startswith("---"):
        return text, tags
    if _LOGSEQ in habits.conventions.programs:
        line = f"tags:: {', '.join(tags)}"
        return f"{line}\n\n{text}", ()
    are_writable = all(_INLINE_TAG.fullmatch(tag) for tag in tags)
    has_tags_already = listed_tags(text) == list(tags)
    if not are_writable or has_tags_already:
        return text, tags
    line = " ".join(f"#{tag}" for tag in tags)
    return f"{text.rstrip()}\n\n{line}\n", ()
