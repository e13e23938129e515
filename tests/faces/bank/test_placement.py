"""Which file a text belongs in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from commonplace.faces.bank.placement import categorise, explain, place_by_rules


@pytest.mark.parametrize(
    ("text", "category", "confidence"),
    [
        ("# Architecture\n\nmeeting meeting", "architecture", 1.0),
        ("\n\n## The API\n", "api", 1.0),
        ("Meeting on API design", "design", 1.0),  # the first of the table
        ("rapid capitals", "default", 0.0),
        ("We decided to use it", "architecture", 0.9),
        ("a\nWe need to do this\nwe need to do that, see https://x.org", "tasks", 0.67),
        ("a\nfinished. to-do.", "progress", 0.5),  # a tie
        ("a\nThe rest is silence", "api", 1.0),
        ("今天\n决定使用框架", "architecture", 0.5),
        ("使用framework来做", "technology", 0.9),
        ("用户喜欢简短", "preferences", 0.9),
        ("x\n```\ndef run(\n```", "code", 1.0),
        ("GET /users", "api", 0.9),
        ("hello", "default", 0.0),
        ("", "default", 0.0),
    ],
)
def test_title_and_patterns_choose_the_category(text: str, category: str, confidence: float) -> None:
    assert categorise(text) == (category, confidence)


def test_a_placement_tells_what_the_text_has_to_do_with_the_bank() -> None:
    texts = {
        "readme.md": "# Orders\n\n## Storage of orders\n",
        "doc/architecture.md": "# Code Architecture\n\nWe decided to use microservices.\n",
        "doc/api.md": "# API\n\nA system design question.\n",
    }
    text = "We decided to use one Storage for all orders, see readme.md and the Database"
    data = explain(place_by_rules("code", text), texts, datetime(2026, 5, 7, 10, 0, 0, 5, tzinfo=UTC))
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
    place = {"target_file": "doc/architecture.md", "operation": "append", "position": None, "content": text}
    assert list(data.items()) == [*place.items(), ("metadata", metadata)]
    assert list(data["metadata"]) == list(metadata)


def test_at_most_ten_concepts_are_named() -> None:
    text = "goal deadline survey benchmark experiment agenda attendees backlog milestone wireframe mockup monolith"
    data = explain(place_by_rules("project", text), {}, datetime(2026, 5, 7, tzinfo=UTC))
    assert len(data["metadata"]["concepts"]) == 10
