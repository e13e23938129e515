"""Which file a text belongs in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from contract.memory_bank import Banks
from contract.tables import tables
from memoranda.faces.bank.placement import explain, place_by_rules

TABLES = tables("bank_categories")


@pytest.mark.parametrize(("text", "category", "confidence"), TABLES["categories"])
def test_title_and_patterns_choose_the_category(
    banks: Banks, text: str, category: str, confidence: float
) -> None:
    data = banks.write(text)
    assert (data["category"], data["confidence"]) == (category, confidence)


def test_a_placement_tells_what_the_text_has_to_do_with_the_bank() -> None:
    texts = {
        "readme.md": "# Orders\n\n## Storage of orders\n",
        "doc/architecture.md": "# Code Architecture\n\nWe decided to use microservices.\n",
        "doc/api.md": "# API\n\nA system design question.\n",
    }
    text = "We decided to use one Storage for all orders, see readme.md and the Database"
    data = explain(
        place_by_rules("code", text), texts, datetime(2026, 5, 7, 10, 0, 0, 5, tzinfo=UTC)
    )
    relationships = {
        "related_files": ["doc/api.md"],
        "similar_content": ["Storage of orders", "Orders"],
        "referenced_files": ["readme.md"],
    }
    metadata = {
        "timestamp": "2026-05-07T10:00:00Z",
        "category": "architecture",
        "confidence": 0.9,
        "concepts": ["decided to use", "database"],
        "relationships": relationships,
        "processing_method": "rule-based",
    }
    place = {
        "target_file": "doc/architecture.md",
        "operation": "append",
        "position": None,
        "content": text,
    }
    assert list(data.items()) == [*place.items(), ("metadata", metadata)]
    assert list(data["metadata"]) == list(metadata)


def test_at_most_ten_concepts_are_named() -> None:
    text = "goal deadline survey benchmark experiment agenda attendees backlog milestone wireframe mockup monolith"
    data = explain(place_by_rules("project", text), {}, datetime(2026, 5, 7, tzinfo=UTC))
    assert len(data["metadata"]["concepts"]) == 10


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("endpoint GET /users returns 404 status code", "api"),
        ("code for the login", "code"),
        ("Design of the API", "design"),
    ],
)
def test_a_name_in_the_title_gives_way_to_several_patterns_of_another_category(
    text: str, category: str
) -> None:
    placed = place_by_rules("code", text)
    assert placed.category == category
    assert (placed.confidence == 1.0) == (category != "api")


def test_an_empty_target_file_is_chosen_like_an_absent_one(banks: Banks) -> None:
    reply = banks.ok("update", bank_type="global", bank_id="default", content="x", target_file="")
    assert reply["updated_file"] == "context.md"
