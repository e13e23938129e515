"""Moving another program's store in: first a plan, then batches of which each is one change (DESIGN.md, 11.3)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commonplace.errors import CommonplaceError
from commonplace.store.files import reason

Progress = Callable[[int, int], None]

BATCH, BATCH_BYTES = 200, 16 << 20
IMPORT, UPDATE, KEEP = "import", "update", "keep"


class WrongStore(CommonplaceError):
    """The path does not hold what was announced; the sentence says what it should be."""

    code = "invalid"


@dataclass(frozen=True, slots=True)
class Item:
    """One planned action: `verb` is `import`, `update`, or `keep` for what only the history takes; `name` is what it
    is about and where it goes, `size` in bytes, `what` the mover's own."""

    verb: str
    name: str
    size: int = 0
    what: Any = None


@dataclass(slots=True)
class Plan:
    """What moving in will do. `skipped` are (name, why) of what stays where it was."""

    act: Callable[[Sequence[Item]], None]
    items: list[Item] = field(default_factory=list)
    unchanged: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def count(self, verb: str) -> int:
        """How many items there are of a verb."""
        return sum(1 for each in self.items if each.verb == verb)

    def lines(self) -> Iterator[str]:
        """The plan for people, one action a line."""
        return (f"would {each.verb} {each.name}" for each in self.items if each.verb != KEEP)

    def carry_out(self, progress: Progress | None = None) -> None:
        """Do it, each batch as one change. Raises StorageError and the like; the batches before stay."""
        done = 0
        for batch in _batches(self.items):
            self.act(batch)
            done += len(batch)
            if progress is not None:
                progress(done, len(self.items))


def _batches(items: Sequence[Item]) -> Iterator[list[Item]]:
    batch: list[Item] = []
    size = 0
    for each in items:
        if batch and (len(batch) >= BATCH or size + each.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += each.size
    if batch:
        yield batch


def folder_at(path: Path, what: str) -> Path:
    """`path` if it is a folder. Raises WrongStore saying that `what` was expected."""
    if path.is_dir():
        return path
    if path.exists():
        raise WrongStore(f"{path} is a file, not {what}")
    raise WrongStore(f"no such folder: {path}")


def read_bytes(path: Path) -> bytes:
    """The file's bytes. Raises WrongStore."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise WrongStore(f"no such file: {path}") from None
    except OSError as error:
        raise WrongStore(f"cannot read {path}: {reason(error)}") from None


@dataclass(frozen=True, slots=True)
class Found:
    """A file below a folder, `path` relative to it with `/`; why it cannot be taken, if so."""

    path: str
    size: int = 0
    refused: str = ""


def files_below(root: Path, skipped: Callable[[str], bool] = lambda name: False) -> Iterator[Found]:
    """Every file below `root` but hidden ones and those `skipped` by name, folders too, sorted by path.

    A link is not followed, and named as refused, like a folder that cannot be read.
    """
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda each: each.name)
        except OSError as error:
            yield Found(f"{folder}/", refused=reason(error))
            continue
        inner = []
        for each in entries:
            if each.name.startswith(".") or skipped(each.name):
                continue
            path = f"{folder}/{each.name}" if folder else each.name
            status = each.stat(follow_symlinks=False)
            if not _is_text(each.name):
                yield Found(path.encode("utf-8", "backslashreplace").decode(), refused="its name is no text")
            elif stat.S_ISDIR(status.st_mode):
                inner.append(path)
            elif stat.S_ISREG(status.st_mode):
                yield Found(path, status.st_size)
            else:
                yield Found(path, refused="it is a link" if each.is_symlink() else "it is no file")
        waiting += reversed(inner)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return name.isprintable()
