"""The quick test for sentences that may claim something leaves none out (our own design)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from memoranda.note import claims

TABLE = tomllib.loads(Path(claims.__file__).with_name("claims.toml").read_text("utf-8"))
ALTERNATIVES = [words for verb in TABLE["verbs"].values() for words in verb]


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_each_verb_has_a_word_by_which_it_is_looked_for(alternative: str) -> None:
    in_it = set()
    for word, may_go_on in re.findall(r"([a-z]+)(\??)", alternative):
        in_it.add(word)
        # `lives?` is `live` or `lives`
        if may_go_on:
            in_it.add(word[:-1])
    content = in_it - {"is", "are", "am", "was", "were", "have", "now", "place"}
    content -= {"in", "at", "on", "for", "by", "to", "under"}
    assert content & set(TABLE["words"]["verb_words"].split())


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
