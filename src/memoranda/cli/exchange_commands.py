"""The commands that move notes in and out of the memory.

- `export` and `import` write and read notes as lines of JSON (contract 001, 12). `import --from`
  moves in the notes of another program (docs/moving-in.md).
- `graph` shows, exports and imports the knowledge graph (contract 002, 11).
- `ingest` copies the notes of a folder into the memory (contract 001, 3 and 11).
- `backup`, `mirror` and `move-home` copy a whole memory (docs/teams.md).
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from memoranda import documents
from memoranda.cli import output, presets
from memoranda.cli.import_kinds import (
    EXPORT_KINDS,
    KINDS,
    STORE_KINDS,
    can_be_read_again,
    has_entities,
    plan_of_kind,
    right_command,
    words_to_import,
)
from memoranda.cli.invocation import Invocation, input_of
from memoranda.cli.memory_commands import category_option
from memoranda.cli.output import Failure
from memoranda.cli.rows import project_option
from memoranda.cli.syntax import Names, Text, Usage, command, flag, group, option
from memoranda.config import SOURCES
from memoranda.documents.wording import plural
from memoranda.errors import Exists, InvalidInput, MemorandaError, near
from memoranda.note.model import CATEGORY_PROJECT
from memoranda.query import check_memory
from memoranda.sources.files import reason, remove_left
from memoranda.text.unicode import flat, one_line
from memoranda.text.user_path import user_path

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.graph import FileGraph, GraphText
    from memoranda.engine.graphs import NoteGraph
    from memoranda.ingest import Ingestion, IngestPlan
    from memoranda.note.entity import EntityKey
    from memoranda.transfer.jsonl import Tally
    from memoranda.transfer.moving import MovePlan
    from memoranda.transfer.whole_home import Mirrored

# The kinds with which `--project` may be given.
_WITH_PROJECT = ("basic-memory", "okf", "chatgpt", "claude")
_FROM_HELP = f"Import the store of another program: {', '.join(KINDS)}."
# A file is read in blocks of this many bytes.
_BLOCK_BYTES = 1 << 20
_MIRROR_KEYS = ("files", "copied", "removed", "restored", "commits", "change", "left", "notices")
_MOVE_KEYS = ("files", "bytes", "changes", "texts", "checksum", "rewritten", "outside", "left")
# A watched folder is looked at once in this many seconds.
_SECONDS_BETWEEN_LOOKS = 1.0
# After this many looks, the files are compared even if the ledger has no new change.
_LOOKS_BEFORE_COMPARING = 60


@command("export", keys=("exported", "file"), example="memory export --output notes.jsonl")
@option("--output", "file", metavar="FILE", help="The file to write; `-` is stdout [stdout].")
@project_option
@category_option("Only memories of this category.")
@option("--scope", help="Only this scope: global or agent:NAME.")
@flag("--redact", "Replace what looks like a secret by [redacted: rule].")
@option(
    "--to",
    "form",
    type=Names("form", lambda _: ("okf",)),
    help="okf: a bundle of the Open Knowledge Format in the new folder that --output names.",
)
def export(
    call: Invocation,
    *,
    file: Text,
    projects: tuple[str, ...],
    category: Text,
    scope: Text,
    redact: bool,
    form: Text,
) -> None:
    """Write all notes as JSON Lines: memories from the oldest to the newest, then all other notes.

    `memory import` reads the lines again. The line of a note that is not a memory has its `project`
    and `path`. Traces are left out. With --json and no FILE, the lines themselves are printed.
    """
    check_memory(category, scope=scope)
    if file == "-":
        file = None
    if form is not None:
        has_filter = category is not None or scope is not None or redact
        folder = _bundle_folder(form, file, has_filter=has_filter)
        return _export_bundle(call, folder, projects)
    with call.memory(watch=True) as memory:
        names = [memory.project(name).name for name in projects]
        notes_with_secrets = SecretCount()
        lines = _export_lines(
            memory, names, category, scope, redacts=redact, on_secret=notes_with_secrets.add
        )

        # The first line is read now, so that no file is made if there is nothing to export.
        first_line = next(lines, None)
        if first_line is None:
            output.notice("No memories to export.")
            if file is not None and call.json:
                call.document(exported=0, file=None)
            return
        lines = chain([first_line], lines)
        if file is None:
            for line in lines:
                output.text(line, as_json=True)
        else:
            _export_to(call, memory, file, lines)
        if notes_with_secrets.count:
            _warn_of_secrets(notes_with_secrets.count, are_redacted=redact)


class SecretCount:
    """Counts the exported notes that seem to contain a secret, while their lines are written."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        """Count one more note."""
        self.count += 1


def _bundle_folder(form: str, folder: Text, *, has_filter: bool) -> Path:
    """Return the folder into which to write a bundle of the Open Knowledge Format.

    Raises Usage for options that do not fit a bundle.

    form: the value of `--to`.
    folder: the value of `--output`.
    has_filter: whether the command line selects notes, which a bundle does not support.
    """
    if form != "okf":
        raise Usage(f'invalid value "{form}" for --to: must be okf')
    if folder is None or has_filter:
        raise Usage("--to okf needs --output DIR, and takes no other option than --project")
    return user_path(folder)


def _warn_of_secrets(count: int, *, are_redacted: bool) -> None:
    """Warn that some of the exported memories seem to contain a secret.

    count: how many of them.
    are_redacted: whether the secrets were replaced by marks.
    """
    effect = "is redacted" if are_redacted else "is exported as it is; --redact takes it out"
    output.notice(f"warning: {count} memories hold what looks like a secret; it {effect}")


def _export_bundle(call: Invocation, folder: Path, projects: Sequence[str]) -> None:
    """Write the notes of these projects into a folder, as a bundle."""
    from memoranda.transfer.okf import write_bundle

    with call.memory(watch=True) as memory:
        names = [memory.project(name).name for name in projects]
        count = write_bundle(memory, folder, names)
        call.answer(
            f"Exported {plural(count, 'note')} to {folder}", exported=count, file=str(folder)
        )


def _export_lines(
    memory: MemorySession,
    projects: Sequence[str],
    category: Text,
    scope: Text,
    *,
    redacts: bool,
    on_secret: Callable[[], None],
) -> Iterator[str]:
    """Yield the lines of an export: first the memories, then the notes of other projects.

    projects: export only these; empty means all.
    category: export only the memories of this category, and no notes of other projects. None
        exports all.
    scope: export only notes of this scope, such as `global`. None exports all.
    redacts: whether secrets are replaced by marks.
    on_secret: is called for each note that seems to hold a secret.
    """
    from memoranda.transfer.jsonl import exported_lines
    from memoranda.transfer.note_lines import exported_notes

    if not projects or CATEGORY_PROJECT in projects:
        yield from exported_lines(memory, category, scope, redacts=redacts, secret=on_secret)
    # Only memories have a category.
    if category is None:
        yield from exported_notes(memory, projects, scope, redacts=redacts, secret=on_secret)


def _export_to(call: Invocation, memory: MemorySession, file: str, lines: Iterable[str]) -> None:
    """Write the lines of an export to a file, and say how many there are."""
    with output.progress("Exporting") as progress:
        counted_lines = _CountedLines(lines, memory.stats().total, progress)
        _write_file(user_path(file), counted_lines)
    count = counted_lines.count
    noun = "notes" if counted_lines.has_project_notes else "memories"
    call.answer(f"Exported {count} {noun} to {file}", exported=count, file=file)


class _CountedLines:
    """Counts the lines of an export while they are written, and shows the progress.

    count: how many lines were yielded until now.
    has_project_notes: whether one of them is a note of a project, not a memory.
    """

    def __init__(
        self, lines: Iterable[str], total: int, progress: Callable[[int, int], None] | None
    ):
        """Take the lines of an export.

        total: about how many lines there are.
        progress: is called with (lines written, all lines). None shows nothing.
        """
        self._lines = lines
        self._total = total
        self._progress = progress
        self.count = 0
        self.has_project_notes = False

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.count += 1
            if line.startswith('{"project"'):
                self.has_project_notes = True
            yield line
            if self._progress is not None:
                self._progress(self.count, max(self._total, self.count))


# The name of a temporary file that an interrupted export left. The group is its process id.
_UNFINISHED_EXPORT = re.compile(r"\.export-(\d+)-\w+")


def _write_file(place: Path, lines: Iterable[str]) -> None:
    """Write lines to a file. Raises Failure; then the file has its former content."""
    target = Path(os.path.realpath(place))
    data = (line.encode("utf-8", "backslashreplace") + b"\n" for line in lines)
    try:
        # A pipe or a device cannot be replaced, so it is written to directly.
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:
                stream.writelines(data)
        else:
            _replace_file(target, data)
    except OSError as error:
        raise Failure(f"cannot write {place}: {reason(error)}", "storage") from None


def _replace_file(target: Path, data: Iterable[bytes]) -> None:
    """Give a file a new content by way of a temporary file beside it. Raises OSError.

    A new file can be read by its owner only. An existing file keeps its permissions.
    """
    mode = 0o600
    if target.exists():
        mode = target.stat().st_mode & 0o777
    # A process that was killed may have left its temporary file.
    remove_left(target.parent, _UNFINISHED_EXPORT)
    with tempfile.NamedTemporaryFile(
        dir=target.parent, prefix=f".export-{os.getpid()}-", delete=False
    ) as temporary_file:
        try:
            temporary_file.writelines(data)
            temporary_file.flush()
            os.fchmod(temporary_file.fileno(), mode)
            os.fsync(temporary_file.fileno())
            os.replace(temporary_file.name, target)
        finally:
            Path(temporary_file.name).unlink(missing_ok=True)


@command(
    "import",
    "[FILE]",
    keys=("imported", "updated", "unchanged", "skipped"),
    example="memory import memories.jsonl",
)
@option(
    "--input",
    "file",
    metavar="FILE",
    help="The file to read, as FILE; `-` is stdin.",
)
@option(
    "--from",
    "store",
    nargs=2,
    type=(Names("kind", lambda _: KINDS), str),
    metavar="KIND PATH",
    help=_FROM_HELP,
)
@option(
    "--project",
    metavar="NAME",
    help="With --from basic-memory, okf, chatgpt or claude: the project the notes go to.",
)
@flag("--dry-run", "Only say what would be imported.")
@flag("--skip-bad", "Leave out what cannot be read, and import the rest.")
def import_(
    call: Invocation,
    file_argument: Text = None,
    *,
    file: Text,
    store: tuple[str, str] | None,
    project: Text,
    dry_run: bool,
    skip_bad: bool,
) -> None:
    """Import notes from FILE; nothing of them is lost. Repeating it changes nothing.

    FILE has the lines of `memory export`. Without FILE, they are read from stdin.

    Everything is checked before anything is written. If a memory exists already, its newer text
    stays, and the older one goes into the history.
    """
    _check_import(file_argument, file, store, project)
    if store is None:
        lines_file = file if file_argument is None else file_argument
        with _naming_kind_of_file(call, lines_file):
            _import_lines(call, lines_file, dry_run=dry_run, skip_bad=skip_bad)
        return None
    kind, path = store
    return _move_in(call, kind, path, project=project, dry_run=dry_run, skip_bad=skip_bad)


def _check_import(
    file_argument: Text, input_file: Text, store: tuple[str, str] | None, project: Text
) -> None:
    """Raise Usage for arguments of `import` that do not go together.

    file_argument: the argument FILE.
    input_file: the option `--input`, which names the same file.
    store: the two words of `--from`, KIND and PATH.
    project: the option `--project`.
    """
    if file_argument is not None and input_file is not None:
        raise Usage("FILE and --input exclude each other")
    has_file = file_argument is not None or input_file is not None
    if store is not None and has_file:
        raise Usage("--from names its own PATH: leave out --input")
    kind = store[0] if store is not None else ""
    if project is not None and kind not in _WITH_PROJECT:
        raise Usage(
            f"--project needs --from {', '.join(_WITH_PROJECT[:-1])} or {_WITH_PROJECT[-1]}"
        )
    if store is not None and kind not in KINDS:
        raise Usage(f'invalid value "{kind}" for --from: must be one of {", ".join(KINDS)}')


@contextmanager
def _naming_kind_of_file(call: Invocation, file: Text) -> Iterator[None]:
    """If lines cannot be imported from another program's store, name the command that can.

    file: the file to import. None means stdin.

    Raises Failure.
    """
    try:
        yield
    except MemorandaError as error:
        place = user_path(file) if file is not None else None
        if place is None or not can_be_read_again(place):
            raise
        with call.memory(watch=True) as memory:
            words = words_to_import(memory, place)
        if not words:
            raise
        raise Failure(f"{error}. {right_command(words, place)}", error.code) from None


def _import_lines(call: Invocation, file: Text, *, dry_run: bool, skip_bad: bool) -> None:
    """Import the lines of `memory export`.

    file: the file. None means stdin.
    dry_run: whether only to say what would be imported.
    skip_bad: whether to leave out bad lines, instead of importing nothing.
    """
    from memoranda.transfer.jsonl import Import, Tally
    from memoranda.transfer.note_lines import NoteImport

    with (
        input_of(file) as stream,
        call.memory(watch=True) as memory,
        _seekable(stream, memory.home) as source,
    ):
        # Two readers share the file: each takes only the lines of its kind.
        memory_import = Import(memory, source, skip_bad=skip_bad)
        note_import = NoteImport(memory, source, skip_bad=skip_bad)
        memory_tally = Tally()
        note_tally = Tally()
        if dry_run:
            show_plan = partial(_show_planned_line, call)
            memory_tally = memory_import.plan(show_plan, output.notice)
            note_import.run(note_tally, output.notice, show_plan)
            return _answer_imported(call, "Would import", memory_tally, note_tally)
        if not skip_bad:
            # One bad line must prevent the whole import, so all lines are read once before the
            # first is written.
            memory_import.check()
            note_import.run(Tally(), output.notice, lambda line: None)

        def imported_count() -> int:
            return memory_tally.imported + memory_tally.updated

        with _importing(imported_count, "memories") as progress:
            memory_import.run(memory_tally, output.notice, progress)
            note_import.run(note_tally, output.notice)
        _answer_imported(call, "Imported", memory_tally, note_tally)


def _show_planned_line(call: Invocation, line: str) -> None:
    """Print a line of a plan, unless the answer is JSON."""
    if not call.json:
        output.text(flat(line))


def _answer_imported(call: Invocation, verb: str, memories: Tally, notes: Tally) -> None:
    """Answer with the counts of imported notes. If all are memories, the answer calls them so.

    verb: the word for the import, such as `Imported`.
    memories: the counts of the lines of memories.
    notes: the counts of the lines of other notes.
    """
    note_counts = asdict(notes)
    counts = {name: number + note_counts[name] for name, number in asdict(memories).items()}
    noun = "notes" if any(note_counts.values()) else "memories"
    _mention_unchanged(counts["unchanged"])
    call.answer(f"{verb} {counts['imported'] + counts['updated']} {noun}", **counts)


@contextmanager
def _importing(count: Callable[[], int], noun: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show the progress of an import. If it fails, print how many notes were imported before.

    count: returns how many notes were imported until now.
    noun: the word for the imported notes, for messages.

    Yields a function to call with (steps done, all steps). Yields None without a terminal.
    """
    try:
        with output.progress("importing") as progress:
            yield progress
    except MemorandaError as error:
        number = count()
        if number:
            output.notice(
                f"{number} {noun} were imported before that; import the same again to go on"
            )
        # All places were free when the import was planned, so the user has none to choose.
        if isinstance(error, Exists):
            raise Failure(
                f"{error.path} was written by another program during the import",
                error.code,
                "Import the same again: what is there already stays as it is.",
            ) from None
        raise


