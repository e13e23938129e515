#!/usr/bin/env python3
"""What arguments of every size cost: every tool with each of its arguments, every address of `/api`.

    python tools/try_sizes.py [--notes 10000] [--seconds 2] [--wait 0.5] [--large 1000000]
                              [--only TOOL | --only /api/PATH | --only /mcp] [--all]

Makes a home of `--notes` notes, and calls every tool of every toolset for each argument with 1, 100
and 10,000 characters or elements and with the largest it may have, in several forms: one long word,
many words, many lines, signs of search expressions, brackets, lists, objects. Then a server of the
same home is asked at every address of `/api`, and for every prompt, resource and completion.

Printed are the calls that take more processor time than SECONDS, and those that keep others waiting
for more than WAIT: a second caller asks for a note all the while, and what counts is the processor
time the process spent meanwhile. With --all every call is printed. Ends with 1 where one is above a
limit.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from memoranda import Draft, faces
from memoranda.engine import MemorySession, open_session
from memoranda.errors import Busy
from memoranda.faces.tool import Registry

NOTES = 10_000
MOST_SECONDS = 2.0
MOST_WAIT = 0.5
BATCH = 500
LARGE = 1_000_000
"""Characters of a text that may be as large as a note: it costs time in proportion."""
SIZES = (1, 100, 10_000)
CONFIGURATION = "limits:\n  agent_notes_per_day: 0\n  agent_bytes_per_day: 0\n"
API_PARAMETERS = {
    "/api/changes": ("ref", "agent", "limit", "before"),
    "/api/change/1": ("limit",),
    "/api/note": ("ref",),
    "/api/review": ("kind", "limit"),
    "/api/search": ("q", "project", "category", "tag", "agent", "from", "until", "limit", "offset"),
    "/api/graph": ("note", "q", "depth", "limit", "type", "cluster"),
    "/api/calendar": ("month",),
    "/api/health": (),
}
API_BODIES: dict[str, dict[str, str]] = {
    "/api/note": {"ref": "notes/note-7", "do": "tag", "tags": "a"},
    "/api/undo": {"change": "1"},
    "/api/review": {"key": "a", "choice": "b"},
    "/api/reminder": {"ref": "notes/note-7", "do": "done"},
}
PROMPTS = {
    "memory_guide": (),
    "continue_conversation": ("topic", "timeframe"),
    "search_knowledge_base": ("query", "timeframe"),
}
TEMPLATE = "memory://{project}/{+path}"
LONGEST_ADDRESS = 60_000
"""Characters of an address that a server reads."""
TICKS = os.sysconf("SC_CLK_TCK")
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron"]
PLAIN: dict[str, Any] = {
    "command": "view",
    "path": "/memories/a.md",
    "title": "Amber",
    "content": "amber birch",
    "identifier": "notes/note-7",
    "operation": "append",
    "destination_path": "moved/note.md",
    "url": "memory://notes/note-7",
    "project_name": "tree",
    "project_path": "/nowhere/tree",
    "query": "amber",
    "entities": [{"name": "a", "entityType": "t", "observations": ["o"]}],
    "relations": [{"from": "a", "to": "b", "relationType": "r"}],
    "observations": [{"entityName": "a", "contents": ["o"]}],
    "deletions": [{"entityName": "a", "observations": ["o"]}],
    "entityNames": ["a"],
    "names": ["a"],
    "bank_type": "global",
    "bank_id": "mine",
    "key": "k",
    "value": "v",
    "id": "00000000",
}
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
OPERATIONS = ("append", "prepend", "find_replace", "replace_section")


@dataclass(frozen=True)
class Cost:
    """What a call cost: processor time of its thread, the longest wait of another caller, both in
    seconds, and the beginning of its answer.
    """

    call: str
    seconds: float
    waited: float
    answer: str


class Caller:
    """Another caller, who asks for a note again and again; knows the longest it waited.

    What counts is the `processor_time` of the process asked, so that other programs do not.
    """

    def __init__(self, ask: Callable[[], object], processor_time: Callable[[], float]):
        self._ask_once = ask
        self._processor_time = processor_time
        self._stops = threading.Event()
        self._longest = 0.0
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        while not self._stops.wait(0.005):
            begin = self._processor_time()
            # One that waited too long is refused
            with suppress(Busy):
                self._ask_once()
            self._longest = max(self._longest, self._processor_time() - begin)

    def longest(self) -> float:
        """The longest wait since the last time."""
        longest = self._longest
        self._longest = 0.0
        return longest

    def stop(self) -> None:
        self._stops.set()
        self._thread.join()


def fill(memory: MemorySession, notes: int) -> None:
    """Make notes with links, tags and properties, and as many entities as a tenth of them."""
    for begin in range(0, notes, BATCH):
        memory.write_many(
            [
                Draft(
                    f"{WORDS[n % 8]} {WORDS[n // 8 % 8]} number {n} [[Note {n // 2}]]\n"
                    f"- [fact] {WORDS[n % 7]} #tag{n % 50}\n",
                    title=f"Note {n}",
                    project="notes",
                    tags=[f"tag{n % 50}"],
                )
                for n in range(begin, min(begin + BATCH, notes))
            ]
        )


def texts(most: int) -> Iterator[tuple[str, str]]:
    """Yield texts of at most `most` characters, each after its kind."""
    lines = "".join(f"- [{word}] {word} #tag [[{word}]]\n" for word in WORDS)
    kinds = {
        "one word": "a",
        "words": " ".join(WORDS) + " ",
        "different words": "".join(f"w{n} " for n in range(most // 4)),
        "blanks": " ",
        "lines": "a\n",
        "observations": lines,
        "brackets": "[[",
        "quotes": '"a" ',
        "stars": "* ",
        "search": "(a OR b) NOT c ",
        "folders": "a/",
        "Chinese": "记忆",
        "marks": "e\u0301",
        "headings": "# a\n",
        "nested lists": "".join("  " * min(n, 400) + "- a\n" for n in range(most // 400)),
        "header": "---\n" + "a: b\n" * (most // 5),
    }
    for name, text in kinds.items():
        yield name, (text * (most // max(1, len(text)) + 1))[:most]


def values(name: str, schema: dict[str, Any], sizes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values of an argument in all sizes it may have, with what they are."""
    kinds = schema.get("type") or [choice.get("type") for choice in schema.get("anyOf", [])]
    if "string" in kinds and "array" not in kinds and not schema.get("enum"):
        most = sizes["texts"].get(name, sizes["text"]) or LARGE
        words = dict(texts(most))["words"]
        for size in SIZES:
            yield f"{size} characters", words[: min(size, most)]
        yield from texts(most)
    if "integer" in kinds:
        for number in (*SIZES, 2**53, -(2**53)):
            yield f"{number}", number
    if "array" in kinds:
        for kind, element in elements(name, schema):
            is_objects = isinstance(element(0), dict)
            most = sizes["lists"].get(name, sizes["list"])
            if is_objects:
                most = sizes["list_of_objects"].get(name, most)
            for size in dict.fromkeys((*(size for size in SIZES if size < most), most)):
                yield f"{size} × {kind}", [element(n) for n in range(size)]
    if "object" in kinds:
        yield "keys", {f"k{n}": "v" * 100 for n in range(sizes["object"])}
        yield "lists", {f"k{n}": {"$in": [str(m) for m in range(200)]} for n in range(20)}
        yield "one list", {"tags": {"$in": [f"tag{m}" for m in range(2000)]}}


