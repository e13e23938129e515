"""The state of a place in code since it was cited: the same, moved, changed or gone. Asks git what
it was on a day.

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

# How long one call of git may take.
_SECONDS = 10.0
# Bytes of a cited file; larger ones are not read.
_LARGEST = 4 << 20
# A file with less than this share of its lines left counts as rewritten.
_REWRITTEN = 0.5
_DEFINED = (
    r"(?:def|class|function|func|fn|struct|enum|trait|interface|type|const|let|var|module|impl|sub"
    r"|macro_rules!)\s+(?:\([^)]*\)\s*)?{name}\b|\b{name}\s*(?:=|:=|\(|:)"
)


class State(Enum):
    """The states of cited code."""

    SAME = "same"
    MOVED = "moved"
    CHANGED = "changed"
    GONE = "gone"
    UNKNOWN = "unknown"


class Verdict(NamedTuple):
    """The state of cited code. `now` is its present place, if it moved."""

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
        """The repository that contains `folder`, or None."""
        for place in (folder, *folder.parents):
            if (place / ".git").exists():
                return cls(place)
        return None

    def head(self) -> str:
        """The commit that is checked out, read without starting git. Empty if it cannot be read."""
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
            # Branches that rest are collected in one file.
            packed = (git / "packed-refs").read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return ""
        result = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", packed, re.M)
        if result is None:
            return ""
        return result[1]

    def commit(self, name: str, moment: str) -> str:
        """The commit called `name`, or without a name the last one up to `moment`.

        Empty if no commit fits.
        """
        key = name or moment
        if key not in self._commits:
            if name:
                reply = self._git("rev-parse", "--verify", "-q", f"{name}^{{commit}}")
            else:
                reply = self._git("rev-list", "-1", f"--before={moment}", "HEAD")
            self._commits[key] = (reply or "").strip()
        return self._commits[key]

    def text(self, commit: str, path: str) -> str | None:
        """The text of a file at a commit.

        None if the commit has no such file, or the file is not text.
        """
        key = (commit, path)
        if key not in self._texts:
            self._texts[key] = self._git("cat-file", "blob", f"{commit}:{path}")
        return self._texts[key]

    def name_now(self, commit: str, path: str) -> str:
        """The name that a file of a commit has today; "" for one that is gone."""
        if commit not in self._renames:
            # One answer of git serves every file of that commit.
            reply = self._git(
                "diff", "--name-status", "-M", "--diff-filter=R", "-z", commit, "HEAD"
            )
            self._renames[commit] = dict(_renames(reply or ""))
        new = self._renames[commit].get(path, "")
        if self._is_file(new):
            return new
        return self._followed(commit, path)

    def _is_file(self, path: str) -> bool:
        return bool(path) and (self.root / path).is_file()

    def _followed(self, commit: str, path: str) -> str:
        """Find the cited place by following the file through its commits, since it may have changed
        a lot.
        """
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
                # A file renamed twice is known by its first name.
                origins = [name for name, now in chain.items() if now == old]
                for origin in origins or [old]:
                    chain[origin] = new
        new = self._chains[commit].get(path, "")
        if not self._is_file(new):
            return ""
        return new

    def _git(self, *arguments: str) -> str | None:
        """The output of git. None if git fails or takes too long."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environ |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1"}
        # A repository may configure programs for git to run. Reading needs none of them.
        safe = ("-c", "core.fsmonitor=false", "-c", "diff.external=", "--no-pager")
        try:
            process = subprocess.run(
                ["git", *safe, "-C", str(self.root), *arguments],
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        if process.returncode or len(process.stdout) > 64 * _LARGEST:
            return None
        return process.stdout.decode("utf-8", "replace")


def _renames(reply: str) -> Iterator[tuple[str, str]]:
    """The old and new names in `git … --name-status -z`."""
    parts = reply.split("\0")
    index = 0
    while index + 2 < len(parts):
        if parts[index].strip().startswith("R"):
            yield parts[index + 1], parts[index + 2]
            index += 3
        else:
            index += 1


class Expectation(NamedTuple):
    """A place in code as it was when it was cited: enough to recognize it without git.

    size: how many lines it had.
    digest: the digest of these lines.
    sample: for a whole file, a digest of each of its first lines.
    symbol: the name of a definition, if one was cited.
    """

    path: str
    size: int
    digest: str
    sample: tuple[str, ...] = ()
    symbol: str = ""


# Lines compared to recognise a renamed file.
_SAMPLE = 200


def expectation_of(
    repository: Repository, citation: Citation, path: str, moment: str
) -> Expectation | None:
    """The place that a citation meant when it was written. None if that cannot be known."""
    commit = repository.commit(citation.commit, moment)
    if not commit:
        return None
    text = repository.text(commit, path)
    if text is None:
        return None
    if citation.symbol:
        # `Class.method` and `module::name` are looked for by their last names.
        name = citation.symbol.split(".")[-1].split(":")[-1]
        if not _defines(text, name):
            return None
        return Expectation(path, 0, "", (), name)
    if citation.first:
        cited = _lines("\n".join(text.splitlines()[citation.first - 1 : citation.last]))
        if not cited:
            return None
        return Expectation(path, len(cited), _digest(cited))
    lines = _lines(text)
    # A large file is known by its first lines.
    sample = tuple(_digest([line]) for line in lines[:_SAMPLE])
    return Expectation(path, len(lines), _digest(lines), sample)


def _defines(text: str, name: str) -> bool:
    return bool(re.search(_DEFINED.replace("{name}", re.escape(name)), text))


def compared(expectation: Expectation, text: str, citation: Citation) -> Verdict:
    """Whether the cited place is still in a file, and where.

    text: the text of the file now.
    """
    if expectation.symbol:
        return Verdict(same_if(_defines(text, expectation.symbol)))
    if not citation.first:
        return Verdict(same_if(_is_kept(expectation, text)))
    return _compared_lines(expectation, text, citation)


def _compared_lines(expectation: Expectation, text: str, citation: Citation) -> Verdict:
    """Compare the lines cited with the text of today. They may have moved within the file."""
    numbers: list[int] = []
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        flat = " ".join(line.split())
        if flat:
            numbers.append(number)
            lines.append(flat)
    for start in range(len(lines) - expectation.size + 1):
        end = start + expectation.size
        if _digest(lines[start:end]) != expectation.digest:
            continue
        first = numbers[start]
        if first == citation.first:
            return Verdict(State.SAME)
        return Verdict(State.MOVED, f"{citation.path}:{first}-{numbers[end - 1]}")
    return Verdict(State.CHANGED)


def same_if(is_same: bool) -> State:
    """SAME or CHANGED."""
    if is_same:
        return State.SAME
    return State.CHANGED


def _is_kept(expectation: Expectation, text: str) -> bool:
    """Whether a file is in the main what it was."""
    if not expectation.sample:
        return True
    now = Counter(_digest([line]) for line in _lines(text))
    sample_words = Counter(expectation.sample)
    return sum((sample_words & now).values()) >= _REWRITTEN * len(expectation.sample)


def is_of(citation: Citation, text: str) -> bool:
    """Whether the hash in a citation matches the place it cites in `text`."""
    lines = text.splitlines(keepends=True)
    if citation.first:
        lines = lines[citation.first - 1 : citation.last]
    cited = "".join(lines)
    # Editors differ in whether a copy has the last end of line.
    hashes = [sha256(part.encode()).hexdigest() for part in (cited, cited.rstrip("\n"))]
    return any(digest.startswith(citation.sha256.lower()) for digest in hashes)


def read_text(path: Path) -> str | None:
    """The text of a file. None if it is missing, not a file, or too large."""
    try:
        if path.stat().st_size > _LARGEST:
            return None
        return path.read_text("utf-8", "replace")
    except OSError:
        return None


def stamp_of(path: Path) -> str:
    """A text that changes when the file does. Empty for a missing file."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"


def as_row(expectation: Expectation | None) -> list[Any] | None:
    """An expectation as a JSON row. None stays None."""
    if expectation is None:
        return None
    return [*expectation]


def of_row(row: list[Any] | None) -> Expectation | None:
    """Read a row that `as_row` wrote. None stays None."""
    if row is None:
        return None
    path, size, digest, sample, symbol = row
    return Expectation(path, size, digest, tuple(sample), symbol)
