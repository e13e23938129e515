"""The commands `status`, `doctor`, `reindex` (contract 001, 16), and `embed` (docs/semantic.md)."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.cli import output
from memoranda.cli.invocation import Invocation
from memoranda.cli.syntax import Usage, command, flag, option
from memoranda.documents.wording import minute, plural
from memoranda.engine.overview import by_writer, written_today
from memoranda.note.model import ARCHIVED, CATEGORIES, CATEGORY_PROJECT, PHASES, TRACE_PROJECT
from memoranda.sources.files import lock_owner
from memoranda.text.unicode import flat

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.doctor import Finding
    from memoranda.engine.links.attachments import UnresolvedLink

# The daemon may take this many seconds to report its state.
_DAEMON_SECONDS = 2.0
_EMBED_KEYS = ("model", "done", "passages", "embedded", "unreadable", "seconds")
# At most this many broken links of a project are named by `memory doctor`.
_MOST_LINKS_NAMED = 3
# A home with more notes than this is no mistake.
_MOST_NOTES_OF_NEW_HOME = 3
# Notes of another home are counted up to this number.
_MOST_NOTES_COUNTED = 10_000
_FINDING_KEYS = ("level", "code", "path", "text", "fixed")
_STATE_KEYS = (
    "index",
    "daemon",
    "last_dream",
    "pending_reminders",
    "unreadable_files",
    "semantic",
    "written_today",
    "disk",
)


@command(
    "status",
    keys=("home", "notes", "memories", "projects", "agents", *_STATE_KEYS),
    example="memory status",
)
def status(call: Invocation) -> None:
    """Show what the memory contains, and whether anything needs attention."""
    with call.memory(looks_once=True) as memory:
        row = _status(memory)
        texts = _status_texts(memory, row)
        # These two lines would only repeat the line about memories.
        if _has_only_own_memories(row):
            del texts["notes"], texts["agents"]
        if not row["disk"]:
            del texts["disk"]
        lines = [f"{key.replace('_', ' ')}: {value}" for key, value in texts.items()]
        call.answer("\n".join(lines), **row)


def _status_texts(memory: MemorySession, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of `status` with its values in words for people.

    row: the document.
    """
    memories = row["memories"]
    phases = _counts_text(memories["phases"])
    categories = _counts_text(memories["categories"])
    dream = row["last_dream"]
    return {
        **row,
        "notes": _note_count_text(row["notes"]),
        "memories": f"{memories['total']} ({phases}; {categories})",
        "projects": _counts_text(row["projects"]),
        "agents": _counts_text(row["agents"]),
        "daemon": _daemon_line(row["daemon"]),
        "last_dream": minute(dream, memory.settings.zone) if dream else "never",
        "semantic": _semantic_line(row["semantic"]),
        "written_today": _written_today_line(memory, row["written_today"]),
    }


def _semantic_line(semantic: Mapping[str, Any]) -> str:
    """Return the embedding model and its progress in one line, or why there is no model."""
    if not semantic["model"]:
        return str(semantic["reason"])
    line = (
        f"{semantic['model']}, {semantic['embedded']} of {semantic['passages']} passages embedded"
    )
    line += _unreadable_text(semantic)
    if semantic["waiting"]:
        line += f", {semantic['waiting']} waiting"
    return line


def _written_today_line(memory: MemorySession, uses: Mapping[str, Mapping[str, int]]) -> str:
    """Return how much agents have written today, and how much each may write.

    uses: the numbers of notes and bytes, by agent.
    """
    if not uses:
        return "nothing by agents"
    agents = [
        f"{agent} {plural(use['notes'], 'note')}, {plural(use['bytes'], 'byte')}"
        for agent, use in uses.items()
    ]
    settings = memory.settings
    notes = f"{settings.agent_notes_per_day:,} notes"
    size = f"{settings.agent_bytes_per_day:,} bytes"
    return f"{'; '.join(agents)} (of {notes} and {size} each)"


