"""`memory hook`: answers one event of a client, through the daemon if one runs, else with the home
itself.

A client waits for its hooks, so whatever goes wrong, or takes too long, ends in silence: no text,
status 0.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threading import Timer

    from memoranda.clients.hook_events import HookEvent
    from memoranda.config import Settings
    from memoranda.engine import MemorySession

SECONDS = 0.7
"""A hook ends itself after so long, whatever it was doing, so that it is over for its client after
0.8.
"""
METHOD = "hook"
"""The command, and the daemon's method that answers an event."""
LIMIT = 4 << 20
"""Bytes of an event that are read; a longer one is none."""


def limit_time() -> Timer:
    """End this process, well and silently, once the time is up since it began: also inside a query,
    or while it waits for a lock. A change that is cut off is completed or taken back by the next
    one. Cancel it when all is done."""
    from threading import Timer

    # Of a process that began for one event, as the system tells, else by what it has computed
    age = 0.0
    if METHOD in sys.argv:
        try:
            with open("/proc/self/stat", "rb") as file:
                began = int(file.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
            age = time.clock_gettime(time.CLOCK_BOOTTIME) - began
        except (OSError, ValueError, IndexError, AttributeError):
            age = time.process_time()
    timer = Timer(max(0.0, _limit() - max(0.0, age)), os._exit, (0,))
    timer.daemon = True
    timer.start()
    return timer


def _limit() -> float:
    """SECONDS, or what the variable MEMORY_HOOK_SECONDS says, for machines that are busy."""
    try:
        return min(60.0, float(os.environ["MEMORY_HOOK_SECONDS"]))
    except (KeyError, ValueError):
        return SECONDS


def read_event() -> bytes:
    """What the client sends, to its end; nothing when that is too much."""
    data = bytearray()
    while block := os.read(0, 1 << 16):
        data += block
        if len(data) > LIMIT:
            return b""
    return bytes(data)


def answered(event: HookEvent, settings: Settings, agent: str | None) -> str:
    """The answer to the client, or "". `agent` is who acts if the caller said so."""
    from memoranda.engine.daemon_client import ask

    if agent is None:
        try:
            found = ask(settings.home / "memory.sock", METHOD, event._asdict(), _limit())
            if found:
                return str(found["reply"])
        except OSError:
            # It is busy, and so would we be
            return ""
    from memoranda.engine import open_session

    with open_session(agent=agent, config=settings, face="hook", watch=False) as memory:
        return answer(memory, event)


def served(memory: MemorySession, params: dict[str, Any]) -> dict[str, str]:
    """The daemon's answer to an event that `answered` sent. Raises TypeError, ValueError for what
    is none.
    """
    from memoranda.clients.hook_events import CLIENTS, HookEvent

    event = HookEvent(**{key: str(value) for key, value in params.items()})
    if event.client not in CLIENTS:
        raise ValueError(f"no such client: {event.client}")
    return {"reply": answer(memory, event)}


def answer(memory: MemorySession, event: HookEvent) -> str:
    """Do what `event` asks for, and return what the client is to be answered."""
    from memoranda.clients.hook_context import SessionFile, at_start, for_prompt
    from memoranda.clients.hook_events import CLIENTS, PROMPT, START, reply_of
    from memoranda.store.layout import Layout

    known = CLIENTS[event.client]
    session = SessionFile(Layout(memory.home).sessions, event.client, event.session)
    by = {"client": event.client, "session": event.session}
    owner = memory.as_caller(memory.agent, "hook", **by)
    agent = memory.agent
    if agent is None:
        agent = memory.settings.agents.get(known.handshake, known.agent)
    caller = memory.as_caller(agent, "hook", **by)
    if event.kind not in (START, PROMPT):
        from memoranda.clients.hook_capture import checkpoint

        checkpoint(caller, event, session)
        return ""
    now = memory.clock()
    if event.kind == START:
        told = caller.at_once(lambda: at_start(caller, event, session))
        session.sweep(now)
    else:
        from memoranda.clients.hook_capture import remember

        said = remember(owner, event, session)
        if PROMPT not in known.injects:
            return ""
        told = for_prompt(caller, event, session, said)
    saw = now if event.kind == START else None
    if saw or told.text:
        session.add(saw=saw, notes=told.notes, text=told.text)
    return reply_of(event, told.text)
