"""Claims in notes: sentences of which only one value can be true, such as "The port is 8080".

A claim has a subject (the port) and a value (8080). Two claims with the same subject and different
values contradict each other, and the person is asked which one holds. A sentence that may mean
something else makes no claim: a false alarm costs more than a missed one.

The words that make a claim are in claims.toml. The functions read their arguments alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cache, lru_cache
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.note.clauses import further_clauses, may_have_clauses
from memoranda.note.model import Observation, Relation
from memoranda.text.folding import fold
from memoranda.text.pattern import lazy_pattern

# Characters of a note that are read for claims.
_MOST_TEXT_CHARACTERS = 20_000
# Claims of one note; what states more is a list or a log.
_MOST_CLAIMS = 40
# Longer sentences say more than one thing.
_MOST_SENTENCE_CHARACTERS = 200
# Words of a subject, and of a value.
_MOST_SUBJECT_WORDS = 8
_MOST_VALUE_WORDS = 8
# Words of a value in small letters, such as "dark blue".
_FEW_WORDS = 3
# Not after "Dr." and the like. Looking back from a sign is quicker than before each character.
_TITLES = ("Dr", "Mr", "Ms", "Mrs", "St", "Prof", "vs", "No")
_ABBREVIATIONS = "".join(rf"(?<!\b{title}\.)" for title in _TITLES)
# The end of a sentence, but not after an abbreviation.
# It begins with one of a few signs, to which `re` skips quickly.
_SENTENCE_END = lazy_pattern(
    rf"[.!?？。！;；](?:(?<=[.!])(?=\s|\Z){_ABBREVIATIONS}|(?<=[?？。！；])|(?<=;)\s)"
)
# Fenced code, which claims nothing.
_FENCED = lazy_pattern(r"^(`{3,}|~{3,}).*?(?:^\1[`~]*\s*$|\Z)", re.M | re.S)
# The sign of a list item, perhaps with the category of an observation.
_LIST_SIGN = lazy_pattern(r"\A\s*(?:[-*+]|\d+[.)])\s+(?:\[[^\]\n]{1,40}\]\s+)?")
# Tags at the end of an observation.
_TAIL = lazy_pattern(r"(?:\s+#[\w/-]+)+\s*\Z")
# Signs of bold and italic text.
_EMPHASIS = lazy_pattern(r"\*\*|__|(?<!\w)[*_]|[*_](?!\w)")
# A parenthesis that says that something is over.
_OVER = lazy_pattern(
    r"\((?:[^()]*\b(?:until|till|ended|former|formerly|was)\b|[^()]*(?:至|直到|曾))", re.I
)
# A word, with the signs that join its parts.
_WORD = lazy_pattern(r"[^\W_]+(?:[._@:/+-]*[^\W_]+)*\+*#?")
# A word of a subject, without signs.
_SUBJECT_WORD = lazy_pattern(r"[^\W_]+")
# A number with its unit or currency.
_QUANTITY = lazy_pattern(r"(?:about |around |roughly |~|at |[$€£¥v])*\d[\d.,]*(?![a-z]{4})", re.I)
# A sign between thousands: `10,000` and `10000` are one number.
_THOUSANDS = lazy_pattern(r"(?<=\d)[,\u202f](?=\d{3}\b)")
# A time of day, in either form.
_CLOCK = lazy_pattern(r"\b(\d{1,2})(?::(\d\d))?\s*([ap])\.?m\b\.?|\b(\d{1,2}):(\d\d)\b", re.I)
# A day as ISO 8601 writes it.
_ISO_DATE = lazy_pattern(r"\b\d{4}-(\d\d)-(\d\d)\b")
# A value that is a name: quoted, capitalised, a path or an address.
_NAMED = lazy_pattern(
    r"\A(?:`[^`]+`|\"[^\"]+\"|“[^”]+”|'[^']+'|#?[A-Z0-9][\w.+#&-]*|#\w[\w-]*|\S*[@/_]\S*|https?:\S+)"
)
# What makes a word in small letters a name: a digit, or a sign between letters.
_CODE = lazy_pattern(r"\d|\w[-_./]\w")
# A link, which shows its last part.
_LINK = lazy_pattern(r"\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]+)\]\]")
# Verbs of claims of more than one kind.
_SHORT_VERBS = ("is", "has", "prefers", "uses", "needs")
# Quotes around a value.
_QUOTES = lazy_pattern(r"[`\"“”]")
# A Chinese character.
_HAN = lazy_pattern(r"[\u3400-\u9fff]")


_BE = frozenset(("is", "are"))
# The words of `_COPULA`: without them and `=` it matches nothing.
_COPULAS = frozenset(("is", "are", "be", "equals", "to"))
# Blanks in place of all bytes of ASCII that belong to no word.
_WORDS_ALONE = bytes(byte if chr(byte).isalnum() else 32 for byte in range(128)).ljust(256, b" ")


class ClaimKind(IntEnum):
    """The effect of a claim on earlier claims about its subject that have another value.

    ASKED: only one of two such claims can be true, and `memory review` asks which.
    ENDING: it says that something changed, or what holds now, so it ends the earlier claims.
    PLAIN: it ends nothing, since both may be true. A claim of the kind ENDING ends it.

    The numbers are kept in the index.
    """

    ASKED = 0
    ENDING = 1
    PLAIN = 2


class Claim(NamedTuple):
    """A statement that a subject has a value.

    "The port of staging is 8080" has the subject `is|number|port staging`, the name "The port of
    staging" and the value "8080".

    subject: the key of the subject, which all wordings of the subject share.
    name: the subject as written.
    value: the value as written.
    line: its line in the text, from 1. 0 is not known yet.
    start, stop: the place of its sentence in the text.
    kind: its effect on earlier claims about the subject.
    """

    subject: str
    name: str
    value: str
    line: int
    start: int = 0
    stop: int = 0
    kind: ClaimKind = ClaimKind.ASKED


class _Words(NamedTuple):
    """The tables of claims.toml, compiled. The comments there explain each of them."""

    attributes: frozenset[str]
    singular: frozenset[str]
    chinese: re.Pattern[str]
    verbs: list[tuple[str, re.Pattern[str]]]
    any_verb: re.Pattern[str]
    chinese_verbs: list[tuple[str, re.Pattern[str]]]
    reversed: list[tuple[str, re.Pattern[str]]]
    done: list[tuple[str, re.Pattern[str]]]
    polar_words: frozenset[str]
    verb_words: frozenset[str]
    clause_verbs: frozenset[str]
    any_reversed: re.Pattern[str]
    quality: re.Pattern[str]
    habit: re.Pattern[str]
    chinese_habit: re.Pattern[str]
    no_counts: frozenset[str]
    ordinal_day: re.Pattern[str]
    of_many: frozenset[str]
    frequencies: frozenset[str]
    states: list[tuple[str, re.Pattern[str], re.Pattern[str]]]
    opposites: dict[str, tuple[re.Pattern[str], ...]]
    relations: dict[str, str]
    no_subjects: frozenset[str]
    no_subjects_zh: frozenset[str]
    of_a_moment: frozenset[str]
    fillers: frozenset[str]
    me: frozenset[str]
    no_values: frozenset[str]
    openings: re.Pattern[str]
    ends: re.Pattern[str]
    hedged: re.Pattern[str]
    triggers: frozenset[str]
    weak_triggers: frozenset[str]
    signs: re.Pattern[str]
    months: dict[str, str]
    weekdays: dict[str, str]
    numbers: dict[str, str]
    units: dict[str, str]


# "X is Y", also with verbs of change.
_COPULA = lazy_pattern(
    r"(.{2,90}?)\s*(?:\b(?:is|are|will be|equals|"
    r"(?:has been |have been |was |were |is |are )?(?:changed|set|moved|increased|raised|lowered"
    r"|reduced|renamed|updated|switched) (?:from .{1,40}? )?to)\b|=)\s*"
    r"(?:now |set to |called |named |currently |(?:in|at|on) (?=\S*[./]\S))?(?=\S)(.{1,120})",
    re.I | re.S,
)
# "X: Y", in English and in Chinese.
_COLON = lazy_pattern(r"([^:：\n\[\](){}.]{2,60})[:：]\s+(\S.{0,120})", re.S)
_COLON_ZH = lazy_pattern(r"([^:：\n\[\](){}。]{2,30})[:：]\s*(\S.{0,120})", re.S)
_CHANGED_ZH = r"(?:现在)?(?:是|为|改为|改成|换成|变成|叫)"
# "X prefers Y over Z".
_PREFERENCE = lazy_pattern(
    r"(.{1,40}?)\s+prefers?\s+(.{1,40}?)\s+(?:over|to|rather than|instead of)\s+(.{1,40})",
    re.I | re.S,
)


# A state, such as "closed" or "no longer on", perhaps with its place.
_STATE = lazy_pattern(
    r"((?:not |no longer |turned |switched |open |closed )?[\w-]+)(\s+(?:in|for|on|by|at)\s.+)?",
    re.I,
)
# "X prefers Y for Z".
_LIKING = lazy_pattern(
    r"(.{1,40}?)\s+(?:always )?prefers?\s+([\w-]+)(\s+[\w-]+)?(?:\s+(?:in|for)\s.+)?", re.I
)


# "X has 3 children", "X is 34 years old", "X has an SLA of 8 hours".
_COUNT = lazy_pattern(
    r"(.{1,60}?)\s+(?:has|have|needs?|requires?)\s+(?:now )?(\w+)\s+((?:[a-z-]+ ){0,2}[a-z-]+)",
    re.I,
)
_AGE = lazy_pattern(r"(.{1,60}?)(?:\s+is|\s+am|'m|’m)\s+(?:now )?(\d{1,3})\s+years?\s+old", re.I)
_HAS_ONE = lazy_pattern(r"(.{1,60}?)\s+(?:has|have)\s+an?\s+(.{2,40}?)\s+of\s+(.{1,80})", re.I)
# "X is approved by Y".
_DONE_TO = lazy_pattern(
    r"(.{2,60}?)\s+(?:is|are)\s+(?:now |currently )?([a-z]+(?:ed|built|sent|paid|held))\s+"
    r"(by|at|in|on|with|to|from|under)\s+(?:the )?(.{1,60})",
    re.I,
)
_IS_DONE = lazy_pattern(
    r"\b(?:is|are)\s+(?:now |currently )?[a-z]+(?:ed|built|sent|paid|held)\s", re.I
)
# "Max is the maintainer of the parser".
_ROLE = lazy_pattern(r"(.{2,40}?)\s+is\s+(?:now )?((?:the|our|my)\s+.{3,80})", re.I)
_IS_OFTEN = lazy_pattern(r"\b(?:is|are)\s+[a-z]+ly\W*\Z", re.I)
# "We use X for Y", "For Y we use X".
_USE = lazy_pattern(r"(.{1,40}?)\s+uses?\s+(.{1,60}?)\s+(?:for|as)\s+(.{1,60})", re.I)
_USE_FOR = lazy_pattern(r"(?:for|as)\s+(.{1,60}?),?\s+(\w+(?: \w+){0,2})\s+uses?\s+(.{1,60})", re.I)
_NO_LONGER = lazy_pattern(r"\b(?:no longer|not anymore|anymore)\b", re.I)
# Verbs, as claims.toml names them, before values in small letters: "is called staging" (call),
# "works as a nurse" (job).
_VERBS_BEFORE_SMALL_LETTERS = ("is", "call", "job")
# Who does what a sentence says: "we", "our team".
_DOER = r"(?:we|i|our \w+|the team|users?)\s+(?:now |currently |always )?"


@cache
def _words() -> _Words:
    """Read and compile claims.toml, once."""
    table: dict[str, Any] = tomllib.loads(
        Path(__file__).with_name("claims.toml").read_text("utf-8")
    )
    words = table["words"]
    chinese_nouns = sorted(table["attributes_zh"].split(), key=len, reverse=True)
    return _Words(
        attributes=frozenset(table["attributes"].split()),
        singular=frozenset(table["singular"].split()),
        chinese=re.compile(
            rf"(.{{1,20}}?(?:的|\s)?(?:{'|'.join(chinese_nouns)})){_CHANGED_ZH}\s*(\S.{{0,60}})",
            re.S,
        ),
        verbs=_verbs(table["verbs"], r"(.{{1,90}}?)\s+(?:{0})\s+(?=\S)(.{{1,120}})"),
        any_verb=re.compile(
            rf"\b(?:{'|'.join(chain.from_iterable(table['verbs'].values()))})\s", re.I
        ),
        chinese_verbs=_verbs(table["verbs_zh"], r"(.{{1,20}}?)(?:现在)?(?:{0})\s*(\S.{{0,60}})"),
        reversed=_verbs(table["reversed"], r"(.{{1,40}}?)\s+(?:{0})\s+((?:the|our) .{{1,60}})"),
        done=_verbs(table["done"], _DOER + r"(?:{0})"),
        polar_words=_polar_words(table["polar"]),
        verb_words=frozenset(f"{words['triggers']} {words['weak_triggers']} is are".split()),
        clause_verbs=frozenset(
            f"{words['triggers']} {words['weak_triggers']} {words['clause_verbs']}".split()
        ),
        any_reversed=_any_word(chain.from_iterable(table["reversed"].values())),
        quality=re.compile(
            r"(.{1,40}?)(?:\s+is|\s+am|\s+are|'m|’m|'s|’s)\s+(not |no longer )?"
            rf"((?:{'|'.join(table['polar']['qualities'].split())})\b.{{0,40}})",
            re.I,
        ),
        habit=re.compile(
            r"(.{1,40}?)\s+(do not |does not |don't |doesn't |don’t |doesn’t |no longer |never )?"
            rf"((?:{'|'.join(table['polar']['verbs'].split())})s?)\b\s*(.{{0,40}})",
            re.I,
        ),
        chinese_habit=re.compile(
            rf"(.{{1,10}}?)(不再|不|从不)?({'|'.join(table['polar']['verbs_zh'].split())})(.{{0,20}})"
        ),
        no_counts=frozenset(words["no_counts"].split()),
        of_many=frozenset(words["of_many"].split()),
        frequencies=frozenset(words["frequencies"].split()),
        ordinal_day=re.compile(
            rf"(?:the )?(?:{'|'.join(words['ordinals'].split())}) "
            rf"(?:{'|'.join(words['weekdays'].split())})s?\b",
            re.I,
        ),
        states=[(name, *map(_state, pair)) for name, pair in table["states"].items()],
        opposites={name: tuple(map(_state, sides)) for name, sides in table["opposites"].items()},
        relations=table["relations"],
        no_subjects=frozenset(words["no_subjects"].split()),
        no_subjects_zh=frozenset(words["no_subjects_zh"].split()),
        of_a_moment=frozenset(words["of_a_moment"].split()),
        fillers=frozenset(words["fillers"].split()),
        me=frozenset(words["me"].split()),
        no_values=frozenset(words["no_values"].split()),
        openings=re.compile(rf"\A(?:{words['openings'].strip()})", re.I),
        ends=re.compile(words["ends"].strip(), re.I),
        hedged=re.compile(words["hedged"].strip(), re.I),
        triggers=_triggers(table),
        weak_triggers=frozenset(words["weak_triggers"].split()),
        signs=re.compile(words["signs"].strip(), re.I),
        months=_numbered(words["months"], first=1),
        weekdays=_numbered(words["weekdays"], first=1),
        numbers=_numbered(words["numbers"], first=0),
        units={form: unit for unit, forms in words["units"].items() for form in forms.split()},
    )


def _polar_words(table: dict[str, str]) -> frozenset[str]:
    """Return the words that polar claims contain: qualities, and verbs with and without s.

    table: the table `polar` of claims.toml.
    """
    verbs = table["verbs"].split()
    third_persons = [f"{verb}s" for verb in verbs]
    return frozenset([*table["qualities"].split(), *verbs, *third_persons])


def _any_word(words: Iterable[str], ending: str = "") -> re.Pattern[str]:
    """Compile a search for one of these words.

    It is much quicker than to try the patterns of whole sentences that contain them.

    ending: a pattern that may follow each word, such as `s?`.
    """
    return re.compile(rf"\b(?:{'|'.join(words)}){ending}\b", re.I)


def _verbs(table: dict[str, list[str]], form: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return each verb with a pattern of the sentences that use it.

    form: the pattern, with {0} for the wordings of the verb.
    """
    return [
        (name, re.compile(form.format("|".join(alternatives)), re.I | re.S))
        for name, alternatives in table.items()
    ]


