"""The cases of bank_cases.json: their steps carried out, replies and files compared with what they
expect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from contract.home_kinds import prepared
from contract.tables import assert_has
from memoranda import faces
from memoranda.engine import MemorySession

CASES = json.loads(
    (Path(__file__).parent / "data" / "bank_cases.json").read_text(encoding="utf-8")
)["cases"]
NAMES = [case["name"] for case in CASES]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

Call = Callable[[str, dict[str, Any]], tuple[str, bool, Any]]
"""(tool, arguments) -> (text, is_error, structured)."""


class Ground:
    """A machine below `folder`: the home, and a scratch folder with repositories."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.home = folder / "home"
        self.scratch = folder / "scratch"
        for new_folder in (self.home, self.scratch):
            new_folder.mkdir(parents=True)
        self.banks = prepared(self.home) / "banks"

    def repository(
        self, name: str, head: str = "ref: refs/heads/main", sub: str = "", origin: str = ""
    ) -> Path:
        """A repository as Git leaves it, with all files that are read."""
        root = self.scratch / name
        (root / ".git").mkdir(parents=True, exist_ok=True)
        (root / sub).mkdir(parents=True, exist_ok=True)
        (root / ".git" / "HEAD").write_text(head + "\n")
        if origin:
            (root / ".git" / "config").write_text(
                f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {origin}\n'
            )
        return root

    def outside(self) -> dict[str, bytes]:
        """Every file that is neither in the banks nor our own."""
        ours = (self.banks, self.home / ".memoranda")
        files = (
            path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink()
        )
        files_of_banks = {}
        for file in files:
            if not any(our in file.parents for our in ours):
                files_of_banks[str(file)] = file.read_bytes()
        return files_of_banks

    def run(self, case: dict[str, Any], call: Call) -> None:
        """All steps of a case, one after the other."""
        files_outside = self.outside()
        for step in case["steps"]:
            if "tool" in step:
                arguments = json.loads(json.dumps(step["args"]).replace("{TMP}", str(self.scratch)))
                self.check(step, *call(step["tool"], arguments))
            elif "make_repo" in step:
                self.repository(step["make_repo"], step["head"], step.get("sub", ""))
                files_outside = self.outside()
            elif "make_dir" in step:
                (self.scratch / step["make_dir"]).mkdir(parents=True)
            elif "write" in step:
                path, text = step["write"]
                (self.banks / path).write_bytes(text.encode())
            elif "remove" in step:
                (self.banks / step["remove"]).unlink()
            else:
                assert step == {"outside_untouched": True}
                assert self.outside() == files_outside

    def check(self, step: dict[str, Any], text: str, is_error: bool, structured: Any) -> None:
        """Compare a reply, and the file it should have left, with a step."""
        assert is_error == step["is_error"], text
        if text.startswith("Input validation error: "):
            data = structured
        else:
            data = json.loads(text)
        assert structured == data
        if "json_has" in step:
            assert_has(data, step["json_has"], is_same)
        if "keys" in step:
            assert list(data) == step["keys"]
        if "code" in step:
            assert data["code"] == step["code"]
        for part in step.get("text_has", ()):
            assert part in text
        for part in step.get("text_lacks", ()):
            assert part not in text
        if "file" in step:
            path, expected = step["file"]
            assert (self.banks / path).read_bytes() == expected.encode()
        if "file_has" in step:
            path, expected = step["file_has"]
            assert expected.encode() in (self.banks / path).read_bytes()


def is_same(expected: str, actual: Any) -> bool:
    """Whether a text is the one wanted; `<TS>` is a time."""
    if expected == "<TS>":
        return TIME.fullmatch(actual) is not None
    return actual == expected


class Banks:
    """The bank tools of one server over a memory, called as a transport calls them."""

    def __init__(self, memory: MemorySession, **settings: Any):
        self.memory = memory
        self.registry = faces.registry(["bank"], replace(memory.settings, **settings))

    def call(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], bool]:
        """(data, is_error) of a call whose text says the same."""
        reply = self.registry.call(self.memory, tool, arguments)
        assert reply.data is not None
        if not reply.text.startswith("Input validation error: "):
            assert json.loads(reply.text) == reply.data
        return reply.data, reply.is_error

    def ok(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The data of a call that succeeds."""
        data, is_error = self.call(tool, **arguments)
        assert not is_error, data
        return data

    def refused(self, tool: str, code: str, **arguments: Any) -> dict[str, Any]:
        """The data of a call that fails with `code`."""
        data, is_error = self.call(tool, **arguments)
        assert is_error, data
        assert data["code"] == code, data
        if code != "invalid":
            assert list(data) == ["status", "error", "code", "details", "previous_errors"]
        return data

    def write(
        self, text: str, file: str | None = None, kind: str = "project", id: str = "p", **more: Any
    ) -> dict[str, Any]:
        """The reply to an update."""
        file_argument = {"target_file": file} if file else {}
        return self.ok("update", bank_type=kind, bank_id=id, content=text, **file_argument, **more)

    def file(self, path: str) -> Path:
        """Return the path of a file of the project `banks`."""
        return self.memory.project("banks").root / path

    def state(self) -> dict[str, tuple[bytes, int]]:
        """Every file below the banks: bytes and modification time."""
        root = self.memory.project("banks").root
        paths = root.rglob("*")
        files = (path for path in paths if path.is_file())
        return {
            str(file.relative_to(root)): (file.read_bytes(), file.stat().st_mtime_ns)
            for file in files
        }
