"""What one agent is told does not depend on another agent's private notes: random calls over all
faces, in twin homes.

The homes differ in Bob's notes alone; Alice makes the same calls in both, and every answer must be
the same except ids, times, numbers of changes and scores. Bob's names hold words that occur
nowhere else.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memoranda import faces
from memoranda.cli.rows import left_out
from memoranda.engine import MemorySession, open_session
from memoranda.engine.completion import permalinks
from memoranda.engine.doctor import examine
from memoranda.engine.overview import by_writer, writers, written_today
from memoranda.engine.telling.profile import profile
from memoranda.errors import MemorandaError
from memoranda.faces.tool import Reply
from memoranda.query import Query
from memoranda.transfer.jsonl import exported_lines

NOW = datetime(2026, 5, 7, 10, tzinfo=UTC)
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron"]
CANARIES = ("quokka", "narwhal", "axolotl", "pangolin")
"""Words of Bob's notes: contents, titles, names, folders, tags, keys, namespaces, entities."""
HEAD = "---\nscope: agent:bob\n"
PROMPTS = ("memory_guide", "continue_conversation", "search_knowledge_base")
THEIRS = {
    "notes/quokka plan.md": f"{HEAD}title: narwhal title\ntags: [axolotl]\naliases: [amber]\n---\n"
    "amber quokka [[birch]]\n",
    "notes/pangolin/deep/quokka.md": f"{HEAD}---\n- [quokka] amber birch #narwhal\n- part_of [[cedar]]\n",
    "notes/shared/amber!.md": f"{HEAD}permalink: notes/shared/ember\n---\namber quokka\n",
    "notes/shared/Fjord 2.md": f"{HEAD}title: fjord\nid: 11111111-2222-4333-8444-555566667777\n---\nfjord quokka\n",
    "memories/quokka/narwhal.md": f"{HEAD}---\namber quokka [[heron]]\n",
    "memories/shared/pangolin.txt": f"{HEAD}---\nquokka\n",
    "graph/quokka.md": f"{HEAD}title: Quokka\ntype: narwhal\n---\n## Observations\n- [pangolin] amber\n\n## Relations\n"
    "- knows [[amber]]\n",
    "kv/quokka/narwhal.md": f"{HEAD}key: narwhal\n---\namber pangolin\n",
    "kv/shared/axolotl.md": f"{HEAD}key: axolotl\n---\namber quokka\n",
    "banks/projects/quokka/brief.md": f"{HEAD}---\n# narwhal\nquokka\n",
    "categories/knowledge/quokka.md": f"{HEAD}id: 21111111-2222-4333-8444-555566667777\nphase: organized\n"
    "tags: [narwhal]\nlinks: [31111111-2222-4333-8444-555566667777]\n---\namber quokka pangolin\n",
    "categories/inbox/axolotl.md": f"{HEAD}id: 41111111-2222-4333-8444-555566667777\n---\nbirch axolotl [[amber]]\n",
}
SHARED = {
    "notes/shared/amber.md": "---\ntags: [tree]\n---\n# amber\n- [fact] amber birch\n- links_to [[quokka plan]]\n",
    "notes/birch.md": "birch [[amber]] [[narwhal title]]\n",
    "memories/shared/keep.md": "cedar\n",
    "graph/amber.md": "---\ntitle: amber\ntype: tree\n---\n## Observations\n- amber\n\n"
    "## Relations\n- knows [[Quokka]]\n",
    "kv/shared/delta.md": "---\nkey: delta\n---\namber\n",
    "categories/knowledge/birch.md": "---\nid: 31111111-2222-4333-8444-555566667777\nphase: organized\n"
    "links: [21111111-2222-4333-8444-555566667777]\n---\nbirch amber\n",
}


