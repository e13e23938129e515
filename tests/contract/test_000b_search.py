"""Contract 000b, 12.7: what search finds is what grep finds; filters, pages, relaxed questions, odd
queries.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vault as generated
from contract.home_kinds import with_projects
from contract.note_tools import Tools, put
from contract.tables import tables
from memoranda.engine import open_session

TABLES = tables("note_search")

pytestmark = pytest.mark.promise("000b-12.7")

NOTES = 400
JAPANESE = (
    "昨日の会議でデータベースの索引を再構築することに決めた"
    "検索結果は正確でなければならない東京タワーとスカイツリー"
)
KOREAN = "어제회의에서데이터베이스색인을다시만들기로했다검색결과는정확해야한다서울타워와한강공원"
CHINESE = "昨天的会议决定重建数据库的索引检索结果必须准确北京图书馆和颐和园的旧照片都在这里"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """A generated vault with runs of Chinese, Japanese and Korean strewn in; only read."""
    root = tmp_path_factory.mktemp("shelf")
    generated.make_vault(root / "vault", NOTES)
    chance = Random(7)
    for number in range(60):
        run = (JAPANESE, KOREAN, CHINESE)[number % 3]
        start = chance.randrange(len(run) - 12)
        piece = run[start : start + chance.randint(6, 24)]
        put(
            root / "vault" / f"cjk/{number}.md",
            f"Note {number}: {piece}, then english{number}.\n\n- [fact] {piece[::-1]} #t\n",
        )
    put(
        root / "vault/long.md",
        "word " * 25_000 + "needleattheend 针在最后\n" + "more words " * 5_000,
    )
    with open_session(
        root / "home", **with_projects(root / "home", vault=root / "vault"), watch=False
    ) as memory:
        yield Shelf(root / "vault", Tools(memory))


class Shelf:
    def __init__(self, root: Path, tools: Tools):
        self.tools = tools
        self.texts = {
            str(path.relative_to(root)): self._searched(path.read_text())
            for path in root.rglob("*.md")
        }
        # To match without case takes `re` three times as long as to match what is in lower case
        self._lower_texts = {path: f"{path}\n{text}".lower() for path, text in self.texts.items()}

    @staticmethod
    def _searched(text: str) -> str:
        """What search looks at: the body, of the header the values of title and tags (permalinks
        have numbers here).
        """
        if not text.startswith("---\n"):
            return text
        header, body = text[4:].split("\n---\n", 1)
        return "\n".join(re.findall(r"^(?:title|tags): (.*)", header, re.MULTILINE)) + body

    def grep(self, pattern: str) -> set[str]:
        """The notes in which a pattern in lower case occurs, without case; a path counts too."""
        matcher = re.compile(pattern)
        return {path for path, text in self._lower_texts.items() if matcher.search(text)}

    def forms(self, word: str) -> set[str]:
        """The notes with a word that may be another form of this one, or with it in two words."""
        ways = [rf"{word[:at]}\W+{word[at:]}" for at in range(3, len(word) - 2)]
        return self.grep("|".join([rf"\b{word[: max(3, len(word) - 4)]}", *ways]))

    def found(self, query: str) -> set[str]:
        """The notes a query finds that is not relaxed."""
        if self.tools("search_notes", query=query)["relaxed"]:
            return set()
        return self.tools.found(query)


def test_a_rare_word_is_found_in_the_notes_that_hold_it(shelf: Shelf) -> None:
    for question in generated.questions(NOTES):
        if question.kind in ("rare", "rare_chinese", "glued"):
            assert shelf.tools.found(question.text) == {generated.path_of(question.note)}, question


def test_words_are_found_as_grep_finds_their_beginnings(shelf: Shelf) -> None:
    chance = Random(11)
    found_words = set()
    for text in shelf.texts.values():
        found_words.update(re.findall(r"\b[a-z]{5,12}\b", text))
    words = sorted(found_words)
    for word in chance.sample(words, 30):
        assert shelf.grep(rf"\b{word}") <= shelf.tools.found(word) <= shelf.forms(word), word


def test_whole_words_come_before_longer_ones(shelf: Shelf) -> None:
    whole = shelf.grep(r"\bcandle\b")
    all_paths = shelf.tools.paged("search_notes", "results", "file_path", query="candle")

    assert set(all_paths) == shelf.grep(r"\bcandle")
    assert whole != set(all_paths)
    assert set(all_paths[: len(whole)]) == whole


def test_bare_words_must_all_be_there(shelf: Shelf) -> None:
    chance = Random(12)
    for path, text in chance.sample(sorted(shelf.texts.items()), 15):
        words = re.findall(r"\b[a-z]{4,12}\b", text)
        pair = chance.sample(words, 2)
        assert path in shelf.tools.found(" ".join(pair))
        first, second = pair
        paths = shelf.found(" ".join(pair))
        assert shelf.grep(rf"\b{first}") & shelf.grep(rf"\b{second}") <= paths, pair
        assert paths <= shelf.forms(first) & shelf.forms(second), pair


def test_a_phrase_is_found_where_its_words_stand_together(shelf: Shelf) -> None:
    for question in generated.questions(NOTES):
        if question.kind == "phrase":
            words = question.text.strip('"').split()
            expected = shelf.grep(r"\b" + r"\W+".join(map(re.escape, words)) + r"\b")
            assert shelf.tools.found(question.text) == expected, question


@pytest.mark.parametrize("run", [CHINESE, JAPANESE, KOREAN], ids=["Chinese", "Japanese", "Korean"])
def test_any_part_of_a_run_of_two_to_six_characters_is_found_as_grep_finds_it(
    shelf: Shelf, run: str
) -> None:
    for length in range(2, 7):
        for start in range(0, len(run) - length, 3):
            part = run[start : start + length]
            assert shelf.found(part) == shelf.grep(part), part
    for character in sorted(set(run))[::4]:
        assert shelf.tools.found(character) == shelf.grep(character), character


def test_an_expression_of_the_generated_chinese_is_found_as_grep_finds_it(shelf: Shelf) -> None:
    for question in generated.questions(NOTES):
        if question.kind == "chinese":
            assert shelf.tools.found(question.text) == shelf.grep(question.text), question


def test_a_word_after_a_hundred_thousand_characters(shelf: Shelf) -> None:
    assert shelf.texts["long.md"].index("needleattheend") > 100_000
    for query in ("needleattheend", '"needleattheend 针在最后"', "在最", "needleatt"):
        assert shelf.tools.found(query) == {"long.md"}
    (hit,) = shelf.tools("search_notes", query="needleattheend")["results"]
    assert "needleattheend" in hit["snippet"]
    assert len(hit["snippet"]) <= 200


def test_operators_combine_as_they_say(shelf: Shelf) -> None:
    with_lantern = shelf.grep(r"\blantern")
    two = shelf.grep(r"\bglacier")

    assert with_lantern - two
    assert with_lantern & two
    assert shelf.tools.found("lantern OR glacier") == with_lantern | two
    assert shelf.tools.found("lantern AND glacier") == with_lantern & two
    assert shelf.tools.found("lantern NOT glacier") == with_lantern - shelf.grep(r"\bglacier\b")
    assert shelf.tools.found("lantern and glacier") == with_lantern & two & shelf.grep(r"\band")


def test_snippets_are_cut_from_the_file_and_short(shelf: Shelf) -> None:
    for question in generated.questions(NOTES)[::5]:
        for hit in shelf.tools("search_notes", query=question.text, page_size=5)["results"]:
            assert 0 < len(hit["snippet"]) <= 200
            flat = " ".join(shelf.texts[hit["file_path"]].split())
            pieces = [" ".join(piece.split()) for piece in hit["snippet"].split("…")]
            for piece in pieces:
                assert piece in flat, hit


def test_the_same_question_gives_the_same_page_and_pages_join_without_gap(shelf: Shelf) -> None:
    for query in ("the", "lantern", "会议", "river NOT lantern"):
        whole = shelf.tools.paged("search_notes", "results", "permalink", query=query)
        assert len(whole) == len(set(whole))
        for size in (7, 50):
            pages: list[str] = []
            for number in range(1, min(len(whole) // size + 2, 6)):
                data = shelf.tools("search_notes", query=query, page=number, page_size=size)
                assert data == shelf.tools("search_notes", query=query, page=number, page_size=size)
                assert data["total"] == len(whole)
                assert data["more"] == (number * size < len(whole))
                pages += [result["permalink"] for result in data["results"]]
            assert pages == whole[: len(pages)]
        data = shelf.tools("search_notes", query=query, page=10_000)
        assert data["results"] == []
        assert data["total"] == len(whole)
        assert data["more"] is False


def test_equal_hits_are_ordered_newest_first_then_by_permalink(tools: Tools) -> None:
    for name, age in (("d", 30), ("c", 20), ("b", 20), ("a", 40)):
        file = tools.put(f"{name}.md", "the very same words\n")
        os.utime(file, (1_700_000_000 - age, 1_700_000_000 - age))
    for _ in range(3):
        assert tools.paged("search_notes", "results", "file_path", query="very same") == [
            "b.md",
            "c.md",
            "d.md",
            "a.md",
        ]
        tools.memory.reindex()


def test_a_question_nothing_answers_whole_is_relaxed_and_says_so(shelf: Shelf) -> None:
    rare = generated.rare_word(3)
    data = shelf.tools("search_notes", query=f"why was {rare} ever mentioned by the unheardofs?")
    assert data["relaxed"] is True
    assert data["results"][0]["file_path"] == generated.path_of(3)
    assert "relaxed" in shelf.tools.text(
        "search_notes", query=f"why was {rare} ever mentioned by the unheardofs?"
    )
    relaxed = shelf.tools("search_notes", query=f"{rare} unheardofs")["relaxed"]
    assert relaxed is True
    for query in (f'"{rare} of the unheardofs"', f"{rare} AND unheardofs", rare):
        relaxed = shelf.tools("search_notes", query=query)["relaxed"]
        assert relaxed is False


def test_marks_case_width_and_edges_do_not_matter(tools: Tools) -> None:
    tools.put(
        "a.md",
        "Crème BRÛLÉE, naïve (Zürich)! ＦＵＬＬ　ｗｉｄｔｈ e\u0301clair 重跑qx7z后 "
        "C++ it's v2.0.1 foo_bar a-b x/y/z\n",
    )
    for query in TABLES["folded"]:
        assert tools.found(query) == {"a.md"}, query


def test_every_part_of_a_note_is_searched(tools: Tools) -> None:
    tools.put(
        "folder name/file name.md",
        "---\ntitle: titleword\ntags: [tagword]\naliases: [aliasword]\npermalink: address/word\n"
        "---\n# headingword\nbodyword\n- [catword] obsword #obstag (contextword)\n- relword [[targetword]]\n",
    )
    for query in TABLES["parts"]:
        assert tools.found(query) == {"folder name/file name.md"}, query
    tools.put("b.md", "titleword in the body of a note about other things, and a few words more\n")
    assert (
        tools.paged("search_notes", "results", "file_path", query="titleword")[0]
        == "folder name/file name.md"
    )


FILTERS = tables("note_filters")


HEADERS = FILTERS["headers"]
BODIES = {
    "spec": "- [decision] use tabs #Dark\n",
    "log": "- [Decision] use spaces\n- [fact] it rained #ui\n",
    "bare": "- [x] done #ui/deep\n",
}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("filters")
    for name, header in HEADERS.items():
        front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in header.items())
        put(root / f"home/notes/{name}.md", f"---\n{front}---\nsame words\n{BODIES.get(name, '')}")
    put(
        root / "home/memories/note.md", "---\nsource: me\nscope: agent:ada\n---\n- same words #ui\n"
    )
    put(root / "home/categories/inbox/memo.md", "same words too\n")
    with open_session(root / "home", watch=False) as memory:
        yield Tools(memory)


def names(tools: Tools, **arguments: Any) -> set[str]:
    return {
        Path(path).stem for path in tools.paged("search_notes", "results", "file_path", **arguments)
    }


EVERY = {*HEADERS, "note", "memo"}
FILTERED = FILTERS["filtered"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    FILTERED,
    ids=[str(filter_given)[:60] for filter_given, _ in FILTERED],
)
def test_filters_keep_just_what_passes(
    labelled: Tools, arguments: dict[str, Any], expected: set[str]
) -> None:
    assert names(labelled, **arguments) == set(expected)


def test_a_word_with_a_colon_that_is_no_filter_is_text(tools: Tools) -> None:
    tools.put("a.md", "see http://example.org/x and key:value at 10:30\n")
    tools.put("b.md", "nothing\n")
    for query in ("http://example.org", "key:value", "10:30", "see key:value", "Key:Value"):
        assert tools.found(query) == {"a.md"}, query
    tools.put("c.md", "after nonsense before key\n")
    assert tools.found("after:nonsense key") == {"c.md"}


def test_a_category_filter_shows_the_observation(labelled: Tools) -> None:
    hits = labelled("search_notes", query="words", categories=["decision"])["results"]
    assert {hit["file_path"]: "use " in hit["snippet"] for hit in hits} == {
        "spec.md": True,
        "log.md": True,
    }
    for hit in hits:
        assert "rained" not in hit["snippet"]


def test_the_newest_come_first_without_a_query(tmp_path: Path) -> None:
    now = datetime(2026, 3, 11, tzinfo=UTC)
    with open_session(tmp_path / "home", clock=lambda: now, watch=False) as memory:
        tools = Tools(memory)
        for name, age in (("b", 2), ("a", 1), ("c", 3)):
            moment = (now - timedelta(days=age)).timestamp()
            os.utime(tools.put(f"{name}.md", "---\nstatus: open\n---\n"), (moment, moment))
        assert tools.paged("search_notes", "results", "file_path", status="open") == [
            "a.md",
            "b.md",
            "c.md",
        ]
        assert tools.paged(
            "search_notes", "results", "file_path", query="status:open after:2d"
        ) == ["a.md", "b.md"]
        assert tools.paged(
            "search_notes", "results", "file_path", query="status:open before:2d"
        ) == ["c.md"]


def test_neither_query_nor_filter_is_an_error(labelled: Tools) -> None:
    for arguments in ({}, {"query": ""}, {"query": "  "}, {"project": "notes"}, {"tags": []}):
        text = labelled.refused("search_notes", "invalid", **arguments)
        assert "`query`" in text
        assert "recent_activity" in text


@pytest.mark.parametrize(
    "bad", [{"a": {"$no": 1}}, {"a": {"$in": 3}}, {"a": {"$between": [1]}}, {"a": {}}, {"": 1}]
)
def test_a_filter_nobody_understands_is_named(labelled: Tools, bad: dict[str, Any]) -> None:
    reply = labelled.call("search_notes", query="same", metadata_filters=bad)
    assert not reply.is_error or "metadata_filters" in reply.text


NASTY = [*FILTERS["nasty"], "a" * 5000, "x " * 3000]


@pytest.mark.parametrize("query", NASTY, ids=lambda query: ascii(query)[:30])
def test_no_query_makes_an_engine_error(labelled: Tools, query: str) -> None:
    for kind in ("text", "title", "permalink", "hybrid"):
        reply = labelled.call("search_notes", query=query, search_type=kind)
        if reply.is_error:
            assert reply.data["code"] in ("invalid", "project_not_found", "outside")
            assert "fts" not in reply.text.lower()
            assert "sql" not in reply.text.lower()


WORDS = st.sampled_from(
    [
        "same",
        "words",
        "AND",
        "OR",
        "NOT",
        '"',
        "(",
        ")",
        "*",
        "tag:ui",
        "type:",
        "NEAR(",
        ":",
        "中文",
        "-",
        "^",
    ]
)
QUERIES = st.one_of(
    st.text(max_size=60),
    st.lists(WORDS, max_size=12).map(" ".join),
    st.lists(st.one_of(WORDS, st.text(max_size=5))).map("".join),
)


@given(QUERIES, st.sampled_from(["text", "title", "permalink", "vector"]))
def test_any_text_is_a_query(labelled: Tools, query: str, kind: str) -> None:
    reply = labelled.call("search_notes", query=query, search_type=kind)
    if reply.is_error:
        assert reply.data["code"] in ("invalid", "project_not_found", "outside")
    else:
        assert reply.data["total"] >= len(reply.data["results"])
