"""kill -9 at random moments over all verbs, jobs and faces: nothing acknowledged is lost, nothing
is left behind.

Usage: random_kills.py FOLDER KILLS [SEED]. A fork works on a home; every piece of work sets one of
its cells (a file, an entry, a tag, a name) to a new value, or adds one to a list, and says so
before and after. It is killed, the home is opened again, and each cell must hold the last
acknowledged value or the one that was under way.
"""

from __future__ import annotations

import json
import os
import random
import re
import select
import shutil
import signal
import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from memoranda import Draft, cli, faces
from memoranda.engine import MemorySession, open_session
from memoranda.engine.graphs import opener
from memoranda.engine.overview import Overview
from memoranda.jobs.lifecycle import FACE, Scheduler
from memoranda.note.edit import Append
from memoranda.sources.layout import Layout

KILLS_A_HOME = 12
MEMORIES = ("memory", "agent", "archived", "superseded", "merged", "imported", "ingested")
LEFT = (".tmp-*", ".memory.md-*", ".pending*-*", "*.new")


class Work:
    """The work on one home. A piece is `set_<cell>(value)`, and `cells` reads back what they hold."""

    def __init__(self, home: Path, in_place: bool):
        self.home = home
        self.file = home.parent / f"{home.name}-graph.jsonl"
        self.memory = open_session(home, watch=False)
        graphs = opener(self.file) if in_place else None
        self.tools = faces.registry(["all"], self.memory.settings, graphs=graphs)
        self.agent = faces.registry(["agent"], self.memory.settings)
        self.jobs = Scheduler(self.memory.as_caller(None, FACE))

    def tool(self, name: str, **arguments: Any) -> str:
        if name in ("memory_write", "memory_tag"):
            registry = self.agent
        else:
            registry = self.tools
        reply = registry.call(self.memory, name, arguments)
        assert not reply.is_error, (name, reply.text)
        return reply.text

    def command(self, *arguments: str) -> None:
        with redirect_stdout(StringIO()):
            status = cli.main(["--home", str(self.home), *arguments])
        assert status == 0, arguments

    def beside(self, name: str) -> Path:
        return self.home.parent / f"{self.home.name}-{name}"

    # Cells that hold one value.
    def set_created(self, value: str) -> None:
        self.tool("memory", command="create", path="/memories/created.md", file_text=value)

    def set_replaced(self, value: str) -> None:
        old = self.text("memories/replaced.md")
        self.tool(
            "memory",
            command="str_replace",
            path="/memories/replaced.md",
            old_str=old,
            new_str=value,
        )

    def set_renamed(self, value: str) -> None:
        (old,) = self.home.glob("memories/deep/*/r.md")
        self.tool(
            "memory",
            command="rename",
            old_path=f"/{old.relative_to(self.home)}",
            new_path=f"/memories/deep/{value}/r.md",
        )

    def set_note(self, value: str) -> None:
        self.tool("write_note", title="note", content=value, directory="d", overwrite=True)

    def set_edited(self, value: str) -> None:
        old = self.memory.read("notes/edited", count=False).content.strip()
        self.tool(
            "edit_note",
            identifier="notes/edited",
            operation="find_replace",
            find_text=old,
            content=value,
        )

    def set_moved(self, value: str) -> None:
        (old,) = self.home.glob("notes/moved/*/m.md")
        self.memory.move(
            ("notes", str(old.relative_to(self.home / "notes"))), f"moved/{value}/m.md"
        )

    def set_tag(self, value: str) -> None:
        note = self.memory.read("notes/tagged", count=False)
        self.memory.tag("notes/tagged", add=[value], remove=list(note.tags))

    def set_entry(self, value: str) -> None:
        self.tool("memory_remember", key="entry", value=value)

    def set_bank(self, value: str) -> None:
        self.tool(
            "update",
            bank_type="project",
            bank_id="p",
            target_file="f.md",
            operation="replace",
            content=value,
        )

    def set_pair(self, value: str) -> None:
        self.memory.write_many(
            [Draft(value, project="notes", folder=f"pair/{value}", title=title) for title in "ab"]
        )
        for old in self.home.glob("notes/pair/*"):
            if old.name != value:
                self.tool("delete_note", identifier=f"pair/{old.name}", is_directory=True)

    # Lists: what was added stays.
    def add_inserted(self, value: str) -> None:
        self.tool(
            "memory",
            command="insert",
            path="/memories/inserted.md",
            insert_line=0,
            insert_text=value,
        )

    def add_memory(self, value: str) -> None:
        self.command("write", f"the {value} was seen")

    def add_agent(self, value: str) -> None:
        self.tool("memory_write", content=f"agents know {value}")

    def add_entity(self, value: str) -> None:
        self.tool(
            "memory_create_entities",
            entities=[{"name": value, "entityType": "t", "observations": [f"o{value}"]}],
        )

    def add_observation(self, value: str) -> None:
        self.tool(
            "memory_add_observations", observations=[{"entityName": "Ada", "contents": [value]}]
        )

    def add_undone(self, value: str) -> None:
        """A note deleted and taken back: never gone once both are acknowledged."""
        self.memory.write(Draft(value, title=value, folder="undone"))
        self.memory.delete(("notes", f"undone/{value}.md"))
        self.memory.undo()

    def add_archived(self, value: str) -> None:
        note = self.memory.write(Draft(f"archived {value}", project="categories"))
        self.command("archive", note.id)
        if value.endswith(("2", "7")):
            self.command("restore", note.id)

    def add_superseded(self, value: str) -> None:
        old = self.memory.write(Draft(f"before {value}o", project="categories"))
        self.memory.supersede(old.id, Draft(f"after {value}", project="categories"))

    def add_merged(self, value: str) -> None:
        """Two memories of one text, which a dream makes one."""
        for _ in "ab":
            self.memory.write(Draft(f"a merged thing was said about {value}", project="categories"))
        self.command("dream", "--level", "3")

    def add_imported(self, value: str) -> None:
        line = {
            "id": str(uuid4()),
            "content": f"imported {value}",
            "created_at": "2026-01-02T03:04:05Z",
        }
        self.beside("import.jsonl").write_text(json.dumps(line) + "\n")
        self.command("import", "--input", str(self.beside("import.jsonl")))

    def add_ingested(self, value: str) -> None:
        folder = self.beside("vault")
        folder.mkdir(exist_ok=True)
        (folder / f"{value}.md").write_text(f"ingested {value}\n")
        self.command("ingest", "--source", "obsidian", "--path", str(folder))

    def add_erased(self, value: str) -> None:
        """What was written, edited, archived or superseded, and then erased: the one list whose
        values are gone.
        """
        note = self.memory.write(Draft(f"erased {value}", project="categories"))
        self.memory.edit(note.id, Append(f"again erased {value}"))
        if value.endswith(("1", "4")):
            self.command("archive", note.id)
        self.command("erase", note.id, "--yes")

    # Jobs: they change no cell.
    def run_review(self, value: str) -> None:
        for item in self.memory.review(limit=2):
            self.memory.decide(item, item.choices[int(value[-1]) % len(item.choices)][0])

    def run_export(self, value: str) -> None:
        self.command("export", "--output", str(self.beside("export.jsonl")))
        written = self.beside("export.jsonl")
        # No memory yet: nothing is written
        if written.exists():
            lines = written.read_text().splitlines()
        else:
            lines = ()
        assert all(json.loads(line) for line in lines)

    def run_jobs(self, value: str) -> None:
        for _, step in self.jobs.steps():
            step()

    def run_overview(self, value: str) -> None:
        Overview(self.memory).refresh()

    def run_reads(self, value: str) -> None:
        self.memory.search("the", limit=5)
        self.memory.list(limit=5)
        self.tool("memory_recall", key="entry")
        self.tool("memory_read_graph")

    def run_rebuild(self, value: str) -> None:
        self.memory.reindex()

    def begin(self) -> None:
        """What the pieces need to be there before the first one."""
        for name in ("inserted", "replaced", "deep/v0/r"):
            self.tool("memory", command="create", path=f"/memories/{name}.md", file_text="v0")
        for title, folder in (("edited", ""), ("tagged", ""), ("m", "moved/v0")):
            self.memory.write(Draft("v0", title=title, folder=folder))
        ada = {"name": "Ada", "entityType": "t", "observations": []}
        self.tool("memory_create_entities", entities=[ada])
        self.tool("activate", bank_type="project", bank_id="p", project_name="p")
        for name in sorted(PIECES):
            if name.startswith("set_"):
                getattr(self, name)("v1")

    def text(self, path: str) -> str:
        return (self.home / path).read_text()

    def cells(self) -> dict[str, set[str]]:
        """What each cell holds, and each list."""
        find = self.home.glob
        if self.file.exists():
            graph = self.file.read_text()
        else:
            graph = "".join(p.read_text() for p in find("graph/**/*.md"))
        files_of_memories = [*find("categories/**/*.md"), *find("archive/**/*.md")]
        memories = "".join(path.read_text() for path in files_of_memories)
        return {
            "created": {self.text("memories/created.md")},
            "replaced": {self.text("memories/replaced.md")},
            "renamed": {p.parent.name for p in find("memories/deep/*/r.md")},
            "note": {self.memory.read("notes/d/note").content.strip()},
            "edited": {self.memory.read("notes/edited").content.strip()},
            "moved": {p.parent.name for p in find("notes/moved/*/m.md")},
            "tag": set(self.memory.read("notes/tagged").tags),
            "entry": {
                self.tool("memory_recall", key="entry").split("**value:** ")[1].split("\n")[0]
            },
            "bank": {next(iter(find("banks/projects/p/**/f.md"))).read_text().strip()},
            "pair": {p.name for p in find("notes/pair/*") if len(list(p.glob("*.md"))) == 2},
            "inserted": set(_values(self.text("memories/inserted.md"))),
            "undone": {p.stem for p in find("notes/undone/*.md")},
            **{name: set(_values(memories)) for name in MEMORIES},
            **{name: set(_values(graph)) for name in ("entity", "observation")},
        }


