from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.promise("000b-12.7")


@pytest.fixture
def shelf(face):
    face.put(
        "API.md",
        "---\ntitle: API Design\ntags: [api, web]\ntype: spec\nstatus: open\npriority: 3\nversion: 1.10\n"
        "date: 2025-03-01\n---\nThe interface uses tokens.\n\n- [decision] rotate tokens daily #security\n",
    )
    face.put(
        "notes/Search.md",
        "---\ntags: [web]\ntype: Spec\nstatus: done\npriority: 1\n---\n# Search\n\nFind notes with tokens.\n",
    )
    face.put("cook.md", "麻婆豆腐 needs 豆瓣酱 and tokens of love", "memories")
    return face


def titles(data):
    return [each["title"] for each in data["results"]]


def test_a_hit_carries_note_snippet_date_and_reason(shelf):
    reply = shelf.call("search_notes", query="rotate tokens")
    (hit,) = reply.data["results"]
    assert {
        "title",
        "permalink",
        "file_path",
        "project",
        "type",
        "changed",
        "score",
        "snippet",
        "tags",
        "date",
        "source",
        "why",
    } == set(hit)
    assert (hit["title"], hit["permalink"], hit["type"], hit["date"]) == (
        "API Design",
        "notes/api",
        "spec",
        "2025-03-01",
    )
    assert "rotate tokens daily" in hit["snippet"]
    assert len(hit["snippet"]) <= 200
    assert hit["tags"] == ["api", "web"]
    assert hit["why"]
    assert all(isinstance(each, str) for each in hit["why"])
    assert {k: v for k, v in reply.data.items() if k != "results"} == {
        "query": "rotate tokens",
        "total": 1,
        "page": 1,
        "page_size": 10,
        "more": False,
        "relaxed": False,
    }
    rows = reply.text.splitlines()
    assert rows[1] == "1. API Design (notes: notes/api), spec, 2025-03-01"
    assert "rotate tokens daily" in rows[2]


def test_the_date_is_the_written_time_without_an_event_time(shelf):
    shelf.put("dated.md", "---\ncreated_at: 2024-05-06T07:08:09Z\n---\nunusualword")
    (hit,) = shelf.data("search_notes", query="unusualword")["results"]
    assert hit["date"].startswith("2024-05-06T07:08:09")


def test_all_projects_are_searched_or_those_named(shelf):
    assert shelf.data("search_notes", query="tokens")["total"] == 3
    assert titles(shelf.data("search_notes", query="tokens", project="MEMORIES")) == ["cook"]
    assert shelf.data("search_notes", query="tokens", projects=["notes", "kv"])["total"] == 2
    assert shelf.data("search_notes", query="tokens project:memories")["total"] == 1
    assert shelf.data("search_notes", query="tokens project:memories", project="notes")["total"] == 0


def test_chinese_is_found_anywhere(shelf):
    for word in ("豆腐", "麻婆豆腐", "瓣酱"):
        assert titles(shelf.data("search_notes", query=word)) == ["cook"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"note_types": ["spec"]}, {"API Design", "Search"}),
        ({"note_types": "spec,idea", "status": "open"}, {"API Design"}),
        ({"tags": ["web"]}, {"API Design", "Search"}),
        ({"tags": ["web", "#security"]}, {"API Design"}),
        ({"categories": ["Decision"]}, {"API Design"}),
        ({"status": "done"}, {"Search"}),
        ({"metadata_filters": {"priority": 3}}, {"API Design"}),
        ({"metadata_filters": {"priority": {"$gte": 1}}}, {"API Design", "Search"}),
        ({"metadata_filters": {"priority": {"$between": [2, 4]}}}, {"API Design"}),
        ({"metadata_filters": {"status": {"$in": ["done", "x"]}}}, {"Search"}),
        ({"metadata_filters": '{"tags": "api"}'}, {"API Design"}),
        ({"after_date": "1d", "tags": ["web"]}, {"API Design", "Search"}),
    ],
)
def test_filters_alone_and_with_a_query(shelf, filters, found):
    assert set(titles(shelf.data("search_notes", **filters))) == found
    assert set(titles(shelf.data("search_notes", query="tokens", **filters))) == found
    assert shelf.data("search_notes", query="nowhere", **filters)["total"] == 0


def test_filters_in_the_call_and_in_the_text_both_hold(shelf):
    assert titles(shelf.data("search_notes", query="tokens tag:web", tags=["api"])) == ["API Design"]
    assert shelf.data("search_notes", query="type:spec", note_types=["idea"])["total"] == 0
    assert titles(shelf.data("search_notes", query="type:spec tokens", note_types=["spec", "idea"], status="open")) == [
        "API Design"
    ]


