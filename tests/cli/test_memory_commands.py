"""write, read, list, search, delete, tag (contract 001, 3)."""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memoranda.index.search import queries

KEYS = [
    "id",
    "content",
    "content_hash",
    "phase",
    "category",
    "scope",
    "tags",
    "source",
    "created_at",
    "updated_at",
    "expires_at",
    "access_count",
    "links",
    "version",
    "path",
]


@pytest.mark.promise("001-17.1")
def test_a_memory_in_json_has_the_fixed_keys_first(terminal: Any) -> None:
    ref = terminal.write("héllo", "--category", "skills")
    memory = terminal("read", ref, "--json").json["memory"]

    assert list(memory) == KEYS
    assert memory["content_hash"] == hashlib.sha256("héllo".encode()).hexdigest()
    assert memory["path"] == f"categories/skills/hello-{ref[:8]}.md"
    assert memory["tags"] == []
    assert memory["links"] == []


def test_further_keys_follow_when_they_are_set(terminal: Any) -> None:
    ref = terminal.write("x", "--category", "reminders")
    path = terminal.home / terminal("read", ref, "--json").json["memory"]["path"]
    text = path.read_text().replace(
        "version: 1\n",
        "version: 1\nrepeat: FREQ=DAILY\ndue_at: 2026-05-08T17:00:00+02:00\nall_day: true\ncolour: red\n"
        "title: Tea\naliases:\n  - chai\n",
    )
    path.write_text(text)
    memory = terminal("read", ref, "--json").json["memory"]
    assert list(memory) == [*KEYS, "title", "aliases", "due_at", "all_day", "repeat"]
    assert memory["all_day"] is True
    assert memory["aliases"] == ["chai"]
    assert memory["due_at"] == "2026-05-08T15:00:00Z"
    lines = terminal.ok("read", ref).split("\n")
    assert lines[10:13] == ["Due:     2026-05-08 15:00 repeat FREQ=DAILY", "", "x"]


@pytest.mark.promise("001-17.3")
def test_bytes_that_are_no_text_are_refused(terminal: Any) -> None:
    assert terminal("write", "-", stdin=b"\xff\xfe").error == "the text on stdin is not valid UTF-8"
    for argv in (["write", "\udcff"], ["read", "\udcff"], ["write", "x", "--tags", "\udcff"]):
        assert terminal(*argv).error == "an argument is not valid UTF-8 text"
    assert terminal.ok("list") == "No memories found.\n"


@pytest.mark.parametrize("text", ["plain", "# Title\n\ntext", "中文", "a\ufeffb", "- [x] item\r\n"])
def test_byte_order_mark_on_stdin_is_no_part_of_the_text(terminal: Any, text: str) -> None:
    written = terminal("write", "-", "--json", stdin=b"\xef\xbb\xbf" + text.encode())

    path = terminal.home / written.json["memory"]["path"]
    assert path.read_bytes().count(b"\xef\xbb\xbf") == text.count("\ufeff")


def test_now_is_the_time_of_writing(terminal: Any) -> None:
    written = terminal("write", "x", "--now", "2026-05-01T12:00:00+02:00", "--json").json["memory"]
    assert (written["created_at"], written["updated_at"]) == ("2026-05-01T10:00:00Z",) * 2
    assert written["expires_at"] == "2026-05-08T10:00:00Z"
    local = terminal("--now", "2026-05-01T12:00", "write", "y", "--json").json["memory"]
    assert local["created_at"] == "2026-05-01T12:00:00Z"


