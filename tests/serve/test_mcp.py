"""Which agent a client is, and what reads a resource's address."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from memoranda.faces.tool import Template
from memoranda.serve.mcp import NoResource, agent_of, client_text, resource_result

# No scanner takes it for a real one
SECRET = "gh" + "p_9vXz7LmB4nR8sYwE1uC6pJ2dF5gA0iKoMqZt"
PIECE = 12
"""Characters of a secret of which nothing may be left."""


@pytest.mark.parametrize(
    ("client", "agent"),
    [
        ("claude-code", "claude"),
        ("claude-ai", "claude"),
        ("Claude-Desktop", "claude"),
        ("Visual Studio Code", "copilot"),
        ("cursor-vscode", "cursor"),
        ("codex-mcp-client", "codex"),
        ("Zed", "zed"),
        ("My  Own (Client)", "my-own-client-"),
        ("a.b_c-d 2", "a.b_c-d-2"),
        ("@scope/name", "scope-name"),
        ("..hidden", "hidden"),
        *((name, "unknown") for name in ("", "   ", "记忆", "---", "\ud800")),
        *(
            (name, f"{name.lower()}-client")
            for name in ("owner", "Owner", "manual", "import", "web", "FILE")
        ),
    ],
)
def test_a_client_is_its_agent_or_its_own_name_in_the_form_of_a_scope_and_nobody_else(
    client, agent
):
    assert agent_of(client) == agent


def test_the_owners_table_goes_before_ours_and_knows_names_in_any_case():
    table = {"claude-code": "work", "house robot": "Robot", "other-thing": "else"}
    assert agent_of("claude-code", table) == "work"
    assert agent_of("House Robot", table) == "robot"
    assert agent_of("Other Thing", table) == "else"
    assert agent_of("cursor-vscode", table) == "cursor"


@pytest.mark.parametrize(
    "client", ["x" * 5000, "a\nb", "Ünïcode é", "100%", "A" + "-" * 50, "a\x00b"]
)
def test_every_agent_can_stand_in_a_scope(client):
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*", agent_of(client))


@pytest.mark.parametrize("before", [0, 60, 80, 99])
def test_of_a_secret_in_a_clients_name_nothing_is_left_where_the_name_is_cut(before):
    name = "x" * before + " " + SECRET
    client = SimpleNamespace(name=name, version=name)
    for name_shown in (agent_of(name), client_text(client, "stdio")):
        pieces = {SECRET[at : at + PIECE].lower() for at in range(len(SECRET) - PIECE + 1)}
        for piece in pieces:
            assert piece not in name_shown.lower(), name_shown


def test_the_star_of_the_owners_table_stands_for_every_client_not_in_it():
    table = {"my-editor": "bob", "*": "Guest"}
    clients = ("My Editor", "claude-code", "bob", "anything", "")
    assert [agent_of(client, table) for client in clients] == ["bob", *["guest"] * 4]


def template(uri="memory://{project}/{+path}", complete=None):
    return Template(
        uri, "note", "A note.", "text/markdown", lambda memory, variables: repr(variables), complete
    )


def read(uri, *templates):
    return resource_result(None, templates or [template()], uri)["contents"][0]["text"]


@pytest.mark.parametrize(
    ("uri", "variables"),
    [
        ("memory://notes/a", {"project": "notes", "path": "a"}),
        ("memory://notes/a/b/c.md", {"project": "notes", "path": "a/b/c.md"}),
        ("memory://my%20notes/%E8%AE%B0%E5%BF%86", {"project": "my notes", "path": "记忆"}),
        ("memory://notes/记忆/über uns", {"project": "notes", "path": "记忆/über uns"}),
        ("memory://notes/what? C# & co", {"project": "notes", "path": "what? C# & co"}),
        ("memory://notes/a%2Fb", {"project": "notes", "path": "a/b"}),
        ("memory://notes/100%", {"project": "notes", "path": "100%"}),
        ("memory://notes//a", {"project": "notes", "path": "/a"}),
        ("memory://notes/%2e%2e/x", {"project": "notes", "path": "../x"}),
    ],
)
def test_a_resource_address_gives_the_variables_of_its_template(uri, variables):
    assert read(uri) == repr(variables)


def test_the_characters_of_a_template_stand_for_themselves():
    dotted = template("a.b+c://{x}")
    assert read("a.b+c://1", dotted) == "{'x': '1'}"
    with pytest.raises(NoResource):
        read("aXb+c://1", dotted)


def test_of_two_templates_the_first_that_fits_reads():
    assert (
        read("memory://graph/x", template("memory://graph/{entity}"), template())
        == "{'entity': 'x'}"
    )
