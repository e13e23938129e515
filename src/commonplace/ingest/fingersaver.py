"""Fingersaver: the chat (contract 001, 11)."""

from __future__ import annotations

from collections.abc import Iterator

from commonplace.ingest.found import Found, beginning, source_ref, stem
from commonplace.ingest.tree import Tree

NAME = "fingersaver"
CHAT = "chat.md"


def scan(tree: Tree) -> Iterator[Found]:
    """`chat.md`, its first 5,000 characters."""
    if CHAT in tree.notes(hidden=True, deep=False) and (content := beginning(tree.text(CHAT) or "")):
        yield Found(NAME, source_ref(NAME, CHAT), content, stem(CHAT), (NAME, "chat"))
