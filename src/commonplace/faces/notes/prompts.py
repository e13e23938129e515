"""The prompts continue_conversation and search_knowledge_base (contract 000b, 9)."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

from commonplace.errors import InvalidInput
from commonplace.faces.notes.page import fitting
from commonplace.faces.notes.words import address, plural, short
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Prompt
from commonplace.index.rows import Hit, Hits
from commonplace.query import parse

if TYPE_CHECKING:
    from commonplace.engine import Memory

LIMIT = 8000
_NOTES, _OBSERVATIONS = 8, 3
_FRAME = "7d"


def prompts() -> list[Prompt]:
    """Both prompts."""
    frame = ("timeframe", "Only notes changed since, e.g. 2h, 7d, 2026-11-01", False)
    return [
        Prompt(
            "continue_conversation",
            "Take up earlier work again, with the notes that bear on it.",
            continue_conversation,
            [("topic", "What to continue; without it the latest notes", False), frame],
        ),
        Prompt(
            "search_knowledge_base",
            "Answer a question from the notes.",
            search_knowledge_base,
            [("query", "Words to look for", True), frame],
        ),
    ]


def continue_conversation(memory: Memory, args: dict[str, str]) -> str:
    """One message with the best notes for `topic`, or the latest ones. Raises TimeframeError."""
    topic, given = _text(args, "topic"), _text(args, "timeframe")
    frame = given or _FRAME
    about = f' with "{short(topic, 200)}"' if topic else ""
    hits = _search(memory, topic, frame)
    said = f"{plural(hits.total, 'note')} changed in the time frame {frame}, the {'best' if topic else 'latest'} first:"
    if topic and not hits and not given:  # an older note on the topic is better than none
        hits = _search(memory, topic, "")
        said = f"Nothing changed in the last {_FRAME}; {plural(hits.total, 'older note')}, the best first:"
    searched = f" in the time frame {frame}" if given or not topic else ""
    return _message(memory, "notes-continue.md", hits, said, about=about, frame=searched)


def search_knowledge_base(memory: Memory, args: dict[str, str]) -> str:
    """One message with the hits for `query`. Raises InvalidInput without one, TimeframeError."""
    query, frame = _text(args, "query"), _text(args, "timeframe")
    if not query:
        raise InvalidInput('Parameter `query` must be a text; got "".')
    hits = _search(memory, query, frame)
    shown, searched = short(query, 200), f" in the time frame {frame}" if frame else ""
    said = f"{plural(hits.total, 'note')} found{searched}, the best first:"
    return _message(memory, "notes-search.md", hits, said, query=shown, about=f' for "{shown}"', frame=searched)


def _text(args: dict[str, str], name: str) -> str:
    return (args.get(name) or "").strip()


def _search(memory: Memory, text: str, frame: str) -> Hits:
    """The best notes for `text`, the latest without; only those changed in the time frame, if one is given."""
    query = parse(text, now=memory.clock(), zone=memory.settings.zone)
    since = memory.since(frame) if frame else None
    return memory.search(query.replace(after=max(filter(None, (since, query.after)), default=None)), limit=_NOTES)


def _message(memory: Memory, name: str, hits: Hits, said: str, **words: str) -> str:
    """The text of `name` around the notes found, within the limit."""
    if not hits:
        return Template(text_file("notes-nothing.md")).substitute(words).strip()
    frame = Template(text_file(name))
    room = LIMIT - len(frame.substitute(words, found=said, notes=""))
    blocks = [_block(memory, hit) for hit in hits]
    count = fitting([len(block) + 2 for block in blocks], room)
    return frame.substitute(words, found=said, notes="\n\n".join(blocks[:count])).strip()


def _block(memory: Memory, hit: Hit) -> str:
    """A note's title, date, address and first observations; without any the passage that was found."""
    note = hit.note
    said = [
        "- " + short(f"[{each.category}] {each.content}" if each.category else each.content, 200)
        for each in memory.observations(note)[:_OBSERVATIONS]
    ]
    head = f"## {short(note.title)}\n{(note.date or note.created)[:10]}, {short(address(note), 300)}"
    return "\n".join([head, *(said or [short(hit.passage, 200)])]).rstrip()
