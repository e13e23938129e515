"""Entries in JSON files of this machine, beside notes in a database: history, undo and erasing."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoranda import CannotUndo, Draft
from memoranda.engine import MemorySession, open_session
from memoranda.engine.json_entries import JsonEntries, JsonEntryFolder
from memoranda.ledger.change import FIRST_OF_MACHINE, Change
from memoranda.sources.locked_file import Replacement
from memoranda.transfer.whole_home import back_up
from postgres.conftest import Replica, in_child


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def entries_of(memory: MemorySession, folder: Path) -> JsonEntries:
    return JsonEntryFolder(folder).entries(memory.as_caller("claude", "mcp"))


def values(folder: Path) -> dict[str, str]:
    return {row["key"]: row["value"] for row in json.loads((folder / "default.json").read_text())}


def verbs(memory: MemorySession) -> list[tuple[str, str]]:
    return [(change.verb, change.path) for change in memory.log(limit=0)]


def test_changes_of_entries_are_in_the_log_between_those_of_notes(
    replica: Replica, folder: Path
) -> None:
    memory = replica()
    entries = entries_of(memory, folder)
    memory.write(Draft("one", title="First"))
    entries.put("default", "name", "Ann")
    memory.write(Draft("two", title="Second"))
    entries.put("default", "name", "Zoë")
    assert verbs(memory) == [
        ("overwrite", "default.json:name"),
        ("write", "Second.md"),
        ("write", "default.json:name"),
        ("write", "First.md"),
    ]
    numbers = [change.number for change in memory.log(limit=0)]
    assert numbers == [FIRST_OF_MACHINE + 1, 2, FIRST_OF_MACHINE, 1]
    first_page = memory.log(limit=2)
    pages = [memory.log_by_run(limit=2, before=number) for number in numbers]
    change_numbers = [change.number for change in first_page]
    assert change_numbers == numbers[:2]
    numbers_of_pages = []
    for page in pages:
        numbers_of_pages.append([run[0].number for run in page])
    assert numbers_of_pages == [numbers[1:3], numbers[2:4], numbers[3:], []]


def test_the_texts_of_each_change_are_found_by_its_number(replica: Replica, folder: Path) -> None:
    memory = replica()
    entries = entries_of(memory, folder)
    memory.write(Draft("one", title="First"))
    entries.put("default", "name", "Ann")
    memory.write(Draft("two", title="Second"))
    entries.put("default", "name", "Zoë")
    memory.write(Draft("three", title="Third"))
    texts = []
    for change in memory.log(limit=0):
        texts.append([revision.after for revision in memory.revisions(change.number)])

    assert [len(texts_of_change) for texts_of_change in texts] == [1, 0, 1, 0, 1]
    assert "two" in str(texts[2])


def test_the_changes_of_a_day_end_at_its_midnight(replica: Replica, folder: Path) -> None:
    memory = replica()
    history = memory.engine.ledger.history
    numbers = {
        1: "2026-05-07T10:00:00Z",
        FIRST_OF_MACHINE: "2026-05-07T11:00:00Z",
        2: "2026-05-07T12:00:00Z",
        FIRST_OF_MACHINE + 1: "2026-05-08T08:00:00Z",
        3: "2026-05-08T09:00:00Z",
        FIRST_OF_MACHINE + 2: "2026-05-09T10:00:00Z",
    }
    history.append_all(
        [Change(number, time, "write", "", "", None, None) for number, time in numbers.items()]
    )

    def before(time: str) -> list[int]:
        first = history.first_since(time)
        return [change.number for change in history.changes(before=first)][::-1]

    in_order = list(numbers)
    assert before("2026-05-07T00:00:00Z") == []
    assert before("2026-05-08T00:00:00Z") == in_order[:3]
    assert before("2026-05-09T00:00:00Z") == in_order[:5]
    assert before("2026-05-10T00:00:00Z") == in_order


def test_changes_of_entries_go_back_in_any_order(replica: Replica, folder: Path) -> None:
    memory = replica()
    entries = entries_of(memory, folder)
    entries.put("default", "name", "Ann")
    entries.put("default", "name", "Zoë")
    memory.write(Draft("two", title="Second"))
    entries.put("default", "town", "Kyoto")
    memory.undo(FIRST_OF_MACHINE + 1)
    assert values(folder) == {"name": "Ann", "town": "Kyoto"}
    memory.undo()
    assert values(folder) == {"name": "Ann"}
    memory.undo()
    assert verbs(memory)[0] == ("undo", "Second.md")
    entries.put("default", "name", "Bob")
    with pytest.raises(CannotUndo, match="changed later"):
        memory.undo(FIRST_OF_MACHINE)


def test_another_machine_sees_and_undoes_only_what_is_shared(
    replica: Replica, folder: Path
) -> None:
    first, second = replica("here"), replica("there")
    entries_of(first, folder).put("default", "zq4711key", "zq4712value")
    first.write(Draft("one", title="First"))
    assert verbs(second) == [("write", "First.md")]
    second.write(Draft("two", title="Second"))
    assert len(verbs(first)) == 3
    texts = second.engine.ledger.database.rows("select data from text")
    for row in texts:
        assert b"zq47" not in bytes(row["data"])


def test_a_history_that_is_fetched_anew_leaves_that_of_entries(
    replica: Replica, folder: Path
) -> None:
    first, second = replica("here"), replica("there")
    entries = entries_of(first, folder)
    entries.put("default", "name", "Ann")
    entries.put("default", "name", "Zoë")
    second.write(Draft("zq4711 words", title="First"))
    second.write(Draft("two", title="Second"))
    second.erase("notes/first")
    first.engine.ledger._folder.set_state(None)
    with first.engine.ledger.lock:
        first.engine.ledger._update_folder()
    assert ("write", "Second.md") in verbs(first)
    first.undo(FIRST_OF_MACHINE + 1)
    assert values(folder) == {"name": "Ann"}


def test_erasing_an_entry_leaves_nothing_of_it(
    replica: Replica, folder: Path, tmp_path: Path
) -> None:
    memory = replica()
    entries = entries_of(memory, folder)
    memory.write(Draft("one", title="First"))
    entries.put("default", "zq4711key", "zq4712first value")
    entries.put("default", "other", "stays here")
    entries.put("default", "zq4711key", "zq4713second value")
    erased = memory.erase(f"{folder}/default.json:zq4711key")
    assert erased.remains == ()
    assert erased.changes == 2
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    for word in (b"zq4711", b"zq4712", b"zq4713"):
        paths = [path for path in files if word in path.read_bytes()]
        assert paths == []
    assert values(folder) == {"other": "stays here"}
    memory.undo(FIRST_OF_MACHINE + 1)
    assert values(folder) == {}


@pytest.mark.parametrize("moment", ["prepare", "run"])
def test_a_writer_that_dies_leaves_file_and_history_alike(
    space: str, replica: Replica, folder: Path, tmp_path: Path, moment: str
) -> None:
    memory = replica()
    entries_of(memory, folder).put("default", "name", "Ann")

    def work() -> None:
        write = getattr(Replacement, moment)

        def dies(self: Replacement) -> None:
            write(self)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(Replacement, moment, dies)
        with open_session(space) as dying:
            entries_of(dying, folder).put("default", "name", "Zoë")

    memory.close()
    assert in_child(tmp_path / "cache" / "a", work) == signal.SIGKILL
    memory = replica()
    if moment == "prepare":
        assert values(folder) == {"name": "Ann"}
        assert len(verbs(memory)) == 1
    else:
        assert values(folder) == {"name": "Zoë"}
        assert len(verbs(memory)) == 2
        memory.undo()
        assert values(folder) == {"name": "Ann"}


def test_a_purge_keeps_the_last_of_both_series(replica: Replica, folder: Path) -> None:
    memory = replica()
    entries = entries_of(memory, folder)
    for value in ("Ann", "Zoë", "Bob"):
        entries.put("default", "name", value)
        memory.write(Draft(value, title=value))
    history = memory.engine.ledger.history
    with memory.engine.writing():
        memory.engine.ledger.purge(memory.clock())
    numbers = [change.number for change in history.changes()]
    assert sorted(numbers) == [3, FIRST_OF_MACHINE + 2]
    entries.put("default", "name", "Eve")
    number = memory.log()[0].number
    assert number == FIRST_OF_MACHINE + 3


def test_a_backup_leaves_out_what_is_of_this_machine(
    replica: Replica, folder: Path, tmp_path: Path
) -> None:
    memory = replica()
    memory.write(Draft("one", title="First"))
    entries_of(memory, folder).put("default", "zq4711key", "value")
    back_up(memory, tmp_path / "backup")
    with open_session(tmp_path / "backup") as copy:
        assert verbs(copy) == [("write", "First.md")]
        copy.write(Draft("two", title="Second"))
        number = copy.log()[0].number
        assert number == 2


def test_files_in_a_folder_whose_name_is_no_text_have_history(
    replica: Replica, tmp_path: Path
) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/kept-\xff"))
    memory = replica()
    entries = entries_of(memory, folder)
    entries.put("default", "name", "Ann")
    entries.put("default", "name", "Zoë")
    memory.undo()

    assert values(folder) == {"name": "Ann"}
    roots = [change.root for change in memory.log()]
    assert roots == [str(folder)] * 3


def test_counts_of_recalls_are_folded_into_the_file(replica: Replica, folder: Path) -> None:
    memory = replica()
    entry_folder = JsonEntryFolder(folder)
    entries = entry_folder.entries(memory)
    entries.put("default", "name", "Ann")
    entries.count(entries.get("default", "name"))
    entry_folder.fold()
    file = folder / "default.json"
    [row] = json.loads(file.read_text())

    assert row["access_count"] == 1
    assert len(verbs(memory)) == 1


def test_a_change_of_an_entry_is_seen_though_another_clock_is_ahead(
    replica: Replica, folder: Path
) -> None:
    memory = replica()
    entries = entries_of(memory, folder)
    ahead = Change(1, "2999-01-01T00:00:00Z", "write", "", "", None, None)
    with memory.engine.writing():
        memory.engine.ledger.history.append(ahead)
    entries.put("default", "name", "Ann")
    before = memory.journal_stamp()
    entries.put("default", "name", "Zoë")
    assert memory.journal_stamp() != before


def test_purging_what_is_of_this_machine_changes_nothing_in_the_database(
    replica: Replica, folder: Path
) -> None:
    memory = replica()
    entries = entries_of(memory, folder)
    memory.write(Draft("one", title="First"))
    entries.put("default", "name", "Ann")
    entries.put("default", "name", "Zoë")
    ledger = memory.engine.ledger
    before = ledger._database.newest()
    with memory.engine.writing():
        assert ledger.history.purge(datetime(2999, 1, 1, tzinfo=UTC)) == 1

    assert ledger._database.newest() == before
    numbers = [change.number for change in memory.log()]
    assert numbers == [FIRST_OF_MACHINE + 1, 1]


def test_what_agents_write_a_day_includes_entries_written_through_another_process(
    replica: Replica, folder: Path
) -> None:
    first_replica, second = replica(), replica()

    def bytes_written(memory: MemorySession) -> int:
        engine = memory.engine
        uses = engine.day_use.since_midnight(engine.clock(), engine.settings)
        return uses["claude"].bytes

    entries_of(first_replica, folder).put("default", "name", "Ann")
    first = bytes_written(second)
    first_replica.write(Draft("one", title="First"))
    entries_of(first_replica, folder).put("default", "town", "x" * 500)
    assert bytes_written(second) == bytes_written(first_replica) > first + 500
    entries_of(second, folder).put("default", "street", "x" * 500)
    second.write(Draft("two", title="Second"))
    assert bytes_written(second) == bytes_written(first_replica) > first + 1000
