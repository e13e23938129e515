"""Which files below a root are read, and what is said of those that are not (contract 001, 11)."""

from __future__ import annotations

import os

import pytest

from memoranda.ingest.sources import MOST_BYTES, Tree


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def put(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"text of {path}", "utf-8")


def test_all_markdown_below_the_root_is_listed_in_order(root):
    put(root, "b.md", "a/z.md", "a/b/c.md", "a/x.txt", "a.md/inside.md", ".h/x.md", ".y.md")
    assert Tree(root).notes(hidden=False) == ["a.md/inside.md", "a/b/c.md", "a/z.md", "b.md"]
    assert Tree(root).notes(hidden=True)[:2] == [".h/x.md", ".y.md"]
    assert Tree(root).notes("a", hidden=False) == ["a/b/c.md", "a/z.md"]
    assert Tree(root).notes("a", hidden=False, deep=False) == ["a/z.md"]


def test_links_out_of_the_root_are_not_followed(root, tmp_path):
    put(tmp_path, "out/secret.md")
    put(root, "a.md")
    (root / "folder").symlink_to(tmp_path / "out")
    (root / "file.md").symlink_to(tmp_path / "out" / "secret.md")
    (root / "gone.md").symlink_to("nowhere")
    (root / "up").symlink_to("..")
    tree = Tree(root)
    assert tree.notes(hidden=True) == ["a.md"]
    assert tree.notes("folder", hidden=True) == []
    not_followed = "a link out of the folder is not followed"
    assert sorted(tree.warnings) == [
        f"file.md: {not_followed}",
        f"folder: {not_followed}",
        f"up: {not_followed}",
    ]


def test_links_inside_the_root_are_followed_and_loops_end(root):
    put(root, "real/a.md", "real/deep/b.md", ".hidden/c.md")
    (root / "link").symlink_to("real")
    (root / "real" / "loop").symlink_to("../real")
    (root / "real" / "deep" / "top").symlink_to("../..")
    (root / "seen").symlink_to(".hidden")
    (root / "same.md").symlink_to("real/a.md")
    tree = Tree(root)
    assert tree.notes(hidden=False) == [
        "link/a.md",
        "link/deep/b.md",
        "real/a.md",
        "real/deep/b.md",
        "same.md",
    ]
    assert "seen/c.md" in tree.notes(hidden=True)
    assert tree.warnings == []


def test_a_link_that_leads_to_itself_is_passed_over(root):
    put(root, "a.md")
    (root / "self.md").symlink_to("self.md")
    (root / "one.md").symlink_to("two")
    (root / "two").symlink_to("one.md")
    tree = Tree(root)
    assert tree.notes(hidden=True) == ["a.md"]
    assert tree.warnings == []


def test_a_root_that_is_a_link_itself_is_read(root, tmp_path):
    put(root, "a.md")
    (tmp_path / "to").symlink_to(root)
    assert Tree(tmp_path / "to").notes(hidden=True) == ["a.md"]


def test_what_is_no_file_is_not_read(root):
    os.mkfifo(root / "pipe.md")
    assert Tree(root).notes(hidden=True) == []


def test_too_large_and_not_utf8_are_said(root):
    file = root / "big.md"
    file.write_bytes(b"x" * (MOST_BYTES + 1))
    (root / "fits.md").write_bytes(b"x" * MOST_BYTES)
    (root / "latin.md").write_bytes("é".encode("latin-1"))
    (root / "bom.md").write_bytes("\ufefftext\r\n".encode())
    tree = Tree(root)
    assert {path: tree.text(path) and len(tree.text(path)) for path in tree.notes(hidden=True)} == {
        "big.md": "",
        "bom.md": 6,
        "fits.md": MOST_BYTES,
        "latin.md": "",
    }
    assert tree.warnings == ["big.md: larger than 1 MB", "latin.md: not UTF-8 text"]


def test_a_file_that_went_away_is_said(root):
    tree = Tree(root)
    assert tree.text("gone.md") == ""
    assert tree.warnings == ["gone.md: cannot be read (no such file or directory)"]


def test_a_name_that_is_no_text_is_said(root):
    try:
        os.mkdir(os.fsencode(root) + b"/bad\xff")
    except OSError:
        pytest.skip("this file system takes no such names")
    tree = Tree(root)
    assert tree.notes(hidden=True) == []
    assert tree.warnings == ["bad\\xff: its name is not valid UTF-8"]
