"""Words notes, hits, changes and other things as lines for people and models.

`short` and `flat` ensure that a line of a reply stays one line, whatever a note contains. Times are
in the reader's time zone. None means the system's zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from memoranda.clock import parse_stamp
from memoranda.errors import project_title
from memoranda.index.rows import day_of
from memoranda.note.model import ARCHIVED, MEMORY_PROJECTS
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
# Characters of a note's title in a line of the log.
_LOG_TITLE_CHARACTERS = 60
MINUTE = "%Y-%m-%d %H:%M"
_SECOND = "%Y-%m-%d %H:%M:%S"
_DAY = "%Y-%m-%d"
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
_CHANGE = "#{} {:<16} {:<10} {:<8} {}{}"


def local(moment: datetime | str, zone: tzinfo | None, form: str = _SECOND) -> str:
    """Return a time, or the time of a stamp, as a clock in the zone shows it.

    moment: the time, or a stamp of it.
    zone: the zone of the clock. None means the zone of this machine.
    form: the form of the result, such as `%Y-%m-%d %H:%M`.
    """
    if isinstance(moment, str):
        moment = parse_stamp(moment)
    return moment.astimezone(zone).strftime(form)


def minute(moment: datetime | str, zone: tzinfo | None) -> str:
    """Return a time like `2026-11-28 14:05`."""
    return local(moment, zone, MINUTE)


def day(moment: datetime | str, zone: tzinfo | None) -> str:
    """Return a day like `2026-11-28`."""
    return local(moment, zone, _DAY)


def short(text: str, most: int = TITLE) -> str:
    """Return a text as one line of at most `most` characters, without invisible characters."""
    # Do not split a long text as a whole. White space may shrink, so take more than is needed.
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


def counted(hits: Hits, word: str = "note") -> str:
    """Return the number of hits with a noun: `1 note`, `10,000 or more notes`."""
    if hits.is_lower_bound:
        return f"{hits.total:,} or more {word}s"
    return plural(hits.total, word)


def address(note: Note | NoteInfo) -> str:
    """Return `project: permalink`, by which any tool finds the note."""
    return flat(f"{project_title(note.project)}: {note.permalink}")


def place(note: Note | NoteInfo) -> str:
    """Return `project/path`, as the log shows a note."""
    return f"{project_title(note.project)}/{note.path}"


def named(note: Note | NoteInfo) -> str:
    """Return the title of a note and its address."""
    return f"{short(note.title)} ({address(note)})"


def mark(note: Note | NoteInfo) -> str:
    """Return the remark on a note that seems to hold injected instructions, otherwise ""."""
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
    """Return the text of a note for a row, with its title in front unless the text begins with it."""
    if info.project in MEMORY_PROJECTS:
        if info.is_broken:
            return f"[header not read] {content}"
        return content
    text = content.strip().lstrip("# ")
    if text.startswith(info.title):
        return text
    return f"{info.title}: {text}".removesuffix(": ")


def whole_note(document: dict[str, Any], zone: tzinfo | None) -> str:
    """Return the document of a whole note as text for people.

    A document without `project` is a memory, which has other lines.
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
        # The path of a note in the home begins with its project, or with the archive's name without
        # the dot.
        inner = document["path"].partition("/")[2]
        head = [_NOTE.format_map(fields | {"place": f"{document['project']}/{inner}"})]
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
    """Return the line of a note in a list of recent changes, with remarks on its validity."""
    line = f"{minute(info.changed, zone)}  {short(info.title)}  ({address(info)})"
    return ", ".join([line, *remarks])


def note_head(info: NoteInfo, zone: tzinfo | None, *remarks: str) -> str:
    """Return the heading of a note that is shown with its text."""
    changed = f"changed {day(info.changed, zone)}{mark(info)}"
    return ", ".join([f"# {named(info)}", short(info.type), changed, *remarks])


def hit_head(number: int, hit: Hit, zone: tzinfo | None) -> str:
    """Return the first line of a hit: its number, note, type, day and writer."""
    note = hit.note
    note_type = short(note.type)
    if note.phase == ARCHIVED:
        note_type += ", archived"
    head = f"{number}. {named(note)}, {note_type}, {day_of(note, zone)}{mark(note)}"
    who = note.provenance.who
    if who in ("owner", "file"):
        return head
    return f"{head}, by {who}"


def score_line(hit: Hit) -> str:
    """Return how much each feature added to the score of a hit, the largest part first."""
    shares = sorted(hit.shares.items(), key=lambda share: -abs(share[1]))
    added = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in shares)
    return f"{hit.note.id[:8]} {hit.score:.3f} = {added}"


