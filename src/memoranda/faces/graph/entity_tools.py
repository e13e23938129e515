"""The nine tools of the graph, and their bounded replies: contract 002, 1, 2 and 4.

In our own toolset (no `Form.indent`) a call that did less than it was asked says so in a second
text; the first is the contract's.

An answer is one sequence: each entity, followed by the relations that touch it and no earlier
entity. Relations that touch no entity come last. The relations of an entity are ordered by the
place of their source and then by a digest, not by the place inside the source. So a cursor stays
valid when others are added or deleted in between.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

from memoranda import documents
from memoranda.engine.graph import Graph, NoEntity
from memoranda.errors import InvalidInput, near
from memoranda.faces.arguments import Arguments
from memoranda.faces.reply import Reply
from memoranda.note.entity import Entity, EntityKey, GraphRelation
from memoranda.text.unicode import flat

WARNINGS = "memoranda/warnings"
# Names in an error before "and N more".
_SHOWN = 10
# Names for which near ones are looked up.
_GUESSED = 3
# Names a hint lists; misspelled names it looks for; entities among which it looks.
_SEARCHED = 5000
# Entities whose observations are read together
_BATCH = 200
# Characters of a page beside its items and its cursor
_FRAME = 200
_CURSOR_PER_CHARACTER = (
    # Bytes of a cursor per character it holds: at most 12 as JSON, a third more in base64.
    16
)
# Characters an entity or a relation takes at least
_LEAST_ITEM = 30
Data = dict[str, Any]
Position = list[int | str]
"""A key that orders the relations of one entity, whatever else comes or goes."""


@dataclass(frozen=True, slots=True)
class Form:
    """How replies look: JSON indented by this many blanks (None = compact), at most `most` characters
    (0 = any).
    """

    indent: int | None = None
    most: int = 80_000

    @property
    def teaches(self) -> bool:
        """Whether a second text may say what was not done: not in the presets, whose replies are
        fixed.
        """
        return self.indent is None

    def text(self, value: Any) -> str:
        """`value` as JSON, other alphabets raw."""
        if self.indent is None and "pydantic_core" not in sys.modules:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        # Loaded in servers only. It is three times as fast.
        from pydantic_core import to_json

        return to_json(value, indent=self.indent).decode()

    def size(self, value: Any) -> int:
        """About how many characters `value` takes as an item of a list of the reply, never fewer."""
        text = self.text(value)
        if self.indent is None:
            return len(text) + 2
        return len(text) + 2 + 2 * self.indent * (text.count("\n") + 1)


def relations_data(relations: Iterable[GraphRelation]) -> list[Data]:
    """Relations as replies hold them."""
    return [documents.entity_relation(relation) for relation in relations]


class _Item(NamedTuple):
    """An entity of the sequence, or a relation with its position and the number of the entity it
    comes with.
    """

    number: int
    data: Data
    relation: GraphRelation | None = None
    position: Position | None = None
    in_rest: bool = False


class _Cursor(NamedTuple):
    """The last item shown: its entity's `order`, or in a ranking the digests of all entities
    `seen`; the position of its relation; whether that touches no entity."""

    order: Position | None
    position: Position | None
    in_rest: bool
    seen: list[str] | None = None

    def text(self) -> str:
        text = json.dumps(list(self), separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str) -> _Cursor:
        """Raises InvalidInput for a text we never wrote."""
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
            order, position, in_rest, seen_digests = json.loads(data)
        except (ValueError, TypeError, RecursionError):
            raise InvalidInput("Invalid cursor") from None
        for part in (order, position, seen_digests):
            if part is not None and not (
                isinstance(part, list)
                and all(isinstance(number_or_text, int | str) for number_or_text in part)
            ):
                raise InvalidInput("Invalid cursor")
        if not isinstance(in_rest, bool) or (order is None) == (seen_digests is None):
            raise InvalidInput("Invalid cursor")
        return cls(order, position, in_rest, seen_digests)


class GraphReply:
    """All entities and relations of one answer, in order. Raises InvalidInput for an invalid
    cursor.

    arguments: the part of them that the caller asks for (contract 002, 4).
    """

    def __init__(
        self,
        graph: Graph,
        keys: Sequence[EntityKey],
        relations: Sequence[GraphRelation],
        arguments: Arguments,
        form: Form,
    ):
        self._graph, self._keys, self._relations, self._form = graph, list(keys), relations, form
        self._ranked: bool = arguments.get("ranked", False)
        self._limit: int | None = arguments.get("limit", 20 if self._ranked else None)
        self._offset: int = arguments.get("offset", 0)
        self._first_observation: int = arguments.get("observationOffset", 0)
        self._observations: int | None = arguments.get("observationLimit")
        self._cursor = (
            _Cursor.read(arguments["cursor"]) if arguments.get("cursor") is not None else None
        )
        # The ranking may have changed since
        if self._cursor is not None and self._cursor.seen is not None:
            places = {digest: place for place, digest in enumerate(self._cursor.seen)}
            self._keys.sort(key=lambda key: places.get(_digest(key), len(places)))

    def data(self) -> tuple[Data, str]:
        """The reply's data, and its text."""
        plain_data = self._plain_data()
        if plain_data is not None:
            return plain_data
        totals = {"totalEntities": len(self._keys), "totalRelations": len(self._relations)}
        if self._limit == 0:
            data: Data = {"entities": [], "relations": [], **totals}
        else:
            data = self._page(totals)
        return data, self._form.text(data)

    def _plain_data(self) -> tuple[Data, str] | None:
        """A small answer as it is, without totals; None if it is asked for in parts or too large."""
        most_characters = self._form.most or math.inf
        is_first_part = self._limit is None and not self._offset and self._cursor is None
        least_size = _LEAST_ITEM * (len(self._keys) + len(self._relations))
        if self._ranked or not is_first_part or least_size > most_characters:
            return None
        entities = list[Data]()
        used = 0
        for part in self._entities(0):
            # It is found not to fit before all is read
            if used > most_characters:
                return None
            entities += part
            if len(part) == _BATCH:
                observations = chain.from_iterable(entity["observations"] for entity in part)
                used += sum(map(len, observations))
        data: Data = {"entities": entities, "relations": relations_data(self._relations)}
        text = self._form.text(data)
        if len(text) > most_characters:
            return None
        return data, text

    def _entities(self, start: int) -> Iterator[list[Data]]:
        """The entities from `start` on with the observations asked for, in batches."""
        first = self._first_observation
        count = self._observations
        if count is None:
            end = None
        else:
            end = first + count
        for batch_start in range(start, len(self._keys), _BATCH):
            part = self._keys[batch_start : batch_start + _BATCH]
            batch = list[Data]()
            for (_, name, kind, _, project), texts in zip(
                part, self._graph.observations(part), strict=True
            ):
                window = texts[first:end]
                data: Data = documents.entity(name, kind, window)
                if len(window) < len(texts):
                    data["observationCount"] = len(texts)
                if project is not None:
                    data["project"] = project
                batch.append(data)
            yield batch

    def _page(self, totals: Data) -> Data:
        """The items from the cursor on that fit into a reply, and the cursor of the next page if
        there is one.
        """
        room = self._form.most - _FRAME if self._form.most else math.inf
        limit = math.inf if self._limit is None else self._limit
        entities: list[Data] = []
        relations: list[GraphRelation] = []
        last: _Item | None = None
        next_keys: Data = {}
        for item in self._sequence():
            size = self._form.size(item.data)
            if self._form.most:
                cursor_size = self._cursor_size(item, room - size)
            else:
                cursor_size = 0
            is_full = item.relation is None and len(entities) >= limit
            if last is not None and (is_full or size + cursor_size > room):
                next_keys["nextCursor"] = self._cursor_after(last)
                break
            if item.relation is not None:
                relations.append(item.relation)
            elif size + cursor_size <= room:
                entities.append(item.data)
            else:
                entities.append(self._shorten_entity(item.data, room - cursor_size))
                size = self._form.size(entities[-1])
            room -= size
            last = item
        relations.sort(key=lambda relation: relation.order)
        return {"entities": entities, "relations": relations_data(relations), **totals, **next_keys}

    def _shorten_entity(self, entity: Data, room: float) -> Data:
        """An entity too large for a page: it has the first observations that fit, at least one."""
        texts = entity["observations"]
        count = entity.get("observationCount", len(texts))
        short = {**entity, "observations": [], "observationCount": count}
        room -= self._form.size(short)
        for text in texts:
            room -= self._form.size(text) + 2 * (self._form.indent or 0)
            if room < 0 and short["observations"]:
                break
            short["observations"].append(text)
        if len(short["observations"]) < count:
            return short
        return entity

    def _cursor_size(self, item: _Item, room: float) -> int:
        """The number of characters of the cursor after `item`, or a higher number if that surely
        fits into `room`.
        """
        if self._ranked:
            return 20 * (item.number + 2) + 400
        if self._keys:
            order = self._keys[item.number].order
        else:
            order = ()
        size = _CURSOR_PER_CHARACTER * len(repr(([*order], item.position)))
        if size <= room:
            return size
        return len(self._cursor_after(item))

    def _cursor_after(self, item: _Item) -> str:
        order: Position | None = list(self._keys[item.number].order) if self._keys else []
        seen_digests = None
        if self._ranked:
            order = None
            seen_digests = [_digest(key) for key in self._keys[: item.number + 1]]
        return _Cursor(order, item.position, item.in_rest, seen_digests).text()

    def _sequence(self) -> Iterator[_Item]:
        """The items from the cursor or the offset on."""
        cursor = self._cursor
        begin, has_item = self._begin()
        in_rest = cursor is not None and cursor.in_rest
        # Else the entity of the cursor's item is gone, and its relations with it
        resumes = has_item or in_rest
        position = cursor.position if cursor is not None and resumes else None
        if in_rest:
            # Later entities are not part of this answer
            del self._keys[begin:]
        relations_number = len(self._keys)
        groups = self._relations_by_entity()
        if not in_rest:
            if resumes:
                yield from _items(groups, begin - 1, relations_number, position)
            for number, entity in enumerate(chain.from_iterable(self._entities(begin)), begin):
                yield _Item(number, entity)
                yield from _items(groups, number, relations_number)
        yield from _items(groups, relations_number, relations_number, position if in_rest else None)

    def _begin(self) -> tuple[int, bool]:
        """How many entities come before the next one, and whether the last of them is the cursor's.

        Raises InvalidInput for a cursor of another answer.
        """
        cursor = self._cursor
        if cursor is None:
            return self._offset, False
        if cursor.seen is not None:
            seen_digests = set(cursor.seen)
            begin = sum(_digest(key) in seen_digests for key in self._keys)
            return begin, bool(begin) and _digest(self._keys[begin - 1]) == cursor.seen[-1]
        order = tuple(cursor.order or ())
        try:
            begin = sum(key.order <= order for key in self._keys)
        except TypeError:
            raise InvalidInput("Invalid cursor") from None
        return begin, bool(begin) and self._keys[begin - 1].order == order

    def _relations_by_entity(self) -> dict[int, list[GraphRelation]]:
        """The relations by the number of the first entity they touch; last those that touch none."""
        numbers: dict[str, int] = {}
        for number, key in enumerate(self._keys):
            numbers.setdefault(key.name, number)
        relations_number = len(self._keys)
        groups: dict[int, list[GraphRelation]] = {}
        for relation in self._relations:
            source = numbers.get(relation.source, relations_number)
            target = numbers.get(relation.target, relations_number)
            groups.setdefault(min(source, target), []).append(relation)
        return groups


