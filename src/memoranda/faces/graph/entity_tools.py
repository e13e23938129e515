"""The nine tools of the graph, and their bounded replies: contract 002, 1, 2 and 4.

In our own toolset (no `Form.indent`), a call that did less than it was asked gets a hint: a second
text after the text that the contract fixes.

A long answer is cut into pages. Its items come in one order: each entity is followed by the
relations that touch it but no earlier entity. Relations that touch no entity of the answer come
last; they are called unattached. The relations of an entity are ordered by their source and then by
a digest of their contents. So a cursor, which names the last item shown, stays valid when items are
added or deleted.
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
_MAX_LISTED_NAMES = 10
# Misspelled names for which a hint looks for similar ones.
_MAX_MISSPELLED_NAMES = 3
# A larger graph is not searched for similar names.
_MAX_SEARCHED_ENTITIES = 5000
# Entities whose observations are read together.
_BATCH_ENTITIES = 200
# Characters of a page without its items and its cursor.
_FRAME_CHARACTERS = 200
_CURSOR_PER_CHARACTER = (
    # Bytes of a cursor per character it holds: at most 12 as JSON, a third more in base64.
    16
)
# An entity or a relation takes at least this many characters.
_MIN_ITEM_CHARACTERS = 30
Data = dict[str, Any]
Position = list[int | str]
"""The order of an entity, or of a relation among the relations of one entity.

It does not change when other items are added or deleted.
"""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of replies, which are JSON.

    indent: the number of blanks by which JSON is indented. None means compact JSON.
    most: the largest number of characters. 0 means no limit.
    """

    indent: int | None = None
    most: int = 80_000

    @property
    def teaches(self) -> bool:
        """Whether replies may have a hint. In presets (with `indent`) replies are fixed."""
        return self.indent is None

    def text(self, value: Any) -> str:
        """Return `value` as JSON. Letters of other alphabets are not escaped."""
        if self.indent is None and "pydantic_core" not in sys.modules:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        # Servers have this module loaded. It is three times as fast.
        from pydantic_core import to_json

        return to_json(value, indent=self.indent).decode()

    def size(self, value: Any) -> int:
        """Estimate the characters that `value` takes in a list of the reply. Never too few."""
        text = self.text(value)
        if self.indent is None:
            return len(text) + 2
        # An item of a list is two levels deep, which indents each of its lines.
        return len(text) + 2 + 2 * self.indent * (text.count("\n") + 1)


def relations_data(relations: Iterable[GraphRelation]) -> list[Data]:
    """Return relations in the form that replies have them."""
    return [documents.entity_relation(relation) for relation in relations]


class _Item(NamedTuple):
    """An entity or a relation of an answer.

    number: the number of the entity, or of the entity that the relation follows.
    data: the item as replies have it.
    relation, position: None for an entity.
    is_unattached: whether it is a relation that touches no entity of the answer.
    """

    number: int
    data: Data
    relation: GraphRelation | None = None
    position: Position | None = None
    is_unattached: bool = False


class _Cursor(NamedTuple):
    """The last item of a page, after which the next page begins.

    order: the order of the item's entity. None in a ranked answer.
    position: the position of the item if it is a relation, otherwise None.
    is_unattached: whether the last item is a relation that touches no entity of the answer.
    seen: in a ranked answer, the digests of all entities up to the item's. Otherwise None.
    """

    order: Position | None
    position: Position | None
    is_unattached: bool
    seen: list[str] | None = None

    def text(self) -> str:
        """Return the cursor as text: its fields as JSON in base64."""
        text = json.dumps(list(self), separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str) -> _Cursor:
        """Read a cursor from its text. Raises InvalidInput for any other text."""
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
            order, position, is_unattached, seen_digests = json.loads(data)
        except (ValueError, TypeError, RecursionError):
            raise InvalidInput("Invalid cursor") from None
        for part in (order, position, seen_digests):
            if part is not None and not (
                isinstance(part, list)
                and all(isinstance(number_or_text, int | str) for number_or_text in part)
            ):
                raise InvalidInput("Invalid cursor")
        # Exactly one of them says where the last page ended.
        has_one_place = (order is None) != (seen_digests is None)
        if not isinstance(is_unattached, bool) or not has_one_place:
            raise InvalidInput("Invalid cursor")
        return cls(order, position, is_unattached, seen_digests)


