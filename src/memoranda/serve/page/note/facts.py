"""Lists the facts of a note. Each comes with its writer, its time, and what contradicts it.

A fact in the note of a name often leaves the name out: `- [place] lives in Porto`. It is compared as
if the name were before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from memoranda.engine import MemorySession
from memoranda.engine.history.former_places import history_through_moves
from memoranda.engine.telling.contested import Contradiction, Statement, unanswered_contradictions
from memoranda.errors import InvalidInput
from memoranda.index.rows import Edge, NoteInfo
from memoranda.ledger.change import Change, Standing
from memoranda.note.claims import Claim, ClaimKind, claim_of, ends
from memoranda.note.edit import Rewrite
from memoranda.note.model import Note, Observation
from memoranda.serve.page.addresses import note_url
from memoranda.serve.page.note.history import is_about
from memoranda.serve.page.note_text import LinkTargets, inline_html, words_of_links
from memoranda.serve.page.people.sentence_facts import facts_in_sentence
from memoranda.serve.page.words.writers import writer_of, writer_of_change
from memoranda.text.folding import fold
from memoranda.text.unicode import flat

# Changes of a note that are looked at for who wrote its lines.
_MAX_CHANGES = 30
# Somebody who moved to a place lives there.
_MOVED = re.compile(r"\b(?:has |have )?moved to\b")
_MOVED_ZH = re.compile("搬到了?|搬去了?")
# The name before what a person does: "Ann moved to Porto and works on Wiki now".
_PERSON = re.compile(
    r"(?P<name>[^,;:，；：]{1,60}?)\s*(?:\b(?:has |have )?(?:now )?(?:moved to|lives in|works on|leads)\b"
    r"|现在|在做|负责|搬到|搬去|住在)"
)
# The category of memories about people, and labels of what a person does, mostly one at a time.
_PEOPLE = "people"
_WORK = ("works on", "leads")


@dataclass
class Fact:
    """A fact of a note.

    category: its category. "" without one.
    html: its text with links, without its tags.
    tags: its tags, without `#`.
    context: the text in parentheses after it. "" without one.
    line: its line in the file, counted from 1.
    words: its text without tags and links, as it is compared.
    writer: who wrote the line: an agent's name, or a word to be translated.
    time: when the line was written.
    newer: the newest statement that contradicts it. None if it is not contradicted.
    is_asked: whether Review asks which of the two holds.
    source: the memory whose sentence says it. None for a fact in the note of a name.
    holds_alone: whether its sentence says that no other value of its category holds.
    before: the facts that it contradicts.
    """

    category: str
    html: Markup
    tags: Sequence[str]
    context: str
    line: int
    words: str
    writer: str
    time: str
    newer: Statement | None = None
    is_asked: bool = False
    source: NoteInfo | None = None
    holds_alone: bool = False
    before: list[Fact] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str]:
        """The category and the words, without case. Two facts with the same key say the same."""
        return self.category.casefold(), fold(self.words)


@dataclass(frozen=True)
class _Origin:
    """Who wrote a line, and when."""

    writer: str
    time: str


def facts_of(memory: MemorySession, info: NoteInfo, outgoing: Sequence[Edge]) -> list[Fact]:
    """Return the facts of a note in their order. Secrets in them are masked.

    outgoing: the links of the note, to which the links in the facts lead.
    """
    observations = memory.observations(info)
    if not observations:
        return []
    targets = LinkTargets(
        {edge.target: note_url(edge.note.project, edge.note.path) for edge in outgoing if edge.note}
    )
    redacted = memory.rules_for_reading().redacted
    # The page shows the note, and no agent reads it. So it does not count as read.
    note = memory.read(info, count=False)
    origins = _origins_of_lines(memory, info, note, [item.line for item in observations])
    facts = []
    for observation in observations:
        words = redacted(_without_tags(observation))
        origin = origins[observation.line]
        facts.append(
            Fact(
                category=observation.category or "",
                html=inline_html(words, info.project, info.path, targets),
                tags=[redacted(tag) for tag in observation.tags],
                context=redacted(observation.context or ""),
                line=observation.line,
                words=words_of_links(words),
                writer=origin.writer,
                time=origin.time,
            )
        )
    return facts


def fact_of_relation(
    memory: MemorySession, info: NoteInfo, edge: Edge, newer: Contradiction
) -> Fact:
    """Return a contradicted relation in the form of a fact.

    `lives_in [[Berlin]]` becomes a fact of the category `lives in`, with a link to Berlin.

    Secrets in it are masked.

    info: the note that has the relation.
    edge: the relation. It leads to a note.
    newer: its contradiction with the newest statement.
    """
    assert edge.note is not None
    redacted = memory.rules_for_reading().redacted
    name = redacted(edge.type.replace("_", " "))
    url = note_url(edge.note.project, edge.note.path)
    html = Markup('<a href="{}">{}</a>').format(url, flat(redacted(edge.note.title)))
    return Fact(
        category=name,
        html=html,
        tags=(),
        context=redacted(edge.context or ""),
        line=edge.line,
        words=edge.target,
        writer=writer_of(info),
        time=info.created,
        newer=newer.new,
        is_asked=newer.is_asked,
    )


def _origins_of_lines(
    memory: MemorySession, info: NoteInfo, note: Note, numbers: Sequence[int]
) -> Mapping[int, _Origin]:
    """Return who wrote some lines of a note, by the number of the line.

    It is the change before which the note did not have the line. If the history does not reach so
    far, it is who wrote the note.

    numbers: the numbers of the lines, counted from 1.
    """
    lines = _lines_of(note.text)
    origins = {number: _Origin(writer_of(info), info.created) for number in numbers}
    # The lines whose change was not found yet, by number. The changes come from the latest on.
    unknown = {number: lines[number - 1] for number in numbers if number <= len(lines)}
    steps = history_through_moves(memory, info.project, info.path, limit=_MAX_CHANGES)
    revisions = memory.revisions_of([step.change for step in steps])
    # An undone change, and its undo, do not count.
    standing = Standing()
    for step in steps:
        if not standing.counts(step.change):
            continue
        own_revisions = (
            item for item in revisions[step.change.number] if is_about(item, step.place)
        )
        for revision in own_revisions:
            if revision.is_text_lost:
                return origins
            lines_before = set(_lines_of(revision.before or ""))
            new_lines = [number for number, line in unknown.items() if line not in lines_before]
            for number in new_lines:
                origins[number] = _origin(step.change)
                del unknown[number]
    return origins


def _origin(change: Change) -> _Origin:
    return _Origin(writer_of_change(change), change.time)


def newer_statements(
    memory: MemorySession, infos: Iterable[NoteInfo]
) -> Mapping[int, Mapping[int, Contradiction]]:
    """Return the contradictions of some notes with the newest statements, by the note's row and line.

    They are those with which sessions are told the notes. Contradictions about which the owner has
    decided are left out. A statement in running text is at line 0.
    """
    by_row: dict[int, dict[int, Contradiction]] = {}
    pairs = unanswered_contradictions(memory, infos)
    # Of several contradictions of a line, the newest statement is set last, and stays.
    for pair in sorted(pairs, key=lambda pair: pair.new.moment):
        is_list_item = not pair.old.claim.stop
        line = pair.old.claim.line if is_list_item else 0
        by_row.setdefault(pair.old.info.row, {})[line] = pair
    return by_row


def statements_of(infos: Iterable[NoteInfo]) -> list[Statement]:
    """Return the statements in the titles of memories, which are their first sentences."""
    statements = []
    for info in infos:
        claims = [*_claims_in(info.title)]
        # A program that works on Linux now may work on Windows, too.
        if info.category == _PEOPLE:
            claims += _claims_of_work(info.title)
        statements += [Statement(info, claim) for claim in claims]
    return statements


def names_in(sentence: str) -> list[str]:
    """Return the names that a sentence makes a claim about: `Ann` for "Ann moved to Porto"."""
    claims = [*_claims_in(sentence), *_claims_of_work(sentence)]
    return list(dict.fromkeys(claim.name for claim in claims))


def contradicting(
    words: str, time: str, statements: Iterable[Statement], name: str = ""
) -> Statement | None:
    """Return the newest statement that was written after a sentence and contradicts it.

    words: the sentence, or a fact that leaves out whom it is about: `lives in Porto`.
    time: when it was written.
    name: the person or thing that such a fact is about. "" if the sentence is complete.

    None if no statement contradicts it.
    """
    # A fact is also read with the name before it: "Ann lives in Porto".
    sentences = [words, f"{name} {words}"] if name else [words]
    claims: list[Claim] = []
    for sentence in sentences:
        claims += [*_claims_in(sentence), *_claims_of_work(sentence)]
    later = [
        statement
        for statement in statements
        if statement.info.created > time
        and any(_is_ended_by(claim, statement.claim) for claim in claims)
    ]
    return max(later, key=lambda statement: statement.moment, default=None)


def _claims_in(sentence: str) -> Iterator[Claim]:
    """Yield the claim of a sentence, if it makes one."""
    # Somebody who moved to a place lives there: "moved to Porto" is read as "lives in Porto".
    as_living = _MOVED_ZH.sub("住在", _MOVED.sub("lives in", sentence))
    claim = claim_of(as_living.rstrip("了"))
    if claim is not None:
        yield claim


def _claims_of_work(sentence: str) -> Iterator[Claim]:
    """Yield what a sentence says that somebody works on or leads.

    Only a sentence with "now" ends an earlier one: "Ann works on Wiki now". Without it, Ann may
    work on both.
    """
    person = _PERSON.match(sentence)
    if person is None:
        return
    name = person["name"].strip()
    for said in facts_in_sentence(sentence, name):
        if said.label in _WORK:
            subject = f"{said.label}|name|{fold(name)}"
            kind = ClaimKind.ENDING if said.holds_alone else ClaimKind.PLAIN
            yield Claim(subject, name, said.value, 0, kind=kind)


def _is_ended_by(old: Claim, new: Claim) -> bool:
    return old.subject == new.subject and ends(old, new)


def words_of_fact(observation: Observation) -> str:
    """Return the text of a fact without tags, with its links as words."""
    return words_of_links(_without_tags(observation))


def _without_tags(observation: Observation) -> str:
    tags = {f"#{tag}" for tag in observation.tags}
    return " ".join(word for word in observation.content.split() if word not in tags)


def can_take_out(memory: MemorySession, info: NoteInfo) -> bool:
    """Whether single facts of a note can be taken out.

    They cannot if the note is locked, or if its file also holds other notes.
    """
    return not info.locked and not memory.holds_entities(info.project)


def take_fact_out(memory: MemorySession, info: NoteInfo, line: int, checksum: str) -> None:
    """Take a fact out of its note.

    line: its line in the file.
    checksum: the checksum of the note that somebody saw.

    Raises InvalidInput if the line has no fact, Conflict.
    """
    if line not in {observation.line for observation in memory.observations(info)}:
        raise InvalidInput("There is no such fact any more.")
    lines = _lines_of(memory.read(info, count=False).text)
    del lines[line - 1]
    memory.edit(info, Rewrite("\n".join(lines)), checksum=checksum)


def _lines_of(text: str) -> list[str]:
    """Return the lines of a text as facts count them.

    `str.splitlines` also ends a line at a form feed or a U+2028, and would count more lines.
    """
    return text.split("\n")
