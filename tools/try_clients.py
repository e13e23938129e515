"""A fact written through one client's MCP tool is in the body of the other's next request, by hook:
with the real Claude Code and Codex, and a fake endpoint in the place of their models. Then Claude
Code writes over HTTP, with a token, and its own memory is a project. Run by hand, never in CI:

    npm install --prefix DIR @anthropic-ai/claude-code @openai/codex
    python tools/try_clients.py DIR

Everything happens in a home folder made for it; nothing leaves this machine. Prints what each
request held.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MEMORY = Path(sys.executable).with_name("memory")
FACTS = {
    "claude": "The heron gate code of the Fjordhus archive is kept by Torvald.",
    "codex": "The kiln in the Ostrava workshop needs cone 6 and a slow cooling.",
}
FAR = "The ferry of Kjerringoy leaves at noon from the northern quay."
OWN = "The boathouse in Vaduz has a green door."
SECONDS = 300
_PAUSES: dict[str, dict[str, str]] = {"claude": {"name": "Bash"}, "codex": {"name": "exec_command"}}
_PAUSE = {"command": "sleep 1", "cmd": "sleep 1", "description": "wait"}
"""What a client is asked to do as long as it does not offer the memory's tools: it need not wait
for their server.
"""


class Model(BaseHTTPRequestHandler):
    """Speaks as Anthropic's and OpenAI's API: asks `writer` once for `write_note`, else says a
    word.
    """

    protocol_version = "HTTP/1.1"
    bodies: list[tuple[str, str]] = []
    writer = ""

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""

    def do_GET(self) -> None:
        self._send(b'{"data": [], "models": []}', "application/json")

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(size).decode("utf-8", "replace")
        request = json.loads(body) if body.startswith("{") else {}
        if "count_tokens" in self.path:
            return self._send(b'{"input_tokens": 10}', "application/json")
        if "/messages" in self.path:
            client = "claude"
        elif "/responses" in self.path:
            client = "codex"
        else:
            return self._send(b"{}", "application/json")
        self.bodies.append((client, body))
        return self._write_or_talk(client, request)

    def _write_or_talk(self, client: str, request: dict[str, Any]) -> None:
        """Ask the client that is to write for its tool, or for a pause until it has it; else talk."""
        tool = next(_tools(request), None)
        if client == self.writer:
            wants = tool or _PAUSES[client]
        else:
            wants = None
        if wants is tool:
            Model.writer = ""
        tool_arguments = json.dumps(_note(FACTS[client]) if tool else _PAUSE)
        if client == "claude":
            events = _claude(wants, tool_arguments)
        else:
            events = _codex(wants, tool_arguments)
        text = ""
        for event in events:
            text += f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        self._send(text.encode(), "text/event-stream")

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _tools(request: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The name under which the client offers `write_note`."""
    for tool in request.get("tools") or ():
        inner = tool.get("tools") or ()
        if tool.get("name", "").endswith("write_note"):
            yield {"name": tool["name"]}
        for inner_tool in inner:
            if inner_tool.get("name", "").endswith("write_note"):
                yield {"name": inner_tool["name"], "namespace": tool["name"]}


def _claude(tool: dict[str, str] | None, arguments: str) -> Iterator[dict[str, Any]]:
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": []}
    yield {
        "type": "message_start",
        "message": start | {"usage": {"input_tokens": 1, "output_tokens": 1}},
    }
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": "Done."}
    if tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": arguments}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _codex(tool: dict[str, str] | None, arguments: str) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    item: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "id": "m1",
        "content": [{"type": "output_text", "text": "Done."}],
    }
    if tool:
        item = {"type": "function_call", "call_id": "call_1", "arguments": arguments, **tool}
    yield {"type": "response.output_item.done", "item": item}
    usage = {
        "input_tokens": 1,
        "output_tokens": 1,
        "total_tokens": 2,
        "input_tokens_details": None,
        "output_tokens_details": None,
    }
    yield {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}


