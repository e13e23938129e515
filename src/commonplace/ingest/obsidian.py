"""Obsidian: the notes of a vault (contract 001, 11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from commonplace.ingest import header
from commonplace.ingest.found import Found, day, source_ref, stem
from commonplace.ingest.tree import Tree
from commonplace.note.links import without_suffix

NAME = "obsidian"


def scan(tree: Tree) -> Iterator[Found]:
    """All `*.md` that are not hidden; the frontmatter is taken out of the content.

    A note that shares its file name with another is also known by its path: so do links in a vault name it.
    """
    paths = tree.notes(hidden=False)
    named = Counter(stem(path).casefold() for path in paths)
    for path in paths:
        text = tree.text(path) or ""
        if header.is_broken(text):
            tree.warn(path, "its frontmatter is not valid YAML and stays in the text")
        content = text[header.length(text) :].strip()
        if content:
            yield _found(path, text, content, is_shared=named[stem(path).casefold()] > 1)


def _found(path: str, text: str, content: str, *, is_shared: bool) -> Found:
    aliases = header.aliases(text)
    folder = path.rpartition("/")[0].replace("/", "-")
    tags = (NAME, folder, *header.tags(text), *aliases)
    if is_shared and "/" in path:
        aliases = tuple(dict.fromkeys((*aliases, without_suffix(path))))
    date = day(header.text(text, "date"))
    return Found(NAME, source_ref(NAME, path), content, stem(path), tags, "", aliases, date)