def note_section(
    hit: Hit, observations: Sequence[Observation], zone: tzinfo | None, *remarks: str
) -> str:
    """Return a hit as a section of a prompt, with the observations of its note or its passage.

    remarks: words to show behind the address, such as the author.
    """
    note = hit.note
    origin = ", ".join([day_of(note, zone), short(address(note), 300), *remarks])
    head = f"## {short(note.title)}\n{origin}"
    facts = [f"- {short(fact_text(observation), 200)}" for observation in observations]
    return "\n".join([head, *(facts or [short(hit.passage, 200)])]).rstrip()


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

    A relation of the note is `- type [[target]]`, a relation to the note `- from source: type`.
    """
    context = f" ({edge.context})" if edge.context else ""
    end = f" ({address(edge.note)})" if edge.note else ""
    if edge.direction == "in":
        return "- " + short(f"from {edge.target}{end}: {edge.type}{context}", LINE)

    relation_type = edge.type
    if " " in relation_type:
        relation_type = f'"{relation_type}"'
    end = end or _STATES.get(edge.state, "")
    return "- " + short(f"{relation_type} [[{edge.target}]]{context}{end}", LINE)


def related_line(step: Reached, passage: str, *remarks: str) -> str:
    """Return the line of a related note: how many links away it is, and a passage of it.

    remarks: words to show before the passage, such as the author.
    """
    way = [f"depth {step.depth}", f"via {short(step.via)}"]
    row = "- " + ", ".join([named(step.note), *way, *remarks])
    if passage:
        return f"{row}: {short(passage, LINE)}"
    return row


def change_line(changes: Sequence[Change], zone: tzinfo | None, title: str = "") -> str:
    """Return the line of a change in the log, or one line for all changes of a run of a job.

    changes: one change, or the changes of the run, newest first.
    title: the title of its note, if the path does not show it.
    """
    last = changes[0]
    if len(changes) > 1:
        numbers = f"#{changes[-1].number}-{last.number}"
        return (
            f"{numbers} {minute(last.time, zone):<16} {flat(last.verb)} ({len(changes)} memories)"
        )
    details = (last.details or {}).items()
    words = ", ".join(f"{word}: {' '.join(str(value).split())}" for word, value in details)
    remarks = _count_of_other_notes(last)
    if words:
        remarks += f" ({words})"
    if title:
        remarks += f'  "{cut(one_line(title), _LOG_TITLE_CHARACTERS)}"'
    cells = (
        last.number,
        minute(last.time, zone),
        last.verb,
        last.agent or "owner",
        place_of_change(last),
        remarks,
    )
    return _CHANGE.format(*[flat(str(cell)) for cell in cells])


def _count_of_other_notes(change: Change) -> str:
    """Return ` (+2 more)` for a change of three notes, "" for a change of one."""
    places: set[tuple[str, str | None, str]] = set()
    removed_names: list[str] = []
    for text in change.texts():
        if text.do == "remove":
            removed_names.append(text.path.rpartition("/")[2])
        else:
            places.add((text.project, text.root, text.to or text.path))
    # A note that was moved to another folder is one note, not a new and a removed one.
    names = {path.rpartition("/")[2] for _, _, path in places}
    number = len(places) + sum(name not in names for name in removed_names) - 1
    if number > 0:
        return f" (+{number} more)"
    return ""


def place_of_change(change: Change) -> str:
    """Return `project/path`, or the whole path if the project was open in one process only."""
    project = change.root or change.project.removeprefix(".")
    if change.path:
        return f"{project}/{change.path}"
    return project


def question_lines(item: ReviewItem) -> list[str]:
    """Return the lines of a question to the owner. One about several notes has a line for each."""
    is_about_several = len(item.lines) > 1
    refs = [] if is_about_several else [ref[:8] for ref in item.refs]
    return [" ".join([f"{item.kind:<9}", *refs, item.text]), *subject_lines(item)]


def subject_lines(item: ReviewItem) -> list[str]:
    """Return a line for each subject of a question, [] if it has only one."""
    if len(item.lines) <= 1:
        return []
    return [f"  {ref[:8]} {line}" for ref, line in zip(item.refs, item.lines, strict=True)]


def preview(content: str, length: int) -> str:
    """Return the first `length` characters as one line, with `...` if more follow."""
    line = one_line(content)
    if len(line) <= length:
        return line
    return line[:length] + "..."
