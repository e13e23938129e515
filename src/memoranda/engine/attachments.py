"""Verbs about what is in a project's folder beside its notes: attachments, symlinks, what is left
out; and about links that lead to no note, with the reason."""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.clock import stamp
from memoranda.engine.engine import verb
from memoranda.errors import InvalidInput, ProjectNotFound
from memoranda.index.resolve import AMBIGUOUS, RESOLVED, root_path
from memoranda.index.rows import Edge, NoteInfo
from memoranda.note.names import without_case
from memoranda.query import Query
from memoranda.sources.conventions import Conventions as Conventions
from memoranda.sources.folder import FolderSource
from memoranda.sources.inventory import Attachment as Attachment
from memoranda.sources.inventory import Inventory as Inventory
from memoranda.sources.inventory import LeftOut as LeftOut
from memoranda.sources.inventory import (
    attachment_kind,
    inventory_of,
    symlink_at,
)
from memoranda.text.pattern import lazy_pattern

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs

ATTACHMENT = "attachment"
"""The state of a link that leads to a file which is no note."""
# A variable of a template (Templater, Obsidian, shell), which names no file.
_PLACEHOLDER = lazy_pattern(r"\{\{|<%|\$\{")
# Notes named that link to an attachment.
_MOST_LINKING_NOTES = 20
# Bytes of a canvas whose texts are listed.
_MOST_CANVAS_BYTES = 4 << 20


@dataclass(slots=True)
class AttachedFile:
    """A file that is not a note.

    size: in bytes.
    linked_from: the paths of the notes that link to it.
    notes: for a canvas, the paths of the files on it.
    texts: for a canvas, the number of its cards with text.
    """

    project: str
    path: str
    kind: str
    size: int
    changed: str
    linked_from: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    texts: int = 0


@dataclass(slots=True)
class UnresolvedLink:
    """A link that leads to no note: the path of its note, its line, its target, and why."""

    path: str
    line: int
    target: str
    state: str
    reason: str


def vault_of(memory: ReadVerbs, project: str) -> FolderSource | None:
    """The source of a project in a folder that people keep themselves.

    None for other projects.
    """
    source = memory.engine.source(project)
    if not memory.engine.access_to(source.name).admits(memory.agent):
        raise ProjectNotFound(project, [])
    if isinstance(source, FolderSource) and source.name not in memory.engine.layout.built_in:
        return source
    return None


@verb
def conventions_of(memory: ReadVerbs, project: str) -> Conventions:
    """The settings of other programs for the folder of a project.

    Empty for projects of memoranda.
    """
    source = vault_of(memory, project)
    if source is None:
        return Conventions()
    return source.conventions


@verb
def inventory_of_project(memory: ReadVerbs, project: str) -> Inventory:
    """List the contents of a project's folder, attachments and symlinks too.

    Raises ProjectNotFound, and InvalidInput for a project that memoranda keeps itself.
    """
    memory.engine.fresh()
    source = vault_of(memory, project)
    if source is None:
        raise InvalidInput(f"Project {project} is kept by memoranda and holds notes alone.")
    return inventory_of(source)


@verb
def attachments_in(
    memory: ReadVerbs, project: str, folder: str = "", *, depth: int = 1, glob: str | None = None
) -> list[Attachment]:
    """The files below a folder, `depth` levels deep, that are not notes. They are sorted by
    path.
    """
    source = vault_of(memory, project)
    if source is None:
        return []
    attachments = inventory_of(source, folder, is_deep=depth > 1).attachments
    if folder:
        level = len(folder.split("/"))
    else:
        level = 0
    return [
        attachment
        for attachment in attachments
        if attachment.path.count("/") < level + depth
        and (not glob or fnmatch.fnmatch(attachment.path.rpartition("/")[2], glob))
    ]