@contextmanager
def _seekable(stream: BinaryIO, home: Path) -> Iterator[BinaryIO]:
    """Yield a stream that can be read several times.

    This is `stream` itself or, if it can be read only once, a copy in an unnamed temporary file.

    home: the folder on whose disk the copy is made.
    """
    from memoranda.sources.layout import Layout

    if stream.seekable() and stream is not getattr(sys.stdin, "buffer", None):
        yield stream
        return
    try:
        with tempfile.TemporaryFile(dir=Layout(home).private) as spooled:
            while block := stream.read(_BLOCK_BYTES):
                spooled.write(block)
            yield spooled
    except OSError as error:
        raise Failure(f"cannot read the input: {reason(error)}", "storage") from None


def _move_in(
    call: Invocation, kind: str, path: str, *, project: Text, dry_run: bool, skip_bad: bool
) -> None:
    """Move the notes of another program into the memory.

    Plan the move, report the files that it leaves behind and, unless `dry_run`, carry it out.

    kind: the kind of store, such as `agent-files`.
    path: the place of the store.
    project: the project for the notes. None means the default project.
    skip_bad: whether to leave out notes that cannot be read, instead of ending with an error.
    """
    with call.memory(watch=True) as memory:
        if kind == "graph-jsonl":
            plan, text = _plan_of_graph(memory, path)
        else:
            target = project or memory.default_project
            place = user_path(path)
            plan = plan_of_kind(memory, kind, place, target, skip_bad=skip_bad)
            text = _plan_counts(kind, plan)
            for name, why in plan.skipped:
                output.notice(flat(f"skipped {name}: {why}"))
        verb = "Would import" if dry_run else "Imported"
        if kind == "graph-jsonl":
            # Its words say how much the file has, not how much of it is new.
            _mention_unchanged(plan.unchanged if plan.items else 0)
            verb = verb if plan.items else "Nothing new in"
        if dry_run:
            _show_plan(call, plan)
        else:
            with _importing(lambda: plan.done, f"of {len(plan.items)}") as progress:
                plan.carry_out(progress)
        call.answer(
            f"{verb} {text}",
            imported=plan.count("import"),
            updated=plan.count("update"),
            unchanged=plan.unchanged,
            skipped=len(plan.skipped),
        )