class Calls:
    """Random calls of all tools, the same for the same seed. Alice guesses Bob's names where she
    only reads.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def word(self) -> str:
        return self.random.choice(WORDS)

    def guess(self) -> str:
        """A word that may be Bob's."""
        return self.random.choice([*WORDS, *CANARIES])

    def text(self) -> str:
        link = self.random.choice(
            ["", f" [[{self.guess()}]]", f"\n- links_to [[{self.word()}]]", f" #{self.word()}"]
        )
        return " ".join(self.word() for _ in range(3)) + link + "\n"

    def path(self) -> str:
        places = ["shared/", "", f"{self.word()}/", "quokka/", "pangolin/", "pangolin/deep/", "./"]
        return (
            self.random.choice(places) + self.guess() + self.random.choice([".md", ".txt", "", "/"])
        )

    def place(self) -> str:
        """A path Alice may write: never one of Bob's."""
        return f"{self.random.choice(['shared', 'mine', self.word()])}/{self.word()}-{self.random.randrange(20)}.md"

    def name(self) -> str:
        some = [
            "notes/shared/amber",
            "amber",
            "narwhal title",
            "quokka plan",
            "11111111",
            "2111",
            "notes/pangolin",
            "memory://notes/shared/ember",
            "memory://notes/*",
            "Quokka",
            "31111111-2222-4333-8444-555566667777",
            "memories/quokka/narwhal",
        ]
        return self.random.choice([*some, self.guess(), self.path(), self.place()])

    def folder(self) -> str:
        return self.random.choice(
            ["", "/", "shared", "pangolin", "quokka", "mine", self.guess(), "pangolin/deep"]
        )

    def next(self) -> tuple[str, dict[str, Any]]:
        pick = self.random.choice
        word = self.word()
        guess = self.guess()
        page = {"page": self.random.randint(1, 2), "page_size": self.random.randint(1, 5)}
        project = pick(
            [{}, {"project": pick(["notes", "memories", "categories", "graph", "kv", guess])}]
        )
        entity = {
            "name": f"{word} {self.random.randrange(9)}",
            "entityType": word,
            "observations": [self.text()],
        }
        edge = {"from": guess, "to": word, "relationType": word}
        kv = {"namespace": pick(["shared", "mine"])}
        ns = pick([{}, {"namespace": pick(["shared", "mine", "quokka", guess])}])
        bank = {
            "bank_type": pick(["global", "project", "code"]),
            "bank_id": pick(["mine", "other"]),
        }
        by = f"by:{pick(['bob', 'file', 'alice'])}"
        query = pick([word, guess, f"{word} {guess}", f"tag:{guess}", by, f"what is {guess}?"])
        calls: list[tuple[str, dict[str, Any]]] = [
            (
                "memory",
                {"command": "view", "path": f"/memories/{pick([self.folder(), self.path()])}"},
            ),
            (
                "memory",
                {
                    "command": "create",
                    "path": f"/memories/{self.place()}",
                    "file_text": self.text(),
                },
            ),
            (
                "memory",
                {
                    "command": "str_replace",
                    "path": f"/memories/{self.path()}",
                    "old_str": guess,
                    "new_str": word,
                },
            ),
            (
                "memory",
                {
                    "command": "insert",
                    "path": f"/memories/{self.path()}",
                    "insert_line": 0,
                    "insert_text": word,
                },
            ),
            ("memory", {"command": "delete", "path": f"/memories/{self.path()}"}),
            (
                "memory",
                {
                    "command": "rename",
                    "old_path": f"/memories/{self.path()}",
                    "new_path": f"/memories/{self.place()}",
                },
            ),
            (
                "write_note",
                {
                    "title": f"{word} {self.random.randrange(20)}",
                    "content": self.text(),
                    "directory": pick(["mine", "shared"]),
                    "overwrite": pick([True, False]),
                },
            ),
            ("read_note", {"identifier": self.name(), **project}),
            (
                "edit_note",
                {
                    "identifier": pick([self.place(), "quokka plan", "11111111"]),
                    "operation": "find_replace",
                    "content": word,
                    "find_text": word,
                },
            ),
            (
                "move_note",
                {
                    "identifier": self.name(),
                    "destination_path": f"moved/{word}-{self.random.randrange(50)}.md",
                },
            ),
            (
                "move_note",
                {
                    "identifier": self.folder(),
                    "destination_path": f"to/{self.random.randrange(99)}",
                    "is_directory": True,
                },
            ),
            ("delete_note", {"identifier": self.name()}),
            ("delete_note", {"identifier": self.folder(), "is_directory": True, **project}),
            (
                "list_directory",
                {"dir_name": self.folder(), "depth": self.random.randint(1, 4), **page, **project},
            ),
            ("search_notes", {"query": query, "page_size": 50}),
            (
                "search_notes",
                {"query": query, **page, "search_type": pick(["title", "permalink"])},
            ),
            ("search_notes", {"tags": [guess], "categories": [guess], **page}),
            (
                "build_context",
                {
                    "url": f"memory://{pick([self.name(), '*', 'notes/*'])}",
                    "timeframe": "30d",
                    **page,
                },
            ),
            ("recent_activity", {"timeframe": "30d", **page, **project}),
            ("list_memory_projects", {}),
            ("memory_create_entities", {"entities": [entity]}),
            ("memory_create_relations", {"relations": [{**edge, "from": word}]}),
            (
                "memory_add_observations",
                {"observations": [{"entityName": pick([word, guess]), "contents": [self.text()]}]},
            ),
            (
                "memory_delete_observations",
                {"deletions": [{"entityName": guess, "observations": [word, guess]}]},
            ),
            (
                "create_memory_project",
                {"project_name": guess, "project_path": pick([guess, f"notes/{self.folder()}"])},
            ),
            ("delete_project", {"project_name": guess}),
            ("memory_delete_entities", {"entityNames": [guess]}),
            ("memory_delete_relations", {"relations": [edge]}),
            ("memory_read_graph", {"limit": 5}),
            ("memory_search_nodes", {"query": guess, "limit": 5}),
            ("memory_open_nodes", {"names": [guess, "Quokka", word], "depth": 2}),
            (
                "activate",
                {
                    **bank,
                    "bank_id": pick(["mine", "quokka"])
                    if bank["bank_type"] != "project"
                    else "mine",
                },
            ),
            ("list", pick([{}, {"bank_type": bank["bank_type"]}])),
            (
                "update",
                {
                    **bank,
                    "content": self.text(),
                    "target_file": f"{word}.md",
                    "operation": pick(["append", "replace"]),
                },
            ),
            ("memory_remember", {"key": word, "value": self.text(), **kv}),
            ("memory_recall", {"key": guess, **ns}),
            ("memory_forget", {"key": guess, **ns}),
            ("memory_search", {"query": guess, **ns}),
            ("memory_list_namespaces", {}),
            ("memory_clear_namespace", {"namespace": pick(["mine", "quokka"])}),
            ("memory_stats", {}),
            (
                "memory_write",
                {
                    "content": self.text(),
                    "category": pick(["inbox", "knowledge", "lessons"]),
                    "tags": word,
                    "scope": pick(["global", "agent:alice", "agent:bob"]),
                },
            ),
            (
                "memory_read",
                {"id": pick(["2111", "4111", "3111", "31111111-2222-4333-8444-555566667777"])},
            ),
            ("memory_delete", {"id": pick(["2111", "21111111-2222-4333-8444-555566667777"])}),
            (
                "memory_list",
                {
                    "limit": 5,
                    **pick(
                        [{}, {"scope": pick(["agent:bob", "Agent:Bob"])}, {"category": "knowledge"}]
                    ),
                },
            ),
            ("agent:memory_search", {"query": guess}),
            ("memory_tag", {"id": pick(["2111", "3111"]), "add": word}),
            ("memory_smart_search", {"query": f"{guess} {word}"}),
            ("verb:log", {}),
            ("verb:stats", {}),
            ("verb:complete", {"prefix": pick(["", "n", "notes/", f"notes/{guess}"])}),
            ("verb:template", {"path": pick([self.path(), "notes/shared/ember"])}),
            ("verb:completion", {"value": pick(["", "notes/", guess])}),
            ("verb:undo", {}),
            (
                "verb:prompt",
                {"prompt": pick(PROMPTS), "argument": pick([guess, "30d"])},
            ),
            ("verb:log_of", {"ref": pick([self.path(), self.name(), f"notes/{self.path()}"])}),
            ("verb:runs", {}),
            ("verb:revisions", {}),
            ("verb:restore", {"ref": f"notes/{self.path()}", "to": f"notes/back-{word}.md"}),
            ("verb:recent", {}),
            ("verb:directory", {"folder": self.folder()}),
            ("verb:related", {"ref": self.name()}),
            ("verb:backlinks", {"ref": self.name()}),
            ("verb:context", {"query": query}),
            ("verb:review", {}),
            ("verb:export", {}),
            ("verb:left_out", {}),
            ("verb:last_change", {}),
            ("verb:written_today", {}),
            ("verb:by_writer", {}),
            ("verb:doctor", {}),
            ("verb:profile", {}),
            ("verb:writers", {}),
        ]
        return pick(calls)