def _triggers(table: dict[str, Any]) -> frozenset[str]:
    """Return words that claims are recognized by. A sentence without any of them has no claim."""
    words = [table["words"]["triggers"], table["attributes"], table["singular"]]
    words.append(table["polar"]["qualities"])
    for yes, no in table["states"].values():
        words += [yes, no]
    return frozenset(" ".join(words).replace("|", " ").split()) - {"not", "no", "on", "off"}


def _state(words: str) -> re.Pattern[str]:
    """Return a pattern that finds one of these words at the beginning of a text.

    words: a pattern, such as `on|enabled`.
    """
    return re.compile(rf"(?:{words})\b", re.I)


def _numbered(names: str, first: int) -> dict[str, str]:
    """Number the names in order: `{"january": "1", "february": "2"}`.

    names: the names, separated by spaces.
    first: the number of the first name.
    """
    return {name: str(number) for number, name in enumerate(names.split(), first)}


def claims(sentences: Sequence[Sentence]) -> list[Claim]:
    """Return the claims in the sentences of a note's text, in order, at most _MOST_CLAIMS."""
    claims_found: list[Claim] = []
    is_alone = len(sentences) == 1
    for sentence in sentences:
        for claim in _claims_of_sentence(sentence, is_alone=is_alone):
            claims_found.append(placed(claim, sentence))
        if len(claims_found) >= _MOST_CLAIMS:
            break
    return claims_found[:_MOST_CLAIMS]


