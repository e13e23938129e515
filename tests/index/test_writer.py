"""Putting notes in and taking them out leaves nothing behind and nothing twice."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.conftest import Desk
from memoranda.index import writer
from memoranda.sources.base import NO_STAMP, Stamp
from memoranda.text.remembered import remembering

LONG = "\n\n".join(f"Paragraph {number} of a long text 深色模式 café." for number in range(900))
TEXTS = [
    "",
    "plain",
    "---\ntitle: T\ntags: [a, b]\nstatus: draft\n---\n- [fact] x #y (z)\n- uses [[b]]\n",
    LONG,
    "---\n: broken: [\n---\n[[x]]",
    "# 深色模式\n\n- [事实] 内容 #标签\n",
    "---\nmerged: [one, two]\n---\nm",
    '---\ntitle: "\\ud800"\n---\n',
    "\ufeff---\ntitle: bom\n---\nbody",
    "a\r\nb\r\n",
    "x" * 40_000,
    "---\naliases: [b, c]\npermalink: own/link\n---\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_put_is_taken_out_again_without_a_trace(desk: Desk, text: str) -> None:
    desk.put("a.md", text)
    desk.check()
    desk.put("a.md", "something else")
    desk.check()
    desk.put("a.md", text)
    desk.check()
    assert desk.remove("a.md")
    assert not desk.remove("a.md")
    desk.holds_nothing()


def test_notes_put_together_are_what_they_are_one_by_one(desk: Desk) -> None:
    rng = random.Random(5)
    one_by_one = Desk(desk.path.with_name("one-by-one.db"))
    paths = ["a.md", "A.md", "a/b.md", "a b.md", "a-b.md", "A B.md", "深.md", "a-b-1.md", "a 1.md"]
    texts = [*TEXTS, "---\npermalink: notes/a-b\n---\n", "---\npermalink: notes/a-1\n---\n"]
    for _ in range(120):
        batch = {path: rng.choice(texts) for path in rng.sample(paths, rng.randint(1, len(paths)))}
        desk.put_together(batch)
        for path, text in batch.items():
            one_by_one.put(path, text)
        if rng.random() < 0.5:
            path = rng.choice(paths)
            assert desk.remove(path) == one_by_one.remove(path)
        assert desk.permalinks() == one_by_one.permalinks()
        desk.check()
    keys = "select fold, path from note_fold join note on row = note order by 1, 2"
    rows = desk.db.execute(keys).fetchall()
    assert rows == one_by_one.db.execute(keys).fetchall()
    for text in ("深色", "caf", "b", "x OR plain", "notes/a"):
        assert sorted(desk.found(text)) == sorted(one_by_one.found(text))


def test_what_was_foreseen_is_not_computed_again_when_a_note_is_replaced(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "---\ntags: [a]\n---\n" + LONG
    desk.put("a.md", text)
    counts = dict.fromkeys(("property_text", "keys_of"), 0)
    for name in counts:
        function = getattr(writer, name)

        def counted(*args: Any, name: str = name, function: Any = function) -> Any:
            counts[name] += 1
            return function(*args)

        monkeypatch.setattr(writer, name, counted)
    with remembering():
        note = desk.note("a.md", "new")
        prepared = writer.prepare(note, NO_STAMP, 1, note.permalink)
        old = desk.index.indexed("notes", "a.md")
        assert old is not None
        writer.foresee_removal("notes", old)
        foreseen = dict(counts)
        with desk.index.transaction():
            desk.index.put_all([(note, Stamp(3, 1, 2))], {("notes", "a.md"): prepared})
    assert counts == {"property_text": 2, "keys_of": 2}
    assert foreseen == {"property_text": 2, "keys_of": 2}
    desk.check()


def test_any_history_of_changes_leaves_what_the_last_state_would(desk: Desk) -> None:
    rng = random.Random(11)
    now: dict[str, str] = {}
    for _ in range(300):
        path = rng.choice(["a.md", "A.md", "a/b.md", "a b.md", "a-b.md", "A B.md", "深.md", "x.md"])
        if rng.random() < 0.3:
            assert desk.remove(path) == (now.pop(path, None) is not None)
        else:
            now[path] = rng.choice(TEXTS)
            desk.put(path, now[path])
    desk.check()
    anew = Desk(desk.path.with_name("anew.db"))
    for path in sorted(now, key=lambda path_of_row: desk.get(path_of_row).row):
        anew.put(path, now[path])
    assert anew.permalinks() == desk.permalinks()
    keys = "select fold, path from note_fold join note on row = note order by 1, 2"
    rows = anew.db.execute(keys).fetchall()
    assert rows == desk.db.execute(keys).fetchall()
    for text in ("深色", "caf", "b", "x OR plain", "notes/a"):
        assert set(anew.found(text)) == set(desk.found(text)), text
    for path in list(now):
        assert desk.remove(path)
    desk.holds_nothing()
    anew.db.close()


def test_a_forgotten_project_leaves_nothing_and_others_stay(desk: Desk) -> None:
    desk.put_all(
        {f"{number}.md": TEXTS[number % len(TEXTS)] for number in range(30)}, project="vault"
    )
    desk.put("a.md", "kept")
    with desk.index.transaction():
        desk.index.forget_project("vault")
        desk.index.forget_project("vault")
    desk.check()
    assert desk.index.notes.projects() == ["notes"]
    assert desk.found("kept") == ["a.md"]
    desk.remove("a.md")
    desk.holds_nothing()


def test_a_note_comes_back_with_everything_it_says(desk: Desk) -> None:
    text = (
        "---\nid: ab12\ntitle: A title\ntype: Spec Sheet\ntags: [x, y]\naliases: [z]\n"
        "created_at: 2026-01-02T03:04:05.000678Z\n"
        "date: 2025-12-24\nscope: agent:ada\nsource: mail\nlocked: true\nversion_name: 1.10\nodd: 'no'\n---\n"
        "- [fact] seen #t (c)\n"
    )
    desk.put("a/b.md", text)
    info = desk.get("a/b.md")
    assert (info.id, info.title, info.type, info.permalink) == (
        "ab12",
        "A title",
        "Spec Sheet",
        "notes/a/b",
    )
    facts = ("2026-01-02T03:04:05.000678Z", "2025-12-24", "agent:ada", "mail")
    assert (info.created, info.date, info.scope, info.source) == facts
    assert (info.tags, info.aliases, info.locked, len(info.etag)) == (("x", "y"), ("z",), True, 64)
    assert (info.header["version_name"], info.header["odd"], next(iter(info.header))) == (
        "1.10",
        "no",
        "id",
    )
    assert [
        (o.category, o.content, o.tags, o.context, o.line)
        for o in desk.index.notes.observations(info)
    ] == [("fact", "seen #t", ("t",), "c", 15)]
    assert "".join(desk.index.notes.text_of(info.row)) == text
    assert info.checksum == info.etag[:8]


PATHS = ["a.md", "A.md", "a-1.md", "A 1.md", "a-1-1.md", "a-2.md", "a-10.md", "A-10.md"]


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(PATHS), st.sampled_from(["put", "own a", "own a-1", "remove"])),
        max_size=14,
    )
)
def test_permalinks_depend_on_the_notes_not_on_the_order_they_came(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("permalinks")
    desk = Desk(folder / "a.db")
    anew = Desk(folder / "b.db")
    now: dict[str, str] = {}
    for path, step in steps:
        if step == "remove":
            desk.remove(path)
            now.pop(path, None)
        else:
            now[path] = f"---\npermalink: notes/{step[4:]}\n---\n" if step.startswith("own") else ""
            desk.put(path, now[path])
    for path in sorted(now, reverse=True):
        anew.put(path, now[path])
    assert desk.permalinks() == anew.permalinks()
    derived = [permalink for path, permalink in desk.permalinks().items() if not now[path]]
    assert len(set(derived)) == len(derived)
    desk.check()
    for open_desk in (desk, anew):
        open_desk.db.close()
