"""What the files below .git say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memoranda.faces.bank.bank import find_repository


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


HEADS = {
    "ref: refs/heads/main\n": ("main", None),
    "ref:refs/heads/topic/x": ("topic/x", None),
    "ref: refs/remotes/origin/main\n": ("refs/remotes/origin/main", None),
    "0123456789abcdef0123456789abcdef01234567\n": (None, "0123456"),
    "0123456789abcdef" * 4: (None, "0123456"),
    "0123456\n": (None, None),
    "ref: refs/heads/.invalid\n": (None, None),
    "ref: refs/heads/a\x1b[31m\nmore": ("a[31m", None),
    "": (None, None),
    "garbage": (None, None),
}


@pytest.mark.parametrize("head", HEADS)
def test_the_head_tells_branch_or_commit(tmp_path: Path, head: str) -> None:
    repository = find_repository(str(lay(tmp_path, {".git/HEAD": head})))
    assert repository is not None
    assert (repository.branch, repository.commit) == HEADS[head]


@pytest.mark.parametrize(
    ("config", "origin"),
    [
        ('[remote "origin"]\n\turl = git@example.org:a/b.git\n', "git@example.org:a/b.git"),
        (
            '[remote "up"]\n\turl = x\n[REMOTE "origin"]\n url="https://me:key@example.org/b"\n',
            "https://example.org/b",
        ),
        ('[remote "origin"] url = /srv/b ; here\n', "/srv/b"),
        ('[remote "origin"]\n\tfetch = +refs/heads/*\n[branch "main"]\n\turl = no\n', None),
        ('[remote "origin"]\n\turl =\n', None),
        ("[remote\n", None),
    ],
)
def test_the_origin_is_kept_without_credentials(
    tmp_path: Path, config: str, origin: str | None
) -> None:
    repository = find_repository(str(lay(tmp_path, {".git/HEAD": "", ".git/config": config})))
    assert repository is not None
    assert repository.origin == origin


def test_the_nearest_repository_above_counts_links_followed(tmp_path: Path) -> None:
    lay(tmp_path / "outer", {".git/HEAD": "", "In Ner/.git/HEAD": "", "In Ner/src/a.py": ""})
    os.symlink(tmp_path / "outer" / "In Ner" / "src", tmp_path / "link")
    for path in (
        "outer/In Ner/src/a.py",
        "outer/In Ner/src",
        "outer/In Ner",
        "outer/In Ner/.git",
        "link",
    ):
        repository = find_repository(str(tmp_path / path))
        assert repository is not None
        assert (repository.name, repository.root) == ("In Ner", str(tmp_path / "outer" / "In Ner"))


@pytest.mark.parametrize("path", ["missing", "x\0y", "plain"])
def test_no_repository_is_none(tmp_path: Path, path: str) -> None:
    (tmp_path / "plain").mkdir()
    # Unless the tests themselves run below a repository
    if find_repository(str(tmp_path)) is None:
        assert find_repository(str(tmp_path / path)) is None
    assert find_repository(str(tmp_path / "missing")) is None


def test_a_git_file_leads_to_the_private_folder(tmp_path: Path) -> None:
    private = tmp_path / "modules" / "sub"
    lay(private, {"HEAD": "ref: refs/heads/dev\n", "config": '[remote "origin"]\n\turl = u\n'})
    lay(tmp_path / "sub", {".git": "gitdir: ../modules/sub\n"})
    repository = find_repository(str(tmp_path / "sub"))
    assert repository is not None
    assert (repository.name, repository.root, repository.branch, repository.origin) == (
        "sub",
        str(tmp_path / "sub"),
        "dev",
        "u",
    )


def test_a_worktree_of_a_bare_repository_has_its_name(tmp_path: Path) -> None:
    bare = lay(
        tmp_path / "lib.git",
        {
            "HEAD": "ref: refs/heads/main\n",
            "worktrees/w/HEAD": "ref: refs/heads/w\n",
            "worktrees/w/commondir": "../..\n",
        },
    )
    lay(tmp_path / "w", {".git": f"gitdir: {bare}/worktrees/w\n"})
    repository = find_repository(str(tmp_path / "w"))
    assert repository is not None
    assert (repository.name, repository.root, repository.branch) == ("lib", str(bare), "w")


def test_a_head_that_is_no_file_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    (tmp_path / "other" / ".git" / "HEAD").mkdir(parents=True)
    for path in (tmp_path, tmp_path / "other"):
        repository = find_repository(str(path))
        assert repository is not None
        assert repository.branch is None
        assert repository.commit is None
