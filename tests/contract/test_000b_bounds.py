"""Contract 000b, 12.13: replies stay short, and lead on to the rest, for 10,000 notes, 5,000
backlinks and 5 MB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from contract.note_tools import Tools, put
from contract.tables import tables
from memoranda.engine import open_session

TABLES = tables("note_bounds")

pytestmark = [pytest.mark.promise("000b-12.13"), pytest.mark.slow]

CROWD = 10_000
LINKS = 5_000
LINES = 25_000
FILLER = "and so on and so forth " * 7
LONG = "a name as long as people give to the notes of their meetings with everybody who came"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """A folder of 10,000 notes of which half link to one hub, and a note of 5 MB; only read."""
    root = tmp_path_factory.mktemp("crowd") / "home"
    for number in range(CROWD):
        if number < LINKS:
            link = "- part_of [[Hub]] (always)\n"
        else:
            link = ""
        put(
            root / f"notes/crowd/{number:05} {LONG if number % 10 == 0 else ''}.md",
            f"crowdword {number}\n{link}",
        )
    put(root / "notes/Hub.md", "# Hub\n\n- [fact] the middle\n")
    put(
        root / "notes/Big.md",
        "".join(f"- [fact] line {n} bigword #t{n % 7} [[Hub]] {FILLER}\n" for n in range(LINES)),
    )
    assert (root / "notes/Big.md").stat().st_size > 5_000_000
    with open_session(root, watch=True) as memory:
        yield Tools(memory)


CALLS = TABLES["calls"]


FORMS = [(*call, "text") for call in CALLS] + [(*call, "json") for call in CALLS[::3]]


@pytest.mark.parametrize(("tool", "arguments", "form"), FORMS, ids=lambda value: str(value)[:50])
def test_a_reply_is_bounded_in_text_and_in_data(
    crowd: Tools, tool: str, arguments: dict[str, Any], form: str
) -> None:
    # Checks the text's length
    reply = crowd.call(tool, **arguments, output_format=form)
    assert not reply.is_error
    assert len(reply.text) > 100
    assert len(json.dumps(reply.data, ensure_ascii=False)) <= 60_000
    if form == "json":
        assert json.loads(reply.text) == json.loads(json.dumps(reply.data))


def test_the_text_says_how_to_go_on(crowd: Tools) -> None:
    for tool, arguments in (CALLS[0], CALLS[2], CALLS[4], CALLS[7]):
        reply = crowd.call(tool, **arguments)
        assert reply.data["more"] is True
        assert (
            f"Next: page={reply.data['page'] + 1}, page_size={reply.data['page_size']}."
            in reply.text
        )


def test_a_hub_says_how_many_of_its_backlinks_it_leaves_out(crowd: Tools) -> None:
    (result,) = crowd("build_context", url="Hub", max_related=100)["results"]
    # The big note links too, once per type and target
    sources = LINKS + 1

    assert len(result["relations"]) + result["more_relations"] == sources
    assert len(result["related_results"]) > 20
    assert f"{result['more_relations']:,} more" in crowd.text(
        "build_context", url="Hub", max_related=100
    )
    edges = crowd.memory.incoming(("notes", "Hub.md"))
    assert len(edges) == sources


def test_a_note_that_exists_ten_thousand_times_gives_a_short_error(tools: Tools) -> None:
    for number in range(300):
        tools.put(f"{number}/{LONG}.md", "x")
    text = tools.refused("read_note", "ambiguous", identifier=LONG)

    assert '" names 300 notes: ' in text
    assert len(text) < 3_000
    reply = tools.call("read_note", identifier=LONG)
    assert len(reply.data["candidates"]) == 10
