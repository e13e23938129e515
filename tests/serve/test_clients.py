from __future__ import annotations

import re

import pytest

from commonplace.serve.mcp import agent_of


@pytest.mark.parametrize(
    ("client", "agent"),
    [
        ("claude-code", "claude"), ("claude-ai", "claude"), ("Claude-Desktop", "claude"),
        ("Visual Studio Code", "copilot"), ("cursor-vscode", "cursor"), ("codex-mcp-client", "codex"), ("Zed", "zed"),
        ("My  Own (Client)", "my-own-client-"), ("a.b_c-d 2", "a.b_c-d-2"), ("@scope/name", "scope-name"),
        ("..hidden", "hidden"),
        *((name, "unknown") for name in ("", "   ", "记忆", "---", "\ud800")),
        *((name, f"{name.lower()}-client") for name in ("owner", "Owner", "manual", "import", "web", "FILE")),
    ],
)  # fmt: skip
def test_a_client_is_its_agent_or_its_own_name_in_the_form_of_a_scope_and_nobody_else(client, agent):
    assert agent_of(client) == agent


def test_the_owners_table_goes_before_ours_and_knows_names_in_any_case():
    table = {"claude-code": "work", "house robot": "Robot", "other-thing": "else"}
    assert agent_of("claude-code", table) == "work"
    assert agent_of("House Robot", table) == "robot"
    assert agent_of("Other Thing", table) == "else"
    assert agent_of("cursor-vscode", table) == "cursor"


@pytest.mark.parametrize("client", ["x" * 5000, "a\nb", "Ünïcode é", "100%", "A" + "-" * 50, "a\x00b"])
def test_every_agent_can_stand_in_a_scope(client):
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*", agent_of(client))


def test_the_star_of_the_owners_table_stands_for_every_client_not_in_it():
    table = {"my-editor": "bob", "*": "Guest"}
    clients = ("My Editor", "claude-code", "bob", "anything", "")
    assert [agent_of(client, table) for client in clients] == ["bob", *["guest"] * 4]
