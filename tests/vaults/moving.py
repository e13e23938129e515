"""Moves in a vault, each checked against Obsidian's rules and undone.

python -m vaults.moving --notes 5000 --moves 1000      (in tests/, for the laboratory)
"""

from __future__ import annotations

import argparse
import posixpath
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from urllib.parse import unquote

from memoranda.engine import MemorySession, open_session
from vaults.generator import Vault
from vaults.obsidian import Links, key

_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\[\[([^\[\]\n]+)\]\]|\]\((<[^<>\n]+>|[^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)")

Targets = dict[str, list[str | None]]
"""Where the links of each note lead, in their order; None for none or several."""


def files(root: Path) -> dict[str, bytes]:
    """Every file below `root` with its bytes."""
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def targets(texts: dict[str, bytes]) -> Targets:
    """Where all links lead, by Obsidian's rules."""
    notes = {path: text for path, text in texts.items() if path.endswith(".md")}
    notes.pop("Attachments/Sketch.excalidraw.md", None)
    rules = Links(notes)
    return {path: list(_leading(rules, path, text.decode())) for path, text in notes.items()}


def _leading(rules: Links, path: str, text: str) -> Iterator[str | None]:
    for match in _LINK.finditer(_CODE.sub("", text)):
        if match[1]:
            name = match[1].partition("|")[0].rstrip("\\").partition("#")[0].strip()
            found = rules.wikilink(name, path)
        else:
            found = rules.markdown(unquote(match[2].strip("<>").partition("#")[0]), path)
        yield found[0] if len(found) == 1 else None


class Mover:
    """Makes moves in the project `vault` and says what is wrong with each."""

    def __init__(self, memory: MemorySession, root: Path, seed: int):
        self.memory = memory
        self.root = root
        self.random = Random(seed)
        self.number = 0
        self.updated = 0
        self.left = 0
        self.before = files(root)
        self.targets = targets(self.before)

    def step(self) -> str:
        """One move and its undo. Returns what is wrong, or nothing."""
        self.number += 1
        paths = sorted(self.targets)
        path = self.random.choice(paths)
        kind = self.random.choice(("rename", "move", "other case", "folder"))
        if kind == "folder" and "/" in path:
            folder = path.rpartition("/")[0]
            target = f"Moved {self.number}/{posixpath.basename(folder)}"
            renamed = {
                each: target + each[len(folder) :]
                for each in paths
                if each.startswith(f"{folder}/")
            }
            moved = self.memory.move_folder("vault", folder, target)
        else:
            target = self._destination(kind, path)
            if key(target) in {key(other) for other in paths if other != path} or target == path:
                return ""
            renamed = {path: target}
            moved = self.memory.move(("vault", path), target)
        self.updated += len(moved.updated)
        self.left += len(moved.broken)
        trouble = self._wrong_links(renamed, moved.broken)
        self.memory.undo()
        if files(self.root) != self.before:
            trouble += " undo left other bytes"
        return trouble and f"{kind} {path} -> {target}: {trouble}"

    def _destination(self, kind: str, path: str) -> str:
        folder, _, name = path.rpartition("/")
        if kind == "rename":
            name = f"Renamed & {self.number} (new).md"
        elif kind == "other case":
            name = f"{name[:-3].swapcase()}.md"
        else:
            folder = self.random.choice(
                sorted({other.rpartition("/")[0] for other in self.targets})
            )
        return f"{folder}/{name}" if folder else name

    def _wrong_links(self, renamed: dict[str, str], broken: list[str]) -> str:
        after = targets(files(self.root))
        wrong = []
        for path, before in self.targets.items():
            name = renamed.get(path, path)
            for number, target in enumerate(before):
                if target is None or name in broken:
                    continue
                now = after[name][number]
                if now != renamed.get(target, target):
                    wrong.append(f"{name}[{number}]: {target} is {now}")
        return "; ".join(wrong[:3])


def run(notes: int, moves: int, seed: int, folder: Path) -> tuple[list[str], Mover]:
    """What was wrong with each of these moves in a vault of this size."""
    root = folder / "vault"
    Vault(notes, seed).write(root)
    with open_session(folder / "home", projects={"vault": root}) as memory:
        memory.sync()
        mover = Mover(memory, root, seed)
        wrong = [trouble for trouble in (mover.step() for _ in range(moves)) if trouble]
    return wrong, mover


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=5000)
    parser.add_argument("--moves", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong, mover = run(given.notes, given.moves, given.seed, Path(folder))
    for trouble in wrong[:20]:
        print(trouble)
    print(
        f"{given.moves} moves in {given.notes} notes: {len(wrong)} wrong,"
        f" {mover.updated} notes updated, {mover.left} left with links they could not keep"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
