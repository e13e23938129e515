"""Links that a move would break, and the texts of their notes with links that lead on.

A link keeps its form: a bare name stays bare, a path a path, a relative path relative, shown text
and heading stay. Every other byte of the note stays.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from memoranda.engine.session import HomeSession
from memoranda.engine.transaction import Transaction, check_access
from memoranda.engine.writing import editable, follow_content
from memoranda.errors import MemorandaError
from memoranda.index.link_queries import LinkText, MovedNote, Relocation
from memoranda.index.rows import NoteInfo
from memoranda.note import links
from memoranda.note.anchors import Anchor, changed_anchors, renamed, renamed_rest, with_own_anchors
from memoranda.note.frontmatter import split
from memoranda.note.grammar import link_places, mask_code
from memoranda.note.header_links import header_links
from memoranda.note.links import (
    WrittenLink,
    destination_parts,
    lead,
    link_rest,
    markdown_destination,
    parse_link,
)
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.note.names import stem
from memoranda.note.notion import is_page
from memoranda.sources.base import File

# Signs that would end a wikilink or part it.
_NOT_IN_BRACKETS = frozenset("[]|#\n\r")
# Characters that stay as they are in a Markdown destination, beside letters and digits.
_PLAIN = "/!$&'*+,;=:@~-._"


@dataclass(slots=True)
class NewText:
    """A note whose links are updated: its bytes as read, and as they should be."""

    info: NoteInfo
    old: File
    data: bytes
    is_moved: bool = False


@dataclass(slots=True)
class Relinking:
    """The changes of links that a move causes.

    texts: the updated notes by row, moved notes too.
    updated, broken: the names of these notes as replies show them: a path for a note of the
        project, a permalink for others.
    """

    texts: dict[int, NewText] = field(default_factory=dict)
    updated: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def moved_note(info: NoteInfo, path: str, permalink: str | None = None) -> MovedNote:
    """A note and its index entry after a move to `path`. By default it gets a fitting permalink."""
    title = info.title
    is_named_by_file = title == _file_title(info.path) and not info.header.get("title")
    if is_named_by_file and info.project not in MEMORY_PROJECTS:
        title = _file_title(path)
    if permalink is None:
        own_permalink = info.header.get("permalink")
        if own_permalink:
            permalink = info.permalink
        else:
            permalink = links.permalink_for(info.project, path)
    return MovedNote(info, replace(info, path=path, title=title, permalink=permalink))


def _file_title(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


def put_texts(change: Transaction, links: Relinking) -> None:
    """Write the notes whose links change, those that move excepted."""
    for text in links.texts.values():
        if not text.is_moved:
            info = text.info
            change.put(info.project, info.path, text.data, old=text.old, scope=info.scope)


def relinking(
    session: HomeSession, moved: Sequence[MovedNote], *, update: bool = True
) -> Relinking:
    """The notes whose links the move breaks. With `update`, they get new texts."""
    relocation = session.index.links.relocation(moved, session.agent)
    if moved:
        project = moved[0].before.project
    else:
        project = ""
    paths = {move.before.row: move.after.path for move in moved}
    result = Relinking()
    for source in relocation.sources():
        name = source.permalink
        if source.project == project:
            name = paths.get(source.row, source.path)
        new_text, is_left = _new_text(session, relocation, source, update=update)
        if new_text is not None:
            new_text.is_moved = source.row in paths
            result.texts[source.row] = new_text
            result.updated.append(name)
        if is_left:
            result.broken.append(name)
    result.updated.sort()
    result.broken.sort()
    return result


def relink_anchors(
    session: HomeSession, info: NoteInfo, before: str, after: str
) -> tuple[str, Relinking]:
    """Rewrite links after an edit of `info` that renames headings or block ids.

    Returns the text of the note itself, and the other notes.
    """
    result = Relinking()
    if not changed_anchors(before, after):
        return after, result
    names = renamed(before, after)
    if not names:
        return after, result
    relocation = session.index.links.relocation((), session.agent)
    own_links = _with_anchors(relocation, info, after, info.row, names)
    edges = session.index.links.incoming(info, session.agent)
    sources = {edge.note.row: edge.note for edge in edges if edge.note is not None}
    sources.pop(info.row, None)
    for source in sources.values():
        _relink_source(session, relocation, source, info, names, result)
    result.updated.sort()
    result.broken.sort()
    return own_links, result


def _relink_source(
    session: HomeSession,
    relocation: Relocation,
    source: NoteInfo,
    info: NoteInfo,
    names: Mapping[Anchor, str],
    result: Relinking,
) -> None:
    """Add the new text of a note that links to renamed parts of the note `info`."""
    file = session.engine.file_of(source)
    text = file.data.decode("utf-8", "surrogateescape")
    edited = _with_anchors(relocation, source, text, info.row, names)
    if edited == text:
        return
    if source.project == info.project:
        name = source.path
    else:
        name = source.permalink
    try:
        editable(session, source)
        check_access(session, source.project, [source.path])
    except MemorandaError:
        result.broken.append(name)
        return
    edited = follow_content(session, source, text, edited)
    result.texts[source.row] = NewText(source, file, edited.encode("utf-8", "surrogateescape"))
    result.updated.append(name)


def _with_anchors(
    relocation: Relocation, source: NoteInfo, text: str, row: int, names: Mapping[Anchor, str]
) -> str:
    """The text of a note, its links to renamed parts of the note `row` with the new names."""
    body_at = split(text).body_at
    lines = text.split("\n")
    changes: dict[int, dict[str, str]] = {}
    places = [(number, link) for number, link in link_places(text, body_at)]
    places += [(number, link) for _, number, link in header_links(split(text).yaml or "")]
    for number, link in places:
        if link.rest:
            renamed_part = renamed_rest(link, names)
        else:
            renamed_part = None
        if renamed_part is None or number > len(lines):
            continue
        is_whole = relocation.is_whole(source, LinkText(link.target, link.project, link.rest))
        if not is_whole and relocation.leads(source, link.target, link.project, row):
            raw = link.raw.replace(link.rest, renamed_part, 1)
            changes.setdefault(number, {})[link.raw] = raw
    for number, replaced in changes.items():
        lines[number - 1] = _replaced(lines[number - 1], replaced)
    edited = "\n".join(lines)
    if source.row == row:
        edited = with_own_anchors(edited, body_at, names)
    return edited


def _new_text(
    session: HomeSession, relocation: Relocation, source: NoteInfo, *, update: bool
) -> tuple[NewText | None, bool]:
    """The note with its links changed, if it may be changed, and whether a broken link remains."""
    file = session.engine.file_of(source)
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return None, True
    edited, is_left = _updated(relocation, source, text)
    if edited == text:
        return None, is_left
    if not update:
        return None, True
    try:
        editable(session, source)
        check_access(session, source.project, [source.path])
    except MemorandaError:
        # Locked, or in a project that is only read
        return None, True
    edited = follow_content(session, source, text, edited)
    return NewText(source, file, edited.encode()), is_left


def _updated(relocation: Relocation, source: NoteInfo, text: str) -> tuple[str, bool]:
    """The text with links that lead on, and whether a broken one is left."""
    body_at = split(text).body_at
    lines = text.split("\n")
    is_left = False
    changes: dict[int, dict[str, str]] = {}
    places = [(number, link, False) for number, link in link_places(text, body_at)]
    yaml_text = split(text).yaml or ""
    places += [(number, link, True) for _, number, link in header_links(yaml_text)]
    for number, link, is_header in places:
        row = relocation.broken_target(
            source.row,
            source.project,
            source.path,
            source.scope,
            LinkText(link.target, link.project, link.rest),
            may_be_markdown=link.is_markdown,
        )
        if row is None:
            continue
        raw = _new_link(relocation, source, link, row)
        if raw is None or number > len(lines):
            is_left = True
            continue
        if is_header:
            raw = _quoted_in(lines[number - 1], link, raw)
        changes.setdefault(number, {})[link.raw] = raw
    for number, replaced in changes.items():
        lines[number - 1] = _replaced(lines[number - 1], replaced)
    return "\n".join(lines), is_left


def _replaced(line: str, replaced: dict[str, str]) -> str:
    """A line with other links; code in it stays."""
    written = links.written_links(line, mask_code(line))
    for link in reversed(written):
        if link.raw in replaced:
            end = link.start + len(link.raw)
            line = line[: link.start] + replaced[link.raw] + line[end:]
    return line


def _quoted_in(line: str, link: WrittenLink, raw: str) -> str:
    """The inside of a link as the YAML text around it needs it."""
    before = line[: link.start]
    if before.count('"') % 2:
        return raw.replace("\\", "\\\\").replace('"', '\\"')
    if before.count("'") % 2:
        return raw.replace("'", "''")
    return raw


def _new_link(relocation: Relocation, source: NoteInfo, link: WrittenLink, row: int) -> str | None:
    """The new inside of a link so that it leads to the note `row`. None if no text would."""
    before, after = relocation.note(row)
    if link.is_markdown:
        return _new_destination(relocation, source, link, row)
    if is_page(link.target):
        # An address in running text cannot be replaced by the name of a note.
        return None
    project, _ = parse_link(link.raw)
    if project is not None and not _is_project(relocation, source, project, row):
        project = None
    is_whole = relocation.is_whole(source, LinkText(link.target, link.project, link.rest))
    target = link.target + link.rest if is_whole else link.target
    for candidate in _names(target, before, after, relocation.folder_after(source)):
        is_writable = _fits_in_brackets(candidate, after)
        if is_writable and relocation.leads(source, candidate, project, row):
            front = "" if project is None else f"{project}::"
            part_after_name = "" if is_whole else link_rest(link.raw)
            return f"{front}{candidate}{part_after_name}{_display(link.raw)}"
    return None


def _fits_in_brackets(name: str, note: NoteInfo) -> bool:
    """Whether a link can hold this name of a note."""
    signs = set(name)
    if signs & set("[]|\n\r"):
        return False
    return name == note.title or not _NOT_IN_BRACKETS & signs


def _display(raw: str) -> str:
    """The text a link is shown as, `|text`; in a table the bar is escaped, `\\|text`."""
    name, bar, text = raw.partition("|")
    if bar and name.endswith("\\"):
        bar = f"\\{bar}"
    return bar + text


def _is_project(relocation: Relocation, source: NoteInfo, project: str, row: int) -> bool:
    """Whether the link's `project::` names the project of the note it leads to."""
    return relocation.note(row)[0].project.casefold() == project.casefold()


