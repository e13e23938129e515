"""Searching the home, and what of the projects is ours, for words and lines of what was erased."""

from __future__ import annotations

import mmap
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from commonplace.engine.engine import Engine
from commonplace.index.database import SCHEMA
from commonplace.store.layout import TEMP_PREFIX

_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff-]{8,}")
_TELLING = re.compile(rb"(?!\d{4}-\d\d-\d\d)(?:(?=.*[0-9\x80-\xff])|.{16})", re.DOTALL)
"""What a word must be that no other text holds by chance: one with a digit or of another alphabet, or a long one."""
_OUR_KEYS = re.compile(rb"(?:(?:created|updated|accessed|expires|fired|due|acked)_at|phase|category|scope|type): .*")
_SHARED = b"source: ", b"namespace: ", b"content_hash: "
"""Header lines that other notes may have alike; their words count."""
_LEAST_LINE, _MOST_LINES, _MOST_MENTIONS = 16, 100, 20


@dataclass(slots=True)
class Needles:
    """What to look for: `words` all at once, and at most 100 `lines` one by one."""

    words: set[bytes] = field(default_factory=set)
    lines: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, texts: Iterable[bytes], names: Sequence[str]) -> Needles:
        """The long words and lines of `texts`, and all of `names`."""
        words, lines = set[bytes](), dict.fromkeys(name.encode() for name in names)
        for text in texts:
            own = [line for each in text.splitlines() if not _OUR_KEYS.fullmatch(line := each.strip())]
            lines |= dict.fromkeys(line for line in own if len(line) >= _LEAST_LINE and not line.startswith(_SHARED))
            words |= {each for line in own for each in _WORD.findall(line) if _TELLING.match(each)}
        words |= {each for name in names for each in _WORD.findall(name.encode()) if _TELLING.match(each)}
        words |= {each.lower() for each in words}
        step = len(lines) // _MOST_LINES + 1
        return cls(words, list(lines)[::step])

    def found_in(self, data: bytes | mmap.mmap) -> set[bytes]:
        """Those that stand in `data`."""
        words = {word for match in _WORD.finditer(data) if (word := match[0]) in self.words}
        return words | {line for line in self.lines if data.find(line) >= 0}


@dataclass(slots=True)
class Found:
    """`files` and `bytes` searched; `remains` are our own files that hold something, `mentions` the texts of others."""

    files: int = 0
    bytes: int = 0
    remains: list[str] = field(default_factory=list)
    mentions: list[str] = field(default_factory=list)


def search(engine: Engine, needles: Needles, folders: Iterable[str] = ()) -> Found:
    """Look for the needles in all files of the home, in the notes and temporary files of projects elsewhere, and in
    the JSON files of `folders`. What the text of another note, or a kept one, holds is its author's: looked for nowhere
    else."""
    found, theirs, ours = Found(), dict[str, set[bytes]](), dict[str, set[bytes]]()
    for name, path, is_ours in _files(engine, folders):
        held = _held(found, path, needles)
        if held:
            (ours if is_ours else theirs)[name] = held
    common = needles.found_in(SCHEMA.read_bytes()).union(*theirs.values())
    common |= {each.lower() for each in common}
    found.remains = [name for name, held in ours.items() if held - common]
    found.mentions = list(theirs)[:_MOST_MENTIONS]
    return found


def _held(found: Found, path: str, needles: Needles) -> set[bytes]:
    """The needles in one file, which is counted; none in what is no regular file or gone meanwhile."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return set()
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return set()
        found.files, found.bytes = found.files + 1, found.bytes + status.st_size
        if not status.st_size:
            return set()
        with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as data:
            return needles.found_in(data)
    finally:
        os.close(fd)


def _files(engine: Engine, folders: Iterable[str]) -> Iterator[tuple[str, str, bool]]:
    """(name for people, path, whether it is ours and not the text of an author) of every file to be searched."""
    layout = engine.layout
    home, objects = str(layout.root), str(layout.objects)
    roots = {store.root: name for name, store in engine.stores.items()}
    for folder, _, names in os.walk(home):
        is_kept = folder.startswith(objects)
        project = any(f"{folder}/".startswith(f"{root}/") for root in roots)
        for each in sorted(names):
            path = os.path.join(folder, each)
            shown = f"the kept text {each[:8]} of another note" if is_kept else os.path.relpath(path, home)
            is_theirs = is_kept or path == str(engine.settings.file) or (project and not each.startswith(TEMP_PREFIX))
            yield shown, path, not is_theirs
    for root, name in roots.items():
        if root.startswith(f"{home}/"):
            continue
        if not os.path.isdir(root):
            yield name, root, False
        for folder, _, names in os.walk(root):
            for each in sorted(names):
                path = os.path.join(folder, each)
                if each.startswith(TEMP_PREFIX) or engine.stores[name].is_note(os.path.relpath(path, root)):
                    yield f"{name}/{os.path.relpath(path, root)}", path, each.startswith(TEMP_PREFIX)
    for folder in folders:
        for each in sorted(os.listdir(folder)):
            yield f"{folder}/{each}", os.path.join(folder, each), False
