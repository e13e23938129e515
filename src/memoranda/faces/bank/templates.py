"""Lists of notes without the files of a new bank that nobody has changed yet.

A bank begins with files that have headings and no facts. They are newer than everything a person
wrote before, so a list of the newest notes would have nothing else.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from memoranda.documents.wording import plural
from memoranda.engine.contents import contents
from memoranda.faces.bank.bank import KINDS, PROJECT, BankInfo, template_texts
from memoranda.index.rows import NoteInfo
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs


class ListedWithoutTemplates(NamedTuple):
    """One page of a list.

    infos: the notes of the page.
    total: how many notes all pages have.
    hidden_count: how many untouched files of banks are in no page.
    """

    infos: list[NoteInfo]
    total: int
    hidden_count: int

    @property
    def hidden(self) -> str:
        """Return the words for what is hidden: `8 untouched bank templates`. "" for nothing."""
        if self.hidden_count:
            return plural(self.hidden_count, "untouched bank template")
        return ""


def list_without_templates(
    memory: ReadVerbs, query: Query, *, limit: int, offset: int = 0
) -> ListedWithoutTemplates:
    """List notes, but not the untouched files of banks, unless the query names projects.

    limit: how many notes at most; 0 means all.
    offset: how many notes to skip.
    """
    hidden_rows = _untouched_rows(memory, query)
    if not hidden_rows:
        infos, total = memory.list(query, limit=limit, offset=offset)
        return ListedWithoutTemplates(infos, total, 0)

    # Any of the hidden notes may be among the first ones.
    end = offset + limit if limit else None
    read_limit = end + len(hidden_rows) if end is not None else 0
    infos, total = memory.list(query, limit=read_limit)
    shown_infos = [info for info in infos if info.row not in hidden_rows]
    return ListedWithoutTemplates(
        shown_infos[offset:end], total - len(hidden_rows), len(hidden_rows)
    )


def _untouched_rows(memory: ReadVerbs, query: Query) -> set[int]:
    """Return the index rows of the untouched files of banks that pass a query.

    A query that names projects asks for all of their notes, so nothing is returned.
    """
    has_banks = any(project.name == PROJECT for project in memory.projects)
    if query.projects is not None or not has_banks:
        return set()
    infos, _ = memory.list(query.replace(projects=(PROJECT,)), limit=0)
    texts = contents(memory, infos)
    pairs = zip(infos, texts, strict=True)
    return {info.row for info, text in pairs if _below_title(text) in _untouched_texts()}


@cache
def _untouched_texts() -> frozenset[str]:
    """Return what is below the title in each file of a new bank without a description."""
    texts: set[str] = set()
    for kind in KINDS:
        for text in template_texts(kind, BankInfo("")).values():
            texts.add(_below_title(text))
    return frozenset(texts)


def _below_title(text: str) -> str:
    """Return a text without its first line, and without blanks around it."""
    return text.partition("\n")[2].strip()
