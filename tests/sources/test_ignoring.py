"""Which files a list leaves out: compared with git, and with what Obsidian's help says."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from memoranda.sources.ignoring import IgnoreRules, gitignore_patterns, obsidian_patterns

pytestmark = pytest.mark.promise("amendments-4.3")

PATHS = (
    "a.md",
    "b.md",
    "Private/a.md",
    "Private/deep/a.md",
    "deep/Private/b.md",
    "notes/draft.md",
    "notes/drafts/x.md",
    "notes/x.tmp.md",
    "[odd]/a.md",
    "with space /a.md",
    "#hash.md",
    "!bang.md",
    "日记/私人.md",
    "one/two/three/four.md",
)
LINES = (
    "Private/",
    "/Private/",
    "/Private",
    "Private/*",
    "!Private/deep/",
    "!notes/drafts/",
    "**/Private/",
    "*.md",
    "!a.md",
    "/a.md",
    "!/Private/",
    "!Private/a.md",
    "notes/dr*",
    "notes/draft?.md",
    "notes/**/x.md",
    "notes/**",
    "one/**/four.md",
    "**/deep/*",
    "*.tmp.md",
    "[ab].md",
    "[!a].md",
    "\\[odd\\]/",
    "\\#hash.md",
    "\\!bang.md",
    "# a comment",
    "",
    "with\\ space\\ /",
    "with space ",
    "with space\\ ",
    "日记/",
    "two",
    "one/two",
    "?.md",
    "dra*s/",
    "***",
    "a.md/",
    "notes/[a-d]*",
)


def left_out_by_git(root: Path) -> set[str]:
    """The paths that git leaves out."""
    command = ["git", "-C", str(root), "check-ignore", "--no-index", "-z", "--stdin"]
    question = "\0".join(PATHS).encode()
    answer = subprocess.run(command, input=question, capture_output=True, check=False).stdout
    return {path for path in answer.decode().split("\0") if path}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for path in PATHS:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("text")
    return root


@pytest.mark.parametrize("seed", range(150))
def test_list_leaves_out_what_git_leaves_out(repository: Path, seed: int) -> None:
    chosen = random.Random(seed)
    lines = [chosen.choice(LINES) for _ in range(chosen.randrange(1, 5))]
    (repository / ".gitignore").write_text("\n".join(lines) + "\n")
    rules = IgnoreRules(tuple(gitignore_patterns(lines, "list")))
    ours = {path for path in PATHS if rules.reason(path)}
    assert ours == left_out_by_git(repository), lines


@pytest.mark.parametrize("line", [line for line in LINES if line and not line.startswith("# ")])
def test_each_line_alone_is_read_as_git_reads_it(repository: Path, line: str) -> None:
    (repository / ".gitignore").write_text(f"{line}\n")
    rules = IgnoreRules(tuple(gitignore_patterns([line], "list")))
    ours = {path for path in PATHS if rules.reason(path)}
    assert ours == left_out_by_git(repository)


def test_reason_names_the_list_and_its_line() -> None:
    rules = IgnoreRules(tuple(gitignore_patterns(["# mine", "Private/"], ".memoryignore")))
    assert rules.reason("Private/a.md") == ".memoryignore, line 2"
    assert rules.reason("a.md") == ""


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("Private/", ["Private/a.md", "Private/deep/a.md"]),
        ("private/", ["Private/a.md", "Private/deep/a.md"]),
        ("notes/draft", ["notes/draft.md", "notes/drafts/x.md"]),
        ("/\\.tmp\\.md$/", ["notes/x.tmp.md"]),
        ("/(?<place>private)/", ["Private/a.md", "Private/deep/a.md", "deep/Private/b.md"]),
    ],
)
def test_excluded_files_of_obsidian_are_beginnings_or_expressions(
    text: str, paths: list[str]
) -> None:
    patterns, unreadable = obsidian_patterns([text], "Obsidian")
    rules = IgnoreRules(tuple(patterns))
    assert [path for path in PATHS if rules.reason(path)] == paths
    assert unreadable == []


def test_expression_that_cannot_be_read_is_named() -> None:
    patterns, unreadable = obsidian_patterns(["/(/", 3, "/", ""], "Obsidian")
    assert patterns == []
    assert unreadable == ["/(/"]
