"""The nine tools of the graph, and their bounded replies: contract 002, 1, 2 and 4.

In our own toolset (no `Form.indent`), a reply may have a hint: a second text after the text that
the contract fixes. It tells a caller what a call left undone, such as a name that does not exist.

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
# At most this many names are listed before "and N more".
_MAX_LISTED_NAMES = 10
# A hint looks for names similar to at most this many misspelled names.
_MAX_MISSPELLED_NAMES = 3
# A larger graph is not searched for similar names.
_MAX_SEARCHED_ENTITIES = 5000
# The observations of this many entities are read together.
_BATCH_ENTITIES = 200
# A page has at most this many characters in addition to its items and its cursor.
_FRAME_CHARACTERS = 200
# A character takes at most this many bytes in a cursor: 12 as JSON, and a third more in base64.
_CURSOR_PER_CHARACTER = 16
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
    max_characters: the largest number of characters. 0 means no limit.
    """

    indent: int | None = None
    max_characters: int = 80_000

    @property
    def may_have_hint(self) -> bool:
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
        """Estimate the characters that `value` takes in a list of the reply.

        The estimate is never too low.
        """
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

    number: the position of the entity in the answer, from 0. For a relation, the position of the
        entity that it follows.
    data: the item as replies have it.
    relation: the relation. None for an entity.
    position: the order of the relation among the relations of its entity. None for an entity.
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
            # `text` leaves out the padding of base64.
            data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
            order, position, is_unattached, seen_digests = json.loads(data)
        except (ValueError, TypeError, RecursionError):
            raise InvalidInput("Invalid cursor") from None
        if not all(_is_position_or_none(part) for part in (order, position, seen_digests)):
            raise InvalidInput("Invalid cursor")
        # Exactly one of the two says where the last page ended.
        has_one_place = (order is None) != (seen_digests is None)
        if not isinstance(is_unattached, bool) or not has_one_place:
            raise InvalidInput("Invalid cursor")
        return cls(order, position, is_unattached, seen_digests)


