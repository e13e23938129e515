"""The commits of a mirror: one for each change of the journal, by its author, made by `git
fast-import`.

Fast-import moves the branch once, at its end, so a run that is killed made all of its commits or
none. What the branch holds is noted in `commits.json`; what it is about to hold, in `commits.next`
before it moves. No configuration, hook or filter of the machine takes part.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.clock import parse_stamp
from memoranda.engine.exchange import Contents
from memoranda.errors import InvalidInput, StorageError
from memoranda.ledger.change import ERASE, LINES, Change
from memoranda.store.files import make_private, put_derived, read_file
from memoranda.text.unicode import one_line

AFTER_ERASE = ("rewrite", "keep")
_BRANCH = "refs/heads/main"
_CHANGE = "Memory-Change"
_ODD = re.compile(rb'["\\\x00-\x1f\x7f]')
_SUBJECT = 120
_OUTSIDE = "Take up what was changed without the journal"

Op = tuple[str, str, str]
"""`put` name digest, `remove` name "", `move` name to."""


@dataclass(slots=True)
class _Commits:
    """What the branch holds at `head`: name → SHA-256, as of the change numbered so. `began_anew`:
    older commits, which `head` does not lead to, have to be removed."""

    head: str
    change: int
    files: dict[str, str] = field(default_factory=dict)
    began_anew: bool = False


class GitHistory:
    """The commits in the folder of a mirror, of what `contents` has; `own` is where they are noted.
    Raises InvalidInput when somebody else moved the branch, StorageError."""

    def __init__(self, folder: Path, own: Path, contents: Contents):
        self._folder = folder
        self._contents = contents
        self._known = own / "commits.json"
        self._next = own / "commits.next"
        self.made = 0
        if not (folder / ".git").exists():
            self._git("init", "-q", "--template=", "--initial-branch=main")
        info = folder / ".git" / "info"
        make_private(info)
        put_derived(info / "exclude", f"/{own.name}/\n".encode())
        put_derived(info / "attributes", b"* -text -ident -filter\n")
        head = self._ask("rev-parse", "-q", "--verify", _BRANCH)
        self._commits, coming = _read(self._known), _read(self._next)
        if head and coming:
            said = self._ask("log", "-1", f"--format=%(trailers:key={_CHANGE},valueonly)", head)
        else:
            said = ""
        if coming is not None and head != coming.head and said == str(coming.change):
            # A run was killed as it moved the branch
            self._settle(coming, head)
            return
        with suppress(FileNotFoundError):
            os.unlink(self._next)
        known = self._commits
        if (
            head != (known.head if known else "")
            or self._ask("symbolic-ref", "-q", "HEAD") != _BRANCH
        ):
            if known:
                back = f": git -C {self._folder} update-ref {_BRANCH} {known.head}"
            else:
                back = ""
            raise InvalidInput(
                f"somebody else committed in {self._folder}, or switched its branch. A mirror is written by the memory "
                f"alone: mirror to a new folder, or put its branch main back{back}"
            )

    @property
    def change(self) -> int:
        """The number of the latest change that is committed, 0 for none."""
        if self._commits:
            return self._commits.change
        return 0

    def _settle(self, commits: _Commits, head: str) -> None:
        """Note that the branch holds `commits` now, and show it in git's own index."""
        if head:
            # first: what git's own index names stays
            self._git("read-tree", _BRANCH)
            self._ask("update-index", "-q", "--refresh")
        if commits.began_anew:
            self._git("reflog", "expire", "--expire=now", "--all")
            self._git("gc", "-q", "--prune=now")
        else:
            self._ask("gc", "-q", "--auto")
        commits.head = head
        commits.began_anew = False
        self._commits = commits
        put_derived(self._known, json.dumps(asdict(commits), indent=0).encode() + b"\n")
        with suppress(FileNotFoundError):
            os.unlink(self._next)

    def commit(
        self,
        changes: Sequence[Change],
        files: Mapping[str, str],
        later: Sequence[Change],
        now: datetime,
        after_erase: str | None,
    ) -> list[str]:
        """Commit `changes`, those since `change`, and then what else differs from `files` (name →
        SHA-256), which the folder holds, except what changes made `later` touched. Returns what to
        tell the owner. Raises InvalidInput after something was erased, unless `after_erase` says
        what to do (see `Mirror.run`)."""
        before = self._commits
        notices = list[str]()
        if before is not None and any(each.verb == ERASE and each.details for each in changes):
            if after_erase is None:
                raise InvalidInput(
                    f"the files in {self._folder} are up to date, but nothing was committed: something was erased in "
                    "the memory, and the commits here still hold it. Run this again with --after-erase rewrite to "
                    "make all commits anew without it, or with --after-erase keep to leave it in them."
                )
            if after_erase == "rewrite":
                before = None
                changes = self._contents.changes(0)
                notices = self._copies_elsewhere()
        began_anew = before is None and self._commits is not None
        replay = _Replay(self._contents, changes, files)
        stream = _Stream(
            self._git_command("fast-import", "--quiet", "--done", "--force"),
            self._environment(),
            partial(self._text, {digest: name for name, digest in files.items()}),
            before,
        )
        try:
            if changes:
                last = changes[-1].number
            else:
                last = self.change
            if before is None:
                if changes:
                    when = parse_stamp(changes[0].time)
                else:
                    when = now
                begin = [("put", name, digest) for name, digest in sorted(replay.first().items())]
                if began_anew:
                    subject = "Begin anew without what was erased"
                else:
                    subject = "Begin with what was there before"
                stream.commit(subject, "owner", when, "", begin, even_empty=began_anew)
            for change in changes:
                ops = replay.ops(change)
                if ops:
                    stream.commit(*_words(change), ops)
            newer = {name for each in later for op in replay.ops(each) for name in op[1:]}
            ops = [
                ("remove", name, "") for name in sorted(stream.tree.keys() - files.keys() - newer)
            ]
            ops += [
                ("put", name, digest) for name, digest in sorted(files.items()) if name not in newer
            ]
            stream.commit(_OUTSIDE, "unknown", now, f"{_CHANGE}: {last}\n", ops)
            made = _Commits(before.head if before else "", last, stream.tree, began_anew)
            if stream.count:
                put_derived(self._next, json.dumps(asdict(made), indent=0).encode() + b"\n")
            stream.end()
        except OSError as error:
            raise StorageError("git", f"fast-import: {error}") from None
        finally:
            stream.close()
        self.made = stream.count
        head = self._ask("rev-parse", "-q", "--verify", _BRANCH)
        self._settle(made, head)
        return notices

    def _copies_elsewhere(self) -> list[str]:
        """What may still hold what was erased, once the commits are rewritten."""
        found = [
            part
            for part in self._ask("for-each-ref", "--format=%(refname)").split()
            if part != _BRANCH
        ]
        said = [
            f"{each} in {self._folder} still leads to the old commits: delete it" for each in found
        ]
        remotes = self._ask("remote").split()
        said += [
            f"remote {remote} has the old commits: push with --force, and see to its copies"
            for remote in remotes
        ]
        return said

    def _text(self, names: Mapping[str, str], digest: str) -> bytes | None:
        """The text of a SHA-256: in the history, else in the folder, under its name there."""
        kept = self._contents.text(digest)
        if kept is not None or digest not in names:
            return kept
        with suppress(OSError):
            file = read_file(str(self._folder / names[digest]))
            if file.etag == digest:
                return file.data
            return None
        return None

    def _git_command(self, *arguments: str) -> list[str]:
        settings = (
            "core.hooksPath=/dev/null",
            "core.autocrlf=false",
            "core.fsmonitor=false",
            "gc.autoDetach=false",
            "core.attributesFile=/dev/null",
            "core.excludesFile=/dev/null",
        )
        return ["git", *(word for setting in settings for word in ("-c", setting)), *arguments]

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        place = {"GIT_DIR": str(self._folder / ".git"), "GIT_WORK_TREE": str(self._folder)}
        return (
            kept
            | place
            | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        )

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                self._git_command(*arguments),
                env=self._environment(),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            raise StorageError(
                "git", "there is no such program; install it, or mirror without --git"
            ) from None

    def _git(self, *arguments: str) -> None:
        """Run git. Raises StorageError with its last words."""
        ran = self._run(arguments)
        if ran.returncode:
            raise StorageError(
                f"git {arguments[0]}", one_line(ran.stderr.decode("utf-8", "replace"))[-200:]
            )

    def _ask(self, *arguments: str) -> str:
        """What git answers, "" when it refuses."""
        ran = self._run(arguments)
        if ran.returncode == 0:
            return ran.stdout.decode("utf-8", "replace").strip()
        return ""


