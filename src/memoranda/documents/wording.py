"""Words notes, hits, changes and other things as lines for people and models.

`short` and `flat` ensure that a line of a reply stays one line, whatever a note contains. Times are
in the reader's time zone. None means the system's zone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from memoranda.clock import parse_stamp
from memoranda.errors import project_title
from memoranda.index.rows import day_of
from memoranda.note.model import ARCHIVED, KV_PROJECT, MEMORY_PROJECTS
from memoranda.text.fence import cut
from memoranda.text.unicode import flat, one_line

if TYPE_CHECKING:
    from memoranda.engine.review import ReviewItem
    from memoranda.index.rows import Edge, Hit, Hits, NoteInfo, Reached
    from memoranda.ledger.change import Change
    from memoranda.note.model import Note, Observation

TITLE = 120
"""Characters of a title in a line."""
LINE = 240
"""Characters of an observation, a relation or a passage in a line."""
# Characters of a fact and of an address in a section of a prompt.
_FACT_CHARACTERS = 200
_ADDRESS_CHARACTERS = 300
# Characters of a note's title in a line of the log.
_LOG_TITLE_CHARACTERS = 60
MINUTE = "%Y-%m-%d %H:%M"
_SECOND = "%Y-%m-%d %H:%M:%S"
_DAY = "%Y-%m-%d"
# The words behind the target of a relation that leads to no note, by the state of the relation.
_STATES = {
    "unwritten": " (not written yet)",
    "ambiguous": " (ambiguous)",
    "attachment": " (an attachment)",
}
# The text of a memory (contract 001, 3).
_MEMORY = """\
ID:     {id}
Phase:   {phase}
Category: {category}
Scope:  {scope}
Source: {source}
Tags:   [{tags}]
Links:  [{links}]
Access: {access_count}
Created: {created_at}
Updated: {updated_at}"""
_NOTE = """\
ID:      {id}
Title:   {title}
Type:    {type}
Path:    {place}
Link:    {permalink}
Tags:    [{tags}]
Created: {created_at}
Updated: {updated_at}"""
# A line of the log: number, time, verb, agent, place and remarks.
_CHANGE = "#{} {:<16} {:<10} {:<8} {}{}"


def local(moment: datetime | str, zone: tzinfo | None, form: str = _SECOND) -> str:
    """Format a time as local time.

    moment: the time, or its stamp as documents have it.
    zone: the time zone to show it in. None means the zone of this machine.
    form: the format for `strftime`, such as `%Y-%m-%d %H:%M`.
    """
    if isinstance(moment, str):
        moment = parse_stamp(moment)
    return moment.astimezone(zone).strftime(form)


def minute(moment: datetime | str, zone: tzinfo | None) -> str:
    """Return a time like `2026-11-28 14:05`.

    zone: the time zone to show it in. None means the zone of this machine.
    """
    return local(moment, zone, MINUTE)


def day(moment: datetime | str, zone: tzinfo | None) -> str:
    """Return a day like `2026-11-28`.

    zone: the time zone to show it in. None means the zone of this machine.
    """
    return local(moment, zone, _DAY)


def short(text: str, most: int = TITLE) -> str:
    """Return a text as one line of at most `most` characters, without invisible characters."""
    # Splitting all of a long text would be slow. White space shrinks, so four times as much is taken
    # as may be shown.
    head = text[: 4 * most]
    line = " ".join(head.split())
    is_whole = len(line) <= most and len(head) == len(text)
    if not is_whole:
        line = line[: most - 1].rstrip() + "…"
    return flat(line)


def lines(*parts: str) -> str:
    """Join the parts that are not empty, one below the other."""
    return "\n".join(part for part in parts if part)


def plural(count: int, word: str) -> str:
    """Return a count with its noun: `1 note`, `1,204 notes`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def unfilled_files(count: int) -> str:
    """Return the words for files of memory banks that a list leaves out."""
    return plural(count, "untouched bank template")


def counted(hits: Hits, word: str = "note") -> str:
    """Return the number of hits with a noun: `1 note`, `10,000 or more notes`."""
    if hits.is_lower_bound:
        return f"{hits.total:,} or more {word}s"
    return plural(hits.total, word)


def address(note: Note | NoteInfo) -> str:
    """Return `project: permalink`. Every tool finds the note by this address."""
    return flat(f"{project_title(note.project)}: {note.permalink}")


def place(note: Note | NoteInfo) -> str:
    """Return `project/path`, as the log shows a note."""
    return f"{project_title(note.project)}/{note.path}"


def named(note: Note | NoteInfo) -> str:
    """Return the title of a note and its address."""
    return f"{short(note.title)} ({address(note)})"


def mark(note: Note | NoteInfo) -> str:
    """Return a warning about a note that seems to hold injected instructions, "" about others."""
    if note.suspicious:
        return f", suspicious: {', '.join(note.suspicious)}"
    return ""


def kind(info: NoteInfo) -> str:
    """Return the category of a memory, or the project of any other note."""
    if info.project in MEMORY_PROJECTS:
        return info.category or ""
    return info.project.removeprefix(".")


