"""Sets in LongMemEval's own form: every question has its own history, its haystack."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from conversations import Conversation, Question, Turn, from_locomo

_MOMENT = re.compile(r"(\d{4})/(\d\d?)/(\d\d?)(?: \([^)]*\))?(?: (\d\d?):(\d\d))?")
_NO_ANSWER = "_abs"
"""Questions about what never happened end so; the set's own scorer leaves them out, and so do we.
"""


def read(paths: Iterable[Path]) -> list[Conversation]:
    """The conversations of these files, of either form. Raises OSError and ValueError (no such
    form).
    """
    conversations: list[Conversation] = []
    for path in paths:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(content, list) and content and all(map(_is_haystack, content)):
                conversations += [_haystack(haystack) for haystack in content]
            else:
                conversations += from_locomo(content, path.stem)
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from None
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path.name}: its form is damaged ({error})") from None
    return conversations


def _is_haystack(value: object) -> bool:
    return isinstance(value, dict) and "question_id" in value and "haystack_sessions" in value


def _haystack(raw: dict) -> Conversation:
    name = str(raw["question_id"])
    conversation = Conversation(name, asked_at=_moment(raw.get("question_date")))
    ids = raw["haystack_session_ids"]
    sessions = raw["haystack_sessions"]
    dates = raw.get("haystack_dates") or [""] * len(ids)
    evidence: list[str] = []
    for session, date, turns in zip(map(str, ids), dates, sessions, strict=True):
        moment = _moment(date)
        for at, turn in enumerate(turns, 1):
            key = f"{name}/{session}_{at}"
            conversation.turns.append(
                Turn(key, session, at, str(turn["role"]), str(turn["content"]), moment)
            )
            if turn.get("has_answer"):
                evidence.append(key)
    answer_sessions = tuple(
        session_id
        for session_id in dict.fromkeys(map(str, raw["answer_session_ids"]))
        if session_id in set(map(str, ids))
    )
    if name.endswith(_NO_ANSWER) or not evidence or not answer_sessions:
        conversation.dropped = 1
    else:
        text = str(raw["question"])
        answer = str(raw.get("answer", ""))
        conversation.questions.append(
            Question(
                name,
                text,
                answer,
                str(raw.get("question_type", "")),
                tuple(evidence),
                answer_sessions,
            )
        )
    return conversation


def _moment(text: object) -> datetime | None:
    match = _MOMENT.match(str(text or "").strip())
    if match is None:
        return None
    try:
        return datetime(*(int(part or 0) for part in match.groups()))  # type: ignore[arg-type]
    except ValueError:
        return None
