"""The cases of memory_tool.json: setting a store up, checking results and the files on disk
afterwards.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contract.home_kinds import prepared

CASES = json.loads(
    (Path(__file__).parent / "data" / "memory_tool.json").read_text(encoding="utf-8")
)["cases"]
NAMES = [case["name"] for case in CASES]
_LEAKS = re.compile(r"Traceback|Error\b.*\bErrno|\b[A-Z]\w+Error\b|\bErrno\b")


class Store:
    """The /memories folder of a home, seen from outside, and a folder beside the home nobody may
    touch.
    """

    def __init__(self, home: Path):
        self.home = prepared(home)
        self.root = home / "memories"
        self.outside = home.parent / f"{home.name}-outside"

    def fill(self, case: dict[str, Any]) -> None:
        """Empty the store, then lay out the case's files, folders and links."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self.outside, ignore_errors=True)
        self.root.mkdir(parents=True)
        self.outside.mkdir()
        (self.outside / "secret.txt").write_text("the secret")
        for path, text in case.get("setup_files", {}).items():
            self._write(path, text.encode())
        for path, data in case.get("setup_files_b64", {}).items():
            self._write(path, base64.b64decode(data))
        for path, generated in case.get("setup_generated", {}).items():
            text, count = generated["repeat"]
            self._write(path, (text * count).encode())
        for path in case.get("setup_dirs", []):
            self.place(path).mkdir(parents=True, exist_ok=True)
        for path, target in case.get("setup_symlinks", {}).items():
            link = self.place(path)
            link.parent.mkdir(parents=True, exist_ok=True)
            if target.startswith("OUTSIDE"):
                goal = str(self.outside) + target.removeprefix("OUTSIDE")
            else:
                goal = os.path.relpath(self.place(target), link.parent)
            os.symlink(goal, link)

    def place(self, path: str) -> Path:
        return self.root / path.removeprefix("/memories").lstrip("/")

    def _write(self, path: str, data: bytes) -> None:
        place = self.place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def check(self, case: dict[str, Any]) -> None:
        """Compare the store with the case's `expect_files`, and the folder beside it with what it
        was.
        """
        names = sorted(p.name for p in self.outside.iterdir())
        assert names == ["secret.txt"]
        text = (self.outside / "secret.txt").read_text()
        assert text == "the secret"
        if "expect_files" not in case:
            return
        expected = case["expect_files"]
        actual = {f"/memories/{place.relative_to(self.root)}": place for place in self._leaves()}
        assert sorted(actual) == sorted(expected)
        for path, want in expected.items():
            check_file(actual[path], want)

    def _leaves(self) -> Iterator[Path]:
        """The files, links and empty folders of the store."""
        for folder, folders, files in os.walk(self.root):
            folder_path = Path(folder)
            for name in files:
                yield folder_path / name
            for subfolder in folders:
                if (folder_path / subfolder).is_symlink():
                    yield folder_path / subfolder
            if not files and not folders and folder_path != self.root:
                yield folder_path


def check_file(place: Path, want: dict[str, Any]) -> None:
    """Compare a file, link or empty folder with what a case expects of it."""
    if "symlink" in want:
        assert place.is_symlink()
    elif "empty_dir" in want:
        assert place.is_dir()
    elif "text" in want:
        content = place.read_bytes()
        assert content == want["text"].encode()
    elif "b64" in want:
        content = place.read_bytes()
        assert content == base64.b64decode(want["b64"])
    else:
        assert place.stat().st_size == want["bytes"]


def arguments(op: dict[str, Any]) -> dict[str, Any]:
    """The tool input of an operation."""
    return {key: value for key, value in op.items() if key != "expect"}


def check_reply(op: dict[str, Any], text: str, is_error: bool, home: Path) -> None:
    """Compare one result with what the case expects."""
    expect = op["expect"]
    assert is_error == expect["is_error"], text
    if "text" in expect:
        assert text == expect["text"]
    else:
        if expect.get("match") == "fullmatch":
            match = re.fullmatch
        else:
            match = re.search
        assert match(expect["regex"], text), text
    assert str(home) not in text
    if is_error:
        assert not _LEAKS.search(text), text


def answered(result: dict[str, Any]) -> tuple[str, bool]:
    """The text of a tools/call result and whether it is an error; its form is checked (contract
    000a, 5).
    """
    (block,) = result["content"]
    assert block["type"] == "text"
    text = block["text"]
    is_error = result["isError"]
    assert result.get("structuredContent") == (
        {"error": text, "is_error": True} if is_error else None
    )
    return text, is_error


def check_silence(text: str, *places: Path) -> None:
    """A result tells nothing of the machine: none of these places, no private folder, no exception."""
    assert not _LEAKS.search(text), text
    for word in (*map(str, places), ".memoranda", "site-packages", 'File "'):
        assert word not in text


def shape(root: Path) -> dict[str, tuple[str, int, Any]]:
    """Everything below a folder: kind, mode, and bytes or link target."""
    shapes: dict[str, tuple[str, int, Any]] = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode & 0o7777
        name = str(path.relative_to(root))
        if path.is_symlink():
            shapes[name] = ("link", 0, os.readlink(path))
        elif path.is_dir():
            shapes[name] = ("folder", mode, None)
        else:
            shapes[name] = ("file", mode, path.read_bytes())
    return shapes
