"""Memories as JSON Lines: out, oldest first, and in again with nothing lost (contract 001, 12).

Neither holds more than a few hundred memories at a time. An import looks at the whole input before
it writes.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, BinaryIO, NamedTuple
from uuid import uuid4

from memoranda import documents
from memoranda.clock import parse_stamp
from memoranda.engine import MemorySession
from memoranda.engine.exchange import Exchange, digest
from memoranda.errors import InvalidInput, MemorandaError
from memoranda.index.rows import NoteInfo
from memoranda.note.links import first_line
from memoranda.note.markdown import Record, parse_note
from memoranda.note.model import (
    CATEGORIES,
    CATEGORY_PROJECT,
    FURTHER,
    GLOBAL,
    INBOX,
    MEMORY_KEYS,
    OLD_PHASES,
    ORGANIZED,
    PHASES,
    Note,
)
from memoranda.query import check_memory
from memoranda.text.gate import redact
from memoranda.text.unicode import compared_lines

MANUAL = "manual"
_HEADER = frozenset(MEMORY_KEYS)
_FIXED = _HEADER | {"content", "path"}
# Characters of an id that an import keeps.
_MOST_ID_CHARACTERS = 200
# Numbers that SQLite and every reader of JSON can hold.
_MOST = 10**18
# Levels of a value, and the values in it, that an import takes.
_MOST_LEVELS = 50
_MOST_VALUES = 50_000


class BadRecord(MemorandaError):
    """Record `number`, counted from 1, cannot be imported; `reason` in plain words."""

    code = "invalid"

    def __init__(self, number: int, reason: str):
        self.number = number
        self.reason = reason
        super().__init__(f"malformed JSON at record {number}: {reason}")


@dataclass(frozen=True, slots=True)
class ParsedRecord:
    """A record read from a line.

    record: with defaults for missing fields.
    fields: the names of the fields in the line.
    values: the values in the line.
    """

    record: Record
    fields: frozenset[str]
    values: dict[str, Any]

    def over(self, existing: Record, now: datetime) -> Record:
        """The record, with missing fields taken from `existing`.

        A line with a time of change is a whole record. Without one, its further keys are added to
        the existing ones, and a change of the content is dated `now`.
        """
        lacking = {
            name: getattr(existing, name)
            for name in Record.__slots__
            if name not in self.fields | {"further"}
        }
        if "category" in self.fields and "phase" not in self.fields:
            # The category says it
            del lacking["phase"]
            if self.record.phase == ORGANIZED:
                lacking.pop("expires", None)
        if "updated" in self.fields:
            return replace(self.record, **lacking)
        record = replace(self.record, **lacking, further=existing.further | self.record.further)
        if record != existing:
            record = replace(record, updated=now)
        if record.content != existing.content and "version" not in self.fields:
            record = replace(record, version=existing.version + 1)
        return record


def row(memory: MemorySession, note: Note | NoteInfo, content: str) -> dict[str, Any]:
    """The keys of an exported record in their order; unknown header keys are in `extra`."""
    document = documents.note(memory, note, content)
    del document["path"]
    # The rules of the importing home decide what is suspicious there.
    document.pop("suspicious", None)
    document["source"] = document["source"] or MANUAL
    other_keys = {
        key: value for key, value in _further_keys(note.header).items() if key not in FURTHER
    }
    if other_keys:
        return {**document, "extra": other_keys}
    return document


def _further_keys(header: Mapping[str, Any]) -> dict[str, Any]:
    """The header keys that not every memory has, without the former key of the phase."""
    keys = {key: value for key, value in header.items() if key not in _HEADER}
    if keys.get("type") in OLD_PHASES:
        del keys["type"]
    return keys


def compared(document: dict[str, Any]) -> dict[str, Any]:
    """The values that equal records share, of a line or an exported row.

    Read counts are left out.
    """
    return {
        key: value for key, value in document.items() if key not in ("access_count", "content_hash")
    }


def _fields_of(values: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a record that a line has values for, each with its key in the line.

    `expires_at` counts even as null, as it then says that the memory stays.
    """
    return {
        name: key
        for key, name in _NAMES.items()
        if values.get(key) is not None or key == "expires_at" in values
    }