class GraphReply:
    """Cuts an answer into pages. Raises InvalidInput for an invalid cursor.

    keys: the entities of the answer, in order.
    relations: the relations of the answer.
    arguments: the arguments of the call, which choose a page (contract 002, 4).
    """

    def __init__(
        self,
        graph: Graph,
        keys: Sequence[EntityKey],
        relations: Sequence[GraphRelation],
        arguments: Arguments,
        form: Form,
    ):
        self._graph = graph
        self._keys = list(keys)
        self._relations = relations
        self._form = form
        self._is_ranked: bool = arguments.get("ranked", False)
        self._limit: int | None = arguments.get("limit", 20 if self._is_ranked else None)
        self._offset: int = arguments.get("offset", 0)
        self._first_observation: int = arguments.get("observationOffset", 0)
        self._observation_limit: int | None = arguments.get("observationLimit")
        self._cursor = (
            _Cursor.read(arguments["cursor"]) if arguments.get("cursor") is not None else None
        )
        # The ranking may have changed since the last page: entities that were shown come first.
        if self._cursor is not None and self._cursor.seen is not None:
            ranks = {digest: rank for rank, digest in enumerate(self._cursor.seen)}
            self._keys.sort(key=lambda key: ranks.get(_digest(key), len(ranks)))

    def data(self) -> tuple[Data, str]:
        """Return the data of the reply, and its text."""
        whole_answer = self._whole_answer()
        if whole_answer is not None:
            return whole_answer
        totals = {"totalEntities": len(self._keys), "totalRelations": len(self._relations)}
        if self._limit == 0:
            data: Data = {"entities": [], "relations": [], **totals}
        else:
            data = self._page(totals)
        return data, self._form.text(data)

    def _whole_answer(self) -> tuple[Data, str] | None:
        """Return the whole answer and its text, without totals.

        None if it is too large, or if the caller asks for a page.
        """
        most_characters = self._form.most or math.inf
        is_first_part = self._limit is None and not self._offset and self._cursor is None
        min_characters = _MIN_ITEM_CHARACTERS * (len(self._keys) + len(self._relations))
        if self._is_ranked or not is_first_part or min_characters > most_characters:
            return None
        entities = list[Data]()
        used = 0
        for part in self._entity_batches(0):
            # Stop reading as soon as the answer cannot fit.
            if used > most_characters:
                return None
            entities += part
            if len(part) == _BATCH_ENTITIES:
                observations = chain.from_iterable(entity["observations"] for entity in part)
                used += sum(map(len, observations))
        data: Data = {"entities": entities, "relations": relations_data(self._relations)}
        text = self._form.text(data)
        if len(text) > most_characters:
            return None
        return data, text

    def _entity_batches(self, start: int) -> Iterator[list[Data]]:
        """Yield the entities from the number `start` on in batches, as replies have them.

        They have the observations that the caller asks for.
        """
        first = self._first_observation
        count = self._observation_limit
        if count is None:
            end = None
        else:
            end = first + count
        for batch_start in range(start, len(self._keys), _BATCH_ENTITIES):
            part = self._keys[batch_start : batch_start + _BATCH_ENTITIES]
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
        """Return the page after the cursor, with the cursor of the next page if there is one.

        totals: the numbers of all entities and relations, which are part of the page.
        """
        room = self._form.most - _FRAME_CHARACTERS if self._form.most else math.inf
        limit = math.inf if self._limit is None else self._limit
        entities: list[Data] = []
        relations: list[GraphRelation] = []
        last: _Item | None = None
        next_keys: Data = {}
        for item in self._items_from_start():
            size = self._form.size(item.data)
            # Room must be left for the cursor that would follow the item.
            cursor_size = self._cursor_size(item, room - size) if self._form.most else 0
            has_room = size + cursor_size <= room
            is_full = item.relation is None and len(entities) >= limit
            if last is not None and (is_full or not has_room):
                next_keys["nextCursor"] = self._cursor_after(last)
                break
            if item.relation is not None:
                relations.append(item.relation)
            elif has_room:
                entities.append(item.data)
            else:
                # The first item of a page is always shown, so that the next page goes on after it.
                entities.append(self._shorten_entity(item.data, room - cursor_size))
                size = self._form.size(entities[-1])
            room -= size
            last = item

        # The relations of a page are in the order of the graph.
        relations.sort(key=lambda relation: relation.order)
        return {"entities": entities, "relations": relations_data(relations), **totals, **next_keys}

    def _shorten_entity(self, entity: Data, room: float) -> Data:
        """Cut an entity that is too large for a page to the first observations that fit, at least one.

        room: the number of characters.
        """
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
        """Return the characters of the cursor after `item`, or an estimate that is not too low.

        The estimate is enough if it fits into `room` characters: a cursor is slow to make.
        """
        if self._is_ranked:
            # A digest with its quotes and comma takes 20 characters in base64.
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
        """Return the text of the cursor after an item."""
        order: Position | None = list(self._keys[item.number].order) if self._keys else []
        seen_digests = None
        if self._is_ranked:
            order = None
            seen_digests = [_digest(key) for key in self._keys[: item.number + 1]]
        return _Cursor(order, item.position, item.is_unattached, seen_digests).text()

    def _items_from_start(self) -> Iterator[_Item]:
        """Yield the items from the cursor or the offset on."""
        cursor = self._cursor
        begin, has_item = self._start_after_cursor()
        is_unattached = cursor is not None and cursor.is_unattached
        # If the entity of the cursor's item was deleted, its relations were deleted, too.
        resumes = has_item or is_unattached
        position = cursor.position if cursor is not None and resumes else None
        if is_unattached:
            # All entities were shown: later ones are new and not part of this answer.
            del self._keys[begin:]
        relations_number = len(self._keys)
        groups = self._relations_by_entity()
        if not is_unattached:
            if resumes:
                yield from _relation_items(groups, begin - 1, relations_number, position)
            for number, entity in enumerate(
                chain.from_iterable(self._entity_batches(begin)), begin
            ):
                yield _Item(number, entity)
                yield from _relation_items(groups, number, relations_number)
        yield from _relation_items(
            groups, relations_number, relations_number, position if is_unattached else None
        )

    def _start_after_cursor(self) -> tuple[int, bool]:
        """Return the number of the next entity, and whether the entity before it is the cursor's.

        The second value is False if the cursor's entity was deleted. Raises InvalidInput for a
        cursor of another kind of answer.
        """
        cursor = self._cursor
        if cursor is None:
            return self._offset, False
        # The entities that were shown come first: their number is the number of the next entity.
        if cursor.seen is not None:
            seen_digests = set(cursor.seen)
            begin = sum(_digest(key) in seen_digests for key in self._keys)
            if begin == 0:
                return 0, False
            return begin, _digest(self._keys[begin - 1]) == cursor.seen[-1]
        order = tuple(cursor.order or ())
        try:
            begin = sum(key.order <= order for key in self._keys)
        except TypeError:
            # The order is of another kind of graph: texts are compared with numbers.
            raise InvalidInput("Invalid cursor") from None
        if begin == 0:
            return 0, False
        return begin, self._keys[begin - 1].order == order

    def _relations_by_entity(self) -> dict[int, list[GraphRelation]]:
        """Group the relations by the number of the first entity that they touch.

        Unattached relations are under the number of entities.
        """
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


