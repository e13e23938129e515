"""`write`, `read`, `list`, `search`, `context`, `delete`, `tag`, and links between memories (contract 001, 3 and 4).

Also how a memory is shown as text: block, row, preview.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from commonplace.cli import output
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import Failure, Row, error_sentence
from commonplace.cli.syntax import Names, Number, Text, Usage, command, dry_run_option, flag, option, text_from
from commonplace.clock import parse_stamp
from commonplace.engine.memory_rows import contents, holding, home_path, read_record, record, records
from commonplace.errors import NotFound, TimeframeError
from commonplace.note.model import CATEGORIES, CATEGORY_PROJECT, GLOBAL, INBOX, PHASES, Draft
from commonplace.query import check_memory, day, memory_query, split_list
from commonplace.text.unicode import one_line

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.index.rows import Hit, NoteInfo
    from commonplace.note.model import Note

DEFAULT_TOKENS = 2_000
_REFERENCE = re.compile(r"(?=.*[0-9/])(?:memory://\S+|[0-9a-fA-F][0-9a-fA-F-]{3,35}|[^\s:]+/[^\s:]+)").fullmatch
"""What can only be meant as the id or the address of a note, not as a text."""
NO_LIMIT = 1 << 30
LIST_ROW = Row("{:<8} {:<10} {:<10} {:<10} {:<20} {}")
SEARCH_ROW = Row("{:<8} {:<10} {:<10} {}")
_PLACE = ("id", "project", "path")
_BLOCK = """\
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


def category_option(help: str = "One of the categories.") -> Callable[..., Any]:
    """The option `--category` with its help text."""
    return option("--category", type=Names("category", lambda: CATEGORIES), help=help)


def _tags_option(help: str) -> Callable[..., Any]:
    return option("--tags", metavar="A,B", callback=lambda _, __, value: split_list(value), help=help)


def _limit_option(default: int) -> Callable[..., Any]:
    return option("--limit", type=Number(), default=default, help="How many at most; 0 = all.")


_phase_option = option("--phase", type=Names("phase", lambda: PHASES), help="inbox, organized or archived.")
_archived_flag = flag("--archived", "Only archived memories.")
_scope_option = option("--scope", help="global or agent:NAME.")
_as_of_option = option("--as-of", metavar="DATE", help="What was valid then, e.g. 2025-03-01, 2025-03, yesterday.")


_by_option = option("--by", metavar="WHO", help="Only written by: owner, an agent's name, import, web, file.")
_client_option = option("--client", help="Only written with this program: cli, socket, an MCP client's name ...")


def new_memory_options(function: Any) -> Any:
    """The options `--tags`, `--scope` and `--source` of a memory to be written."""
    function = option("--source", default="manual", help="Where it comes from.")(function)
    function = option("--scope", default=GLOBAL, help="global or agent:NAME.")(function)
    return _tags_option("Tags, separated by commas.")(function)


def content_from(words: tuple[str, ...], **checked: Text) -> str:
    """The content of a new memory: `words` or stdin. Raises Failure if it is blank, InvalidInput for `checked`."""
    check_memory(**checked)
    text = text_from(words)
    if not text.strip():
        raise Failure("content must not be empty")
    return text


@command("write", "CONTENT...", keys=("memory",), now=True)
@category_option()
@new_memory_options
@option("--valid-from", metavar="DATE", help="Since when it is so [its date, else when it is written].")
@option("--valid-until", metavar="DATE", help="From when on it is not so any more.")
def write(call: Invocation, *words: str, category: Text, **new: Any) -> None:
    """Store a memory: in the inbox, or organized when a category is given.

    CONTENT is joined by blanks; `-` reads it from stdin.
    """
    text = content_from(words, category=category, scope=new["scope"])
    with call.memory() as memory:
        note = memory.write(Draft(text, CATEGORY_PROJECT, category=category, **new))
        kind = "inbox" if note.phase == INBOX else f"{note.category}/organized"
        said = f"Created {kind} memory: {note.id}"
        if note.expires is not None and output.is_terminal():
            said += (
                f"\nArchived on {_local(note.expires, memory.settings.zone)[:10]} unless read, sorted or pinned before."
            )
        call.answer(said, memory=record(memory, note, note.content))


