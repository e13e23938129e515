"""AMENDMENTS, 4.3, and the files beside notes: ignore lists, attachments, symlinks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.note_tools import Tools, put
from memoranda.engine import open_session
from memoranda.engine.links.attachments import unresolved_links

PROJECT = "vault"

pytestmark = pytest.mark.promise("issue-vault-folders")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    put(
        root / "Home.md", "# Home\n\nsee [[Plan.canvas]] and ![[Scan 1.pdf]]\n[[Secret]] [[Lost]]\n"
    )
    put(root / "Private/Secret.md", "hiddenword one\n")
    put(root / "Private/deep/More.md", "hiddenword two\n")
    put(root / "Templates/Day.md", "hiddenword {{date}}\n")
    put(root / "Topics/Espresso.md", "shownword\n")
    return root


@pytest.fixture
def vault(tmp_path: Path, root: Path) -> Iterator[Tools]:
    with open_session(tmp_path / "home", projects={PROJECT: root}) as memory:
        yield Tools(memory)


def paths(tools: Tools, query: str) -> set[str]:
    return tools.found(query, project=PROJECT)


def obsidian(root: Path, name: str, **values: object) -> None:
    put(root / ".obsidian" / name, json.dumps(values))


@pytest.mark.promise("amendments-4.3")
def test_excluded_files_of_obsidian_are_neither_found_nor_read(vault: Tools, root: Path) -> None:
    obsidian(root, "app.json", userIgnoreFilters=["Private/"])
    obsidian(root, "templates.json", folder="Templates")
    assert paths(vault, "hiddenword") == set()
    assert paths(vault, "shownword") == {"Topics/Espresso.md"}
    for name in ("Private/Secret.md", "Secret", "Templates/Day"):
        vault.refused("read_note", "not_found", identifier=name, project=PROJECT)
    listed = vault.text("list_directory", dir_name="/", project=PROJECT, depth=5)
    assert "Private" not in listed
    assert "Templates" not in listed
    vault.refused("list_directory", "not_found", dir_name="Private", project=PROJECT)


@pytest.mark.promise("amendments-4.3")
def test_ignore_list_counts_as_soon_as_it_changes(vault: Tools, root: Path) -> None:
    assert paths(vault, "hiddenword") == {
        "Private/Secret.md",
        "Private/deep/More.md",
        "Templates/Day.md",
    }
    before = {path: path.read_bytes() for path in root.rglob("*.md")}
    ignored = put(root / ".memoryignore", "Private/\n!Private/deep/\nTemplates\n")
    assert paths(vault, "hiddenword") == set()
    ignored.write_text("Private/*\n!Private/deep/\n")
    assert paths(vault, "hiddenword") == {"Private/deep/More.md", "Templates/Day.md"}
    # Written meanwhile, in a folder that nobody watches
    put(root / "Private/New.md", "hiddenword three\n")
    assert "Private/New.md" not in paths(vault, "hiddenword")
    ignored.unlink()
    assert len(paths(vault, "hiddenword")) == 4
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.promise("amendments-4.3")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_note", {"title": "New", "content": "x", "directory": "Private"}),
        ("move_note", {"identifier": "Home", "destination_path": "Private/Home.md"}),
        ("edit_note", {"identifier": "Private/New", "operation": "append", "content": "x"}),
    ],
)
def test_no_note_can_be_put_where_it_would_be_left_out(
    vault: Tools, root: Path, tool: str, arguments: dict[str, str]
) -> None:
    put(root / ".memoryignore", "Private/\n")
    reply = vault.refused(tool, "invalid", project=PROJECT, **arguments)
    assert ".memoryignore, line 1" in reply
    assert not (root / "Private/New.md").exists()
    assert (root / "Home.md").exists()


@pytest.mark.promise("issue-vault")
def test_attachments_are_listed_and_described_and_never_searched(vault: Tools, root: Path) -> None:
    nodes = [
        {"type": "file", "file": "Home.md"},
        {"type": "text", "text": "canvasword"},
    ]
    put(root / "Plan.canvas", json.dumps({"nodes": nodes}))
    put(root / "Files/Scan 1.pdf", b"%PDF-1.7 scanword")
    put(root / "Tasks.base", "filters: baseword\n")
    put(root / "Sketch.excalidraw.md", "---\nexcalidraw-plugin: parsed\n---\ndrawword\n")
    for word in ("canvasword", "scanword", "baseword", "drawword"):
        assert paths(vault, word) == set()
    listed = vault("list_directory", dir_name="/", project=PROJECT, depth=3)
    kinds = {attachment["path"]: attachment["type"] for attachment in listed["attachments"]}
    assert kinds == {
        "Files/Scan 1.pdf": "PDF document",
        "Plan.canvas": "Obsidian canvas",
        "Sketch.excalidraw.md": "Excalidraw drawing",
        "Tasks.base": "Obsidian base",
    }
    canvas = vault("read_note", identifier="Plan.canvas", project=PROJECT)
    assert canvas["type"] == "Obsidian canvas"
    assert canvas["linked_from"] == ["Home.md"]
    assert canvas["notes_on_it"] == ["Home.md"]
    assert canvas["cards"] == 1
    scan = vault.text("read_note", identifier="Scan 1.pdf", project=PROJECT)
    assert "PDF document" in scan
    assert "linked from: Home.md" in scan
    vault.refused("read_note", "not_found", identifier="Missing.pdf", project=PROJECT)


def test_a_drawing_is_listed_in_its_folder_whatever_its_case(vault: Tools, root: Path) -> None:
    put(root / "Board.Excalidraw.md", "---\nexcalidraw-plugin: parsed\n---\nboardword\n")
    for depth in (1, 2):
        listed = vault("list_directory", dir_name="/", project=PROJECT, depth=depth)
        assert "Board.Excalidraw.md" in {attachment["path"] for attachment in listed["attachments"]}


@pytest.mark.promise("issue-vault")
def test_attachments_of_a_large_folder_are_told_page_by_page(vault: Tools, root: Path) -> None:
    names = [f"picture {number:02}.png" for number in range(45)]
    for name in names:
        put(root / name, b"\x89PNG")
    paths = []
    for page in (1, 2, 3):
        data = vault("list_directory", dir_name="/", project=PROJECT, page=page)
        assert data["attachments_total"] == 45
        paths += [attachment["path"] for attachment in data["attachments"]]
    assert paths == names
    some = vault("list_directory", dir_name="/", project=PROJECT, file_name_glob="*1.png")
    assert some["attachments_total"] == 5


@pytest.mark.promise("issue-vault")
def test_link_to_an_attachment_is_no_missing_note(vault: Tools, root: Path) -> None:
    put(root / "Plan.canvas", "{}")
    (result,) = vault("build_context", url="Home", project=PROJECT)["results"]
    states = {relation["target"]: relation["state"] for relation in result["relations"]}
    assert states["Plan.canvas"] == "attachment"
    assert states["Lost"] == "unwritten"


@pytest.mark.promise("issue-vault")
def test_symlink_inside_is_read_as_the_note_it_leads_to(vault: Tools, root: Path) -> None:
    (root / "Linked.md").symlink_to(root / "Topics/Espresso.md")
    (root / "Outside.md").symlink_to(root.parent / "elsewhere.md")
    put(root.parent / "elsewhere.md", "outsideword\n")
    data = vault("read_note", identifier="Linked", project=PROJECT)
    assert data["file_path"] == "Topics/Espresso.md"
    assert paths(vault, "shownword") == {"Topics/Espresso.md"}
    assert paths(vault, "outsideword") == set()
    vault.refused("read_note", "not_found", identifier="Outside", project=PROJECT)


@pytest.mark.promise("issue-vault")
def test_unresolved_links_are_listed_with_their_reason(vault: Tools, root: Path) -> None:
    put(root / ".memoryignore", "Private/\n")
    put(root / "Plan.canvas", "{}")
    put(root / "one/Twin.md", "x")
    put(root / "two/Twin.md", "x")
    put(
        root / "Odd.md",
        "[[Twin]]\n[[../../out]]\n[[{{title}}]]\n[[Gone.pdf]]\n[[Private/Secret]]\n",
    )
    links = unresolved_links(vault.memory, PROJECT)
    reasons = {(link.path, link.line, link.target): link.reason for link in links}
    assert reasons == {
        ("Home.md", 4, "Secret"): "it is in Private, which is left out by .memoryignore, line 1",
        ("Home.md", 4, "Lost"): "no note has this name yet",
        ("Odd.md", 1, "Twin"): "several notes have this name; write the folder in front of it",
        ("Odd.md", 2, "../../out"): "it leads out of the folder",
        ("Odd.md", 3, "{{title}}"): "it is a placeholder of a template",
        ("Odd.md", 4, "Gone.pdf"): "there is no such file",
        ("Odd.md", 5, "Private/Secret"): "Private/Secret.md is left out by .memoryignore, line 1",
    }


@pytest.mark.promise("amendments-4.1")
def test_links_of_logseq_name_pages_and_days(vault: Tools, root: Path) -> None:
    put(root / "logseq/config.edn", "{}")
    put(root / "logseq/bak/pages/Old.md", "hiddenword old copy\n")
    put(root / "journals/2026_03_07.md", "- met [[work/plan]]\n")
    put(root / "pages/work___plan.md", "alias:: The Plan\n\n- see [[Mar 7th, 2026]]\n")
    put(root / "pages/Other.md", "- [[The Plan]] #work/plan\n")
    links = unresolved_links(vault.memory, PROJECT)
    assert [link for link in links if link.path.startswith(("journals", "pages"))] == []
    assert "logseq/bak/pages/Old.md" not in paths(vault, "hiddenword")
    (result,) = vault("build_context", url="pages/Other", project=PROJECT)["results"]
    assert result["relations"][0]["permalink"] == "vault/pages/work-plan"
