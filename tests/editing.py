"""Files as programs change them that know nothing of memory: an editor, a sync program."""

from __future__ import annotations

from pathlib import Path


def replace_in(file: Path, old: str, new: str) -> None:
    """Replace each `old` in the text of a file, as an editor that saves it does."""
    text = file.read_text("utf-8")
    file.write_text(text.replace(old, new), "utf-8")
