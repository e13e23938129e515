"""Which file a text belongs in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from commonplace.faces.bank import templates
from commonplace.faces.bank.names import KINDS
from commonplace.faces.bank.rules import categories, categorise, place


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


def test_every_category_has_a_file_of_each_kind_of_bank() -> None:
    assert len(categories()) == 14
    for kind in KINDS:
        for category in [*categories(), "default"]:
            targets = templates.data("categories")["targets"][kind]
            assert targets.get(category, targets["default"]) in templates.files(kind)
        assert set(templates.data("categories")["targets"][kind]) <= {*categories(), "default"}


def test_a_placement_tells_what_the_text_has_to_do_with_the_bank() -> None:
    texts = {
        "readme.md": "# Orders\n\n## Storage of orders\n",
        "doc/architecture.md": "# Code Architecture\n\nWe decided to use microservices.\n",
        "doc/api.md": "# API\n\nA system design question.\n",
    }
    placed = place("code", texts, "We decided to use one Storage for all orders, see readme.md and the Database")
    assert placed.target_file == "doc/architecture.md"
    assert placed.referenced_files == ["readme.md"]
    assert placed.related_files == ["doc/api.md"]
    assert placed.similar_content == ["Storage of orders", "Orders"]
    assert placed.concepts == ["decided to use", "database"]
    data = placed.as_data(datetime(2026, 5, 7, 10, 0, 0, 5, tzinfo=UTC))
    assert list(data) == ["target_file", "operation", "position", "content", "metadata"]
    assert data["metadata"]["timestamp"] == "2026-05-07T10:00:00Z"
    keys = ["timestamp", "category", "confidence", "concepts", "relationships", "processing_method"]
    assert list(data["metadata"]) == keys


def test_at_most_ten_concepts_are_named() -> None:
    text = "goal deadline survey benchmark experiment agenda attendees backlog milestone wireframe mockup monolith"
    assert len(place("project", {}, text).concepts) == 10