def test_times_in_text_are_local_in_json_utc(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    ref = terminal.write("x", "--now", "2026-05-01T20:30:00Z")
    assert "\nCreated: 2026-05-02 04:30:00\n" in terminal.ok("read", ref)
    assert " 2026-05-02 04:30 " in terminal.ok("list")
    document = terminal("read", ref, "--json").json
    assert document["memory"]["created_at"] == "2026-05-01T20:30:00Z"
    terminal.configure("timezone: America/New_York\n")
    assert "\nCreated: 2026-05-01 16:30:00\n" in terminal.ok("read", ref)


def test_tags_are_trimmed_and_empty_ones_dropped(terminal: Any) -> None:
    ref = terminal.write("x", "--tags", " a ,, b c ,")
    document = terminal("read", ref, "--json").json
    assert document["memory"]["tags"] == ["a", "b c"]
    assert (
        terminal.ok("tag", ref, "--add", "d,e", "--remove", "A")
        == f"Tags of {ref[:8]}: [b c d e]\n"
    )
    output = terminal.ok("tag", ref, "--remove", "b c,d,e")
    assert output == f"Tags of {ref[:8]}: []\n"
    output = terminal.ok("read", ref)
    assert "\nTags:   []\n" in output


def test_an_id_may_be_cut_to_four_characters(terminal: Any) -> None:
    ref = terminal.write("x")
    for length in (4, 8, 13, 36):
        ran = terminal("read", ref[:length])
        assert ran.status == 0


def test_an_id_in_capitals_is_found(terminal: Any) -> None:
    ref = terminal.write("x")
    ran = terminal("read", ref.upper())
    assert ran.status == 0


def test_an_id_cut_to_three_characters_or_with_one_more_is_not_found(terminal: Any) -> None:
    ref = terminal.write("x")
    for wrong_ref in (ref[:3], f"{ref}0"):
        ran = terminal("read", wrong_ref)
        assert ran.error == f"memory not found: {wrong_ref}"


def test_an_ambiguous_id_says_how_many_it_matches(terminal: Any) -> None:
    folder = terminal.home / "categories" / "knowledge"
    folder.mkdir(parents=True, mode=0o700)
    for end in "123":
        identity = f"abcd0000-0000-4000-8000-00000000000{end}"
        (folder / f"{end}.md").write_text(f"---\nid: {identity}\n---\n{end}\n")
    ran = terminal("read", "abcd", "--json")

    assert ran.error == 'ambiguous id "abcd": 3 memories match'
    assert ran.json["error"]["code"] == "ambiguous"


@pytest.mark.promise("001-17.8")
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["write", "x", "--scope", "agent:"], 'invalid scope "agent:"'),
        (["write", "x", "--scope", "agent:-UP"], 'invalid scope "agent:-UP"'),
        (["list", "--category", "Soul"], 'invalid category "Soul"'),
        (["list", "--scope", "all"], 'invalid scope "all"'),
        (["search", "x", "--phase", "long"], 'invalid phase "long"'),
        (["search", "x", "--from", "2026-02-30"], 'invalid --from date: "2026-02-30"'),
        (["search", "x", "--to", "20260201"], 'invalid --to date: "20260201"'),
        (["read", ""], "memory not found: "),
        (["tag", "nope"], "memory not found: nope"),
    ],
)
def test_a_bad_argument_is_named_once(terminal: Any, argv: list[str], message: str) -> None:
    ran = terminal(*argv)
    assert (ran.status, ran.out, ran.error, ran.err.count("Error:")) == (1, "", message, 1)
    assert [path for path in terminal.folder.rglob("*.md") if path.is_file()] == []


def test_previews_count_code_points_and_stay_on_one_line(terminal: Any) -> None:
    terminal.write("漢" * 41)
    terminal.write("a\r\nb\nc\td\x1b[31m" + "e" * 26)
    rows = terminal.ok("list").split("\n")

    assert rows[2].endswith("     a b c d [31m" + "e" * 26)
    assert rows[3].endswith("     " + "漢" * 40 + "...")
    assert (
        terminal.ok("search", "漢").split("\n")[0].endswith(" inbox      inbox      " + "漢" * 41)
    )