@verb
def attachment_named(
    memory: ReadVerbs, name: str, project: str | None = None
) -> AttachedFile | None:
    """The file, no note, that `name` means in a project [the default one, then all others]: a
    path in it, or the name of one file alone."""
    plain = name.removeprefix("memory://").strip()
    for candidate in _projects_asked(memory, project):
        source = vault_of(memory, candidate)
        if source is None or (attachment_kind(plain) == "file" and "." not in plain):
            continue
        head, _, rest = plain.partition("/")
        inside = plain
        if rest and head.casefold() == source.name.casefold():
            inside = rest
        usual = source.conventions.attachments
        attachment = inventory_of(source).attachment(inside, usual=usual)
        if attachment is not None:
            return _described(memory, source, attachment)
    return None


def _projects_asked(memory: ReadVerbs, project: str | None) -> list[str]:
    """The names of the projects to look in: `project`, or without it all that the caller may
    use.
    """
    if project is not None:
        return [project]
    names = [memory.default_project, *memory.engine.sources]
    return [
        name for name in dict.fromkeys(names) if memory.engine.access_to(name).admits(memory.agent)
    ]


def _described(memory: ReadVerbs, source: FolderSource, attachment: Attachment) -> AttachedFile:
    changed = stamp(attachment.changed)
    attached = AttachedFile(source.name, attachment.path, attachment.kind, attachment.size, changed)
    attached.linked_from = _linking(memory, source.name, attachment.path)
    if attachment.path.lower().endswith(".canvas") and attachment.size <= _MOST_CANVAS_BYTES:
        _read_canvas(Path(source.root, attachment.path), attached)
    return attached


def _linking(memory: ReadVerbs, project: str, path: str) -> list[str]:
    """The paths of notes whose text has a link with the name of this file."""
    name = posixpath.basename(path)
    # Links leave the `.md` of a drawing out
    short = re.sub(r"(?i)(\.excalidraw)\.md$", r"\1", name)
    infos, _ = memory.index.notes.listing(
        Query(projects=(project,), contains=short, order="path"), viewer=memory.agent, limit=200
    )
    link = re.compile(rf"(?:\[\[|\]\(<?)[^\[\]()<>\n]*?{_pattern_of(short)}", re.IGNORECASE)
    linking = []
    for info in infos:
        if link.search(memory.engine.file_of(info).data.decode("utf-8", "replace")):
            linking.append(info.path)
    return linking[:_MOST_LINKING_NOTES]


def symlink_to_note(
    memory: ReadVerbs, name: str, project: str | None = None
) -> tuple[str, str] | None:
    """Find the note that a symlink inside a project leads to, as (project, path).

    name: the path of the symlink, with or without `.md`.

    Returns None for a path that is not a symlink, and for a symlink that leads outside the
    project.
    """
    for candidate in _projects_asked(memory, project):
        source = vault_of(memory, candidate)
        if source is None:
            continue
        for path in (name, f"{name}.md"):
            if ".." in path.split("/") or source.rules.reason(path):
                continue
            if Path(source.root, path).is_symlink():
                target = symlink_at(source, path)
                if target.is_inside:
                    return source.name, target.target
                return None
    return None


def with_attachments_marked(memory: ReadVerbs, info: NoteInfo, edges: Sequence[Edge]) -> list[Edge]:
    """Copy the edges of a note, and mark those that lead to an existing file that is not a
    note.
    """
    source = vault_of(memory, info.project)
    missing = [
        edge
        for edge in edges
        if edge.direction == "out" and edge.note is None and _may_be_file(edge.target)
    ]
    if source is None or not missing:
        return [*edges]
    inventory = inventory_of(source)
    usual = source.conventions.attachments
    folder = posixpath.dirname(info.path)
    return [
        replace(edge, state=ATTACHMENT)
        if edge in missing and inventory.attachment(edge.target, folder, usual)
        else edge
        for edge in edges
    ]


