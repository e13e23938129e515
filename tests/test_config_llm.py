"""Settings of the endpoint that may help, and of memory banks."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.config import load
from commonplace.errors import ConfigError

SEED = {"LLM_API_URL": "https://example.org/v1", "LLM_MODEL": "m", "OPENROUTER_API_KEY": "seed-key"}


def found(folder: Path, text: str = "", **environ: str) -> tuple[str | None, str | None, str | None]:
    (folder / "config.yaml").write_text(text)
    settings = load(folder, environ=environ)
    return settings.llm_base_url, settings.llm_model, settings.llm_key


def test_nothing_is_asked_without_settings(tmp_path: Path) -> None:
    assert found(tmp_path) == (None, None, None)
    assert found(tmp_path, "llm:\n  base_url: http://x\n") == (None, None, None)
    assert found(tmp_path, "llm:\n  model: m\n", **SEED) == (None, None, None)


def test_the_key_is_read_from_the_variable_named(tmp_path: Path) -> None:
    text = "llm:\n  base_url: http://localhost:11434/v1\n  model: small\n"
    assert found(tmp_path, text) == ("http://localhost:11434/v1", "small", None)
    assert found(tmp_path, text, MEMORY_LLM_API_KEY="k")[2] == "k"
    assert found(tmp_path, text + "  api_key_env: MINE\n", MEMORY_LLM_API_KEY="k", MINE="m")[2] == "m"
    (tmp_path / "config.yaml").write_text(text)
    assert "hush" not in repr(load(tmp_path, environ={"MEMORY_LLM_API_KEY": "hush"}))


def test_the_variables_of_the_memory_bank_server_count_when_all_are_set(tmp_path: Path) -> None:
    assert found(tmp_path, **SEED) == ("https://example.org/v1", "m", "seed-key")
    for name in SEED:
        assert found(tmp_path, **{key: value for key, value in SEED.items() if key != name}) == (None, None, None)
    assert found(tmp_path, **(SEED | {"LLM_API_URL": "file:///etc"})) == (None, None, None)
    text = "llm:\n  base_url: http://own\n  model: own\n"
    assert found(tmp_path, text, **SEED) == ("http://own", "own", None)


@pytest.mark.parametrize("line", ["base_url: 5", "model: [a]", "base_url: ftp://x"])
def test_what_cannot_be_an_endpoint_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=rf"llm\.{line.partition(':')[0]} must"):
        found(tmp_path, f"llm:\n  {line}\n")


def test_debug_mode_is_a_setting_or_a_variable(tmp_path: Path) -> None:
    assert load(tmp_path, environ={}).bank_debug is False
    assert load(tmp_path, environ={"MEMORY_BANK_DEBUG": "1"}).bank_debug is True
    assert load(tmp_path, environ={"MEMORY_BANK_DEBUG": "0"}).bank_debug is False
    (tmp_path / "config.yaml").write_text("bank:\n  debug: true\n")
    assert load(tmp_path, environ={}).bank_debug is True
    (tmp_path / "config.yaml").write_text("bank:\n  debug: maybe\n")
    with pytest.raises(ConfigError, match=r"bank\.debug must be true or false"):
        load(tmp_path, environ={})
