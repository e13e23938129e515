"""A memory bank: its id, its templates, its folder in the project `banks`, its record and its
files; and the Git repository it may belong to, read from the files below `.git` (contract 003, 1 to
3 and 8)."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.clock import EPOCH, parse_stamp, stamp
from memoranda.errors import MemorandaError, NotFound
from memoranda.faces.texts import text_file
from memoranda.sources.layout import SKIPPED_FOLDERS
from memoranda.sources.path_guard import NAME_BYTES
from memoranda.text.user_path import user_path
from memoranda.text.words import runs

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.sources.base import File, Stamp

KINDS = ("global", "project", "code")
FOLDERS = {"global": "global", "project": "projects", "code": "code"}
AUTO = ("", "auto")
"""Ids that ask for detection."""
PROJECT = "banks"
RECORD = ".bank.json"
# A larger bank is summed up before it is handed out.
MANY_TOKENS = 6000
# Limits of contract 003 for the ids of banks and the paths in them.
_ID_LENGTH = 100
_PATH_PARTS = 10
_PATH_LENGTH = 200
# Bytes read of a file of Git.
_MOST_BYTES = 1 << 16
# A commit: 40 digits for SHA-1, 64 for SHA-256.
_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
# A section of Git's configuration: its name, and its subsection in quotes.
_SECTION = re.compile(r"\s*\[\s*([\w.-]+)(?:\s+\"((?:[^\"\\]|\\.)*)\")?\s*\]")
# The address of a remote in Git's configuration.
_URL = re.compile(r"\s*url\s*=\s*\"?([^\"#;\r\n]*)", re.IGNORECASE)
# A user or a token in an address, which must not reach a note.
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")
Puts = dict[str, "tuple[str, File | None]"]
"""Files to write: path -> (new text, what was read there)."""


def is_bank_id(text: str) -> bool:
    """Whether `text` can be a bank's id, or one part of a file's path."""
    has_length = 0 < len(text) <= _ID_LENGTH and len(text.encode()) <= NAME_BYTES
    return (
        has_length
        and text[0] not in ". "
        and ".." not in text
        and text not in SKIPPED_FOLDERS
        and all(map(_is_allowed, text))
    )


def _is_allowed(sign: str) -> bool:
    return sign in " ._-" or unicodedata.category(sign)[0] in "LMN"


def is_target(path: str) -> bool:
    """Whether `path` can be a file of a bank."""
    parts = path.split("/")
    fits = len(path) <= _PATH_LENGTH and len(parts) <= _PATH_PARTS
    return fits and path.endswith(".md") and all(map(is_bank_id, parts))


def project_id(name: str) -> str:
    """The id a project's name means; it need not be a valid one."""
    return "_".join(name.lower().split())


def repository_id(name: str) -> str:
    """A valid id for a repository's folder; what an id cannot have becomes `_`."""
    text = "".join(sign if _is_allowed(sign) else "_" for sign in project_id(name)).replace(
        "..", "__"
    )
    if text[:1] in ("", "."):
        text = f"_{text[1:]}"
    while len(text) > _ID_LENGTH or len(text.encode()) > NAME_BYTES:
        text = text[:-1]
    if is_bank_id(text):
        return text
    return f"_{text}"


def title_case(name: str) -> str:
    """An id or a file's stem as a title: `my_proj` -> `My Proj`."""
    words = name.replace("_", " ").replace("-", " ").split()
    return " ".join(word[:1].upper() + word[1:] for word in words)


@cache
def bank_data(name: str) -> dict[str, Any]:
    """The data file `bank-NAME.toml`."""
    return tomllib.loads(text_file(f"bank-{name}.toml"))


def template_files(kind: str) -> list[str]:
    """The template files of a kind of bank, in their order."""
    return [template_file["file"] for template_file in bank_data("templates")[kind]]


def in_order(kind: str, paths: Sequence[str]) -> list[str]:
    """The files of a bank in the order shown: the template's files, then the others, sorted."""
    first = [path for path in template_files(kind) if path in paths]
    return first + sorted(path for path in paths if path not in first)


