"""The two prompts and the resource template of the note tools (contract 000b, 9)."""

from __future__ import annotations

from string import Template as TextTemplate
from typing import TYPE_CHECKING

from commonplace.errors import InvalidInput, OutsideError
from commonplace.faces.notes.replies import address, counted, fitting, short
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Prompt, Template
from commonplace.index.rows import Hits
from commonplace.query import parse

if TYPE_CHECKING:
    from commonplace.engine import Memory

_LIMIT = 8000
_NOTES, _OBSERVATIONS = 8, 3
_FRAME = "7d"
_VALUES = 100  # values a completion has at most


def _continue_conversation(memory: Memory, args: dict[str, str]) -> str:
    """One message with the best notes for `topic`, or the latest ones. Raises TimeframeError."""
    topic, given = ((args.get(name) or "").strip() for name in ("topic", "timeframe"))
    frame = given or _FRAME
    hits, which = _search(memory, topic, frame), "best" if topic else "latest"
    found = f"{counted(hits)} changed in the time frame {frame}, the {which} first:"
    if topic and not hits and not given:  # an older note on the topic is better than none
        hits = _search(memory, topic, "")
        found = f"Nothing changed in the last {_FRAME}; {counted(hits, 'older note')}, the best first:"
    about, searched = f' with "{short(topic, 200)}"' if topic else "", f" in the time frame {frame}"
    return _message(memory, "notes-continue.md", hits, found, about=about, frame=searched if given or not topic else "")


def _search_knowledge_base(memory: Memory, args: dict[str, str]) -> str:
    """One message with the hits for `query`. Raises InvalidInput without one, TimeframeError."""
    query, frame = ((args.get(name) or "").strip() for name in ("query", "timeframe"))
    if not query:
        raise InvalidInput('Parameter `query` must be a text; got "".')
    hits = _search(memory, query, frame)
    shown, searched = short(query, 200), f" in the time frame {frame}" if frame else ""
    found = f"{counted(hits)} found{searched}, the best first:"
    return _message(memory, "notes-search.md", hits, found, query=shown, about=f' for "{shown}"', frame=searched)


def _search(memory: Memory, text: str, frame: str) -> Hits:
    """The best notes for `text`, the latest without; only those changed in the time frame, if one is given."""
    query = parse(text, now=memory.clock(), zone=memory.settings.zone)
    since = memory.since(frame) if frame else None
    after = max(filter(None, (since, query.after)), default=None)
    return memory.search(query.replace(after=after), limit=_NOTES, vetted=True)


def _message(memory: Memory, name: str, hits: Hits, found: str, **words: str) -> str:
    if not hits:
        return TextTemplate(text_file("notes-nothing.md")).substitute(words).strip()
    frame = TextTemplate(text_file(name))
    room = _LIMIT - len(frame.substitute(words, found=found, notes=""))
    blocks = []
    for hit in hits:
        note = hit.note
        observations = [
            "- " + short(f"[{each.category}] {each.content}" if each.category else each.content, 200)
            for each in memory.observations(note)[:_OBSERVATIONS]
        ]
        head = f"## {short(note.title)}\n{(note.date or note.created)[:10]}, {short(address(note), 300)}"
        blocks.append("\n".join([head, *(observations or [short(hit.passage, 200)])]).rstrip())
    count = fitting([len(block) + 2 for block in blocks], room)
    return frame.substitute(words, found=found, notes="\n\n".join(blocks[:count])).strip()


def _complete(memory: Memory, variable: str, beginning: str, others: dict[str, str]) -> list[str]:
    """Projects by the beginning of their names; permalinks, without the project given, by theirs."""
    if variable == "project":
        names = [each.name for each in memory.projects]
        return [name for name in names if name.casefold().startswith(beginning.casefold())][:_VALUES]
    if variable != "path":
        return []
    project = others.get("project") or ""
    if not any(each.name.casefold() == project.casefold() for each in memory.projects):
        return [] if project else memory.complete(beginning, _VALUES)
    name = memory.project(project).name
    try:
        found, _ = memory.matching(f"{beginning}*", project=name, limit=_VALUES)
    except (InvalidInput, OutsideError):  # what cannot be an address has no completion
        return []
    return [each.permalink.removeprefix(f"{name}/") for each in found]


_TIMEFRAME = ("timeframe", "Only notes changed since, e.g. 2h, 7d, 2026-11-01", False)
PROMPTS = [
    Prompt(name, about, render, [argument, _TIMEFRAME])
    for name, about, render, argument in (
        ("continue_conversation", "Take up earlier work again, with the notes that bear on it.", _continue_conversation,
         ("topic", "What to continue; without it the latest notes", False)),
        ("search_knowledge_base", "Answer a question from the notes.", _search_knowledge_base,
         ("query", "Words to look for", True)),
    )
]  # fmt: skip
_NOTE_URI, _NOTE = "memory://{project}/{+path}", "A note by project and path or permalink, percent-encoded."
TEMPLATE = Template(
    _NOTE_URI, "note", _NOTE, "text/markdown",
    lambda memory, variables: memory.read(variables["path"], project=variables["project"]).text, _complete,
)  # fmt: skip
