#!/usr/bin/env python3
"""What the largest arguments cost: every tool with each of its arguments as large as it may be.

    python tools/try_sizes.py [NOTES [SECONDS]]     [10000, 2]

Makes a home of so many notes, and calls every tool of every toolset for each argument in several
forms: one long word, many words, many lines, signs of search expressions, brackets, the largest
list, the largest object. Printed are the calls that take more processor time than SECONDS, and those
that keep others waiting: a second thread asks for a note all the while. Ends with 1 where there are
any.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda import Draft, faces
from memoranda.engine import MemorySession, open_session
from memoranda.errors import Busy
from memoranda.faces.tool import Registry

NOTES = 10_000
MOST_SECONDS = 2.0
MOST_WAIT = 0.5
BATCH = 500
LARGE = 200_000
"""Characters of a text that may be as large as a note: it costs time in proportion."""
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

    What counts is the processor time of this process, so that other programs do not.
    """

    def __init__(self, memory: MemorySession):
        self._memory = memory.as_caller("other", "mcp")
        self._stops = threading.Event()
        self._longest = 0.0
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        while not self._stops.wait(0.005):
            begin = time.process_time()
            # One that waited too long is refused
            with suppress(Busy):
                self._memory.read("notes/note-3")
            self._longest = max(self._longest, time.process_time() - begin)

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
    """Texts of so many characters, with what they are."""
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
    """The largest values an argument may have, with what they are."""
    kinds = schema.get("type") or [each.get("type") for each in schema.get("anyOf", [])]
    if "string" in kinds and "array" not in kinds and not schema.get("enum"):
        most = sizes["texts"].get(name, sizes["text"]) or LARGE
        yield from texts(most)
    if "integer" in kinds:
        yield "largest", 2**53
        yield "smallest", -(2**53)
    if "array" in kinds:
        number = sizes["lists"].get(name, sizes["list"])
        for kind, element in elements(name, schema):
            yield kind, [element(n) for n in range(number)]
    if "object" in kinds:
        number = sizes["object"]
        yield "keys", {f"k{n}": "v" * 100 for n in range(number)}
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
        variants: list[dict[str, Any]] = [{}]
        if "command" in properties:
            own = {"file_text": "a", "old_str": "a", "new_str": "b", "insert_line": 0}
            more = own | {"insert_text": "a", "path": "/memories/a.md"}
            more |= {"old_path": "/memories/a.md", "new_path": "/memories/b.md"}
            variants = [more | {"command": command} for command in COMMANDS]
        elif "operation" in properties and "find_text" in properties:
            own = {"find_text": "amber", "section": "Part"}
            variants = [own | {"operation": operation} for operation in OPERATIONS]
        for name, schema in properties.items():
            for variant in variants:
                for kind, value in values(name, schema, sizes):
                    shown = variant.get("command") or variant.get("operation") or ""
                    arguments = required | variant | {name: value}
                    yield f"{tool.name} {shown} {name}: {kind}", tool.name, arguments


def measure(memory: MemorySession, *, only: str = "") -> Iterator[Cost]:
    """What every call costs."""
    sizes_file = Path(faces.__file__).parent / "texts/sizes.json"
    sizes = json.loads(sizes_file.read_text("utf-8"))
    alice = memory.as_caller("alice", "mcp", client="sizes 1")
    other = Caller(memory)
    for toolset in ("all", "agent"):
        registry = faces.registry([toolset], memory.settings)
        for name, tool, arguments in calls(registry, sizes):
            if only and not name.startswith(only):
                continue
            other.longest()
            begin = time.thread_time()
            reply = registry.call(alice, tool, arguments)
            seconds = time.thread_time() - begin
            yield Cost(name, seconds, other.longest(), (reply.text or "")[:100])
    other.stop()


def main(notes: int = NOTES, most: float = MOST_SECONDS, only: str = "") -> int:
    slow = 0
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "home")
        place.mkdir()
        (place / "config.yaml").write_text(
            "limits:\n  agent_notes_per_day: 0\n  agent_bytes_per_day: 0\n", "utf-8"
        )
        with open_session(place, watch=True) as memory:
            fill(memory, notes)
            for cost in measure(memory, only=only):
                number += 1
                if cost.seconds > most or cost.waited > MOST_WAIT:
                    slow += 1
                    answer = " ".join(cost.answer.split())
                    print(
                        f"{cost.seconds:6.2f} s, others {cost.waited:.2f} s  {cost.call}  {answer}"
                    )
    print(f"{number} calls, {slow} too slow")
    return 1 if slow else 0


if __name__ == "__main__":
    numbers = [float(each) for each in sys.argv[1:3]]
    name = sys.argv[3] if len(sys.argv) > 3 else ""
    sys.exit(main(int(numbers[0]) if numbers else NOTES, *numbers[1:], only=name))
