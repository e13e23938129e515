"""Find the links that a move would break, and rewrite them so that they lead to the same notes.

A rewritten link keeps its form: a bare name stays a bare name, a path a path, a relative path a
relative path. Its heading and its shown text stay. So does every other byte of the note.

In `[[Plan#Costs|our costs]]` the inside is `Plan#Costs|our costs`, the target `Plan`, the rest
`#Costs`.
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
from memoranda.note.grammar import LinkPlace, link_places, mask_code
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
_UNENCODED = "/!$&'*+,;=:@~-._"


@dataclass(slots=True)
class NewText:
    """A note whose links are updated.

    old: the file as it is.
    data: the new bytes.
    is_moved: whether the note itself moves, so that the move writes it.
    """

    info: NoteInfo
    old: File
    data: bytes
    is_moved: bool = False


@dataclass(slots=True)
class Relinking:
    """The changes of links that a move causes.

    texts: the notes with new texts, by row. Moved notes can be among them.
    updated: the names of notes whose links are rewritten.
    broken: the names of notes that keep a broken link.

    A name is what replies show: a path for a note of the project, a permalink for other notes.
    """

    texts: dict[int, NewText] = field(default_factory=dict)
    updated: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def moved_note(info: NoteInfo, path: str, permalink: str | None = None) -> MovedNote:
    """Return a note as it is, and as the index will have it after a move to `path`.

    permalink: the permalink after the move. By default the note keeps the permalink of its header,
        or gets the one that its new path makes.
    """
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
    """Add steps for the notes whose links change. The move itself writes the notes that move."""
    for text in links.texts.values():
        if not text.is_moved:
            info = text.info
            change.put(info.project, info.path, text.data, old=text.old, scope=info.scope)


def relinking(
    session: HomeSession, moved: Sequence[MovedNote], *, update: bool = True
) -> Relinking:
    """Find the notes whose links a move breaks.

    update: whether to give them new texts. Without, all of them are `broken`.
    """
    relocation = session.index.links.relocation(moved, session.agent)
    project = moved[0].before.project if moved else ""
    paths = {move.before.row: move.after.path for move in moved}
    result = Relinking()
    for source in relocation.sources():
        name = source.permalink
        if source.project == project:
            name = paths.get(source.row, source.path)
        new_text, has_broken_link = _new_text(session, relocation, source, update=update)
        if new_text is not None:
            new_text.is_moved = source.row in paths
            result.texts[source.row] = new_text
            result.updated.append(name)
        if has_broken_link:
            result.broken.append(name)
    result.updated.sort()
    result.broken.sort()
    return result


def relink_anchors(
    session: HomeSession, info: NoteInfo, before: str, after: str
) -> tuple[str, Relinking]:
    """Rewrite links like `[[Plan#Costs]]` after an edit of a note that renames a heading or block.

    before, after: the text of the note `info`.

    Returns the text of that note with its own links rewritten, and the other notes.
    """
    result = Relinking()
    if not changed_anchors(before, after):
        return after, result
    new_names = renamed(before, after)
    if not new_names:
        return after, result
    relocation = session.index.links.relocation((), session.agent)
    own_text = _with_anchors(relocation, info, after, info.row, new_names)
    edges = session.index.links.incoming(info, session.agent)
    sources = {edge.note.row: edge.note for edge in edges if edge.note is not None}
    sources.pop(info.row, None)
    for source in sources.values():
        _relink_source(session, relocation, source, info, new_names, result)
    result.updated.sort()
    result.broken.sort()
    return own_text, result


def _relink_source(
    session: HomeSession,
    relocation: Relocation,
    source: NoteInfo,
    info: NoteInfo,
    new_names: Mapping[Anchor, str],
    result: Relinking,
) -> None:
    """Add to `result` the new text of a note that links to renamed parts of the note `info`."""
    file = session.engine.file_of(source)
    text = file.data.decode("utf-8", "surrogateescape")
    edited = _with_anchors(relocation, source, text, info.row, new_names)
    if edited == text:
        return
    name = source.path if source.project == info.project else source.permalink
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
    relocation: Relocation, source: NoteInfo, text: str, row: int, new_names: Mapping[Anchor, str]
) -> str:
    """Return the text of a note with new names in its links to renamed parts of another note.

    source: the note with the links.
    row: the note whose parts were renamed. It may be `source` itself.
    new_names: the new name of each renamed part.
    """
    body_at = split(text).body_at
    lines = text.split("\n")
    # By line number, the new inside of each link by the old one.
    new_links: dict[int, dict[str, str]] = {}
    numbered_links = [*link_places(text, body_at)]
    yaml_text = split(text).yaml or ""
    numbered_links += [LinkPlace(number, link) for _, number, link in header_links(yaml_text)]
    for number, link in numbered_links:
        new_rest = renamed_rest(link, new_names) if link.rest else None
        if new_rest is None or number > len(lines):
            continue
        # In a link to a note with the title `C# notes`, the rest belongs to the title.
        is_whole = relocation.is_whole(source, LinkText(link.target, link.project, link.rest))
        if not is_whole and relocation.leads(source, link.target, link.project, row):
            raw = link.raw.replace(link.rest, new_rest, 1)
            new_links.setdefault(number, {})[link.raw] = raw
    for number, new_insides in new_links.items():
        lines[number - 1] = _with_new_links(lines[number - 1], new_insides)
    edited = "\n".join(lines)
    if source.row == row:
        edited = with_own_anchors(edited, body_at, new_names)
    return edited


def _new_text(
    session: HomeSession, relocation: Relocation, source: NoteInfo, *, update: bool
) -> tuple[NewText | None, bool]:
    """Return a note with its broken links rewritten, and whether a broken link remains.

    The note is None if no link can be rewritten, or if the note may not be changed.

    update: whether links may be rewritten at all.
    """
    file = session.engine.file_of(source)
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return None, True
    edited, has_broken_link = _with_links_updated(relocation, source, text)
    if edited == text:
        return None, has_broken_link
    if not update:
        return None, True
    try:
        editable(session, source)
        check_access(session, source.project, [source.path])
    except MemorandaError:
        # The note is locked, or in a project that the caller may only read.
        return None, True
    edited = follow_content(session, source, text, edited)
    return NewText(source, file, edited.encode()), has_broken_link


def _with_links_updated(relocation: Relocation, source: NoteInfo, text: str) -> tuple[str, bool]:
    """Return the text with its broken links rewritten, and whether a broken link remains."""
    body_at = split(text).body_at
    lines = text.split("\n")
    has_broken_link = False
    # By line number, the new inside of each link by the old one.
    new_links: dict[int, dict[str, str]] = {}
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
            has_broken_link = True
            continue
        if is_header:
            raw = _quoted_in(lines[number - 1], link, raw)
        new_links.setdefault(number, {})[link.raw] = raw
    for number, new_insides in new_links.items():
        lines[number - 1] = _with_new_links(lines[number - 1], new_insides)
    return "\n".join(lines), has_broken_link


def _with_new_links(line: str, new_insides: dict[str, str]) -> str:
    """Return a line with new links. Links inside of code stay.

    new_insides: the new inside of a link by the old one.
    """
    written_links = links.written_links(line, mask_code(line))
    # From the end of the line, so that the positions of the links before stay right.
    for link in reversed(written_links):
        if link.raw in new_insides:
            end = link.start + len(link.raw)
            line = line[: link.start] + new_insides[link.raw] + line[end:]
    return line


def _quoted_in(line: str, link: WrittenLink, raw: str) -> str:
    """Escape the new inside of a link for the YAML quotes around it, if there are any.

    line: the line of the header with the old link.
    """
    # An odd number of quotation marks before the link means that it is inside of quotes.
    before = line[: link.start]
    if before.count('"') % 2:
        return raw.replace("\\", "\\\\").replace('"', '\\"')
    if before.count("'") % 2:
        return raw.replace("'", "''")
    return raw


def _new_link(relocation: Relocation, source: NoteInfo, link: WrittenLink, row: int) -> str | None:
    """Return a new inside for a link, with which it leads to the note `row`.

    None if no text does.
    """
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
    """Whether a wikilink can have this name of a note as its target."""
    signs = set(name)
    if signs & set("[]|\n\r"):
        return False
    return name == note.title or not _NOT_IN_BRACKETS & signs


def _display(raw: str) -> str:
    """Return the shown text of a link with its bar: `|our costs` of `Plan|our costs`.

    In a table the bar is escaped: `\\|our costs`. Empty if the link has no such text.
    """
    name, bar, text = raw.partition("|")
    if bar and name.endswith("\\"):
        bar = f"\\{bar}"
    return bar + text


def _is_project(relocation: Relocation, source: NoteInfo, project: str, row: int) -> bool:
    """Whether the link's `project::` names the project of the note it leads to."""
    return relocation.note(row)[0].project.casefold() == project.casefold()


