"""Rankings as LongMemEval's retrieval log, counted as its own runs count, so that its scorer can be
used on them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from conversations import CATEGORIES, Conversation
from retrieval import Answer, ranked_sessions

SESSIONS = (1, 3, 5, 10)
TURNS = (1, 3, 5, 10, 30, 50)
"""The depths at which LongMemEval's scorer counts, up to the depth that we rank."""


def lines(
    conversation: Conversation,
    answers: Sequence[Answer],
    sessions: Mapping[str, str],
    *,
    turns: bool = True,
) -> Iterator[str]:
    """A line of the log for each answer. `sessions` names the session of every key; `turns`: what
    was found are turns.

    A session counts once, at the place of its best turn, as when that scorer's own runs rank
    sessions.
    """
    moments = {turn.session: _written(turn.moment) for turn in conversation.turns}
    for answer in answers:
        question = answer.question
        ranked = ranked_sessions(answer.keys, sessions)
        kind = question.category
        yield (
            json.dumps(
                {
                    "question_id": question.id,
                    "question_type": CATEGORIES[kind] if isinstance(kind, int) else kind,
                    "question": question.text,
                    "answer": question.answer,
                    "answer_session_ids": question.sessions,
                    "ranked_session_ids": ranked,
                    "retrieval_results": {
                        "query": question.text,
                        "ranked_items": [
                            {"corpus_id": corpus_id, "timestamp": moments[corpus_id]}
                            for corpus_id in ranked
                        ],
                        "metrics": {
                            "session": scored(ranked, question.sessions, SESSIONS),
                            "turn": scored(answer.keys, question.evidence, TURNS) if turns else {},
                        },
                    },
                }
            )
            + "\n"
        )


def scored(
    ranked: Sequence[str], evidence: Sequence[str], depths: Sequence[int]
) -> dict[str, float]:
    """Its figures by its names."""
    scores: dict[str, float] = {}
    for depth in depths:
        relevant = set(ranked[:depth]) & set(evidence)
        scores[f"recall_any@{depth}"] = float(bool(relevant))
        scores[f"recall_all@{depth}"] = float(relevant == set(evidence))
        scores[f"ndcg_any@{depth}"] = _gain(ranked, evidence, depth)
    return scores


def _gain(ranked: Sequence[str], evidence: Sequence[str], depth: int) -> float:
    """nDCG as it counts it: the second place weighs as much as the first, unlike in the usual one."""
    evidence_set = set(evidence)
    got = sum(_weight(at) for at, key in enumerate(ranked[:depth]) if key in evidence_set)
    return got / sum(map(_weight, range(min(depth, len(evidence_set)))))


def _weight(at: int) -> float:
    if at == 0:
        return 1.0
    return 1 / math.log2(at + 1)


def _written(moment: datetime | None) -> str:
    if moment is None:
        return ""
    return f"{moment:%Y/%m/%d (%a) %H:%M}"
