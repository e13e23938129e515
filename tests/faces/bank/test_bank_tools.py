"""The three tools beside what the contract's cases show."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.memory_bank import Banks
from contract.tables import tables
from memoranda import faces
from memoranda.engine import open_session

TABLES = tables("bank_arguments")


def test_the_templates_are_those_of_the_contract(banks: Banks) -> None:
    data = banks.ok("activate", bank_type="project", bank_id="my_proj")
    assert data["content"]["readme.md"].startswith("# My Proj\n\n## Project Overview\n")
    for text in data["content"].values():
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        for part in text.split("\n\n")[1:]:
            heading, sentence = part.rstrip("\n").split("\n")
            assert heading.startswith("## ")
            assert sentence.endswith(".")
    assert (
        banks.ok("activate", bank_type="global", bank_id="")["content"]["context.md"]
        == "# Context\n\n"
    )
    kinds = ("global", "project", "code")
    files = [
        banks.ok("activate", bank_type=kind, bank_id="n")["bank_info"]["files"] for kind in kinds
    ]
    assert [len(file) for file in files] == [3, 8, 6]


def test_the_prompts_carry_what_a_model_must_know(banks: Banks) -> None:
    for kind, id, words in (
        ("global", "default", ["preferences", "communication style", "references"]),
        ("project", "p", ['"P"', "objectives", "decisions", "progress", "meeting", "research"]),
        ("code", "lib", ['"Lib"', "architecture", "patterns", "API"]),
    ):
        automation, own_prompt = banks.ok("activate", bank_type=kind, bank_id=id)[
            "custom_instructions"
        ]["prompts"]
        assert (automation["id"], own_prompt["id"]) == ("memory_bank_automation", f"{kind}_default")
        for word in [
            "After every response",
            f"bank_type='{kind}'",
            f"bank_id='{id}'",
            "target_file",
            "rchitecture",
            "design",
            "rogress",
            "GIT_COMMIT",
            "trigger_type='commit'",
            "secrets",
            "one call",
        ]:
            assert word in automation["text"], (kind, word)
        for word in words:
            assert word in own_prompt["text"], (kind, word)
        assert "$" not in automation["text"] + own_prompt["text"]


def test_the_older_name_of_the_bank_type_is_understood(banks: Banks, tmp_path: Path) -> None:
    root = tmp_path / "Some App"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    info = banks.ok("activate", conversation_type="global")["bank_info"]
    assert (info["type"], info["id"]) == ("global", "default")
    info = banks.ok(
        "activate", conversation_type="project", project_name="X", current_path=str(root)
    )["bank_info"]
    assert (info["type"], info["id"]) == ("code", "some_app")
    info = banks.ok(
        "activate",
        conversation_type="project",
        project_name="My X",
        current_path=str(tmp_path / "no"),
    )
    assert (info["bank_info"]["type"], info["bank_info"]["id"]) == ("project", "my_x")
    refused = banks.refused("activate", "bank_not_found", conversation_type="project")
    assert refused["error"].endswith("Project name is required for project conversations.")
    refused = banks.refused(
        "activate", "bank_not_found", bank_type="project", bank_id="auto", project_name=" "
    )
    assert (
        refused["error"]
        == "Failed to activate memory bank: Project name is required to detect a project bank"
    )
    assert banks.ok("activate", conversation_type="project", bank_id="p")["bank_info"]["id"] == "p"


@pytest.mark.parametrize(("tool", "arguments", "complaint"), TABLES["wrong"])
def test_arguments_of_the_wrong_shape_are_named(
    banks: Banks, tool: str, arguments: dict[str, Any], complaint: str
) -> None:
    data = banks.refused(tool, "invalid", **arguments)
    assert data["error"].startswith(f"Input validation error: {complaint}")


def test_letters_and_digits_of_any_script_make_an_id_and_nothing_else(banks: Banks) -> None:
    for id in ("a", "A b.c_d-1", "翻译_项目", "हिन्दी", "naïve", "n" * 100, "-x", "x."):
        assert banks.ok("activate", bank_type="project", bank_id=id)["bank_info"]["id"] == id
    for id in (
        "a\tb",
        "\u202e",
        "a\u200b",
        "a/b",
        "a:b",
        "*",
        ".a",
        "node_modules",
        "n" * 101,
        "字" * 90,
    ):
        banks.refused("activate", "activation_failed", bank_type="project", bank_id=id)


@pytest.mark.parametrize(
    ("id_on_disk", "other_id"), [("caf\u00e9", "cafe\u0301"), ("cafe\u0301", "caf\u00e9")]
)
def test_an_id_in_another_unicode_form_opens_the_bank_as_the_disk_spells_it(
    banks: Banks, id_on_disk: str, other_id: str
) -> None:
    banks.ok("activate", bank_type="project", bank_id=id_on_disk)
    banks.ok(
        "update",
        bank_type="project",
        bank_id=other_id,
        target_file="a.md",
        content="x",
    )
    activated = banks.ok(
        "activate",
        bank_type="project",
        bank_id=other_id,
    )
    bank = activated["bank_info"]
    texts = activated["content"]
    assert bank["id"] == id_on_disk
    assert texts["a.md"] == "x\n"


def test_a_target_is_a_relative_path_to_a_markdown_file(banks: Banks) -> None:
    deep = "/".join("abcdefghi")
    long = "b" * 97 + ".md"
    for target in ("a.md", f"{deep}/j.md", long, "a" * 99 + "/" + long):
        assert banks.write("x", target)["updated_file"] == target
    bad_targets = [
        ".md",
        "a.txt",
        "a.md/",
        "/a.md",
        "a//b.md",
        "./a.md",
        "a/../b.md",
        ".x/a.md",
        "a.MD",
        "cache.json",
    ]
    for target in (*bad_targets, f"{deep}/j/k.md", f"b{long}", "a" * 100 + "/" + long):
        arguments = {"bank_type": "project", "bank_id": "p", "target_file": target, "content": "x"}
        banks.refused("update", "update_failed", **arguments)


def test_an_update_without_names_goes_to_the_bank_activated_last(banks: Banks) -> None:
    refused = banks.refused("update", "bank_not_found", content="x", target_file="readme.md")
    assert refused["error"].startswith("Failed to update memory bank: Memory bank not found: ")
    banks.ok("activate", bank_type="project", bank_id="one")
    banks.ok("activate", bank_type="code", bank_id="two")
    banks.ok("update", content="last", target_file="readme.md")
    banks.ok(
        "update",
        bank_type="project",
        bank_id="auto",
        content="of its kind",
        target_file="readme.md",
    )
    assert banks.file("code/two/readme.md").read_text().endswith("\n\nlast\n")
    assert banks.file("projects/one/readme.md").read_text().endswith("\n\nof its kind\n")
    refused = banks.refused(
        "update", "bank_not_found", bank_type="global", bank_id="auto", content="x"
    )
    assert refused["error"] == "Failed to update memory bank: Memory bank not found: global/auto"


def test_failures_of_a_bank_are_told_afterwards_the_last_ten(banks: Banks) -> None:
    banks.write("x", "readme.md")
    (bank := banks.file("projects/p/bad.md")).write_bytes(b"\xff")
    for _ in range(12):
        banks.refused("activate", "cache_load_failed", bank_type="project", bank_id="p")
    bank.unlink()
    errors = banks.write("x", "readme.md")["previous_errors"]

    descriptions = [error["description"] for error in errors]
    assert descriptions == (["Failed to load bank into cache: bad.md"] * 10)
    severities = {error["severity"] for error in errors}
    assert severities == {"error"}
    assert [list(error) for error in errors] == [["timestamp", "description", "severity"]] * 10
    previous_errors = banks.write("x", "readme.md", id="other")["previous_errors"]
    assert previous_errors == []


@pytest.mark.parametrize(
    ("code", "more", "rule"),
    [
        ("update_failed", {"target_file": "/x.md"}, "ends in .md"),
        ("update_failed", {"target_file": "../x.md"}, "ends in .md"),
        ("update_failed", {"bank_id": "../p"}, "1 to 100 letters"),
        ("update_failed", {"content": " ", "target_file": "readme.md"}, "must not be blank"),
        (
            "update_failed",
            {"target_file": "readme.md", "operation": "insert"},
            "position is required",
        ),
        (
            "update_failed",
            {"target_file": "readme.md", "operation": "insert", "position": " ## "},
            "position is required",
        ),
        ("invalid_operation", {"operation": "rub"}, "Must be one of"),
    ],
)
def test_a_callers_mistake_is_told_with_its_rule_makes_no_bank_and_is_not_kept(
    banks: Banks, code, more, rule
) -> None:
    refused = banks.refused(
        "update", code, **{"bank_type": "project", "bank_id": "p", "content": "x"} | more
    )
    assert rule in refused["details"]
    assert "Failed to update" in refused["error"]
    projects = banks.ok("list")["projects"]
    assert projects == []
    previous_errors = banks.write("x", "readme.md")["previous_errors"]
    assert previous_errors == []


def test_a_bank_large_by_one_update_asks_to_be_optimised_once(banks: Banks) -> None:
    next_actions = banks.write("字" * 5000, "notes/a.md")["next_actions"]
    assert next_actions == []
    next_actions = banks.write("x" * 4000, "notes/b.md")["next_actions"]
    assert next_actions == ["optimize"]
    next_actions = banks.write("x", "notes/b.md")["next_actions"]
    assert next_actions == []
    info = banks.ok("activate", bank_type="project", bank_id="p")["bank_info"]["cache_info"]
    assert info["optimization_recommended"] is True
    assert 6000 < info["approximate_tokens"] < 6400


def test_what_the_caller_says_of_an_update_is_in_the_journal(banks: Banks) -> None:
    banks.write("x", "readme.md", trigger_type="commit", conversation_id="conv-1", update_count=0)
    change = banks.memory.log(limit=1)[0]
    assert change.verb == "append"
    assert change.project == "banks"
    assert change.path == "projects/p/readme.md"
    assert change.details == {"trigger": "commit", "conversation": "conv-1", "update": "0"}
    text = banks.file("projects/p/readme.md").read_text()
    assert "commit" not in text
    banks.write("y", "readme.md")
    details = banks.memory.log(limit=1)[0].details
    assert details is None


def test_an_update_can_be_taken_back_and_with_it_the_bank_it_made(banks: Banks) -> None:
    banks.write("first", "readme.md")
    before = banks.state()
    banks.write("second", "readme.md", operation="replace")
    banks.memory.undo()
    assert {path: data for path, (data, _) in banks.state().items()} == {
        path: data for path, (data, _) in before.items()
    }
    banks.memory.undo()
    assert banks.state() == {}
    projects = banks.ok("list")["projects"]
    assert projects == []


def test_what_a_bank_holds_is_found_by_every_face(banks: Banks) -> None:
    banks.write("The heron nests in March. #birds", "notes/research.md")
    (hit,) = banks.memory.search("heron").hits
    assert (hit.note.project, hit.note.path) == ("banks", "projects/p/notes/research.md")
    assert ".bank.json" not in {info.path for info in banks.memory.list(limit=0)[0]}


def test_notes_of_another_agent_are_not_shown_and_not_overwritten(
    banks: Banks, tmp_path: Path
) -> None:
    banks.ok("activate", bank_type="project", bank_id="p")
    secret = banks.file("projects/p/doc/secret.md")
    secret.write_text("---\nscope: agent:a\n---\nfor a alone\n")
    for agent, sees in (("a", True), ("b", False)):
        other_banks = Banks(banks.memory.as_caller(agent, "mcp"))
        other_banks.registry = banks.registry
        data = other_banks.ok("activate", bank_type="project", bank_id="p")
        assert ("for a alone" in json.dumps(data)) is sees
    arguments = {
        "bank_type": "project",
        "bank_id": "p",
        "target_file": "doc/secret.md",
        "content": "x",
    }
    other_banks.refused("update", "update_failed", **arguments)
    assert secret.read_text().endswith("for a alone\n")


def test_a_disk_that_refuses_is_told_and_changes_nothing(
    banks: Banks, monkeypatch: pytest.MonkeyPatch
) -> None:
    banks.ok("activate", bank_type="project", bank_id="p")
    before = banks.state()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    arguments = {"bank_type": "project", "bank_id": "p", "target_file": "readme.md", "content": "x"}
    data = banks.refused("update", "disk_sync_failed", **arguments)
    assert data["error"] == "Failed to synchronize with disk: the disk is full"
    data = banks.refused("activate", "activation_failed", bank_type="project", bank_id="new")
    assert data["error"] == "Failed to activate memory bank: the disk is full"
    monkeypatch.undo()
    assert banks.state() == before
    assert (
        banks.write("x", "readme.md")["previous_errors"][0]["description"]
        == "Failed to synchronize with disk: the disk is full"
    )


def test_a_refused_scope_comes_with_the_scopes_that_may_be_used(banks: Banks) -> None:
    caller = banks.memory.as_caller("me", "mcp")
    data = Banks(caller).refused(
        "update",
        "update_failed",
        bank_type="project",
        bank_id="p",
        operation="replace",
        target_file="a.md",
        content="---\nscope: agent:other\n---\nx",
    )
    message = 'Failed to update memory bank: invalid scope "agent:other"'
    assert data["error"] == message
    remedy = "You could not see the note. Use global or agent:me."
    assert data["details"] == remedy


def test_a_link_out_of_the_bank_is_refused_with_the_rule_about_links(banks: Banks) -> None:
    banks.ok("activate", bank_type="project", bank_id="p")
    link = banks.file("projects/p/out.md")
    link.symlink_to("/etc/passwd")
    data = banks.refused(
        "update",
        "update_failed",
        bank_type="project",
        bank_id="p",
        target_file="out.md",
        content="x",
    )
    details = data["details"]
    assert "No link leads out of the bank." in details


def test_a_file_that_is_no_text_is_named(banks: Banks) -> None:
    banks.ok("activate", bank_type="project", bank_id="p")
    bad = banks.file("projects/p/doc/latin.md")
    bad.write_bytes(b"caf\xe9\n")
    data = banks.refused("activate", "cache_load_failed", bank_type="project", bank_id="p")
    assert data["error"] == "Failed to load bank into cache: doc/latin.md"
    arguments = {
        "bank_type": "project",
        "bank_id": "p",
        "target_file": "doc/latin.md",
        "content": "x",
    }
    data = banks.refused("update", "cache_load_failed", **arguments)
    assert data["error"] == "Failed to load bank into cache: doc/latin.md"
    assert bad.read_bytes() == b"caf\xe9\n"
    banks.write("other files are not held up", "readme.md")
    bad.unlink()
    banks.ok("activate", bank_type="project", bank_id="p")


def test_a_file_chosen_but_not_to_be_had_fails_the_processing(banks: Banks) -> None:
    banks.ok("activate", bank_type="project", bank_id="p")
    place = banks.file("projects/p/doc/decisions.md")
    place.unlink()
    place.mkdir()
    arguments = {"bank_type": "project", "bank_id": "p", "content": "We decided to use it"}
    data = banks.refused("update", "content_processing_failed", **arguments)
    assert data["error"] == "Failed to process content for doc/decisions.md"
    (error,) = banks.write("x", "readme.md")["previous_errors"]
    assert (error["description"], error["severity"]) == (
        "Failed to process content for doc/decisions.md",
        "warning",
    )


def test_a_file_where_a_folder_should_be_is_no_way_to_a_target(banks: Banks) -> None:
    banks.write("x", "notes/a.md")
    arguments = {
        "bank_type": "project",
        "bank_id": "p",
        "target_file": "notes/a.md/b.md",
        "content": "x",
    }
    data = banks.refused("update", "update_failed", **arguments)
    assert data["error"] == "Failed to update memory bank: Invalid target file: notes/a.md/b.md"


def test_a_list_that_cannot_be_read_says_so(banks: Banks, tmp_path: Path) -> None:
    banks.file("").mkdir(parents=True)
    os.symlink(tmp_path, banks.file("global"))
    data = banks.refused("list", "list_failed")

    assert data["error"].startswith("Failed to list memory banks: ")
    assert str(tmp_path) not in data["error"]
    assert banks.ok("list", bank_type="code") == {"code": []}


def test_banks_are_listed_latest_first_with_their_descriptions(banks: Banks) -> None:
    for id in ("b-one", "a", "c"):
        banks.ok("activate", bank_type="project", bank_id=id)
    banks.ok("activate", bank_type="global", bank_id="auto", project_description="Ours.")
    for path in banks.file("projects").rglob("*.md"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    os.utime(banks.file("projects/c/readme.md"), (1_800_000_000, 1_800_000_000))
    for path in banks.file("projects/a").rglob("*.md"):
        path.unlink()
    (banks.file("projects") / ".hidden").mkdir()
    (banks.file("projects") / "empty").mkdir()
    rows = banks.ok("list")
    ids = [project["id"] for project in rows["projects"]]
    assert ids in (["c", "a", "b-one"], ["a", "c", "b-one"])
    by_id = {project["id"]: project for project in rows["projects"]}
    assert by_id["b-one"] == {
        "id": "b-one",
        "last_used": "2023-11-14T22:13:20Z",
        "description": "Project B One",
    }
    assert by_id["c"]["last_used"] == "2027-01-15T08:00:00Z"
    bank = json.loads(banks.file("projects/a/.bank.json").read_text())
    assert by_id["a"]["last_used"] == bank["created_at"]
    assert rows["global"][0]["description"] == "Ours."


def test_a_bank_of_another_program_is_used_in_place(banks: Banks, tmp_path: Path) -> None:
    place = banks.file("code/app")
    place.mkdir(parents=True)
    (place / "readme.md").write_text("# Theirs\n")
    (place / "cache.json").write_text("{}")
    repositories = [tmp_path / name / "app" for name in ("a", "b")]
    for root in repositories:
        (root / ".git").mkdir(parents=True)
        (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    data = banks.ok("activate", bank_type="code", bank_id="app")
    assert (data["bank_info"]["files"], data["content"]) == (
        ["readme.md"],
        {"readme.md": "# Theirs\n"},
    )
    assert sorted(path.name for path in place.iterdir()) == ["cache.json", "readme.md"]
    ids = [
        banks.ok("activate", bank_type="code", bank_id="auto", current_path=str(root))["bank_info"][
            "id"
        ]
        for root in (*repositories, repositories[0])
    ]
    # The first to come has it from then on
    assert ids[0] == ids[2] == "app"
    assert ids[1].startswith("app-")
    assert (place / "readme.md").read_text() == "# Theirs\n"


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"name": 5, "description": [], "repo": "x"}', "\udcff"]
)
def test_a_record_nobody_can_read_stays_as_it_is(banks: Banks, tmp_path: Path, text: str) -> None:
    (tmp_path / "app" / ".git").mkdir(parents=True)
    banks.ok("activate", bank_type="code", bank_id="app")
    record = banks.file("code/app/.bank.json")
    data = text.encode("utf-8", "surrogateescape")
    record.write_bytes(data)
    banks.ok("activate", bank_type="code", bank_id="auto", current_path=str(tmp_path / "app"))

    description = banks.ok("list")["code"][0]["description"]
    assert description == "Code for App"
    assert record.read_bytes() == data


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.sampled_from(
        [
            "global",
            "project",
            "code",
            "auto",
            "p",
            "readme.md",
            "append",
            "insert",
            "replace",
            "../x.md",
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=3,
)
KEYS = [
    "bank_type",
    "bank_id",
    "target_file",
    "operation",
    "content",
    "position",
    "trigger_type",
    "conversation_id",
    "update_count",
    "current_path",
    "project_name",
    "project_description",
    "conversation_type",
]
CODES = {
    "invalid",
    "invalid_bank_type",
    "bank_not_found",
    "activation_failed",
    "list_failed",
    "update_failed",
    "invalid_operation",
}


def test_any_arguments_get_an_answer_in_the_words_of_the_contract(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        banks = Banks(memory)

        @given(
            st.sampled_from(["activate", "list", "update"]),
            st.dictionaries(st.sampled_from(KEYS), VALUES),
        )
        def ask(tool: str, arguments: dict[str, Any]) -> None:
            data, is_error = banks.call(tool, **arguments)
            assert str(tmp_path) not in json.dumps(data)
            if is_error:
                assert data["code"] in CODES

        ask()
        (home,) = tmp_path.iterdir()
        assert home.name == "home"
        names_in_home = {path.name for path in home.iterdir()}
        assert names_in_home <= {".memoranda", "banks"}


def test_what_update_requires_is_the_same_in_schema_behaviour_and_docs(banks: Banks) -> None:
    tool = faces.registry(["bank"], banks.memory.settings).tools["update"]
    whole = {
        "bank_type": "global",
        "bank_id": "default",
        "content": "x",
        "target_file": "context.md",
    }
    required = []
    for name in whole:
        if banks.call("update", **{k: v for k, v in whole.items() if k != name})[1]:
            required.append(name)
    assert required == tool.schema["required"]
    page = (Path(__file__).parents[3] / "docs/faces/memory-bank.md").read_text("utf-8")
    (sentence,) = (line for line in page.split("\n") if line.startswith("`update` needs "))
    assert re.findall(r"`(\w+)`", sentence.partition(";")[0])[1:] == required
