"""What the lines of a text claim, also with several sentences and signs of Markdown in them."""

from __future__ import annotations

from datetime import UTC, datetime

from memoranda.index.claims import rows_of
from memoranda.note import claims
from memoranda.note.markdown import parse_note

MOMENT = datetime(2026, 11, 30, tzinfo=UTC)


def test_a_line_of_several_sentences_claims_what_each_of_them_does() -> None:
    text = "See below. The port of staging is 8080; the owner of heron is Anna.\n"
    assert [claim.value for claim in claims.claims(claims.sentences_in(text))] == ["8080", "Anna"]


def test_a_sentence_with_signs_of_markdown_claims_the_same() -> None:
    plain = claims.claims(claims.sentences_in("The port of staging is 8080.\n"))
    assert len(plain) == 1
    for text in (
        "- [fact] The port of staging **is** _8080_ #infra #port\n",
        "1. **The port of staging** is 8080\n",
    ):
        marked = claims.claims(claims.sentences_in(text))
        assert [(claim.subject, claim.value) for claim in marked] == [
            (plain[0].subject, plain[0].value)
        ]


def test_links_are_read_as_their_words() -> None:
    text = "[[places/porto|Porto]] and [[Anna]], [[ [[[[x"
    assert claims.without_links(text) == "Porto and Anna, [[ [[[[x"


def test_an_observation_as_long_as_a_note_claims_nothing() -> None:
    header = "---\ntitle: Anna\n---\n"
    long_text = "- [place] lives in Porto " + "[[" * 500_000
    text = f"{header}- [place] lives in Porto\n{long_text}\n"
    note = parse_note(text, project="notes", path="Anna.md", changed=MOMENT)

    assert [row["value"] for row in rows_of(note, note.text[note.body_at :])] == ["Porto"]
