"""Clean short texts that a stranger chose, before they are kept and shown to others.

Each client chooses its own name, the name of a session and the words of a request. The history, the
log, the page and other agents' sessions show them. So each becomes one short line without secrets
and hidden characters (docs/trust.md#names-that-strangers-choose).
"""

from __future__ import annotations

import re
from functools import lru_cache

from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import one_line, sqlite_text, visible

MOST_NAME_CHARACTERS = 100
"""The longest name that is kept."""
WITHHELD = "[name withheld: it may be an instruction]"
"""The name in place of one that seems to give orders to its reader."""
# Names that certainly have no secret and no order, as nearly all names: one or two words with a
# version, a UUID, or our own number of a session. Loading the rules for them would delay a hook. A
# word with capitals inside does not match, as it may be several words: `ignoreAllRules`.
_PLAIN_WORD = r"(?:[A-Za-z][a-z]{0,19}|[A-Z]{2,20})"
_PLAIN_NAME = lazy_pattern(
    rf"{_PLAIN_WORD}(?:[ -]{_PLAIN_WORD})?(?: v?\d{{1,4}}(?:\.\d{{1,4}}){{0,3}})?"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8}",
    re.ASCII,
)
# At most this many characters of a text are looked at, so that a secret is found whole.
_MOST_READ_CHARACTERS = 6_000


def outside_name(name: str) -> str:
    """Return a name as it may be kept: WITHHELD if it seems to give orders to its reader."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return _name(name[:_MOST_READ_CHARACTERS])


# A client says its name with each call.
@lru_cache(maxsize=256)
def _name(name: str) -> str:
    """Return the result of `outside_name` for a name that is not plain."""
    from memoranda.text.gate import default_rules

    if default_rules().name_suspicions(one_line(name)):
        return WITHHELD
    return outside_text(name, MOST_NAME_CHARACTERS)


def outside_text(text: str, length: int) -> str:
    """Return the first `length` characters of a text, as one line without secrets.

    A secret that goes over the cut is replaced, too. Control characters become blanks. Hidden
    characters are removed, since a secret that contains them would not be recognized.

    The text may be an order. So it must not be shown to an agent, only to a person.
    """
    from memoranda.text.gate import default_rules

    beginning = " ".join(one_line(text[: length + _MOST_READ_CHARACTERS]).split())
    shown_text = visible(sqlite_text(beginning), lambda character: "")
    return default_rules().redacted_beginning(shown_text, length)
