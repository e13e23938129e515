"""Finds the words of a prompt that a person wrote, and the sentences that the person asks to
remember.

A hook uses this module before anything else, so the module imports little.
"""

from __future__ import annotations

import re

from memoranda import former_name
from memoranda.text.fence import TAG

FENCED = re.compile(rf"<(?P<mark>{TAG}|{former_name.TAG})\b.*?(?:</(?P=mark)>|\Z)", re.I | re.S)
"""Matches a text between the marks of memoranda, under its present or its former name."""
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
# The most characters of a request; further characters are cut off.
_MOST_REQUEST_CHARACTERS = 1_000
# A request with fewer characters is ignored, such as "remember: x".
_LEAST_REQUEST_CHARACTERS = 4
# The most requests that are taken from one prompt.
_MOST_REQUESTS = 5


def own_words(prompt: str) -> str:
    """Return the prompt without text that was pasted or came from the memory.

    Pasted text is code blocks, quoted lines and blocks in tags. For example, `Look:` and a line `>
    old mail` below it give `Look:`.
    """
    text = FENCED.sub("", prompt)
    own_parts = []
    start = 0
    # The position of the last end tag for each tag, -1 without an end tag. It is remembered, so
    # that a prompt with many tags is not searched many times.
    last_ends: dict[str, int] = {}
    while pasted := _PASTED.search(text, start):
        own_parts.append(text[start : pasted.start()])
        start = pasted.end()
        tag = pasted["tag"]
        if tag is None:
            # A block of code, or a quoted line
            continue
        end_tag = f"</{tag}>"
        if tag not in last_ends:
            last_ends[tag] = text.rfind(end_tag)
        if last_ends[tag] < start:
            # A tag without an end tag is not the beginning of a block, so it stays in the text.
            own_parts.append(pasted[0])
        else:
            start = text.index(end_tag, start) + len(end_tag)
    return "".join([*own_parts, text[start:]]).strip()


def asked_to_remember(prompt: str) -> list[str]:
    """Return the sentences that a prompt asks to remember, in the words of the prompt.

    For example, `Please remember that tea is at four.` gives `["tea is at four."]`. Questions are
    left out.
    """
    requests = []
    for match in _REMEMBER.finditer(own_words(prompt)):
        text = match["english"] or match["chinese"]
        end = match["end"] or match["stop"]
        # The two characters at the end are Chinese particles that make a sentence a question.
        if (
            end not in ("?", "？")
            and len(text.strip()) >= _LEAST_REQUEST_CHARACTERS
            and not text.rstrip().endswith(("吗", "么"))
        ):
            requests.append((text.strip() + (end or ""))[:_MOST_REQUEST_CHARACTERS])
    return requests[:_MOST_REQUESTS]
