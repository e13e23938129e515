"""Writes the requests to remember something in a prompt to files, before anything else is done.

Opening the memory may take longer than a hook may run. Once a request is in a file, it cannot be
lost, even if the hook is killed (engine/telling/asked.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from memoranda.clients.hook_events import PROMPT, HookEvent
from memoranda.clients.hook_words import asked_to_remember
from memoranda.engine.telling.asked import Asked, put_aside


def asked_in(event: HookEvent, given_hashes: set[str], now: datetime) -> Iterator[Asked]:
    """Yield each request to remember something that the user made in a prompt.

    Example: "Remember that we deploy on Fridays."

    given_hashes: the hashes of the lines that the memory gave this session. A prompt that only
        repeats such a line makes no request.
    now: recorded as the time of the requests.
    """
    texts = asked_to_remember(event.prompt)
    if not texts:
        return
    # This import takes time, and most prompts have no request.
    from memoranda.ledger.sessions import without_lines

    for text in texts:
        if without_lines(text, given_hashes):
            # The id depends only on the session and the sentence. So a sentence that is repeated in
            # the same session becomes the same memory.
            name = "\0".join([event.client, event.session, text])
            identity = str(uuid5(NAMESPACE_URL, f"memoranda-asked:{name}"))
            yield Asked(identity, text, now, event.client, event.session)


def keep_asked(event: HookEvent, home: Path, now: datetime) -> list[Path]:
    """Write each request to remember something in an event to a file, and return the files.

    [] for an event that is not a prompt. Raises OSError.
    """
    if event.kind != PROMPT:
        return []
    from memoranda.sources.layout import Layout

    if not asked_to_remember(event.prompt):
        return []
    from memoranda.ledger.sessions import texts_given

    given_hashes = texts_given(Layout(home).ledger, event.client, event.session)
    return [put_aside(home, request) for request in asked_in(event, given_hashes, now)]


def forget(paths: list[Path]) -> None:
    """Remove the files of requests that have been stored in memory."""
    for path in paths:
        with suppress(OSError):
            path.unlink()
