"""Find out whether code that a note cites is still the same, moved, changed or gone.

A note may cite `app/main.go:10-20`. Git says what these lines were on the day of the note, and they
are looked for in the present file. Git's answers are kept, so that the next check costs one `stat`
for each file.
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

# Seconds that one call of git may take.
_SECONDS = 10.0
# Larger files are not read.
_MOST_FILE_BYTES = 4 << 20
# Longer answers of git are not used.
_MOST_ANSWER_BYTES = 64 * _MOST_FILE_BYTES
# A cited file is the same as long as it has this share of its lines.
_LEAST_SHARE_OF_LINES = 0.5
# A pattern for the definition of a name in most languages: `def name`, `name =`, `name(`, …
_DEFINED = (
    r"(?:def|class|function|func|fn|struct|enum|trait|interface|type|const|let|var|module|impl|sub"
    r"|macro_rules!)\s+(?:\([^)]*\)\s*)?{name}\b|\b{name}\s*(?:=|:=|\(|:)"
)


class State(Enum):
    """The states of cited code."""

    SAME = "same"
    MOVED = "moved"
    """The code is the same at another place."""
    CHANGED = "changed"
    GONE = "gone"
    UNKNOWN = "unknown"
    """Nobody knows the code as it was when the note was written."""


class Verdict(NamedTuple):
    """The state of cited code.

    now: its present place, such as `app/new.go:12-22`. "" if it did not move.
    """

    state: State
    now: str = ""


def _lines(text: str) -> list[str]:
    """Return the lines of a text as they are compared: without blank lines and indentation."""
    flat_lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in flat_lines if line]


def _digest(lines: Sequence[str]) -> str:
    """Return a short digest of lines."""
    return blake2b("\n".join(lines).encode("utf-8", "replace"), digest_size=12).hexdigest()


class Repository:
    """Reads a git repository. Git's answers are cached.

    root: the folder of the repository, which contains `.git`.
    """

    def __init__(self, root: Path):
        self.root = root
        # A name or a moment -> the full name of the commit
        self._commits: dict[str, str] = {}
        # A commit -> the present names of its renamed files, by their names in the commit. The first
        # cache has git's comparison of the commit with HEAD. The second one follows each rename in
        # between.
        self._names_by_comparison: dict[str, dict[str, str]] = {}
        self._names_by_history: dict[str, dict[str, str]] = {}
        # (commit, path) -> the text. None if the commit has no such file.
        self._texts: dict[tuple[str, str], str | None] = {}

    @classmethod
    def of(cls, folder: Path) -> Repository | None:
        """Return the repository that contains a folder. None if it is in no repository."""
        for place in (folder, *folder.parents):
            if (place / ".git").exists():
                return cls(place)
        return None

    def head(self) -> str:
        """Read the commit that is checked out, without starting git. "" if it cannot be read."""
        git_folder = self.root / ".git"
        try:
            # In a worktree, `.git` is a file with the path of the folder: `gitdir: PATH`.
            if git_folder.is_file():
                path = git_folder.read_text("utf-8").partition(":")[2].strip()
                git_folder = (self.root / path).resolve()
            head = (git_folder / "HEAD").read_text("utf-8").strip()
            if not head.startswith("ref:"):
                return head
            # HEAD names a branch: `ref: refs/heads/main`. The branch has a file with its commit.
            branch = head.partition(":")[2].strip()
            with suppress(FileNotFoundError):
                return (git_folder / branch).read_text("utf-8").strip()
            # Git collects branches that have not changed for a while in one file.
            packed_refs = (git_folder / "packed-refs").read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return ""
        match = re.search(rf"^([0-9a-f]+) {re.escape(branch)}$", packed_refs, re.M)
        return match[1] if match else ""

    def commit(self, name: str, moment: str) -> str:
        """Return the full name of a commit. "" if no commit fits.

        name: a name or abbreviation of it. "" means the last commit before a moment.
        moment: the moment, as a stamp.
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
        """Return the text of a file at a commit. None if the commit has no such file."""
        key = (commit, path)
        if key not in self._texts:
            self._texts[key] = self._git("cat-file", "blob", f"{commit}:{path}")
        return self._texts[key]

    def name_now(self, commit: str, path: str) -> str:
        """Return the present name of a file that a commit had. "" if the file is gone."""
        # One answer of git has the renames of all files.
        if commit not in self._names_by_comparison:
            self._names_by_comparison[commit] = self._compare_names(commit)
        name = self._names_by_comparison[commit].get(path, "")
        if self._is_file(name):
            return name

        # The text may have changed so much that git does not recognize the file in a comparison
        if commit not in self._names_by_history:
            self._names_by_history[commit] = self._follow_names(commit)
        name = self._names_by_history[commit].get(path, "")
        if self._is_file(name):
            return name
        return ""

    def _is_file(self, path: str) -> bool:
        """Whether the repository has a file at a path now. False for ""."""
        return path != "" and (self.root / path).is_file()

    def _compare_names(self, commit: str) -> dict[str, str]:
        """Compare a commit with HEAD. Returns the present names of files by their names then.

        Git recognizes a renamed file by its text.
        """
        reply = self._git("diff", "--name-status", "-M", "--diff-filter=R", "-z", commit, "HEAD")
        return dict(_renames(reply or ""))

    def _follow_names(self, commit: str) -> dict[str, str]:
        """Follow each rename since a commit. Returns the present names of files by those then."""
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
        present_names: dict[str, str] = {}
        for old, new in _renames(reply or ""):
            # If the file was renamed before, `old` is not its name in the commit
            first_names = [first for first, present in present_names.items() if present == old]
            for first in first_names or [old]:
                present_names[first] = new
        return present_names

    def _git(self, *arguments: str) -> str | None:
        """Run git, and return its output. None if git fails or takes too long."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("GIT_")
        }
        environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1"}
        # A repository may configure programs for git to run. Reading needs none of them.
        options = ("-c", "core.fsmonitor=false", "-c", "diff.external=", "--no-pager")
        try:
            process = subprocess.run(
                ["git", *options, "-C", str(self.root), *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        has_failed = process.returncode != 0
        if has_failed or len(process.stdout) > _MOST_ANSWER_BYTES:
            return None
        return process.stdout.decode("utf-8", "replace")


def _renames(reply: str) -> Iterator[tuple[str, str]]:
    """Yield the old and the new name of each renamed file in the output of `git … --name-status -z`.

    This is a list of texts that end with NUL: `R100`, the old name, the new name.
    """
    texts = reply.split("\0")
    index = 0
    while index + 2 < len(texts):
        # `git log` puts a line break before the first text of a commit.
        is_rename = texts[index].strip().startswith("R")
        if is_rename:
            yield texts[index + 1], texts[index + 2]
            index += 3
        else:
            index += 1


class Expectation(NamedTuple):
    """A place in code as it was when a note cited it. It can be recognized without git.

    The place is a definition (`symbol`), lines of a file, or a whole file (`sample`).

    path: the path of the file in its repository.
    size: the number of lines, without blank ones. 0 for a definition.
    digest: the digest of these lines. "" for a definition.
    sample: for a whole file, the digests of its first lines. Empty for anything else.
    symbol: the name of a definition, of which nothing else is compared. "" for anything else.
    """

    path: str
    size: int
    digest: str
    sample: tuple[str, ...] = ()
    symbol: str = ""


# The number of lines of a whole file that are compared.
_SAMPLE = 200


def expectation_of(
    repository: Repository, citation: Citation, path: str, moment: str
) -> Expectation | None:
    """Return the place that a citation meant when it was written. None if that cannot be known.

    path: the path in the repository.
    moment: when the note was written, as a stamp.
    """
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
        return Expectation(path, size=0, digest="", symbol=name)
    if citation.first:
        cited_text = "\n".join(text.splitlines()[citation.first - 1 : citation.last])
        cited_lines = _lines(cited_text)
        if not cited_lines:
            return None
        return Expectation(path, len(cited_lines), _digest(cited_lines))

    # The whole file
    lines = _lines(text)
    sample = tuple(_digest([line]) for line in lines[:_SAMPLE])
    return Expectation(path, len(lines), _digest(lines), sample)


def _defines(text: str, name: str) -> bool:
    """Whether a text has a definition of a name, such as `def name` or `name =`."""
    return bool(re.search(_DEFINED.replace("{name}", re.escape(name)), text))


def compared(expectation: Expectation, text: str, citation: Citation) -> Verdict:
    """Compare the place that was cited with the present text of its file.

    expectation: the place as it was when the note was written.
    text: the present text of the file.
    citation: the place as the note names it.
    """
    if expectation.symbol:
        return Verdict(same_if(_defines(text, expectation.symbol)))
    is_whole_file = not citation.first
    if is_whole_file:
        return Verdict(same_if(_has_enough_lines(expectation, text)))
    return _compared_lines(expectation, text, citation)


def _compared_lines(expectation: Expectation, text: str, citation: Citation) -> Verdict:
    """Look for the cited lines in the present text. They may have moved within the file.

    expectation: the lines as they were when the note was written.
    text: the present text of the file.
    citation: the place as the note names it.
    """
    # The lines that are not blank, and their numbers in the file.
    numbers: list[int] = []
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        flat_line = " ".join(line.split())
        if flat_line:
            numbers.append(number)
            lines.append(flat_line)

    # Blank lines and indentation do not count, so lines that were only formatted are the same.
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
    """Return SAME for True, CHANGED for False.

    is_same: whether the place is as it was.
    """
    return State.SAME if is_same else State.CHANGED


def _has_enough_lines(expectation: Expectation, text: str) -> bool:
    """Whether a file still has at least half of the lines that it had when it was cited.

    Only its first lines then are looked for (`Expectation.sample`).

    expectation: the file as it was.
    text: the present text of the file.
    """
    if not expectation.sample:
        return True
    present_lines = Counter(_digest([line]) for line in _lines(text))
    cited_lines = Counter(expectation.sample)
    # The intersection of two counters has the smaller count of each line
    remaining_lines = cited_lines & present_lines
    return remaining_lines.total() >= _LEAST_SHARE_OF_LINES * len(expectation.sample)


def is_of(citation: Citation, text: str) -> bool:
    """Whether the lines of `text` that a citation names have the hash in the citation."""
    lines = text.splitlines(keepends=True)
    if citation.first:
        lines = lines[citation.first - 1 : citation.last]
    cited_text = "".join(lines)
    # Editors differ in whether a copy has the last line break. A citation may have only the first
    # digits of a hash.
    hashes = [sha256(part.encode()).hexdigest() for part in (cited_text, cited_text.rstrip("\n"))]
    return any(digest.startswith(citation.sha256.lower()) for digest in hashes)


def read_text(path: Path) -> str | None:
    """Read the text of a file. None if it is missing, not a file, or larger than 4 MB."""
    try:
        if path.stat().st_size > _MOST_FILE_BYTES:
            return None
        return path.read_text("utf-8", "replace")
    except OSError:
        return None


def stamp_of(path: Path) -> str:
    """Return a text that changes when the file does. "" for a missing file."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"


def as_row(expectation: Expectation | None) -> list[Any] | None:
    """Turn an expectation into a list that JSON can store. None stays None."""
    if expectation is None:
        return None
    return [*expectation]


def of_row(row: list[Any] | None) -> Expectation | None:
    """Read a list that `as_row` made. None stays None."""
    if row is None:
        return None
    path, size, digest, sample, symbol = row
    return Expectation(path, size, digest, tuple(sample), symbol)