def _plan_of_graph(memory: MemorySession, path: str) -> tuple[MovePlan, str]:
    """Plan the import of a file with the lines of a graph. Returns (plan, its numbers in words).

    path: the path of the file. `-` means stdin.
    """
    from memoranda.transfer.moving import WrongStore, plan_graph

    place = user_path(path)
    if path != "-" and can_be_read_again(place) and not has_entities(place):
        words = words_to_import(memory, place)
        if words is not None:
            raise WrongStore(f"{place} holds no entities. {right_command(words, place)}")
    lines = _read_graph(path)
    plan = plan_graph(_graph_to_fill(memory, path), lines)
    return plan, _graph_counts_text(_graph_counts(lines))


def _show_plan(call: Invocation, plan: MovePlan) -> None:
    """Print a line for each note that a plan would write. With `--json`, only the answer is
    printed.
    """
    if call.json:
        return
    for line in plan.lines():
        output.text(flat(line))


def _plan_counts(kind: str, plan: MovePlan) -> str:
    """Return the numbers of a plan in words: `12 files (3 were there, 1 skipped)`."""
    count = plan.count("import") + plan.count("update")
    noun = "files"
    if kind in EXPORT_KINDS or kind in STORE_KINDS:
        noun = "memories and conversations"
    elif kind == "agent-memory":
        noun = "entries"
    return f"{count} {noun} ({plan.unchanged} were there, {len(plan.skipped)} skipped)"


