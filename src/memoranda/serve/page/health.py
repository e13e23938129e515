"""Health: size, growth, the index, upkeep, and what the doctor finds."""

from __future__ import annotations

from starlette.responses import Response

from memoranda.engine.doctor import examine, repair
from memoranda.engine.embedding import Embedding
from memoranda.engine.overview import figures
from memoranda.jobs.job import last_dream
from memoranda.jobs.lifecycle import IDLE
from memoranda.serve.page.visit import Visit


def show(visit: Visit) -> Response:
    """How the memory is; the doctor's findings follow by themselves."""
    memory = visit.memory
    embedding = Embedding(memory)
    size = figures(memory)
    changed = memory.last_change("daemon")
    dreams = []
    # A dream comes so long after it
    if changed and memory.settings.dream:
        dreams = [(level, changed + idle) for level, idle in reversed(IDLE)]
    return visit.html(
        "health.html",
        figures=size,
        sync=memory.sync(),
        highest=max((number for _, number in size.weeks), default=0) or 1,
        embedding=embedding,
        vectors=embedding.counts(),
        unreadable=memory.unreadable,
        warnings=memory.warnings,
        rounds=visit.request.app.state.rounds,
        dream=last_dream(memory.home),
        dreams=dreams,
    )


def doctor(visit: Visit) -> Response:
    """What is wrong, which takes a while to find out; after a POST, what can be fixed is."""
    findings = examine(visit.memory)
    if visit.is_post:
        repair(visit.memory, findings)
    return visit.html("findings.html" if visit.is_part else "doctor.html", findings=findings)
