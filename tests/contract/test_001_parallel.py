"""Contract 001, 17.7: long-lived processes, a server and commands at work on one home at once;
everything counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from subprocess import DEVNULL

import pytest

from contract.mcp_server import SECONDS, Server, environment
from memoranda import Draft
from memoranda.engine import open_session
from serve.forked import Forked
from serve.process import run_memory

pytestmark = pytest.mark.promise("001-17.7")

WORKER = """
import sys
from memoranda import Draft
from memoranda.engine import open_session
with open_session(sys.argv[1], watch=sys.argv[2] == "watch") as memory:
    memory.sync()
    print("ready", flush=True)
    for line in sys.stdin:
        verb, *words = line.split()
        for word in words:
            if verb == "read":
                memory.read(word)
            elif verb == "link":
                memory.link(*word.split(","))
            elif verb == "unlink":
                memory.unlink(*word.split(","))
            elif verb == "write":
                memory.write(Draft("text " + word, project="categories"))
            elif verb == "tag":
                memory.tag(word.split(",")[0], add=[word.split(",")[1]])
        print(memory.list("project:categories", limit=1)[1], flush=True)
"""


class Worker:
    """A process with the memory open; `start` gives it work, `done` waits for its answer."""

    def __init__(self, home: Path, watch: bool):
        program = [sys.executable, "-c", WORKER, str(home), "watch" if watch else "look"]
        self.process = Forked(program, env=environment(), text=True)

    def start(self, verb: str, *words: str) -> None:
        self.process.stdin.write(" ".join((verb, *words)) + "\n")
        self.process.stdin.flush()

    def done(self) -> str:
        answer = self.process.stdout.readline().strip()
        assert answer, self.process.stderr.read()
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(SECONDS)
        finally:
            self.process.kill()
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parallel") / "home"


@pytest.fixture(scope="module")
def workers(home: Path) -> Iterator[list[Worker]]:
    """Four processes, two of which learn of changes from the system."""
    with ExitStack() as stack:
        started = [stack.enter_context(Worker(home, watch)) for watch in (True, True, False, False)]
        assert [worker.done() for worker in started] == ["ready"] * 4
        yield started


def work(workers: list[Worker], jobs: list[tuple[str, list[str]]]) -> list[str]:
    for worker, (verb, words) in zip(workers, jobs, strict=True):
        worker.start(verb, *words)
    return [worker.done() for worker in workers]


def written(home: Path, *texts: str) -> list[str]:
    with open_session(home, watch=False) as memory:
        return [memory.write(Draft(text, project="categories")).id for text in texts]


@pytest.mark.slow
def test_four_times_fifty_writes_are_two_hundred_files_and_all_listed(
    home: Path, workers: list[Worker]
) -> None:
    before = len(list((home / "categories").rglob("*.md")))
    names = {letter: [f"{letter}{n}" for n in range(50)] for letter in "abcd"}
    work(workers, [("write", names_of_worker) for names_of_worker in names.values()])
    files = list((home / "categories").rglob("*.md"))
    assert len(files) == before + 200
    with open_session(home, watch=False) as memory:
        infos, total = memory.list("project:categories", limit=0)
        assert total == before + 200
        assert len({info.id for info in infos}) == before + 200
        contents = {memory.read(info, count=False).content for info in infos}
        for names_of_worker in names.values():
            assert {f"text {name}" for name in names_of_worker} <= contents
        changes = [change for change in memory.log(limit=0) if change.verb == "write"]
        assert len(changes) == total
    assert work(workers, [("count", [])] * 4) == [str(total)] * 4


def test_four_times_fifty_reads_of_one_memory_count_two_hundred(
    home: Path, workers: list[Worker]
) -> None:
    (ref,) = written(home, "read me")
    text = next((home / "categories").rglob("read-me-*.md")).read_bytes()
    work(workers, [("read", [ref] * 50)] * 4)
    with open_session(home, watch=False) as memory:
        access_count = memory.memory_id(ref).access_count
        assert access_count == 200
        access_count = memory.read(ref).access_count
        assert access_count == 201

    content = next((home / "categories").rglob("read-me-*.md")).read_bytes()
    assert content == text


@pytest.mark.slow
def test_forty_links_to_one_memory_are_forty_links(home: Path, workers: list[Worker]) -> None:
    hub, *spokes = written(home, "hub", *(f"spoke {n}" for n in range(40)))
    links = []
    for number, spoke in enumerate(spokes):
        # Every other link of a worker leads to the hub, the others from it
        links.append(f"{hub},{spoke}" if number // 4 % 2 else f"{spoke},{hub}")
    work(workers, [("link", links[part::4]) for part in range(4)])
    with open_session(home, watch=False) as memory:
        note = memory.read(hub)
        assert sorted(note.links) == sorted(spokes)
        assert len(note.links) == 40
        assert all(list(memory.read(spoke).links) == [hub] for spoke in spokes)
        ids = {info.id for info in memory.backlinks(hub)}
        assert ids == set(spokes)
    work(
        workers, [("unlink", [f"{hub},{spoke}" for spoke in spokes[part::4]]) for part in range(4)]
    )
    with open_session(home, watch=False) as memory:
        assert list(memory.read(hub).links) == []


def test_forty_tags_on_one_memory_are_forty_tags(home: Path, workers: list[Worker]) -> None:
    (ref,) = written(home, "tag me")
    tags_of_worker = [[f"t{part}-{n}" for n in range(10)] for part in range(4)]
    calls = []
    for worker_tags in tags_of_worker:
        calls.append(("tag", [f"{ref},{tag}" for tag in worker_tags]))
    work(workers, calls)
    with open_session(home, watch=False) as memory:
        tags = memory.read(ref).tags
        assert sorted(tags) == sorted(chain.from_iterable(tags_of_worker))


@pytest.mark.slow
def test_a_server_and_commands_and_processes_at_once(home: Path, workers: list[Worker]) -> None:
    (ref,) = written(home, "shared by all")
    with open_session(home, watch=False) as memory:
        before = memory.stats().projects["categories"]
    program = [sys.executable, "-m", "memoranda", "--home", str(home)]
    commands = [
        Forked([*program, *argv], env=environment(), stdin=DEVNULL)
        for argv in (
            ["read", ref],
            ["write", "from a command"],
            ["read", ref],
            ["tag", ref, "--add", "command"],
        )
    ]
    with Server("--home", str(home)) as server:
        for worker in workers:
            worker.start("read", *[ref] * 10)
        for number in range(10):
            server.data("read_note", identifier=ref, project="categories")
            note = {
                "title": f"s{number}",
                "content": f"from the server {number}",
                "directory": "inbox",
            }
            server.data("write_note", project="categories", **note)
        for worker in workers:
            worker.done()
        for command in commands:
            out, errors = command.communicate(timeout=SECONDS)
            assert (command.returncode, errors) == (0, b""), out
        hit = server.data("search_notes", query='"shared by all"', project="categories")["results"][
            0
        ]
        assert hit["tags"] == ["command"]
    with open_session(home, watch=False) as memory:
        assert memory.memory_id(ref).access_count == 4 * 10 + 10 + 2
        assert memory.stats().projects["categories"] == before + 10 + 1
    assert json.loads(run_memory(home, "list", "--json", "--limit", "1"))["total"] == before + 11
