"""Conversations with questions, and the memories a chat's import would make of them.

Sets in the JSON form of LoCoMo are read here, those in LongMemEval's by `haystacks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memoranda import Draft

RULES = (
    "Evidence ids are repaired: of one string that holds several (parted by blanks, commas or semicolons) each "
    "counts; `D:11:26` is `D11:26`; zeros in front of a number go (`D30:05` is `D30:5`); one named twice counts "
    "once; one that names no turn is dropped. Questions left without evidence are not asked."
)
"""How evidence ids are repaired, printed with every run."""

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

_EVIDENCE = re.compile(r"D\s*:?\s*0*(\d+)\s*:\s*0*(\d+)", re.I)
_SESSION = re.compile(r"session_(\d+)")
_MOMENT = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True)
class Turn:
    """What one person said in one session. `key` tells it from all others: `conv-26/D1:3`."""

    key: str
    session: str
    number: int
    speaker: str
    text: str
    moment: datetime | None

    @property
    def spoken(self) -> str:
        """The text as every pipeline gets it, with the name in front."""
        return f"{self.speaker}: {self.text}"

    def draft(self, project: str = "notes") -> Draft:
        """The memory an import makes of it: its session is the folder, its speaker the source."""
        if self.moment is None:
            date = None
        else:
            date = self.moment.isoformat(timespec="minutes")
        return Draft(
            self.spoken,
            project=project,
            folder=self.session,
            title=f"Turn {self.number:03}",
            source=self.speaker,
            date=date,
        )


@dataclass(frozen=True)
class Sitting:
    """A session kept as one note: each turn a paragraph with the speaker's name in front. `key` is
    the session's.
    """

    key: str
    turns: tuple[Turn, ...]

    @property
    def spoken(self) -> str:
        """The text as every pipeline gets it."""
        return "\n\n".join(turn.spoken for turn in self.turns)

    def draft(self, project: str = "notes") -> Draft:
        """The note an import makes of it: the conversation is the folder, the session's name the
        title.
        """
        folder, _, name = self.key.rpartition("/")
        moment = self.turns[0].moment
        if moment is None:
            date = None
        else:
            date = moment.isoformat(timespec="minutes")
        return Draft(
            self.spoken,
            project=project,
            folder=folder,
            title=name[:1].upper() + name[1:],
            date=date,
        )


@dataclass(frozen=True)
class Question:
    """One question, its category (LoCoMo's 1 to 5, LongMemEval's type), the keys of the turns that
    hold the answer and their sessions."""

    id: str
    text: str
    answer: str
    category: int | str
    evidence: tuple[str, ...]
    sessions: tuple[str, ...]


@dataclass
class Conversation:
    """All turns in order, and what is asked about them. `asked_at`: the day of the question, when the
    set names it; such a conversation is the haystack of one question and is never put together with
    others."""

    id: str
    turns: list[Turn] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    dropped: int = 0
    asked_at: datetime | None = None

    @property
    def sittings(self) -> list[Sitting]:
        """The turns by session."""
        turns_by_session: dict[str, list[Turn]] = {}
        for turn in self.turns:
            turns_by_session.setdefault(turn.session, []).append(turn)
        return [Sitting(key, tuple(turns)) for key, turns in turns_by_session.items()]


def from_locomo(content: object, name: str) -> list[Conversation]:
    """Return the conversations of a file in LoCoMo's form.

    name: the beginning of the ids of conversations that have none.

    Raises ValueError if the content has another form.
    """
    conversations: list[Conversation] = []
    for number, sample in enumerate(content if isinstance(content, list) else [content]):
        if not isinstance(sample, dict) or "conversation" not in sample or "qa" not in sample:
            raise ValueError("no set of conversations in LoCoMo's or LongMemEval's form")
        conversations.append(
            _conversation(sample, str(sample.get("sample_id") or f"{name}-{number}"))
        )
    return conversations


def repaired(evidence: Sequence[object], known_ids: Iterable[str]) -> list[str]:
    """The dialogue ids (`D1:3`) that are meant and exist, by the RULES."""
    id_set = set(known_ids)
    ids: dict[str, None] = {}
    for text in evidence:
        for session, turn in _EVIDENCE.findall(str(text)):
            ids[f"D{int(session)}:{int(turn)}"] = None
    return [id_ for id_ in ids if id_ in id_set]


def _turns(spoken: dict, name: str) -> Iterator[Turn]:
    """The turns of all sessions of a conversation, in their order."""
    sessions = []
    for key in spoken:
        match = _SESSION.fullmatch(key)
        if match:
            sessions.append((int(match[1]), key))
    for number, key in sorted(sessions):
        session = f"{name}/session {number:02}"
        moment = _moment(spoken.get(f"{key}_date_time", ""))
        for at, turn in enumerate(spoken[key], 1):
            text = str(turn.get("text") or "")
            if turn.get("blip_caption"):
                text += f" [shares {turn['blip_caption']}]"
            yield Turn(f"{name}/{turn['dia_id']}", session, at, turn["speaker"], text, moment)


def _conversation(raw: dict, name: str) -> Conversation:
    conversation = Conversation(name)
    conversation.turns.extend(_turns(raw["conversation"], name))
    sessions_of = {turn.key: turn.session for turn in conversation.turns}
    turn_ids = [key.rpartition("/")[2] for key in sessions_of]
    for at, raw_question in enumerate(raw["qa"], 1):
        ids = repaired(raw_question.get("evidence") or (), turn_ids)
        if not ids:
            conversation.dropped += 1
            continue
        evidence = tuple(f"{name}/{turn_id}" for turn_id in ids)
        conversation.questions.append(
            Question(
                f"{name}-q{at:03}",
                str(raw_question["question"]),
                str(raw_question.get("answer", "")),
                int(raw_question["category"]),
                evidence,
                tuple(dict.fromkeys(sessions_of[key] for key in evidence)),
            )
        )
    return conversation


def _moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(text.strip(), _MOMENT)
    except ValueError:
        return None
