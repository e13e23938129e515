"""Shows the open questions as a list, with one of them to be answered.

Upkeep asks questions that only a person can decide: may these notes be merged, is this text an
attack? An answer is a letter. For a question about notes, the page shows their texts side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from memoranda import documents
from memoranda.documents.differences import Line, sides
from memoranda.engine import MemorySession
from memoranda.engine.review import DELETE, Quote, ReviewItem, SharedAnswer, shared_answers
from memoranda.engine.suspicion import CLAIM, KEEP
from memoranda.engine.suspicious_words import WordsElsewhere, suspicious_words
from memoranda.errors import Ambiguous, NotFound
from memoranda.jobs.dedup import has_same_content
from memoranda.note.model import CATEGORIES, INBOX, Note
from memoranda.query import Query
from memoranda.serve.page.note.since_confirmed import SinceConfirmed, since_confirmed
from memoranda.serve.page.review.grounds import grounds_of
from memoranda.serve.page.review.questions import open_questions, take_out
from memoranda.serve.page.visit import HOME, Visit
from memoranda.serve.page.words.plain_markdown import plain_text, plain_words, with_category
from memoranda.serve.page.words.wording import translated
from memoranda.serve.page.words.writers import writer_of
from memoranda.text.narrowing import Span
from memoranda.text.word_diff import SAME, Part

REVIEW = f"{HOME}/review"
# Questions in one answer of `/api`, unless it asks for another number.
_API_ITEMS = 20
# Characters of a note that are shown beside a question, and of those before the first marked words
# if these are not at its beginning.
_MAX_PANE_CHARACTERS = 4000
_CHARACTERS_BEFORE = 400
# Notes of a burst that are named.
_MAX_NAMED_NOTES = 20
# Two values that share a smaller part of their characters are not compared word by word.
_MIN_LIKENESS = 0.5
MARK = "!"
"""The kind of a part of a line that the question is about."""
# The seconds that a person needs for a question, for the estimate at the top.
_SECONDS_PER_QUESTION = 8
TITLES = {
    "project": "May an agent use this folder?",
    "suspicious": "Is this a planted instruction?",
    "reminder": "A reminder?",
    "contradiction": "Which of these holds?",
    "claim": "Is this so?",
    "burst": "Keep what was written in a hurry?",
    "lesson": "Remember what a session showed?",
    "merge": "Do these say the same?",
    "category": "Which category?",
    "archive": "Still needed?",
}
"""The question of each kind, for the list."""
_SUSPICIOUS = "suspicious"
_MERGE = "merge"
_BURST = "burst"
_CONTRADICTION = "contradiction"
# Keys of the keyboard that are not the letter of the answer. KEEP is `k`, but the keys `j` and `k`
# move between the questions.
_KEYS = {KEEP: "y"}
# The keys for the answers to a contradiction: the number of the text that holds.
_KEYS_OF_CONTRADICTION = {"o": "1", "n": "2"}
# The answer that keeps both notes.
_APART = "n"
# Kinds of questions of which no answer is recommended: it would delete a note, end a statement,
# archive a note, open a folder or take one of several categories, and whether that is right is only
# a guess.
_WITHOUT_MAIN_ANSWER = frozenset((_SUSPICIOUS, _CONTRADICTION, "archive", "project", "category"))
# The label of the words of a suspicious note that are not in its text, by their place.
_PLACES = {
    "title": "In its title",
    "header": "In its properties",
    "name": "In the name of its file",
    "file": "Where its properties end",
}
# Characters of the subject of a question in the list.
_MAX_SUBJECT_CHARACTERS = 100


@dataclass
class Pane:
    """A note that a question is about.

    lines: the lines of its text, with the differences from the other note marked, or the words that
        the question is about.
    author: who wrote it.
    is_cut: whether only a part of the text is shown.
    caption: which of two notes it is, or what happens to it, in words to translate. "" for nothing.
    """

    note: Note
    lines: list[Line]
    author: str
    is_cut: bool
    caption: str = ""


@dataclass
class Choice:
    """A possible answer.

    letter: the letter to send.
    label: the words that say what it does.
    key: the key of the keyboard for it.
    is_main: whether it is recommended.
    is_dangerous: whether it deletes a note.
    """

    letter: str
    label: str
    key: str
    is_main: bool = False
    is_dangerous: bool = False


@dataclass
class Alike:
    """Questions of one kind about notes of one writer, which one answer can settle.

    keys: their keys, each on a line.
    count: how many they are.
    writer: an agent's name, or a word to be translated.
    choice: the recommended answer to all of them.
    following: the address of the first other question.
    """

    keys: str
    count: int
    writer: str
    choice: Choice
    following: str


@dataclass
class Elsewhere:
    """Marked words that are outside the text of a note, such as in its header.

    label: says where they are, in English.
    key: the key in the header. "" for another place.
    """

    label: str
    key: str
    line: Line


@dataclass
class Question:
    """An open question with the notes that it is about and the possible answers.

    reasons: why a suspicious note is held back.
    elsewhere: suspicious words that are not in its text.
    grounds: the sentences that say why the question is asked.
    is_of_two_things: whether the two notes of a merge differ in a word that counts.
    titles: the notes of a burst, by their titles.
    since: what was changed in the note of a claim since the owner confirmed or pinned it.
    """

    item: ReviewItem
    title: str
    reasons: list[str] = field(default_factory=list)
    elsewhere: list[Elsewhere] = field(default_factory=list)
    grounds: list[str] = field(default_factory=list)
    is_of_two_things: bool = False
    titles: list[str] = field(default_factory=list)
    panes: list[Pane] = field(default_factory=list)
    since: SinceConfirmed | None = None
    choices: list[Choice] = field(default_factory=list)


def show(visit: Visit) -> Response | dict[str, Any]:
    """Show the open questions, and the question whose key is the field `at`.

    A POST answers the question `key` by the letter `choice`, and leads to the next one.
    """
    if visit.is_post:
        return _answer(visit)
    if visit.is_api:
        return _as_json(visit)
    # Finding the questions takes longer than showing a page, so a script asks for them afterwards.
    if not visit.is_part and not visit.text("list"):
        return visit.html("review.html", items=None, kinds=TITLES)
    items = _in_order(open_questions(visit))
    counts = Counter(item.kind for item in items)
    kind = visit.text("kind")
    if kind:
        items = _of_kind(visit, items, kind)
    values = _triage_values(visit, items) | {"counts": counts}
    values["shared"] = _shared_choices(kind) if kind and len(items) > 1 else []
    return visit.part_or_page("review_part.html", "review.html", **values)


def _triage_values(visit: Visit, items: Sequence[ReviewItem]) -> dict[str, Any]:
    """Return the values for the template: the list of questions, and the chosen one in full."""
    if not items:
        return {"items": [], "kinds": TITLES}
    position = _position_of(items, visit.text("at"))
    question = _question(visit, items[position])
    return {
        "items": items,
        "kinds": TITLES,
        "question": question,
        "alike": _questions_alike(visit, items, question),
        "position": position,
        "minutes": max(1, round(len(items) * _SECONDS_PER_QUESTION / 60)),
        "shorts": [_subject_of(item) for item in items],
        "addresses": [_address(visit, item) for item in items],
        "categories": [name for name in CATEGORIES if name != INBOX],
        "following": _address_of_following(visit, items, position),
    }


def _in_order(items: Sequence[ReviewItem]) -> list[ReviewItem]:
    """Return the questions about suspicious notes, then the others in their order."""
    # False sorts before True.
    return sorted(items, key=lambda item: item.kind != _SUSPICIOUS)


def _of_kind(visit: Visit, items: Sequence[ReviewItem], kind: str) -> list[ReviewItem]:
    """Return the questions of one kind, each by itself.

    items: the questions of all kinds, of which some are combined.
    """
    own_items = [item for item in items if item.kind == kind]
    is_combined = any(len(item.lines) > 1 for item in own_items)
    return list(open_questions(visit, kind)) if is_combined else own_items


def _shared_choices(kind: str) -> list[Choice]:
    """Return the answers that can be given to many questions of a kind at once."""
    if kind not in TITLES:
        return []
    return [_shared_choice(answer) for answer in shared_answers(kind)]


def _shared_choice(answer: SharedAnswer) -> Choice:
    key = _KEYS.get(answer.letter, answer.letter)
    return Choice(answer.letter, answer.label, key, is_dangerous=answer.letter == DELETE)


def _position_of(items: Sequence[ReviewItem], key: str) -> int:
    """Return the index of the question with this key. 0 if no question has it."""
    return next((number for number, item in enumerate(items) if item.key == key), 0)


def _address(visit: Visit, item: ReviewItem) -> str:
    """Return the address of a question in the list, with the list's filter."""
    fields = {"at": item.key}
    for name in ("kind", "list"):
        if visit.text(name):
            fields[name] = visit.text(name)
    return f"{REVIEW}?{urlencode(fields, errors='replace')}"