graph = group(
    "graph",
    "exchange_commands",
    "show export import",
    "Show an entity of the knowledge graph; export or import the graph as JSON Lines.",
)


@command(
    "show",
    "NAME...",
    keys=("entity", "relations"),
    complete="entity",
    example="memory graph show Anna",
)
def graph_show(call: Invocation, *words: str) -> None:
    """Show an entity: its type, its observations, and its relations, both ways.

    The words of NAME are joined by blanks.
    """
    name = " ".join(words)
    with call.memory(looks_once=True) as memory:
        graph = _graph_of_tools(memory)
        entity = _entity_called(graph, name)
        [observations] = graph.observations([entity])
        edges = [
            relation
            for relation in graph.relations({entity.name})
            if entity.name in (relation.source, relation.target)
        ]
    lines = [f"{entity.name} ({entity.type})"]
    lines += [f"- {observation}" for observation in observations]
    lines += [f"{edge.source} -> {edge.type} -> {edge.target}" for edge in edges]
    document = documents.entity(entity.name, entity.type, observations)
    rows = [documents.entity_relation(edge) for edge in edges]
    call.answer("\n".join(lines), entity=document, relations=rows)


def _entity_called(graph: NoteGraph | FileGraph, name: str) -> EntityKey:
    """Return the entity of this name. If none has exactly this name, ignore upper and lower case.

    Raises Failure if no entity has the name.
    """
    exact_matches = graph.named([name])
    if exact_matches:
        return exact_matches[0]
    entities = graph.keys()
    for entity in entities:
        if entity.name.casefold() == name.casefold():
            return entity
    guesses = near(name, (entity.name for entity in entities))
    raise Failure(f"no such entity: {name}", "not_found", guesses=guesses)