def places(changes: Iterable[Any]) -> list[Any]:
    """What is told of changes, without their numbers.

    A folder moves as one, or file by file where another's note stays (docs/trust.md).
    """
    return [
        (change.verb, change.project, change.path, change.agent, change.details, *texts_of(change))
        for change in changes
    ]


def texts_of(change: Any) -> list[Any]:
    return [] if change.path.endswith("/") else [*change.texts()]


def revisions(memory: MemorySession) -> list[Any]:
    """The texts before and after each of the latest changes."""
    texts = []
    for change in filter(texts_of, memory.log(limit=4)):
        for revision in memory.revisions(change.number):
            texts.append((revision.touched, revision.before, revision.after))
    return texts


VERBS: dict[str, Callable[[MemorySession, dict[str, Any]], Any]] = {
    "log": lambda memory, arguments: places(memory.log(limit=5)),
    "log_of": lambda memory, arguments: places(
        change for change in memory.log(arguments["ref"], limit=0) if not change.path.endswith("/")
    ),
    "runs": lambda memory, arguments: [places(run) for run in memory.log_by_run(limit=5)],
    "revisions": lambda memory, arguments: revisions(memory),
    "undo": lambda memory, arguments: places([memory.undo()]),
    "restore": lambda memory, arguments: memory.restore(arguments["ref"], to=arguments["to"])[0],
    "stats": lambda memory, arguments: memory.stats(),
    "complete": lambda memory, arguments: permalinks(memory, arguments["prefix"]),
    "recent": lambda memory, arguments: memory.list(Query(after=memory.since("30d")), limit=20),
    "directory": lambda memory, arguments: memory.directory("notes", arguments["folder"], depth=3),
    "related": lambda memory, arguments: memory.context(arguments["ref"]),
    "backlinks": lambda memory, arguments: memory.backlinks(arguments["ref"]),
    "context": lambda memory, arguments: memory.context_for(arguments["query"]),
    "review": lambda memory, arguments: memory.review(),
    "export": lambda memory, arguments: [*exported_lines(memory, None, None)],
    "last_change": lambda memory, arguments: memory.last_change("daemon"),
    "written_today": lambda memory, arguments: written_today(memory),
    "by_writer": lambda memory, arguments: by_writer(memory),
    "doctor": lambda memory, arguments: examine(memory),
    "profile": lambda memory, arguments: profile(memory),
    "left_out": lambda memory, arguments: left_out(memory, Query()),
    "writers": lambda memory, arguments: writers(memory, NOW - timedelta(days=1)),
}


