"""Every error memoranda raises, on one page.

MemorandaError            code           exit
├── InvalidInput            invalid        1    an argument is of the wrong kind or value
│   ├── TimeframeError      timeframe      1    a time frame nobody can read
│   ├── TimeRefused         invalid_time   1   a reminder's text without one time ahead (contract
001, 8)
│   │   ├── AmbiguousTime   ambiguous_time 1   several times, or one with a part missing
│   │   ├── PastTime        past_time      1
│   │   ├── NoTime          no_time        1
│   │   ├── InvalidTime     invalid_time   1   a time that does not exist, or repeats too often
│   │   └── VagueTime       vague_time     1
│   ├── SecretRefused       invalid        1    a text that holds what looks like a secret
(docs/gate.md)
│   ├── LineOutOfRange      invalid        1    a line number the file does not have
│   ├── ReadOnlyProject     invalid        1    a note that is an entity of a graph file
│   └── NotWritable         invalid        1    a change that the owner of a project has not allowed
├── NotFound                not_found      1    no such note (or none the caller may see)
│   ├── NotInHistory        not_found      1    no older text of it is kept
│   └── NothingToReplace    not_found      1    a checksum was given for a note there is not
├── Ambiguous               ambiguous      1    one name, several notes
├── Exists                  exists         1    the destination is taken
│   └── Taken               exists         1    by what the caller may not replace
├── Unusable                unusable       1    a path that cannot be used, for reasons the caller
may not know
├── Conflict                conflict       1    the note changed since it was read
├── CountMismatch           count          1    find_text occurs another number of times
├── SectionError            section        1    a heading is missing or stands twice
├── OutsideError            outside        1    a path that leaves its project
├── Locked                  locked         1    the owner locked the note
├── ProjectNotFound         project_not_found  1
│   └── ProjectOutOfReach project_not_found 1 one of our own, which the caller's access leaves out
├── ProjectRefused          project_refused    1    a folder that cannot be a project
│   ├── NotAFolder          project_refused    1
│   └── ProjectOverlaps     project_refused    1    it is in another project, or holds one
├── NotText                 not_text       1    a file that is not UTF-8
├── StorageError            storage        1    the disk said no: full, read-only, permission
│   ├── Busy            busy           1    somebody else has the lock; call again
│   └── DatabaseRefused storage        1    the database of the notes said no
│       └── DatabaseAway storage       1    it cannot be reached
├── OutcomeUnknown          unknown_outcome 1   the connection was lost in the middle of a commit
├── AgentPaused             paused         1    the owner paused the agent
├── LimitExceeded           limit          1    a note too large, or more than an agent may write in
a day
├── CannotUndo              cannot_undo    1    a later change is in the way
└── ConfigError             config         1    the configuration cannot be used
    └── ConfigFileError     config         1    a file of it, or one setting of the file

Each carries a sentence that names the thing and the remedy, and the values a face
needs to say it in its own words. Codes: contract 000b, section 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Advice(NamedTuple):
    """The end of an error's sentence, which sends a reader with tools to one of them.

    text: the advice, with the blank or sign before it.
    tools: the note tools that it names.
    otherwise: the end of the sentence for a reader without these tools.
    """

    text: str
    tools: tuple[str, ...]
    otherwise: str = ""


class MemorandaError(Exception):
    """Base of all: `code` is stable, `exit_code` is the command's, `str()` the sentence."""

    code = "error"
    exit_code = 1
    hint = ""
    """Lines for a person to read under the sentence: near misses, the values there are."""
    advice: Advice | None = None
    """The end of the sentence, if it names tools."""

    def __init__(self, message: str, hint: str = "", advice: Advice | None = None):
        if advice is None:
            super().__init__(message)
        else:
            super().__init__(message + advice.text)
        self.advice = advice
        if hint:
            self.hint = hint


STAND_IN = "@basic-memory"
"""Ends our name of a project of another program whose own name is taken here."""


def project_title(name: str) -> str:
    """Return the name of a project as people read it.

    >>> project_title("memories@basic-memory")
    'memories'
    """
    return name.removesuffix(STAND_IN)