def _subject_of(item: ReviewItem) -> str:
    """Return the subject of a question: the text that it quotes, or else its beginning."""
    if item.quotes:
        values = " / ".join(quote.value for quote in item.quotes)
        return plain_words(f"{item.quotes[0].name}: {values}"[:_MAX_SUBJECT_CHARACTERS])
    if item.kind == _SUSPICIOUS:
        return item.subject
    return plain_text(item.subject or item.text[:_MAX_SUBJECT_CHARACTERS])


def _address_of_following(visit: Visit, items: Sequence[ReviewItem], position: int) -> str:
    """Return the address of the question that follows the one at `position`."""
    if len(items) < 2:
        return REVIEW
    is_last = position + 1 == len(items)
    # The last question leads to the one before, which is the last one after the answer.
    following = position - 1 if is_last else position + 1
    return _address(visit, items[following])


def _questions_alike(visit: Visit, items: Sequence[ReviewItem], question: Question) -> Alike | None:
    """Return the questions like this one, which its recommended answer may settle all at once.

    They are of its kind, about notes of the same writer. None if there are no others, if no answer
    is recommended, or if the note of the question is gone.

    items: the questions of the list.
    """
    choice = _shared_main_choice(question)
    if choice is None:
        return None
    items_of_kind = [item for item in items if item.kind == question.item.kind]
    writer_by_key = _writer_by_question(visit, items_of_kind)
    writer = writer_by_key.get(question.item.key)
    if writer is None:
        return None
    alike_keys = [key for key, name in writer_by_key.items() if name == writer]
    if len(alike_keys) < 2:
        return None
    # After the answer, the first question that it does not settle is shown.
    next_item = next((item for item in items if item.key not in alike_keys), None)
    following = REVIEW if next_item is None else _address(visit, next_item)
    return Alike(
        keys="\n".join(alike_keys),
        count=len(alike_keys),
        writer=writer,
        choice=choice,
        following=following,
    )


