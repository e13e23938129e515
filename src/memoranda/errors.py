"""All errors that memoranda raises.

MemorandaError            code           exit
├── InvalidInput            invalid           1   an argument has the wrong type or value
│   ├── BadRecord           invalid           1   a line of an export cannot be imported
│   ├── TimeframeError      timeframe         1   a time frame cannot be read
│   ├── TimeRefused         invalid_time      1   a reminder does not name one future time
│   │   ├── AmbiguousTime   ambiguous_time    1   it names several times, or a part is missing
│   │   │   └── UnusedWords ambiguous_time    1   it has words that may change the time
│   │   ├── PastTime        past_time         1
│   │   ├── NoTime          no_time           1
│   │   ├── InvalidTime     invalid_time      1   the time does not exist, or repeats too often
│   │   └── VagueTime       vague_time        1
│   ├── SecretRefused       invalid           1   a text seems to hold a secret (docs/gate.md)
│   ├── LineOutOfRange      invalid           1   the file does not have this line
│   ├── ReadOnlyProject     invalid           1   the note is an entity of a graph file
│   └── NotWritable         invalid           1   the owner does not allow changes of the project
├── NotFound                not_found         1   there is no such note that the caller may see
│   ├── NotInHistory        not_found         1   the history has no older text of it
│   ├── NothingToReplace    not_found         1   a checksum was given, but there is no note
│   └── FolderNotFound      not_found         1   the project has no such folder
├── Ambiguous               ambiguous         1   several notes have the name
├── Exists                  exists            1   the destination is taken
│   └── Taken               exists            1   by something that the caller may not replace
├── Unusable                unusable          1   a path cannot be used; the reason is not told
├── Conflict                conflict          1   the note changed since it was read
├── CountMismatch           count             1   find_text occurs another number of times
├── SectionError            section           1   a heading is missing, or occurs several times
├── OutsideError            outside           1   a path leads out of its project
├── Locked                  locked            1   the owner locked the note
├── ProjectNotFound         project_not_found 1
│   └── ProjectOutOfReach   project_not_found 1   a built-in project that this access leaves out
├── ProjectRefused          project_refused   1   a folder cannot be a project
│   ├── NotAFolder          project_refused   1
│   └── ProjectOverlaps     project_refused   1   it is in another project, or contains one
├── NotText                 not_text          1   a file is not UTF-8
├── StorageError            storage           1   the disk is full or read-only, or denies access
│   ├── CannotRead          storage           1   a file cannot be read
│   ├── NotPutBack          storage           1   a part of a failed change may stay
│   ├── Busy                busy              1   somebody else has the lock; call again
│   └── DatabaseRefused     storage           1   the database of the notes refused
│       └── DatabaseAway    storage           1   it cannot be reached
├── OutcomeUnknown          unknown_outcome   1   the connection was lost during a commit
├── AgentPaused             paused            1   the owner paused the agent
├── LimitExceeded           limit             1   a note is too large, or an agent wrote too much
├── CannotUndo              cannot_undo       1   a later change prevents it
└── ConfigError             config            1   the configuration cannot be used
    └── ConfigFileError     config            1   one of its files, or a setting of the file

The message of an error names the thing and the remedy. The attributes have the values that an
interface needs to say it in its own words. Contract 000b, 8 and 001, 8 list the codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Advice(NamedTuple):
    """The end of an error's message that advises a reader to use certain tools.

    text: the advice, with the blank or sign before it.
    tools: the note tools that it names.
    otherwise: the end of the message for a reader without these tools.
    """

    text: str
    tools: tuple[str, ...]
    otherwise: str = ""


class MemorandaError(Exception):
    """The base of all errors. `str` returns the message."""

    code = "error"
    """The kind of error, for programs. It does not change between versions."""
    exit_code = 1
    """The exit code of the command."""
    hint = ""
    """Lines to show to a person below the message, such as similar names."""
    advice: Advice | None = None
    """The end of the message, if it names tools."""

    def __init__(self, message: str, hint: str = "", advice: Advice | None = None):
        if advice is None:
            super().__init__(message)
        else:
            super().__init__(message + advice.text)
        self.advice = advice
        if hint:
            self.hint = hint

    def message_with_hint(self) -> str:
        """Return the message and the hint as one text, for replies that are only a text."""
        message = str(self)
        if not self.hint:
            return message
        if message[-1:] not in ".!?":
            message += "."
        return f"{message} {self.hint}"


STAND_IN = "@basic-memory"
"""The end of a project's name, if the project comes from Basic Memory and its name is taken here."""


