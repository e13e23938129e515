"""Finds what is known of something an agent is about to do, or of a command that just failed: from notes
and from transcripts. Only what speaks against it, or fixed it before; mostly nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
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
from memoranda.transcripts.turn import Kind, shortened

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.index.rows import NoteInfo
    from memoranda.transcripts.index import LessonRow, TraceIndex, TurnRow
    from memoranda.transcripts.mask import Mask

# Names of one tool call that are looked up.
_MOST_TERMS = 80
# Notes in which they are looked for, and the lines of each.
_MOST_NOTES = 12
_MOST_LINES = 400
# Characters to tell of a note, and of a command.
_LINE = 220
_COMMAND = 160
_NAME = 60
# Shorter errors, in characters, are too common to identify what failed.
_LEAST_ERROR = 24
_CODE_KEYS = ("new_string", "content", "new_str", "file_text", "contents", "code_edit", "text")


class Action(NamedTuple):
    """Something an agent is about to do, or did: where, with which tool, its arguments as JSON, and what
    came out, "" before it ran.
    """

    folder: str
    tool: str
    arguments: str
    output: str = ""


class Fact(NamedTuple):
    """A line to be told once in a session: `key` says which it is, `note` the note it is from."""

    key: str
    text: str
    note: str = ""


class ActionTerms:
    """The terms of an action."""

    def __init__(self, action: Action):
        self.action = action

    @cached_property
    def given(self) -> dict[str, Any]:
        """The arguments of the tool."""
        try:
            result = json.loads(self.action.arguments)
        except (ValueError, RecursionError):
            result = self.action.arguments
        if isinstance(result, dict):
            return result
        return {"input": result}

    @cached_property
    def commands(self) -> list[list[str]]:
        """The commands it runs."""
        parts = tool_call(self.action.tool, self.given)
        lines = [part.text for part in parts if part.kind is Kind.RAN]
        return list(chain.from_iterable(map(simple_commands, lines)))

    @cached_property
    def paths(self) -> list[str]:
        """The files it changes."""
        parts = tool_call(self.action.tool, self.given)
        return [part.text for part in parts if part.kind is Kind.EDITED]

    @cached_property
    def terms(self) -> list[str]:
        """All it is about: commands, programs, packages, names in code, files; if it failed, the
        commands and the error alone.
        """
        if self.action.output:
            result = [command_term(words) for words in self.commands if not is_trivial(words)]
            if len(self.error) >= _LEAST_ERROR:
                result.append(error_term(self.error))
            return result
        result = list(chain.from_iterable(map(command_terms, self._command_lines())))
        # Arguments of other tools are not code.
        if self.paths:
            for code in self._code():
                result += code_terms(code)
        for path in self.paths:
            result += path_terms(path)
        return list(dict.fromkeys(result))[:_MOST_TERMS]

    @cached_property
    def error(self) -> str:
        """The line that says what went wrong."""
        return error_line(self.action.output)

    @cached_property
    def words(self) -> list[str]:
        """The words by which notes are looked for: each a word, or words one after the other."""
        if self.action.output:
            return _names_of_error(self.error)[:20]
        result = []
        for term in self.terms:
            kind, _, text = term.partition(":")
            # Nobody writes a note with a command of many words, word for word.
            if kind == "c" and text.count(" ") > 2:
                continue
            if kind == "f":
                text = text.rpartition("/")[2]
            if len(text) > 1 and not (kind == "c" and " " not in text):
                result.append(text)
        return list(dict.fromkeys(result))

    def _command_lines(self) -> Iterator[str]:
        for part in tool_call(self.action.tool, self.given):
            if part.kind is Kind.RAN:
                yield part.text

    def _code(self) -> Iterator[str]:
        """The code it writes."""
        for key in _CODE_KEYS:
            yield from texts_in(self.given.get(key))
        patch = self.given.get("input") or self.given.get("patch")
        # Only the new lines of a patch count.
        if isinstance(patch, str):
            lines = patch.splitlines()
            yield "\n".join(line[1:] for line in lines if line.startswith("+"))
        for edit in self.given.get("edits") or ():
            if isinstance(edit, dict):
                yield from texts_in(edit.get("new_string"))


def _names_of_error(line: str) -> list[str]:
    """The parts of an error that nobody says about anything else: names, codes, what it names by a sign."""
    words = line.replace("'", " ").replace('"', " ").replace("`", " ").split()
    signed = [word.strip("()[]{}:,;.") for word in words]
    codes = [
        word
        for word in signed
        if len(word) > 4 and (is_distinct(word) or (word.isupper() and word.isalnum()))
    ]
    return list(dict.fromkeys([*codes, *names_in(line)]))


def is_about_something(action: Action) -> bool:
    """Whether the memory can know anything about it. Most tools neither run nor change anything."""
    lower = action.tool.lower()
    return lower in words_of("command_tools") or lower in words_of("edit_tools")


def facts(memory: MemorySession, action: Action) -> Iterator[Fact]:
    """The facts that are known, the surest first."""
    about = ActionTerms(action)
    if not about.terms:
        return
    if memory.settings.transcripts:
        yield from _from_transcripts(memory, about)
    yield from _from_notes(memory, about)


def _from_notes(memory: MemorySession, about: ActionTerms) -> Iterator[Fact]:
    from memoranda.engine.contents import contents, notes_holding
    from memoranda.engine.telling import Telling, claimed
    from memoranda.index.rows import day_of
    from memoranda.text.unicode import flat

    # Notes are looked for by the words of the action, and each line is judged afterwards.
    infos = notes_holding(memory, about.words, _MOST_NOTES)
    for info, body in zip(infos, contents(memory, infos), strict=True):
        how = memory.telling(info)
        line = _telling_line(body, about)
        if how is Telling.SILENT or not line:
            continue
        text = flat(" ".join(line.split()))[:_LINE]
        if how is Telling.CLAIM:
            text = claimed(info.provenance, text)
        origin = f"{day_of(info, memory.settings.zone)}, {flat(info.permalink)}"
        stale = _stale(memory, about, info, body)
        if stale:
            origin += f", outdated? {flat(stale)}"
        yield Fact(info.id, f"({origin}) {text}", info.id)


def _stale(memory: MemorySession, about: ActionTerms, info: NoteInfo, body: str) -> str:
    """Say what became of the code that a note cites; "" where it is unchanged."""
    from memoranda.note.citations import CITES

    # 13 ms, which most notes need not take
    if "`" not in body and CITES not in info.header:
        return ""
    from memoranda.citations.check import CitationCheck

    return CitationCheck(memory, filter(None, [about.action.folder])).stale(info, body)


def _telling_line(body: str, about: ActionTerms) -> str:
    """The line of a note that speaks against the action or tells how to fix an error, or ""."""
    terms = set(about.terms)
    for line in body.splitlines()[:_MOST_LINES]:
        sentence = line.strip().lstrip("#-*> ")
        if not sentence or len(sentence) > 2_000:
            continue
        if about.action.output:
            if any(word in sentence for word in about.words):
                return sentence
        elif speaks_of(sentence, terms):
            return sentence
    return ""


def speaks_of(sentence: str, terms: set[str]) -> bool:
    """Whether a sentence speaks against one of these terms, or rules about a file among them."""
    if any(term in terms for term in against(sentence)):
        return True
    is_rule = kind_of(sentence) is not None
    return is_rule and any(term in terms for term in paths_in(sentence))


def _from_transcripts(memory: MemorySession, about: ActionTerms) -> Iterator[Fact]:
    from memoranda.transcripts.index import TraceIndex
    from memoranda.transcripts.mask import Mask

    path = Layout(memory.home).transcripts
    if not path.exists():
        return
    try:
        with TraceIndex(path, may_write=False) as index:
            yield from _lessons(index, Mask(memory.gate_rules()), about)
    except sqlite3.Error:
        # Another process is rebuilding it.
        return


def _lessons(index: TraceIndex, mask: Mask, about: ActionTerms) -> Iterator[Fact]:
    terms = [hashed(term) for term in about.terms]
    kinds: tuple[LessonKind, ...] = ()
    # After a failure only what fixed it helps.
    if about.action.output:
        kinds = (LessonKind.FIX,)
    rows = index.lessons(kinds, terms=terms, limit=20)
    # A person's words come first, then the newest.
    rows.sort(key=lambda row: (row.kind == LessonKind.FAILED, -row.time))
    project = project_of(about.action.folder)
    seen_texts: set[str] = set()
    for row in rows:
        turns = index.turns(filter(None, [row.turn, row.other]))
        turn = turns.get(row.turn)
        if turn is None or not _holds_in(index, row, turn, project, about):
            continue
        text = _text(row, turns, mask, about)
        if text and text not in seen_texts:
            seen_texts.add(text)
            yield Fact(f"lesson-{row.mark & (1 << 64) - 1:x}", text)


def _holds_in(
    index: TraceIndex, row: LessonRow, turn: TurnRow, project: str, about: ActionTerms
) -> bool:
    """Whether a lesson counts in a project, and still does."""
    if row.kind in (LessonKind.FIX, LessonKind.FAILED):
        lesson_terms = index.terms_of(row.id)
        if _worked_since(index, row, lesson_terms, about):
            return False
        # A program that is missing on this machine is missing in every project.
        programs = [hashed(term) for term in about.terms if term.startswith("t:")]
        if lesson_terms.intersection(programs):
            return True
    return not turn.folder or not project or project_of(turn.folder) == project


def _worked_since(
    index: TraceIndex, row: LessonRow, lesson_terms: set[int], about: ActionTerms
) -> bool:
    """Whether the command that failed in a lesson has worked after it."""
    for words in about.commands:
        term = hashed(command_term(words))
        if term in lesson_terms and index.last_success(term) > row.time:
            return True
    return False


def _text(row: LessonRow, turns: dict[int, TurnRow], mask: Mask, about: ActionTerms) -> str:
    """A lesson in one line, read from its transcript, without secrets. Empty if it is gone."""
    from memoranda.transcripts.search import moment, raw_text

    turn = turns[row.turn]
    whole = raw_text(turn)
    if whole is None:
        return ""
    where = f"{turn.agent} transcript"
    when = moment(row.time)
    if when:
        where += f", {when:%Y-%m-%d}"
    if row.kind in (LessonKind.FIX, LessonKind.FAILED):
        working_turn = turns.get(row.other or 0)
        return _fix(mask, where, whole, working_turn and raw_text(working_turn))
    # The transcript may have changed since: the sentence is read again by the same rules.
    sentence = mask.clean(whole[row.start : row.stop])
    if kind_of(sentence) is None or not _speaks(sentence, about):
        return ""
    return _said(mask, where, sentence, about)


def _said(mask: Mask, where: str, sentence: str, about: ActionTerms) -> str:
    """The line to tell of a sentence that a person said; "" where all of it may be planted."""
    if not mask.is_suspicious(sentence):
        return f'({where}, unconfirmed) the user said: "{_flat(sentence, _LINE)}"'
    # Planted instructions must not reach a model in this way either.
    names = [term.partition(":")[2] for term in against(sentence) if term in about.terms]
    if not names or mask.is_suspicious(names[0]):
        return ""
    return f"({where}, unconfirmed) the user spoke against `{_flat(names[0], _NAME)}`."


def _fix(mask: Mask, where: str, failed: str, worked: str | None) -> str:
    """The line to tell of a command that failed, and one that worked then; "" where it may be planted."""
    command = _flat(mask.clean(failed), _COMMAND)
    if mask.is_suspicious_command(command):
        return ""
    fix = _flat(mask.clean(worked or ""), _COMMAND)
    if fix and not mask.is_suspicious_command(fix):
        return f"({where}) `{command}` failed here; then `{fix}` worked."
    return f"({where}) `{command}` failed here the last time."


def _speaks(sentence: str, about: ActionTerms) -> bool:
    return speaks_of(sentence, set(about.terms))


def _flat(text: str, most: int) -> str:
    return shortened(" ".join(text.split()), most)
