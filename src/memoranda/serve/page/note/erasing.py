"""Shows what erasing a note would remove, erases it, and lists what else has the same words.

A note that is erased often holds a secret, and the file of a memory is named by the beginning of its
text. So notes are named by their title, with secrets masked, and opened by their id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.history.trail import Mention, MentionKind, telling_words
from memoranda.engine.history.whereabouts import note_of_text
from memoranda.errors import MemorandaError
from memoranda.index.rows import NoteInfo
from memoranda.serve.page.addresses import id_url
from memoranda.serve.page.search import readable_passage
from memoranda.serve.page.visit import Visit

# Before a note is erased, notes with the same words are named: at most this many by the same words.
_MAX_NAMED = 4
# Characters of the text that is erased which are shown before.
_MAX_BEGINNING = 300
# Characters of a line that two notes do not have by chance.
_MIN_LINE = 12
# The category of a fact: `- [decision] `.
_CATEGORY = re.compile(r"^[-*+]\s+\[[^\[\]]+\]\s+")
# A line with a few words and a link: `- works with [[Ann]]`.
_LINK_LINE = re.compile(r"[-*+]?\s*(?:[^\s\[\]]+\s+){0,4}\[\[[^\[\]]+\]\]")


@dataclass(frozen=True)
class ShownMention:
    """Something that has the same words as an erased note, and stays.

    title: the title of the note, with secrets masked, or the name of the file.
    url: the address of the note. "" for a file.
    is_older_text: whether only an older text of the note has the words.
    is_source: whether it is the file from which the erased note was made.
    shared: the words that both have, with secrets masked. "" if they are not known.
    """

    title: str
    url: str = ""
    is_older_text: bool = False
    is_source: bool = False
    shared: str = ""


def form(visit: Visit, info: NoteInfo) -> Response:
    """Ask whether to erase a note. The page shows what would go, and where its words remain."""
    foretold = visit.memory.erase(info, dry_run=True)
    return visit.html(
        "erase.html",
        note=info,
        title=masked_title(visit.memory, info),
        beginning=_beginning(visit.memory, info),
        foretold=foretold,
        mentions=_by_words(_shown_with_words(visit.memory, info, foretold.mentions)),
        most_named=_MAX_NAMED,
    )


def erase(visit: Visit, info: NoteInfo) -> Response:
    """Erase a note from the files and the history. Without the field `sure`, ask for it first."""
    if visit.fields.get("sure") != "yes":
        return form(visit, info)
    erased = visit.memory.erase(info)
    return visit.html(
        "erased.html", done=erased, mentions=_mentions_shown(visit.memory, erased.mentions)
    )


def masked_title(memory: MemorySession, info: NoteInfo) -> str:
    """Return the title of a note, with its secrets masked."""
    return memory.rules_for_reading().redacted(info.title)


def _beginning(memory: MemorySession, info: NoteInfo) -> str:
    """Return the beginning of a note's text in one line, with its secrets masked.

    "" if the text only says the title.
    """
    text = memory.rules_for_reading().redacted(memory.read(info, count=False).content)
    # A line has fewer characters than its Markdown, and a whole note may be very long.
    line = readable_passage(text[: 4 * _MAX_BEGINNING], masked_title(memory, info))
    return line if len(line) <= _MAX_BEGINNING else f"{line[:_MAX_BEGINNING]}…"


def _mentions_shown(memory: MemorySession, mentions: Iterable[Mention]) -> list[ShownMention]:
    """Return the mentions of an erasure as people know them."""
    return [_shown_mention(memory, mention) for mention in mentions]


def _shown_with_words(
    memory: MemorySession, info: NoteInfo, mentions: Sequence[Mention]
) -> list[ShownMention]:
    """Return the mentions of a note that is still there, each note with the words that it shares."""
    text = memory.read(info, count=False).content
    rules = memory.rules_for_reading()
    shown = []
    for mention in mentions:
        shown_mention = _shown_mention(memory, mention)
        other = _note_of(memory, mention) if mention.kind is MentionKind.NOTE else None
        if other is not None:
            words = shared_words(text, memory.read(other, count=False).content)
            shared = readable_passage(rules.redacted(words), "")
            shown_mention = replace(shown_mention, shared=shared)
        shown.append(shown_mention)
    return shown


def _by_words(mentions: Iterable[ShownMention]) -> list[tuple[str, list[ShownMention]]]:
    """Return mentions by the words that they share with the note.

    Words that few notes share come first: a secret is not a phrase of many notes. Mentions without
    such words come last.
    """
    groups: dict[str, list[ShownMention]] = {}
    for mention in mentions:
        groups.setdefault(mention.shared, []).append(mention)
    return sorted(groups.items(), key=lambda group: (not group[0], len(group[1])))


def shared_words(text: str, other: str) -> str:
    """Return the longest line of a text that another text has, or else their longest common word.

    Many notes link to the same one, so a line that only links to a note does not count. Neither
    does a word that any text may have, such as `client`: a word counts if an erasure looks for it.
    "" if nothing else is common.
    """
    lines = _own_lines(text)
    other_lines = "\n".join(_own_lines(other))
    common_lines = [line for line in lines if len(line) >= _MIN_LINE and line in other_lines]
    if common_lines:
        return max(common_lines, key=len)
    common_words = _telling_words("\n".join(lines)) & _telling_words(other_lines)
    longest_first = sorted(common_words, key=lambda word: (-len(word), word))
    return next(iter(longest_first), "")


def _telling_words(text: str) -> set[str]:
    """Return the words of a text that an erasure looks for in other texts."""
    words = telling_words(text.encode("utf-8", "surrogatepass"))
    return {word.decode("utf-8", "surrogatepass") for word in words}


def _own_lines(text: str) -> list[str]:
    """Return the lines of a text without those that only link to a note.

    The category of a fact is a word of many notes, so it is left out.
    """
    lines = [_CATEGORY.sub("", line.strip()) for line in text.splitlines()]
    return [line for line in lines if not _LINK_LINE.fullmatch(line)]


def _shown_mention(memory: MemorySession, mention: Mention) -> ShownMention:
    is_older_text = mention.kind is MentionKind.OLDER_TEXT
    info = _note_of(memory, mention)
    if info is not None:
        return ShownMention(masked_title(memory, info), id_url(info.id), is_older_text)
    # The name of an older text is a hash.
    name = "" if is_older_text else mention.name
    is_source = mention.kind is MentionKind.SOURCE
    return ShownMention(name, is_older_text=is_older_text, is_source=is_source)


def _note_of(memory: MemorySession, mention: Mention) -> NoteInfo | None:
    """Return the note of a mention. None if it is gone, or if the mention is of a file."""
    if mention.kind is MentionKind.OLDER_TEXT:
        return note_of_text(memory, mention.name)
    if mention.place is not None:
        with suppress(MemorandaError):
            return memory.find(mention.place)
    return None