def _shared_main_choice(question: Question) -> Choice | None:
    """Return the recommended answer, as it is given to many questions. None if it cannot be."""
    main_letters = {choice.letter for choice in question.choices if choice.is_main}
    for choice in _shared_choices(question.item.kind):
        if choice.letter in main_letters:
            return choice
    return None


def _writer_by_question(visit: Visit, items: Sequence[ReviewItem]) -> dict[str, str]:
    """Return who wrote the first note of each question, by the key of the question.

    Questions without a note, or whose note is gone, are left out.
    """
    ids = {item.key: _id_in(item.refs[0]) for item in items if item.refs}
    # `limit=0` means no limit; the ids are the limit.
    infos, _ = visit.memory.list(Query(ids=tuple(ids.values())), limit=0)
    writer_by_id = {info.id: writer_of(info) for info in infos}
    return {key: writer_by_id[id] for key, id in ids.items() if id in writer_by_id}


def _question(visit: Visit, item: ReviewItem) -> Question:
    """Return a question with its notes and answers."""
    notes = _notes_of_question(visit.memory, item)
    is_of_two_things = item.kind == _MERGE and not say_the_same(notes)
    question = Question(
        item,
        title=TITLES[item.kind],
        reasons=_reasons(visit, item, notes),
        grounds=grounds_of(visit, item, notes),
        is_of_two_things=is_of_two_things,
        panes=panes_of(notes),
        choices=_choices(item, is_of_two_things),
        since=_since_confirmed(visit, item, notes),
    )
    if item.kind == _SUSPICIOUS and notes:
        words = suspicious_words(visit.memory.rules_for_reading(), notes[0])
        question.panes = [_marked_pane(notes[0], words.spans)]
        question.elsewhere = [_elsewhere(words_elsewhere) for words_elsewhere in words.elsewhere]
    elif item.quotes:
        question.panes = _panes_of_quotes(item, notes)
    elif item.kind == _BURST:
        question.panes = []
        question.titles = _titles(visit, item.refs[:_MAX_NAMED_NOTES])
    if len(question.panes) == 2:
        # The answers to choose from call the two notes by these captions.
        for pane, caption in zip(question.panes, ("The first", "The second"), strict=True):
            pane.caption = caption
    return question