def _is_position_or_none(value: Any) -> bool:
    """Whether a value is None, or a list of numbers and texts."""
    if value is None:
        return True
    return isinstance(value, list) and all(isinstance(part, int | str) for part in value)


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
        # Without a limit, a ranked answer has the best entities, and any other answer is whole.
        usual_limit = 20 if self._is_ranked else None
        self._limit: int | None = arguments.get("limit", usual_limit)
        self._offset: int = arguments.get("offset", 0)
        self._first_observation: int = arguments.get("observationOffset", 0)
        self._observation_limit: int | None = arguments.get("observationLimit")
        self._cursor: _Cursor | None = None
        if arguments.get("cursor") is not None:
            self._cursor = _Cursor.read(arguments["cursor"])
        if self._cursor is not None and self._cursor.seen is not None:
            self._move_to_front(self._cursor.seen)

    def _move_to_front(self, seen_digests: Sequence[str]) -> None:
        """Move the entities that earlier pages of a ranked answer have shown before all others.

        The ranking may have changed since those pages. With the shown entities first, in the order
        of then, the next page has neither an entity again nor misses one.
        """
        ranks = {digest: rank for rank, digest in enumerate(seen_digests)}
        # The sort is stable: the other entities have the same rank, so their order stays.
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
        most_characters = self._form.max_characters or math.inf
        asks_for_page = self._is_ranked or self._limit is not None
        is_later_page = bool(self._offset) or self._cursor is not None
        # Most answers that are too large are known without reading their entities.
        min_characters = _MIN_ITEM_CHARACTERS * (len(self._keys) + len(self._relations))
        if asks_for_page or is_later_page or min_characters > most_characters:
            return None
        entities = self._entities_within(most_characters)
        if entities is None:
            return None
        data: Data = {"entities": entities, "relations": relations_data(self._relations)}
        text = self._form.text(data)
        if len(text) > most_characters:
            return None
        return data, text

    def _entities_within(self, most_characters: float) -> list[Data] | None:
        """Return all entities, as replies have them. None if they surely do not fit into a reply.

        A large graph is not read to its end: as soon as the observations alone are too long, the
        answer cannot fit. Entities that are returned may still be too long.

        most_characters: the largest number of characters of the reply.
        """
        entities: list[Data] = []
        observation_characters = 0
        for batch in self._entity_batches(0):
            if observation_characters > most_characters:
                return None
            entities += batch
            # Counting is only of use if another batch may follow this one.
            is_last_batch = len(batch) < _BATCH_ENTITIES
            if not is_last_batch:
                for entity in batch:
                    observation_characters += sum(len(text) for text in entity["observations"])
        return entities

    def _entity_batches(self, start: int) -> Iterator[list[Data]]:
        """Yield the entities in batches, as replies have them.

        start: the position of the first entity.
        """
        for batch_start in range(start, len(self._keys), _BATCH_ENTITIES):
            keys = self._keys[batch_start : batch_start + _BATCH_ENTITIES]
            texts_of_keys = self._graph.observations(keys)
            yield [
                self._entity_data(key, texts)
                for key, texts in zip(keys, texts_of_keys, strict=True)
            ]

    def _entity_data(self, key: EntityKey, texts: Sequence[str]) -> Data:
        """Return an entity for the reply, with the observations that the caller asks for.

        texts: all its observations.
        """
        first = self._first_observation
        end = None if self._observation_limit is None else first + self._observation_limit
        shown_texts = texts[first:end]
        data: Data = documents.entity(key.name, key.type, shown_texts)
        if len(shown_texts) < len(texts):
            data["observationCount"] = len(texts)
        if key.project is not None:
            data["project"] = key.project
        return data

    def _page(self, totals: Data) -> Data:
        """Return the page after the cursor, with the cursor of the next page if there is one.

        totals: the numbers of all entities and relations, which are part of the page.
        """
        is_bounded = bool(self._form.max_characters)
        room = self._form.max_characters - _FRAME_CHARACTERS if is_bounded else math.inf
        limit = math.inf if self._limit is None else self._limit
        entities: list[Data] = []
        relations: list[GraphRelation] = []
        last_item: _Item | None = None
        next_keys: Data = {}
        for item in self._items_from_start():
            size = self._form.size(item.data)
            # The page may end after this item, and then needs room for the item's cursor.
            cursor_size = self._cursor_size(item, room - size) if is_bounded else 0
            has_room = size + cursor_size <= room
            is_entity = item.relation is None
            is_beyond_limit = is_entity and len(entities) >= limit
            # The first item of a page is always shown. Without it, the next page would begin with
            # the same item, and the caller would never get on.
            is_first = last_item is None
            if last_item is not None and (is_beyond_limit or not has_room):
                next_keys["nextCursor"] = self._cursor_after(last_item)
                break
            if item.relation is not None:
                relations.append(item.relation)
            elif is_first and not has_room:
                short_entity = self._shorten_entity(item.data, room - cursor_size)
                entities.append(short_entity)
                size = self._form.size(short_entity)
            else:
                entities.append(item.data)
            room -= size
            last_item = item

        # The relations of a page are in the order of the graph.
        relations.sort(key=lambda relation: relation.order)
        return {"entities": entities, "relations": relations_data(relations), **totals, **next_keys}

    def _shorten_entity(self, entity: Data, room: float) -> Data:
        """Cut an entity that is too large for a page to the first observations that fit, at least one.

        room: the largest number of characters.
        """
        texts = entity["observations"]
        count = entity.get("observationCount", len(texts))
        fitting_texts: list[str] = []
        short_entity = {**entity, "observations": fitting_texts, "observationCount": count}
        room -= self._form.size(short_entity)
        for text in texts:
            # An observation is a list item inside the entity, so it is indented by two more levels.
            room -= self._form.size(text) + 2 * (self._form.indent or 0)
            if room < 0 and fitting_texts:
                break
            fitting_texts.append(text)
        if len(fitting_texts) < count:
            return short_entity
        return entity

    def _cursor_size(self, item: _Item, room: float) -> int:
        """Return the characters of the cursor after `item`, or an estimate that is not too low.

        A cursor is slow to make, so its length is only measured if the estimate does not fit into
        `room` characters.
        """
        if self._is_ranked:
            # The cursor has the digests of all entities up to this one. Each takes 20 characters in
            # base64, with its quotes and comma. One more is counted, and 400 characters for the
            # other fields, so that the estimate is not too low.
            return 20 * (item.number + 2) + 400
        order = list(self._keys[item.number].order) if self._keys else []
        estimated_size = _CURSOR_PER_CHARACTER * len(repr((order, item.position)))
        if estimated_size <= room:
            return estimated_size
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
        begin, has_entity_of_cursor = self._start_after_cursor()
        if cursor is not None and cursor.is_unattached:
            # The last page ended among the unattached relations, which come after all entities.
            # So entities behind the cursor are new, and not part of this answer.
            del self._keys[begin:]
            groups = self._relations_by_entity()
            yield from self._unattached_items(groups, cursor.position)
            return

        groups = self._relations_by_entity()
        # The last page may have ended before or among the relations of the cursor's entity. If that
        # entity was deleted, its relations were deleted, too.
        if cursor is not None and has_entity_of_cursor:
            yield from self._relation_items(groups, begin - 1, cursor.position)
        entities = chain.from_iterable(self._entity_batches(begin))
        for number, entity in enumerate(entities, begin):
            yield _Item(number, entity)
            yield from self._relation_items(groups, number)
        yield from self._unattached_items(groups)

    def _start_after_cursor(self) -> tuple[int, bool]:
        """Return the position of the next entity, and whether the cursor's entity is before it.

        The second value is False without a cursor, and if the cursor's entity was deleted. Raises
        InvalidInput for a cursor of another kind of answer.
        """
        cursor = self._cursor
        if cursor is None:
            return self._offset, False
        # In a ranked answer, the entities that were shown come first. So their count is the position
        # of the next one.
        if cursor.seen is not None:
            seen_digests = set(cursor.seen)
            begin = sum(_digest(key) in seen_digests for key in self._keys)
            if begin == 0:
                return 0, False
            return begin, _digest(self._keys[begin - 1]) == cursor.seen[-1]
        # Any other answer is in the order of the graph. The cursor has the order of its entity.
        order = tuple(cursor.order or ())
        try:
            # The keys are in order, so their number up to the cursor is the position after it.
            begin = sum(key.order <= order for key in self._keys)
        except TypeError:
            # The order is of another kind of graph: texts are compared with numbers.
            raise InvalidInput("Invalid cursor") from None
        if begin == 0:
            return 0, False
        return begin, self._keys[begin - 1].order == order

    def _relations_by_entity(self) -> dict[int, list[GraphRelation]]:
        """Group the relations by the position of the first entity that they touch.

        The key of the unattached relations is the number of entities.
        """
        numbers: dict[str, int] = {}
        for number, key in enumerate(self._keys):
            numbers.setdefault(key.name, number)
        unattached = len(self._keys)
        groups: dict[int, list[GraphRelation]] = {}
        for relation in self._relations:
            source = numbers.get(relation.source, unattached)
            target = numbers.get(relation.target, unattached)
            groups.setdefault(min(source, target), []).append(relation)
        return groups

    def _relation_items(
        self,
        groups: Mapping[int, Sequence[GraphRelation]],
        number: int,
        after: Position | None = None,
    ) -> list[_Item]:
        """Return the relations that follow an entity, in order.

        groups: the relations, as `_relations_by_entity` returns them.
        number: the position of the entity.
        after: only relations after this position. None means all.
        """
        relations = _relations_after(groups.get(number, ()), after)
        return [
            _Item(number, documents.entity_relation(relation), relation, position)
            for position, relation in relations
        ]

    def _unattached_items(
        self, groups: Mapping[int, Sequence[GraphRelation]], after: Position | None = None
    ) -> list[_Item]:
        """Return the relations that touch no entity of the answer, in order.

        groups: the relations, as `_relations_by_entity` returns them.
        after: only relations after this position. None means all.
        """
        entity_count = len(self._keys)
        relations = _relations_after(groups.get(entity_count, ()), after)
        return [
            _Item(
                # They follow the last entity.
                number=entity_count - 1,
                data=documents.entity_relation(relation),
                relation=relation,
                position=position,
                is_unattached=True,
            )
            for position, relation in relations
        ]