def _claims_of_sentence(sentence: Sentence, *, is_alone: bool) -> Iterator[Claim]:
    """Yield the claim of a sentence, and the claims of its further clauses (clauses.py).

    is_alone: whether the note has only this sentence.
    """
    if _is_promising(sentence.text, sentence.words):
        claim = _claim_of_promising(sentence.text, is_alone=is_alone)
        if claim is not None:
            yield claim
    for clause in clauses_behind(sentence.text):
        claim = claim_of(clause, is_alone=is_alone)
        if claim is not None:
            yield claim


def placed(claim: Claim, sentence: Sentence) -> Claim:
    """Return a claim with the place of the sentence that makes it."""
    return claim._replace(line=sentence.line, start=sentence.start, stop=sentence.stop)


def clauses_behind(sentence: str) -> list[str]:
    """Return the further clauses of a sentence, each as a sentence: "Anna moved to Porto"."""
    # Most sentences have one clause, and need no look at their words
    if not may_have_clauses(sentence):
        return []
    statement = without_opening(without_signs(sentence))
    clauses = list(further_clauses(statement, _words().clause_verbs))
    if clauses and is_uncertain_or_over(sentence):
        return []
    return clauses


def item_claims(
    title: str, observations: Iterable[Observation], relations: Iterable[Relation]
) -> Iterator[Claim]:
    """Yield the claims in the observations and relations of a note.

    The note "Staging" with the line `- [fact] port: 8080` claims that the port of Staging is 8080.
    The lines `- [place] lives in Berlin` and `- lives_in [[Berlin]]` of the note "Anna" claim where
    Anna lives.
    """
    for observation in observations:
        if not _says_is_over(observation.context):
            claim = _observation_claim(title, observation)
            if claim is None:
                claim = _unnamed_claim(title, observation)
            if claim is not None:
                yield claim
    for relation in relations:
        if not _says_is_over(relation.context):
            claim = _relation_claim(title, relation)
            if claim is not None:
                yield claim


