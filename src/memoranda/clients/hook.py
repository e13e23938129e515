"""Answers one event of a client (`memory hook`), through the daemon if it runs, or in this process.

The client waits until its hook ends. So after any error or delay, the hook ends without a text and
with the status 0.
"""

from __future__ import annotations

import os
import select
import sys
import time

# Importing `typing` would take a tenth of the time that most events take.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from memoranda.clients.hook_events import HookEvent
    from memoranda.config import Settings
    from memoranda.engine import MemorySession
    from memoranda.engine.read_session import ReadSession
    from memoranda.ledger.sessions import SessionRows

    _Session = TypeVar("_Session", bound=ReadSession)

SECONDS = 0.7
"""The seconds after which a hook ends itself, whatever it is doing.

With this limit, the client waits at most 0.8 seconds.
"""
METHOD = "hook"
"""The command, and the daemon's method that answers an event."""
PAYLOAD_METHOD = "hook/payload"
"""The daemon's method that answers the payload of an event, in the form in which a client sent it."""
DEBUG = "MEMORY_HOOK_DEBUG"
"""The variable with which a hook says on stderr why it gives no text. No daemon is asked then."""
NOTHING_TO_SAY = b'"reply":""'
"""A part of the daemon's reply if the client gets no text."""
# How many seconds a hook may need in addition, to write requests to remember to files.
_GRACE_SECONDS = 5.0
_ACTIONS = ("tool", "failed")
LIMIT = 4 << 20
"""The most bytes of an event. A longer event is ignored."""