def _daemon(memory: MemorySession) -> dict[str, Any]:
    """Return the state of the home's daemon (contract 001, 13), as JSON has it.

    If the daemon answers, the state has its own report, too.
    """
    from memoranda.engine import daemon_client
    from memoranda.sources.layout import Layout

    layout = Layout(memory.home)
    not_running = {"running": False, "pid": None}
    try:
        owner = lock_owner(layout.daemon_lock)
        if owner is None:
            return not_running
        lock_lines = layout.daemon_lock.read_text().splitlines()
    except OSError:
        return not_running
    state = {"running": True, "pid": int(owner.pid) if owner.pid else None}
    # Without a socket, the daemon cannot be asked.
    if not layout.socket.exists():
        return state
    try:
        report = daemon_client.ask(layout.socket, daemon_client.STATE, {}, _DAEMON_SECONDS)
    except OSError:
        report = None
    state |= {
        "autostarted": daemon_client.AUTOSTARTED in lock_lines,
        "answers": report is not None,
    }
    return state | (report or {})


def _daemon_line(daemon: dict[str, Any]) -> str:
    """Return the state of the daemon in one line.

    daemon: the state, as `_daemon` returns it.
    """
    from memoranda.engine import daemon_client

    if not daemon["running"]:
        return "not running"
    parts = [f"running {daemon['pid']}"]
    # A daemon without a socket cannot be asked, so nothing more is known of it.
    if "answers" not in daemon:
        return parts[0]
    if daemon["autostarted"]:
        parts.append(daemon_client.AUTOSTARTED)
    if not daemon["answers"]:
        parts.append("does not answer; end it with: memory serve --stop")
        return ", ".join(parts)
    parts.append(f"{daemon['clients']} connected")
    # A round of upkeep waits while a call holds the memory.
    if "round" in daemon["failed"]:
        parts.append(f"upkeep put off: {daemon['failed']['round']}")
    return ", ".join(parts)


def _has_only_own_memories(row: Mapping[str, Any]) -> bool:
    """Whether all notes are memories, and the owner wrote them all (contract 001, 16)."""
    counts = row["notes"]
    memory_count = row["projects"].get(CATEGORY_PROJECT, 0)
    if counts["total"] != memory_count or counts["traces"]:
        return False
    return row["agents"].keys() <= {"owner"}


def _note_count_text(counts: Mapping[str, int]) -> str:
    """Return the number of notes in words: `120, and 3 archived, 7 traces`.

    counts: the numbers of notes under the names `total`, `archived` and `traces`.
    """
    hidden = [f"{counts[name]} {name}" for name in ("archived", "traces") if counts[name]]
    if not hidden:
        return str(counts["total"])
    return f"{counts['total']}, and {', '.join(hidden)}"


def _status(memory: MemorySession) -> dict[str, Any]:
    """Return the JSON document of `memory status`, after bringing the index up to date."""
    from memoranda.clock import stamp
    from memoranda.jobs.job import last_dream
    from memoranda.note.reminder import Reminder
    from memoranda.query import memory_query

    sync_report = memory.sync()
    has_changes = any(
        (sync_report.added, sync_report.modified, sync_report.moved, sync_report.removed)
    )
    counts = memory.stats()
    dream = last_dream(memory.home)
    reminders, _ = memory.list(memory_query(category="reminders"), limit=0)
    traces = counts.projects.get(TRACE_PROJECT, 0)
    phases = _counts_by_phase(counts.categories)
    return {
        "home": memory.settings.shown_home,
        "notes": {
            "total": counts.total - traces,
            "archived": phases.get(ARCHIVED, 0),
            "traces": traces,
        },
        "memories": {
            "total": sum(counts.categories.values()),
            "phases": phases,
            "categories": _counts_by_category(counts.categories),
        },
        "projects": {
            project.name: counts.projects.get(project.name, 0)
            for project in memory.projects
            if project.name != TRACE_PROJECT
        },
        "agents": by_writer(memory),
        "index": "stale" if has_changes else "fresh",
        "daemon": _daemon(memory),
        "last_dream": None if dream is None else stamp(dream),
        "pending_reminders": sum(Reminder.of(reminder.header).is_waiting for reminder in reminders),
        "unreadable_files": len(memory.unreadable),
        "semantic": _semantic(memory),
        "written_today": {
            agent: {"notes": use.notes, "bytes": use.bytes}
            for agent, use in written_today(memory).items()
        },
        "disk": memory.write_trouble or memory.disk_trouble or None,
    }