class _Replay:
    """Changes, the oldest first, as operations on names in the mirror, which at their end holds
    `files`.
    """

    def __init__(self, contents: Contents, changes: Sequence[Change], files: Mapping[str, str]):
        self._contents = contents
        self._changes = changes
        self._files = files
        # The last change of each graph file: of its earlier texts only lines are known
        self._graphs = dict[str, int]()
        for change in changes:
            for file in change.files:
                if file.do == LINES and (name := contents.name(file, file.path)):
                    self._graphs[name] = change.number

    def ops(self, change: Change) -> list[Op]:
        """What a change does to the mirror."""
        ops = list[Op]()
        for file in change.files:
            name = self._contents.name(file, file.path)
            if file.do == LINES:
                if (
                    name is not None
                    and self._graphs.get(name) == change.number
                    and name in self._files
                ):
                    ops.append(("put", name, self._files[name]))
            elif file.do == "put" and name is not None and file.new is not None:
                ops.append(("put", name, file.new))
            elif file.do == "remove" and name is not None:
                ops.append(("remove", name, ""))
            elif file.do == "move":
                to = self._contents.name(file, file.to)
                if name is not None:
                    ops.append(("remove", name, "") if to is None else ("move", name, to))
                elif to is not None and file.old is not None:
                    ops.append(("put", to, file.old))
        return ops

    def first(self) -> dict[str, str]:
        """What the mirror held before the first change, so far as the journal tells: name →
        SHA-256.
        """
        tree = {name: digest for name, digest in self._files.items() if name not in self._graphs}
        for change in reversed(self._changes):
            for file in reversed(change.files):
                name = self._contents.name(file, file.path)
                if file.do == "move":
                    to = self._contents.name(file, file.to)
                    if name is not None and to is not None:
                        _rename(tree, to, name)
                    elif to is not None:
                        tree.pop(to, None)
                    elif name is not None and file.old is not None:
                        tree[name] = file.old
                elif name is not None and file.do in ("put", "remove"):
                    if file.old is None:
                        tree.pop(name, None)
                    else:
                        tree[name] = file.old
        return tree


