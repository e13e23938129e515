"""Finds facts that warn an agent before it acts, or help after a command failed.

A hook calls `facts` with an action: a tool call that is about to run, or one that just failed.
Facts come from notes and from transcripts. Before an action they are rules against it; after a
failure they tell how it was fixed before. Most actions have no facts.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.sources.layout import Layout
from memoranda.transcripts.blocks import tool_call, words_of
from memoranda.transcripts.lessons import LessonKind, against, kind_of, paths_in
from memoranda.transcripts.terms import (
    code_terms,
    command_term,
    command_terms,
    error_line,
    error_term,
    hashed,
    is_distinct,
    is_trivial,
    names_in,
    path_terms,
    project_of,
    simple_commands,
    texts_in,
)
from memoranda.transcripts.turn import Kind, as_list, shorten

if TYPE_CHECKING:
    from memoranda.engine.read_session import ReadSession
    from memoranda.index.rows import NoteInfo
    from memoranda.transcripts.index import LessonRow, TraceIndex, TurnRow
    from memoranda.transcripts.mask import Mask

# Terms of one tool call that are looked up.
_MAX_TERMS = 80
MAX_NOTES = 12
"""Notes that are searched for the terms of an action."""
# Lines of each note that are read.
_MAX_LINES = 400
# Characters that a fact repeats of a note's line, of a command, and of a name.
_LINE_CHARACTERS = 220
_COMMAND_CHARACTERS = 160
_NAME_CHARACTERS = 60
# Names in an error that are looked up.
_MAX_NAMES_OF_ERROR = 20
# Lessons that are looked at for one action.
_MAX_LESSONS = 20
# A longer line of a note is not a rule.
_MAX_LINE_CHARACTERS = 2_000
# Errors shorter than this are too common to identify what failed.
_MIN_ERROR_CHARACTERS = 24
_CODE_KEYS = ("new_string", "content", "new_str", "file_text", "contents", "code_edit", "text")


class Action(NamedTuple):
    """A tool call that an agent is about to make, or that just failed.

    folder: the folder the agent works in.
    tool: the name of the tool.
    arguments: the arguments of the tool as JSON.
    output: the output of the failed call, or "" before the call.
    """

    folder: str
    tool: str
    arguments: str
    output: str = ""


class Fact(NamedTuple):
    """A line to tell the agent, once in a session.

    key: identifies the fact.
    text: the line.
    note: the id of the note that it comes from, or "".
    """

    key: str
    text: str
    note: str = ""


class ActionTerms:
    """The commands, files, terms and words of an action, each found when it is first used."""

    def __init__(self, action: Action):
        self.action = action

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the tool. If they are not a JSON object, they are the value of `input`."""
        try:
            arguments = json.loads(self.action.arguments)
        except (ValueError, RecursionError):
            arguments = self.action.arguments
        if isinstance(arguments, dict):
            return arguments
        return {"input": arguments}

    @cached_property
    def commands(self) -> list[list[str]]:
        """The commands that it runs, each as a list of words."""
        commands: list[list[str]] = []
        for line in self._command_lines():
            commands += simple_commands(line)
        return commands

    @cached_property
    def paths(self) -> list[str]:
        """The paths of the files that it changes."""
        parts = tool_call(self.action.tool, self.arguments)
        return [part.text for part in parts if part.kind is Kind.EDITED]

    @cached_property
    def terms(self) -> list[str]:
        """The terms of its commands, programs, packages, names in code and files.

        For `npm install moment`: `c:npm install moment`, `c:npm install`, `t:npm`, `t:moment`.
        After a failure only whole commands and the error count.
        """
        if self.action.output:
            terms = [command_term(words) for words in self.commands if not is_trivial(words)]
            if len(self.error) >= _MIN_ERROR_CHARACTERS:
                terms.append(error_term(self.error))
            return terms
        terms = []
        for line in self._command_lines():
            terms += command_terms(line)
        # Arguments of other tools are not code.
        if self.paths:
            for code in self._code():
                terms += code_terms(code)
        for path in self.paths:
            terms += path_terms(path)
        return list(dict.fromkeys(terms))[:_MAX_TERMS]

    @cached_property
    def error(self) -> str:
        """The line in the output of the action that says why it failed."""
        return error_line(self.action.output)

    @cached_property
    def words(self) -> list[str]:
        """The words and phrases to search notes for, e.g. `moment` and `npm install moment`."""
        if self.action.output:
            return _names_of_error(self.error)[:_MAX_NAMES_OF_ERROR]
        texts = []
        for term in self.terms:
            kind, _, text = term.partition(":")
            word_count = text.count(" ") + 1
            # Notes rarely repeat a command of many words. A command of one word is a program, which
            # has a term of the kind `t`.
            is_usual_phrase = word_count in (2, 3)
            if kind == "c" and not is_usual_phrase:
                continue
            # Notes name a file mostly without its folders.
            if kind == "f":
                text = text.rpartition("/")[2]
            if len(text) > 1:
                texts.append(text)
        return list(dict.fromkeys(texts))

    def may_be_in(self, sentence: str) -> bool:
        """Whether a sentence has a word that it must have to be about one of the terms."""
        return any(sign in sentence for sign in self._signs)

    @cached_property
    def _signs(self) -> list[str]:
        """A word of each term: the name itself, a command's program, or a file's name."""
        signs = []
        for term in self.terms:
            kind, _, text = term.partition(":")
            if kind == "c":
                text = text.partition(" ")[0]
            elif kind == "f":
                text = text.rpartition("/")[2]
            signs.append(text)
        return list(dict.fromkeys(filter(None, signs)))

    def _command_lines(self) -> Iterator[str]:
        """Yield the command lines that it runs."""
        for part in tool_call(self.action.tool, self.arguments):
            if part.kind is Kind.RAN:
                yield part.text

    def _code(self) -> Iterator[str]:
        """Yield the pieces of code that it writes into files."""
        for key in _CODE_KEYS:
            yield from texts_in(self.arguments.get(key))
        patch = self.arguments.get("input") or self.arguments.get("patch")
        # Only the new lines of a patch count.
        if isinstance(patch, str):
            lines = patch.splitlines()
            yield "\n".join(line[1:] for line in lines if line.startswith("+"))
        for edit in as_list(self.arguments.get("edits")):
            if isinstance(edit, dict):
                yield from texts_in(edit.get("new_string"))