class Home:
    """A home as its agents see it: all toolsets, and the verbs behind resources, prompts,
    completions and commands.
    """

    def __init__(self, root: Path):
        self.root = root
        self.now = NOW
        self._settled = 0
        self.memory = open_session(root, watch=True, clock=lambda: self.now)
        self.all = faces.registry(["all"], self.memory.settings)
        self.agent = faces.registry(["agent"], self.memory.settings)

    def answer(self, agent: str, tool: str, arguments: dict[str, Any]) -> Any:
        """The reply of a call, as plain values."""
        memory = self.memory.as_caller(agent, "mcp", client="test 1")
        if tool.startswith("verb:"):
            try:
                return self._verb(memory, tool.removeprefix("verb:"), arguments)
            except MemorandaError as error:
                return [error.code, str(error)]
        is_agent_tool = tool.startswith("agent:") or tool not in self.all.tools
        reply: Reply = (self.agent if is_agent_tool else self.all).call(
            memory, tool.removeprefix("agent:"), dict(arguments)
        )
        return [reply.text, reply.data, reply.is_error]

    def _verb(self, memory: MemorySession, verb: str, arguments: dict[str, Any]) -> Any:
        plain = VERBS.get(verb)
        if plain is not None:
            return plain(memory, arguments)
        if verb == "prompt":
            prompt = self.all.prompts[arguments["prompt"]]
            values = {name: arguments["argument"] for name, _, _ in prompt.arguments}
            return prompt.render(memory, values)
        template = self.all.templates[0]
        if verb == "template":
            return template.read(memory, {"project": "notes", "path": arguments["path"]})
        if template.complete:
            return template.complete(memory, "path", arguments["value"], {"project": "notes"})
        return None

    def settle(self, number: int) -> None:
        """Give all new files of a call the same times, which order what is listed."""
        last = self.memory.engine.ledger.history.last
        if last == self._settled:
            return
        self._settled = last
        for place, folders, names in os.walk(self.root):
            folders[:] = [folder for folder in folders if folder != ".memoranda"]
            for name in names:
                if os.stat(path := os.path.join(place, name)).st_mtime > 1_790_000_000:
                    os.utime(path, (1_779_000_000 + number, 1_779_000_000 + number))

    def resources(self) -> str:
        alice = self.memory.as_caller("alice", "mcp")
        return json.dumps([resource.read(alice) for resource in self.all.resources.values()])

    def versions(self) -> list[Any]:
        """What subscribers are told of when it changes."""
        alice = self.memory.as_caller("alice", "mcp")
        return [resource.version(alice) for resource in self.all.resources.values()]


