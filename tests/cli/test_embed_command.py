"""`memory embed`, and what `status` says of the vectors (docs/semantic.md)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from contract.language_model import language_model
from index.vectors import tiny


@pytest.fixture
def folder(terminal: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, configured."""
    monkeypatch.delenv("MEMORY_SEMANTIC")
    place = tiny.make(terminal.folder / "models" / "tiny")
    terminal.configure(f"semantic:\n  model: {place}\n")
    return place


def test_all_passages_are_embedded_and_status_shows_how_far_it_is(
    terminal: Any, folder: Path
) -> None:
    terminal.write("bread and cheese")
    terminal.write("数据库迁移到新的服务器")
    status = terminal("status", "--json").json["semantic"]
    assert status == {
        "model": "tiny",
        "passages": 0,
        "embedded": 0,
        "unreadable": 0,
        "waiting": 2,
        "reason": None,
    }
    assert terminal.ok("embed") == "Embedded 2 passages with tiny (1 in all, 1 it cannot read)\n"
    assert "\nsemantic: tiny, 1 of 2 passages embedded, 1 it cannot read\n" in terminal.ok("status")
    terminal.write("a train to the city")
    row = terminal("embed", "--json").json
    assert row.pop("seconds") >= 0
    assert row == {
        "schema": "embed/1",
        "model": "tiny",
        "done": 1,
        "passages": 3,
        "embedded": 2,
        "unreadable": 1,
    }
    assert terminal.ok("embed") == "Embedded 0 passages with tiny (2 in all, 1 it cannot read)\n"


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
    monkeypatch.setenv("MEMORY_SEMANTIC", str(terminal.folder / "nowhere"))
    assert "nowhere is no folder of a model" in terminal("embed").err
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert terminal("status").status == 0


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
        assert ["bread and cheese"] in [each[2]["input"] for each in server.asked]