@command(
    "export", "[FILE]", keys=("file", "count", "lines"), example="memory graph export graph.jsonl"
)
def graph_export(call: Invocation, file: str | None = None) -> None:
    """Write the graph to FILE, one entity or relation a line; without FILE, print it.

    It is the graph that the graph tools use. With --json and no FILE, the document has the lines.
    """
    with call.memory() as memory:
        from memoranda.engine.graph import graph_lines

        lines = graph_lines(_graph_of_tools(memory))
    if file is None:
        if call.json:
            call.document(file=None, count=len(lines), lines=lines)
        elif lines:
            output.text("\n".join(lines), as_json=True)
        return
    place = user_path(file)
    _write_file(place, lines)
    call.answer(
        f"Exported {plural(len(lines), 'line')} to {place}",
        file=str(place),
        count=len(lines),
        lines=None,
    )


@command(
    "import",
    "FILE",
    keys=("entities", "relations", "skipped"),
    example="memory graph import graph.jsonl",
)
def graph_import(call: Invocation, file: str) -> None:
    """Import the entities and relations of FILE: JSON Lines, or one JSON value. `-` reads stdin.

    They are added to the graph that the graph tools use or, if that is FILE itself, to the notes.
    Existing entities get the observations that they lack. Running it twice changes nothing.
    """
    lines = _read_graph(file)
    with call.memory() as memory:
        from memoranda.transfer.moving import plan_graph

        target = _graph_to_fill(memory, file)
        plan = plan_graph(target, lines)
        target.merge(lines.entities, lines.relations)
    counts = _graph_counts(lines)
    _mention_unchanged(plan.unchanged if plan.items else 0)
    verb = "Imported" if plan.items else "Nothing new in"
    call.answer(f"{verb} {_graph_counts_text(counts)}", **counts)