MASKS = (
    (r"\d{4}-\d\d-\d\d[T ]?(\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?)?", "TIME"),
    (r"\b\d{2}:\d{2}\b", "TIME"),
    (r'("?score"?\D{0,3})[\d.e-]+', "SCORE"),
    (r'(memory undo |#|"change": |change )\d+', "CHANGE"),
    (r'(checksum\\?"?: ?\\?"?)[0-9a-f]{8}', "SUM"),
    (r"\b[0-9a-f]{64}\b", "HASH"),
)


def shown(answer: Any, root: Path) -> str:
    text = json.dumps(answer, ensure_ascii=False, default=str).replace(str(root), "HOME")
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return text


def in_any_order(answer: str) -> list[str]:
    """The words of an answer: the scores of a search, and so its order, come from all notes."""
    return sorted(answer.split())


def fill(root: Path, *contents: dict[str, str]) -> None:
    for content in contents:
        for path, text in content.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
            os.utime(root / path, (1_778_000_000, 1_778_000_000))


def bobs(calls: Calls) -> list[tuple[str, dict[str, Any]]]:
    """Calls by which Bob keeps something to himself, at once or after everybody could read it."""
    canary = calls.random.choice(CANARIES)
    number = calls.random.randrange(10**6)
    text = f"{canary} {calls.word()} [[{calls.word()}]]\n"
    body = f"{HEAD}---\n{text}"
    folder = calls.random.choice(["shared", canary])
    new_note = {"title": f"{canary} {number}", "content": body, "directory": folder}
    overwriting = {**new_note, "overwrite": True}
    public = {**overwriting, "content": text}
    place = f"notes/{folder}/{canary} {number}.md"
    moved = f"{folder}/{canary}/{canary} then {number}.md"
    file = {"path": f"/memories/{canary}/{number}.md"}
    memory = {
        "content": f"{canary} {calls.word()}",
        "scope": "agent:bob",
        "category": "knowledge",
    }
    ways: list[list[tuple[str, dict[str, Any]]]] = [
        [("write_note", new_note)],
        [("write_note", {**new_note, "project": "graph", "directory": ""})],
        [("memory", {"command": "create", **file, "file_text": body})],
        [("memory_write", memory)],
        [("write_note", public), ("write_note", overwriting)],
        [
            ("write_note", public),
            ("move_note", {"identifier": place, "destination_path": moved}),
            ("memory", {"command": "delete", **file}),
            (
                "edit_note",
                {
                    "identifier": f"notes/{moved}",
                    "operation": "find_replace",
                    "find_text": text,
                    "content": body,
                },
            ),
            (
                "write_note",
                {
                    **overwriting,
                    "title": f"{canary} then {number}",
                    "directory": f"{folder}/{canary}",
                },
            ),
        ],
        [
            ("write_note", public),
            ("write_note", overwriting),
            ("delete_note", {"identifier": place}),
        ],
    ]
    return calls.random.choice(ways)


@pytest.fixture
def twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Home, Home]]:
    both = tmp_path / "both/home"
    alone = tmp_path / "alone/home"
    fill(both, SHARED, THEIRS)
    fill(alone, SHARED)
    homes = Home(both), Home(alone)
    yield homes
    for home in homes:
        home.memory.close()


