"""What the real Claude Code stores through each of the five interfaces is in the first request of
each other client: Codex, Gemini CLI and OpenCode, those that are installed. Run by hand, never in CI:

    npm install --prefix DIR @anthropic-ai/claude-code @openai/codex @google/gemini-cli opencode-ai
    python tools/try_five_interfaces.py DIR

A fake endpoint replaces every model, and every home folder is a temporary one. Prints
a line for each interface and client; the exit status is 1 where a request did not hold the fact.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import try_clients
from try_clients import MEMORY, SECONDS

FACT = "The user always wants tabs, never blanks."
# Of each toolset: the tool that stores, and what Claude Code is made to ask of it.
INTERFACES: dict[str, tuple[str, dict[str, Any]]] = {
    "memory": (
        "memory",
        {"command": "create", "path": "/memories/user/preferences.md", "file_text": FACT},
    ),
    "notes": ("write_note", {"title": "Style", "folder": "", "content": f"- [preference] {FACT}"}),
    "graph": (
        "memory_create_entities",
        {"entities": [{"name": "default_user", "entityType": "person", "observations": [FACT]}]},
    ),
    "kv": ("memory_remember", {"key": "indentation", "value": FACT}),
    "agent": ("memory_write", {"content": FACT, "category": "preferences"}),
}
WRITER = [
    *["claude", "-p", "--model", "claude-sonnet-4-5", "--strict-mcp-config"],
    *["--permission-mode", "bypassPermissions"],
]
GREETING = "good morning, how are you doing today?"
READERS = {
    "codex": [
        *["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"],
        "--dangerously-bypass-approvals-and-sandbox",
        GREETING,
    ],
    "gemini": ["gemini", "--yolo", "-p", GREETING],
    "opencode": ["opencode", "run", GREETING],
}
_INSTALLED_AS = {"codex": "codex", "gemini": "gemini-cli", "opencode": "opencode"}


class Model(try_clients.Model):
    """Speaks as every client's API, and asks Claude Code once for the tool of an interface."""

    tool_name = ""
    arguments: dict[str, Any] = {}

    def do_POST(self) -> None:
        """Answer one request, and keep what it held."""
        size = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(size).decode()
        request = json.loads(body) if body.startswith("{") else {}
        Model.bodies.append((self.path, body))
        if "count_tokens" in self.path or "countTokens" in self.path:
            self._send(b'{"input_tokens": 10, "totalTokens": 10}', "application/json")
        elif "/messages" in self.path:
            tool, arguments = self._wanted(request)
            self._answer(try_clients._claude(tool, arguments))
        elif "/responses" in self.path:
            self._answer(try_clients._codex(None, ""))
        elif "GenerateContent" in self.path or "generateContent" in self.path:
            self._answer(_gemini(), is_named=False)
        elif "/chat/completions" in self.path:
            self._answer(_chat(), is_named=False)
        else:
            self._send(b"{}", "application/json")

    def _wanted(self, request: dict[str, Any]) -> tuple[dict[str, str] | None, str]:
        """The tool that Claude Code is to call, once, as soon as it offers it."""
        names = [tool.get("name", "") for tool in request.get("tools") or ()]
        offered = [name for name in names if name.endswith(f"__{Model.tool_name}")]
        if not Model.tool_name or not names:
            return None, ""
        if not offered:
            return {"name": "Bash"}, json.dumps(try_clients._PAUSE)
        Model.tool_name = ""
        return {"name": offered[0]}, json.dumps(Model.arguments)

    def _answer(self, events: Iterator[dict[str, Any]], *, is_named: bool = True) -> None:
        text = ""
        for event in events:
            if is_named:
                text += f"event: {event['type']}\n"
            text += f"data: {json.dumps(event)}\n\n"
        if not is_named and "/chat/" in self.path:
            text += "data: [DONE]\n\n"
        self._send(text.encode(), "text/event-stream")


def _gemini() -> Iterator[dict[str, Any]]:
    content = {"role": "model", "parts": [{"text": "Done."}]}
    yield {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }


def _chat() -> Iterator[dict[str, Any]]:
    common = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fake"}
    delta = {"role": "assistant", "content": "Done."}
    yield common | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield common | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