@command("supersede", "OLD", "NEW...", keys={"old": _PLACE, "new": _PLACE}, now=True)
@option("--valid-from", metavar="DATE", help="Since when NEW is so [its own date, else now].")
def supersede(call: Invocation, ref: str, *words: str, valid_from: Text) -> None:
    """Say that NEW holds now in place of OLD, which stays readable.

    NEW is a memory's id, an address with a slash, or a new text, which takes category, scope and tags of OLD; `-`
    reads the text from stdin.
    """
    with call.memory() as memory:
        old = _named(memory, ref)
        reference = words[0] if len(words) == 1 and _REFERENCE(words[0]) else None
        new = _draft_after(old, content_from(words)) if reference is None else _named(memory, reference)
        before, after = memory.supersede(old, new, valid_from=valid_from)
        said = f"{after.id} supersedes {before.id[:8]}, valid until {before.header['valid_until']}"
        call.answer(said, old=_place(before), new=_place(after))


def _named(memory: Memory, ref: str) -> NoteInfo:
    """The memory of an id or its beginning, else any note `ref` names."""
    try:
        return memory.memory_id(ref)
    except NotFound:
        return memory.find(ref)


def _draft_after(old: NoteInfo, text: str) -> Draft:
    """The draft of what takes the place of `old`."""
    draft = Draft(text, old.project, scope=old.scope, tags=old.tags)
    if old.project == CATEGORY_PROJECT:
        return replace(draft, category=old.category)
    return replace(draft, folder=old.path.rpartition("/")[0], type=old.type)


def _place(note: Note | NoteInfo) -> dict[str, str]:
    return {key: getattr(note, key) for key in _PLACE}


@command("read", "ID", keys=("memory", "provenance"))
@_as_of_option
def read(call: Invocation, ref: str, *, as_of: Text) -> None:
    """Show a memory. Counts as one access."""
    with call.memory() as memory:
        info = memory.memory_id(ref)
        if (moment := _as_of(memory, as_of)) is not None:
            info = memory.version_at(info, moment)
        row = read_record(memory, info)
        said = "" if call.json else _block(row, memory.settings.zone)
        call.answer(said, memory=row, provenance=info.provenance.row())


def _block(row: dict[str, Any], zone: tzinfo | None) -> str:
    """The text of `read`."""
    shown = row | {"source": row["source"] or "", "tags": " ".join(row["tags"]), "links": " ".join(row["links"])}
    shown |= {key: _local(row[key], zone) for key in ("created_at", "updated_at")}
    lines = [_BLOCK.format_map(shown)]
    if row.get("suspicious"):
        lines.append(f"Suspicious: {' '.join(row['suspicious'])}")
    if row["expires_at"]:
        lines.append(f"Expires: {_local(row['expires_at'], zone)}")
    if due := row.get("due_at"):
        try:
            due = minute(due, zone)
        except (ValueError, OverflowError):
            pass  # shown as the note has it
        lines.append(f"Due:     {due}" + (f" repeat {row['repeat']}" if row.get("repeat") else ""))
    if validity := row.get("validity"):
        lines.append(f"Valid:   {validity}")
    return "\n".join([*lines, "", row["content"]])


def _as_of(memory: Memory, text: Text) -> datetime | None:
    """The time `--as-of` asks about, if it is given. Raises Failure."""
    try:
        return None if text is None else memory.as_of(text)
    except TimeframeError:
        raise Failure(f'invalid --as-of date: "{text}"', TimeframeError.code) from None


