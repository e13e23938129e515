"""Find the links that a move would break, and rewrite them so that they lead to the same notes.

A rewritten link keeps its form: a name is replaced by a name, a path by a path, and a relative path
by a relative path. Its heading and its shown text stay, and so does every other byte of the note.

In `[[Plan#Costs|our costs]]`, the inside is `Plan#Costs|our costs`, the target is `Plan`, and the
rest is `#Costs`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import quote

from memoranda.engine.session import HomeSession
from memoranda.engine.transaction import Transaction, check_access
from memoranda.engine.writing import editable, follow_content
from memoranda.errors import MemorandaError
from memoranda.index.link_queries import MovedNote, Relocation
from memoranda.index.resolve import LinkText
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

# Signs that would end a wikilink, or divide its inside.
_NOT_IN_BRACKETS = frozenset("[]|#\n\r")
# Characters that are not encoded in a Markdown destination, in addition to letters and digits.
_UNENCODED = "/!$&'*+,;=:@~-._"


@dataclass(slots=True)
class NewText:
    """A note with rewritten links.

    info: the note.
    old: the file as it is.
    data: the new bytes.
    is_moved: whether the note itself moves. Then the move writes it.
    """

    info: NoteInfo
    old: File
    data: bytes
    is_moved: bool = False


@dataclass(slots=True)
class Relinking:
    """The changes of links that a move requires.

    texts: the notes with new texts, by row. Notes that move can be among them.
    updated: the names of the notes whose links are rewritten.
    broken: the names of the notes in which a broken link remains.

    A name is the path for a note of the same project, and the permalink for another note. Replies
    show these names.
    """

    texts: dict[int, NewText] = field(default_factory=dict)
    updated: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def moved_note(info: NoteInfo, path: str, permalink: str | None = None) -> MovedNote:
    """Return a note before and after a move to `path`.

    permalink: the permalink after the move. None means the permalink in the header of the note or,
        without one, the permalink that is made from the new path.
    """
    title = info.title
    has_title_of_file = title == _file_title(info.path) and not info.header.get("title")
    # The title of a memory is its first line, even if its file has the same name.
    if has_title_of_file and info.project not in MEMORY_PROJECTS:
        title = _file_title(path)
    if permalink is None:
        own_permalink = info.header.get("permalink")
        if own_permalink:
            permalink = info.permalink
        else:
            permalink = links.permalink_for(info.project, path)
    return MovedNote(info, replace(info, path=path, title=title, permalink=permalink))


def _file_title(path: str) -> str:
    """Return the title that a note has from its file name: `c` for `a/b/c.md`."""
    return posixpath.splitext(posixpath.basename(path))[0]


def put_texts(transaction: Transaction, links: Relinking) -> None:
    """Add steps that write the notes with rewritten links.

    Notes that move themselves are left out, because the move writes them.
    """
    for text in links.texts.values():
        if not text.is_moved:
            info = text.info
            transaction.put(info.project, info.path, text.data, old=text.old, scope=info.scope)


def relinking(
    session: HomeSession, moved: Sequence[MovedNote], *, update: bool = True
) -> Relinking:
    """Return how links must change so that a move does not break them.

    moved: the notes that move, as they are before and after the move.
    update: whether to rewrite links. If False, all notes with affected links are `broken`.
    """
    relocation = session.index.links.relocation(moved, session.agent)
    project = moved[0].before.project if moved else ""
    paths = {move.before.row: move.after.path for move in moved}
    result = Relinking()
    for source in relocation.sources():
        # The caller knows the notes of the project by their new paths, and others by permalinks,
        # which also tell the project.
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
    """Rewrite links such as `[[Plan#Costs]]` after an edit that renames a heading or block of a
    note.

    info: the note.
    before: its text before the edit.
    after: its text after the edit.

    Returns the new text of this note, with its own links rewritten, and the changes in other notes.
    """
    result = Relinking()
    # Most edits change no heading and no block. This is a fast test.
    if not changed_anchors(before, after):
        return after, result
    new_names = renamed(before, after)
    if not new_names:
        return after, result

    relocation = session.index.links.relocation(moved=(), viewer=session.agent)
    own_text = _with_anchors(relocation, info, after, info.row, new_names)

    edges = session.index.links.incoming(info, session.agent)
    linking_notes = {edge.note.row: edge.note for edge in edges if edge.note is not None}
    # The links of the note to itself are in `own_text`.
    linking_notes.pop(info.row, None)
    for source in linking_notes.values():
        _relink_source(
            session,
            relocation,
            source,
            target=info,
            new_names=new_names,
            result=result,
        )
    result.updated.sort()
    result.broken.sort()
    return own_text, result


def _may_change(session: HomeSession, note: NoteInfo) -> bool:
    """Whether a note is not locked, and in a project that the caller may not only read."""
    try:
        editable(session, note)
        check_access(session, note.project, [note.path])
    except MemorandaError:
        return False
    return True


def _relink_source(
    session: HomeSession,
    relocation: Relocation,
    source: NoteInfo,
    *,
    target: NoteInfo,
    new_names: Mapping[Anchor, str],
    result: Relinking,
) -> None:
    """Rewrite the links of a note to renamed parts of another note, and add its text to `result`.

    relocation: tells where links lead.
    source: the note with the links.
    target: the note whose headings or blocks were renamed.
    new_names: the new name of each renamed heading or block.
    result: the changes of links so far.
    """
    file = session.engine.file_of(source)
    text = file.data.decode("utf-8", "surrogateescape")
    edited = _with_anchors(relocation, source, text, target.row, new_names)
    if edited == text:
        return
    name = source.path if source.project == target.project else source.permalink
    if not _may_change(session, source):
        result.broken.append(name)
        return
    edited = follow_content(session, source, text, edited)
    result.texts[source.row] = NewText(source, file, edited.encode("utf-8", "surrogateescape"))
    result.updated.append(name)


class _PlacedLink(NamedTuple):
    """A link, and its place in the text of a note.

    line_number: the number of its line, from 1.
    is_in_header: whether the line is in the YAML header.
    """

    line_number: int
    link: WrittenLink
    is_in_header: bool


def _all_links(text: str) -> list[_PlacedLink]:
    """Return the links in the text of a note, then the links in its header."""
    parts = split(text)
    in_text = [
        _PlacedLink(number, link, is_in_header=False)
        for number, link in link_places(text, parts.body_at)
    ]
    in_header = [
        _PlacedLink(number, link, is_in_header=True)
        for _, number, link in header_links(parts.yaml or "")
    ]
    return in_text + in_header


class _NewInsides:
    """The links of a note that have to change, each with its new text between the brackets.

    `text_with_them` puts them into the text.
    """

    def __init__(self, text: str):
        self.lines = text.split("\n")
        # By line number, the new inside of each link by the old one.
        self._by_line: dict[int, dict[str, str]] = {}

    def has_line(self, number: int) -> bool:
        """Whether the text has a line with this number."""
        return number <= len(self.lines)

    def put(self, placed: _PlacedLink, inside: str) -> None:
        """Record the new inside of a link."""
        self._by_line.setdefault(placed.line_number, {})[placed.link.raw] = inside

    def text_with_them(self) -> str:
        """Return the text with the new insides."""
        lines = [*self.lines]
        for number, new_insides in self._by_line.items():
            lines[number - 1] = _with_new_links(lines[number - 1], new_insides)
        return "\n".join(lines)


def _with_anchors(
    relocation: Relocation, source: NoteInfo, text: str, row: int, new_names: Mapping[Anchor, str]
) -> str:
    """Return a note's text with new names in its links to renamed headings or blocks.

    relocation: tells where links lead.
    source: the note with the links.
    text: the text of `source`.
    row: the row of the note whose headings or blocks were renamed. It may be `source` itself.
    new_names: the new name of each renamed heading or block.
    """
    new_insides = _NewInsides(text)
    for placed in _all_links(text):
        link = placed.link
        new_rest = None
        if link.rest:
            new_rest = renamed_rest(link.rest, new_names, is_markdown=link.is_markdown)
        if new_rest is None or not new_insides.has_line(placed.line_number):
            continue
        # In a link to a note with the title `C# notes`, the rest belongs to the title.
        is_whole = relocation.is_whole(source, LinkText(link.target, link.project, link.rest))
        if not is_whole and relocation.leads(source, link.target, link.project, row):
            new_insides.put(placed, link.raw.replace(link.rest, new_rest, 1))

    edited = new_insides.text_with_them()
    if source.row == row:
        # Links such as `[[#Costs]]` name no note, and lead to a part of the note that they are in.
        edited = with_own_anchors(edited, split(text).body_at, new_names)
    return edited


def _new_text(
    session: HomeSession, relocation: Relocation, source: NoteInfo, *, update: bool
) -> tuple[NewText | None, bool]:
    """Return a note with its broken links rewritten, and whether a broken link remains.

    The note is None if no link can be rewritten, or if the caller may not change the note.

    relocation: tells where links lead before and after the move.
    source: the note with the links.
    update: whether links may be rewritten.
    """
    file = session.engine.file_of(source)
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return None, True
    edited, has_broken_link = _with_links_updated(relocation, source, text)
    if edited == text:
        return None, has_broken_link
    if not update or not _may_change(session, source):
        return None, True
    edited = follow_content(session, source, text, edited)
    return NewText(source, file, edited.encode()), has_broken_link


def _with_links_updated(relocation: Relocation, source: NoteInfo, text: str) -> tuple[str, bool]:
    """Return the text of a note with its broken links rewritten, and whether a broken link remains.

    relocation: tells where links lead before and after the move.
    source: the note with the links.
    text: the text of `source`.
    """
    new_insides = _NewInsides(text)
    has_broken_link = False
    for placed in _all_links(text):
        link = placed.link
        target_row = relocation.broken_target(
            row=source.row,
            project=source.project,
            path=source.path,
            scope=source.scope,
            link=LinkText(link.target, link.project, link.rest),
            may_be_markdown=link.is_markdown,
        )
        # The move does not break this link.
        if target_row is None:
            continue
        inside = _new_link(relocation, source, link, target_row)
        if inside is None or not new_insides.has_line(placed.line_number):
            has_broken_link = True
            continue
        if placed.is_in_header:
            inside = _quoted_in(new_insides.lines[placed.line_number - 1], link, inside)
        new_insides.put(placed, inside)
    return new_insides.text_with_them(), has_broken_link


def _with_new_links(line: str, new_insides: dict[str, str]) -> str:
    """Return a line with new links. Links inside code stay as they are.

    new_insides: the new insides of the links, by the old insides.
    """
    written_links = links.written_links(line, mask_code(line))
    # The last link is replaced first, so that the positions of the others stay right.
    for link in reversed(written_links):
        if link.raw in new_insides:
            end = link.start + len(link.raw)
            line = line[: link.start] + new_insides[link.raw] + line[end:]
    return line


def _quoted_in(line: str, link: WrittenLink, raw: str) -> str:
    """Return the new inside of a link in a form that fits into the YAML quotes around it.

    line: the line of the header with the old link.
    link: the place of the old link in the line.
    raw: the new inside. It is returned as it is if there are no quotes.
    """
    # An odd number of quotation marks before the link means that it is inside of quotes.
    before = line[: link.start]
    is_in_double_quotes = before.count('"') % 2 == 1
    if is_in_double_quotes:
        return raw.replace("\\", "\\\\").replace('"', '\\"')
    is_in_single_quotes = before.count("'") % 2 == 1
    if is_in_single_quotes:
        return raw.replace("'", "''")
    return raw


def _new_link(relocation: Relocation, source: NoteInfo, link: WrittenLink, row: int) -> str | None:
    """Return a new inside for a link that makes it lead to the note `row`. None if no inside does.

    relocation: tells where links lead before and after the move.
    source: the note with the link.
    link: the link as it is written.
    row: the row of the note to which it must lead.
    """
    if link.is_markdown:
        return _new_destination(relocation, source, link, row)
    if is_page(link.target):
        # An address in running text cannot be replaced by the name of a note.
        return None
    project, _ = parse_link(link.raw)
    if project is not None and not _is_project(relocation, source, project, row):
        project = None
    # After the target, a link may have a rest such as `#Costs`, which stays as it is. But in a link
    # to a note with the title `C# notes`, the rest `# notes` belongs to the title.
    is_whole = relocation.is_whole(source, LinkText(link.target, link.project, link.rest))
    old_name = link.target + link.rest if is_whole else link.target
    kept_rest = "" if is_whole else link_rest(link.raw)

    before, after = relocation.note(row)
    for name in _names(old_name, before, after, relocation.folder_after(source)):
        is_writable = _fits_in_brackets(name, after)
        if is_writable and relocation.leads(source, name, project, row):
            project_prefix = "" if project is None else f"{project}::"
            return f"{project_prefix}{name}{kept_rest}{_display(link.raw)}"
    return None


def _fits_in_brackets(name: str, note: NoteInfo) -> bool:
    """Whether a wikilink can have `name` as its target.

    A `#` would begin a heading, except if the whole name is the title of the note.
    """
    signs = set(name)
    if signs & set("[]|\n\r"):
        return False
    return name == note.title or not _NOT_IN_BRACKETS & signs


def _display(raw: str) -> str:
    """Return the shown text of a link with the bar before it: `|our costs` for `Plan|our costs`.

    In a table, the bar is escaped: `\\|our costs`. The result is "" if the link has no shown text.
    """
    name, bar, text = raw.partition("|")
    if bar and name.endswith("\\"):
        bar = f"\\{bar}"
    return bar + text


def _is_project(relocation: Relocation, source: NoteInfo, project: str, row: int) -> bool:
    """Whether `project::` in a link names the project of the note that the link leads to.

    relocation: tells where links lead before and after the move.
    project: the name before `::`.
    row: the row of the note.
    """
    return relocation.note(row)[0].project.casefold() == project.casefold()


def _names(target: str, before: NoteInfo, after: NoteInfo, folder: str) -> Iterator[str]:
    """Yield names that a link can use for a note, first those that look like the old target.

    target: the old target of the link.
    before: the linked note before the move.
    after: the linked note after the move.
    folder: the folder of the note with the link, after the move.
    """
    has_extension = target.casefold().endswith((".md", ".markdown"))
    path = after.path if has_extension else stem(after.path)
    ends = _ends_of(path)

    if target.startswith(("./", "../")):
        # A path relative to the note with the link.
        relative = posixpath.relpath(path, folder or ".")
        yield relative if relative.startswith("../") else f"./{relative}"
    elif target.startswith("/"):
        # A path from the top folder.
        yield f"/{path}"
    elif _is_permalink(target, before):
        yield _permalink_like(target, before, after)
    elif "/" in target:
        # A path, or the end of one. A longer end stays longer than the name alone.
        if target in (before.path, stem(before.path)):
            yield path
        yield from ends[1:]

    # Any other form, the shortest name first.
    yield from ends
    # With the slash, a note in the top folder is not confused with one beside the link.
    yield f"/{path}"
    yield after.title
    yield after.permalink
    yield after.id


def _ends_of(path: str) -> list[str]:
    """Return the ends of a path, the shortest first: `c`, `b/c` and `a/b/c` for `a/b/c`."""
    parts = path.split("/")
    return ["/".join(parts[-length:]) for length in range(1, len(parts) + 1)]


def _permalink_like(target: str, before: NoteInfo, after: NoteInfo) -> str:
    """Return the permalink of a note after the move, with its project only if `target` had it.

    target: the permalink of the note before the move, with or without the name of its project.
    before: the note before the move.
    after: the note after the move.
    """
    project_prefix = f"{lead(before.project)}/"
    has_project = target.startswith(project_prefix)
    may_have_project = before.permalink.startswith(project_prefix)
    if has_project or not may_have_project:
        return after.permalink
    return after.permalink.removeprefix(project_prefix)


def _is_permalink(target: str, note: NoteInfo) -> bool:
    """Whether a link names a note by its permalink, with or without the name of the project.

    target: the text of the link.
    note: the note that the link leads to.
    """
    # A path is the better reading.
    if target in (note.path, stem(note.path)):
        return False
    project_prefix = f"{lead(note.project)}/"
    return target in (note.permalink, note.permalink.removeprefix(project_prefix))


def _new_destination(
    relocation: Relocation, source: NoteInfo, link: WrittenLink, row: int
) -> str | None:
    """Return a new destination for a Markdown link that makes it lead to the note `row`.

    The destination is relative to the note with the link, unless the old one was a path from the
    top folder. None means that no destination leads to the note.

    relocation: tells where links lead before and after the move.
    source: the note with the link.
    link: the link as it is written.
    row: the row of the note to which it must lead.
    """
    before, after = relocation.note(row)
    relative = posixpath.relpath(after.path, relocation.folder_after(source) or ".")
    # A relative path keeps the `./` at its beginning.
    if link.raw.lstrip("<").startswith("./") and not relative.startswith("../"):
        relative = f"./{relative}"

    # In the top folder, a relative path and a path from the top look the same.
    is_relative = posixpath.join(posixpath.dirname(source.path), link.target) == before.path
    is_from_top = link.target.lstrip("/") == before.path and not is_relative
    if is_from_top:
        slash = "/" if link.target.startswith("/") else ""
        candidates = [f"{slash}{after.path}", relative]
    else:
        candidates = [relative, after.path]

    for candidate in candidates:
        raw = _encoded(candidate, link)
        path, _ = destination_parts(raw)
        if path and relocation.leads(source, path, target_project=None, row=row):
            return raw
    return None


def _encoded(path: str, link: WrittenLink) -> str:
    """Return a path as the destination of a Markdown link, in the form of the old destination.

    The old destination may be in angle brackets, `<my plan.md>`, or percent-encoded,
    `my%20plan.md`.

    link: the link with the old destination.
    """
    if link.raw.startswith("<"):
        # These signs would end the destination, or begin something else in it.
        signs = [f"%{ord(sign):02X}" if sign in "<>%#" else sign for sign in path]
        encoded_path = "".join(signs)
        return f"<{encoded_path}{link.rest}>"
    old_path = link.raw.partition("#")[0]
    encodes_all_signs = old_path.isascii() and "%" in old_path and not link.target.isascii()
    if encodes_all_signs:
        return quote(path, safe=_UNENCODED) + link.rest
    return markdown_destination(path) + link.rest
