#!/usr/bin/env python3
"""What arguments of every size cost: every tool with each of its arguments, every address of `/api`.

    python tools/try_sizes.py [--notes 10000] [--seconds 2] [--wait 0.5] [--large 1000000]
                              [--only PREFIX] [--home DIR] [--all]

Makes a home of `--notes` notes, and calls every tool of every toolset for each argument with 1, 100
and 10,000 characters or elements and with the largest it may have, in several forms: one long word,
many words, many lines, signs of search expressions, brackets, lists, objects. Each call gets another
note or entity that exists, so that it does its work and is not refused. Then:

- `large`: the tools that change, read and move a note, at notes of 5 and 10 MB.
- `editor`: another program saves a file of 5 and 50 MB, and a call looks for it.
- `/api`, `/mcp`: a server of the home is asked at every address of `/api`, and for every prompt,
  resource and completion, and gets bodies that are deep, wide and long.
- `socket`: its socket gets such lines.
- `stdin`: commands that read standard input, `memory agent` with batches and prompts among them.

`--only` runs what begins with PREFIX: the name of a tool or a part of its call, or a name above.
With `--home`, a copy of the home that is there is used, and it is made if it is missing. So a long
run can be made in parts.

Printed are the calls that take more processor time than SECONDS, and those that keep others waiting
for more than WAIT: a second caller asks for a note all the while, and what counts is the processor
time the process spent meanwhile. A call that ends in an internal error is printed, too. With --all
every call is printed. Ends with 1 where one is above a limit or failed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from memoranda import Draft, Query, faces
from memoranda.engine import MemorySession, open_session
from memoranda.errors import Busy, internal_sentence
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
FAILURES = ("inside memoranda", "inside the server", "Traceback")
"""What the answer of a call has that ended in an internal error."""
TICKS = os.sysconf("SC_CLK_TCK")
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron"]
ENTITIES = 6_000
FILES = 600
MEMORIES = 200
LARGE_NOTES = {"5 MB": 5_000_000, "10 MB": 10_000_000}
EDITED_FILES = {"5 MB": 5_000_000, "50 MB": 50_000_000}
# In these texts, {n} is the number of a call among those of its tool, and {id} the id of a memory.
PLAIN: dict[str, Any] = {
    "title": "Amber {n}",
    "content": "amber birch",
    "identifier": "notes/note-{n}",
    "operation": "append",
    "destination_path": "moved/note-{n}.md",
    "url": "memory://notes/note-{n}",
    "project_name": "tree",
    "project_path": "/nowhere/tree",
    "query": "amber",
    "entities": [{"name": "a", "entityType": "t", "observations": ["o"]}],
    "relations": [{"from": "Entity 1", "to": "Entity 2", "relationType": "r"}],
    "observations": [{"entityName": "Entity 1", "contents": ["o {n}"]}],
    "deletions": [{"entityName": "Entity 1", "observations": ["o"]}],
    "entityNames": ["Entity {n}"],
    "names": ["Entity {n}"],
    "bank_type": "global",
    "bank_id": "mine",
    "key": "k {n}",
    "value": "v",
    "id": "{id}",
}
_EDITS = ("append", "prepend", "find_replace")
_SECTION_EDITS = ("replace_section", "insert_before_section", "insert_after_section")
ACTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "memory": {
        "view": {"path": "/memories/file-{n}.md", "view_range": [1, 2]},
        "create": {"path": "/memories/new-{n}.md", "file_text": "a"},
        "str_replace": {"path": "/memories/file-{n}.md", "old_str": "amber", "new_str": "b"},
        "insert": {"path": "/memories/file-{n}.md", "insert_line": 1, "insert_text": "a"},
        "delete": {"path": "/memories/file-{n}.md"},
        "rename": {"old_path": "/memories/file-{n}.md", "new_path": "/memories/moved-{n}.md"},
    },
    "edit_note": {
        **{operation: {"find_text": "amber"} for operation in _EDITS},
        **{operation: {"section": "Part"} for operation in _SECTION_EDITS},
    },
    "update": {
        "append": {"target_file": "doc/design-{n}.md"},
        "replace": {"target_file": "doc/design-{n}.md"},
        "insert": {"target_file": "doc/design-{n}.md", "position": "Design"},
    },
}
"""The arguments that a command or an operation of a tool takes, by tool and command."""
ACTION_KEYS = ("command", "operation")
NEW_NAMES = ("entities",)
"""Lists whose elements must have names that no entity has."""
LISTS: dict[str, Callable[[int], list[str]]] = {
    "short": lambda n: [f"o {n}", f"p {n}"],
    "one long list in": lambda n: [f"o {number}" for number in range(LONGEST_LIST)],
}
"""Lists in an element of a list, by kind (`lists` has more)."""
LONGEST_LIST = 10_000
REPEATED_PARTS = {
    "one word": "a",
    "words": " ".join(WORDS) + " ",
    "blanks": " ",
    "lines": "a\n",
    "observations": "".join(f"- [{word}] {word} #tag [[{word}]]\n" for word in WORDS),
    "brackets": "[[",
    "quotes": '"a" ',
    "stars": "* ",
    "search": "(a OR b) NOT c ",
    "folders": "a/",
    "Chinese": "记忆",
    "marks": "e\u0301",
    "headings": "# a\n",
    "digits": "7",
    "combining marks": "\u0301",
    "one Chinese letter": "记",
    "number signs": "#",
    "tasks": "- [x]",
    "lines of tasks": "- [x] a\n",
    "backticks": "`",
    "line breaks": "\n",
    "addresses": "https://a.b/c?d=e ",
    "emoji": "\U0001f600",
    "table": "| a | b |\n",
}
"""What a text of a kind repeats until it has its length."""
NUMBERED_PARTS = {
    "different words": ("w{n} ", 4),
    "different links": ("[[n{n}]] ", 9),
    "different tags": ("#t{n} ", 7),
    "different headings": ("## h{n}\n", 8),
    "different observations": ("- [c{n}] w{n} #t{n}\n", 16),
    "different relations": ("- r [[n{n}]]\n", 12),
    "parts of names": ("getUser{n} ", 11),
}
"""The parts of a text whose parts differ, by kind, each with its length."""


@dataclass(frozen=True)
class Cost:
    """What a call cost: processor time of its thread, the longest wait of another caller, both in
    seconds, and the beginning of its answer.
    """

    call: str
    seconds: float
    waited: float
    answer: str

    @property
    def is_failure(self) -> bool:
        """Whether the call ended in an internal error."""
        return any(words in self.answer for words in FAILURES)


class Caller:
    """Another caller, who asks for a note again and again; knows the longest it waited.

    What counts is the `processor_time` of the process asked, so that other programs do not.
    """

    def __init__(self, ask: Callable[[], object], processor_time: Callable[[], float]):
        self._ask_once = ask
        self._processor_time = processor_time
        self._stops = threading.Event()
        # Held while it asks
        self._asking = threading.Lock()
        self._longest = 0.0
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        while not self._stops.wait(0.005):
            with self._asking:
                begin = self._processor_time()
                until_answered(self._ask_once)
                seconds = self._processor_time() - begin
                self._longest = max(self._longest, seconds)

    def longest(self) -> float:
        """The longest wait since the last time. One that goes on is waited for."""
        with self._asking:
            longest = self._longest
            self._longest = 0.0
        return longest

    def stop(self) -> None:
        self._stops.set()
        self._thread.join()


def until_answered(call: Callable[[], Any]) -> Any:
    """Return what a call returns. One that waited too long by the clock is refused, and repeated: on
    a busy machine nearly every long wait ends so.
    """
    while True:
        with suppress(Busy):
            return call()


def fill(memory: MemorySession, notes: int) -> None:
    """Make notes with links, tags and properties, and files, memories and entities beside them."""
    for begin in range(0, notes, BATCH):
        numbers = range(begin, min(begin + BATCH, notes))
        memory.write_many([_note(number) for number in numbers])
    share = min(1.0, notes / NOTES)
    files = Path(memory.engine.layout.root, "memories")
    files.mkdir(mode=0o700, exist_ok=True)
    for number in range(int(FILES * share)):
        Path(files, f"file-{number}.md").write_text(f"amber {number}\n", "utf-8")
    memory.write_many(
        [Draft(f"amber {number}", category="knowledge") for number in range(int(MEMORIES * share))]
    )
    entities = [
        {"name": f"Entity {number}", "entityType": "t", "observations": ["o", f"p {number}"]}
        for number in range(int(ENTITIES * share))
    ]
    graph = faces.registry(["graph"], memory.settings)
    for begin in range(0, len(entities), BATCH):
        arguments = {"entities": entities[begin : begin + BATCH]}
        graph.call(memory, "memory_create_entities", arguments)


def _note(number: int) -> Draft:
    """A note of the home."""
    first_word = WORDS[number % 8]
    second_word = WORDS[number // 8 % 8]
    words = f"{first_word} {second_word}"
    tag = f"tag{number % 50}"
    first_line = f"{words} number {number} [[Note {number // 2}]]\n"
    fact = f"- [fact] {WORDS[number % 7]} #{tag}\n"
    return Draft(
        f"{first_line}{fact}\n## Part\n\namber\n",
        title=f"Note {number}",
        project="notes",
        tags=[tag],
    )


def texts(most: int) -> Iterator[tuple[str, str]]:
    """Yield texts of at most `most` characters, each after its kind."""
    for name, part in (REPEATED_PARTS | different_parts(most)).items():
        times = most // max(1, len(part)) + 1
        text = part * times
        yield name, text[:most]


@cache
def different_parts(most: int) -> dict[str, str]:
    """Texts of about `most` characters whose parts differ, by kind."""
    return {
        **{kind: numbered_parts(kind, most) for kind in NUMBERED_PARTS},
        "nested lists": nested_lists(most // 400),
        "header": "---\n" + "a: b\n" * (most // 5),
        "different Chinese": "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(most)),
        "anchors": anchors(most // 30),
        "no blanks": "".join(chr(48 + (n * n * 31 + n * 7) % 74) for n in range(most)),
    }


def numbered_parts(kind: str, most: int) -> str:
    """A text of about `most` characters, each part with a number of its own."""
    part, length = NUMBERED_PARTS[kind]
    number = most // length
    parts = [part.format(n=n) for n in range(number)]
    return "".join(parts)


def nested_lists(number: int) -> str:
    """A list whose items are each one level below the item before, 400 levels at most."""
    lines = []
    for n in range(number):
        indent = "  " * min(n, 400)
        lines.append(f"{indent}- a\n")
    return "".join(lines)


def anchors(number: int) -> str:
    """A header of YAML whose values would double in size with each line."""
    lines = ["---", "k0: &a0 [x]"]
    for n in range(1, number):
        before = f"*a{n - 1}"
        lines.append(f"k{n}: &a{n} [{before}, {before}]")
    lines.append("---\n")
    return "\n".join(lines)


def values(
    name: str, schema: dict[str, Any], sizes: dict[str, Any], call: int
) -> Iterator[tuple[str, Any]]:
    """Values of an argument in all sizes it may have, with what they are.

    call: the number of the call that gets the first of them.
    """
    choices = schema.get("anyOf", [])
    kinds = schema.get("type") or [choice.get("type") for choice in choices]
    is_text = "string" in kinds and "array" not in kinds
    if is_text and not schema.get("enum"):
        most = sizes["texts"].get(name, sizes["text"])
        yield from strings(most or LARGE)
    if "integer" in kinds:
        for number in (*SIZES, 0, 2**53, -(2**53)):
            yield f"{number}", number
    if "array" in kinds:
        yield from arrays(name, schema, sizes, call)
    if "object" in kinds:
        yield from objects(sizes["object"])


def strings(most: int) -> Iterator[tuple[str, str]]:
    """Texts of up to `most` characters."""
    words = dict(texts(most))["words"]
    for size in SIZES:
        yield f"{size} characters", words[: min(size, most)]
    yield from texts(most)


def arrays(
    name: str, schema: dict[str, Any], sizes: dict[str, Any], call: int
) -> Iterator[tuple[str, list[Any]]]:
    """Lists of every kind of element that the argument takes."""
    most_texts = sizes["lists"].get(name, sizes["list"])
    most_objects = sizes["list_of_objects"].get(name, most_texts)
    for kind, element in elements(name, schema, call):
        most = most_texts
        if isinstance(element(0), dict):
            # Several of the longest would be more than a call may have.
            most = 1 if kind.startswith("one ") else most_objects
        smaller = [size for size in SIZES if size < most]
        for size in (*smaller, most):
            yield f"{size} × {kind}", [element(n) for n in range(size)]


def objects(keys: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects with many keys and with long lists."""
    value = "v" * 100
    yield "keys", {f"k{n}": value for n in range(keys)}
    numbers = [str(m) for m in range(200)]
    any_number = {"$in": numbers}
    yield "lists", {f"k{n}": any_number for n in range(20)}
    tags = [f"tag{m}" for m in range(2000)]
    any_tag = {"$in": tags}
    yield "one list", {"tags": any_tag}