def _mention_unchanged(count: int) -> None:
    """Print on stderr how many of the imported things were here before. 0 prints nothing.

    Contracts fix the line on stdout.
    """
    if count:
        verb = "was" if count == 1 else "were"
        output.notice(f"{count:,} {verb} here already")


def _read_graph(file: str) -> GraphText:
    """Read the entities and relations of a file. `-` means stdin.

    Bad lines are reported. A byte that is not UTF-8 makes only its line bad. Raises Failure.
    """
    from memoranda.engine.graph import parse_graph

    with input_of(file) as stream:
        lines = parse_graph(stream.read().decode("utf-8", "surrogateescape"))
    for number, why in lines.bad:
        output.notice(f"line {number}: {why}")
    return lines


def _graph_counts(lines: GraphText) -> dict[str, int]:
    """Return the numbers of entities, relations and bad lines, as keys of a JSON document."""
    entities = {entity.name for entity, _ in lines.entities}
    relations = {relation.triple for relation in lines.relations}
    return {"entities": len(entities), "relations": len(relations), "skipped": len(lines.bad)}


def _graph_counts_text(counts: Mapping[str, int]) -> str:
    """Say in words how much an import of a graph adds."""
    return (
        f"{counts['entities']} entities, {counts['relations']} relations "
        f"({counts['skipped']} lines skipped)"
    )


def _graph_of_tools(memory: MemorySession) -> NoteGraph | FileGraph:
    """Return the graph that the graph tools use: the graph file, or the notes (contract 002, 8)."""
    from memoranda.engine.graphs import graph_in

    return graph_in(memory, presets.graph_file(memory.settings.graph_file))


def _graph_to_fill(memory: MemorySession, imported_file: str) -> NoteGraph | FileGraph:
    """Return the graph into which to import a file.

    This is the graph that the graph tools use. But a graph that is in the imported file itself would
    be imported into itself. Then this is the graph of the notes.

    imported_file: the path of the file. `-` means stdin.
    """
    from memoranda.engine.graphs import graph_in

    graph_file = presets.graph_file(memory.settings.graph_file)
    if graph_file is None or imported_file == "-":
        return _graph_of_tools(memory)
    is_same_file = graph_file.exists() and graph_file.samefile(user_path(imported_file))
    if is_same_file:
        return graph_in(memory, None)
    return _graph_of_tools(memory)


_ALL_SOURCES = "all"
_SOURCES_HELP = f"Sources, separated by commas: {', '.join(SOURCES)}."


@command(
    "ingest",
    keys=("sources", "total"),
    example="memory ingest --source obsidian --path ~/vault --dry-run",
)
@option(
    "--source",
    "source_names",
    default=_ALL_SOURCES,
    type=Names("list", lambda _: (_ALL_SOURCES, *SOURCES)),
    help=_SOURCES_HELP,
)
@option(
    "--path", metavar="DIR", help="The folder to read instead of the usual folder of the source."
)
@flag("--dry-run", "Only say what would be stored.")
@flag("--again", "Also bring back memories that were deleted or have expired.")
def ingest(call: Invocation, *, source_names: str, path: Text, dry_run: bool, again: bool) -> None:
    """Store the notes of other programs as memories in the inbox; their files are not changed.

    A file is stored once. When its text changes, its memory is changed, too. Use this for a program
    that you stop using. A vault that you go on using is added in place: `memory project add`.
    """
    from memoranda import ingest

    sources = ingest.named_sources(source_names, path, call.settings)
    with call.memory() as memory, output.progress("Ingesting") as progress:
        plans, done_outcomes = ingest.run(
            memory, sources, dry_run=dry_run, takes_removed=again, progress=progress
        )
    outcomes = {plan.source: outcome for plan, outcome in zip(plans, done_outcomes, strict=True)}
    if not call.json:
        _warn_of_ingestion(outcomes)
        # All sources read the one folder, so the same file may be read several times.
        if path is not None and source_names == _ALL_SOURCES and len(outcomes) > 1:
            _warn_of_several_readers(list(outcomes))
    total = sum(outcome.ingested for outcome in done_outcomes)
    lines = _planned_lines(plans) if dry_run else _ingested_lines(outcomes, total)
    call.answer(
        "\n".join(lines),
        sources={name: asdict(outcome) for name, outcome in outcomes.items()},
        total=total,
    )


