"""Notes that cite code, and what is said of them when that changed."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from shutil import rmtree

import pytest

from memoranda import Draft
from memoranda.citations.check import CitationCheck
from memoranda.citations.code import State
from memoranda.engine import open_session
from memoranda.note.citations import Citation, citations, parse
from movable_clock import Clock

APP = """import os

def load(path):
    with open(path) as file:
        return file.read()


def save(path, text):
    with open(path, "w") as file:
        file.write(text)
"""


class GitFolder:
    def __init__(self, root):
        self.root = root
        self.year = 2026
        self.day = 1
        root.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words):
        moment = f"{self.year}-05-{self.day:02d}T12:00:00Z"
        environ = os.environ | {
            "GIT_AUTHOR_DATE": moment,
            "GIT_COMMITTER_DATE": moment,
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        names = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        process = subprocess.run(
            ["git", *names, *words], cwd=self.root, env=environ, check=True, capture_output=True
        )
        return process.stdout.decode()

    def commit(self, **files):
        self.day += 1
        for name, text in files.items():
            path = self.root / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")
        return self.git("rev-parse", "HEAD").strip()


@pytest.fixture
def repo(tmp_path):
    repository = GitFolder(tmp_path / "repo")
    repository.commit(src__app_dot_py=APP)
    return repository


@pytest.fixture
def memory(tmp_path):
    clock = Clock(datetime(2026, 5, 7, 10, 0, tzinfo=UTC))
    with open_session(tmp_path / "home", clock=clock, watch=False) as memory:
        yield memory


def states(memory, repo):
    infos, _ = memory.list(limit=0)
    texts = [memory.text_of(info) for info in infos]
    check = CitationCheck(memory, [repo.root])
    checked = list(check.notes(infos, texts))
    check.save()
    return [
        (str(finding.citation), finding.verdict.state.value, finding.verdict.now)
        for finding in checked
    ]


@pytest.mark.parametrize(
    ("text", "citation"),
    [
        ("src/app.py", Citation("src/app.py")),
        ("./src/app.py:12", Citation("src/app.py", 12, 12)),
        ("src/app.py:12-30", Citation("src/app.py", 12, 30)),
        ("src/app.py#L12-L30", Citation("src/app.py", 12, 30)),
        ("src/app.py::load", Citation("src/app.py", symbol="load")),
        ("src/app.py@abc1234", Citation("src/app.py", commit="abc1234")),
        ("src/app.py:3-5@abc1234", Citation("src/app.py", 3, 5, commit="abc1234")),
        ("../etc/passwd", None),
        ("npm install left", None),
        ("a b", None),
    ],
)
def test_a_citation_is_read_as_it_is_written(text, citation):
    assert parse(text) == citation


def test_only_paths_between_backticks_and_in_the_header_are_citations():
    text = "See `src/app.py:3-5`, not src/other.py or `load` or `x = 1` or `https://a.b/c.py`."
    assert [str(citation) for citation in citations({}, text)] == ["src/app.py:3-5"]
    header = {"cites": ["lib/a.go#L2", {"path": "b.rs", "lines": "1-2", "commit": "abcdef1"}]}
    assert [str(citation) for citation in citations(header, "")] == ["lib/a.go:2", "b.rs:1-2"]


def test_code_that_is_as_it_was_or_only_moved_is_not_stale(memory, repo):
    memory.write(Draft("Reads in `src/app.py:3-5`.", project="notes", title="a"))
    assert states(memory, repo) == [("src/app.py:3-5", "same", "")]
    (repo.root / "src/app.py").write_text('"""Docs."""\n\n\n' + APP)
    assert states(memory, repo) == [("src/app.py:3-5", "moved", "src/app.py:6-8")]
    (repo.root / "src/app.py").write_text(APP.replace("    ", "\t"))
    assert states(memory, repo) == [("src/app.py:3-5", "same", "")]


def test_code_that_changed_or_went_is_stale(memory, repo):
    memory.write(Draft("Reads in `src/app.py:3-5`.", project="notes", title="a"))
    # After the note was written, whatever the clock of this machine says
    repo.year = 2099
    repo.commit(src__app_dot_py=APP.replace("file.read()", "file.read().strip()"))
    assert states(memory, repo) == [("src/app.py:3-5", "changed", "")]
    (repo.root / "src/app.py").unlink()
    repo.commit(other="x")
    assert states(memory, repo) == [("src/app.py:3-5", "gone", "")]


def test_renames_are_followed_through_git_also_several(memory, repo):
    memory.write(Draft("Reads in `src/app.py:3-5`.", project="notes", title="a"))
    # After the note was written, whatever the clock of this machine says
    repo.year = 2099
    repo.git("mv", "src/app.py", "src/io.py")
    repo.commit()
    assert states(memory, repo) == [("src/app.py:3-5", "moved", "src/io.py:3-5")]
    repo.git("mv", "src/io.py", "src/files.py")
    repo.commit()
    assert states(memory, repo) == [("src/app.py:3-5", "moved", "src/files.py:3-5")]
    text = (repo.root / "src/files.py").read_text()
    repo.commit(src__files_dot_py=text.replace("file.read()", "file.read(9)"))
    assert states(memory, repo) == [("src/app.py:3-5", "changed", "src/files.py")]


def test_a_name_is_stale_once_nothing_defines_it(memory, repo):
    memory.write(Draft("Call `src/app.py::load`.", project="notes", title="a"))
    assert states(memory, repo)[0][1] == "same"
    (repo.root / "src/app.py").write_text(APP.replace("load", "read_all"))
    assert states(memory, repo)[0][1] == "changed"


def test_a_commit_and_a_hash_say_what_was_cited(memory, repo):
    first = repo.git("rev-parse", "HEAD").strip()
    changed = APP.replace("file.read()", "file.read(1)")
    repo.commit(src__app_dot_py=changed)
    memory.write(Draft(f"In `src/app.py:3-5@{first[:10]}`.", project="notes", title="a"))
    assert states(memory, repo)[0][1] == "changed"
    from hashlib import sha256

    good = sha256(changed.encode()).hexdigest()
    cites = [{"path": "src/app.py", "sha256": good}]
    memory.write(Draft("x", project="notes", title="b", metadata={"cites": cites}))
    assert ("src/app.py", "same", "") in states(memory, repo)


def test_what_git_never_knew_is_not_taken_for_a_citation(memory, repo):
    memory.write(Draft("Like `foo/bar.py` and `and/or.md`.", project="notes", title="a"))
    assert states(memory, repo) == []


def test_a_place_of_a_repository_that_went_later_cannot_be_known(memory, repo):
    memory.write(Draft("Reads in `src/app.py:3-5`.", project="notes", title="a"))
    assert states(memory, repo) == [("src/app.py:3-5", "same", "")]
    rmtree(repo.root)
    assert states(memory, repo) == []


def test_doctor_lists_stale_citations(memory, repo, monkeypatch):
    from memoranda.citations.doctor import examine_citations

    memory.write(Draft("Reads in `src/app.py:3-5`.", project="notes", title="a"))
    memory.write(Draft("Writes in `src/app.py:8-10`.", project="notes", title="b"))
    (repo.root / "src/app.py").write_text(APP.replace("file.read()", "file.read(1)"))
    report = examine_citations(memory, [repo.root])
    assert report.checked == 2
    (finding,) = report.findings
    assert (finding.level, finding.code, finding.path) == (
        "warning",
        "stale_citation",
        "notes/a.md",
    )
    assert "src/app.py:3-5 changed since" in finding.text


def test_a_session_is_told_that_cited_code_changed_and_after_the_others(memory, repo):
    from memoranda.clients import hook
    from memoranda.clients.hook_events import START, HookEvent

    memory.write(Draft("The repo reads in `src/app.py:3-5`.", project="notes", title="stale"))
    memory.write(Draft("The repo writes in `src/app.py:8-10`.", project="notes", title="good"))
    (repo.root / "src/app.py").write_text(APP.replace("file.read()", "file.read(1)"))
    event = HookEvent("claude-code", START, "SessionStart", "s", str(repo.root), source="startup")
    text = hook.answer(memory, event)
    assert "src/app.py:3-5 changed since" in text
    assert text.index("good") < text.index("changed since")
    assert text.count("changed since") == 1


def test_a_note_for_a_prompt_has_a_mark_if_its_code_changed_and_not_if_another_notes_did(
    memory, repo
):
    from memoranda.clients.hook_context import for_prompt
    from memoranda.clients.hook_events import PROMPT, HookEvent

    for draft in (
        Draft("The zebrafish loader reads bytes in `src/app.py:3-5`.", title="reads"),
        Draft("Cheetahs write to disk at night, `src/app.py:8-10`.", title="reads/writes"),
        Draft("Ferns decode the file, `src/app.py:3-5`.", project="categories", category="project"),
    ):
        memory.write(draft)
    (repo.root / "src/app.py").write_text(APP.replace("file.read()", "file.read(1)"))
    mark = "outdated? src/app.py:3-5 changed since"
    session = memory.session_rows("claude-code", "s")
    for prompt, marks in (
        ("which bytes does the zebrafish loader read?", (mark,)),
        ("when do the cheetahs write to disk at night?", ()),
        ("how do the ferns decode the file?", (mark,)),
    ):
        event = HookEvent("claude-code", PROMPT, "", "s", str(repo.root), prompt=prompt)
        telling = for_prompt(memory, event, session)
        (section,) = telling.sections
        assert [tuple(mark.words for mark in row.marks) for row in section.notes] == [marks]
        assert telling.text.count(mark) == len(marks)


def test_the_second_look_asks_git_nothing(memory, repo, monkeypatch):
    memory.write(Draft("Reads in `src/app.py:3-5`.", project="notes", title="a"))
    states(memory, repo)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("asked git"))
    assert states(memory, repo)[0][1] == State.SAME.value