def project_title(name: str) -> str:
    """Return the name of a project as people read it.

    >>> project_title("memories@basic-memory")
    'memories'
    """
    return name.removesuffix(STAND_IN)


def near(word: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return up to `most` names that are similar to a misspelled word, the most similar first."""
    # The import takes 4 ms, and only errors need it.
    from difflib import get_close_matches

    names_by_lower = {name.lower(): name for name in names}
    matches = get_close_matches(word.lower(), list(names_by_lower), most)
    return [names_by_lower[match] for match in matches]


def choices(word: str, names: Iterable[str], opening: str = "One of") -> str:
    """Return a hint after a wrong value: the most similar of `names`, and all of them.

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
    place = "?"
    # The innermost frame of memoranda is the last one.
    trace = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "?")
        if str(module).startswith("memoranda"):
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    description = f"{type(error).__name__}: {error}".rstrip(": ")
    return f"something went wrong inside memoranda ({description}, at {place})"


class InvalidInput(MemorandaError):
    """An argument has the wrong type or value."""

    code = "invalid"


class BadRecord(InvalidInput):
    """A line of an export cannot be imported.

    number: the number of the line, counted from 1.
    reason: the reason in words.
    """

    def __init__(self, number: int, reason: str):
        self.number = number
        self.reason = reason
        super().__init__(f"malformed JSON at record {number}: {reason}")


class TimeframeError(InvalidInput):
    """A time frame cannot be read."""

    code = "timeframe"

    def __init__(self, text: object):
        super().__init__(
            f'Time frame "{text}" is not understood. Use e.g. 2h, 7d, 3 weeks, yesterday or 2026-11-01.'
        )


class TimeRefused(InvalidInput):
    """The text of a reminder does not name one future time (contract 001, 8).

    phrase: the words for the time, as the user wrote them.
    candidates: the times that an ambiguous text may mean, with time zones. Empty for other texts.
    """

    code = "invalid_time"
    sentence = 'not a valid time: "{}"'

    def __init__(self, phrase: str, candidates: Sequence[datetime] = ()):
        super().__init__(self.sentence.format(phrase))
        self.phrase = phrase
        self.candidates = tuple(candidates)


class AmbiguousTime(TimeRefused):
    """A text names several times, or only a part of a time.

    candidates: the times that it names. Empty if it names only a part of a time.
    repeats: for each candidate, the rule by which it repeats. Empty if the text names no repetition.
    words: for each candidate, words that mean it alone. Empty if none are known.
    """

    code = "ambiguous_time"

    def __init__(
        self,
        phrase: str,
        candidates: Sequence[datetime] = (),
        repeats: Sequence[str | None] = (),
        words: Sequence[str] = (),
    ):
        shown = [f"{candidate:%Y-%m-%d %H:%M}" for candidate in candidates]
        if words:
            shown = [f"{time} ({meaning})" for time, meaning in zip(shown, words, strict=True)]
        times = " or ".join(shown)
        times_shown = f": {times}" if times else ""
        # TimeRefused would build its own sentence from the phrase.
        InvalidInput.__init__(self, f'ambiguous time "{phrase}"{times_shown}; say which')
        self.phrase = phrase
        self.candidates = tuple(candidates)
        self.repeats = tuple(repeats)
        self.words = tuple(words)


