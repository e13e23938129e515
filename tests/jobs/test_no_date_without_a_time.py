"""A text that names no time is not sorted under `date`, however like a sentence about one it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.config import Settings
from commonplace.jobs.classify import Classifier, examples
from jobs.states import memory


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Classifier:
    return Classifier(Settings(Path(tmp_path_factory.mktemp("home")), Path("config.yaml")))


@pytest.mark.parametrize(
    "text",
    [
        "Wifi at the cabin: network Birke, passphrase blaubeere77",
        "Shoe size of Tom: 31",
        "Health insurance number K123456789",
        "Bike frame number WBK4471 B",
        "Anna moved to Hamburg, Eppendorfer Weg 3",
        "Build fails on arm64 when CGO_ENABLED=0; set CGO_ENABLED=1",
        "Landlord: Herr Schulte, 0176 5550142, calls back in the evening",
    ],
)
def test_a_text_without_a_time_is_no_date(classifier: Classifier, text: str) -> None:
    assert classifier.choose(memory("a", text, "inbox")).category != "date"


@pytest.mark.parametrize("text", [text for text, category in examples().labelled if category == "date"])
def test_what_is_known_to_be_a_date_still_is_one(classifier: Classifier, text: str) -> None:
    found = classifier.choose(memory("a", text, "inbox"))
    assert found.category == "date" or found.layer in ("table", "time")
