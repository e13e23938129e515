"""`memory doctor` names what is damaged in the ledger, in words, with what can be done; the notes are
whole, and after `--fix` it finds nothing more.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import memoranda
from memoranda import Draft
from memoranda.engine import MemorySession, open_session
from memoranda.engine.doctor import Finding, examine, repair
from memoranda.engine.exchange import Exchange
from memoranda.engine.upkeep import Upkeep
from memoranda.ledger.change import VERBS
from memoranda.ledger.history import LARGE
from memoranda.note.edit import Rewrite

LEDGER_CODES = {
    "damaged_ledger",
    "damaged_text",
    "missing_text",
    "damaged_change",
    "empty_change",
    "lost_change",
    "strange_change",
}


@pytest.fixture(scope="module")
def whole_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole") / "home"
    with open_session(place, watch=False) as memory:
        memory.write(Draft("first\n", title="tea"))
        memory.edit("notes/tea", Rewrite("second\n"))
        memory.edit("notes/tea", Rewrite("third\n"))
        memory.write(Draft("x" * (LARGE + 1), title="large"))
        memory.edit("notes/large", Rewrite("small\n"))
        memory.write(Draft("never changed\n", title="still"))
    return place


@pytest.fixture
def home(whole_home: Path, tmp_path: Path) -> Path:
    """A copy: indexing the large note takes a second."""
    return shutil.copytree(whole_home, tmp_path / "home")


def run(home: Path, sql: str) -> None:
    """Change the ledger behind the memory's back."""
    path = home / ".memoranda/ledger.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(sql)


def change_text(home: Path) -> None:
    run(home, "update text set data = data || 'x' where rowid = 1")


def remove_text(home: Path) -> None:
    run(home, "delete from text where rowid = 1")


def change_large_text(home: Path) -> None:
    (large,) = (home / ".memoranda/texts").iterdir()
    os.chmod(large, 0o600)
    large.write_bytes(large.read_bytes()[:-1] + b"y")


def remove_large_text(home: Path) -> None:
    (large,) = (home / ".memoranda/texts").iterdir()
    large.unlink()


def damage_details(home: Path) -> None:
    run(home, "update change set details = '{torn' where number = 2")


def damage_writer(home: Path) -> None:
    run(home, "update step set made_by = 'torn}' where change = 2")


def remove_change(home: Path) -> None:
    run(home, "delete from change where number = 2")


def remove_steps(home: Path) -> None:
    run(home, "delete from step where change = 2")


DAMAGES: dict[Callable[[Path], None], str] = {
    change_text: "damaged_text",
    remove_text: "missing_text",
    change_large_text: "damaged_text",
    remove_large_text: "missing_text",
    damage_details: "damaged_change",
    damage_writer: "damaged_change",
    remove_change: "damaged_change",
    remove_steps: "empty_change",
}


def of_ledger(memory: MemorySession) -> list[Finding]:
    return [finding for finding in examine(memory) if finding.code in LEDGER_CODES]


def test_a_whole_history_has_no_finding(home: Path) -> None:
    with open_session(home, watch=False) as memory:
        assert of_ledger(memory) == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_and_mended_and_the_notes_are_whole(
    home: Path, damage: Callable[[Path], None]
) -> None:
    damage(home)
    with open_session(home, watch=False) as memory:
        findings = of_ledger(memory)
        codes = {finding.code for finding in findings}
        assert codes == {DAMAGES[damage]}
        for finding in findings:
            assert "#" in finding.text, findings
        for finding in findings:
            assert finding.fix
        text = memory.read("notes/tea").text
        assert text.endswith("third\n")
        assert memory.log(limit=0)
        repair(memory, findings)
        assert of_ledger(memory) == []
        memory.edit("notes/still", Rewrite("changed\n"))
        memory.undo()


def destroyed_values() -> Iterator[tuple[str, str, str]]:
    """Yield tables, columns and values that no change and no step has there."""
    columns = {
        "change": "time verb project path agent face undoes run details made_by",
        "step": "do project path dest old new mode scope kept size made_by",
    }
    may_be_any_text = {"verb", "project", "path", "agent", "face", "dest", "scope"}
    for table, names in columns.items():
        for column in names.split():
            yield table, column, "x'ff00fe'"
            if column not in may_be_any_text:
                yield table, column, "'torn{'"
            if column not in ("path", "dest"):
                yield table, column, "''"
    for column in ("details", "made_by"):
        yield "change", column, "'[1]'"
        yield "change", column, "-7"
    # Values that another change or step may have
    yield "change", "verb", "'zzz'"
    yield "change", "verb", "'undo'"
    yield "change", "undoes", "1"
    for column in ("old", "new", "mode"):
        yield "step", column, "null"
    for kind in ("remove", "move", "mkdir", "symlink"):
        yield "step", "do", f"'{kind}'"
    yield "step", "dest", "'elsewhere.md'"
    yield "step", "link", "'elsewhere.md'"


