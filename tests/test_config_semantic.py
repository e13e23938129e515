"""The embedding model of the configuration (docs/semantic.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.config import Settings, load
from commonplace.errors import ConfigError


def settings(home: Path, text: str, **environ: str) -> Settings:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(text)
    return load(home, environ=environ)


def test_a_folder_is_meant_from_the_home(tmp_path: Path) -> None:
    assert settings(tmp_path, "semantic:\n  model: models/small\n").semantic_model == str(tmp_path / "models/small")
    assert settings(tmp_path, "semantic:\n  model: /models/small\n").semantic_model == "/models/small"
    assert settings(tmp_path, "semantic:\n  model: fastembed:some/model\n").semantic_model == "fastembed:some/model"
    assert settings(tmp_path, "").semantic_model is None


@pytest.mark.parametrize("word", ["off", "'off'", "false"])
def test_off_is_off_however_it_is_written(tmp_path: Path, word: str) -> None:
    assert settings(tmp_path, f"semantic:\n  model: {word}\n").semantic_model == "off"


def test_an_endpoint_has_a_model_and_a_key_from_the_environment(tmp_path: Path) -> None:
    text = "semantic:\n  endpoint: https://example.org/v1\n  model: small\n  api_key_env: MY_KEY\n"
    found = settings(tmp_path, text, MY_KEY="hush")
    assert (found.semantic_endpoint, found.semantic_model, found.semantic_key) == (
        "https://example.org/v1", "small", "hush",
    )  # fmt: skip
    assert "hush" not in repr(found)
    assert not found.warnings


def test_the_environment_stands_in_for_the_file(tmp_path: Path) -> None:
    text = "semantic:\n  endpoint: https://example.org/v1\n  model: small\n"
    found = settings(tmp_path, text, MEMORY_SEMANTIC="off", MEMORY_SEMANTIC_API_KEY="k")
    assert (found.semantic_endpoint, found.semantic_model, found.semantic_key) == (None, "off", None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("model: 3", "semantic.model must be a text"), ("endpoint: example.org", "must begin with http"),
     ("endpoint: [a]", "semantic.endpoint must be a text")],
)  # fmt: skip
def test_a_wrong_value_is_named(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        settings(tmp_path, f"semantic:\n  {text}\n")
