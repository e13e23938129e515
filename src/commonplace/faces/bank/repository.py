"""The Git repository around a path and its branch, read from the files below `.git` (contract 003, 2)."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

_MOST_BYTES = 1 << 16
_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_SECTION = re.compile(r"\s*\[\s*([\w.-]+)(?:\s+\"((?:[^\"\\]|\\.)*)\")?\s*\]")
_URL = re.compile(r"\s*url\s*=\s*\"?([^\"#;\r\n]*)", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository: its folder's `name` as written and `root`, those of the main repository for a linked worktree;
    `origin` without credentials. `branch`, else `commit` for a detached HEAD, else neither is known."""

    name: str
    root: str
    origin: str | None = None
    branch: str | None = None
    commit: str | None = None


def find_repository(path: str) -> Repository | None:
    """The repository `path` (existing, links followed) lies in; None when it lies in none."""
    try:
        start = Path(os.path.realpath(os.path.expanduser(path)))
        exists = os.path.lexists(start)
    except ValueError:
        return None
    roots = (str(each) for each in (start, *start.parents) if exists and os.path.exists(each / ".git"))
    root = next(roots, None)
    if root is None:
        return None
    name, common = os.path.basename(root), os.path.join(root, ".git")
    if not os.path.isdir(common) and (named := _text(common).partition("\n")[0].removeprefix("gitdir:").strip()):
        common = os.path.normpath(os.path.join(root, named))
    git_folder = common
    if shared := _text(os.path.join(git_folder, "commondir")).strip():  # a linked worktree
        common = os.path.realpath(os.path.join(git_folder, shared))
        root = os.path.dirname(common) if os.path.basename(common) == ".git" else common
        name = os.path.basename(root).removesuffix(".git")
    branch, commit = None, None
    head = _text(os.path.join(git_folder, "HEAD")).partition("\n")[0]
    head = "".join(sign for sign in head if sign.isprintable()).strip()
    if head.startswith("ref:"):
        branch = head.removeprefix("ref:").strip().removeprefix("refs/heads/")
        branch = branch if branch != ".invalid" else None  # the branch is kept elsewhere
    elif _HASH.fullmatch(head):
        commit = head[:7]
    return Repository(_one_line(name) or "root", _one_line(root), _origin(common), branch or None, commit)


def _origin(git_folder: str) -> str | None:
    inside = False
    for line in _text(os.path.join(git_folder, "config")).splitlines():
        if section := _SECTION.match(line):
            inside = section[1].lower() == "remote" and section[2] == "origin"
            line = line[section.end() :]
        if inside and (url := _URL.match(line)) and url[1].strip():
            return _CREDENTIALS.sub("", _one_line(url[1].strip()))
    return None


def _text(path: str) -> str:
    """The first 64 KiB of a regular file; "" for anything else. Does not wait for a FIFO."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        return os.read(fd, _MOST_BYTES).decode("utf-8", "replace") if is_file else ""
    except OSError:
        return ""
    finally:
        os.close(fd)


def _one_line(text: str) -> str:
    """`text` without line breaks; bytes that are not UTF-8 become `?`."""
    return " ".join(text.encode("utf-8", "replace").decode().split("\n"))