def elements(name: str, schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What the elements of a list may be: functions of their number."""
    shape = schema.get("items", {})
    if shape.get("type") != "object":
        yield "different", lambda n: f"{name} {n}"
        yield "the same", lambda n: "amber"
        return
    plain = PLAIN.get(name, [{}])[0]
    for key, value in plain.items():
        if isinstance(value, str):
            yield f"different {key}", lambda n, key=key: plain | {key: f"Note {n}"}
        else:
            yield f"many {key}", lambda n, key=key: plain | {key: [f"o {n}", f"p {n}"]}


def calls(registry: Registry, sizes: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, tool and arguments of every call."""
    for tool in registry.tools.values():
        properties = tool.schema.get("properties", {})
        required = {key: PLAIN.get(key, "a") for key in tool.schema.get("required", ())}
        yield f"{tool.name}: plain", tool.name, required
        variants: list[dict[str, Any]] = [{}]
        if "command" in properties:
            command_arguments = {"file_text": "a", "old_str": "a", "new_str": "b", "insert_line": 0}
            more = command_arguments | {"insert_text": "a", "path": "/memories/a.md"}
            more |= {"old_path": "/memories/a.md", "new_path": "/memories/b.md"}
            variants = [more | {"command": command} for command in COMMANDS]
        elif "operation" in properties and "find_text" in properties:
            command_arguments = {"find_text": "amber", "section": "Part"}
            variants = [command_arguments | {"operation": operation} for operation in OPERATIONS]
        for name, schema in properties.items():
            for variant in variants:
                for kind, value in values(name, schema, sizes):
                    action = variant.get("command") or variant.get("operation") or ""
                    arguments = required | variant | {name: value}
                    yield f"{tool.name} {action} {name}: {kind}", tool.name, arguments


def measure(memory: MemorySession, *, only: str = "") -> Iterator[Cost]:
    """What every call costs."""
    sizes_file = Path(faces.__file__).parent / "texts/sizes.json"
    sizes = json.loads(sizes_file.read_text("utf-8"))
    alice = memory.as_caller("alice", "mcp", client="sizes 1")
    bob = memory.as_caller("other", "mcp")
    other_caller = Caller(lambda: bob.read("notes/note-3"), time.process_time)
    for toolset in ("all", "agent"):
        registry = faces.registry([toolset], memory.settings)
        for name, tool, arguments in calls(registry, sizes):
            if only and not name.startswith(only):
                continue
            other_caller.longest()
            begin = time.thread_time()
            reply = registry.call(alice, tool, arguments)
            seconds = time.thread_time() - begin
            yield Cost(name, seconds, other_caller.longest(), (reply.text or "")[:100])
    other_caller.stop()


@contextmanager
def serving(home: Path) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """A server of a home: its process, its port, and a token of the owner's."""
    command = [sys.executable, "-m", "memoranda", "--home", str(home)]
    environment = os.environ | {"HOME": str(home.parent), "MEMORY_HOME": str(home)}
    add = [*command, "token", "add", "sizes", "--scope", "admin", "--rate", "0", "--json"]
    added = subprocess.run(add, env=environment, capture_output=True, text=True, check=True)
    serve = [*command, "serve", "--http", "127.0.0.1:0", "--interval", "1h", "--log", os.devnull]
    process = subprocess.Popen(serve, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "http://127.0.0.1" in line)
        port = int(re.findall(r"http://127\.0\.0\.1:(\d+)", line)[0])
        yield process, port, json.loads(added.stdout)["secret"]
    finally:
        process.terminate()
        process.communicate()


def api_calls() -> Iterator[tuple[str, str, str, str]]:
    """Name, method, address and body of every call of `/api`."""
    for path, parameters in API_PARAMETERS.items():
        yield path, "GET", path, ""
        for parameter in parameters:
            for size in SIZES:
                yield f"{path} {parameter}: {size}", "GET", f"{path}?{parameter}={size}", ""
            for kind, text in texts(LONGEST_ADDRESS // 3):
                address = f"{path}?{urlencode({parameter: text})}"
                yield f"{path} {parameter}: {kind}", "GET", address[:LONGEST_ADDRESS], ""
    for path, fields in API_BODIES.items():
        for field in fields:
            for kind, text in texts(LARGE):
                body = json.dumps(fields | {field: text})
                yield f"{path} POST {field}: {kind}", "POST", path, body


def mcp_calls() -> Iterator[tuple[str, str, str, str]]:
    """Name, method, address and body of every request of MCP that is no call of a tool."""
    for kind, text in (("nothing", ""), *texts(LARGE)):
        requests: list[tuple[str, dict[str, Any]]] = [
            ("resources/read", {"uri": f"memory://notes/{quote(text)}"}),
            ("resources/read", {"uri": f"memory://{quote(text)}"}),
        ]
        for prompt, names in PROMPTS.items():
            for name in names:
                arguments = dict.fromkeys(names, "amber") | {name: text}
                requests.append(("prompts/get", {"name": prompt, "arguments": arguments}))
        for variable in ("project", "path"):
            completion = {
                "ref": {"type": "ref/resource", "uri": TEMPLATE},
                "argument": {"name": variable, "value": text},
                "context": {"arguments": {"project": "notes"}},
            }
            requests.append(("completion/complete", completion))
        for method, params in requests:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            name = params.get("name", "")
            yield f"/mcp {method} {name}: {kind}", "POST", "/mcp", json.dumps(body)


def measure_api(home: Path, *, only: str = "") -> Iterator[Cost]:
    """What every call of `/api` costs the server, and every request of MCP beside the tools."""
    with serving(home) as (process, port, token):
        stat = Path(f"/proc/{process.pid}/stat")

        def processor_time() -> float:
            fields = stat.read_text().rpartition(") ")[2].split()
            return (int(fields[11]) + int(fields[12])) / TICKS

        def ask(method: str, address: str, body: str = "") -> str:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            headers = {
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
            }
            try:
                connection.request(method, address, body.encode(), headers)
                answer = connection.getresponse()
                return f"{answer.status} {answer.read(100).decode('utf-8', 'replace')}"
            except (OSError, http.client.HTTPException) as error:
                return repr(error)
            finally:
                connection.close()

        address_of_note = f"/api/note?ref={quote('notes/note-3')}"
        ask("GET", address_of_note)
        other_caller = Caller(lambda: ask("GET", address_of_note), processor_time)
        for name, method, address, body in chain(api_calls(), mcp_calls()):
            if only and not name.startswith(only):
                continue
            other_caller.longest()
            begin = processor_time()
            answer = ask(method, address, body)
            yield Cost(name, processor_time() - begin, other_caller.longest(), answer)
        other_caller.stop()


def main(options: argparse.Namespace) -> int:
    """Print what is above the limits. Returns the status of the process."""
    slow = 0
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        home.mkdir(mode=0o700)
        (home / "config.yaml").write_text(CONFIGURATION, "utf-8")
        with open_session(home, watch=True) as memory:
            fill(memory, options.notes)
            if not options.only.startswith("/"):
                for cost in measure(memory, only=options.only):
                    slow += _show(cost, options)
                    number += 1
        if not options.only or options.only.startswith("/"):
            for cost in measure_api(home, only=options.only):
                slow += _show(cost, options)
                number += 1
    print(f"{number} calls, {slow} above the limits")
    return 1 if slow else 0


def _show(cost: Cost, options: argparse.Namespace) -> bool:
    """Print a call if it is above a limit or all are asked for; return whether it is above one."""
    is_slow = cost.seconds > options.seconds or cost.waited > options.wait
    if is_slow or options.all:
        answer = " ".join(cost.answer.split())
        row = f"{cost.seconds:6.2f} s, others {cost.waited:.2f} s  {cost.call}  {answer}"
        print(row, flush=True)
    return is_slow


def options_of(arguments: list[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description="What arguments of every size cost.")
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS)
    parser.add_argument("--wait", type=float, default=MOST_WAIT)
    parser.add_argument("--large", type=int, default=LARGE)
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    chosen = options_of(sys.argv[1:])
    LARGE = chosen.large
    sys.exit(main(chosen))
