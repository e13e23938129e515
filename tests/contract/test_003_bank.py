"""Contract 003, 11: the listed cases, what the bank tools promise beside them, and several servers
on one bank.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.home_kinds import BANK
from contract.mcp_server import Server
from contract.memory_bank import CASES, NAMES, TIME, Banks, Ground
from memoranda import faces
from memoranda.engine import open_session
from memoranda.faces.bank import parse_response

TRAVERSAL = [
    "../../x",
    "/abs",
    "..",
    "a/../../b",
    "x\0y",
    "~",
    "n" * 300,
    ".hidden",
    " x",
    "a\\b",
    "a\nb",
    "%2e%2e/x",
    "a..b",
]


@pytest.fixture
def banks(ground: Ground) -> Iterator[Banks]:
    with open_session(ground.home, watch=False) as memory:
        yield Banks(memory)


@pytest.mark.promise("003-11.2")
def test_the_replies_have_the_keys_of_the_document_in_its_order(
    banks: Banks, ground: Ground
) -> None:
    root = ground.repository("my-repo")
    data = banks.ok("activate", bank_type="code", bank_id="auto", current_path=str(root))
    assert list(data) == [
        "status",
        "bank_info",
        "content",
        "custom_instructions",
        "previous_errors",
    ]
    assert list(data["bank_info"]) == ["type", "id", "files", "last_updated", "cache_info"]
    assert list(data["bank_info"]["cache_info"]) == [
        "cache_hit",
        "approximate_tokens",
        "optimization_recommended",
    ]
    assert list(data["content"]) == data["bank_info"]["files"]
    assert list(data["custom_instructions"]) == ["directives", "prompts", "examples"]
    assert [list(directive) for directive in data["custom_instructions"]["directives"]] == [
        ["name", "priority", "when", "action"]
    ] * 4
    assert [list(prompt) for prompt in data["custom_instructions"]["prompts"]] == [
        ["id", "text"]
    ] * 2
    assert list(data["custom_instructions"]["examples"]) == ["trigger_patterns", "verification"]
    listed = banks.ok("list")
    assert list(listed) == ["global", "projects", "code"]
    assert [list(code_bank) for code_bank in listed["code"]] == [["id", "last_used", "description"]]
    assert TIME.fullmatch(listed["code"][0]["last_used"])
    keys = [
        "status",
        "updated_file",
        "operation",
        "cache_updated",
        "cache_optimized",
        "verification",
        "next_actions",
        "previous_errors",
    ]
    assert list(banks.write("x", "readme.md", "code", "my-repo")) == keys
    routed = banks.write("x", kind="code", id="my-repo")
    assert list(routed) == [
        *keys[:3],
        "bank_info",
        "category",
        "confidence",
        "processing_method",
        *keys[3:],
    ]


@pytest.mark.promise("003-11.3")
@pytest.mark.parametrize("evil", TRAVERSAL)
def test_a_name_that_leads_elsewhere_is_refused_everywhere(
    banks: Banks, ground: Ground, evil: str
) -> None:
    banks.ok("activate", bank_type="project", bank_id="p")
    before = banks.state()
    outside = ground.outside()
    data = banks.refused("activate", "activation_failed", bank_type="project", bank_id=evil)
    assert data["error"] == f"Failed to activate memory bank: Invalid bank id: {evil}"
    # Blanks of a project's name become _
    if evil not in ("a\nb", " x"):
        banks.refused(
            "activate", "activation_failed", bank_type="project", bank_id="auto", project_name=evil
        )
    data = banks.refused(
        "update",
        "update_failed",
        bank_type="project",
        bank_id=evil,
        target_file="a.md",
        content="x",
    )
    assert data["error"] == f"Failed to update memory bank: Invalid bank id: {evil}"
    for target in (evil, f"{evil}.md", f"{evil}/a.md", f"doc/{evil}/a.md"):
        data = banks.refused(
            "update",
            "update_failed",
            bank_type="project",
            bank_id="p",
            target_file=target,
            content="x",
        )
        assert data["error"] == f"Failed to update memory bank: Invalid target file: {target}"
    assert banks.state() == before
    assert ground.outside() == outside


@pytest.mark.promise("003-11.3")
def test_a_symlink_in_a_bank_is_no_target_and_no_bank(banks: Banks, ground: Ground) -> None:
    banks.ok("activate", bank_type="project", bank_id="p")
    elsewhere = ground.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret.md").write_text("the secret")
    os.symlink(elsewhere, banks.file("projects/p/link"))
    os.symlink(elsewhere / "secret.md", banks.file("projects/p/linked.md"))
    os.symlink("readme.md", banks.file("projects/p/inside.md"))
    os.symlink(elsewhere, banks.file("projects/away"))
    before = banks.state()
    outside = ground.outside()
    for target in ("link/new.md", "link/secret.md", "linked.md", "inside.md"):
        for operation in ("append", "replace", "insert"):
            data = banks.refused(
                "update",
                "update_failed",
                bank_type="project",
                bank_id="p",
                target_file=target,
                operation=operation,
                content="x",
                position="A",
            )
            assert data["error"] == f"Failed to update memory bank: Invalid target file: {target}"
    banks.refused("activate", "activation_failed", bank_type="project", bank_id="away")
    banks.refused(
        "update",
        "update_failed",
        bank_type="project",
        bank_id="away",
        target_file="new.md",
        content="x",
    )
    activated = banks.ok("activate", bank_type="project", bank_id="p")
    assert "the secret" not in json.dumps(activated)
    assert [project["id"] for project in banks.ok("list")["projects"]] == ["p"]
    assert banks.state() == before
    assert ground.outside() == outside


@pytest.mark.promise("003-11.5")
def test_inserts_pass_over_decoys_and_keep_crlf(banks: Banks) -> None:
    decoys = (
        "# T\r\n\r\n~~~~\r\n## Target\r\n~~~\r\n## Target\r\n~~~~\r\n\r\n<!--\r\n## Target\r\n-->\r\n\r\n"
        "## Target two\r\n\r\n#### Target ####\r\nbody\r\n"
    )
    banks.write(decoys, "doc/decisions.md", operation="replace")
    for text in ("one\n\nmore", "two\r\n"):
        banks.write(text, "doc/decisions.md", operation="insert", position="TARGET")
    expected = decoys + "\r\none\r\n\r\nmore\r\n\r\ntwo\r\n"
    assert banks.file("projects/p/doc/decisions.md").read_bytes() == expected.encode()


@pytest.mark.promise("003-11.5")
def test_the_level_of_a_position_chooses_among_headings(banks: Banks) -> None:
    banks.write("# A\nh1\n\n### A\nh3\n\n## a\nh2", "doc/x.md", operation="replace")
    banks.write("three", "doc/x.md", operation="insert", position="### A ###")
    banks.write("two", "doc/x.md", operation="insert", position="## A")
    banks.write("one", "doc/x.md", operation="insert", position="A")
    banks.write("new", "doc/x.md", operation="insert", position="#### A")
    text = "# A\nh1\n\none\n\n### A\nh3\n\nthree\n\n## a\nh2\n\ntwo\n\n#### A\n\nnew\n"

    assert banks.file("projects/p/doc/x.md").read_text() == text


@pytest.mark.promise("003-11.5")
def test_an_insert_makes_a_missing_file_from_its_template_or_a_title(banks: Banks) -> None:
    banks.ok(
        "activate", bank_type="project", bank_id="p", project_name="P", project_description="Mine."
    )
    readme = banks.file("projects/p/readme.md")
    template = readme.read_text()
    readme.unlink()
    banks.write("x", "readme.md", operation="insert", position="Project Overview")
    assert readme.read_text() == template.replace("Mine.\n", "Mine.\n\nx\n", 1)
    banks.write("x", "doc/release_plan-2.md", operation="insert", position="Dates")
    assert (
        banks.file("projects/p/doc/release_plan-2.md").read_text()
        == "# Release Plan 2\n\n## Dates\n\nx\n"
    )


def git(root: Path, **files: str) -> None:
    """Lay out files below a folder; `__` in a name means a slash."""
    for name, text in files.items():
        place = root / name.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


@pytest.mark.promise("003-11.6")
def test_the_branch_is_read_anew_at_each_activation(banks: Banks, ground: Ground) -> None:
    root = ground.repository("app", "ref: refs/heads/main")

    def told(**more: str) -> str:
        arguments = {"bank_type": "code", "bank_id": "auto", "current_path": str(root), **more}
        return banks.ok("activate", **arguments)["custom_instructions"]["prompts"][1]["text"]

    assert "\nThis repository is currently on branch: main\n" in told()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/no/commit-yet\n")
    assert "\nThis repository is currently on branch: no/commit-yet\n" in told()
    (root / ".git" / "HEAD").write_text("0123456789abcdef0123456789abcdef01234567\n")
    assert "\nThis repository is currently at commit 0123456 (detached HEAD)\n" in told()
    assert "This repository is currently" not in told(
        bank_id="lib", current_path=str(ground.scratch)
    )
    assert '"app"' in told()


@pytest.mark.promise("003-11.6")
def test_a_worktree_shares_the_bank_of_its_repository_but_has_its_own_branch(
    banks: Banks, ground: Ground
) -> None:
    main = ground.repository("Main Repo", "ref: refs/heads/main")
    first = banks.ok("activate", bank_type="code", bank_id="auto", current_path=str(main))
    tree = ground.scratch / "trees" / "topic"
    private = main / ".git" / "worktrees" / "topic"
    git(private, HEAD="ref: refs/heads/topic\n", commondir="../..\n", gitdir=f"{tree}/.git\n")
    git(tree, **{".git": f"gitdir: {private}\n", "src__a.py": ""})
    second = banks.ok("activate", bank_type="code", bank_id="auto", current_path=str(tree / "src"))
    ids = [activated["bank_info"]["id"] for activated in (first, second)]
    assert ids == [
        "main_repo",
        "main_repo",
    ]
    text = second["custom_instructions"]["prompts"][1]["text"]
    assert 'the repository "Main Repo"' in text
    assert "on branch: topic" in text


@pytest.mark.promise("003-11.6")
def test_two_repositories_of_one_name_get_two_banks_and_keep_them(
    banks: Banks, ground: Ground
) -> None:
    def id_at(path: Path) -> str:
        return banks.ok("activate", bank_type="code", bank_id="auto", current_path=str(path))[
            "bank_info"
        ]["id"]

    first = ground.repository("a/app")
    second = ground.repository("b/app")
    assert id_at(first) == "app"
    second_id = id_at(second)
    assert second_id.startswith("app-")
    assert len(second_id) == len("app-") + 6
    assert [id_at(first), id_at(second), id_at(first)] == ["app", second_id, "app"]
    cloned = "https://user:secret@example.org/lib.git"
    assert id_at(ground.repository("c/lib", origin=cloned)) == "lib"
    assert id_at(ground.repository("d/lib", origin=cloned)) == "lib"
    text = banks.file("code/lib/.bank.json").read_text()
    assert "secret" not in text
    record = json.loads(banks.file("code/app/.bank.json").read_text())
    assert list(record) == ["name", "description", "created_at", "repo"]
    assert record["repo"] == {"path": str(first), "origin": None}


@pytest.mark.promise("003-11.7")
def test_listing_and_a_second_activation_change_no_file(banks: Banks, ground: Ground) -> None:
    root = ground.repository("app")
    activations = [
        {"bank_type": "global", "bank_id": "auto"},
        {"bank_type": "project", "bank_id": "auto", "project_name": "P"},
        {"bank_type": "code", "bank_id": "auto", "current_path": str(root)},
    ]
    for arguments in activations:
        banks.ok("activate", **arguments)
    banks.file("code/app/doc/design.md").unlink()
    before = banks.state()
    changes = len(banks.memory.log(limit=0))
    for arguments in activations:
        banks.ok("activate", **arguments)
        banks.ok("list")
    assert banks.state() == before
    assert len(banks.memory.log(limit=0)) == changes
    files = banks.ok("activate", **activations[2])["bank_info"]["files"]
    assert files == [
        "readme.md",
        "doc/architecture.md",
        "doc/api.md",
        "structure.md",
        "snippets.md",
    ]


@pytest.mark.promise("003-11.8")
def test_what_was_edited_by_hand_is_shown_and_kept(banks: Banks) -> None:
    hit = banks.ok("activate", bank_type="global", bank_id="auto")["bank_info"]["cache_info"][
        "cache_hit"
    ]
    assert hit is False
    assert (
        banks.ok("activate", bank_type="global", bank_id="auto")["bank_info"]["cache_info"][
            "cache_hit"
        ]
        is True
    )
    place = banks.file("global/default/preferences.md")
    place.write_text("# Mine\n\nby hand")
    banks.file("global/default/extra").mkdir()
    banks.file("global/default/extra/note.md").write_text("another")
    data = banks.ok("activate", bank_type="global", bank_id="auto")
    assert data["bank_info"]["cache_info"]["cache_hit"] is False
    assert data["content"]["preferences.md"] == "# Mine\n\nby hand"
    assert data["content"]["extra/note.md"] == "another"
    place.write_text("# Mine\n\nby hand again")
    banks.write("kept", "preferences.md", "global", "default")
    assert place.read_text() == "# Mine\n\nby hand again\n\nkept\n"
    assert (
        banks.ok("activate", bank_type="global", bank_id="auto")["bank_info"]["cache_info"][
            "cache_hit"
        ]
        is True
    )


@pytest.mark.promise("003-11.11")
def test_the_dump_is_there_in_debug_mode_only(ground: Ground) -> None:
    with open_session(ground.home, watch=False) as memory:
        quiet = Banks(memory)
        loud = Banks(memory, bank_debug=True)
        dump = quiet.file("projects/p/cache_memory_dump.json")
        quiet.ok("activate", bank_type="project", bank_id="p")
        quiet.file("projects/p/cache.json").write_text("{}")
        quiet.write("x", "readme.md")
        assert not dump.exists()
        loud.refused(
            "update",
            "update_failed",
            bank_type="project",
            bank_id="p",
            target_file="/x",
            content="y",
        )
        loud.write("We decided to use 数据库")
        data = json.loads(dump.read_text())
        assert list(data) == ["cache", "metrics", "processing_path", "error_history"]
        activated = loud.ok("activate", bank_type="project", bank_id="p")
        assert data["cache"] == activated["content"]
        assert list(data["cache"]) == activated["bank_info"]["files"]
        assert list(data["metrics"]) == ["total_tokens", "bank_tokens", "timestamp"]
        assert (
            data["metrics"]["total_tokens"]
            == activated["bank_info"]["cache_info"]["approximate_tokens"]
        )
        assert list(data["metrics"]["bank_tokens"]) == list(data["cache"])
        assert TIME.fullmatch(data["metrics"]["timestamp"])
        assert data["processing_path"] == {"llm": 0, "rule-based": 1}
        assert [list(error) for error in data["error_history"]] == [
            ["timestamp", "description", "severity"]
        ]
        loud.write("y", "readme.md")
        assert json.loads(dump.read_text())["cache"]["readme.md"].endswith("\n\ny\n")
        assert quiet.file("projects/p/cache.json").read_text() == "{}"
        assert (
            "cache_memory_dump.json"
            not in loud.ok("activate", bank_type="project", bank_id="p")["content"]
        )


@pytest.mark.promise("003-11.12")
def test_parse_response_reads_all_five_forms() -> None:
    reply = {"status": "success", "content": {"readme.md": "# 项目\n"}}
    text = json.dumps(reply)
    items: list[Any] = [SimpleNamespace(type="text", text=text)]
    rows = [{"type": "text", "text": text}]
    for form in (
        items,
        rows,
        SimpleNamespace(content=items),
        (items, reply),
        (items, None),
        text,
        reply,
    ):
        assert parse_response(form) == reply
    assert parse_response({"content": rows, "isError": False}) == reply


@pytest.mark.promise("003-11.1", "003-11.9")
@pytest.mark.parametrize("way", ["registry", pytest.param("mcp", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_case_holds_through_every_transport(case: dict[str, Any], way: str, ground: Ground) -> None:
    if way == "registry":
        with open_session(ground.home) as memory:
            tools = faces.registry(["bank"], memory.settings)

            def reply(tool: str, arguments: dict[str, Any]) -> tuple[str, bool, Any]:
                tool_reply = tools.call(memory, tool, arguments)
                return tool_reply.text, tool_reply.is_error, tool_reply.data

            ground.run(case, reply)
        return
    with Server("--tools", "bank", "--home", str(ground.home), MEMORY_BANK_DEBUG="1") as server:

        def result(tool: str, arguments: dict[str, Any]) -> tuple[str, bool, Any]:
            result_of_call = server.call(tool, arguments)
            (content,) = result_of_call["content"]
            return content["text"], result_of_call["isError"], result_of_call["structuredContent"]

        ground.run(case, result)
        assert server.close() == 0


APPENDS = 40


def append(server: Server, text: str) -> None:
    server.begin(
        "update", bank_type="project", bank_id="p", target_file="notes/ideas.md", content=text
    )


@pytest.mark.folder_home(BANK)
@pytest.mark.promise("003-11.4")
@pytest.mark.parametrize("homes", [("one", "one"), ("one", "two")])
def test_two_servers_with_forty_appends_each_leave_eighty_blocks(
    tmp_path: Path, homes: tuple[str, str]
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    first, second = (
        Server("--as", "memory-bank", "--home", str(tmp_path / home), MEMORY_BANK_ROOT=str(root))
        for home in homes
    )
    with first, second:
        for number in range(APPENDS):
            append(first, f"one {number}")
            append(second, f"two {number}")
        for server in (first, second):
            for _ in range(APPENDS):
                assert not server.receive()["result"]["isError"]
    text = (root / "projects/p/notes/ideas.md").read_text()
    for name in ("one", "two"):
        assert re.findall(rf"(?<=\n\n){name} (\d+)\n", text) == [
            str(number) for number in range(APPENDS)
        ]

    assert text.count("# Project Ideas\n") == 1
    document = json.loads((root / "projects/p/.bank.json").read_text())
    assert len(document) == 4


@pytest.mark.promise("003-11.4")
def test_what_was_answered_is_there_after_kill_9(ground: Ground) -> None:
    with Server("--tools", "bank", "--home", str(ground.home)) as server:
        append(server, "still here")
        assert not server.receive()["result"]["isError"]
        server.process.kill()
        server.process.wait(60)
    text = (ground.banks / "projects/p/notes/ideas.md").read_text()
    assert text.endswith("\n\nstill here\n")
    names = [path.name for path in ground.banks.rglob(".tmp-*")]
    assert names == []


@pytest.mark.promise("003-11.9")
def test_stdout_holds_json_rpc_only_with_debug_logging_on(ground: Ground) -> None:
    (ground.home / "config.yaml").write_text("bank:\n  debug: true\n")
    with Server("--tools", "bank", "--home", str(ground.home)) as server:
        assert "instructions" not in server.hello
        assert list(server.hello["capabilities"]) == ["tools"]
        listed = server.ask("tools/list")["result"]["tools"]
        names = [tool_listed["name"] for tool_listed in listed]
        assert names == ["activate", "list", "update"]
        server.call("activate", bank_type="global", bank_id="auto")
        server.call("update", bank_type="global", bank_id="auto", content="the user likes to test")
        assert server.close() == 0
        lines = server.errors().splitlines()

    assert any("activated global:default, about" in line for line in lines)
    assert any('"processing_method": "rule-based"' in line for line in lines)
    for line in lines:
        assert line.startswith("DEBUG:memoranda.")
