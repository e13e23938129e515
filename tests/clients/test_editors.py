"""The editors change one entry of a file and not another byte."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from functools import partial
from random import Random, SystemRandom
from typing import Any

import pytest
import yaml

from clients.random_files import MAKERS, json_file, toml_file, yaml_file
from memoranda.clients.editing import Unsure
from memoranda.clients.install import EDITORS

jsonc, toml_text, yaml_text = (EDITORS[kind] for kind in ("json", "toml", "yaml"))
VALUE = {
    "command": "/usr/bin/memory",
    "args": ["mcp", "--home", "/a b/é"],
    "enabled": True,
    "timeout": 300,
}
if os.environ.get("MEMORANDA_EXPLORE"):
    FIRST = SystemRandom().randrange(2**40)
else:
    FIRST = 0
load_yaml = partial(yaml.load, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def chances(count: int) -> Iterator[Random]:
    """So many sources of random files."""
    return map(Random, range(FIRST, FIRST + count))


def lenient(text: str) -> Any:
    """JSON with comments, read in another way than the editor's."""
    text = text.removeprefix("\ufeff")
    string_or_comment = r'("(?:\\.|[^"\\])*")|//[^\r\n]*|/\*.*?\*/'
    plain = re.sub(string_or_comment, lambda match: match[1] or " ", text, flags=re.DOTALL)
    string_or_last_comma = r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])'
    strict = re.sub(string_or_last_comma, lambda match: match[1] or "", plain)
    if strict.strip():
        return json.loads(strict, object_pairs_hook=lambda pairs: pairs)
    return []


def plus(pairs: list[Any], key: str, name: str, value: Any) -> list[Any]:
    """The pairs of an object with one entry more, the last one of `key`."""
    if not any(pair_key == key for pair_key, _ in pairs):
        return [*pairs, (key, [(name, value)])]
    return [
        (pair_key, [*members, (name, value)] if pair_key == key else members)
        for pair_key, members in pairs
    ]


@pytest.mark.slow
@pytest.mark.parametrize("comments", [False, True])
@pytest.mark.promise("install-2")
def test_entry_put_into_json_is_read_back_and_leaves_every_byte_when_dropped(
    comments: bool,
) -> None:
    for random in chances(1000):
        text = json_file(random, comments=comments)
        new, hint = jsonc.put(text, ["mcpServers"], "memory", VALUE)
        assert lenient(new) == plus(lenient(text), "mcpServers", "memory", [*VALUE.items()])
        assert jsonc.find(new, ["mcpServers"], "memory") == VALUE
        assert jsonc.put(new, ["mcpServers"], "memory", VALUE)[0].count("/usr/bin/memory") == 1
        assert jsonc.drop(new, ["mcpServers"], "memory", hint) == text
        # As if nobody remembered what was there
        remaining = jsonc.drop(new, ["mcpServers"], "memory")
        assert jsonc.find(remaining, ["mcpServers"], "memory") is None


@pytest.mark.slow
@pytest.mark.promise("install-2")
def test_entry_put_into_toml_is_read_back_and_leaves_every_byte_when_dropped() -> None:
    for number, random in enumerate(chances(2000)):
        text = toml_file(random)
        try:
            old = tomllib.loads(text.removeprefix("\ufeff"))
        except ValueError:
            with pytest.raises(Unsure):
                toml_text.put(text, ["mcp_servers"], "memory", VALUE)
            continue
        new, hint = toml_text.put(text, ["mcp_servers"], "memory", VALUE)
        old.setdefault("mcp_servers", {})["memory"] = VALUE
        assert repr(tomllib.loads(new.removeprefix("\ufeff"))) == repr(old)
        assert new.startswith(text)
        assert toml_text.drop(new, ["mcp_servers"], "memory", hint) == text
        if number % 5 == 0:
            replaced, _ = toml_text.put(
                new, ["mcp_servers"], "memory", {**VALUE, "command": "/elsewhere"}
            )
            assert replaced == new.replace("/usr/bin/memory", "/elsewhere")


@pytest.mark.slow
@pytest.mark.parametrize("of_list", [False, True])
@pytest.mark.promise("install-2")
def test_entry_put_into_yaml_is_read_back_and_leaves_every_byte_when_dropped(of_list: bool) -> None:
    name: Any = (
        (lambda item: isinstance(item, dict) and item.get("name") == "memory")
        if of_list
        else "memory"
    )
    value = {"name": "memory", **VALUE}
    for random in chances(1000):
        text = yaml_file(random, "servers", of_list=of_list)
        try:
            old = load_yaml(text.removeprefix("\ufeff")) or {}
        except yaml.YAMLError:
            with pytest.raises(Unsure):
                yaml_text.put(text, ["servers"], name, value)
            continue
        try:
            new, hint = yaml_text.put(text, ["servers"], name, value)
        # A text block without a last line break becomes another text when a line follows
        except Unsure:
            assert not text.endswith("\n")
            assert re.search(r": [|>][-+]?\r?$", text, re.MULTILINE)
            continue
        if of_list:
            old["servers"] = [*(old.get("servers") or []), value]
        else:
            old["servers"] = {**(old.get("servers") or {}), "memory": value}
        assert load_yaml(new.removeprefix("\ufeff")) == old
        assert yaml_text.drop(new, ["servers"], name, hint) == text


@pytest.mark.slow
@pytest.mark.promise("install-2")
@pytest.mark.parametrize("kind", ["json", "toml", "yaml"])
def test_damaged_files_are_refused_or_come_out_as_they_were(kind: str) -> None:
    editor = EDITORS[kind]
    path = {"json": ["mcpServers"], "toml": ["mcp_servers"], "yaml": ["extensions"]}[kind]
    for random in chances(700):
        text = MAKERS[kind](random)
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(text) + 1)
            put = random.choice(["", *"{}[],:\"#'\n \t-/*&|=.", "\r\n", "//", "memory"])
            text = text[:at] + put + text[at + random.randrange(3) :]
        try:
            # What was a comment is an entry now
            if editor.find(text, path, "memory") is not None:
                continue
            new, hint = editor.put(text, path, "memory", VALUE)
        except Unsure:
            continue
        assert editor.find(new, path, "memory") == VALUE
        assert editor.drop(new, path, "memory", hint) == text


@pytest.mark.parametrize(
    ("editor", "text"),
    [
        (yaml_text, "~\n"),
        (yaml_text, "null # nothing\n"),
        (jsonc, '{"a":' * 99_999 + "1" + "}" * 99_999),
    ],
)
@pytest.mark.promise("install-2")
def test_what_cannot_be_edited_surely_is_refused_in_words(editor: Any, text: str) -> None:
    with pytest.raises(Unsure):
        editor.put(text, ["servers"], "memory", VALUE)