def _names(target: str, before: NoteInfo, after: NoteInfo, folder: str) -> Iterator[str]:
    """The possible names of a note, first those in the form of the old name."""
    has_extension = target.casefold().endswith((".md", ".markdown"))
    if has_extension:
        path = after.path
    else:
        path = stem(after.path)
    parts = path.split("/")
    ends = ["/".join(parts[first_part:]) for first_part in range(len(parts) - 1, -1, -1)]
    if target.startswith(("./", "../")):
        relative = posixpath.relpath(path, folder or ".")
        yield relative if relative.startswith("../") else f"./{relative}"
    elif target.startswith("/"):
        yield f"/{path}"
    elif _is_permalink(target, before):
        front = f"{lead(before.project)}/"
        is_long = target.startswith(front) or not before.permalink.startswith(front)
        yield after.permalink if is_long else after.permalink.removeprefix(front)
    elif "/" in target:
        if target in (before.path, stem(before.path)):
            yield path
        yield from ends[1:]
    yield from ends
    # Where a note beside the link has the name of one at the root
    yield f"/{path}"
    yield after.title
    yield after.permalink
    yield after.id


def _is_permalink(target: str, note: NoteInfo) -> bool:
    front = f"{lead(note.project)}/"
    is_path = target in (note.path, stem(note.path))
    return not is_path and target in (note.permalink, note.permalink.removeprefix(front))