def is_of_empty_folder(root: Path, arguments: dict[str, Any]) -> bool:
    """Whether a call is about a folder without any file."""
    names_given = {str(arguments.get(key, "")) for key in ("dir_name", "folder", "identifier")}
    folders = [root / "notes" / name.strip("/") for name in names_given if name.strip("/")]
    return any(folder.is_dir() and not any(folder.rglob("*.*")) for folder in folders)


def set_ids(monkeypatch: pytest.MonkeyPatch, next_bits: Callable[[], int]) -> None:
    """Let the ids of new notes be made from these numbers of 128 bits."""
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=next_bits(), version=4))


def let_bob_call(home: Home, calls: list[Any], number: int) -> None:
    """Bob's calls change no note that Alice may read."""
    before = home.versions()
    for call in calls:
        home.answer("bob", *call)
    home.settle(number)
    assert home.versions() == before, calls


def comparable(tool: str, arguments: dict[str, Any], answer: str) -> Any:
    """The part of an answer that is the same whatever notes of others there are."""
    if tool == "search_notes" and "query" in arguments:
        return in_any_order(answer)
    if tool == "verb:context":
        # Scores come from the words of all notes, and say what the room is for
        return len(answer) > len('""')
    return answer


def assert_told_the_same(
    tool: str, arguments: dict[str, Any], with_bob: str, without_bob: str, place: tuple[int, int]
) -> None:
    """The answers with and without Bob's notes are alike; `place` is the seed and the call's number."""
    mine = comparable(tool, arguments, with_bob)
    assert mine == comparable(tool, arguments, without_bob), (*place, tool, arguments)
    if any(canary in json.dumps(arguments).lower() for canary in CANARIES):
        return
    for canary in CANARIES:
        assert canary not in with_bob or canary in without_bob, (*place, tool, arguments)


def fuzz(twins: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch, seed: int, count: int) -> None:
    calls = Calls(seed)
    for number in range(count):
        tool, arguments = calls.next()
        if is_of_empty_folder(twins[1].root, arguments):
            # It is there, empty, without Bob's notes in it (docs/trust.md)
            continue
        bobs_calls = bobs(calls) if number % 7 == 3 else []
        answers = []
        for home in twins:
            ids = random.Random(f"{seed} {number}")
            set_ids(monkeypatch, partial(ids.getrandbits, 128))
            home.now = NOW + timedelta(seconds=number)
            answers.append(shown(home.answer("alice", tool, arguments), home.root))
            home.settle(number)
        if bobs_calls:
            set_ids(monkeypatch, itertools.count(10**30 + number * 1000).__next__)
            let_bob_call(twins[0], bobs_calls, number)
        assert_told_the_same(tool, arguments, *answers, (seed, number))

    resources = [home.resources().replace(str(home.root), "HOME") for home in twins]
    assert resources[0] == resources[1]
    for path in THEIRS:
        # It may be gone
        text = THEIRS[path].replace("links: [31111111-2222-4333-8444-555566667777]\n", "")
        assert (twins[0].root / path).read_text().endswith(text[-20:]), path


@pytest.mark.promise("trust-isolation")
def test_every_tool_prompt_and_template_is_among_the_calls(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.memory.close()
    calls = Calls(1)
    calls_made = [calls.next() for _ in range(5_000)]
    names = {tool.removeprefix("agent:") for tool, _ in calls_made}

    assert names >= {*home.all.tools, *home.agent.tools}
    prompts = {arguments["prompt"] for tool, arguments in calls_made if tool == "verb:prompt"}
    assert prompts == {*home.all.prompts}
    assert len(home.all.templates) == 1


@pytest.mark.promise("trust-isolation")
def test_an_agent_is_told_the_same_with_and_without_anothers_private_notes(twins, monkeypatch):
    fuzz(twins, monkeypatch, 1, 150)


@pytest.mark.slow
@pytest.mark.promise("trust-isolation")
@pytest.mark.parametrize("seed", range(2, 6))
def test_two_thousand_calls_tell_nothing_of_another_agent(twins, monkeypatch, seed):
    fuzz(twins, monkeypatch, seed, 500)
