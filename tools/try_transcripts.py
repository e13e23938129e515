"""What the real clients write down of a session, and what is read of it. Run by hand, never in CI:

    npm install --prefix DIR @anthropic-ai/claude-code @openai/codex @google/gemini-cli opencode-ai \
        @github/copilot cline @continuedev/cli
    pip install --target=… aider-chat        # in a separate environment
    python tools/try_transcripts.py DIR [--aider PATH/bin/aider] [--keep FOLDER]

A fake endpoint takes the place of the models. Each client gets one prompt; the model asks for a
command that fails, then for one that works, and says a word. Expected of what is read: the prompt,
both commands, both outputs, the failure, the answer, the folder, and each passage at its place.
Amp needs its own server, so that it writes nothing here. Everything happens in a home folder made
for it; nothing leaves this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import try_clients
from memoranda.transcripts import places
from memoranda.transcripts.formats import FORMATS
from memoranda.transcripts.turn import Kind, NotUnderstood, Turn
from try_five_interfaces import Person

PROMPT = "Please look how the kelp of the northern bay is doing today."
ANSWER = "The kelp of the northern bay grows."
COMMANDS = ("cat kelp-that-is-missing", "echo kelp is there")
OUTPUTS = ("No such file", "kelp is there")
SECONDS = 120
_TOOL_NAMES = (
    "Bash",
    "bash",
    "run_shell_command",
    "exec_command",
    "shell",
    "run_commands",
    "execute_command",
    "developer__shell",
)
CLIENTS = {
    "claude-code": ["claude", "-p", "--permission-mode", "bypassPermissions", PROMPT],
    "codex": [
        *["codex", "exec", "--skip-git-repo-check"],
        *["--dangerously-bypass-approvals-and-sandbox", PROMPT],
    ],
    "gemini-cli": ["gemini", "--yolo", "-p", PROMPT],
    "opencode": ["opencode", "run", PROMPT],
    "copilot-cli": ["copilot", "--allow-all-tools", "--model", "fake", "-p", PROMPT],
    "cline": ["cline", "--auto-approve", "true", PROMPT],
    "continue": ["cn", "-p", "--auto", PROMPT],
    "amp": ["amp", "--dangerously-allow-all", "-x", PROMPT],
}
# Aider runs no commands that nobody asked it to run.
_WITHOUT_COMMANDS = ("aider",)
AIDER = [
    *["--model", "openai/fake", "--no-show-model-warnings", "--no-check-update", "--yes-always"],
    *["--no-auto-commits", "--no-gitignore", "--message", PROMPT],
]


class Model(try_clients.Model):
    """Speaks as every client's API: asks for one of `COMMANDS` after the other, then answers."""

    asked = 0
    requests: list[tuple[str, str]] = []

    def do_POST(self) -> None:
        """Answer one request."""
        size = self.headers.get("content-length")
        if size is None:
            body = self._chunked()
        else:
            body = self.rfile.read(int(size)).decode("utf-8", "replace")
        request = json.loads(body) if body.startswith("{") else {}
        Model.requests.append((self.path, body))
        if "ountTokens" in self.path or "count_tokens" in self.path:
            return self._send(b'{"input_tokens": 10, "totalTokens": 10}', "application/json")
        name, command = self._wanted(request)
        if "/messages" in self.path:
            return self._answer(_anthropic(name, command))
        if "/responses" in self.path:
            return self._answer(_responses(name, command))
        if "enerateContent" in self.path:
            return self._answer(_gemini(name, command), is_named=False)
        if "/chat/completions" in self.path:
            return self._chat_answer(request, name, command)
        return self._send(b"{}", "application/json")

    def _chunked(self) -> str:
        data = b""
        while size := int(self.rfile.readline() or b"0", 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data.decode("utf-8", "replace")

    def _wanted(self, request: dict[str, Any]) -> tuple[str, str]:
        """The shell's name in this client and the next command, "" for the answer."""
        names = list(_tool_names(request.get("tools") or []))
        name = next((shell_name for shell_name in _TOOL_NAMES if shell_name in names), "")
        is_about_prompt = PROMPT in json.dumps(request)
        if not name or not is_about_prompt or Model.asked >= len(COMMANDS):
            return "", ""
        command = COMMANDS[Model.asked]
        Model.asked += 1
        return name, command

    def _answer(self, events: Iterator[dict[str, Any]], *, is_named: bool = True) -> None:
        text = ""
        for event in events:
            if is_named:
                text += f"event: {event['type']}\n"
            text += f"data: {json.dumps(event)}\n\n"
        self._send(text.encode(), "text/event-stream")

    def _chat_answer(self, request: dict[str, Any], name: str, command: str) -> None:
        message, reason = _chat_message(name, command)
        common: dict[str, Any] = {"id": "c1", "created": 1, "model": "fake"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            reply = common | {"object": "chat.completion", "choices": [choice], "usage": usage}
            return self._send(json.dumps(reply).encode(), "application/json")
        common["object"] = "chat.completion.chunk"
        choices = [
            {"index": 0, "delta": message, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": reason},
        ]
        chunks: list[dict[str, Any]] = [common | {"choices": [choice]} for choice in choices]
        # Some clients take a chunk with the usage for the last one.
        chunks.append(common | {"choices": [], "usage": usage})
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        return self._send(f"{text}data: [DONE]\n\n".encode(), "text/event-stream")


def _tool_names(tools: list[Any]) -> Iterator[str]:
    """The names of the tools in a request of any API."""
    for tool in tools:
        yield str(tool.get("name"))
        yield str((tool.get("function") or {}).get("name"))
        for inner in tool.get("functionDeclarations") or tool.get("tools") or ():
            yield str(inner.get("name"))


def _arguments(name: str, command: str) -> dict[str, Any]:
    """The arguments of a shell tool, which clients name differently. More than needed are given."""
    if name == "exec_command":
        return {"cmd": command}
    if name == "shell" and command:
        return {"command": ["bash", "-lc", command]}
    if name == "run_commands":
        return {"commands": [command]}
    if name == "execute_command":
        return {"command": command, "requires_approval": False}
    return {"command": command, "description": "Look at the kelp"}


def _anthropic(name: str, command: str) -> Iterator[dict[str, Any]]:
    tool = {"name": name} if name else None
    for event in try_clients._claude(tool, json.dumps(_arguments(name, command))):
        yield _named(event)


def _responses(name: str, command: str) -> Iterator[dict[str, Any]]:
    tool = {"name": name} if name else None
    for event in try_clients._codex(tool, json.dumps(_arguments(name, command))):
        yield _named(event)


def _named(event: dict[str, Any]) -> dict[str, Any]:
    """The event with the answer of this tool, and an id for each call."""
    text = json.dumps(event).replace("Done.", ANSWER)
    for name in ("toolu_1", "call_1"):
        text = text.replace(name, f"{name}{Model.asked}")
    result: dict[str, Any] = json.loads(text)
    return result


def _gemini(name: str, command: str) -> Iterator[dict[str, Any]]:
    part: dict[str, Any] = {"text": ANSWER}
    if name:
        part = {"functionCall": {"name": name, "args": _arguments(name, command)}}
    content = {"role": "model", "parts": [part]}
    yield {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }


def _chat_message(name: str, command: str) -> tuple[dict[str, Any], str]:
    if not name:
        return {"role": "assistant", "content": ANSWER}, "stop"
    function = {"name": name, "arguments": json.dumps(_arguments(name, command))}
    call = {"index": 0, "id": f"call_{Model.asked}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"


def configured(home: Path, programs: Path, url: str) -> Person:
    """A person whose clients all speak with the fake model."""
    person = Person(home, programs, url)
    (home / ".continue").mkdir()
    (home / ".continue" / "config.yaml").write_text(
        "name: fake\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: fake\n    provider: openai\n"
        f"    model: fake\n    apiBase: {url}/v1\n    apiKey: fake\n    roles: [chat]\n"
        "    capabilities: [tool_use]\n"
    )
    person.environ |= {
        "OPENAI_API_BASE": f"{url}/v1",
        "OPENAI_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "fake",
        "COPILOT_MODEL": "fake",
        "COPILOT_OFFLINE": "true",
        "AMP_URL": url,
        "AMP_API_KEY": "fake",
        "CI": "1",
    }
    if (programs / "cline").exists():
        provider = ["-p", "openai-compatible", "-k", "fake", "-m", "fake", "-b", f"{url}/v1"]
        person.run("cline", "auth", *provider)
    # The variables of this process must not lead to another person's files.
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        os.environ.pop(name, None)
    return person


def turns_of(agent: str, folder: str) -> tuple[list[Turn], str]:
    """What is read of an agent's transcripts, and what is wrong with the places of passages."""
    turns: list[Turn] = []
    trouble = ""
    for file in places.find(folders=[folder]):
        if file.agent != agent:
            continue
        form = FORMATS[file.format]
        try:
            for outcome in form.read(file.path, {}):
                turns += outcome.turns
                if outcome.session.folder != folder:
                    trouble += f" folder {outcome.session.folder!r};"
                name = outcome.session.name
                for turn in outcome.turns:
                    if form.passage(file.path, name, turn.position) != turn.text:
                        trouble += f" passage {turn.position} is not found;"
        except NotUnderstood as error:
            trouble += f" {file.path.name}: {error};"
    return turns, trouble


def has_outputs(results: list[str]) -> bool:
    """Whether each of OUTPUTS is part of a result."""
    everything = "\0".join(results)
    return all(part in everything for part in OUTPUTS)


def missing(turns: list[Turn], *, runs_commands: bool) -> list[str]:
    """What was expected of these turns and is not there."""
    texts: dict[Kind, list[str]] = {}
    for turn in turns:
        texts.setdefault(turn.kind, []).append(turn.text)
    ran = texts.get(Kind.RAN, [])
    results = texts.get(Kind.RESULT, [])
    expected = {
        # OpenCode puts a prompt of its command line into quotes.
        "prompt": [text.strip('"') for text in texts.get(Kind.SAID, [])] == [PROMPT],
        "answer": texts.get(Kind.ANSWERED, [])[-1:] == [ANSWER],
    }
    if runs_commands:
        expected |= {
            "commands": ran == list(COMMANDS),
            "outputs": has_outputs(results),
            "failure": any(turn.has_failed for turn in turns),
        }
    return [name for name, is_there in expected.items() if not is_there]


def try_client(person: Person, agent: str, words: list[str], keep: Path | None) -> None:
    """Run one client for a turn, and print what is read of it."""
    Model.asked = 0
    Model.requests.clear()
    output = person.run(*words)
    turns, trouble = turns_of(agent, str(person.work))
    wrong = missing(turns, runs_commands=agent not in _WITHOUT_COMMANDS)
    print(f"{agent}: {len(turns)} turns; missing: {', '.join(wrong) or 'nothing'}{trouble}")
    if wrong or trouble:
        print("   said:", output.replace("\n", "\n     "))
        for turn in turns:
            print("   ", turn.kind.name, repr(turn.text[:150]), turn.has_failed)
        print("   requests:", [path for path, _ in Model.requests][:8])
    if keep:
        keep_requests(keep / agent)


def keep_requests(folder: Path) -> None:
    """Write what the client sent to the model into files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (path, body) in enumerate(Model.requests):
        file = folder / f"{number:02}.json"
        file.write_text(f"{path}\n{body}")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("clients", type=Path, help="the folder npm installed the clients into")
    options.add_argument("--aider", type=Path, help="the program aider")
    options.add_argument("--only", nargs="*", help="names of clients")
    options.add_argument("--keep", type=Path, help="copy the home folder and the requests there")
    arguments = options.parse_args()
    programs = arguments.clients.resolve() / "node_modules" / ".bin"
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try_clients.SECONDS = SECONDS
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        port = server.server_address[1]
        person = configured(Path(folder), programs, f"http://127.0.0.1:{port}")
        commands = dict(CLIENTS)
        if arguments.aider:
            commands["aider"] = [str(arguments.aider), *AIDER]
        if arguments.only:
            commands = {agent: commands[agent] for agent in commands if agent in arguments.only}
        for agent, words in commands.items():
            program = programs / words[0]
            if program.exists():
                try_client(person, agent, words, arguments.keep)
            else:
                print(f"{agent}: not installed")
        if arguments.keep:
            left_out = shutil.ignore_patterns("node_modules", "*.sock")
            kept_home = arguments.keep / "home"
            shutil.copytree(folder, kept_home, symlinks=True, ignore=left_out, dirs_exist_ok=True)
    server.shutdown()


if __name__ == "__main__":
    main()
