"""Today: what was written, changed, archived and reminded, newest first, each with its diff and Undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from commonplace.engine.revisions import Revision
from commonplace.errors import InvalidInput
from commonplace.serve.page.render import diff
from commonplace.serve.page.visit import Visit
from commonplace.store.journal import ERASE, Change

SHOWN = 50


def show(visit: Visit) -> Response:
    """The newest changes, or those before a number; runs of jobs are one line each."""
    runs = _runs(visit)
    return visit.html(
        "changes.html" if visit.is_live else "today.html", runs=runs, undone=_undone(runs),
        more=runs[-1][-1].number if len(runs) == SHOWN else 0, before=visit.number("before", 0), ERASE=ERASE,
    )  # fmt: skip


def _runs(visit: Visit, limit: int = SHOWN) -> list[list[Change]]:
    given = visit.given
    return visit.memory.log_by_run(
        given.get("ref") or None, limit=limit, agent=given.get("agent") or None, before=visit.number("before", 0)
    )


def _undone(runs: Sequence[Sequence[Change]]) -> Mapping[int, int]:
    """By number, the change that took a change, or the run that begins with it, back and stands itself."""
    undos = {each.undoes: each.number for run in runs for each in run if each.undoes is not None}
    return {number: undo for number, undo in undos.items() if undo not in undos}


def change(visit: Visit) -> Response:
    """One change with its diffs: a page, or for a script the diffs alone."""
    revisions = _revisions(visit)
    shown = [(each, diff(each.before or "", each.after or "")) for each in revisions]
    return visit.html("diffs.html" if visit.is_live else "change.html", revisions=shown, ERASE=ERASE,
                      number=int(visit.place["number"]))  # fmt: skip


def _revisions(visit: Visit) -> list[Revision]:
    text = visit.place["number"]
    if not text.isdecimal() or len(text) > 18:
        raise InvalidInput(f'invalid change "{text[:50]}": not a number')
    return visit.memory.revisions(int(text))


def _take_back(visit: Visit) -> Change:
    if run := visit.number("run", 0):
        return visit.memory.undo_run(run)[0]
    return visit.memory.undo(visit.number("change", 0) or None)


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
    revisions = _revisions(visit)
    files = [{"do": each.touched.do, "project": each.touched.project, "path": each.touched.path, "to": each.touched.to,
              "before": each.before, "after": each.after} for each in revisions]  # fmt: skip
    return {"files": files} | (_row(revisions[0].change) if revisions else {})


def _row(each: Change) -> dict[str, Any]:
    row = {"change": each.number, "time": each.time, "verb": each.verb, "project": each.project, "path": each.path,
           "agent": each.agent, "face": each.face, "by": each.by, "undoes": each.undoes, "run": each.run}  # fmt: skip
    return {name: value for name, value in row.items() if value is not None}
