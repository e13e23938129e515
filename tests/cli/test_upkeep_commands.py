"""status, doctor, reindex (contract 001, 16)."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from editing import replace_in


def test_status_counts_what_there_is(terminal: Any) -> None:
    terminal.write("a")
    terminal.write("b", "--category", "skills")
    lines = dict(line.split(": ", 1) for line in terminal.ok("status").splitlines())
    assert list(lines) == [
        "home",
        "memories",
        "projects",
        "index",
        "daemon",
        "last dream",
        "pending reminders",
        "unreadable files",
        "semantic",
        "written today",
    ]
    assert lines["home"] == str(terminal.home)
    assert lines["memories"].startswith("2 (")
    assert "skills 1" in lines["memories"]
    assert "inbox 1" in lines["memories"]
    assert "categories 2" in lines["projects"]
    assert (lines["index"], lines["daemon"], lines["last dream"]) == (
        "fresh",
        "not running",
        "never",
    )
    row = terminal("status", "--json").json
    assert row["memories"]["total"] == 2
    assert row["memories"]["phases"]["organized"] == row["memories"]["categories"]["skills"] == 1
    assert row["daemon"] == {"running": False, "pid": None}


def test_status_shows_when_the_last_dream_was_and_projects_of_any_name(terminal: Any) -> None:
    for name in ("total", "running"):
        terminal.ok("project", "add", name, str(terminal.folder / name))
    report = terminal.home / ".memoranda" / "dream-report.json"
    report.write_text(
        '{"last_dream": "2023-11-14T22:13:20Z", "level": 1, "actions": [], "report": {}}'
    )
    text = terminal.ok("status")
    assert "kv 0, total 0, running 0\n" in text
    assert "\nlast dream: 2023-11-14 22:13\n" in text
    assert terminal("status", "--json").json["last_dream"] == "2023-11-14T22:13:20Z"


def test_status_sees_what_was_changed_by_hand(terminal: Any) -> None:
    terminal.write("a")
    folder = terminal.home / "notes"
    folder.mkdir(exist_ok=True)
    file = terminal.home / "notes" / "by hand.md"
    file.write_text("x\n")

    assert "\nindex: stale\n" in terminal.ok("status")
    assert "\nindex: fresh\n" in terminal.ok("status")


def test_a_daemon_at_work_is_named_by_status_and_its_lock_is_no_finding(terminal: Any) -> None:
    terminal.write("a")
    with open(terminal.home / ".daemon.lock", "w") as lock:
        pid = os.getpid()
        lock.write(f"{pid}\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        output = terminal.ok("status")
        assert f"\ndaemon: running {pid}\n" in output
        document = terminal("status", "--json").json
        assert document["daemon"] == {"running": True, "pid": pid}
        assert terminal.ok("doctor") == "0 problems\n"
        assert terminal.ok("doctor", "--fix") == "0 problems\n"
        text = (terminal.home / ".daemon.lock").read_text()
        assert text == f"{pid}\n"

    assert "\ndaemon: not running\n" in terminal.ok("status")


def test_status_counts_reminders_that_will_fire(terminal: Any) -> None:
    due = "due_at: 2026-05-08T15:00:00Z"
    fired = "fired_at: 2026-05-08T15:00:00Z"
    for header in (due, f"{due}\n{fired}", f"{due}\n{fired}\nrepeat: FREQ=DAILY", "x: y"):
        ref = terminal.write("tea", "--category", "reminders")
        path = terminal.home / "categories" / "reminders" / f"tea-{ref[:8]}.md"
        replace_in(path, "version: 1\n", f"version: 1\n{header}\n")

    document = terminal("status", "--json").json
    assert document["pending_reminders"] == 2


def test_doctor_names_a_problem_with_level_code_and_path(terminal: Any) -> None:
    terminal.write("a")
    bad = terminal.home / "categories" / "inbox" / "bad.md"
    bad.write_bytes(b"\xff")
    ran = terminal("doctor", "--json")
    finding = next(
        candidate for candidate in ran.json["findings"] if candidate["code"] == "unreadable"
    )
    assert list(finding) == ["level", "code", "path", "text", "fixed"]
    assert ran.status == (1 if finding["level"] == "error" else 0)
    lines = terminal("doctor").out.splitlines()
    assert f"{finding['level']} unreadable {finding['path']}: {finding['text']}" in lines
    assert lines[-1] == f"{ran.json['problems']} problems" != "0 problems"


def test_doctor_repairs_when_told_to_and_says_so_first(terminal: Any) -> None:
    terminal.write("a")
    os.chmod(terminal.home, 0o755)
    assert "permissions" in terminal("doctor").out
    tried = terminal("doctor", "--fix", "--dry-run")
    assert "(would set its mode to 700)" in tried.out
    assert terminal.home.stat().st_mode & 0o777 == 0o755
    result = terminal("doctor", "--fix")
    assert "(fixed)" in result.out
    assert result.out.endswith("\n0 problems\n")
    assert result.status == 0
    assert terminal.home.stat().st_mode & 0o777 == 0o700
    assert terminal.ok("doctor") == "0 problems\n"


def test_reindex_counts_what_it_indexed(terminal: Any) -> None:
    terminal.write("a")
    terminal.write("b")
    assert terminal.ok("reindex").startswith("Indexed 2 notes in ")
    row = terminal("reindex", "--json").json
    assert row["notes"] == 2
    assert row["seconds"] >= 0


def test_doctor_tells_what_is_wrong_with_the_graph_file_of_the_configuration(terminal, tmp_path):
    file = tmp_path / "memory.jsonl"
    terminal("write", "a", "text")
    terminal.configure(f"graph:\n  file: {file}\n")
    assert "memory.jsonl" not in terminal("doctor").out
    file.write_text('{"type":"entity","name":"a"}\ntorn\n')
    ran = terminal("doctor")
    assert "memory.jsonl line 2: not JSON, kept and ignored" in ran.out
    assert ran.err == ""
    file.write_text("[1]")
    assert "memory.jsonl is a JSON array" in terminal("doctor").out


def test_doctor_names_the_lock_of_a_daemon_that_was_killed_and_empties_it(terminal: Any) -> None:
    terminal.write("a")
    place = terminal.home / ".daemon.lock"
    place.write_text("4711\n")
    row = terminal("doctor", "--json").json

    assert [
        (finding["level"], finding["code"], finding["path"]) for finding in row["findings"]
    ] == [("warning", "stale_lock", ".daemon.lock")]
    assert "4711" in row["findings"][0]["text"]
    assert terminal.ok("doctor", "--fix").endswith(" (fixed)\n0 problems\n")
    assert place.read_text() == ""
    assert terminal.ok("doctor") == "0 problems\n"


def test_any_command_removes_what_a_program_that_ended_left_beside_the_files_of_the_home(
    terminal: Any,
) -> None:
    terminal.write("a")
    ran = subprocess.Popen([sys.executable, "-c", ""])
    ran.wait()
    ended_pid = ran.pid
    left_names = [
        f".memory.md-{ended_pid}-0a1b2c3d",
        f".pending.md-{ended_pid}-0a1b2c3d",
        f".pending.x.md-{ended_pid}-0a1b2c3d",
        f".config.yaml-{ended_pid}",
    ]
    kept_names = [f".memory.md-{os.getpid()}-0a1b2c3d", f".notes.md-{ended_pid}-0a1b2c3d"]
    for name in (*left_names, *kept_names):
        file = terminal.home / name
        file.write_text("half")

    assert terminal.ok("doctor") == "0 problems\n"
    assert not any((terminal.home / name).exists() for name in left_names)
    assert all((terminal.home / name).exists() for name in kept_names)


@pytest.mark.parametrize("part", ["link_fold", "note_path", "note_changed"])
def test_doctor_says_that_the_index_is_damaged_and_looks_at_the_notes_all_the_same(
    terminal: Any, part: str
) -> None:
    terminal.write("a", "--category", "skills")
    (terminal.home / "categories" / "skills" / "broken.md").write_text("---\nid: [\n---\nx\n")
    terminal("list")
    index = terminal.home / ".memoranda" / "index.db"
    db = sqlite3.connect(index)
    (page,) = db.execute("select rootpage from sqlite_master where name = ?", (part,)).fetchone()
    (size,) = db.execute("pragma page_size").fetchone()
    db.close()
    with open(index, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    ran = terminal("doctor", "--fix")

    assert ran.err == ""
    *findings, _ = ran.out.splitlines()
    codes = [finding.split(" ")[1] for finding in findings]
    assert codes == ["bad_frontmatter", "index_stale"]
    assert "index is damaged (fixed)" in ran.out
    assert "index_stale" not in terminal("doctor").out


def test_doctor_sees_the_stores_only_the_environment_points_to(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, banks = terminal.folder / "am", terminal.folder / "banks/global/default"
    folder.mkdir()
    banks.mkdir(parents=True)
    (folder / "good.json").write_text("[]")
    (folder / "bad.json").write_text("no json")
    (banks / "context.md").write_bytes(b"\xff\xfe\x00")
    monkeypatch.setenv("AGENT_MEMORY_PATH", str(folder))
    monkeypatch.setenv("MEMORY_BANK_ROOT", str(terminal.folder / "banks"))
    text = terminal("doctor").out

    assert f"error unreadable {folder}/bad.json" in text
    assert f"error unreadable {banks}/context.md" in text
    assert "2 problems" in text


def test_doctor_names_the_usual_home_where_a_small_home_may_be_mistyped(
    terminal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    usual_home = tmp_path / ".memory"
    for number in range(5):
        terminal.ok("write", f"note {number}", "--home", str(usual_home))
    typo = str(tmp_path / "typo")
    terminal.ok("write", "a note", "--home", typo)

    (line, last_line) = terminal.ok("doctor", "--home", typo).splitlines()
    assert "info other_home" in line
    assert "this home has 1 note, ~/.memory has 5 files of notes" in line
    assert last_line == "0 problems"


@pytest.mark.parametrize("notes_here", [1, 4])
def test_doctor_says_nothing_of_a_usual_home_that_has_no_more_notes_or_beside_a_used_home(
    terminal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes_here: int
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    notes_there = 1 if notes_here == 1 else 9
    for number in range(notes_there):
        terminal.ok("write", f"note {number}", "--home", str(tmp_path / ".memory"))
    other_home = str(tmp_path / "other")
    for number in range(notes_here):
        terminal.ok("write", f"note {number}", "--home", other_home)
    assert terminal.ok("doctor", "--home", other_home) == "0 problems\n"
    assert terminal.ok("doctor", "--home", str(tmp_path / ".memory")) == "0 problems\n"
