"""Two imports of the same file at once: one of them says how to go on, and nothing is lost."""

from __future__ import annotations

from typing import Any

from memoranda.engine.exchange import Exchange


def test_import_that_meets_another_says_to_import_again(
    terminal: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    source = str(tmp_path / "source")
    lines = str(tmp_path / "lines.jsonl")
    note = '{"title":"Tea","folder":"x","content":"tea at four"}'
    written = terminal("--home", source, "call", "write_note", note)
    assert written.status == 0
    exported = terminal("--home", source, "export", "--output", lines)
    assert exported.status == 0
    add_files = Exchange.add_files

    def add_after_another(exchange: Exchange, *arguments: Any) -> None:
        # Another import carries out the same plan first.
        add_files(exchange, *arguments)
        add_files(exchange, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Exchange, "add_files", add_after_another)
        run = terminal("import", "--input", lines)
    assert run.status == 1
    assert "was written by another program during the import" in run.err
    assert "Import the same again" in run.err
    again = terminal("import", "--input", lines)
    assert again.status == 0
    listed = terminal.ok("list")
    assert "tea at four" in listed
