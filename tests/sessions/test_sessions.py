"""The transcripts beside this file are true: each `$ ` line gives what stands below it.

They are documentation first. What differs from run to run is masked: ids, in the order of their
appearance, become `11111111-1111-4111-8111-111111111111` and so on (short form `11111111`), times
`YYYY-MM-DD hh:mm`. A command may use these ids. `$ # ` begins a comment; `(exit 1)` closes the
output of a command that failed. Lines with `|`, `>`, `<` or another program than `memory` go
through the shell. `pytest tests/sessions --update` rewrites them.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import memoranda

FOLDER = Path(__file__).parent
SESSIONS = sorted(path.name for path in FOLDER.glob("*.txt"))
SHELL = re.compile(r"[|<>$`;&*]")

ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
MASKS = (
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "YYYY-MM-DDThh:mm:ssZ"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b"), "YYYY-MM-DD hh:mm:ss"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d\b"), "YYYY-MM-DD hh:mm"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "YYYY-MM-DD"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<64 hex digits>"),
    (re.compile(r"\bchecksum: [0-9a-f]{8}\b"), "checksum: <8 hex digits>"),
)


@dataclass
class Masks:
    """The ids of one session by their masks, and its folders."""

    ids: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)

    def hide(self, text: str) -> str:
        for regex, mask in MASKS:
            text = regex.sub(mask, text)
        for id_found in ID.findall(text):
            # At most 15 of a session
            if id_found not in self.ids.values():
                self.ids[
                    re.sub("x", f"{len(self.ids) + 1:x}", "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx")
                ] = id_found
        for mask, id_found in self.ids.items():
            text = text.replace(id_found, mask).replace(id_found[:8], mask[:8])
        for folder, folder_mask in self.folders.items():
            text = text.replace(folder, folder_mask)
        return text

    def show(self, command: str) -> str:
        for mask, id_found in self.ids.items():
            command = command.replace(mask, id_found).replace(mask[:8], id_found[:8])
        return command


def play(script: str, run: Any, masks: Masks) -> Iterator[str]:
    """The lines of the transcript as it is now."""
    for number, line in enumerate(
        script_line for script_line in script.splitlines() if script_line.startswith("$ ")
    ):
        comment = line.startswith("$ # ")
        if comment and number:
            yield ""
        yield line
        if not comment:
            yield from masks.hide(run(masks.show(line[2:]))).splitlines()


@pytest.fixture
def session(terminal: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs one line of a transcript in the session's home."""
    user = Path(os.environ["HOME"])
    monkeypatch.chdir(user)
    monkeypatch.setenv("PYTHONPATH", str(Path(memoranda.__file__).parents[1]))
    bin = terminal.folder / "bin"
    bin.mkdir()
    program = bin / "memory"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m memoranda "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}"}

    def run(line: str) -> str:
        words = shlex.split(line)
        if words[0] == "memory" and not SHELL.search(line):
            ran = terminal(*(os.path.expanduser(word) for word in words[1:]))
            text = ran.out + ran.err
            status = ran.status
        else:
            process = subprocess.run(
                line, shell=True, cwd=user, env=environment, capture_output=True, timeout=60
            )
            text = (process.stdout + process.stderr).decode()
            status = process.returncode
        if status:
            return text + f"(exit {status})\n"
        return text

    run.masks = Masks(folders={str(user): "~"})  # type: ignore[attr-defined]
    return run


@pytest.mark.parametrize("name", SESSIONS)
def test_the_transcript_is_true(name: str, session: Any, request: pytest.FixtureRequest) -> None:
    path = FOLDER / name
    written = path.read_text("utf-8")
    now = "\n".join(play(written, session, session.masks)) + "\n"
    if request.config.getoption("--update"):
        path.write_text(now, "utf-8")
    else:
        assert now == written


def test_a_transcript_that_is_not_true_is_told_from_one_that_is() -> None:
    written = "$ memory list\nNo memories found.\n"
    assert list(play(written, lambda line: "Nothing.\n", Masks())) == ["$ memory list", "Nothing."]
