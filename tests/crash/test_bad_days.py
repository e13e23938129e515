"""Full disk, read-only places, damaged and deleted indexes, odd files: a clear answer, nothing
changed unasked.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crash.mortal import ENVIRONMENT, SCRIPTS, watched_disk
from crash.test_kill import SECONDS, fresh, next_process, states, tree
from memoranda import Draft, errors
from memoranda.engine import open_session
from memoranda.faces.memory_tool import MemoryCommands
from memoranda.note.edit import Append
from memoranda.query import Query


@pytest.fixture
def vault(tmp_path):
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


class Refusal:
    """Lets the n-th durable operation fail as a full disk does; 0 = none."""

    def __init__(self, at: int, code: int):
        self.at = at
        self.code = code
        self.seen = 0
        self.awake = False

    def counted(self, function):
        def call(*args, **kwargs):
            if self.awake:
                self.seen += 1
                if self.seen == self.at:
                    reason = os.strerror(self.code)
                    raise OSError(self.code, reason)
            return function(*args, **kwargs)

        return call


def run_refused(home: Path, script: str, refusal: Refusal) -> tuple[int, list[str]]:
    """(how many calls succeeded, the texts of the others)."""
    calls_done = 0
    failed = []
    with watched_disk(refusal.counted), open_session(home, watch=False) as memory:
        commands = MemoryCommands()
        for arguments in SCRIPTS[script]:
            refusal.awake = True
            reply = commands.run(memory, arguments)
            refusal.awake = False
            if reply.is_error:
                failed.append(reply.text)
                break
            calls_done += 1
    return calls_done, failed


@pytest.mark.promise("issue-full-disk", "000a-12.8")
@pytest.mark.parametrize(("script", "code"), [("edits", errno.ENOSPC), ("moves", errno.EROFS)])
def test_a_disk_that_refuses_at_any_step_gives_a_clean_error_and_leaves_the_old_files(
    tmp_path, script, code
):
    possible = states(tmp_path, script)
    counting = Refusal(0, code)
    run_refused(fresh(tmp_path / "count"), script, counting)
    assert counting.seen > 30
    for at in range(1, counting.seen + 1):
        home = fresh(tmp_path / f"at-{at}")
        calls_done, failed = run_refused(home, script, Refusal(at, code))
        assert tree(home) == possible[calls_done]
        assert all("Nothing was changed" in text or "changed" in text for text in failed)
        assert not any("Errno" in text or str(tmp_path) in text for text in failed)
        paths = list(home.rglob(".tmp-*"))
        assert paths == []
        with next_process(home) as memory:
            changes = memory.log(limit=0)
            assert len(changes) == calls_done
        shutil.rmtree(home)


LIMITED = """
import resource, sys
from memoranda.engine import open_session
from memoranda.faces.memory_tool import MemoryCommands
memory = open_session(sys.argv[1], watch=False)
memory.sync()
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
reply = MemoryCommands().run(memory, {"command": "create", "path": "/memories/a.md", "file_text": "x" * 300_000})
print(reply.is_error, reply.text)
"""


@pytest.mark.promise("issue-full-disk", "000a-12.8")
def test_a_file_larger_than_the_system_allows_is_refused_and_the_old_one_stays(tmp_path):
    home = fresh(tmp_path / "home")
    command = [sys.executable, "-c", LIMITED, str(home)]
    ran = subprocess.run(command, env=ENVIRONMENT, capture_output=True, timeout=SECONDS)

    assert ran.stdout.decode().startswith("True "), ran.stderr.decode()
    assert "Nothing was changed" in ran.stdout.decode()
    assert tree(home)["a.md"] == "- [count] count 0 #n\n"


@pytest.mark.promise("issue-index-deleted-or-corrupt", "000b-12.16")
def test_the_index_may_be_deleted_or_damaged_between_any_two_calls(tmp_path):
    home = fresh(tmp_path / "home")
    index = home / ".memoranda" / "index.db"
    damage = random.Random(3)
    with open_session(home) as memory:

        def answers():
            hits = memory.search("knows")
            passages = [(hit.note.permalink, hit.passage) for hit in hits]
            edges = [
                (edge.type, edge.note.path) for edge in memory.outgoing(("memories", "folder/b.md"))
            ]
            return (
                passages,
                edges,
                [info.path for info in memory.list(Query(order="path"), limit=0)[0]],
            )

        expected = answers()
        assert expected[0]
        assert expected[1] == [("knows", "a.md")]
        for harm in range(8):
            if harm % 4 == 0:
                for path in index.parent.glob("index.db*"):
                    path.unlink()
            elif harm % 4 == 1:
                index.write_bytes(b"this is no database " * 1000)
            elif harm % 4 == 2:
                data = bytearray(index.read_bytes())
                for _ in range(200):
                    data[damage.randrange(len(data))] = damage.randrange(256)
                index.write_bytes(data)
                memory.reindex()
            else:
                index.write_bytes(index.read_bytes()[:5000])
            assert answers() == expected


@pytest.mark.promise("issue-odd-files", "001-17.17")
def test_odd_files_are_answered_or_left_alone(tmp_path, vault):
    odd = {
        "not-utf8.md": b"caf\xe9 au lait\n",
        "broken.md": b"---\ntitle: [unclosed\n---\nthe broken body\n",
        "empty.md": b"",
        "nul.md": b"before\x00after nulword\n",
        "bom.md": "\ufeff# bommed\n".encode(),
        "crlf.md": b"---\r\ntitle: Windows\r\n---\r\n- [fact] crlfword\r\n",
        "עברית.md": "מילה RTLword\n".encode(),
        "e\u0301.md": b"combining composedword\n",
        "n" * 252 + ".md": b"longname\n",
        "fence.md": b"```\n- [not] a fact\n",
        "only-frontmatter.md": b"---\ntitle: Only\n---",
    }
    for name, data in odd.items():
        (vault / name).write_bytes(data)
    os.symlink(vault / "empty.md", vault / "link.md")
    os.symlink(tmp_path, vault / "way-out")
    before = {
        p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in vault.iterdir() if p.is_file()
    }
    with open_session(tmp_path / "home", projects={"odd": vault}) as memory:
        _, total = memory.list(Query(projects=("odd",)), limit=0)
        assert total == len(odd)
        for word, name in [
            ("broken body", "broken.md"),
            ("nulword", "nul.md"),
            ("bommed", "bom.md"),
            ("crlfword", "crlf.md"),
            ("RTLword", "עברית.md"),
            ("composedword", "e\u0301.md"),
            ("longname", "n" * 252 + ".md"),
        ]:
            assert [hit.note.path for hit in memory.search(word)] == [name]
        with pytest.raises(errors.NotText):
            memory.edit(("odd", "not-utf8.md"), Append("x"))
        with pytest.raises(errors.InvalidInput):
            memory.write(Draft("x", project="odd", title="n" * 10, folder="f" * 300))
        memory.edit(("odd", "crlf.md"), Append("- [fact] two"))
    after = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in vault.iterdir() if p.is_file()}
    assert after.pop("crlf.md")[0] == odd["crlf.md"] + b"- [fact] two\r\n"
    before.pop("crlf.md")
    assert after == before


@pytest.mark.slow
@pytest.mark.promise("issue-big-files")
def test_a_note_of_fifty_megabytes_and_one_of_a_hundred_thousand_lines(tmp_path, vault):
    (vault / "big.md").write_text("word " * 10_000_000 + "needleattheend\n")
    (vault / "lines.md").write_text("".join(f"- [n] line number {n} #t\n" for n in range(100_000)))
    with open_session(tmp_path / "home", projects={"big": vault}) as memory:
        paths = [hit.note.path for hit in memory.search("needleattheend")]
        assert paths == ["big.md"]
        hit = memory.search("99998").hits[0]
        assert hit.note.path == "lines.md"
        assert "99998" in hit.passage
        memory.edit(("big", "lines.md"), Append("- [n] the last one\n"))
        path = memory.search('"the last one"').hits[0].note.path
        assert path == "lines.md"


@pytest.mark.promise("issue-read-only")
def test_a_read_only_project_is_read_and_searched_and_refuses_edits(tmp_path, vault):
    (vault / "a.md").write_text("- [fact] readable\n")
    vault.chmod(0o555)
    try:
        with open_session(tmp_path / "home", projects={"ro": vault}) as memory:
            assert memory.search("readable").total == 1
            if os.access(vault, os.W_OK):
                # The superuser may write anywhere; the refusals above cover EROFS
                return
            with pytest.raises(errors.StorageError, match="permission denied"):
                memory.edit(("ro", "a.md"), Append("x"))
            assert (vault / "a.md").read_text() == "- [fact] readable\n"
    finally:
        vault.chmod(0o755)


@pytest.mark.promise("issue-vanished-folder", "000b-12.8")
def test_a_project_whose_folder_vanished_keeps_its_notes_and_says_so(tmp_path, vault):
    (vault / "a.md").write_text("- [fact] precious\n")
    with open_session(tmp_path / "home", projects={"v": vault}) as memory:
        assert memory.search("precious").total == 1
        vault.rename(tmp_path / "elsewhere")
        assert memory.search("precious").total == 1
        assert any("missing" in warning for warning in memory.warnings)
        (tmp_path / "elsewhere").rename(vault)
        assert memory.search("precious").total == 1
        assert memory.warnings == []


@pytest.mark.promise("issue-clock-back")
def test_a_clock_that_goes_back_harms_nothing(tmp_path):
    from datetime import UTC, datetime

    times = iter([datetime(2026, 5, 7, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)] * 50)
    with open_session(tmp_path / "home", clock=lambda: next(times)) as memory:
        for number in range(5):
            memory.write(Draft(f"text {number}", title=f"T{number}"))
        numbers = [change.number for change in memory.log(limit=0)]
        assert numbers == [5, 4, 3, 2, 1]
        memory.undo()
        assert memory.list()[1] == 4
