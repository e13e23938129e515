"""Every verb of the library once, in a program that type checkers accept.

    python samples/library.py FOLDER

The memory is in FOLDER/home; nothing else of yours is touched.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from memoranda import (
    Append,
    Change,
    Draft,
    Hit,
    MemorandaError,
    Memory,
    Note,
    NoteInfo,
    NotFound,
    Project,
    Query,
    ReplaceSection,
    SetKeys,
    StrReplace,
    open_memory,
)


def write(memory: Memory) -> None:
    """Store, change, connect and move notes."""
    tea: Note = memory.write("Tea at four")
    print(tea.title, tea.checksum)
    likes = memory.write(Draft("likes green tea", category="preferences", tags=["tea"]))
    buys = memory.write(Draft("buys tea at Mariage", category="habits"))
    memory.write(Draft("# Plan\n\n## Goals\n\nfew\n", title="Plan", folder="work"), overwrite=True)
    red, blue = memory.write_many([Draft("red", title="Red"), Draft("blue", title="Blue")])

    memory.edit("Plan", Append("\n- [fact] begun"))
    memory.edit("Plan", StrReplace("few", "fewer"))
    memory.edit("Plan", ReplaceSection("Goals", "fewest"))
    plan = memory.edit("Plan", SetKeys({"status": "open"}))
    memory.edit(plan, Append("\n[[Tea at four]]"), checksum=plan.checksum)
    memory.tag("Plan", add=["work"], remove=["draft"])

    is_new: bool = memory.link(likes, buys)
    assert is_new
    assert memory.unlink(likes, buys)
    memory.link(red, blue, "contrasts_with")
    moved = memory.move("Red", "colours/")
    print(moved.old_path, moved.new_path)
    print(memory.delete("Blue").change)
    old, new = memory.supersede(likes, Draft("likes black tea", category="preferences"))
    print(old.permalink, new.supersedes)
    print(memory.remind("call Bob tomorrow at 3pm").header)
    archived, _ = memory.list(Query(phase="archived"))
    for info in archived:
        memory.bring_back(info)


def read(memory: Memory) -> None:
    """Find and read notes."""
    plan: Note = memory.read("Plan", count=False)
    info: NoteInfo = memory.find("Plan")
    print(plan.body, [observation.content for observation in plan.observations], info.path)
    try:
        memory.find("Plann")
    except NotFound as error:
        print(error.identifier, error.suggestions, error.hint)

    hits = memory.search("tea tag:tea", limit=3, explain=True, max_tokens=200)
    for hit in hits:
        print(shown(hit), hits.total)
    best: list[Hit] = hits[:1]
    print(best)
    notes, total = memory.list("tag:work", order="path")
    recent, count, since = memory.recent("1d", projects=["notes"])
    print(notes, total, recent, count, since.isoformat())
    page = memory.directory("notes", depth=2)
    print([entry.path for entry in page.entries], page.total)
    print(memory.context("Which tea?", max_tokens=100, as_of=datetime.now(UTC)))
    near = memory.related("Plan", depth=2)
    print([edge.target for edge in near.edges], [near_note.depth for near_note in near.reached])
    print(memory.backlinks("Tea at four"), memory.stats().projects)


def shown(hit: Hit) -> str:
    """A hit as a line."""
    return f"{hit.score:.2f} {hit.note.title}: {hit.passage}"


def go_back(memory: Memory) -> None:
    """Look at the history, take changes back, remove for good."""
    changes: list[Change] = memory.log(limit=5)
    print([(change.number, change.verb) for change in changes])
    for revision in memory.revisions(changes[0].number):
        print(revision.before, revision.after)
    memory.delete("Plan")
    print(memory.undo().undoes)
    memory.edit("Plan", Append("\nmore"))
    place, number = memory.restore("notes/work/Plan.md")
    print(place, number)
    print(memory.erase("Tea at four", dry_run=True).notes)
    memory.erase("Tea at four")


def keep_up(memory: Memory, folder: Path) -> None:
    """What the owner decides, projects, upkeep, moving in and out."""
    for question in memory.review(limit=1):
        print(question.text, memory.decide(question, question.choices[0][0]).key)
    project: Project = memory.add_project("work", folder / "Work")
    print(project.root, memory.remove_project("work").name)
    memory.configure("daemon.interval", "2m")

    print([outcome.job for outcome in memory.upkeep(dry_run=True)])
    print([action.reason for action in memory.decay(dry_run=True)])
    print([action.verb for action in memory.dream(level=2, dry_run=True).actions])
    vault = folder / "Vault"
    vault.mkdir(exist_ok=True)
    (vault / "Rain.md").write_text("rain", "utf-8")
    print(memory.ingest("obsidian", vault)["obsidian"].ingested)
    lines = list(memory.export(category="preferences"))
    print(memory.import_(lines).unchanged, memory.reindex())


def main(folder: Path) -> None:
    memory = open_memory(folder / "home", watch=False)
    print(memory, memory.home, memory.agent, memory.warnings)
    print([project.name for project in memory.projects])
    print(memory.session.settings.zone)
    try:
        write(memory)
        read(memory)
        go_back(memory)
        keep_up(memory, folder)
    except MemorandaError as error:
        print(error.code, error, error.hint, file=sys.stderr)
        raise
    finally:
        memory.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