def _relation_items(
    groups: Mapping[int, Sequence[GraphRelation]],
    number: int,
    relations_number: int,
    after: Position | None = None,
) -> list[_Item]:
    """Return the relations that follow an entity, in order.

    groups: the relations, each by the number of the first entity that it touches.
    number: the number of the entity, or `relations_number` for the unattached relations.
    relations_number: the number of entities.
    after: only relations after this position. None means all.
    """
    items = []
    group = groups.get(number, ())
    for relation, data in zip(group, relations_data(group), strict=True):
        digest = blake2b(
            "\0".join(relation.triple).encode("utf-8", "surrogatepass"), digest_size=12
        ).hexdigest()
        position = [*relation.order[:-1], digest]
        if after is None or _comparable(position) > _comparable(after):
            items.append(
                _Item(
                    min(number, relations_number - 1),
                    data,
                    relation,
                    position,
                    number == relations_number,
                )
            )
    return sorted(items, key=lambda item: _comparable(item.position or []))


def _comparable(position: Position) -> list[tuple[bool, int | str]]:
    """Return a key for comparing positions, whose parts may be numbers or texts.

    In notes a position begins with a time, in a file with a digest.
    """
    return [(isinstance(part, str), part) for part in position]


def _digest(key: EntityKey) -> str:
    """Return a short text that identifies an entity in a cursor."""
    name = f"{key.project or ''}\0{key.name}\0{key.order}"
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def create_entities(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Create entities. The reply has the entities that did not exist yet.

    graph: the graph.
    form: how the reply is written as JSON, and whether it may have a hint.
    """
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

    # The reply must not be longer than allowed.
    if form.indent is None and form.most and len(form.text(created)) > form.most:
        # Leave out the observations, which the caller has just sent.
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
    """Create relations. The reply has the relations that did not exist yet.

    graph: the graph.
    form: how the reply is written as JSON, and whether it may have a hint.
    """
    created = relations_data(graph.create_relations(_relations(arguments)))
    return Reply(form.text(created), {"relations": created})


def add_observations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Add observations to entities. The reply has the observations that were new.

    graph: the graph.
    form: how the reply is written as JSON, and whether it may have a hint.
    """
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
    """Delete entities, and everything recorded about them.

    graph: the graph.
    form: how the reply is written as JSON, and whether it may have a hint.
    """
    hint = _why_not_deleted(graph, arguments, form)
    graph.delete_entities(arguments["entityNames"])
    return _deleted("Entities", hint)


def delete_observations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Delete observations of entities.

    graph: the graph.
    form: how the reply is written as JSON, and whether it may have a hint.
    """
    hint = _why_not_deleted(graph, arguments, form)
    graph.delete_observations(
        [(deletion["entityName"], deletion["observations"]) for deletion in arguments["deletions"]]
    )
    return _deleted("Observations", hint)


def delete_relations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Delete relations between entities.

    graph: the graph.
    form: how the reply is written as JSON, and whether it may have a hint.
    """
    hint = _why_not_deleted(graph, arguments, form)
    graph.delete_relations(_relations(arguments))
    return _deleted("Relations", hint)


def _deleted(noun: str, hint: str) -> Reply:
    message = f"{noun} deleted successfully"
    return Reply(message, {"success": True, "message": message}, hint=hint)


def _why_not_deleted(graph: Graph, arguments: Arguments, form: Form) -> str:
    """Return the hint that some of the things to delete do not exist, or "" if all do.

    For example: `1 of 2 deleted: no such entity.`

    graph: the graph.
    form: how the reply is written as JSON, and whether it may have a hint.
    """
    # Some presets fix the words of replies.
    if not form.teaches:
        return ""
    # Triples of relations, names of entities, or pairs of an entity's name and an observation.
    asked_keys: set[Any]
    if "relations" in arguments:
        kind = "relation"
        names = [row["from"] for row in arguments["relations"]]
        asked_keys = {relation.triple for relation in _relations(arguments)}
        existing_keys = asked_keys & {relation.triple for relation in graph.relations(set(names))}
    elif "entityNames" in arguments:
        kind = "entity"
        names = arguments["entityNames"]
        asked_keys = set(names)
        existing_keys = {key.name for key in graph.named(names)}
    else:
        kind = "observation"
        names = [row["entityName"] for row in arguments["deletions"]]
        asked_keys = set()
        for row in arguments["deletions"]:
            asked_keys.update((row["entityName"], text) for text in row["observations"])
        existing_keys = asked_keys & _observation_pairs(graph, names)
    if len(existing_keys) == len(asked_keys):
        return ""
    why = f"{len(existing_keys)} of {len(asked_keys)} deleted: no such {kind}."
    return f"{why} {_misspelled(graph, names)}".strip()


def _observation_pairs(graph: Graph, names: Sequence[str]) -> set[tuple[str, str]]:
    """Return the pairs (name of the entity, observation) of these entities.

    graph: the graph.
    """
    keys = graph.named(names)
    pairs: set[tuple[str, str]] = set()
    for key, texts in zip(keys, graph.observations(keys), strict=True):
        pairs.update((key.name, text) for text in texts)
    return pairs


def _misspelled(graph: Graph, names: Iterable[str]) -> str:
    """Return a hint such as `Did you mean "Ana", not "Anna"?`, or "" if no name is similar.

    graph: the graph.
    """
    unique_names = list(dict.fromkeys(names))
    known_names = {key.name for key in graph.named(unique_names)}
    missing = [name for name in unique_names if name not in known_names][:_MAX_MISSPELLED_NAMES]
    if not missing:
        return ""
    keys = graph.keys()
    if len(keys) > _MAX_SEARCHED_ENTITIES:
        return ""
    guesses = [
        f"{_list_of_names(nearest)}, not {_list_of_names([name])}?"
        for name in missing
        if (nearest := near(name, (key.name for key in keys), most=1))
    ]
    if guesses:
        return f"Did you mean {' '.join(guesses)}"
    return ""


def _list_of_names(names: Sequence[str]) -> str:
    """Return names for a sentence: `"a", "b" and 3 more`."""
    if len(names) > _MAX_LISTED_NAMES:
        count_of_others = f" and {len(names) - _MAX_LISTED_NAMES} more"
    else:
        count_of_others = ""
    return ", ".join(f'"{flat(name[:80])}"' for name in names[:_MAX_LISTED_NAMES]) + count_of_others


def _relations(arguments: Arguments) -> Sequence[GraphRelation]:
    return [
        GraphRelation(relation_row["from"], relation_row["to"], relation_row["relationType"])
        for relation_row in arguments["relations"]
    ]


def read_graph(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Return the whole graph, or a page of it.

    form: how the reply is written as JSON, and whether it may have a hint.
    """
    return _reply(graph, graph.keys(), graph.relations(), arguments, form)


def search_nodes(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Find the entities that match a query, and their relations. `ranked` puts the best first.

    graph: the graph.
    form: how the reply is written as JSON, and whether it may have a hint.
    """
    query = arguments["query"]
    if arguments.get("ranked"):
        keys = graph.ranked(query)
    else:
        keys = graph.matching(query)
    return _reply(graph, keys, graph.relations({key.name for key in keys}), arguments, form)


def open_nodes(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Get entities by their names, and the relations among them.

    With the argument `depth`, also get the entities within this many relations, nearest first.

    graph: the graph.
    form: how the reply is written as JSON, and whether it may have a hint.
    """
    wanted_names = arguments["names"]
    direction = arguments.get("direction", "both")
    types = arguments.get("relationTypes")
    if arguments.get("depth", 0):
        distances = _distances(graph, wanted_names, direction, types, arguments["depth"])
        # The order of an entity begins with its distance.
        keys = [
            key._replace(order=(distances[key.name], *key.order)) for key in graph.named(distances)
        ]
        keys.sort(key=lambda key: key.order)
        relations = [
            relation
            for relation in graph.relations(set(distances))
            if relation.source in distances and relation.target in distances
        ]
        return _reply(graph, keys, relations, arguments, form)

    keys = graph.named(wanted_names)
    names = {key.name for key in keys}
    hint = _misspelled(graph, wanted_names) if form.teaches else ""
    relations = [
        relation
        for relation in graph.relations(names)
        if _reached(relation, names, direction, types)
    ]
    return _reply(graph, keys, relations, arguments, form, hint)


def _distances(
    graph: Graph, names: Sequence[str], direction: str, types: list[str] | None, depth: int
) -> dict[str, int]:
    """Return the names within `depth` relations of some names, each with its distance.

    names: the names to start from, at distance 0.
    direction: `out` follows relations from their source, `in` from their target, `both` either way.
    types: the types of relations to follow. None means all.
    """
    distances = dict.fromkeys(names, 0)
    # The names that the last level has added.
    frontier = set(distances)
    for level in range(1, depth + 1):
        reached_names: set[str] = set()
        for relation in graph.relations(frontier):
            reached_names.update(_reached(relation, frontier, direction, types))
        frontier = reached_names - distances.keys()
        distances |= dict.fromkeys(frontier, level)
    return distances


def _reached(
    relation: GraphRelation, names: set[str], direction: str, types: list[str] | None
) -> list[str]:
    """Return the entities that a relation leads to from one of `names`.

    For `a -> b` and the names {a}: `b` with the direction `out` or `both`, nothing with `in`.

    types: the types of relations to follow. None means all.
    """
    if types is not None and relation.type not in types:
        return []
    ends = []
    if direction != "in" and relation.source in names:
        ends.append(relation.target)
    if direction != "out" and relation.target in names:
        ends.append(relation.source)
    return ends


def _reply(
    graph: Graph,
    keys: list[EntityKey],
    relations: list[GraphRelation],
    arguments: Arguments,
    form: Form,
    hint: str = "",
) -> Reply:
    """Return the page of an answer that the arguments ask for, with the graph's warnings.

    keys: the entities of the answer, in order.
    relations: its relations.
    form: how the reply is written as JSON, and whether it may have a hint.
    hint: a hint for the model; "" for none.
    """
    data, text = GraphReply(graph, keys, relations, arguments, form).data()
    warnings = graph.warnings()
    return Reply(text, data, meta={WARNINGS: warnings} if warnings else None, hint=hint)


def whole_graph(graph: Graph) -> str:
    """Return the whole graph as indented JSON, as its resources show it (contract 002, 7)."""
    return graph.at_once(
        lambda: GraphReply(graph, graph.keys(), graph.relations(), {}, Form(2, 0)).data()[1]
    )