def _note(fact: str) -> dict[str, str]:
    return {"title": fact.split(" of ")[0].split(" in ")[0], "content": fact, "directory": "facts"}


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("clients", type=Path, help="the folder npm installed both clients into")
    options.add_argument("--keep", type=Path, help="write the requests there")
    arguments = options.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        good = _run(
            arguments.clients.resolve() / "node_modules" / ".bin",
            Path(folder),
            server.server_address[1],
        )
    server.shutdown()
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        for at, (client, body) in enumerate(Model.bodies):
            (arguments.keep / f"{at:02d}-{client}.json").write_text(body)
    if good:
        return 0
    return 1


def prepare(home: Path, port: int, programs: Path) -> tuple[Path, dict[str, str]]:
    """Make a home folder in which Claude Code and Codex speak with the fake model.

    port: where the fake model listens.
    programs: the folder of the clients' programs.

    Returns the folder to work in, and the environment for the clients.
    """
    work = home / "work" / "fjord"
    (work / ".git").mkdir(parents=True)
    (home / ".claude").mkdir()
    (home / ".codex").mkdir()
    url = f"http://127.0.0.1:{port}"
    (home / ".codex" / "config.toml").write_text(
        'model = "fake"\nmodel_provider = "fake"\n[model_providers.fake]\nname = "fake"\n'
        f'base_url = "{url}/v1"\nwire_api = "responses"\n[projects."{work}"]\ntrust_level = "trusted"\n'
    )
    environ = {
        "HOME": str(home),
        "PATH": f"{programs}:{MEMORY.parent}:{os.environ['PATH']}",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-fake",
        "OPENAI_API_KEY": "sk-fake",
        "MEMORY_HOOK_SECONDS": "3",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return work, environ


def _run(programs: Path, home: Path, port: int) -> bool:
    work, environ = prepare(home, port, programs)

    def run(*words: str) -> None:
        process = subprocess.run(
            words,
            cwd=work,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        print(
            f"$ {Path(words[0]).name} {words[1]} -> {process.returncode}",
            (process.stdout + process.stderr)[-300:].strip(),
        )

    claude = (
        "claude",
        "-p",
        "--model",
        "claude-sonnet-4-5",
        "--permission-mode",
        "bypassPermissions",
    )
    codex = (
        "codex",
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-hook-trust",
        "--dangerously-bypass-approvals-and-sandbox",
    )
    run("memory", "install", "claude-code", "codex", "--hooks")
    good = True
    for writer, reader, first, then in (
        ("claude", "codex", claude, codex),
        ("codex", "claude", codex, claude),
    ):
        run(*then, "say a word, please, so that this session is known")
        Model.writer = writer
        run(*first, "write down what you know about this, in memory")
        before = len(Model.bodies)
        run(*then, "good morning, how are you doing today?")
        has_fact = [
            FACTS[writer] in body for client, body in Model.bodies[before:] if client == reader
        ]
        good = good and any(has_fact)
        print(
            f"{writer} wrote, {reader} asked {len(has_fact)} times: the fact was in {sum(has_fact)} requests"
        )
    daemon = subprocess.Popen(
        ["memory", "serve", "--http", "127.0.0.1:0"], env=environ, stdout=subprocess.PIPE, text=True
    )
    try:
        assert daemon.stdout is not None
        address = next(
            match[0] for line in daemon.stdout if (match := re.search(r"http://\S+/mcp", line))
        )
        token = subprocess.check_output(["memory", "token", "add", "claude", "--json"], env=environ)
        environ["MEMORY_TOKEN"] = json.loads(token)["secret"]
        run(
            "memory",
            "install",
            "claude-code",
            "--http",
            address,
            "--token-env",
            "MEMORY_TOKEN",
            "--native-memory",
        )
        (home / ".memory" / "projects" / "claude-memory" / "MEMORY.md").write_text(OWN)
        run("claude", "mcp", "list")
        FACTS["claude"] = FAR
        Model.writer = "claude"
        run(*claude, "write down what you know about the ferry, in memory")
        is_own = OWN in Model.bodies[-1][1]
    finally:
        daemon.terminate()
        daemon.wait()
    written = [path for path in (home / ".memory").rglob("*.md") if FAR in path.read_text("utf-8")]
    print(
        f"over HTTP claude wrote {len(written)} note; its own memory was {'' if is_own else 'NOT '}in its request"
    )
    return good and len(written) == 1 and is_own


if __name__ == "__main__":
    sys.exit(main())
