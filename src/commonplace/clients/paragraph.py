"""Puts a paragraph between marks, which hold its name, into a Markdown text and takes it out again; see spans.py."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from commonplace.clients.spans import NO_HINT, Hint, Name, newline


def _block(name: Name) -> re.Pattern[str]:
    return re.compile(
        rf"<!-- {re.escape(str(name))} -->\r?\n(.*?)\r?\n<!-- /{re.escape(str(name))} -->\r?\n?", re.DOTALL
    )


def find(text: str, path: Sequence[str], name: Name) -> Any:
    found = _block(name).search(text)
    return found[1].replace("\r\n", "\n") if found else None


def put(text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
    end = newline(text)
    block = end.join([f"<!-- {name} -->", *value.split("\n"), f"<!-- /{name} -->", ""])
    if found := _block(name).search(text):
        return text[: found.start()] + block + text[found.end() :], NO_HINT
    gap = "" if not text else end if text.endswith("\n") else end + end
    return text + gap + block, Hint(inner=gap)


def drop(text: str, path: Sequence[str], name: Name, hint: Hint = NO_HINT) -> str:
    found = _block(name).search(text)
    return text if found is None else text[: found.start()].removesuffix(hint.inner or "") + text[found.end() :]
