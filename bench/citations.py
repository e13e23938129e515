"""Citations of code in real git histories: notes cite lines as they were half the history ago, and
are checked at the newest commit. Prints how many of the stale ones are found, how many that are
said to be stale are so, how many renames are followed, and how long a second look at all takes.

The right answer comes from elsewhere than `memoranda.citations`: renames from `git log --follow` of
each file of today, lines from difflib's alignment of the two files.

    python bench/citations.py FOLDER/*/repo
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from memoranda import Draft
from memoranda.citations.check import CitationCheck, CitedNote
from memoranda.citations.code import State
from memoranda.engine import MemorySession, open_session
from memoranda.engine.contents import contents

_SUFFIXES = (".py", ".go", ".rs", ".js", ".ts", ".c", ".h", ".rb", ".java", ".sh", ".md", ".rst")
_LONGEST_SPAN = 20
_LARGEST = 300_000


class Cited(NamedTuple):
    """Lines of an old file: whether they are no longer there, what the file is called today, "" for
    one that is gone, and whether it was renamed.
    """

    path: str
    first: int
    last: int
    is_stale: bool
    new_path: str
    is_renamed: bool


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


def _git(repository: Path, *arguments: str) -> str:
    process = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, check=False
    )
    return process.stdout.decode("utf-8", "replace")


def _old_commit(repository: Path) -> str:
    """The commit in the middle of the history."""
    commits = _git(repository, "rev-list", "--first-parent", "HEAD").split()
    return commits[len(commits) // 2]


def _renames(repository: Path, old: str) -> dict[str, str]:
    """By their old names, the files of today that were called otherwise at the old commit."""
    before = set(_git(repository, "ls-tree", "-r", "--name-only", old).splitlines())
    now = _git(repository, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    result = {}
    for path in now:
        if path in before or not path.endswith(_SUFFIXES):
            continue
        following = ("log", "--follow", "--format=")
        log = _git(repository, *following, "--name-only", f"{old}..HEAD", "--", path)
        # The oldest commit comes last, with the name after it. Its parent has the one before.
        status = _git(repository, *following, "--name-status", "-M", f"{old}..HEAD", "--", path)
        name = path
        for line in status.splitlines():
            parts = line.split("\t")
            if parts[0].startswith("R") and parts[2] == name:
                name = parts[1]
        if log and name in before and name not in now:
            result[name] = path
    return result


def _significant(text: str) -> tuple[list[str], list[int]]:
    """The lines that are not blank, without what sets them out, and the numbers of all lines."""
    lines = []
    numbers = []
    for number, line in enumerate(text.splitlines(), 1):
        flat = " ".join(line.split())
        if flat:
            lines.append(flat)
            numbers.append(number)
    return lines, numbers


def _is_kept(then: str, now: str, first: int, last: int) -> bool:
    """Whether the lines stand together in the new text, as an alignment of both has it, or in one
    piece elsewhere.
    """
    old_lines, numbers = _significant(then)
    new_lines, _ = _significant(now)
    inside = [at for at, number in enumerate(numbers) if first <= number <= last]
    begin = inside[0]
    end = inside[-1] + 1
    blocks = SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_matching_blocks()
    for block in blocks:
        if block.a <= begin and end <= block.a + block.size:
            return True
    # A block that was moved as a whole is the same code.
    cited = "\n".join(["", *old_lines[begin:end], ""])
    whole = "\n".join(["", *new_lines, ""])
    return cited in whole


def _cited(repository: Path, old: str, count: int, chance: random.Random) -> Iterator[Cited]:
    """Lines of files that there were at the old commit, chosen by chance; of renamed files more."""
    listed = _git(repository, "ls-tree", "-r", "--name-only", old).splitlines()
    paths = [path for path in listed if path.endswith(_SUFFIXES)]
    renames = _renames(repository, old)
    chosen = [chance.choice(paths) for _ in range(count)]
    renamed = [path for path in paths if path in renames]
    chosen += [chance.choice(renamed) for _ in range(min(len(renamed), count // 4))]
    for path in chosen:
        then = _git(repository, "show", f"{old}:{path}")
        lines = then.splitlines()
        if len(lines) < 3 or len(then) > _LARGEST:
            continue
        first = chance.randint(1, len(lines))
        last = min(len(lines), first + chance.randint(2, _LONGEST_SPAN))
        cited = "".join(lines[first - 1 : last])
        if len(cited.strip()) < 40:
            continue
        new_path = renames.get(path, "")
        if (repository / path).is_file():
            new_path = path
        is_stale = _is_stale(repository, then, new_path, first, last)
        yield Cited(path, first, last, is_stale, new_path, new_path not in ("", path))


def _is_stale(repository: Path, then: str, new_path: str, first: int, last: int) -> bool:
    """Whether the lines of the old text are not at the new path, "" for none, any more."""
    if not new_path:
        return True
    try:
        now = (repository / new_path).read_text("utf-8", "replace")
    except OSError:
        return True
    return not _is_kept(then, now, first, last)


def _checked(memory: MemorySession, folder: Path) -> list[CitedNote]:
    infos, _ = memory.list(limit=0)
    texts = contents(memory, infos)
    check = CitationCheck(memory, [folder])
    result = list(check.notes(infos, texts))
    check.save()
    return result


def _measure(repository: Path, count: int, chance: random.Random, totals: Counter[str]) -> None:
    old = _old_commit(repository)
    moment = datetime.fromtimestamp(int(_git(repository, "show", "-s", "--format=%ct", old)), UTC)
    places = list(dict.fromkeys(_cited(repository, old, count, chance)))
    clock = Clock()
    with (
        tempfile.TemporaryDirectory() as home,
        open_session(Path(home) / "home", clock=clock, watch=False) as memory,
    ):
        clock.now = moment + timedelta(seconds=1)
        by_text = {}
        for number, place in enumerate(places):
            # Half name the commit; of the others the day of the note counts.
            commit = f"@{old[:12]}" if number % 2 else ""
            text = f"See `{place.path}:{place.first}-{place.last}{commit}`, it is so ({number})."
            note = memory.write(Draft(text, project="categories", category="knowledge"))
            by_text[note.id] = place
        clock.now = datetime.now(UTC)
        verdicts = {result.info.id: result for result in _checked(memory, repository)}
        infos, _ = memory.list(limit=0)
        bodies = contents(memory, infos)
        began = time.process_time()
        again = list(CitationCheck(memory, [repository]).notes(infos, bodies))
        seconds = time.process_time() - began
    outcome: Counter[str] = Counter()
    for identity, place in by_text.items():
        _count(outcome, place, verdicts.get(identity))
    totals += outcome
    totals["seconds"] += round(seconds * 1e6)
    totals["notes"] += len(again)
    print(f"{repository.name}: {_line(outcome)}; {len(again)} again in {seconds * 1e3:.1f} ms")


def _count(outcome: Counter[str], place: Cited, result: CitedNote | None) -> None:
    outcome["citations"] += 1
    is_told = result is not None and result.is_stale
    outcome["stale"] += place.is_stale
    outcome["told"] += is_told
    outcome["right"] += is_told and place.is_stale
    if is_told is not place.is_stale and os.environ.get("SHOW"):
        print("   ", place, result and (result.verdict, str(result.citation)))
    if place.is_renamed:
        outcome["renamed"] += 1
        state = result.verdict if result is not None else None
        is_followed = state is not None and place.new_path in state.now
        # Lines that are as they were at their place are followed, too.
        outcome["followed"] += is_followed or (state is not None and state.state is State.SAME)


def _line(outcome: Counter[str]) -> str:
    precision = outcome["right"] / outcome["told"] if outcome["told"] else 1.0
    recall = outcome["right"] / outcome["stale"] if outcome["stale"] else 1.0
    return (
        f"{outcome['citations']} citations, {outcome['stale']} stale, {outcome['told']} told,"
        f" precision {precision:.1%}, recall {recall:.1%},"
        f" renames followed {outcome['followed']} of {outcome['renamed']}"
    )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("repositories", nargs="+", type=Path)
    options.add_argument("--citations", type=int, default=40, help="of each repository")
    options.add_argument("--seed", type=int, default=1)
    arguments = options.parse_args()
    chance = random.Random(arguments.seed)
    totals: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number, source in enumerate(arguments.repositories):
            # A fetched repository has no work tree, so one is made.
            name = source.parent.name if source.name == "repo" else source.name
            repository = Path(folder) / f"{number}-{name}"
            subprocess.run(
                ["git", "clone", "-q", "--shared", str(source.resolve()), str(repository)],
                check=False,
                stderr=subprocess.DEVNULL,
            )
            _measure(repository, arguments.citations, chance, totals)
    print(f"all: {_line(totals)}")
    print(f"a second look at {totals['notes']} notes: {totals['seconds'] / 1e3:.1f} ms")


if __name__ == "__main__":
    main()
