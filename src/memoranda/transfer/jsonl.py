"""Export memories as JSON Lines, oldest first, and import them again with nothing lost.

Each line is a *record*: a memory as a JSON object. Neither direction has more than a few hundred
memories in main memory at a time. An import checks the whole input before it writes.
Source: contract 001, 12.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, BinaryIO, NamedTuple
from uuid import uuid4

from memoranda import documents
from memoranda.clock import parse_stamp
from memoranda.engine import MemorySession
from memoranda.engine.exchange import Exchange, digest
from memoranda.errors import BadRecord, InvalidInput
from memoranda.index.rows import NoteInfo
from memoranda.note.frontmatter import parse_typed, split
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
# The number of characters of the longest id that an import takes.
_MOST_ID_CHARACTERS = 200
# Every smaller number can be held by SQLite and by every reader of JSON.
_NUMBER_LIMIT = 10**18
# The number of nested levels, and of values in them, that an import takes.
_MOST_LEVELS = 50
_MOST_VALUES = 50_000


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
        """Return the record to store over an existing one. Missing fields come from `existing`.

        A line with `updated_at` is a whole record. Without it, the line only changes some fields of
        the existing record: its further header keys are added to the existing ones, and the change
        gets the time `now`.
        """
        existing_values = {name: getattr(existing, name) for name in self._missing_fields()}
        is_whole = "updated" in self.fields
        if is_whole:
            return replace(self.record, **existing_values)

        further = existing.further | self.record.further
        record = replace(self.record, **existing_values, further=further)
        if record != existing:
            record = replace(record, updated=now)
        has_new_text = record.content != existing.content
        if has_new_text and "version" not in self.fields:
            record = replace(record, version=existing.version + 1)
        return record

    def _missing_fields(self) -> set[str]:
        """Return the names of the fields that the line does not say anything about.

        A category says something about two further fields.
        """
        # `over` decides about the further header keys
        missing_fields = set(Record.__slots__) - self.fields - {"further"}
        if "category" in self.fields and "phase" in missing_fields:
            # The phase follows from the category: only `inbox` is not organized.
            missing_fields.remove("phase")
            if self.record.phase == ORGANIZED:
                # An organized memory does not expire, unless the line says when.
                missing_fields.discard("expires")
        return missing_fields


def row(memory: MemorySession, note: Note | NoteInfo, content: str) -> dict[str, Any]:
    """Return a memory as an exported record, with unknown header keys in `extra`.

    The values of these keys have their types, so that the 5 of `stars: 5` is a number.
    """
    document = documents.note(memory, note, content)
    del document["path"]
    # The rules of the importing home decide what is suspicious there.
    document.pop("suspicious", None)
    document["source"] = document["source"] or MANUAL
    if not _unknown_keys(note.header):
        return document

    # The parsed header has the number 5 as the text "5". Only the file tells it from a text.
    text = note.text if isinstance(note, Note) else memory.text_of(note)
    typed_header = parse_typed(split(text).yaml or "")
    return {**document, "extra": _unknown_keys(typed_header)}


def _unknown_keys(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a memory's header that the program does not use itself."""
    return {key: value for key, value in _further_keys(header).items() if key not in FURTHER}


