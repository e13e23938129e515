"""Read which places in code a note cites, in its header (`cites`) or in backticks in its text.

A citation is written `src/app.go`, `src/app.go:12-30`, `src/app.go#L12-L30` or `src/app.go::load`.
Each may end with the commit it is about: `@1a2b3c4`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

CITES = "cites"
"""The header key of a note's citations.

Its value is a citation or a list of them. Each is a text, `src/app.go:12-30`, or a mapping with the
keys `path`, `lines`, `symbol`, `commit` and `sha256`.
"""
# A code span of one line.
_CODE = re.compile(r"(?<!`)`([^`\n]{3,200})`(?!`)")
_EXTENSIONS = (
    "py|pyi|js|mjs|cjs|jsx|ts|tsx|go|rs|java|kt|scala|rb|php|c|h|cc|cpp|hpp|cs|swift|m|lua|pl|r|jl|ex|exs"
    "|erl|hs|ml|clj|sh|bash|zsh|fish|sql|html|css|scss|vue|svelte|md|rst|txt|toml|yaml|yml|json|xml"
    "|ini|cfg|conf|proto|tf|gradle|mk|cmake|dockerfile|lock"
)
# A path, perhaps with lines (`:10-20`, `#L10`), a symbol (`::name`) or a commit.
_CITATION = re.compile(
    rf"(?P<path>(?:/|\./|~/)?(?:[\w.@+-]+/)*[\w.@+-]+?(?:\.(?:{_EXTENSIONS}))?)"
    r"(?:(?::|#L?)(?P<first>\d{1,6})(?:\s?[-–:]\s?L?(?P<last>\d{1,6}))?"
    r"|(?:::|#)(?P<symbol>[A-Za-z_]\w*(?:[.:]+\w+)*)(?:\(\))?)?"
    r"(?:@(?P<commit>[0-9a-f]{7,40}))?",
    re.I,
)
# A name is a path when it has a folder or an extension of code.
_IS_PATH = re.compile(rf"/|\.(?:{_EXTENSIONS})\Z", re.I)
# How many citations of one note are read.
_MOST_CITATIONS = 20


class Citation(NamedTuple):
    """A place in code that a note cites: lines, a symbol, or a whole file.

    first, last: the lines, from 1. Both are 0 for a symbol or a whole file.
    symbol: the name of a function, class and so on; "" for lines or a whole file.
    commit: the commit whose files are meant. "" means the latest commit on the note's day.
    sha256: the hash of the cited text; "" if the note does not give it.
    is_declared: whether the header has it. Then it is meant as a citation, and a path that never
        existed is reported.
    """

    path: str
    first: int = 0
    last: int = 0
    symbol: str = ""
    commit: str = ""
    sha256: str = ""
    is_declared: bool = False

    def __str__(self) -> str:
        """Write the citation as `src/app.go:12-30` or `src/app.go::load`, without its commit."""
        if self.first:
            if self.last == self.first:
                lines = f":{self.first}"
            else:
                lines = f":{self.first}-{self.last}"
            return f"{self.path}{lines}"
        if self.symbol:
            return f"{self.path}::{self.symbol}"
        return self.path


def citations(header: Mapping[str, Any], text: str) -> list[Citation]:
    """Return the places in code that a note with this header and text cites, each once."""
    # By path, lines and symbol.
    result: dict[tuple[str, int, int, str], Citation] = {}
    for citation in (*_declared(header.get(CITES)), *_written_citations(text)):
        key = (citation.path, citation.first, citation.last, citation.symbol)
        result.setdefault(key, citation)
        if len(result) == _MOST_CITATIONS:
            break
    return list(result.values())


def _declared(value: Any) -> Iterator[Citation]:
    """Yield the citations in the value of the header key CITES. Bad ones are left out."""
    items = value if isinstance(value, list) else [value]
    for item in items:
        citation = None
        if isinstance(item, str):
            citation = parse(item)
        elif isinstance(item, Mapping):
            citation = _of_mapping(item)
        if citation is not None:
            yield citation._replace(is_declared=True)


def _of_mapping(item: Mapping[Any, Any]) -> Citation | None:
    """Return the citation of a mapping such as `{path: src/app.go, lines: 12-30}`. None if it is bad.

    The mapping may also name the symbol, the commit and the hash of the place.
    """
    place = item.get("path")
    if not isinstance(place, str):
        return None
    if item.get("lines"):
        place += f":{item['lines']}"
    citation = parse(place)
    if citation is None:
        return None
    return citation._replace(
        symbol=str(item.get("symbol") or citation.symbol),
        commit=str(item.get("commit") or citation.commit),
        sha256=str(item.get("sha256") or ""),
    )


def _written_citations(text: str) -> Iterator[Citation]:
    """Yield the citations in backticks in a text."""
    for code in _CODE.finditer(text):
        citation = parse(code[1])
        if citation is not None and _IS_PATH.search(citation.path):
            yield citation


def parse(text: str) -> Citation | None:
    """Parse a text that is only a citation, such as `src/app.go:12-30`. None for any other text."""
    match = _CITATION.fullmatch(text.strip())
    if match is None:
        return None
    path = match["path"].removeprefix("./")
    first = int(match["first"] or 0)
    last = int(match["last"] or first)
    if path.endswith(("/", ".")) or ".." in path.split("/") or last < first:
        return None
    return Citation(path, first, last, match["symbol"] or "", (match["commit"] or "").lower())
