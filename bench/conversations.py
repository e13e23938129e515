"""Conversations with questions in the JSON form of LoCoMo, and the memories a chat's import would make of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from commonplace import Draft

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
        date = None if self.moment is None else self.moment.isoformat(timespec="minutes")
        return Draft(
            self.spoken,
            project=project,
            folder=self.session,
            title=f"Turn {self.number:03}",
            source=self.speaker,
            date=date,
        )


@dataclass(frozen=True)
class Question:
    """One question, its category (1 to 5) and the keys of the turns that hold the answer."""

    id: str
    text: str
    answer: str
    category: int
    evidence: tuple[str, ...]


@dataclass
class Conversation:
    """All turns of two people in order, and what is asked about them."""

    id: str
    turns: list[Turn] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    dropped: int = 0


def read(paths: Iterable[Path]) -> list[Conversation]:
    """The conversations of these files. Raises OSError and ValueError (no such form)."""
    found: list[Conversation] = []
    for path in paths:
        content = json.loads(path.read_text(encoding="utf-8"))
        for number, one in enumerate(content if isinstance(content, list) else [content]):
            if not isinstance(one, dict) or "conversation" not in one or "qa" not in one:
                raise ValueError(f"{path.name} is no set of conversations in LoCoMo's form")
            found.append(_conversation(one, str(one.get("sample_id") or f"{path.stem}-{number}")))
    return found


def repaired(evidence: Sequence[object], known: Iterable[str]) -> list[str]:
    """The dialogue ids (`D1:3`) that are meant and exist, by the RULES."""
    there = set(known)
    ids = [f"D{int(a)}:{int(b)}" for text in evidence for a, b in _EVIDENCE.findall(str(text))]
    return [one for one in dict.fromkeys(ids) if one in there]


def _conversation(raw: dict, name: str) -> Conversation:
    found = Conversation(name)
    spoken = raw["conversation"]
    sessions = sorted((int(match[1]), key) for key in spoken if (match := _SESSION.fullmatch(key)))
    for number, key in sessions:
        moment = _moment(spoken.get(f"{key}_date_time", ""))
        for at, turn in enumerate(spoken[key], 1):
            text = str(turn.get("text") or "")
            if turn.get("blip_caption"):
                text += f" [shares {turn['blip_caption']}]"
            found.turns.append(
                Turn(f"{name}/{turn['dia_id']}", f"{name}/session {number:02}", at, turn["speaker"], text, moment)
            )
    known = [turn.key.rpartition("/")[2] for turn in found.turns]
    for at, raw_question in enumerate(raw["qa"], 1):
        ids = repaired(raw_question.get("evidence") or (), known)
        if not ids:
            found.dropped += 1
            continue
        found.questions.append(
            Question(
                f"{name}-q{at:03}",
                str(raw_question["question"]),
                str(raw_question.get("answer", "")),
                int(raw_question["category"]),
                tuple(f"{name}/{one}" for one in ids),
            )
        )
    return found


def _moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(text.strip(), _MOMENT)
    except ValueError:
        return None
