"""What is wrong with a home, and mending what loses nothing (contract 001, 16)."""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commonplace.engine import changing
from commonplace.engine.core import NOT_UTF8, Core
from commonplace.engine.stores import FOLDER, absolute
from commonplace.errors import CommonplaceError, StorageError
from commonplace.index import database, lookup, places
from commonplace.note.frontmatter import REMOVE
from commonplace.note.reminder import CATEGORY, Reminder
from commonplace.query import Query
from commonplace.store.atomic import reason
from commonplace.store.layout import SKIPPED_FOLDERS, TEMP_PREFIX
from commonplace.store.path_guard import open_folder

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory

_TEMP = re.compile(re.escape(TEMP_PREFIX) + r"(\d+)-")
_HOME_TEMP = re.compile(
    r"\.(?:(?:memory|pending(?:\.[a-z0-9._-]+)?)\.md-(?=\d+-[0-9a-f]{8})|config\.yaml-)(\d+)(?:-[0-9a-f]{8})?"
)
"""What is written in the home itself before it takes the place of the list or configuration it is named after."""
_LEFT = "left behind by a program that ended"
_WARNING_LEVELS = {"bad_frontmatter": "warning", "category_differs": "info", "not_utf8": "warning"}


@dataclass(slots=True)
class Finding:
    """`level` is error, warning or info; `path` as `memory log` shows it; `fix` names a safe repair, "" = none."""

    level: str
    code: str
    path: str
    text: str
    fix: str = ""
    fixed: bool = False


def examine(memory: Memory) -> list[Finding]:
    """Everything worth knowing, errors first. Changes nothing but the index."""
    core = memory._core
    with core.guard:
        found = [*_unfinished(core), *_index(core)]
        try:
            found += _notes(memory)
        except sqlite3.Error as error:
            if not database.is_corrupt(error):
                raise StorageError("the index", database.plain(error)) from None
            core.rebuild()  # what the notes say can only be seen with an index
            found = [*_unfinished(core), _damaged(), *_notes(memory)]
        found += [*_config(core), *_lock(core), *_temps(core), *_permissions(core), *_graph_files(core)]
    order = ("error", "warning", "info")
    return sorted(found, key=lambda each: (order.index(each.level), each.code, each.path))


def _notes(memory: Memory) -> list[Finding]:
    """What only the index can tell."""
    memory._core.fresh()
    found = [*_unreadable(memory._core), *_warned(memory), *_duplicates(memory), *_links(memory)]
    return [*found, *_reminders(memory)]


def _unfinished(core: Core) -> list[Finding]:
    return [
        Finding("error", "unfinished_write", os.path.basename(record),
                "a change was interrupted and could not be finished; its files may be out of reach", "finish it")
        for record in core.home.set_aside()
    ]  # fmt: skip


def _index(core: Core) -> list[Finding]:
    """Damage in the index itself; being behind the disk is no finding, every call catches up by itself."""
    return [] if places.is_sound(core.db) else [_damaged()]


def _damaged() -> Finding:
    text = "the index is damaged"
    return Finding("error", "index_stale", ".commonplace/index.db", text, "rebuild it from the notes")


def _config(core: Core) -> list[Finding]:
    name = core.settings.file.name
    return [Finding("warning", "bad_config", name, warning) for warning in core.settings.warnings]


def _graph_files(core: Core) -> list[Finding]:
    """What is wrong with the graph file of the configuration, and with those that are projects."""
    places = [store.root for store in core.stores.values() if store.kind != FOLDER and os.path.exists(store.root)]
    if core.settings.graph_file:
        places.append(str(absolute(core.settings.graph_file)))
    if not places:
        return []
    from commonplace.store.inplace.graph_file import GraphStore

    found = []
    for place in dict.fromkeys(places):
        name = os.path.basename(place)
        graph = GraphStore(name, place, logs=False)
        try:
            graph.fresh()
        except CommonplaceError as error:
            found.append(Finding("error", "unreadable", name, str(error)))
        found += [Finding("warning", "unreadable", name, text) for text in graph.warnings()]
    return found


def _unreadable(core: Core) -> list[Finding]:
    found = []
    for (project, path), why in sorted(core.unreadable.items()):
        code = "bad_frontmatter" if why.startswith("bad_frontmatter") else "unreadable"
        text = why.partition(": ")[2] or why
        found.append(Finding("error", code, f"{project}/{path}", f"{text}; it is left out until it is mended"))
    for name, store in core.stores.items():
        is_folder = store.kind == FOLDER
        if name in core.layout.built_in() or (os.path.isdir(store.root) if is_folder else os.path.exists(store.root)):
            continue
        what = "folder" if is_folder else "file"
        found.append(Finding("error", "broken_store", name, f"the project's {what} is missing"))
    return found


def _warned(memory: Memory) -> list[Finding]:
    """What reading a note noticed, of the notes the caller sees."""
    db, found = memory._core.db, []
    for project, path, warnings in lookup.warnings(db):
        info = lookup.get(db, project, path)
        if info is None or not memory.sees(info.scope):
            continue
        for warning in warnings:
            code, _, text = warning.partition(": ")
            if code not in _WARNING_LEVELS:
                code, text = "bad_frontmatter", warning
            found.append(Finding(_WARNING_LEVELS[code], code if code != "not_utf8" else "unreadable",
                                 f"{project}/{path}", text or NOT_UTF8))  # fmt: skip
    return found


def _duplicates(memory: Memory) -> list[Finding]:
    found = []
    for infos in lookup.duplicates(memory._core.db).values():
        seen = [info for info in infos if memory.sees(info.scope)]
        if len(seen) > 1:
            text = f"id {seen[0].id} is used by another note too"
            found += [Finding("error", "duplicate_id", f"{info.project}/{info.path}", text) for info in seen]
    return found


