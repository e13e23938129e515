"""Find faults of a home (`memory doctor`), and repair those that can be repaired without any loss.

A fault is a `Finding`. Each private function below looks for faults of one kind and returns a list,
which is empty if all is well (contract 001, 16).
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from memoranda import former_name
from memoranda.config import absolute, owner_of
from memoranda.engine.access_table import AccessRefused, AccessTable
from memoranda.engine.contents import home_path
from memoranda.engine.embedding import OFF, Embedding
from memoranda.engine.engine import Engine
from memoranda.engine.freshness import NOT_UTF8
from memoranda.engine.history.erase import finish
from memoranda.engine.history.verbs import HistoryVerbs
from memoranda.engine.places import PlaceVerbs
from memoranda.engine.reading import ReadVerbs
from memoranda.engine.writing import links_without, set_keys
from memoranda.errors import MemorandaError, StorageError
from memoranda.index.rows import NoteInfo, is_named_as_copy, original_of
from memoranda.ledger.examination import Damage, DamageKind, mend
from memoranda.ledger.examination import examine as examine_ledger
from memoranda.ledger.ledger import HOME_TEMP
from memoranda.note.model import (
    ARCHIVE_PROJECT,
    BAD_HEADER,
    CATEGORY_DIFFERS,
    CATEGORY_PROJECT,
    MEMORY_PROJECTS,
    MERGE_CONFLICT,
    NOT_UTF8_CODE,
    PARTLY_READ,
    REMINDERS,
    UTF16_CODE,
    warning_parts,
)
from memoranda.note.reminder import Reminder
from memoranda.query import Query
from memoranda.sources.base import sha256
from memoranda.sources.files import is_alive, lock_file, reason
from memoranda.sources.folder import FolderSource
from memoranda.sources.layout import PRIVATE, SKIPPED_FOLDERS, TEMP_PREFIX
from memoranda.sources.path_guard import open_folder
from memoranda.sources.synced_folders import synced_by
from memoranda.sources.walking import walk
from memoranda.text.unicode import sqlite_text

# The name of a temporary file that memoranda wrote. The group is the number of the process.
_TEMP = re.compile(re.escape(TEMP_PREFIX) + r"(\d+)-")
_REBUILD = "rebuild it from the notes"
_SEPARATE = "remove it where it says the same, else give it an id of its own"
# How serious a warning of a note is.
_WARNING_LEVELS = {
    BAD_HEADER: "warning",
    CATEGORY_DIFFERS: "info",
    NOT_UTF8_CODE: "warning",
    UTF16_CODE: "warning",
    PARTLY_READ: "info",
    MERGE_CONFLICT: "warning",
}


# Reading and comparing a note takes a tenth of a millisecond.
_MOST_COMPARED_NOTES = 5_000
_MOST_COMPARED_BYTES = 16 << 20
# How findings name the file of the ledger.
_LEDGER = "ledger.db"
# The fix for each kind of damage to the ledger.
_LEDGER_FIXES = {
    DamageKind.PAGES: "set it aside and begin the history again",
    DamageKind.TEXT: "forget it",
    DamageKind.MISSING_TEXT: "note that it is gone",
    DamageKind.CHANGE: "keep what can be read of it",
    DamageKind.EMPTY: "remove its line",
    DamageKind.LOST: "remove its line",
    DamageKind.VERB: "call it an edit, or an undo",
    # Nothing can be done about it
    DamageKind.GAP: "",
}
_LEDGER_CODES = frozenset(kind.value for kind in DamageKind)


@dataclass(slots=True)
class Finding:
    """A fault of a home, or a fact that its owner should know.

    level: `error`, `warning` or `info`.
    code: the kind of fault, such as `dangling_link`.
    path: the note or file, as `memory log` shows it.
    text: the fault in words.
    fix: the safe repair in words; "" if no safe repair exists.
    fixed: whether `repair` has carried out the fix.
    target: the id of the missing note that a dangling link leads to; "" for other faults.
    """

    level: str
    code: str
    path: str
    text: str
    fix: str = ""
    fixed: bool = False
    target: str = ""


def examine(memory: ReadVerbs) -> list[Finding]:
    """Return all findings about a home, errors first. This changes nothing but the index."""
    engine = memory.engine
    with engine.guard:
        # It is not a fault if the index is behind the disk, because every call brings it up to date.
        findings = [*_history(memory), *_unfinished(engine), *_index_and_notes(memory)]
        name = engine.settings.file.name
        warnings = engine.settings.warnings
        findings += [Finding("warning", "bad_config", name, warning) for warning in warnings]
        findings += _named_model(memory)
        trouble = engine.ledger.trouble()
        if trouble:
            findings.append(_home_trouble(engine, trouble))
        else:
            findings += _lost_changes(memory)
        disk_trouble = memory.disk_trouble
        if disk_trouble:
            findings.append(Finding("warning", "refused_files", _LEDGER, disk_trouble))
        write_trouble = memory.write_trouble
        if write_trouble:
            findings.append(Finding("error", "not_writable", ".", write_trouble))
        findings += _not_taken_over(engine)
        findings += _synced(engine)
        findings += _left_state(engine)
        findings += _leftovers(engine)
        # The program had another name once. Some files from that time may still be there.
        findings += [
            Finding("info", "former_name", path, text)
            for path, text in former_name.left_behind(engine.layout.root)
        ]
        findings += _graph_files(engine)
        findings += _ownership(engine)
    return sorted(findings, key=_order)


def _order(finding: Finding) -> tuple[int, str, str]:
    """Return the sort key of a finding: errors first, then by code and path."""
    level_number = ("error", "warning", "info").index(finding.level)
    return (level_number, finding.code, finding.path)


def _index_and_notes(memory: ReadVerbs) -> list[Finding]:
    """Return findings about the index, and findings about notes that the index knows.

    If the index is too damaged to be read, it is rebuilt. Raises StorageError.
    """
    engine = memory.engine
    damaged_index = Finding(
        level="error",
        code="index_stale",
        path=".memoranda/index.db",
        text="the index is damaged",
        fix=_REBUILD,
    )
    findings = [] if engine.index.is_sound() else [damaged_index]
    try:
        return findings + _notes(memory)
    except sqlite3.Error as error:
        if not engine.index.is_corrupt(error):
            raise StorageError("the index", engine.index.explain(error)) from None
    engine.rebuild_index()
    return [damaged_index, *_notes(memory)]


def _named_model(memory: ReadVerbs) -> list[Finding]:
    """Return a finding if the embedding model that the settings name cannot be used."""
    settings = memory.engine.settings
    is_named = settings.semantic_model or settings.semantic_endpoint
    if not is_named or settings.semantic_model == OFF:
        return []
    trouble = Embedding(memory).trouble
    if not trouble:
        return []
    return [Finding("warning", "bad_config", settings.file.name, trouble)]


def _graph_files(engine: Engine) -> list[Finding]:
    """Return findings about graph files that cannot be read or that have bad lines.

    A graph file has entities that other tools write, too. It may be a project, or be named in the
    settings.
    """
    places = [
        source.root
        for source in engine.sources.values()
        if source.holds_entities and os.path.exists(source.root)
    ]
    if engine.settings.graph_file:
        places.append(str(absolute(engine.settings.graph_file)))
    if not places:
        return []

    # Only homes with a graph file pay for this import.
    from memoranda.sources.graph_file import GraphFileSource

    findings: list[Finding] = []
    for place in dict.fromkeys(places):
        file = os.path.basename(place)
        graph = GraphFileSource(file, place, logs=False)
        try:
            graph.fresh()
        except MemorandaError as error:
            findings.append(Finding("error", "unreadable", file, str(error)))
        findings += [Finding("warning", "unreadable", file, text) for text in graph.warnings()]
    return findings


def _synced(engine: Engine) -> list[Finding]:
    """Return a finding if a sync program copies the ledger and the index to other machines."""
    program = synced_by(engine.layout.private)
    if not program:
        return []
    text = (
        f"{program} holds it: two machines that use it would damage the history; keep it in a folder "
        "of this machine (memory config set storage.state ~/.local/state/memoranda)"
    )
    return [Finding("warning", "synced_home", PRIVATE, text)]


def _left_state(engine: Engine) -> list[Finding]:
    """Return a finding if the home has a private folder in its former place.

    The setting `storage.state` has named another place since.
    """
    layout = engine.layout
    former = layout.root / PRIVATE
    if not layout.is_apart or not former.is_dir():
        return []
    text = (
        f"it is not used any more, as storage.state names {layout.private}; remove it once no other "
        "machine uses it"
    )
    return [Finding("info", "left_state", PRIVATE, text)]


def _not_taken_over(engine: Engine) -> list[Finding]:
    """Return findings about files of an earlier version that cannot be read.

    Their contents belong in the ledger now.
    """
    layout = engine.layout
    # Reading the table takes over the old file of access tokens, if that is possible.
    with suppress(AccessRefused):
        AccessTable(layout.root).all()
    # A ledger that cannot be written could not take the files over.
    if not engine.ledger.database.is_writable:
        return []
    places = (layout.review, layout.requests, layout.access, layout.access_log)
    text = "a version before kept it, and it cannot be taken over: it is damaged; move it away"
    return [
        Finding("error", "not_taken_over", f"{PRIVATE}/{place.name}", text)
        for place in places
        if place.exists()
    ]


def _home_trouble(engine: Engine, trouble: str) -> Finding:
    """Return the finding for a trouble that the ledger reports about itself.

    trouble: the trouble in words, about a lost history or the rights of a role in PostgreSQL.
    """
    if engine.settings.url is None:
        return Finding("warning", "history_lost", ".memoranda/ledger.db", trouble)
    return Finding("warning", "weak_role", engine.settings.space, trouble)


def _history(memory: ReadVerbs) -> list[Finding]:
    """Return findings about damage of the ledger.

    Most of these findings name notes. So an agent is only told about damaged pages of the file.
    """
    has_all_texts = memory.engine.settings.url is None
    try:
        damages = examine_ledger(memory.engine.ledger.history, has_all_texts=has_all_texts)
    except StorageError as error:
        return [Finding("error", DamageKind.PAGES.value, _LEDGER, str(error))]
    findings: list[Finding] = []
    for damage in damages:
        if memory.agent is None or damage.kind is DamageKind.PAGES:
            level = "info" if damage.kind is DamageKind.GAP else "error"
            fix = _LEDGER_FIXES[damage.kind]
            findings.append(
                Finding(
                    level=level,
                    code=damage.kind.value,
                    path=_path_of(damage),
                    text=damage.text,
                    fix=fix,
                )
            )
    return findings


def _lost_changes(memory: ReadVerbs) -> list[Finding]:
    """Return a finding if the ledger lacks changes that wrote notes.

    An older copy of its file may have been put back, or a file beside it was removed. The index
    still has the time of each change that wrote a note, unless it was made after the loss.

    The finding counts notes of all agents, so only the owner is told.
    """
    engine = memory.engine
    # A replica fetches lost changes from its database again.
    if memory.agent is not None or engine.settings.url is not None:
        return []
    times: dict[str, str] = {}
    for project, source in engine.sources.items():
        # In a file used in place, a change writes lines, which are no texts of their own.
        if isinstance(source, FolderSource):
            times |= engine.index.notes.times_written(project)
    history = engine.ledger.history
    try:
        complete_since = history.complete_since
        unknown_texts = [text for text in history.unknown(times) if times[text] > complete_since]
    except StorageError:
        # `_history` tells of a ledger that cannot be read.
        return []
    if not unknown_texts:
        return []

    number = len(unknown_texts)
    notes = "1 note" if number == 1 else f"{number} notes"
    latest = max(times[text] for text in unknown_texts)
    text = (
        f"the changes that wrote {notes}, the latest at {latest}, are not in the history: was an "
        "older ledger.db put back, or a file beside it removed? The notes are whole; put a newer "
        "ledger.db back if a backup has one, else nothing is to be done"
    )
    return [Finding("warning", "history_lost", f"{PRIVATE}/{_LEDGER}", text)]


def _path_of(damage: Damage) -> str:
    """Return the path of a finding about the ledger: `ledger.db/KEY`, or `ledger.db` without a key."""
    if damage.key:
        return f"{_LEDGER}/{damage.key}"
    return _LEDGER


def _mend_ledger(engine: Engine, finding: Finding) -> None:
    """Repair the damage of the ledger that a finding describes.

    finding: a finding of `_history`.
    """
    key = finding.path.removeprefix(_LEDGER).lstrip("/")
    mend(engine.ledger.history, Damage(DamageKind(finding.code), key, finding.text))


def _ownership(engine: Engine) -> list[Finding]:
    """Return findings about the owner and the mode of the files of the home.

    After `sudo memory write`, for example, files belong to another user. Other users may also be
    able to read the home.
    """
    root = engine.layout.root
    status = os.stat(root)
    user = os.geteuid()
    is_root_user = user == 0
    findings: list[Finding] = []
    # The root user can change all files.
    if not is_root_user:
        findings += _files_of_others(engine, user)
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        text = f"others can read the home (mode {mode:o})"
        may_change_mode = is_root_user or status.st_uid == user
        fix = "set its mode to 700" if may_change_mode else ""
        findings.append(Finding(level="warning", code="permissions", path=".", text=text, fix=fix))
    return findings


def _files_of_others(engine: Engine, user: int) -> list[Finding]:
    """Return a finding for each file directly in the home that belongs to another user.

    If the home itself does, there is a finding for the home alone.

    user: the number of the user who runs this process.
    """
    root = engine.layout.root
    if root.stat().st_uid == user:
        places = [*sorted(root.iterdir()), *sorted(engine.layout.private.glob("*"))]
    else:
        places = [root]
    findings: list[Finding] = []
    for place in places:
        status = place.lstat()
        if status.st_uid != user:
            text = (
                f"it belongs to {owner_of(status)}, so you may be unable to change it;"
                f" sudo chown -R {user} {root} gives it back"
            )
            findings.append(Finding("error", "owner", os.path.relpath(place, root), text))
    return findings


def _notes(memory: ReadVerbs) -> list[Finding]:
    """Return findings about notes: unreadable files, warnings from reading, and contradicting
    notes.
    """
    memory.engine.fresh(whole=True)
    return [
        *_unreadable_files(memory),
        *_missing_sources(memory),
        *_reading_warnings(memory),
        *_duplicate_ids(memory),
        *_copies_of_permalinks(memory),
        *_notes_unlike_their_files(memory),
        *_unreferenced_vectors(memory),
        *_memories(memory),
    ]


def _unreadable_files(memory: ReadVerbs) -> list[Finding]:
    """Return a finding for each file that cannot be read as text."""
    findings: list[Finding] = []
    for (project, path), why in sorted(memory.unreadable.items()):
        code, reason = warning_parts(why)
        place = f"{project}/{path}"
        if code:
            text = f"{reason}; it is left out until it is text"
        else:
            text = f"{reason}; it is left out until it changes"
        findings.append(Finding("error", "unreadable", place, text))
    return findings


def _missing_sources(memory: ReadVerbs) -> list[Finding]:
    """Return a finding for each project that the user added and whose folder or file is missing."""
    findings: list[Finding] = []
    for name, source in memory.engine.sources.items():
        # The folder of a built-in project is only made with its first note.
        if name in memory.engine.layout.built_in or not memory.may_use(name):
            continue
        if source.holds_entities:
            kind = "file"
            exists = os.path.exists(source.root)
        else:
            kind = "folder"
            exists = os.path.isdir(source.root)
        if not exists:
            text = f"the project's {kind} is missing"
            findings.append(Finding("error", "broken_store", name, text))
    return findings


def _reading_warnings(memory: ReadVerbs) -> list[Finding]:
    """Return the warnings from reading the notes that this caller may see."""
    notes = memory.index.notes
    findings: list[Finding] = []
    for project, path, warnings in notes.warnings():
        info = notes.get(project, path)
        if info is None or not memory.sees(info.scope):
            continue
        findings += [_reading_warning(project, path, warning) for warning in warnings]
    return findings


def _reading_warning(project: str, path: str, warning: str) -> Finding:
    """Return the finding for one warning about a note.

    warning: a text. It begins with a code if `model.with_code` has added one.
    """
    place = f"{project}/{path}"
    code, text = warning_parts(warning)
    if not code:
        return Finding(_WARNING_LEVELS[BAD_HEADER], BAD_HEADER, place, warning)
    if code == BAD_HEADER and project in MEMORY_PROJECTS:
        text += "; upkeep leaves it alone until that is corrected"
        return Finding("error", code, place, text)
    shown_code = "unreadable" if code in (NOT_UTF8_CODE, UTF16_CODE) else code
    return Finding(_WARNING_LEVELS[code], shown_code, place, text or NOT_UTF8)


def _duplicate_ids(memory: ReadVerbs) -> list[Finding]:
    """Return a finding for each note that has the id of another note.

    Programs that sync folders make such copies. If it is clear which note is the original, the
    finding has a safe repair.
    """
    findings: list[Finding] = []
    for infos in memory.index.notes.duplicates().values():
        visible = [info for info in infos if memory.sees(info.scope)]
        # The caller may not learn of a note that it does not see.
        if len(visible) < 2:
            continue
        original = original_of(visible)
        for info in visible:
            place = f"{info.project}/{info.path}"
            if original is None:
                text = f"id {info.id} is used by another note too"
                findings.append(Finding("error", "duplicate_id", place, text))
            elif info is not original:
                text = f"a copy of {original.path} made by a program that syncs; both have one id"
                findings.append(
                    Finding(
                        level="warning", code="conflict_copy", path=place, text=text, fix=_SEPARATE
                    )
                )
    return findings


def _copies_of_permalinks(memory: ReadVerbs) -> list[Finding]:
    """Return a finding for each copy, made by a program that syncs folders, that has the permalink
    of its original.

    Its notes have no id in their headers. Copies with one id are found by `_duplicate_ids`.
    """
    findings: list[Finding] = []
    for infos in memory.index.notes.sharing_permalinks():
        visible = [info for info in infos if memory.sees(info.scope)]
        for info in visible:
            originals = (
                other_info
                for other_info in visible
                if other_info.id != info.id and is_named_as_copy(info, other_info)
            )
            original = next(originals, None)
            if original is None:
                continue
            text = (
                f"a copy of {original.path} made by a program that syncs; both have the permalink"
                f" {info.permalink}, so no link by it leads anywhere: keep one of them"
            )
            place = f"{info.project}/{info.path}"
            findings.append(Finding("warning", "conflict_copy", place, text))
    return findings


def _notes_unlike_their_files(memory: ReadVerbs) -> list[Finding]:
    """Return a finding if the index has other words of notes than their files have.

    A comparison with the disk does not find this: it compares only times and sizes. To bound the
    time, only some notes are read, chosen at random.
    """
    infos = memory.index.notes.sample(_MOST_COMPARED_NOTES)
    compared_bytes = 0
    compared_count = 0
    unlike: list[NoteInfo] = []
    for info in infos:
        compared_bytes += info.size
        if compared_bytes > _MOST_COMPARED_BYTES:
            break
        if not memory.sees(info.scope):
            continue
        compared_count += 1
        if _is_unlike_its_file(memory, info):
            unlike.append(info)
    if not unlike:
        return []
    first = unlike[0]
    text = (
        f"{len(unlike)} of {compared_count} compared: the index has another text, title, type or tag "
        f"than the file, such as of {first.project}/{first.path}"
    )
    return [
        Finding(
            level="error", code="index_stale", path=".memoranda/index.db", text=text, fix=_REBUILD
        )
    ]


def _is_unlike_its_file(memory: ReadVerbs, info: NoteInfo) -> bool:
    """Whether the index has other words of a note than its file.

    False if the file changed since the index read it, or cannot be read now.
    """
    source = memory.engine.source(info.project)
    # Several entities share one graph file, whose lines are compared one by one.
    if not isinstance(source, FolderSource):
        return False
    try:
        file = source.read(info.path)
    except MemorandaError:
        return False
    if memory.index.notes.stamp(info.project, info.path) != file.stamp:
        return False
    if file.etag != info.etag:
        return True
    note = memory.engine.parse(info.project, info.path, file)
    if note is None:
        return True
    words_of_file = (sqlite_text(note.title), sqlite_text(note.type), sorted(note.tags))
    return words_of_file != (info.title, info.type, sorted(info.tags))


def _unreferenced_vectors(memory: ReadVerbs) -> list[Finding]:
    """Return a finding if there are vectors (embeddings) of texts that notes no longer have."""
    if not memory.engine.layout.vectors.exists():
        return []
    count = Embedding(memory).gone()
    if not count:
        return []
    text = f"{count} vectors are of texts that are gone"
    return [
        Finding(
            level="info", code="unreferenced_vectors", path="vectors", text=text, fix="drop them"
        )
    ]


def _unfinished(engine: Engine) -> list[Finding]:
    """Return findings about changes and erasures that were interrupted.

    Texts of the history that no change needs are a finding, too.
    """
    text = "a change was interrupted and could not be finished; its files may be out of reach"
    records = engine.ledger.set_aside()
    findings = [
        Finding(level="error", code="unfinished_write", path=record, text=text, fix="finish it")
        for record in records
    ]
    if engine.ledger.erasing() is not None:
        text = "notes are being erased, or it was interrupted; some of their texts are still there"
        findings.append(
            Finding(
                level="error",
                code="unfinished_erase",
                path="the ledger",
                text=text,
                fix="finish it",
            )
        )
    count = len(engine.ledger.history.unreferenced())
    if count:
        texts_belong = "text belongs" if count == 1 else "texts belong"
        text = f"{count} kept {texts_belong} to no change"
        findings.append(
            Finding(
                level="info", code="unreferenced_text", path="history", text=text, fix="remove it"
            )
        )
    return findings


def _memories(memory: ReadVerbs) -> list[Finding]:
    """Check the memories, and return the findings.

    There are three kinds: links to ids that do not exist, texts that were edited by hand, and
    reminders that have a time but will not fire.
    """
    present, _ = memory.list(Query(projects=(CATEGORY_PROJECT,), order="path"), limit=0)
    archived_only = Query(projects=(CATEGORY_PROJECT,), archived=True, order="path")
    archived, _ = memory.list(archived_only, limit=0)
    findings: list[Finding] = []
    # If an agent may not see a linked note, the link looks broken to it. So only the owner gets
    # these findings.
    if memory.agent is None:
        findings += _dangling_links([*present, *archived])
    for info in (*present, *archived):
        if info.header.get("content_hash"):
            findings += _edits_by_hand(memory.engine, info)
    for info in present:
        if info.category == REMINDERS:
            findings += _silent_reminder(memory, info)
    return findings


def _silent_reminder(memory: ReadVerbs, info: NoteInfo) -> list[Finding]:
    """Return a finding for each reason why a reminder that has a time will not fire."""
    zone = memory.settings.reading_zone
    reminder = Reminder.of(info.header)
    complaints = reminder.complaints(memory.clock(), zone, locked=info.locked)
    place = home_path(info)
    return [Finding("warning", "bad_frontmatter", place, why) for why in complaints]


def _dangling_links(infos: Sequence[NoteInfo]) -> list[Finding]:
    """Return a finding for each link of a memory to an id that no memory has.

    A link to a memory that was merged into another memory is not broken.
    """
    known_ids = {info.id for info in infos}
    for info in infos:
        known_ids.update(str(merged_id) for merged_id in info.header.get("merged") or ())
    findings: list[Finding] = []
    for info in infos:
        for link in info.links:
            if link not in known_ids:
                text = f"links to {link}, which is gone"
                place = home_path(info)
                findings.append(
                    Finding(
                        level="warning",
                        code="dangling_link",
                        path=place,
                        text=text,
                        fix="remove the link",
                        target=link,
                    )
                )
    return findings


def _edits_by_hand(engine: Engine, info: NoteInfo) -> list[Finding]:
    """Return a finding if the text of a memory does not match the hash in its header."""
    place = home_path(info)
    try:
        note = engine.parse(info.project, info.path, engine.source(info.project).read(info.path))
    except StorageError as error:
        return [Finding("error", "unreadable", place, f"{error.reason}; it is shown as it was")]
    if note is None or sha256(note.content.encode()) == info.header["content_hash"]:
        return []
    return [Finding("info", "hash_differs", place, "edited by hand")]


def _leftovers(engine: Engine) -> list[Finding]:
    """Return findings about files that ended processes have left, in the projects and in the home."""
    return [*_lock_of_killed_daemon(engine), *_temporary_files(engine)]


def _lock_of_killed_daemon(engine: Engine) -> list[Finding]:
    """Return a finding if a killed daemon has left its process number in its lock file.

    A daemon locks the file and writes its number into it. At its end, it empties the file. So a
    number in a file that is not locked is of a daemon that was killed.
    """
    place = engine.layout.daemon_lock
    try:
        fd = lock_file(place, fcntl.LOCK_SH | fcntl.LOCK_NB, access=os.O_RDONLY, make=False)
        try:
            pid = os.read(fd, 20).decode("utf-8", "replace").strip()
        finally:
            os.close(fd)
    except (BlockingIOError, FileNotFoundError):
        # A daemon runs, or none ever ran.
        return []
    except OSError as error:
        text = f"it cannot be read: {reason(error)}"
        return [Finding("warning", "stale_lock", place.name, text)]
    if not pid:
        return []
    text = (
        f"left behind by a daemon that was killed (process {pid}); the next one starts all the same"
    )
    return [Finding(level="warning", code="stale_lock", path=place.name, text=text, fix="empty it")]


def _temporary_files(engine: Engine) -> list[Finding]:
    """Return a finding for each temporary file of a process that has ended.

    The home and its projects are searched.
    """
    text = "left behind by a program that ended"
    return [
        Finding(level="warning", code="stale_temp", path=path, text=text, fix="remove it")
        for path, process in _temporary_names(engine)
        if not is_alive(process)
    ]


def _temporary_names(engine: Engine) -> Iterator[tuple[str, int]]:
    """Yield the path to show of each temporary file, and the number of the process that made it."""
    for name in sorted(os.listdir(engine.layout.root)):
        match = HOME_TEMP.fullmatch(name)
        if match is not None:
            yield name, int(match[1])
    for project, source in engine.sources.items():
        for folder, folders, files in walk(source.root):
            # `walk` only enters the folders that remain in this list.
            folders[:] = filter(_may_hold_notes, folders)
            relative_folder = os.path.relpath(folder, source.root)
            shown_folder = os.path.normpath(os.path.join(project, relative_folder))
            for file in files:
                match = _TEMP.match(file)
                if match is not None:
                    yield f"{shown_folder}/{file}", int(match[1])


def _may_hold_notes(folder: str) -> bool:
    """Whether notes are searched in a folder with this name. Hidden and skipped folders are left
    out.
    """
    return not folder.startswith(".") and folder not in SKIPPED_FOLDERS


def repair(memory: PlaceVerbs, findings: list[Finding]) -> None:
    """Carry out the safe repairs of these findings, and mark these findings as `fixed`.

    Raises StorageError.
    """
    with memory.engine.writing():
        for finding in findings:
            if finding.fix:
                _repair(memory, finding)
                finding.fixed = True


def _separate(memory: PlaceVerbs, project: str, path: str) -> None:
    """Make sure that a copy of a memory does not have the same id as its original.

    If the copy has the same bytes, it is removed. If not, it gets a new id.
    """
    info = memory.index.notes.get(project, path)
    if info is None:
        return
    notes_of_id = memory.index.notes.duplicates().get(info.id, [])
    original = original_of(notes_of_id)
    if original is None or original.row == info.row:
        return
    if original.etag == info.etag:
        with memory.change("delete", fresh=False) as transaction:
            transaction.remove(project, path, memory.engine.file_of(info), scope=info.scope)
        return
    with memory.change("edit", fresh=False) as transaction:
        set_keys(memory, transaction, info, {"id": str(uuid4())})


def _repair(memory: PlaceVerbs, finding: Finding) -> None:
    """Carry out the safe repair of a finding. The code of the finding says which one."""
    engine = memory.engine
    match finding.code:
        case code if code in _LEDGER_CODES:
            _mend_ledger(engine, finding)
        case "unfinished_write":
            engine.ledger.retry(finding.path)
        case "unfinished_erase":
            finish(HistoryVerbs(engine, agent=None, face=memory.face))
        case "unreferenced_text":
            engine.ledger.history.sweep()
        case "unreferenced_vectors":
            Embedding(memory).drop_gone()
        case "index_stale":
            engine.rebuild_index()
            engine.fresh()
        case "conflict_copy":
            project, _, path = finding.path.partition("/")
            _separate(memory, project, path)
        case "dangling_link":
            _remove_link(memory, finding)
        case "permissions":
            os.chmod(engine.layout.root, 0o700)
        case "stale_lock" | "stale_temp":
            _remove_leftover(engine, finding)
        case code:
            raise AssertionError(f"nothing repairs {code}")


def _remove_link(memory: PlaceVerbs, finding: Finding) -> None:
    """Remove the link to a missing memory from the memory that a finding names.

    Nothing is changed if the memory no longer has the link.
    """
    folder, _, path = finding.path.partition("/")
    project = CATEGORY_PROJECT if folder == CATEGORY_PROJECT else ARCHIVE_PROJECT
    info = memory.index.notes.get(project, path)
    if info is not None and finding.target in info.links:
        with memory.change("unlink", fresh=False) as transaction:
            set_keys(memory, transaction, info, links_without(info, finding.target))


def _remove_leftover(engine: Engine, finding: Finding) -> None:
    """Empty a lock file, or remove a temporary file. Raises StorageError.

    Nothing is done if the file is missing, or if a daemon has locked the lock file by now.

    finding: a finding of `_leftovers`. Its path says which file is meant.
    """
    project, _, path = finding.path.partition("/")
    try:
        if finding.code == "stale_lock":
            fd = lock_file(engine.layout.daemon_lock, fcntl.LOCK_EX | fcntl.LOCK_NB, make=False)
            os.ftruncate(fd, 0)
            os.close(fd)
        elif not path:
            os.unlink(engine.layout.root / finding.path)
        else:
            folder, _, name = path.rpartition("/")
            with open_folder(engine.source(project).root, folder, project) as opened:
                os.unlink(name, dir_fd=opened.fd)
    except (BlockingIOError, FileNotFoundError):
        # A daemon has started by now, or somebody has removed the file.
        return
    except OSError as error:
        raise StorageError(finding.path, reason(error)) from None