def _says_is_over(context: str | None) -> bool:
    """Whether the text in parentheses after an item says that it holds no longer: "(until May)"."""
    # The pattern knows such words also by the parenthesis before them.
    return _OVER.search(f"({context or ''}") is not None


def _observation_claim(title: str, observation: Observation) -> Claim | None:
    """Return the claim of an observation like `port: 8080`. None for any other observation.

    title: the title of the note, which the claim is about.
    """
    match = _COLON.fullmatch(observation.content) or _COLON_ZH.fullmatch(observation.content)
    if match is None:
        return None
    attribute, value = match.groups()
    claim = value_claim(f"{title} {attribute}", value, "is")
    if claim is None:
        return None
    return claim._replace(name=f"{title}: {attribute}", line=observation.line)


def _unnamed_claim(title: str, observation: Observation) -> Claim | None:
    """Return the claim of an observation that leaves out whom it is about, like `lives in Berlin`.

    None for any other observation.

    title: the title of the note, which the claim is about.
    """
    sentence = _sentence_about(title, observation)
    if not sentence:
        return None
    claim = claim_of(sentence)
    if claim is None:
        return None
    return claim._replace(line=observation.line)


def _sentence_about(title: str, observation: Observation) -> str:
    """Return the sentence that an observation is with the title of its note before it.

    `lives in Berlin` in the note "Anna" is "Anna lives in Berlin".

    "" if the observation does not begin with a verb: then it may be about something else.
    """
    text = without_links(without_signs(observation.content))
    if has_han(text):
        return f"{title}{text}"
    if _begins_with_verb(text):
        return f"{title} {text}"
    return ""


def without_links(text: str) -> str:
    """Return a text with its links as words: "Porto" for `[[Porto]]` and for `[[places/porto|Porto]]`."""
    return _LINK.sub(r"\1", text)


def _begins_with_verb(text: str) -> bool:
    """Whether an English text begins with a verb of a claim, so that only its subject is missing."""
    words = _words()
    if words.any_verb.match(text) or words.any_reversed.match(text):
        return True
    first_word = text.partition(" ")[0]
    return first_word in _SHORT_VERBS or first_word in words.polar_words


def _relation_claim(title: str, relation: Relation) -> Claim | None:
    """Return the claim of a relation like `lives_in [[Berlin]]`. None for any other relation.

    title: the title of the note, which the claim is about.
    """
    kind = re.sub("[ -]", "_", relation.type.lower())
    # Only types that stand for a verb make claims: `lives_in` for "live".
    verb = _words().relations.get(kind)
    if verb is None:
        return None
    key = subject_key(title, verb, "name")
    if not key:
        return None
    return Claim(key, f"{title}: {kind}", relation.target, relation.line)


class Sentence(NamedTuple):
    """A sentence and its place in a text.

    start, stop: the offset of its first character, and the offset after its last.
    line: the number of its line, from 1.
    text: the sentence itself.
    words: its words, as `words_of` returns them.
    """

    start: int
    stop: int
    line: int
    text: str
    words: frozenset[str]


def sentences_in(text: str) -> list[Sentence]:
    """Return the sentences of a text. Code, quotations, tables and headings are left out.

    Only the first _MOST_TEXT_CHARACTERS of the text are read.
    """
    sentences: list[Sentence] = []
    # Blanks of the same length keep the places of what follows
    without_code = _FENCED.sub(
        lambda code: re.sub(r"[^\n]", " ", code[0]), text[:_MOST_TEXT_CHARACTERS]
    )
    number = 1
    line_start = 0
    for line in without_code.splitlines(keepends=True):
        if line.lstrip()[:1] not in ("", ">", "|", "#", '"', "“"):
            sentences += _sentences_of_line(line, number, line_start)
        # `splitlines` also splits at signs that do not begin a line of a file
        if line[-1] == "\n":
            number += 1
        line_start += len(line)
    return sentences


def _sentences_of_line(line: str, number: int, line_start: int) -> Iterator[Sentence]:
    """Yield the sentences of one line. Long ones say more than one thing and are left out.

    number: the number of the line.
    line_start: where the line begins in the text.
    """
    begin = 0
    for end in [match.end() for match in _SENTENCE_END.finditer(line)] + [len(line)]:
        piece = line[begin:end]
        sentence = piece.strip()
        if sentence and len(sentence) <= _MOST_SENTENCE_CHARACTERS:
            start = line_start + begin + piece.index(sentence)
            yield Sentence(start, start + len(sentence), number, sentence, words_of(sentence))
        begin = end