def _values(text: str) -> list[str]:
    return [
        word for word in text.replace('"', " ").replace("[", " ").split() if word.startswith("x")
    ]


PIECES = [name for name in vars(Work) if name.startswith(("set_", "add_", "run_"))]


def work(home: Path, in_place: bool, seed: int, out: int) -> None:
    """Pieces of work until it is killed: `+ piece value` before, `= piece value` after each."""
    chance = random.Random(seed)
    this = Work(home, in_place)
    for number in count(1):
        piece = chance.choice(PIECES)
        kind = "x" if piece.startswith("add_") else "v"
        value = f"{kind}{seed:x}n{number}"
        do_piece = getattr(this, piece)
        os.write(out, f"+ {piece} {value}\n".encode())
        do_piece(value)
        os.write(out, f"= {piece} {value}\n".encode())


class Home:
    """A home and what it must hold: for each cell the values it may have, for each list what must
    be in it.
    """

    def __init__(self, folder: Path, number: int):
        self.path = folder / f"home-{number}"
        self.in_place = number % 2 == 1
        first_work = Work(self.path, self.in_place)
        first_work.begin()
        first_work.memory.close()
        self.may = {name[4:]: {"v1"} for name in PIECES if name.startswith("set_")}
        self.must: dict[str, set[str]] = {
            name[4:]: set() for name in PIECES if name.startswith("add_")
        }

    def kill_one(self, seed: int, chance: random.Random) -> int:
        """Start a fork, kill it at a random moment, and take down what it said. Returns how many it
        acknowledged.
        """
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reader)
                work(self.path, self.in_place, seed, writer)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
        os.close(writer)
        output = b""
        end = None
        while end is None or time.monotonic() < end:
            ready, _, _ = select.select(
                [reader], [], [], 60 if end is None else max(0.0, end - time.monotonic())
            )
            if ready:
                block = os.read(reader, 1 << 16)
                if not block:
                    break
                output += block
                end = end or time.monotonic() + chance.uniform(0, 0.3)
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        while block := os.read(reader, 1 << 16):
            output += block
        os.close(reader)
        assert status == -signal.SIGKILL, f"the work failed on its own (seed {seed})"
        return self._take_down(output.decode().splitlines())

    def _take_down(self, lines: list[str]) -> int:
        acknowledged = 0
        for line in lines:
            sign, piece, value = line.split()
            kind, name = piece.split("_")
            if kind == "set":
                self.may[name] = {value} if sign == "=" else self.may[name] | {value}
            elif kind == "add" and sign == "=":
                self.must[name].add(value)
            acknowledged += sign == "="
        return acknowledged

    def check(self) -> None:
        """Open it as the next process does: everything acknowledged is there, and nothing is left
        behind.
        """
        later_work = Work(self.path, self.in_place)
        try:
            later_work.memory.sync()
            # A file used in place is looked after when it is used
            later_work.tool("memory_read_graph")
            with later_work.memory.exclusive():
                assert not later_work.memory.engine.ledger.unfinished()
            values_held = later_work.cells()
            for name, values in self.may.items():
                values_found = values_held[name]
                assert values_found <= values, (name, values_found, values)
                assert values_found, name
                if name != "pair":
                    assert len(values_found) == 1, (name, values_found)
                self.may[name] = values_found
            erased = [value.encode() for value in self.must["erased"]]
            for path in filter(Path.is_file, self.path.rglob("*")) if erased else ():
                data = path.read_bytes()
                assert not [value for value in erased if re.search(value + rb"(?![0-9])", data)], (
                    path
                )
            for name, required in self.must.items():
                if name == "erased":
                    continue
                assert required <= values_held[name], (name, required - values_held[name])
            numbers = [change.number for change in later_work.memory.log(limit=0)]
            assert numbers == list(range(len(numbers), 0, -1)) or len(numbers) == len(set(numbers))
            remains = []
            for pattern in LEFT:
                remains += [*self.path.rglob(pattern), *self.path.parent.glob(pattern)]
            assert not remains, remains
            paths = list(Layout(self.path).private.glob("redo-*"))
            assert paths == []
        finally:
            later_work.memory.close()

    def check_index(self) -> None:
        """What the index says is what a new one says."""
        later_work = Work(self.path, self.in_place)
        with later_work.memory as memory:
            memory.sync()
            before = self._shown(memory)
            with memory.engine.guard:
                assert memory.index.is_sound()
            memory.reindex()
            after = self._shown(memory)
            assert before == after, before ^ after

    @staticmethod
    def _shown(memory: MemorySession) -> set[tuple[str, ...]]:
        infos, _ = memory.list(limit=0)
        return {(info.project, info.path, info.etag, info.permalink, info.title) for info in infos}


def main(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged = 0
    home = None
    for number in range(kills):
        if number % KILLS_A_HOME == 0:
            if home is not None:
                home.check_index()
                shutil.rmtree(home.path)
            home = Home(folder, number // KILLS_A_HOME)
        assert home is not None
        acknowledged += home.kill_one(seed * 1_000_000 + number, chance)
        home.check()
        if number % 100 == 99:
            print(
                f"{number + 1} kills, {acknowledged} acknowledged pieces of work, nothing lost",
                flush=True,
            )
    assert home is not None
    home.check_index()
    print(
        f"done: {kills} kills, {acknowledged} acknowledged pieces of work, nothing lost, nothing left behind"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 7)
