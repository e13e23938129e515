"""Every command takes a note by any reference that a reply prints; what removes, by exact ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

COMMANDS = (
    ("read",),
    ("delete", "--dry-run"),
    ("archive", "--dry-run"),
    ("pin",),
    ("backlinks",),
    ("tag", "--add", "x"),
    ("log",),
    ("erase", "--dry-run"),
    ("context",),
    ("show",),
)
REMOVING = ("delete", "erase")


@pytest.fixture
def vault(terminal: Any, tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    (folder / "sub dir").mkdir(parents=True)
    terminal.ok("project", "add", "vault", str(folder))
    return folder


def unknown_to(terminal: Any, reference: str) -> list[str]:
    """The commands that do not take this reference."""
    return [words[0] for words in COMMANDS if terminal(*words, "--", reference).status != 0]


@pytest.mark.parametrize(
    "reference",
    [
        "Alpha Note",
        "Alpha Note.md",
        "vault/Alpha Note",
        "vault/Alpha Note.md",
        "Nick",
        "Al: ias",
        "my/perma",
        "vault: my/perma",
        "memory://vault/my/perma",
        "memory://my/perma",
        "[[Alpha Note]]",
        "[[Alpha Note|shown so]]",
        "[[my/perma]]",
        "  [[Nick]] ",
    ],
)
def test_a_note_is_taken_by_whatever_names_it(terminal: Any, vault: Path, reference: str) -> None:
    header = '---\naliases: [Nick, "Al: ias"]\npermalink: my/perma\n---\n'
    (vault / "Alpha Note.md").write_text(f"{header}alpha\n")
    (vault / "Alpha.md").write_text("other\n")
    assert unknown_to(terminal, reference) == []


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("be\x07ll", ["be ll", r"be\x07ll"]),
        ("De\x7fl", ["De l", r"De\x7fl"]),
        ("Es\x1b[31mc", ["Es [31mc", r"Es\x1b[31mc"]),
        ("Ta\tb", ["Ta b"]),
        ("n\u00a0b", ["n\u00a0b", "n b"]),
        ("em\u2003x", ["em x"]),
        ("rl\u202eo", [r"rl\u202eo"]),
        ("z\u200bw", [r"z\u200bw"]),
        ("ne\x85l", ["ne l", r"ne\x85l"]),
        ("l\u2028s", ["l s", r"l\u2028s"]),
        ("so\u00adft", [r"so\xadft"]),
        (" lead", ["lead", " lead"]),
        ("New\nline", ["New line", r"New\nline"]),
    ],
)
def test_a_name_with_characters_that_cannot_be_seen_is_taken_as_it_is_printed(
    terminal: Any, vault: Path, name: str, listed: list[str]
) -> None:
    (vault / f"{name}.md").write_text("text\n")
    for printed_name in listed:
        assert unknown_to(terminal, printed_name) == [], printed_name
        assert unknown_to(terminal, f"vault/{printed_name}.md") == [], printed_name


@pytest.mark.parametrize(
    ("kept_name", "reference"),
    [
        ("alpha", "ALPHA"),
        ("C++", "C"),
        ("C", "C#"),
        ("Résumé", "Resume"),
        ("100%", "100 %"),
        ("dont", "don't"),
        ("Q&A", "Q A"),
        ("Foo", "Foo!"),
        ("alpha beta", "alphabeta"),
        ("a\\nb", "a b"),
        ("C:\\new", "C: ew"),
        ("z\u200bw", "zw"),
        ("rl\u202eo", "rl o"),
    ],
)
def test_what_removes_takes_no_name_that_is_not_exact(
    terminal: Any, vault: Path, kept_name: str, reference: str
) -> None:
    (vault / f"{kept_name}.md").write_text("text\n")
    for command in REMOVING:
        options = ("--yes",) if command == "erase" else ()
        ran = terminal(command, *options, "--", reference)
        assert ran.status == 1

    text = (vault / f"{kept_name}.md").read_text()
    assert text == "text\n"


def test_of_two_names_that_are_printed_alike_the_one_typed_is_meant(
    terminal: Any, vault: Path
) -> None:
    (vault / "a b.md").write_text("blank\n")
    (vault / "a\tb.md").write_text("tab\n")
    (vault / "a\\x07b.md").write_text("letters\n")
    (vault / "a\x07b.md").write_text("bell\n")

    assert "blank" in terminal.ok("read", "a b")
    assert "tab" in terminal.ok("read", "a\tb")
    assert "letters" in terminal.ok("read", r"a\x07b")
    assert "bell" in terminal.ok("read", "a\x07b")


def test_a_link_in_brackets_means_the_exact_note(terminal: Any, vault: Path) -> None:
    for name in ("C", "C++", "C#"):
        (vault / f"{name}.md").write_text(f"about {name}.\n")
    for name in ("C", "C++", "C#"):
        assert f"about {name}." in terminal.ok("read", f"[[{name}]]")


def test_a_title_that_is_a_link_is_itself_a_name(terminal: Any, vault: Path) -> None:
    (vault / "one.md").write_text('---\ntitle: "[[Tea]]"\n---\nin brackets\n')
    (vault / "Tea.md").write_text("without\n")
    assert "in brackets" in terminal.ok("read", "[[Tea]]")
    assert "without" in terminal.ok("read", "Tea")


def test_link_takes_notes_by_any_reference(terminal: Any, vault: Path) -> None:
    id = terminal.write("likes tea", "--category", "preferences")
    (vault / "Tea.md").write_text("green\n")
    (vault / "sub dir" / "Cup.md").write_text("blue\n")
    assert terminal.ok("link", "Tea", "vault/sub dir/Cup.md") == (
        "Linked vault/Tea.md -> vault/sub dir/Cup.md\n"
    )
    assert "- links_to [[Cup]]" in (vault / "Tea.md").read_text()
    terminal.ok("link", "[[Cup]]", id[:8])
    assert "Tea" in terminal.ok("backlinks", "Cup")
    assert terminal("link", "Tea", "tea").error == "cannot link a memory to itself"
    assert terminal("link", "Tea", "Nothing").status == 1
    assert terminal("unlink", "Tea", "Cup").status == 1
