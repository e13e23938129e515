"""Jobs: what they see, what they plan, and the one runner that applies it or only shows it (contract 001, 5).

A job is a name and a plan: a pure function of the memories, the settings and the clock. A `Round` is one run of
several jobs, each of which sees what the ones before it did, or under a dry run would have done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.clock import parse_stamp
from commonplace.engine.upkeep import PROJECT, Upkeep
from commonplace.errors import CommonplaceError, Conflict, Exists, Locked, NotFound, NotText
from commonplace.jobs.digest import Digest, Link, Merge, after_links, after_merges
from commonplace.note.model import ORGANIZED

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.engine import Memory
    from commonplace.index.rows import NoteInfo
    from commonplace.note.compose import Record

MERGE, LINK, REMIND = "merge", "link", "remind"
REMINDED = "reminded"
"""Header key of a memory: the ids of the reminders made from its text, so that none is made twice."""
_REMOVING = ("expire", "decay")
_ORGANIZING = ("upgrade", "classify")
_MEANWHILE = (Conflict, Exists, Locked, NotFound, NotText)
"""What a verb of upkeep raises when a memory is no longer as the plan saw it."""


@dataclass(frozen=True, slots=True)
class Action:
    """One planned change: `job` wants to do `verb` to the memory `id`, which lies at `path` (relative to the home).

    `category` and the `words` that decided: `upgrade`, `classify`. `target`: the survivor of a `merge`, the other
    end of a `link`, what a reminder was made from (`remind`, with the `record` to store and the `phrase` read).
    """

    job: str
    verb: str
    id: str
    reason: str
    path: str
    category: str | None = None
    words: tuple[str, ...] = ()
    target: str | None = None
    phrase: str | None = None
    record: Record | None = None

    def document(self) -> dict[str, Any]:
        """The action as JSON shows it: job, verb, id, reason, path, then what its verb has besides."""
        row: dict[str, Any] = {each: getattr(self, each) for each in ("job", "verb", "id", "reason", "path")}
        if self.verb in _ORGANIZING:
            row |= {"category": self.category, "words": list(self.words)}
        if self.target is not None:
            row["target"] = self.target
        if self.phrase is not None:
            row["phrase"] = self.phrase
        return row

    def line(self) -> str:
        """The action as a dry run prints it."""
        return f"would {self.verb} {self.id[:8]} {self.reason}"


@dataclass(frozen=True, slots=True)
class Known:
    """A memory as a job sees it: what the index had when the round read it, and how it stands by now."""

    info: NoteInfo
    digest: Digest

    @property
    def id(self) -> str:
        return self.digest.id

    @property
    def path(self) -> str:
        """Relative to the home."""
        if self.digest.category == self.info.category:
            return f"{PROJECT}/{self.info.path}"
        return f"{PROJECT}/{self.digest.category}/{self.info.path.rpartition('/')[2]}"

    @property
    def is_copy(self) -> bool:
        """Whether it is a reminder made of another memory's text: what that text says stands there already."""
        return bool(self.info.header.get("reminder_of"))


Plan = Callable[[Sequence[Known], "Settings", datetime], Sequence[Action]]


@dataclass(frozen=True, slots=True)
class Job:
    """A job by its name."""

    name: str
    plan: Plan


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job: its actions that were applied (under a dry run: planned), how many were skipped
    because a memory had changed meanwhile, and the error that ended it early."""

    job: str
    actions: tuple[Action, ...] = ()
    skipped: int = 0
    error: Exception | None = None

    @property
    def failure(self) -> str | None:
        """What went wrong, as one sentence; None when nothing did."""
        if self.error is None or isinstance(self.error, CommonplaceError):
            return None if self.error is None else str(self.error)
        what = f"{type(self.error).__name__}: {self.error}{_place(self.error)}"
        return f"something went wrong inside commonplace ({what})"


def _place(error: Exception) -> str:
    """Where in our code an error nobody foresaw came from."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.startswith("commonplace"):
            place = f", at {module}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


