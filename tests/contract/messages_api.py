"""A Messages API on this machine that asks for tools from a list and keeps what it is sent."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class MessagesApi:
    """Answers each request with the next of `turns`, each a list of tool inputs; after the last
    with a text.
    """

    def __init__(self, turns: list[list[dict[str, Any]]]):
        self.turns = turns
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                api.requests.append((self.path, headers, body))
                answer = json.dumps(api._answer(len(api.requests) - 1)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Nothing is told."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _answer(self, turn: int) -> dict[str, Any]:
        calls = self.turns[turn] if turn < len(self.turns) else []
        content = [
            {"type": "tool_use", "id": f"toolu_{turn}_{number}", "name": "memory", "input": call}
            for number, call in enumerate(calls)
        ]
        return {
            "id": f"msg_{turn}",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": content or [{"type": "text", "text": "Done."}],
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def results(self) -> list[list[list[Any]]]:
        """For each turn the [text, is_error] of its tool results, in the order of the calls."""
        tool_results = []
        for turn, (_, _, body) in enumerate(self.requests[1:]):
            blocks = [
                block for block in body["messages"][-1]["content"] if block["type"] == "tool_result"
            ]
            assert [block["tool_use_id"] for block in blocks] == [
                f"toolu_{turn}_{n}" for n in range(len(self.turns[turn]))
            ]
            tool_results.append(
                [[_text(block["content"]), bool(block.get("is_error"))] for block in blocks]
            )
        return tool_results

    def __enter__(self) -> MessagesApi:
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    (block,) = content
    assert block["type"] == "text"
    return block["text"]
