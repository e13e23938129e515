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
# A request in English at the beginning of a sentence, perhaps after a list sign or "please".
_ENGLISH_REQUEST = (
    r"(?:^|(?<=[.!?\n])|(?<=[。！？；]))[^\S\n]*"
    r"(?:[-*] )?(?:(?:please|also|and|ok|okay|so|hey)[,:]?[^\S\n]+)*"
    r"(?:remember\s+that\b|remember:)\s*"
    r"(?P<english>[^\n]+?)(?P<end>[.!?](?=\s|$)|$)"
)
# The same in Chinese: words such as "please", then "remember".
_CHINESE_REQUEST = (
    r"(?:^|(?<=[\n.!?])|(?<=[。！？；，,]))[^\S\n]*"
    r"(?:请你?|帮我|麻烦|你要|一定要?|务必)*"
    r"记住(?!了|没|吗|的)[：:，,]?\s*"
    r"(?P<chinese>[^\n。！？!?]+)(?P<stop>[。！？!?]|$)"
)
_REMEMBER = re.compile(f"{_ENGLISH_REQUEST}|{_CHINESE_REQUEST}", re.I | re.M)
# Chinese particles at the end of a sentence that make it a question.
_QUESTION_PARTICLES = ("吗", "么")
# A longer request is cut to this many characters.
_MOST_REQUEST_CHARACTERS = 1_000
# A request with fewer characters is ignored, such as "remember: x".
_LEAST_REQUEST_CHARACTERS = 4
# At most this many requests are taken from one prompt.
_MOST_REQUESTS = 5


def own_words(prompt: str) -> str:
    """Return the prompt without text that was pasted or came from the memory.

    Pasted text is code blocks, quoted lines and blocks in tags. For example, `Look:` and a line `>
    old mail` below it give `Look:`.
    """
    text = FENCED.sub("", prompt)
    own_parts = []
    start = 0
    # Tag -> the position of its last end tag, -1 if it has none. It is remembered, so that a prompt
    # with many tags is not searched many times.
    last_ends: dict[str, int] = {}
    while pasted := _PASTED.search(text, start):
        own_parts.append(text[start : pasted.start()])
        start = pasted.end()
        tag = pasted["tag"]
        if tag is None:
            # A block of code, or a quoted line: it ends with the match.
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
        sentence = (match["english"] or match["chinese"]).strip()
        end = match["end"] or match["stop"] or ""
        is_question = end in ("?", "？") or sentence.endswith(_QUESTION_PARTICLES)
        if not is_question and len(sentence) >= _LEAST_REQUEST_CHARACTERS:
            requests.append((sentence + end)[:_MOST_REQUEST_CHARACTERS])
    return requests[:_MOST_REQUESTS]