class UnusedWords(AmbiguousTime):
    """Next to a time, there are words that may change its meaning and cannot be read.

    unused: these words.
    """

    def __init__(self, phrase: str, unused: str):
        InvalidInput.__init__(
            self, f'ambiguous time "{phrase}": "{unused}" was not used; say it in other words'
        )
        self.phrase = phrase
        self.candidates = ()
        self.repeats = ()
        self.words = ()


class PastTime(TimeRefused):
    """The time is in the past."""

    code = "past_time"
    sentence = 'time is in the past: "{}"'


class NoTime(TimeRefused):
    """A text names no time.

    phrase: the whole text.
    """

    code = "no_time"
    sentence = 'no time found in "{}"'


class InvalidTime(TimeRefused):
    """A time that does not exist, or repeats too often."""


class VagueTime(TimeRefused):
    """The words for a time mean no certain moment, such as `soon`."""

    code = "vague_time"
    sentence = 'time is too vague: "{}"'


class SecretRefused(InvalidInput):
    """A text to write seems to hold a secret.

    rule: the id of the rule of the write gate that found it.
    why: the kind of secret, in words.
    where: the part of the note that has the secret. It never contains the secret itself.
    line: the number of the line that has the secret; 0 if it is in another part of the note.
    others: the further secrets in the text: the kind of each, in words, and its line.
    """

    def __init__(
        self,
        rule: str,
        why: str,
        where: str,
        line: int = 0,
        others: Sequence[tuple[str, int]] = (),
    ):
        self.rule = rule
        self.why = why
        self.where = where
        self.line = line
        self.others = others
        super().__init__(
            f"This holds what looks like {why} (rule {rule}, {where}), so nothing was written. Leave it out, or say "
            "where it is kept. Its owner can allow it: gate.secrets in config.yaml."
        )


class LineOutOfRange(InvalidInput):
    """A file does not have a certain line.

    line: the number of the line. 0 means the place before the first line.
    total: how many lines the file has.
    """

    def __init__(self, line: int, total: int):
        self.line = line
        self.total = total
        super().__init__(f"There is no line {line}. Give a line from 0 to {total}.")


class NotFound(MemorandaError):
    """There is no such note, or none that the caller may see.

    identifier: the name, path or id that the caller gave.
    project: the place in which the note was looked up; "" if it is not named.
    suggestions: similar permalinks.
    """

    code = "not_found"

    def __init__(self, identifier: str, project: str = "", suggestions: Sequence[str] = ()):
        self.identifier = identifier
        self.project = project
        self.suggestions = list(suggestions)
        guess = f" Did you mean: {', '.join(self.suggestions)}?" if self.suggestions else ""
        where = f" in {project_title(project)}" if project else ""
        super().__init__(
            f'Note not found{where}: "{identifier}".{guess}',
            advice=Advice(
                " Find it with search_notes or list_directory.", ("search_notes", "list_directory")
            ),
        )


class NotInHistory(NotFound):
    """The history has no older text of a note."""

    def __init__(self, identifier: str):
        super().__init__(identifier, "the history")


class NoSuchChange(NotInHistory):
    """The history has no change with this number.

    number: the number that the caller gave.
    """

    def __init__(self, number: int):
        self.number = number
        super().__init__(f"#{number}")
        MemorandaError.__init__(self, f"There is no change #{number}.")


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
    """The project has no such folder.

    folders: some folders that it has.
    """

    def __init__(self, folder: str, project: str = "", folders: Sequence[str] = ()):
        super().__init__(folder, project)
        folders_note = f" Its folders: {', '.join(folders)}." if folders else ""
        where = f" in project {project_title(project)}" if project else ""
        MemorandaError.__init__(
            self,
            f'Folder not found{where}: "{folder}".{folders_note}',
            advice=Advice(" Find it with list_directory.", ("list_directory",)),
        )


class Ambiguous(MemorandaError):
    """Several notes have the name that the caller gave.

    identifier: the name.
    candidates: the permalinks of these notes, at most ten.
    total: how many notes have the name.
    is_id: whether the name can only be the beginning of ids of memories.
    """

    code = "ambiguous"

    def __init__(self, identifier: str, candidates: Sequence[str], *, is_id: bool = False):
        self.is_id = is_id
        self.identifier = identifier
        self.candidates = list(candidates)[:10]
        self.total = len(candidates)
        super().__init__(
            f'"{identifier}" names {self.total} notes: {", ".join(self.candidates)}. '
            "Use one of these permalinks, or a path."
        )


