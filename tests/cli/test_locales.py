"""What is written does not depend on the locale of the program that writes (issue 33, 11)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LOCALES = [
    {"LC_ALL": "C"},
    {"LC_ALL": "POSIX"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "de_DE.ISO-8859-1", "PYTHONUTF8": "0"},
    {"LANG": "ja_JP.eucJP", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "latin-1"},
]


def run(home: Path, settings: dict[str, str], *arguments: str, stdin: str = "") -> str:
    """What the command prints in a process of this locale."""
    inherited = {key: value for key, value in os.environ.items() if key in ("PATH", "PYTHONPATH")}
    process = subprocess.run(
        [sys.executable, "-m", "memoranda", "--home", str(home), *arguments],
        env={**inherited, "HOME": str(home.parent), "CI": "1", **settings},
        input=stdin.encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr.decode()
    return process.stdout.decode()


@pytest.mark.parametrize("settings", LOCALES, ids=str)
def test_names_and_texts_are_the_same_in_every_locale(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    home = tmp_path / "mem"
    note = {"title": "Café 日本 🎉", "directory": "Übung", "content": "naïve ёж"}

    run(home, settings, "call", "write_note", json.dumps(note, ensure_ascii=False))
    run(home, settings, "write", "-", "--category", "soul", stdin="größe 大小")

    file = home / "notes/Übung/Café 日本 🎉.md"
    file_text = file.read_text()
    assert file_text.endswith("naïve ёж\n")
    for other_locale in (settings, {"LC_ALL": "C.UTF-8"}):
        listed = run(home, other_locale, "list")
        assert "Café 日本 🎉: naïve ёж" in listed
        assert "größe 大小" in listed
