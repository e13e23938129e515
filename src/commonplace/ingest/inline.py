"""Inline tags: `#tag`, `#a/b`, `#标签`, in Logseq also `#[[two words]]` (contract 001, 11)."""

from __future__ import annotations

import re

from commonplace.note import grammar

# Marks of Latin and Indic scripts and of Thai are part of a letter.
_SIGNS = r"\w/\-\u0300-\u036f\u0900-\u0963\u0966-\u0eff"
_CANDIDATE = re.compile(rf"\[\[[^\[\]\n]*\]\]|(?<![^\s(（])#(?:\[\[([^\[\]\n]+)\]\]|([{_SIGNS}]+))")
_BEFORE_ADDRESS = re.compile(r"\]\([ \t]*\Z|://\S*\Z|^[ \t]{0,3}\[[^\]\n]+\]:[ \t]*\Z", re.MULTILINE)
_STAND_IN = "\ue000"


def tags(text: str, *, bracketed: bool = False) -> tuple[str, ...]:
    """The tags of `text` in lower case, in order, each once; with `bracketed` also those of the form `#[[…]]`.

    A tag stands after the start of a line, a blank or `(`, and is not of digits alone. What stands in code, in
    comments or in an address is none.
    """
    if "#" not in text:
        return ()
    names: list[str] = []

    def stand_in(match: re.Match[str]) -> str:
        name = _name(match, bracketed)
        if name is None or _BEFORE_ADDRESS.search(text, max(0, match.start() - 200), match.start()):
            return match[0]
        names.append(name)
        return f"[[{_STAND_IN}{len(names) - 1}]]"

    # A wikilink in a tag's place is a relation just where the tag is text: one place knows what is code.
    probe = _CANDIDATE.sub(stand_in, text)
    if not names:
        return ()
    spoken = {relation.target for relation in grammar.scan(probe)[1]}
    return tuple(dict.fromkeys(name for at, name in enumerate(names) if f"{_STAND_IN}{at}" in spoken))


def _name(match: re.Match[str], bracketed: bool) -> str | None:
    """The tag a candidate names; None for a wikilink and for what is no tag."""
    if match[1] is not None:
        name = match[1].strip().lower() if bracketed else ""
    else:
        name = (match[2] or "").strip("/").lower()
    return name if any(map(str.isalnum, name)) and not name.isdigit() else None
