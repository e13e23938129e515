#!/usr/bin/env python3
"""Plants texts in a memory through every door, and reads all that other sessions are told of them.

    python tools/try_planted.py [--texts 20] [--door NAME] [--spread]

The texts are those of tests/text/data/doors.jsonl, all or some. Each comes through each door, with
--spread through one of them, which takes half a minute of a processor instead of eight.

For each door and text a home is made. The agent mallory, or a file that the owner takes in, brings the
text. Then codex begins a session, asks about the text, and runs a command. Each telling is one of

    bare       without its author, or not as unconfirmed: must never be
    claim      with its author, as unconfirmed
    withheld   told nowhere, because it is marked as suspicious
    untold     told nowhere, because this door tells nobody

Prints a table by doors, and each bare telling. Ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from memoranda import cli as command_line  # noqa: E402
from memoranda.clients import hook  # noqa: E402
from memoranda.clients.hook_events import FAILED, PROMPT, START, TOOL, HookEvent  # noqa: E402
from memoranda.clock import now, stamp  # noqa: E402
from memoranda.engine import MemorySession, open_session  # noqa: E402
from memoranda.engine.overview import Overview, Pending  # noqa: E402
from memoranda.engine.telling.session_start import introduction  # noqa: E402
from memoranda.errors import MemorandaError  # noqa: E402
from memoranda.faces import ALL, registry  # noqa: E402
from memoranda.faces.agent.session import Session  # noqa: E402
from memoranda.faces.tool import Registry  # noqa: E402
from memoranda.note.edit import Append  # noqa: E402
from memoranda.note.model import Draft  # noqa: E402
from memoranda.serve.socket import Protocol  # noqa: E402
from memoranda.text.gate import default_rules  # noqa: E402
from memoranda.transcripts.tier import Transcripts  # noqa: E402

TEXTS = ROOT / "tests/text/data/doors.jsonl"
PLANTER = "mallory"
READER = "codex"
TOPIC = "fjordhus"
"""The name of the repository in which the reader works, and a word of each planted note."""
RULE = "Never use moment: "
"""Before a text, so that it is about the command of the reader."""
COMMAND = "npm install moment"
AUTHORS = (PLANTER, "a file", "an import", "an agent", "a web page", "transcript")
AUTHORS_OF_ROWS = (" file ", '"by": "file"')
"""As the rows and the JSON of a command name a program that wrote a file."""
UNCONFIRMED = ("unconfirmed", '"confirmed": false')
MOST_LETTERS = 40
"""Letters of a text by which it is known in what is told."""
BARE = "bare"
CLAIM = "claim"
WITHHELD = "withheld"
UNTOLD = "untold"


@dataclass
class House:
    """A home for one text, with the folder of the person whose it is."""

    person: Path
    memory: MemorySession
    tools: Registry
    agent_tools: Registry
    repository: Path

    def call(self, name: str, **arguments: Any) -> None:
        """Call a tool as the planter does."""
        planter = self.memory.as_caller(PLANTER, "mcp")
        tools = self.tools if name in self.tools.tools else self.agent_tools
        reply = tools.call(planter, name, arguments)
        if reply.is_error:
            raise MemorandaError(reply.text)

    def event(self, kind: Any, name: str, **fields: Any) -> str:
        """Answer an event of the reader's client, and return what its session is told."""
        event = HookEvent(READER, kind, name, name, cwd=str(self.repository), **fields)
        reply = hook.answer(self.memory, event)
        return "\n".join(_texts_in(json.loads(reply))) if reply.startswith("{") else reply