def _names_of_error(line: str) -> list[str]:
    """Return the names and codes in an error that ordinary text does not have.

    For `npm ERR! code ERESOLVE in load_cfg`: `ERESOLVE` and `load_cfg`.
    """
    words = line.replace("'", " ").replace('"', " ").replace("`", " ").split()
    bare_words = [word.strip("()[]{}:,;.") for word in words]
    codes: list[str] = []
    for word in bare_words:
        is_code = word.isupper() and word.isalnum()
        if len(word) > 4 and (is_code or is_distinct(word)):
            codes.append(word)
    return list(dict.fromkeys([*codes, *names_in(line)]))


def is_about_something(action: Action) -> bool:
    """Whether an action runs a command or changes a file. Other actions have no facts."""
    lower = action.tool.lower()
    return lower in words_of("command_tools") or lower in words_of("edit_tools")


def facts(memory: ReadSession, action: Action) -> Iterator[Fact]:
    """Find the facts about an action: lessons of transcripts first, then lines of notes."""
    about = ActionTerms(action)
    if not about.terms:
        return
    if memory.settings.transcripts:
        yield from _from_transcripts(memory, about)
    yield from _from_notes(memory, about)


def _from_notes(memory: ReadSession, about: ActionTerms) -> Iterator[Fact]:
    """Yield one line of each note that is about the action, with its date and its name."""
    from memoranda.engine.contents import contents, is_as_indexed, notes_holding
    from memoranda.engine.telling.manner import Telling, claimed
    from memoranda.index.rows import day_of
    from memoranda.text.unicode import flat

    # Notes are looked for by the words of the action, and each line is judged afterwards.
    infos = notes_holding(memory, about.words, MAX_NOTES)
    for info, body in zip(infos, contents(memory, infos), strict=True):
        line = line_about(body, about)
        if not line or not is_as_indexed(memory, info):
            continue
        telling = memory.telling(info)
        if telling is Telling.SILENT:
            continue
        text = flat(" ".join(line.split()))[:_LINE_CHARACTERS]
        origin = f"{day_of(info, memory.settings.zone)}, {flat(info.permalink)}"
        if telling is Telling.CLAIM:
            text = claimed(info.provenance, text)
            origin += ", unconfirmed"
        stale = _citation_trouble(memory, about, info, body)
        if stale:
            origin += f", outdated? {flat(stale)}"
        yield Fact(info.id, f"({origin}) {text}", info.id)