def _notes_of_question(memory: MemorySession, item: ReviewItem) -> list[Note]:
    """Return the notes that a question is about, at most two. Notes that are gone are left out.

    Empty for a question of several lines, because these lines quote the notes.
    """
    if len(item.lines) >= 2:
        return []
    notes: list[Note] = []
    # The two lines of a contradiction may be of one note.
    ids = dict.fromkeys(_id_in(ref) for ref in item.refs[:2])
    for id in ids:
        with suppress(NotFound, Ambiguous):
            notes.append(memory.read(id, count=False))
    return notes


def _id_in(ref: str) -> str:
    """Return the id of the note that a reference names. It may also name a line: `5a1f77c2:7`."""
    id, _, _ = ref.partition(":")
    return id


def _titles(visit: Visit, ids: Sequence[str]) -> list[str]:
    """Return the titles of the notes with these ids. Notes that do not exist are left out."""
    infos, _ = visit.memory.list(Query(ids=tuple(ids)), limit=0)
    return [info.title for info in infos]


def _since_confirmed(
    visit: Visit, item: ReviewItem, notes: Sequence[Note]
) -> SinceConfirmed | None:
    """Return the changes of a claim's note since the owner confirmed it, or None."""
    if item.kind != CLAIM or not notes:
        return None
    info = visit.memory.find((notes[0].project, notes[0].path))
    return since_confirmed(visit.memory, info)


def _elsewhere(words: WordsElsewhere) -> Elsewhere:
    return Elsewhere(_PLACES[words.place], words.key, _with_marks(words.text, words.spans))


def _panes_of_quotes(item: ReviewItem, notes: Sequence[Note]) -> list[Pane]:
    """Return a pane for each of the contradicting notes, with the differing words marked.

    The panes show plain text, so each statement is looked for in the plain text of its note.
    """
    texts = {note.id: plain_text(note.content) for note in notes}
    note_by_id = {note.id: note for note in notes}
    ids = [_id_in(ref) for ref in item.refs]
    # The statement of each quote as its note has it. "" if the note is gone.
    statements = []
    for id, quote in zip(ids, item.quotes, strict=True):
        statement = ""
        if id in note_by_id:
            statement = plain_text(_text_of_quote(note_by_id[id], quote))
        statements.append(statement)
    # The words to mark in each note, by its id.
    spans: dict[str, list[Span]] = {id: [] for id in texts}
    differing = _differing_words(statements, item.quotes)
    for id, statement, words in zip(ids, statements, differing, strict=True):
        start = texts[id].find(statement) if statement else -1
        if start >= 0:
            spans[id] += [Span(start + span.start, start + span.stop) for span in words]
    return [
        _marked_pane(note, sorted(set(spans[note.id])), texts[note.id], with_category)
        for note in notes
    ]


def _differing_words(statements: Sequence[str], quotes: Sequence[Quote]) -> list[list[Span]]:
    """Return the places of the words in each of two statements that the other one lacks.

    Their values are compared, or the whole statements if one does not have its value word by word.
    If these are too different, all their words are marked.
    """
    values = [plain_words(quote.value) for quote in quotes]
    starts = [text.find(value) for text, value in zip(statements, values, strict=True)]
    has_values = min(starts) >= 0
    if not has_values:
        values = list(statements)
        starts = [0, 0]
    first, second = values
    both_sides = sides(first, second)
    same_characters = sum(len(part.text) for part in both_sides[0] if part.kind == SAME)
    are_alike = 2 * same_characters >= _MIN_LIKENESS * (len(first) + len(second))
    if are_alike:
        spans = [_spans_of_change(parts) for parts in both_sides]
    else:
        spans = [[Span(0, len(value))] for value in values]
    # So far, the places count from the beginning of the values.
    spans_in_statements = []
    for start, spans_in_value in zip(starts, spans, strict=True):
        spans_in_statements.append(
            [Span(start + span.start, start + span.stop) for span in spans_in_value]
        )
    return spans_in_statements


