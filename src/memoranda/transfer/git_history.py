"""The commits of a mirror: one for each run that changed something, made by the `git` program.

A run makes a tree of the files, makes a commit of the tree, and then moves the branch. So if a run
is killed, the branch is as it was, or has one new commit. The state of the branch is recorded in
`commits.json`. The machine's configuration, hooks and filters are not used, and neither is git's
own index, since somebody else may be using it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memoranda.errors import InvalidInput, StorageError
from memoranda.ledger.change import ERASE, FOLD, Change
from memoranda.sources.files import make_private, put_derived
from memoranda.text.unicode import one_line

AFTER_ERASE = ("rewrite", "keep")
_BRANCH = "refs/heads/main"
_CHANGE = "Memory-Change"
_COMMITTER = "memory@memory.invalid"
_SUBJECT_CHARACTERS = 120
# The number of changes that the message of a commit names one by one.
_MOST_LINES = 200
# The messages of commits that are not made of single changes.
_OUTSIDE = "Take up what was changed without the journal"
_AFTER_ERASE = "Begin anew without what was erased"
# Settings of git that make its work independent of the machine.
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.fileMode=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    # Names that other systems would not take are names of notes here
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.precomposeUnicode=false",
    "gc.autoDetach=false",
)
_ATTRIBUTES = b"* -text -ident -filter -working-tree-encoding\n"


@dataclass(slots=True)
class _Commits:
    """The state of the branch as `commits.json` records it.

    head: the name of its last commit. "" before the first one.
    change: the number of the latest change of the memory that is committed.
    is_rewriting: whether a run is about to replace all commits by a new one.
    """

    head: str = ""
    change: int = 0
    is_rewriting: bool = False


class GitHistory:
    """Make commits in the folder of a mirror.

    state_folder: the folder inside it with the record of the commits.

    Raises InvalidInput if somebody else moved the branch, StorageError.
    """

    def __init__(self, folder: Path, state_folder: Path):
        self._folder = folder
        self._state_folder = state_folder
        self._record = state_folder / "commits.json"
        self.made = 0
        """The number of commits that this run made."""
        if not (folder / ".git").exists():
            self._git("init", "-q", "--template=", "--initial-branch=main")
        info = folder / ".git" / "info"
        make_private(info)
        put_derived(info / "exclude", f"/{state_folder.name}/\n".encode())
        put_derived(info / "attributes", _ATTRIBUTES)
        # A killed run may have left the lock of its index. The lock of the mirror shows that no run
        # is active.
        with suppress(FileNotFoundError):
            os.unlink(folder / ".git" / "memory-index.lock")
        self._commits = self._last_record()
        self._check_branch()

    def _last_record(self) -> _Commits:
        """Return the record of the last run, or an empty one. Raises StorageError."""
        try:
            row: dict[str, Any] = json.loads(self._record.read_bytes())
            return _Commits(row["head"], row["change"], row.get("is_rewriting", False))
        except FileNotFoundError:
            return _Commits()
        except (OSError, ValueError, KeyError, TypeError):
            raise StorageError(str(self._record), "it is damaged; mirror to a new folder") from None

    def _check_branch(self) -> None:
        """Raise InvalidInput if the branch is not as the last run left it."""
        head = self._ask("rev-parse", "-q", "--verify", _BRANCH)
        recorded = self._commits
        is_on_branch = self._ask("symbolic-ref", "-q", "HEAD") == _BRANCH
        if is_on_branch and head == recorded.head:
            return
        if is_on_branch and self._is_of_killed_run(head):
            # Record the commit now. Its message names the number of its latest change.
            trailer = f"--format=%(trailers:key={_CHANGE},valueonly)"
            change = self._ask("log", "-1", trailer, head) or recorded.change
            self._settle(_Commits(head, int(change)))
            return
        remedy = ""
        if recorded.head:
            remedy = f": git -C {self._folder} update-ref {_BRANCH} {recorded.head}"
        raise InvalidInput(
            f"somebody else committed in {self._folder}, or switched its branch. A mirror is "
            "written by the memory alone: mirror to a new folder, or put its branch main back"
            f"{remedy}"
        )

    def _is_of_killed_run(self, head: str) -> bool:
        """Whether a run made this commit and was killed before it could record it."""
        if not head:
            return False
        committer, _, parent = self._ask("log", "-1", "--format=%ce%n%P", head).partition("\n")
        if committer != _COMMITTER:
            return False
        return parent == self._commits.head or (self._commits.is_rewriting and not parent)

    @property
    def change(self) -> int:
        """The number of the latest change that is committed. 0 before the first commit."""
        return self._commits.change

    def commit(
        self, changes: Sequence[Change], now: datetime, after_erase: str | None
    ) -> list[str]:
        """Commit the files of the folder, if they differ from the last commit.

        changes: the changes of the memory after `self.change`, the oldest first.
        now: the time of the commit.
        after_erase: what to do with earlier commits if something was erased. `rewrite` begins them
            again without the erased texts, `keep` leaves them. None refuses to commit.

        Returns sentences for the owner. Raises InvalidInput if something was erased and
        `after_erase` is None, StorageError.
        """
        # Without details, a change of this verb removed no text that a commit could have.
        is_erased = any(change.verb == ERASE and change.details for change in changes)
        # Before the first commit, no commit can have the erased texts.
        is_in_commits = is_erased and bool(self._commits.head)
        if is_in_commits and after_erase is None:
            raise InvalidInput(
                f"the files in {self._folder} are up to date, but nothing was committed: something "
                "was erased in the memory, and the commits here still hold it. Run this again with "
                "--after-erase rewrite to begin the commits again without it, or with "
                "--after-erase keep to leave it in them."
            )
        last = changes[-1].number if changes else self.change
        if is_in_commits and after_erase == "rewrite":
            return self._replace_commits(last, now)
        self._add_commit(changes, last, now)
        return []

    def _add_commit(self, changes: Sequence[Change], last: int, now: datetime) -> None:
        """Commit the present files after the last commit, unless they are the same.

        changes: the changes that the commit is about.
        last: the number of the latest change.
        """
        before = self._commits
        tree = self._tree()
        tree_before = self._ask("rev-parse", "-q", "--verify", f"{before.head}^{{tree}}")
        if tree != tree_before:
            message = _message(changes, last)
            head = self._make_commit(tree, before.head, message, _author(changes), now)
            self._settle(_Commits(head, last))
        elif last != before.change:
            # The changes left all files as they were. Only their numbers must be recorded, so that
            # the next run does not read them again.
            self._put_record(_Commits(before.head, last))

    def _replace_commits(self, last: int, now: datetime) -> list[str]:
        """Make one commit of the present files, and remove all earlier commits from the disk.

        last: the number of the latest change.

        Returns sentences for the owner.
        """
        self._commits.is_rewriting = True
        self._put_record(self._commits)
        message = f"{_AFTER_ERASE}\n\n{_CHANGE}: {last}\n"
        head = self._make_commit(self._tree(), "", message, "owner", now)
        self._settle(_Commits(head, last))
        return self._copies_elsewhere()

    def _tree(self) -> str:
        """Make a git tree with all files of the mirror, even ignored ones. Returns its hash."""
        self._git("add", "--all", "--force", "--", ".", f":(exclude,top){self._state_folder.name}")
        return self._git("write-tree")

    def _make_commit(self, tree: str, parent: str, message: str, author: str, now: datetime) -> str:
        """Make a commit and move the branch to it. Returns the commit's name.

        tree: the name of the tree with the files.
        parent: the commit before. "" for the first one.
        message: the commit message.
        author: the name of the author.
        now: the time of the commit.
        """
        identity = {
            "GIT_AUTHOR_NAME": author,
            "GIT_AUTHOR_EMAIL": f"{author}@memory.invalid",
            "GIT_COMMITTER_NAME": "memory",
            "GIT_COMMITTER_EMAIL": _COMMITTER,
            "GIT_AUTHOR_DATE": f"{int(now.timestamp())} +0000",
            "GIT_COMMITTER_DATE": f"{int(now.timestamp())} +0000",
        }
        parent_options = ["-p", parent] if parent else []
        data = message.encode("utf-8", "replace")
        head = self._git("commit-tree", tree, *parent_options, data=data, more_environment=identity)
        self._git("update-ref", _BRANCH, head)
        self.made += 1
        return head

    def _settle(self, commits: _Commits) -> None:
        """Finish a run that moved the branch: update people's git, clean up, and record the state.

        People's git has an index of its own, which must follow the branch. After the commits were
        replaced, the old ones are removed from the disk. The record is written last: if this run is
        killed before, the next run does all this again (`_check_branch`).
        """
        is_rewritten = self._commits.is_rewriting
        # If a person's git is using this index, these two commands fail, which does no harm.
        own_index = {"GIT_INDEX_FILE": str(self._folder / ".git" / "index")}
        self._run(("read-tree", _BRANCH), more_environment=own_index)
        self._run(("update-index", "-q", "--refresh"), more_environment=own_index)
        if is_rewritten:
            self._git("reflog", "expire", "--expire=now", "--all")
            self._git("gc", "-q", "--prune=now")
        else:
            self._ask("gc", "-q", "--auto")
        self._put_record(commits)

    def _put_record(self, commits: _Commits) -> None:
        """Record the state of the branch for the next run."""
        self._commits = commits
        put_derived(self._record, json.dumps(asdict(commits), indent=0).encode() + b"\n")

    def _copies_elsewhere(self) -> list[str]:
        """Say which places may still have erased texts after the commits were replaced."""
        refs = self._ask("for-each-ref", "--format=%(refname)").split()
        notices = [
            f"{ref} in {self._folder} still leads to the old commits: delete it"
            for ref in refs
            if ref != _BRANCH
        ]
        notices += [
            f"remote {remote} has the old commits: push with --force, and see to its copies"
            for remote in self._ask("remote").split()
        ]
        return notices

    def _run(
        self,
        arguments: Sequence[str],
        data: bytes = b"",
        more_environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git on the folder, without the machine's settings. Raises StorageError without git.

        data: the input of git.
        more_environment: variables in addition to, or in place of, the usual ones.
        """
        settings: list[str] = []
        for setting in _SETTINGS:
            settings += ["-c", setting]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("GIT_")
        }
        environment |= {
            "GIT_DIR": str(self._folder / ".git"),
            "GIT_WORK_TREE": str(self._folder),
            "GIT_INDEX_FILE": str(self._folder / ".git" / "memory-index"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C",
        }
        try:
            return subprocess.run(
                ["git", *settings, *arguments],
                env=environment | dict(more_environment or {}),
                cwd=self._folder,
                input=data,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            raise StorageError(
                "git", "there is no such program; install it, or mirror without --git"
            ) from None

    def _git(
        self, *arguments: str, data: bytes = b"", more_environment: Mapping[str, str] | None = None
    ) -> str:
        """Run git, and return its output. Raises StorageError with git's message if it fails.

        data: the input of git.
        more_environment: variables in addition to, or in place of, the usual ones.
        """
        outcome = self._run(arguments, data, more_environment)
        if outcome.returncode:
            message = one_line(outcome.stderr.decode("utf-8", "replace"))[-200:]
            raise StorageError(f"git {arguments[0]}", message)
        return outcome.stdout.decode("utf-8", "replace").strip()

    def _ask(self, *arguments: str) -> str:
        """Run git, and return its output. "" if it fails."""
        outcome = self._run(arguments)
        if outcome.returncode == 0:
            return outcome.stdout.decode("utf-8", "replace").strip()
        return ""


def _visible_changes(changes: Sequence[Change]) -> list[Change]:
    """Leave out changes that people do not see: stored counts of reads, and erased changes."""
    return [change for change in changes if change.verb != FOLD and change.project]


def _author(changes: Sequence[Change]) -> str:
    """Return who made the changes. `memory` for several people, `unknown` for no change."""
    names = {change.agent or "owner" for change in _visible_changes(changes)}
    if not names:
        return "unknown"
    if len(names) > 1:
        return "memory"
    return re.sub(r"[^\w.-]", "", names.pop()) or "unknown"


def _message(changes: Sequence[Change], last: int) -> str:
    """Write the message of a commit: a subject, a line for each change, and the last number.

    last: the number of the latest change.
    """
    visible_changes = _visible_changes(changes)
    if not visible_changes:
        subject = _OUTSIDE
    elif len(visible_changes) == 1:
        subject = _words(visible_changes[0])
    else:
        subject = f"{len(visible_changes)} changes up to #{last}"
    lines = [
        f"#{change.number} {_words(change)} ({change.agent or 'owner'}, {change.time})"
        for change in visible_changes[:_MOST_LINES]
    ]
    if len(visible_changes) > _MOST_LINES:
        lines.append(f"and {len(visible_changes) - _MOST_LINES} more")
    paragraphs = [one_line(subject)[:_SUBJECT_CHARACTERS], "\n".join(lines), f"{_CHANGE}: {last}\n"]
    return "\n\n".join(filter(None, paragraphs))


def _words(change: Change) -> str:
    """Describe a change in one line: `write notes/Plan.md`, `undo notes/Plan.md (takes back #7)`."""
    place = "/".join(filter(None, (change.project.removeprefix("."), change.path)))
    undone = f" (takes back #{change.undoes})" if change.undoes else ""
    return one_line(f"{change.verb} {place}{undone}")