def _citation_trouble(memory: ReadSession, about: ActionTerms, info: NoteInfo, body: str) -> str:
    """Say how the code that a note cites has changed. "" if it has not, or if it cites none.

    about: the action, whose folder has the code.
    info, body: the note and its text.
    """
    from memoranda.note.citations import CITES

    # The import below takes 13 ms, and most notes cite nothing.
    if "`" not in body and CITES not in info.header:
        return ""
    from memoranda.citations.check import CitationCheck

    return CitationCheck(memory, filter(None, [about.action.folder])).stale(info, body)


def line_about(body: str, about: ActionTerms) -> str:
    """Return the first line of a note that is about the action, or "".

    Before an action, the line must speak against it or give a rule about its files. After a
    failure, the line must have a word of the error.
    """
    terms = set(about.terms)
    for line in body.splitlines()[:_MAX_LINES]:
        sentence = line.strip().lstrip("#-*> ")
        if not sentence or len(sentence) > _MAX_LINE_CHARACTERS:
            continue
        if about.action.output:
            if any(word in sentence for word in about.words):
                return sentence
        # Most sentences have no such word, and matching all rules takes 0.2 ms.
        elif about.may_be_in(sentence) and speaks_of(sentence, terms):
            return sentence
    return ""


def speaks_of(sentence: str, terms: set[str]) -> bool:
    """Whether a sentence speaks against one of these terms, or gives a rule about one of them.

    "Never use moment" speaks against the term `t:moment`. Only terms that are files have rules, as
    in "Never edit src/schema.ts by hand".
    """
    if any(term in terms for term in against(sentence)):
        return True
    # Finding paths is cheaper than finding out whether the sentence is a rule.
    is_about_file = any(term in terms for term in paths_in(sentence))
    return is_about_file and kind_of(sentence) is not None


def _from_transcripts(memory: ReadSession, about: ActionTerms) -> Iterator[Fact]:
    """Yield the lessons of transcripts about the action, if there is an index of transcripts."""
    from memoranda.transcripts.index import TraceIndex
    from memoranda.transcripts.mask import Mask

    path = Layout(memory.home).transcripts
    if not path.exists():
        return
    try:
        with TraceIndex(path, may_write=False) as index:
            yield from _facts_of_lessons(index, Mask(memory.rules_for_reading()), about)
    except sqlite3.Error:
        # Another process is rebuilding it.
        return


def _facts_of_lessons(index: TraceIndex, mask: Mask, about: ActionTerms) -> Iterator[Fact]:
    """Yield the lessons about the action that are still valid, as facts.

    index: the transcripts.
    mask: takes out secrets, and finds suspicious words.
    about: the action and its terms.
    """
    terms = [hashed(term) for term in about.terms]
    # Empty means lessons of all kinds.
    kinds: tuple[LessonKind, ...] = ()
    if about.action.output:
        # An action with output is a command that failed. Only lessons about how it was fixed help.
        kinds = (LessonKind.FIX,)
    rows = index.lessons(kinds, terms=terms, limit=_MAX_LESSONS)
    # Decisions and corrections, which a person said, come before commands that failed; then the
    # newest come first.
    rows.sort(key=lambda row: (row.kind == LessonKind.FAILED, -row.time))
    project = project_of(about.action.folder)
    seen_texts: set[str] = set()
    for row in rows:
        turns = index.turns(filter(None, [row.turn, row.other]))
        turn = turns.get(row.turn)
        if turn is None or not _is_valid_in(index, row, turn, project, about):
            continue
        text = _lesson_fact(row, turns, mask, about)
        if text and text not in seen_texts:
            seen_texts.add(text)
            # SQLite keeps the hash as a signed number.
            unsigned_mark = row.mark & (1 << 64) - 1
            yield Fact(f"lesson-{unsigned_mark:x}", text)


