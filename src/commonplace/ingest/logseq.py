"""Logseq: pages and journals of a graph (contract 001, 11)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from commonplace.ingest import header
from commonplace.ingest.found import Found, day, source_ref, stem
from commonplace.ingest.tree import Tree

NAME = "logseq"
_PROPERTY = re.compile(r"[ \t]*(?:[-*][ \t]+)?([\w\-]+)::[ \t]*(.*)").match
_NAMES = re.compile(r'\[\[([^\[\]]+)\]\]|"([^"]+)"|([^,，\[\]"]+)').findall


def scan(tree: Tree) -> Iterator[Found]:
    """`pages/**/*.md` and `journals/**/*.md`."""
    for folder, read in (("journals", _journal), ("pages", _page)):
        for path in tree.notes(folder, hidden=False):
            text = tree.text(path) or ""
            if content := text.strip():
                yield read(path, content, _properties(content))


def _journal(path: str, content: str, properties: dict[str, str]) -> Found:
    name = stem(path)
    aliases, date = _aliases(content, properties), day(name.replace("_", "-"))
    return Found(NAME, source_ref(NAME, path), content, name, (NAME, "journal", name), "[[", aliases, date)


def _page(path: str, content: str, properties: dict[str, str]) -> Found:
    title = properties.get("title", "").strip() or header.text(content, "title") or page_name(stem(path))
    return Found(NAME, source_ref(NAME, path), content, title, (NAME, title), "[[", _aliases(content, properties))


def page_name(name: str) -> str:
    """The page a file is: `%2F` and `___` stand for `/`, other signs no file name may have for themselves."""
    name = name.replace("___", "/")
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        return name


def _properties(content: str) -> dict[str, str]:
    """The `key:: value` lines of the page itself: those it begins with."""
    found: dict[str, str] = {}
    for line in content[header.length(content) :].lstrip().splitlines():
        match = _PROPERTY(line)
        if match is None:
            break
        found.setdefault(match[1].lower(), match[2])
    return found


def _aliases(content: str, properties: dict[str, str]) -> tuple[str, ...]:
    written = [properties.get("alias", ""), properties.get("aliases", "")]
    named = ["".join(each).strip() for value in written for each in _NAMES(value)]
    return tuple(dict.fromkeys(each for each in [*named, *header.aliases(content)] if each))
