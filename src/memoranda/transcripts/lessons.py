"""Finds what a session teaches, by rule: what a person asked for, decided and corrected, and which
commands failed and what worked then. Nothing is invented: a lesson is a place in a turn.
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
from typing import Any

from memoranda.text.folding import fold
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
    """A lesson: a place in a turn.

    kind: its kind.
    position: the turn.
    start, stop: the sentence in that turn. Both are 0 if the lesson is the whole command there.
    time: seconds since 1970.
    about: the terms it is about.
    identity: the text by which equal lessons are recognized.
    other: the turn with the command that worked.
    """

    kind: LessonKind
    position: str
    start: int
    stop: int
    time: float
    about: tuple[str, ...]
    identity: str
    other: str = ""


# Characters at both ends of an output that tell what failed.
_HEAD_OF_OUTPUT = 1_500
# Characters of an output in which a client says that it did not run the command.
_HEAD_OF_REFUSAL = 200
# Longer sentences explain; they decide nothing.
_LONGEST = 400
# Shorter ones say too little to be remembered.
_SHORTEST = 8
# Lessons of one turn: who says more is pasting.
_MOST_OF_TURN = 4
# Characters of a turn that are read.
_LONGEST_TURN = 6_000
# A command that works counts as the fix of one that failed at most this many commands earlier.
_NEAR = 14
# A sentence; a dot inside a name does not end it.
_SENTENCE = re.compile(r"[^\n.!?。！？]+(?:\.(?=\S)[^\n.!?。！？]*)*[.!?。！？]*")
_TERM = r"(`[^`\n]{1,80}`|(?<![\w@/.-])[@A-Za-z_][\w@/+-]*(?:\.[\w@/+-]+)*)"
# A further term after a first one.
_AND = re.compile(rf"\s*(?:,|and|or|/|nor|和|或|、)\s*{_TERM}")
# An order not to run a command.
_RUN = re.compile(
    r"(?:don't|do not|never|stop|不要|别)\s*(?:ever )?(?:run(?:ning)?|call(?:ing)?|运行)\s+"
    r"([\w./-]+(?: [\w./:-]+){1,2})",
    re.I,
)
# A path, or the name of a file of code.
_PATH = re.compile(
    r"`?((?:[\w.-]+/)+[\w.-]+|[\w-]+\.(?:py|ts|tsx|js|jsx|go|rs|java|rb|c|h|cpp|md|toml|ya?ml"
    r"|json|sql|sh|css|html|lock|cfg|ini|proto))`?"
)
# Text that a person pasted: fenced or quoted, or between tags.
_PASTED = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1|\Z)|^[ \t]*>[^\n]*$|<([\w-]+)>.*?</\2>", re.M | re.S)


def _any_of(rules: list[str]) -> re.Pattern[str]:
    """A pattern that matches everything that one of these rules matches."""
    groups = [f"(?:{rule})" for rule in rules]
    return re.compile("|".join(groups), re.I)


@cache
def _rules() -> dict[Any, Any]:
    # Signs with `^` only count at the beginning of a sentence.
    rules = tomllib.loads(Path(__file__).with_name("lessons.toml").read_text("utf-8"))
    return {
        LessonKind.REQUEST: _any_of(rules["request"]),
        LessonKind.DECISION: _any_of(rules["decision"]),
        LessonKind.CORRECTION: _any_of(rules["correction"]),
        "against": [re.compile(rule.replace("{T}", _TERM), re.I) for rule in rules["against"]],
        "no_terms": frozenset(rules["no_terms"].split()),
        "broken": tuple(rules["broken_command"]),
        "signs": tuple(sign for sign in rules["signs"] if sign[0] != "^"),
        "beginnings": tuple(sign[1:] for sign in rules["signs"] if sign[0] == "^"),
        "missing": re.compile(rules["missing_program"], re.I | re.M),
    }


def sentences(text: str) -> Iterator[tuple[int, int, str]]:
    """The sentences that a person typed, each with its place. Pasted text is left out."""
    # Blanks of the same length keep the places of what follows.
    typed = _PASTED.sub(lambda pasted: " " * len(pasted[0]), text[:_LONGEST_TURN])
    for match in _SENTENCE.finditer(typed):
        sentence = match[0].strip(" \t-*•")
        # Scripts without spaces say much in few characters.
        is_dense = bool(sentence) and not sentence.isascii()
        if _SHORTEST <= len(sentence) <= _LONGEST or is_dense:
            start = match.start() + match[0].index(sentence)
            yield start, start + len(sentence), sentence


def signs_in(text: str) -> list[str]:
    """The signs in a text without which no sentence of it is a lesson, but by how it begins."""
    lower = text.lower()
    return [sign for sign in _rules()["signs"] if sign in lower]


def kind_of(sentence: str, signs: Sequence[str] | None = None) -> LessonKind | None:
    """The kind of lesson in a person's sentence. None for most sentences, and for questions.

    signs: the signs of its text, if they are known.
    """
    if len(sentence) > _LONGEST or sentence.rstrip().endswith(("?", "？", "吗", "么")):
        return None
    rules = _rules()
    lower = sentence.lower()
    if signs is None:
        signs = signs_in(sentence)
    # Most sentences have no sign of a rule, and are not worth an expression.
    if not (lower.startswith(rules["beginnings"]) or any(sign in lower for sign in signs)):
        return None
    for kind in (LessonKind.CORRECTION, LessonKind.DECISION, LessonKind.REQUEST):
        if rules[kind].search(sentence):
            return kind
    return None


def against(sentence: str) -> list[str]:
    """The commands, packages and names that a sentence speaks against, as terms."""
    rules = _rules()
    result: list[str] = []
    for rule in rules["against"]:
        for match in rule.finditer(sentence):
            names = [next(filter(None, match.groups()), "")]
            # A list: "never use moment, luxon or dayjs".
            next_match = _AND.match(sentence, match.end())
            while next_match:
                names.append(next_match[1])
                next_match = _AND.match(sentence, next_match.end())
            for name in names:
                result += _name_terms(name)
    for match in _RUN.finditer(sentence):
        words = match[1].split()
        result += [command_term(words[:count]) for count in range(2, len(words) + 1)]
    return list(dict.fromkeys(result))


def _name_terms(name: str) -> list[str]:
    name = name.strip("`").strip().removesuffix("()").rstrip(".,;:")
    words = name.split()
    if len(words) > 1:
        return [command_term(words)]
    if len(name) < 2 or fold(name) in _rules()["no_terms"]:
        return []
    return [f"t:{name}"]


def paths_in(sentence: str) -> list[str]:
    """The paths that a sentence names, as terms."""
    result = [path_term(match[1]) for match in _PATH.finditer(sentence) if "://" not in sentence]
    return list(dict.fromkeys(result))


def is_broken(output: str) -> bool:
    """Whether the output says that the command itself cannot be run so."""
    lower = f"{output[:_HEAD_OF_OUTPUT]}\n{output[-_HEAD_OF_OUTPUT:]}".lower()
    return any(words in lower for words in _rules()["broken"])


def _was_not_run(output: str) -> bool:
    """Whether a client says in the place of an output that it did not run the command."""
    head = output[:_HEAD_OF_REFUSAL].lower().replace("’", "'")
    return any(words in head for words in list_of("not_run"))


@dataclass(slots=True)
class _Failure:
    """A command that failed and has not worked since."""

    position: str
    commands: list[list[str]]
    error: str
    is_broken: bool
    time: float
    number: int
    is_told: bool = False

    def row(self, clean: Callable[[str], str]) -> dict[str, Any]:
        """The lesson as JSON, without secrets."""
        row = asdict(self)
        row["commands"] = [list(map(clean, words)) for words in self.commands]
        row["error"] = clean(self.error)
        return row


@dataclass(slots=True)
class Miner:
    """Goes through the turns of one session, in their order."""

    lessons: list[Lesson] = field(default_factory=list)
    successes: dict[str, float] = field(default_factory=dict)
    """When each command, as a term, worked for the last time."""
    _open: deque[_Failure] = field(default_factory=lambda: deque(maxlen=6))
    _calls: dict[str, Turn] = field(default_factory=dict)
    _last: Turn | None = None
    _waits: bool = False
    _number: int = 0
    _edited: int = -1

    def feed(self, turns: Iterable[Turn]) -> None:
        """Look at more turns."""
        for turn in turns:
            if turn.kind is Kind.SAID:
                self._take_words(turn)
            elif turn.kind is Kind.RAN:
                self._number += 1
                self._ran(turn)
            elif turn.kind is Kind.EDITED:
                self._edited = self._number
            elif turn.kind is Kind.RESULT:
                self._result(turn)

    def end(self) -> None:
        """End the session for now: turn failures that were not fixed into lessons."""
        for failure in self._open:
            if failure.is_broken and not failure.is_told:
                failure.is_told = True
                self._failed(failure)

    def state(self, clean: Callable[[str], str]) -> dict[str, Any]:
        """The state to continue the session from at a later time, without secrets."""
        return {
            "number": self._number,
            "edited": self._edited,
            "open": [failure.row(clean) for failure in self._open],
            "last": self._waiting_command(),
        }

    def _waiting_command(self) -> list[Any] | None:
        """The last command, as JSON, if its output has not come yet."""
        if self._last is None or not self._waits:
            return None
        return [*self._last[:5]]

    @classmethod
    def of(cls, state: dict[str, Any]) -> Miner:
        """A miner that goes on from `state`; {} for a session that begins."""
        miner = cls()
        if state:
            miner._number = state["number"]
            miner._edited = state["edited"]
            miner._open.extend(_Failure(**row) for row in state["open"])
            if state["last"]:
                kind, *turn_fields = state["last"]
                miner._ran(Turn(Kind(kind), *turn_fields))
        return miner

    def _ran(self, turn: Turn) -> None:
        self._last = turn
        self._waits = True
        if turn.call:
            self._calls[turn.call] = turn

    def _take_words(self, turn: Turn) -> None:
        result = 0
        signs = signs_in(turn.text[:_LONGEST_TURN])
        for start, stop, sentence in sentences(turn.text):
            # A long list of rules is a document, not a correction.
            kind = kind_of(sentence, signs)
            if kind is None or result >= _MOST_OF_TURN:
                continue
            result += 1
            lesson_terms = (*against(sentence), *paths_in(sentence))
            identity = f"{kind.name}:{fold(sentence)}"
            self.lessons.append(
                Lesson(kind, turn.position, start, stop, turn.time, lesson_terms, identity)
            )

    def _result(self, turn: Turn) -> None:
        ran = self._last
        if turn.call:
            ran = self._calls.pop(turn.call, None)
        if ran is None:
            return
        if ran is self._last:
            self._waits = False
        if _was_not_run(turn.text):
            return
        commands = [words for words in simple_commands(ran.text) if not is_trivial(words)]
        if not commands:
            return
        if turn.has_failed:
            error = error_line(turn.text)
            broken = is_broken(turn.text)
            self._open.append(
                _Failure(ran.position, commands, error, broken, ran.time, self._number)
            )
            return
        for words in commands:
            self.successes[command_term(words)] = ran.time
        self._worked(ran, commands)

    def _worked(self, ran: Turn, commands: list[list[str]]) -> None:
        for failure in list(self._open):
            if any(words in commands for words in failure.commands):
                # The command works now, so its failure was not about the command.
                self._open.remove(failure)
            elif self._number - failure.number <= _NEAR and self._is_mended(failure, commands):
                self._open.remove(failure)
                self._failed(failure, ran.position)

    def _is_mended(self, failure: _Failure, commands: list[list[str]]) -> bool:
        """Whether one of the commands that work does the task of the failed one."""
        was_edited = self._edited >= failure.number
        for failed in failure.commands:
            for worked in commands:
                if failure.is_broken and _likeness(failed, worked) >= 0.5:
                    return True
                # After an edit the code may have been at fault, not the command.
                if not was_edited and _same_work(failed, worked):
                    return True
        return False

    def _failed(self, failure: _Failure, worked_at: str = "") -> None:
        """Add a lesson: `worked_at` is the position of the command that worked, "" for none."""
        terms = [command_term(words) for words in failure.commands]
        if failure.error:
            terms.append(error_term(failure.error))
        # A missing program is missing for every command that runs it.
        if _rules()["missing"].search(failure.error):
            terms += [
                f"t:{program(words)}"
                for words in failure.commands
                if program(words) in failure.error
            ]
        kind = LessonKind.FAILED
        if worked_at:
            kind = LessonKind.FIX
        identity = f"{kind.name}:{' '.join(failure.commands[0])}"
        self.lessons.append(
            Lesson(kind, failure.position, 0, 0, failure.time, tuple(terms), identity, worked_at)
        )


def _likeness(a: list[str], b: list[str]) -> float:
    """How alike two commands are, by the pairs of their letters, from 0 to 1."""
    first = _pairs(" ".join(a))
    second = _pairs(" ".join(b))
    if not first or not second:
        return 0.0
    return 2 * len(first & second) / (len(first) + len(second))


def _pairs(text: str) -> set[str]:
    return {text[start : start + 2] for start in range(len(text) - 1)}


def _same_work(a: list[str], b: list[str]) -> bool:
    """Whether two commands are given the same things by another program or other options."""
    # `docker-compose up` and `docker compose up`.
    if _letters(a) == _letters(b):
        return True
    first = _operands(a)
    second = _operands(b)
    if not first or not second:
        return a[0] == b[0] and first == second
    if not (first <= second or second <= first):
        return False
    return _likeness(a, b) >= 0.4


def _letters(command: list[str]) -> str:
    """A command without signs and spaces."""
    return re.sub(r"\W", "", "".join(command))


def _operands(command: list[str]) -> set[str]:
    """The arguments of a command without its options."""
    return {word for word in command[1:] if not word.startswith("-")}


def new_terms(lesson: Lesson) -> tuple[int, ...]:
    """The terms of a lesson, as the index keeps them."""
    return tuple(hashed(term) for term in dict.fromkeys(lesson.about))
