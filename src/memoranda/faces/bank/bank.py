"""Memory banks (contract 003, 1 to 3 and 8).

A bank is a folder of Markdown files in the project `banks`, for one kind of conversation. Its
record, `.bank.json`, has its name and the Git repository that it belongs to. Repositories are
recognized by the files below `.git`, without running Git.
"""

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
from memoranda.note.bank_files import FOLDERS, composed, files_of
from memoranda.note.model import BANK_PROJECT
from memoranda.sources.layout import SKIPPED_FOLDERS
from memoranda.sources.path_guard import NAME_BYTES
from memoranda.text.user_path import user_path
from memoranda.text.words import runs

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.sources.base import File, Stamp

KINDS = ("global", "project", "code")
AUTO = ("", "auto")
"""Ids that ask for detection."""
PROJECT = BANK_PROJECT
RECORD = ".bank.json"
# A reply recommends to shorten a larger bank.
MANY_TOKENS = 6000
# Limits of contract 003 for the ids of banks and the paths in them.
_MAX_ID_CHARACTERS = 100
_MAX_PATH_PARTS = 10
_MAX_PATH_CHARACTERS = 200
# At most this many bytes of a file of Git are read.
_MAX_GIT_FILE_BYTES = 1 << 16
# A commit: 40 digits for SHA-1, 64 for SHA-256.
_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
# A section of Git's configuration: its name, and its subsection in quotes.
_SECTION = re.compile(r"\s*\[\s*([\w.-]+)(?:\s+\"((?:[^\"\\]|\\.)*)\")?\s*\]")
# The address of a remote in Git's configuration.
_URL = re.compile(r"\s*url\s*=\s*\"?([^\"#;\r\n]*)", re.IGNORECASE)
# A user or a token in an address, which must not reach a note.
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")
Puts = dict[str, "tuple[str, File | None]"]
"""Files to write: path -> (new text, the file as it was read, or None if it was missing)."""


def is_bank_id(text: str) -> bool:
    """Whether `text` is allowed as the id of a bank, or as one part of a path in a bank."""
    if not text or len(text) > _MAX_ID_CHARACTERS or len(text.encode()) > NAME_BYTES:
        return False
    if text[0] in ". " or ".." in text or text in SKIPPED_FOLDERS:
        return False
    return all(_may_be_in_id(sign) for sign in text)


def _may_be_in_id(sign: str) -> bool:
    """Whether an id may have this character: a letter or digit of any script, or one of ` ._-`."""
    return sign in " ._-" or unicodedata.category(sign)[0] in "LMN"


def is_target(path: str) -> bool:
    """Whether `path` can be a file of a bank, e.g. `notes/today.md`."""
    parts = path.split("/")
    if len(path) > _MAX_PATH_CHARACTERS or len(parts) > _MAX_PATH_PARTS:
        return False
    return path.endswith(".md") and all(is_bank_id(part) for part in parts)


def project_id(name: str) -> str:
    """Return the id for the name of a project, `my_app` for `My App`. It may be invalid."""
    return "_".join(name.lower().split())


def repository_id(name: str) -> str:
    """Return a valid id for the folder of a repository: `c__app` for `c++app`.

    Characters that an id cannot have become `_`.
    """
    text = "".join(sign if _may_be_in_id(sign) else "_" for sign in project_id(name))
    text = text.replace("..", "__")
    if text[:1] in ("", "."):
        text = f"_{text[1:]}"
    # A character may take several bytes, so both lengths are limited.
    while len(text) > _MAX_ID_CHARACTERS or len(text.encode()) > NAME_BYTES:
        text = text[:-1]
    if is_bank_id(text):
        return text
    # The memory skips a folder with this name, such as `node_modules`.
    return f"_{text}"


def title_case(name: str) -> str:
    """Return an id, or the name of a file without `.md`, as a title: `My Proj` for `my_proj`."""
    words = name.replace("_", " ").replace("-", " ").split()
    return " ".join(word[:1].upper() + word[1:] for word in words)


@cache
def bank_data(name: str) -> dict[str, Any]:
    """Return the data of the file `bank-NAME.toml`."""
    return tomllib.loads(text_file(f"bank-{name}.toml"))


def template_files(kind: str) -> list[str]:
    """Return the paths of the files that a new bank of this kind begins with, in their order."""
    return [file.path for file in files_of(kind)]


def in_order(kind: str, paths: Sequence[str]) -> list[str]:
    """Sort paths as replies show them.

    The files of the template come first, then the others in alphabetical order.
    """
    first = [path for path in template_files(kind) if path in paths]
    return first + sorted(path for path in paths if path not in first)


def template_texts(kind: str, info: BankInfo) -> dict[str, str]:
    """Return the files of a new bank: path -> text.

    A text is `# TITLE`, followed by sections with a sentence each. The main file, which has no
    title in the template, gets the name of the bank. In a project bank its first sentence is the
    description of the project.
    """
    texts = {}
    for file in files_of(kind):
        sections = list(file.sections)
        is_main_file = not file.title
        if kind == "project" and info.description and is_main_file:
            sections[0] = sections[0]._replace(sentence=info.description)
        texts[file.path] = composed(file.title or info.name, sections)
    return texts


