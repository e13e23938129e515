"""The shapes of time words: one pattern for each, compiled when a word that may begin it is met."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from commonplace.note.timephrase.words import either, words

_FLAGS = re.ASCII | re.VERBOSE
_FRAGMENT = re.compile(r"(?<!\(\?P)<([a-zBCE_]+)>")


class Shape:
    """A kind of time word and its pattern, in which <name> stands for a fragment."""

    def __init__(self, kind: str, written: str):
        self.kind, self._written = kind, written
        self._compiled: re.Pattern[str] | None = None

    def match(self, text: str, at: int) -> re.Match[str] | None:
        if self._compiled is None:
            pieces = _fragments()
            filled = _FRAGMENT.sub(lambda found: pieces[found[1]], self._written)
            self._compiled = re.compile(filled, _FLAGS)
        return self._compiled.match(text, at)


@cache
def shapes() -> dict[str, tuple[Shape, ...]]:
    """The shapes by what they begin with: an English word, a Chinese character, or "0" for any digits."""
    import tomllib

    leads = _leads()
    table: dict[str, list[Shape]] = {}
    path = Path(__file__).parent / "shapes.toml"
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["shape"]:
        shape = Shape(entry["kind"], entry["pattern"])
        for lead in entry["leads"].split():
            for word in leads.get(lead, (lead,)):
                table.setdefault(word, []).append(shape)
    return {word: tuple(dict.fromkeys(them)) for word, them in table.items()}


@cache
def starts() -> re.Pattern[str]:
    """Finds the next English word, run of digits, or Chinese character that may begin a time word."""
    chinese = "".join(word for word in shapes() if not word.isascii())
    return re.compile(f"[a-z]+|[0-9]+|[{chinese}]")


def _leads() -> dict[str, tuple[str, ...]]:
    """What the @names of shapes.toml stand for."""
    english, chinese = words()["english"], words()["chinese"]

    def first(*tables: dict[str, object]) -> tuple[str, ...]:
        """The first words of English names, the first characters of Chinese ones."""
        names = [name for table in tables for name in table]
        return tuple({name.split()[0] if name.isascii() else name[0] for name in names})

    return {
        "@digit": ("0",),
        "@zdigit": (*chinese["digits"], "十", "百", "半"),
        "@number": first(english["numbers"]),
        "@month": first(english["months"]),
        "@weekday": first(english["weekdays"]),
        "@day": first(english["days"], chinese["days"]),
        "@day_part": first(english["day_parts"], chinese["day_parts"]),
        "@part": first(english["parts"], chinese["parts"]),
        "@adverb": tuple(english["adverbs"]),
        "@vague": tuple(words()["vague_leads"]),
    }


@cache
def _fragments() -> dict[str, str]:
    """What the <names> of shapes.toml stand for."""
    english, chinese = words()["english"], words()["chinese"]
    numbers = english["numbers"]
    digits = "".join(chinese["digits"])
    return {
        "B": r"(?<![a-z0-9_/\#-])",
        "C": r"(?<![a-z0-9_.:/$€£])",
        "E": r"(?![a-z0-9_]|-[a-z])",
        "and": r"(?:\s*,\s*(?:and\s+)?|\s*[/&]\s*|\s+and\s+)",
        "few": _spaced(english["vague_counts"]),
        "vague": "|".join(english["vague"]).replace(" ", r"\s+"),
        "zvague": "|".join(chinese["vague"]),
        "counted": "|".join(english["counted"]).replace(" ", r"\s+"),
        "ranked": "|".join(english["ranked"]),
        "num": _number(),
        "units": _units(),
        "short": f"[{''.join(english['short'])}]",
        "amount": _amount(),
        "zamount": _chinese_amount(),
        "znum": _CHINESE_NUMBER,
        "zint": r"(?:\d{1,2}(?!\d)|[零〇一二两三四五六七八九十]{1,3})",
        "zdigits": digits,
        "zday": f"[{''.join(chinese['weekdays'])}]",
        "znumbered": f"(?:{'|'.join(chinese['numbered'])})",
        "zdaylong": f"(?:{'|'.join(chinese['daylong'])})",
        "weekday": either(english["weekdays"]),
        "weekdays": either(f"{name}s" for name in english["weekdays"] if name.endswith("day")),
        "month": either(english["months"]),
        "nth": r"(?:the\s+)?\d{1,2}(?:st|nd|rd|th)",
        "adverbs": either(english["adverbs"]),
        "days": _spaced(english["days"]),
        "day_parts": _spaced(english["day_parts"]),
        "parts": either(english["parts"]),
        "zdays": either(chinese["days"]),
        "zday_parts": either(chinese["day_parts"]),
        "zparts": either(chinese["parts"]),
        "hour": either(name for name, value in numbers.items() if value <= 12 and len(name) > 2),
        "minutes": r"(?:fifteen|thirty|forty[\s-]five)",
    }


_CHINESE_NUMBER = r"(?:\d{1,6}(?:\.\d{1,3})?|[零〇一二两三四五六七八九十百]{1,6}|半)"


def _number() -> str:
    numbers = words()["english"]["numbers"]
    spelled = {name: value for name, value in numbers.items() if len(name) > 2}
    ones = either(name for name, value in spelled.items() if value < 10)
    return rf"(?:{either(spelled)})(?:[\s-](?:{ones}))?|an?"


def _units() -> str:
    return either(name for names in words()["english"]["units"].values() for name in names)


def _amount() -> str:
    """An English amount of time: 2 hours, an hour and a half, half an hour, 1h30m, 1 day and 2 hours."""
    units = _units()
    short = f"[{''.join(words()['english']['short'])}]"
    half = r"(?:\s+and\s+a\s+half)?"
    digits = rf"\d{{1,6}}(?:\.\d{{1,3}})?{half}[\s-]?(?:{units}|{short})"
    piece = rf"(?:{digits}|(?:{_number()}){half}\s+(?:{units}))(?![a-z])"
    joined = rf"(?:(?:\s+and\s+|\s*,\s*(?:and\s+)?|\s*){piece}){{1,4}}{half}"
    part = rf"half\s+(?:of\s+)?an?\s+(?:{units})(?![a-z])|(?:a\s+)?quarter\s+of\s+an\s+hour(?![a-z])"
    return rf"(?:{part}|{joined})"


def _chinese_amount() -> str:
    """两个半小时, 一刻钟, 半个月, 1小时30分钟. A month needs 个: 3月 is March."""
    units = words()["chinese"]["units"]
    names = either(name for unit in units if unit != "month" for name in units[unit])
    number = _CHINESE_NUMBER
    return rf"(?:[零又,]?(?:{number}\s*个?半?\s*(?:{names})半?|(?:{number}\s*个半?|半个?)\s*月)){{1,4}}"


def _spaced(names: Iterable[str]) -> str:
    return either(names).replace(r"\ ", r"\s+")
