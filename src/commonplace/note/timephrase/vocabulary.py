"""The words of time phrases (words.toml), the numbers made of them, and the patterns to match (shapes.toml)."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any

HALF = Fraction(1, 2)
_FRAGMENT = re.compile(r"(?<!\(\?P)<([a-zBCE_.]+)>")


@cache
def _file(name: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


@cache
def table(path: str) -> Any:
    """A table or list of words.toml, e.g. `english.months`."""
    return reduce(getitem, path.split("."), _file("words.toml"))


@cache
def units() -> dict[str, str]:
    """Every spelling of a unit of time -> its name."""
    tables = [table(path) for path in ("english.units", "chinese.units", "chinese.ge_units")]
    spelled = {name: unit for each in tables for unit, names in each.items() for name in names}
    return table("english.short") | spelled


@cache
def _fragment(name: str) -> str:
    """What <name> stands for in a pattern: a fragment of shapes.toml, or any word of a table of words.toml."""
    fragments = _file("shapes.toml")["fragments"]
    if name in fragments:
        return _filled(fragments[name])
    words = table(name)
    if isinstance(words, list):  # of patterns
        return _filled("|".join(words)).replace(" ", r"\s+")
    if name.endswith("units"):
        words = [spelling for spellings in words.values() for spelling in spellings]
    escaped = (re.escape(word) for word in sorted(words, key=len, reverse=True))
    return "|".join(escaped).replace(r"\ ", r"\s+")


def _filled(pattern: str) -> str:
    return _FRAGMENT.sub(lambda found: _fragment(found[1]), pattern)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of shapes.toml. Compiled when first needed: all of them together take long."""
    return re.compile(_filled(pattern), re.ASCII | re.VERBOSE)


@cache
def shapes() -> dict[str, list[tuple[str, str]]]:
    """The shapes (kind, pattern) by what they begin with: an English word, a Chinese character, or "0" for digits."""
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in _file("shapes.toml")["shape"]:
        names = (name for lead in entry["leads"].split() for name in (table(lead[1:]) if lead[0] == "@" else [lead]))
        for word in dict.fromkeys(name.split()[0] if name.isascii() else name[0] for name in names):
            found.setdefault(word, []).append((entry["kind"], entry["pattern"]))
    return found


@cache
def starts() -> re.Pattern[str]:
    """Finds the next English word, run of digits, or Chinese character that may begin a time word."""
    return re.compile(f"[a-z]+|[0-9]+|[{''.join(word for word in shapes() if not word.isascii())}]")


def number(text: str) -> Fraction:
    """The value of digits or of an English or Chinese number. Raises ValueError when it is none."""
    text = text.strip()
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text):
        return Fraction(text)
    if text == "半":
        return HALF
    english = table("english.numbers")
    parts = re.split(r"[\s-]+", text)
    if not all(part in english for part in parts):
        return Fraction(_chinese(text))
    tens, *ones = (english[part] for part in parts)
    if len(ones) > 1 or (ones and not (tens >= 20 and ones[0] < 10)):
        raise ValueError(text)
    return Fraction(tens + sum(ones))


def whole(text: str) -> int:
    """As `number`, for a value that has no fraction. Raises ValueError."""
    value = number(text)
    if value.denominator != 1:
        raise ValueError(text)
    return int(value)


def _chinese(text: str) -> int:
    """二十, 十五, 一百零五, and digits said one by one: 二〇二六."""
    digits = table("chinese.digits")
    if text and all(c in digits for c in text):
        if len(text) > 1 and text[0] not in "零〇" and len(text) != 4:
            raise ValueError(text)
        return int("".join(str(digits[c]) for c in text))
    match = re.fullmatch(r"(?:(.)百)?[零〇]?(?:(.?)(十))?(.?)", text)
    if not text or not match or not all(c in digits for c in match.group(1, 2, 4) if c):
        raise ValueError(text)
    hundreds, tens, ten, ones = match.groups()
    return 100 * digits.get(hundreds, 0) + (10 * digits.get(tens, 1) if ten else 0) + digits.get(ones, 0)
