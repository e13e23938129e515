"""Write notes as a bundle of the Open Knowledge Format 0.2, and read bundles, with no byte lost.

A bundle is a folder of Markdown files. Their headers say where a text comes from, who confirmed it
and until when it is valid. A note with a header keeps the header; the further keys of the format
come after a comment at its end, and are removed when the bundle is read. A note without a header, or
with one that is not YAML, gets a new header, in which the old one is a text. See docs/moving-in.md.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from memoranda.engine import MemorySession
from memoranda.engine.exchange import Exchange
from memoranda.engine.plain_files import Files
from memoranda.errors import InvalidInput, MemorandaError
from memoranda.index.rows import NoteInfo
from memoranda.note.frontmatter import parse, split
from memoranda.note.model import TRACE_PROJECT
from memoranda.query import Query
from memoranda.sources.base import File
from memoranda.sources.files import reason
from memoranda.text.unicode import flat
from memoranda.transfer.moving import IMPORT, MoveAction, MovePlan, check_folder, files_below

VERSION = "0.2"
# The comment in the header of a document above the keys that we added.
_MARK = "# memoranda: added for the Open Knowledge Format"
# Our own key among these. Its value has whatever else is needed to make the note again (`unpack`).
_META = "memoranda"
_INDEX = "index.md"
_RESERVED = ("index.md", "log.md")
_PLAIN_TYPE = "Note"
_DIFFERS = "another text is there"
_TOO_LARGE = "larger than 64 MB"
# The header of an index is within this number of bytes.
_INDEX_HEAD_BYTES = 200
# Bytes of one document.
_MOST_FILE_BYTES = 64 << 20


class About(NamedTuple):
    """The facts about a note in a bundle (OKF 0.2, 4 and 5). Empty ones are left out.

    type, title: the type and the title of the note.
    project, path: its place in the memory.
    generated, verified: who made and who confirmed the note, and when: `{"by": …, "at": …}`.
    status: `draft`, `stable` or `deprecated`.
    stale_after: the moment until which the note is valid.
    sources: where the note comes from: `{"resource": …}`.
    """

    type: str
    title: str
    project: str
    path: str
    generated: Mapping[str, str]
    verified: Mapping[str, str] | None = None
    status: str = ""
    stale_after: str = ""
    sources: tuple[Mapping[str, str], ...] = ()

    def keys(self) -> dict[str, Any]:
        """Return these facts as keys of a header, without project and path."""
        result: dict[str, Any] = {"type": self.type, "title": self.title}
        result |= {"generated": dict(self.generated)}
        if self.verified:
            result["verified"] = [dict(self.verified)]
        if self.status:
            result["status"] = self.status
        if self.stale_after:
            result["stale_after"] = self.stale_after
        if self.sources:
            result["sources"] = [dict(source) for source in self.sources]
        return result


class Unpacked(NamedTuple):
    """A file of a bundle as it is in a memory.

    project: "" for a file that another program wrote.
    path: its path in the project.
    data: its bytes.
    """

    project: str
    path: str
    data: bytes


def packed(data: bytes, about: About) -> bytes:
    """Turn the file of a note into a document of a bundle. `unpack` returns the same bytes again.

    about: the facts about the note that the document names.
    """
    with suppress(UnicodeDecodeError):
        document = _packed_text(data.decode("utf-8"), about)
        if unpack("", document).data == data and _is_concept(document):
            return document
    # The file is not text, or it would be read in another way.
    return _enclosed("", "", about, {"base64": base64.b64encode(data).decode()})


def _is_concept(document: bytes) -> bool:
    """Whether a document has a header with a type and with our key, as the format demands."""
    yaml = split(document.decode("utf-8")).yaml
    header = _header(yaml) if yaml is not None else None
    return header is not None and _META in header and bool(str(header.get("type") or "").strip())


def _packed_text(text: str, about: About) -> bytes:
    """Turn a note into a document by adding keys to its header.

    If that is impossible, the note gets a new header (`_enclosed`).

    about: the facts about the note.
    """
    parts = split(text)
    has_byte_order_mark = text.startswith("\ufeff")
    if parts.yaml is None or has_byte_order_mark:
        # All of the note becomes the body.
        return _enclosed("", text, about, more_keys={})
    # The head is the header with the lines `---` around it
    head = text[: parts.body_at]
    body = text[parts.body_at :]
    header = _header(parts.yaml)
    above_last_line, _, last_line = head.rstrip("\r\n").rpartition("\n")
    ends_as_usual = last_line.rstrip("\r") == "---" and parts.yaml.endswith("\n")
    if header is None or not ends_as_usual or not _fits(header):
        # Keys cannot be added without a change of the note itself.
        return _enclosed(head, body, about, more_keys={})

    new_keys = {key: value for key, value in about.keys().items() if key not in header}
    new_keys[_META] = {"project": about.project, "path": about.path}
    rows = [_MARK, *(f"{key}: {_flow(value)}" for key, value in new_keys.items())]
    newline = "\r\n" if "\r\n" in head else "\n"
    new_rows = "".join(f"{row}{newline}" for row in rows)
    # The rows go right above the last line of the header, `---`.
    last_line_start = len(above_last_line) + 1
    return (head[:last_line_start] + new_rows + head[last_line_start:] + body).encode()


def unpack(path: str, data: bytes) -> Unpacked:
    """Return the note that a file of a bundle was made from.

    A file that another program wrote stays as it is. A file of ours has our comment in its header.
    Below the comment are the added keys, and the last of them, `memoranda`, has the place of the
    note:

        ---
        title: Plan
        # memoranda: added for the Open Knowledge Format
        type: "Note"
        memoranda: {"project": "main", "path": "plans/Plan.md"}
        ---
        The text of the note.

    In this example the rows were added to the note's own header, so the note is the document
    without them. A note that could not get these rows has another form (`_note_of`).

    path: the path of the file in the bundle.
    data: its bytes.
    """
    foreign = Unpacked("", path, data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return foreign
    parts = split(text)
    if parts.yaml is None or _MARK not in parts.yaml:
        return foreign
    # The added rows go from our comment to the row with the place.
    mark_at = text.index(parts.yaml) + parts.yaml.rindex(_MARK)
    row = re.compile(rf"^{_META}: (.*?)\r?\n", re.M).search(text, mark_at)
    if row is None:
        return foreign
    meta = _meta(row)
    if "path" not in meta:
        return foreign
    without_added_rows = text[:mark_at] + text[row.end() :]
    note_bytes = _note_of(meta, text[parts.body_at :], without_added_rows)
    return Unpacked(str(meta.get("project") or ""), str(meta["path"]), note_bytes)


def _note_of(meta: Mapping[str, Any], body: str, without_added_rows: str) -> bytes:
    """Return the bytes of a note, from whichever of three forms its document has (`packed`).

    - `base64` in our row is the whole file. It is not text, or as text it would be read otherwise.
    - `head` in our row is the header of the note. Nothing could be added to that one, so the document
      has a header of its own.
    - With neither of them, rows were added to the header of the note.

    meta: the values of our row.
    body: the text of the document after its header.
    without_added_rows: the text of the document without the rows that were added.
    """
    if "base64" in meta:
        return base64.b64decode(meta["base64"])
    if "head" in meta:
        return (str(meta["head"]) + body).encode("utf-8", "surrogatepass")
    return without_added_rows.encode()


def _meta(row: re.Match[str]) -> dict[str, Any]:
    """Read the values of our row in a header. Empty if somebody damaged it."""
    try:
        meta = json.loads(row[1])
    except (ValueError, RecursionError):
        return {}
    if isinstance(meta, dict):
        return meta
    return {}


def _enclosed(head: str, body: str, about: About, more_keys: Mapping[str, str]) -> bytes:
    """Turn a note into a document with a new header. The old header is a text in the new one.

    head, body: the old header and the rest of the note.
    about: the facts about the note.
    more_keys: further values of our row, such as a file that is not text as `base64`.
    """
    meta = {"project": about.project, "path": about.path, "head": head, **more_keys}
    keys = about.keys() | {_META: meta}
    rows = ["---", _MARK, *(f"{key}: {_flow(value)}" for key, value in keys.items()), "---", ""]
    return ("\n".join(rows) + body).encode("utf-8", "surrogatepass")


def _flow(value: Any) -> str:
    """Write a value in one line of YAML. JSON is YAML, too."""
    return json.dumps(value, ensure_ascii=True)


def _header(yaml: str) -> dict[str, Any] | None:
    """Read a header. None if it is not valid."""
    try:
        return parse(yaml)
    except ValueError:
        return None


def _fits(header: Mapping[str, Any]) -> bool:
    """Whether keys may be added to a header: its `type` is a text, and our key is not used."""
    kind = header.get("type", _PLAIN_TYPE)
    return isinstance(kind, str) and bool(kind.strip()) and _META not in header


def bundle_path(project: str, path: str, used_paths: set[str]) -> str:
    """Choose the path of a note in a bundle, and add it to `used_paths`.

    Names that the format reserves, such as `index.md`, are avoided.

    used_paths: the paths that are used already, in lower case.
    """
    place = PurePosixPath(path)
    name = place.name
    stem = name.rpartition(".")[0] or name
    if name.lower() in _RESERVED:
        name = f"{stem}-note.md"
    elif not name.lower().endswith(".md"):
        name = f"{name}.md"
    folder = place.parent
    result = str(PurePosixPath(project, folder, name))
    number = 1
    while result.lower() in used_paths:
        number += 1
        result = str(PurePosixPath(project, folder, f"{name.removesuffix('.md')}-{number}.md"))
    used_paths.add(result.lower())
    return result


def about(memory: MemorySession, info: NoteInfo) -> About:
    """Describe a note for a bundle, as the memory knows it."""
    provenance = info.provenance
    time = provenance.time or info.changed
    is_confirmed = provenance.trust == "owner"
    # The format writes the type of a plain note with a capital
    has_plain_type = info.type in ("", "note")
    return About(
        type=_PLAIN_TYPE if has_plain_type else info.type,
        title=info.title,
        project=info.project,
        path=info.path,
        generated={"by": _generator(info), "at": time},
        verified={"by": "human:owner", "at": time} if is_confirmed else None,
        status=_status(info, is_confirmed),
        stale_after=_stale_after(info),
        sources=_sources(info),
    )


def _generator(info: NoteInfo) -> str:
    """Say who made a note: `human:owner`, `process:import`, or an agent as `claude/claude-code`."""
    who = info.provenance.who
    if who == "owner":
        return "human:owner"
    agent = info.provenance.agent
    if agent is not None:
        return f"{agent}/{info.provenance.client or 'unknown'}"
    return f"process:{who}"


def _status(info: NoteInfo, is_confirmed: bool) -> str:
    """Return the status of a note: `draft`, `stable` or `deprecated`.

    is_confirmed: whether the owner wrote or confirmed it.
    """
    if info.phase == "archived":
        return "deprecated"
    return "stable" if is_confirmed else "draft"


def _stale_after(info: NoteInfo) -> str:
    """Return the moment when a note ends. "" if it does not end, or ends with a day."""
    until = info.header.get("valid_until")
    ends = info.expires or (str(until) if until else "")
    return ends if "T" in ends else ""


def _sources(info: NoteInfo) -> tuple[dict[str, str], ...]:
    """Return where a note comes from: its origin, and its file in another program."""
    ref = info.header.get("source_ref")
    places = [info.provenance.origin, ref if isinstance(ref, str) else None]
    return tuple({"resource": place} for place in places if place)


def documents(
    memory: MemorySession, projects: Sequence[str] = ()
) -> Iterator[tuple[str, bytes, NoteInfo]]:
    """Yield the path, the bytes and the note of each file of a bundle.

    projects: the names of projects. Empty means all.
    """
    names = tuple(projects)
    if not names:
        names = tuple(project.name for project in memory.projects if project.name != TRACE_PROJECT)
    infos, _ = memory.list(Query(projects=names, order="path"), limit=0)
    archived_infos, _ = memory.list(Query(projects=names, archived=True, order="path"), limit=0)
    infos_by_row = {info.row: info for info in (*infos, *archived_infos)}
    used_paths: set[str] = set()
    for info in infos_by_row.values():
        path = bundle_path(info.project, info.path, used_paths)
        yield path, packed(_bytes(memory, info), about(memory, info)), info


def _bytes(memory: MemorySession, info: NoteInfo) -> bytes:
    """Return the content of a note's file, or the text of a note without a file."""
    try:
        return Files(memory, info.project).read(info.path).data
    except (MemorandaError, AttributeError, TypeError):
        return memory.text_of(info).encode("utf-8", "surrogatepass")


