"""Says in words why upkeep asks a question: which statements it compared, and who wrote them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from markupsafe import Markup

from memoranda.engine.review import Quote, ReviewItem
from memoranda.note.model import Note
from memoranda.serve.page.visit import Visit
from memoranda.serve.page.words.plain_markdown import plain_text, plain_words
from memoranda.serve.page.words.sentences import in_words
from memoranda.serve.page.words.times import moment_words, time_element
from memoranda.serve.page.words.wording import as_beginning, counted, joined_names, translated
from memoranda.serve.page.words.writers import writer_of
from memoranda.text.word_diff import NEW, OLD, SAME, changed_words

# Words of one text alone that are named.
_MAX_WORDS = 6
# A word. A sign is none.
_WORD = re.compile(r"\w+")
# The author of a note of the owner, as a word to translate.
_YOU = "You"


def grounds_of(visit: Visit, item: ReviewItem, notes: Sequence[Note]) -> list[str]:
    """Return the sentences that say why a question is asked. [] if its title says it.

    notes: the notes that it is about.
    """
    if item.kind == "merge" and len(notes) == 2:
        return _of_merge(visit.language, notes)
    if item.kind == "contradiction" and item.quotes:
        return _of_contradiction(visit, item.quotes, notes)
    if item.kind == "claim" and notes:
        who = _writer_at_start(visit.language, notes[0])
        return [
            translated(
                visit.language,
                "{who} noted it about you. Until you confirm it, agents are told who said it.",
                who=who,
            )
        ]
    if item.kind == "reminder" and item.due is not None:
        return _of_reminder(visit, item, item.due)
    if item.kind == "category" and notes:
        names = [label for letter, label in item.choices if letter.isdecimal()]
        shown_names = [translated(visit.language, name) for name in names]
        return [
            translated(
                visit.language,
                "Its words fit no category well. The nearest: {names}.",
                names=translated(visit.language, ", ").join(shown_names),
            )
        ]
    if item.kind == "archive" and notes:
        return [
            translated(
                visit.language,
                "Nobody has read it since it was written ({day}), neither you nor an agent.",
                day=_day(visit, notes[0]),
            )
        ]
    return []


def _of_reminder(visit: Visit, item: ReviewItem, due: datetime) -> list[str]:
    """Say why the question is asked, and when the reminder would come."""
    clock = visit.reader_clock
    language = visit.language
    if item.phrase:
        reason = translated(language, "It says “{phrase}”.", phrase=item.phrase)
    else:
        reason = in_words(clock, plain_words(item.text))
    when = time_element(clock, due, moment_words(clock, due))
    return [reason, translated(language, "You would be reminded: {when}.", when=when)]


def _of_merge(language: str, notes: Sequence[Note]) -> list[str]:
    """Say which words two notes share, and which only one of them has."""
    parts = changed_words(plain_text(notes[0].content), plain_text(notes[1].content))
    words: dict[str, list[str]] = {SAME: [], OLD: [], NEW: []}
    for part in parts:
        words[part.kind] += _WORD.findall(part.text)
    only_first = _distinct(words[OLD])
    only_second = _distinct(words[NEW])
    if not only_first and not only_second:
        return [translated(language, "Both have the same words.")]
    # "3 of 5 words": out of the words of the longer note.
    count = len(words[SAME])
    total = count + max(len(words[OLD]), len(words[NEW]))
    sentences = []
    if count:
        sentences.append(translated(language, "{n} of {m} words are the same.", n=count, m=total))
    if only_first:
        quoted_words = _quoted(language, only_first)
        sentences.append(translated(language, "Only the first has {words}.", words=quoted_words))
    if only_second:
        quoted_words = _quoted(language, only_second)
        sentences.append(translated(language, "Only the second has {words}.", words=quoted_words))
    return sentences


def _distinct(words: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(words))


def _quoted(language: str, words: Sequence[str]) -> str:
    """Return words as a sentence lists them: `“each”, “day” and “hour”`."""
    quoted_words = [translated(language, "“{word}”", word=word) for word in words]
    return joined_names(language, quoted_words, _MAX_WORDS)


def _of_contradiction(visit: Visit, quotes: Sequence[Quote], notes: Sequence[Note]) -> list[str]:
    """Say which two values one thing has, who wrote them when, and who else says so."""
    language = visit.language
    # The first note has the first value, and the second note the second.
    first, second = quotes[:2]
    sentences = [
        translated(
            language,
            "“{name}” can have only one value at a time. Here it is “{first}” and “{second}”.",
            name=first.name,
            first=first.value,
            second=second.value,
        )
    ]
    if len(notes) < 2:
        sentences.append(translated(language, "Both lines are in one note."))
        return sentences
    days = {"day": _day(visit, notes[0]), "other_day": _day(visit, notes[1])}
    who = _writer_at_start(language, notes[0])
    if writer_of(notes[0]) == writer_of(notes[1]):
        sentence = "{who} wrote both: the first ({day}) and the second ({other_day})."
        sentences.append(translated(language, sentence, who=who, **days))
    else:
        sentence = "{who} wrote the first ({day}), {other} the second ({other_day})."
        other = _writer_within(language, notes[1])
        sentences.append(translated(language, sentence, who=who, other=other, **days))
    # Whether other notes say the same as one of the two
    if max(first.notes, second.notes) > 1:
        sentence = "The first is in {first}, the second in {second}."
        weights = {
            "first": _notes_and_writers(language, first),
            "second": _notes_and_writers(language, second),
        }
        sentences.append(translated(language, sentence, **weights))
    return sentences


def _notes_and_writers(language: str, quote: Quote) -> str:
    """Return how many notes make a statement, and of how many writers."""
    notes = counted(language, "one note", "{n} notes", quote.notes)
    if quote.notes == 1:
        return notes
    writers = counted(language, "one writer", "{n} writers", quote.writers)
    return translated(language, "{notes} of {writers}", notes=notes, writers=writers)


def _writer_at_start(language: str, note: Note) -> str:
    """Return the writer of a note at the beginning of a sentence."""
    return as_beginning(language, translated(language, writer_of(note)))


def _writer_within(language: str, note: Note) -> str:
    """Return the writer of a note in the middle of a sentence."""
    writer = writer_of(note)
    return translated(language, "you" if writer == _YOU else writer)


def _day(visit: Visit, note: Note) -> Markup | str:
    """Return the day that a note is about, or else that it was written on: `Nov 25`."""
    return time_element(visit.reader_clock, note.date or note.created)
