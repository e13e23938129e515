"""Recall at the point of action in the real Claude Code and Codex, with a fake endpoint in the place
of their models. Run by hand, never in CI:

    npm install --prefix DIR @anthropic-ai/claude-code @openai/codex
    python tools/try_actions.py DIR

A note speaks against a command, and another one knows an error. The fake model runs that command
twice and then one that fails with that error. Expected: the request after the first call has the
note, and the command has not run; the second call runs; the request after the failure has the other
note. Everything happens in a home folder made for it; nothing leaves this machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from try_clients import SECONDS, _claude, _codex, prepare

DECISION = "Never run `./frobnicate deploy` by hand here; use `./frobnicate release`."
REMEDY = "When you see ERR_QUARTZ_LOCKED, delete the file .quartz-lock and try again."
COMMANDS = ("./frobnicate deploy", "./frobnicate deploy", "./failing-build")
# What each client calls its shell, and the argument with the command.
_TOOLS = {"claude": ("Bash", "command"), "codex": ("exec_command", "cmd")}


class Step(NamedTuple):
    """A request of a client: its text, and how often the command had run by then."""

    body: str
    runs: int


class Model(BaseHTTPRequestHandler):
    """Speaks as Anthropic's and OpenAI's API: asks for one command of `COMMANDS` after the other."""

    protocol_version = "HTTP/1.1"
    steps: list[Step] = []
    counter = Path()

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""

    def do_GET(self) -> None:
        self._send(b'{"data": [], "models": []}', "application/json")

    def do_POST(self) -> None:
        length = self.headers.get("content-length")
        size = int(length or 0)
        data = self.rfile.read(size)
        body = data.decode()
        if "count_tokens" in self.path:
            return self._send(b'{"input_tokens": 10}', "application/json")
        client = "claude" if "/messages" in self.path else "codex"
        request = json.loads(body) if body.startswith("{") else {}
        # Other requests name the session, or ask whether the model is there.
        tool = None
        arguments = "{}"
        if request.get("tools"):
            tool, arguments = self._call(client, body)
        if client == "claude":
            events = _claude(tool, arguments)
        else:
            events = _codex(tool, arguments)
        text = ""
        for event in events:
            # No two calls have the same name.
            _rename(event, f"call_{len(self.steps)}")
            text += f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        self._send(text.encode(), "text/event-stream")

    def _call(self, client: str, body: str) -> tuple[dict[str, str] | None, str]:
        number = len(self.steps)
        self.steps.append(Step(body, _runs(self.counter)))
        if number >= len(COMMANDS):
            return None, "{}"
        command = COMMANDS[number]
        name, argument = _TOOLS[client]
        return {"name": name}, json.dumps({argument: command})

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _rename(event: dict[str, Any], name: str) -> None:
    for part in ("content_block", "item"):
        for key in ("id", "call_id"):
            if key in event.get(part, {}):
                event[part][key] = name


def _runs(counter: Path) -> int:
    """How often the command ran."""
    if not counter.exists():
        return 0
    return len(counter.read_text().splitlines())


def _prepare(home: Path, port: int, programs: Path) -> dict[str, str]:
    """Make the home folder with its programs; returns the environment for clients."""
    work, environ = prepare(home, port, programs)
    scripts = {
        work / "frobnicate": f"#!/bin/sh\necho run >> {home}/runs\n",
        work
        / "failing-build": "#!/bin/sh\necho 'build: ERR_QUARTZ_LOCKED in module 7' >&2\nexit 3\n",
    }
    for path, text in scripts.items():
        path.write_text(text)
        path.chmod(0o755)
    return environ


_CLIENTS = {
    "claude": (
        "claude",
        "-p",
        "--model",
        "claude-sonnet-4-5",
        "--permission-mode",
        "bypassPermissions",
        "please deploy",
    ),
    "codex": (
        "codex",
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-hook-trust",
        "--dangerously-bypass-approvals-and-sandbox",
        "please deploy",
    ),
}


def _tried(client: str, home: Path, environ: dict[str, str]) -> bool:
    """Run one client through the steps; whether each request had what it should have."""
    Model.steps.clear()
    Model.counter = home / "runs"
    Model.counter.unlink(missing_ok=True)
    process = subprocess.run(
        _CLIENTS[client],
        cwd=home / "work" / "fjord",
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    print(f"{client} -> {process.returncode}", (process.stdout + process.stderr)[-200:].strip())
    steps = Model.steps
    if len(steps) <= len(COMMANDS):
        print(f"{client} made {len(steps)} requests with tools only")
        return False
    checks = {
        "the first request has neither note": not any(
            _has(steps[0], text) for text in (DECISION, REMEDY)
        ),
        "the second request has the decision": _has(steps[1], DECISION),
        "by then the command has not run": steps[1].runs == 0,
        "called again, it runs": steps[2].runs == 1,
        "after the failure the request has the remedy": _has(steps[3], REMEDY),
    }
    for name, is_good in checks.items():
        print(f"  {client}: {name}: {is_good}")
    return all(checks.values())


def _has(step: Step, note: str) -> bool:
    # In a request it is JSON within JSON.
    return note.split("`")[0].strip() in step.body and note.split()[-1] in step.body


def keep_requests(folder: Path, client: str) -> None:
    """Write what a client sent to the model into files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, step in enumerate(Model.steps):
        file = folder / f"{client}-{number}.json"
        file.write_text(step.body)


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("clients", type=Path, help="the folder npm installed both clients into")
    options.add_argument("--keep", type=Path, help="write the requests there")
    arguments = options.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        programs = arguments.clients.resolve() / "node_modules" / ".bin"
        environ = _prepare(home, server.server_address[1], programs)
        for words in (
            ("install", "claude-code", "codex", "--hooks"),
            ("write", DECISION, "--category", "decisions"),
            ("write", REMEDY, "--category", "lessons"),
        ):
            subprocess.run(["memory", *words], env=environ, check=True, stdout=subprocess.DEVNULL)
        for client in _CLIENTS:
            results.append(_tried(client, home, environ))
            if arguments.keep:
                keep_requests(arguments.keep, client)
        subprocess.run(["memory", "serve", "--stop"], env=environ, stdout=subprocess.DEVNULL)
    server.shutdown()
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