def test_after_date_counts_the_changed_time(shelf):
    os.utime(shelf.file("API.md"), (1_700_000_000, 1_700_000_000))
    assert titles(shelf.data("search_notes", query="tokens", project="notes", after_date="2024-01-01")) == ["Search"]
    assert shelf.data("search_notes", query="tokens", project="notes", after_date="2023-01-01")["total"] == 2


def test_without_query_the_newest_notes_that_pass(face):
    for n in range(3):
        face.put(f"{n}.md", f"---\ntags: [x]\n---\n# {n}\n\nbody of {n}\n")
        os.utime(face.file(f"{n}.md"), (1_700_000_000 + n, 1_700_000_000 + n))
    data = face.data("search_notes", tags=["x"], page_size=2)
    assert titles(data) == ["2", "1"]
    assert "body of 2" in data["results"][0]["snippet"]
    assert (data["total"], data["more"]) == (3, True)
    assert titles(face.data("search_notes", tags=["x"], page_size=2, page=2)) == ["0"]


def test_search_types(shelf):
    assert titles(shelf.data("search_notes", query="design", search_type="title")) == ["API Design"]
    assert shelf.data("search_notes", query="tokens", search_type="title")["total"] == 0
    assert titles(shelf.data("search_notes", query="notes/a*", search_type="permalink")) == ["API Design"]
    for kind in ("vector", "semantic", "hybrid"):
        assert shelf.data("search_notes", query="tokens", search_type=kind)["total"] == 3
    assert "`search_type`" in shelf.refused("search_notes", "invalid", query="x", search_type="fuzzy")


def test_a_relaxed_question_says_so(shelf):
    reply = shelf.call("search_notes", query="interface security elephants")
    assert reply.data["relaxed"] is True
    assert "relaxed" in reply.text
    assert "API Design" in titles(reply.data)


def test_nothing_found_is_said_with_what_to_try(shelf):
    text = shelf.text("search_notes", query="elephant")
    assert "0 notes" in text
    assert "list_directory" in text


def test_pages_follow_each_other_and_end(face):
    for n in range(5):
        face.put(f"{n}.md", "samewords here")
    pages = [face.data("search_notes", query="samewords", page=page, page_size=2) for page in (1, 2, 3, 4)]
    assert sorted(each["title"] for page in pages for each in page["results"]) == ["0", "1", "2", "3", "4"]
    assert [page["more"] for page in pages] == [True, True, False, False]
    assert {page["total"] for page in pages} == {5}
    text = face.text("search_notes", query="samewords", page=1, page_size=2)
    assert text.endswith("Shown: 1-2 of 5. Next: page=2, page_size=2.")
    assert face.data("search_notes", query="samewords", page_size=1000)["page_size"] == 100


def test_max_tokens_gives_fewer_or_shorter_hits(face):
    for n in range(5):
        face.put(f"{n}.md", f"samewords {n} " + f"filler-{n} " * 40)
    data = face.data("search_notes", query="samewords", max_tokens=60)
    assert 1 <= len(data["results"]) < 5
    assert sum(len(each["snippet"]) for each in data["results"]) <= 60 * 4


def test_within_max_tokens_nothing_is_said_twice(face):
    for n in range(3):
        face.put(f"{n}.md", "samewords stand here")
    face.put("other.md", "samewords stand elsewhere")
    shown = [each["snippet"] for each in face.data("search_notes", query="samewords", max_tokens=200)["results"]]
    assert sorted(shown) == ["", "", "samewords stand elsewhere", "samewords stand here"]
    everything = [each["snippet"] for each in face.data("search_notes", query="samewords")["results"]]
    assert len(everything) == 4
    assert "" not in everything


def test_a_part_of_a_word_is_not_said_before(face):
    face.put("party.md", "otherwords at the party")
    face.put("part.md", "otherwords at the part")
    shown = [each["snippet"] for each in face.data("search_notes", query="otherwords", max_tokens=200)["results"]]
    assert sorted(shown) == ["otherwords at the part", "otherwords at the party"]


def test_a_bad_filter_is_named(face):
    assert "`max_tokens`" in face.refused("search_notes", "invalid", query="x", max_tokens=0)
    assert "metadata_filters" in face.refused("search_notes", "invalid", metadata_filters={"a": {"$near": 1}})
    assert "`tags`" in face.refused("search_notes", "invalid", tags=[1])


def test_what_another_program_did_is_seen_by_the_next_call(face):
    file = face.put("A.md", "alpha")
    assert face.data("search_notes", query="alpha")["total"] == 1
    file.write_text("betatext")
    assert face.data("search_notes", query="alpha")["total"] == 0
    assert face.data("search_notes", query="betatext")["total"] == 1
    file.rename(file.with_name("B.md"))
    assert titles(face.data("search_notes", query="betatext")) == ["B"]
    file.with_name("B.md").unlink()
    assert face.data("search_notes", query="betatext")["total"] == 0
