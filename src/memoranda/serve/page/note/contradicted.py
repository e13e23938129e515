"""Tells, wherever a single note is shown, which of its facts something newer contradicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from memoranda.engine import MemorySession
from memoranda.engine.telling.contested import Statement, valid_notes
from memoranda.index.rows import Edge, NoteInfo
from memoranda.note.grammar import LINKS_TO
from memoranda.note.model import CATEGORY_PROJECT, MEMORY_PROJECTS
from memoranda.query import Query
from memoranda.serve.page.note.facts import (
    contradicting,
    fact_of_relation,
    facts_of,
    names_in,
    newer_statements,
    statements_of,
)

# A piece of a passage: whether it is a word of the query, and its text.
Piece = tuple[bool, str]
# A part of a passage: whether it is struck out, and its pieces.
Part = tuple[bool, list[Piece]]
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
    # The contradictions that the engine knows, by the line that is contradicted. A pair has the
    # older statement and the newer one.
    pairs_by_line = newer_statements(memory, [info]).get(info.row, {})
    newer_by_line = {line: pair.new for line, pair in pairs_by_line.items()}
    if statements is None:
        statements = _statements_about(memory, info)
    if not newer_by_line and not statements:
        return []

    # First the sentence that a memory is, then facts such as `- [city] Porto`, then relations such
    # as `- lives in [[Porto]]`.
    contradicted = [*_sentences(info, newer_by_line.get(0), statements)]
    for fact in facts_of(memory, info, outgoing):
        newer = newer_by_line.get(fact.line)
        # Without such a contradiction, a memory may still say something else of the same.
        if newer is None or newer.info.created <= fact.time:
            newer = contradicting(fact.words, fact.time, statements, info.title)
        if newer is not None:
            contradicted.append(Contradicted(fact.html, newer, fact.line))
    for edge in outgoing:
        is_relation = edge.note is not None and edge.type != LINKS_TO
        if is_relation and edge.line in newer_by_line:
            pair = pairs_by_line[edge.line]
            fact = fact_of_relation(memory, info, edge, pair)
            words = Markup("{} {}").format(fact.category, fact.html)
            contradicted.append(Contradicted(words, pair.new, edge.line))
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


def struck_out(pieces: Sequence[Piece], contradicted: Iterable[Contradicted]) -> list[Part]:
    """Return the pieces of a passage in parts: whether something newer contradicts the part, and it.

    contradicted: what is contradicted in the note that has the passage.
    """
    parts: list[Part] = [(False, list(pieces))]
    for item in contradicted:
        words = item.words.striptags() if isinstance(item.words, Markup) else item.words
        new_parts: list[Part] = []
        for is_struck, pieces_of_part in parts:
            # What is struck out already stays whole.
            if is_struck:
                new_parts.append((True, pieces_of_part))
            else:
                new_parts += _cut_out(pieces_of_part, words)
        parts = new_parts
    return parts


def _cut_out(pieces: list[Piece], words: str) -> list[Part]:
    """Return pieces in up to three parts, of which the middle one is the first place of some words."""
    begin = "".join(text for _, text in pieces).find(words) if words else -1
    if begin < 0:
        return [(False, pieces)]
    end = begin + len(words)
    before, from_begin = _divided(pieces, begin)
    struck, after = _divided(from_begin, end - begin)
    return [(False, before), (True, struck), (False, after)]


def _divided(pieces: Iterable[Piece], length: int) -> tuple[list[Piece], list[Piece]]:
    """Divide pieces behind a number of characters."""
    before: list[Piece] = []
    after: list[Piece] = []
    room = length
    for is_word, text in pieces:
        if text[:room]:
            before.append((is_word, text[:room]))
        if text[room:]:
            after.append((is_word, text[room:]))
        room = max(0, room - len(text))
    return before, after


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
    holding = valid_notes(memory, rows).values()
    return statements_of(other for other in holding if not memory.is_held_back(other))
