"""Small sets of conversations for the tests of the benches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"

_FIRST = [
    ("Ann", "I adopted a grey cat called Soot last week."),
    ("Ben", "How lovely! My bakery opens on Friday."),
    ("Ann", "What will you bake?"),
    ("Ben", "Rye bread and cinnamon rolls."),
]
_SECOND = [
    ("Ben", "The bakery had a fire in the oven."),
    ("Ann", "Soot broke a vase.\nIt was grandmother's."),
    ("Ben", "I will paint the walls blue."),
]


def locomo(folder: Path) -> Path:
    """Two conversations in LoCoMo's form, evidence ids partly malformed; conversation b has one
    question.
    """
    folder.mkdir(parents=True, exist_ok=True)
    first = [
        _asked("What is the name of Ann's cat?", "Soot", 4, "D1:1"),
        _asked("What happened at the bakery of Ben?", "a fire", 1, "D1:02; D:2:1"),
        _asked("When did Soot break the vase?", "May", 2, "D2:2", "D2:2", "D9:9"),
        {
            "question": "What does Ann bake?",
            "adversarial_answer": "rye",
            "evidence": ["D1:4"],
            "category": 5,
        },
        _asked("Who is asked about nothing?", "nobody", 3),
    ]
    second = [_asked("Where did Eve swim?", "lake", 4, "D1:1")]
    content = [
        _conversation("a", first, _FIRST, _SECOND),
        _conversation("b", second, [("Eve", "I swam in the lake.")]),
    ]
    path = folder / "set.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _asked(question: str, answer: str, category: int, *evidence: str) -> dict:
    return {
        "question": question,
        "answer": answer,
        "evidence": list(evidence),
        "category": category,
    }


def _conversation(name: str, questions: list[dict], *sessions: list[tuple[str, str]]) -> dict:
    spoken: dict = {"speaker_a": "Ann", "speaker_b": "Ben"}
    for number, turns in enumerate(sessions, 1):
        spoken[f"session_{number}_date_time"] = f"1:56 pm on {number + 7} May, 2023"
        spoken[f"session_{number}"] = [
            {"speaker": who, "dia_id": f"D{number}:{at}", "text": text}
            for at, (who, text) in enumerate(turns, 1)
        ]
    return {"sample_id": name, "conversation": spoken, "qa": questions}


def longmemeval(folder: Path) -> Path:
    """Three questions in LongMemEval's form, each with its own history; the last one has no answer."""
    folder.mkdir(parents=True, exist_ok=True)
    filler = [
        {"role": "user", "content": "Which pasta is best?"},
        {"role": "assistant", "content": "Orecchiette."},
    ]
    bike = [
        {"role": "user", "content": "I bought a red bicycle for commuting.", "has_answer": True},
        {"role": "assistant", "content": "Enjoy the ride!", "has_answer": False},
    ]
    piano = [
        {"role": "user", "content": "Tell me a joke."},
        {
            "role": "assistant",
            "content": "I suggested Chopin for the piano recital.",
            "has_answer": True,
        },
    ]
    entries = [
        _haystack(
            "q1", "user", "What did I buy for commuting?", {"answer_1": bike, "ultra_2": filler}
        ),
        _haystack(
            "q2",
            "assistant",
            "Which piano music did you suggest?",
            {"ultra_2": filler, "answer_3": piano},
        ),
        _haystack("q3_abs", "user", "What did I buy in Rome?", {"answer_1": bike}),
    ]
    path = folder / "haystacks.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def _haystack(name: str, kind: str, question: str, sessions: dict[str, list[dict]]) -> dict:
    return {
        "question_id": name,
        "question_type": f"single-session-{kind}",
        "question": question,
        "answer": "-",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": list(sessions),
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"][: len(sessions)],
        "haystack_sessions": list(sessions.values()),
        "answer_session_ids": [session for session in sessions if session.startswith("answer")],
    }


def run(
    script: str, *arguments: str | Path, model: str | None = None, status: int = 0
) -> tuple[str, str]:
    """Return what the bench prints: (stdout, stderr).

    model: the name of the embedding model; None for no model.
    """
    process = subprocess.run(
        [sys.executable, str(BENCH / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "MEMORY_SEMANTIC": model or "off"},
    )
    assert process.returncode == status, process.stderr
    return process.stdout, process.stderr