def _warn_of_several_readers(sources: Sequence[str]) -> None:
    """Warn that several sources read the files of one folder."""
    output.notice(
        f"warning: {', '.join(sources)} each read this folder in their own way, "
        "so a file may be several memories"
    )
    output.notice("Name the one whose notes these are, e.g. --source obsidian.")


def _warn_of_ingestion(outcomes: Mapping[str, Ingestion]) -> None:
    """Print the warnings of each source."""
    for source, outcome in outcomes.items():
        for warning in outcome.warnings:
            output.notice(one_line(f"warning: {source}: {warning}"))


def _planned_lines(plans: Sequence[IngestPlan]) -> list[str]:
    """Return the lines of `ingest --dry-run`: new memories, then memories whose files changed."""
    lines = [f"would ingest {item.source_ref}" for plan in plans for item in plan.new]
    for plan in plans:
        lines += [f"would update {info.id[:8]} {item.source_ref}" for info, item in plan.changed]
    return [one_line(line) for line in lines] or ["Nothing to ingest."]


def _ingested_lines(outcomes: Mapping[str, Ingestion], total: int) -> list[str]:
    """Return the lines of `ingest`: one or two lines for each source, and the total.

    outcomes: the outcome of each source, by its name.
    total: the number of new memories.
    """
    lines = []
    for source, outcome in outcomes.items():
        lines.append(f"Ingested {outcome.ingested} memories from {source}")
        if outcome.updated:
            lines.append(f"Updated {outcome.updated} memories from {source}")
    if lines:
        lines.append("")
    return [*lines, f"Total: {total} new memories ingested"]


def _after_erase(*_: object) -> tuple[str, ...]:
    """Return the values of `mirror --after-erase`."""
    from memoranda.transfer.git_history import AFTER_ERASE

    return AFTER_ERASE


@command("backup", "DIR", keys=_MOVE_KEYS, example="memory backup ~/backups/2026-11-28")
def backup(call: Invocation, folder: str) -> None:
    """Copy the whole memory, with its history, into the empty folder DIR while it is in use.

    The copy is read again and compared. It is a complete home, which memory --home DIR opens.
    """
    from memoranda.transfer.whole_home import back_up

    if call.caller is not None:
        raise InvalidInput("a backup holds all notes; run this without an agent's name")
    with call.memory() as memory, output.progress("Copying") as progress:
        copied = back_up(memory, user_path(folder), progress)
    summary = _size_of_copy(copied.files, copied.changes, copied.texts)
    lines = [f"Copied {summary} to {folder}"]
    lines += [f"All notes read again at {folder} are the same: {copied.checksum}"]
    lines += [f"project {name} is in a folder elsewhere and not copied" for name in copied.outside]
    call.answer("\n".join(lines), **asdict(copied))


