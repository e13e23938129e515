"""What a server changed in a folder only it knew (a preset's) can be taken back from the shell once
it has ended.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from contract.home_kinds import VAULT
from contract.mcp_server import Server
from contract.note_tools import texts
from memoranda import Draft
from memoranda.engine import open_session

pytestmark = [pytest.mark.promise("issue-undo-in-place"), pytest.mark.folder_home(VAULT)]

CONTEXT = "global/default/context.md"


@pytest.fixture
def bank(terminal: Any) -> Path:
    """A bank root elsewhere, changed by two calls of a server that has ended: a bank made, a text
    appended.
    """
    root = terminal.folder / "elsewhere" / "banks"
    root.mkdir(parents=True)
    with Server(
        "--as", "memory-bank", "--home", str(terminal.home), MEMORY_BANK_ROOT=str(root)
    ) as server:
        server.data("activate", bank_type="global", bank_id="auto")
        server.data(
            "update",
            bank_type="global",
            bank_id="auto",
            target_file="context.md",
            content="walks on Sundays",
        )
        assert server.close() == 0
    assert "walks on Sundays" in (root / CONTEXT).read_text()
    return root


def test_the_shell_takes_back_what_a_bank_server_wrote(terminal: Any, bank: Path) -> None:
    written = texts(bank)
    output = terminal.ok("undo")
    assert output == f"Undid #2: append {bank / CONTEXT}\n"
    text = (bank / CONTEXT).read_text()
    assert "walks on Sundays" not in text
    assert terminal.ok("undo").startswith("Undid #1: ")
    assert texts(bank) == {}
    assert not (terminal.home / "banks").exists()
    terminal.ok("undo", "4")
    terminal.ok("undo", "3")
    assert texts(bank) == written


def test_the_shell_takes_back_what_a_server_wrote_into_another_programs_vault(
    terminal: Any,
) -> None:
    vault = terminal.folder / "vault"
    (vault / "ideas").mkdir(parents=True)
    (vault / "ideas" / "Tea.md").write_text("# Tea\n\nGreen.\n")
    before = texts(vault)
    config_file = Path(os.environ["HOME"]) / ".basic-memory" / "config.json"
    config_file.parent.mkdir()
    config_file.write_text(
        json.dumps({"projects": {"main": str(vault)}, "default_project": "main"})
    )
    with Server("--as", "basic-memory", "--home", str(terminal.home)) as server:
        server.data("write_note", title="Boat", content="Blue.", directory="new/deep")
        server.data("edit_note", identifier="ideas/tea", operation="append", content="Or black.\n")
        server.data("move_note", identifier="ideas", destination_path="drinks", is_directory=True)
        server.data("delete_note", identifier="drinks/tea")
        assert server.close() == 0
    document = terminal("list", "--json").json
    assert document["total"] == 0
    output = terminal.ok("log", str(vault / "drinks/Tea.md"))
    assert output.count("\n") == 2
    terminal.ok("restore", "main/drinks/Tea.md", "--to", "drinks/Tea again.md")
    assert (vault / "drinks/Tea again.md").read_text() == "# Tea\n\nGreen.\nOr black.\n"
    for _ in range(5):
        terminal.ok("undo")
    assert texts(vault) == before
    assert not (vault / "new").exists()
    assert terminal("undo").error == "There is nothing to undo."


def test_two_files_of_one_name_are_not_taken_for_each_other(terminal: Any, bank: Path) -> None:
    update = {
        "bank_type": "global",
        "bank_id": "auto",
        "target_file": "context.md",
        "content": "at home",
    }
    terminal.ok("call", "activate", json.dumps({"bank_type": "global", "bank_id": "auto"}))
    terminal.ok("call", "update", json.dumps(update | {"bank_id": "default"}))
    own_file = terminal.home / "banks" / CONTEXT

    def changes(ref: str) -> list[int]:
        return [entry["change"] for entry in terminal("log", ref, "--json").json["entries"]]

    assert changes(f"banks/{CONTEXT}") == [4, 3]
    assert changes(str(bank / CONTEXT)) == [2, 1]
    terminal.ok("undo", "2")
    bank_file = bank / CONTEXT
    assert "walks" not in bank_file.read_text()
    assert "at home" in own_file.read_text()
    restored = terminal.ok("restore", str(bank_file), "--change", "5")
    assert restored == f"Restored {bank_file} from #5\n"
    assert "walks" in bank_file.read_text()
    assert "at home" in own_file.read_text()
    entries = terminal("log", "--json").json["entries"]
    roots = [entry.get("root") for entry in entries]
    in_bank = [str(bank), str(bank)]
    in_home = [None, None]
    assert roots == [*in_bank, *in_home, *in_bank]


def test_a_folder_that_is_gone_or_a_link_by_now_is_not_written_to(
    terminal: Any, bank: Path
) -> None:
    moved = bank.with_name("moved")
    bank.rename(moved)
    ran = terminal("undo")
    assert ran.error == f"cannot undo #2: {bank}, the folder of project banks, is gone"
    bank.symlink_to(moved)
    before = texts(moved)
    ran = terminal("undo", "2")
    assert (
        ran.error
        == f"cannot undo #2: {bank}, the folder of project banks, is reached through a symlink now"
    )
    assert terminal("restore", str(bank / CONTEXT)).status == 1
    assert texts(moved) == before
    assert not (terminal.home / "banks").exists()


def test_a_root_that_was_a_link_all_along_is_found_where_it_really_is(terminal: Any) -> None:
    real = terminal.folder / "real"
    link = terminal.folder / "link"
    real.mkdir()
    link.symlink_to(real)
    with open_session(terminal.home, projects={"vault": link}) as memory:
        memory.write(Draft("text\n", project="vault", title="A"))
    terminal.ok("undo")
    assert texts(real) == {}


def test_an_agent_takes_back_only_what_it_sees(terminal: Any) -> None:
    vault = terminal.folder / "vault"
    vault.mkdir()
    with open_session(terminal.home, agent="claude", projects={"vault": vault}) as memory:
        memory.write(
            Draft("text\n", project="vault", folder="box", title="A", scope="agent:claude")
        )
    with open_session(terminal.home, projects={"vault": vault}) as memory:
        memory.move_folder("vault", "box", "crate")
    assert terminal("--agent", "copilot", "undo", "1").error == "There is no change #1."
    assert terminal("--agent", "copilot", "log", str(vault / "box/A.md")).status == 1
    ran = terminal("--agent", "copilot", "undo", "2")
    assert ran.error == "There is no change #2."
    terminal.ok("--agent", "claude", "undo", "2")
    assert (vault / "box/A.md").exists()


def test_the_process_that_has_the_project_takes_back_changes_of_the_home_too(
    terminal: Any, bank: Path
) -> None:
    with open_session(terminal.home) as memory:
        memory.write(Draft("at home\n", project="banks", folder="global/default", title="Own"))
        own_file = terminal.home / "banks/global/default/Own.md"
        assert own_file.exists()
    with open_session(terminal.home, projects={"banks": bank}) as memory:
        memory.sync()
        memory.undo()
        assert not own_file.exists()
        assert memory.search("Sundays").total == 1
        memory.undo()
        assert memory.search("Sundays").total == 0
