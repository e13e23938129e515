"""Finds lessons in sessions by rules.

A lesson is a request, a decision or a correction of a person, or a command that failed, perhaps
with the command that worked then. Nothing is invented: a lesson is a place in a turn, the thing said
or done. Most rules are in lessons.toml. The rules of requests are in text/standing.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.text.folding import fold
from memoranda.text.pattern import lazy_pattern
from memoranda.text.standing import SENTENCE, order_rules
from memoranda.transcripts.blocks import list_of
from memoranda.transcripts.terms import (
    command_term,
    error_line,
    error_term,
    hashed,
    is_trivial,
    path_term,
    program,
    simple_commands,
)
from memoranda.transcripts.turn import Kind, Turn


class LessonKind(IntEnum):
    """The kinds of lessons."""

    REQUEST = 1
    DECISION = 2
    CORRECTION = 3
    FIX = 4
    FAILED = 5


SENTENCES = (LessonKind.REQUEST, LessonKind.DECISION, LessonKind.CORRECTION)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A sentence of a person, or a failed command, that is worth telling later.

    kind: a request, a decision, a correction, or a command that failed or was fixed.
    position: the position of its turn in the session.
    start, stop: the sentence in the text of that turn. Both are 0 if the lesson is a command.
    time: seconds since 1970.
    about: the terms it is about, such as `c:npm test` for a command (terms.py).
    identity: the text by which equal lessons are recognized.
    other: the position of the turn with the command that worked, or "".
    """

    kind: LessonKind
    position: str
    start: int
    stop: int
    time: float
    about: tuple[str, ...]
    identity: str
    other: str = ""


# Characters at both ends of an output that are searched for the cause of a failure.
_OUTPUT_END_CHARACTERS = 1_500
# Characters of an output that are searched for a client's note that it did not run the command.
_REFUSAL_CHARACTERS = 200
# Longer sentences explain; they decide nothing.
_MAX_SENTENCE_CHARACTERS = 400
# Shorter ones say too little to be remembered.
_MIN_SENTENCE_CHARACTERS = 8
# Lessons of one turn. A person with more of them has pasted a document.
_MAX_LESSONS_PER_TURN = 4
# Characters of a turn that are read.
_MAX_TURN_CHARACTERS = 6_000
# A command that works counts as the fix of one that failed at most this many commands earlier.
_MAX_COMMANDS_BETWEEN = 14
_TERM = r"(`[^`\n]{1,80}`|(?<![\w@/.-])[@A-Za-z_][\w@/+-]*(?:\.[\w@/+-]+)*)"
# A further term after a first one.
_FURTHER_TERM = lazy_pattern(rf"\s*(?:,|and|or|/|nor|和|或|、)\s*{_TERM}")
# An order not to run a command.
_FORBIDDEN_COMMAND = lazy_pattern(
    r"(?:don't|do not|never|stop|不要|别)\s*(?:ever )?(?:run(?:ning)?|call(?:ing)?|运行)\s+"
    r"([\w./-]+(?: [\w./:-]+){1,2})",
    re.I,
)
# A path, or the name of a file of code.
_PATH = lazy_pattern(
    r"`?((?:[\w.-]+/)+[\w.-]+|[\w-]+\.(?:py|ts|tsx|js|jsx|go|rs|java|rb|c|h|cpp|md|toml|ya?ml"
    r"|json|sql|sh|css|html|lock|cfg|ini|proto))`?"
)
# Text that a person pasted: fenced or quoted, or between tags.
_PASTED = lazy_pattern(
    r"^(`{3,}|~{3,}).*?(?:^\1|\Z)|^[ \t]*>[^\n]*$|<([\w-]+)>.*?</\2>", re.M | re.S
)
# Such a text has one of these characters.
_PASTED_SIGNS = frozenset("`~<>")


def _any_of(rules: list[str]) -> re.Pattern[str]:
    """Combine regular expressions into one that matches if any of them does."""
    groups = [f"(?:{rule})" for rule in rules]
    return re.compile("|".join(groups), re.I)


@cache
def _table() -> dict[str, Any]:
    """Return lessons.toml, with its lists of words as tuples and sets."""
    table = tomllib.loads(Path(__file__).with_name("lessons.toml").read_text("utf-8"))
    # Signs with `^` only count at the beginning of a sentence.
    return table | {
        "request": order_rules(),
        "no_terms": frozenset(table["no_terms"].split()),
        "broken": tuple(table["broken_command"]),
        "signs": tuple(sign for sign in table["signs"] if sign[0] != "^"),
        "beginnings": tuple(sign[1:] for sign in table["signs"] if sign[0] == "^"),
    }


