"""What the lines of a text claim, also with several sentences and signs of Markdown in them."""

from __future__ import annotations

from memoranda.note import claims


def test_a_line_of_several_sentences_claims_what_each_of_them_does() -> None:
    text = "See below. The port of staging is 8080; the owner of heron is Anna.\n"
    assert [claim.value for claim in claims.claims(text)] == ["8080", "Anna"]


def test_a_sentence_with_signs_of_markdown_claims_the_same() -> None:
    plain = claims.claims("The port of staging is 8080.\n")
    assert len(plain) == 1
    for text in (
        "- [fact] The port of staging **is** _8080_ #infra #port\n",
        "1. **The port of staging** is 8080\n",
    ):
        marked = claims.claims(text)
        assert [(claim.subject, claim.value) for claim in marked] == [
            (plain[0].subject, plain[0].value)
        ]