class Exists(MemorandaError):
    """Something is already at the destination.

    path: the destination.
    permalink: the permalink of the note that is there. None if it is not a note.
    """

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
    """A path cannot be used. The reason is not told: a note of another agent may be there."""

    code = "unusable"

    def __init__(self, path: str):
        self.path = path
        super().__init__(f"The path {path} cannot be used. Choose another one.")


class Conflict(MemorandaError):
    """The file changed after the caller read it.

    permalink: the note, or the path of the file.
    now: the checksum of the present file.
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
        self.found = found_count
        self.expected = expected
        self.lines = list(lines)
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
        self.section = section
        self.headings = list(headings)
        self.lines = list(lines)
        if self.lines:
            line_numbers = ", ".join(str(line) for line in self.lines)
            super().__init__(
                f'Section "{section}" occurs {len(self.lines)} times in {permalink} '
                f"(lines {line_numbers}). Make the headings unique, or use find_replace."
            )
            return
        present_headings = ", ".join(self.headings) or "none"
        super().__init__(
            f'No section "{section}" in {permalink}. Its sections: {present_headings}.'
        )


class OutsideError(MemorandaError):
    """A path leads out of its project."""

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
    """There is no such project.

    name: the name that the caller gave.
    names: the projects that the caller may use.
    """

    code = "project_not_found"

    def __init__(self, name: str, names: Sequence[str] = ()):
        self.name = name
        self.names = list(names)
        super().__init__(
            f'No project "{name}". Projects: {", ".join(names)}.',
            advice=Advice(
                " Add one with create_memory_project.",
                ("create_memory_project",),
                " Their owner adds one with `memory project add`.",
            ),
        )


class ProjectOutOfReach(ProjectNotFound):
    """The caller's token allows some projects only, and the call needs a built-in project.

    names: the projects that the caller may use.
    """

    def __init__(self, name: str, names: Sequence[str] = ()):
        super().__init__(name, names)
        MemorandaError.__init__(
            self,
            f'This access is limited to the projects {", ".join(names)}; the project "{name}", which this needs, '
            "is none of them. The owner can give a token for it.",
        )


class ProjectRefused(MemorandaError):
    """A folder cannot be a project.

    folder: the folder as the caller wrote it.
    reason: the reason in a few words.
    """

    code = "project_refused"

    def __init__(self, folder: str, reason: str):
        self.folder = folder
        self.reason = reason
        super().__init__(f"Cannot use {folder} as a project: {reason}. Choose another folder.")


class NotAFolder(ProjectRefused):
    """The place is a file, or does not exist."""

    def __init__(self, folder: str):
        super().__init__(folder, "not a folder")


class ProjectOverlaps(ProjectRefused):
    """The folder is in another project, or contains it.

    other: the name of this project.
    """

    def __init__(self, folder: str, other_project: str):
        super().__init__(folder, f"it overlaps project {project_title(other_project)}")
        self.other = other_project


class ReadOnlyProject(InvalidInput):
    """The notes of a project are entities of a graph file, which the note tools do not write.

    project: the name of the project.
    file: the name of the graph file.
    """

    def __init__(self, project: str, file: str):
        self.project = project
        self.file = file
        super().__init__(
            f'The notes of project "{project}" are the entities of the graph file {file}, so nothing was changed. '
            f'Change them with the graph tools (project "{project}"), or edit the file.'
        )


class AgentPaused(MemorandaError):
    """The owner paused an agent, which cannot read or write until the pause ends."""

    code = "paused"

    def __init__(self, agent: str):
        self.agent = agent
        super().__init__(
            f"{agent} is paused by the owner of this memory, so nothing was read or changed. "
            "Go on without it; only the owner can end the pause."
        )


class NotWritable(InvalidInput):
    """The owner of the memory does not allow this change.

    project: the project of the note.
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
    """The disk refused.

    path: the path in the project, or a name of the thing that could not be written.
    reason: the reason in plain words.
    hint: a line for a person that says what to do.
    """

    code = "storage"
    sentence = "Could not write {}: {}. Nothing was changed."

    def __init__(self, path: str, reason: str, hint: str = ""):
        self.path = path
        self.reason = reason
        super().__init__(self.sentence.format(path, reason), hint)


