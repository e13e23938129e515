"""What a version before kept in files is in the ledger once, and the files go."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memoranda.engine import open_session
from memoranda.engine.doctor import examine
from memoranda.ledger import takeover
from memoranda.serve.auth import Access
from memoranda.sources.layout import Layout

ID = "150e8400-e29b-41d4-a716-446655440000"
TOKEN = {
    "id": "ab12",
    "name": "laptop",
    "shown": "cpl_1234",
    "hash": "00" * 32,
    "scope": "write",
    "agent": "laptop",
    "created": "2026-01-01T00:00:00Z",
    "projects": [],
    "member": None,
    "expires": None,
    "revoked": None,
    "used": None,
    "rate": 600,
    "quota": 0,
    "audience": None,
}
ACCESS = {
    "tokens": [TOKEN],
    "spaces": {"team": {"home": "/srv/team", "members": {"ann": "owner"}}},
    "visitors": {"cookies": {"11" * 32: {"until": "2099-01-01T00:00:00Z"}}},
}


def old_home(root: Path) -> Layout:
    """A home with the files of the version before."""
    open_session(root, watch=False).close()
    layout = Layout(root)
    layout.access_log.write_text(f"2 {ID}\n@1700000000 {ID}\n0 other\n1 other\n")
    layout.review.write_text(json.dumps({"merge:a": {"choice": "n"}}))
    layout.requests.write_text(json.dumps({"project:b": {"name": "B", "agent": "claude"}}))
    layout.access.write_text(json.dumps(ACCESS))
    calls = [
        {
            "time": "2026-01-01T00:00:00Z",
            "agent": "claude",
            "how": "search",
            "asked": "a",
            "notes": [ID],
        },
        {
            "time": "2026-01-02T00:00:00Z",
            "agent": "codex",
            "how": "read",
            "asked": "",
            "notes": ["x", ID],
        },
    ]
    lines = "".join(f"{json.dumps(call)}\n" for call in calls)
    layout.served.write_text(lines + '{"time": "2026-01-03T00:0')
    layout.paused.write_text(json.dumps({"agents": ["gemini", "aider"]}))
    layout.sessions.mkdir()
    (layout.sessions / f"codex-{'0' * 20}").write_text(
        f"saw 2026-01-02T00:00:00Z\nnote {ID}\ntext 0123456789ab\n"
    )
    return layout


def held(root: Path) -> tuple[object, ...]:
    with open_session(root, watch=False) as memory:
        home = memory.engine.ledger
        items = home.database.rows("select kind, value from session_item order by kind, value")
        return (
            home.reads.counts(),
            home.reads.used(),
            home.review_values("answer"),
            home.review_values("request"),
            [tuple(item) for item in items],
            [(row.agent, row.how, row.notes) for row in home.served_rows.rows(note=ID)],
            home.paused_rows.names(),
            [token.name for token in Access(root).tokens()],
            Access(root).space("team").members,
        )


EXPECTED = (
    {ID: 2, "other": 1},
    {ID: 1700000000},
    {"merge:a": {"choice": "n"}},
    {"project:b": {"name": "B", "agent": "claude"}},
    [("note", ID), ("text", "0123456789ab")],
    [("codex", "read", ("x", ID)), ("claude", "search", (ID,))],
    ["aider", "gemini"],
    ["laptop"],
    {"ann": "owner"},
)


def test_everything_is_taken_over_once_and_the_files_go(tmp_path: Path) -> None:
    layout = old_home(tmp_path)
    assert held(tmp_path) == EXPECTED
    assert held(tmp_path) == EXPECTED
    names = {path.name for path in layout.private.iterdir()}
    former = ("access.log", "review.json", "requests.json", "access.json", "sessions")
    assert not names & {*former, "served.log", "paused.json"}


@pytest.mark.parametrize("is_before", [True, False])
def test_a_takeover_that_is_cut_off_is_completed_and_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_before: bool
) -> None:
    old_home(tmp_path)
    unlink = os.unlink

    def dies(path: str, *arguments: object, **more: object) -> None:
        if not is_before:
            unlink(path)
        raise OSError(5, "cut off")

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(takeover.os, "unlink", dies)
            open_session(tmp_path, watch=False).close()
    assert held(tmp_path)[0] == EXPECTED[0]
    assert held(tmp_path) == EXPECTED


def test_reads_that_an_older_program_adds_later_are_counted_too(tmp_path: Path) -> None:
    layout = old_home(tmp_path)
    held(tmp_path)
    layout.access_log.write_text(f"3 {ID}\n")
    assert held(tmp_path)[0] == {ID: 5, "other": 1}


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": 1}'])
def test_a_damaged_file_of_answers_stays_and_the_rest_is_taken_over(
    tmp_path: Path, text: str
) -> None:
    layout = old_home(tmp_path)
    layout.review.write_text(text)
    with open_session(tmp_path, watch=False) as memory:
        assert memory.engine.ledger.reads.counts() == EXPECTED[0]

    assert layout.review.read_text() == text


def test_a_token_that_was_revoked_since_is_not_brought_back(tmp_path: Path) -> None:
    layout = old_home(tmp_path)
    data = layout.access.read_bytes()
    Access(tmp_path).revoke("laptop")
    layout.access.write_bytes(data)

    revoked = Access(tmp_path).tokens()[0].revoked
    assert revoked is not None


def test_doctor_names_what_could_not_be_taken_over_and_nothing_else(tmp_path: Path) -> None:
    layout = old_home(tmp_path)
    layout.review.write_text("{")
    with open_session(tmp_path, watch=False) as memory:
        paths = [finding.path for finding in examine(memory) if finding.code == "not_taken_over"]

    assert paths == [".memoranda/review.json"]


def test_a_damaged_list_of_paused_agents_pauses_nobody(tmp_path: Path) -> None:
    layout = old_home(tmp_path)
    layout.paused.write_text('{"agents": "gem')
    with open_session(tmp_path, watch=False) as memory:
        assert memory.engine.ledger.paused_rows.names() == []

    assert not layout.paused.exists()