def _further_keys(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header keys that not every memory has, without the former key of the phase."""
    keys = {key: value for key, value in header.items() if key not in _HEADER}
    if keys.get("type") in OLD_PHASES:
        del keys["type"]
    return keys


def compared(document: dict[str, Any]) -> dict[str, Any]:
    """Return the values to compare records by: all except the count of reads and the hash.

    document: the values of a line, or of an exported record.
    """
    ignored_keys = ("access_count", "content_hash")
    return {key: value for key, value in document.items() if key not in ignored_keys}


def _fields_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the record's fields that a line has, each with its key in the line.

    `expires_at` counts even as null, which means that the memory never expires.
    """
    return {
        name: key
        for key, name in _NAMES.items()
        if values.get(key) is not None or (key == "expires_at" and key in values)
    }


def read(
    data: bytes, *, now: datetime, ttl: timedelta, sees: Callable[[str], bool]
) -> ParsedRecord:
    """Read the record in a line. Raises InvalidInput with the reason for a bad one.

    now: the time of a record without a time.
    ttl: how long an inbox memory without `expires_at` stays, from `now` on.
    sees: whether the caller may write to a scope.
    """
    values = _values(data)
    fields = _fields_of(values)

    # A file may have the phase in `type`, its former key.
    has_old_phase = values.get("type") in OLD_PHASES
    if has_old_phase:
        fields["phase"] = "type"
    category = values.get("category") or INBOX
    scope = values.get("scope") or GLOBAL
    if isinstance(scope, str):
        scope = scope.lower()
    phase = _phase(values, category)
    _check_words(category, phase, scope, sees)

    # An inbox memory ends some time after it was written. Others stay.
    created = _time(values, "created_at") or now
    expires = _time(values, "expires_at")
    if "expires_at" not in values and phase == INBOX:
        expires = now + ttl
    other_keys = _further(values, has_old_phase)
    tags = tuple(_texts(values, "tags"))
    links = tuple(_texts(values, "links"))
    record = Record(
        id=_id(values),
        content=_content(values),
        category=category,
        created=created,
        updated=_time(values, "updated_at") or created,
        scope=scope,
        phase=phase,
        tags=tags,
        source=_source(values),
        expires=expires,
        access_count=_number(values, "access_count", 0),
        links=links,
        version=_number(values, "version", 1),
        further=other_keys,
    )
    _check_shape([other_keys, tags, links])
    # The line is valid UTF-8. So only an escape such as `\ud800` can be half of a surrogate pair.
    if b"\\u" in data:
        _check_unicode(record)
    return ParsedRecord(record, frozenset(fields), values)


def _phase(values: Mapping[str, Any], category: Any) -> Any:
    """Return the phase of a record: `inbox`, `organized` and so on.

    It is the value of the key `phase`, or of its former name `type`, or follows from the category.
    """
    if values.get("phase"):
        return values["phase"]
    former = values.get("type")
    if isinstance(former, str) and former in OLD_PHASES:
        return OLD_PHASES[former]
    return INBOX if category == INBOX else ORGANIZED


def _content(values: Mapping[str, Any]) -> str:
    """Return the text of a record.

    Raises InvalidInput for a missing one, and for an empty one without an id. A record with an id
    may be an update that empties a memory.
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
    """Raise InvalidInput for an unknown category or phase, or a scope that is not visible.

    sees: whether the caller may see notes of a scope.
    """
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
    """Return the source that a record names, or else `manual`. Raises InvalidInput."""
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
    """Raise InvalidInput if values are nested too deeply for a header, or are too many."""
    values_of_level = [value]
    count = 0
    for _ in range(_MOST_LEVELS):
        inner_values: list[Any] = []
        for item in values_of_level:
            if isinstance(item, dict):
                inner_values += item.values()
            elif isinstance(item, (list, tuple)):
                inner_values += item
        count += len(inner_values)
        if count > _MOST_VALUES:
            raise InvalidInput(f"it has more than {_MOST_VALUES} values")
        if not inner_values:
            return
        values_of_level = inner_values
    raise InvalidInput("it is nested too deeply")


# The keys of a line, and the fields of Record that they fill: `created_at` fills `created`.
_NAMES = {
    key: key.removesuffix("_at") for key in ("content", *MEMORY_KEYS) if key != "content_hash"
}


def _values(data: bytes) -> dict[str, Any]:
    """Read the JSON object in a line. Raises InvalidInput with the reason for another line."""

    def refuse(constant: str) -> Any:
        """Refuse `NaN` and `Infinity`, which Python would read."""
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
    """Return the id in a line. "" without one.

    Raises InvalidInput for an id that cannot be the name of a file.
    """
    identity = values.get("id")
    if identity is None:
        return ""
    if not isinstance(identity, str) or not _is_file_name(identity):
        raise InvalidInput(f"invalid id {json.dumps(identity, ensure_ascii=False)}")
    return identity


def _is_file_name(identity: str) -> bool:
    """Whether an id can be the name of a file."""
    has_allowed_length = 0 < len(identity) <= _MOST_ID_CHARACTERS
    if not has_allowed_length or not identity.isprintable():
        return False
    has_blanks_around = identity != identity.strip()
    leads_elsewhere = ".." in identity or "/" in identity or "\\" in identity
    return not has_blanks_around and not leads_elsewhere


def _time(values: dict[str, Any], key: str) -> datetime | None:
    """Return the time in a line. None without one. Raises InvalidInput for another value."""
    value = values.get(key)
    if value is None:
        return None
    try:
        return parse_stamp(value)
    except (ValueError, OverflowError, TypeError, AttributeError):
        raise InvalidInput(f"{key} is no time: {json.dumps(value, ensure_ascii=False)}") from None


def _texts(values: dict[str, Any], key: str) -> list[str]:
    """Read a list of texts, or one text with commas: `a, b` is `["a", "b"]`.

    Raises InvalidInput for another value.
    """
    value = values.get(key)
    if value is None:
        value = []
    elif isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"{key} must be a list of texts")
    texts = [item.strip() for item in value]
    return list(dict.fromkeys(filter(None, texts)))


def _number(values: dict[str, Any], key: str, least: int) -> int:
    """Return a whole number in a line. Without one, it is `least`. Raises InvalidInput."""
    value = values.get(key)
    if value is None:
        return least
    # In Python, True and False are numbers, too.
    is_whole_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole_number or not least <= value < _NUMBER_LIMIT:
        raise InvalidInput(f"{key} must be a whole number from {least}")
    return value


def _further(values: dict[str, Any], has_old_phase: bool) -> dict[str, Any]:
    """Return the header keys that not every memory has, the keys of contract 001, 2 first.

    They are in the line itself, or in its object `extra`. Raises InvalidInput if `extra` is not an
    object, or has a key that every memory has.

    has_old_phase: whether `type` is the former key of the phase, and not a header key.
    """
    extra = values.get("extra")
    if extra is None:
        extra = {}
    if not isinstance(extra, dict):
        raise InvalidInput("extra must be an object")
    reserved_keys = sorted(extra.keys() & _HEADER)
    if reserved_keys:
        raise InvalidInput(f"extra must not hold {', '.join(reserved_keys)}")
    excluded_keys = _FIXED | {"extra"}
    if has_old_phase:
        excluded_keys |= {"type"}

    # Keys with a meaning come in a fixed order, so that equal records have equal files.
    other_keys = {key: value for key, value in values.items() if key not in excluded_keys} | extra
    known_keys = {key: other_keys[key] for key in FURTHER if other_keys.get(key) is not None}
    return known_keys | {key: value for key, value in other_keys.items() if key not in FURTHER}


Progress = Callable[[int, int], None]
Say = Callable[[str], None]

PAGE = 200
"""The number of memories that are read, or written as one change, at a time."""
# The number of bytes of input that are written as one change.
_PAGE_BYTES = 4 << 20
_BOM = b"\xef\xbb\xbf"
# The actions for a record of an import (`_Action.verb`).
NEW = "import"
"""Store the record as a new memory."""
UPDATE = "update"
"""Replace the memory that has the record's id."""
OLDER = "older"
"""Keep the memory that has the record's id, because it is newer. The text of the record goes into
the history of the memory, so that it can be restored."""
UNCHANGED = "unchanged"
"""Do nothing: the memory with the record's id is equal to the record."""
SKIP = "skip"
"""Leave the record out: a memory has its text."""


def exported_lines(
    memory: MemorySession,
    category: str | None = None,
    scope: str | None = None,
    *,
    redacts: bool = False,
    secret: Callable[[], None] | None = None,
) -> Iterator[str]:
    """Yield a line, without its newline, for each memory that the caller sees.

    The order is by `created_at`, then by id.

    category, scope: export only these. None exports all.
    redacts: whether texts that seem to be secrets are replaced.
    secret: called for each memory that seems to hold a secret. None calls nothing.
    """
    exchange = Exchange(memory)
    rows = exchange.rows(category, scope)
    for start in range(0, len(rows), PAGE):
        for info, content in exchange.page(rows[start : start + PAGE]):
            content = exported_text(memory, content, redacts, secret)
            yield json.dumps(row(memory, info, content), ensure_ascii=False, separators=(",", ":"))


def exported_text(
    memory: MemorySession, text: str, redacts: bool, secret: Callable[[], None] | None
) -> str:
    """Return a text as an export writes it.

    redacts: whether parts that seem to be secrets are replaced.
    secret: called if the text seems to hold a secret. None calls nothing.
    """
    secrets = memory.gate_rules().find(text, "secret")
    if secrets and secret is not None:
        secret()
    return redact(text, secrets) if secrets and redacts else text


def is_note_line(line: bytes) -> bool:
    """Whether a line is about a note of another project than `categories`."""
    # A cheap check that spares reading most lines.
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

    def count(self, verb: str) -> None:
        """Count a record.

        verb: the verb of its action: NEW, UPDATE, UNCHANGED, OLDER or SKIP.
        """
        if verb == NEW:
            self.imported += 1
        elif verb == UPDATE:
            self.updated += 1
        elif verb == UNCHANGED:
            self.unchanged += 1
        else:
            self.skipped += 1


class _Action(NamedTuple):
    """The action for one record.

    verb: NEW, UPDATE, OLDER, UNCHANGED or SKIP.
    info: the index entry of the memory that has the record's id. None without one.
    """

    verb: str
    record: Record
    info: NoteInfo | None = None


class Import:
    """Import a file of JSON Lines, which is read several times.

    source: the file. It must be seekable.
    skip_bad: whether to leave out bad records. Otherwise the first one ends the import.
    """

    def __init__(self, memory: MemorySession, source: BinaryIO, *, skip_bad: bool = False):
        self._memory = memory
        self._exchange = Exchange(memory)
        self._source = source
        self._skip_bad = skip_bad
        self._now = memory.clock()
        self._size = source.seek(0, io.SEEK_END)

    def _reading(
        self, tally: Tally, warn: Say | None = None, *, is_trial: bool = False
    ) -> _Reading:
        """Return a new reading of the input, from its beginning.

        tally: counts the records.
        warn: called with a sentence for each record that is left out. None means no warnings.
        is_trial: whether nothing is written.
        """
        return _Reading(
            memory=self._memory,
            source=self._source,
            now=self._now,
            tally=tally,
            warn=warn,
            skip_bad=self._skip_bad,
            is_trial=is_trial,
        )

    def check(self) -> None:
        """Check every record, and change nothing. Raises BadRecord for the first bad one."""
        for _ in self._reading(Tally()).batches():
            pass

    def plan(self, say: Say, warn: Say) -> Tally:
        """Try the import without writing. Raises BadRecord.

        say: is called with a sentence for each action.
        warn: is called with a sentence for each record that is left out.
        """
        tally = Tally()
        for actions in self._reading(tally, warn, is_trial=True).batches():
            for action in actions:
                if action.verb in (NEW, UPDATE):
                    short_id = action.record.id[:8] or "new"
                    title = first_line(action.record.content)[:60]
                    say(f"would {action.verb} {short_id} {title}")
        return tally

    def run(self, tally: Tally, warn: Say, progress: Progress | None = None) -> None:
        """Carry the import out, each batch as one change. Call `check` before.

        tally: counts the records that are done so far.
        warn: is called with a sentence for each record that is left out.
        progress: is called with the number of bytes done, and of all bytes. None calls nothing.

        Raises BadRecord, StorageError and others. Earlier batches stay, and may be imported again.
        """
        for actions in self._reading(tally, warn).batches():
            self._keep_older_texts(actions)
            self._store_records(actions)
            if progress is not None:
                progress(self._source.tell(), self._size)

    def _keep_older_texts(self, actions: Iterable[_Action]) -> None:
        """Put the texts of the records that are older than their memories into the history."""
        older = [
            (action.info, action.record.text().encode())
            for action in actions
            if action.verb == OLDER and action.info
        ]
        if older:
            self._exchange.keep(older)

    def _store_records(self, actions: Iterable[_Action]) -> None:
        """Store the new records and those that replace a memory. Records without an id get one."""
        records = []
        for action in actions:
            if action.verb not in (NEW, UPDATE):
                continue
            record = action.record
            if not record.id:
                record = replace(record, id=str(uuid4()))
            records.append(record)
        if records:
            self._exchange.put(records)


class _Reading:
    """Reads the input of an import once, and decides what to do about each record.

    source: the input.
    now: the time of a record without a time.
    tally: counts the records.
    warn: called with a sentence for each record that is left out. None means no warnings.
    skip_bad: whether to leave out bad records. Otherwise the first one raises BadRecord.
    is_trial: whether nothing is written. Then the records are remembered, about 200 bytes each, to
        count exactly if an id occurs twice.
    """

    def __init__(
        self,
        memory: MemorySession,
        source: BinaryIO,
        now: datetime,
        tally: Tally,
        warn: Say | None,
        *,
        skip_bad: bool,
        is_trial: bool,
    ):
        self._memory = memory
        self._exchange = Exchange(memory)
        self._source = source
        self._now = now
        self._tally = tally
        self._warn = warn
        self._skip_bad = skip_bad
        self._is_trial = is_trial
        # Digests of the texts in the home and in the input so far. None until the first record
        # without an id, because they take long to read.
        self._contents: set[bytes] | None = None
        # In a trial, the time and digest (`_state`) of the records so far, by id.
        self._written: dict[str, tuple[datetime, bytes]] = {}

    def batches(self) -> Iterator[list[_Action]]:
        """Yield the actions of each batch.

        The caller carries them out before it asks for the next batch. Only then are they counted.

        Raises BadRecord.
        """
        batch: list[tuple[int, ParsedRecord]] = []
        batch_ids: set[str] = set()
        batch_bytes = 0
        for number, parsed, size in self._records():
            is_full = len(batch) >= PAGE or batch_bytes > _PAGE_BYTES
            # A second record with an id must see the first one written.
            is_repeated_id = "id" in parsed.fields and parsed.record.id in batch_ids
            if is_full or is_repeated_id:
                yield from self._plan_batch(batch)
                batch = []
                batch_ids = set()
                batch_bytes = 0
            batch.append((number, parsed))
            batch_ids.add(parsed.record.id)
            batch_bytes += size
        yield from self._plan_batch(batch)

    def _records(self) -> Iterator[tuple[int, ParsedRecord, int]]:
        """Yield (number, record, bytes of its line) for each valid record of the input."""
        for number, line in self._record_lines():
            try:
                ttl = self._memory.settings.short_term_ttl
                parsed = read(line, now=self._now, ttl=ttl, sees=self._memory.sees)
            except InvalidInput as error:
                self._refuse(BadRecord(number, str(error)))
                continue
            yield number, parsed, len(line)

    def _record_lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line of the input with a record, and its number. Blank lines do not count."""
        number = 0
        self._source.seek(0)
        for data in iter(self._source.readline, b""):
            if number == 0:
                data = data.removeprefix(_BOM)
            if not data.strip():
                continue
            number += 1
            # Notes of projects are imported by `NoteImport`.
            if not is_note_line(data):
                yield number, data.rstrip(b"\r\n")

    def _refuse(self, error: BadRecord) -> None:
        """Count a bad record as skipped, or raise the error if bad records end the import."""
        if not self._skip_bad:
            raise error
        self._tally.skipped += 1
        if self._warn is not None:
            self._warn(f"warning: {error}")

    def _plan_batch(self, batch: list[tuple[int, ParsedRecord]]) -> Iterator[list[_Action]]:
        """Plan the records of a batch, let the caller carry the actions out, and count them.

        batch: the number of each record, and the record.
        """
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
                self._refuse(BadRecord(number, str(error)))
        yield actions
        for action in actions:
            self._tally.count(action.verb)

    def _action(
        self,
        parsed: ParsedRecord,
        known_records: dict[str, tuple[NoteInfo, str]],
        survivors: dict[str, str],
    ) -> _Action:
        """Decide whether to take a record as new, to update a memory with it, or to skip it.

        parsed: the record.
        known_records: the memories that have an id of the batch, by id.
        survivors: the texts of the memories that others were merged into, by the merged id.
        """
        record = parsed.record
        if "id" not in parsed.fields:
            return self._without_id(record)
        # A trial writes nothing, so it compares a second record with this id to the first one.
        if record.id in self._written:
            return self._after_earlier_record(record)
        if record.id in known_records:
            return self._with_known_id(parsed, *known_records[record.id])
        was_merged = record.id in survivors
        if was_merged:
            # If the other memory has all lines of the record, the record would only bring back a
            # duplicate.
            survivor_lines = set(compared_lines(survivors[record.id]))
            if survivor_lines.issuperset(compared_lines(record.content)):
                return _Action(SKIP, record)
        return self._remember(_Action(NEW, record))

    def _without_id(self, record: Record) -> _Action:
        """Decide about a record without an id: it is new, unless its text is known."""
        if self._contents is None:
            self._contents = self._exchange.contents()
        text_digest = digest(record.scope, record.content)
        is_known = text_digest in self._contents
        self._contents.add(text_digest)
        return _Action(SKIP if is_known else NEW, record)

    def _after_earlier_record(self, record: Record) -> _Action:
        """Decide about a record whose id an earlier record of the input has: the newer counts."""
        earlier_time, earlier_digest = self._written[record.id]
        own_time, own_digest = _state(record)
        if own_digest == earlier_digest:
            return _Action(UNCHANGED, record)
        if own_time <= earlier_time:
            return _Action(OLDER, record)
        return self._remember(_Action(UPDATE, record))

    def _with_known_id(self, parsed: ParsedRecord, info: NoteInfo, content: str) -> _Action:
        """Decide about a record whose id a memory has already. The newer of the two counts.

        parsed: the record.
        info, content: the index entry and the text of the memory.
        """
        memory = self._memory
        # The caller may learn that the id is taken, and nothing else about the memory.
        if not memory.sees(info.scope):
            raise InvalidInput(f"the id {info.id} is taken")
        # Most records of a second import are equal to the memory, and need no further work.
        values_of_memory = compared(row(memory, info, content))
        if compared(parsed.values) == values_of_memory:
            return _Action(UNCHANGED, parsed.record, info)

        # Fields that the line lacks are taken from the memory.
        existing = _existing_record(info, content)
        record = parsed.over(existing, self._now)
        if self._values_in_file(record) == values_of_memory:
            return _Action(UNCHANGED, record, info)

        # The record differs from the memory. The newer one counts.
        if record.updated <= existing.updated:
            return _Action(OLDER, record, info)
        if info.locked:
            raise InvalidInput(
                f'{info.permalink} is locked and is not replaced. Remove its "locked: true" first.'
            )
        # A later record of the input with this id or text is compared with the record.
        self._remember(_Action(UPDATE, record))
        # Reads since the export must not be lost.
        access_count = max(record.access_count, info.access_count)
        return _Action(UPDATE, replace(record, access_count=access_count), info)

    def _values_in_file(self, record: Record) -> dict[str, Any]:
        """Return the values of a record to compare, as they are after it was written to a file.

        Some values have another form in a file, for example times.
        """
        path = f"{record.category}/x.md"
        note = parse_note(record.text(), project=CATEGORY_PROJECT, path=path, changed=self._now)
        return compared(row(self._memory, note, note.content))

    def _remember(self, action: _Action) -> _Action:
        """Remember the record of an action for the rest of the input, and return the action."""
        if self._contents is not None:
            self._contents.add(digest(action.record.scope, action.record.content))
        if self._is_trial:
            self._written[action.record.id] = _state(action.record)
        return action


def _existing_record(info: NoteInfo, content: str) -> Record:
    """Return a memory that exists already as a record.

    info, content: its index entry and its text.
    """
    return Record(
        id=info.id,
        content=content,
        category=info.category or INBOX,
        created=parse_stamp(info.created),
        updated=parse_stamp(info.updated or info.changed),
        scope=info.scope,
        phase=info.phase,
        tags=info.tags,
        source=info.source,
        expires=parse_stamp(info.expires) if info.expires else None,
        access_count=info.access_count,
        links=info.links,
        version=info.version,
        further=_further_keys(info.header),
    )


def _state(record: Record) -> tuple[datetime, bytes]:
    """Return when a record was updated, and a digest of everything except its access count."""
    text = replace(record, access_count=0).text()
    return record.updated, hashlib.blake2b(text.encode(), digest_size=16).digest()
