"""The bench that puts ours beside other servers (our own design)."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import peers

OWN = [peers.Figure("start", "ms", 100.0), peers.Figure("read a note, processor", "ms", 0.5)]
OTHER = [peers.Figure("start", "ms", 250.0), peers.Figure("read a note, processor", "ms", 1.0)]


def test_the_table_says_how_many_times_ours_the_other_takes() -> None:
    lines = peers.table("Other", list(zip(OWN, OTHER, strict=True))).splitlines()
    assert lines[0] == "| beside Other | memoranda | Other | times |"
    assert lines[2] == "| start | 100.0 ms | 250.0 ms | 2.5 |"
    assert lines[3] == "| read a note, processor | 0.5 ms | 1.0 ms | 2.0 |"


def test_the_picture_has_a_bar_for_each_figure_of_the_processor() -> None:
    picture = xml.fromstring(peers.drawn({"A & B": list(zip(OWN, OTHER, strict=True))}))
    fills = [part.get("fill") for part in picture.iter() if part.tag.endswith("rect")]
    assert fills == ["#fff", "#2b6cb0", "#d6a44c"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "work"),
    [
        ("basic-memory", peers.NOTES),
        ("server-memory", peers.GRAPH),
        ("agent-memory", peers.ENTRIES),
    ],
)
def test_ours_does_the_work_of_each_peer(preset: str, work: peers.Work) -> None:
    figures = peers.measured(peers.ours(preset), work, notes=2)
    assert [figure.label for figure in figures if "processor" not in figure.label] == [
        "start, until tools/list",
        "store a note",
        "find a rare word",
        "read a note",
        "memory",
    ]
    assert all(figure.value >= 0 for figure in figures)


def test_figures_that_only_one_has_are_not_in_the_table() -> None:
    pairs = peers.side_by_side([*OWN, peers.Figure("memory", "MB", 9.0)], OTHER)
    assert [own_figure.label for own_figure, _ in pairs] == ["start", "read a note, processor"]


def test_a_command_may_have_arguments_and_scripts_for_node_are_run_by_it() -> None:
    assert peers._program("/venv/bin/python 'my server.py'") == ["/venv/bin/python", "my server.py"]
    assert peers._program("dist/index.js") == ["node", "dist/index.js"]


@pytest.mark.slow
def test_ours_finds_words_in_the_sessions_that_are_written_for_it(monkeypatch) -> None:
    monkeypatch.setattr(peers, "_SESSIONS", 5)
    program = [sys.executable, "-m", "memoranda", "transcripts"]
    figures = peers.transcripts(program, ["on"], ["search"])
    assert [figure.label for figure in figures][::2] == [
        "index 100 exchanges",
        "find a rare word in them, as a command",
    ]
