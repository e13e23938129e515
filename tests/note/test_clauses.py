"""Sentences that say two things: each is compared with older notes, and nothing else is."""

from __future__ import annotations

from itertools import product

import pytest

from memoranda.note.changes import changes
from memoranda.note.claims import claims, ends, sentences_in

ENDED = [
    ("Anna lives in Porto", "Anna moved to Gdańsk and works on Ledger now"),
    ("Anna lives in Porto", "Anna works on Ledger now and lives in Gdańsk"),
    ("Anna works at Acme", "Anna lives in Gdańsk and works at Initech"),
    ("Anna lives in Porto", "Anna left Acme for Initech and moved to Lisbon."),
    ("Anna works at Acme", "Anna moved to Lisbon and left Acme for Initech"),
    ("The API is hosted on Heroku", "The API is written in Go and is hosted on Render"),
    ("The API is written in Go", "The API runs on Render, and is now written in Rust"),
    ("Jonas lives in Porto", "Jonas is now our CTO and lives in Lisbon"),
    ("Jonas is our designer", "Jonas moved to Lisbon and is now our CTO"),
    (
        "The port of production is 80",
        "The port of staging is 8080 and the port of production is 9090",
    ),
    ("I live in Porto", "I work at Initech and live in Lisbon"),
    ("I work at Acme", "I live in Lisbon and I work at Initech"),
    ("Ben lives in Porto", "Anna lives in Faro and Ben works at Acme and lives in Lisbon"),
    ("Anna reports to Ben", "Anna lives in Porto but reports to Carla"),
    ("Anna lives in Porto", "- **Anna** works at Initech and lives in Lisbon #people"),
]
NOT_ENDED = [
    # Who is meant is another one
    ("Anna lives in Porto", "The mother of Ben and Anna lives in Lisbon"),
    ("Anna lives in Porto", "Anna's brother works at Acme and lives in Lisbon"),
    ("Anna lives in Porto", "Anna works for Ben, who runs Acme and lives in Lisbon"),
    ("Anna lives in Porto", "Anna works at Acme and Ben lives in Lisbon"),
    ("Anna lives in Porto", "Anna works at Acme and her brother lives in Lisbon"),
    ("Anna lives in Porto", "Anna works at Acme and he lives in Lisbon"),
    ("Anna lives in Porto", "Anna works with Ben and Max lives in Lisbon"),
    ("Anna lives in Porto", "Anna works with Ben and Max and lives in Lisbon sometimes, perhaps"),
    ("Anna lives in Porto", "Ben and Anna sold the flat and moved to Lisbon"),
    ("Anna lives in Porto", "Anna heard Ben sold the flat and moved to Lisbon"),
    ("Anna lives in Porto", "Anna has a sister that left Acme and moved to Lisbon"),
    ("Anna lives in Porto", "Anna leads a team which works at Acme and lives in Lisbon"),
    ("Anna lives in Porto", "Anna has a cat and the cat lives in Lisbon"),
    ("Anna works at Acme", "Anna lives with Ben and works hard"),
    ("Anna works at Acme", "The team of Anna is large and works for Initech"),
    ("The API is hosted on Heroku", "The API is small and the site is hosted on Render"),
    ("The API is hosted on Heroku", "The docs of the API are old and are hosted on Render"),
    # It is no statement, or of another time
    ("Anna lives in Porto", "Anna might leave Acme and lives in Lisbon if so"),
    ("Anna lives in Porto", "Anna needs to leave Acme and move to Lisbon"),
    ("Anna works at Acme", "Anna has to learn German and work at Initech"),
    ("I work at Acme", "I have to move and work at Initech"),
    ("I live in Porto", "I want to work at Acme and live in Lisbon"),
    ("I live in Porto", "I hope to leave Acme and live in Lisbon"),
    ("Anna lives in Porto", "Anna works at Acme and used to live in Lisbon"),
    ("Anna lives in Porto", "Anna works at Acme and lived in Lisbon"),
    ("Anna lives in Porto", "Anna works at Acme and may move to Lisbon"),
    ("Anna lives in Porto", "Anna left Acme and never moved to Lisbon"),
    ("Anna lives in Porto", "Anna left Acme and moved to Lisbon ten years ago"),
    ("Anna lives in Porto", "Anna left Acme and moved to Lisbon for a month"),
    ("Anna lives in Porto", "Does Anna work at Acme and live in Lisbon?"),
    ("Anna lives in Porto", "If Anna works at Initech and lives in Lisbon, call her"),
    ("Anna lives in Porto", "Anna said Ben works at Acme and moved to Lisbon"),
    ("Anna lives in Porto", "Anna thinks he works at Acme and lives in Lisbon"),
    ("Anna lives in Porto", "Anna planned the trip and moved to Lisbon in a dream, maybe"),
    # Both may be so
    ("Anna lives in Porto", "Anna works at Acme and lives in Porto"),
    ("Anna lives in Porto", "Anna moved to the platform team and works on Ledger"),
    ("Anna lives in Porto", "Anna left Acme and moved to part-time"),
    ("Anna works at Acme", "Anna lives in Porto and works on Ledger"),
    ("Anna works at Acme", "Anna lives in Porto and works with Ben"),
    ("Anna likes tea", "Anna lives in Porto and likes coffee"),
    ("The port of staging is 80", "The port of production is 443 and the timeout is 5 s"),
    ("The API is hosted on Heroku", "The API is written in Go and is tested on Render"),
    ("The backup runs on Sundays", "The backup is large and runs for hours"),
    ("Jonas is our designer", "Jonas lives in Porto and is a father"),
]


def is_ended(old: str, new: str) -> bool:
    """Whether the text of a newer note ends a claim of an older one."""
    old_sentences = sentences_in(old)
    new_sentences = sentences_in(new)
    older = [*claims(old_sentences), *changes(old_sentences)]
    newer = [*claims(new_sentences), *changes(new_sentences)]
    for first, second in product(older, newer):
        if first.subject != second.subject:
            continue
        if ends(first, second):
            return True
    return False


@pytest.mark.parametrize(("old", "new"), ENDED)
def test_each_clause_of_a_newer_sentence_ends_the_older_one(old: str, new: str) -> None:
    assert is_ended(old, new)


@pytest.mark.parametrize(("old", "new"), NOT_ENDED)
def test_clause_of_something_else_leaves_the_older_sentence(old: str, new: str) -> None:
    assert not is_ended(old, new)