@verb
def unresolved_links(memory: ReadVerbs, project: str) -> list[UnresolvedLink]:
    """The links of a project's notes that lead to no note and to no other file, by path and
    line, each with the reason."""
    memory.engine.fresh()
    source = vault_of(memory, project)
    name = memory.engine.source(project).name
    inventory = Inventory()
    if source is not None:
        inventory = inventory_of(source)
    reasons = _Reasons(source, inventory)
    links: list[UnresolvedLink] = []
    for info in memory.index.notes.below(name, ""):
        if not memory.sees(info.scope):
            continue
        for edge in memory.index.links.outgoing(info, memory.agent):
            if edge.state == RESOLVED or reasons.is_attachment(info, edge):
                continue
            reason = reasons.reason(info, edge)
            links.append(UnresolvedLink(info.path, edge.line, edge.target, edge.state, reason))
    links.sort(key=lambda link: (link.path, link.line))
    return links


class _Reasons:
    """Why links of one project lead nowhere."""

    def __init__(self, source: FolderSource | None, inventory: Inventory):
        self._source = source
        self._inventory = inventory
        self._symlinks = {without_case(_plain(link.path)): link for link in inventory.symlinks}

    def is_attachment(self, info: NoteInfo, edge: Edge) -> bool:
        """Whether the link leads to a file that is not a note."""
        if self._source is None or not _may_be_file(edge.target):
            return False
        folder = posixpath.dirname(info.path)
        attachment_folder = self._source.conventions.attachments
        return self._inventory.attachment(edge.target, folder, attachment_folder) is not None

    def reason(self, info: NoteInfo, edge: Edge) -> str:
        """The reason in one sentence, without its full stop."""
        if edge.state == AMBIGUOUS:
            return "several notes have this name; write the folder in front of it"
        if _PLACEHOLDER.search(edge.target):
            return "it is a placeholder of a template"
        path = root_path(edge.target, posixpath.dirname(info.path))
        if path is None:
            return "it leads out of the folder"
        left_out = self._left_out(path)
        if left_out:
            return left_out
        symlink = self._symlinks.get(without_case(_plain(path)))
        if symlink is not None:
            return f"{symlink.path} is a symlink to {symlink.target}"
        if _may_be_file(edge.target):
            return "there is no such file"
        return "no note has this name yet"

    def _left_out(self, path: str) -> str:
        if self._source is None:
            return ""
        note = path
        if not self._source.has_note_name(path):
            note = f"{path}.md"
        reason = self._source.rules.reason(note)
        if reason and Path(self._source.root, note).exists():
            return f"{note} is left out by {reason}"
        for hidden in self._inventory.left_out:
            folder = Path(self._source.root, hidden.path)
            if "/" not in path and folder.is_dir() and any(folder.rglob(f"{_escape(path)}.md")):
                return f"it is in {hidden.path}, which is left out by {hidden.reason}"
        return ""


def _read_canvas(file: Path, attached: AttachedFile) -> None:
    """Fill `attached` with the contents of an Obsidian canvas (JSON Canvas 1.0).

    A canvas that cannot be read leaves it unchanged.
    """
    try:
        canvas = json.loads(file.read_text("utf-8"))
        nodes = [node for node in canvas["nodes"] if isinstance(node, dict)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return
    files = [node.get("file") for node in nodes if node.get("type") == "file"]
    attached.notes = sorted({path for path in files if isinstance(path, str)})
    attached.texts = sum(node.get("type") == "text" for node in nodes)


def _may_be_file(target: str) -> bool:
    """Whether a link's target ends like the name of a file that is not a note."""
    name = target.rpartition("/")[2]
    return attachment_kind(name) != "file"


def _plain(path: str) -> str:
    return unicodedata.normalize("NFC", path).removesuffix(".md")


def _escape(name: str) -> str:
    """A name as a glob that means it alone."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _pattern_of(name: str) -> str:
    """A regular expression for a name as links write it, percent-encoded or not."""
    return re.escape(name).replace(r"\ ", "(?: |%20)")