def origin(info: NoteInfo) -> str:
    """Return the source that a note names, or the writer of a note that is not a memory."""
    if info.source or info.project in MEMORY_PROJECTS:
        return info.source or ""
    return info.provenance.writer


def row_text(info: NoteInfo, content: str) -> str:
    """Return the text of a note for a row. It begins with the title, which is said only once."""
    if info.project in MEMORY_PROJECTS:
        if info.is_broken:
            return f"[header not read] {content}"
        return content
    # A value says nothing without its key, even if both begin alike.
    if info.project == KV_PROJECT:
        return f"{info.title}: {content.strip()}"
    text = content.strip().lstrip("# ")
    if text.startswith(info.title):
        return text
    return f"{info.title}: {text}".removesuffix(": ")


def whole_note(document: dict[str, Any], zone: tzinfo | None) -> str:
    """Format a whole note as text for people.

    document: the note as `documents.note` returns it. Without `project`, it is a memory.
    zone: the time zone of the times. None means the zone of this machine.
    """
    fields = {
        **document,
        "source": document["source"] or "",
        "tags": " ".join(document["tags"]),
        "links": " ".join(document["links"]),
        "created_at": local(document["created_at"], zone),
        "updated_at": local(document["updated_at"], zone),
    }
    if "project" in document:
        # The path begins with the folder of the project, which may differ from the project's name.
        path_in_project = document["path"].partition("/")[2]
        fields["place"] = f"{document['project']}/{path_in_project}"
        head = [_NOTE.format_map(fields)]
    else:
        head = [_MEMORY.format_map(fields), *_optional_lines(document, zone)]
    return "\n".join([*head, "", document["content"]])


def _optional_lines(document: dict[str, Any], zone: tzinfo | None) -> list[str]:
    """Return the lines that only some memories have."""
    rows = []
    if document.get("suspicious"):
        rows.append(f"Suspicious: {' '.join(document['suspicious'])}")
    if document.get("header_error"):
        rows.append(f"Header: {document['header_error']}. Correct it: memory edit")
    if document["expires_at"]:
        rows.append(f"Expires: {local(document['expires_at'], zone)}")
    due = document.get("due_at")
    if due:
        # An unreadable time is shown as the note has it.
        with suppress(ValueError, OverflowError):
            due = minute(due, zone)
        repeat = f" repeat {document['repeat']}" if document.get("repeat") else ""
        rows.append(f"Due:     {due}{repeat}")
    if document.get("validity"):
        rows.append(f"Valid:   {document['validity']}")
    return rows


def changed_note(info: NoteInfo, zone: tzinfo | None, remarks: Sequence[str]) -> str:
    """Return the line of a note in a list of recent changes.

    zone: the time zone of the time shown. None means the zone of this machine.
    remarks: words to show at the end, such as those on the note's validity.
    """
    line = f"{minute(info.changed, zone)}  {short(info.title)}  ({address(info)})"
    return ", ".join([line, *remarks])


def note_head(info: NoteInfo, zone: tzinfo | None, *remarks: str) -> str:
    """Return the heading of a note that is shown with its text.

    zone: the time zone of the day shown. None means the zone of this machine.
    remarks: words to show at the end, such as those on the note's validity.
    """
    changed = f"changed {day(info.changed, zone)}{mark(info)}"
    return ", ".join([f"# {named(info)}", short(info.type), changed, *remarks])


def hit_head(number: int, hit: Hit, zone: tzinfo | None) -> str:
    """Return the first line of a hit: its number, note, type, day and writer.

    number: the place of the hit in the list, from 1.
    zone: the time zone of the day shown. None means the zone of this machine.
    """
    note = hit.note
    note_type = short(note.type)
    if note.phase == ARCHIVED:
        note_type += ", archived"
    head = f"{number}. {named(note)}, {note_type}, {day_of(note, zone)}{mark(note)}"
    writer = note.provenance.who
    # The owner's own notes are most of all, and need no mention.
    if writer in ("owner", "file"):
        return head
    return f"{head}, by {writer}"


def score_line(hit: Hit) -> str:
    """Return how much each feature added to the score of a hit, the largest share first."""
    names = sorted(hit.shares, key=lambda name: abs(hit.shares[name]), reverse=True)
    shares = [f"{name.replace('_', ' ')} {hit.shares[name]:.3f}" for name in names]
    return f"{hit.note.id[:8]} {hit.score:.3f} = {', '.join(shares)}"


def note_section(
    hit: Hit, observations: Sequence[Observation], zone: tzinfo | None, *remarks: str
) -> str:
    """Return a hit as a section of a prompt: a heading, a line on its origin, and its facts.

    observations: the facts of the note. If it has none, the passage of the hit is shown.
    zone: the time zone of the day. None means the zone of this machine.
    remarks: words to show behind the address, such as the author.
    """
    note = hit.note
    heading = f"## {short(note.title)}"
    origin = [day_of(note, zone), short(address(note), _ADDRESS_CHARACTERS), *remarks]
    section = [heading, ", ".join(origin)]
    for observation in observations:
        section.append(f"- {short(fact_text(observation), _FACT_CHARACTERS)}")
    if not observations:
        section.append(short(hit.passage, _FACT_CHARACTERS))
    return "\n".join(section).rstrip()


