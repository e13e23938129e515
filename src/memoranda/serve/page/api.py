"""The answers of `/api` about changes; the other views have their JSON beside their page."""

from __future__ import annotations

from typing import Any

from memoranda import documents
from memoranda.engine.history import Revision
from memoranda.serve.page.visit import Visit

# Changes and files of one answer when nothing is asked for, and the most of it.
_CHANGES = 50
_MOST = 1000
_FILES = 100


def changes(visit: Visit) -> dict[str, Any]:
    """The changes, the latest first; those of one run of a job together."""
    runs = visit.memory.log_by_run(
        visit.fields.get("ref") or None,
        limit=min(visit.number("limit", _CHANGES), _MOST) or _CHANGES,
        agent=visit.fields.get("agent") or None,
        before=visit.number("before", 0),
    )
    return {"runs": [list(map(documents.change, run)) for run in runs]}


def change(visit: Visit) -> dict[str, Any]:
    """One change with the texts it replaced and made."""
    number = visit.number("change", 0)
    revisions = visit.memory.revisions(number, limit=visit.number("limit", _FILES))
    files = [_file_row(revision) for revision in revisions]
    first = documents.change(revisions[0].change) if revisions else {}
    return {"files": files} | first


def _file_row(revision: Revision) -> dict[str, Any]:
    touched = revision.touched
    return {
        "do": touched.do,
        "project": touched.project,
        "path": touched.path,
        "to": touched.to,
        "before": revision.before,
        "after": revision.after,
    }