class HookLimit:
    """Ends this process silently, with status 0, when its time is up, even during a query or a wait.

    If this interrupts a change, the next process completes the change or undoes it.

    Before the process ends, requests to remember must be in files. On a busy machine, the time may
    be up before the event is read. Then the process ends as soon as `is_kept` is set. It does not
    wait for a client that sends nothing. Call `cancel` when the event is answered.

    is_kept: is set by the caller once all requests to remember are in files.
    """

    def __init__(self) -> None:
        """Start the timer."""
        from threading import Event, Timer

        self.is_kept = Event()
        self._timer = Timer(seconds_left(), self._end)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Stop the timer, because the event is answered."""
        self._timer.cancel()

    def _end(self) -> None:
        """End the process once requests to remember are safe, or the additional time is over."""
        last_moment = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < last_moment and not self.is_kept.wait(0.02):
            is_client_silent = self.is_reading and not is_sent(0)
            if is_client_silent:
                break
        os._exit(0)

    is_reading = False
    """Whether the event is being read. Then the process can only be waiting for the client."""


def seconds_left() -> float:
    """Return the seconds until this hook ends itself."""
    return max(0.0, _limit() - _age())


def is_sent(seconds: float) -> bool:
    """Whether the client sends something, or closes stdin, within this number of seconds."""
    return bool(select.select([0], [], [], max(0.0, seconds))[0])


def _age() -> float:
    """Return the seconds since this process was started for one event; 0.0 in other processes.

    If the system does not say when it was started, the processor time of the process is returned.
    """
    if METHOD not in sys.argv:
        return 0.0
    try:
        with open("/proc/self/stat", "rb") as file:
            status = file.read()
        # The second field may contain blanks, so the fields are counted from the bracket at its
        # end. The 22nd field is the start time in ticks since the machine was started.
        fields_from_third = status.rpartition(b")")[2].split()
        start_seconds = int(fields_from_third[19]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - start_seconds)
    except (OSError, ValueError, IndexError, AttributeError):
        return max(0.0, time.process_time())


def _limit() -> float:
    """Return the seconds that a hook may take: SECONDS, or the variable MEMORY_HOOK_SECONDS.

    The variable is meant for busy machines. A value above 60 counts as 60.
    """
    try:
        return min(60.0, float(os.environ["MEMORY_HOOK_SECONDS"]))
    except (KeyError, ValueError):
        return SECONDS


_event: bytes | None = None


def read_event(end: float | None = None) -> bytes:
    """Return the whole payload that the client sends; b"" if it is too long.

    The payload is read only once, and remembered for further calls.

    end: the time of the monotonic clock, in seconds, until which to wait. None means no limit.

    Raises TimeoutError if the client has not sent the whole payload by `end`.
    """
    global _event
    if _event is None:
        _event = _read(end)
    return _event


def _read(end: float | None) -> bytes:
    """Return all bytes of stdin; b"" if they are too many.

    end: the time of the monotonic clock, in seconds, until which to wait. None means no limit.

    Raises TimeoutError if the client has not sent everything by `end`.
    """
    data = bytearray()
    while end is None or is_sent(end - time.monotonic()):
        block = os.read(0, 1 << 16)
        if not block:
            return bytes(data)
        data += block
        if len(data) > LIMIT:
            return b""
    raise TimeoutError


def answer_to(event: HookEvent, settings: Settings, agent: str | None) -> str | None:
    """Return the answer to an event; "" for no text. None if the event could not be handled.

    Where no daemon runs, one is started, if the settings allow it. It answers only later events.

    agent: the agent that the caller named; None if the client's usual agent is meant.
    """
    from memoranda.engine.daemon_client import ask, start

    is_action = event.kind in _ACTIONS
    if is_action and not _may_have_facts(event, settings):
        return ""
    # The daemon answers as the client's usual agent.
    may_use_daemon = agent is None
    if may_use_daemon:
        try:
            reply = ask(settings.home / "memory.sock", METHOD, event._asdict(), _limit())
        except OSError:
            # The daemon is too busy to answer in time. This process would not be faster.
            return None
        if reply:
            return str(reply["reply"])

    # No daemon runs, or it may not be used for this event.
    if is_action:
        answer_to_action = _answer_to_action(event, settings, agent)
        # A client waits for each call of a tool, so the daemon starts only after the answer is known.
        if may_use_daemon:
            start(settings)
        return answer_to_action
    if may_use_daemon:
        start(settings)
    from memoranda.engine import open_session

    with open_session(agent=agent, config=settings, face="hook", watch=False) as memory:
        return answer(memory, event)


def _may_have_facts(event: HookEvent, settings: Settings) -> bool:
    """Whether this is a call of a tool about which facts may be told.

    This must be fast, because hooks run on every call of a tool, and the client waits.

    event: the call of the tool.
    """
    if not settings.hook_tools:
        return False
    from memoranda.clients.hook_glance import action_of
    from memoranda.transcripts.recall import is_about_something

    return is_about_something(action_of(event))


def _answer_to_action(event: HookEvent, settings: Settings, agent: str | None) -> str:
    """Return the answer of this process to the call of a tool, without a daemon.

    event: the call.
    agent: the agent that the caller named; None for the client's usual agent.
    """
    from memoranda.clients.hook_glance import may_be_known

    if not may_be_known(event, settings.home):
        return ""
    # A session that only reads loads a third of the code. It does not follow changes on the disk,
    # which would take 60 ms with 10,000 notes. Instead, each note that is told is compared.
    from memoranda.engine.read_session import ReadSession

    with ReadSession.open(
        agent=agent, config=settings, face="hook", watch=False, follows=False
    ) as memory:
        return _on_action(memory, event)


def served(memory: MemorySession, params: dict[str, Any]) -> dict[str, str]:
    """Return the daemon's answer to an event that `answer_to` sent, as `{"reply": text}`.

    params: the fields of the HookEvent.

    Raises TypeError or ValueError if `params` are not the fields of an event.
    """
    from memoranda.clients.hook_events import CLIENTS, HookEvent

    event = HookEvent(**{key: str(value) for key, value in params.items()})
    if event.client not in CLIENTS:
        raise ValueError(f"no such client: {event.client}")
    from memoranda.engine.telling.asked import store_waiting

    memory.reread_settings()
    store_waiting(memory.as_caller(None))
    return {"reply": answer(memory, event)}


def served_payload(memory: MemorySession, params: dict[str, Any]) -> dict[str, str | None]:
    """Return the daemon's answer to a payload that `hook_relay` sent, as `{"reply": text}`.

    params: the values `client`, `name` (of the event, or "") and `payload`.

    The reply is None if the hook has to handle the event without the daemon. Raises TypeError or
    ValueError if the payload is not the payload of an event.
    """
    from memoranda.clients.hook_events import CLIENTS, event_in, may_ask_to_remember

    client = params["client"]
    if client not in CLIENTS:
        raise ValueError(f"no such client: {client}")
    event = event_in(client, params["payload"], {}, params["name"])
    if event is None:
        return {"reply": ""}
    # A request to remember must be written to a file before anything can fail. The hook does this.
    if may_ask_to_remember(event):
        return {"reply": None}
    settings = memory.reread_settings()
    if event.kind in _ACTIONS and not _may_have_facts(event, settings):
        return {"reply": ""}
    return {**served(memory, event._asdict())}


def answer(memory: MemorySession, event: HookEvent) -> str:
    """Do the work of `event`, and return the answer for the client; "" for no text."""
    from memoranda.clients.hook_events import PROMPT, START

    if event.kind in _ACTIONS:
        return _on_action(memory, event)
    caller = _as_agent(memory, event)
    if caller is None:
        return ""
    session = memory.session_rows(event.client, event.session)
    if event.kind == START:
        return _on_start(caller, event, session)
    if event.kind == PROMPT:
        owner = memory.as_caller(memory.agent, "hook", **caller.by)
        return _on_prompt(owner, caller, event, session)
    from memoranda.clients.hook_capture import checkpoint

    checkpoint(caller, event, session)
    return ""


def _as_agent(memory: _Session, event: HookEvent) -> _Session | None:
    """Return the memory as the agent of an event sees it.

    None if the owner has paused the agent. Then it is told nothing, and nothing of it is stored.
    """
    from memoranda.clients.hook_events import CLIENTS
    from memoranda.engine.pausing import paused_agents

    client = CLIENTS[event.client]
    agent = memory.agent
    if agent is None:
        agent = memory.settings.agents.get(client.handshake, client.agent)
    if agent in paused_agents(memory):
        return None
    return memory.as_caller(agent, "hook", client=event.client, session=event.session)


def _on_start(caller: MemorySession, event: HookEvent, session: SessionRows) -> str:
    """Answer the start of a session with context, and record which notes the session was told.

    caller: the memory as the agent sees it.
    event: the start of the session.
    session: the record of the notes that this session was told.
    """
    from memoranda.clients.hook_context import at_start
    from memoranda.clients.hook_events import reply_of
    from memoranda.engine.telling.served import log_of

    now = caller.clock()
    context = caller.at_once(lambda: at_start(caller, event, session))
    session.sweep(now)
    if caller.agent is not None and context.notes:
        log_of(caller).add(now, caller.agent, "session start", "", context.notes)
    session.add(now, saw=now, notes=context.notes, text=context.text)
    return reply_of(event, context.text)


def _on_prompt(
    owner: MemorySession, caller: MemorySession, event: HookEvent, session: SessionRows
) -> str:
    """Return the answer to a prompt, with notes about the prompt.

    Requests to remember something are stored first.

    owner: the memory as its owner sees it, in which such requests are stored.
    caller: the memory as the agent sees it, in which notes are searched.
    session: the record of the notes that this session was told.
    """
    from memoranda.clients.hook_capture import remember
    from memoranda.clients.hook_context import for_prompt
    from memoranda.clients.hook_events import CLIENTS, PROMPT, reply_of
    from memoranda.engine.telling.served import log_of

    now = caller.clock()
    opening = remember(owner, event, session)
    if PROMPT not in CLIENTS[event.client].injects:
        return ""
    context = for_prompt(caller, event, session, opening)
    if caller.agent is not None and context.notes:
        log_of(caller).add(now, caller.agent, "prompt", event.prompt, context.notes)
    if context.text:
        session.add(now, saw=None, notes=context.notes, text=context.text)
    return reply_of(event, context.text)


def _on_action(memory: ReadSession, event: HookEvent) -> str:
    """Return the answer for a tool that will run or has failed, with facts about the call.

    The answer may stop the tool from running, but only once for each action.
    """
    from memoranda.clients.hook_action import HELD_BACK, for_action
    from memoranda.clients.hook_events import CLIENTS, TOOL, held_reply, reply_of

    # An answer can stop the tool, or be shown to the agent, if the client does so for this event.
    settings = memory.settings
    client = CLIENTS[event.client]
    may_hold = event.kind == TOOL and settings.hook_hold and client.hold is not None
    may_show = event.kind in client.injects
    if not settings.hook_tools or not (may_hold or may_show):
        return ""
    caller = _as_agent(memory, event)
    if caller is None:
        return ""
    session = memory.session_rows(event.client, event.session)
    telling = for_action(caller, event, session)
    if not telling.text:
        return ""

    # An agent that was told a fact about this call, and repeats it, knows what it does.
    is_stopped = may_hold and telling.is_first
    if not is_stopped and not may_show:
        return ""
    # The facts are first recorded as told. Otherwise they would stop the tool each time.
    session.add(memory.clock(), notes=telling.facts, text=telling.text)
    if is_stopped:
        return held_reply(event, f"{HELD_BACK}\n{telling.text}")
    return reply_of(event, telling.text)