def _local(value: datetime | str, zone: tzinfo | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time in the clock time of `zone`; None = the system's."""
    moment = parse_stamp(value) if isinstance(value, str) else value
    return moment.astimezone(zone).strftime(form)


def minute(value: datetime | str, zone: tzinfo | None) -> str:
    """A time as `YYYY-MM-DD HH:MM` in the clock time of `zone`; None = the system's."""
    return _local(value, zone, "%Y-%m-%d %H:%M")


def preview(content: str, length: int) -> str:
    """The first `length` characters on one line, `...` appended when cut."""
    flat = one_line(content)
    return flat if len(flat) <= length else flat[:length] + "..."


@command("list", keys=("memories", "shown", "total"))
@_phase_option
@category_option()
@_scope_option
@option("--source", help="Only from this source.")
@_archived_flag
@_as_of_option
@_by_option
@_client_option
@_limit_option(50)
def list_(call: Invocation, *, limit: int, archived: bool, as_of: Text, by: Text, client: Text, **filters: Any) -> None:
    """List memories, newest first; archived ones only when asked for."""
    wanted = memory_query(**filters, archived=archived or None).replace(by=by, client=client)
    with call.memory() as memory:
        wanted = wanted.replace(as_of=_as_of(memory, as_of))
        infos, total = memory.list(wanted, limit=limit, order="created")
        if call.json:
            return call.document(memories=records(memory, infos), shown=len(infos), total=total)
        if not infos:
            return call.answer("No memories found.")
        zone = memory.settings.zone
        lines = [LIST_ROW.format("ID", "Phase", "Category", "Source", "Created", "Preview"), "-" * 100]
        marks = memory.validity_marks(infos)
        for info, content in zip(infos, contents(memory, infos), strict=True):
            cells = info.id[:8], info.phase, info.category, info.source or "", minute(info.created, zone)
            lines.append(LIST_ROW.format(*cells, preview(content, 40) + _mark(marks, info)))
        call.answer("\n".join([*lines, "", f"Showing {len(infos)} of {total} memories"]))


def _mark(marks: Mapping[int, str], info: NoteInfo) -> str:
    """What a row says of a memory that is not valid all the time."""
    return f" ({marks[info.row]})" if info.row in marks else ""


@command("search", "QUERY", keys=("query", "memories", "total"))
@_tags_option("All of these tags.")
@_scope_option
@_phase_option
@category_option()
@option("--from", "first", metavar="YYYY-MM-DD", help="Created on this day or later.")
@option("--to", "last", metavar="YYYY-MM-DD", help="Created on this day or earlier.")
@_archived_flag
@_as_of_option
@_by_option
@_client_option
@_limit_option(0)
@flag("--ranked", "Search words in title, tags and text; best first.")
@option("--max-tokens", "most", type=Number(), metavar="N", help="With --ranked: the best that fit into N tokens.")
def search(
    call: Invocation, text: str, *, first: Text, last: Text, as_of: Text, limit: int, ranked: bool, archived: bool,
    most: int | None, by: Text, client: Text, **filters: Any,
) -> None:  # fmt: skip
    """Find memories whose text holds QUERY, newest first. An empty QUERY finds all.

    Archived ones are found with --archived, and with --ranked below the others.
    """
    if most is not None and not ranked:
        raise Usage("--max-tokens needs --ranked")
    wanted = memory_query(**filters, archived=archived or None).replace(by=by, client=client)
    with call.memory() as memory:
        zone = memory.settings.zone
        wanted = wanted.replace(created_from=day(first, "--from", zone), created_until=day(last, "--to", zone, after=1))
        wanted = wanted.replace(as_of=_as_of(memory, as_of))
        hits: Iterable[Hit] = ()
        if ranked and text.strip():
            wanted = wanted.replace(text=text)
            hits = ranking = memory.search(wanted, limit=limit or NO_LIMIT, max_tokens=most or None)
            found, total = [hit.note for hit in hits], ranking.total
        else:
            found, total = holding(memory, wanted, text, limit)
        if call.json:
            rows = records(memory, found)
            for row, hit in zip(rows, hits, strict=False):
                row |= {"passage": hit.passage, "score": round(hit.score, 4), "why": hit.why}
                row["provenance"] = hit.note.provenance.row()
            return call.document(query=text, memories=rows, total=total)
        if not found:
            return call.answer("No matching memories found.")
        call.answer("\n".join([*_rows(memory, found, 80), "", f"Found: {total} memories"]))


def _rows(memory: Memory, infos: list[NoteInfo], length: int) -> list[str]:
    """Lines of id, phase, category and a preview of `length` characters."""
    marks = memory.validity_marks(infos)
    return [
        SEARCH_ROW.format(info.id[:8], info.phase, info.category, preview(content, length) + _mark(marks, info))
        for info, content in zip(infos, contents(memory, infos), strict=True)
    ]


@command("context", "QUESTION", keys=("question", "context"))
@option("--max-tokens", type=Number(), default=DEFAULT_TOKENS, help="How long at most; a token is about 4 characters.")
@option("--project", metavar="NAME", help="Only notes of this project [all].")
@_as_of_option
def context(call: Invocation, question: str, *, max_tokens: int, project: Text, as_of: Text) -> None:
    """Print the passages that best answer QUESTION, under the dates and addresses of their notes."""
    with call.memory() as memory:
        projects = None if project is None else (memory.project(project).name,)
        most = max_tokens or DEFAULT_TOKENS
        found = memory.context_for(question, max_tokens=most, projects=projects,
                                   as_of=_as_of(memory, as_of))  # fmt: skip
        call.answer(found or f"Nothing found that fits into {most} tokens.", question=question, context=found)


@command("delete", "ID", keys=("id", "path"))
@dry_run_option("Only say what would be deleted.")
def delete(call: Invocation, ref: str, *, dry_run: bool) -> None:
    """Delete a memory. `memory undo` brings it back."""
    with call.memory() as memory:
        info = memory.memory_id(ref)
        if not dry_run:
            memory.delete(info)
        verb = "Would delete" if dry_run else "Deleted"
        call.answer(f"{verb} memory: {info.id}", id=info.id, path=home_path(info))


@command("tag", "ID", keys=("id", "tags"))
@option("--add", metavar="A,B", help="Tags to add.")
@option("--remove", metavar="A,B", help="Tags to remove.")
def tag(call: Invocation, ref: str, *, add: str | None, remove: str | None) -> None:
    """Add tags to a memory or take them away."""
    with call.memory() as memory:
        note = memory.tag(memory.memory_id(ref), split_list(add), split_list(remove))
        call.answer(f"Tags of {note.id[:8]}: [{' '.join(note.tags)}]", id=note.id, tags=list(note.tags))


@command("link", "A", "B", keys=("source", "target", "changed"))
def link(call: Invocation, a: str, b: str) -> None:
    """Link two memories, both ways."""
    _change_links(call, "Linked", a, b)


@command("unlink", "A", "B", keys=("source", "target", "changed"))
def unlink(call: Invocation, a: str, b: str) -> None:
    """Remove the links between two memories, both ways."""
    _change_links(call, "Unlinked", a, b)


def _change_links(call: Invocation, done: str, a: str, b: str) -> None:
    """Link or unlink. Raises Failure naming the end that is missing, or when they are one memory."""
    ends = []
    with call.memory() as memory:
        for name, ref in (("source", a), ("target", b)):
            try:
                ends.append(memory.memory_id(ref))
            except NotFound as error:
                raise Failure(f"{name} not found: {error_sentence(error)}", error.code) from None
        source, target = ends
        if source.id == target.id:
            raise Failure("cannot link a memory to itself")
        changed = (memory.link if done == "Linked" else memory.unlink)(source, target)
        said = f"{done} {source.id[:8]} <-> {target.id[:8]}"
        call.answer(said, source=source.id, target=target.id, changed=changed)


@command("backlinks", "ID", keys=("id", "memories"))
def backlinks(call: Invocation, ref: str) -> None:
    """List the memories that link to a memory, newest first."""
    with call.memory() as memory:
        info = memory.memory_id(ref)
        found = [each for each in memory.backlinks(info) if each.project == CATEGORY_PROJECT]
        if call.json:
            return call.document(id=info.id, memories=records(memory, found))
        if not found:
            return call.answer("No backlinks found.")
        head = [SEARCH_ROW.format("ID", "Phase", "Category", "Preview"), "-" * 80]
        call.answer("\n".join([*head, *_rows(memory, found, 50), "", f"Found: {len(found)} backlinks"]))


@command("resolve-links", keys={"resolved": (), "links_added": (), "unresolved": ("id", "target")})
@dry_run_option("Only say what would be linked.")
def resolve_links(call: Invocation, *, dry_run: bool) -> None:
    """Turn [[wikilinks]] in the text of memories into links."""
    with call.memory() as memory:
        done = memory.resolve_links(dry_run)
        said = f"Resolved backlinks for {done.resolved} memories"
        if dry_run:
            said = "\n".join(f"would link {each.source[:8]} {each.reason}" for each in done.actions)
        unresolved = [{"id": source, "target": target} for source, target in done.unresolved]
        call.answer(said or "Nothing to link.", resolved=done.resolved, links_added=done.added, unresolved=unresolved)