def near(word: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return up to `most` names that are similar to a misspelled word, the most similar first."""
    # Imported late: it takes 4 ms, and only errors need it.
    from difflib import get_close_matches

    names_by_lower = {name.lower(): name for name in names}
    matches = get_close_matches(word.lower(), list(names_by_lower), most)
    return [names_by_lower[match] for match in matches]


def choices(word: str, names: Iterable[str], opening: str = "One of") -> str:
    """Return the hint for a value that is not one of `names`: the most similar, and all names.

    For example, `Did you mean notes? One of: notes, work.`

    opening: the words before the names.
    """
    names = list(names)
    hint = ""
    guesses = near(word, names, 1)
    if guesses:
        hint += f"Did you mean {guesses[0]}? "
    if names:
        hint += f"{opening}: {', '.join(names)}."
    return hint


def internal_sentence(error: Exception) -> str:
    """Return one sentence about an unexpected error, with the line of our code that raised it."""
    trace = error.__traceback__
    place = "?"
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "?")
        if str(module).startswith("memoranda"):
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    description = f"{type(error).__name__}: {error}".rstrip(": ")
    return f"something went wrong inside memoranda ({description}, at {place})"


class InvalidInput(MemorandaError):
    """An argument is of the wrong kind or value."""

    code = "invalid"


class TimeframeError(InvalidInput):
    """A time frame nobody can read."""

    code = "timeframe"

    def __init__(self, text: object):
        super().__init__(
            f'Time frame "{text}" is not understood. Use e.g. 2h, 7d, 3 weeks, yesterday or 2026-11-01.'
        )


class TimeRefused(InvalidInput):
    """The text of a reminder does not name one time that is ahead (contract 001, 8).

    phrase: the user's own text.
    candidates: aware local times; empty unless the text is ambiguous.
    """

    code = "invalid_time"
    sentence = 'not a valid time: "{}"'

    def __init__(self, phrase: str, candidates: Sequence[datetime] = ()):
        super().__init__(self.sentence.format(phrase))
        self.phrase, self.candidates = phrase, tuple(candidates)


class AmbiguousTime(TimeRefused):
    """A text names several times (`candidates`), or a time of which a part is missing (none)."""

    code = "ambiguous_time"

    def __init__(self, phrase: str, candidates: Sequence[datetime] = ()):
        times_shown = " or ".join(f"{candidate:%Y-%m-%d %H:%M}" for candidate in candidates)
        InvalidInput.__init__(
            self, f'ambiguous time "{phrase}"{": " + times_shown if times_shown else ""}; say which'
        )
        self.phrase, self.candidates = phrase, tuple(candidates)


class UnusedWords(AmbiguousTime):
    """A time has words beside it, the `unused` ones, that change its meaning in a way we cannot
    read.
    """

    def __init__(self, phrase: str, unused: str):
        InvalidInput.__init__(
            self, f'ambiguous time "{phrase}": "{unused}" was not used; say it in other words'
        )
        self.phrase = phrase
        self.candidates = ()


class PastTime(TimeRefused):
    code = "past_time"
    sentence = 'time is in the past: "{}"'


class NoTime(TimeRefused):
    """`phrase` is the whole text."""

    code = "no_time"
    sentence = 'no time found in "{}"'


class InvalidTime(TimeRefused):
    """A time that does not exist, or repeats too often."""


class VagueTime(TimeRefused):
    code = "vague_time"
    sentence = 'time is too vague: "{}"'


class SecretRefused(InvalidInput):
    """A text to be written holds a secret.

    rule: the rule of the write gate that found it.
    why: the kind of the secret, in words.
    where: the part of the note that has it. Never its text.
    line: the line of the text that has it; 0 if it is in another part.
    """

    def __init__(self, rule: str, why: str, where: str, line: int = 0):
        self.rule = rule
        self.why = why
        self.where = where
        self.line = line
        super().__init__(
            f"This holds what looks like {why} (rule {rule}, {where}), so nothing was written. Leave it out, or say "
            "where it is kept. Its owner can allow it: gate.secrets in config.yaml."
        )


class LineOutOfRange(InvalidInput):
    """Line `line` was asked for in a file of `total` lines; 0 stands before the first."""

    def __init__(self, line: int, total: int):
        self.line = line
        self.total = total
        super().__init__(f"There is no line {line}. Give a line from 0 to {total}.")


class NotFound(MemorandaError):
    """No note has this `identifier`; `suggestions` are permalinks that come near."""

    code = "not_found"

    def __init__(self, identifier: str, project: str = "", suggestions: Sequence[str] = ()):
        self.identifier, self.project, self.suggestions = identifier, project, list(suggestions)
        if self.suggestions:
            guess = f" Did you mean: {', '.join(self.suggestions)}?"
        else:
            guess = ""
        if project:
            where = f" in {project_title(project)}"
        else:
            where = ""
        super().__init__(
            f'Note not found{where}: "{identifier}".{guess}',
            advice=Advice(
                " Find it with search_notes or list_directory.", ("search_notes", "list_directory")
            ),
        )


class NotInHistory(NotFound):
    """No older text of `identifier` is kept."""

    def __init__(self, identifier: str):
        super().__init__(identifier, "the history")


class NothingToReplace(NotFound):
    """A checksum was given for a note that is not there."""

    def __init__(self, identifier: str, project: str):
        super().__init__(identifier, project)
        MemorandaError.__init__(
            self,
            f'Note not found in {project_title(project)}: "{identifier}", so it has no checksum to compare. '
            "Leave expected_checksum out to create it.",
        )


class FolderNotFound(NotFound):
    """The project has no such folder; `folders` are some it has."""

    def __init__(self, folder: str, project: str = "", folders: Sequence[str] = ()):
        super().__init__(folder, project)
        if folders:
            folders_note = f" Its folders: {', '.join(folders)}."
        else:
            folders_note = ""
        if project:
            where = f" in project {project_title(project)}"
        else:
            where = ""
        MemorandaError.__init__(
            self,
            f'Folder not found{where}: "{folder}".{folders_note}',
            advice=Advice(" Find it with list_directory.", ("list_directory",)),
        )


class Ambiguous(MemorandaError):
    """`identifier` names several notes.

    candidates: up to 10 of their permalinks.
    is_id: whether the identifier can only be the beginning of ids of memories.
    """

    code = "ambiguous"

    def __init__(self, identifier: str, candidates: Sequence[str], *, is_id: bool = False):
        self.is_id = is_id
        self.identifier, self.candidates, self.total = (
            identifier,
            list(candidates)[:10],
            len(candidates),
        )
        super().__init__(
            f'"{identifier}" names {self.total} notes: {", ".join(self.candidates)}. '
            "Use one of these permalinks, or a path."
        )


class Exists(MemorandaError):
    """Something is already at `path`; `permalink` is set when it is a note."""

    code = "exists"

    def __init__(self, path: str, permalink: str | None = None):
        self.path = path
        self.permalink = permalink
        if permalink is None:
            super().__init__(
                f"Destination already exists: {path}. Choose another destination_path."
            )
            return
        super().__init__(
            f"Note already exists: {permalink}.",
            advice=Advice(
                " Change it with edit_note, or call write_note with overwrite=true.",
                ("edit_note", "write_note"),
            ),
        )


class Taken(Exists):
    """The file at `path` is not a note, or not one that the caller may replace."""

    def __init__(self, path: str, permalink: str | None = None):
        super().__init__(path, permalink)
        MemorandaError.__init__(
            self, f"Note already exists: {permalink or path}. Choose another title or directory."
        )


class Unusable(MemorandaError):
    """A path that cannot be used, without a reason: what is there may be another agent's."""

    code = "unusable"

    def __init__(self, path: str):
        self.path = path
        super().__init__(f"The path {path} cannot be used. Choose another one.")


class Conflict(MemorandaError):
    """The file changed after the caller read it.

    now: its checksum now.
    given: the checksum that the caller read.
    """

    code = "conflict"

    def __init__(self, permalink: str, now: str, given_version: str):
        self.permalink = permalink
        self.now = now
        self.given = given_version
        super().__init__(
            f"{permalink} changed since you read it (checksum {now}, expected {given_version}).",
            advice=Advice(
                " Read it again with read_note and repeat the edit.",
                ("read_note",),
                " Read it again and repeat the edit.",
            ),
        )


class CountMismatch(MemorandaError):
    """A text does not occur as often as the caller expected.

    found: how often it occurs.
    expected: how often it should.
    lines: the lines of its first occurrences, from 1.
    """

    code = "count"

    def __init__(
        self,
        found_count: int,
        expected: int,
        lines: Sequence[int] = (),
        permalink: str = "the note",
    ):
        self.found, self.expected, self.lines = found_count, expected, list(lines)
        sentence = (
            f"Expected {expected} occurrences of find_text in {permalink}, found {found_count}."
        )
        if found_count:
            more = f"Set expected_replacements={found_count} or give more context."
            super().__init__(f"{sentence} {more}")
            return
        super().__init__(
            sentence, advice=Advice(" Check the exact text with read_note.", ("read_note",))
        )


class SectionError(MemorandaError):
    """A heading is missing or ambiguous.

    If it is missing, `lines` is empty and `headings` lists the existing ones. If it is ambiguous,
    `lines` lists where it occurs.
    """

    code = "section"

    def __init__(
        self,
        section: str,
        headings: Sequence[str] = (),
        lines: Sequence[int] = (),
        permalink: str = "the note",
    ):
        self.section, self.headings, self.lines = section, list(headings), list(lines)
        where = ", ".join(map(str, self.lines))
        have = ", ".join(self.headings) or "none"
        super().__init__(
            f'Section "{section}" occurs {len(self.lines)} times in {permalink} (lines {where}). '
            "Make the headings unique, or use find_replace."
            if self.lines
            else f'No section "{section}" in {permalink}. Its sections: {have}.'
        )


class OutsideError(MemorandaError):
    """A path leaves its project."""

    code = "outside"

    def __init__(self, path: str, project: str = ""):
        self.path = path
        self.project = project
        super().__init__(
            f'Path must stay inside project {project_title(project)}: "{path}". '
            'Use a relative path without "..".'
        )


class Locked(MemorandaError):
    """The owner locked the note."""

    code = "locked"

    def __init__(self, permalink: str):
        self.permalink = permalink
        super().__init__(
            f'{permalink} is locked. Its owner can unlock it by removing "locked: true".'
        )


class ProjectNotFound(MemorandaError):
    code = "project_not_found"

    def __init__(self, name: str, names: Sequence[str] = ()):
        self.name, self.names = name, list(names)
        super().__init__(
            f'No project "{name}". Projects: {", ".join(names)}.',
            advice=Advice(
                " Add one with create_memory_project.",
                ("create_memory_project",),
                " Their owner adds one with `memory project add`.",
            ),
        )


class ProjectOutOfReach(ProjectNotFound):
    """A built-in project outside of those the caller is limited to, `names`."""

    def __init__(self, name: str, names: Sequence[str] = ()):
        super().__init__(name, names)
        MemorandaError.__init__(
            self,
            f'This access is limited to the projects {", ".join(names)}; the project "{name}", which this needs, '
            "is none of them. The owner can give a token for it.",
        )


class ProjectRefused(MemorandaError):
    """`folder` cannot be a project; `reason` says why in a few words."""

    code = "project_refused"

    def __init__(self, folder: str, reason: str):
        self.folder = folder
        self.reason = reason
        super().__init__(f"Cannot use {folder} as a project: {reason}. Choose another folder.")


class NotAFolder(ProjectRefused):
    """`folder` is a file, or is not there."""

    def __init__(self, folder: str):
        super().__init__(folder, "not a folder")


class ProjectOverlaps(ProjectRefused):
    """`folder` is in the project `other`, or holds it."""

    def __init__(self, folder: str, other_project: str):
        super().__init__(folder, f"it overlaps project {project_title(other_project)}")
        self.other = other_project


class ReadOnlyProject(InvalidInput):
    """The notes of `project` are the entities of the graph file `file`, which the note tools do not
    write.
    """

    def __init__(self, project: str, file: str):
        self.project = project
        self.file = file
        super().__init__(
            f'The notes of project "{project}" are the entities of the graph file {file}, so nothing was changed. '
            f'Change them with the graph tools (project "{project}"), or edit the file.'
        )


class AgentPaused(MemorandaError):
    """The owner paused `agent`, which cannot read or write until it is resumed."""

    code = "paused"

    def __init__(self, agent: str):
        self.agent = agent
        super().__init__(
            f"{agent} is paused by the owner of this memory, so nothing was read or changed. "
            "Go on without it; only the owner can end the pause."
        )


class NotWritable(InvalidInput):
    """The owner of the memory has not allowed this change in `project`.

    reason: the reason as a sentence.
    """

    def __init__(self, project: str, reason: str):
        self.project = project
        self.reason = reason
        super().__init__(
            f"Nothing was changed in project {project_title(project)}: {reason}. "
            "Its owner can allow it with memory project access."
        )


class NotText(MemorandaError):
    """A file is not UTF-8."""

    code = "not_text"

    def __init__(self, path: str):
        self.path = path
        super().__init__(
            f"{path} is not valid UTF-8 text and was not changed. Convert it to UTF-8 first."
        )


class StorageError(MemorandaError):
    """The disk refused: `path` (project-relative) and `reason` in plain words."""

    code = "storage"
    sentence = "Could not write {}: {}. Nothing was changed."

    def __init__(self, path: str, reason: str):
        self.path = path
        self.reason = reason
        super().__init__(self.sentence.format(path, reason))


class CannotRead(StorageError):
    """The file at `path` cannot be read.

    remedy: a sentence about what helps.
    """

    def __init__(self, path: str, reason: str, remedy: str = ""):
        MemorandaError.__init__(self, f"Could not read {path}: {reason}. {remedy}".rstrip())
        self.path = path
        self.reason = reason


class NotPutBack(StorageError):
    """A change failed, and a part of it may stay, as `reason` says."""

    sentence = "Could not write {}: {}."


_AGAIN = "Try again; if it hangs, end it."


class Busy(StorageError):
    """Somebody else keeps the lock for longer than a call waits. `holder` says who: process,
    command, since when.
    """

    code = "busy"

    def __init__(self, holder: str):
        MemorandaError.__init__(
            self, f"The memory is in use by {holder}. Nothing was changed. {_AGAIN}"
        )
        self.holder = holder
        self.path = "the memory"
        self.reason = f"it is in use by {holder}. {_AGAIN}"


class DatabaseRefused(StorageError):
    """The database of the notes said no: `path` is the server without a password, `reason` in plain
    words.
    """

    sentence = "The database of the notes ({}) refused: {}. Nothing was changed."


class DatabaseAway(DatabaseRefused):
    """The database of the notes cannot be reached."""

    sentence = (
        "The database of the notes ({}) cannot be reached: {}. Nothing was changed. Try again."
    )


class OutcomeUnknown(MemorandaError):
    """The connection was lost while a change was committed, and the database cannot be asked
    whether it was.
    """

    code = "unknown_outcome"

    def __init__(self, server: str):
        super().__init__(
            f"The connection to the database of the notes ({server}) was lost while the change was committed. It may "
            "have been made or not. Once the database answers, see `memory log` before you try again."
        )


class LimitExceeded(MemorandaError):
    """More than `limits` of the configuration allow."""

    code = "limit"


class UndoObstacle(StrEnum):
    """The kinds of reasons why a change cannot be taken back."""

    LATER = "later"
    """A later change touched the same note."""
    OUTSIDE = "outside"
    """An editor or another program changed the note since, or somebody whom the caller may not see."""
    UNDONE = "undone"
    """It was taken back already."""
    ERASED = "erased"
    """What it changed was erased."""
    NOT_KEPT = "not_kept"
    """The history no longer has the text before it."""
    PASSING = "passing"
    """The text had a time to live, so the history never had it."""
    UNREACHABLE = "unreachable"
    """The folder in which it was made is not there."""
    NOTHING_LEFT = "nothing_left"
    """The notes are already as they were before it."""
    OTHER = "other"


class CannotUndo(MemorandaError):
    """A change cannot be taken back.

    reason: why not.
    change: the change, as `#12` or `run #3`; empty where there is no change to name.
    number: the number of the change that cannot be taken back. None where there is no single one.
    obstacle: the kind of the reason.
    later: the number of the later change that touched the same note, or that took this one back.
        None if there is none, or if the caller may not see it.
    """

    code = "cannot_undo"

    def __init__(
        self,
        reason: str,
        change: str = "",
        *,
        number: int | None = None,
        obstacle: UndoObstacle = UndoObstacle.OTHER,
        later: int | None = None,
    ):
        self.reason = reason
        self.number = number
        self.obstacle = obstacle
        self.later = later
        if number is not None and not change:
            change = f"#{number}"
        self.change = change
        if change:
            sentence = f"cannot undo {change}: {reason}"
        else:
            sentence = reason
        super().__init__(sentence)


class ConfigError(MemorandaError):
    """The configuration cannot be used."""

    code = "config"


class ConfigFileError(ConfigError):
    """A configuration file cannot be used.

    file: the file, or the key that names it.
    problem: what is wrong, in a few words.
    key: the setting that is wrong; empty if the whole file is wrong.
    joint: what stands between the key and the problem: a blank if they are one sentence.
    """

    def __init__(self, file: object, problem: str, key: str = "", joint: str = ": "):
        self.file = file
        self.problem = problem
        self.key = key
        if key:
            self.reason = f"{key}{joint}{problem}"
        else:
            self.reason = problem
        super().__init__(f"load config: {file}: {self.reason}")


class ProjectWarning(str):
    """A sentence about one project, or with an empty `project` about all of them."""

    project: str

    def __new__(cls, text: str, project: str = "") -> ProjectWarning:
        """Make a warning.

        text: the sentence.
        project: the name of the project it is about. Empty for all projects.
        """
        warning = super().__new__(cls, text)
        warning.project = project
        return warning

    def is_about(self, project: str) -> bool:
        """Whether the sentence is about this project, in any case of its name, or about all."""
        return self.project.casefold() in ("", project.casefold())
