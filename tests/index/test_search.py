"""Search, sentence by sentence: contract 000b, section 6."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from index.conftest import START, Desk
from memoranda.index.search import queries

# Words of a phrase that SQLite gets, at most: those of a piece of 400 characters, without signs.
LONGEST_PHRASE = 200
VERSE = {
    "sea.md": "# The sea\n\nThe harbour sleeps under a grey sky, and gulls circle the lighthouse.",
    "hill.md": "Goats graze on the hill above the harbour wall.\n- [fact] goats like salt #animals",
    "city/tram.md": "---\ntags: [transport, City]\n---\nThe tram climbs the hill; its indexing system is old.",
    "city/map.md": "---\naliases: [Plan of the town]\n---\nAn index of streets. See [[sea]].",
}


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
SPELLED = {
    "k8s.md": "The kubernetes deployment is green.",
    "post.md": "We received a parcel.",
    "hen.md": "Hens lay eggs.",
}
FOUND: dict[str, tuple[dict[str, str], dict[str, list[str]]]] = {
    "a word weighs most in the title": (
        {
            "a.md": "lantern lantern lantern " + "filler words " * 40,
            "lantern.md": "Nothing about it here.",
        },
        {"lantern": ["lantern.md", "a.md"]},
    ),
    "a word weighs more in a heading than in a sentence": (
        {
            "b.md": "## lantern\n\nmore text follows here\n",
            "a.md": "the lantern\n\nmore text follows here\n",
        },
        {"lantern": ["b.md", "a.md"]},
    ),
    "words match as prefixes, and whole words rank first, however many the others are": (
        {**VERSE, "many.md": "indexes indexed indexing indexer " * 20},
        {
            "index": ["city/map.md", "many.md", "city/tram.md"],
            "indexi": ["many.md", "city/tram.md"],
        },
    ),
    "very short words match whole words, unless there are none": (
        {"a.md": "we use go here", "b.md": "the goat is golden", "c.md": "quartz"},
        {"go": ["a.md"], "qu": ["c.md"]},
    ),
    "`NOT` alone finds long notes too": (
        {"long.md": "some words that repeat themselves\n\n" * 600},
        {"NOT harbour": ["long.md"]},
    ),
    "a possessive is no beginning": ({"a.md": "the clientele sends it"}, {"client's": []}),
    "a possessive is found where it stands, then its word": (
        {"a.md": "the client sends it", "b.md": "the client's book"},
        {"client's": ["b.md", "a.md"], "client’s": ["b.md", "a.md"]},
    ),
    "Latin glued to Chinese is found by itself": (
        {"zh.md": "用户偏好深色模式，重跑qx7z后再部署。"},
        {
            **{text: ["zh.md"] for text in ("qx7z", "重跑qx7z后", "跑qx7z", "qx7z后", "QX7")},
            "跑qx8": [],
        },
    ),
    "a star leaves out what begins with the word": (
        VERSE,
        {
            "harbour OR hill NOT ind": ["hill.md", "city/tram.md", "sea.md"],
            "harbour OR hill NOT ind*": ["hill.md", "sea.md"],
        },
    ),
    "a sign before a word behind a quoted one begins no prefix": (
        {"a.md": "project starboard", "b.md": "project, and android nothing organ"},
        {
            text: ["a.md"]
            for text in ('"project" *star', "project *starboard", '"project" NOT *nothing')
        },
    ),
    "a path is found with and without its project": (
        VERSE,
        {
            text: ["city/tram.md"]
            for text in ("city/tram", "notes/city/tram", "city/tram.md", '"city/tram.md"')
        },
    ),
    "a text pasted as a query finds something, whatever stands in it": (
        VERSE,
        {
            'He said "nobody goes there" and did NOT OR WOULD never paint the lighthouse, nor any other tower': [
                "sea.md"
            ],
        },
    ),
    "two words no note holds together are relaxed, not with an operator": (
        SHORT_QUESTIONS,
        {
            "can plumber": ["bob.md"],
            "plumber zebra": ["bob.md"],
            "is plumber zebra NOT x": [],
            "plumber AND zebra": [],
            '"plumber" zebra': [],
            "zebra": [],
        },
    ),
    "what is short, quoted or an operator is not spelled otherwise": (
        SPELLED,
        {
            text: []
            for text in (
                "henz",
                '"kuberntes"',
                "kuberntes OR zebra",
                "kuberntes NOT green",
                "egzs",
                "xkubernetes",
            )
        },
    ),
    "words of a long text are not spelled otherwise": (
        {"a.md": "We painted the canoe."},
        {
            "What about the canoo?": ["a.md"],
            f"What about the canoo {' '.join(f'filler{number}' for number in range(40))}?": [],
        },
    ),
    "a word some note holds is looked for as it is": (
        {**SPELLED, "typo.md": "He wrote kuberntes again."},
        {"kuberntes": ["typo.md"], "kuberntes green": ["typo.md", "k8s.md"]},
    ),
    "a question finds other forms of a word, and longer words": (
        {"a.md": "She bought a bicycle.", "b.md": "The violinist stands in the corner."},
        {"who will buy something today?": ["a.md"], "whose violin is that?": ["b.md"]},
    ),
    "a word of a question that no note holds is taken for one an edit away": (
        {"a.md": "The zeppelin flew over the lake."},
        {
            f"which {word} was it?": ["a.md"]
            for word in ("zepelin", "zeppelni", "zeppelins", "zappelin")
        },
    ),
    "a word of a question that notes hold is not taken for another": (
        {"a.md": "The canoe is red.", "b.md": "The canon is loud."},
        {"where is the canon now?": ["b.md"]},
    ),
    "a question of stop words is asked as words": (
        {"a.md": "to be or not to be"},
        {"is it to be or not to be": [], "to be or not to be?": ["a.md"]},
    ),
    "a word of a script SQLite cannot part is no error": (
        {"a.md": "plain words here"},
        {"what is a\U0001e900b of plain words?": ["a.md"]},
    ),
    "a question with a phrase nobody holds is asked by its words": (
        {"a.md": "Ada told of the red canoe."},
        {'Who told of the "canoe made of gold"?': ["a.md"], '"canoe made of gold"': []},
    ),
}


@pytest.mark.parametrize(("notes", "expected"), FOUND.values(), ids=FOUND)
def test_what_is_found_and_in_which_order(
    desk: Desk, notes: dict[str, str], expected: dict[str, list[str]]
) -> None:
    desk.put_all(notes)
    assert {text: desk.found(text) for text in expected} == expected


@pytest.fixture
def verse(desk: Desk) -> Desk:
    desk.put_all(VERSE)
    return desk


@pytest.mark.parametrize(
    "text", ["OR", "AND", "NOT", "gulls OR", "OR gulls", "gulls AND", "gulls NOT", "OR OR OR"]
)
def test_a_lone_operator_is_text(verse: Desk, text: str) -> None:
    word = {"OR": "or", "AND": "and", "NOT": "not"}
    contents = [word.get(part, part) for part in text.split()]
    hits = verse.search(text)
    assert hits.relaxed == (text in ("gulls OR", "OR gulls", "gulls NOT"))
    for hit in () if hits.relaxed else hits:
        content = VERSE[hit.note.path].lower() + hit.note.title.lower()
        for part in contents:
            assert part in content


def test_no_hit_for_three_bare_words_is_asked_again_with_or(verse: Desk) -> None:
    hits = verse.search("where do the goats drive a tram to")
    assert hits.relaxed
    paths = {hit.note.path for hit in hits}
    assert paths == {"hill.md", "city/tram.md"}
    for hit in hits:
        assert "relaxed" in hit.why
    assert verse.search("goats tram").relaxed
    assert not verse.search('"goats" zebra tram').relaxed
    assert not verse.search("goats zebra NOT tram").relaxed
    assert not verse.search("goats graze").relaxed


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("梁宝生是谁?", "liang.md"),
        ("会议几点?", "meeting.md"),
        ("谁会弹钢琴？", "piano.md"),
        ("Bob 住哪", "home.md"),
        ("猫几岁?", "cat.md"),
        ("誰がピアノを弾けますか", "ja.md"),
        ("ピアノは誰？", "ja.md"),
        ("who is Bob?", "bob.md"),
        ("Plumbber?", "bob.md"),
    ],
)
def test_a_question_is_asked_relaxed_however_short_it_is(desk: Desk, text: str, path: str) -> None:
    desk.put_all(SHORT_QUESTIONS)
    hits = desk.search(text)
    assert hits[0].note.path == path
    assert hits.relaxed


def test_a_short_question_that_stands_in_a_note_as_it_is_finds_that(desk: Desk) -> None:
    desk.put_all(SHORT_QUESTIONS)
    desk.put("faq.md", "常见问题：会议几点开始。")
    hits = desk.search("会议几点")
    assert [hit.note.path for hit in hits] == ["faq.md"]
    assert not hits.relaxed


@pytest.mark.parametrize(
    ("text", "path", "spelled"),
    [
        ("kuberntes", "k8s.md", "kubernetes"),
        ("kuberntes deployment", "k8s.md", "kubernetes"),
        ("Deploymnt kubernetes", "k8s.md", "deployment"),
        ("recieve", "post.md", "receive"),
        ("recieved parcl", "post.md", "received, parcel"),
        ("kubernetess", "k8s.md", "kubernetes"),
    ],
)
def test_one_or_two_words_that_find_nothing_are_asked_again_as_they_are_spelled(
    desk: Desk, text: str, path: str, spelled: str
) -> None:
    desk.put_all(SPELLED)
    hits = desk.search(text)
    (hit,) = hits

    assert hit.note.path == path
    assert f"spelled: {spelled}" in hit.why
    assert hits.relaxed


def test_spelling_shows_nobody_the_words_of_others(desk: Desk) -> None:
    desk.put("secret.md", "---\nscope: agent:ada\n---\nThe kubernetes cluster.")
    desk.put("typo.md", "---\nscope: agent:ada\n---\nThe receeving end.")
    desk.put("open.md", "The receiving end.")

    assert desk.found("kuberntes", viewer="bob") == []
    assert desk.found("kuberntes", viewer="ada") == ["secret.md"]
    assert desk.found("receeving", viewer="bob") == ["open.md"]
    assert desk.found("receeving", viewer="ada") == ["typo.md"]


def test_a_word_of_very_many_notes_keeps_an_exact_total_and_whole_pages(desk: Desk) -> None:
    desk.put_all({f"{number:04}.md": f"common word {number}" for number in range(2_600)})
    desk.put("Common.md", "a title only")
    desk.put_all({f"later{number}.md": "common again" for number in range(60)})
    hits = desk.search("common", limit=10)
    assert hits.total == 2_661
    assert hits[0].note.path == "Common.md"
    pages = []
    for offset in range(0, 2_700, 300):
        pages.extend(desk.found("common", limit=300, offset=offset))
    assert len(pages) == 2_661
    assert len(set(pages)) == 2_661
    assert desk.search("commo").total == 2_661
    assert desk.found("common 1234") == ["1234.md"]
    assert desk.search("common word").total == 2_600


@pytest.mark.slow
def test_of_very_many_matches_the_total_is_a_lower_bound_and_no_page_is_missing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.put_all({f"{number}.md": f"common word {number}" for number in range(1_700)})
    monkeypatch.setattr(queries, "MAX_COUNTED", 1_600)
    filters: tuple[dict[str, Any], ...] = ({}, {"after": START}, {"metadata": {"type": "note"}})
    for text in (
        "common",
        "commo",
        '"common word"',
        "common OR again",
        "what do we know about common?",
    ):
        for some in filters if text == "common" else filters[:1]:
            paths = []
            for offset, total in (
                (0, 1_600),
                (400, 1_600),
                (800, 1_600),
                (1_200, 1_600),
                (1_600, 1_700),
            ):
                page = desk.search(text, limit=400, offset=offset, **some)
                assert (page.total, page.is_lower_bound) == (total, offset < 1_600)
                paths += [hit.note.path for hit in page]
            assert len(paths) == len(set(paths)) == 1_700
            page = desk.search(text, limit=10, offset=1_650, **some)
            assert (page.total, page.is_lower_bound) == (1_660, True)


def test_words_of_a_prefix_find_what_the_prefix_finds(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [
        "mar",
        "march",
        "Märchen",
        "marsh",
        "mark2",
        "market",
        "summary",
        "ma",
        "mas",
        "mar-tin",
        "mar\u4e2d",
    ]
    desk.put_all(
        {f"{at}.md": f"{word} {'more' if at % 2 else 'less'}" for at, word in enumerate(words)}
    )
    texts = ("mar", "MAR", "mark", "less mar", "mar NOT more", '"less" mar mor', "marz")

    def results() -> list[list[tuple[str, Any]]]:
        results_of_texts = []
        for query_text in texts:
            hits = desk.search(query_text)
            results_of_texts.append([(hit.note.path, hit.why) for hit in hits])
        return results_of_texts

    before = results()
    assert all(before[:3])
    for name, value in (("_MIN_SIZE_TO_EXPAND", 0), ("_MAX_LONGER_WORDS", 1)):
        monkeypatch.setattr(queries, name, value)
        desk.db.held.clear()  # type: ignore[attr-defined]
        assert results() == before


def test_reasons_say_where_the_words_were_found(verse: Desk) -> None:
    reason = verse.search("sea")[0].why[0]
    assert reason == "title: sea"
    why = verse.search("harbour gulls")[0].why
    assert "words: harbour, gulls" in why
    why = verse.search("harbou")[0].why
    assert "prefix" in why
    why = verse.search("hill city")[0].why
    assert "title: city" in why, "a tag is a name too"
    assert any(reason.startswith("words ") for reason in verse.search("sea", explain=True)[0].why)
    for reason in verse.search("sea")[0].why:
        assert not reason.startswith("words ")


def test_search_of_titles_finds_nothing_by_other_words(verse: Desk) -> None:
    assert verse.found("tram", search_type="title") == ["city/tram.md"]
    assert verse.found("hill", search_type="title") == ["hill.md"]
    assert verse.found("town", search_type="title") == ["city/map.md"]
    assert verse.found("harbour", search_type="title") == []
    assert set(verse.found("NOT hill", search_type="title")) == {
        "sea.md",
        "city/tram.md",
        "city/map.md",
    }
    assert verse.found("transport", search_type="title") == []


def test_every_query_type_answers_the_same_after_the_index_is_made_anew(
    verse: Desk, tmp_path: object
) -> None:
    assert isinstance(verse.path.parent, type(tmp_path))
    query_texts = [
        "harbour",
        "hill OR index",
        '"grey sky"',
        "where is the goat and the tram today",
        "tag:city",
    ]
    before = {text: verse.asked(text) for text in query_texts}
    scores = {}
    for query_text in query_texts:
        scores[query_text] = [hit.score for hit in verse.search(query_text)]
    other_desk = Desk(verse.path.with_name("anew.db"))
    for path, text in VERSE.items():
        other_desk.put(path, "something else first")
        other_desk.put(path, text, at=START + timedelta(seconds=1 + list(VERSE).index(path)))
    assert {text: other_desk.asked(text) for text in query_texts} == before
    for query_text in query_texts:
        scores_there = [hit.score for hit in other_desk.search(query_text)]
        assert scores_there == scores[query_text]
    other_desk.db.close()


def test_a_page_with_few_notes_that_hold_all_words_is_topped_up_with_those_that_hold_some(
    verse: Desk,
) -> None:
    hits = verse.search("grey sky gulls hill")
    assert not [hit for hit in hits if "relaxed" not in hit.why]
    hits = verse.search("harbour goats hill")
    assert next((hit.note.path, "relaxed" in hit.why) for hit in hits) == ("hill.md", False)
    paths = {hit.note.path for hit in hits if "relaxed" in hit.why}
    assert paths == {"sea.md", "city/tram.md"}
    assert hits.relaxed
    assert hits.total == 3
    pages = [verse.search("harbour goats hill", limit=2, offset=at) for at in (0, 2)]
    paths = [hit.note.path for hit in hits]
    page_paths = []
    for page in pages:
        page_paths += [hit.note.path for hit in page]
    assert page_paths == paths
    totals = [page.total for page in pages]
    assert totals == [3, 3]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("text", ['"harbour goats"', "harbour AND goats AND tram", "harbour goats"])
def test_phrases_operators_and_two_words_are_never_topped_up(verse: Desk, text: str) -> None:
    assert all("relaxed" not in hit.why for hit in verse.search(text))


@pytest.mark.parametrize("piece", ["记忆", "a/", "😀", "ab-"])
def test_a_very_long_query_is_looked_for_as_its_first_words(desk: Desk, piece: str) -> None:
    desk.put("long.md", piece * 3_000)
    statements: list[str] = []
    desk.db.set_trace_callback(statements.append)
    hits = desk.search(piece * 1_500)
    desk.db.set_trace_callback(None)
    phrases = [phrase for statement in statements for phrase in re.findall(r'"([^"]*)"', statement)]
    longest = max(len(phrase.split()) for phrase in phrases)
    assert [hit.note.path for hit in hits] == ["long.md"]
    assert 1 < longest <= LONGEST_PHRASE


def test_a_number_and_a_chinese_year_need_no_sign_between_them(desk: Desk) -> None:
    filler = "The harbour sleeps under a grey sky. " * 200
    desk.put("long.md", f"{filler}\n\n型号A1二〇二四在这里。")
    (hit,) = desk.search("A1二〇二四")
    assert "二〇二四" in hit.passage
