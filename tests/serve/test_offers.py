from __future__ import annotations

import pytest

from commonplace.errors import InvalidInput
from commonplace.faces.tool import Prompt, Template
from commonplace.serve import offers


def template(uri="memory://{project}/{+path}", complete=None):
    return Template(uri, "note", "A note.", "text/markdown", lambda memory, variables: repr(variables), complete)


def read(uri, *templates):
    return offers.resource_result(None, templates or [template()], uri)["contents"][0]["text"]


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


@pytest.mark.parametrize(
    "uri", ["", "memory://", "memory://a", "memory://a/", "memory:///a", "file:///a", "xmemory://a/b"]
)
def test_an_address_no_template_fits_is_no_resource(uri):
    with pytest.raises(offers.NoResource, match=r"memory://{project}/{\+path}"):
        read(uri)


def test_the_characters_of_a_template_stand_for_themselves():
    dotted = template("a.b+c://{x}")
    assert read("a.b+c://1", dotted) == "{'x': '1'}"
    with pytest.raises(offers.NoResource):
        read("aXb+c://1", dotted)


def test_of_two_templates_the_first_that_fits_reads():
    assert read("memory://graph/x", template("memory://graph/{entity}"), template()) == "{'entity': 'x'}"


def test_a_prompt_gets_its_own_arguments_and_no_blank_ones():
    prompt = Prompt("p", "P.", lambda memory, arguments: repr(arguments), [("a", "A", True), ("b", "B", False)])
    result = offers.prompt_result(None, prompt, {"a": "1", "b": "  ", "c": "3"})
    assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": "{'a': '1'}"}}]


@pytest.mark.parametrize("given", [{}, {"a": ""}, {"a": " "}, {"b": "x"}])
def test_a_prompt_without_its_required_argument_names_it(given):
    prompt = Prompt("p", "P.", lambda memory, arguments: "", [("a", "A", True)])
    with pytest.raises(InvalidInput, match="`a` is required for the prompt p"):
        offers.prompt_result(None, prompt, given)


def test_a_completion_has_at_most_a_hundred_values_and_says_how_many_there_are():
    many = template(complete=lambda memory, variable, beginning, others: [f"{beginning}{n}" for n in range(130)])
    completion = offers.completion_result(None, many, "path", "x", {})["completion"]
    assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (100, 130, True)
    few = template(complete=lambda memory, variable, beginning, others: ["x1"])
    assert offers.completion_result(None, few, "path", "x", {})["completion"] == {
        "values": ["x1"], "total": 1, "hasMore": False,
    }  # fmt: skip


def test_a_variable_the_template_does_not_have_cannot_be_completed():
    with pytest.raises(InvalidInput, match="Its variables: project, path"):
        offers.completion_result(None, template(), "folder", "", {})


def test_a_template_or_prompt_that_cannot_complete_offers_nothing():
    assert offers.completion_result(None, template(), "path", "", {})["completion"]["values"] == []
    assert offers.completion_result(None, None, "anything", "", {})["completion"]["values"] == []
