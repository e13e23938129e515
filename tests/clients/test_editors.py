"""The editors change one entry of a file and not another byte."""

from __future__ import annotations

import json
import os
import re
import tomllib
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.random_files import MAKERS, json_file, toml_file, yaml_file
from commonplace.clients.editing import Unsure
from commonplace.clients.install import EDITORS

jsonc, toml_text, yaml_text = (EDITORS[kind] for kind in ("json", "toml", "yaml"))
VALUE = {"command": "/usr/bin/memory", "args": ["mcp", "--home", "/a b/é"], "enabled": True, "timeout": 300}
SEEDS = st.integers(0, 2**48)
EXPLORING = bool(os.environ.get("COMMONPLACE_EXPLORE"))
MANY = settings(max_examples=2000 if EXPLORING else 200)  # 40 take every way through the editors
MANY_DAMAGED = settings(max_examples=2000 if EXPLORING else 500)


def lenient(text: str) -> Any:
    """JSON with comments, read in another way than the editor's."""
    pattern = r'("(?:\\.|[^"\\])*")|//[^\r\n]*|/\*.*?\*/'
    text = re.sub(pattern, lambda match: match[1] or " ", text.removeprefix("\ufeff"), flags=re.DOTALL)
    text = re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda match: match[1] or "", text)
    return json.loads(text, object_pairs_hook=lambda pairs: pairs) if text.strip() else []


def plus(pairs: list[Any], key: str, name: str, value: Any) -> list[Any]:
    """The pairs of an object with one entry more, the last one of `key`."""
    if not any(each == key for each, _ in pairs):
        return [*pairs, (key, [(name, value)])]
    return [(each, [*held, (name, value)] if each == key else held) for each, held in pairs]


@pytest.mark.parametrize("comments", [False, True])
@MANY
@given(SEEDS)
@pytest.mark.promise("install-2")
def test_json(comments: bool, seed: int) -> None:
    text = json_file(Random(seed), comments=comments)
    new, hint = jsonc.put(text, ["mcpServers"], "memory", VALUE)
    assert lenient(new) == plus(lenient(text), "mcpServers", "memory", [*VALUE.items()])
    assert jsonc.find(new, ["mcpServers"], "memory") == VALUE
    assert jsonc.put(new, ["mcpServers"], "memory", VALUE)[0].count("/usr/bin/memory") == 1
    assert jsonc.drop(new, ["mcpServers"], "memory", hint) == text
    left = jsonc.drop(new, ["mcpServers"], "memory")  # as if nobody remembered what was there
    assert jsonc.find(left, ["mcpServers"], "memory") is None


@MANY
@given(SEEDS)
@pytest.mark.promise("install-2")
def test_toml(seed: int) -> None:
    text = toml_file(Random(seed))
    try:
        old = tomllib.loads(text.removeprefix("\ufeff"))
    except ValueError:
        with pytest.raises(Unsure):
            toml_text.put(text, ["mcp_servers"], "memory", VALUE)
        return
    new, hint = toml_text.put(text, ["mcp_servers"], "memory", VALUE)
    old.setdefault("mcp_servers", {})["memory"] = VALUE
    assert repr(tomllib.loads(new.removeprefix("\ufeff"))) == repr(old)
    assert new.startswith(text)
    assert toml_text.drop(new, ["mcp_servers"], "memory", hint) == text
    other = {**VALUE, "command": "/elsewhere"}
    replaced, _ = toml_text.put(new, ["mcp_servers"], "memory", other)
    assert replaced == new.replace("/usr/bin/memory", "/elsewhere")


@pytest.mark.parametrize("of_list", [False, True])
@MANY
@given(SEEDS)
@pytest.mark.promise("install-2")
def test_yaml(of_list: bool, seed: int) -> None:
    text = yaml_file(Random(seed), "servers", of_list=of_list)
    name: Any = (lambda item: isinstance(item, dict) and item.get("name") == "memory") if of_list else "memory"
    value = {"name": "memory", **VALUE}
    try:
        old = yaml.safe_load(text.removeprefix("\ufeff")) or {}
    except yaml.YAMLError:
        with pytest.raises(Unsure):
            yaml_text.put(text, ["servers"], name, value)
        return
    try:
        new, hint = yaml_text.put(text, ["servers"], name, value)
    except Unsure:  # a text block without a last line break becomes another text when a line follows
        assert not text.endswith("\n")
        assert re.search(r": [|>][-+]?\r?$", text, re.MULTILINE)
        return
    if of_list:
        old["servers"] = [*(old.get("servers") or []), value]
    else:
        old["servers"] = {**(old.get("servers") or {}), "memory": value}
    assert yaml.safe_load(new.removeprefix("\ufeff")) == old
    assert yaml_text.drop(new, ["servers"], name, hint) == text


@pytest.mark.promise("install-2")
@pytest.mark.parametrize("kind", ["json", "toml", "yaml"])
@MANY_DAMAGED
@given(SEEDS)
def test_damaged_files_are_refused_or_come_out_as_they_were(kind: str, seed: int) -> None:
    random = Random(seed)
    text = MAKERS[kind](random)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(text) + 1)
        text = (
            text[:at]
            + random.choice(["", *"{}[],:\"#'\n \t-/*&|=.", "\r\n", "//", "memory"])
            + text[at + random.randrange(3) :]
        )
    editor, path = EDITORS[kind], {"json": ["mcpServers"], "toml": ["mcp_servers"], "yaml": ["extensions"]}[kind]
    try:
        assert editor.find(text, path, "memory") is None
        new, hint = editor.put(text, path, "memory", VALUE)
    except Unsure:
        return
    assert editor.find(new, path, "memory") == VALUE
    assert editor.drop(new, path, "memory", hint) == text


@pytest.mark.parametrize(
    ("editor", "text"),
    [(yaml_text, "~\n"), (yaml_text, "null # nothing\n"), (jsonc, '{"a":' * 900 + "1" + "}" * 900)],
)
@pytest.mark.promise("install-2")
def test_what_cannot_be_edited_surely_is_refused_in_words(editor: Any, text: str) -> None:
    with pytest.raises(Unsure):
        editor.put(text, ["servers"], "memory", VALUE)
