"""Two imports of the same file at once: one of them says how to go on, and nothing is lost."""

from __future__ import annotations

from typing import Any

from memoranda.engine.exchange import Exchange


def test_import_that_meets_another_says_to_import_again(
    terminal: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    source = ("--home", str(tmp_path / "source"))
    note = '{"title":"Tea","folder":"x","content":"tea at four"}'
    assert terminal(*source, "call", "write_note", note).status == 0
    lines = tmp_path / "lines.jsonl"
    assert terminal(*source, "export", "--output", str(lines)).status == 0
    add_files = Exchange.add_files

    def add_after_another(exchange: Exchange, *arguments: Any) -> None:
        # Another import carries out the same plan first.
        add_files(exchange, *arguments)
        add_files(exchange, *arguments)

    monkeypatch.setattr(Exchange, "add_files", add_after_another)
    run = terminal("import", "--input", str(lines))
    assert run.status == 1
    assert "was written by another program during the import" in run.err
    assert "Import the same again" in run.err
    monkeypatch.undo()
    assert terminal("import", "--input", str(lines)).status == 0
    assert "tea at four" in terminal.ok("list")
