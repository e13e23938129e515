from __future__ import annotations

import pytest

from commonplace.faces.tool import Template
from commonplace.serve import mcp


def template(uri="memory://{project}/{+path}", complete=None):
    return Template(uri, "note", "A note.", "text/markdown", lambda memory, variables: repr(variables), complete)


def read(uri, *templates):
    return mcp.resource_result(None, templates or [template()], uri)["contents"][0]["text"]


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
    with pytest.raises(mcp.NoResource):
        read("aXb+c://1", dotted)


def test_of_two_templates_the_first_that_fits_reads():
    assert read("memory://graph/x", template("memory://graph/{entity}"), template()) == "{'entity': 'x'}"
