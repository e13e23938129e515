"""Time words of a text that no reading used, and words of other languages that may say a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from memoranda.note.timephrase.parts import Part, clusters
from memoranda.note.timephrase.text import Text
from memoranda.note.timephrase.words import compiled, data_file

# Characters before a time word that are looked at.
_LONGEST_BEFORE = 60
# The hours that a clock without a.m. and p.m. shows.
_HOURS_OF_HALF_A_DAY = 12
# Letters of the shortest word that is taken for a misspelled one. A shorter one with a wrong letter
# is too often another word.
_SHORTEST_MISSPELLED = 5
# Letters of a name in which two typing errors are forgiven.
_LONG_NAME = 8
# A bare number, a range of two, or a time such as 1730, at the end of a text.
_NUMBER_AT_END = re.compile(
    r"(?<![\w.,:/$€£#+-])(?:\d{1,2}(?:\s?[-–—]\s?\d{1,2})?|(?:[01]\d|2[0-3])[0-5]\d)\s+\Z"
)
# A word with its apostrophes and hyphens.
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")


def _patterns(name: str) -> list[re.Pattern[str]]:
    """Return the patterns of leftovers.toml with this name."""
    return [compiled(f"(?:{pattern})") for pattern in data_file("leftovers.toml")[name]]


def beside(text: Text, cluster: Sequence[Part]) -> str:
    """Return the words beside or between joined time words that change their time, as written.

    In "the day after Friday" these are the words "the day after", in "the evening before 15 January"
    the words "evening before". "" without such words.

    text: the text that is read.
    cluster: the time words, which are beside each other.
    """
    start = cluster[0].start
    search_start = max(0, start - _LONGEST_BEFORE)
    text_before = text.plain[search_start:start]
    for expression in _expressions_before(cluster[0]):
        # The words must end where the time words begin.
        match = compiled(rf"(?<![a-z0-9])(?:{expression})\Z").search(text_before)
        if match:
            return text.as_written(search_start + match.start(), start)
    end = max(part.end for part in cluster)
    for pattern in _patterns_after(cluster[-1]):
        match = pattern.match(text.plain, end)
        if match:
            return text.as_written(end, match.end())
    for pattern in _patterns("within"):
        match = pattern.search(text.plain, start)
        if match and match.start() < end:
            return text.as_written(*match.span())
    return ""


def _expressions_before(part: Part) -> list[str]:
    """Return regular expressions of the words that change a time if they are before this part."""
    expressions_by_name = data_file("leftovers.toml")
    expressions: list[str] = list(expressions_by_name["before"])
    # "about 3 hours from now" is as exact as people say it.
    if part.is_day and part.kind != "delay":
        expressions += expressions_by_name["before_day"]
    # "any Friday", and "any Friday before Christmas", which is counted from a day.
    if part.kind in ("weekday", "weekend", "offset"):
        expressions += expressions_by_name["before_name"]
    if part.is_clock:
        expressions += expressions_by_name["before_time_of_day"]
    if part.kind in ("clock", "offset", "delay"):
        expressions += expressions_by_name["before_clock"]
    return expressions


def _patterns_after(part: Part) -> list[re.Pattern[str]]:
    """Return the patterns of words that change a time if they are right after this part."""
    patterns = _patterns("after")
    if part.is_day:
        patterns += _patterns("after_day")
    if part.kind in ("delay", "offset", "length", "repeat"):
        patterns += _patterns("after_amount")
    return patterns


def number_beside(text: Text, cluster: Sequence[Part]) -> str:
    """Return a bare number right beside a day or a part of one, as written: "Friday 5", "tonight 8".

    It may be the hour. "" without such a number.

    cluster: the time words, which are beside each other.
    """
    table = data_file("leftovers.toml")
    # The number after the day: "Friday 5".
    if _takes_an_hour(cluster[-1]):
        end = max(part.end for part in cluster)
        number_after = compiled(table["number_after"]).match(text.plain, end)
        if number_after:
            return text.as_written(end, number_after.end())

    # The number before the day: "5 Friday".
    start = cluster[0].start
    number_before = _NUMBER_AT_END.search(text.plain[:start])
    if not number_before or not _takes_an_hour(cluster[0]):
        return ""
    # "room 5 Friday" names a room.
    words_before = text.plain[: number_before.start()].split()
    is_labelled = bool(words_before) and words_before[-1] in table["labels"]
    if is_labelled or not _can_be_hour(number_before[0], cluster):
        return ""
    return text.as_written(number_before.start(), start)


def _takes_an_hour(part: Part) -> bool:
    """Whether a bare number beside the part may be its hour, as in "Friday 5" and "8 tonight"."""
    return part.is_day or part.kind == "part"


def _can_be_hour(number: str, cluster: Sequence[Part]) -> bool:
    """Whether a number may be the hour of time words. 13 is not an hour of "tonight".

    number: digits, or a range of two numbers, with blanks.
    cluster: the time words beside it.
    """
    names_part_of_day = any(part.kind == "part" for part in cluster)
    first_digits = re.match(r"\d+", number)
    assert first_digits is not None
    if len(first_digits[0]) == len("1730"):
        return True
    return not names_part_of_day or int(first_digits[0]) <= _HOURS_OF_HALF_A_DAY


def unused_words(text: Text, parts: Sequence[Part]) -> str:
    """Return the first time word of a text that was not read, as written. "" if all were read.

    A word that is often part of a subject ("Christmas") counts if the text names no day.

    parts: the parts that were read.
    """
    # Where the words that were read begin and end.
    spans: list[tuple[int, int]] = []
    for cluster in clusters(parts):
        end = max(part.end for part in cluster)
        spans.append((cluster[0].start, end))
    for name in _tables_for(parts):
        for pattern in _patterns(name):
            for match in pattern.finditer(text.plain):
                if not _is_inside(match.span(), spans):
                    return text.as_written(*match.span())
    return foreign_words(text, spans) or misspelled_word(text, spans)


def _tables_for(parts: Sequence[Part]) -> list[str]:
    """Return the tables of words that must not be left over beside these parts.

    Beside "at 3pm" the word "Christmas" must not be left over, since it may be the day. Beside
    "Friday at 3pm" it may be: "buy Christmas cards Friday at 3pm".

    If nothing was read, only words that surely mean a time must not be left over: "after lunch",
    but not "birthday", or "buy a birthday cake" would not be refused as a text without a time.
    """
    if not parts:
        return ["always", "named_days", "named_clocks"]
    kinds = {part.kind for part in parts}
    names = ["always"]
    if "repeat" in kinds:
        names.append("of_series")
    # "this week" names no single day.
    has_day_word = any(part.is_day and part.kind != "span" for part in parts)
    has_day = has_day_word or "instant" in kinds or "repeat" in kinds
    if not has_day:
        names += ["without_day", "named_days"]
    has_clock = "clock" in kinds or "instant" in kinds
    if not has_clock:
        names += ["without_clock", "named_clocks"]
    return names


def _is_inside(span: tuple[int, int], spans: Sequence[tuple[int, int]]) -> bool:
    """Whether `span` is completely inside one of `spans`. Each is a (start, end)."""
    return any(start <= span[0] and span[1] <= end for start, end in spans)


def _is_covered(span: tuple[int, int], spans: Sequence[tuple[int, int]]) -> bool:
    """Whether `span` overlaps one of `spans`. Each is a (start, end)."""
    return any(start < span[1] and span[0] < end for start, end in spans)


@cache
def _foreign() -> frozenset[str]:
    """Return the time words of other languages that are not also English words."""
    words: list[str] = []
    for language_words in data_file("foreign.toml")["words"].values():
        words += language_words
    return frozenset(words)


def foreign_words(text: Text, spans: Sequence[tuple[int, int]]) -> str:
    """Return the first time word of another language, as written. "" without such a word.

    spans: (start, end) of the words that were read as a time. They do not count.
    """
    foreign = _foreign()
    for match in _WORD.finditer(text.plain):
        is_foreign = match[0] in foreign and not _is_covered(match.span(), spans)
        if is_foreign:
            return text.as_written(*match.span())
    for name in ("before_clock", "anywhere"):
        pattern = re.compile(data_file("foreign.toml")[name], re.VERBOSE)
        for match in pattern.finditer(text.plain):
            if not _is_covered(match.span("word"), spans):
                return text.as_written(*match.span("word"))
    return ""


def unread_script(text: Text) -> str:
    """Return the first word in a script that is not read here, as written. "" without such a word."""
    match = re.search(data_file("foreign.toml")["scripts"], text.plain)
    if match is None:
        return ""
    return text.as_written(*match.span())


def misspelled_word(text: Text, spans: Sequence[tuple[int, int]]) -> str:
    """Return a word that is nearly a time word, as written: "tommorow". "" without such a word.

    spans: (start, end) of the words that were read as a time. They do not count.
    """
    spelling = data_file("leftovers.toml")["spelling"]
    for match in _WORD.finditer(text.plain):
        if _is_covered(match.span(), spans) or match[0] in spelling["correct"]:
            continue
        if match[0] in spelling["wrong"] or _is_near(match[0], spelling["near"]):
            return text.as_written(*match.span())
    for pattern in _patterns("misspelled"):
        for match in pattern.finditer(text.plain):
            if not _is_covered(match.span(), spans):
                return text.as_written(*match.span())
    return ""


def _is_near(word: str, names: Sequence[str]) -> bool:
    """Whether a word is one of the names with one typing error, or two in a long name.

    The name itself is not near. The first letter is never taken for an error.
    """
    if len(word) < _SHORTEST_MISSPELLED or not word.isascii():
        return False
    for name in names:
        most_errors = 2 if len(name) >= _LONG_NAME else 1
        # The distance takes long, so it is not computed for words that are too far anyway.
        may_be_near = word[0] == name[0] and abs(len(name) - len(word)) <= most_errors
        if may_be_near and 0 < _distance(word, name) <= most_errors:
            return True
    return False


def _distance(word: str, name: str) -> int:
    """Return how many letters were added, left out, changed or swapped between two words.

    "tommorow" and "tomorrow" have the distance 2.
    """
    # The usual table of edit distances (Damerau and Levenshtein), row by row: `row[n]` is the
    # distance between the letters of `word` so far and the first n letters of `name`.
    row_before: list[int] = []
    row = list(range(len(name) + 1))
    for index, letter in enumerate(word, 1):
        next_row = [index]
        for place, expected in enumerate(name, 1):
            cost_of_left_out = next_row[-1] + 1
            cost_of_added = row[place] + 1
            cost_of_changed = row[place - 1] + (letter != expected)
            cost = min(cost_of_left_out, cost_of_added, cost_of_changed)
            # The last two letters of both are the same two, the other way round.
            has_two = index > 1 and place > 1
            if has_two and letter == name[place - 2] and word[index - 2] == expected:
                cost_of_swap = row_before[place - 2] + 1
                cost = min(cost, cost_of_swap)
            next_row.append(cost)
        row_before = row
        row = next_row
    return row[-1]