def _new_destination(
    relocation: Relocation, source: NoteInfo, link: WrittenLink, row: int
) -> str | None:
    """The new destination of a Markdown link: relative, unless it was a path from the root.

    None if no destination leads to the note.
    """
    before, after = relocation.note(row)
    folder = relocation.folder_after(source)
    relative = posixpath.relpath(after.path, folder or ".")
    if link.raw.lstrip("<").startswith("./") and not relative.startswith("../"):
        relative = f"./{relative}"
    candidates = [relative, after.path]
    is_beside = posixpath.join(posixpath.dirname(source.path), link.target) == before.path
    if link.target.lstrip("/") == before.path and not is_beside:
        candidates = [f"/{after.path}" if link.target.startswith("/") else after.path, relative]
    for candidate in candidates:
        raw = _encoded(candidate, link)
        path, _ = destination_parts(raw)
        if path and relocation.leads(source, path, None, row):
            return raw
    return None


def _encoded(path: str, link: WrittenLink) -> str:
    """A path as the destination of a Markdown link, in the manner of the old one."""
    if link.raw.startswith("<"):
        text = "".join(f"%{ord(sign):02X}" if sign in "<>%#" else sign for sign in path)
        return f"<{text}{link.rest}>"
    old = link.raw.partition("#")[0]
    if old.isascii() and "%" in old and not link.target.isascii():
        return quote(path, safe=_PLAIN) + link.rest
    return markdown_destination(path) + link.rest
