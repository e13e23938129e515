"""The seven agent tools (contract 001, 14)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract.tables import tables
from memoranda.config import Settings
from memoranda.documents import MEMORY_KEYS
from memoranda.errors import InvalidInput
from memoranda.faces import ALL, registry
from memoranda.faces.agent.session import tool_list
from memoranda.note.model import CATEGORIES

TABLES = tables("agent_errors")

NAMES = (
    "memory_write",
    "memory_read",
    "memory_delete",
    "memory_list",
    "memory_search",
    "memory_tag",
    "memory_smart_search",
)
NOBODY = "00000000-1111-4222-8333-444455556666"


def test_the_tools_come_in_their_order_with_a_list_of_what_is_required(desk: Any) -> None:
    tools = tool_list(desk.session.registry)
    assert tuple(tool["name"] for tool in tools) == NAMES
    assert [tool["schema"]["required"] for tool in tools] == [
        ["content"],
        ["id"],
        ["id"],
        [],
        ["query"],
        ["id"],
        ["query"],
    ]
    for tool in tools:
        assert list(tool) == ["name", "description", "schema"]
        assert list(tool["schema"]) == ["type", "properties", "required"]
    properties = {tool["name"]: list(tool["schema"]["properties"]) for tool in tools}
    assert properties["memory_write"] == ["content", "category", "scope", "tags", "source"]
    assert properties["memory_list"] == ["phase", "category", "scope", "source", "limit"]
    assert properties["memory_search"] == [
        "query",
        "tags",
        "scope",
        "phase",
        "category",
        "from",
        "to",
    ]
    assert properties["memory_smart_search"] == [
        "query",
        "top",
        "tags",
        "scope",
        "phase",
        "category",
        "source",
    ]


def test_the_description_of_a_category_names_them_all(desk: Any) -> None:
    description = tool_list(desk.session.registry)[0]["schema"]["properties"]["category"][
        "description"
    ]
    assert f"One of {', '.join(CATEGORIES)}" == description


def test_the_toolset_is_no_part_of_all_and_does_not_go_with_kv(tmp_path: Any) -> None:
    plain = Settings(tmp_path, tmp_path / "config.yaml")
    assert "agent" not in ALL
    tools = registry(["all"], plain).tools
    assert "memory_smart_search" not in tools
    with pytest.raises(InvalidInput, match="memory_search"):
        registry(["kv", "agent"], plain)


def test_a_memory_is_written_to_the_inbox_and_expires(desk: Any) -> None:
    got = desk.result("memory_write", content="a\r\nb", scope="agent:z")
    answer = json.loads(got["content"])

    assert got == {"content": got["content"], "is_error": False, "metadata": {"id": answer["id"]}}
    assert got["content"].startswith('{"expires":"2026-05-14T10:00:0')
    assert answer["phase"] == "inbox"
    assert answer["scope"] == "agent:z"
    content = desk("memory_read", id=answer["id"])["content"]
    assert content == "a\r\nb"


def test_a_memory_with_a_category_is_organized_and_stays(desk: Any) -> None:
    answer = desk(
        "memory_write", content="x", category="preferences", tags=" ui , ,dark", source="me"
    )
    assert answer == {"expires": "", "id": answer["id"], "phase": "organized", "scope": "global"}
    read = desk("memory_read", id=answer["id"])
    assert read["category"] == "preferences"
    assert read["tags"] == ["ui", "dark"]
    assert read["source"] == "me"


def test_tags_may_be_a_list(desk: Any) -> None:
    assert desk("memory_read", id=desk.write("x", tags=[" a b ", "", "c,d"]))["tags"] == [
        "a b",
        "c,d",
    ]


def test_the_source_is_who_calls(desk: Any) -> None:
    assert desk("memory_read", id=desk.write("x"))["source"] == "manual"
    claude = desk.as_agent("claude")
    assert claude("memory_read", id=claude.write("x"))["source"] == "claude"
    assert claude("memory_read", id=claude.write("x", source=""))["source"] == "claude"


def test_reading_gives_the_memory_object_and_counts(desk: Any) -> None:
    ref = desk.write("深色 \U0001f600", category="knowledge")
    text = desk.result("memory_read", id=ref[:8])["content"]
    read = json.loads(text)

    assert list(read) == sorted(MEMORY_KEYS)
    assert text == json.dumps(read, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert read["id"] == ref
    assert read["access_count"] == 1
    assert read["links"] == []
    assert read["expires_at"] is None
    access_count = desk("memory_read", id=ref)["access_count"]
    assert access_count == 2


def test_lists_and_searches_count_no_access(desk: Any) -> None:
    ref = desk.write("dark mode")
    for tool, arguments in (("memory_list", {}), ("memory_search", {"query": "dark"})):
        access_count = desk(tool, **arguments)[0]["access_count"]
        assert access_count == 0
    desk("memory_smart_search", query="dark")

    access_count = desk("memory_read", id=ref)["access_count"]
    assert access_count == 1


def test_a_memory_is_deleted_for_good_as_far_as_the_tools_see(desk: Any) -> None:
    ref = desk.write("x")
    assert desk("memory_delete", id=ref[:6]) == f"memory {ref} deleted"
    assert desk.error("memory_read", {"id": ref}) == f"memory not found: {ref}"
    assert desk("memory_list") == []


def test_a_list_is_newest_first_and_says_how_many(desk: Any) -> None:
    for name in "abc":
        desk.write(name)
    assert desk.found("memory_list") == ["c", "b", "a"]
    assert desk.found("memory_list", limit=2) == ["c", "b"]
    assert desk.found("memory_list", limit=" 1 ") == ["c"]
    assert desk.found("memory_list", limit=2.0) == ["c", "b"]
    assert len(desk.found("memory_list", limit=0)) == 3
    assert len(desk.found("memory_list", limit=10**30)) == 3
    metadata = desk.result("memory_list", limit="2")["metadata"]
    assert metadata == {"count": 2}


def test_a_list_has_50_unless_told_otherwise(desk: Any) -> None:
    desk.session.run(
        [{"name": "memory_write", "params": {"content": f"m{number}"}} for number in range(51)]
    )
    assert desk.result("memory_list")["metadata"] == {"count": 50}


def test_every_filter_of_a_list_works(desk: Any) -> None:
    desk.write("a", category="lessons", source="one")
    desk.write("b", scope="agent:z")

    assert desk.found("memory_list", phase="organized") == ["a"]
    assert desk.found("memory_list", phase="inbox") == ["b"]
    assert desk.found("memory_list", category="lessons") == ["a"]
    assert desk.found("memory_list", scope="agent:z") == ["b"]
    assert desk.found("memory_list", source="one") == ["a"]
    assert desk.found("memory_list", source="one", phase="inbox") == []
    assert desk.found("memory_list", source=None, phase="") == ["b", "a"]


def test_a_search_is_for_a_piece_of_the_text_in_any_case(desk: Any) -> None:
    desk.write("Dark mode", tags="UI", category="preferences")
    desk.write("a darker mode", scope="agent:z")

    assert desk.found("memory_search", query="DARK") == ["a darker mode", "Dark mode"]
    assert desk.found("memory_search", query="k mode") == ["Dark mode"]
    assert desk.found("memory_search", query="dark", tags="ui") == ["Dark mode"]
    assert desk.found("memory_search", query="dark", tags=["ui", "other"]) == []
    assert desk.found("memory_search", query="dark", scope="agent:z") == ["a darker mode"]
    assert desk.found("memory_search", query="dark", phase="inbox") == ["a darker mode"]
    assert desk.found("memory_search", query="dark", category="preferences") == ["Dark mode"]
    assert desk.result("memory_search", query="nothing") == {
        "content": "[]",
        "is_error": False,
        "metadata": {"count": 0},
    }


def test_a_search_between_days_includes_both(desk: Any) -> None:
    desk.write("x")
    for first, last, count in (
        ("2026-05-07", "2026-05-07", 1),
        ("2026-05-08", None, 0),
        (None, "2026-05-06", 0),
    ):
        assert len(desk("memory_search", query="x", **{"from": first, "to": last})) == count


def test_tags_come_back_sorted(desk: Any) -> None:
    ref = desk.write("x", tags="m,z")
    assert desk("memory_tag", id=ref, add="b, a") == {"id": ref, "tags": ["a", "b", "m", "z"]}
    assert desk("memory_tag", id=ref, remove=["z", "none"])["tags"] == ["a", "b", "m"]
    assert desk("memory_tag", id=ref)["tags"] == ["a", "b", "m"]


def test_smart_search_scores_each_word(desk: Any) -> None:
    desk.write("hello dark mode", category="knowledge", tags="dark", source="me")
    desk.write("Dark dark darker mode", tags="other")
    desk.write("nothing of it")
    got = desk.result("memory_smart_search", query="Dark-Mode 模式 hello hello")
    answer = json.loads(got["content"])
    assert got["metadata"] == {"count": 2}
    assert list(answer) == ["query", "results", "returned", "tokens", "total_scored"]
    assert answer["tokens"] == ["dark", "mode", "模", "式", "hello"]
    assert (answer["query"], answer["returned"], answer["total_scored"]) == (
        "Dark-Mode 模式 hello hello",
        2,
        2,
    )
    first, second = answer["results"]
    assert list(first) == sorted(
        (
            "id",
            "content",
            "phase",
            "category",
            "scope",
            "source",
            "tags",
            "score",
            "matched_tokens",
            "preview",
        )
    )
    assert (first["score"], first["matched_tokens"]) == (4.0, ["dark", "mode", "hello"])
    assert (first["phase"], first["category"], first["source"]) == ("organized", "knowledge", "me")
    assert (second["score"], second["matched_tokens"]) == (3.0, ["dark", "mode"])


def test_smart_search_previews_120_characters(desk: Any) -> None:
    desk.write("x" * 120)
    desk.write("x" * 121)
    previews = [result["preview"] for result in desk("memory_smart_search", query="x")["results"]]
    assert sorted(previews) == ["x" * 120, "x" * 120 + "..."]


def test_every_filter_of_smart_search_works(desk: Any) -> None:
    desk.write("dark a", category="lessons", source="one", tags="ui,x")
    desk.write("dark b", scope="agent:z")
    passing = {
        "tags": "UI",
        "category": "lessons",
        "phase": "organized",
        "source": "one",
        "scope": "global",
    }
    for filters in ({name: value} for name, value in passing.items()):
        assert desk.found("memory_smart_search", query="dark", **filters) == ["dark a"], filters
    assert desk("memory_smart_search", query="dark", tags="ui,y")["total_scored"] == 0


def test_smart_search_counts_what_it_does_not_show(desk: Any) -> None:
    for number in range(12):
        desk.write(f"dark {number}")
    assert len(desk.found("memory_smart_search", query="dark")) == 10
    few = desk("memory_smart_search", query="dark", top="2")
    assert few["returned"] == 2
    assert few["total_scored"] == 12
    assert len(desk.found("memory_smart_search", query="dark", top=0)) == 12


@pytest.mark.parametrize(("tool", "arguments", "message"), TABLES["errors"])
def test_wrong_arguments_are_soft_errors(
    desk: Any, tool: str, arguments: Any, message: str
) -> None:
    assert desk.error(tool, arguments) == message
    if isinstance(arguments, dict):
        (outcome,) = desk.session.run([{"name": tool, "params": arguments}])
        assert outcome["result"] == {"content": message, "is_error": True}


@pytest.mark.promise("001-17.8")
@pytest.mark.parametrize(
    "ref", [NOBODY, "../x", "..", "/etc/passwd", "abc", "categories/inbox/x.md", "é"]
)
def test_what_is_no_id_is_a_hard_error(desk: Any, ref: str) -> None:
    desk.write("x")
    for tool in ("memory_read", "memory_delete", "memory_tag"):
        (outcome,) = desk.session.run([{"name": tool, "params": {"id": ref}}])
        assert outcome == {"name": tool, "params": {"id": ref}, "error": f"memory not found: {ref}"}


def test_a_beginning_of_several_ids_is_ambiguous(desk: Any) -> None:
    text = "---\nid: {}\nphase: organized\ncategory: lessons\n---\nx\n"
    folder = desk.memory.home / "categories" / "lessons"
    folder.mkdir(parents=True)
    for number in (1, 2):
        (folder / f"{number}.md").write_text(text.format(f"abcd{number}{NOBODY[5:]}"))

    assert desk.error("memory_read", {"id": "abcd"}) == 'ambiguous id "abcd": 2 memories match'


def test_arguments_nobody_knows_are_ignored(desk: Any) -> None:
    assert desk("memory_list", colour="red") == []


LISTS = st.lists(st.text(max_size=5), max_size=3)
VALUES = st.one_of(st.text(max_size=20), st.none(), st.integers(-2, 60), st.booleans(), LISTS)
PARAMETERS = st.sampled_from(
    [
        "content",
        "category",
        "scope",
        "tags",
        "source",
        "id",
        "phase",
        "limit",
        "query",
        "from",
        "to",
        "add",
        "remove",
        "top",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tool=st.sampled_from(NAMES), arguments=st.dictionaries(PARAMETERS, VALUES, max_size=5))
def test_any_arguments_get_a_reply(desk: Any, tool: str, arguments: dict[str, Any]) -> None:
    reply = desk.session.call(tool, arguments)
    assert isinstance(reply.text, str)
    if not reply.is_error and tool != "memory_delete":
        json.loads(reply.text)
