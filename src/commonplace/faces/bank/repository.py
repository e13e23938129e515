"""Where a path's Git repository is and what it stands on, read from the files below `.git` (contract 003, 2)."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass

_LONGEST = 1 << 16
_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_SECTION = re.compile(r"\s*\[\s*([\w.-]+)(?:\s+\"((?:[^\"\\]|\\.)*)\")?\s*\]")
_URL = re.compile(r"\s*url\s*=\s*\"?([^\"#;\r\n]*)", re.IGNORECASE)
_SECRET = re.compile(r"(?<=://)[^/@]*@")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository: its folder's `name` as written and `root`, those of the main repository for a linked
    worktree; `origin` without credentials. `branch`, else `commit` for a detached HEAD, else neither is known.
    """

    name: str
    root: str
    origin: str | None = None
    branch: str | None = None
    commit: str | None = None


def find(path: str) -> Repository | None:
    """The repository `path` (existing, links followed) lies in; None when it lies in none."""
    try:
        folder = os.path.realpath(os.path.expanduser(path))
        if not os.path.lexists(folder):
            return None
    except ValueError:
        return None
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return _repository(folder)


def _repository(folder: str) -> Repository:
    private = _private_folder(folder)
    shared = _text(os.path.join(private, "commondir")).strip()
    common = os.path.normpath(os.path.join(private, shared)) if shared else private
    root, name = folder, os.path.basename(folder)
    if shared:
        common = os.path.realpath(common)
        root = os.path.dirname(common) if os.path.basename(common) == ".git" else common
        name = os.path.basename(root).removesuffix(".git")
    branch, commit = _head(_text(os.path.join(private, "HEAD")))
    return Repository(_sound(name) or "root", _sound(root), _origin(common), branch, commit)


def _private_folder(folder: str) -> str:
    """Where HEAD is: `.git`, or the folder a `.git` file names."""
    place = os.path.join(folder, ".git")
    if os.path.isdir(place):
        return place
    named = _text(place).partition("\n")[0].removeprefix("gitdir:").strip()
    return os.path.normpath(os.path.join(folder, named)) if named else place


def _head(text: str) -> tuple[str | None, str | None]:
    """(branch, commit) as HEAD's text says."""
    line = "".join(sign for sign in text.partition("\n")[0] if sign.isprintable()).strip()
    if line.startswith("ref:"):
        name = line.removeprefix("ref:").strip().removeprefix("refs/heads/")
        return (name if name and name != ".invalid" else None), None  # .invalid: the branch is kept elsewhere
    return None, line[:7] if _HASH.fullmatch(line) else None


def _origin(common: str) -> str | None:
    """The address of the remote `origin`."""
    inside = False
    for line in _text(os.path.join(common, "config")).splitlines():
        if section := _SECTION.match(line):
            inside = section[1].lower() == "remote" and section[2] == "origin"
            line = line[section.end() :]
        if inside and (url := _URL.match(line)) and url[1].strip():
            return _SECRET.sub("", _sound(url[1].strip()))
    return None


def _text(path: str) -> str:
    """The beginning of a regular file; "" for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return os.read(fd, _LONGEST).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def _sound(text: str) -> str:
    """`text` on one line, with `?` for bytes that are no text."""
    return " ".join(text.encode("utf-8", "replace").decode().split("\n"))