def fact_text(observation: Observation) -> str:
    """Return an observation as `[category] content`."""
    if observation.category:
        return f"[{observation.category}] {observation.content}"
    return observation.content


def observation_line(observation: Observation) -> str:
    """Return an observation as a line of a list."""
    context = f" ({observation.context})" if observation.context else ""
    return "- " + short(f"{fact_text(observation)}{context}", LINE)


def relation_line(edge: Edge) -> str:
    """Return a relation as a line of a list.

    A relation of the note is `- type [[target]]`, a relation to the note `- from source: type`. The
    address of the other note follows its name.
    """
    context = f" ({edge.context})" if edge.context else ""
    if edge.note:
        where = f" ({address(edge.note)})"
    else:
        where = _STATES.get(edge.state, "")
    if edge.direction == "in":
        return "- " + short(f"from {edge.target}{where}: {edge.type}{context}", LINE)

    relation_type = edge.type
    if " " in relation_type:
        relation_type = f'"{relation_type}"'
    return "- " + short(f"{relation_type} [[{edge.target}]]{context}{where}", LINE)


def related_line(step: Reached, passage: str, *remarks: str) -> str:
    """Return the line of a related note: how many links away it is, and a passage of it.

    passage: the passage to show, "" for none.
    remarks: words to show before the passage, such as the author.
    """
    distance = f"depth {step.depth}"
    row = "- " + ", ".join([named(step.note), distance, f"via {short(step.via)}", *remarks])
    if passage:
        return f"{row}: {short(passage, LINE)}"
    return row


def change_line(changes: Sequence[Change], zone: tzinfo | None, title: str = "") -> str:
    """Return one line of the log, for a single change or for all changes of a run of a job.

    changes: the change, or all changes of the run, newest first.
    zone: the time zone in which the time is shown. None means the zone of this machine.
    title: the title of the changed note. "" if the path shows it already.
    """
    newest = changes[0]
    time = minute(newest.time, zone)
    if len(changes) > 1:
        numbers = f"#{changes[-1].number}-{newest.number}"
        return f"{numbers} {time:<16} {flat(newest.verb)} ({len(changes)} memories)"

    remarks = _count_of_other_notes(newest)
    if newest.details:
        remarks += f" ({_details_text(newest.details)})"
    if title:
        remarks += f'  "{cut(one_line(title), _LOG_TITLE_CHARACTERS)}"'
    agent = newest.agent or "owner"
    cells = (newest.number, time, newest.verb, agent, place_of_change(newest), remarks)
    return _CHANGE.format(*[flat(str(cell)) for cell in cells])


def _details_text(details: Mapping[str, Any]) -> str:
    """Return the details of a change on one line: `reason: expired, age: 30 days`."""
    return ", ".join(f"{name}: {' '.join(str(value).split())}" for name, value in details.items())


def _count_of_other_notes(change: Change) -> str:
    """Return ` (+2 more)` if a change touched three notes. "" if it touched only one."""
    places_written: set[tuple[str, str | None, str]] = set()
    names_written: set[str] = set()
    names_removed: list[str] = []
    for text in change.texts():
        if text.do == "remove":
            names_removed.append(text.path.rpartition("/")[2])
        else:
            path = text.to or text.path
            places_written.add((text.project, text.root, path))
            names_written.add(path.rpartition("/")[2])

    # A note that was moved to another folder is one note, not a new and a removed one.
    notes_removed = [name for name in names_removed if name not in names_written]
    other_notes = len(places_written) + len(notes_removed) - 1
    if other_notes > 0:
        return f" (+{other_notes} more)"
    return ""


def place_of_change(change: Change) -> str:
    """Return `project/path`, or the whole path if the project was open in one process only."""
    project = change.root or change.project.removeprefix(".")
    if change.path:
        return f"{project}/{change.path}"
    return project


def question_lines(item: ReviewItem) -> list[str]:
    """Return the lines of a question to the owner. One about several notes has a line for each."""
    words = [f"{item.kind:<9}"]
    is_about_several = len(item.lines) > 1
    # The line of each note shows its id.
    if not is_about_several:
        words += [ref[:8] for ref in item.refs]
    words.append(item.text)
    return [" ".join(words), *subject_lines(item)]


def subject_lines(item: ReviewItem) -> list[str]:
    """Return a line for each subject of a question. No line if it has only one."""
    if len(item.lines) <= 1:
        return []
    return [f"  {ref[:8]} {line}" for ref, line in zip(item.refs, item.lines, strict=True)]


def preview(content: str, length: int) -> str:
    """Return the first `length` characters as one line, with `...` if more follow."""
    # A line break of two characters becomes one blank. A note may have millions of characters, so
    # only those are looked at that may be shown, and one line break more.
    line = one_line(content[: 2 * length + 2])
    if len(line) <= length:
        return line
    return line[:length] + "..."
