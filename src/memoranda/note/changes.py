"""Sentences that end what was said before, such as "Anna moved to Lisbon" and "Jonas is now our CTO".

They make claims under the same subjects as the sentences in claims.py, so that "Anna lives in Porto" is
known to be outdated. Nobody is asked which of the two holds: a search only shows the newer one first
and marks the older one.

The words are in changes.toml. The functions read their arguments alone.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.note.claims import (
    Claim,
    ClaimKind,
    Sentence,
    clauses_behind,
    has_han,
    is_someone,
    is_uncertain_or_over,
    kind_of_value,
    placed,
    value_claim,
    without_links,
    without_opening,
    without_signs,
    words_of,
)
from memoranda.note.model import Observation

# Claims of one note; what says more is a log.
_MOST_CLAIMS = 20
# Words of which every English sentence of a change has one, beside the names of roles.
_CHANGED = frozenset(
    ("moved", "relocated", "migrated", "started", "began", "took", "got", "found", "accepted")
) | frozenset(("left", "joined", "became", "become", "promoted", "appointed"))
_BE = frozenset(("is", "am", "m"))
# What a Chinese sentence has at its end that belongs to no value.
_END_ZH = re.compile(r"(?:了|去了|工作|上班|任职)+\Z")
_YEAR = re.compile(r"\b(?:19|20)\d\d(?!\d)")


class _Form(NamedTuple):
    """A form of sentences, as a row in a table of changes.toml describes it.

    verbs: the verbs of claims.toml whose claims such a sentence ends.
    pattern: matches a whole sentence. Its groups are the subject and the value.
    kind: what its claims do to earlier claims.
    """

    verbs: Sequence[str]
    pattern: re.Pattern[str]
    kind: ClaimKind


class _Words(NamedTuple):
    """The tables of changes.toml, compiled.

    english, chinese: the forms of sentences, in the order in which they are tried.
    roles: the English names of roles.
    earlier: finds words about an earlier time, or about something that did not happen.
    addition: finds the words about when or where behind a value.
    no_places: words that the name of a place or an employer cannot contain.
    no_employers: words that do not make a name of an employer alone.
    no_places_zh, no_employers_zh: match Chinese values that name neither a place nor an employer.
    categories: category of an observation → verb and kind of its claims.
    """

    english: Sequence[_Form]
    chinese: Sequence[_Form]
    roles: frozenset[str]
    earlier: re.Pattern[str]
    addition: re.Pattern[str]
    no_places: frozenset[str]
    no_employers: frozenset[str]
    no_places_zh: re.Pattern[str]
    no_employers_zh: re.Pattern[str]
    categories: dict[str, tuple[str, ClaimKind]]


@cache
def _words() -> _Words:
    """Read and compile changes.toml, once."""
    path = Path(__file__).with_name("changes.toml")
    table: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    roles = table["roles"].split()
    bare = rf"(?:{'|'.join(roles)})\b"
    role = rf"(?:(?!(?:{'|'.join(table['no_roles'].split())})\b)[\w-]+ ){{0,3}}{bare}"
    role_zh = rf".{{0,12}}?(?:{'|'.join(table['roles_zh'].split())})"
    adverbs = "|".join(table["adverbs"].split())
    adverbs_zh = "|".join(table["adverbs_zh"].split())
    english = rf"(.{{1,60}}?)\s+(?:(?:{adverbs})\s+)*(?:{{}})\s*(?=\S)(.{{1,80}})"
    chinese = rf"(.{{1,12}}?)(?:{adverbs_zh})*(?:{{}})\s*(\S.{{0,30}})"
    categories: dict[str, tuple[str, ClaimKind]] = {}
    for name, kind in (("ending", ClaimKind.ENDING), ("plain", ClaimKind.PLAIN)):
        for verb, verb_categories in table[f"{name}_categories"].items():
            categories |= dict.fromkeys(verb_categories, (verb, kind))
    return _Words(
        english=[*_forms(table, "", english, role, bare)],
        chinese=[*_forms(table, "_zh", chinese, role_zh, role_zh)],
        roles=frozenset(roles),
        earlier=re.compile(table["earlier"].strip(), re.I),
        addition=re.compile(table["addition"], re.I | re.S),
        no_places=frozenset(table["no_places"].split()),
        no_employers=frozenset(table["no_employers"].split()),
        no_places_zh=re.compile(table["no_places_zh"], re.X),
        no_employers_zh=re.compile(table["no_employers_zh"], re.X),
        categories=categories,
    )


def _forms(
    table: dict[str, Any], suffix: str, sentence: str, role: str, bare: str
) -> Iterator[_Form]:
    """Yield the forms of one language. The forms of changes come first.

    suffix: the end of the names of its tables: "" or "_zh".
    sentence: the pattern of a sentence, with {} for the words between subject and value.
    role: the pattern that stands for ROLE.
    bare: the pattern that stands for BARE.
    """
    for name, kind in (("change", ClaimKind.ENDING), ("plain", ClaimKind.PLAIN)):
        for form in table[f"{name}{suffix}"]:
            words = "|".join(form["patterns"]).replace("ROLE", role).replace("BARE", bare)
            pattern = re.compile(sentence.replace("{}", words), re.I | re.S)
            yield _Form(form["verbs"], pattern, kind)


def changes(sentences: Iterable[Sentence]) -> list[Claim]:
    """Return the claims in sentences that replace earlier ones: "Anna moved to Porto".

    At most _MOST_CLAIMS are returned, in the order of the text. The claims of the kind PLAIN are
    among them.
    """
    claims_found: list[Claim] = []
    for sentence in sentences:
        # The clauses of a sentence have no words but those of the sentence.
        if not _is_promising(sentence.text, sentence.words):
            continue
        clauses = [sentence.text, *clauses_behind(without_links(sentence.text))]
        for claim in chain.from_iterable(map(changes_in, clauses)):
            claims_found.append(placed(claim, sentence))
        if len(claims_found) >= _MOST_CLAIMS:
            break
    return claims_found[:_MOST_CLAIMS]


def item_changes(title: str, observations: Iterable[Observation]) -> Iterator[Claim]:
    """Yield the claims that observations make by their category.

    `- [city] Porto` and `- [place] moved to Porto` in the note "Anna" both say where Anna lives. If
    the note also has `- [city] Lisbon`, Anna may live in both cities, so neither claim ends another.

    title: the title of the note.
    """
    present_observations = [item for item in observations if not item.context]
    for observation in present_observations:
        yield from _unnamed_changes(title, observation)
    category_claims = list(_category_claims(title, present_observations))
    values_by_subject: defaultdict[str, set[str]] = defaultdict(set)
    for claim in category_claims:
        values_by_subject[claim.subject].add(claim.value)
    for claim in category_claims:
        has_one_value = len(values_by_subject[claim.subject]) == 1
        yield claim if has_one_value else claim._replace(kind=ClaimKind.PLAIN)


def _category_claims(title: str, observations: Iterable[Observation]) -> Iterator[Claim]:
    """Yield the claims that observations make by their category, one by one. See `item_changes`."""
    for observation in observations:
        category = (observation.category or "").casefold().replace("_", " ")
        if category not in _words().categories:
            continue
        verb, kind = _words().categories[category]
        claim = value_claim(title, observation.content, verb)
        if claim is not None:
            name = f"{title}: {category}"
            yield claim._replace(name=name, line=observation.line, kind=kind)


def _unnamed_changes(title: str, observation: Observation) -> Iterator[Claim]:
    """Yield the claims of an observation that leaves out whom it is about: `moved to Porto`.

    title: the title of the note, which the claims are about.
    """
    content = observation.content
    # Nobody knows when the line was written, so what happened in a year may be old.
    if not _is_promising(content, words_of(content)) or _YEAR.search(content):
        return
    separator = "" if has_han(content) else " "
    for claim in changes_in(f"{title}{separator}{content}"):
        # "Her brother moved to Porto" is not about the note.
        if claim.name == title:
            yield claim._replace(line=observation.line)


def changes_in(sentence: str) -> Iterator[Claim]:
    """Yield the claims of one sentence, one for each verb whose claims it ends."""
    if not _is_promising(sentence, words_of(sentence)):
        return
    text = without_opening(without_signs(without_links(sentence)))
    text = text.replace("’m ", " am ").replace("'m ", " am ")
    if is_uncertain_or_over(text) or _words().earlier.search(text):
        return
    is_chinese = has_han(text)
    for form in _words().chinese if is_chinese else _words().english:
        match = form.pattern.fullmatch(text)
        if match is None:
            continue
        subject, value = match.groups()
        if is_chinese:
            value = _END_ZH.sub("", value)
            may_be_said = _may_be_said_in_chinese(value, form)
        else:
            value = _words().addition.sub("", value.partition(" as ")[0])
            may_be_said = _may_be_said(subject, value, form)
        if may_be_said:
            yield from _claims_of(subject, value, form)
        return


def _claims_of(subject: str, value: str, form: _Form) -> Iterator[Claim]:
    """Yield one claim for each verb of a form, unless its value is a day or a number."""
    for verb in form.verbs:
        claim = value_claim(subject, value, verb)
        if claim is not None and kind_of_value(claim) == "name":
            yield claim._replace(kind=form.kind)


def is_of_an_earlier_year(sentence: str, year: int) -> bool:
    """Whether a sentence names a year before `year`, the year of its note.

    "Anna moved to Lisbon in 2019" may be older than "Anna lives in Porto" of 2024.
    """
    return any(int(named) < year for named in _YEAR.findall(sentence))


def _may_be_said(subject: str, value: str, form: _Form) -> bool:
    """Whether an English sentence may have this subject and this value.

    Only people have jobs. Nobody lives in a team, and nobody works for London.
    """
    words = words_of(value)
    is_about_place = "base" in form.verbs
    if (is_about_place or "work" in form.verbs) and not _words().no_places.isdisjoint(words):
        return False
    if "work" in form.verbs and _words().no_employers.issuperset(words):
        return False
    return is_about_place or is_someone(subject) or subject.casefold() in ("i", "user", "the user")


def _may_be_said_in_chinese(value: str, form: _Form) -> bool:
    """Whether a Chinese sentence may have this value. 在家工作 names no employer."""
    if "base" in form.verbs:
        return _words().no_places_zh.fullmatch(value) is None
    if "work" in form.verbs:
        return _words().no_employers_zh.fullmatch(value) is None
    return True


def _is_promising(sentence: str, words: frozenset[str]) -> bool:
    """Whether a sentence may say that something changed. Most do not, so this check is quick.

    words: the words of the sentence.
    """
    if has_han(sentence):
        return True
    if not _CHANGED.isdisjoint(words):
        return True
    return not _BE.isdisjoint(words) and not _words().roles.isdisjoint(words)
