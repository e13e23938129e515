"""Agents and health: who is connected and wrote what; size, growth, index, what the doctor finds,
upkeep.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from starlette.responses import Response

from memoranda.clock import stamp
from memoranda.engine.doctor import examine, repair
from memoranda.engine.embedding import Embedding
from memoranda.engine.overview import figures, writers
from memoranda.errors import InvalidInput
from memoranda.jobs.job import last_dream
from memoranda.jobs.lifecycle import IDLE
from memoranda.serve.page.visit import Visit

LATELY = timedelta(days=30)


def show(visit: Visit) -> Response:
    memory = visit.memory
    now = memory.clock()
    state = visit.request.app.state
    sync = memory.sync()
    embedding = Embedding(memory)
    size = figures(memory)
    # A dream comes so long after it
    changed = memory.last_change("daemon")
    if changed and memory.settings.dream:
        dreams = [(level, changed + idle) for level, idle in reversed(IDLE)]
    else:
        dreams = []
    return visit.html(
        "agents.html",
        writers=writers(memory, now - LATELY),
        today=dict(memory.written_today()),
        now=now,
        tokens=[(token, token.is_valid(now)) for token in state.server.access.tokens()],
        seen=state.server.seen,
        connected=state.sessions.connected() if state.sessions else [],
        figures=size,
        sync=sync,
        highest=max((number for _, number in size.weeks), default=0) or 1,
        embedding=embedding,
        vectors=embedding.counts(),
        unreadable=memory.unreadable,
        warnings=memory.warnings,
        rounds=state.rounds,
        dream=last_dream(memory.home),
        dreams=dreams,
    )


def doctor(visit: Visit) -> Response:
    """What is wrong, which takes a while to find out; after a POST, what can be mended is."""
    found = examine(visit.memory)
    if visit.is_post:
        repair(visit.memory, found)
    return visit.html("findings.html" if visit.is_live else "doctor.html", findings=found)


def revoke(visit: Visit) -> Response:
    """Make a token invalid."""
    visit.request.app.state.server.access.revoke(visit.given.get("token", ""))
    return visit.back("/page/agents")


def json(visit: Visit) -> dict[str, Any]:
    """Size, growth and writers; for the owner."""
    memory = visit.memory
    if memory.agent is not None:
        raise InvalidInput("only the owner may ask how the memory is")
    size = figures(memory)
    rounds = visit.request.app.state.rounds
    sessions = visit.request.app.state.sessions
    return {
        "projects": size.counts.projects,
        "bytes": size.bytes,
        "index_bytes": size.index_bytes,
        "history_bytes": size.history_bytes,
        "weeks": {week.isoformat(): number for week, number in size.weeks},
        "writers": [
            {
                "agent": writer.agent,
                "client": writer.client,
                "last": writer.last,
                "changes": dict(writer.verbs),
                "sessions": len(writer.sessions),
            }
            for writer in writers(memory, memory.clock() - LATELY)
        ],
        "connected": [
            {
                "agent": each.agent,
                "client": each.client,
                "since": stamp(each.began),
                "last": stamp(each.last),
            }
            for each in (sessions.connected() if sessions else ())
        ],
        "findings": [
            {
                "level": each.level,
                "code": each.code,
                "path": each.path,
                "text": each.text,
                "fix": each.fix,
            }
            for each in examine(memory)
        ],
        "next_round": rounds.next.isoformat() if rounds and rounds.next else None,
    }
