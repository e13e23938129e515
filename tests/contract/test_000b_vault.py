"""Contract 000b, 12.2: a vault used in place stays as it is, byte for byte, whatever is asked of
it.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

import vault as generated
from contract.home_kinds import VAULT
from contract.note_tools import Tools, put, seen
from contract.tables import tables
from memoranda.engine import open_session

TABLES = tables("note_vault")

pytestmark = pytest.mark.promise("000b-12.2")

SAMPLES = Path(__file__).parents[2] / "samples" / "vault"
ODD: dict[str, bytes] = {
    "bom.md": b"\xef\xbb\xbf# Byte order mark\n",
    "crlf.md": b"---\r\ntitle: Windows\r\n---\r\n- [fact] carriage #r\r\n",
    "mixed ends.md": b"one\r\ntwo\nthree\rfour",
    "no final newline.md": b"- [fact] cut",
    "empty.md": b"",
    "only newlines.md": b"\n\n\n",
    "broken.md": b"---\ntitle: [unclosed\n---\nbroken body\n",
    "list.md": b"---\n- no\n- mapping\n---\nlisted\n",
    "unclosed.md": b"---\ntitle: never closed\n\ntext\n",
    "latin1.md": b"caf\xe9\n",
    "nul.md": b"before\x00after\n",
    "twin a.md": b"---\npermalink: same/place\nid: 11111111-2222-4333-8444-555555555555\n---\na\n",
    "twin b.md": b"---\npermalink: same/place\nid: 11111111-2222-4333-8444-555555555555\n---\nb\n",
    "Values.md": b"---\nversion: 1.10\nanswer: no\nzip: 012\ntime: 12:30\n# a comment\ntags: [a,  'b']   \n---\nx\n",
    "dated.md": b"---\ndate: 31.13.2026\ncreated: never\n---\nbad dates\n",
    "e\u0301tude/CAPS.MD": b"capital extension\n",
    "deep/er/and/er/note.markdown": b"[[Values]] and [[nowhere]]\n",
    "Camel Case/C++ & C#.md": b"signs\n",
    "n" * 250 + ".md": b"a long name\n",
    "quote\"s and 'ticks' $HOME %41 #1.md": b"a name for shells\n",
    "new\nline.md": b"a name of two lines\n",
    ".obsidian/app.json": b"{}\n",
    ".obsidian/plugins/note.md": b"hidden folder\n",
    ".hidden.md": b"hidden file\n",
    ".gitignore": b"*.md\n",
    "node_modules/readme.md": b"not ours\n",
    "picture.png": b"\x89PNG\r\n\x1a\n\x00",
    "canvas.canvas": b"{}",
    "text.txt": b"no note\n",
    "old.md~": b"a backup\n",
    "sync-conflict.md.tmp": b"half\n",
}
NO_NOTE = re.compile(r"\.|node_modules/")
MODES = {"bom.md": 0o644, "crlf.md": 0o400, "empty.md": 0o755, "Values.md": 0o664, "deep": 0o750}
CALLS = TABLES["calls"]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    shutil.copytree(SAMPLES, root)
    generated.make_vault(root, 60)
    for name, data in ODD.items():
        put(root / name, data)
    put(tmp_path / "outside.md", "not in the vault\n")
    os.symlink(tmp_path / "outside.md", root / "link out.md")
    os.symlink(root / "bom.md", root / "link in.md")
    os.symlink(tmp_path, root / "folder out")
    os.symlink(root / "nowhere.md", root / "dangling.md")
    os.mkfifo(root / "pipe.md")
    (root / "empty folder").mkdir()
    with open(os.fsencode(root) + b"/raw-\xff.md", "wb") as file:
        file.write(b"a name that is no text\n")
    for name, mode in MODES.items():
        (root / name).chmod(mode)
    for number, place in enumerate(sorted(root.rglob("*"))):
        if not place.is_symlink():
            os.utime(
                place, ns=(1_500_000_000_123_456_789 + number, 1_600_000_000_987_654_321 + number)
            )
    return root


@pytest.mark.folder_home(VAULT)
@pytest.mark.slow
@pytest.mark.parametrize("watch", [False, True])
def test_nothing_of_a_vault_changes_but_the_note_that_was_edited(
    tmp_path: Path, vault: Path, watch: bool
) -> None:
    before = seen(vault)
    with open_session(tmp_path / "home", watch=watch) as memory:
        tools = Tools(memory)
        tools("create_memory_project", project_name="vault", project_path=str(vault))
        paths = tools.paged("list_directory", "entries", "path", project="vault", depth=10)
        notes = [path for path in paths if (vault / path).is_file()]
        odd = [
            name
            for name in ODD
            if name.lower().endswith((".md", ".markdown")) and not NO_NOTE.match(name)
        ]
        expected = {*odd, *(str(sample.relative_to(SAMPLES)) for sample in SAMPLES.rglob("*.md"))}
        assert expected <= set(notes)
        assert len(notes) == len(expected) + 60
        for tool, arguments in CALLS:
            tools(tool, **arguments)
        for path in notes:
            assert (
                memory.read(("vault", path)).text.encode() == (vault / path).read_bytes()
                or path == "latin1.md"
            )
        for path in [*odd, *notes[::7]]:
            tools("read_note", identifier=path, project="vault")
        memory.reindex()
        memory.context_for("what did we decide about search?")
        assert seen(vault) == before
        tools(
            "edit_note", identifier="Values.md", project="vault", operation="append", content="y\n"
        )
    after = seen(vault)
    mode, _, text = before.pop("Values.md")

    assert after["Values.md"][0] == mode
    assert after.pop("Values.md")[2] == text + b"y\n"
    assert after.pop(".")[2] == before.pop(".")[2]
    assert after == before


@pytest.mark.folder_home(VAULT)
def test_a_vault_may_be_written_by_nobody(tmp_path: Path, vault: Path) -> None:
    for place in [
        vault,
        *(path for path in vault.rglob("*") if path.is_dir() and not path.is_symlink()),
    ]:
        place.chmod(0o555)
    before = seen(vault)
    with open_session(tmp_path / "home", projects={"vault": vault}) as memory:
        tools = Tools(memory)
        for tool, arguments in CALLS:
            tools(tool, **arguments)
    assert seen(vault) == before
    for place in [
        vault,
        *(path for path in vault.rglob("*") if path.is_dir() and not path.is_symlink()),
    ]:
        place.chmod(0o755)
