"""The tables of words and the patterns of the time grammar, read from the data files beside it."""

from __future__ import annotations

import re
import tomllib
from functools import cache, reduce
from itertools import chain
from operator import getitem
from pathlib import Path
from typing import Any

# A named fragment inside a pattern, such as `<month>`.
_FRAGMENT = re.compile(r"(?<!\(\?P)<([a-zBCE_.]+)>")


@cache
def data_file(name: str) -> dict[str, Any]:
    """Return the content of a data file, e.g. `words.toml`."""
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


@cache
def table(path: str) -> Any:
    """Return a table or list of words.toml, e.g. `english.months`.

    `zones.short` is a table of zones.toml, `holidays.english` one of holidays.toml.
    """
    file, _, name = path.partition(".")
    if file in ("zones", "holidays"):
        return data_file(f"{file}.toml")[name]
    return reduce(getitem, path.split("."), data_file("words.toml"))


@cache
def units() -> dict[str, str]:
    """Return all spellings of units of time: spelling -> name of the unit."""
    spellings: dict[str, str] = dict(table("english.short"))
    for path in ("english.units", "chinese.units", "chinese.ge_units"):
        for unit, names in table(path).items():
            spellings.update(dict.fromkeys(names, unit))
    return spellings


@cache
def _fragment(name: str) -> str:
    """Return the pattern for `<name>` in a shape.

    It is a fragment of shapes.toml, or any word of a table of words.toml.

    name: the name of the fragment, or of the table.
    """
    fragments = data_file("shapes.toml")["fragments"]
    if name in fragments:
        return _fill_in_words(fragments[name])
    words = table(name)
    # A list holds patterns, a table holds plain words
    if isinstance(words, list):
        return _fill_in_words("|".join(words)).replace(" ", r"\s+")
    if name.endswith("units"):
        words = list(chain.from_iterable(words.values()))
    escaped = (re.escape(word) for word in sorted(words, key=len, reverse=True))
    return "|".join(escaped).replace(r"\ ", r"\s+")


def _fill_in_words(pattern: str) -> str:
    """Replace each fragment of a pattern, such as `<month>`, by its own pattern."""
    return _FRAGMENT.sub(lambda match: _fragment(match[1]), pattern)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of a data file, compiled.

    Each is compiled when it is first needed, since all of them together take long.
    """
    return re.compile(_fill_in_words(pattern), re.ASCII | re.VERBOSE)