class CannotRead(StorageError):
    """A file cannot be read.

    remedy: a sentence that says what to do; "" if nothing helps.
    """

    def __init__(self, path: str, reason: str, remedy: str = ""):
        MemorandaError.__init__(self, f"Could not read {path}: {reason}. {remedy}".rstrip())
        self.path = path
        self.reason = reason


class NotPutBack(StorageError):
    """A change failed, and a part of it may stay. The reason says which part."""

    sentence = "Could not write {}: {}."


_AGAIN = "Try again; if it hangs, end it."


class Busy(StorageError):
    """Somebody else has the lock for longer than a call waits.

    holder: the process that has it, its command, and the time since when.
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
    """The database of the notes refused.

    path: the address of the server without a password.
    reason: the reason in plain words.
    """

    sentence = "The database of the notes ({}) refused: {}. Nothing was changed."


class DatabaseAway(DatabaseRefused):
    """The database of the notes cannot be reached."""

    sentence = (
        "The database of the notes ({}) cannot be reached: {}. Nothing was changed. Try again."
    )


class OutcomeUnknown(MemorandaError):
    """The connection to the database was lost during a commit, so it is not known if the change was
    made.
    """

    code = "unknown_outcome"

    def __init__(self, server: str):
        super().__init__(
            f"The connection to the database of the notes ({server}) was lost while the change was committed. It may "
            "have been made or not. Once the database answers, see `memory log` before you try again."
        )


class LimitExceeded(MemorandaError):
    """A change exceeds one of the `limits` in the configuration."""

    code = "limit"


class UndoObstacle(StrEnum):
    """The kinds of reasons why a change cannot be taken back."""

    LATER = "later"
    """A later change touched the same note."""
    OUTSIDE = "outside"
    """The note was changed later by another program, or by somebody whom the caller may not see."""
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
    """Another reason, which the error says in words."""


class CannotUndo(MemorandaError):
    """A change cannot be taken back.

    reason: the reason in words.
    change: the change, such as `#12` or `run #3`; "" if there is no change to name.
    number: the number of the change that cannot be taken back. None if it is not a single one.
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
        super().__init__(f"cannot undo {change}: {reason}" if change else reason)


class ConfigError(MemorandaError):
    """The configuration cannot be used."""

    code = "config"


class ConfigFileError(ConfigError):
    """A configuration file cannot be used.

    file: the file, or the key that names it.
    problem: what is wrong, in a few words.
    key: the setting that is wrong; empty if the whole file is wrong.
    joint: the text between the key and the problem: a blank if they are one sentence.
    hint: the remedy, if it is another one than to correct or to remove the file.
    """

    def __init__(
        self, file: object, problem: str, key: str = "", joint: str = ": ", hint: str = ""
    ):
        self.file = file
        self.problem = problem
        self.key = key
        self.reason = f"{key}{joint}{problem}" if key else problem
        super().__init__(f"load config: {file}: {self.reason}", hint)


class ProjectWarning(str):
    """A warning about one project, or about all projects."""

    project: str
    """The name of the project; "" for a warning about all projects."""

    def __new__(cls, text: str, project: str = "") -> ProjectWarning:
        """Make a warning.

        text: the sentence.
        project: the name of the project it is about. Empty for all projects.
        """
        warning = super().__new__(cls, text)
        warning.project = project
        return warning

    def is_about(self, project: str) -> bool:
        """Whether the warning is about this project, or about all projects.

        Case does not matter in the name.
        """
        return self.project.casefold() in ("", project.casefold())
