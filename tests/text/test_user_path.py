"""Paths as people type them: `~`, paths of Windows, and a user nobody knows (issue 33, 11)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memoranda.errors import InvalidInput
from memoranda.text.user_path import absolute_path, user_folder, user_path

WINDOWS_PATHS = [
    (r"C:\Users\me\Notes", "/mnt/c/Users/me/Notes"),
    ("C:/Users/me/Notes", "/mnt/c/Users/me/Notes"),
    (r"d:\vault", "/mnt/d/vault"),
    ("E:\\", "/mnt/e"),
    ("C:", "/mnt/c"),
    (r"C:\Users\Ané Müller\My Notes", "/mnt/c/Users/Ané Müller/My Notes"),
    (r"c:\a/b\c.md", "/mnt/c/a/b/c.md"),
]


@pytest.mark.parametrize(("path", "remedy"), WINDOWS_PATHS)
def test_windows_path_is_refused_with_the_path_to_use(path: str, remedy: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        user_path(path)

    assert str(refused.value).endswith(f"Under WSL use {remedy}")


@pytest.mark.parametrize("path", [r"\\server\share", r"\\wsl$\Ubuntu\home", r"\\nas\a\b.md"])
def test_network_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="network path of Windows"):
        user_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "notes",
        "/srv/C:/x",
        "a:b",
        "C:notes",
        "ab:/x",
        "1:/x",
        "./C:/x",
        "Q: why",
        r"a\b",
        "../x",
        "x~",
        "./~",
    ],
)
def test_path_of_this_system_stays(path: str) -> None:
    assert user_path(path) == Path(path)
    assert absolute_path(path) == os.path.abspath(path)


def test_folder_with_a_windows_name_that_exists_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / r"C:\old").mkdir()

    assert user_path(r"C:\old") == Path(r"C:\old")


def test_home_sign_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")

    assert user_path("~/x") == Path("/home/ann/x")
    assert user_folder() == Path("/home/ann")


@pytest.mark.parametrize("path", ["~", "~/.memory", "~/a/b"])
def test_home_sign_without_a_known_user_is_refused(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 3_999_999)

    with pytest.raises(InvalidInput, match="Set HOME"):
        user_path(path)
    assert user_folder() is None


def test_name_of_a_user_who_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no home folder is known for ~nobody-at-all"):
        user_path("~nobody-at-all/x")
