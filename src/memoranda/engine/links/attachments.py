"""Verbs about files in the folder of a project that are not notes, and about links that lead to no
note.

The verbs list attachments (such as pictures and canvases), symlinks, and files that are left out of
the index. For each link that leads to no note, they give the reason.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

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
    attachments_of_folder,
    inventory_of,
    symlink_at,
)
from memoranda.text.pattern import lazy_pattern

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs

ATTACHMENT = "attachment"
"""The state of a link that leads to a file which is not a note."""
# The beginning of a variable in a template (Templater, Obsidian, shell), which names no file.
_PLACEHOLDER = lazy_pattern(r"\{\{|<%|\$\{")
# How many notes with links to an attachment are listed, and how many are searched for them.
_MAX_LINKING_NOTES = 20
_MAX_SEARCHED_NOTES = 200
# The target of a link `[[target]]`, `[text](<target>)` or `[text](target)`.
_LINK_TARGET = re.compile(r"\[\[([^\[\]\n|#]+)|\]\(<([^<>\n]+)>|\]\(([^\s()<>]+)")
# A larger canvas is not read.
_MAX_CANVAS_BYTES = 4 << 20


@dataclass(slots=True)
class AttachedFile:
    """A file that is not a note.

    project, path: the project of the file, and its path in the project.
    kind: the kind of file, such as image or canvas.
    size: the size in bytes.
    changed: when the file was last changed, as an ISO 8601 time stamp.
    linked_from: the paths of the notes that link to the file.
    notes: for a canvas, the paths of the files that it shows.
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
    """A link that leads to no note.

    path: the path of the note with the link.
    line: the number of the line with the link.
    target: the text between the brackets.
    state: `unresolved` or `ambiguous`, as the index has it.
    reason: a sentence for people, without its full stop.
    """

    path: str
    line: int
    target: str
    state: str
    reason: str


def vault_of(memory: ReadVerbs, project: str) -> FolderSource | None:
    """Return the source of a project whose folder the user maintains, such as an Obsidian vault.

    None for built-in projects and for graph files. Raises ProjectNotFound, also if the caller may
    not use the project.
    """
    source = memory.engine.source(project)
    if not memory.engine.access_to(source.name).admits(memory.agent):
        raise ProjectNotFound(project, [])
    if isinstance(source, FolderSource) and source.name not in memory.engine.layout.built_in:
        return source
    return None


@verb
def conventions_of(memory: ReadVerbs, project: str) -> Conventions:
    """Return the settings that other programs, such as Obsidian, have for the folder of a project.

    A built-in project has no such settings.
    """
    source = vault_of(memory, project)
    if source is None:
        return Conventions()
    return source.conventions