class Person:
    """A home folder with every client configured for the fake endpoint."""

    def __init__(self, home: Path, programs: Path, url: str):
        self.work = home / "work"
        self.home = home
        (self.work / ".git").mkdir(parents=True)
        for folder in (".claude", ".codex", ".gemini", ".config/opencode"):
            (home / folder).mkdir(parents=True)
        (home / ".codex/config.toml").write_text(
            'model = "fake"\nmodel_provider = "fake"\n[model_providers.fake]\nname = "fake"\n'
            f'base_url = "{url}/v1"\nwire_api = "responses"\n'
            f'[projects."{self.work}"]\ntrust_level = "trusted"\n'
        )
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{url}/v1", "apiKey": "fake"},
            "models": {"fake": {"name": "fake"}},
        }
        (home / ".config/opencode/opencode.json").write_text(
            json.dumps({"model": "fake/fake", "provider": {"fake": provider}})
        )
        (home / ".gemini/settings.json").write_text(
            json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})
        )
        (home / ".gemini/trustedFolders.json").write_text(
            json.dumps({str(self.work): "TRUST_FOLDER"})
        )
        self.environ = {
            "HOME": str(home),
            "PATH": f"{programs}:{MEMORY.parent}:{os.environ['PATH']}",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-fake",
            "OPENAI_API_KEY": "sk-fake",
            "GEMINI_API_KEY": "fake",
            "GOOGLE_GEMINI_BASE_URL": url,
            "MEMORY_HOOK_SECONDS": "3",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def run(self, *words: str) -> str:
        """Run a command as this person. Returns the end of what it printed."""
        try:
            process = subprocess.run(
                words,
                cwd=self.work,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return "timed out"
        return (process.stdout + process.stderr).strip()[-400:]


def first_request(bodies: list[tuple[str, str]]) -> str:
    """The first request with the greeting and with tools: others ask for a title of the session."""
    return next((body for _, body in bodies if GREETING in body and '"tools"' in body), "")


def try_interface(person: Person, toolset: str, readers: list[str]) -> dict[str, str]:
    """Store the fact through one interface in Claude Code, then greet each other client."""
    client_ids = [_INSTALLED_AS[reader] for reader in readers]
    person.run("memory", "install", *client_ids, "--hooks")
    Model.tool_name, Model.arguments = INTERFACES[toolset]
    server = {"command": "memory", "args": ["mcp", "--tools", toolset]}
    config = json.dumps({"mcpServers": {"memory": server}})
    output = person.run(*WRITER, "write down what you know about this", "--mcp-config", config)
    if Model.tool_name:
        return dict.fromkeys(readers, f"NOT STORED: {output}")
    results: dict[str, str] = {}
    for reader in readers:
        command = READERS[reader]
        before = len(Model.bodies)
        output = person.run(*command)
        bodies = Model.bodies[before:]
        request = first_request(bodies)
        if FACT in request:
            results[reader] = "in the first request"
        elif request:
            results[reader] = "MISSING"
        else:
            results[reader] = f"NO REQUEST: {output}"
    return results


def main() -> int:
    """Try every interface. Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clients", type=Path, help="the folder npm installed the clients into")
    parser.add_argument("--interfaces", nargs="*", default=list(INTERFACES))
    parser.add_argument("--readers", nargs="*", default=list(READERS))
    parser.add_argument("--keep", type=Path, help="write the requests that miss the fact there")
    options = parser.parse_args()
    programs = options.clients.resolve() / "node_modules" / ".bin"
    readers = [reader for reader in options.readers if (programs / reader).exists()]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    has_all = True
    for toolset in options.interfaces:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            person = Person(Path(folder), programs, url)
            results = try_interface(person, toolset, readers)
            person.run("memory", "serve", "--stop")
        for reader, result in results.items():
            if options.keep and result == "MISSING":
                options.keep.mkdir(parents=True, exist_ok=True)
                body = first_request(Model.bodies[-6:])
                (options.keep / f"{toolset}-{reader}.json").write_text(body)
            print(f"{toolset}: stored in claude, {reader}: {result}", flush=True)
            has_all = has_all and result == "in the first request"
    server.shutdown()
    return 0 if has_all else 1


if __name__ == "__main__":
    sys.exit(main())
