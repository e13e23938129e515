"""Writing agents' links as Markdown links, in folders whose program writes them so.

Obsidian has two settings for links. One is whether they are `[[Note]]` or `[Note](Note.md)`. The
other is whether their paths are as short as possible, relative to the note, or from the folder's
root. Links to missing notes stay as they were written. So do relations (`- part_of [[Note]]`),
because only the brackets can have a type.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from memoranda.engine.reading import ReadVerbs
from memoranda.index.rows import NoteInfo
from memoranda.note import links
from memoranda.note.frontmatter import split
from memoranda.note.grammar import link_places, mask_code
from memoranda.note.links import WrittenLink, markdown_destination
from memoranda.sources.conventions import ABSOLUTE, RELATIVE, SHORTEST
from memoranda.sources.folder import FolderSource
from memoranda.text.pattern import lazy_pattern

# The sign of a list item.
_ITEM = lazy_pattern(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+")


def in_link_style(session: ReadVerbs, project: str, path: str, text: str, old: str = "") -> str:
    """The text of the note at `path`, with its new links as the folder's program writes them.

    `[[Tea]]` becomes `[Tea](Tea.md)`.

    old: the text of the note so far. Lines that it has stay as they are.
    """
    source = session.engine.source(project)
    if session.is_owner or not isinstance(source, FolderSource) or "[[" not in text:
        return text
    style = source.conventions.link_paths
    if not style:
        return text

    lines = text.split("\n")
    old_lines = set(old.split("\n"))
    numbers = {number for number, link in link_places(text, split(text).body_at)}
    for number in sorted(numbers):
        line = lines[number - 1]
        if line not in old_lines and not _is_relation(line):
            lines[number - 1] = _with_markdown_links(session, source.name, path, line, style)
    return "\n".join(lines)


def _is_relation(line: str) -> bool:
    """Whether a line is a list item with a relation: `- part_of [[Note]]`."""
    item = _ITEM.match(line)
    return item is not None and links.read_relation(line[item.end() :].rstrip(), 1) is not None


def _with_markdown_links(session: ReadVerbs, project: str, path: str, line: str, style: str) -> str:
    """The line with its wikilinks as Markdown links.

    style: how paths are written (SHORTEST, RELATIVE or ABSOLUTE).
    """
    for link in reversed(links.written_links(line, mask_code(line))):
        if link.is_markdown or not line.startswith("]]", link.start + len(link.raw)):
            continue
        markdown = _markdown_link(session, project, path, link, style)
        if markdown:
            end = link.start + len(link.raw) + 2
            line = line[: link.start - 2] + markdown + line[end:]
    return line


def _markdown_link(
    session: ReadVerbs, project: str, path: str, link: WrittenLink, style: str
) -> str:
    """A wikilink as a Markdown link. Empty if it does not lead to a note of this project."""
    folder = posixpath.dirname(path)
    if not link.target or link.project is not None:
        return ""
    info = session.index.links.resolve(
        link.target, project=project, folder=folder, viewer=session.agent
    )
    if info is None or info.project != project:
        return ""
    label = link.raw.partition("|")[2] or _label(link)
    for candidate in _paths(info, folder, style):
        leads_to = session.index.links.resolve(
            candidate, project=project, folder=folder, viewer=session.agent
        )
        if leads_to is not None and leads_to.row == info.row:
            return f"[{label}]({markdown_destination(candidate)}{link.rest.replace(' ', '%20')})"
    return ""


def _label(link: WrittenLink) -> str:
    """The label that Obsidian shows for a link without its own text: `Note > Heading`."""
    parts = [link.target, *link.rest.split("#")]
    return " > ".join(part for part in parts if part)


def _paths(info: NoteInfo, folder: str, style: str) -> Iterator[str]:
    """The ways to write the path of a note in a link, the preferred one first.

    The short ones may lead to another note, so the caller checks each; the last is sure.
    """
    if style == SHORTEST:
        yield posixpath.basename(info.path)
    relative = posixpath.relpath(info.path, folder or ".")
    if style == RELATIVE:
        yield relative
    if style in (SHORTEST, ABSOLUTE):
        yield info.path
    yield relative
