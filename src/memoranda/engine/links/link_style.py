"""Write the links of agents as Markdown links, in folders whose program writes links in this form.

Obsidian has two settings for links. One says whether links are `[[Note]]` or `[Note](Note.md)`. The
other says whether their paths are as short as possible, relative to the note, or from the top
folder. Links to missing notes stay as they are. So do relations (`- part_of [[Note]]`), because a
relation is only recognized with brackets.
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
    """Return the text of a note, with its new links in the form that the folder's program uses.

    For example, `[[Tea]]` becomes `[Tea](Tea.md)`.

    project, path: the project and the path of the note.
    text: the text that is going to be written.
    old: the former text of the note; "" for a new note. Lines that are also in it stay as they are.
    """
    source = session.engine.source(project)
    # The owner may write links in any form. Only agents follow the style of the folder.
    if session.is_owner or not isinstance(source, FolderSource) or "[[" not in text:
        return text
    style = source.conventions.link_paths
    if not style:
        return text

    lines = text.split("\n")
    old_lines = set(old.split("\n"))
    line_numbers = {number for number, link in link_places(text, split(text).body_at)}
    for number in sorted(line_numbers):
        line = lines[number - 1]
        if line not in old_lines and not _is_relation(line):
            lines[number - 1] = _with_markdown_links(session, source.name, path, line, style)
    return "\n".join(lines)


def _is_relation(line: str) -> bool:
    """Whether a line is a list item with a relation: `- part_of [[Note]]`."""
    item = _ITEM.match(line)
    if item is None:
        return False
    item_text = line[item.end() :].rstrip()
    return links.read_relation(item_text, number=1) is not None


def _with_markdown_links(session: ReadVerbs, project: str, path: str, line: str, style: str) -> str:
    """Replace the wikilinks in a line by Markdown links.

    style: how paths are written (SHORTEST, RELATIVE or ABSOLUTE).
    """
    # The last link is replaced first, so that the positions of the others stay right.
    for link in reversed(links.written_links(line, mask_code(line))):
        end_of_inside = link.start + len(link.raw)
        is_closed = line.startswith("]]", end_of_inside)
        if link.is_markdown or not is_closed:
            continue
        markdown = _markdown_link(session, project, path, link, style)
        if markdown:
            # The brackets around the inside are replaced, too.
            line = line[: link.start - 2] + markdown + line[end_of_inside + 2 :]
    return line


def _markdown_link(
    session: ReadVerbs, project: str, path: str, link: WrittenLink, style: str
) -> str:
    """Return a wikilink as a Markdown link: `[[Tea]]` becomes `[Tea](Tea.md)`.

    The result is "" if the link does not lead to a note of this project.

    project, path: the note with the link.
    style: how paths are written (SHORTEST, RELATIVE or ABSOLUTE).
    """
    folder = posixpath.dirname(path)
    if not link.target or link.project is not None:
        return ""
    info = session.index.links.resolve(
        link.target, project=project, folder=folder, viewer=session.agent
    )
    if info is None or info.project != project:
        return ""

    label = link.raw.partition("|")[2] or _label(link)
    # A short path may lead to another note with the same file name.
    for candidate in _paths(info, folder, style):
        leads_to = session.index.links.resolve(
            candidate, project=project, folder=folder, viewer=session.agent
        )
        if leads_to is not None and leads_to.row == info.row:
            destination = markdown_destination(candidate)
            rest = link.rest.replace(" ", "%20")
            return f"[{label}]({destination}{rest})"
    return ""


def _label(link: WrittenLink) -> str:
    """Return the text that Obsidian shows for a link without a label: `Note > Heading`."""
    parts = [link.target, *link.rest.split("#")]
    return " > ".join(part for part in parts if part)


def _paths(info: NoteInfo, folder: str, style: str) -> Iterator[str]:
    """Yield the ways to write the path of a note in a link, the preferred one first.

    A short path may lead to another note, so the caller checks each path. The last path always
    leads to the note.

    folder: the folder of the note with the link.
    style: how paths are written (SHORTEST, RELATIVE or ABSOLUTE).
    """
    if style == SHORTEST:
        yield posixpath.basename(info.path)
    relative = posixpath.relpath(info.path, folder or ".")
    if style == RELATIVE:
        yield relative
    if style in (SHORTEST, ABSOLUTE):
        yield info.path
    yield relative