def claim_of(sentence: str, *, is_alone: bool = True) -> Claim | None:
    """Return the claim in a sentence. None for most sentences.

    is_alone: whether the note has only this sentence. In a longer note "The port is 8080" may be
        about something that an earlier sentence names, so it makes no claim there.
    """
    if not _is_promising(sentence, words_of(sentence)):
        return None
    return _claim_of_promising(sentence, is_alone=is_alone)


def _claim_of_promising(sentence: str, *, is_alone: bool) -> Claim | None:
    """Return the claim in a sentence that may contain one, as `claim_of` does."""
    words = _words()
    text = without_signs(sentence)
    statement = without_opening(text)
    if has_han(statement):
        claim = _chinese_claim(statement)
    else:
        claim = _english_claim(statement, is_alone)
    if claim is None:
        return None

    # A sentence about the past, or with a "perhaps", claims nothing.
    if _OVER.search(text):
        return None
    # "no longer" negates a polar claim; with any other claim it says that something is over
    is_negation_only = _is_polar(claim) and not _is_hedged(text)
    if words.hedged.search(text) and not is_negation_only:
        return None
    if not is_alone and not is_identified(claim.subject):
        return None
    return claim


class _ClaimReader(NamedTuple):
    """Reads claims of one kind.

    needed_words: a sentence without any of these words makes no such claim.
    read: returns the claim of a sentence, None for most sentences.
    """

    needed_words: frozenset[str]
    read: Callable[[str], Claim | None]


@cache
def _claim_readers() -> tuple[_ClaimReader, ...]:
    """Return the readers of English claims, the surest first."""
    prefer = frozenset(("prefer", "prefers"))
    count = frozenset(("has", "have", "need", "needs", "require", "requires", "old"))
    return (
        _ClaimReader(prefer, _preference),
        _ClaimReader(prefer, _liking),
        _ClaimReader(_words().polar_words, _polar_claim),
        _ClaimReader(count, _counted_claim),
        _ClaimReader(frozenset(("use", "uses")), _use_claim),
        _ClaimReader(_words().verb_words, _verb_claim),
        _ClaimReader(_BE, _done_claim),
        _ClaimReader(frozenset(("is",)), _role_claim),
    )


def _english_claim(text: str, is_alone: bool) -> Claim | None:
    """Return the claim of an English sentence, as the first reader that finds one reads it.

    is_alone: whether the note has only this sentence. Only then is "X: Y" a claim.
    """
    words = words_of(text)
    for reader in _claim_readers():
        # Looking for a word is much quicker than trying a pattern.
        if reader.needed_words.isdisjoint(words):
            continue
        claim = reader.read(text)
        if claim is not None:
            return claim
    # "The port is 8080" needs a copula, and "port: 8080" a sign.
    if _COPULAS.isdisjoint(words) and not _holds_any(text, signs="=:："):
        return None
    return _copula_claim(text, is_alone)


def _polar_claim(text: str) -> Claim | None:
    """Return the claim that somebody is or does something, or not: "I am not allergic to nuts".

    None for any other text.
    """
    match = _words().quality.fullmatch(text)
    if match is not None:
        subject, negation, quality = match.groups()
        return _polar(subject, negation, "be", _without_addition(quality))
    match = _words().habit.fullmatch(text)
    if match is None:
        return None
    subject, negation, verb, rest = match.groups()
    return _polar(subject, negation, verb.lower().removesuffix("s"), _without_addition(rest))


def _polar(subject: str, negation: str | None, verb: str, value_text: str) -> Claim | None:
    """Make a claim whose value is "yes" or "no". None if the sentence makes no such claim.

    "I am not allergic to nuts" makes `polar be|polarity|@me allergic nuts` with the value "no".

    subject: the words of the subject, "I".
    negation: the words of the negation. None or "" in a sentence without a negation.
    verb: the verb in its basic form, "be".
    value_text: the words after it, "allergic to nuts".
    """
    subject_words = _subject_words(subject)
    words = [word for word in _value_words(value_text) if word != "anymore"]
    # About a person ("the user", "Anna"), such a sentence holds for long. About a thing it may not.
    # `@me` stands for the user. Chinese has no capitals by which to know a name.
    may_be_person = "@me" in subject_words or subject[:1].isupper() or has_han(subject)
    # "Anna eats" says too little.
    lacks_object = verb != "be" and not words
    if not subject_words or not may_be_person or lacks_object:
        return None

    # The same sentence with and without a negation has one key, and the values "no" and "yes".
    key = "|".join([f"polar {verb}", "polarity", " ".join([*subject_words, *words])])
    value = "no" if negation else "yes"
    return Claim(key, f"{subject} {verb} {value_text}".strip(), value, line=0)


def _is_polar(claim: Claim) -> bool:
    """Whether the value of a claim is "yes" or "no"."""
    return kind_of_value(claim) == "polarity"


def _is_hedged(text: str) -> bool:
    """Whether a sentence leaves open whether something is so ("may", "was"), apart from "no longer"."""
    return bool(_words().hedged.search(_NO_LONGER.sub(" ", text)))


def _counted_claim(text: str) -> Claim | None:
    """Return the claim of a number in a text. None for a text that claims no number.

    Examples: "The team has 12 engineers", "Anna is 34 years old", "X has an SLA of 8 hours".
    """
    # "Anna is 34 years old"
    match = _AGE.fullmatch(text)
    if match is not None:
        who, age = match.groups()
        return value_claim(f"age of {who}", age, "is")
    # "The API has an SLA of 8 hours"
    match = _HAS_ONE.fullmatch(text)
    if match is not None:
        owner, attribute, value = match.groups()
        return value_claim(f"{attribute} of {owner}", value, "is")
    # "The team has 12 engineers"
    match = _COUNT.fullmatch(text)
    if match is None:
        return None
    owner, number, things = match.groups()
    if _kind_of(number) != "number":
        return None
    counted_words = [_singular(word) for word in _SUBJECT_WORD.findall(fold(things))]
    if not _words().no_counts.isdisjoint(counted_words):
        return None
    key = subject_key(f"{owner} {things}", "count", "number")
    if not key:
        return None
    return Claim(key, f"{owner}: {things}", number, line=0)


