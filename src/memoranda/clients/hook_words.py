"""Tells which words of a prompt are a person's own, and what they ask in it to remember.

A hook uses this before anything else, so this module imports little.
"""

from __future__ import annotations

import re

from memoranda import former_name
from memoranda.text.fence import TAG

FENCED = re.compile(rf"<(?P<mark>{TAG}|{former_name.TAG})\b.*?(?:</(?P=mark)>|\Z)", re.I | re.S)
"""Matches a text between our marks, those of earlier checkouts included."""
# Text that a person pastes rather than says: fenced blocks, quoted lines, tags.
_PASTED = re.compile(
    r"^(?P<fence>`{3,}|~{3,}).*?(?:^(?P=fence)|\Z)|^[ \t]*>[^\n]*$|<(?P<tag>[\w-]+)>", re.M | re.S
)
# A request at the beginning of a sentence, perhaps after "please" or a list sign.
_REMEMBER = re.compile(
    r"(?:^|(?<=[.!?\n])|(?<=[。！？；]))[^\S\n]*(?:[-*] )?(?:(?:please|also|and|ok|okay|so|hey)[,:]?[^\S\n]+)*"
    r"(?:remember\s+that\b|remember:)\s*(?P<english>[^\n]+?)(?P<end>[.!?](?=\s|$)|$)"
    r"|(?:^|(?<=[\n.!?])|(?<=[。！？；，,]))[^\S\n]*(?:请你?|帮我|麻烦|你要|一定要?|务必)*"
    r"记住(?!了|没|吗|的)[：:，,]?\s*"
    r"(?P<chinese>[^\n。！？!?]+)(?P<stop>[。！？!?]|$)",
    re.I | re.M,
)
# Characters of a request; the rest is cut.
_MOST_REQUEST_CHARACTERS = 1_000
# Fewer characters are not a request: "remember: x".
_LEAST_REQUEST_CHARACTERS = 4
# Requests of one prompt.
_MOST_REQUESTS = 5


def own_words(prompt: str) -> str:
    """A prompt without what was pasted: code, quotes, blocks in tags, and what came from here."""
    text = FENCED.sub("", prompt)
    parts = []
    start = 0
    # Where a tag is closed for the last time: tags without an end cost one look
    last: dict[str, int] = {}
    while pasted := _PASTED.search(text, start):
        parts.append(text[start : pasted.start()])
        start = pasted.end()
        tag = pasted["tag"]
        if tag is not None:
            end = f"</{tag}>"
            if tag not in last:
                last[tag] = text.rfind(end)
            if last[tag] < start:
                parts.append(pasted[0])
            else:
                start = text.index(end, start) + len(end)
    return "".join([*parts, text[start:]]).strip()


def asked_to_remember(prompt: str) -> list[str]:
    """The words that a prompt says to remember, word for word, without the words that say so; questions are
    none.
    """
    requests = []
    for match in _REMEMBER.finditer(own_words(prompt)):
        text = match["english"] or match["chinese"]
        end = match["end"] or match["stop"]
        if (
            end not in ("?", "？")
            and len(text.strip()) >= _LEAST_REQUEST_CHARACTERS
            and not text.rstrip().endswith(("吗", "么"))
        ):
            requests.append((text.strip() + (end or ""))[:_MOST_REQUEST_CHARACTERS])
    return requests[:_MOST_REQUESTS]
