"""Tests do not reach the memory of the person who runs them."""

from __future__ import annotations

import pwd
from os import getuid
from pathlib import Path


def test_home_is_another_one_than_the_persons(terminal, monkeypatch):
    # What a test does to take back one patch takes back the HOME of `terminal`, too.
    monkeypatch.undo()
    persons_home = pwd.getpwuid(getuid()).pw_dir
    assert Path.home() != Path(persons_home)