def read(
    data: bytes, *, now: datetime, ttl: timedelta, sees: Callable[[str], bool]
) -> ParsedRecord:
    """The record in a line. `ttl` is how long an inbox memory without `expires_at` stays from `now`
    on. Raises InvalidInput saying what is wrong with it.
    """
    values = _values(data)
    fields = _fields_of(values)
    has_old_phase = values.get("type") in OLD_PHASES
    if has_old_phase:
        fields["phase"] = "type"
    category = values.get("category") or INBOX
    scope = values.get("scope") or GLOBAL
    if isinstance(scope, str):
        scope = scope.lower()
    phase = _phase(values, category)
    _check_words(category, phase, scope, sees)
    created = _time(values, "created_at") or now
    expires = _time(values, "expires_at")
    if "expires_at" not in values and phase == INBOX:
        expires = now + ttl
    other_keys = _further(values, has_old_phase)
    tags = tuple(_texts(values, "tags"))
    links = tuple(_texts(values, "links"))
    record = Record(
        _id(values),
        _content(values),
        category,
        created,
        _time(values, "updated_at") or created,
        scope,
        phase,
        tags,
        _source(values),
        expires,
        _number(values, "access_count", 0),
        links,
        _number(values, "version", 1),
        other_keys,
    )
    _check_shape([other_keys, tags, links])
    # Only an escape can hold half of a pair: the bytes were read as UTF-8.
    if b"\\u" in data:
        _check_unicode(record)
    return ParsedRecord(record, frozenset(fields), values)


def _phase(values: Mapping[str, Any], category: Any) -> Any:
    """The phase that a record names under its present or former key, or else the category's phase."""
    if values.get("phase"):
        return values["phase"]
    former = values.get("type")
    if isinstance(former, str) and former in OLD_PHASES:
        return OLD_PHASES[former]
    return INBOX if category == INBOX else ORGANIZED


def _content(values: Mapping[str, Any]) -> str:
    """The text of a record. Raises InvalidInput for a missing one, and for an empty one that is not
    an update.
    """
    content = values.get("content")
    if "content" not in values:
        raise InvalidInput("content is missing")
    if not isinstance(content, str):
        raise InvalidInput("content must be a text")
    if not content.strip() and values.get("id") is None:
        raise InvalidInput("content must not be empty")
    return content


def _check_words(category: Any, phase: Any, scope: Any, sees: Callable[[str], bool]) -> None:
    """Raise InvalidInput for a category or phase that does not exist, or a scope not seen."""
    for name, value in (("category", category), ("phase", phase), ("scope", scope)):
        if not isinstance(value, str):
            raise InvalidInput(f"{name} must be a text")
    if category not in CATEGORIES:
        raise InvalidInput(f'invalid category "{category}"')
    check_memory(category=category)
    if phase not in PHASES:
        raise InvalidInput(f'invalid phase "{phase}"')
    check_memory(phase=phase)
    if not sees(scope):
        raise InvalidInput(f'invalid scope "{scope}"')
    check_memory(scope=scope)


def _source(values: Mapping[str, Any]) -> str:
    """Where a record says it is from. Raises InvalidInput."""
    source = values.get("source")
    if source is not None and not isinstance(source, str):
        raise InvalidInput("source must be a text")
    return (source or "").strip() or MANUAL


def _check_unicode(record: Record) -> None:
    """Raise InvalidInput for a record with half of a surrogate pair."""
    try:
        record.text().encode()
    except UnicodeEncodeError:
        raise InvalidInput("it holds half of a surrogate pair, which is no Unicode text") from None


def _check_shape(value: Any) -> None:
    """Raise InvalidInput for more than a header can hold that will be read again."""
    level = [value]
    count = 0
    for _ in range(_MOST_LEVELS):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, (list, tuple)):
                inner += item
        count += len(inner)
        if count > _MOST_VALUES:
            raise InvalidInput(f"it has more than {_MOST_VALUES} values")
        if not inner:
            return
        level = inner
    raise InvalidInput("it is nested too deeply")