def elements(name: str, schema: dict[str, Any], call: int) -> Iterator[tuple[str, Any]]:
    """What the elements of a list may be: functions of their number.

    call: the number of the call that gets the first of them.
    """
    shape = schema.get("items", {})
    if shape.get("type") != "object":
        title = "Entity" if name in ("names", "entityNames") else name
        yield "different", lambda n: f"{title} {n}"
        yield "the same", lambda n: "amber"
        return
    plain = PLAIN.get(name, [{}])[0]
    is_new = name in NEW_NAMES
    for key, value in plain.items():
        if isinstance(value, str):
            begin = f"New {call} " if is_new else "Entity "
            yield f"different {key}", partial(with_different_text, plain, key, begin)
            continue
        for entity, (kind, list_of) in enumerate(lists().items(), 100):
            # An entity that is there already would be left as it is. And each long text gets an
            # entity of its own, so that none grows with each call.
            begin = f"{kind} {call} " if is_new else ""
            shape_of_kind = plain if is_new else plain | {"entityName": f"Entity {entity}"}
            yield f"{kind} {key}", partial(with_list, shape_of_kind, key, list_of, begin)


def lists() -> dict[str, Callable[[int], list[str]]]:
    """Lists in an element of a list, by kind: `LISTS`, and lists of one text as long as a note."""
    kinds = [kind for kind, _ in texts(1)]
    return LISTS | {f"one text of {kind} in": partial(list_of_one, kind) for kind in kinds}