def _is_valid_in(
    index: TraceIndex, row: LessonRow, turn: TurnRow, project: str, about: ActionTerms
) -> bool:
    """Whether a lesson is still valid and applies to a project.

    index: the transcripts.
    row: the lesson.
    turn: the turn that the lesson is from.
    project: the folder of the project, or "" if unknown.
    about: the action and its terms.
    """
    if row.kind in (LessonKind.FIX, LessonKind.FAILED):
        lesson_terms = index.terms_of(row.id)
        if _worked_since(index, row, lesson_terms, about):
            return False
        # Such a lesson has the term of a program only if the program was missing. A program that is
        # missing on this machine is missing in every project.
        programs = [hashed(term) for term in about.terms if term.startswith("t:")]
        if lesson_terms.intersection(programs):
            return True
    # Other lessons are for the project in which they were learned, as far as that is known.
    is_place_unknown = not turn.folder or not project
    return is_place_unknown or project_of(turn.folder) == project


def _worked_since(
    index: TraceIndex, row: LessonRow, lesson_terms: set[int], about: ActionTerms
) -> bool:
    """Whether the command that failed in a lesson has worked since.

    lesson_terms: the hashes of the terms that the lesson is about.
    """
    for words in about.commands:
        term = hashed(command_term(words))
        if term in lesson_terms and index.last_success(term) > row.time:
            return True
    return False


def _lesson_fact(row: LessonRow, turns: dict[int, TurnRow], mask: Mask, about: ActionTerms) -> str:
    """Return a lesson as one line, without secrets, or "" if it must not be told.

    Its text is read from the transcript, which may be gone or changed.

    row: the lesson.
    turns: the turns of the lesson by their ids.
    mask: takes out secrets, and finds suspicious words.
    about: the action and its terms.
    """
    from memoranda.transcripts.originals import moment, raw_text

    turn = turns[row.turn]
    turn_text = raw_text(turn)
    if turn_text is None:
        return ""
    origin = f"{turn.agent} transcript"
    when = moment(row.time)
    if when:
        origin += f", {when:%Y-%m-%d}"
    if row.kind in (LessonKind.FIX, LessonKind.FAILED):
        working_turn = None if row.other is None else turns.get(row.other)
        working_command = None if working_turn is None else raw_text(working_turn)
        return _fix_fact(mask, origin, turn_text, working_command)
    # The transcript may have changed since: check that the sentence is still a lesson.
    sentence = mask.clean(turn_text[row.start : row.stop])
    if kind_of(sentence) is None or not speaks_of(sentence, set(about.terms)):
        return ""
    return _sentence_fact(mask, origin, sentence, about)


def _sentence_fact(mask: Mask, origin: str, sentence: str, about: ActionTerms) -> str:
    """Return a line that quotes a sentence of a person.

    A sentence that may be an injected instruction is not repeated: only the name that it speaks
    against is told. "" if that name is suspicious too.

    mask: finds suspicious words.
    origin: the agent and the day of the session.
    about: the action and its terms.
    """
    if not mask.is_suspicious(sentence):
        line = _shortened_line(sentence, _LINE_CHARACTERS)
        return f'({origin}, unconfirmed) the user said: "{line}"'
    # Injected instructions must not reach a model as something the user said.
    names = [term.partition(":")[2] for term in against(sentence) if term in about.terms]
    if not names or mask.is_suspicious(names[0]):
        return ""
    name = _shortened_line(names[0], _NAME_CHARACTERS)
    return f"({origin}, unconfirmed) the user spoke against `{name}`."


def _fix_fact(mask: Mask, origin: str, failed_command: str, working_command: str | None) -> str:
    """Return the line that tells which command failed, and which command worked then.

    "" if the failed command may be an injected instruction.

    mask: takes out secrets, and finds suspicious words.
    origin: the agent and the day of the session.
    working_command: the command that worked then. None if none is known.
    """
    command = _shortened_line(mask.clean(failed_command), _COMMAND_CHARACTERS)
    if mask.is_suspicious_command(command):
        return ""
    fix = _shortened_line(mask.clean(working_command or ""), _COMMAND_CHARACTERS)
    if fix and not mask.is_suspicious_command(fix):
        return f"({origin}, unconfirmed) `{command}` failed here; then `{fix}` worked."
    return f"({origin}, unconfirmed) `{command}` failed here the last time."


def _shortened_line(text: str, most: int) -> str:
    """Return a text as one line of at most `most` characters."""
    return shorten(" ".join(text.split()), most)