def test_search_takes_its_days_in_local_time(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    terminal.write("x", "--now", "2026-05-01T20:30:00Z")
    totals = [
        terminal("search", "x", *argv, "--json").json["total"]
        for argv in (
            ["--from", "2026-05-02"],
            ["--from", "2026-05-03"],
            ["--to", "2026-05-01"],
            ["--to", "2026-05-02"],
            ["--from", "2026-05-02", "--to", "2026-05-02"],
        )
    ]
    assert totals == [1, 0, 0, 1, 1]


def test_search_finds_a_substring_newest_first(terminal: Any) -> None:
    for number, text in enumerate(["The DARKest hour", "remarkable 100% [x]", "no"]):
        terminal.write(text, "--now", f"2026-05-0{number + 1}T00:00:00Z")
    contents = [
        memory["content"] for memory in terminal("search", "ARK", "--json").json["memories"]
    ]
    assert contents == ["remarkable 100% [x]", "The DARKest hour"]
    document = terminal("search", "0% [", "--json").json
    assert document["total"] == 1
    page = terminal("search", "", "--limit", "2", "--json").json
    assert len(page["memories"]) == 2
    assert page["total"] == 3


def test_ranked_search_ranks_words_in_title_tags_and_text(terminal: Any) -> None:
    best = terminal.write("heron heron heron", "--tags", "heron")
    terminal.write("a text that names heron only once among many other words of no interest at all")
    terminal.write("remarkable")
    results = terminal("search", "heron", "--ranked", "--json").json

    assert results["total"] == 2
    assert results["memories"][0]["id"] == best
    assert results["memories"][0]["passage"] == "heron heron heron"
    assert results["memories"][0]["why"]
    assert results["memories"][0]["score"] > results["memories"][1]["score"] > 0
    assert terminal("search", "ark", "--ranked").out == "No matching memories found.\n"
    document = terminal("search", "", "--ranked", "--json").json
    assert document["total"] == 3


def test_a_ranked_search_counts_all_that_it_lists_and_says_where_it_does_not(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        terminal.write(f"heron {number}")
    monkeypatch.setattr(queries, "MAX_COUNTED", 2)
    document = terminal("search", "heron", "--json", "--limit", "1").json
    assert document["total"] == 4
    results = terminal("search", "heron", "--ranked", "--json").json
    assert results["total"] == 4
    assert results.get("total_is_lower_bound") is None
    some = terminal("search", "heron", "--ranked", "--json", "--limit", "1").json
    assert some["total"] == 2
    assert some["total_is_lower_bound"] is True
    assert terminal.ok("search", "heron", "--ranked", "--limit", "1").endswith(
        "\nFound: 2 or more memories\n"
    )


def test_deleting_can_be_tried_first(terminal: Any) -> None:
    ref = terminal.write("x")
    path = Path(terminal.home) / terminal("read", ref, "--json").json["memory"]["path"]

    output = terminal.ok("delete", ref, "--dry-run")
    assert output == f"Would delete memory: {ref}\n"
    assert path.exists()
    output = terminal.ok("delete", ref)
    assert output == f"Deleted memory: {ref}\n"
    assert not path.exists()


def test_a_budget_of_tokens_bounds_what_a_ranked_search_returns(terminal: Any) -> None:
    for number in range(6):
        terminal.write(
            f"invoices, part {number}: " + "words and more words " * 20, "--category", "knowledge"
        )
    few = terminal("search", "invoices", "--ranked", "--json", "--max-tokens", "100").json

    assert few["total"] == 6
    assert 0 < len(few["memories"]) < 6
    assert sum(len(memory["passage"]) for memory in few["memories"]) <= 400


def test_context_prints_the_best_evidence_within_a_budget(terminal: Any) -> None:
    terminal.write("Invoices are numbered per country since May", "--category", "decisions")
    terminal.write("The garden needs water", "--category", "knowledge")
    context = terminal.ok("context", "how are invoices numbered?")
    assert "numbered per country" in context
    assert "garden" not in context
    assert (
        len(terminal("context", "invoices", "--max-tokens", "10", "--json").json["context"]) <= 40
    )
    assert terminal.ok("context", "submarine") == "Nothing found that fits into 2000 tokens.\n"
    assert terminal("context", "x", "--project", "nope").status == 1


def test_context_without_an_answer_says_how_to_see_the_notes_that_share_words(
    terminal: Any,
) -> None:
    terminal.write("The billing service moved to Postgres in May", "--category", "decisions")
    question = "which volcano erupted near the old service station?"
    assert terminal.ok("context", question) == (
        "No note is near enough to answer that. To see a note with some of its words:"
        f" memory search --ranked '{question}'\n"
    )
    assert terminal("context", question, "--json").json["passed_over"] == 1
    assert "Postgres" in terminal.ok("search", "--ranked", question)


@pytest.mark.parametrize("question", ["", "  "])
def test_context_for_a_blank_question_passes_over_no_note(terminal: Any, question: str) -> None:
    terminal.write("The billing service moved to Postgres in May", "--category", "decisions")
    assert terminal.ok("context", question) == "Nothing found that fits into 2000 tokens.\n"


def test_context_without_room_for_an_answer_passes_over_no_note(terminal: Any) -> None:
    terminal.write("The billing service moved to Postgres in May", "--category", "decisions")
    ran = terminal("context", "billing", "--max-tokens", "3", "--json").json
    assert ran["context"] == ""
    assert ran["passed_over"] == 0


@pytest.fixture
def steps(terminal: Any) -> list[str]:
    """The ids of three memories."""
    return [terminal.write(f"deploy step {number}") for number in range(3)]


@pytest.mark.promise("shell-3")
def test_several_ids_are_all_tagged(terminal: Any, steps: list[str]) -> None:
    a, b, _ = (memory_id[:8] for memory_id in steps)
    output = terminal.ok("tag", a, b, "--add", "x")
    assert output == f"Tags of {a}: [x]\nTags of {b}: [x]\n"


@pytest.mark.promise("shell-3")
def test_several_ids_are_all_upgraded(terminal: Any, steps: list[str]) -> None:
    output = terminal.ok("upgrade", *steps[:2], "--category", "skills")
    assert output.count("Upgraded memory") == 2
    rows = terminal("show", *steps, "--json").json["results"]
    categories = [row["memory"]["category"] for row in rows]
    assert categories == ["skills", "skills", "inbox"]


@pytest.mark.promise("shell-3")
@pytest.mark.parametrize("words", [("upgrade",), ("tag", "--add", "x"), ("rm",)], ids=" ".join)
def test_several_ids_of_which_one_is_unknown_change_nothing(
    terminal: Any, steps: list[str], words: tuple[str, ...]
) -> None:
    before = terminal("log", "--json").json
    ran = terminal(*words, steps[2][:8], "nobody")
    assert ran.error == "memory not found: nobody"
    assert terminal("log", "--json").json == before


@pytest.mark.promise("shell-3")
def test_several_ids_are_deleted_once_each_and_brought_back_by_one_undo(
    terminal: Any, steps: list[str]
) -> None:
    output = terminal.ok("rm", *steps, steps[0][:8])
    assert output == "".join(f"Deleted memory: {memory_id}\n" for memory_id in steps)
    assert terminal.ok("ls") == "No memories found.\n"
    terminal.ok("undo")
    document = terminal("ls", "--json").json
    assert document["total"] == 3


def test_deleting_several_takes_all_their_ids_from_the_links_of_others(terminal: Any) -> None:
    a, b, c = (terminal.write(text) for text in ("one", "two", "three"))
    for pair in ((a, b), (a, c), (b, c)):
        terminal.ok("link", *pair)
    terminal.ok("delete", a, b)

    document = terminal("read", c, "--json").json
    assert document["memory"]["links"] == []


@pytest.fixture
def plans(terminal: Any) -> str:
    """The id of a memory beside a note that says nearly the same."""
    memory_id = terminal.write("dark mode")
    call = '{"title": "Plan", "folder": "sub", "content": "dark mode, too"}'
    terminal.ok("call", "write_note", call)
    return memory_id


def test_read_takes_every_place_that_log_prints(terminal: Any, plans: str) -> None:
    lines = terminal.ok("log").splitlines()
    # The title comes after the place, where the path does not say it
    places = [line.partition('  "')[0].split()[-1] for line in lines]
    assert len(places) == 2
    for place in places:
        assert "dark mode" in terminal.ok("read", place)


def test_read_takes_every_id_that_search_prints(terminal: Any, plans: str) -> None:
    output = terminal.ok("search", "dark", "mode")
    assert "note       notes      Plan: dark mode, too\n" in output
    assert output.endswith("\n\nFound: 2 notes\n")
    rows = output.splitlines()[:2]
    for row in rows:
        id_shown = row[:8]
        assert "dark mode" in terminal.ok("read", id_shown)


def test_note_read_by_its_path_has_its_permalink_and_content(terminal: Any, plans: str) -> None:
    row = terminal("read", "notes/sub/Plan.md", "--json").json["note"]
    assert row["permalink"] == "notes/sub/plan"
    assert row["content"] == "dark mode, too"


def test_note_found_by_search_has_its_project_and_path(terminal: Any, plans: str) -> None:
    first = terminal("search", "dark", "--json").json["memories"][0]
    assert first["project"] == "notes"
    assert first["path"] == "notes/sub/Plan.md"


def test_note_read_among_several_has_the_document_it_has_alone(terminal: Any, plans: str) -> None:
    row = terminal("read", "notes/sub/Plan.md", "--json").json["note"]
    again = terminal("read", plans[:8], "Plan", "--json").json["results"][1]["note"]
    assert again == row | {"access_count": row["access_count"] + 1}


def test_days_may_be_relative(terminal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, at in (
        ("old", "2026-04-20T10:00Z"),
        ("week", "2026-05-03T23:00Z"),
        ("new", "2026-05-05T09:00Z"),
    ):
        terminal.write(text, "--now", at)
    monkeypatch.setattr("memoranda.clock.now", lambda: datetime(2026, 5, 5, 12, tzinfo=UTC))
    for bounds, expected_contents in (
        (["--from", "last week"], ["new", "week"]),
        (["--from", "上周", "--to", "上周"], ["week"]),
        (["--to", "last week"], ["week", "old"]),
        (["--from", "today", "--to", "today"], ["new"]),
        (["--from", "7d", "--to", "7d"], []),
        (["--from", "2026-05-01", "--to", "yesterday"], ["week"]),
        (["--from", "last month", "--to", "last month"], ["old"]),
    ):
        rows = terminal("search", "", *bounds, "--json").json["memories"]
        assert [row["content"] for row in rows] == expected_contents, bounds