def _use_claim(text: str) -> Claim | None:
    """Return the claim that something is used for a purpose: "For error tracking we use Sentry".

    None for any other text.
    """
    match = _USE.fullmatch(text)
    if match is not None:
        user, tool, purpose = match.groups()
        return value_claim(f"{user} {_without_addition(purpose)}", tool, "use")
    match = _USE_FOR.fullmatch(text)
    if match is not None:
        purpose, user, tool = match.groups()
        return value_claim(f"{user} {purpose}", tool, "use")
    return None


def without_signs(sentence: str) -> str:
    """Return a sentence without Markdown: "Port is 8080" for `- [fact] **Port** is 8080 #net`."""
    text = _LIST_SIGN.sub("", sentence)
    if "#" in text:
        text = _TAIL.sub("", text)
    if "*" in text or "_" in text:
        text = _EMPHASIS.sub("", text)
    return text.strip()


def without_opening(text: str) -> str:
    """Return a sentence without "Note that" and the like at its beginning, and without its end sign."""
    return _words().openings.sub("", text).rstrip(" .!。！;；")


def is_uncertain_or_over(text: str) -> bool:
    """Whether a sentence leaves open whether something is so ("may"), or says that it is over."""
    return _OVER.search(text) is not None or _words().hedged.search(text) is not None


def has_han(text: str) -> bool:
    """Whether a text contains a Chinese character."""
    # Most texts are ASCII, which is known without a search
    return not text.isascii() and _HAN.search(text) is not None