def _relations_after(
    relations: Iterable[GraphRelation], after: Position | None
) -> list[tuple[Position, GraphRelation]]:
    """Return the relations after a position, in order, each with its position.

    after: the position. None means all relations.
    """
    positioned = [(_position_of(relation), relation) for relation in relations]
    if after is not None:
        positioned = [row for row in positioned if _comparable(row[0]) > _comparable(after)]
    return sorted(positioned, key=lambda row: _comparable(row[0]))


def _position_of(relation: GraphRelation) -> Position:
    """Return the position of a relation, with a digest of its contents as the last part.

    That part may change when other relations are deleted.
    """
    contents = "\0".join(relation.triple).encode("utf-8", "surrogatepass")
    return [*relation.order[:-1], blake2b(contents, digest_size=12).hexdigest()]


def _comparable(position: Position) -> list[tuple[bool, int | str]]:
    """Return a key for comparing positions, whose parts may be numbers or texts.

    A position begins with a time in a graph of notes, and with a digest in a graph file.
    """
    return [(isinstance(part, str), part) for part in position]


def _digest(key: EntityKey) -> str:
    """Return a short text that identifies an entity in a cursor."""
    name = f"{key.project or ''}\0{key.name}\0{key.order}"
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def create_entities(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Create entities. The reply has the entities that did not exist yet.

    form: how the reply is written as JSON, and whether it may have a hint.
    """
    entities = [
        Entity(row["name"], row["entityType"], tuple(row["observations"]))
        for row in arguments["entities"]
    ]
    created = [
        documents.entity(entity.name, entity.type, entity.observations)
        for entity in graph.create_entities(entities)
    ]
    new_names = {row["name"] for row in created}
    existing_names = [entity.name for entity in entities if entity.name not in new_names]

    # In presets (with `indent`), the reply has everything, however long it is.
    is_bounded = form.indent is None and form.max_characters
    if is_bounded and len(form.text(created)) > form.max_characters:
        # Leave out the observations, which the caller has just sent.
        created = [{**row, "observations": []} for row in created]
        # If each entity takes as much as the longest one, this many surely fit.
        longest = max(form.size(row) for row in created)
        created = created[: form.max_characters // longest]
    hint = ""
    if existing_names and form.may_have_hint:
        hint = (
            f"Already there, nothing was changed: {_list_of_names(existing_names)}. "
            "Use memory_add_observations to add to an entity."
        )
    return Reply(form.text(created), {"entities": created}, hint=hint)


def create_relations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Create relations. The reply has the relations that did not exist yet.

    form: how the reply is written as JSON, and whether it may have a hint.
    """
    created = relations_data(graph.create_relations(_relations(arguments)))
    return Reply(form.text(created), {"relations": created})


def add_observations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Add observations to entities. The reply has the observations that were new.

    form: how the reply is written as JSON, and whether it may have a hint.
    """
    additions = [
        (addition["entityName"], addition["contents"]) for addition in arguments["observations"]
    ]
    try:
        added = graph.add_observations(additions)
    except NoEntity as error:
        hint = ""
        if form.may_have_hint:
            hint = _spelling_hint(graph, [name for name, _ in additions])
        return Reply(str(error), is_error=True, hint=hint)
    results = [{"entityName": name, "addedObservations": texts} for name, texts in added]
    return Reply(form.text(results), {"results": results})


def delete_entities(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Delete entities, and everything recorded about them.

    form: how the reply is written as JSON, and whether it may have a hint.
    """
    # Afterwards it could not be told any more which of them existed.
    hint = _why_not_deleted(graph, arguments, form)
    graph.delete_entities(arguments["entityNames"])
    return _deleted("Entities", hint)


def delete_observations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Delete observations of entities.

    form: how the reply is written as JSON, and whether it may have a hint.
    """
    # Afterwards it could not be told any more which of them existed.
    hint = _why_not_deleted(graph, arguments, form)
    graph.delete_observations(
        [(deletion["entityName"], deletion["observations"]) for deletion in arguments["deletions"]]
    )
    return _deleted("Observations", hint)


def delete_relations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Delete relations between entities.

    form: how the reply is written as JSON, and whether it may have a hint.
    """
    # Afterwards it could not be told any more which of them existed.
    hint = _why_not_deleted(graph, arguments, form)
    graph.delete_relations(_relations(arguments))
    return _deleted("Relations", hint)


def _deleted(noun: str, hint: str) -> Reply:
    """Return the reply after a deletion.

    noun: the deleted things, such as `Entities`.
    """
    message = f"{noun} deleted successfully"
    return Reply(message, {"success": True, "message": message}, hint=hint)


def _why_not_deleted(graph: Graph, arguments: Arguments, form: Form) -> str:
    """Return the hint that some of the things to delete do not exist. "" if all do.

    For example: `1 of 2 deleted: no such entity.`

    form: how the reply is written as JSON, and whether it may have a hint.
    """
    # Some presets fix the words of replies.
    if not form.may_have_hint:
        return ""
    deletion = _deletion_of(graph, arguments)
    total = len(deletion.keys_to_delete)
    deleted_count = len(deletion.keys_to_delete & deletion.present_keys)
    if deleted_count == total:
        return ""
    why = f"{deleted_count} of {total} deleted: no such {deletion.kind}."
    return f"{why} {_spelling_hint(graph, deletion.names)}".strip()


class _Deletion(NamedTuple):
    """The things that a call is about to delete.

    kind: `relation`, `entity` or `observation`.
    keys_to_delete: the things that the call names: triples of relations, names of entities, or
        pairs of an entity's name and an observation.
    present_keys: the things of this kind that the named entities have, as such keys.
    names: the entities that the call names, which may be misspelled.
    """

    kind: str
    keys_to_delete: set[Any]
    present_keys: set[Any]
    names: Sequence[str]


def _deletion_of(graph: Graph, arguments: Arguments) -> _Deletion:
    """Return the things that the arguments of a deleting tool name, and those that exist."""
    if "relations" in arguments:
        names = [row["from"] for row in arguments["relations"]]
        triples = {relation.triple for relation in _relations(arguments)}
        present_triples = {relation.triple for relation in graph.relations(set(names))}
        return _Deletion("relation", triples, present_triples, names)
    if "entityNames" in arguments:
        names = arguments["entityNames"]
        present_names = {key.name for key in graph.named(names)}
        return _Deletion("entity", set(names), present_names, names)
    names = [row["entityName"] for row in arguments["deletions"]]
    pairs: set[tuple[str, str]] = set()
    for row in arguments["deletions"]:
        pairs.update((row["entityName"], text) for text in row["observations"])
    return _Deletion("observation", pairs, _observation_pairs(graph, names), names)


def _observation_pairs(graph: Graph, names: Sequence[str]) -> set[tuple[str, str]]:
    """Return the pairs (name of the entity, observation) of these entities."""
    keys = graph.named(names)
    pairs: set[tuple[str, str]] = set()
    for key, texts in zip(keys, graph.observations(keys), strict=True):
        pairs.update((key.name, text) for text in texts)
    return pairs


def _spelling_hint(graph: Graph, names: Iterable[str]) -> str:
    """Return a hint such as `Did you mean "Ana", not "Anna"?`. "" if no entity has a similar name.

    names: the names of a call, of which some may exist.
    """
    unique_names = list(dict.fromkeys(names))
    known_names = {key.name for key in graph.named(unique_names)}
    missing_names = [name for name in unique_names if name not in known_names]
    if not missing_names:
        return ""
    keys = graph.keys()
    if len(keys) > _MAX_SEARCHED_ENTITIES:
        return ""
    guesses = []
    for name in missing_names[:_MAX_MISSPELLED_NAMES]:
        similar_names = near(name, (key.name for key in keys), most=1)
        if similar_names:
            guesses.append(f"{_list_of_names(similar_names)}, not {_list_of_names([name])}?")
    if guesses:
        return f"Did you mean {' '.join(guesses)}"
    return ""


def _list_of_names(names: Sequence[str]) -> str:
    """Return names for a sentence: `"a", "b" and 3 more`."""
    sentence = ", ".join(f'"{flat(name[:80])}"' for name in names[:_MAX_LISTED_NAMES])
    if len(names) > _MAX_LISTED_NAMES:
        sentence += f" and {len(names) - _MAX_LISTED_NAMES} more"
    return sentence


def _relations(arguments: Arguments) -> Sequence[GraphRelation]:
    """Return the relations that a call names."""
    return [
        GraphRelation(row["from"], row["to"], row["relationType"]) for row in arguments["relations"]
    ]


def read_graph(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Return the whole graph, or a page of it.

    form: how the reply is written as JSON, and whether it may have a hint.
    """
    return _reply(graph, graph.keys(), graph.relations(), arguments, form)


def search_nodes(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Find the entities that match a query, and their relations. `ranked` puts the best first.

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

    form: how the reply is written as JSON, and whether it may have a hint.
    """
    if arguments.get("depth", 0):
        return _open_neighbours(graph, arguments, form)
    keys = graph.named(arguments["names"])
    names = {key.name for key in keys}
    direction = arguments.get("direction", "both")
    types = arguments.get("relationTypes")
    # Only relations that lead from one of the entities somewhere, in the direction asked for.
    relations = [
        relation
        for relation in graph.relations(names)
        if _reached(relation, names, direction, types)
    ]
    hint = _spelling_hint(graph, arguments["names"]) if form.may_have_hint else ""
    return _reply(graph, keys, relations, arguments, form, hint=hint)


def _open_neighbours(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Get the entities within `depth` relations of the named ones, and all relations among them.

    form: how the reply is written as JSON, and whether it may have a hint.
    """
    distances = _distances(
        graph,
        names=arguments["names"],
        direction=arguments.get("direction", "both"),
        types=arguments.get("relationTypes"),
        depth=arguments["depth"],
    )
    # The nearest come first, so the order of an entity begins with its distance.
    keys = [key._replace(order=(distances[key.name], *key.order)) for key in graph.named(distances)]
    keys.sort(key=lambda key: key.order)
    relations = [
        relation
        for relation in graph.relations(set(distances))
        if relation.source in distances and relation.target in distances
    ]
    return _reply(graph, keys, relations, arguments, form)


def _distances(
    graph: Graph, names: Sequence[str], direction: str, types: list[str] | None, depth: int
) -> dict[str, int]:
    """Return all names within `depth` relations of the start: name -> distance.

    names: the names to start from, at distance 0.
    direction: `out` follows relations from their source, `in` from their target, `both` either way.
    types: the types of relations to follow. None means all.
    depth: the largest distance.
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
    """Return the entities that a relation leads to, starting from one of `names`.

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
    """Reply with one page of entities and relations, and the warnings of the graph.

    keys: all entities of the answer, in order.
    relations: all relations of the answer.
    arguments: the arguments of the call, which choose the page.
    form: how the reply is written as JSON, and whether it may have a hint.
    hint: a hint for the model; "" for none.
    """
    data, text = GraphReply(graph, keys, relations, arguments, form).data()
    warnings = graph.warnings()
    return Reply(text, data, meta={WARNINGS: warnings} if warnings else None, hint=hint)


def whole_graph(graph: Graph) -> str:
    """Return the whole graph as indented JSON, as its resources show it (contract 002, 7)."""
    form = Form(indent=2, max_characters=0)

    def read_text() -> str:
        _, text = GraphReply(graph, graph.keys(), graph.relations(), {}, form).data()
        return text

    return graph.at_once(read_text)