def _spans_of_change(parts: Line) -> list[Span]:
    """Return the places in a text that differ from the other text.

    Words that a sign joins, as in `14:15`, are one place.
    """
    spans: list[Span] = []
    position = 0
    # Whether only a single sign is between the last place and this part.
    is_joined = False
    for part in parts:
        end = position + len(part.text)
        if part.kind != SAME and part.text.strip():
            start = spans.pop().start if is_joined and spans else position
            spans.append(Span(start, end))
            is_joined = True
        else:
            is_sign = not part.text[:1].isspace() and not part.text[:1].isalnum()
            is_joined = is_joined and len(part.text) == 1 and is_sign
        position = end
    return spans


def _text_of_quote(note: Note, quote: Quote) -> str:
    """Return the sentence or line of a statement. "" if the note has no such line."""
    if quote.stop:
        return note.body[quote.start : quote.stop].strip()
    lines = note.text.split("\n")[quote.line - 1 : quote.line]
    return "".join(lines).strip()


def _marked_pane(
    note: Note,
    spans: Sequence[Span],
    text: str | None = None,
    line_as_shown: Callable[[Line], Line] = lambda line: line,
) -> Pane:
    """Return the pane of a note with some places marked.

    A long text is cut so that the first of the places is shown.

    spans: the places, in the order of the text.
    text: the text that the places are in. None means the text of the note as it is.
    line_as_shown: a function that gets each line of the pane, and returns the line to show for it.
    """
    content = note.content if text is None else text
    # The part of the text that is shown begins before the first place, or at the top of the text if
    # the place is then shown, too.
    start = 0
    if spans and spans[0].stop > _MAX_PANE_CHARACTERS:
        start = max(spans[0].start - _CHARACTERS_BEFORE, 0)
    stop = start + _MAX_PANE_CHARACTERS
    shown_spans = [
        Span(span.start - start, min(span.stop, stop) - start)
        for span in spans
        if start <= span.start < stop
    ]
    lines = _by_lines(_with_marks(content[start:stop], shown_spans))
    # Blank lines at the top and the end would only take room.
    while len(lines) > 1 and not lines[0]:
        lines.pop(0)
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    is_cut = start > 0 or stop < len(content)
    return Pane(note, [line_as_shown(line) for line in lines], writer_of(note), is_cut)


def _with_marks(text: str, spans: Sequence[Span]) -> Line:
    """Split a text into parts, and mark the parts at `spans`. The spans must be in their order."""
    parts = []
    position = 0
    for span in spans:
        parts.append(Part(SAME, text[position : span.start]))
        parts.append(Part(MARK, text[span.start : span.stop]))
        position = span.stop
    parts.append(Part(SAME, text[position:]))
    return _without_empty(parts)


def say_the_same(notes: Sequence[Note]) -> bool:
    """Whether two notes belong to the same project and differ in no word that counts."""
    if len(notes) < 2:
        return False
    note, other_note = notes
    is_same_place = (note.project, note.scope) == (other_note.project, other_note.scope)
    return is_same_place and has_same_content(note.content, other_note.content)


def _reasons(visit: Visit, item: ReviewItem, notes: Sequence[Note]) -> list[str]:
    """Return why a suspicious note is held back, in the reader's words. Empty for other questions."""
    if item.kind != _SUSPICIOUS or not notes:
        return []
    return reasons_of(visit, notes[0].suspicious)


def reasons_of(visit: Visit, ids: Collection[str]) -> list[str]:
    """Return why a note is suspicious, in the reader's words.

    ids: the ids of the rules that it breaks.
    """
    rules = visit.memory.rules_for_reading()
    return [translated(visit.language, rule.why) for rule in rules if rule.id in ids]