def _links(memory: Memory) -> list[Finding]:
    """Ids in the links of memories that no memory has, and contents edited by hand."""
    import hashlib

    core = memory._core
    infos, _ = memory.list(Query(projects=("categories",)), limit=0, order="path")
    known = {info.id for info in infos}
    known |= {str(each) for info in infos for each in info.header.get("merged") or ()}
    found = []
    for info in infos:
        place = f"categories/{info.path}"
        for link in info.links:
            # For an agent a link to a note it may not see looks the same: only the owner is told.
            if memory.agent is None and link not in known:
                text = f"links to {link}, which is gone"
                found.append(Finding("warning", "dangling_link", place, text, "remove the link"))
        wanted = info.header.get("content_hash")
        if wanted:
            file = core.store("categories").read(info.path)
            note = core.note_of("categories", info.path, file)
            if note is not None and hashlib.sha256(note.content.encode()).hexdigest() != wanted:
                found.append(Finding("info", "hash_differs", place, "edited by hand"))
    return found


def _reminders(memory: Memory) -> list[Finding]:
    """Reminders that will not fire, though somebody gave them a time."""
    infos, _ = memory.list(Query(projects=("categories",), category=CATEGORY), limit=0, order="path")
    zone, now = memory.settings.reading_zone, memory.clock()
    return [
        Finding("warning", "bad_frontmatter", f"categories/{info.path}", why)
        for info in infos
        for why in Reminder.of(info.header).complaints(now, zone, locked=info.locked)
    ]


def _lock(core: Core) -> list[Finding]:
    """The lock file of a daemon that was killed: it still names the process, but nobody holds it."""
    place = core.layout.daemon_lock
    try:
        with open(place, encoding="utf-8", errors="replace") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            pid = lock.read(20).strip()
    except (BlockingIOError, FileNotFoundError):
        return []
    except OSError as error:
        return [Finding("warning", "stale_lock", place.name, f"it cannot be read: {reason(error)}")]
    if not pid:
        return []
    text = f"left behind by a daemon that was killed (process {pid}); the next one starts all the same"
    return [Finding("warning", "stale_lock", place.name, text, "empty it")]


def _temps(core: Core) -> list[Finding]:
    """Temporary files of processes that are no more: in the projects, and beside the files of the home."""
    found = []
    for name in sorted(os.listdir(core.layout.root)):
        match = _HOME_TEMP.fullmatch(name)
        if match and not _alive(int(match[1])):
            found.append(Finding("warning", "stale_temp", name, _LEFT, "remove it"))
    for name, store in core.stores.items():
        for folder, folders, files in os.walk(store.root):
            folders[:] = [each for each in folders if not each.startswith(".") and each not in SKIPPED_FOLDERS]
            for each in files:
                match = _TEMP.match(each)
                if match and not _alive(int(match[1])):
                    path = os.path.relpath(os.path.join(folder, each), store.root)
                    found.append(Finding("warning", "stale_temp", f"{name}/{path}", _LEFT, "remove it"))
    return found


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _permissions(core: Core) -> list[Finding]:
    mode = stat.S_IMODE(os.stat(core.layout.root).st_mode)
    if mode & 0o077 == 0:
        return []
    return [Finding("warning", "permissions", ".", f"others can read the home (mode {mode:o})", "set its mode to 700")]


def repair(memory: Memory, findings: list[Finding]) -> None:
    """Carry out the safe repairs of these findings and mark them `fixed`. Raises StorageError."""
    core = memory._core
    with core.writing():
        for finding in findings:
            if finding.fix:
                _REPAIRS[finding.code](memory, finding)
                finding.fixed = True


def _finish_write(memory: Memory, finding: Finding) -> None:
    memory._core.home.retry(str(memory._core.layout.private / finding.path))


def _rebuild_index(memory: Memory, finding: Finding) -> None:
    memory._core.rebuild()
    memory._core.fresh()


def _remove_link(memory: Memory, finding: Finding) -> None:
    """Drop every link of this note that leads nowhere."""
    core = memory._core
    path = finding.path.removeprefix("categories/")
    info = lookup.get(core.db, "categories", path)
    if info is None:
        return
    gone = finding.text.removeprefix("links to ").partition(",")[0]
    if gone not in info.links:
        return
    file, text = changing.editable(memory, info)
    kept = [link for link in info.links if link != gone]
    step = changing.key_step(memory, info, file, text, {"links": kept or REMOVE})
    core.commit("unlink", [step], ("categories", path), memory.agent, memory.face)


def _empty_lock(memory: Memory, finding: Finding) -> None:
    try:
        with open(memory._core.layout.daemon_lock, "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.truncate(0)
    except (BlockingIOError, FileNotFoundError):
        return  # a daemon has started, or somebody removed it
    except OSError as error:
        raise StorageError(finding.path, reason(error)) from None


def _remove_temp(memory: Memory, finding: Finding) -> None:
    project, inside, path = finding.path.partition("/")
    try:
        if not inside:
            (memory._core.layout.root / finding.path).unlink(missing_ok=True)
            return
        store = memory._core.store(project)
        with open_folder(store.root, path.rpartition("/")[0], project) as folder:
            os.unlink(path.rpartition("/")[2], dir_fd=folder.fd)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(finding.path, reason(error)) from None


def _close_home(memory: Memory, finding: Finding) -> None:
    os.chmod(memory._core.layout.root, 0o700)


_REPAIRS = {
    "unfinished_write": _finish_write,
    "index_stale": _rebuild_index,
    "dangling_link": _remove_link,
    "stale_lock": _empty_lock,
    "stale_temp": _remove_temp,
    "permissions": _close_home,
}
