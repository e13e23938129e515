"""Runs `memory hook` without the rest of the command line (docs/hooks.md).

A client waits for its hook, and parsing a command line takes a third of the time of most events.
"""

from __future__ import annotations

import os
from contextlib import suppress

from memoranda.clients import hook as hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memoranda.config import Settings


# A sentence for a person who tries a hook by hand.
_WHOLE_EVENT = (
    "Send the whole event as the client does: with its name, the id of the session and the path of "
    "the transcript; a prompt has 20 characters or more (docs/hooks.md)."
)


def settings_of(home: str | None) -> Settings:
    """Return the settings of a home, without loading the engine if its notes are in a folder.

    home: the home that the command line names. None means the usual one.

    Raises ConfigError. For a home in a database, also errors of the database.
    """
    from memoranda.config import load

    settings = load(home)
    if settings.url is None:
        return settings
    from memoranda.engine.read_session import load_settings

    return load_settings(home)


def run_hook(
    client: str,
    name: str,
    settings: Callable[[], Settings],
    agent: Callable[[], str | None] = lambda: None,
) -> None:
    """Answer the event on stdin, and print the answer for the client.

    client: the client that sends the event, such as `claude-code`.
    name: the name of the event. "" if the event itself names it.
    settings: returns the settings of the home. It may raise.
    agent: returns the agent that the caller named, None for the client's usual agent. It may raise.
    """
    limit = hooks.HookLimit()
    try:
        limit.is_reading = True
        data = hooks.read_event()
        limit.is_reading = False
        reply = _reply(
            limit, client, data=data, name=name, load_settings=settings, agent_of_caller=agent
        )
        if reply:
            from memoranda.cli import output

            output.text(reply)
            output.write(flush=True)
    except Exception as error:
        # The outermost loop of hooks: a client must never fail because of them.
        if os.environ.get(hooks.DEBUG):
            from memoranda.cli import output

            output.failure(f"{type(error).__name__}: {error}")
    finally:
        limit.is_kept.set()
        limit.cancel()


def _reply(
    limit: hooks.HookLimit,
    client: str,
    *,
    data: bytes,
    name: str,
    load_settings: Callable[[], Settings],
    agent_of_caller: Callable[[], str | None],
) -> str | None:
    """Return the answer to an event of a client. None if the event has no answer.

    If the event asks to remember a sentence, the sentence is kept in a file until it is stored.

    limit: the time limit of the hook. It may end the process only after the sentence is in the file.
    client: the client that sends the event.
    data: the event as the client wrote it to stdin.
    name: the name of the event. "" if the data names it.
    load_settings: returns the settings of the home.
    agent_of_caller: returns the agent that the caller named; None for the client's usual agent.
    """
    from memoranda.clients.hook_events import event_of, may_ask_to_remember

    event = event_of(client, data, os.environ, name)
    if event is None:
        if os.environ.get(hooks.DEBUG):
            from memoranda.cli import output

            output.failure(f"This is no event that the hook of {client} answers. {_WHOLE_EVENT}")
        return None
    settings = load_settings()
    # The files with sentences that are not stored yet.
    waiting_files = []
    if may_ask_to_remember(event):
        from memoranda.clients.hook_waiting import forget, keep_asked
        from memoranda.clock import now

        # Where no file can be made, the answer says whether the sentence could be stored.
        with suppress(OSError):
            waiting_files = keep_asked(event, settings.home, now())
    limit.is_kept.set()
    reply = hooks.answer_to(event, settings, agent_of_caller())
    # An answer means that the sentence is stored. Otherwise it stays in the file for the next hook.
    if waiting_files and reply is not None:
        forget(waiting_files)
    return reply