def write_bundle(memory: MemorySession, folder: Path, projects: Sequence[str] = ()) -> int:
    """Write a bundle into a folder that is empty or does not exist. Returns the number of notes.

    projects: the names of projects. Empty means all.

    Raises InvalidInput for any other folder, StorageError.
    """
    if folder.exists():
        is_empty_folder = folder.is_dir() and not any(folder.iterdir())
        if not is_empty_folder:
            raise InvalidInput(f"{folder} is not empty", "Give a folder that is not there yet.")
    listed: dict[str, list[tuple[str, str]]] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path, data, info in documents(memory, projects):
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            listed.setdefault(info.project, []).append((path, info.title))
        (folder / _INDEX).write_text(_index(listed), "utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot write {folder}: {reason(error)}") from None
    return sum(map(len, listed.values()))


def _index(listed: Mapping[str, Iterable[tuple[str, str]]]) -> str:
    """Return the text of the index of a bundle, with a link to each note.

    listed: project -> (path, title) of each of its notes in the bundle.
    """
    lines = ["---", f'okf_version: "{VERSION}"', "---"]
    for project, rows in listed.items():
        lines += ["", f"# {flat(project)}", ""]
        for path, title in rows:
            name = flat(title).replace("[", "(").replace("]", ")")
            lines.append(f"* [{name}](/{path.replace(' ', '%20')})")
    return "\n".join(lines) + "\n"


