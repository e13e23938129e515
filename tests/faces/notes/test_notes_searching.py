from __future__ import annotations

import pytest

from memoranda.index.search import queries

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


def test_a_hit_carries_note_snippet_date_and_reason(shelf):
    reply = shelf.call("search_notes", query="rotate tokens")
    (hit,) = reply.data["results"]
    keys = (
        "title permalink file_path project type changed score snippet tags date source why by trust"
    )
    assert set(hit) == {*keys.split()}
    facts_of_hit = hit["title"], hit["permalink"], hit["type"], hit["date"]
    assert facts_of_hit == ("API Design", "notes/api", "spec", "2025-03-01")
    assert "rotate tokens daily" in hit["snippet"]
    assert len(hit["snippet"]) <= 200
    assert hit["tags"] == ["api", "web"]
    assert hit["why"]
    for reason in hit["why"]:
        assert isinstance(reason, str)
    del reply.data["results"]
    page = {"total": 1, "page": 1, "page_size": 10, "more": False}
    assert reply.data == {"query": "rotate tokens", **page, "relaxed": False}
    rows = reply.text.splitlines()
    assert rows[1] == "1. API Design (notes: notes/api), spec, 2025-03-01"
    assert "rotate tokens daily" in rows[2]


def test_the_date_is_the_written_time_without_an_event_time(shelf):
    shelf.put("dated.md", "---\ncreated_at: 2024-05-06T07:08:09Z\n---\nunusualword")
    (hit,) = shelf("search_notes", query="unusualword")["results"]
    assert hit["date"].startswith("2024-05-06T07:08:09")


def test_nothing_found_is_said_with_what_to_try(shelf):
    text = shelf.text("search_notes", query="elephant")
    assert "0 notes" in text
    assert "list_directory" in text


def test_max_tokens_gives_fewer_or_shorter_hits(face):
    for n in range(5):
        face.put(f"{n}.md", f"samewords {n} " + f"filler-{n} " * 40)
    data = face("search_notes", query="samewords", max_tokens=60)

    assert 1 <= len(data["results"]) < 5
    assert sum(len(result["snippet"]) for result in data["results"]) <= 60 * 4


def test_within_max_tokens_nothing_is_said_twice(face):
    for n in range(3):
        face.put(f"{n}.md", "samewords stand here")
    face.put("other.md", "samewords stand elsewhere")
    snippets = [
        result["snippet"]
        for result in face("search_notes", query="samewords", max_tokens=200)["results"]
    ]
    assert sorted(snippets) == ["", "", "samewords stand elsewhere", "samewords stand here"]
    everything = [
        result["snippet"] for result in face("search_notes", query="samewords")["results"]
    ]
    assert len(everything) == 4
    assert "" not in everything


def test_a_part_of_a_word_is_not_said_before(face):
    face.put("party.md", "otherwords at the party")
    face.put("part.md", "otherwords at the part")
    snippets = [
        result["snippet"]
        for result in face("search_notes", query="otherwords", max_tokens=200)["results"]
    ]
    assert sorted(snippets) == ["otherwords at the part", "otherwords at the party"]


def test_a_word_that_was_mended_is_named(face):
    face.write("Plan", "the zebrawood shelf")
    text = face.text("search_notes", query="zebrawoot")
    assert '1 note for "zebrawoot" (not as written; spelled: zebrawood)' in text


def test_of_more_matches_than_are_counted_the_reply_says_so_and_the_pages_go_on(face, monkeypatch):
    for number in range(8):
        face.put(f"{number}.md", "the same words")
    monkeypatch.setattr(queries, "MAX_COUNTED", 5)
    reply = face.call("search_notes", query="same words", page_size=3)
    assert reply.text.startswith('# 5 or more notes for "same words"\n')
    assert reply.text.endswith("\nShown: 1-3 of 5 or more. Next: page=2, page_size=3.")
    permalinks = []
    for number, total in ((1, 5), (2, 6), (3, 8)):
        data = face("search_notes", query="same words", page_size=3, page=number)
        assert (data["total"], data.get("total_is_lower_bound"), data["more"]) == (
            (8, None, False) if number == 3 else (total, True, True)
        )
        permalinks += [result["permalink"] for result in data["results"]]
    assert len(set(permalinks)) == 8