def template_texts(kind: str, info: BankInfo) -> dict[str, str]:
    """The files of a new bank with their texts: `# <title>`, then each section with its sentence.

    The bank's own file has no title. The description of a project is the first sentence there.
    """
    texts = {}
    for template in bank_data("templates")[kind]:
        sections = [list(this_section) for this_section in template["sections"]]
        if kind == "project" and info.description and not template["title"]:
            sections[0][1] = info.description
        body = "".join(f"\n## {section}\n{sentence}\n" for section, sentence in sections) or "\n"
        texts[template["file"]] = f"# {template['title'] or info.name}\n{body}"
    return texts


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository. For a linked worktree, name and root are the main repository's.

    name: the name of its folder, as written.
    root: its folder.
    origin: without credentials.
    branch: the branch, if one is checked out.
    commit: the commit of a detached HEAD.
    """

    name: str
    root: str
    origin: str | None = None
    branch: str | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class BankInfo:
    """The name, the description and the repository of a bank."""

    name: str
    description: str = ""
    repository: Repository | None = None


@dataclass(slots=True)
class BankFiles:
    """A bank's files in the order they are shown: texts, stamps, and those that cannot be read
    (path -> why).
    """

    texts: dict[str, str] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


class Bank:
    """The bank `kind`/`id` (a valid id) as one caller sees it."""

    def __init__(self, memory: MemorySession, kind: str, id: str):
        # The engine is needed by the first call, not by the handshake
        from memoranda.engine.plain_files import (
            Files,
        )

        self.kind = kind
        self.id = id
        self.key = f"{kind}:{id}"
        self.agent = memory.agent
        self.files = Files(memory, PROJECT, f"{FOLDERS[kind]}/{id}")

    def stamps(self) -> dict[str, Stamp]:
        """The bank's Markdown files, in the order of paths, with their stamps. Raises as
        `Files.notes`.
        """
        return {
            path: stamp
            for path, stamp in self.files.notes().items()
            if path.lower().endswith(".md")
        }

    def exists(self) -> bool:
        """Whether there is a record or a file. Raises OutsideError when the folder is a link,
        StorageError.
        """
        return self.has_record() or bool(self.stamps())

    def has_record(self) -> bool:
        """Whether `.bank.json` is there. Raises OutsideError when the folder is a link."""
        return self.files.itself(RECORD).kind != "missing"

    def record(self) -> dict[str, Any]:
        """The contents of `.bank.json`, or {} if it is missing or unreadable."""
        try:
            rows = json.loads(self.files.read(RECORD).data)
        except (MemorandaError, ValueError, RecursionError):
            return {}
        if isinstance(rows, dict):
            return rows
        return {}

    def read(self, path: str) -> File | None:
        """A file as it is now, or None. Raises OutsideError, StorageError."""
        try:
            return self.files.read(path)
        except NotFound:
            return None

    def load(self, files_before: BankFiles | None) -> BankFiles:
        """All files as they are now; `files_before` itself when it still holds. Raises as `Files.notes`."""
        stamps = self.stamps()
        loaded = BankFiles()
        if (
            files_before is not None
            and files_before.stamps == stamps
            and not files_before.unreadable
        ):
            return files_before
        for path in in_order(self.kind, list(stamps)):
            try:
                file = self.files.read(path)
                stamps[path] = file.stamp
                loaded.texts[path] = file.data.decode()
            except NotFound:
                # The file was removed after the listing.
                continue
            except UnicodeDecodeError:
                loaded.unreadable[path] = "it is not UTF-8 text"
            except MemorandaError as error:
                loaded.unreadable[path] = getattr(error, "reason", "it cannot be read")
            loaded.stamps[path] = stamps[path]
        return loaded

    def info(self) -> BankInfo:
        """Name and description as recorded. By default the name comes from the id."""
        name, description = (self.record().get(key) for key in ("name", "description"))
        if not isinstance(name, str) or not name:
            name = title_case(self.id)
        return BankInfo(name, description if isinstance(description, str) else "")

    def first_files(self, info: BankInfo, moment: datetime) -> Puts:
        """All files of the new bank, its record last."""
        files: Puts = {path: (text, None) for path, text in template_texts(self.kind, info).items()}
        created_at = stamp(moment.replace(microsecond=0))
        row = {"name": info.name, "description": info.description, "created_at": created_at}
        return files | {RECORD: (_record_text(row, info.repository), None)}

    def belongs_to(self, repository: Repository) -> bool | None:
        """Whether the record names this repository by path or origin.

        None if it names no repository.
        """
        repo = self.record().get("repo")
        if not isinstance(repo, dict):
            return None
        same_origin = repository.origin is not None and repo.get("origin") == repository.origin
        return same_origin or repo.get("path") == repository.root

    def claim(self, repository: Repository) -> None:
        """Record whose bank this is, where nobody did; a record that cannot be read stays as it is."""
        if self.belongs_to(repository) is not None:
            return

        def plan() -> Puts:
            old = self.read(RECORD)
            row = self.record()
            if row.get("repo") is not None or (old is not None and not row):
                return {}
            row = row or {"name": repository.name, "description": "", "created_at": None}
            return {RECORD: (_record_text(row, repository), old)}

        self.files.put(plan, "edit")

    def last_change(self, stamps: Iterable[Stamp]) -> str:
        """When the newest of the files with these stamps was changed, UTC in whole seconds; for a
        bank without files, when it was made."""
        times = [file_stamp.mtime_ns for file_stamp in stamps]
        if times:
            return stamp(EPOCH + timedelta(seconds=max(times) // 1_000_000_000))
        try:
            return stamp(parse_stamp(str(self.record().get("created_at"))).replace(microsecond=0))
        except ValueError:
            return stamp(EPOCH)


def _record_text(row: dict[str, Any], repository: Repository | None) -> str:
    if repository is None:
        repo = None
    else:
        repo = {"path": repository.root, "origin": repository.origin}
    return json.dumps({**row, "repo": repo}, ensure_ascii=False, indent=2) + "\n"


def token_count(texts: Iterable[str]) -> int:
    """About how many tokens some texts have: four characters each, a CJK character on its own."""
    length = wide = 0
    for text in texts:
        length += len(text)
        wide += 0 if text.isascii() else sum(len(run) for run in runs().findall(text))
    return (length - wide) // 4 + wide


def find_repository(path: str) -> Repository | None:
    """The repository that `path` (existing, links followed) is in, or None."""
    root = _repository_root(path)
    if root is None:
        return None
    name = os.path.basename(root)
    git_folder = common = os.path.join(root, ".git")
    if not os.path.isdir(git_folder):
        # A file that names the folder: of a submodule, or of a linked worktree.
        named_git_folder = _text(git_folder).partition("\n")[0].removeprefix("gitdir:").strip()
        if named_git_folder:
            git_folder = common = os.path.normpath(os.path.join(root, named_git_folder))
    shared = _text(os.path.join(git_folder, "commondir")).strip()
    if shared:
        # A linked worktree: the repository is that of its main folder.
        common = os.path.realpath(os.path.join(git_folder, shared))
        is_usual = os.path.basename(common) == ".git"
        if is_usual:
            root = os.path.dirname(common)
        else:
            root = common
        name = os.path.basename(root).removesuffix(".git")
    branch, commit = _head_of(git_folder)
    return Repository(
        _one_line(name) or "root", _one_line(root), _origin_of(common), branch, commit
    )


def _repository_root(path: str) -> str | None:
    """The nearest folder at or above `path` that holds `.git`, or None."""
    try:
        start = Path(os.path.realpath(user_path(path)))
        if not os.path.lexists(start):
            return None
        for folder in (start, *start.parents):
            if os.path.exists(folder / ".git"):
                return str(folder)
    except ValueError:
        return None
    return None


def _head_of(git_folder: str) -> tuple[str | None, str | None]:
    """(branch, commit) that is checked out.

    The commit is only given without a branch; both may be None.
    """
    line = _text(os.path.join(git_folder, "HEAD")).partition("\n")[0]
    head = "".join(sign for sign in line if sign.isprintable()).strip()
    if head.startswith("ref:"):
        branch = head.removeprefix("ref:").strip().removeprefix("refs/heads/")
        # Git writes `.invalid` if the branch is stored elsewhere.
        return (None if branch == ".invalid" else branch or None), None
    if _HASH.fullmatch(head):
        return None, head[:7]
    return None, None


def _origin_of(common: str) -> str | None:
    """The address of the remote `origin` without credentials, or None."""
    is_in_origin = False
    for line in _text(os.path.join(common, "config")).splitlines():
        section = _SECTION.match(line)
        if section:
            is_in_origin = section[1].lower() == "remote" and section[2] == "origin"
            line = line[section.end() :]
        if is_in_origin:
            url = _URL.match(line)
        else:
            url = None
        if url and url[1].strip():
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
        if is_file:
            return os.read(fd, _MOST_BYTES).decode("utf-8", "replace")
        return ""
    except OSError:
        return ""
    finally:
        os.close(fd)


def _one_line(text: str) -> str:
    """`text` without line breaks; bytes that are not UTF-8 become `?`."""
    return " ".join(text.encode("utf-8", "replace").decode().split("\n"))