@verb
def inventory_of_project(memory: ReadVerbs, project: str) -> Inventory:
    """List everything in a project's folder, including attachments and symlinks.

    Raises ProjectNotFound, and InvalidInput for a built-in project.
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
    """Return the files in a folder that are not notes, sorted by path.

    project: the project of the folder.
    folder: the path of the folder in the project; "" means the whole project.
    depth: how many levels of folders to list; 1 means only the folder itself.
    glob: a pattern that the file's name must match, such as `*.png`; None for all files.
    """
    source = vault_of(memory, project)
    if source is None:
        return []
    if depth > 1:
        attachments = inventory_of(source, folder).attachments
    else:
        attachments = attachments_of_folder(source, folder)
    folder_level = len(folder.split("/")) if folder else 0
    matching: list[Attachment] = []
    for attachment in attachments:
        is_too_deep = attachment.path.count("/") >= folder_level + depth
        name = posixpath.basename(attachment.path)
        has_such_name = not glob or fnmatch.fnmatch(name, glob)
        if has_such_name and not is_too_deep:
            matching.append(attachment)
    return matching


@verb
def attachment_named(
    memory: ReadVerbs, name: str, project: str | None = None
) -> AttachedFile | None:
    """Return the file with this name that is not a note. None if there is no such file.

    name: a path in the project (`img/plan.png`), the same path after the project's name
        (`vault/img/plan.png`), or only the name of the file (`plan.png`).
    project: the project to look in. None means the default project first, and then all others.
    """
    file_name = name.removeprefix("memory://").strip()
    has_extension = attachment_kind(file_name) != "file" or "." in file_name
    # A name without an extension means a note.
    if not has_extension:
        return None
    first_part, _, rest_of_path = file_name.partition("/")
    for project_name in _projects_to_search(memory, project):
        source = vault_of(memory, project_name)
        if source is None:
            continue
        begins_with_project = first_part.casefold() == source.name.casefold()
        path = rest_of_path if rest_of_path and begins_with_project else file_name
        default_folder = source.conventions.attachments
        attachment = inventory_of(source).attachment(path, usual=default_folder)
        if attachment is not None:
            return _described(memory, source, attachment)
    return None


def _projects_to_search(memory: ReadVerbs, project: str | None) -> list[str]:
    """Return the names of the projects that may have the attachment.

    project: look only in this project. None means the default project first, and then all others
        that the caller may use.
    """
    if project is not None:
        return [project]
    names = [memory.default_project, *memory.engine.sources]
    return [
        name for name in dict.fromkeys(names) if memory.engine.access_to(name).admits(memory.agent)
    ]


def _described(memory: ReadVerbs, source: FolderSource, attachment: Attachment) -> AttachedFile:
    """Complete an attachment with its details and the notes that link to it."""
    changed = stamp(attachment.changed)
    attached = AttachedFile(
        project=source.name,
        path=attachment.path,
        kind=attachment.kind,
        size=attachment.size,
        changed=changed,
    )
    attached.linked_from = _linking(memory, source.name, attachment.path)
    if attachment.path.lower().endswith(".canvas") and attachment.size <= _MAX_CANVAS_BYTES:
        _read_canvas(Path(source.root, attachment.path), attached)
    return attached


def _linking(memory: ReadVerbs, project: str, path: str) -> list[str]:
    """Return the paths of the notes that link to a file by its name.

    Such a link may be `[[img/plan.png]]`, `![[plan.png]]` or `[plan](img/plan.png)`.
    """
    file_name = posixpath.basename(path)
    # A drawing `plan.excalidraw.md` is linked as `plan.excalidraw`.
    name_in_links = re.sub(r"(?i)(\.excalidraw)\.md$", r"\1", file_name)
    infos, _ = memory.index.notes.listing(
        Query(projects=(project,), contains=name_in_links, order="path"),
        viewer=memory.agent,
        limit=_MAX_SEARCHED_NOTES,
    )
    name_pattern = _pattern_of(name_in_links)
    link = re.compile(rf"(?:\[\[|\]\(<?)[^\[\]()<>\n]*?{name_pattern}", re.IGNORECASE)
    linking_paths = []
    for info in infos:
        text = memory.engine.file_of(info).data.decode("utf-8", "replace")
        if link.search(text):
            linking_paths.append(info.path)
    return linking_paths[:_MAX_LINKING_NOTES]


def symlink_to_note(
    memory: ReadVerbs, name: str, project: str | None = None
) -> tuple[str, str] | None:
    """Follow a symlink inside a project to a note. Returns the note's (project, path).

    name: the path of the symlink, with or without `.md`.
    project: the project to look in. None means the default project first, and then all others.

    None if the path is not a symlink, or if the symlink leads out of the project.
    """
    for project_name in _projects_to_search(memory, project):
        source = vault_of(memory, project_name)
        if source is None:
            continue
        for path in (name, f"{name}.md"):
            leads_out = ".." in path.split("/")
            is_left_out = bool(source.rules.reason(path))
            if leads_out or is_left_out or not Path(source.root, path).is_symlink():
                continue
            # This symlink is meant, even if others have the same name in other projects
            symlink = symlink_at(source, path)
            if not symlink.is_inside:
                return None
            return source.name, symlink.target
    return None


def with_attachments_marked(memory: ReadVerbs, info: NoteInfo, edges: Sequence[Edge]) -> list[Edge]:
    """Return the links of a note. A link to a file that is not a note gets the state ATTACHMENT.

    info: the note.
    edges: its links, in both directions.
    """
    source = vault_of(memory, info.project)
    # Listing the files takes time, so it is only done if a link may lead to a file.
    if source is None or not any(_may_lead_to_file(edge) for edge in edges):
        return [*edges]

    inventory = inventory_of(source)
    default_folder = source.conventions.attachments
    folder = posixpath.dirname(info.path)
    marked_edges: list[Edge] = []
    for edge in edges:
        if _may_lead_to_file(edge) and inventory.attachment(edge.target, folder, default_folder):
            edge = replace(edge, state=ATTACHMENT)
        marked_edges.append(edge)
    return marked_edges


def files_shown_in(memory: ReadVerbs, project: str, texts: Iterable[str]) -> list[str]:
    """Return the paths of the files that texts of a project embed or link to, sorted.

    Only files that are not notes count, such as pictures. Every file with the name in the link
    counts, whatever its folder is.

    project: the project of the texts, in which the files are.
    texts: the texts of notes.
    """
    source = memory.engine.source(project)
    targets = {target for text in texts for target in chain(*_LINK_TARGET.findall(text)) if target}
    names = {_file_name_in_link(target) for target in targets}
    # Listing the files takes time, so it is only done if a link may lead to a file.
    if not isinstance(source, FolderSource) or not any(map(_may_be_file, names)):
        return []
    return [
        attachment.path
        for attachment in inventory_of(source).attachments
        if without_case(posixpath.basename(attachment.path)) in names
    ]


def _file_name_in_link(target: str) -> str:
    """Return the name of the file that a link leads to, without case: `img/Plan%20B.pdf` → `plan b.pdf`."""
    return without_case(unquote(posixpath.basename(target.strip())))


def _may_lead_to_file(edge: Edge) -> bool:
    """Whether a link of a note may lead to a file that is not a note."""
    return edge.direction == "out" and edge.note is None and _may_be_file(edge.target)


@verb
def unresolved_links(memory: ReadVerbs, project: str) -> list[UnresolvedLink]:
    """Return the links in a project's notes that lead to no note and to no other file.

    They are sorted by path and line. Each has a reason.
    """
    memory.engine.fresh()
    source = vault_of(memory, project)
    name = memory.engine.source(project).name
    # Only a folder that people keep themselves has other files.
    inventory = inventory_of(source) if source is not None else Inventory()
    reasons = _Reasons(source, inventory)
    links: list[UnresolvedLink] = []
    for info in memory.index.notes.below(name, folder=""):
        if not memory.sees(info.scope):
            continue
        for edge in memory.index.links.outgoing(info, memory.agent):
            if edge.state == RESOLVED or reasons.is_attachment(info, edge):
                continue
            reason = reasons.reason(info, edge)
            links.append(
                UnresolvedLink(
                    path=info.path,
                    line=edge.line,
                    target=edge.target,
                    state=edge.state,
                    reason=reason,
                )
            )
    links.sort(key=lambda link: (link.path, link.line))
    return links


class _Reasons:
    """Gives the reasons why links of one project lead nowhere.

    source: the folder of the project. None if people do not keep it themselves.
    """

    def __init__(self, source: FolderSource | None, inventory: Inventory):
        self._source = source
        self._inventory = inventory
        self._symlinks = {
            without_case(_name_in_link(link.path)): link for link in inventory.symlinks
        }

    def is_attachment(self, info: NoteInfo, edge: Edge) -> bool:
        """Whether a link leads to a file that is not a note.

        info: the note with the link.
        edge: the link.
        """
        if self._source is None or not _may_be_file(edge.target):
            return False
        folder = posixpath.dirname(info.path)
        attachment_folder = self._source.conventions.attachments
        return self._inventory.attachment(edge.target, folder, attachment_folder) is not None

    def reason(self, info: NoteInfo, edge: Edge) -> str:
        """Return the reason why a link leads nowhere, as one sentence without its full stop.

        info: the note with the link.
        edge: the link.
        """
        if edge.state == AMBIGUOUS:
            return "several notes have this name; write the folder in front of it"
        if _PLACEHOLDER.search(edge.target):
            return "it is a placeholder of a template"
        path = root_path(edge.target, posixpath.dirname(info.path))
        if path is None:
            return "it leads out of the folder"
        why_left_out = self._why_left_out(path)
        if why_left_out:
            return why_left_out
        symlink = self._symlinks.get(without_case(_name_in_link(path)))
        if symlink is not None:
            return f"{symlink.path} is a symlink to {symlink.target}"
        if _may_be_file(edge.target):
            return "there is no such file"
        return "no note has this name yet"

    def _why_left_out(self, path: str) -> str:
        """Return the reason why the file that a link names is left out of the project.

        Empty if it is not left out.
        """
        if self._source is None:
            return ""
        note_path = path
        if not self._source.has_note_name(path):
            note_path = f"{path}.md"
        reason = self._source.rules.reason(note_path)
        if reason and Path(self._source.root, note_path).exists():
            return f"{note_path} is left out by {reason}"

        is_bare_name = "/" not in path
        if not is_bare_name:
            return ""
        # A bare name may mean a note in any folder, so look in the folders that are left out.
        for left_out in self._inventory.left_out:
            folder = Path(self._source.root, left_out.path)
            if folder.is_dir() and any(folder.rglob(f"{_escape(path)}.md")):
                return f"it is in {left_out.path}, which is left out by {left_out.reason}"
        return ""


def _read_canvas(file: Path, attached: AttachedFile) -> None:
    """Set `notes` and `texts` of `attached` from an Obsidian canvas (JSON Canvas 1.0).

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


def _name_in_link(path: str) -> str:
    """Return a path as links write it: composed (NFC) and without `.md`."""
    return unicodedata.normalize("NFC", path).removesuffix(".md")


def _escape(name: str) -> str:
    """Escape a name for a glob: `a[1]` becomes `a[[]1]`."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _pattern_of(name: str) -> str:
    """Return a regular expression for a name in a link, where a space may be written as `%20`."""
    return re.escape(name).replace(r"\ ", "(?: |%20)")
