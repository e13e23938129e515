"""The commands `transcripts status | on | off | sync | search | show | forget`.

A transcript is the file in which an agent records a session on this machine (docs/transcripts.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memoranda.cli import output
from memoranda.cli.invocation import Invocation
from memoranda.cli.rows import limit_option
from memoranda.cli.syntax import Names, Text, command, flag, group, option
from memoranda.documents.wording import plural
from memoranda.query import day
from memoranda.text.unicode import flat, one_line, visible

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs
    from memoranda.transcripts.search import TraceHit
    from memoranda.transcripts.sync import TranscriptSync
    from memoranda.transcripts.tier import Transcripts

_ROW = "{:<14} {:>6} {:>9} {:>9} {}"
_HIT_KEYS = (
    "ref",
    "agent",
    "project",
    "folder",
    "time",
    "who",
    "passage",
    "answer",
    "score",
    "suspicious",
    "source",
)
_ENABLED = "transcripts.enabled"
# The mark of a hit whose text may try to give an agent instructions.
_SUSPICIOUS_MARK = "[may hold instructions] "
# At most this many skipped files are named.
_MOST_SKIPPED_NAMED = 10

# `--limit 0` means this many hits.
_MOST_HITS = 1_000

transcripts = group(
    "transcripts",
    "transcript_commands",
    "status on off sync search show forget",
    "Search the records of agents' sessions on this machine; they do not become notes.",
)


def _agents(_: Any) -> Sequence[str]:
    """Return the names of the agents whose transcripts can be read, for completion."""
    from memoranda.transcripts.places import agents

    return [*agents()]


@command(
    "status",
    keys={"enabled": (), "agents": (), "skipped": (), "here": ()},
    example="memory transcripts status",
)
def transcripts_status(call: Invocation) -> None:
    """Show whether transcripts are read, of which agents, and which files are not read and why."""
    from memoranda.transcripts.tier import Transcripts, found_on_this_machine

    with call.reading() as memory:
        tier = Transcripts(memory)
        rows = []
        for agent, (files, sessions, turns, end_of_latest) in tier.status().items():
            row = {"agent": agent, "files": files, "sessions": sessions, "turns": turns}
            rows.append(row | {"latest": _day_text(end_of_latest)})
        skipped = tier.troubles()
        file_counts = found_on_this_machine()
        if call.json:
            return call.document(enabled=tier.is_on, agents=rows, skipped=skipped, here=file_counts)
        lines = [_state_sentence(tier, file_counts)]
        if rows:
            lines.append(output.table_row(_ROW, "Agent", "Files", "Sessions", "Turns", "Latest"))
        lines += [
            output.table_row(
                _ROW, row["agent"], row["files"], row["sessions"], row["turns"], row["latest"]
            )
            for row in rows
        ]
        lines += _skipped_lines(skipped)
        call.answer("\n".join(lines))


def _state_sentence(tier: Transcripts, file_counts: dict[str, int]) -> str:
    """Return a sentence that says whether transcripts are read.

    tier: the transcripts of this home.
    file_counts: title of an agent -> how many transcript files it has on this machine.
    """
    if tier.is_on:
        return "Transcripts are read in place; nothing of them is a note."
    files = ", ".join(f"{title} ({plural(count, 'file')})" for title, count in file_counts.items())
    if files:
        return f"Transcripts are not read. Here: {files}. Turn it on: memory transcripts on"
    return "Transcripts are not read, and none was found on this machine."


def _day_text(seconds: int) -> str | None:
    """Return the day of a time in seconds since 1970, as `2026-05-07`. None for 0."""
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _skipped_lines(skipped: dict[str, str]) -> list[str]:
    """Return a line for each of the first files that could not be read, and count the others.

    skipped: path -> the reason.
    """
    lines = [flat(f"Not read: {path}: {why}") for path, why in skipped.items()]
    hidden_count = len(lines) - _MOST_SKIPPED_NAMED
    if hidden_count <= 0:
        return lines
    return [*lines[:_MOST_SKIPPED_NAMED], f"Not read: {hidden_count} more (--json shows all)"]


@command(
    "on",
    keys={"files": (), "turns": (), "gone": (), "skipped": ()},
    example="memory transcripts on",
)
def transcripts_on(call: Invocation) -> None:
    """Read the transcripts on this machine from now on, and index them now."""
    from memoranda.transcripts.tier import Transcripts

    with call.memory() as memory:
        memory.configure(_ENABLED, True)
    # The settings have changed. Without the cached ones, they are read again.
    call.__dict__.pop("settings", None)
    with call.memory() as memory:
        _show_sync(call, _sync(Transcripts(memory)))


@command("off", keys=("enabled",), example="memory transcripts off")
def transcripts_off(call: Invocation) -> None:
    """Stop reading transcripts, and delete their index. The transcripts stay."""
    from memoranda.transcripts.tier import Transcripts

    with call.memory() as memory:
        memory.configure(_ENABLED, False)
        Transcripts(memory).forget()
        call.answer("Transcripts are no longer read; their index is deleted.", enabled=False)


@command(
    "sync",
    keys={"files": (), "turns": (), "gone": (), "skipped": ()},
    example="memory transcripts sync",
)
@flag("--again", "Delete the index first, and read everything.")
def transcripts_sync(call: Invocation, *, again: bool) -> None:
    """Read what is new in the transcripts now. A daemon does this at intervals."""
    from memoranda.transcripts.tier import Transcripts

    with call.memory() as memory:
        tier = Transcripts(memory)
        if again and tier.is_on:
            tier.forget()
        _show_sync(call, _sync(tier))


def _sync(tier: Transcripts) -> TranscriptSync:
    """Read the new parts of transcripts, and show the progress on a terminal."""
    with output.progress("Reading transcripts") as progress:
        return tier.sync(progress)


def _show_sync(call: Invocation, sync: TranscriptSync) -> None:
    """Tell the person how many turns and files were read, and which files were skipped."""
    if sync.is_busy:
        reply = "Another process is reading them right now."
    else:
        reply = f"Read {plural(sync.turns, 'turn')} of {plural(sync.files, 'file')}."
        if sync.removed == 1:
            reply += " 1 file is gone."
        elif sync.removed:
            reply += f" {sync.removed:,} files are gone."
    lines = [reply, *_skipped_lines(sync.skipped)]
    call.answer(
        "\n".join(lines),
        files=sync.files,
        turns=sync.turns,
        gone=sync.removed,
        skipped=sync.skipped,
    )


@command(
    "search",
    "QUERY...",
    keys={"query": (), "transcripts": _HIT_KEYS},
    example="memory transcripts search connection pool exhausted",
)
@option("--by", type=Names("agent", _agents), help="Only transcripts of this agent.")
@option(
    "--project", metavar="FOLDER", help="Only sessions in this folder, or in a folder of this name."
)
@option("--from", "first", metavar="DAY", help="On this day or later.")
@option("--to", "last", metavar="DAY", help="On this day or earlier.")
@limit_option(10)
def transcripts_search(
    call: Invocation,
    *words: str,
    by: Text,
    project: Text,
    first: Text,
    last: Text,
    limit: int,
) -> None:
    """Find what was said and done in sessions, the best first. Each hit has the REF for `show`."""
    from memoranda.transcripts.search import TraceFilter
    from memoranda.transcripts.tier import Transcripts

    with call.reading() as memory:
        zone = memory.settings.zone
        now = memory.clock()
        trace_filter = TraceFilter(
            by or "",
            (project or "").rstrip("/"),
            day(first, "--from", zone, now=now),
            day(last, "--to", zone, after=1, now=now),
        )
        text = " ".join(words)
        hits = Transcripts(memory).search(text, trace_filter, limit=limit or _MOST_HITS)
        if call.json:
            return call.document(query=text, transcripts=[hit.row() for hit in hits])
        lines = hit_lines(memory, hits)
        call.answer("\n".join(lines) if lines else "Nothing was found in the transcripts.")


def hit_lines(memory: ReadVerbs, hits: Sequence[TraceHit]) -> list[str]:
    """Return hits as lines for people: the place and, below it, the passage and its answer."""
    lines: list[str] = []
    for hit in hits:
        place = _place_text(hit.agent, hit.project, _local_time(memory, hit, "%Y-%m-%d"))
        # The mark comes first, because a name in the place may be an instruction, too.
        lines.append(f"{_mark(hit)}{place}  {flat(hit.ref)}")
        lines.append(f"  {hit.who}: {one_line(visible(hit.passage))}")
        if hit.answer:
            lines.append(f"  -> {one_line(visible(hit.answer))}")
    return lines


def _place_text(*parts: str) -> str:
    """Join the parts of a place by commas. Empty parts are left out."""
    return flat(", ".join(part for part in parts if part))


def _local_time(memory: ReadVerbs, hit: TraceHit, form: str) -> str:
    """Return the time of a hit in the reader's time zone. "" if it is not known.

    form: the form of the time, as `strftime` takes it.
    """
    if not hit.time:
        return ""
    return hit.time.astimezone(memory.settings.reading_zone).strftime(form)


def _mark(hit: TraceHit) -> str:
    """Return the mark of a hit that may hold instructions, "" for any other."""
    if hit.is_suspicious:
        return _SUSPICIOUS_MARK
    return ""


@command(
    "show", "REF", keys={"turns": _HIT_KEYS}, example="memory transcripts show 7cf44517@8812.0"
)
def transcripts_show(call: Invocation, ref: str) -> None:
    """Show the exchange around a passage: the question, the actions and the answer, secrets masked."""
    from memoranda.transcripts.tier import Transcripts

    with call.reading() as memory:
        hits = Transcripts(memory).show(ref)
        if call.json:
            return call.document(turns=[hit.row() for hit in hits])
        first = hits[0]
        time = _local_time(memory, first, "%Y-%m-%d %H:%M")
        place = _place_text(first.agent, first.folder, time, first.source)
        lines = [_mark(first) + place, ""]
        for hit in hits:
            lines.append(f"{_mark(hit)}{hit.who}: {visible(hit.passage)}")
        call.answer("\n".join(lines))


@command("forget", keys=("forgotten",), example="memory transcripts forget")
def transcripts_forget(call: Invocation) -> None:
    """Delete the index of transcripts. The transcripts stay, and the next sync reads them again."""
    from memoranda.transcripts.tier import Transcripts

    with call.memory() as memory:
        was_there = Transcripts(memory).forget()
        if was_there:
            reply = "The index of transcripts is deleted."
        else:
            reply = "There was no index."
        call.answer(reply, forgotten=was_there)
