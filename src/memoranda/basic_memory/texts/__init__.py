"""Prompts and argument names of Basic Memory, as files."""

from pathlib import Path


def text_file(name: str) -> str:
    """The text of one of these files."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