def test_a_destroyed_line_of_any_column_is_named_and_mended(home: Path, tmp_path: Path) -> None:
    not_named = []
    not_mended = []
    for table, column, value in destroyed_values():
        torn = shutil.copytree(home, tmp_path / "torn")
        key = "number" if table == "change" else "change"
        run(torn, f"update {table} set {column} = {value} where {key} = 2")
        with open_session(torn, watch=False) as memory:
            findings = of_ledger(memory)
            if not findings:
                not_named.append((table, column, value))
            repair(memory, findings)
            text = memory.read("notes/tea").text
            if of_ledger(memory) or not text.endswith("third\n") or not memory.log(limit=0):
                not_mended.append((table, column, value))
        shutil.rmtree(torn)
    assert not_named == []
    assert not_mended == []


def test_a_change_with_several_faults_is_named_once(home: Path) -> None:
    run(
        home,
        "update change set details = '{torn', made_by = '{torn', verb = 'zzz' where number = 2",
    )
    run(home, "update change set time = x'ff' where number = 2")
    run(home, "update step set made_by = '{torn', size = -1 where change = 2")
    with open_session(home, watch=False) as memory:
        findings = of_ledger(memory)
        codes = [finding.code for finding in findings]
        assert codes == ["lost_change"]
        repair(memory, findings)
        assert of_ledger(memory) == []


def test_steps_without_their_change_are_named_once_whatever_is_in_them(home: Path) -> None:
    run(home, "delete from change where number = 2")
    run(home, "update step set made_by = '{torn' where change = 2")
    with open_session(home, watch=False) as memory:
        codes = [finding.code for finding in of_ledger(memory)]
    assert codes == ["damaged_change"]


def test_a_change_of_which_nothing_is_left_is_told_and_not_mended(home: Path) -> None:
    for table, column in (("change", "number"), ("step", "change")):
        run(home, f"delete from {table} where {column} in (2, 3)")
        run(home, f"delete from {table} where {column} = 5")
    with open_session(home, watch=False) as memory:
        findings = [finding for finding in examine(memory) if finding.code == "missing_change"]
    texts = [finding.text for finding in findings]
    levels = {finding.level for finding in findings}
    fixes = {finding.fix for finding in findings}
    assert [text.partition(" not in")[0] for text in texts] == [
        "changes #2 to #3 are",
        "change #5 is",
    ]
    assert levels == {"info"}
    assert fixes == {""}


def test_what_was_purged_is_no_gap(home: Path) -> None:
    for table, column in (("change", "number"), ("step", "change")):
        run(home, f"delete from {table} where {column} <= 3")
    with open_session(home, watch=False) as memory:
        codes = {finding.code for finding in examine(memory)}
    assert "missing_change" not in codes


def test_every_verb_of_the_code_is_known_to_the_examination() -> None:
    package = Path(memoranda.__file__).parent
    verbs = set()
    for file in package.rglob("*.py"):
        verbs |= set(re.findall(r"\.change\(\s*\"([a-z]+)\"", file.read_text("utf-8")))
    assert len(verbs) > 10
    assert verbs <= VERBS


def test_an_agent_is_not_told_whose_texts_are_damaged(home: Path) -> None:
    change_text(home)
    with open_session(home, watch=False) as memory:
        assert of_ledger(memory.as_caller("alice", "mcp")) == []


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_torn_pages_are_found_and_the_history_begins_again(home: Path, at: float) -> None:
    path = home / ".memoranda/ledger.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        for number in range(200):
            connection.execute(
                "insert into text values (?, ?)", (f"{number:064}", os.urandom(3_000))
            )
        connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    place = home / ".memoranda/ledger.db"
    data = bytearray(place.read_bytes())
    begin = int(len(data) * at) // 4096 * 4096
    data[begin : begin + 8192] = b"\xa5" * 8192
    place.write_bytes(data)
    with open_session(home, watch=False) as memory:
        findings = examine(memory)
        assert {finding.code for finding in findings} & {"damaged_ledger", "history_lost"}, findings
        repair(memory, [finding for finding in findings if finding.fix])
        assert of_ledger(memory) == []
        text = memory.read("notes/tea").text
        assert text.endswith("third\n")
        memory.edit("notes/tea", Rewrite("fourth\n"))
        memory.undo()
        assert any("begins again" in finding.text for finding in examine(memory))


def test_a_change_that_stores_counts_of_reads_is_not_damaged(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        info = memory.write(Draft("We deploy on Fridays.", category="decisions"))
        memory.as_caller("claude", "mcp").read(info.id)

        counted_notes = Upkeep(memory).fold()
        findings = examine(memory)

    assert counted_notes == 1
    assert [finding.code for finding in findings if finding.code in LEDGER_CODES] == []


def test_a_text_that_lost_a_conflict_in_an_import_is_not_damaged(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        info = memory.write(Draft("here", title="tea"))
        Exchange(memory).keep([(info, b"once\n")])

        findings = [finding for finding in examine(memory) if finding.code in LEDGER_CODES]
        memory.restore("notes/tea")
        text = memory.read("notes/tea").text

    assert findings == []
    assert text == "once\n"


def test_a_change_whose_files_wait_for_the_disk_leaves_no_gap(home: Path) -> None:
    for table, column in (("change", "number"), ("step", "change")):
        run(home, f"delete from {table} where {column} in (1, 3)")
    run(home, "insert into unsynced (change, batch, boot) values (2, 1, 'refused now')")
    with open_session(home, watch=False) as memory:
        codes = {finding.code for finding in examine(memory)}
    assert "missing_change" not in codes