def list_of_one(kind: str, _: int) -> list[str]:
    """A list of one text of this kind, as long as a note, in one line."""
    return [dict(texts(LARGE))[kind].replace("\n", " ")]


def with_different_text(plain: dict[str, Any], key: str, begin: str, number: int) -> dict[str, Any]:
    """An element like `plain`, with a text of this number under `key`."""
    return plain | {key: f"{begin}{number}"}


def with_list(
    plain: dict[str, Any], key: str, list_of: Callable[[int], Any], begin: str, number: int
) -> dict[str, Any]:
    """An element like `plain`, with a list of this number under `key`.

    begin: how the name of a new entity begins; "" leaves the name as it is.
    """
    element = plain | {key: list_of(number)}
    if begin:
        element["name"] = f"{begin}{number}"
    return element


def calls(registry: Registry, sizes: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, tool and arguments of every call."""
    for tool in registry.tools.values():
        properties = tool.schema.get("properties", {})
        required = {key: PLAIN.get(key, "a") for key in tool.schema.get("required", ())}
        number = 0
        actions = ACTIONS.get(tool.name, {"": {}})
        of_any_action = set(chain.from_iterable(actions.values()))
        for action, arguments_of_action in actions.items():
            plain = required | arguments_of_action
            plain |= {key: action for key in ACTION_KEYS if action and key in properties}
            yield f"{tool.name} {action}: plain", tool.name, numbered(plain, number)
            number += 1
            for name, schema in properties.items():
                # An argument of another command does nothing.
                if name in of_any_action and name not in arguments_of_action:
                    continue
                for kind, value in values(name, schema, sizes, number):
                    arguments = numbered(plain, number) | {name: value}
                    yield f"{tool.name} {action} {name}: {kind}", tool.name, arguments
                    number += 1


def numbered(arguments: Any, number: int) -> Any:
    """Arguments with a number for {n} in their texts, at any depth."""
    if isinstance(arguments, str):
        return arguments.replace("{n}", str(number))
    if isinstance(arguments, list):
        return [numbered(element, number) for element in arguments]
    if isinstance(arguments, dict):
        return {key: numbered(value, number) for key, value in arguments.items()}
    return arguments


def large_calls() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, tool and arguments of the calls at large notes. The last ones move and delete them."""
    for size in LARGE_NOTES:
        name = size.replace(" ", "-").casefold()
        note = {"identifier": f"notes/large-{name}"}
        file = {"path": f"/memories/large-{name}.md"}
        for operation, arguments in ACTIONS["edit_note"].items():
            plain = note | arguments | {"operation": operation, "content": "one line"}
            if operation == "find_replace":
                plain["find_text"] = "only here"
            yield f"large {size}: edit_note {operation}", "edit_note", plain
        yield f"large {size}: read_note", "read_note", note
        yield (
            f"large {size}: build_context",
            "build_context",
            {"url": f"memory://{note['identifier']}"},
        )
        yield f"large {size}: search_notes", "search_notes", {"query": "only here"}
        moved = {"destination_path": f"moved/large-{name}.md"}
        yield f"large {size}: move_note", "move_note", note | moved
        yield (
            f"large {size}: delete_note",
            "delete_note",
            {"identifier": f"notes/moved/large-{name}"},
        )
        for command in ("view", "str_replace", "insert"):
            plain = ACTIONS["memory"][command] | {"command": command} | file
            if command == "str_replace":
                plain["old_str"] = "only here"
            yield f"large {size}: memory {command}", "memory", plain
        new_path = {"old_path": file["path"], "new_path": f"/memories/moved-{name}.md"}
        yield f"large {size}: memory rename", "memory", {"command": "rename"} | new_path
        moved_file = {"path": new_path["new_path"]}
        yield f"large {size}: memory delete", "memory", {"command": "delete"} | moved_file


def prose(characters: int) -> str:
    """A text as people write them: lines of words, links, observations and headings, in which some
    words are new in each line, and the words `only here` in the middle.
    """
    lines: list[str] = []
    length = 0
    number = 0
    while length < characters:
        words = " ".join(WORDS[(number * k) % 8] for k in range(1, 12))
        line = f"{words} part{number % 30_000} and [[Note {number % 500}]].\n"
        if number % 20 == 0:
            line = f"\n## Part {number // 20}\n\n- [fact] {words} #tag{number % 50}\n"
        lines.append(line)
        length += len(line)
        number += 1
    lines.insert(len(lines) // 2, "only here\n")
    return "".join(["## Part\n", *lines])


def measure(memory: MemorySession, *, only: str = "") -> Iterator[Cost]:
    """What every call costs."""
    sizes_file = Path(faces.__file__).parent / "texts/sizes.json"
    sizes = json.loads(sizes_file.read_text("utf-8"))
    alice = memory.as_caller("alice", "mcp", client="sizes 1")
    listed = memory.list(Query(projects=("categories",)), limit=MEMORIES)
    memories = [note.id for note in listed.notes]
    with calling(memory) as other_caller:
        for toolset in ("all", "agent"):
            registry = faces.registry([toolset], memory.settings)
            for name, tool, arguments in calls(registry, sizes):
                if not name.startswith(only):
                    continue
                if arguments.get("id") == PLAIN["id"] and memories:
                    arguments["id"] = memories.pop()
                yield _cost(name, other_caller, partial(registry.call, alice, tool, arguments))


def measure_large(memory: MemorySession, *, only: str = "") -> Iterator[Cost]:
    """What calls at large notes cost, and those that find a large file of another program."""
    alice = memory.as_caller("alice", "mcp", client="sizes 1")
    registry = faces.registry(["all"], memory.settings)
    root = Path(memory.engine.layout.root)
    with calling(memory) as other_caller, calling(memory) as third_caller:
        for size, characters in EDITED_FILES.items():
            file = root / "notes" / "edited.md"
            text = prose(characters)
            for version in ("new", "changed"):
                name = f"editor {size}, {version}"
                if name.startswith(only):
                    save = partial(file.write_text, f"{version}\n{text}", "utf-8")
                    yield _cost_of_a_save(name, memory, (other_caller, third_caller), save)
            file.unlink(missing_ok=True)
        for size, characters in LARGE_NOTES.items():
            if not any(name.startswith(only) for name, _, _ in large_calls() if size in name):
                continue
            name = size.replace(" ", "-").casefold()
            for folder in ("notes", "memories"):
                (root / folder / f"large-{name}.md").write_text(prose(characters), "utf-8")
        until_answered(partial(memory.read, "notes/note-3"))
        for name, tool, arguments in large_calls():
            if name.startswith(only):
                yield _cost(name, other_caller, partial(registry.call, alice, tool, arguments))


def _cost_of_a_save(
    name: str, memory: MemorySession, callers: Sequence[Caller], save: Callable[[], object]
) -> Cost:
    """What the process does for a file that another program saves, and how long a caller waits who
    is not the one that found the file.
    """
    for caller in callers:
        caller.longest()
    begin = time.process_time()
    save()
    note = until_answered(partial(memory.read, "notes/note-3"))
    # Only one of them can be the one that found it.
    waited = min(caller.longest() for caller in callers)
    seconds = time.process_time() - begin
    return Cost(name, seconds, waited, note.title)


@contextmanager
def calling(memory: MemorySession) -> Iterator[Caller]:
    """Let another caller ask for a note while the block runs."""
    bob = memory.as_caller("other", "mcp")
    other_caller = Caller(lambda: bob.read("notes/note-3"), time.process_time)
    try:
        yield other_caller
    finally:
        other_caller.stop()


def _cost(name: str, other_caller: Caller, call: Callable[[], Any]) -> Cost:
    """What a call costs this thread."""
    other_caller.longest()
    begin = time.thread_time()
    answer = answer_of(call)
    seconds = time.thread_time() - begin
    waited = other_caller.longest()
    return Cost(name, seconds, waited, answer)


def answer_of(call: Callable[[], Any]) -> str:
    """Return the beginning of a tool's reply, or the sentence about an error that it did not expect."""
    try:
        reply = call()
    except Exception as error:
        return internal_sentence(error)
    return (reply.text or "")[:100]


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
        for kind, body in bodies():
            yield f"{path} POST body: {kind}", "POST", path, body
        for field in fields:
            for kind, text in texts(LARGE):
                body = json.dumps(fields | {field: text})
                yield f"{path} POST {field}: {kind}", "POST", path, body


def mcp_calls() -> Iterator[tuple[str, str, str, str]]:
    """Name, method, address and body of every request of MCP that is no call of a tool, and bodies
    of calls.
    """
    for kind, body in bodies():
        yield f"/mcp body: {kind}", "POST", "/mcp", body
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


def bodies() -> Iterator[tuple[str, str]]:
    """Bodies of requests that are deep, wide, long and many, with what they are."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    search = {"name": "search_notes", "arguments": {"query": "amber"}}

    def with_arguments(arguments: Any) -> str:
        return json.dumps(call | {"params": {"name": "search_notes", "arguments": arguments}})

    half = LARGE // 2
    opening = "[" * half
    closing = "]" * half
    deep = opening + closing
    sixth = LARGE // 6
    batch = [call | {"params": search}] * (LARGE // 120)
    yield "deep lists", deep
    yield "deep arguments", with_arguments({"tags": 0}).replace(": 0}", f": {deep}}}")
    yield "deep objects", '{"a":' * sixth + "1" + "}" * sixth
    yield "wide object", with_arguments({f"k{n}": n for n in range(LARGE // 15)})
    yield "same keys", "{" + '"a": 1, ' * (LARGE // 8) + '"a": 1}'
    yield "long number", with_arguments({"page": 0}).replace(": 0}", f": {'9' * LARGE}}}")
    yield "long list", with_arguments({"tags": [n % 10 for n in range(LARGE // 3)]})
    yield "escapes", with_arguments({"query": "\u8bb0" * sixth})
    yield "lone surrogates", with_arguments({"query": "\ud800" * sixth})
    yield "long name", json.dumps(call | {"params": search | {"name": "a" * LARGE}})
    yield "long method", json.dumps(call | {"method": "a" * LARGE})
    yield "long id", json.dumps(call | {"id": "a" * LARGE, "params": search})
    yield "batch", json.dumps(batch)


def measure_socket(home: Path, *, only: str = "") -> Iterator[Cost]:
    """What lines cost a server on its socket."""
    with serving(home) as (process, _, _):

        def ask(line: str) -> str:
            with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
                connection.settimeout(120)
                connection.connect(str(home / "memory.sock"))
                connection.sendall(line.encode("utf-8", "surrogatepass") + b"\n")
                return connection.recv(100).decode("utf-8", "replace")
            return "no answer"

        processor_time = partial(_processor_time, process.pid)
        read = json.dumps({"method": "read_note", "params": {"identifier": "notes/note-3"}})
        ask(read)
        other_caller = Caller(lambda: ask(read), processor_time)
        content = {"method": "write_note", "agent": "alice"}
        lines = [
            *bodies(),
            *(
                (kind, json.dumps(content | {"params": {"title": kind, "content": text}}))
                for kind, text in texts(LARGE // 8)
            ),
        ]
        for kind, line in lines:
            name = f"socket {kind}"
            if not name.startswith(only):
                continue
            other_caller.longest()
            begin = processor_time()
            answer = ask(line)
            yield Cost(name, processor_time() - begin, other_caller.longest(), answer)
        other_caller.stop()


def measure_stdin(home: Path, *, only: str = "") -> Iterator[Cost]:
    """What commands cost that read standard input. Nobody else waits for their process."""
    command = [sys.executable, "-m", "memoranda", "--home", str(home)]
    environment = os.environ | {"HOME": str(home.parent), "MEMORY_HOME": str(home)}
    for name, arguments, line in stdin_calls():
        if not name.startswith(only):
            continue
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [*command, *arguments.split()],
            input=line.encode("utf-8", "surrogatepass"),
            env=environment,
            capture_output=True,
        )
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
        answer = (done.stdout or done.stderr).decode("utf-8", "replace")[:200]
        yield Cost(name, seconds, 0.0, answer)


def stdin_calls() -> Iterator[tuple[str, str, str]]:
    """Name, arguments and standard input of commands."""
    for kind, text in texts(LARGE):
        entity = {"type": "entity", "name": kind, "entityType": "t", "observations": [text]}
        yield f"stdin write -: {kind}", "write -", text
        search = json.dumps({"query": text[:10_000]})
        yield f"stdin call search_notes -: {kind}", "call search_notes -", search
        prompt = json.dumps({"prompt": text, "session_id": "s"})
        yield f"stdin hook prompt: {kind}", "hook prompt claude-code", prompt
        yield f"stdin import: {kind}", "import", json.dumps({"content": text, "title": kind})
        yield f"stdin graph import: {kind}", "graph import -", json.dumps(entity)
        for name, batch in batches(text).items():
            yield f"stdin agent {name}: {kind}", "agent", json.dumps(batch)
    for kind, body in bodies():
        yield f"stdin agent body: {kind}", "agent", body
        yield f"stdin call body: {kind}", "call search_notes -", body


def batches(text: str) -> dict[str, Any]:
    """Batches of the agent's tools that have a text at each of their places."""
    return {
        "content": [{"name": "memory_write", "params": {"content": text}}],
        "query": [{"name": "memory_search", "params": {"query": text}}],
        "name": [{"name": text, "params": {text[:1000]: text}}],
        "prompt": {"prompt": text},
        "calls": [{"name": "memory_search", "params": {"query": text[:100]}}] * 10,
    }


def _processor_time(process: int) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure_api(home: Path, *, only: str = "") -> Iterator[Cost]:
    """What every call of `/api` costs the server, and every request of MCP beside the tools."""
    with serving(home) as (process, port, token):
        processor_time = partial(_processor_time, process.pid)

        def ask(method: str, address: str, body: str = "") -> str:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            headers = {
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
            }
            try:
                connection.request(method, address, body.encode("utf-8", "surrogatepass"), headers)
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


MEASURES: dict[str, Callable[..., Iterator[Cost]]] = {
    "/": measure_api,
    "socket": measure_socket,
    "stdin": measure_stdin,
}
"""What measures a home that no process has open, by the beginning of its calls."""


def main(options: argparse.Namespace) -> int:
    """Print what is above the limits. Returns the status of the process."""
    slow = 0
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        home = _home(Path(folder, "home"), options)
        for cost in _costs(home, options.only):
            slow += _show(cost, options)
            number += 1
    print(f"{number} calls, {slow} above the limits or failed")
    return 1 if slow else 0


def _home(home: Path, options: argparse.Namespace) -> Path:
    """Make a home, or copy the one that was asked for."""
    filled = Path(options.home) if options.home else home
    if not filled.exists():
        filled.mkdir(mode=0o700)
        configuration = filled / "config.yaml"
        configuration.write_text(CONFIGURATION, "utf-8")
        with open_session(filled, watch=False) as memory:
            fill(memory, options.notes)
    if filled != home:
        shutil.copytree(filled, home)
    return home


def _costs(home: Path, only: str) -> Iterator[Cost]:
    """What every call costs whose name begins with `only`."""
    for begin, measured in MEASURES.items():
        if only.startswith(begin):
            yield from measured(home, only=only)
            return
    with open_session(home, watch=True) as memory:
        if not only or only.startswith(("large", "editor")):
            yield from measure_large(memory, only=only)
        yield from measure(memory, only=only)
    if not only:
        for measured in MEASURES.values():
            yield from measured(home)


def _show(cost: Cost, options: argparse.Namespace) -> bool:
    """Print a call if it is above a limit, failed, or all are asked for.

    Returns whether it is above a limit or failed.
    """
    is_slow = cost.seconds > options.seconds or cost.waited > options.wait or cost.is_failure
    if is_slow or options.all:
        words = cost.answer.split()
        answer = " ".join(words)
        times = f"{cost.seconds:6.2f} s, others {cost.waited:.2f} s"
        print(f"{times}  {cost.call}  {answer}", flush=True)
    return is_slow


def options_of(arguments: list[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description="What arguments of every size cost.")
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS)
    parser.add_argument("--wait", type=float, default=MOST_WAIT)
    parser.add_argument("--large", type=int, default=LARGE)
    parser.add_argument("--only", default="")
    parser.add_argument("--home", default="")
    parser.add_argument("--all", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    chosen = options_of(sys.argv[1:])
    LARGE = chosen.large
    sys.exit(main(chosen))
