"""List the changes of all notes, or of one note."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from memoranda.clock import parse_stamp
from memoranda.engine.engine import verb
from memoranda.engine.history.former_places import changes_about
from memoranda.engine.history.verbs import HistoryVerbs
from memoranda.ledger.change import Change, Location


class _RunGroups:
    """Groups changes for the log: all changes of one run of a job are one group.

    A change that belongs to no run is a group, too. The changes are added from the latest to the
    first.

    limit: the most groups; 0 means any number.
    groups: the changes of each group, by the number of the run or of the single change.
    """

    def __init__(self, limit: int):
        self._limit = limit
        self.groups: dict[int, list[Change]] = {}
        # The lowest number of a run that has a group. None if no run has one.
        self._oldest_run: int | None = None

    @property
    def _is_full(self) -> bool:
        """Whether there are as many groups as allowed. Changes can still be added to them."""
        return 0 < self._limit <= len(self.groups)

    def is_complete_before(self, number: int) -> bool:
        """Whether no change with this number or a lower one belongs to one of the groups."""
        # A run has the number of its first change, so all its changes have this number or a higher
        # one.
        is_before_all_runs = self._oldest_run is None or number < self._oldest_run
        return self._is_full and is_before_all_runs

    def add(self, change: Change) -> None:
        """Add a change to its group, or to a new group if there may be another one."""
        # An undo has the number of the run that it undoes, but is listed alone.
        run = change.run if change.undoes is None else None
        group_number = run or change.number
        is_new_group = group_number not in self.groups
        if is_new_group and self._is_full:
            return
        self.groups.setdefault(group_number, []).append(change)
        if run is None:
            return
        if self._oldest_run is None or run < self._oldest_run:
            self._oldest_run = run


class LogVerbs(HistoryVerbs):
    """The verb `log`."""

    @verb
    def log(
        self,
        ref: str | None = None,
        *,
        limit: int = 20,
        agent: str | None = None,
        since: datetime | None = None,
        before: int | None = None,
    ) -> list[Change]:
        """List the changes that the caller may see, the newest first (see `Memory.log`).

        ref: list only changes of this note; None for all.
        limit: the most changes to return; 0 means all.
        agent: list only changes of this agent; None for all.
        since: list only changes made since this time; None for all.
        before: list only changes with lower numbers; None for all.
        """
        changes = self._seen_changes(ref, agent, since, before)
        # A limit of 0 means all.
        return list(islice(changes, limit if limit > 0 else None))

    @verb
    def log_by_run(
        self,
        ref: str | None = None,
        *,
        limit: int = 20,
        agent: str | None = None,
        since: datetime | None = None,
        before: int = 0,
    ) -> list[list[Change]]:
        """List changes as `log` does, but put all changes of one run of a job into one group.

        A group has the place of its latest change in the list.

        ref: list only changes of this note; None for all.
        limit: the most groups to return; 0 means all.
        agent: list only changes of this agent; None for all.
        since: list only changes made since this time; None for all.
        before: list only changes with lower numbers; 0 means all.
        """
        run_groups = _RunGroups(limit)
        for change in self._seen_changes(ref, agent, since, before or None):
            if run_groups.is_complete_before(change.number):
                break
            run_groups.add(change)
        return list(run_groups.groups.values())

    def _seen_changes(
        self,
        ref: str | None,
        agent: str | None,
        since: datetime | None,
        before: int | None = None,
    ) -> Iterator[Change]:
        """Yield the changes that `log` lists, the newest first.

        ref: yield only changes of this note; None for all.
        agent: yield only changes of this agent; None for all.
        since: yield only changes made since this time; None for all.
        before: yield only changes with lower numbers; None for all.
        """
        place = None if ref is None else self.locate(ref)
        # The names of agents are in lower case.
        agent_name = None if agent is None else agent.lower()
        for change in self._listed_changes(place, agent_name, before):
            # The changes come newest first, so all others are older still.
            if since is not None and parse_stamp(change.time) < since:
                break
            if agent_name is None or change.agent == agent_name:
                yield change

    def _listed_changes(
        self, place: Location | None, agent: str | None, before: int | None
    ) -> Iterator[Change]:
        """Yield the changes that `log` lists for the caller, the newest first.

        place: yield only changes of the note at this place, and of other notes that were there;
            None for all.
        agent: without a place, changes of other agents may be left out; None for no agent.
        before: yield only changes with lower numbers; None for all.
        """
        if place is not None:
            yield from changes_about(self, place, before=before)
            return
        history = self.engine.ledger.history
        past_privacy = self.past()
        if agent is None:
            changes = history.changes(before=before)
        else:
            changes = history.changes_by(agent, before=before)
        for change in changes:
            visible_change = self.listed_part(change, past_privacy)
            if visible_change is not None:
                yield visible_change
