from __future__ import annotations

import os

import pytest


@pytest.fixture
def web(face):
    face.put(
        "Hub.md",
        "# Hub\n\n- [fact] in the middle #core (always)\n- [idea] grow\n- part_of [[Whole]] (for now)\n"
        "- see [[Missing]]\n- see [[Twin]]\n",
    )
    face.put("Whole.md", "- contains [[Far]]\n")
    face.put("Far.md", "far away\n")
    face.put("Leaf.md", "- implements [[Hub]] (badly)\n")
    face.put("a/Twin.md", "x")
    face.put("b/Twin.md", "x")
    return face


def test_a_note_is_shown_with_what_it_says_and_what_surrounds_it(web):
    reply = web.call("build_context", url="memory://notes/hub")
    (result,) = reply.data["results"]
    keys = {
        "primary_result",
        "content",
        "truncated",
        "observations",
        "relations",
        "related_results",
    }
    assert set(result) == keys
    assert result["primary_result"]["permalink"] == "notes/hub"
    assert result["observations"] == [
        {
            "category": "fact",
            "content": "in the middle #core",
            "tags": ["core"],
            "context": "always",
        },
        {"category": "idea", "content": "grow", "tags": [], "context": None},
    ]
    keys = ("type", "direction", "target", "permalink", "state", "context")
    assert result["relations"] == [
        dict(zip(keys, values, strict=True))
        for values in (
            ("part_of", "out", "Whole", "notes/whole", "resolved", "for now"),
            ("see", "out", "Missing", None, "unwritten", None),
            ("see", "out", "Twin", None, "ambiguous", None),
            ("implements", "in", "Leaf", "notes/leaf", "resolved", "badly"),
        )
    ]
    assert {
        (near_note["title"], near_note["depth"]) for near_note in result["related_results"]
    } == {
        ("Whole", 1),
        ("Leaf", 1),
    }
    del reply.data["results"]
    assert reply.data == {"total": 1, "page": 1, "page_size": 10, "more": False}
    for part in (
        "# Hub (notes: notes/hub)",
        "- [fact] in the middle #core (always)",
        "- part_of [[Whole]] (for now)",
        "- see [[Missing]] (not written yet)",
        "- see [[Twin]] (ambiguous)",
        "Leaf (notes: notes/leaf)",
    ):
        assert part in reply.text


def test_depth_reaches_further_nearest_first(web):
    (result,) = web("build_context", url="Hub", depth=2)["results"]
    near_notes = [
        (near_note["title"], near_note["depth"], near_note["via"])
        for near_note in result["related_results"]
    ]

    assert near_notes[-1] == ("Far", 2, "contains")
    assert {near_note[0] for near_note in near_notes[:2]} == {"Whole", "Leaf"}
    total = web("build_context", url="Hub", depth=99)["total"]
    assert total == 1


def test_max_related_bounds_the_related_notes(web):
    (result,) = web("build_context", url="Hub", depth=3, max_related=1)["results"]
    assert len(result["related_results"]) == 1
    (result,) = web("build_context", url="Hub", max_related=0)["results"]
    assert result["related_results"] == []


def test_a_time_frame_limits_only_the_related_notes(web):
    for name in ("Hub", "Leaf"):
        os.utime(web.file(f"{name}.md"), (1_700_000_000, 1_700_000_000))
    (result,) = web("build_context", url="Hub", timeframe="1d")["results"]
    titles = [near_note["title"] for near_note in result["related_results"]]
    assert titles == ["Whole"]
    assert len(result["relations"]) == 4
    (result,) = web("build_context", url="Hub")["results"]
    assert len(result["related_results"]) == 2


def test_a_star_that_matches_nothing_is_empty(web):
    reply = web.call("build_context", url="memory://nothing/*")
    assert not reply.is_error
    assert (reply.data["results"], reply.data["total"]) == ([], 0)
    assert "search_notes" in reply.text


def test_a_note_by_title_in_a_project(web):
    web.put("user/Hub.md", "other", "memories")
    (result,) = web("build_context", url="Hub", project="memories")["results"]
    assert result["primary_result"]["project"] == "memories"


def test_a_relation_of_several_words_is_shown_as_it_is_written(face):
    face.put("A.md", '- "was inspired by" [[B]]')
    assert '- "was inspired by" [[B]] (not written yet)' in face.text("build_context", url="A")


@pytest.mark.parametrize(
    ("task", "passage"),
    [
        ("Upgrade the billing service to a newer Postgres", "Billing stays on Postgres 14."),
        ("把深色模式加到设置页面", "用户喜欢深色模式。"),
        ("What about Postgres?", "Billing stays on Postgres 14."),
        ("深色模式？", "用户喜欢深色模式。"),
    ],
)
def test_a_task_in_place_of_an_address_gets_the_passages_about_it(face, task, passage):
    face.put("Billing.md", "Billing stays on Postgres 14.\n")
    face.put("Modes.md", "用户喜欢深色模式。\n")
    face.put("Tea.md", "Tea is at four.\n")

    reply = face.call("build_context", url=task)

    first_lines = f'No note is called "{task}". The notes have about it:\n\n'
    assert reply.text.startswith(first_lines)
    assert passage in reply.data["context"]
    assert "Tea is at four." not in reply.text
    assert reply.data["results"] == []


@pytest.mark.parametrize(
    "url",
    [
        "Postgres of Billing",
        "memory://notes/upgrade billing to newer postgres",
        "notes/Upgrade billing to newer Postgres",
        "Upgrade billing to newer Postgres.md",
        "upgrade-billing-to-newer-postgres",
        "Replace magnets inside the nuclear reactor core",
        "What about magnets?",
        "notes/What about Postgres?",
        "Postgres?",
    ],
)
def test_a_name_an_address_and_a_task_that_no_note_is_about_are_not_found(face, url):
    face.put("Billing.md", "Billing stays on Postgres 14.\n")
    assert "Note not found" in face.refused("build_context", "not_found", url=url)


def test_a_task_that_is_the_title_of_a_note_gets_this_note(face):
    title = "Upgrade the billing service to Postgres"
    face.put(f"{title}.md", "Not before May.\n")
    face.put("Billing.md", "Billing stays on Postgres 14.\n")
    (result,) = face.call("build_context", url=title).data["results"]
    assert result["primary_result"]["title"] == title
