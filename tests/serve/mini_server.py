"""A server with another registry and a memory that is a list: what serve/ does, without an
engine.

Run as `mini_server.py [--agent NAME] [--unreadable]`.
"""

from __future__ import annotations

import os
import subprocess
import sys

from memoranda.errors import ConfigError, InvalidInput, NotFound
from memoranda.faces.tool import Hooks, Prompt, Registry, Reply, Template, Tool, Toolset
from memoranda.serve.stdio import run_stdio

NOISE = "noise that is no protocol"
ODD_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to say", "x-own": {"deep": [1, None]}},
        "list": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        "when": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["text"],
    "additionalProperties": False,
}


class Pad:
    """What the tools of this file take for a memory."""

    has_changed_memories = False

    def __init__(self, lines=None, agent=None, face=None):
        self.lines = [] if lines is None else lines
        self.agent = agent
        self.face = face
        self.served = []

    def as_caller(self, agent, face, **by):
        return Pad(self.lines, agent, face)

    def using(self, tool):
        return self

    def check_not_paused(self):
        """Nobody pauses who writes here."""

    def close(self):
        print("memory closed", file=sys.stderr)


def _append(memory, arguments):
    memory.lines.append(arguments["text"])
    return Reply(f"line {len(memory.lines)}", {"line": len(memory.lines)})


def _wait(memory, arguments):
    print("waiting", file=sys.stderr, flush=True)
    # Until the test opens the other end
    with open(arguments["text"]) as pipe:
        return _append(memory, {"text": pipe.read()})


def _noise(memory, arguments):
    print(NOISE, flush=True)
    os.write(1, NOISE.encode() + b"\n")
    subprocess.run(["sh", "-c", f"echo {NOISE}; cat"], check=True)
    return Reply("quiet")


def _fail(memory, arguments):
    raise ValueError("/secret/place")


def _refuse(memory, arguments):
    raise InvalidInput("Parameter `text` is not to my liking.")


def _text(name, run, **more):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    return Tool(name, f"The tool {name}.", schema, run, **more)


def _bare(name, run):
    return Tool(name, f"The tool {name}.", {"type": "object", "properties": {}}, run)


TOOLS = [
    _text(
        "append",
        _append,
        title="Append",
        annotations={"destructiveHint": True, "openWorldHint": False},
    ),
    Tool("odd", "Odd.", ODD_SCHEMA, lambda memory, arguments: Reply(repr(sorted(arguments)))),
    _text(
        "echo",
        lambda memory, arguments: Reply(
            arguments["text"], {"text": arguments["text"], "none": None}
        ),
    ),
    Tool(
        "own",
        "Own.",
        {"type": "object"},
        lambda memory, arguments: Reply(repr(arguments)),
        contract=None,
    ),
    _bare("all", lambda memory, arguments: Reply("\n".join(memory.lines))),
    _bare("who", lambda memory, arguments: Reply(f"{memory.agent} through {memory.face}")),
    _text("wait", _wait),
    _bare("noise", _noise),
    _bare("fail", _fail),
    _bare("refuse", _refuse),
    _bare(
        "surrogate",
        lambda memory, arguments: Reply("a\ud800b", {"a\udcffb": ["\ud83d\ude00", "\udfff"]}),
    ),
]


def _greet(memory, arguments):
    memory.lines.append(f"greet {arguments['name']}")
    return f"Greet {arguments['name']} {arguments.get('tone', 'plainly')}."


def _read(memory, variables):
    memory.lines.append(f"read {variables['path']}")
    if variables["project"] == "nowhere":
        raise NotFound(variables["path"], "nowhere")
    if ".." in variables["path"]:
        raise InvalidInput("Not that way.")
    return f"{variables['project']}|{variables['path']}"


def _complete(memory, variable, beginning, other_arguments):
    if variable == "project":
        return [project for project in ("memories", "notes") if project.startswith(beginning)]
    return [f"{other_arguments.get('project', 'any')}/{beginning}{n}" for n in range(150)]


PROMPT = Prompt("greet", "A greeting.", _greet, [("name", "Whom", True), ("tone", "How", False)])
TEMPLATE = Template(
    "memory://{project}/{+path}", "note", "A note.", "text/markdown", _read, _complete
)
TOOLSET = Toolset("mini", TOOLS, "Remember 记忆 things.", prompts=[PROMPT], templates=[TEMPLATE])


class Listener:
    """A hook that tells stderr about the session."""

    def on_event(self, event):
        print(f"event {event.type}", file=sys.stderr)


def main(arguments):
    """Serve, and return the exit status."""

    def open_session():
        print("memory opened", file=sys.stderr)
        if "--unreadable" in arguments:
            raise ConfigError("load config: the file is not readable")
        return Pad()

    if "--bare" in arguments:
        toolset = Toolset("bare", TOOLS[:1])
    else:
        toolset = TOOLSET
    if "--agent" in arguments:
        agent = arguments[arguments.index("--agent") + 1]
    else:
        agent = None
    registry = Registry([toolset], Hooks([Listener()]))
    return run_stdio(
        open_session, registry, version="1.2.3", agent=agent, clients={"house robot": "robot"}
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
