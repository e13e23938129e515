"""One round of upkeep, as the daemon does it on its interval (contract 001, 13)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from commonplace.engine.embedding import Embedding
from commonplace.engine.entries import NoteEntries
from commonplace.engine.overview import Overview
from commonplace.engine.upkeep import Upkeep
from commonplace.errors import CommonplaceError
from commonplace.jobs import dream, lifecycle, reminders, report
from commonplace.jobs.classify import learn
from commonplace.jobs.job import Plan, Round

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.llm import Endpoint

FACE = "daemon"
"""The face whose changes do not count as activity: they do not reset the idle time."""
IDLE = ((3, timedelta(hours=2)), (2, timedelta(minutes=30)), (1, timedelta(minutes=5)))
"""Dream level, and for how long nothing but the daemon must have changed anything."""
EMBED_SECONDS, EMBED_BETWEEN = 10.0, 3.0
"""How long embedding may take in a round, and each time between two rounds."""
_ALL = 1 << 30
_PURGED_EVERY = timedelta(hours=1)
_log = logging.getLogger("commonplace.daemon")

Step = tuple[str, Callable[[], int]]


class Scheduler:
    """The rounds over `memory`, which is the owner's and has face `daemon`. `endpoint` may help deep dreams. `stop` is
    asked between actions: when it says True, a round ends early."""

    def __init__(self, memory: Memory, endpoint: Endpoint | None = None):
        self.memory = memory
        self.endpoint = endpoint
        self.stop: Callable[[], bool] = lambda: False
        self._edited: datetime | None = None
        self._state: tuple[int, ...] = ()
        self._idle: tuple[tuple[int, ...], datetime | None] | None = None  # Upkeep.state, and until when nothing is due
        self._purged: datetime | None = None
        self._dreamt: tuple[datetime | None, int] | None = None  # the last change before the last dream, its level
        self._embeds = False  # whether passages may wait for their vectors
        self._trouble = ""

    def steps(self) -> list[Step]:
        """The steps of a round in their order: the name, and what to call for the number of items it processed."""
        turn, done = Round(self.memory, stop=self.stop), [0]

        def sync() -> int:
            found = self.memory.sync().total
            self._edited = self.memory.clock() if found else self._edited
            return found

        def notify() -> int:
            notified = reminders.notify(self.memory)
            if notified.failure:
                _log.warning("%s", notified.failure)
            return len(notified.notified)

        def purge_history() -> int:  # once an hour: it reads the whole journal
            now = self.memory.clock()
            if self._purged is not None and now - self._purged < _PURGED_EVERY:
                return 0
            self._purged = now
            return self.memory.purge_history()

        def dreamt() -> int:
            level = self.level()
            if level == 0:
                return 0
            changed, endpoint = self._last_change(), self.endpoint if level == report.DEEP else None
            found = dream.run(self.memory, level, endpoint=endpoint, stop=self.stop, careful=True)
            self._dreamt = (changed, level)
            for each in found.outcomes:
                if each.error is not None:
                    raise each.error
            return len(found.actions)

        own: list[Step] = [  # what each machine does for itself
            ("embed", partial(self._embed, EMBED_SECONDS)),
            ("memory.md", lambda: int(Overview(self.memory).refresh())),
        ]
        if not self.memory.runs_jobs():  # another machine does them, for all
            return [("sync", sync), *own]
        return [
            ("sync", sync),
            ("fold", Upkeep(self.memory).fold),
            *((name, partial(self._job, turn, name, plan, done)) for name, plan in lifecycle.ROUND.items()),
            ("notify", notify),
            ("purge", partial(NoteEntries(self.memory).purge, _ALL)),
            ("history", purge_history),
            ("dream", dreamt),
            *own,
        ]

    def keep_up(self) -> None:
        """Between two rounds: `memory.md` shows what this process changed; embedding goes on. Raises StorageError."""
        Overview(self.memory).keep_up()
        if self._embeds:
            self._embed(EMBED_BETWEEN)

    def _embed(self, seconds: float) -> int:
        """A model that fails is reported once, and searching by words goes on."""
        done, trouble = 0, ""
        try:
            done = Embedding(self.memory).some(seconds, stop=self.stop)
            if not done and not self.stop():
                done = learn(self.memory.settings)
        except CommonplaceError as error:
            done, trouble = 0, str(error)
        if trouble and trouble != self._trouble:
            _log.warning("[embed] %s", trouble)
        self._embeds, self._trouble = done > 0, trouble
        return done

    def _job(self, turn: Round, name: str, plan: Plan, done: list[int]) -> int:
        """Run one of the four jobs, unless nothing changed since they had nothing to do and no time is over. Asked
        before the first of them looks: what is written while they do counts as changed since."""
        if name == "expire":
            self._state = Upkeep(self.memory).state()
            state, until = self._idle or (self._state, None)
            if state != self._state or (until is not None and turn.now >= until):
                self._idle = None
        if self._idle is not None:
            return 0
        outcome = turn.run(name, plan)
        if outcome.error is not None:
            done[0] += 1
            raise outcome.error
        done[0] += len(outcome.actions) + outcome.skipped
        if name == "consolidate" and not done[0] and not self.stop():
            self._idle = self._state, lifecycle.next_due(turn.memories, self.memory.settings, turn.now)
        return len(outcome.actions)

    def level(self) -> int:
        """The dream that is due now, 0 for none: each level comes once while nothing changes."""
        if not self.memory.settings.dream:
            return 0
        changed = self._last_change()
        done = self._dreamt[1] if self._dreamt is not None and self._dreamt[0] == changed else 0
        if changed is None:
            return 0 if done else 1
        idle = self.memory.clock() - changed
        due = next((level for level, least in IDLE if idle >= least), 0)
        return due if due > done else 0

    def _last_change(self) -> datetime | None:
        """When anything but the daemon last changed something, by hand included."""
        return max(filter(None, (self.memory.last_change(FACE), self._edited)), default=None)
