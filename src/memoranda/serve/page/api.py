"""The changes in `/api`. The JSON of the other views is beside their pages."""

from __future__ import annotations

from typing import Any

from memoranda import documents
from memoranda.serve.page.digest import next_page
from memoranda.serve.page.visit import Visit

# Changes and files of one answer when nothing is asked for, and the most of it.
_CHANGES = 50
_MOST = 1000
_FILES = 100


def changes(visit: Visit) -> dict[str, Any]:
    """The changes, the latest first. Changes of one run of a job are grouped."""
    limit = min(visit.number("limit", _CHANGES), _MOST) or _CHANGES
    runs = visit.memory.log_by_run(
        visit.fields.get("ref") or None,
        limit=limit,
        agent=visit.fields.get("agent") or None,
        before=visit.number("before", 0),
    )
    rows = [list(map(documents.change, run)) for run in runs]
    if len(rows) < limit:
        return {"runs": rows, "next": None}
    # Nobody has counted the changes before these: a full page may be the last one
    return {"runs": rows, "next": next_page(runs)}


def change(visit: Visit) -> dict[str, Any]:
    """One change with the texts it replaced and made."""
    number = visit.number("change", 0)
    revisions = visit.memory.revisions(number, limit=visit.number("limit", _FILES))
    files = [documents.revision(revision) for revision in revisions]
    first = documents.change(revisions[0].change) if revisions else {}
    return {"files": files} | first
