"""Tells, wherever a single note is shown, which of its facts something newer contradicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from memoranda.engine import MemorySession
from memoranda.engine.contested import Statement, holding_now
from memoranda.index.rows import Edge, NoteInfo
from memoranda.note.grammar import LINKS_TO
from memoranda.note.model import CATEGORY_PROJECT, MEMORY_PROJECTS
from memoranda.query import Query
from memoranda.serve.page.facts import (
    contradicting,
    fact_of_relation,
    facts_of,
    names_in,
    newer_statements,
    statements_of,
)

# Memories that name what a note is about, the newest first.
_MAX_MEMORIES = 60


@dataclass(frozen=True)
class Contradicted:
    """A fact of a note, or the sentence that it is, and the newest statement against it.

    line: the line of the fact in the file. 0 for the sentence that a memory is.
    """

    words: Markup | str
    newer: Statement
    line: int = 0


def contradicted_in(
    memory: MemorySession,
    info: NoteInfo,
    outgoing: Sequence[Edge],
    statements: Sequence[Statement] | None = None,
) -> list[Contradicted]:
    """Return the parts of a note that a newer statement contradicts, in the order of its lines.

    outgoing: the links of the note.
    statements: what memories say about the subject of the note. None means to look it up.
    """
    if memory.is_held_back(info):
        return []
    # The statements against which `memory review` has an open question, by the line that they
    # contradict.
    newer_by_line = newer_statements(memory, [info]).get(info.row, {})
    if statements is None:
        statements = _statements_about(memory, info)
    if not newer_by_line and not statements:
        return []

    # First the sentence that a memory is, then facts such as `- [city] Porto`, then relations such
    # as `- lives in [[Porto]]`.
    contradicted = [*_sentences(info, newer_by_line.get(0), statements)]
    for fact in facts_of(memory, info, outgoing):
        newer = newer_by_line.get(fact.line)
        # Without an open question, a memory may still say something else of the same.
        if newer is None or newer.info.created <= fact.time:
            newer = contradicting(fact.words, fact.time, statements, info.title)
        if newer is not None:
            contradicted.append(Contradicted(fact.html, newer, fact.line))
    for edge in outgoing:
        is_relation = edge.note is not None and edge.type != LINKS_TO
        if is_relation and edge.line in newer_by_line:
            newer = newer_by_line[edge.line]
            fact = fact_of_relation(memory, info, edge, newer)
            words = Markup("{} {}").format(fact.category, fact.html)
            contradicted.append(Contradicted(words, newer, edge.line))
    return contradicted


def _sentences(
    info: NoteInfo, known_newer: Statement | None, statements: Sequence[Statement]
) -> Iterator[Contradicted]:
    """Yield the first sentence of a memory, if something newer contradicts it.

    known_newer: a statement that is known to contradict the sentence. None if none is known; then
        one is looked for in `statements`.
    """
    if info.project not in MEMORY_PROJECTS:
        return
    newer = known_newer or contradicting(info.title, info.created, statements)
    if newer is not None:
        yield Contradicted(info.title, newer)


def _statements_about(memory: MemorySession, info: NoteInfo) -> list[Statement]:
    """Return what the newest memories say about the subject of a note.

    The note is about its title, and about the names in the title. The note itself is left out.
    """
    names = dict.fromkeys([info.title, *names_in(info.title)])
    return [item for item in statements_naming(memory, names) if item.info.row != info.row]


def statements_naming(memory: MemorySession, names: Iterable[str]) -> list[Statement]:
    """Return the statements of the newest memories that contain one of these names."""
    rows: dict[int, None] = {}
    for name in names:
        query = Query(contains=name, projects=(CATEGORY_PROJECT,), archived=False, order="created")
        listed, _ = memory.list(query, limit=_MAX_MEMORIES)
        rows.update(dict.fromkeys(other.row for other in listed))
    holding = holding_now(memory, rows).values()
    return statements_of(other for other in holding if not memory.is_held_back(other))