def _names(target: str, before: NoteInfo, after: NoteInfo, folder: str) -> Iterator[str]:
    """Yield the possible names of a note in a link, names in the form of the old one first.

    target: the old target of the link.
    before, after: the linked note before and after the move.
    folder: the folder of the note with the link, after the move.
    """
    has_extension = target.casefold().endswith((".md", ".markdown"))
    if has_extension:
        path = after.path
    else:
        path = stem(after.path)
    parts = path.split("/")
    # `c`, `b/c` and `a/b/c` for the path `a/b/c`.
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
    # The slash tells a note at the root from one of the same name beside the link.
    yield f"/{path}"
    yield after.title
    yield after.permalink
    yield after.id


def _is_permalink(target: str, note: NoteInfo) -> bool:
    """Whether the target of a link is the permalink of a note, with or without its project."""
    front = f"{lead(note.project)}/"
    is_path = target in (note.path, stem(note.path))
    return not is_path and target in (note.permalink, note.permalink.removeprefix(front))


def _new_destination(
    relocation: Relocation, source: NoteInfo, link: WrittenLink, row: int
) -> str | None:
    """Return a new destination for a Markdown link, with which it leads to the note `row`.

    The destination is relative, unless the old one was a path from the root. None if no destination
    leads to the note.
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
    """Return a path as the destination of a Markdown link, encoded as the old one was.

    The old one may be in angle brackets, `<my plan.md>`, or percent-encoded, `my%20plan.md`.
    """
    if link.raw.startswith("<"):
        text = "".join(f"%{ord(sign):02X}" if sign in "<>%#" else sign for sign in path)
        return f"<{text}{link.rest}>"
    old_path = link.raw.partition("#")[0]
    encodes_all_signs = old_path.isascii() and "%" in old_path and not link.target.isascii()
    if encodes_all_signs:
        return quote(path, safe=_UNENCODED) + link.rest
    return markdown_destination(path) + link.rest
