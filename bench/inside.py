"""Figures taken in this process: indexing, searching, writing, parsing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType

import plain
import vault
from ground import PROJECT, Ground, size
from memoranda.engine import MemorySession, open_session
from memoranda.faces import DEFAULT_TOOLSETS, registry
from memoranda.note.markdown import parse_note
from memoranda.note.model import Draft
from table import Budget, Row, interleaved, milliseconds, seconds

INDEX_SECONDS = 15 / 10_000
"""Budget for indexing one note; it is linear."""
SEARCH_MS = {10_000: 3.0, 100_000: 10.0}
WRITE_MS = 5.0
WRITE_CALLS = 3_000
FLAT = 1.5
INDEX_TIMES = 3.0
PARSED_US = 1e6 / 20_000
FOLDER = "journal/bench"
KINDS = {
    "rare": "a word of one note",
    "common": "a word of most notes",
    "both": "a common and a rare word",
    "phrase": "a phrase",
    "prefix": "a beginning",
    "chinese": "a Chinese word",
    "rare_chinese": "a Chinese name",
    "glued": "a word between Chinese characters",
}


def index(ground: Ground) -> list[Row]:
    """Measure making the whole index, beside putting the same texts into one plain FTS5 table."""
    rows = []
    for notes in ground.sizes:
        folder = ground.vault(notes)
        rounds = 1 if notes > 20_000 else 2
        make = partial(_index, ground, notes)
        make_plain = partial(_index_plain, ground, folder, notes)
        ours, raw = interleaved(rounds, make, make_plain)
        budget = Budget(most=INDEX_SECONDS * notes)
        rows.append(Row(f"index {notes:,} notes", "s", ours, raw, "plain FTS5", budget))
    return rows


def _index(ground: Ground, notes: int) -> float:
    with open_session(ground.new_home(notes), watch=False) as memory:
        return seconds(memory.sync)


def _index_plain(ground: Ground, folder: Path, notes: int) -> float:
    place = ground.folder / f"plain-{notes}.db"
    place.unlink(missing_ok=True)
    return seconds(lambda: plain.index(folder, place))


def index_size(ground: Ground) -> list[Row]:
    """The index file just after it was made, beside the notes' bytes."""
    home = ground.home(ground.notes)
    notes = size(ground.vault(ground.notes))
    ours = sum(path.stat().st_size for path in (home / ".memoranda").glob("index.db*"))
    row = Row(
        f"index size, notes of {notes / 1e6:.1f} MB",
        "MB",
        [ours / 1e6],
        [size(ground.plain_index(ground.notes)) / 1e6],
        "plain FTS5",
        Budget(most=INDEX_TIMES * notes / 1e6),
    )
    return [row]


def parse(ground: Ground) -> list[Row]:
    """A file's text read as a note: header, observations, relations, headings, names. One file of
    each kind that the faces write (typical/), then the vault's own, longer notes."""
    rows = []
    for kind, project, path, text in _typical():
        label = f"parse {kind}, {len(text)} characters"
        rows.append(_parsed(label, [(project, path, text)] * 200, Budget(most=PARSED_US)))
    texts = ground.texts(min(1_000, ground.notes))
    vaults = [(PROJECT, vault.path_of(number), text) for number, text in enumerate(texts)]
    return [*rows, _parsed("parse the vault's notes", vaults, None)]


def _typical() -> list[tuple[str, str, str, str]]:
    """(what it is, project, path, text) of each."""
    kinds = [
        ("a memory", "categories", "preferences/memory.md"),
        ("an entity", "graph", "entity.md"),
        ("an entry", "kv", "default/entry.md"),
        ("a plain note", "notes", "plain.md"),
        ("a rich note", "notes", "rich.md"),
    ]
    folder = Path(__file__).parent / "typical"
    return [
        (kind, project, path, (folder / Path(path).name).read_text("utf-8"))
        for kind, project, path in kinds
    ]


def _parsed(label: str, files: Sequence[tuple[str, str, str]], budget: Budget | None) -> Row:
    changed = datetime(2026, 1, 1, tzinfo=UTC)

    def ours() -> float:
        for project, path, text in files:
            parse_note(text, project=project, path=path, changed=changed)
        return 0.0

    def raw() -> float:
        for _, _, text in files:
            plain.frontmatter(text)
        return 0.0

    def per_file(read_all: Callable[[], float]) -> float:
        microseconds = seconds(read_all) * 1e6
        return microseconds / len(files)

    times = interleaved(9, partial(per_file, ours), partial(per_file, raw))
    return Row(label, "µs", *times, "the header alone, PyYAML in C", budget)


def sweep(ground: Ground) -> list[Row]:
    """One look at every file, as each run of the command line takes it; nothing has changed."""
    folder = ground.vault(ground.notes)
    with open_session(ground.home(ground.notes), watch=False) as memory:
        memory.sync()
        times = interleaved(
            9,
            lambda: milliseconds(memory.sync),
            lambda: milliseconds(lambda: plain.stat_all(folder)),
        )
    return [Row(f"sweep of {ground.notes:,} unchanged notes", "ms", *times, "scandir + stat")]


def search(ground: Ground) -> list[Row]:
    """Warm search over many different queries of every kind, after as many others."""
    rows = []
    for notes in ground.sizes[1:]:
        times: dict[str, tuple[list[float], list[float]]] = {kind: ([], []) for kind in KINDS}
        raw = ground.plain_database(notes)
        with ground.memory(notes) as memory:
            for question in vault.questions(notes, seed=2, per_kind=5):
                expression = plain.expression(question.text, question.kind)
                memory.search(question.text)
                plain.search(raw, expression)
            for question in vault.questions(notes, per_kind=30):
                expression = plain.expression(question.text, question.kind)
                ours, theirs = times[question.kind]
                search_ours = partial(memory.search, question.text)
                search_theirs = partial(plain.search, raw, expression)
                ours.append(milliseconds(search_ours))
                theirs.append(milliseconds(search_theirs))
        raw.close()
        rows += _search_rows(notes, times)
    return rows


