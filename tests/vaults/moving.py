"""Moves and new names of notes, folders, headings and blocks in a vault, each checked against
Obsidian's rules and undone.

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
from urllib.parse import quote, unquote

from memoranda.engine import MemorySession, open_session
from memoranda.note.edit import StrReplace
from vaults.generator import Vault
from vaults.obsidian import Links, key

_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\[\[([^\[\]\n]+)\]\]|\]\((<[^<>\n]+>|[^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)")

_BLOCK = re.compile(r"word\d+ here\. \^(b\d+)")
_HEADING = "Part one"

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
            targets = rules.wikilink(name, path)
        else:
            targets = rules.markdown(unquote(match[2].strip("<>").partition("#")[0]), path)
        yield targets[0] if len(targets) == 1 else None


def renamed_links(texts: dict[str, bytes], path: str, old: str, new: str) -> dict[str, bytes]:
    """The texts with `new` for `old`, `Heading` or `^block`, in every link to that part of the note
    at `path`."""
    rules = Links([name for name in texts if name.endswith(".md")])

    def link(match: re.Match[str], source: str) -> str:
        inside = match[1] or match[2]
        name, _, part = inside.partition("#")
        if match[1] and part.partition("|")[0] == old and name:
            targets = rules.wikilink(name.strip(), source)
            changed = inside.replace(f"#{old}", f"#{new}")
        elif match[2] and unquote(part) == old and name:
            targets = rules.markdown(unquote(name), source)
            changed = inside.replace(f"#{quote(old)}", f"#{quote(new)}")
        else:
            return match[0]
        return match[0].replace(inside, changed) if targets == [path] else match[0]

    edited = dict(texts)
    for source, data in texts.items():
        if not source.endswith(".md"):
            continue
        text = data.decode()
        pieces = _CODE.split(text)
        codes = _CODE.findall(text)
        pieces = [_LINK.sub(lambda match, at=source: link(match, at), piece) for piece in pieces]
        whole = "".join(piece + code for piece, code in zip(pieces, [*codes, ""], strict=True))
        edited[source] = whole.encode()
    return edited


class Mover:
    """Makes moves in the project `vault` and says what is wrong with each."""

    def __init__(self, memory: MemorySession, root: Path, seed: int):
        self.memory = memory
        self.root = root
        self.random = Random(seed)
        self.number = 0
        self.updated = 0
        self.parts = 0
        self.left = 0
        self.before = files(root)
        self.targets = targets(self.before)

    def step(self) -> str:
        """One move and its undo. Returns what is wrong, or nothing."""
        self.number += 1
        paths = sorted(self.targets)
        path = self.random.choice(paths)
        kind = self.random.choice(("rename", "move", "other case", "folder", "heading", "block"))
        if kind in ("heading", "block"):
            return self._rename_part(kind, path)
        if kind == "folder" and "/" in path:
            folder = path.rpartition("/")[0]
            target = f"Moved {self.number}/{posixpath.basename(folder)}"
            renamed = {
                inner_path: target + inner_path[len(folder) :]
                for inner_path in paths
                if inner_path.startswith(f"{folder}/")
            }
            moved = self.memory.move_folder("vault", folder, target)
        else:
            target = self._destination(kind, path)
            keys_taken = {key(other_path) for other_path in paths if other_path != path}
            if target == path or key(target) in keys_taken:
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

    def _rename_part(self, kind: str, path: str) -> str:
        """Give a heading or a block of a note another name, and take it back. Returns what is wrong."""
        block = _BLOCK.search(self.before[path].decode())
        old = _HEADING
        new = f"Stage {self.number} & more"
        written = (f"## {old}", f"## {new}")
        if kind == "block":
            assert block is not None
            old = f"^{block[1]}"
            new = f"^new-{self.number}"
            written = (block[0], block[0].replace(old, new))
        texts = renamed_links(self.before, path, old, new)
        texts[path] = texts[path].replace(written[0].encode(), written[1].encode())
        changed = self.memory.edit(("vault", path), StrReplace(*written))
        self.parts += len(changed.updated)
        self.left += len(changed.broken)
        after = files(self.root)
        wrong = sorted(name for name in texts if texts[name] != after[name])
        self.memory.undo()
        trouble = f"other bytes in {wrong[:3]}" if wrong else ""
        if files(self.root) != self.before:
            trouble += " undo left other bytes"
        return trouble and f"{kind} {path}: {trouble}"

    def _destination(self, kind: str, path: str) -> str:
        folder, _, name = path.rpartition("/")
        if kind == "rename":
            name = f"Renamed & {self.number} (new).md"
        elif kind == "other case":
            name = f"{name[:-3].swapcase()}.md"
        else:
            folder = self.random.choice(
                sorted({target.rpartition("/")[0] for target in self.targets})
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
        wrong = []
        for trouble in (mover.step() for _ in range(moves)):
            if trouble:
                wrong.append(trouble)
    return wrong, mover


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=5000)
    parser.add_argument("--moves", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong, mover = run(options.notes, options.moves, options.seed, Path(folder))
    for trouble in wrong[:20]:
        print(trouble)
    print(f"{options.moves} moves in {options.notes} notes: {len(wrong)} wrong,")
    print(f"{mover.updated} notes updated, {mover.parts} for headings and blocks,")
    print(f"{mover.left} left with links they could not keep")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
