"""Contract 000b, 12.1, 12.17 and 12.18: what `memory mcp` serves, also in place of Basic Memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from contract.home_kinds import VAULT
from contract.mcp_server import Server
from contract.note_tools import put, seen
from contract.tables import tables
from memoranda.engine import open_session

TABLES = tables("note_resources")

LISTED = json.loads(
    (Path(__file__).parent / "data" / "tools_memory_notes.json").read_text(encoding="utf-8")
)
SAMPLES = Path(__file__).parents[2] / "samples" / "vault"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("mcp") / "home"
    put(
        home / "notes/work/Heron plan.md",
        "---\ndate: 2026-02-03\n---\n# Heron\n\n- [decision] ship in May\n- [risk] the reed belt\n",
    )
    put(home / "notes/中文/二十 四节气 100%.md", "立春 [[Heron plan]]\n")
    put(home / "notes/own.md", "---\npermalink: Own/Mixed Case\n---\nmine\n")
    put(home / "notes/secret.md", "---\nscope: agent:other\n---\nheron secret\n")
    put(home / "notes/long.md", "long heronlong line\n" * 50_000)
    for number in range(150):
        put(
            home / f"memories/many/n{number:03}.md", f"- [fact] heron number {number} {'x' * 300}\n"
        )
    # The first call of a server with this much to read may find the memory in use
    with open_session(home, watch=False) as memory:
        memory.sync()
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    with Server("--home", str(home), "--agent", "me", "--tools", "memory,notes") as server:
        yield server


def described(value: Any) -> Any:
    """A listing without the wording of its descriptions."""
    if isinstance(value, dict):
        return {
            key: described(inner_value)
            for key, inner_value in value.items()
            if key != "description" or isinstance(inner_value, dict)
        }
    if isinstance(value, list):
        return [described(inner_value) for inner_value in value]
    return value


@pytest.mark.promise("000b-12.1")
def test_the_list_is_that_of_the_contract_and_short(server: Server) -> None:
    tools = server.ask("tools/list")["result"]["tools"]
    names = [listed_tool["name"] for listed_tool in LISTED["tools"]]
    listed_tool_names = [listed_tool["name"] for listed_tool in tools]
    assert listed_tool_names == names
    for tool, expected in zip(tools, LISTED["tools"], strict=True):
        assert described(tool) == described(expected)
        assert tool["description"]
    assert len(json.dumps(tools, ensure_ascii=False, separators=(",", ":"))) <= 12_000


def prompt(server: Server, name: str, **arguments: str) -> str:
    result = server.ask("prompts/get", {"name": name, "arguments": arguments})["result"]
    (message,) = result["messages"]
    assert message["role"] == "user"
    assert len(message["content"]["text"]) <= 8_000
    return message["content"]["text"]


@pytest.mark.promise("000b-12.17")
def test_the_prompts_are_listed_with_their_arguments(server: Server) -> None:
    listed = {prompt["name"]: prompt for prompt in server.ask("prompts/list")["result"]["prompts"]}
    assert set(listed) == {"memory_guide", "continue_conversation", "search_knowledge_base"}
    arguments = {}
    for name, listed_prompt in listed.items():
        arguments[name] = []
        for argument in listed_prompt.get("arguments", []):
            arguments[name].append((argument["name"], argument.get("required", False)))
    assert arguments["continue_conversation"] == [("topic", False), ("timeframe", False)]
    assert arguments["search_knowledge_base"] == [("query", True), ("timeframe", False)]


@pytest.mark.promise("000b-12.17")
def test_prompts_stay_short_and_hide_what_the_caller_may_not_see(server: Server) -> None:
    for name, arguments in (
        ("continue_conversation", {}),
        ("continue_conversation", {"topic": "heron", "timeframe": "1y"}),
        ("search_knowledge_base", {"query": "heron"}),
    ):
        text = prompt(server, name, **arguments)
        assert "notes/secret" not in text
        assert len(text) > 500


@pytest.mark.promise("000b-12.17")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("continue_conversation", {"topic": "zebras"}),
        ("continue_conversation", {"topic": "heron", "timeframe": "2999-01-01"}),
        ("search_knowledge_base", {"query": "zebras"}),
    ],
)
def test_nothing_found_is_said_with_what_to_try(server: Server, name: str, arguments: dict) -> None:
    text = prompt(server, name, **arguments)
    assert "found nothing" in text
    assert "search_notes" in text or "recent_activity" in text


@pytest.mark.promise("000b-12.17")
def test_a_prompt_with_a_bad_argument_is_refused_in_words(server: Server) -> None:
    for arguments in ({"query": "x", "timeframe": "soonish"}, {"query": " "}, {}):
        prompt = {"name": "search_knowledge_base", "arguments": arguments}
        message = server.ask("prompts/get", prompt)["error"]["message"]
        assert "soonish" in message or "query" in message


RESOURCES = {
    "memory://notes/work/Heron%20plan.md": "work/Heron plan.md",
    "memory://notes/work/heron-plan": "work/Heron plan.md",
    "memory://notes/work/Heron plan.md": "work/Heron plan.md",
    "memory://notes/" + quote("中文/二十 四节气 100%.md"): "中文/二十 四节气 100%.md",
    "memory://notes/" + quote("中文/二十 四节气 100%.md", safe=""): "中文/二十 四节气 100%.md",
    "memory://notes/Own/Mixed%20Case": "own.md",
    "memory://notes/long.md": "long.md",
    "memory://NOTES/own.md": "own.md",
}


@pytest.mark.promise("000b-12.17")
@pytest.mark.parametrize(("uri", "path"), RESOURCES.items())
def test_a_resource_is_the_whole_note(server: Server, home: Path, uri: str, path: str) -> None:
    (content,) = server.ask("resources/read", {"uri": uri})["result"]["contents"]
    assert content["mimeType"] == "text/markdown"
    assert content["text"] == (home / "notes" / path).read_text()


@pytest.mark.promise("000b-12.17")
@pytest.mark.parametrize(
    "uri",
    TABLES["refused"],
)
def test_what_is_missing_hidden_or_outside_is_refused(server: Server, home: Path, uri: str) -> None:
    error = server.ask("resources/read", {"uri": uri})["error"]
    assert error["message"]
    assert str(home) not in error["message"]


@pytest.mark.promise("000b-12.17")
def test_the_template_is_listed_and_adds_no_resources(server: Server) -> None:
    (template,) = server.ask("resources/templates/list")["result"]["resourceTemplates"]
    assert (template["uriTemplate"], template["mimeType"]) == (
        "memory://{project}/{+path}",
        "text/markdown",
    )
    assert server.ask("resources/list")["result"]["resources"] == []


@pytest.mark.promise("000b-12.17")
def test_projects_and_paths_are_completed_by_their_beginnings(server: Server) -> None:
    def complete(name: str, value: str, **other_arguments: str) -> dict[str, Any]:
        reference = {"type": "ref/resource", "uri": "memory://{project}/{+path}"}
        params = {
            "ref": reference,
            "argument": {"name": name, "value": value},
            "context": {"arguments": other_arguments},
        }
        return server.ask("completion/complete", params)["result"]["completion"]

    values = complete("project", "no")["values"]
    assert values == ["notes"]
    values = complete("path", "work/", project="notes")["values"]
    assert values == ["work/heron-plan"]
    values = complete("path", "sec", project="notes")["values"]
    assert values == []
    many = complete("path", "many/n", project="memories")
    assert len(many["values"]) == 100


@pytest.mark.promise("000b-12.17")
def test_the_instructions_are_short(server: Server) -> None:
    instructions = server.hello["instructions"]
    assert "[category]" in instructions
    assert "[[" in instructions
    assert len(instructions) <= 4_000


@pytest.mark.promise("000b-12.17")
def test_the_instructions_of_the_note_tools_alone_keep_to_their_limit(home: Path) -> None:
    # A client without hooks is told about the person behind them.
    with Server("--home", str(home), "--tools", "notes", client="claude-code") as server:
        assert len(server.hello["instructions"]) <= 1_000


@pytest.mark.folder_home(VAULT)
@pytest.mark.promise("000b-12.18")
def test_basic_memorys_vaults_are_served_in_place_and_stay_as_they_are(tmp_path: Path) -> None:
    main = tmp_path / "main vault"
    work = tmp_path / "work"
    shutil.copytree(SAMPLES, main)
    put(work / "plan.md", "---\npermalink: plan\ntitle: Plan\n---\n- [fact] zebrawood\n")
    put(
        work / "prefixed.md",
        "---\npermalink: work/kana/no-to\ntitle: ノート\n---\n- [fact] ebony\n",
    )
    folder = tmp_path / "config"
    config = {
        "env": "user",
        "projects": {"main": str(main), "work": {"path": str(work), "mode": "local"}},
        "default_project": "work",
        "update_permalinks_on_move": True,
        "sync_changes": True,
    }
    put(folder / "config.json", json.dumps(config))
    put(folder / "memory.db", b"SQLite format 3\0")
    before = [seen(vault_folder) for vault_folder in (main, work, folder)]
    with Server(
        "--home",
        str(tmp_path / "home"),
        "--as",
        "basic-memory",
        BASIC_MEMORY_CONFIG_DIR=str(folder),
    ) as server:
        names = [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]]
        ours = [tool["name"] for tool in LISTED["tools"] if tool["name"] != "memory"]
        assert names[: len(ours)] == ours
        as_json = {"output_format": "json"}
        rows = {
            project["name"]: project
            for project in server.data("list_memory_projects", **as_json)["projects"]
        }
        assert {name: row["path"] for name, row in rows.items()} == {
            "main": str(main),
            "work": str(work),
        }
        assert [name for name, row in rows.items() if row["is_default"]] == ["work"]
        for name in ("plan", "work/plan", "memory://work/plan", "memory://plan", "Plan", "plan.md"):
            assert server.data("read_note", identifier=name, **as_json)["file_path"] == "plan.md"
        for name in ("work/kana/no-to", "kana/no-to", "memory://work/kana/no-to", "ノート"):
            assert (
                server.data("read_note", identifier=name, **as_json)["file_path"] == "prefixed.md"
            )
        assert (
            server.data("search_notes", query="zebrawood", **as_json)["results"][0]["file_path"]
            == "plan.md"
        )
        assert (
            server.data("search_notes", query="crash safety", project="main", **as_json)["total"]
            > 0
        )
        server.data("build_context", url="memory://main/*", depth=3)
        server.data("recent_activity", timeframe="30 days")
        assert [seen(vault_folder) for vault_folder in (main, work, folder)] == before
        written = server.data(
            "write_note", title="New", content="by us\n", folder="ideas", **as_json
        )
        assert (work / written["file_path"]).read_text().endswith("by us\n")
        server.data("delete_note", identifier="work/ideas/new")
        refused = server.call("delete_project", project_name="main")
        assert refused["isError"]
        assert server.close() == 0
    assert seen(main) == before[0]
    assert seen(folder) == before[2]
    assert not (tmp_path / "home/config.yaml").exists()
    with Server("--home", str(tmp_path / "home")) as server:
        assert not {"main", "work"} & {
            project["name"] for project in server.data("list_memory_projects")["projects"]
        }
