"""Shows Markdown as the words that a person reads, where it is not rendered as HTML.

Questions and merges compare texts word by word, so they cannot render them. Their marks of emphasis
and their links would only be noise there.
"""

from __future__ import annotations

import re

from memoranda.documents.differences import Line
from memoranda.serve.page.note_text import words_of_links
from memoranda.serve.page.words.fact_lines import FACT
from memoranda.text.word_diff import SAME, Part

# `[words](address)` and `![words](address)`: the words.
_LINK = re.compile(r"!?\[([^\[\]\n]+)\]\([^()\s]*\)")
# `**words**`, `*words*`, `` `words` `` and the like. Within a word, `_` is a letter. Without a limit of
# the length, a line of opening marks would take time in proportion to its square.
_EMPHASIS = re.compile(r"(?<![\w*`~])(\*\*|\*|__|_|~~|`)(?=\S)([^\n]{1,300}?)(?<=\S)\1(?![\w*`~])")
# What is left of emphasis in a text that was cut in its middle.
_LOOSE = re.compile(r"(?<!\S)(?:\*\*|__|~~)(?=\w)|(?<=\w)(?:\*\*|__|~~)(?!\S)")
# The beginning of a line: the marks of a quotation, a heading, or an item of a list.
_QUOTATION = re.compile(r"(?m)^[ \t]*(?:>[ \t]?)+")
_HEADING = re.compile(r"(?m)^#{1,6}[ \t]+")
_ITEM = re.compile(r"(?m)^([ \t]*)[-*+][ \t]+(?:\[[ xX]\][ \t]+)?")
# The category of a fact after the dot of its item.
_FACT = re.compile(r"([ \t]*• )\[([^\[\]\n]{2,60})\][ \t]+")
_DOT = "• "
# The type of a relation: words in quotes, or a word with underscores.
_RELATION = re.compile(
    r'(?m)^([ \t]*[-*+][ \t]+)(?:"([^"\n]{1,80})"|([^\W\d]\w*_\w+))(?=[ \t]+\[\[)'
)


def plain_text(markdown: str) -> str:
    """Return the words of a text in Markdown, line by line, without its marks.

    `## Plan`, `- **Bo** knows [[Ann|her]]` give `Plan`, `• Bo knows her`.
    """
    words = with_relations_as_words(markdown)
    without_headings = _HEADING.sub("", _QUOTATION.sub("", words))
    return plain_words(_ITEM.sub(rf"\1{_DOT}", without_headings))


def with_relations_as_words(markdown: str) -> str:
    """Write relations as people say them: `- learned_in [[Oslo]]` as `- learned in [[Oslo]]`."""
    return _RELATION.sub(
        lambda match: match[1] + (match[2] or match[3].replace("_", " ")), markdown
    )


def plain_words(markdown: str) -> str:
    """Return a piece of a line without links, emphasis and code. It may be cut at its end."""
    words = _LINK.sub(r"\1", words_of_links(markdown))
    # Emphasis may be inside of other emphasis.
    for _ in range(2):
        words = _EMPHASIS.sub(r"\2", words)
    return _LOOSE.sub("", words).replace("[[", "")


def with_category(line: Line) -> Line:
    """Write a line of `plain_text` with the category of its fact as a separate part."""
    if not line or line[0].kind != SAME:
        return line
    fact = _FACT.match(line[0].text)
    if fact is None:
        return line
    rest = line[0].text[fact.end() :]
    return [Part(SAME, fact[1]), Part(FACT, fact[2]), Part(SAME, rest), *line[1:]]
