"""Today: what was written, changed, archived and reminded, newest first, each with its diff and Undo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from starlette.responses import Response

from commonplace.engine.history import Revision
from commonplace.errors import CannotUndo, CommonplaceError
from commonplace.serve.page.render import diff
from commonplace.serve.page.visit import Visit
from commonplace.store.journal import Change

SHOWN = 50
_TITLES, _TITLE, _DIFFS = 200, 80, 50


def show(visit: Visit) -> Response:
    """The newest changes, or those before a number; runs of jobs are one line each."""
    since = visit.memory.journal_stamp()  # before the look: what comes meanwhile is told to the page
    runs = _runs(visit)
    undone = undone_in(each for run in runs for each in run)
    more, titles = 0, {}
    if len(runs) == SHOWN:  # before which the next page begins; a run with others between is rather shown twice
        first, last = runs[-1][0].number, runs[-1][-1].number
        more = last if first - last == len(runs[-1]) - 1 else first
    for each in islice((each for run in runs for each in run if each.path and not each.root), _TITLES):
        with suppress(CommonplaceError):  # it is no longer there
            titles[each.project, each.path] = visit.memory.find_ref((each.project, each.path)).title[:_TITLE]
    return visit.html("changes.html" if visit.is_live else "today.html", runs=runs, undone=undone, more=more,
                      before=visit.number("before", 0), titles=titles, since=since)  # fmt: skip


def _runs(visit: Visit, limit: int = SHOWN) -> list[list[Change]]:
    given = visit.given
    return visit.memory.log_by_run(
        given.get("ref") or None, limit=limit, agent=given.get("agent") or None, before=visit.number("before", 0)
    )


def undone_in(changes: Iterable[Change]) -> Mapping[int, int]:
    """By number, the change that took a change, or the run that begins with it, back and stands itself."""
    undos = {each.undoes: each.number for each in changes if each.undoes is not None}
    return {number: undo for number, undo in undos.items() if undo not in undos}


def change(visit: Visit) -> Response:
    """One change with its diffs: a page, or for a script the diffs alone."""
    revisions = _revisions(visit, _DIFFS + 1)
    shown = [(each, diff(each.before or "", each.after or "")) for each in revisions[:_DIFFS]]
    return visit.html("diffs.html" if visit.is_live else "change.html", revisions=shown,
                      has_more=len(revisions) > _DIFFS, number=visit.number("change", 0))  # fmt: skip


def _revisions(visit: Visit, limit: int) -> list[Revision]:
    return visit.memory.revisions(visit.number("change", 0), limit=limit)


def _take_back(visit: Visit) -> Change:
    """The undo of a change or a run; who comes with a token takes back what they changed themselves. Raises
    CannotUndo."""
    memory, number, run = visit.memory, visit.number("change", 0), visit.number("run", 0)
    if memory.agent is not None and number not in {each.number for each in memory.log(limit=0, agent=memory.agent)}:
        raise CannotUndo(f"cannot undo #{number}: it is no change of {memory.agent}")
    return memory.undo_run(run)[0] if run and memory.agent is None else memory.undo(number or None)


def undo(visit: Visit) -> Response:
    """Take a change, or a run, back; then the page the button stood on."""
    _take_back(visit)
    return visit.back()


def undo_json(visit: Visit) -> dict[str, Any]:
    done = _take_back(visit)
    return {"change": done.number, "undone": done.undoes}


def changes_json(visit: Visit) -> dict[str, Any]:
    runs = _runs(visit, min(visit.number("limit", SHOWN), 1000) or SHOWN)
    return {"runs": [[_row(each) for each in run] for run in runs]}


def change_json(visit: Visit) -> dict[str, Any]:
    revisions = _revisions(visit, visit.number("limit", 100))
    files = [{"do": each.touched.do, "project": each.touched.project, "path": each.touched.path, "to": each.touched.to,
              "before": each.before, "after": each.after} for each in revisions]  # fmt: skip
    return {"files": files} | (_row(revisions[0].change) if revisions else {})


def _row(each: Change) -> dict[str, Any]:
    row = {"change": each.number, "time": each.time, "verb": each.verb, "project": each.project, "path": each.path,
           "agent": each.agent, "face": each.face, "by": each.by, "undoes": each.undoes, "run": each.run}  # fmt: skip
    return {name: value for name, value in row.items() if value is not None}