def _is_promising(sentence: str, words: frozenset[str]) -> bool:
    """Whether a sentence may contain a claim. Most do not, so this check is quick.

    words: the words of the sentence.
    """
    if has_han(sentence):
        return True
    tables = _words()
    if not tables.triggers.isdisjoint(words):
        return True
    # Weak triggers are in too many sentences to count without a sign of a value
    if not tables.weak_triggers.isdisjoint(words) and tables.signs.search(sentence):
        return True
    # "is approved by Dana", "is weekly"
    has_verb = not _BE.isdisjoint(words)
    return has_verb and any(sign.search(sentence) for sign in (_IS_DONE, _IS_OFTEN))


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in small letters, as `_SUBJECT_WORD` finds them."""
    # For ASCII, which most texts are, a table is much faster than the pattern
    lower = text.lower()
    if lower.isascii():
        return frozenset(lower.encode().translate(_WORDS_ALONE).decode().split())
    return frozenset(_SUBJECT_WORD.findall(lower))


def _holds_any(text: str, signs: str) -> bool:
    """Whether a text contains one of these characters.

    signs: the characters, joined.
    """
    return any(sign in text for sign in signs)


def is_identified(subject: str) -> bool:
    """Whether a subject key names a thing, not only an attribute: many things have a "port"."""
    subject_words = set(subject.rpartition("|")[2].split())
    return bool(subject_words - _words().attributes - _words().singular)


def _preference(text: str) -> Claim | None:
    """Return the claim of a preference: "Anna prefers tea over coffee".

    Its subject names both alternatives in one order, so that "Anna prefers coffee over tea"
    contradicts it. None for any other text.
    """
    match = _PREFERENCE.fullmatch(text)
    if match is None:
        return None
    subject, preferred, dispreferred = match.groups()
    preferred_words = " ".join(_value_words(preferred))
    dispreferred_words = " ".join(_value_words(_without_addition(dispreferred)))
    subject_words = " ".join(_subject_words(subject))
    if not preferred_words or not dispreferred_words or not subject_words:
        return None
    alternatives = sorted([preferred_words, dispreferred_words])
    key = "|".join(["prefer", subject_words, *alternatives])
    return Claim(key, f"{subject} prefers", preferred, line=0)


def _liking(text: str) -> Claim | None:
    """Return the claim of a liking that has an opposite: "Anna prefers dark mode".

    None for any other text.
    """
    match = _LIKING.fullmatch(text)
    if match is None:
        return None
    # "Anna", "dark" and " mode"
    subject, liking, noun = match.groups(default="")
    for name, pair in _words().opposites.items():
        if any(side.fullmatch(liking) for side in pair):
            key = subject_key(f"{subject} {noun}", f"prefer {name}", "name")
            # Nobody can say who "she" is
            if not key:
                return None
            return Claim(key, f"{subject} prefers", liking, line=0)
    return None


def _verb_claim(text: str) -> Claim | None:
    """Return the claim in a sentence with a verb of claims.toml: "The API runs on port 8080".

    None for any other text.
    """
    words = _words()
    # What somebody does: in "We store sessions in Redis", sessions are stored in Redis.
    for verb, form in words.done:
        match = form.fullmatch(text)
        if match is not None:
            # Each wording of the verb has its own two groups. Only those of one wording matched.
            subject, value = filter(None, match.groups())
            return value_claim(subject, value, verb)

    # The value comes first: in "Anna leads the team", Anna is the lead of the team. One search for
    # any verb saves most texts the search for each.
    if words.any_reversed.search(text):
        for verb, form in words.reversed:
            match = form.fullmatch(text)
            if match is not None and is_someone(match[1]):
                return value_claim(subject=match[2], value=match[1], verb=verb)

    # The subject comes first: "The API runs on port 8080".
    if words.any_verb.search(text):
        for verb, form in words.verbs:
            match = form.fullmatch(text)
            if match is not None:
                return value_claim(subject=match[1], value=match[2], verb=verb)
    return None


def _done_claim(text: str) -> Claim | None:
    """Return the claim that something is done by somebody, at a place or on a day.

    "Invoices are approved by Dana". None for any other text.
    """
    match = _DONE_TO.fullmatch(text)
    if match is None:
        return None
    subject, participle, preposition, value = match.groups()
    # Something may be "used by" many at once.
    if participle.lower() in _words().of_many:
        return None
    return value_claim(subject, value, f"{participle} {preposition}".lower())


def _role_claim(text: str) -> Claim | None:
    """Return the claim that somebody has a role: "Max is the maintainer of the parser".

    None for any other text.
    """
    match = _ROLE.fullmatch(text)
    if match is None or not is_someone(match[1]) or _has_one_value(match[1]):
        return None
    return value_claim(_without_addition(match[2]), match[1], "is")


def is_someone(value: str) -> bool:
    """Whether a subject is the name of somebody: "Max", but not "The parser" or "My team"."""
    first_word = fold(value).split()[0]
    return bool(_NAMED.match(value)) and first_word not in ("the", "a", "an", "our", "my")


def _copula_claim(text: str, is_alone: bool) -> Claim | None:
    """Return the claim in "X is Y" or, if the note has one sentence, in "X: Y".

    is_alone: whether the note has only this sentence.
    """
    match = _COPULA.fullmatch(text)
    # Among other lines, "Price: $160" is about a thing that a line before names
    if match is None and is_alone:
        match = _COLON.fullmatch(text)
    if match is None:
        return None
    return _state_claim(match[1], match[2]) or value_claim(match[1], match[2], "is")


def _chinese_claim(text: str) -> Claim | None:
    """Return the claim of a Chinese sentence: 服务器的端口是8080."""
    for verb, form in _words().chinese_verbs:
        match = form.fullmatch(text)
        if match is not None:
            return value_claim(match[1], match[2], verb)
    match = _words().chinese.fullmatch(text)
    if match is not None:
        return value_claim(match[1], match[2], "is")
    match = _words().chinese_habit.fullmatch(text)
    if match is not None:
        return _polar(match[1], match[2], match[3], match[4])
    return None


def _state_claim(subject: str, value: str) -> Claim | None:
    """Return the claim that something is on or off, open or closed and the like.

    None for any other value. A place in the value belongs to the subject: "The cache is off in
    production" is a claim about the cache in production.
    """
    match = _STATE.fullmatch(_without_addition(value))
    if match is None:
        return None
    state, place = match.groups(default="")
    for name, yes, no in _words().states:
        if yes.fullmatch(state) or no.fullmatch(state):
            key = subject_key(f"{subject} {place}", name, "state")
            if key:
                return Claim(key, subject, state, line=0)
    return None


def value_claim(subject: str, value: str, verb: str) -> Claim | None:
    """Make the claim that a subject has a value: "port of staging", "8080", "is".

    Return None if the value is unclear, or if the subject may have several values.

    subject: the words of the subject.
    value: the words of the value.
    verb: "is", or the key under which claims.toml lists the words between them: "job" for "works
        as". "is" takes any value. After most other verbs the value must be a name.
    """
    value = _without_addition(value)
    if verb == "is" and not _excludes_other_values(subject, value):
        return None
    kind = _kind_of(value)
    if not kind:
        return None
    if verb not in _VERBS_BEFORE_SMALL_LETTERS and not _is_name(value, kind):
        return None
    key = subject_key(subject, verb, kind)
    if not key:
        return None
    return Claim(key, subject, value, line=0)


def _excludes_other_values(subject: str, value: str) -> bool:
    """Whether a subject that "is" a value cannot be something else at the same time.

    So it is for "The port is 8080", as a port has one number, and for "The meeting is weekly", as
    everything happens at one frequency. A meeting may be long and boring, so "The meeting is long"
    excludes nothing.
    """
    is_frequency = fold(value) in _words().frequencies
    return is_frequency or _has_one_value(subject)


def _without_addition(value: str) -> str:
    """Return a value without the words after it: "8080" for "8080 because 80 is taken"."""
    match = _words().ends.search(value)
    if match is not None:
        value = value[: match.start()]
    return value.strip(" .!。！")


def _has_one_value(subject: str) -> bool:
    """Whether a subject can have only one value: "port of staging", but not "member of the team".

    Its noun decides, which comes before the first preposition.
    """
    if has_han(subject):
        return True
    head = re.split(r"\s+(?:of|for|in|on|at|to|from)\s+", subject.strip(), maxsplit=1)[0]
    head_words = _SUBJECT_WORD.findall(fold(head))
    if not head_words:
        return False
    words = _words()
    return head_words[-1] in words.attributes or bool(words.singular.intersection(head_words))


def _is_name(value: str, kind: str) -> bool:
    """Whether the object of a verb names one thing: "level 3", "docs.example.org", not "fast".

    kind: the kind of the value (`_kind_of`). A value of another kind than `name`, such as a number,
        always names one thing.
    """
    if kind != "name" or _NAMED.match(value) or has_han(value):
        return True
    return bool(_CODE.search(value))


def _kind_of(value: str) -> str:
    """Return the kind of a value: `clock`, `frequency`, `weekday`, `date`, `number` or `name`.

    Empty if it is not a value. Values of different kinds can both be true: a meeting is on Friday
    and at 9:00.
    """
    words = _value_words(value)
    if not words or len(words) > _MOST_VALUE_WORDS:
        return ""
    tables = _words()
    first = fold(value).split()[0].strip(",.")

    # The order matters: "Friday at 9:00" is a clock.
    if _CLOCK.search(value):
        return "clock"
    if fold(value) in tables.frequencies:
        return "frequency"
    if first.rstrip("s") in tables.weekdays or tables.ordinal_day.match(value):
        return "weekday"
    has_month = tables.months.keys() & fold(value).replace(",", " ").split()
    if has_month or _ISO_DATE.search(value):
        return "date"
    if _QUANTITY.match(value) or first in tables.numbers:
        return "number"
    if _names_something(value, words, first):
        return "name"
    return ""


def _names_something(value: str, words: Sequence[str], first: str) -> bool:
    """Whether a value is a name, or a few words that may be one: "dark blue", not "late".

    words: its words as they are compared.
    first: its first word in small letters.
    """
    if _NAMED.match(value) or has_han(value):
        return True
    # "is waiting" and "is locked" name nothing
    is_state = first in _words().no_values or first.endswith(("ing", "ed"))
    return len(words) <= _FEW_WORDS and not is_state


def subject_key(subject: str, verb: str, kind: str) -> str:
    """Return the key that all claims about one subject share: `is|number|port staging`.

    Empty if the subject cannot be identified.

    verb: the verb of the claim in its plain form.
    kind: the kind of the value. "The meeting is on Friday" and "… at 9:00" have different keys.
    """
    words = _subject_words(subject)
    if not words:
        return ""
    return f"{verb}|{kind}|{' '.join(words)}"


def kind_of_value(claim: Claim) -> str:
    """Return the kind of value that the subject key of a claim names."""
    return claim.subject.split("|")[1]


def _subject_words(subject: str) -> list[str]:
    """Return the words that identify a subject, sorted: ["port", "staging"] for "The staging port".

    Empty if nothing identifies it, as in "it" or "the first one". "I" and "the user" are `@me`.
    """
    tables = _words()
    if has_han(subject):
        name = re.sub(r"[\s的]", "", fold(subject))
        return [] if name in tables.no_subjects_zh else [name]
    all_words = _SUBJECT_WORD.findall(fold(subject.replace("’", "'")))
    if not all_words or all_words[0] in tables.no_subjects or "," in subject:
        return []
    if tables.of_a_moment.intersection(all_words):
        return []

    # The order of the words does not matter: "port of staging" is "the staging port".
    words = {"@me" if word in tables.me else word for word in all_words}
    words = {_singular(word) for word in words - tables.fillers}
    if len(words) > _MOST_SUBJECT_WORDS:
        return []
    return sorted(words)


def _singular(word: str) -> str:
    """Return a word without the s of its plural: "ports" becomes "port", "class" stays."""
    # In a word of three letters, such as "bus", the s mostly belongs to the word.
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def differ(first: Claim, second: Claim) -> bool:
    """Whether two claims about one subject have values that cannot both be true.

    "8080" and "8080 on staging" can both be true: the longer value only says more.

    first, second: two claims with the same key. Their order does not matter.
    """
    kind = kind_of_value(first)
    if first.subject.startswith("prefer|"):
        return _value_words(first.value) != _value_words(second.value)
    if kind in ("polarity", "frequency"):
        return fold(first.value) != fold(second.value)
    if kind == "state":
        return _is_yes(first.value) != _is_yes(second.value)
    if kind == "number":
        return _numbers_differ(first.value, second.value)
    if kind == "clock":
        return _clock(first.value) != _clock(second.value)

    # The values are words. They agree if the longer one contains all that the shorter one says, in
    # whatever order, or written together: "time zone" and "timezone".
    values = (_value_words(first.value), _value_words(second.value))
    shorter, longer = sorted(values, key=len)
    if set(shorter) <= set(longer):
        return False
    return "".join(shorter) not in "".join(longer)


def ends(old: Claim, new: Claim) -> bool:
    """Whether a newer claim means that an older one about the same subject holds no longer.

    "Anna moved to Lisbon" ends "Anna lives in Porto". "Anna is a designer" does not end "Anna is a
    teacher", but "Anna is now our designer" does.
    """
    if new.kind is ClaimKind.PLAIN or not differ(old, new):
        return False
    return new.kind is ClaimKind.ENDING or old.kind is not ClaimKind.PLAIN


def _is_yes(value: str) -> bool:
    """Whether a state is the positive one of its pair: "on", "open", "enabled"."""
    return any(yes.fullmatch(value) for _, yes, _ in _words().states)


def _numbers_differ(first: str, second: str) -> bool:
    """Whether two values have different numbers or units: "8 hours" and "8 days"."""
    # Numbers that only one of the values has say more, and do not contradict the other.
    pairs = zip(_numbers(first), _numbers(second), strict=False)
    if any(first_number != second_number for first_number, second_number in pairs):
        return True
    first_unit = _unit(first)
    second_unit = _unit(second)
    have_units = first_unit != "" and second_unit != ""
    return have_units and first_unit != second_unit


def _unit(value: str) -> str:
    """Return the first unit in a value, in one form: "hour" for "8 hrs". Empty if it has none."""
    units = _words().units
    for word in _value_words(value):
        if word in units:
            return units[word]
    return ""


def _numbers(value: str) -> list[str]:
    """Return the numbers in a value as digits: ["12"] for "twelve", ["10000"] for "10,000"."""
    text = _THOUSANDS.sub("", value)
    names = _words().numbers
    words = re.findall(r"\d+(?:\.\d+)*|[a-z]+", fold(text))
    digits = [names.get(word, word) for word in words]
    return [number.removesuffix(".0") for number in digits if number[0].isdigit()]


def _clock(value: str) -> tuple[int, int] | None:
    """Return the hour (0 to 23) and the minute of a time of day. None if `value` is not one."""
    match = _CLOCK.search(value)
    if match is None:
        return None
    # `9:30 pm` has the first three groups, `21:30` the last two.
    hour_of_12, minute_of_12, half, hour_of_24, minute_of_24 = match.groups()
    if hour_of_24:
        return int(hour_of_24), int(minute_of_24)
    # 12 am is 0:00, and 12 pm is 12:00.
    hour = int(hour_of_12) % 12
    if half.lower() == "p":
        hour += 12
    return hour, int(minute_of_12 or 0)


# A search compares the same few values of one subject many times.
@lru_cache(maxsize=1_000)
def _value_words(value: str) -> tuple[str, ...]:
    """Return the words of a value in a form for comparing.

    Articles are left out and dates have one form: ("5-7",) for "May 7" and for "2026-05-07".
    """
    months = _words().months
    text = _ISO_DATE.sub(lambda date: f"{int(date[1])}-{int(date[2])}", value)
    text = _QUOTES.sub(" ", _THOUSANDS.sub("", fold(text)))
    words = [word for word in _WORD.findall(text) if word not in ("the", "a", "an")]
    compared_words: list[str] = []
    previous_word = ""
    for word, next_word in zip_longest(words, words[1:], fillvalue=""):
        # The day behind a month: "7", "7th".
        day = re.match(r"\d{1,2}(?=\D|\Z)", next_word)
        # A number behind a month is its day, which was taken with it.
        was_taken = previous_word in months and word[0].isdigit()
        if word in months and day:
            compared_words.append(f"{months[word]}-{int(day[0])}")
        elif not was_taken:
            compared_words.append(word)
        previous_word = word
    return tuple(compared_words)
