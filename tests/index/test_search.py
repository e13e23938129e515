"""Search, sentence by sentence: contract 000b, section 6."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from commonplace.index.search import queries
from index.conftest import START, Desk

VERSE = {
    "sea.md": "# The sea\n\nThe harbour sleeps under a grey sky, and gulls circle the lighthouse.",
    "hill.md": "Goats graze on the hill above the harbour wall.\n- [fact] goats like salt #animals",
    "city/tram.md": "---\ntags: [transport, City]\n---\nThe tram climbs the hill; its indexing system is old.",
    "city/map.md": "---\naliases: [Plan of the town]\n---\nAn index of streets. See [[sea]].",
}


@pytest.fixture
def verse(desk: Desk) -> Desk:
    desk.put_all(VERSE)
    return desk


def test_the_title_weighs_most(desk: Desk) -> None:
    desk.put("a.md", "lantern lantern lantern " + "filler words " * 40)
    desk.put("lantern.md", "Nothing about it here.")
    assert desk.found("lantern") == ["lantern.md", "a.md"]


def test_a_heading_weighs_more_than_a_sentence(desk: Desk) -> None:
    desk.put("b.md", "## lantern\n\nmore text follows here\n")
    desk.put("a.md", "the lantern\n\nmore text follows here\n")
    assert desk.found("lantern") == ["b.md", "a.md"]


def test_words_match_as_prefixes_and_whole_words_rank_first(verse: Desk) -> None:
    assert verse.found("index") == ["city/map.md", "city/tram.md"]
    assert verse.found("indexi") == ["city/tram.md"]
    verse.put("many.md", "indexes indexed indexing indexer " * 20)
    assert verse.found("index")[0] == "city/map.md"


def test_very_short_words_match_whole_words_unless_there_are_none(desk: Desk) -> None:
    desk.put("a.md", "we use go here")
    desk.put("b.md", "the goat is golden")
    desk.put("c.md", "quartz")
    assert desk.found("go") == ["a.md"]
    assert desk.found("qu") == ["c.md"]


def test_not_alone_finds_long_notes_too(desk: Desk) -> None:
    desk.put("long.md", "some words that repeat themselves\n\n" * 600)
    assert desk.found("NOT harbour") == ["long.md"]


def test_a_possessive_is_no_beginning(desk: Desk) -> None:
    desk.put("a.md", "the client sends it")
    assert desk.found("client's") == []
    desk.put("b.md", "the client's book")
    assert desk.found("client's") == desk.found("client’s") == ["b.md"]


@pytest.mark.parametrize("text", ["OR", "AND", "NOT", "gulls OR", "OR gulls", "gulls AND", "gulls NOT", "OR OR OR"])
def test_a_lone_operator_is_text(verse: Desk, text: str) -> None:
    word = {"OR": "or", "AND": "and", "NOT": "not"}
    wanted = [word.get(part, part) for part in text.split()]
    for hit in verse.search(text):
        content = VERSE[hit.note.path].lower() + hit.note.title.lower()
        assert all(part in content for part in wanted)


def test_no_hit_for_three_bare_words_is_asked_again_with_or(verse: Desk) -> None:
    hits = verse.search("where do the goats drive a tram to")
    assert hits.relaxed
    assert {hit.note.path for hit in hits} == {"hill.md", "city/tram.md"}
    assert all("relaxed" in hit.why for hit in hits)
    assert not verse.search("goats tram").relaxed
    assert not verse.search('"goats" zebra tram').relaxed
    assert not verse.search("goats zebra NOT tram").relaxed
    assert not verse.search("goats graze").relaxed


def test_a_relaxed_question_weighs_rare_words_more(desk: Desk) -> None:
    for number in range(30):
        desk.put(f"{number}.md", "the painter spoke of colours again")
    desk.put("rare.md", "an oboe was bought in Leiden")
    assert desk.found("which painter bought an oboe yesterday evening")[0] == "rare.md"


SHORT_QUESTIONS = {
    "liang.md": "梁宝生是我们公司的会计，住在成都。",
    "meeting.md": "会议改到下午三点，在二楼。",
    "piano.md": "小王从六岁开始弹钢琴。",
    "home.md": "Bob 搬家了，现在住在杭州。",
    "bob.md": "Bob is the plumber who mended our sink.",
    "cat.md": "奶奶的猫叫咪咪，今年三岁。",
    "ja.md": "田中さんはピアノを弾けます。",
    "ko.md": "민수 생일은 오월 사일이다.",
}


@pytest.mark.parametrize(("text", "path"), [
    ("梁宝生是谁?", "liang.md"), ("会议几点?", "meeting.md"), ("谁会弹钢琴？", "piano.md"), ("Bob 住哪", "home.md"),
    ("猫几岁?", "cat.md"), ("誰がピアノを弾けますか", "ja.md"), ("ピアノは誰？", "ja.md"), ("민수 생일?", "ko.md"),
    ("who is Bob?", "bob.md"), ("Plumbers?", "bob.md"),
])  # fmt: skip
def test_a_question_is_asked_relaxed_however_short_it_is(desk: Desk, text: str, path: str) -> None:
    desk.put_all(SHORT_QUESTIONS)
    hits = desk.search(text)
    assert hits[0].note.path == path
    assert hits.relaxed


def test_two_words_that_only_begin_like_a_question_are_not_relaxed(desk: Desk) -> None:
    desk.put_all(SHORT_QUESTIONS)
    for text in ("will Bob", "is plumber zebra NOT x", "Bob zebra", "can plumber"):
        assert desk.search(text).total == 0, text


def test_a_short_question_that_stands_in_a_note_as_it_is_finds_that(desk: Desk) -> None:
    desk.put_all(SHORT_QUESTIONS)
    desk.put("faq.md", "常见问题：会议几点开始。")
    hits = desk.search("会议几点")
    assert [hit.note.path for hit in hits] == ["faq.md"]
    assert not hits.relaxed


SPELLED = {
    "k8s.md": "The kubernetes deployment is green.",
    "post.md": "We received a parcel.",
    "hen.md": "Hens lay eggs.",
}


@pytest.mark.parametrize(("text", "path", "spelled"), [
    ("kuberntes", "k8s.md", "kubernetes"), ("kuberntes deployment", "k8s.md", "kubernetes"),
    ("Deploymnt kubernetes", "k8s.md", "deployment"), ("recieve", "post.md", "receive"),
    ("recieved parcl", "post.md", "received, parcel"), ("kubernetess", "k8s.md", "kubernetes"),
])  # fmt: skip
def test_one_or_two_words_that_find_nothing_are_asked_again_as_they_are_spelled(
    desk: Desk, text: str, path: str, spelled: str
) -> None:
    desk.put_all(SPELLED)
    hits = desk.search(text)
    assert [hit.note.path for hit in hits] == [path]
    assert f"spelled: {spelled}" in hits[0].why
    assert hits.relaxed


def test_what_is_short_quoted_or_an_operator_is_not_spelled_otherwise(desk: Desk) -> None:
    desk.put_all(SPELLED)
    for text in ("henz", '"kuberntes"', "kuberntes OR zebra", "kuberntes NOT green", "egzs", "xkubernetes"):
        assert desk.search(text).total == 0, text


def test_words_of_a_long_text_are_not_spelled_otherwise(desk: Desk) -> None:
    desk.put("a.md", "We painted the canoe.")
    assert desk.found("What about the canoo?") == ["a.md"]
    assert desk.found(f"What about the canoo {' '.join(f'filler{number}' for number in range(40))}?") == []


def test_a_word_some_note_holds_is_looked_for_as_it_is(desk: Desk) -> None:
    desk.put_all(SPELLED)
    desk.put("typo.md", "He wrote kuberntes again.")
    assert desk.found("kuberntes") == ["typo.md"]
    assert desk.found("kuberntes green") == []


def test_spelling_shows_nobody_the_words_of_others(desk: Desk) -> None:
    desk.put("secret.md", "---\nscope: agent:ada\n---\nThe kubernetes cluster.")
    desk.put("typo.md", "---\nscope: agent:ada\n---\nThe receeving end.")
    desk.put("open.md", "The receiving end.")
    assert desk.found("kuberntes", viewer="bob") == []
    assert desk.found("kuberntes", viewer="ada") == ["secret.md"]
    assert desk.found("receeving", viewer="bob") == ["open.md"]
    assert desk.found("receeving", viewer="ada") == ["typo.md"]


CJK = {
    "zh1.md": "用户偏好深色模式，重跑qx7z后再部署。数据库索引很慢。",
    "zh2.md": "# 会议记录\n\n我们决定使用本地索引，而不是云端服务器。",
    "ja.md": "ノートブックを開いて、全文検索インデックスを再構築する。",
    "ko.md": "사용자는 어두운 모드를 선호합니다. 기억을 저장했다.",
    "rare.md": "𠮷野家で食べた。葛󠄀城市。",
}


def test_latin_glued_to_cjk_is_found_by_itself(desk: Desk) -> None:
    desk.put_all(CJK)
    for text in ("qx7z", "重跑qx7z后", "跑qx7z", "qx7z后", "QX7"):
        assert desk.found(text) == ["zh1.md"], text
    assert desk.found("跑qx8") == []


def test_a_word_of_very_many_notes_keeps_an_exact_total_and_whole_pages(desk: Desk) -> None:
    desk.put_all({f"{number:04}.md": f"common word {number}" for number in range(2_600)})
    desk.put("Common.md", "a title only")
    desk.put_all({f"later{number}.md": "common again" for number in range(60)})
    hits = desk.search("common", limit=10)
    assert hits.total == 2_661
    assert hits[0].note.path == "Common.md"
    pages = [path for offset in range(0, 2_700, 300) for path in desk.found("common", limit=300, offset=offset)]
    assert len(pages) == len(set(pages)) == 2_661
    assert desk.search("commo").total == 2_661
    assert desk.found("common 1234") == ["1234.md"]
    assert desk.search("common word").total == 2_600


def test_of_very_many_matches_the_total_is_a_lower_bound_and_no_page_is_missing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.put_all({f"{number}.md": f"common word {number}" for number in range(1_700)})
    monkeypatch.setattr(queries, "MAX_COUNTED", 1_600)
    filters: tuple[dict[str, Any], ...] = ({}, {"after": START}, {"metadata": {"type": "note"}})
    for text in ("common", "commo", '"common word"', "common OR again", "what do we know about common?"):
        for some in filters if text == "common" else filters[:1]:
            found = []
            for offset, total in ((0, 1_600), (400, 1_600), (800, 1_600), (1_200, 1_600), (1_600, 1_700)):
                page = desk.search(text, limit=400, offset=offset, **some)
                assert (page.total, page.is_lower_bound) == (total, offset < 1_600)
                found += [hit.note.path for hit in page]
            assert len(found) == len(set(found)) == 1_700
            page = desk.search(text, limit=10, offset=1_650, **some)
            assert (page.total, page.is_lower_bound) == (1_660, True)


def test_a_star_leaves_out_what_begins_with_the_word(verse: Desk) -> None:
    assert verse.found("harbour OR hill NOT ind") == verse.found("harbour OR hill")
    assert "city/tram.md" in verse.found("harbour OR hill NOT ind")
    assert "city/tram.md" not in verse.found("harbour OR hill NOT ind*")


def test_a_sign_before_a_word_behind_a_quoted_one_begins_no_prefix(desk: Desk) -> None:
    desk.put("a.md", "project starboard")
    desk.put("b.md", "project, and android nothing organ")
    assert desk.found('"project" *star') == desk.found("project *starboard") == ["a.md"]
    assert desk.found('"project" NOT *nothing') == ["a.md"]


def test_words_of_a_prefix_find_what_the_prefix_finds(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["mar", "march", "Märchen", "marsh", "mark2", "market", "summary", "ma", "mas", "mar-tin", "mar\u4e2d"]
    desk.put_all({f"{at}.md": f"{word} {'more' if at % 2 else 'less'}" for at, word in enumerate(words)})
    texts = ("mar", "MAR", "mark", "less mar", "mar NOT more", '"less" mar mor', "marz")
    found = [[(hit.note.path, hit.why) for hit in desk.search(text)] for text in texts]
    assert all(found[:3])
    monkeypatch.setattr(queries, "_MAX_LONGER", 1)
    desk.db.held.clear()  # type: ignore[attr-defined]
    assert found == [[(hit.note.path, hit.why) for hit in desk.search(text)] for text in texts]


def test_the_snippet_shows_the_passage_that_holds_most_of_the_question(desk: Desk) -> None:
    parts = ["apples are mentioned here " + "filler " * 100, "pears alone " + "filler " * 100,
             "here apples and pears meet " + "filler " * 100]  # fmt: skip
    desk.put("a.md", "\n\n".join(parts))
    assert desk.search("apples pears")[0].passage.startswith("here apples and pears meet")


def test_reasons_say_where_the_words_were_found(verse: Desk) -> None:
    assert verse.search("sea")[0].why[0] == "title: sea"
    assert "words: harbour, gulls" in verse.search("harbour gulls")[0].why
    assert "prefix" in verse.search("harbou")[0].why
    assert "title: city" in verse.search("hill city")[0].why, "a tag is a name too"
    assert any(reason.startswith("words ") for reason in verse.search("sea", explain=True)[0].why)
    assert not any(reason.startswith("words ") for reason in verse.search("sea")[0].why)


def test_a_path_is_found_with_and_without_its_project(verse: Desk) -> None:
    for text in ("city/tram", "notes/city/tram", "city/tram.md", '"city/tram.md"'):
        assert verse.found(text) == ["city/tram.md"], text


def test_titles_only(verse: Desk) -> None:
    assert verse.found("tram", search_type="title") == ["city/tram.md"]
    assert verse.found("hill", search_type="title") == ["hill.md"]
    assert verse.found("town", search_type="title") == ["city/map.md"]
    assert verse.found("harbour", search_type="title") == []
    assert set(verse.found("NOT hill", search_type="title")) == {"sea.md", "city/tram.md", "city/map.md"}
    assert verse.found("transport", search_type="title") == []


def test_every_query_type_answers_the_same_after_the_index_is_made_anew(verse: Desk, tmp_path: object) -> None:
    assert isinstance(verse.path.parent, type(tmp_path))
    asked = ["harbour", "hill OR index", '"grey sky"', "where is the goat and the tram today", "tag:city"]
    before = {text: verse.asked(text) for text in asked}
    scores = {text: [hit.score for hit in verse.search(text)] for text in asked}
    other = Desk(verse.path.with_name("anew.db"))
    for path, text in VERSE.items():
        other.put(path, "something else first")
        other.put(path, text, at=START + timedelta(seconds=1 + list(VERSE).index(path)))
    assert {text: other.asked(text) for text in asked} == before
    assert {text: [hit.score for hit in other.search(text)] for text in asked} == scores
    other.db.close()


def test_a_page_with_few_notes_that_hold_all_words_is_topped_up_with_those_that_hold_some(verse: Desk) -> None:
    hits = verse.search("grey sky gulls hill")
    assert not [hit for hit in hits if "relaxed" not in hit.why]
    hits = verse.search("harbour goats hill")
    assert next((hit.note.path, "relaxed" in hit.why) for hit in hits) == ("hill.md", False)
    assert {hit.note.path for hit in hits if "relaxed" in hit.why} == {"sea.md", "city/tram.md"}
    assert hits.relaxed
    assert hits.total == 3
    pages = [verse.search("harbour goats hill", limit=2, offset=at) for at in (0, 2)]
    assert [hit.note.path for page in pages for hit in page] == [hit.note.path for hit in hits]
    assert [page.total for page in pages] == [3, 3]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("text", ['"harbour goats"', "harbour AND goats AND tram", "tram lighthouse"])
def test_phrases_operators_and_two_words_are_never_topped_up(verse: Desk, text: str) -> None:
    assert all("relaxed" not in hit.why for hit in verse.search(text))


def test_a_text_pasted_as_a_query_finds_something_whatever_stands_in_it(verse: Desk) -> None:
    text = 'He said "nobody goes there" and did NOT OR WOULD never paint the lighthouse, nor any other tower'
    assert verse.found(text) == ["sea.md"]
