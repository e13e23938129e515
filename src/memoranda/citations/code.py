"""What became of a place in code: the same, moved, changed or gone. Asks git what it was on a day.

Git is asked once for a state of a repository; what it said is kept, so that the next look costs a
`stat` for each file.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.note.citations import Citation

_SECONDS = 10.0
_LARGEST = 4 << 20
_REWRITTEN = 0.5
"""A file of which less than this part of the lines is left is another one."""
_DEFINED = (
    r"(?:def|class|function|func|fn|struct|enum|trait|interface|type|const|let|var|module|impl|sub"
    r"|macro_rules!)\s+(?:\([^)]*\)\s*)?{name}\b|\b{name}\s*(?:=|:=|\(|:)"
)


class State(Enum):
    """What became of cited code."""

    SAME = "same"
    MOVED = "moved"
    CHANGED = "changed"
    GONE = "gone"
    UNKNOWN = "unknown"


class Verdict(NamedTuple):
    """What became of cited code, and where it is now, if elsewhere."""

    state: State
    now: str = ""


def _lines(text: str) -> list[str]:
    """The lines of a text as they are compared: what only sets them out does not count."""
    flat = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in flat if line]


def _digest(lines: Sequence[str]) -> str:
    return blake2b("\n".join(lines).encode("utf-8", "replace"), digest_size=12).hexdigest()


class Repository:
    """A git repository, asked as little as possible. `root` is its folder."""

    def __init__(self, root: Path):
        self.root = root
        self._commits: dict[str, str] = {}
        self._renames: dict[str, dict[str, str]] = {}
        self._chains: dict[str, dict[str, str]] = {}
        self._texts: dict[tuple[str, str], str | None] = {}

    @classmethod
    def of(cls, folder: Path) -> Repository | None:
        """The repository in which `folder` is; None outside of one."""
        for place in (folder, *folder.parents):
            if (place / ".git").exists():
                return cls(place)
        return None

    def head(self) -> str:
        """The commit that is checked out, read without starting git; "" where that is not plain."""
        git = self.root / ".git"
        try:
            if git.is_file():
                git = (self.root / git.read_text("utf-8").partition(":")[2].strip()).resolve()
            reply = (git / "HEAD").read_text("utf-8").strip()
            if not reply.startswith("ref:"):
                return reply
            name = reply.partition(":")[2].strip()
            with suppress(FileNotFoundError):
                return (git / name).read_text("utf-8").strip()
            packed = (git / "packed-refs").read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return ""
        result = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", packed, re.M)
        return result[1] if result else ""

    def commit(self, named: str, moment: str) -> str:
        """The commit that is named, else the last one up to `moment`; "" where there is none."""
        key = named or moment
        if key not in self._commits:
            if named:
                reply = self._git("rev-parse", "--verify", "-q", f"{named}^{{commit}}")
            else:
                reply = self._git("rev-list", "-1", f"--before={moment}", "HEAD")
            self._commits[key] = (reply or "").strip()
        return self._commits[key]

    def text(self, commit: str, path: str) -> str | None:
        """A file at a commit; None where it had none, or it is no text."""
        key = (commit, path)
        if key not in self._texts:
            self._texts[key] = self._git("cat-file", "blob", f"{commit}:{path}")
        return self._texts[key]

    def name_now(self, commit: str, path: str) -> str:
        """What a file of a commit is called today; "" for one that is gone."""
        if commit not in self._renames:
            reply = self._git(
                "diff", "--name-status", "-M", "--diff-filter=R", "-z", commit, "HEAD"
            )
            self._renames[commit] = dict(_renames(reply or ""))
        new = self._renames[commit].get(path, "")
        if new and (self.root / new).is_file():
            return new
        return self._followed(commit, path)

    def _followed(self, commit: str, path: str) -> str:
        """The same, step by step through the history: a file may have changed a lot on its way."""
        if commit not in self._chains:
            reply = self._git(
                "log",
                "--reverse",
                "--name-status",
                "-M",
                "--diff-filter=R",
                "--format=",
                "-z",
                f"{commit}..HEAD",
            )
            self._chains[commit] = {}
            for old, new in _renames(reply or ""):
                chain = self._chains[commit]
                origins = [name for name, now in chain.items() if now == old]
                for origin in origins or [old]:
                    chain[origin] = new
        new = self._chains[commit].get(path, "")
        return new if new and (self.root / new).is_file() else ""

    def _git(self, *arguments: str) -> str | None:
        """What git says; None where it fails, or takes too long."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environ |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1"}
        # A repository may name programs to run: none of them is for reading
        safe = ("-c", "core.fsmonitor=false", "-c", "diff.external=", "--no-pager")
        try:
            done = subprocess.run(
                ["git", *safe, "-C", str(self.root), *arguments],
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        if done.returncode or len(done.stdout) > 64 * _LARGEST:
            return None
        return done.stdout.decode("utf-8", "replace")


def _renames(reply: str) -> Iterator[tuple[str, str]]:
    """The old and new names in `git … --name-status -z`."""
    parts = reply.split("\0")
    at = 0
    while at + 2 < len(parts):
        if parts[at].strip().startswith("R"):
            yield parts[at + 1], parts[at + 2]
            at += 3
        else:
            at += 1


class Expectation(NamedTuple):
    """What a place in code was when it was cited: enough to know it again without git. `size` is
    how many lines it had, `digest` is of them; of a whole file `sample` has digests of its lines.
    """

    path: str
    size: int
    digest: str
    sample: tuple[str, ...] = ()
    symbol: str = ""


_SAMPLE = 200


def expected(
    repository: Repository, citation: Citation, path: str, moment: str
) -> Expectation | None:
    """What a citation meant on the day it was written; None where nobody knows."""
    commit = repository.commit(citation.commit, moment)
    text = repository.text(commit, path) if commit else None
    if text is None:
        return None
    if citation.symbol:
        name = citation.symbol.split(".")[-1].split(":")[-1]
        return Expectation(path, 0, "", (), name) if _defines(text, name) else None
    if citation.first:
        chosen = _lines("\n".join(text.splitlines()[citation.first - 1 : citation.last]))
        return Expectation(path, len(chosen), _digest(chosen)) if chosen else None
    lines = _lines(text)
    sample = tuple(_digest([line]) for line in lines[:_SAMPLE])
    return Expectation(path, len(lines), _digest(lines), sample)


def _defines(text: str, name: str) -> bool:
    return bool(re.search(_DEFINED.replace("{name}", re.escape(name)), text))


def compared(expectation: Expectation, text: str, citation: Citation) -> Verdict:
    """What became of it in a file that says `text` now."""
    if expectation.symbol:
        is_there = _defines(text, expectation.symbol)
        return Verdict(State.SAME if is_there else State.CHANGED)
    if not citation.first:
        return Verdict(State.SAME if _is_kept(expectation, text) else State.CHANGED)
    numbered = [
        (number, " ".join(line.split())) for number, line in enumerate(text.splitlines(), 1)
    ]
    lines = [(number, line) for number, line in numbered if line]
    for at in range(len(lines) - expectation.size + 1):
        block = lines[at : at + expectation.size]
        if _digest([line for _, line in block]) == expectation.digest:
            first = block[0][0]
            if first == citation.first:
                return Verdict(State.SAME)
            return Verdict(State.MOVED, f"{citation.path}:{first}-{block[-1][0]}")
    return Verdict(State.CHANGED)


def _is_kept(expectation: Expectation, text: str) -> bool:
    """Whether a file is in the main what it was."""
    if not expectation.sample:
        return True
    now = Counter(_digest([line]) for line in _lines(text))
    then = Counter(expectation.sample)
    return sum((then & now).values()) >= _REWRITTEN * len(expectation.sample)


def is_of(citation: Citation, text: str) -> bool:
    """Whether the hash that a citation gives is that of its place in `text`."""
    lines = text.splitlines(keepends=True)
    chosen = "".join(lines[citation.first - 1 : citation.last] if citation.first else lines)
    hashes = {sha256(part.encode()).hexdigest() for part in (chosen, chosen.rstrip("\n"))}
    return any(known.startswith(citation.sha256.lower()) for known in hashes)


def read_text(path: Path) -> str | None:
    """The text of a file; None for one that is none, or too large."""
    try:
        if path.stat().st_size > _LARGEST:
            return None
        return path.read_text("utf-8", "replace")
    except OSError:
        return None


def stamp_of(path: Path) -> str:
    """What is another text when a file changed; "" for one that is not there."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"


def as_row(expectation: Expectation | None) -> list[Any] | None:
    """An expectation as JSON."""
    return [*expectation] if expectation is not None else None


def of_row(row: list[Any] | None) -> Expectation | None:
    """What `as_row` wrote."""
    if row is None:
        return None
    path, size, digest, sample, symbol = row
    return Expectation(path, size, digest, tuple(sample), symbol)
