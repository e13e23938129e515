"""Notes that are valid at the same time and say different things of one subject: questions for `memory review`.

Nothing is decided here. Compared are relations of one note that lead to two places, observations `key: value` of one
note, and memories of one sentence that differ in the value alone. What counts as such is in contradictions.toml.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.engine.memory_rows import contents
from commonplace.engine.review import ReviewItem, ReviewSource
from commonplace.index.rows import NoteInfo
from commonplace.note.edit import FindReplace
from commonplace.note.model import CATEGORY_PROJECT, KV_PROJECT
from commonplace.query import Query

if TYPE_CHECKING:
    from commonplace.engine import Memory

KIND = "contradiction"
_CHOICES = (("n", "the second holds now"), ("o", "the first holds now"), ("b", "both are true"))
_MOST_VALUES = 3
"""With more values a key is a list."""
_KEY_VALUE = re.compile(r"([^:：\[\](){}/.]{1,40}?)\s*[:：]\s*(\S.*)")
_END = re.compile(r"\)\s*$")


@dataclass(frozen=True, slots=True)
class _Statement:
    """What `info` says of a subject; `line` its line in the file, 0 for the whole memory."""

    info: NoteInfo
    value: str
    line: int = 0

    @property
    def ref(self) -> str:
        """The note's id, and the line where it matters."""
        return f"{self.info.id}:{self.line}" if self.line else self.info.id


@cache
def _rules() -> dict[str, Any]:
    rules = tomllib.loads(Path(__file__).with_name("contradictions.toml").read_text("utf-8"))
    relations, sentences = rules["relations"].split(), rules["sentences"]
    line = "|".join(re.escape(each).replace("_", "[ _-]") for each in relations)
    return {
        "relations": set(relations),
        "no_keys": set(rules["no_keys"].split()),
        "sentences": [re.compile(rf"{each}[.!。！]?", re.I) for each in sentences],
        "over": re.compile(rules["over"], re.I),
        "promising": re.compile(rf'^[ \t]*[-*+] (?:"?(?:{line})\b|[^:：\n]{{1,60}}[:：])', re.I | re.M),
    }


def _pairs(memory: Memory) -> Iterator[tuple[ReviewItem, _Statement, _Statement]]:
    """Each question with the two statements it is about, the earlier first."""
    infos, _ = memory.list(Query(valid_at=memory.clock()), limit=0, order="path")
    infos = [info for info in infos if info.project != KV_PROJECT]
    said: dict[tuple[str, ...], list[_Statement]] = {}
    for info, text in zip(infos, contents(memory, infos), strict=True):
        if info.project == CATEGORY_PROJECT and (parts := _sentence(text)):
            said.setdefault((info.scope, *parts[0]), []).append(_Statement(info, parts[1]))
        if len(_rules()["promising"].findall(text)) > 1:
            for name, each in _lines(memory, info):
                said.setdefault((info.project, info.path, name), []).append(each)
    for subject, statements in said.items():
        statements.sort(key=lambda each: (each.info.date or each.info.created, each.line))
        values = {_folded(each.value): each for each in statements}
        if 1 < len(values) <= _MOST_VALUES:
            for first, second in pairwise(values.values()):
                one, other = _folded(first.value), _folded(second.value)
                if one not in other and other not in one:  # else the longer value only says more
                    yield _item(subject, first, second), first, second


def _sentence(text: str) -> tuple[tuple[str, str], str] | None:
    """((subject, verb), value) of a memory of one sentence."""
    line = text.strip()
    if "\n" in line or len(line) > 200:
        return None
    found = next((match for each in _rules()["sentences"] if (match := each.fullmatch(line))), None)
    return found and ((_folded(found[1]), found[2].lower()), found[3])


def _lines(memory: Memory, info: NoteInfo) -> Iterator[tuple[str, _Statement]]:
    """The observations and relations of a note of which one value can hold, and that are not said to be over."""
    rules = _rules()
    for edge in memory.outgoing(info):
        kind = re.sub("[ -]", "_", edge.type.lower())
        if kind in rules["relations"] and not rules["over"].search(edge.context or ""):
            yield kind, _Statement(info, edge.target, edge.line)
    for each in memory.observations(info):
        match = _KEY_VALUE.fullmatch(each.content)
        if match and match[1].lower() not in rules["no_keys"] and not rules["over"].search(each.context or ""):
            yield f"{match[1].lower()}:", _Statement(info, match[2], each.line)


def _item(subject: tuple[str, ...], first: _Statement, second: _Statement) -> ReviewItem:
    refs = (first.ref, second.ref)
    about = "\0".join([*subject, *refs, first.value, second.value])
    key = hashlib.sha256(about.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    name = " ".join(subject[-2:]) if not first.line else f"{first.info.title}: {subject[-1].rstrip(':')}"
    days = [(each.info.date or each.info.created)[:10] for each in (first, second)]
    text = f'{name} "{first.value}" ({days[0]}) or "{second.value}" ({days[1]})?'
    return ReviewItem(f"{KIND}:{key}", KIND, " ".join(text.split()), refs, _CHOICES)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .。!！")


def _apply(memory: Memory, item: ReviewItem, choice: str) -> bool:
    """`n` and `o`: what does not hold any more gets its end, today."""
    if choice == "b":
        return False
    first, second = next(pair for found, *pair in _pairs(memory) if found.key == item.key)
    old, new = (first, second) if choice == "n" else (second, first)
    if not old.line:
        memory.supersede(old.info, new.info)
        return True
    line = memory.text_of(old.info).split("\n")[old.line - 1].rstrip("\r")
    until = f"until {memory.clock():%Y-%m-%d})"
    memory.edit(old.info, FindReplace(line, _END.sub(f", {until}", line) if _END.search(line) else f"{line} ({until}"))
    return True


CONTRADICTIONS = ReviewSource(lambda memory: (item for item, *_ in _pairs(memory)), _apply)
