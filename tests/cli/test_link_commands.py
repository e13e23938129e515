"""link, unlink, backlinks, resolve-links (contract 001, 4)."""

from __future__ import annotations

import json
from typing import Any


def test_linking_twice_changes_nothing(terminal: Any) -> None:
    a = terminal.write("a")
    b = terminal.write("b")
    document = terminal("link", a, b, "--json").json
    assert document["changed"] is True
    before = terminal("read", a, "--json").json["memory"]
    document = terminal("link", b, a, "--json").json
    assert document["changed"] is False
    after = terminal("read", a, "--json").json["memory"]
    assert after["links"] == [b]
    assert after["updated_at"] == before["updated_at"]


def test_unlinking_is_remembered_by_both(terminal: Any) -> None:
    a = terminal.write("a")
    b = terminal.write("b")
    document = terminal("unlink", a, b, "--json").json
    assert document["changed"] is False
    terminal.ok("link", a, b)
    document = terminal("unlink", a, b, "--json").json
    assert document["changed"] is True
    for end, other_end in ((a, b), (b, a)):
        memory = terminal("read", end, "--json").json["memory"]
        assert memory["links"] == []
        assert memory["unlinked"] == [other_end]


def test_links_to_be_made_are_shown_first(terminal: Any) -> None:
    terminal.write("Heron")
    b = terminal.write("see [[heron]], [[Nobody]] and [[heron]]")
    output = terminal.ok("resolve-links", "--dry-run")
    assert output.startswith(f"would link {b[:8]} ")
    document = terminal("read", b, "--json").json
    assert document["memory"]["links"] == []


def test_links_that_are_made_are_counted_and_those_to_nothing_named(terminal: Any) -> None:
    a = terminal.write("Heron")
    b = terminal.write("see [[heron]], [[Nobody]] and [[heron]]")
    resolved = terminal("resolve-links", "--json").json
    assert resolved["resolved"] == 1
    assert resolved["links_added"] == 2
    assert resolved["unresolved"] == [{"id": b, "target": "Nobody"}]
    document = terminal("read", a, "--json").json
    assert document["memory"]["links"] == [b]
    assert terminal.ok("resolve-links", "--dry-run") == "Nothing to link.\n"


def test_backlinks_show_a_preview_of_fifty(terminal: Any) -> None:
    a = terminal.write("Heron")
    b = terminal.write("[[Heron]] " + "x" * 60)
    row = terminal.ok("backlinks", a).split("\n")[2]
    assert row == f"{b[:8]} inbox      inbox      [[Heron]] {'x' * 40}..."


def test_only_wikilinks_can_be_unresolved_and_ids_of_other_agents_are_never_shown(
    terminal: Any,
) -> None:
    a = terminal.write("open [[Nobody]]")
    b = terminal.write("theirs", "--scope", "agent:y")
    terminal.ok("link", a, b)
    resolved = terminal("--agent", "x", "resolve-links", "--json").json
    assert resolved["unresolved"] == [{"id": a, "target": "Nobody"}]
    context = terminal.ok(
        "--agent", "x", "call", "build_context", json.dumps({"url": f"memory://{a}"})
    )
    assert b not in context
    (next((terminal.home / "categories" / "inbox").glob(f"theirs-{b[:8]}.md"))).unlink()
    document = terminal("resolve-links", "--json").json
    assert document["unresolved"] == [{"id": a, "target": "Nobody"}]
