"""Homes nobody may write, full disks, pipes in place of files, and what dead processes leave."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time

import pytest

from crash.mortal import ENVIRONMENT
from crash.test_kill import SECONDS
from memoranda import Draft
from memoranda.engine import open_session
from memoranda.engine.doctor import examine as doctor
from memoranda.engine.engine import Engine
from memoranda.errors import InvalidInput
from memoranda.index import writer
from memoranda.note.edit import Append, Prepend, Rewrite
from memoranda.query import Query
from serve.forked import run

NOBODY = 65534
READS = """
import os, resource, sys
from memoranda import Draft
from memoranda.engine import open_session

def reads(home, file=None):
    with open_session(home, watch=False) as memory:
        assert memory.search("word").total == 3, memory.search("word").total
        assert memory.list()[1] == 3
        assert memory.context_for("which word?")
        assert memory.read("notes/b").text == "a new word"
        assert memory.warnings == []
        memory.log()

def refused(home):
    try:
        with open_session(home, watch=False) as memory:
            memory.write(Draft("x", title="x" * 20))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "written"

home, scratch, condition = sys.argv[1:]
reads(scratch)  # all that is imported when first needed
refused(scratch)
if condition == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
elif os.geteuid() == 0:
    os.seteuid(65534)
reads(home)
print(refused(home))
"""


def filled(home: Path, *, indexed: bool) -> Path:
    """A home of three notes; the last one came after the index was closed, or there is no index at
    all.
    """
    with open_session(home, watch=False) as memory:
        memory.write_many([Draft("one word", title="a"), Draft("another word", title="c")])
    (home / "notes" / "b.md").write_text("a new word")
    if not indexed:
        for path in (home / ".memoranda").glob("index.db*"):
            path.unlink()
    return home


@pytest.mark.slow
@pytest.mark.promise("issue-read-only-home")
@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("condition", ["full", "read-only"])
def test_a_home_that_cannot_be_written_is_read_searched_and_listed(condition, indexed):
    # Others may not enter pytest's own
    with TemporaryDirectory(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")) as folder:
        _read_searched_and_listed(Path(folder), condition, indexed)


def _read_searched_and_listed(folder: Path, condition: str, indexed: bool) -> None:
    home = filled(folder / "home", indexed=indexed)
    scratch = filled(folder / "scratch", indexed=False)
    folder.chmod(0o755)
    if condition == "read-only":
        for path in [home, *home.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.read_bytes() for path in home.rglob("*.md")}
    try:
        command = [sys.executable, "-c", READS, str(home), str(scratch), condition]
        ran = subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS
        )
    finally:
        for path in [home, *home.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("StorageError: Could not write")
    assert ran.stdout.endswith("Nothing was changed.\n")
    assert {path: path.read_bytes() for path in home.rglob("*.md")} == before


ODD_FILES = """
import os, shutil, signal, socket, stat, sys
from pathlib import Path
from memoranda import cli