@cache
def _rule_of(kind: LessonKind) -> re.Pattern[str]:
    """Return the pattern that recognizes requests, decisions or corrections.

    kind: which of the three kinds of sentences.
    """
    return _any_of(_table()[kind.name.lower()])


@cache
def _missing_program() -> re.Pattern[str]:
    """Return the pattern of an output that says that a program is not installed."""
    return re.compile(_table()["missing_program"], re.IGNORECASE | re.MULTILINE)


class AgainstRule(NamedTuple):
    """A rule that recognizes a sentence against a command, a package or a name.

    signs: words in lower case. Every sentence that the pattern matches has one of them.
    pattern: matches a sentence that speaks against something. It is compiled at its first use,
        since compiling all patterns takes a hook 20 ms.
    """

    signs: tuple[str, ...]
    pattern: re.Pattern[str]


@cache
def against_rules() -> tuple[AgainstRule, ...]:
    """Return the rules of lessons.toml that find the thing a sentence speaks against.

    `against` uses them.
    """
    return tuple(
        AgainstRule(
            tuple(row["signs"]), lazy_pattern(row["rule"].replace("{T}", _TERM), re.IGNORECASE)
        )
        for row in _table()["against"]
    )


class Sentence(NamedTuple):
    """A sentence and its place in a text.

    start, stop: where it begins and ends, in characters.
    text: the sentence.
    """

    start: int
    stop: int
    text: str


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences that a person typed. Pasted text, such as fenced code, is left out.

    Sentences that are too short or too long for a lesson are left out, too.
    """
    typed = text[:_MAX_TURN_CHARACTERS]
    # Most texts have no sign of pasted text, so that no pattern need be tried at each character.
    if not _PASTED_SIGNS.isdisjoint(typed):
        # Blanks of the same length keep the positions of the text after them.
        typed = _PASTED.sub(lambda pasted: " " * len(pasted[0]), typed)
    for match in SENTENCE.finditer(typed):
        sentence = match[0].strip(" \t-*•")
        if not sentence:
            continue
        # Chinese says in four characters what takes a dozen letters in English.
        may_be_dense = not sentence.isascii()
        is_too_short = len(sentence) < _MIN_SENTENCE_CHARACTERS and not may_be_dense
        is_too_long = len(sentence) > _MAX_SENTENCE_CHARACTERS
        if not is_too_short and not is_too_long:
            start = match.start() + match[0].index(sentence)
            yield Sentence(start, start + len(sentence), sentence)


def signs_in(text: str) -> list[str]:
    """Return the signs in a text: words such as `never` that a lesson must have.

    Lessons that are recognized by how they begin need no sign.
    """
    lower = text.lower()
    return [sign for sign in _table()["signs"] if sign in lower]


def kind_of(sentence: str, signs: Sequence[str] | None = None) -> LessonKind | None:
    """Return the kind of lesson in a person's sentence. None if it has no lesson or is a question.

    "No, use pnpm" is a correction, for example.

    signs: the signs of a lesson that `signs_in` found in the text around it. None means that they
        are looked for here.
    """
    is_question = sentence.rstrip().endswith(("?", "？", "吗", "么"))
    if is_question or len(sentence) > _MAX_SENTENCE_CHARACTERS:
        return None
    if signs is None:
        signs = signs_in(sentence)
    # Most sentences have no sign, and looking for one is cheaper than matching the rules.
    lower = sentence.lower()
    has_beginning = lower.startswith(_table()["beginnings"])
    if not has_beginning and not any(sign in lower for sign in signs):
        return None
    # A sentence may fit several kinds: the first of them counts.
    for kind in (LessonKind.CORRECTION, LessonKind.DECISION, LessonKind.REQUEST):
        if _rule_of(kind).search(sentence):
            return kind
    return None


def _forbidden_names(match: re.Match[str]) -> list[str]:
    """Return the names that a sentence forbids: "never use moment, luxon or dayjs" has three.

    match: a match of the pattern of a rule in the sentence, which has the first name.
    """
    # A rule has a group for each wording. The first group that matched has the name.
    names = [name for name in match.groups() if name][:1]
    next_match = _FURTHER_TERM.match(match.string, match.end())
    while next_match:
        names.append(next_match[1])
        next_match = _FURTHER_TERM.match(match.string, next_match.end())
    return names


def against(sentence: str) -> list[str]:
    """Return the terms of the commands, packages and names that a sentence speaks against.

    "Never use moment or dayjs" gives `t:moment` and `t:dayjs`, "don't run npm ci" `c:npm ci`.
    """
    terms = [*_terms_against(sentence), *_forbidden_commands(sentence)]
    return list(dict.fromkeys(terms))


def _terms_against(sentence: str) -> Iterator[str]:
    """Yield the terms of the names that a sentence speaks against, by the rules of lessons.toml."""
    lower = sentence.lower()
    for rule in against_rules():
        # Most sentences have no sign of a rule, and looking for one is cheaper than matching it.
        if not any(sign in lower for sign in rule.signs):
            continue
        for match in rule.pattern.finditer(sentence):
            for name in _forbidden_names(match):
                yield from _name_terms(name)


def _forbidden_commands(sentence: str) -> Iterator[str]:
    """Yield the terms of the commands that a sentence forbids to run.

    "Don't run npm ci here" gives `c:npm ci` and `c:npm ci here`, because it does not say where the
    command ends.
    """
    for match in _FORBIDDEN_COMMAND.finditer(sentence):
        words = match[1].split()
        for count in range(2, len(words) + 1):
            yield command_term(words[:count])


def _name_terms(name: str) -> list[str]:
    """Return the term of a name in a sentence: `c:npm ci` for "`npm ci`", [] for "it"."""
    name = name.strip("`").strip().removesuffix("()").rstrip(".,;:")
    words = name.split()
    if len(words) > 1:
        return [command_term(words)]
    if len(name) < 2 or fold(name) in _table()["no_terms"]:
        return []
    return [f"t:{name}"]


def paths_in(sentence: str) -> list[str]:
    """Return the terms of the paths that a sentence names: `f:src/api.ts` for "edit src/api.ts"."""
    # An address on the web looks like a path.
    if "://" in sentence:
        return []
    terms = [path_term(match[1]) for match in _PATH.finditer(sentence)]
    return list(dict.fromkeys(terms))


def is_broken(output: str) -> bool:
    """Whether an output says that the command itself is wrong, e.g. `command not found`."""
    ends = output[:_OUTPUT_END_CHARACTERS] + "\n" + output[-_OUTPUT_END_CHARACTERS:]
    lower = ends.lower()
    return any(words in lower for words in _table()["broken"])


def _says_not_run(output: str) -> bool:
    """Whether an output is a client's note that it did not run the command."""
    head = output[:_REFUSAL_CHARACTERS].lower().replace("’", "'")
    return any(words in head for words in list_of("not_run"))