# The keys of a line and the fields of Record they fill.
_NAMES = {
    key: key.removesuffix("_at") for key in ("content", *MEMORY_KEYS) if key != "content_hash"
}


def _values(data: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    try:
        values = json.loads(data.decode("utf-8"), parse_constant=refuse)
    except UnicodeDecodeError:
        raise InvalidInput("it is not valid UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{error.msg} (column {error.colno})") from None
    except RecursionError:
        raise InvalidInput("it is nested too deeply") from None
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    if not isinstance(values, dict):
        raise InvalidInput("it is no JSON object")
    return values


def _id(values: dict[str, Any]) -> str:
    identity = values.get("id")
    if identity is None:
        return ""
    sound = (
        isinstance(identity, str)
        and 0 < len(identity) <= _MOST_ID_CHARACTERS
        and identity.isprintable()
    )
    if (
        not sound
        or identity != identity.strip()
        or ".." in identity
        or not {"/", "\\"}.isdisjoint(identity)
    ):
        raise InvalidInput(f"invalid id {json.dumps(identity, ensure_ascii=False)}")
    return identity


def _time(values: dict[str, Any], key: str) -> datetime | None:
    value = values.get(key)
    if value is None:
        return None
    try:
        return parse_stamp(value)
    except (ValueError, OverflowError, TypeError, AttributeError):
        raise InvalidInput(f"{key} is no time: {json.dumps(value, ensure_ascii=False)}") from None


def _texts(values: dict[str, Any], key: str) -> list[str]:
    """A list of texts, or one text with commas; each once, trimmed."""
    value = values.get(key)
    if value is None:
        value = []
    elif isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"{key} must be a list of texts")
    return list(dict.fromkeys(text for item in value if (text := item.strip())))


def _number(values: dict[str, Any], key: str, least: int) -> int:
    value = values.get(key)
    if value is None:
        return least
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _MOST:
        raise InvalidInput(f"{key} must be a whole number from {least}")
    return value


def _further(values: dict[str, Any], has_old_phase: bool) -> dict[str, Any]:
    """The header keys after `version`: the keys of contract 001, 2 in order, then all others.

    Raises InvalidInput if `extra` is not an object, or has keys of ours.
    """
    extra = values.get("extra")
    if extra is None:
        extra = {}
    if not isinstance(extra, dict):
        raise InvalidInput("extra must be an object")
    ours = sorted(extra.keys() & _HEADER)
    if ours:
        raise InvalidInput(f"extra must not hold {', '.join(ours)}")
    left_out = _FIXED | {"extra"}
    if has_old_phase:
        left_out |= {"type"}
    other_keys = {key: value for key, value in values.items() if key not in left_out} | extra
    known_keys = {key: other_keys[key] for key in FURTHER if other_keys.get(key) is not None}
    return known_keys | {key: value for key, value in other_keys.items() if key not in FURTHER}


Progress = Callable[[int, int], None]
Say = Callable[[str], None]

PAGE = 200
"""Memories read, or written as one change, at a time."""
# Bytes of the notes that are read at once.
_PAGE_BYTES = 4 << 20
_BOM = b"\xef\xbb\xbf"
NEW = "import"
UPDATE = "update"
OLDER = "older"
UNCHANGED = "unchanged"
SKIP = "skip"


def exported_lines(
    memory: MemorySession,
    category: str | None = None,
    scope: str | None = None,
    *,
    redacts: bool = False,
    secret: Callable[[], None] | None = None,
) -> Iterator[str]:
    """The lines, without newlines, of the memories the caller sees: oldest `created_at` first, then
    by id. `secret` is called for each that holds what looks like a secret; with `redacts` it is
    redacted."""
    exchange = Exchange(memory)
    rows = exchange.rows(category, scope)
    for start in range(0, len(rows), PAGE):
        for info, content in exchange.page(rows[start : start + PAGE]):
            secrets = memory.gate_rules().find(content, "secret")
            if secrets:
                if secret is not None:
                    secret()
                if redacts:
                    content = redact(content, secrets)
            yield json.dumps(row(memory, info, content), ensure_ascii=False, separators=(",", ":"))


