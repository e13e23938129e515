"""The bench of recall: how sets are read, what is counted and what is printed. No test looks at a
time.
"""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path

import pytest

import conversations
import haystacks
import retrieval
from bench import conversation_sets as sets
from conversations import Question

FIGURES = [
    "recall@5",
    "recall@10",
    "recall@20",
    "hit@10",
    "all@10",
    "mrr",
    "ndcg@10",
    "session_recall@5",
    "session_recall@10",
    "ms_per_query",
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a run by words alone printed, and the file of ranked sessions it wrote."""
    folder = tmp_path_factory.mktemp("recall")
    printed, _ = sets.run("recall.py", sets.locomo(folder), "--sessions", folder / "log.jsonl")
    return printed, folder / "log.jsonl"


def lines(printed: str) -> list[dict]:
    return [json.loads(line) for line in printed.splitlines()]


def answered(keys: list[str], evidence: list[str], within: float | None = None) -> retrieval.Answer:
    """An answer to a question whose evidence is in the sessions before the points."""
    sessions = tuple(dict.fromkeys(key.partition(".")[0] for key in evidence))
    return retrieval.Answer(Question("q", "?", "", 4, tuple(evidence), sessions), keys, 1.0, within)


def test_malformed_evidence_ids_are_repaired():
    known_ids = ["D1:1", "D1:2", "D11:26", "D30:5"]
    assert conversations.repaired(["D1:1; D1:2"], known_ids) == ["D1:1", "D1:2"]
    assert conversations.repaired(["D:11:26", "D30:05", "D1:2 D1:2"], known_ids) == [
        "D11:26",
        "D30:5",
        "D1:2",
    ]
    assert conversations.repaired(["D7:7", "nothing", ""], known_ids) == []


def test_a_question_without_evidence_is_left_out_and_counted(tmp_path):
    first, second = haystacks.read([sets.locomo(tmp_path)])
    ids = [question.id for question in first.questions]
    assert ids == ["a-q001", "a-q002", "a-q003", "a-q004"]
    assert first.dropped == 1
    assert second.dropped == 0
    assert first.questions[1].evidence == ("a/D1:2", "a/D2:1")
    assert first.questions[1].sessions == ("a/session 01", "a/session 02")


@pytest.mark.parametrize(
    "content", ["{}", "[1]", "no json", '[{"question_id": 1, "haystack_sessions": []}]']
)
def test_a_file_of_another_form_is_refused_by_its_name(tmp_path, content):
    (tmp_path / "odd.json").write_text(content)
    _, complaint = sets.run("recall.py", tmp_path / "odd.json", status=1)
    assert complaint.startswith("odd.json: ")
    assert "Traceback" not in complaint


def test_the_figures_are_those_of_the_ranking():
    keys = ["s1.a", "s2.a", "s1.b", *(f"s3.{at}" for at in range(9)), "s4.a"]
    sessions = {key: key.partition(".")[0] for key in keys}
    figures = retrieval.measures([answered(keys, ["s2.a", "s4.a"])], sessions)

    assert figures["recall@5"] == 0.5
    assert figures["recall@10"] == 0.5
    assert figures["recall@20"] == 1
    assert figures["hit@10"] == 1
    assert figures["all@10"] == 0
    assert figures["mrr"] == 0.5
    assert figures["ndcg@10"] == round((1 / math.log2(3)) / (1 + 1 / math.log2(3)), 4)
    assert figures["session_recall@5"] == 1
    assert "evidence@700" not in figures


def test_a_run_tells_its_rules_its_rates_and_what_it_leaves_out(ran):
    printed, _ = ran
    assert conversations.RULES in printed
    assert "Left out: 1 questions." in printed
    assert "Plain cosine is left out: Searching by meaning is switched off" in printed
    assert "notes a second, durable and indexed." in printed
    for row in ("categories 1-4", "categories 1-5", "multi-hop", "adversarial", "a  ", "b  "):
        for pipeline in ("memoranda", "fts5 porter, OR", "grep"):
            assert any(
                line.startswith(row) and f" {pipeline} " in line for line in printed.splitlines()
            )


def test_json_is_one_object_a_line_with_the_promised_keys(tmp_path):
    printed, remarks = sets.run("recall.py", sets.locomo(tmp_path), "--json")
    rows = lines(printed)
    groups = ("1-4", "1-5", "1", "2", "4", "5")
    asked_groups = {(row["scope"], row["categories"]) for row in rows}
    assert asked_groups == set(product(("conversation", "pooled"), groups))
    for row in rows:
        if row["pipeline"] == "memoranda":
            evidence = ["evidence@700"]
        else:
            evidence = []
        assert list(row) == ["scope", "categories", "pipeline", "questions", *FIGURES, *evidence]
    ours = next(
        row for row in rows if row["pipeline"] == "memoranda" and row["categories"] == "1-5"
    )
    assert (ours["scope"], ours["questions"], ours["recall@10"], ours["evidence@700"]) == (
        "conversation",
        5,
        1,
        1,
    )
    assert conversations.RULES in remarks


def test_sessions_as_notes_are_measured_by_sessions_and_by_evidence(tmp_path):
    printed, _ = sets.run(
        "recall.py", sets.locomo(tmp_path), "--json", "--notes", "session", "--prompt", "300"
    )
    for line in lines(printed):
        assert line["notes"] == "session"
        assert line["recall@5"] is None
        assert line["session_recall@10"] == 1
        assert ("evidence@700" in line) == (line["pipeline"] == "memoranda")
        if "evidence@700" in line and line["categories"] == "4":
            assert line["evidence@700"] == 1
    table, _ = sets.run("recall.py", sets.locomo(tmp_path), "--notes", "session", "--only", "ours")

    assert "Each session is one note" in table


def test_a_set_of_longmemeval_is_asked_history_by_history_under_its_own_ids(tmp_path):
    log = tmp_path / "log.jsonl"
    printed, remarks = sets.run(
        "recall.py", sets.longmemeval(tmp_path), "--json", "--sessions", log
    )
    assert {(line["scope"], line["categories"]) for line in lines(printed)} == {
        ("conversation", "all"),
        ("conversation", "single-session-user"),
        ("conversation", "single-session-assistant"),
    }
    assert "Left out: 1 questions." in remarks
    first, second = lines(log.read_text())
    assert first["question_id"] == "q1"
    assert first["question_type"] == "single-session-user"
    assert first["answer_session_ids"] == ["answer_1"]
    assert first["ranked_session_ids"][0] == "answer_1"
    assert first["retrieval_results"]["ranked_items"][0]["timestamp"] == "2023/05/20 (Sat) 02:21"
    assert second["ranked_session_ids"][0] == "answer_3"
