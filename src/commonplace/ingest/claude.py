"""Claude Code: instructions and the memories of projects (contract 001, 11)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from commonplace.ingest.found import Found, source_ref, stem
from commonplace.ingest.tree import Tree

NAME = "claude"
_MEMORY = re.compile(r"projects/(?:.*/)?memory/[^/]+\.md").fullmatch


def scan(tree: Tree) -> Iterator[Found]:
    """Every file whose name ends in `CLAUDE.md`, and `projects/**/memory/*.md`."""
    for path in tree.notes(hidden=True):
        kind = "instructions" if path.endswith("CLAUDE.md") else "project-memory" if _MEMORY(path) else None
        if kind and (content := (tree.text(path) or "").strip()):
            yield Found(NAME, source_ref(NAME, path), content, stem(path), (NAME, kind))