@dataclass(slots=True)
class _Failure:
    """A command line that failed and has not worked since.

    position: the position of its turn.
    commands: its commands, each as a list of words.
    error: the line of the output that says what went wrong.
    is_broken: whether the command itself was wrong, e.g. a missing program.
    time: seconds since 1970.
    number: how many command lines had run in the session by then.
    is_told: whether a lesson was made of it.
    """

    position: str
    commands: list[list[str]]
    error: str
    is_broken: bool
    time: float
    number: int
    is_told: bool = False

    def row(self, clean: Callable[[str], str]) -> dict[str, Any]:
        """Return the failure as a JSON object, with its texts passed through `clean`."""
        row = asdict(self)
        row["commands"] = [list(map(clean, words)) for words in self.commands]
        row["error"] = clean(self.error)
        return row


@dataclass(slots=True)
class Miner:
    """Finds lessons in a session: commands that failed, and what worked instead.

    A failed command is open until it works, or until another command does its work. The other
    command is then its fix. The turns of the session must be fed in their order.

    lessons: the lessons found so far.
    successes: term of a command, such as `c:npm test` -> when it last worked, in seconds since
        1970.
    """

    lessons: list[Lesson] = field(default_factory=list)
    successes: dict[str, float] = field(default_factory=dict)
    _open_failures: deque[_Failure] = field(default_factory=lambda: deque(maxlen=6))
    # The id of a tool call -> the command that waits for its output.
    _commands_by_call: dict[str, Turn] = field(default_factory=dict)
    _last_command: Turn | None = None
    _waits_for_output: bool = False
    _command_count: int = 0
    # `_command_count` when a file was changed for the last time; -1 before that.
    _count_at_last_edit: int = -1

    def feed(self, turns: Iterable[Turn]) -> None:
        """Look for lessons in the next turns of the session."""
        for turn in turns:
            if turn.kind is Kind.SAID:
                self._take_sentences(turn)
            elif turn.kind is Kind.RAN:
                self._command_count += 1
                self._take_command(turn)
            elif turn.kind is Kind.EDITED:
                self._count_at_last_edit = self._command_count
            elif turn.kind is Kind.RESULT:
                self._take_result(turn)

    def end(self) -> None:
        """End the session for now: make lessons of broken commands that were not fixed."""
        for failure in self._open_failures:
            if failure.is_broken and not failure.is_told:
                failure.is_told = True
                self._add_failure_lesson(failure)

    def state(self, clean: Callable[[str], str]) -> dict[str, Any]:
        """Return the state as JSON. `of` can later continue the session from it.

        clean: takes secrets out of a text.
        """
        return {
            "number": self._command_count,
            "edited": self._count_at_last_edit,
            "open": [failure.row(clean) for failure in self._open_failures],
            "last": self._waiting_command(),
        }

    def _waiting_command(self) -> list[Any] | None:
        """Return the last command as JSON if its output has not come yet, otherwise None."""
        if self._last_command is None or not self._waits_for_output:
            return None
        # All fields but the last, `has_failed`, which a command does not have.
        return [*self._last_command[:-1]]

    @classmethod
    def of(cls, state: dict[str, Any]) -> Miner:
        """Make a miner that continues from a `state`. {} means that the session begins."""
        miner = cls()
        if state:
            miner._command_count = state["number"]
            miner._count_at_last_edit = state["edited"]
            miner._open_failures.extend(_Failure(**row) for row in state["open"])
            if state["last"]:
                kind, *turn_fields = state["last"]
                miner._take_command(Turn(Kind(kind), *turn_fields))
        return miner

    def _take_command(self, turn: Turn) -> None:
        """Remember a command until its output comes."""
        self._last_command = turn
        self._waits_for_output = True
        if turn.call:
            self._commands_by_call[turn.call] = turn

    def _take_sentences(self, turn: Turn) -> None:
        """Look for lessons in the sentences that a person said in a turn."""
        lesson_count = 0
        signs = signs_in(turn.text[:_MAX_TURN_CHARACTERS])
        for start, stop, sentence in sentences(turn.text):
            kind = kind_of(sentence, signs)
            if kind is None or lesson_count >= _MAX_LESSONS_PER_TURN:
                continue
            lesson_count += 1
            lesson = Lesson(
                kind,
                turn.position,
                start,
                stop,
                turn.time,
                about=(*against(sentence), *paths_in(sentence)),
                identity=f"{kind.name}:{fold(sentence)}",
            )
            self.lessons.append(lesson)

    def _take_result(self, turn: Turn) -> None:
        """Note a command as failed, or close the failures that a working command ends."""
        command = self._last_command
        if turn.call:
            command = self._commands_by_call.pop(turn.call, None)
        if command is None:
            # The output of another tool, or of a command before the session was read.
            return
        if command is self._last_command:
            self._waits_for_output = False
        if _says_not_run(turn.text):
            return
        commands = [words for words in simple_commands(command.text) if not is_trivial(words)]
        if not commands:
            return
        if turn.has_failed:
            self._open_failures.append(self._failure_of(command, commands, turn.text))
            return
        for words in commands:
            self.successes[command_term(words)] = command.time
        self._close_failures(command, commands)

    def _failure_of(self, command: Turn, commands: list[list[str]], output: str) -> _Failure:
        """Return a command line that failed, with the error in its output.

        commands: the commands of the line, each as a list of words.
        """
        return _Failure(
            command.position,
            commands,
            error=error_line(output),
            is_broken=is_broken(output),
            time=command.time,
            number=self._command_count,
        )

    def _close_failures(self, command: Turn, commands: list[list[str]]) -> None:
        """Close the failures that a working command line ends, and make lessons of its fixes.

        commands: the commands of the line, each as a list of words.
        """
        for failure in list(self._open_failures):
            if any(words in commands for words in failure.commands):
                # The command works now, so its failure was not about the command.
                self._open_failures.remove(failure)
                continue
            commands_between = self._command_count - failure.number
            is_recent = commands_between <= _MAX_COMMANDS_BETWEEN
            if is_recent and self._is_fixed_by(failure, commands):
                self._open_failures.remove(failure)
                self._add_failure_lesson(failure, command.position)

    def _is_fixed_by(self, failure: _Failure, commands: list[list[str]]) -> bool:
        """Whether one of the working commands does the work of a failed one.

        After `npm tset` (not found), it is `npm test`. After `pytest tests`, it is
        `python -m pytest tests`.

        failure: the failed command line.
        commands: the commands of the line that worked, each as a list of words.
        """
        # After an edit the code may have been at fault, not the command.
        was_edited = self._count_at_last_edit >= failure.number
        for failed in failure.commands:
            for worked in commands:
                # A command that is wrong itself was mistyped, whatever was edited.
                if failure.is_broken and _likeness(failed, worked) >= _LIKE_BROKEN_COMMAND:
                    return True
                if not was_edited and _same_work(failed, worked):
                    return True
        return False

    def _add_failure_lesson(self, failure: _Failure, worked_at: str = "") -> None:
        """Make a lesson of a failure.

        worked_at: the position of the command that fixed it, or "" if none did.
        """
        terms = [command_term(words) for words in failure.commands]
        if failure.error:
            terms.append(error_term(failure.error))
        # A missing program is missing for every command that runs it.
        if _missing_program().search(failure.error):
            programs = [program(words) for words in failure.commands]
            terms += [f"t:{name}" for name in programs if name in failure.error]
        kind = LessonKind.FIX if worked_at else LessonKind.FAILED
        lesson = Lesson(
            kind,
            failure.position,
            start=0,
            stop=0,
            time=failure.time,
            about=tuple(terms),
            identity=f"{kind.name}:{' '.join(failure.commands[0])}",
            other=worked_at,
        )
        self.lessons.append(lesson)