class TooLong(Exception): ...
def ring(*_): raise TooLong
def lay(place, kind):
    os.chdir(place.parent)  # the path of a test's home may be too long for a socket
    if kind == "pipe":
        os.mkfifo(place.name)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(place.name)
    else:
        os.mknod(place.name, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # zeros without end
signal.signal(signal.SIGALRM, ring)
for name in sys.argv[3:]:
    home = Path(sys.argv[1]) / name.replace("/", "_")
    cli.main(["--home", str(home), "write", "hello"])
    place = home / name
    shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    lay(place, sys.argv[2])
    for words in (["list"], ["search", "hello"], ["write", "more"], ["log"], ["doctor"], ["status"], ["dream"]):
        signal.alarm(20)
        status = cli.main(["--home", str(home), *words])
        signal.alarm(0)
        assert status in (0, 1), (name, words, status)
"""


@pytest.mark.slow
@pytest.mark.promise("issue-pipes")
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_is_no_file_but_has_the_name_of_one_of_ours_holds_up_no_command(tmp_path, kind):
    if kind == "device":
        try:
            os.mknod(tmp_path / "zeros", stat.S_IFCHR | 0o600, os.makedev(1, 5))
            (tmp_path / "zeros").open("rb").close()
        except PermissionError:
            pytest.skip("only root may make a device")
    ours = [
        "config.yaml",
        "memory.md",
        "pending.md",
        "memory.sock",
        ".daemon.lock",
        "notes/a.md",
        "kv/default/k.md",
    ]
    ours += [
        f".memoranda/{name}"
        for name in (
            "lock",
            "index.db",
            "index.db-wal",
            "ledger.db",
            "ledger.db-wal",
            "dream-report.json",
        )
    ]
    command = [sys.executable, "-c", ODD_FILES, str(tmp_path), kind, *ours]
    ran = run(command, env=ENVIRONMENT, timeout=4 * SECONDS)
    assert ran.returncode == 0, ran.stderr
    assert b"something went wrong" not in ran.stderr
    assert b"lock is no regular file; remove it" in ran.stderr


@pytest.mark.promise("issue-left-behind")
def test_temp_files_of_dead_processes_go_with_the_next_start_and_no_others(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        dead = process.pid
    home = filled(tmp_path / "home", indexed=True)
    remaining = [
        f".memory.md-{dead}-0123abcd",
        f".pending.bob.md-{dead}-0123abcd",
        f".config.yaml-{dead}",
    ]
    remaining += [
        f".memoranda/.dream-report.json-{dead}-0123abcd",
    ]
    stays = [f".memory.md-{os.getpid()}-0123abcd", f".backup-{dead}", "notes/.memory.md-mine"]
    for name in (*remaining, *stays):
        (home / name).write_text("x")
    with open_session(home) as memory:
        memory.write(Draft("x", title="x"))

    names = [name for name in remaining if (home / name).exists()]
    assert names == []
    names = [name for name in stays if not (home / name).exists()]
    assert names == []


@pytest.mark.promise("issue-long-texts")
@pytest.mark.parametrize("place", ["categories/knowledge", "notes"])
@pytest.mark.parametrize(
    "text", ["word " * 200_000, "---\ntags: [" + "a, " * 400_000 + "]\n---\nbody\n"]
)
def test_a_long_note_is_read_once_and_not_again_by_later_calls(tmp_path, monkeypatch, place, text):
    home = filled(tmp_path / "home", indexed=True)
    (home / place).mkdir(parents=True, exist_ok=True)
    (home / place / "long.md").write_text(text)
    with open_session(home) as memory:
        memory.sync()
        infos, _ = memory.list(limit=0)
        assert max(len(info.title) for info in infos) <= 2_000
    parsed = []
    parse = Engine.parse
    monkeypatch.setattr(
        Engine,
        "parse",
        lambda self, *arguments: parsed.append(arguments[1]) or parse(self, *arguments),
    )
    for _ in range(2):
        with open_session(home, watch=False) as memory:
            memory.list()
            memory.search("another")
            memory.read("notes/b")
            memory.write(Draft("x", title="new"))
            memory.delete("notes/new")
    assert "long.md" not in {Path(path).name for path in parsed}
    assert parsed


@pytest.mark.promise("issue-long-texts")
def test_an_endless_address_or_pattern_is_refused_with_a_sentence_about_it(tmp_path):
    with open_session(filled(tmp_path / "home", indexed=True)) as memory:
        for ask in (
            lambda text: memory.read(text),
            lambda text: memory.context(text),
            lambda text: memory.directory("notes", glob=text),
            lambda text: memory.search(Query(text=text, search_type="permalink")),
        ):
            with pytest.raises(InvalidInput, match="has at most 2,048 characters"):
                ask("a*" * 50_000)


@pytest.mark.slow
@pytest.mark.promise("issue-long-texts")
@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("# h\n", 3e5),
        ("- [fact] x #t%d\n", 3e5),
        ("see [[Note %d]]\n", 3e5),
        ("- knows [[N %d]]\n", 3e5),
        ("> [[q %d]]\n", 3e5),
        ("only words in this line\n", 4.5e6),
    ],
)
def test_of_an_enormous_note_a_part_of_the_structure_and_every_word_is_indexed(
    tmp_path: Path, line: str, size: float
) -> None:
    text = "".join(
        line % number if "%" in line else line for number in range(int(size) // len(line))
    )
    _put(
        tmp_path / "home/notes/big.md",
        f"[[first]]\n- [fact] first #one\n{text}\n- [fact] lastword\n",
    )
    begin = process_time()
    with open_session(tmp_path / "home", watch=False) as memory:
        memory.sync()
        # Lines of structure fill three times the bound, words alone more than four megabytes
        assert process_time() - begin < (5 if size > 1e6 else 2.5)
        note = memory.read("notes/big", count=False)
        assert max(map(len, (note.observations, note.relations, note.headings))) <= 11_100
        contents = [observation.content for observation in note.observations]
        assert "lastword" not in contents
        titles = [hit.note.title for hit in memory.search("lastword")]
        assert titles == ["big"]
        codes = [finding.code for finding in doctor(memory)]
        assert "partly_read" in codes
        memory.edit("notes/big", Append("another\n"))
        assert memory.search("lastword another").total == 1
        with memory.engine.guard:
            assert memory.index.is_sound()


@pytest.mark.slow
@pytest.mark.promise("issue-long-texts")
def test_a_note_of_too_many_different_words_is_searched_up_to_them_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(5)
    home = tmp_path / "home"
    # With the bounds as they are it takes 7 s
    words = writer.WORDS // 3
    pairs = writer.PAIRS // 3
    monkeypatch.setattr(writer, "WORDS", words)
    monkeypatch.setattr(writer, "PAIRS", pairs)
    for name, text in (
        ("han", "".join(chr(chance.randrange(0x4E00, 0x9FA0)) for _ in range(2 * pairs))),
        ("hex", " ".join(f"{chance.getrandbits(32):x}" for _ in range(words + words // 2))),
        ("same", "每天早上 the same words " * 20_000),
    ):
        _put(home / f"notes/{name}/big.md", f"firstword of {name}\n{text}\n\nlastword of {name}\n")
    with open_session(home, watch=False) as memory:
        assert memory.search("firstword").total == 3
        paths = [hit.note.path for hit in memory.search("lastword")]
        assert paths == ["same/big.md"]
        texts_by_path = {
            finding.path: finding.text
            for finding in doctor(memory)
            if finding.code == "partly_read"
        }
        assert sorted(texts_by_path) == ["notes/han/big.md", "notes/hex/big.md"]
        assert "are not searched. Split the note." in texts_by_path["notes/han/big.md"]
        text = memory.read("notes/han/big", count=False).text
        assert text.endswith("lastword of han\n")
        memory.edit("notes/han/big", Prepend("anotherword\n"))
        assert memory.search("anotherword").total == 1
        memory.edit("notes/han/big", Rewrite("lastword alone"))
        assert memory.search("lastword alone").total == 1
        assert memory.search("firstword").total == 2
        with memory.engine.guard:
            assert memory.index.is_sound()


@pytest.mark.promise("issue-long-texts")
def test_a_graph_note_is_read_whole(tmp_path: Path) -> None:
    observations = "".join(f"- said {number}\n" for number in range(12_000))
    _put(
        tmp_path / "home/graph/Ada.md",
        f"---\ntitle: Ada\ntype: person\n---\n## Observations\n{observations}",
    )
    with open_session(tmp_path / "home", watch=False) as memory:
        observations = memory.read("graph/Ada", count=False).observations
        assert len(observations) == 12_000
        codes = [finding.code for finding in doctor(memory)]
        assert "partly_read" not in codes


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)
