"""How a note may be told to a session that did not ask for it (docs/trust.md).

- A note that the owner wrote or confirmed is told as a fact.
- A note that an agent, a program or an import wrote is told as a claim: with its author, and as
  unconfirmed.
- A note that seems to hold instructions, or comes from the web, is not told.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from memoranda.note.model import Provenance
from memoranda.text.pattern import lazy_pattern

# Characters in an agent's name that could have an effect in a prompt.
_NAME = lazy_pattern(r"[^\w.-]+")
# How many characters of an agent's name are told.
_MOST_NAME_CHARACTERS = 40
# Writers (`Provenance.who`) that are not an agent.
WEB = "web"
FILE = "file"
# How such a writer is named.
_AUTHORS = {FILE: "a file", "import": "an import", WEB: "a web page"}


class Telling(Enum):
    """How a note may be told."""

    FACT = "fact"
    CLAIM = "claim"
    """As the claim of its author."""
    SILENT = "silent"
    """Not at all."""


def telling(
    provenance: Provenance, *, is_held_back: bool = False, is_confirmed: bool = False
) -> Telling:
    """Decide how a note of this origin may be told.

    provenance: where the note comes from.
    is_held_back: whether it seems to hold instructions, and nobody has approved it.
    is_confirmed: whether the owner has confirmed its present text.
    """
    if is_held_back:
        return Telling.SILENT
    if provenance.trust == "owner" or is_confirmed:
        return Telling.FACT
    # An agent answers for its words. For a web page, nobody in this memory does.
    if WEB in (provenance.trust, provenance.who):
        return Telling.SILENT
    return Telling.CLAIM


def author(provenance: Provenance) -> str:
    """Return the author of a note in a few words: `claude`, `the owner`, `a web page`.

    Characters that could have an effect in a prompt are removed from the name of an agent.
    """
    agent = provenance.agent
    if agent is not None:
        return told_name(agent)
    if provenance.who == "owner":
        # If the owner edited a text of an agent, the text still counts as the agent's.
        return "the owner" if provenance.trust == "owner" else "an agent"
    return _AUTHORS.get(provenance.who, "an agent")


@lru_cache(maxsize=1_000)
def told_name(agent: str) -> str:
    """Return the name of an agent in a form that is safe to tell a session.

    A program that connects chooses its name itself. If the name may be an instruction, the result is
    `an agent`.
    """
    name = agent[:_MOST_NAME_CHARACTERS]
    # Loading the rules takes long, so a name of one word is not checked. It must be in Latin letters,
    # because some scripts write a whole sentence without blanks, and have no capital inside, unlike
    # `ignoreAllRules`.
    is_one_word = name.isascii() and name.isalpha() and (name.isupper() or name[1:].islower())
    if not is_one_word:
        from memoranda.text.gate import default_rules

        if default_rules().name_suspicions(agent):
            return "an agent"
    return _NAME.sub(" ", agent).strip()[:_MOST_NAME_CHARACTERS] or "an agent"


def claimed(provenance: Provenance, text: str) -> str:
    """Return a text as the claim of its author: `claude noted: Anna prefers tabs`.

    provenance: where the text comes from.
    """
    return f"{author(provenance)} noted: {text}"


def is_foreign(provenance: Provenance) -> bool:
    """Whether a text comes from an unknown writer: a web page, or a program that wrote its file.

    Such a text is not merged with other texts, nor shown to the language model of a dream.
    """
    return WEB in (provenance.who, provenance.trust) or provenance.who == FILE