def is_note_line(line: bytes) -> bool:
    """Whether a line is about a note of another project than `categories`."""
    if b'"project"' not in line or b'"path"' not in line:
        return False
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(values, dict) or values.get("project") == CATEGORY_PROJECT:
        return False
    return isinstance(values.get("project"), str) and isinstance(values.get("path"), str)


@dataclass(slots=True)
class Tally:
    """The counts of an import, or of a trial run.

    imported: new records.
    updated, unchanged: existing records.
    skipped: records that are bad, older than the existing one, or that have no id and existing
        content.
    """

    imported: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: int = 0


class _Action(NamedTuple):
    """The action for one record. `info` is the memory that has its id."""

    verb: str
    record: Record
    info: NoteInfo | None = None


class Import:
    """The import of `source`, a seekable file of JSON Lines, for the caller of `memory`. With
    `skip_bad` bad records are left out."""

    def __init__(self, memory: MemorySession, source: BinaryIO, *, skip_bad: bool = False):
        self._memory = memory
        self._exchange = Exchange(memory)
        self._source = source
        self._skip_bad = skip_bad
        self._now = memory.clock()
        self._size = source.seek(0, io.SEEK_END)

    def check(self) -> None:
        """Look at every record, and change nothing. Raises BadRecord for the first bad one."""
        for _ in self._batches(Tally()):
            pass

    def plan(self, say: Say, warn: Say) -> Tally:
        """Try the import without writing. `say` gets each action, `warn` each record left out.

        Raises BadRecord.
        """
        tally = Tally()
        for actions in self._batches(tally, warn, remembers=True):
            for action in actions:
                if action.verb in (NEW, UPDATE):
                    say(
                        f"would {action.verb} {action.record.id[:8] or 'new'} {first_line(action.record.content)[:60]}"
                    )
        return tally

    def run(self, tally: Tally, warn: Say, progress: Progress | None = None) -> None:
        """Carry it out, after `check`; `tally` counts what is done so far. A batch is one change.
        Raises BadRecord, StorageError and the like; what was written before stays, and may be
        imported again."""
        for actions in self._batches(tally, warn):
            older = [
                (action.info, action.record.text().encode())
                for action in actions
                if action.verb == OLDER and action.info
            ]
            if older:
                self._exchange.keep(older)
            records = [action.record for action in actions if action.verb in (NEW, UPDATE)]
            records = [
                record if record.id else replace(record, id=str(uuid4())) for record in records
            ]
            if records:
                self._exchange.put(records)
            if progress is not None:
                progress(self._source.tell(), self._size)

    def _batches(
        self, tally: Tally, warn: Say | None = None, *, remembers: bool = False
    ) -> Iterator[list[_Action]]:
        """Go through the input once. Yields the actions of each batch, and counts them in `tally`
        afterwards.

        remembers: for a trial run, remember what it would have written, about 200 bytes a record.
            Then it counts exactly even if an id occurs twice.
        """
        self._contents: set[bytes] | None = None
        self._written: dict[str, tuple[datetime, bytes]] = {}
        self._remembers = remembers
        batch: list[tuple[int, ParsedRecord]] = []
        ids: set[str] = set()
        size = 0
        number = 0
        self._source.seek(0)
        for data in iter(self._source.readline, b""):
            if number == 0:
                data = data.removeprefix(_BOM)
            if not data.strip():
                continue
            number += 1
            # NoteImport takes it
            if is_note_line(data):
                continue
            try:
                settings = self._memory.settings
                line = data.rstrip(b"\r\n")
                parsed = read(
                    line, now=self._now, ttl=settings.short_term_ttl, sees=self._memory.sees
                )
            except InvalidInput as error:
                self._refuse(BadRecord(number, str(error)), tally, warn)
                continue
            if (
                len(batch) >= PAGE
                or size > _PAGE_BYTES
                or ("id" in parsed.fields and parsed.record.id in ids)
            ):
                yield from self._plan_batch(batch, tally, warn)
                batch = []
                ids = set()
                size = 0
            batch.append((number, parsed))
            ids.add(parsed.record.id)
            size += len(line)
        yield from self._plan_batch(batch, tally, warn)

    def _refuse(self, error: BadRecord, tally: Tally, warn: Say | None) -> None:
        if not self._skip_bad:
            raise error
        tally.skipped += 1
        if warn is not None:
            warn(f"warning: {error}")

    def _plan_batch(
        self, batch: list[tuple[int, ParsedRecord]], tally: Tally, warn: Say | None
    ) -> Iterator[list[_Action]]:
        ids = [parsed.record.id for _, parsed in batch if "id" in parsed.fields]
        known_records = self._exchange.known(ids)
        survivors = self._exchange.survivors(
            record_id for record_id in ids if record_id not in known_records
        )
        actions = []
        for number, parsed in batch:
            try:
                actions.append(self._action(parsed, known_records, survivors))
            except InvalidInput as error:
                self._refuse(BadRecord(number, str(error)), tally, warn)
        yield actions
        for action in actions:
            name = {NEW: "imported", UPDATE: "updated", UNCHANGED: "unchanged"}.get(
                action.verb, "skipped"
            )
            setattr(tally, name, getattr(tally, name) + 1)

    def _action(
        self,
        parsed: ParsedRecord,
        known_records: dict[str, tuple[NoteInfo, str]],
        survivors: dict[str, str],
    ) -> _Action:
        record = parsed.record
        # A content seen once is there from then on
        if "id" not in parsed.fields:
            if self._contents is None:
                self._contents = self._exchange.contents()
            mark = digest(record.scope, record.content)
            is_there = mark in self._contents
            self._contents.add(mark)
            return _Action(SKIP if is_there else NEW, record)
        # On a trial run: against an earlier one of the input with its id
        if record.id in self._written:
            moment, text = self._written[record.id]
            now, own_state = _state(record)
            if own_state == text or now <= moment:
                return _Action(UNCHANGED if own_state == text else OLDER, record)
            return self._note_action(_Action(UPDATE, record))
        if record.id in known_records:
            return self._against(parsed, *known_records[record.id])
        if record.id in survivors and {*compared_lines(record.content)} <= {
            *compared_lines(survivors[record.id])
        }:
            # Merged into another memory, which says all of it
            return _Action(SKIP, record)
        return self._note_action(_Action(NEW, record))

    def _against(self, parsed: ParsedRecord, info: NoteInfo, content: str) -> _Action:
        """The record against the memory that has its id: the newer one wins."""
        memory = self._memory
        if not memory.sees(info.scope):
            raise InvalidInput(f"the id {info.id} is taken")
        before = compared(row(memory, info, content))
        if compared(parsed.values) == before:
            return _Action(UNCHANGED, parsed.record, info)
        existing = Record(
            info.id,
            content,
            info.category or INBOX,
            parse_stamp(info.created),
            parse_stamp(info.updated or info.changed),
            info.scope,
            info.phase,
            info.tags,
            info.source,
            parse_stamp(info.expires) if info.expires else None,
            info.access_count,
            info.links,
            info.version,
            _further_keys(info.header),
        )
        record = parsed.over(existing, self._now)
        note = parse_note(
            record.text(),
            project=CATEGORY_PROJECT,
            path=f"{record.category}/x.md",
            changed=self._now,
        )
        if compared(row(memory, note, note.content)) == before:
            return _Action(UNCHANGED, record, info)
        if record.updated <= existing.updated:
            return _Action(OLDER, record, info)
        if info.locked:
            raise InvalidInput(
                f'{info.permalink} is locked and is not replaced. Remove its "locked: true" first.'
            )
        self._note_action(_Action(UPDATE, record))
        return _Action(
            UPDATE, replace(record, access_count=max(record.access_count, info.access_count)), info
        )

    def _note_action(self, action: _Action) -> _Action:
        """Note an action for the rest of the input, and return it."""
        if self._contents is not None:
            self._contents.add(digest(action.record.scope, action.record.content))
        if self._remembers:
            self._written[action.record.id] = _state(action.record)
        return action


def _state(record: Record) -> tuple[datetime, bytes]:
    """The record's timestamp, and a digest of everything except its access count."""
    text = replace(record, access_count=0).text()
    return record.updated, hashlib.blake2b(text.encode(), digest_size=16).digest()
