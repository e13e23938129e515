"""`memory ingest` (contract 001, 3 and 11)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from memoranda.ingest.sources import SOURCES

DATA = Path(__file__).parents[1] / "data" / "ingest"
MEMORY = "projects/-srv-heron/memory"
NUMBERS = {"claude": 6, "car-agent": 5, "fingersaver": 1, "logseq": 8, "obsidian": 8}
LINKING = {
    "claude": {f"{MEMORY}/house-rules.md": ["CLAUDE.md", f"{MEMORY}/counting.md"]},
    "car-agent": {"garage/charging-cards.md": ["trips/2026-04-18 coast.md"]},
    "logseq": {
        "pages/Garden.md": [
            "journals/2026_05_07.md",
            "pages/Projects%2FGreenhouse.md",
            "pages/读书.md",
        ],
        "pages/archive/Ann Becker.md": ["journals/2026_05_07.md", "pages/Garden.md"],
        "pages/读书.md": ["journals/2026_05_07.md"],
        "pages/Projects___Rainwater.md": ["journals/2026/2026_05_08.md"],
        "journals/2026_05_07.md": ["journals/2026/2026_05_08.md"],
    },
    "obsidian": {
        "Projects/Heron.md": ["Home.md", "People/Lina.md"],
        "Nature/Heron.md": ["Home.md", "Nature/2026/四月观察.md", "Projects/Heron.md"],
        "People/Lina.md": ["Home.md", "People/小王.md", "Projects/Heron.md"],
        "People/小王.md": ["Home.md", "Nature/2026/四月观察.md"],
        "Reading/Deep Work.md": ["Home.md"],
    },
}
"""Files of each source, with those whose wikilinks lead to them."""


def take(terminal: Any, source: str, path: Path | None = None, *more: str) -> dict[str, Any]:
    """The result for one source."""
    ran = terminal(
        "ingest", "--source", source, "--path", str(path or DATA / source), *more, "--json"
    )
    assert ran.status == 0, ran
    assert ran.json["total"] == ran.json["sources"][source]["ingested"]
    return ran.json["sources"][source]


def memories(terminal: Any) -> dict[str, dict[str, Any]]:
    """All memories by the file they were made from."""
    rows = terminal("search", "", "--json").json["memories"]
    return {row["source_ref"].partition(":")[2]: row for row in rows if "source_ref" in row}


def files(folder: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*.md")}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / "obsidian", tmp_path / "vault"))


@pytest.mark.promise("001-17.14")
@pytest.mark.parametrize("source", list(NUMBERS))
def test_each_source_is_taken_in_once_with_its_links_and_is_not_touched(
    terminal: Any, source: str
) -> None:
    theirs = files(DATA / source)
    first = take(terminal, source)
    assert first["ingested"] == NUMBERS[source]
    assert first["updated"] == 0
    sources = {row["source"] for row in memories(terminal).values()}
    assert sources == {source}
    before = files(terminal.home)
    second = take(terminal, source)
    assert second["ingested"] == 0
    assert second["updated"] == 0
    assert second["skipped"] == first["ingested"] + first["skipped"]
    assert files(terminal.home) == before
    by_file = memories(terminal)
    for target, linking in LINKING.get(source, {}).items():
        linking_memories = terminal("backlinks", by_file[target]["id"], "--json").json["memories"]
        assert sorted(row["source_ref"].partition(":")[2] for row in linking_memories) == linking
    assert files(DATA / source) == theirs


@pytest.mark.promise("001-17.14")
def test_a_deleted_file_leaves_its_memory_and_a_deleted_memory_stays_so_until_wanted_again(
    terminal: Any, vault: Path
) -> None:
    take(terminal, "obsidian", vault)
    (vault / "People" / "Lina.md").unlink()
    take(terminal, "obsidian", vault)
    assert "People/Lina.md" in memories(terminal)
    deleted_id = memories(terminal)["Home.md"]["id"]
    terminal.ok("delete", deleted_id)
    assert take(terminal, "obsidian", vault)["ingested"] == 0
    (vault / "Home.md").write_text("Home, written anew.\n", "utf-8")
    assert take(terminal, "obsidian", vault)["ingested"] == 0
    ingested = take(terminal, "obsidian", vault, "--again")
    assert ingested["ingested"] == 1
    assert ingested["updated"] == 0
    assert memories(terminal)["Home.md"]["id"] != deleted_id


def test_undo_takes_a_run_back(terminal: Any, vault: Path) -> None:
    kept_id = terminal.write("kept")
    take(terminal, "obsidian", vault)
    assert terminal.ok("undo").startswith("Undid #2: ingest categories/inbox/")
    assert [row["id"] for row in terminal("list", "--json").json["memories"]] == [kept_id]


def test_the_text_of_the_answer(terminal: Any) -> None:
    argv = ["ingest", "--source", "logseq, fingersaver,logseq", "--path", str(DATA / "logseq")]
    dry = terminal(*argv, "--dry-run")
    assert dry.out.startswith("would ingest logseq:journals/2026/2026_05_08.md\n")
    assert "journals/2026_05_09.md: left out, as nothing is written there" in dry.error
    assert not files(terminal.home)
    assert terminal(*argv).out == (
        "Ingested 8 memories from logseq\nIngested 0 memories from fingersaver\n\nTotal: 8 new memories ingested\n"
    )
    assert terminal(*argv, "--dry-run").out == "Nothing to ingest.\n"


@pytest.mark.promise("001-17.4")
def test_a_dry_run_names_what_a_run_does_and_changes_nothing(terminal: Any, vault: Path) -> None:
    dry = take(terminal, "obsidian", vault, "--dry-run")
    assert not files(terminal.home)
    assert take(terminal, "obsidian", vault) == dry
    (vault / "Home.md").write_text("Home, written anew.\n", "utf-8")
    before = files(terminal.home)
    home = memories(terminal)["Home.md"]["id"]
    ran = terminal("ingest", "--source", "obsidian", "--path", str(vault), "--dry-run")
    assert ran.out == f"would update {home[:8]} obsidian:Home.md\n"
    assert files(terminal.home) == before


def test_a_name_with_a_line_break_is_said_on_one_line(terminal: Any) -> None:
    folder = terminal.folder / "notes"
    folder.mkdir()
    (folder / "two\nlines.md").write_text("text")
    (folder / "bad\nname.md").write_bytes(b"\xff")
    ran = terminal("ingest", "--source", "car-agent", "--path", str(folder), "--dry-run")
    assert ran.out == "would ingest car-agent:two lines.md\n"
    assert ran.err == "warning: car-agent: bad name.md: not UTF-8 text\n"


def test_an_unknown_source_is_refused_before_anything_is_read(terminal: Any) -> None:
    for names in ("obsidian,x", "all,x", "x"):
        ran = terminal("ingest", "--source", names, "--path", str(DATA / "obsidian"), "--json")
        assert ran.status == 1
        assert ran.error == "Unknown source: x"
        assert ran.json["error"]["message"] == "Unknown source: x"
    assert terminal("ingest", "--source", "").error == "Unknown source: "
    assert not terminal.home.exists()


def test_a_missing_root_holds_nothing(terminal: Any) -> None:
    for source in SOURCES:
        output = terminal.ok("ingest", "--source", source)
        assert output == f"Ingested 0 memories from {source}\n\nTotal: 0 new memories ingested\n"
    assert terminal.ok("ingest") == "Total: 0 new memories ingested\n"


def test_a_path_that_is_no_folder_is_refused(terminal: Any, tmp_path: Path) -> None:
    assert (
        terminal("ingest", "--path", str(tmp_path / "none")).error
        == f"no such folder: {tmp_path / 'none'}"
    )
    place = str(DATA / "obsidian" / "Home.md")
    assert terminal("ingest", "--path", place).error == f"not a folder: {place}"
    assert terminal("ingest", "--path", "").error.startswith("The path is an empty text.")


def test_all_are_the_sources_that_are_there_and_not_switched_off(
    terminal: Any, vault: Path
) -> None:
    user = terminal.home.parent
    for source, folder in (
        ("claude", ".claude"),
        ("car-agent", ".car-agent"),
        ("logseq", "logseq"),
    ):
        shutil.copytree(DATA / source, user / folder)
    config = user / "config.yaml"
    config.write_text(
        f"ingestion:\n  obsidian:\n    path: {json.dumps(str(vault))}\n  car-agent:\n    enabled: false\n"
        "  claude:\n    enabled: true\n",
        "utf-8",
    )
    ingested = terminal("--config", str(config), "ingest", "--json").json
    assert {name: counts["ingested"] for name, counts in ingested["sources"].items()} == {
        "claude": 6,
        "logseq": 8,
        "obsidian": 8,
    }
    assert ingested["total"] == 22
    named_source = terminal(
        "--config", str(config), "ingest", "--source", "car-agent", "--json"
    ).json
    assert named_source["total"] == 5


def test_doctor_names_a_source_there_is_not(terminal: Any) -> None:
    terminal.configure("ingestion:\n  obsidan:\n    path: x\n  logseq:\n    pth: x\n")
    texts = [
        finding["text"]
        for finding in terminal("doctor", "--json").json["findings"]
        if finding["code"] == "bad_config"
    ]
    assert texts == ["unknown key ingestion.obsidan", "unknown key ingestion.logseq.pth"]


def test_what_could_not_be_read_is_said(terminal: Any, vault: Path) -> None:
    (vault / "Latin.md").write_bytes(b"caf\xe9")
    (vault / "Big.md").write_bytes(b"x" * (1 << 21))
    (vault / "out.md").symlink_to(DATA / "logseq" / "pages" / "Garden.md")
    ran = terminal("ingest", "--source", "obsidian", "--path", str(vault))
    assert ran.out.startswith("Ingested 8 memories")
    assert sorted(ran.err.splitlines()) == [
        "warning: obsidian: Big.md: larger than 1 MB",
        "warning: obsidian: Latin.md: not UTF-8 text",
        "warning: obsidian: Reading/Broken header.md: its frontmatter is not valid YAML and stays in the text",
        "warning: obsidian: out.md: a link out of the folder is not followed",
    ]
    ran = terminal("ingest", "--source", "obsidian", "--path", str(vault), "--json")
    assert ran.err == ""
    assert len(ran.json["sources"]["obsidian"]["warnings"]) == 4


def test_the_home_inside_the_folder_is_not_taken_in(terminal: Any) -> None:
    terminal.write("already a memory")
    (terminal.home.parent / "CLAUDE.md").write_text("# Of the user\n", "utf-8")
    (terminal.home / "categories" / "CLAUDE.md").write_text("# Of the home\n", "utf-8")
    assert take(terminal, "claude", terminal.home.parent)["ingested"] == 1


def test_a_folder_read_by_every_source_is_warned_of(terminal: Any, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "a.md").write_text("tea", encoding="utf-8")
    warning = terminal("ingest", "--path", str(tmp_path / "vault"), "--dry-run").err
    assert warning.splitlines()[-1] == "Name the one whose notes these are, e.g. --source obsidian."
    assert warning.startswith(
        "warning: claude, car-agent, fingersaver, logseq, obsidian each read this folder"
    )
    assert (
        terminal(
            "ingest", "--path", str(tmp_path / "vault"), "--source", "obsidian", "--dry-run"
        ).err
        == ""
    )
    assert (
        terminal(
            "ingest", "--path", str(tmp_path / "vault"), "--source", "claude,obsidian", "--dry-run"
        ).err
        == ""
    )