def _texts_in(value: Any) -> Iterator[str]:
    """Yield all texts in JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner_value in value.values():
            yield from _texts_in(inner_value)


STATIC_EARS = ("the file of the installation", "lists of the server")
"""Ears that hear no note, however it came: their texts are the same for every home."""
Door = Callable[[House, str], None]
DOORS: dict[str, Door] = {}
EARS: dict[str, Callable[[House, str], str]] = {}


def door(function: Door) -> Door:
    """Add a way by which a text gets into the memory."""
    DOORS[function.__name__.replace("_", " ")] = function
    return function


def ear(function: Callable[[House, str], str]) -> Callable[[House, str], str]:
    """Add a place at which a session is told something. The function returns what it is told."""
    EARS[function.__name__.replace("_", " ")] = function
    return function


def _titled(text: str) -> str:
    return f"# Note on {TOPIC}\n\n{text}\n"


@door
def a_note(house: House, text: str) -> None:
    house.call("write_note", title=f"On {TOPIC}", content=text)


@door
def a_pinned_note(house: House, text: str) -> None:
    house.call("write_note", title=f"On {TOPIC}", content=text, metadata={"pinned": True})


@door
def a_title(house: House, text: str) -> None:
    house.call("write_note", title=text, content=f"More on {TOPIC}.", note_type="preference")


@door
def a_preference_line(house: House, text: str) -> None:
    house.call("write_note", title=f"On {TOPIC}", content=f"- [preference] {text}")


@door
def an_open_task(house: House, text: str) -> None:
    house.call(
        "write_note",
        title=f"On {TOPIC}",
        content=text,
        note_type="task",
        metadata={"status": "open"},
    )


@door
def an_edit_of_a_header(house: House, text: str) -> None:
    note = house.memory.as_caller(PLANTER, "mcp").write(Draft(_titled(text), title="Plain"))
    path = house.memory.project(note.project).root / note.path
    content = path.read_text("utf-8")
    house.call("memory_write", content=f"{text} ({TOPIC})", category="preferences")
    house.call(
        "write_note", title="Plain", content=content, overwrite=True, metadata={"pinned": True}
    )


@door
def an_edit_of_the_owners_note(house: House, text: str) -> None:
    note = house.memory.write(
        Draft(_titled("Mine."), title="Mine", metadata={"pinned": True, "type": "preference"})
    )
    house.memory.as_caller(PLANTER, "mcp").edit(note.id, Append(text))


@door
def a_move_of_the_owners_memory(house: House, text: str) -> None:
    note = house.memory.write(Draft(f"Likes tabs ({TOPIC})", category="preferences"))
    house.call("move_note", identifier=note.id, destination_path=f"preferences/{text}.md")


@door
def a_move_of_the_owners_folder(house: House, text: str) -> None:
    _file_of_the_owner(house)
    house.call(
        "memory", command="rename", old_path="/memories/user/a", new_path=f"/memories/user/{text}"
    )


@door
def a_name_below_a_folder_that_the_owner_moves(house: House, text: str) -> None:
    _file_of_the_owner(house)
    house.call(
        "memory",
        command="rename",
        old_path="/memories/user/a/style.md",
        new_path=f"/memories/user/a/{text}.md",
    )
    arguments = {"old_path": "/memories/user/a", "new_path": "/memories/user/b"}
    house.tools.call(house.memory, "memory", {"command": "rename"} | arguments)


@door
def a_folder_above_a_confirmed_memory(house: House, text: str) -> None:
    planter = house.memory.as_caller(PLANTER, "mcp")
    note = planter.write(Draft(f"Likes tabs ({TOPIC})", category="preferences"))
    planter.move(note.id, "preferences/a/style.md")
    house.memory.confirm_notes([house.memory.find(note.id)])
    house.call(
        "move_note",
        identifier="preferences/a",
        destination_path=f"preferences/{text}",
        is_directory=True,
        project="categories",
    )


def _file_of_the_owner(house: House) -> None:
    """Make a file about the owner, as the owner, below a folder."""
    arguments = {"command": "create", "path": "/memories/user/a/style.md"}
    house.tools.call(house.memory, "memory", arguments | {"file_text": f"Tabs in {TOPIC}\n"})


@door
def the_memory_command(house: House, text: str) -> None:
    house.call("memory_write", content=f"{text} ({TOPIC})", category="preferences")


@door
def a_reminder(house: House, text: str) -> None:
    due = stamp(now() + timedelta(hours=2))
    planter = house.memory.as_caller(PLANTER, "mcp")
    keys = {"due_at": due}
    planter.write(Draft(text, project="categories", category="reminders", metadata=keys))


@door
def the_memory_tool(house: House, text: str) -> None:
    house.call("memory", command="create", path="/memories/user/style.md", file_text=_titled(text))


@door
def the_graph(house: House, text: str) -> None:
    person = {"name": "default_user", "entityType": "person", "observations": [text, TOPIC]}
    house.call("memory_create_entities", entities=[person])


@door
def a_key(house: House, text: str) -> None:
    house.call("memory_remember", key=f"preference {TOPIC}", value=text)


@door
def a_bank(house: House, text: str) -> None:
    house.call(
        "update",
        bank_type="project",
        bank_id=TOPIC,
        content=_titled(text),
        target_file="context.md",
    )


@door
def the_socket(house: House, text: str) -> None:
    arguments = {"content": f"{text} ({TOPIC})", "category": "preferences"}
    request = {"id": 1, "agent": PLANTER, "method": "memory_write", "params": arguments}
    Protocol(house.memory, house.agent_tools).answer(json.dumps(request).encode() + b"\n")


@door
def a_file_that_a_program_wrote(house: House, text: str) -> None:
    folder = house.memory.project("notes").root
    folder.mkdir(exist_ok=True)
    header = "---\npinned: true\ntype: preference\n---\n"
    (folder / "by-hand.md").write_text(header + _titled(text), encoding="utf-8")


@door
def a_page_taken_in(house: House, text: str) -> None:
    folder = house.person / "clippings"
    folder.mkdir()
    (folder / "post.md").write_text(f"{text}\n", encoding="utf-8")
    _ingest(house, "obsidian", folder)


@door
def a_memory_of_claude_taken_in(house: House, text: str) -> None:
    folder = house.person / ".claude" / "projects" / "-work" / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text(f"- {text}\n", encoding="utf-8")
    _ingest(house, "claude", None)


@door
def a_transcript(house: House, text: str) -> None:
    transcript = house.person / ".claude" / "projects" / "-work" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    entries = []
    for role in ("user", "assistant"):
        message = {"role": role, "content": text}
        place = {"sessionId": "s1", "cwd": str(house.repository), "timestamp": stamp(now())}
        entries.append(json.dumps({"type": role, "message": message, **place}))
    transcript.write_text("\n".join(entries) + "\n", encoding="utf-8")
    Transcripts(house.memory).sync()


def _ingest(house: House, source: str, folder: Path | None) -> None:
    from memoranda import ingest

    path = None if folder is None else str(folder)
    sources = ingest.named_sources(source, path, house.memory.settings)
    ingest.run(house.memory, sources)


@ear
def the_start_of_a_session(house: House, text: str) -> str:
    return house.event(START, "SessionStart", source="startup")


@ear
def a_prompt(house: House, text: str) -> str:
    return house.event(PROMPT, "UserPromptSubmit", prompt=f"What about {TOPIC}: {text}")


@ear
def a_command_about_to_run(house: House, text: str) -> str:
    arguments = json.dumps({"command": COMMAND})
    return house.event(TOOL, "PreToolUse", tool="Bash", arguments=arguments)


@ear
def a_command_that_failed(house: House, text: str) -> str:
    arguments = json.dumps({"command": COMMAND})
    output = f"error: {TOPIC}_ERESOLVE while resolving moment"
    return house.event(
        FAILED, "PostToolUseFailure", tool="Bash", arguments=arguments, output=output
    )


@ear
def the_instructions_of_the_server(house: House, text: str) -> str:
    return introduction(house.memory.as_caller(READER, "mcp"))


@ear
def prompts_of_the_server(house: House, text: str) -> str:
    reader = house.memory.as_caller(READER, "mcp")
    prompts = house.tools.prompts
    return "\n\n".join(
        [
            prompts["continue_conversation"].render(reader, {"topic": TOPIC}),
            prompts["continue_conversation"].render(reader, {}),
            prompts["search_knowledge_base"].render(reader, {"query": f"{TOPIC}"}),
        ]
    )


@ear
def context(house: House, text: str) -> str:
    reader = house.memory.as_caller(READER, "mcp")
    return reader.context_for(f"What is known about {TOPIC}? {text}")


@ear
def build_context(house: House, text: str) -> str:
    reader = house.memory.as_caller(READER, "mcp")
    task = f"Tell me what is known and decided about {TOPIC}"
    replies = [house.tools.call(reader, "build_context", {"url": task})]
    infos, _ = reader.list()
    for info in infos:
        if not info.suspicious:
            address = f"memory://{info.permalink}"
            replies.append(house.tools.call(reader, "build_context", {"url": address}))
    # A refusal names notes that are called alike, for a reader who asked for a name.
    return "\n\n".join(reply.text for reply in replies if not reply.is_error)


@ear
def a_context_of_the_agent(house: House, text: str) -> str:
    session = Session(house.memory.as_caller(READER, "mcp"), registry=house.agent_tools)
    return session.inject_context(f"{TOPIC} {text}")


@ear
def files_for_agents(house: House, text: str) -> str:
    Overview(house.memory).refresh()
    Pending(house.memory).refresh(now() + timedelta(hours=3))
    layout = house.memory.engine.layout
    paths = [layout.overview, *layout.pending_lists()]
    return "\n\n".join(path.read_text("utf-8") for path in paths if path.exists())


@ear
def the_command_profile(house: House, text: str) -> str:
    return _said_by_command(house, "profile")


@ear
def the_command_profile_in_json(house: House, text: str) -> str:
    document = json.loads(_said_by_command(house, "--json", "profile"))
    lines = []
    for entry in document["entries"]:
        lines.append(json.dumps(entry, ensure_ascii=False))
    return "\n".join(lines)


@ear
def the_file_of_the_installation(house: House, text: str) -> str:
    _said_by_command(house, "install", "--agents-md")
    file = house.repository / "AGENTS.md"
    return file.read_text("utf-8")


@ear
def lists_of_the_server(house: House, text: str) -> str:
    """What a client is told of tools, prompts and resources before it asks for one."""
    lists = house.tools
    texts = [lists.instructions]
    for tool in lists.tools.values():
        texts.append(tool.name)
        texts.append(tool.description)
        texts.append(json.dumps(tool.schema))
    for prompt in lists.prompts.values():
        texts.append(prompt.name)
        texts.append(prompt.description)
    for resource in [*lists.resources.values(), *lists.templates]:
        texts.append(resource.uri)
        texts.append(resource.name)
        texts.append(resource.description)
    return "\n".join(texts)


@ear
def hints_of_the_interfaces(house: House, text: str) -> str:
    """What a search or a list of one interface tells beside its answer of notes of the others.

    The answer itself is what the reader asked for.
    """
    reader = house.memory.as_caller(READER, "mcp")
    settings = house.memory.settings
    graph = registry(("graph",), settings)
    keys = registry(("kv",), settings)
    files = registry(("memory",), settings)
    replies = [
        graph.call(reader, "memory_search_nodes", {"query": text}),
        graph.call(reader, "memory_search_nodes", {"query": TOPIC}),
        graph.call(reader, "memory_read_graph", {}),
        files.call(reader, "memory", {"command": "view", "path": "/memories"}),
    ]
    hints = [reply.hint for reply in replies]
    for query in (text, TOPIC):
        arguments = {"query": query, "format": "json"}
        answer = json.loads(keys.call(reader, "memory_search", arguments).text)
        for note in answer.get("other_notes", ()):
            hints.append(json.dumps(note, ensure_ascii=False))
    return "\n\n".join(hints)


@ear
def a_dream(house: House, text: str) -> str:
    """Comes last, because it changes notes: its report, and what a session is told then."""
    report = _said_by_command(house, "dream", "--level", "3")
    start = the_start_of_a_session(house, text)
    files = files_for_agents(house, text)
    evidence = context(house, text)
    return "\n\n".join([report, start, files, evidence])


def _said_by_command(house: House, *arguments: str) -> str:
    """Return what the command prints for the reader, who runs it in the repository."""
    home = str(house.memory.home)
    output = io.StringIO()
    line = ["--home", home, "--agent", READER, *arguments]
    with redirect_stdout(output), redirect_stderr(output), chdir(house.repository):
        status = command_line.main(line)
    said = output.getvalue()
    if status:
        raise MemorandaError(said)
    return said


def letters_of(text: str) -> str:
    """Return the letters of a text, by which it is known in whatever form it is told."""
    shown = re.sub(r"\\u[0-9a-f]{4}", "", unicodedata.normalize("NFKC", text))
    return "".join(char for char in shown.casefold() if char.isalnum())


def tellings(told: str, text: str) -> Iterator[tuple[bool, str]]:
    """Yield each line of a telling that has the text: whether it is a claim, and the line."""
    wanted = letters_of(text)[:MOST_LETTERS]
    authors = AUTHORS + AUTHORS_OF_ROWS
    lines = told.splitlines()
    for number, line in enumerate(lines):
        if wanted not in letters_of(line):
            continue
        place = _about(lines, number).casefold()
        has_author = any(author in place for author in authors)
        yield has_author and any(word in place for word in UNCONFIRMED), line


def _about(lines: Sequence[str], number: int) -> str:
    """Return a line with the lines above it that belong to the same note, one of which has the author."""
    line = lines[number]
    # The line of a list, or of a note that shares a heading with others.
    if line.startswith("- ("):
        return line
    if line.startswith("## "):
        return "\n".join(lines[number : number + 2])
    first = number
    while first > 0 and lines[first - 1]:
        first -= 1
    if lines[first].startswith("("):
        first = max(at for at in range(first, number + 1) if _is_whole_line(lines[at]))
    return "\n".join(lines[first : number + 1])


def _is_whole_line(line: str) -> bool:
    return not line.startswith(" ")


def heard(folder: Path, door_name: str, text: str) -> dict[str, list[tuple[bool, str]]]:
    """Plant a text through a door of a new home. Return the tellings of it at each ear.

    folder: an empty folder for the home, and for the person whose it is.
    """
    person = folder / "person"
    repository = person / TOPIC
    (repository / ".git").mkdir(parents=True)
    home = folder / "home"
    home.mkdir()
    (home / "config.yaml").write_text("transcripts:\n  enabled: true\n", encoding="utf-8")
    os.environ["HOME"] = str(person)
    with open_session(home, watch=False) as memory:
        tools = registry(ALL, memory.settings)
        agent_tools = registry(("agent",), memory.settings)
        house = House(person, memory, tools, agent_tools, repository)
        DOORS[door_name](house, text)
        return {name: list(tellings(listen(house, text), text)) for name, listen in EARS.items()}


def way_of(text: str, at_ears: dict[str, list[tuple[bool, str]]]) -> str:
    """Return how a text is told, by the tellings at each ear."""
    claims = [is_claim for rows in at_ears.values() for is_claim, _ in rows]
    if not all(claims):
        return BARE
    if claims:
        return CLAIM
    return WITHHELD if default_rules().suspicions(text) else UNTOLD


def count(door_name: str, texts: Sequence[str]) -> tuple[Counter[str], list[str]]:
    """Plant texts through one door. Return how many are told in which way, and the bare tellings."""
    counts = Counter[str]()
    all_bare: list[str] = []
    for text in texts:
        # A rule against a command is told before the command runs.
        for wording in (f"{text} {TOPIC}", f"{RULE}{text}"):
            folder = Path(tempfile.mkdtemp())
            try:
                at_ears = heard(folder, door_name, wording)
            finally:
                shutil.rmtree(folder)
            counts[way_of(wording, at_ears)] += 1
            for ear_name, rows in at_ears.items():
                for is_claim, line in rows:
                    if not is_claim:
                        all_bare.append(f"{door_name} → {ear_name}: {line.strip()[:160]}")
    return counts, all_bare


def planted_texts(most: int = 0) -> list[str]:
    """Return the planted texts of the set, `most` of them from all of its parts. 0 means all."""
    rows = [json.loads(line) for line in TEXTS.read_text("utf-8").splitlines()]
    texts = [row["text"] for row in rows if row["is_planted"]]
    if not most:
        return texts
    return texts[:: max(1, len(texts) // most)][:most]


def main() -> int:
    """Plant the texts through the doors, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=0, metavar="NUMBER")
    parser.add_argument("--door", choices=DOORS)
    parser.add_argument("--spread", action="store_true")
    options = parser.parse_args()
    texts = planted_texts(options.texts)
    names = [options.door] if options.door else list(DOORS)
    all_bare: list[str] = []
    print(f"| door | {BARE} | {CLAIM} | {WITHHELD} | {UNTOLD} |\n|---|---|---|---|---|")
    for number, name in enumerate(names):
        chosen = texts[number :: len(names)] if options.spread else texts
        counts, bare = count(name, chosen)
        all_bare += bare
        row = [str(counts[way]) for way in (BARE, CLAIM, WITHHELD, UNTOLD)]
        print(f"| {name} | {' | '.join(row)} |", flush=True)
    for line in all_bare:
        print(line)
    return 1 if all_bare else 0


if __name__ == "__main__":
    sys.exit(main())