def plan_bundle(memory: MemorySession, folder: Path, project: str) -> MovePlan:
    """Plan to import a bundle.

    Notes that were written from a memory return to their places if their project exists. Other
    files go into a folder of `project` with the name of the bundle. An existing file with another
    text stays. Raises WrongStore, ProjectNotFound.
    """
    check_folder(folder, "a bundle")
    exchange = Exchange(memory)
    names = {present_project.name for present_project in memory.projects}
    fallback = memory.project(project).name

    plan = MovePlan(partial(_write, exchange))
    for path, data in _files(folder, plan):
        note = unpack(path, data)
        if not note.project:
            # The file was not written from a memory.
            note = Unpacked(fallback, f"{folder.name}/{note.path}", note.data)
        elif note.project not in names:
            note = Unpacked(fallback, note.path, note.data)
        present_file = _present_file(memory, note)
        if present_file is None:
            plan.items.append(MoveAction(IMPORT, path, len(note.data), note))
        elif present_file.data == note.data:
            plan.unchanged += 1
        else:
            plan.skipped.append((path, _DIFFERS))
    return plan


def _write(exchange: Exchange, items: Sequence[MoveAction]) -> None:
    """Write the files of these items, each into its project."""
    files_by_project: dict[str, list[tuple[str, bytes]]] = {}
    for item in items:
        note: Unpacked = item.content
        files_by_project.setdefault(note.project, []).append((note.path, note.data))
    for project, files in files_by_project.items():
        exchange.add_files(project, files)


def _files(folder: Path, plan: MovePlan) -> Iterator[tuple[str, bytes]]:
    """Yield (path, bytes) of each document in a bundle. An index that we wrote is left out.

    plan: gets the files that cannot be read, as skipped.
    """
    for file in files_below(folder, lambda name: not name.startswith(".")):
        path = file.path
        if file.refused or not path.endswith(".md"):
            continue
        try:
            if file.size > _MOST_FILE_BYTES:
                plan.skipped.append((path, _TOO_LARGE))
                continue
            data = (folder / path).read_bytes()
        except OSError as error:
            plan.skipped.append((path, reason(error)))
            continue
        # Another program may have a note of this name
        is_our_index = path == _INDEX and b"okf_version" in data[:_INDEX_HEAD_BYTES]
        if not is_our_index:
            yield path, data


def _present_file(memory: MemorySession, note: Unpacked) -> File | None:
    """Return the file that is at the place of a note. None if none is there."""
    try:
        return Files(memory, note.project).read(note.path)
    except MemorandaError:
        return None
