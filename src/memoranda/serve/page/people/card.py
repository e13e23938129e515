"""Puts what sentences of memories say about a name beside the facts of its notes.

A memory is one sentence, such as "Ann moved to Porto". Somebody has one place at a time, so that only
the newest one is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Protocol

from markupsafe import Markup, escape

from memoranda.engine import MemorySession
from memoranda.engine.telling.contested import Statement
from memoranda.index.rows import NoteInfo
from memoranda.note.claims import Claim
from memoranda.serve.page.note.facts import Fact
from memoranda.serve.page.people.sentence_facts import (
    SentenceFact,
    facts_in_sentence,
    labels_of_fact,
)
from memoranda.serve.page.words.text_origin import text_origin
from memoranda.text.folding import fold
from memoranda.text.unicode import flat

# Values of one label that hold beside each other, such as allergies.
_MAX_VALUES = 3


class _Learned(Protocol):
    """A memory that has the name."""

    @property
    def info(self) -> NoteInfo:
        """The memory."""


def said_facts(memory: MemorySession, name: str, memories: Iterable[_Learned]) -> list[Fact]:
    """Return the facts that memories state about a name, one fact for each value.

    memories: those that hold and that nothing contradicts, the newest first.
    """
    facts: list[Fact] = []
    # Labels of which no older value holds any more.
    closed_labels: set[str] = set()
    for learned in memories:
        # Masked before it is taken apart: a part of a secret does not look like one.
        sentence = memory.rules_for_reading().redacted(learned.info.title)
        for said in facts_in_sentence(sentence, name):
            keys_of_label = [fact.key for fact in facts if fact.category == said.label]
            fact = _fact_of_sentence(memory, learned.info, said)
            is_new = fact.key not in keys_of_label and len(keys_of_label) < _MAX_VALUES
            if is_new and said.label not in closed_labels:
                facts.append(fact)
            # The memories that follow are older, so their values no longer hold.
            if said.holds_alone:
                closed_labels.add(said.label)
    return facts


def _fact_of_sentence(memory: MemorySession, info: NoteInfo, said: SentenceFact) -> Fact:
    """Return what a memory says of a name as a fact of the card.

    info: the memory, which is one sentence. So the fact has no line.
    said: the fact in that sentence.
    """
    origin = text_origin(memory, info)
    return Fact(
        category=said.label,
        html=Markup(escape(flat(said.value))),
        tags=(),
        context="",
        line=0,
        words=said.value,
        writer=origin.writer,
        time=origin.time,
        source=info,
        holds_alone=said.holds_alone,
    )


def compare_with_said(name: str, fact_lists: Sequence[Sequence[Fact]], said: list[Fact]) -> None:
    """Compare facts in the notes about a name with facts that memories say about it.

    A newer memory contradicts a fact if only one value can be true. A memory is removed from `said`
    if it repeats a fact, or if it is older than a fact that it differs from.

    name: the name that all facts are about.
    fact_lists: the facts of each note about the name. Contradicted facts are marked in place.
    said: the facts that memories say. It is changed in place.
    """
    for fact in chain.from_iterable(fact_lists):
        labels = labels_of_fact(fact.category, fact.words, name)
        # A copy, since facts are removed from `said` meanwhile.
        like_facts = [said_fact for said_fact in said if said_fact.category in labels]
        for said_fact in like_facts:
            assert said_fact.source is not None
            if fold(said_fact.words) in fold(fact.words):
                # The memory says the same, so it need not be shown. But if something contradicts
                # the fact, the memory may be what is true now.
                if fact.newer is None:
                    said.remove(said_fact)
            elif said_fact.holds_alone and said_fact.time > fact.time:
                claim = Claim(subject="", name=name, value=said_fact.words, line=0)
                fact.newer = fact.newer or Statement(said_fact.source, claim)
            elif said_fact.holds_alone:
                # The memory says something else, and is older.
                said.remove(said_fact)


def nest_contradicted(name: str, facts: Sequence[Fact], contradicted: list[Fact]) -> None:
    """Move each contradicted fact to the one among `facts` that comes from the memory against it.

    contradicted: the facts that a newer statement contradicts. Those without such a fact stay.
    """
    said = [fact for fact in facts if fact.source is not None]
    for old_fact in list(contradicted):
        against = _contradicting_fact(name, old_fact, said)
        if against is not None:
            against.before.append(old_fact)
            contradicted.remove(old_fact)


def _contradicting_fact(name: str, old_fact: Fact, said: Iterable[Fact]) -> Fact | None:
    """Return the fact in `said` that contradicts an older fact, or None.

    name: the name that both are about.
    """
    assert old_fact.newer is not None
    labels = labels_of_fact(old_fact.category, old_fact.words, name)
    for fact in said:
        assert fact.source is not None
        if fact.source.row == old_fact.newer.info.row and fact.category in labels:
            return fact
    return None