def _search_rows(notes: int, times: dict[str, tuple[list[float], list[float]]]) -> list[Row]:
    budget = Budget(most=SEARCH_MS[10_000] if notes <= 10_000 else SEARCH_MS[100_000])
    all_ours: list[float] = []
    all_raw: list[float] = []
    rows = []
    for kind, (ours, raw) in times.items():
        all_ours += ours
        all_raw += raw
        rows.append(Row(f"  {KINDS[kind]}", "ms", ours, raw, "plain FTS5", budget))
    label = f"search, {notes:,} notes"
    return [Row(label, "ms", all_ours, all_raw, "plain FTS5", budget), *rows]


def write(ground: Ground) -> list[Row]:
    """New notes, then lines appended to them: durable and in the index when the call returns."""
    sizes = ground.sizes
    memories = [ground.memory(notes) for notes in sizes]
    target = ground.folder / "plain-files"
    target.mkdir(exist_ok=True)
    texts = _fresh_texts(ground, 60)
    try:
        writes = _write_all(memories, target, texts)
        edits = _edit_all(memories, target, texts)
    finally:
        for memory in memories:
            memory.close()
    rows = []
    for verb, (ours, raw) in (("write", writes), ("edit", edits)):
        budget = Budget(most=WRITE_MS)
        rows += [
            Row(f"{verb}, {notes:,} notes", "ms", times, raw, "file + fsyncs", budget)
            for notes, times in zip(sizes, ours, strict=True)
        ]
    return [*rows, *_flat_rows(sizes, writes[0])]


def _flat_rows(sizes: Sequence[int], ours: Sequence[Sequence[float]]) -> list[Row]:
    """Return a row for each larger home: the same write must cost the same there."""
    baseline = f"with {sizes[0]:,} notes"
    return [
        Row(
            f"the same write, {notes:,} against {sizes[0]:,}",
            "ms",
            times,
            ours[0],
            baseline,
            Budget(times=FLAT),
        )
        for notes, times in zip(sizes[1:], ours[1:], strict=True)
    ]


def _write_all(
    memories: Sequence[MemorySession], target: Path, texts: Sequence[str]
) -> tuple[list[list[float]], list[float]]:
    for memory in memories:
        memory.write(_draft("First of all", "# First of all\n"))
    ours: list[list[float]] = [[] for _ in memories]
    raw: list[float] = []
    for number, text in enumerate(texts):
        draft = _draft(_title(number), text)
        for memory, times in zip(memories, ours, strict=True):
            times.append(milliseconds(partial(memory.write, draft)))
        plain_write = partial(plain.write, target, f"{number}.md", text.encode())
        raw.append(milliseconds(plain_write))
    return ours, raw


def _edit_all(
    memories: Sequence[MemorySession], target: Path, texts: Sequence[str]
) -> tuple[list[list[float]], list[float]]:
    from memoranda.note.edit import Append

    ours: list[list[float]] = [[] for _ in memories]
    raw: list[float] = []
    for number, text in enumerate(texts):
        line = f"- [fact] Line {number} was added later #bench"
        path = f"{FOLDER}/{_title(number)}.md"
        for memory, times in zip(memories, ours, strict=True):
            times.append(milliseconds(partial(memory.edit, (PROJECT, path), Append(line))))
        raw.append(
            milliseconds(partial(plain.write, target, f"{number}.md", f"{text}{line}\n".encode()))
        )
    return ours, raw


def calls(ground: Ground) -> list[Row]:
    """Python functions entered for one write, by the engine and through the tool an agent calls."""
    rows = []
    texts = _fresh_texts(ground, 14)
    budget = Budget(most=WRITE_CALLS)
    for notes in ground.sizes:
        with ground.memory(notes) as memory:
            memory.write(_draft("Counted at first", "# Counted at first\n"))
            counts = [
                _calls(partial(memory.write, _draft(f"Counted {number}", text)))
                for number, text in enumerate(texts[:7])
            ]
            rows.append(
                Row(f"Python calls of a write, {notes:,} notes", "calls", counts, budget=budget)
            )
            tools = registry(DEFAULT_TOOLSETS, memory.settings)
            if notes == ground.notes:
                counts = [
                    _calls(partial(tools.call, memory, "write_note", _arguments(number, text)))
                    for number, text in enumerate(texts[7:])
                ]
                rows.append(
                    Row(
                        f"Python calls of write_note, {notes:,} notes",
                        "calls",
                        counts,
                        budget=budget,
                    )
                )
    return rows


def _arguments(number: int, text: str) -> dict[str, str]:
    return {"title": f"Told {number}", "content": text, "directory": FOLDER, "project": PROJECT}


def _calls(call: Callable[[], object]) -> float:
    """How many Python functions one call enters; calls of C functions are not counted."""
    count = 0

    def entered(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def _fresh_texts(ground: Ground, many: int) -> list[str]:
    """Bodies of notes that are not in the vault, with relations to notes that are."""
    texts = ground.texts(many, seed=7)
    return [text[text.index("\n---\n") + 6 :] for text in texts]


def _draft(title: str, text: str) -> Draft:
    return Draft(text, project=PROJECT, title=title, folder=FOLDER)


def _title(number: int) -> str:
    return f"Thought {number}"
