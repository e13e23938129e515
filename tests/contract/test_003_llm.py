"""Contract 003, 11.10: a language model may choose the file; whatever it does, the text is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.language_model import LanguageModel, language_model
from contract.memory_bank import Banks
from memoranda import llm
from memoranda.engine import open_session

TEXT = "We decided to use Postgres\n\n***\n- for storage\n- from May on"
NOBODY = "http://127.0.0.1:1"
FAILED = "LLM processing failed, using fallback rule-based processing"


@pytest.fixture
def model() -> Iterator[LanguageModel]:
    with language_model() as model:
        yield model


@pytest.fixture
def banks(tmp_path: Path, model: LanguageModel) -> Iterator[Banks]:
    with open_session(tmp_path / "home", watch=False) as memory:
        banks = Banks(memory, llm_base_url=model.url, llm_model="small", llm_key="the-key")
        banks.ok("activate", bank_type="project", bank_id="p")
        yield banks


def answer(**changes: Any) -> dict[str, Any]:
    """A good answer with some values changed."""
    good = {
        "target_file": "notes/ideas.md",
        "operation": "append",
        "position": None,
        "content": f"# Idea\n\n{TEXT}",
        "category": "ideas",
        "confidence": 0.8,
    }
    return good | changes


@pytest.mark.promise("003-11.10")
def test_a_good_answer_is_followed(banks: Banks, model: LanguageModel) -> None:
    model.says(**answer())
    data = banks.write(TEXT)
    assert data["updated_file"] == "notes/ideas.md"
    assert (data["category"], data["confidence"], data["processing_method"]) == (
        "ideas",
        0.8,
        "llm",
    )
    assert data["previous_errors"] == []
    assert banks.file("projects/p/notes/ideas.md").read_text().endswith(f"\n\n# Idea\n\n{TEXT}\n")
    ((path, headers, request),) = model.asked
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer the-key"
    assert (request["model"], request["temperature"]) == ("small", 0)
    assert request["messages"][1] == {"role": "user", "content": TEXT}
    assert (
        "- notes/ideas.md: Brainstorming, Future Possibilities, Innovations"
        in request["messages"][0]["content"]
    )


@pytest.mark.promise("003-11.10")
def test_the_model_may_choose_a_section_and_a_file_of_its_own(
    banks: Banks, model: LanguageModel
) -> None:
    model.says(**answer(operation="insert", position="Innovations", content=TEXT))
    assert banks.write(TEXT)["operation"] == "insert"
    text = banks.file("projects/p/notes/ideas.md").read_text()
    assert f"be new.\n\n{TEXT}\n" in text
    model.says(**answer(target_file="doc/storage.md"))
    updated_file = banks.write(TEXT)["updated_file"]
    assert updated_file == "doc/storage.md"
    for operation, position in (("insert", None), ("insert", " "), ("rewrite", None)):
        model.says(**answer(operation=operation, position=position))
        assert banks.write(TEXT)["operation"] == "append"


@pytest.mark.promise("003-11.10")
def test_the_model_replaces_a_file_only_with_all_that_it_holds(
    banks: Banks, model: LanguageModel
) -> None:
    place = banks.file("projects/p/notes/ideas.md")
    model.says(**answer(operation="replace"))
    operation = banks.write(TEXT)["operation"]
    assert operation == "append"
    whole = f"# In order\n\n{TEXT}\n{place.read_text()}"
    model.says(**answer(operation="replace", content=whole))
    operation = banks.write(TEXT)["operation"]
    assert operation == "replace"
    assert place.read_text() == whole


@pytest.mark.promise("003-11.10")
def test_what_the_caller_says_is_never_overruled(banks: Banks, model: LanguageModel) -> None:
    model.says(**answer())
    with_file = banks.write(TEXT, "readme.md")
    place = with_file["updated_file"]
    assert place == "readme.md"
    assert model.asked == []
    with_place = banks.write(TEXT, operation="insert", position="Innovations")
    assert with_place["updated_file"] == "notes/ideas.md"
    assert with_place["operation"] == "insert"


BAD = {
    "500": {"status": 500},
    "401": {"status": 401},
    "429": {"status": 429},
    "redirect": {"status": 307, "headers": {"Location": "http://127.0.0.1:1/elsewhere"}},
    "no JSON at all": {"body": b"<html>"},
    "no completion": {"body": b'{"choices": []}'},
    "no text": {"content": None},
    "text that is no JSON": {"content": "I would put it into the ideas."},
    "no object": {"content": "[1]"},
    "too deep": {"content": "[" * 100_000},
    "too long": {"body": b" " * (2 << 20)},
    "a field missing": {
        "content": '{"target_file": "readme.md", "operation": "append", "content": "x"}'
    },
    "traversal": answer(target_file="../../etc/passwd.md"),
    "a file in no folder for it": answer(target_file="secrets.md"),
    "no Markdown": answer(target_file="doc/x.json"),
    "a hidden file": answer(target_file=".bank.json"),
    "lost text": answer(content="We decided to use Postgres"),
    "changed text": answer(content=TEXT.replace("May", "June")),
    "a rule left out": answer(content=TEXT.replace("- for", "for").replace("***\n", "")),
    "a category over two lines": answer(category="a\nb"),
    "a lone surrogate": answer(content=TEXT + "\ud800"),
}


def set_up(model: LanguageModel, bad: dict[str, Any]) -> None:
    if "target_file" in bad:
        model.says(**bad)
        return
    for name, value in bad.items():
        setattr(model, name, value)


def check_rules(banks: Banks, data: dict[str, Any], failures: int) -> None:
    """The text went where the rules put it, and the failure is told."""
    assert data["updated_file"] == "doc/decisions.md"
    assert data["category"] == "architecture"
    assert data["confidence"] == 0.9
    assert data["processing_method"] == "rule-based"
    descriptions = [previous_error["description"] for previous_error in data["previous_errors"]]
    assert descriptions == ([FAILED] * failures)
    severities = {previous_error["severity"] for previous_error in data["previous_errors"]}
    assert severities <= {"warning"}
    text = banks.file("projects/p/doc/decisions.md").read_text()
    assert text.endswith(f"\n\n{TEXT}\n")


@pytest.mark.promise("003-11.10")
@pytest.mark.parametrize("name", BAD)
def test_an_answer_that_cannot_be_followed_leaves_it_to_the_rules(banks, model, name):
    set_up(model, BAD[name])
    check_rules(banks, banks.write(TEXT), 1)
    assert len(model.asked) == 1
    written = [path.relative_to(banks.file("projects/p")) for path in banks.file("").rglob("*.md")]
    assert len(written) == 8


@pytest.mark.promise("003-11.10")
def test_a_model_that_does_not_answer_in_time_leaves_it_to_the_rules(tmp_path, model, monkeypatch):
    monkeypatch.setattr(llm, "SECONDS", 0.2)
    model.holding.clear()
    with open_session(tmp_path / "home", watch=False) as memory:
        banks = Banks(memory, llm_base_url=model.url, llm_model="small")
        check_rules(banks, banks.write(TEXT), 1)


@pytest.mark.promise("003-11.10")
def test_three_failures_of_whatever_kind_turn_the_model_off(
    banks: Banks, model: LanguageModel
) -> None:
    for number, name in enumerate(("500", "lost text", "traversal"), 1):
        model.status = 200
        set_up(model, BAD[name])
        check_rules(banks, banks.write(TEXT), number)
    model.says(**answer())
    check_rules(banks, banks.write(TEXT), 3)

    assert len(model.asked) == 3


@pytest.mark.promise("003-11.10")
@pytest.mark.parametrize(
    ("settings", "failures"), [({}, 0), ({"llm_base_url": NOBODY, "llm_model": "small"}, 1)]
)
def test_without_a_model_or_with_one_nobody_listens_at_the_rules_choose(
    tmp_path, settings, failures
):
    with open_session(tmp_path / "home", watch=False) as memory:
        banks = Banks(memory, **settings)
        check_rules(banks, banks.write(TEXT), failures)
