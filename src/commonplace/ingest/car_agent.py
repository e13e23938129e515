"""Car agent: every Markdown file, its beginning (contract 001, 11)."""

from __future__ import annotations

from collections.abc import Iterator

from commonplace.ingest.found import Found, beginning, source_ref, stem
from commonplace.ingest.tree import Tree

NAME = "car-agent"


def scan(tree: Tree) -> Iterator[Found]:
    """All `*.md`, the first 5,000 characters of each."""
    for path in tree.notes(hidden=True):
        if content := beginning(tree.text(path) or ""):
            yield Found(NAME, source_ref(NAME, path), content, stem(path), (NAME,))
