"""`write`, `read`, `list`, `search`, `context`, `delete`, `tag`, and links between memories (contract 001, 3 and 4).

Also how a memory is shown as text: block, row, preview.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from commonplace.cli import output
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import Failure, error_sentence
from commonplace.cli.syntax import Names, Number, Stored, Text, Usage, command, dry_run_option, flag, option, text_from
from commonplace.clock import parse_stamp, stamp
from commonplace.engine.memory_rows import contents, holding, record, records
from commonplace.errors import Ambiguous, CommonplaceError, NotFound
from commonplace.note.model import CATEGORIES, CATEGORY_PROJECT, GLOBAL, INBOX, PHASES, Draft
from commonplace.query import check_memory, day, memory_query, split_list
from commonplace.text.unicode import one_line

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.index.rows import Hit, NoteInfo
    from commonplace.note.model import Note
    from commonplace.query import Query

DEFAULT_TOKENS = 2_000
NO_LIMIT = 1 << 30
LIST_ROW = "{:<8} {:<10} {:<10} {:<10} {:<20} {}"
SEARCH_ROW = "{:<8} {:<10} {:<10} {}"
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


_CATEGORIES = f"One of {', '.join(CATEGORIES)}."
_DAY = 'YYYY-MM-DD, or e.g. yesterday, 7d, "last week", 上周.'


def category_option(help: str = _CATEGORIES) -> Callable[..., Any]:
    """The option `--category` with its help text."""
    return option("--category", type=Names("category", lambda: CATEGORIES), help=help)


def _tags_option(help: str) -> Callable[..., Any]:
    return option("--tags", type=Stored("A,B", "tag"), callback=lambda _, __, value: split_list(value), help=help)


def _limit_option(default: int) -> Callable[..., Any]:
    return option("--limit", type=Number(), default=default, help="How many at most; 0 = all.")


_phase_option = option("--phase", type=Names("phase", lambda: PHASES), help="inbox or organized.")
_scope_option = option("--scope", type=Stored("text", "scope"), help="global or agent:NAME.")


def new_memory_options(function: Any) -> Any:
    """The options `--tags`, `--scope` and `--source` of a memory to be written."""
    function = option("--source", default="manual", help="Where it comes from.")(function)
    scope = option("--scope", type=Stored("text", "scope"), default=GLOBAL, help="global or agent:NAME.")
    function = scope(function)
    return _tags_option("Tags, separated by commas.")(function)


def content_from(words: tuple[str, ...], **checked: Text) -> str:
    """The content of a new memory: `words` or stdin. Raises Failure if it is blank, InvalidInput for `checked`."""
    check_memory(**checked)
    text = text_from(words)
    if not text.strip():
        raise Failure("content must not be empty")
    return text


@command("write", "CONTENT...", keys=("memory",), now=True, example="memory write The staging server is called heron")
@category_option()
@new_memory_options
def write(call: Invocation, *words: str, category: Text, **new: Any) -> None:
    """Store a memory: in the inbox, or organized when a category is given.

    CONTENT is joined by blanks; `-` reads it from stdin.
    """
    text = content_from(words, category=category, scope=new["scope"])
    with call.memory() as memory:
        note = memory.write(Draft(text, CATEGORY_PROJECT, category=category, **new))
        kind = "inbox" if note.phase == INBOX else f"{note.category}/organized"
        call.answer(f"Created {kind} memory: {note.id}", memory=record(memory, note, note.content))


@command("read", "ID...", keys=("memory",), example="memory read 5a1f notes/Plan.md")
def read(call: Invocation, *refs: str) -> None:
    """Show a memory. Counts as one access.

    ID may also be what names a note of any project: a path as `log` shows it, a permalink, a title, an address. Such
    a note stands in the document under the key `note`. Several stand one below the other; their documents are in the
    list `results`.
    """
    with call.memory() as memory:
        infos = [any_note(memory, ref) for ref in refs]
        texts, rows = [], []
        for info in infos:
            note = memory.read(info)
            if info.project == CATEGORY_PROJECT:
                row = record(memory, note, note.content)
                rows.append({"memory": row})
                texts.append("" if call.json else _block(row, memory.settings.zone))
            else:
                rows.append({"note": _note_row(note)})
                texts.append("" if call.json else _note_block(note, memory.settings.zone))
        call.answer_each(texts, rows, "\n\n")


def any_note(memory: Memory, ref: str) -> NoteInfo:
    """The note `ref` names: a memory by its id, else one of any project, by all that `log`, `search` and tools print.

    Raises NotFound, Ambiguous.
    """
    try:
        return memory.memory_id(ref)
    except NotFound as missing:
        names = {each.name.lower(): each.name for each in memory.projects}
        for sign in ("/", ": "):
            project, found, rest = ref.partition(sign)
            if found and (name := names.get(project.lower())):
                with suppress(CommonplaceError):
                    return memory.find_ref((name, rest)) if sign == "/" else memory.find(rest, name)
        try:
            return memory.find(ref)
        except Ambiguous:
            raise
        except CommonplaceError as error:
            near = error.suggestions if isinstance(error, NotFound) else ()
            raise NotFound(ref, missing.project, near) from None


def place_of(info: Note | NoteInfo) -> str:
    """`project/path`, as `log` shows it."""
    return f"{info.project}/{info.path}"


def _note_row(note: Note) -> dict[str, Any]:
    """A note of another project in JSON."""
    row = {key: getattr(note, key) for key in ("id", "title", "type", "project", "path", "permalink", "checksum")}
    times = {"created_at": stamp(note.created), "updated_at": stamp(note.changed)}
    return row | {"tags": list(note.tags), "content": note.content} | times


def _note_block(note: Note, zone: tzinfo | None) -> str:
    """The text of `read` for a note of another project."""
    rows = {"ID": note.id, "Title": note.title, "Type": note.type, "Path": place_of(note), "Link": note.permalink}
    rows |= {"Tags": f"[{' '.join(note.tags)}]", "Created": _local(note.created, zone)}
    rows |= {"Updated": _local(note.changed, zone)}
    return "\n".join([*(f"{name + ':':<9}{value}" for name, value in rows.items()), "", note.content])


def _block(row: dict[str, Any], zone: tzinfo | None) -> str:
    """The text of `read`."""
    shown = row | {"source": row["source"] or "", "tags": " ".join(row["tags"]), "links": " ".join(row["links"])}
    shown |= {key: _local(row[key], zone) for key in ("created_at", "updated_at")}
    lines = [_BLOCK.format_map(shown)]
    if row["expires_at"]:
        lines.append(f"Expires: {_local(row['expires_at'], zone)}")
    if due := row.get("due_at"):
        try:
            due = minute(due, zone)
        except (ValueError, OverflowError):
            pass  # shown as the note has it
        lines.append(f"Due:     {due}" + (f" repeat {row['repeat']}" if row.get("repeat") else ""))
    return "\n".join([*lines, "", row["content"]])


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


@command("list", keys=("memories", "shown", "total"), example="memory list --category preferences --limit 10")
@_phase_option
@category_option()
@_scope_option
@option("--source", type=Stored("text", "source"), help="Only from this source.")
@_limit_option(50)
def list_(call: Invocation, *, limit: int, **filters: Any) -> None:
    """List memories, newest first."""
    wanted = memory_query(**filters)
    with call.memory() as memory:
        infos, total = memory.list(wanted, limit=limit, order="created")
        if call.json:
            return call.document(memories=records(memory, infos), shown=len(infos), total=total)
        if not infos:
            return call.answer("No memories found.")
        zone = memory.settings.zone
        head, last = (
            ("ID", "Phase", "Category", "Source", "Created", "Preview"),
            f"Showing {len(infos)} of {total} memories",
        )
        rows = []
        for info, content in zip(infos, contents(memory, infos), strict=True):
            cells = info.id[:8], info.phase or "", info.category or "", info.source or "", minute(info.created, zone)
            rows.append((*cells, content if call.on_terminal else preview(content, 40)))
        if call.on_terminal:
            return call.table(head, rows, last)
        lines = [LIST_ROW.format(*head), "-" * 100, *(LIST_ROW.format(*row) for row in rows)]
        call.answer("\n".join([*lines, "", last]))


@command(
    "search", "QUERY...", keys=("query", "memories", "total"), example='memory search dark mode --from "last week"'
)
@_tags_option("All of these tags.")
@_scope_option
@_phase_option
@category_option()
@option("--from", "first", metavar="DAY", help=f"Created on this day or later: {_DAY}")
@option("--to", "last", metavar="DAY", help="Created on this day or earlier.")
@_limit_option(0)
@flag("--ranked", "Search words in title, tags and text; best first.")
@option("--max-tokens", "most", type=Number(), metavar="N", help="With --ranked: the best that fit into N tokens.")
@flag("--all", "Also the notes of all other projects.", "every")
def search(
    call: Invocation, *words: str, first: Text, last: Text, limit: int, ranked: bool, most: int | None, every: bool,
    **filters: Any,
) -> None:  # fmt: skip
    """Find memories whose text holds QUERY, newest first. An empty QUERY finds all.

    The words of QUERY are joined by blanks. On a terminal, when no text holds them, the nearest by words are shown.
    With --all the document has the notes of other projects under `notes`, and how many there are as `notes_total`.
    """
    if most is not None and not ranked:
        raise Usage("--max-tokens needs --ranked")
    text, wanted = " ".join(words), memory_query(**filters)
    with call.memory() as memory:
        zone, now = memory.settings.zone, memory.clock()
        from_, until = day(first, "--from", zone, now=now), day(last, "--to", zone, 1, now)
        wanted = wanted.replace(created_from=from_, created_until=until)
        elsewhere = wanted.replace(
            projects=tuple(each.name for each in memory.projects if each.name != CATEGORY_PROJECT)
        )
        found, total, hits = _found(memory, wanted, text, limit, most, ranked=ranked)
        others, others_total, other_hits = (
            _found(memory, elsewhere, text, limit, most, ranked=ranked) if every else ([], 0, [])
        )
        if call.json:
            rows = records(memory, found)
            for row, hit in zip(rows, hits, strict=False):
                row |= {"passage": hit.passage, "score": round(hit.score, 4), "why": hit.why}
            more = _other_rows(others, other_hits) | {"notes_total": others_total} if every else {}
            return call.document(query=text, memories=rows, total=total, **more)
        if call.on_terminal:
            return _show_found(call, memory, wanted, text, [*found, *others], total + others_total, elsewhere, every)
        if not found and not others:
            return call.answer("No matching memories found.")
        lines = [*_rows(memory, found, 80), *(f"{place_of(each)}  {each.title}" for each in others)]
        last_line = f"Found: {total} memories" + (f", {others_total} other notes" if every else "")
        call.answer("\n".join([*lines, "", last_line]))


_NEAREST = 5


def _found(
    memory: Memory, wanted: Query, text: str, limit: int, most: int | None, *, ranked: bool
) -> tuple[list[NoteInfo], int, list[Hit]]:
    """The notes found, how many there are, and with `ranked` their hits."""
    if ranked and text.strip():
        ranking = memory.search(wanted.replace(text=text), limit=limit or NO_LIMIT, max_tokens=most or None)
        return [hit.note for hit in ranking], ranking.total, list(ranking)
    return *holding(memory, wanted, text, limit), []


def _nearest(memory: Memory, wanted: Query, text: str) -> list[NoteInfo]:
    """The notes that come nearest to `text`: those with all of its words, else with any."""
    from commonplace.text.tokens import is_cjk, words

    parts = [
        [each[at : at + 2] for at in range(max(1, len(each) - 1))] if is_cjk(each) else [each] for each in words(text)
    ]
    any_word = " OR ".join(f'"{part}"' for every in parts for part in every)
    for asked in filter(None, (text, any_word)):
        if hits := memory.search(wanted.replace(text=asked), limit=_NEAREST):
            return [hit.note for hit in hits]
    return []


def _other_rows(infos: Sequence[NoteInfo], hits: Sequence[Hit]) -> dict[str, Any]:
    keys = ("id", "title", "type", "project", "path", "permalink")
    rows = [{key: getattr(info, key) for key in keys} for info in infos]
    for row, hit in zip(rows, hits, strict=False):
        row |= {"passage": hit.passage, "score": round(hit.score, 4), "why": hit.why}
    return {"notes": rows}


def _show_found(
    call: Invocation, memory: Memory, wanted: Query, text: str, found: Sequence[NoteInfo], total: int,
    elsewhere: Query, every: bool,
) -> None:  # fmt: skip
    """What was found, for a person: when nothing was, the nearest by words; and how much more other projects hold."""
    foot = [f"Found: {total} {'notes' if every else 'memories'}"]
    if not found and text.strip():
        found = _nearest(memory, wanted.replace(projects=None if every else wanted.projects), text)
        foot = ["No matching memories found."]
        if found:
            output.text(f'Nothing holds "{one_line(text)}". Nearest by words:\n')
            foot = []
    if not every and text.strip() and (others := holding(memory, elsewhere, text, 0)[0]):
        names = dict.fromkeys(each.project for each in others)
        foot.append(f"{len(others)} more in {', '.join(names)}: memory search --all")
    if not found:
        return call.answer("\n".join(foot))
    cells = [
        (info.id[:8], info.phase or "", info.category or "", content)
        if info.project == CATEGORY_PROJECT
        else (place_of(info), info.type, info.project, info.title)
        for info, content in zip(found, contents(memory, found), strict=True)
    ]
    call.table(("ID", "Phase", "Category", "Text"), cells, *foot)


def _rows(memory: Memory, infos: Sequence[NoteInfo], length: int) -> list[str]:
    """Lines of id, phase, category and a preview of `length` characters."""
    return [
        SEARCH_ROW.format(info.id[:8], info.phase, info.category, preview(content, length))
        for info, content in zip(infos, contents(memory, infos), strict=True)
    ]


@command("context", "QUESTION...", keys=("question", "context"), example="memory context what does Anna like")
@option("--max-tokens", type=Number(), default=DEFAULT_TOKENS, help="How long at most; a token is about 4 characters.")
@option("--project", type=Stored("name", "project"), help="Only notes of this project [all].")
def context(call: Invocation, *words: str, max_tokens: int, project: Text) -> None:
    """Print the passages that best answer QUESTION, under the dates and addresses of their notes."""
    with call.memory() as memory:
        projects = None if project is None else (memory.project(project).name,)
        question, most = " ".join(words), max_tokens or DEFAULT_TOKENS
        found = memory.context_for(question, max_tokens=most, projects=projects)
        call.answer(found or f"Nothing found that fits into {most} tokens.", question=question, context=found)


@command("delete", "ID...", keys=("id", "path"), example="memory delete 5a1f 77c2")
@dry_run_option("Only say what would be deleted.")
def delete(call: Invocation, *refs: str, dry_run: bool) -> None:
    """Delete a memory. `memory undo` brings it back.

    Several are one change: all are deleted, or none. Their documents are in the list `results`.
    """
    with call.memory() as memory:
        infos = memories_named(memory, refs)
        if not dry_run:
            memory.delete(*infos)
        verb = "Would delete" if dry_run else "Deleted"
        rows = [{"id": info.id, "path": place_of(info)} for info in infos]
        call.answer_each([f"{verb} memory: {info.id}" for info in infos], rows)


def memories_named(memory: Memory, refs: Iterable[str]) -> list[NoteInfo]:
    """The memories with these ids, each once. Raises NotFound, Ambiguous."""
    return list({info.id: info for info in map(memory.memory_id, refs)}.values())


@command("tag", "ID...", keys=("id", "tags"), example="memory tag 5a1f --add infra,naming")
@option("--add", type=Stored("A,B", "tag"), help="Tags to add.")
@option("--remove", type=Stored("A,B", "tag"), help="Tags to remove.")
def tag(call: Invocation, *refs: str, add: str | None, remove: str | None) -> None:
    """Add tags to a memory or take them away.

    Several are one change: all are tagged, or none. Their documents are in the list `results`.
    """
    with call.memory() as memory:
        notes = memory.tag_many(memories_named(memory, refs), split_list(add), split_list(remove))
        texts = [f"Tags of {note.id[:8]}: [{' '.join(note.tags)}]" for note in notes]
        call.answer_each(texts, [{"id": note.id, "tags": list(note.tags)} for note in notes])


@command("link", "A", "B", keys=("source", "target", "changed"), example="memory link 5a1f 77c2")
def link(call: Invocation, a: str, b: str) -> None:
    """Link two memories, both ways."""
    _change_links(call, "Linked", a, b)


@command("unlink", "A", "B", keys=("source", "target", "changed"), example="memory unlink 5a1f 77c2")
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


@command("backlinks", "ID", keys=("id", "memories"), example="memory backlinks 5a1f")
def backlinks(call: Invocation, ref: str) -> None:
    """List the memories that link to a memory, newest first."""
    with call.memory() as memory:
        info = memory.memory_id(ref)
        found = [each for each in memory.backlinks(info) if each.project == CATEGORY_PROJECT]
        if call.json:
            return call.document(id=info.id, memories=records(memory, found))
        if not found:
            return call.answer("No backlinks found.")
        if call.on_terminal:
            cells = [(each.id[:8], each.phase or "", each.category or "") for each in found]
            rows = [(*row, content) for row, content in zip(cells, contents(memory, found), strict=True)]
            return call.table(("ID", "Phase", "Category", "Preview"), rows, f"Found: {len(found)} backlinks")
        head = [SEARCH_ROW.format("ID", "Phase", "Category", "Preview"), "-" * 80]
        call.answer("\n".join([*head, *_rows(memory, found, 50), "", f"Found: {len(found)} backlinks"]))


@command(
    "resolve-links",
    keys={"resolved": (), "links_added": (), "unresolved": ("id", "target")},
    example="memory resolve-links --dry-run",
)
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
