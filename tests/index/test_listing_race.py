"""Filters and list see one state of the index."""

from __future__ import annotations

import pytest
from tests.index.conftest import Desk

from commonplace.index import listing, search
from commonplace.index.index import Index
from commonplace.index.search import queries
from commonplace.query import Query
from commonplace.store.base import Stamp


@pytest.mark.parametrize("module", [listing, queries])
def test_a_note_of_a_new_scope_written_in_between_stays_hidden(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, module: object
) -> None:
    desk.put("a.md", "a heron", project="categories")
    other = Index(desk.path)
    real = listing.wanted

    def interrupted(*arguments: object, **more: bool) -> object:
        found = real(*arguments, **more)  # type: ignore[arg-type]
        with other.transaction():
            note = desk.note("b.md", "---\nscope: agent:eve\n---\na heron of eve\n", project="categories")
            other.put(note, Stamp(1, 1, 1))
        return found

    monkeypatch.setattr(module, "wanted", interrupted)
    query = Query(projects=("categories",))
    if module is listing:
        seen = [info.path for info in listing.listing(desk.db, query, viewer="bob")[0]]
    else:
        seen = [one.note.path for one in search.smart_search(desk.db, "heron", query, viewer="bob").best]
    other.close()
    assert seen == ["a.md"]
