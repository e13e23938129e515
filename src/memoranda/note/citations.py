"""The code that a note cites: in its header (`cites`), and in its text, between backticks. Pure.

`src/app.go`, `src/app.go:12-30`, `src/app.go#L12-L30`, `src/app.go::load`, each also with `@COMMIT`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

CITES = "cites"
"""The header key with citations: texts as above, or mappings with path, lines, symbol, commit,
sha256.
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
# Citations of one note.
_MOST_CITATIONS = 20


class Citation(NamedTuple):
    """A place in code: the lines from `first` to `last`, or a `symbol`, or the whole file.

    commit: the commit it was cited at. Empty for the latest commit on the note's day.
    sha256: the hash of the cited text. Empty if not given.
    is_declared: whether it is in the header, so that a path that never existed is reported.
    """

    path: str
    first: int = 0
    last: int = 0
    symbol: str = ""
    commit: str = ""
    sha256: str = ""
    is_declared: bool = False

    def __str__(self) -> str:
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
    """The places that a note with this header and text cites, each once."""
    result: dict[tuple[str, int, int, str], Citation] = {}
    for citation in (*_declared(header.get(CITES)), *_written_citations(text)):
        key = (citation.path, citation.first, citation.last, citation.symbol)
        result.setdefault(key, citation)
        if len(result) == _MOST_CITATIONS:
            break
    return list(result.values())


def _declared(value: Any) -> Iterator[Citation]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            citation = parse(item)
            if citation is not None:
                yield citation._replace(is_declared=True)
        elif isinstance(item, Mapping) and isinstance(item.get("path"), str):
            citation = parse(
                f"{item['path']}:{item['lines']}" if item.get("lines") else item["path"]
            )
            if citation is not None:
                yield citation._replace(
                    symbol=str(item.get("symbol") or citation.symbol),
                    commit=str(item.get("commit") or citation.commit),
                    sha256=str(item.get("sha256") or ""),
                    is_declared=True,
                )


def _written_citations(text: str) -> Iterator[Citation]:
    for code in _CODE.finditer(text):
        citation = parse(code[1])
        if citation is not None and _IS_PATH.search(citation.path):
            yield citation


def parse(text: str) -> Citation | None:
    """Parse a text that is only a citation. None for any other text."""
    match = _CITATION.fullmatch(text.strip())
    if match is None:
        return None
    path = match["path"].removeprefix("./")
    first = int(match["first"] or 0)
    last = int(match["last"] or first)
    if path.endswith(("/", ".")) or ".." in path.split("/") or last < first:
        return None
    return Citation(path, first, last, match["symbol"] or "", (match["commit"] or "").lower())
