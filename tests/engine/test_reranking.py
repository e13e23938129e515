"""A model behind an endpoint puts the first hits of a search in order (docs/semantic.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contract.language_model import LanguageModel, language_model
from memoranda import Draft, Query, config
from memoranda.engine import open_session
from memoranda.engine.entries import NoteEntries
from memoranda.engine.memory import MemorySession
from memoranda.errors import MemorandaError
from memoranda.index.search.reranking import REASON

MANY = 40


@pytest.fixture(autouse=True)
def section_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable, which tests set, replaces the whole section."""
    monkeypatch.delenv("MEMORY_SEMANTIC", raising=False)


@pytest.fixture
def model() -> Iterator[LanguageModel]:
    with language_model() as server:
        yield server


def settings(home: Path, text: str) -> config.Settings:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(text, encoding="utf-8")
    return config.load(home)


@pytest.fixture
def memory(tmp_path: Path, model: LanguageModel) -> Iterator[MemorySession]:
    text = f"semantic: {{model: off, rerank: small-reranker, rerank_endpoint: '{model.url}'}}\n"
    home = tmp_path / "reranked"
    with closing(open_session(home, config=settings(home, text), watch=False)) as session:
        session.write_many(
            [Draft(f"The harbour, part {number}, is closed.") for number in range(MANY)]
        )
        yield session


def says(model: LanguageModel, scores: dict[int, float]) -> None:
    results = [{"index": at, "relevance_score": score} for at, score in scores.items()]
    model.body = json.dumps({"results": results}).encode()


def titles(hits: Any) -> list[str]:
    return [hit.note.title for hit in hits]


def unranked(memory: MemorySession, model: LanguageModel) -> list[str]:
    """All titles in the order of the words alone."""
    model.body = b"no json"
    first = memory.search("harbour closed", limit=30)
    return titles(first) + titles(memory.search("harbour closed", limit=MANY, offset=30))


def test_hits_come_in_the_order_of_the_model(memory: MemorySession, model: LanguageModel) -> None:
    before = unranked(memory, model)
    says(model, {number: float(number) for number in range(30)})

    hits = memory.search("harbour closed", limit=5)

    assert titles(hits) == before[29:24:-1]
    for hit in hits:
        assert REASON in hit.why
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    path, _, body = model.asked[-1]
    assert path == "/v1/rerank"
    assert body["model"] == "small-reranker"
    assert body["query"] == "harbour closed"
    assert len(body["documents"]) == 30
    assert "The harbour" in body["documents"][0]


def test_pages_of_a_search_hold_each_hit_once(memory: MemorySession, model: LanguageModel) -> None:
    before = unranked(memory, model)
    says(model, {number: float(number) for number in range(30)})

    pages = [titles(memory.search("harbour closed", limit=8, offset=at)) for at in range(0, 40, 8)]

    together = []
    for page in pages:
        together.extend(page)
    assert together == before[29::-1] + before[30:]


def test_documents_the_model_leaves_out_come_last_in_their_order(
    memory: MemorySession, model: LanguageModel
) -> None:
    before = unranked(memory, model)
    model.body = json.dumps([{"index": 7, "score": 0.9}]).encode()

    titles_found = titles(memory.search("harbour closed", limit=4))

    assert titles_found == [before[7], *before[:3]]


@pytest.mark.parametrize(
    "body",
    [
        b"no json",
        b"[]",
        b'{"results": []}',
        b'{"results": [{"index": 30, "relevance_score": 1}]}',
        b'{"results": [{"index": -1, "relevance_score": 1}]}',
        b'{"results": [{"index": true, "relevance_score": 1}]}',
        b'{"results": [{"index": 0}]}',
        b'{"results": [{"index": 0, "relevance_score": NaN}]}',
        b'{"results": 5}',
        b'{"results": ["a"]}',
    ],
)
def test_an_answer_that_cannot_be_used_leaves_the_hits_as_they_are(
    memory: MemorySession, model: LanguageModel, body: bytes
) -> None:
    before = unranked(memory, model)
    model.body = body

    hits = memory.search("harbour closed", limit=5)

    assert titles(hits) == before[:5]
    for hit in hits:
        assert REASON not in hit.why


def test_an_endpoint_that_fails_is_left_alone(memory: MemorySession, model: LanguageModel) -> None:
    model.status = 500
    for _ in range(5):
        assert len(memory.search("harbour closed", limit=5)) == 5
    assert len(model.asked) == 3


def test_values_of_keys_are_not_sent(memory: MemorySession, model: LanguageModel) -> None:
    NoteEntries(memory).put("default", "harbour", "the harbour closed code 4711")
    says(model, {number: float(number) for number in range(29)})

    memory.search("harbour closed", limit=5)

    sent = json.dumps(model.asked[-1][2])
    assert "4711" not in sent


def test_lists_and_addresses_are_not_sent(memory: MemorySession, model: LanguageModel) -> None:
    memory.search(Query(category="other"), limit=5)
    memory.search(Query(text="categories/*", search_type="permalink"), limit=5)
    assert model.asked == []


def test_it_is_off_unless_a_model_is_named(tmp_path: Path, model: LanguageModel) -> None:
    home = tmp_path / "plain"
    chosen = settings(home, f"semantic: {{model: off, rerank_endpoint: '{model.url}'}}\n")
    with closing(open_session(home, config=chosen, watch=False)) as session:
        session.write_many([Draft("The harbour is closed."), Draft("A closed harbour.")])
        assert len(session.search("harbour closed")) == 2

    assert model.asked == []


def test_a_model_without_an_endpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MemorandaError, match=r"semantic\.rerank needs semantic\.rerank_endpoint"):
        settings(tmp_path / "home", "semantic: {rerank: small}\n")


def test_the_key_goes_to_the_endpoint_it_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_SEMANTIC_API_KEY", "embedding-key")
    monkeypatch.setenv("MEMORY_RERANK_API_KEY", "reranking-key")
    shared = "semantic: {model: m, endpoint: 'https://a.example/v1', rerank: r"
    own_endpoint = f"{shared}, rerank_endpoint: 'https://b.example/v1'"

    rerank_key = settings(tmp_path / "one", f"{shared}}}\n").rerank_key
    assert rerank_key == "embedding-key"
    rerank_key = settings(tmp_path / "two", f"{own_endpoint}}}\n").rerank_key
    assert rerank_key == "reranking-key"
