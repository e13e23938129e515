"""Returns changes as JSON for `/api`. The JSON of other views is in the modules of their pages."""

from __future__ import annotations

from typing import Any

from memoranda import documents
from memoranda.serve.page.today.digest import next_page
from memoranda.serve.page.visit import Visit

# Runs of one answer by default, and at most.
_DEFAULT_RUNS = 50
_MAX_RUNS = 1000
# Files of a change by default.
_DEFAULT_FILES = 100


def changes(visit: Visit) -> dict[str, Any]:
    """Return the changes, the latest first. Changes of one run of a job are grouped.

    `next` is the value of the field `before` for the next page. None if this is the last page.
    """
    # An answer is never without a limit, so 0 means the default.
    limit = min(visit.number("limit", _DEFAULT_RUNS), _MAX_RUNS) or _DEFAULT_RUNS
    runs = visit.memory.log_by_run(
        visit.fields.get("ref") or None,
        limit=limit,
        agent=visit.fields.get("agent") or None,
        before=visit.number("before", 0),
    )
    rows = [list(map(documents.change, run)) for run in runs]
    if len(rows) < limit:
        return {"runs": rows, "next": None}
    # Earlier changes are not counted, so the page after a full one may be empty.
    return {"runs": rows, "next": next_page(runs)}


def change(visit: Visit) -> dict[str, Any]:
    """Return one change with the texts before and after it."""
    number = visit.number("change", 0)
    revisions = visit.memory.revisions(number, limit=visit.number("limit", _DEFAULT_FILES))
    files = [documents.revision(revision) for revision in revisions]
    first = documents.change(revisions[0].change) if revisions else {}
    return {"files": files} | first