class _Stream:
    """Commits on their way into git, after those of `before` (None: a new beginning); the process
    begins with the first one. `tree` is what the last one holds, `count` how many there are."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        text: Callable[[str], bytes | None],
        before: _Commits | None,
    ):
        self._command = command
        self._environment = environment
        self._text = text
        if before:
            self._from = before.head
        else:
            self._from = ""
        self._process: subprocess.Popen[bytes] | None = None
        if before:
            self.tree = dict(before.files)
        else:
            self.tree = {}
        self.count = 0

    def commit(
        self,
        subject: str,
        author: str,
        when: datetime,
        body: str,
        ops: Sequence[Op],
        *,
        even_empty: bool = False,
    ) -> None:
        """Commit what `ops` change, if they change anything. A text nobody has any more is passed
        over.
        """
        lines = list[bytes]()
        for do, name, what in ops:
            if do == "put":
                if self.tree.get(name) != what:
                    data = self._text(what)
                else:
                    data = None
                if data is not None:
                    self.tree[name] = what
                    lines.append(
                        b"M 100644 inline %s\ndata %d\n" % (_quoted(name), len(data)) + data + b"\n"
                    )
            elif do == "move":
                if _rename(self.tree, name, what):
                    lines.append(b"R %s %s\n" % (_quoted(name), _quoted(what)))
            elif self.tree.pop(name, None) is not None:
                lines.append(b"D %s\n" % _quoted(name))
        if not lines and not even_empty:
            return
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        into = self._process.stdin
        assert into is not None
        if not self.count and not self._from:
            into.write(f"reset {_BRANCH}\n\n".encode())
        author = re.sub(r"[^\w.-]", "", author) or "unknown"
        who = f"{author} <{author}@memory.invalid>"
        at = f"{int(when.timestamp())} +0000"
        message = f"{one_line(subject)[:_SUBJECT]}\n\n{body}".encode("utf-8", "replace")
        head = f"commit {_BRANCH}\nauthor {who} {at}\ncommitter {who} {at}\ndata {len(message)}\n".encode()
        into.write(head + message + b"\n")
        if self._from:
            into.write(f"from {self._from}\n".encode())
            self._from = ""
        into.writelines(lines)
        into.write(b"\n")
        self.count += 1

    def end(self) -> None:
        """Move the branch to the last commit. Raises StorageError."""
        if self._process is None:
            return
        _, said = self._process.communicate(b"done\n")
        if self._process.returncode:
            raise StorageError("git fast-import", one_line(said.decode("utf-8", "replace"))[:200])

    def close(self) -> None:
        """End the process, if it did not end; the branch is as before then."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def _words(change: Change) -> tuple[str, str, datetime, str]:
    """Subject, author, time and trailers of the commit of a change."""
    place = "/".join(filter(None, (change.project.removeprefix("."), change.path)))
    subject = f"{change.verb} {place}" + (
        f" (takes back #{change.undoes})" if change.undoes else ""
    )
    by = change.by or {}
    said = {
        "Memory-Agent": change.agent or "",
        "Memory-Face": change.face or "",
        "Memory-Client": by.get("client", ""),
        "Memory-Session": by.get("session", ""),
        "Memory-Tool": by.get("tool", ""),
        _CHANGE: str(change.number),
    }
    body = "".join(f"{key}: {one_line(value)}\n" for key, value in said.items() if value)
    return subject, change.agent or "owner", parse_stamp(change.time), body


def _rename(tree: dict[str, str], name: str, to: str) -> bool:
    """Rename a file, or all below a folder. Returns whether there was any."""
    if name in tree:
        found = [name]
    else:
        found = [each for each in tree if each.startswith(f"{name}/")]
    moved = {to + each[len(name) :]: tree.pop(each) for each in found}
    tree.update(moved)
    return bool(moved)


def _quoted(name: str) -> bytes:
    data = name.encode("utf-8", "surrogateescape")
    return b'"%s"' % _ODD.sub(lambda odd: b"\\%03o" % ord(odd[0]), data)


def _read(place: Path) -> _Commits | None:
    try:
        row: dict[str, Any] = json.loads(place.read_bytes())
        return _Commits(row["head"], row["change"], row["files"], row["began_anew"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise StorageError(str(place), "it is damaged; mirror to a new folder") from None
