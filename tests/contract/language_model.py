"""A chat endpoint on this machine that answers as a test wants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


class LanguageModel:
    """`content` is what the model says; `status` and `body` replace the whole answer. `asked`:
    requests so far, each as (path, headers, body). While `holding` is clear no answer is given."""

    def __init__(self, port: int):
        self.url = f"http://127.0.0.1:{port}/v1"
        self.content: Any = ""
        self.status = 200
        self.body: bytes | None = None
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.holding = Event()
        self.holding.set()

    def says(self, **answer: Any) -> None:
        """Answer with this object as JSON text."""
        self.content = json.dumps(answer)

    def answer(self) -> bytes:
        if self.body is not None:
            return self.body
        return json.dumps(
            {"choices": [{"message": {"role": "assistant", "content": self.content}}]}
        ).encode()


@contextmanager
def language_model() -> Iterator[LanguageModel]:
    """A model that listens while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            model.asked.append((self.path, dict(self.headers), json.loads(body)))
            model.holding.wait(60)
            data = model.answer()
            try:
                self.send_response(model.status)
                for name, value in model.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                # The client did not wait
                pass

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model = LanguageModel(server.server_address[1])
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield model
        finally:
            model.holding.set()
            server.shutdown()
            thread.join()
