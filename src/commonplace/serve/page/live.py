"""What changes, as it happens: server-sent events, one for each change of the journal by whatever process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from commonplace.serve.http import HttpServer
from commonplace.serve.page.render import prepare
from commonplace.serve.page.session import PageVisitors
from commonplace.serve.page.visit import HEADERS, cookie_name, is_foreign

_LOOK_EVERY, _ALIVE_EVERY = 0.5, 15.0


class Live:
    """The stream of `event: change` for the owner's page."""

    def __init__(self, server: HttpServer):
        self._server = server
        self._visitors = PageVisitors(server.access, server.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        secret = request.cookies.get(cookie_name(request), "")
        is_let_in = not is_foreign(request) and self._visitors.knows(secret)
        events = self._events(secret, request.query_params.get("since")) if is_let_in else _nothing()
        headers = HEADERS | {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        # 204 tells a browser not to ask again
        await StreamingResponse(events, 200 if is_let_in else 204, headers)(scope, receive, send)

    async def _events(self, secret: str, since: str | None) -> AsyncIterator[str]:
        """One for each change after the journal had the stamp `since` [after now]."""
        # Today asks for this once it is painted: time to get the other pages ready
        asyncio.get_running_loop().run_in_executor(None, prepare)
        memory = self._server.homes.memory(None)
        seen, quiet = memory.journal_stamp() if since is None else since, 0.0
        yield "retry: 2000\n\n"
        while not self._server.stopping.is_set() and self._visitors.knows(secret):
            if (now := await asyncio.to_thread(memory.journal_stamp)) != seen:
                seen, quiet = now, 0.0
                yield f"event: change\ndata: {now}\n\n"
            elif quiet >= _ALIVE_EVERY:
                quiet = 0.0
                yield ": alive\n\n"
            await asyncio.sleep(_LOOK_EVERY)
            quiet += _LOOK_EVERY


async def _nothing() -> AsyncIterator[str]:
    return
    yield ""
