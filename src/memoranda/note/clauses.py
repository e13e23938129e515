"""Sentences that say more than one thing: "Anna left Acme for Initech and moved to Porto".

Each clause behind "and" is a sentence of its own. A clause that leaves out its subject gets the
subject of the clause before it. A sentence in which somebody else may be meant is left whole: a
false alarm costs more than a missed one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from memoranda.text.pattern import lazy_pattern

# What joins two clauses, with an adverb before the verb of the second.
_JOINT = lazy_pattern(r",?\s+(?:and|but)\s+(?:(?:now|also|currently)\s+)?")
# Words of a sentence in which it is unclear of whom a later clause speaks, or whether it is so.
_UNCLEAR = lazy_pattern(
    r"[?\"“”]|\b(?:who|whom|whose|which|that|where|what|how|if|when|he|she|they|it|we|not|never)\b"
    r"|n['’]t\b",
    re.I,
)
# An infinitive or a modal verb, by which a bare verb behind "and" may be governed.
_GOVERNING = lazy_pattern(
    r"\b(?:to (?!the\b|an?\b|our\b|my\b)[a-z]+|will|can|must|should|lets?|helps?)\b"
)
# Verbs in the past or of the third person that do not end in s or ed.
_FINITE = frozenset(("left", "became", "began", "took", "got", "found", "is", "am", "are"))
# Words that a subject in small letters begins with.
_ARTICLES = ("the", "our", "my")
# A subject is at most this many words.
_MOST_WORDS = 5


def may_have_clauses(sentence: str) -> bool:
    """Whether a sentence may have more than one clause. This check is quick."""
    return " and " in sentence or " but " in sentence


def further_clauses(sentence: str, verbs: Collection[str]) -> Iterator[str]:
    """Yield the clauses of a sentence behind its first one, each with its subject.

    "Anna left Acme and moved to Porto" has the further clause "Anna moved to Porto".

    sentence: a sentence without Markdown.
    verbs: the verbs that clauses may have, in all forms.
    """
    first, *others = _JOINT.split(sentence)
    subject = _subject_of(first, verbs)
    if not subject or _UNCLEAR.search(sentence):
        return
    may_be_governed = _GOVERNING.search(first) is not None
    for clause in others:
        own_subject = _subject_of(clause, verbs)
        if own_subject:
            subject = own_subject
            yield clause
        elif _is_said_of(subject, clause, verbs) and not may_be_governed:
            yield f"{subject} {clause}"
        else:
            # Nobody knows what comes behind "Ben" of "works with Ben and Max and lives in Porto".
            return


def _subject_of(clause: str, verbs: Collection[str]) -> str:
    """Return the words of a clause before its verb. Empty if they are not surely its subject."""
    words = clause.split()
    for number, word in enumerate(words[: _MOST_WORDS + 1]):
        if word in verbs and number:
            break
    else:
        return ""
    first = words[0]
    is_name = first[0].isupper() or first in _ARTICLES
    # "Anna's brother" and "Ben, Max" may be others than "Anna" and "Max"
    if not is_name or "," in first:
        return ""
    return " ".join(words[:number])


def _is_said_of(subject: str, clause: str, verbs: Collection[str]) -> bool:
    """Whether a clause begins with a verb in a form that the subject before it may have."""
    verb = clause.partition(" ")[0]
    if verb not in verbs:
        return False
    return subject == "I" or verb in _FINITE or verb.endswith(("s", "ed"))