def _counts_by_phase(counts: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Return how many memories are in each phase. Without archived memories, that phase is missing.

    counts: the numbers of memories by (phase, category).
    """
    by_phase = dict.fromkeys(PHASES, 0)
    for (phase, _), number in counts.items():
        if phase in by_phase:
            by_phase[phase] += number
    if not by_phase[ARCHIVED]:
        del by_phase[ARCHIVED]
    return by_phase


def _counts_by_category(counts: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Return how many memories are in each category, in the order of CATEGORIES.

    Archived memories do not count, and empty categories are left out.

    counts: the numbers of memories by (phase, category).
    """
    by_category = dict.fromkeys(CATEGORIES, 0)
    for (phase, category), number in counts.items():
        if phase != ARCHIVED and category in by_category:
            by_category[category] += number
    return {name: number for name, number in by_category.items() if number}


def _semantic(memory: MemorySession) -> dict[str, Any]:
    """Return the embedding model and its progress, as JSON has it.

    Without a model, all counts are 0, and `reason` says why there is no model.
    """
    from memoranda.engine.embedding import Embedding

    embedding = Embedding(memory)
    counts = embedding.counts()
    # Without a model, `counts` is None.
    numbers = {
        name: getattr(counts, name, 0) for name in ("passages", "embedded", "unreadable", "waiting")
    }
    return {"model": embedding.name, **numbers, "reason": embedding.trouble or None}


def _unreadable_text(semantic: Mapping[str, Any]) -> str:
    """Return the number of passages that the model cannot read, for people. "" if it reads all.

    semantic: the embedding model and its progress, as `_semantic` returns them.
    """
    if semantic["unreadable"]:
        return f", {semantic['unreadable']} it cannot read"
    return ""


def _counts_text(counts: Mapping[str, int]) -> str:
    """Return counts in one line: `inbox 3, organized 12`."""
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


@command(
    "doctor",
    keys={"findings": _FINDING_KEYS, "problems": ()},
    example="memory doctor --fix --dry-run",
)
@flag("--fix", "Repair whatever can be repaired without a loss.")
@flag("--dry-run", "With --fix: only say what would be repaired.")
@flag("--citations", "Only check the code that notes cite: what was changed, moved or removed.")
@option(
    "--code",
    "folders",
    metavar="DIR",
    multiple=True,
    help="With --citations: a folder with the code; may be repeated [the working folder].",
)
def doctor(
    call: Invocation, *, fix: bool, dry_run: bool, citations: bool, folders: tuple[str, ...]
) -> int:
    """Check files, links, configuration, index and permissions."""
    _check_doctor_options(fix=fix, dry_run=dry_run, citations=citations, has_folders=bool(folders))
    with call.memory() as memory:
        if citations:
            findings = _citation_findings(memory, folders)
        else:
            findings = _examine(memory, repairs=fix and not dry_run)
    rows = []
    for finding in findings:
        rows.append({key: getattr(finding, key) for key in _FINDING_KEYS})
    lines = [_finding_line(finding, is_dry_run=dry_run) for finding in findings]
    open_levels = [finding.level for finding in findings if not finding.fixed]
    problem_count = len([level for level in open_levels if level != "info"])
    lines.append(f"{problem_count} problems")
    call.answer("\n".join(lines), findings=rows, problems=problem_count)
    return 1 if "error" in open_levels else 0


def _check_doctor_options(*, fix: bool, dry_run: bool, citations: bool, has_folders: bool) -> None:
    """Raise Usage for options of `doctor` that contradict each other.

    fix: the option `--fix`.
    dry_run: the option `--dry-run`.
    citations: the option `--citations`.
    has_folders: whether `--code` names folders.
    """
    if dry_run and not fix:
        raise Usage("--dry-run needs --fix")
    if has_folders and not citations:
        raise Usage("--code needs --citations")
    if citations and fix:
        raise Usage("--citations has nothing to fix: the notes are yours")


def _examine(memory: MemorySession, *, repairs: bool) -> list[Finding]:
    """Return everything that is wrong with the memory.

    repairs: whether to repair whatever can be repaired without a loss.
    """
    from memoranda.engine.doctor import examine, repair

    findings = [*examine(memory), *_preset_findings(memory), *_link_findings(memory)]
    findings += _mistyped_home(memory)
    if repairs:
        repair(memory, findings)
    return findings


def _mistyped_home(memory: MemorySession) -> list[Finding]:
    """Return a finding if this home is nearly empty and the usual home has more notes.

    Any folder becomes a home when it is named as one, so a mistyped `--home` is one from then on.
    """
    from memoranda.engine.doctor import Finding

    # For a user whose home folder is not known, the path stays as it is, and is no folder below.
    usual_home = os.path.expanduser("~/.memory")
    home = memory.home
    number_here = sum(memory.stats().projects.values())
    is_small = number_here <= _MOST_NOTES_OF_NEW_HOME
    if not is_small or memory.settings.url is not None or memory.agent is not None:
        return []
    if not os.path.isdir(usual_home) or os.path.samefile(usual_home, home):
        return []
    number_there = _notes_below(usual_home)
    if number_there <= number_here:
        return []

    files = plural(number_there, "file")
    if number_there == _MOST_NOTES_COUNTED:
        files = f"{_MOST_NOTES_COUNTED} files or more"
    text = (
        f"this home has {plural(number_here, 'note')}, ~/.memory has {files} of notes; "
        "if another home is meant, check --home and MEMORY_HOME"
    )
    return [Finding("info", "other_home", str(home), text)]


def _notes_below(folder: str) -> int:
    """Return how many Markdown files a home has, at most `_MOST_NOTES_COUNTED`. None is opened."""
    number = 0
    for place, folders, files in os.walk(folder):
        # `walk` goes on into the folders that are left in this list.
        folders[:] = [name for name in folders if not name.startswith(".")]
        # The files `memory.md` and `pending.md` of a home are made from its notes.
        if place != folder:
            number += sum(name.endswith(".md") for name in files)
        if number >= _MOST_NOTES_COUNTED:
            return _MOST_NOTES_COUNTED
    return number


def _finding_line(finding: Finding, *, is_dry_run: bool) -> str:
    """Write a finding as one line, with the repair if one was made.

    is_dry_run: whether to name the repair that would be made instead.
    """
    note = ""
    if finding.fixed:
        note = " (fixed)"
    elif is_dry_run and finding.fix:
        note = f" (would {finding.fix})"
    return f"{finding.level} {finding.code} {flat(f'{finding.path}: {finding.text}')}{note}"


def _link_findings(memory: MemorySession) -> list[Finding]:
    """Return a finding for each project with links that lead nowhere.

    Such a link is not a problem, because its target may not be written yet. Links of memories are
    separate findings.
    """
    from memoranda.engine.doctor import Finding
    from memoranda.engine.links.attachments import unresolved_links
    from memoranda.note.model import MEMORY_PROJECTS, TRACE_PROJECT

    # Traces are records of sessions, in which nobody fixes a link.
    skipped_names = (*MEMORY_PROJECTS, TRACE_PROJECT)
    findings = []
    for project in memory.projects:
        if project.name in skipped_names:
            continue
        links = unresolved_links(memory, project.name)
        if not links:
            continue
        text = _links_text(links)
        if len(links) > _MOST_LINKS_NAMED:
            text += f"; `memory project check {project.name}` shows all"
        findings.append(Finding("info", "broken_links", project.name, text))
    return findings


def _links_text(links: Sequence[UnresolvedLink]) -> str:
    """Return the number of links that lead nowhere, and the first of them."""
    first = ", ".join(
        f"{link.path} line {link.line} [[{link.target}]]" for link in links[:_MOST_LINKS_NAMED]
    )
    if len(links) == 1:
        return f"one link leads nowhere: {first}"
    return f"{len(links):,} links lead nowhere: {first}"


def _citation_findings(memory: MemorySession, folders: Sequence[str]) -> list[Finding]:
    """Return the findings about the code that notes cite.

    folders: where the code is; empty for the working folder.
    """
    from memoranda.citations.doctor import examine_citations
    from memoranda.text.user_path import absolute_path

    places = [absolute_path(folder) for folder in folders] or [os.getcwd()]
    report = examine_citations(memory, places)
    output.notice(f"Checked {report.checked} citations in {', '.join(places)}")
    return report.findings


# The beginning of a sentence about another server's store. The name of a preset follows.
_SEEN_BY_ONE = "another server keeps its notes here, which only clients see that use memory mcp"


def _preset_findings(memory: MemorySession) -> list[Finding]:
    """Check the stores that presets of `memory mcp --as` use. Returns the problems found.

    The configuration does not name these stores.
    """
    from memoranda.cli import presets
    from memoranda.engine.doctor import Finding
    from memoranda.errors import ConfigError

    findings: list[Finding] = []
    json_folder = presets.preset("agent-memory").json_folder
    if json_folder:
        findings += _json_folder_problems(memory, json_folder)
    banks = presets.preset("memory-bank").projects.get("banks")
    if banks:
        findings += _unreadable_bank_files(Path(banks))
    try:
        for store in presets.unseen_stores(memory):
            text = f"{_SEEN_BY_ONE} {store.options}; for all the others: {store.command}"
            findings.append(Finding("info", "in_place", store.place, text))
    except ConfigError as error:
        findings.append(Finding("error", "bad_config", "basic-memory", str(error)))
    return findings


def _json_folder_problems(memory: MemorySession, folder: str) -> list[Finding]:
    """Check a folder of JSON files with key-value entries. Returns the problems found."""
    from memoranda.engine.doctor import Finding
    from memoranda.engine.json_entries import JsonEntryFolder
    from memoranda.errors import MemorandaError

    entries = JsonEntryFolder(folder).entries(memory)
    findings: list[Finding] = []
    try:
        for stem in entries.unreadable:
            why = entries.why_unreadable(stem)
            text = f"{why}; fix it or move it away, it is never written"
            findings.append(Finding("error", "unreadable", f"{folder}/{stem}.json", text))
    except MemorandaError as error:
        return [Finding("error", "broken_store", folder, str(error))]
    return findings


def _unreadable_bank_files(root: Path) -> list[Finding]:
    """Return a finding for each file of the memory banks below `root` that cannot be read."""
    from memoranda.engine.doctor import Finding
    from memoranda.transfer.moving import files_below

    findings: list[Finding] = []
    for entry in files_below(root, lambda name: True):
        if entry.refused or not entry.path.endswith(".md"):
            continue
        file = root / entry.path
        problem = _reading_problem(file)
        if problem:
            text = f"{problem}; it is left out until it is fixed"
            findings.append(Finding("error", "unreadable", str(file), text))
    return findings


def _reading_problem(file: Path) -> str:
    """Return why a text file cannot be read. "" if it can."""
    try:
        file.read_text(encoding="utf-8")
    except OSError as error:
        return error.strerror or str(error)
    except UnicodeDecodeError:
        return "not valid UTF-8 text"
    return ""


@command("reindex", keys=("notes", "projects", "seconds"), example="memory reindex")
def reindex(call: Invocation) -> None:
    """Delete the index, and make it again from the notes."""
    start = time.perf_counter()
    with call.memory() as memory:
        with output.progress("Indexing") as progress:
            notes, projects = memory.reindex(progress)
        seconds = round(time.perf_counter() - start, 3)
        call.answer(
            f"Indexed {plural(notes, 'note')} in {plural(projects, 'project')}",
            notes=notes,
            projects=projects,
            seconds=seconds,
        )


@command("embed", keys=_EMBED_KEYS, example="memory embed")
def embed(call: Invocation) -> None:
    """Compute the missing vectors of search by meaning now."""
    from memoranda.engine.embedding import Embedding, NoModel

    start = time.perf_counter()
    with call.memory(watch=True) as memory:
        embedding = Embedding(memory)
        if embedding.trouble:
            raise NoModel(embedding.trouble)
        with output.progress("Embedding") as progress:
            embedded = embedding.embed_some(math.inf, progress=progress, thorough=True)
            _embed_examples(memory)
        row = _semantic(memory) | {
            "done": embedded,
            "seconds": round(time.perf_counter() - start, 3),
        }
        total = f"{row['embedded']} in all{_unreadable_text(row)}"
        call.answer(
            f"Embedded {embedded} passages with {row['model']} ({total})",
            **{key: row[key] for key in _EMBED_KEYS},
        )


def _embed_examples(memory: MemorySession) -> None:
    """Compute the vectors of the example texts. The inbox is sorted by similarity to them."""
    from memoranda.jobs.classify import learn
    from memoranda.llm import NoAnswer

    # If the model does not answer here, the daemon asks it again later.
    with suppress(NoAnswer):
        while True:
            # Each call computes the vectors of some examples.
            new_vectors = learn(memory.settings)
            if not new_vectors:
                return
