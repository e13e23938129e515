"""The effect of a change on notes as lines of the terminal, for `log -p` and `diff`.

A line that went begins with `-`, a new one with `+`. In an edited line, which begins with `~`,
`[-old-]` and `{+new+}` mark the words. Keys of the header are lines of the same form. Those that
memoranda keeps for itself are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memoranda.cli.output import paint
from memoranda.documents.differences import GAP, Difference, Line, PropertyChange, joined_moves
from memoranda.documents.differences import of_revision as difference_of
from memoranda.text.unicode import flat, visible
from memoranda.text.word_diff import NEW, OLD, SAME, Part, changed_words

if TYPE_CHECKING:
    from memoranda.engine.history.verbs import Revision

_EDITED = "~"


def patch(revisions: Iterable[Revision], *, colored: bool) -> list[str]:
    """Return the lines that show how one change edited its notes, such as `~ Buy [-tea-]{+milk+}`.

    revisions: the text of each note before and after the change.
    colored: whether old and new parts get a colour. Then control characters are made visible, too.
    """
    lines = []
    for revision in joined_moves(revisions):
        lines += _difference_lines(difference_of(revision), colored=colored)
    return lines


def _difference_lines(difference: Difference, *, colored: bool) -> list[str]:
    """Return the changed properties and lines of a note, one line of text each.

    colored: whether old and new parts get a colour.
    """
    lines = []
    if difference.is_text_lost:
        lines.append("  (the history does not keep a text of this change)")
    for change in difference.properties:
        lines.append(_line(_property_parts(change), colored=colored))
    for parts in difference.lines:
        if any(part.kind in (OLD, NEW) for part in parts):
            lines.append(_line(parts, colored=colored))
    if difference.has_more:
        lines.append(f"  {GAP} more lines; memory show NOTE --at CHANGE shows the whole text")
    return lines


def _property_parts(change: PropertyChange) -> Line:
    """Return a changed key of the header as the parts of a line."""
    if change.before is None:
        return [Part(NEW, f"{change.name}: {change.after}")]
    if change.after is None:
        return [Part(OLD, f"{change.name}: {change.before}")]
    return [Part(SAME, f"{change.name}: "), *changed_words(change.before, change.after)]


def _line(parts: Sequence[Part], *, colored: bool) -> str:
    """Return one line of a difference with its mark: `-`, `+` or `~`.

    parts: the words of the line: old, new or unchanged. A single part is a whole line.
    colored: whether old and new parts get a colour.
    """
    if len(parts) == 1:
        kind, text = parts[0]
        return _colored(kind, f"  {kind} {flat(text)}", colored=colored)
    marked = [_marked(part, colored=colored) for part in parts]
    return f"  {_EDITED} {''.join(marked)}"


def _marked(part: Part, *, colored: bool) -> str:
    """Return a part of an edited line: `[-old-]` for old words, `{+new+}` for new ones.

    colored: whether old and new parts get a colour.
    """
    text = visible(flat(part.text))
    if part.kind == OLD:
        return _colored(OLD, f"[-{text}-]", colored=colored)
    if part.kind == NEW:
        return _colored(NEW, f"{{+{text}+}}", colored=colored)
    return text


def _colored(kind: str, text: str, *, colored: bool) -> str:
    """Return an old or new part in its colour.

    kind: `OLD` or `NEW`.
    colored: False returns the text unchanged.
    """
    # A pipe or a file gets the text as it is.
    if not colored:
        return text
    return paint(visible(text), "old" if kind == OLD else "new")
