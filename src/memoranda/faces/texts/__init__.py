"""Prompts, guides, instructions and tool definitions, as files."""

from pathlib import Path


def text_file(name: str) -> str:
    """Return the text of a file in this folder, e.g. `sizes.json`."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