class Round:
    """One run of jobs over the memories its caller sees; the owner sees all.

    `now` (default: the memory's clock) is the time of all jobs. `stop` is asked before each action: when it
    says True, what is left of the round is not done.
    """

    def __init__(self, memory: Memory, now: datetime | None = None, *, dry_run: bool = False,
                 stop: Callable[[], bool] = lambda: False):  # fmt: skip
        self.memory = memory
        self.upkeep = Upkeep(memory)
        self.now = now or memory.clock()
        self.dry_run = dry_run
        self._stop = stop
        self._known: list[Known] | None = None
        self._apart: tuple[NoteInfo, ...] = ()

    @property
    def known(self) -> list[Known]:
        """The memories jobs may touch, as they stand now, oldest first: not those their owner locked, nor files that
        claim one id."""
        if self._known is None:
            infos = self.upkeep.every()
            often = Counter(info.id for info in infos)
            self._apart = tuple(info for info in infos if info.locked or often[info.id] > 1)
            mine = [info for info in infos if not info.locked and often[info.id] == 1]
            targets = self.upkeep.targets(mine)
            self._known = [Known(each, digest_of(each, self.upkeep.content(each), targets[each.row])) for each in mine]
        return self._known

    @property
    def categories(self) -> set[str]:
        """The categories that hold a memory."""
        return {each.digest.category for each in self.known} | {info.category or "" for info in self._apart}

    def run(self, job: Job) -> Outcome:
        """Plan `job` and apply its actions one by one, each if its memories are still as they were planned with.

        Never raises for what goes wrong inside: the outcome tells.
        """
        done: list[Action] = []
        skipped = 0
        try:
            actions = job.plan(self.known, self.memory.settings, self.now)
            if self.dry_run:
                self._known = after(self.known, actions, self.now)
                return Outcome(job.name, tuple(actions))
            infos = {each.id: each.info for each in self.known}
            for action in actions:
                if self._stop():
                    break
                if self._applied(action, infos):
                    done.append(action)
                    self._known = None
                else:
                    skipped += 1
        except Exception as error:  # one of the outermost loops: reported, and the next job runs
            return Outcome(job.name, tuple(done), skipped, error)
        return Outcome(job.name, tuple(done), skipped)

    def _applied(self, action: Action, infos: dict[str, NoteInfo]) -> bool:
        """Carry out one action; `infos` are the memories as planned with, and follow what this round changes."""
        info, other = infos.get(action.id), infos.get(action.target or "")
        try:
            for written in apply(self.upkeep, action, info, other):
                infos[written.id] = written
        except _MEANWHILE:
            self._known = None
            return False
        if action.verb in (*_REMOVING, MERGE):
            infos.pop(action.id, None)
        return True


def run(memory: Memory, job: Job, now: datetime | None = None, dry_run: bool = False) -> Outcome:
    """Run a single job: see Round."""
    return Round(memory, now, dry_run=dry_run).run(job)


def apply(upkeep: Upkeep, action: Action, info: NoteInfo | None, other: NoteInfo | None) -> list[NoteInfo]:
    """Carry out one action on the memory `info` (and `other`, its target): one change, which `undo` takes back.

    Returns the memories it wrote. Raises what `_MEANWHILE` names when they are not as given, or there are none.
    """
    if action.verb == REMIND and action.record is not None and other is not None:
        reminded = other.header.get(REMINDED)
        so_far = [str(each) for each in reminded] if isinstance(reminded, list) else []
        return upkeep.derive(other, action.record, {REMINDED: [*so_far, action.id]}, REMIND)
    if info is None or (action.target is not None and other is None):
        raise NotFound(action.id, PROJECT)
    if action.verb in _ORGANIZING:
        keys = {"phase": ORGANIZED, "expires_at": None}
        return [upkeep.change(info, keys, action.verb, category=action.category)]
    if action.verb in _REMOVING:
        return upkeep.remove(info, action.verb)
    assert other is not None
    return upkeep.merge(other, info) if action.verb == MERGE else upkeep.link(info, other)


def digest_of(info: NoteInfo, content: str, targets: tuple[str, ...] = ()) -> Digest:
    """A memory as the pure rules see it; `targets` are those of the wikilinks in its text."""
    header = info.header
    return Digest(
        info.id, info.scope, content, info.category or "inbox", parse_stamp(info.created),
        phase=info.phase or ORGANIZED, access_count=info.access_count, updated=_moment(info.updated),
        expires=_moment(info.expires), due_at=_text(header.get("due_at")), repeat=_text(header.get("repeat")),
        tags=info.tags, links=info.links, unlinked=_texts(header.get("unlinked")),
        merged=_texts(header.get("merged")), targets=targets,
    )  # fmt: skip


def _moment(text: str | None) -> datetime | None:
    return parse_stamp(text) if text else None


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, "") else None


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def after(known: Iterable[Known], actions: Iterable[Action], now: datetime) -> list[Known]:
    """The memories as they stand once these actions are applied; reminders that would be made are left out."""
    infos = {each.id: each.info for each in known}
    planned: dict[str, list[Action]] = {}
    for action in actions:
        planned.setdefault(action.verb, []).append(action)
    gone = {each.id for verb in _REMOVING for each in planned.get(verb, ())}
    organized = {each.id: each.category for verb in _ORGANIZING for each in planned.get(verb, ())}
    digests = [_organized(each.digest, organized, now) for each in known if each.id not in gone]
    merges = [Merge(each.id, each.target or "", each.reason) for each in planned.get(MERGE, ())]
    digests = after_merges(digests, merges, now)
    links = [Link(each.id, each.target or "", 0.0, each.reason) for each in planned.get(LINK, ())]
    return [Known(infos[each.id], each) for each in after_links(digests, links, now)]


def _organized(digest: Digest, categories: dict[str, str | None], now: datetime) -> Digest:
    if digest.id not in categories:
        return digest
    category = categories[digest.id] or digest.category
    return replace(digest, phase=ORGANIZED, category=category, expires=None, updated=now)