# Commands at least as alike as this do the same work, if the first one was mistyped.
_LIKE_BROKEN_COMMAND = 0.5
# Commands with the same operands at least as alike as this do the same work.
_LIKE_SAME_OPERANDS = 0.4


def _likeness(first: list[str], second: list[str]) -> float:
    """Return how alike two commands are, from 0 to 1: the share of letter pairs they share.

    first, second: the commands, each as a list of words.
    """
    first_pairs = _pairs(" ".join(first))
    second_pairs = _pairs(" ".join(second))
    if not first_pairs or not second_pairs:
        return 0.0
    shared_pairs = first_pairs & second_pairs
    return 2 * len(shared_pairs) / (len(first_pairs) + len(second_pairs))


def _pairs(text: str) -> set[str]:
    """Return all pairs of neighbouring letters: `np`, `pm` for `npm`."""
    return {text[start : start + 2] for start in range(len(text) - 1)}


def _same_work(first: list[str], second: list[str]) -> bool:
    """Whether two commands do the same to the same operands, with other programs or options.

    `pytest tests` and `python -m pytest tests`, for example. An operand is an argument that is not
    an option, such as `tests`.

    first, second: the commands, each as a list of words.
    """
    # `docker-compose up` and `docker compose up` differ only in a sign.
    if _letters(first) == _letters(second):
        return True
    first_operands = _operands(first)
    second_operands = _operands(second)
    if not first_operands or not second_operands:
        # `make -j` and `make` are calls of the same program. `ls` and `make` have nothing in common.
        has_same_operands = first_operands == second_operands
        return has_same_operands and first[0] == second[0]
    # One of them may have further operands: `python -m pytest tests` also has `pytest`.
    is_first_within = first_operands <= second_operands
    is_second_within = second_operands <= first_operands
    if not is_first_within and not is_second_within:
        return False
    return _likeness(first, second) >= _LIKE_SAME_OPERANDS


def _letters(command: list[str]) -> str:
    """Return a command without signs and spaces: `dockercomposeup` for `docker-compose up`."""
    return re.sub(r"\W", "", "".join(command))


def _operands(command: list[str]) -> set[str]:
    """Return the arguments of a command without its options: `tool.sh` for `bash -v tool.sh`."""
    return {word for word in command[1:] if not word.startswith("-")}


def new_terms(lesson: Lesson) -> tuple[int, ...]:
    """Return the hashes of the terms of a lesson, as the index stores them."""
    return tuple(hashed(term) for term in dict.fromkeys(lesson.about))