@command("mirror", "DIR", keys=_MIRROR_KEYS, example="memory mirror ~/memory-mirror --git")
@flag("--git", "Commit the changes of each run to git. Later runs commit without this option, too.")
@option(
    "--after-erase",
    type=Names("what", _after_erase),
    help="If commits have texts that were erased since: rewrite these commits, or keep them.",
)
@flag("--watch", "Run until stopped, and copy each change.")
def mirror(call: Invocation, folder: str, *, git: bool, after_erase: Text, watch: bool) -> int:
    """Keep the folder DIR an exact copy of the memory, others' private notes included.

    A run copies what changed since the last run, even if that was killed. Changes that somebody makes
    in DIR are taken back. `memory import --from mirror DIR` imports everything into a home.
    """
    if after_erase is not None and after_erase not in _after_erase():
        raise Usage(
            f'invalid value "{after_erase}" for --after-erase: use {" or ".join(_after_erase())}'
        )
    with call.memory(watch=True) as memory:
        from memoranda.transfer.whole_home import Mirror

        copy = Mirror(memory, user_path(folder))
        copied_stamp = ""
        looks_since_run = 0
        while True:
            # The stamp changes with each change of the memory. Now and then the folder is compared
            # without a change of it, too, because somebody may have changed files in the folder.
            stamp = memory.journal_stamp()
            if stamp != copied_stamp or looks_since_run >= _LOOKS_BEFORE_COMPARING:
                copied_stamp = stamp
                looks_since_run = 0
                with output.progress("Mirroring") as progress:
                    outcome = copy.run(git=git, after_erase=after_erase, progress=progress)
                _show_mirrored(call, folder, outcome, only_changes=watch)
            if not watch:
                return 1 if outcome.left else 0
            looks_since_run += 1
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _show_mirrored(call: Invocation, folder: str, outcome: Mirrored, *, only_changes: bool) -> None:
    """Print the result of a run of `mirror`.

    folder: the folder of the copy, as the user wrote it.
    outcome: the counts of the run, and its problems.
    only_changes: whether to print nothing if the run had nothing to do.
    """
    for place in outcome.left:
        output.notice(f"warning: {place} could not be read; its copy stays as it was")
    for problem in outcome.notices:
        output.notice(f"warning: {problem}")
    has_changes = any((outcome.copied, outcome.removed, outcome.restored, outcome.commits))
    if only_changes and not has_changes:
        return
    counts = [f"{outcome.copied} copied", f"{outcome.removed} removed"]
    if outcome.restored:
        counts.append(f"{outcome.restored} put back")
    if outcome.commits:
        counts.append(plural(outcome.commits, "commit"))
    files = f"{plural(outcome.files, 'file')} ({', '.join(counts)})"
    call.answer(f"{folder}: {files}, as of change #{outcome.change}", **asdict(outcome))
    output.flush()


@command(
    "move-home",
    "FROM",
    "TO",
    keys=_MOVE_KEYS,
    example="memory move-home ~/.memory /srv/memory --dry-run",
)
@flag("--dry-run", "Only say what would be moved.")
def move_home(call: Invocation, source: str, target: str, *, dry_run: bool) -> None:
    """Copy the whole memory at FROM to TO, with its history, and prove that nothing is missing.

    FROM stays. Both are folders, or one of them is an address postgresql://…?space=NAME. TO must be
    empty, or have an interrupted move from FROM, which is resumed.
    """
    from memoranda.transfer.whole_home import move

    if call.caller is not None:
        raise InvalidInput("moving a home is the owner's; run this without an agent's name")
    with output.progress("Moving") as progress:
        moved = move(source, target, dry_run=dry_run, progress=progress)
    source = _place_without_password(source)
    target = _place_without_password(target)
    summary = _size_of_copy(moved.files, moved.changes, moved.texts)
    verb = "Would move" if dry_run else "Moved"
    lines = [f"{verb} {summary} from {source} to {target}"]
    if moved.checksum:
        lines.append(f"All notes read again at {target} are the same: {moved.checksum}")
    lines += [f"{name}: its paths are now those of {target}" for name in moved.rewritten]
    lines += [f"project {name} lies elsewhere and stays there" for name in moved.outside]
    lines += [f"{name} is no file of a memory and stays" for name in moved.left]
    if not dry_run:
        lines.append(
            f"Nothing at {source} was changed. Use the new home with --home or MEMORY_HOME."
        )
    call.answer("\n".join(lines), **asdict(moved))


def _size_of_copy(files: int, changes: int, texts: int) -> str:
    """Return the size of a copy in words: `3 files, 1 change, 2 older texts`.

    files, changes, texts: how many files, changes of the history, and replaced texts it has.
    """
    return f"{plural(files, 'file')}, {plural(changes, 'change')}, {plural(texts, 'older text')}"


def _place_without_password(place: str) -> str:
    """Return a place to print: a folder unchanged, a database's address without its password."""
    from urllib.parse import parse_qsl, urlencode, urlsplit

    from memoranda.transfer.whole_home import DATABASE

    if not place.startswith(DATABASE):
        return place
    parts = urlsplit(place)
    # The password is in front of the host, USER:PASSWORD@HOST, or a parameter of the query.
    host = parts.netloc.rpartition("@")[2]
    parameters = parse_qsl(parts.query)
    harmless = [(name, value) for name, value in parameters if "password" not in name]
    query = urlencode(harmless, safe="/")
    return parts._replace(netloc=host, query=query).geturl()