def _items(
    groups: Mapping[int, Sequence[GraphRelation]],
    number: int,
    relations_number: int,
    after: Position | None = None,
) -> list[_Item]:
    """The relations that come with entity `number` of `relations_number`, or with none, in the order of the
    sequence.
    """
    items = []
    group = groups.get(number, ())
    for relation, data in zip(group, relations_data(group), strict=True):
        digest = blake2b(
            "\0".join(relation.triple).encode("utf-8", "surrogatepass"), digest_size=12
        ).hexdigest()
        position = [*relation.order[:-1], digest]
        if after is None or _place(position) > _place(after):
            items.append(
                _Item(
                    min(number, relations_number - 1),
                    data,
                    relation,
                    position,
                    number == relations_number,
                )
            )
    return sorted(items, key=lambda item: _place(item.position or []))


def _place(position: Position) -> list[tuple[bool, int | str]]:
    """A key to compare positions by: one in a file begins with a digest, one in notes with a time."""
    return [(isinstance(part, str), part) for part in position]


def _digest(key: EntityKey) -> str:
    name = f"{key.project or ''}\0{key.name}\0{key.order}"
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def create_entities(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Answers with the entities that were new, as they were stored."""
    entities = [
        Entity(entity["name"], entity["entityType"], tuple(entity["observations"]))
        for entity in arguments["entities"]
    ]
    created = [
        documents.entity(entity.name, entity.type, entity.observations)
        for entity in graph.create_entities(entities)
    ]
    new = {entity["name"] for entity in created}
    existing_names = [entity.name for entity in entities if entity.name not in new]
    if form.indent is None and form.most and len(form.text(created)) > form.most:
        # The caller knows what they say
        created = [{**entity, "observations": []} for entity in created]
        created = created[: form.most // max(map(form.size, created))]
    hint = ""
    if existing_names and form.teaches:
        hint = (
            f"Already there, nothing was changed: {_list_of_names(existing_names)}. "
            "Use memory_add_observations to add to an entity."
        )
    return Reply(form.text(created), {"entities": created}, hint=hint)


def create_relations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    created = relations_data(graph.create_relations(_relations(arguments)))
    return Reply(form.text(created), {"relations": created})


def add_observations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Answers with what each entity did not say before."""
    additions = [
        (addition["entityName"], addition["contents"]) for addition in arguments["observations"]
    ]
    try:
        added = graph.add_observations(additions)
    except NoEntity as error:
        if form.teaches:
            hint = _misspelled(graph, [name for name, _ in additions])
        else:
            hint = ""
        return Reply(str(error), is_error=True, hint=hint)
    results = [{"entityName": name, "addedObservations": texts} for name, texts in added]
    return Reply(form.text(results), {"results": results})


def delete_entities(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Delete entities, and everything recorded about them."""
    if form.teaches:
        hint = _why_not_deleted(graph, arguments)
    else:
        hint = ""
    graph.delete_entities(arguments["entityNames"])
    return _deleted("Entities", hint)


def delete_observations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Delete observations of entities."""
    if form.teaches:
        hint = _why_not_deleted(graph, arguments)
    else:
        hint = ""
    graph.delete_observations(
        [(deletion["entityName"], deletion["observations"]) for deletion in arguments["deletions"]]
    )
    return _deleted("Observations", hint)


def delete_relations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Delete relations between entities."""
    if form.teaches:
        hint = _why_not_deleted(graph, arguments)
    else:
        hint = ""
    graph.delete_relations(_relations(arguments))
    return _deleted("Relations", hint)


def _deleted(noun: str, hint: str) -> Reply:
    message = f"{noun} deleted successfully"
    return Reply(message, {"success": True, "message": message}, hint=hint)


def _why_not_deleted(graph: Graph, arguments: Arguments) -> str:
    """How many of the things to delete are there, when not all of them are."""
    asked_keys: set[Any]
    if "relations" in arguments:
        kind = "relation"
        names = [row["from"] for row in arguments["relations"]]
        asked_keys = {relation.triple for relation in _relations(arguments)}
        remaining_triples = asked_keys & {
            relation.triple for relation in graph.relations(set(names))
        }
    elif "entityNames" in arguments:
        kind = "entity"
        names = arguments["entityNames"]
        asked_keys = set(names)
        remaining_triples = {key.name for key in graph.named(names)}
    else:
        kind = "observation"
        names = [row["entityName"] for row in arguments["deletions"]]
        asked_keys = set()
        for row in arguments["deletions"]:
            asked_keys.update((row["entityName"], text) for text in row["observations"])
        remaining_triples = asked_keys & _observations_of(graph, names)
    if len(remaining_triples) == len(asked_keys):
        return ""
    why = f"{len(remaining_triples)} of {len(asked_keys)} deleted: no such {kind}."
    return f"{why} {_misspelled(graph, names)}".strip()


def _observations_of(graph: Graph, names: Sequence[str]) -> set[tuple[str, str]]:
    """The observations of these entities, each with its entity's name."""
    keys = graph.named(names)
    pairs: set[tuple[str, str]] = set()
    for key, texts in zip(keys, graph.observations(keys), strict=True):
        pairs.update((key.name, text) for text in texts)
    return pairs


def _misspelled(graph: Graph, names: Iterable[str]) -> str:
    """A hint about names that are close to names of entities. Empty if none exist."""
    unique_names = list(dict.fromkeys(names))
    known_names = {key.name for key in graph.named(unique_names)}
    missing = [name for name in unique_names if name not in known_names][:_GUESSED]
    if not missing or len(keys := graph.keys()) > _SEARCHED:
        return ""
    guesses = [
        f"{_list_of_names(nearest)}, not {_list_of_names([name])}?"
        for name in missing
        if (nearest := near(name, (key.name for key in keys), 1))
    ]
    if guesses:
        return f"Did you mean {' '.join(guesses)}"
    return ""


def _list_of_names(names: Sequence[str]) -> str:
    if len(names) > _SHOWN:
        count_of_others = f" and {len(names) - _SHOWN} more"
    else:
        count_of_others = ""
    return ", ".join(f'"{flat(name[:80])}"' for name in names[:_SHOWN]) + count_of_others


def _relations(arguments: Arguments) -> Sequence[GraphRelation]:
    return [
        GraphRelation(relation_row["from"], relation_row["to"], relation_row["relationType"])
        for relation_row in arguments["relations"]
    ]


def read_graph(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """The whole graph, or a page of it."""
    return _reply(graph, graph.keys(), graph.relations(), arguments, form)


def search_nodes(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    query = arguments["query"]
    if arguments.get("ranked"):
        keys = graph.ranked(query)
    else:
        keys = graph.matching(query)
    return _reply(graph, keys, graph.relations({key.name for key in keys}), arguments, form)


def open_nodes(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Get entities by their names, and the relations among them.

    With the argument `depth`, also get the entities within this many relations, nearest first.
    """
    wanted_names = arguments["names"]
    direction = arguments.get("direction", "both")
    types = arguments.get("relationTypes")
    depth = arguments.get("depth", 0)
    if depth:
        distance = dict.fromkeys(wanted_names, 0)
        frontier = set(distance)
        for level in range(1, depth + 1):
            entities = set()
            for relation in graph.relations(frontier):
                entities.update(_reached(relation, frontier, direction, types))
            frontier = entities - distance.keys()
            distance |= dict.fromkeys(frontier, level)
        keys = [
            key._replace(order=(distance[key.name], *key.order)) for key in graph.named(distance)
        ]
        keys.sort(key=lambda key: key.order)
        relations = [
            relation
            for relation in graph.relations(set(distance))
            if {relation.source, relation.target} <= distance.keys()
        ]
        return _reply(graph, keys, relations, arguments, form)
    keys = graph.named(wanted_names)
    names = {key.name for key in keys}
    if form.teaches:
        hint = _misspelled(graph, wanted_names)
    else:
        hint = ""
    relations = [
        relation
        for relation in graph.relations(names)
        if _reached(relation, names, direction, types)
    ]
    return _reply(graph, keys, relations, arguments, form, hint)


def _reached(
    relation: GraphRelation, names: set[str], direction: str, types: list[str] | None
) -> list[str]:
    """The ends a relation of these types leads to from `names` in a direction."""
    if types is not None and relation.type not in types:
        return []
    if direction != "in" and relation.source in names:
        ends = [relation.target]
    else:
        ends = []
    return ends + ([relation.source] if direction != "out" and relation.target in names else [])


def _reply(
    graph: Graph,
    keys: list[EntityKey],
    relations: list[GraphRelation],
    arguments: Arguments,
    form: Form,
    hint: str = "",
) -> Reply:
    data, text = GraphReply(graph, keys, relations, arguments, form).data()
    warnings = graph.warnings()
    return Reply(text, data, meta={WARNINGS: warnings} if warnings else None, hint=hint)


def whole_graph(graph: Graph) -> str:
    """The graph as its resources show it: all of it, indented (contract 002, 7)."""
    return graph.at_once(
        lambda: GraphReply(graph, graph.keys(), graph.relations(), {}, Form(2, 0)).data()[1]
    )