def panes_of(notes: Sequence[Note]) -> list[Pane]:
    """Return two panes for two notes, with the differing words marked. Otherwise one pane."""
    texts = [plain_text(note.content.strip("\n")[:_MAX_PANE_CHARACTERS]) for note in notes]
    if len(notes) == 2 and notes[0].id != notes[1].id:
        marked = [_own_words_marked(parts) for parts in sides(*texts)]
    else:
        notes = notes[:1]
        marked = [[Part(SAME, text)] for text in texts[:1]]
    panes = []
    for note, parts in zip(notes, marked, strict=True):
        panes.append(
            Pane(
                note,
                lines=[with_category(line) for line in _by_lines(parts)],
                author=writer_of(note),
                is_cut=len(note.content) > _MAX_PANE_CHARACTERS,
            )
        )
    return panes


def _own_words_marked(parts: Line) -> Line:
    """Return the parts of a text with those marked that the other text lacks.

    A blank between two marked words is marked with them, so that they read as one phrase.
    """
    marked: Line = []
    for position, part in enumerate(parts):
        is_first_or_last = position in (0, len(parts) - 1)
        is_blank_between = part.text.strip(" ") == "" and not is_first_or_last
        kind = MARK
        if part.kind == SAME and not is_blank_between:
            kind = SAME
        # Parts of one kind that follow each other become one.
        if marked and marked[-1].kind == kind:
            marked[-1] = Part(kind, marked[-1].text + part.text)
        else:
            marked.append(Part(kind, part.text))
    return marked


def _by_lines(parts: Line) -> list[Line]:
    """Cut the parts of a text at its line breaks. Returns the parts of each line."""
    lines: list[Line] = [[]]
    for part in parts:
        pieces = part.text.split("\n")
        lines[-1].append(Part(part.kind, pieces[0]))
        lines += [[Part(part.kind, piece)] for piece in pieces[1:]]
    return [_without_empty(line) for line in lines]


def _without_empty(line: Line) -> Line:
    return [part for part in line if part.text]


def _choices(item: ReviewItem, is_of_two_things: bool) -> list[Choice]:
    """Return the possible answers, with the safe one recommended.

    For a suspicious note, deleting it comes first. For two notes that differ, keeping both does.
    """
    keys = _KEYS_OF_CONTRADICTION if item.kind == _CONTRADICTION else _KEYS
    choices = [Choice(letter, label, keys.get(letter, letter)) for letter, label in item.choices]
    # False sorts before True: KEEP goes to the end, and _APART to the beginning.
    if item.kind == _SUSPICIOUS:
        choices.sort(key=lambda choice: choice.letter == KEEP)
    if is_of_two_things:
        choices.sort(key=lambda choice: choice.letter != _APART)
    for choice in choices:
        choice.is_dangerous = choice.letter == DELETE
    choices[0].is_main = item.kind not in _WITHOUT_MAIN_ANSWER
    return choices


def _answer(visit: Visit) -> Response | dict[str, Any]:
    """Answer one question or many, as the form says.

    The field `key` names one question. The fields `ref` or `refs` have the keys of many.
    """
    stamp_before = visit.memory.journal_stamp()
    choice = visit.fields.get("choice", "")
    keys = (visit.text("refs") or visit.text("ref")).splitlines()
    if keys:
        items = visit.memory.decide_all(keys, choice)
    else:
        items = [visit.memory.decide(visit.fields.get("key", ""), choice)]
    take_out(visit, {item.key for item in items}, stamp_before)
    if visit.is_api:
        shown_items = [documents.question(item) for item in items]
        answer: dict[str, Any] = {"change": visit.memory.changed or None}
        # A request that names a list of questions gets a list.
        if keys:
            return answer | {"items": shown_items}
        return answer | {"item": shown_items[0]}
    return visit.back(visit.text("next") or REVIEW)


def _as_json(visit: Visit) -> dict[str, Any]:
    """Return the open questions as JSON."""
    items = visit.memory.review(
        limit=visit.number("limit", _API_ITEMS), kind=visit.text("kind") or None
    )
    return {"items": [documents.question(item) for item in items]}