@dataclass(frozen=True, slots=True)
class Repository:
    """A Git repository.

    name: the name of its folder. For a linked worktree, the folder of the main repository.
    root: the path of that folder.
    origin: the address of the remote `origin` without credentials. None without such a remote.
    branch: the branch that is checked out. None if a commit is checked out without a branch.
    commit: the first 7 digits of a commit that is checked out without a branch. Otherwise None.
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
    """The files of a bank by path, sorted as replies show them.

    texts: the text of each file.
    stamps: a value for each file that changes with the file.
    unreadable: files that cannot be read -> the reason.
    """

    texts: dict[str, str] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


class Bank:
    """A bank as one caller sees it. It need not exist.

    id: the id in the Unicode form in which the disk has the folder of the bank. A caller may write
        it in another form, as macOS and most keyboards do with `é`.
    key: `KIND:ID`.
    agent: the identity of the caller.
    files: gives access to the folder of the bank.
    """

    def __init__(self, memory: MemorySession, kind: str, id: str):
        # The first call imports the engine: a server must answer the handshake quickly.
        from memoranda.engine.plain_files import Files

        self.kind = kind
        self.files = Files(memory, PROJECT, f"{FOLDERS[kind]}/{id}")
        self.id = self.files.folder.rpartition("/")[2]
        self.key = f"{kind}:{self.id}"
        self.agent = memory.agent

    def stamps(self) -> dict[str, Stamp]:
        """Return the stamps of the Markdown files by path. Raises the errors of `Files.notes`."""
        return {
            path: stamp
            for path, stamp in self.files.notes().items()
            if path.lower().endswith(".md")
        }

    def exists(self) -> bool:
        """Whether the bank has a record or a file.

        Raises OutsideError if its folder is a link, StorageError if it cannot be read.
        """
        return self.has_record() or bool(self.stamps())

    def has_record(self) -> bool:
        """Whether `.bank.json` exists. Raises OutsideError if the folder of the bank is a link."""
        return self.files.itself(RECORD).kind != "missing"

    def record(self) -> dict[str, Any]:
        """Return the contents of `.bank.json`, or an empty mapping if it cannot be read."""
        try:
            record = json.loads(self.files.read(RECORD).data)
        except (MemorandaError, ValueError, RecursionError):
            return {}
        if isinstance(record, dict):
            return record
        return {}

    def read(self, path: str) -> File | None:
        """Read a file. None if it is missing. Raises OutsideError, StorageError."""
        try:
            return self.files.read(path)
        except NotFound:
            return None

    def load(self, files_before: BankFiles | None) -> BankFiles:
        """Read all Markdown files. Raises the errors of `Files.notes`.

        files_before: the files as they were read last. If no file has changed, this object is
            returned. None if they were not read before.
        """
        stamps = self.stamps()
        # A file that could not be read is tried again, because the cause may be gone.
        may_keep = files_before is not None and not files_before.unreadable
        if files_before is not None and may_keep and files_before.stamps == stamps:
            return files_before
        loaded = BankFiles()
        for path in in_order(self.kind, list(stamps)):
            try:
                file = self.files.read(path)
                # The file may have changed since the listing. The stamp must be that of the text.
                stamps[path] = file.stamp
                loaded.texts[path] = file.data.decode()
            except NotFound:
                # The file was removed after the listing.
                continue
            except UnicodeDecodeError:
                loaded.unreadable[path] = (
                    "it is not UTF-8 text. Convert it to UTF-8, or move it out of the bank."
                )
            except MemorandaError as error:
                loaded.unreadable[path] = getattr(error, "reason", "it cannot be read")
            loaded.stamps[path] = stamps[path]
        return loaded

    def info(self) -> BankInfo:
        """Return the recorded name and description. Without a record, the name is made of the id."""
        record = self.record()
        name = record.get("name")
        if not isinstance(name, str) or not name:
            name = title_case(self.id)
        description = record.get("description")
        if not isinstance(description, str):
            description = ""
        return BankInfo(name, description)

    def first_files(self, info: BankInfo, moment: datetime) -> Puts:
        """Return all files of a new bank. The record comes last."""
        files: Puts = {path: (text, None) for path, text in template_texts(self.kind, info).items()}
        created_at = stamp(moment.replace(microsecond=0))
        row = {"name": info.name, "description": info.description, "created_at": created_at}
        return files | {RECORD: (_record_text(row, info.repository), None)}

    def belongs_to(self, repository: Repository) -> bool | None:
        """Whether the record names this repository, by its path or its origin.

        None means that the record names no repository.
        """
        repo = self.record().get("repo")
        if not isinstance(repo, dict):
            return None
        same_origin = repository.origin is not None and repo.get("origin") == repository.origin
        return same_origin or repo.get("path") == repository.root

    def claim(self, repository: Repository) -> None:
        """Record the repository of the bank, unless one is recorded.

        A record that cannot be read is not changed.
        """
        if self.belongs_to(repository) is not None:
            return

        def plan() -> Puts:
            """Return the new record, or nothing if it must not be changed."""
            old = self.read(RECORD)
            row = self.record()
            is_unreadable = old is not None and not row
            if row.get("repo") is not None or is_unreadable:
                return {}
            row = row or {"name": repository.name, "description": "", "created_at": None}
            return {RECORD: (_record_text(row, repository), old)}

        self.files.put(plan, "edit")

    def last_change(self, stamps: Iterable[Stamp]) -> str:
        """Return the time of the latest change of these files, in UTC and whole seconds.

        For a bank without files, return when it was created.

        stamps: the stamps of the files.
        """
        times = [file_stamp.mtime_ns for file_stamp in stamps]
        if times:
            return stamp(EPOCH + timedelta(seconds=max(times) // 1_000_000_000))
        try:
            return stamp(parse_stamp(str(self.record().get("created_at"))).replace(microsecond=0))
        except ValueError:
            return stamp(EPOCH)


def _record_text(row: dict[str, Any], repository: Repository | None) -> str:
    """Return the text of a record with this repository."""
    repo = None
    if repository is not None:
        repo = {"path": repository.root, "origin": repository.origin}
    return json.dumps({**row, "repo": repo}, ensure_ascii=False, indent=2) + "\n"


def token_count(texts: Iterable[str]) -> int:
    """Estimate the tokens in these texts: 1 for 4 characters, or for one Chinese character."""
    length = 0
    cjk_length = 0
    for text in texts:
        length += len(text)
        # ASCII has no such characters: do not search it.
        if not text.isascii():
            cjk_length += sum(len(run) for run in runs().findall(text))
    return (length - cjk_length) // 4 + cjk_length


def find_repository(path: str) -> Repository | None:
    """Return the repository that `path` is in. None if there is no repository or no such path.

    Links in the path are followed.
    """
    root = _repository_root(path)
    if root is None:
        return None
    name = os.path.basename(root)
    git_folder = os.path.join(root, ".git")
    if not os.path.isdir(git_folder):
        # In a submodule or a linked worktree, `.git` is a file that names the folder.
        first_line = _text_of_file(git_folder).partition("\n")[0]
        named_folder = first_line.removeprefix("gitdir:").strip()
        if named_folder:
            git_folder = os.path.normpath(os.path.join(root, named_folder))

    # A linked worktree has a file `commondir`, which names the Git folder of the main worktree. The
    # configuration is there, and all worktrees count as that one repository.
    config_folder = git_folder
    shared = _text_of_file(os.path.join(git_folder, "commondir")).strip()
    if shared:
        config_folder = os.path.realpath(os.path.join(git_folder, shared))
        # A bare repository is only a Git folder, without a worktree around it.
        is_bare = os.path.basename(config_folder) != ".git"
        root = config_folder if is_bare else os.path.dirname(config_folder)
        name = os.path.basename(root).removesuffix(".git")
    branch, commit = _head_of(git_folder)
    return Repository(
        # The root of the disk has no name.
        name=_one_line(name) or "root",
        root=_one_line(root),
        origin=_origin_of(config_folder),
        branch=branch,
        commit=commit,
    )


def _repository_root(path: str) -> str | None:
    """Return the nearest folder at or above `path` that has `.git`. None if no folder has it."""
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
    """Return (branch, commit) that are checked out. At least one of them is None.

    The commit has 7 digits. It is known only if no branch is checked out.
    """
    line = _text_of_file(os.path.join(git_folder, "HEAD")).partition("\n")[0]
    head = "".join(sign for sign in line if sign.isprintable()).strip()
    if head.startswith("ref:"):
        branch = head.removeprefix("ref:").strip().removeprefix("refs/heads/")
        # Git writes `.invalid` if the branch is stored elsewhere.
        if branch in ("", ".invalid"):
            return None, None
        return branch, None
    if _HASH.fullmatch(head):
        return None, head[:7]
    return None, None


def _origin_of(config_folder: str) -> str | None:
    """Return the address of the remote `origin` without credentials. None without such a remote.

    config_folder: the folder with Git's `config`.
    """
    is_in_origin = False
    for line in _text_of_file(os.path.join(config_folder, "config")).splitlines():
        # `[remote "origin"]` begins the section. A key may follow in the same line.
        section = _SECTION.match(line)
        if section:
            is_in_origin = section[1].lower() == "remote" and section[2] == "origin"
            line = line[section.end() :]
        if not is_in_origin:
            continue
        url = _URL.match(line)
        if url and url[1].strip():
            return _CREDENTIALS.sub("", _one_line(url[1].strip()))
    return None


def _text_of_file(path: str) -> str:
    """Read the first 64 KiB of a regular file. "" for anything else."""
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        if is_file:
            return os.read(fd, _MAX_GIT_FILE_BYTES).decode("utf-8", "replace")
        return ""
    except OSError:
        return ""
    finally:
        os.close(fd)


def _one_line(text: str) -> str:
    """Return a path without line breaks. Bytes that are not UTF-8 become `?`."""
    return " ".join(text.encode("utf-8", "replace").decode().split("\n"))
