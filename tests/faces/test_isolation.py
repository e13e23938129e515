"""What one agent is told does not depend on another agent's private notes: random calls over all
faces, in twin homes.

The homes differ in Bob's notes alone; Alice makes the same calls in both, and every answer must be
the same but for ids, times, numbers of changes and scores. Bob's names hold words that stand
nowhere else.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memoranda import faces
from memoranda.engine import MemorySession, open_session
from memoranda.errors import MemorandaError
from memoranda.faces.tool import Reply

NOW = datetime(2026, 5, 7, 10, tzinfo=UTC)
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron"]
CANARIES = ("quokka", "narwhal", "axolotl", "pangolin")
"""Words of Bob's notes: contents, titles, names, folders, tags, keys, namespaces, entities."""
HEAD = "---\nscope: agent:bob\n"
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
            (
                "search_notes",
                {"query": query, **page, "search_type": pick(["text", "title", "permalink"])},
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
            ("verb:prompt", {"topic": guess}),
        ]
        return pick(calls)


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
        own = tool.startswith("agent:") or tool not in self.all.tools
        reply: Reply = (self.agent if own else self.all).call(
            memory, tool.removeprefix("agent:"), dict(arguments)
        )
        return [reply.text, reply.data, reply.is_error]

    def _verb(self, memory: MemorySession, verb: str, given: dict[str, Any]) -> Any:
        if verb == "log":
            return [(each.verb, each.project, each.path) for each in memory.log(limit=5)]
        if verb == "undo":
            return memory.undo().verb
        if verb == "stats":
            return memory.stats().projects
        if verb == "complete":
            return memory.complete(given["prefix"])
        if verb == "prompt":
            prompt = self.all.prompts["search_knowledge_base"]
            return prompt.render(memory, {prompt.arguments[0][0]: given["topic"]})
        template = self.all.templates[0]
        if verb == "template":
            return template.read(memory, {"project": "notes", "path": given["path"]})
        if template.complete:
            return template.complete(memory, "path", given["value"], {"project": "notes"})
        return None

    def settle(self, number: int) -> None:
        """Give all new files of a call the same times, which order what is listed."""
        last = self.memory.engine.home.history.last
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


def fill(root: Path, *contents: dict[str, str]) -> None:
    for content in contents:
        for path, text in content.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
            os.utime(root / path, (1_778_000_000, 1_778_000_000))


def bobs(calls: Calls) -> tuple[str, dict[str, Any]]:
    """A call by which Bob keeps something to himself."""
    canary = calls.random.choice(CANARIES)
    number = calls.random.randrange(50)
    body = f"{HEAD}---\n{canary} {calls.word()} [[{calls.word()}]]\n"
    own = {
        "title": f"{canary} {number}",
        "content": body,
        "directory": calls.random.choice(["", "shared", canary]),
    }
    return calls.random.choice(
        [
            ("write_note", own),
            ("write_note", {**own, "project": "graph", "directory": ""}),
            (
                "memory",
                {"command": "create", "path": f"/memories/{canary}/{number}.md", "file_text": body},
            ),
            (
                "memory_write",
                {
                    "content": f"{canary} {calls.word()}",
                    "scope": "agent:bob",
                    "category": "knowledge",
                },
            ),
        ]
    )


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


def fuzz(twins: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch, seed: int, count: int) -> None:
    calls = Calls(seed)
    for number in range(count):
        tool, arguments = calls.next()
        bob = bobs(calls) if number % 7 == 3 else None
        answers = []
        for home in twins:
            ids = random.Random(f"{seed} {number}")
            monkeypatch.setattr(
                uuid, "uuid4", lambda ids=ids: uuid.UUID(int=ids.getrandbits(128), version=4)
            )
            home.now = NOW + timedelta(seconds=number)
            answers.append(shown(home.answer("alice", tool, arguments), home.root))
            home.settle(number)
        if bob:
            theirs = itertools.count(10**30 + number * 1000)
            monkeypatch.setattr(
                uuid, "uuid4", lambda theirs=theirs: uuid.UUID(int=next(theirs), version=4)
            )
            before = twins[0].versions()
            twins[0].answer("bob", *bob)
            twins[0].settle(number)
            assert twins[0].versions() == before, bob
        assert answers[0] == answers[1], (seed, number, tool, arguments)
        if not any(canary in json.dumps(arguments).lower() for canary in CANARIES):
            said = [
                canary for canary in CANARIES if canary in answers[0] and canary not in answers[1]
            ]
            assert not said, (seed, number, tool, arguments)
    resources = [home.resources().replace(str(home.root), "HOME") for home in twins]
    assert resources[0] == resources[1]
    for path in THEIRS:
        # It may be gone
        text = THEIRS[path].replace("links: [31111111-2222-4333-8444-555566667777]\n", "")
        assert (twins[0].root / path).read_text().endswith(text[-20:]), path


@pytest.mark.promise("trust-isolation")
def test_an_agent_is_told_the_same_with_and_without_anothers_private_notes(twins, monkeypatch):
    fuzz(twins, monkeypatch, 1, 150)


@pytest.mark.slow
@pytest.mark.promise("trust-isolation")
@pytest.mark.parametrize("seed", range(2, 6))
def test_two_thousand_calls_tell_nothing_of_another_agent(twins, monkeypatch, seed):
    fuzz(twins, monkeypatch, seed, 500)
