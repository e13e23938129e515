"""Translates the texts of the page. times.py writes its times.

Templates and views have English texts. The tables in `texts/` have the texts of other languages.
The parameter `language` is a key of LANGUAGES in every function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from markupsafe import Markup, escape
from starlette.requests import Request

from memoranda.serve.page.package_files import TEXTS, text_in
from memoranda.text.unicode import visible

LANGUAGES = {"en": "English", "zh": "中文"}
COLON = {"en": ": ", "zh": "："}
"""The sign between a name and its value."""
LANGUAGE_COOKIE = "memoranda-language"
# The languages that write no blanks between words.
_WITHOUT_BLANKS = frozenset(("zh",))
# A value in a sentence, with the blanks beside it.
_VALUE = re.compile(r" ?\{(\w+)\} ?")
_TWO_HAN = re.compile("[\u3400-\u9fff]{2}")
_HAN_AND_LATIN = re.compile("[\u3400-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u3400-\u9fff]")
_SATURDAY = 5
_SUNDAY = 6
# The regions whose weeks do not begin on Monday (CLDR, supplemental data).
_REGIONS_BY_FIRST_DAY = {
    _SATURDAY: "AF BH DJ DZ EG IQ IR JO KW LY OM QA SD SY",
    _SUNDAY: "AG AS BD BR BS BT BW BZ CA CO DM DO ET GT GU HK HN ID IL IN JM JP KE KH KR LA MH MM "
    "MO MT MX MZ NI NP PA PE PH PK PR PT PY SA SG SV TH TT TW UM US VE VI WS YE ZA ZW",
}


def language_of(request: Request) -> str:
    """Return the language to answer in, a key of LANGUAGES.

    The choice in the cookie goes first, then the languages of the browser (`zh-CN,en;q=0.8`), then
    English.
    """
    preferences = [
        request.cookies.get(LANGUAGE_COOKIE, ""),
        *request.headers.get("accept-language", "").split(","),
    ]
    for entry in preferences:
        # `zh-CN;q=0.9` gives `zh`.
        name = entry.strip().partition(";")[0].partition("-")[0].lower()
        if name in LANGUAGES:
            return name
    return "en"


def first_weekday_of(request: Request) -> int:
    """Return the first day of the reader's week: 0 for Monday, 6 for Sunday.

    The region of the browser's first language decides: 6 for `en-US`. Without a region it is 0.
    """
    language = request.headers.get("accept-language", "").partition(",")[0].partition(";")[0]
    # "ca" alone is Catalan, not Canada.
    _, hyphen, region = language.strip().upper().rpartition("-")
    if not hyphen:
        return 0
    for weekday, regions in _REGIONS_BY_FIRST_DAY.items():
        if region in regions.split():
            return weekday
    return 0


@cache
def words(language: str) -> Mapping[str, str]:
    """Return the texts of a language by the English text that templates have.

    The table of English has texts for words of the ledger that the page calls differently.
    """
    table: dict[str, str] = json.loads(text_in(TEXTS, f"{language}.json"))
    return table


def translated(language: str, english: str, /, **values: Any) -> str:
    """Return an English text in a language. The value `name=…` replaces `{name}` in it.

    If a value is markup, such as a time, the text is markup, too, and the other values are escaped.
    """
    sentence = words(language).get(english, english)
    if values and language in _WITHOUT_BLANKS:
        sentence = _with_fitting_blanks(sentence, values)
    if any(isinstance(value, Markup) for value in values.values()):
        return escape(sentence).format(**{name: _shown(value) for name, value in values.items()})
    if values:
        return sentence.format(**values)
    return sentence


def _with_fitting_blanks(sentence: str, values: Mapping[str, Any]) -> str:
    """Return a Chinese sentence with the blanks that its values need, before they are put in.

    A Latin word or a number has a blank beside a Chinese character. A Chinese word has none: of
    `今天 {who} 学到了`, `今天 claude 学到了` and `今天你学到了` are made.
    """

    def fitted(match: re.Match[str]) -> str:
        value = str(values.get(match[1], ""))
        text = Markup(value).striptags() if "<" in value else value
        before = _blank_between(sentence[: match.start()][-1:], text[:1], match[0][:1])
        after = _blank_between(text[-1:], sentence[match.end() :][:1], match[0][-1:])
        return f"{before}{{{match[1]}}}{after}"

    return _VALUE.sub(fitted, sentence)


def _blank_between(character: str, next_character: str, present: str) -> str:
    """Return a blank or nothing, as it must be between two characters.

    present: a blank if there is one. Other characters than Chinese and Latin ones keep it.
    """
    pair = f"{character}{next_character}"
    if _TWO_HAN.fullmatch(pair):
        return ""
    is_blank = present == " "
    return " " if is_blank or _HAN_AND_LATIN.fullmatch(pair) else ""


def _shown(value: Any) -> Any:
    """Make a text visible in markup as templates do. A value that is already markup stays."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def project_name(language: str, project: str) -> str:
    """Return the name of a project within a sentence: `notes`, and `笔记` in Chinese.

    project: the name, with the dot of an archive.
    """
    name = project.lstrip(".")
    return words(language).get(f"project: {name}") or name


def done(language: str, verb: str) -> str:
    """Return a verb of the log in a form that follows a name: `write` gives `wrote it`."""
    sentence = f"did: {verb}"
    table = words(language)
    return table.get(sentence) or translated(language, verb)


def as_beginning(language: str, text: str) -> str:
    """Return a text as the beginning of a sentence. In English it begins with a capital."""
    # Chinese has no capitals: a name at the beginning is spelled as it is elsewhere.
    if language == "zh":
        return text
    return text[:1].upper() + text[1:]


def joined_names(language: str, names: Sequence[str], max_names: int = 3) -> str:
    """Return names as a sentence lists them: `a`, `a and b`, `a, b and c`, `a, b and 2 others`."""
    comma = translated(language, ", ")
    if len(names) > max_names:
        # The words "2 others" take the place of the last name.
        first_names = comma.join(names[: max_names - 1])
        others = len(names) - max_names + 1
        return translated(language, "{names} and {n} others", names=first_names, n=others)
    items = list(names)
    if len(items) < 2:
        return "".join(items)
    return translated(language, " and ").join((comma.join(items[:-1]), items[-1]))


def counted(language: str, singular: str, plural: str, number: int, **values: Any) -> str:
    """Return a text for a number of things in a language: "1 note", "2 notes".

    `singular` is for one thing. In `plural`, `{n}` is replaced by the number: "{n} days late". The
    value `name=…` replaces `{name}` in both.
    """
    if number == 1:
        return translated(language, singular, **values)
    return translated(language, plural, n=f"{number:,}", **values)
