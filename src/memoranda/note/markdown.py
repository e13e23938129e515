"""A file's text as a `Note`, and the text of new files: notes of write_note, memories.

Source: contract 000b, 2, 3 and 7; for project `categories` contract 001, 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memoranda.errors import InvalidInput
from memoranda.note import model, notion
from memoranda.note.frontmatter import (
    dump,
    entries,
    is_crlf,
    looks_like_header,
    parse,
    parse_as_written,
    set_keys,
    split,
)
from memoranda.note.grammar import LINKS_TO, MOST, STRUCTURED, is_cut, relation_key, scan
from memoranda.note.inline import listed_names, page_fields
from memoranda.note.links import first_line, permalink_for, without_suffix
from memoranda.note.model import BAD_HEADER, PARTLY_READ, Note, Relation, united, with_code
from memoranda.note.names import UUID
from memoranda.text.checksum import sha256
from memoranda.text.pattern import lazy_pattern
from memoranda.value_object import FrozenValueObject

_NAMESPACE_URL = bytes.fromhex("6ba7b8119dad11d180b400c04fd430c8")
# A link to a page of Logseq.
_PAGE = lazy_pattern(r"\[\[([^\[\]]+)\]\]")
# How many units a second has in times counted since 1970, by the number of their digits today.
_UNITS_PER_SECOND = {10: 1, 13: 1000}
# Keys that close a note. They count even in a header that YAML cannot read.
_KEPT_WHEN_BROKEN = lazy_pattern(r"^(scope|locked)[ \t]*:[ \t]*([^\r\n]*)", re.MULTILINE)
# What a memory belongs to that is organized, when nothing names its category.
_ORGANIZED_CATEGORY = "knowledge"
# Folders of agent memories by phase, from before categories.
_OLD_FOLDERS = {"short-term": model.INBOX, "long-term": model.ORGANIZED}
# A longer target is a text in brackets, no link.
_LINK_LENGTH = 200
_WITHOUT_PAGES = (*model.MEMORY_PROJECTS, model.KV_PROJECT)
TAG_KEYS = ("tags", "tag")
# Header keys of tags and of aliases, compared without case.
_ALIAS_KEYS = ("aliases", "alias")
TITLE_LENGTH = 2_000
"""Characters of a title that count: the first line of a memory may be its whole text, however long.
"""
# Flags are shown as YAML writes them.
_AS_WRITTEN = {True: "true", False: "false"}
_PARTLY_READ_WARNING = with_code(
    PARTLY_READ,
    f"links, observations and headings after {STRUCTURED:,} characters, or {MOST:,} of a kind, are "
    "not read. Split the note.",
)


class _Header(NamedTuple):
    """The header of a note's text.

    yaml: the text between the fences; None if the note has no header.
    values: the header as a mapping; empty if it cannot be read.
    keys: the keys that count: `values`, or for the broken header of a memory those whose lines can
        be read alone.
    end: the offset behind the closing fence.
    body_at: the offset where the body begins. A broken header is part of the body, but not in a
        memory, whose text always begins below the header.
    """

    yaml: str | None
    values: dict[str, Any]
    keys: dict[str, Any]
    end: int
    body_at: int


def parse_note(
    text: str,
    *,
    project: str,
    path: str,
    changed: datetime,
    born: datetime | None = None,
    entity: bool = False,
) -> Note:
    """Read a note. Any text is a note. Parts that cannot be read are left out and named in
    `warnings`.

    text: the whole file.
    project, path: where the file is.
    changed: the file's mtime, aware UTC.
    born: the file's birth time, aware UTC, if known.
    entity: read it as an entity, as the notes of project `graph` are.

    `etag` is left to the caller.
    """
    is_entity = entity or project == model.GRAPH_PROJECT
    warnings: list[str] = []
    header = _read_header(text, project, warnings)
    observations, relations, headings = scan(text, header.end, graph=is_entity)
    if not is_entity:
        relations = _with_header_links(relations, header.yaml)
    keys = header.keys
    identity = _text(keys.get("id"))
    permalink = _text(keys.get("permalink"))
    note = Note(
        project,
        path,
        text,
        header.values,
        header.body_at,
        identity or default_id(project, path),
        "",
        _type_of(keys, is_entity),
        permalink or permalink_for(project, path),
        changed,
        changed,
        bool(permalink),
        bool(identity),
        observations=observations,
        relations=relations,
        headings=headings,
        warnings=warnings,
    )
    if not is_entity and is_cut(note):
        warnings.append(_PARTLY_READ_WARNING)
    _set_fields(note, header)
    # The birth time of an entity's file says nothing of the entity.
    _set_created(note, keys, None if is_entity else born)
    if project in model.MEMORY_PROJECTS:
        _read_memory(note, keys, header.yaml is None)
    # After the above, because a memory without a title is called by its first line.
    note.title = _title(note, keys, is_entity)
    if not is_entity:
        _read_page_fields(note)
    return note


def _read_header(text: str, project: str, warnings: list[str]) -> _Header:
    """Read the header of a note's text. Adds a warning to `warnings` if it cannot be read."""
    yaml_text, end = split(text)
    if not yaml_text:
        return _Header(yaml_text, {}, {}, end, end)
    try:
        values = parse(yaml_text)
    except ValueError as error:
        warnings.append(with_code(BAD_HEADER, f"the frontmatter is not read, {error}"))
        if project in model.MEMORY_PROJECTS:
            # A bad line must not cost a memory its id and its category.
            return _Header(yaml_text, {}, _readable_keys(yaml_text), end, end)
        return _Header(yaml_text, {}, {}, end, 0)
    return _Header(yaml_text, values, values, end, end)


def _type_of(keys: Mapping[str, Any], is_entity: bool) -> str:
    """The type of a note. An entity's is exactly as written, and may be empty."""
    value = keys.get("type")
    if is_entity and isinstance(value, str):
        return value
    return _text(value) or "note"


def _set_fields(note: Note, header: _Header) -> None:
    """Set the fields of `note` that its header names."""
    for key, value in header.keys.items():
        if value is not None and key in _READERS:
            _set_field(note, key, value)
    counted_time = _counted_time(header.keys.get("updated"))
    if note.updated is None and counted_time is not None:
        note.updated = counted_time
    tags = _all_texts(header.keys, TAG_KEYS)
    note.tags = tuple(united(tag.removeprefix("[[").removesuffix("]]") for tag in tags))
    note.aliases = tuple(dict.fromkeys(_all_texts(header.keys, _ALIAS_KEYS)))
    # A broken header must not open a note that its scope or its lock closes.
    if header.yaml and not header.values:
        for key, value in _KEPT_WHEN_BROKEN.findall(header.yaml):
            _set_field(note, key, value.strip().strip("\"'"))


def _set_field(note: Note, key: str, value: Any) -> None:
    attribute, read = _READERS[key]
    setattr(note, attribute, read(note, value))


def _set_created(note: Note, keys: Mapping[str, Any], born: datetime | None) -> None:
    """Set when a note was created, from its header or else from the birth time of its file."""
    for key in ("created_at", "created"):
        value = keys.get(key)
        if value is None:
            continue
        moment = _moment(note, value)
        if moment is not None:
            note.created = moment
            return
    # A copied file is born after its last change.
    if born is not None and born < note.changed:
        note.created = born


def _read_page_fields(note: Note) -> None:
    """Take title and aliases from the `key:: value` lines a page of Logseq begins with."""
    if note.project in _WITHOUT_PAGES or ":: " not in note.text:
        return
    fields = page_fields(note.text[note.body_at :])
    aliases = list(note.aliases)
    for key in _ALIAS_KEYS:
        aliases += listed_names(fields.get(key, ""))
    note.aliases = tuple(dict.fromkeys(aliases))
    if fields.get("title") and not note.header.get("title"):
        note.title = fields["title"][:TITLE_LENGTH]


def other_tag_keys(header: Mapping[str, Any]) -> list[str]:
    """The keys of a header that hold tags and are not `tags`: `tag`, `Tags` and the like."""
    return [key for key in header if key != "tags" and key.lower() in TAG_KEYS]


def _readable_keys(yaml_text: str) -> dict[str, Any]:
    """The keys of a broken header whose lines can be read alone, with their values."""
    keys: dict[str, Any] = {}
    for key, text in entries(yaml_text.replace("\r\n", "\n")):
        with suppress(ValueError):
            value = parse(text).get(key)
            if value is not None and not isinstance(value, dict):
                keys.setdefault(key, value)
    return keys


def _with_header_links(relations: list[Relation], yaml_text: str | None) -> list[Relation]:
    """The relations of a note and the links in its header, which come first.

    Each is included once.
    """
    if not yaml_text or "[[" not in yaml_text:
        return relations

    from memoranda.note.header_links import header_links, relation_type

    present = {
        relation_key(relation.type, relation.target, relation.project, relation.rest)
        for relation in relations
    }
    header_relations: list[Relation] = []
    for key, line, link in header_links(yaml_text):
        kind = relation_type(key, LINKS_TO)
        relation_key_of_link = relation_key(kind, link.target, link.project, link.rest)
        if relation_key_of_link not in present:
            present.add(relation_key_of_link)
            header_relations.append(
                Relation(kind, link.target, None, link.project, line, rest=link.rest)
            )
    return [*header_relations, *relations]


def own_permalink(text: str) -> str | None:
    """The permalink in a note's own header, as `parse_note` reads it. None if none exists."""
    try:
        return _text(parse(split(text)[0] or "").get("permalink")) or None
    except ValueError:
        return None


def default_id(project: str, path: str) -> str:
    """The id of a note without one: uuid5(NAMESPACE_URL, "memory://<project>/<path>")."""
    name = f"memory://{project}/{path}".encode("utf-8", "surrogatepass")
    # Only for a note without an id
    from hashlib import sha1

    digest = bytearray(sha1(_NAMESPACE_URL + name, usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def names(note: Note) -> tuple[str, ...]:
    """The titles by which a link may name the note: its title and aliases.

    A memory can also be named by its first line, with and without leading `#` (contract 001, 4).
    """
    all_names = [note.title, *note.aliases]
    if note.project in model.MEMORY_PROJECTS:
        line = first_line(note.content)
        all_names += [line, line.lstrip("#").strip()]
    return tuple(dict.fromkeys(name for name in all_names if name))


def _text(value: Any) -> str:
    """A scalar as written. Empty for None and for any other value."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return _AS_WRITTEN[value]
    return ""


def _texts(value: Any) -> list[str]:
    """The texts of a list of scalars, or of a text split at commas. Empty ones are dropped."""
    items: Sequence[Any] = ()
    if isinstance(value, str):
        items = value.split(",")
    elif isinstance(value, list):
        items = value
    return [text for item in items if (text := item.strip() if type(item) is str else _text(item))]


def _all_texts(header: Mapping[str, Any], keys: tuple[str, ...]) -> list[str]:
    """The texts under all of these keys, which are compared without case. A list may be written as
    text (`'["a", "b"]'`), tags also with a `#` each and blanks between (`"#a #b"`). A page
    without quotes (`[[a]]`), which YAML takes for a list in a list, is its name."""
    texts: list[str] = []
    for key, value in header.items():
        if key.lower() not in keys:
            continue
        for item in _texts(_with_pages(unpack_list(value))):
            is_list = item.startswith("[") and not item.startswith("[[")
            texts += _texts(unpack_list(item)) if is_list else [item]
    return texts


def _with_pages(value: Any) -> Any:
    """The value with the name of a page for what YAML reads of `[[page]]`."""
    if not isinstance(value, list):
        return value
    if len(value) == 1 and isinstance(value[0], list):
        return value[0]
    members: list[Any] = []
    for member in value:
        is_page = isinstance(member, list) and len(member) == 1 and isinstance(member[0], list)
        members += member[0] if is_page else [member]
    return members


def unpack_list(value: Any) -> Any:
    """The list that a text spells, the value itself for any other."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("[") and text.endswith("]") and not text.startswith("[["):
        try:
            return parse(f"list: {text}")["list"]
        except ValueError:
            return value
    words = text.split()
    if len(words) > 1 and all(word.startswith("#") for word in words):
        return [word.rstrip(",") for word in words]
    return value


def _counted_time(value: Any) -> datetime | None:
    """A time counted from 1970, in milliseconds (as Dendron writes it) or seconds.

    None for any other value.
    """
    units_per_second = _UNITS_PER_SECOND.get(len(_text(value)))
    if units_per_second is None or not _text(value).isascii() or not _text(value).isdigit():
        return None
    return datetime.fromtimestamp(int(_text(value)) / units_per_second, UTC)


def with_counted_time(before: str, after: str, now: datetime) -> str:
    """Set the time of change in `after`, an edit of `before`, to the present.

    A note that does not count its changes stays as it is.

    Dendron keeps this time as a number under `updated`, so other writers have to keep it current. An
    edit that sets the key itself is left alone. Any other form of `updated` belongs to its author.
    """
    if after == before or "updated" not in before:
        return after
    try:
        written = parse(split(before)[0] or "").get("updated")
        is_left = parse(split(after)[0] or "").get("updated") == written
    except ValueError:
        return after
    if _counted_time(written) is None or not is_left:
        return after
    units_per_second = _UNITS_PER_SECOND[len(_text(written))]
    try:
        return set_keys(after, {"updated": int(now.timestamp() * units_per_second)})
    except ValueError:
        return after


def _moment(note: Note, value: Any) -> datetime | None:
    """A written time as aware UTC.

    If it is not a time, adds a warning to the note and returns None.
    """
    counted_time = _counted_time(value)
    if counted_time is not None:
        return counted_time
    text = _text(value)
    try:
        moment = datetime.fromisoformat(text.upper() if text[-1:] == "z" else text)
        if moment.tzinfo is UTC:
            return moment
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        note.warnings.append(f'bad date "{text or value}" ignored')
        return None


def _each_once(note: Note, value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_texts(value)))


def _superseded(note: Note, value: Any) -> tuple[str, ...]:
    """The ids or names of the notes that a note takes the place of. A comma in a text may be part of
    a name; between ids and between links it separates them."""
    value = _with_pages(unpack_list(value))
    names: list[str] = []
    for item in value if isinstance(value, list) else [value]:
        text = _text(item)
        parts = _texts(text)
        if all(UUID.fullmatch(part) or _PAGE.fullmatch(part) for part in parts):
            names += parts
        else:
            names.append(text)
    pages = [_PAGE.fullmatch(name) for name in names]
    target_names = [page[1] if page else name for page, name in zip(pages, names, strict=True)]
    return tuple(dict.fromkeys(name for name in target_names if name))


def _count(note: Note, key: str, value: Any, least: int) -> int:
    text = _text(value)
    if text.isascii() and text.isdigit() and len(text) < 19:
        return max(int(text), least)
    if note.project in (*model.MEMORY_PROJECTS, model.KV_PROJECT):
        note.warnings.append(f'bad {key} "{text or value}" ignored')
    return least


def _scope(note: Note, value: Any) -> str:
    """The scope in lower case. An unreadable scope stays as written, with a warning.

    That hides the note: it must not be shown to everybody.
    """
    text = _text(value) or (f"{value}" if value else '""')
    if model.SCOPE.fullmatch(text.lower()):
        return text.lower()
    note.warnings.append(f'bad scope "{text}" hides the note; use global or agent:NAME')
    return text


# Header key → the field of Note it sets, and what reads it.
_READERS: dict[str, tuple[str, Callable[[Note, Any], Any]]] = {
    "links": ("links", _each_once),
    "source": ("source", lambda note, value: _text(value) or None),
    "locked": ("locked", lambda note, value: _text(value).lower() == "true"),
    "date": ("date", lambda note, value: _text(value) if _moment(note, value) else None),
    "scope": ("scope", _scope),
    "updated_at": ("updated", _moment),
    "expires_at": ("expires", _moment),
    "valid_from": ("valid_from", _moment),
    "valid_until": ("valid_until", _moment),
    "supersedes": ("supersedes", _superseded),
    "access_count": ("access_count", lambda note, value: _count(note, "access_count", value, 0)),
    "version": ("version", lambda note, value: _count(note, "version", value, 1)),
}


def _title(note: Note, header: dict[str, Any], entity: bool) -> str:
    value = header.get("key" if note.project == model.KV_PROJECT else "title")
    if (entity or note.project == model.KV_PROJECT) and isinstance(value, str):
        # A name or key, exactly
        return value
    if isinstance(value, list):
        title = ", ".join(_texts(value))
    else:
        title = _text(value)
    if not title and note.project in model.MEMORY_PROJECTS:
        title = first_line(note.content)
    return title[:TITLE_LENGTH] or shown_stem(note.path)


def shown_stem(path: str) -> str:
    """The name of a file as a title: without its extension, and without the blank and 32 digits
    with which Notion's export ends each name."""
    return notion.without_id(without_suffix(path.rpartition("/")[2]))


def _read_memory(note: Note, header: dict[str, Any], is_bare: bool) -> None:
    """Set category, phase and links of a memory; the folder outranks the frontmatter (contract 001, 2).

    is_bare: whether the file has no header, so that no program of ours wrote it.
    """
    folder, old_phase = _memory_folder(note.path)
    category = _written_category(note, header)
    phase = _written_phase(note, header)
    if folder in model.CATEGORIES:
        if category and category != folder:
            difference = f"the folder {folder} counts, not {category} of the frontmatter"
            note.warnings.append(model.with_code(model.CATEGORY_DIFFERS, difference))
            # The phase belonged to the other category.
            phase = ""
        category = folder
    elif not category and (phase or old_phase) == model.ORGANIZED:
        category = _ORGANIZED_CATEGORY
    elif not category:
        category = model.INBOX
    note.phase = phase or old_phase or phase_of_category(category)
    if note.project == model.ARCHIVE_PROJECT:
        note.phase = model.ARCHIVED
        if category == model.INBOX:
            category = _ORGANIZED_CATEGORY
    note.category = category
    note.type = category
    if is_bare:
        note.source = "file"
    note.relations = _memory_relations(note)


def _memory_folder(path: str) -> tuple[str, str | None]:
    """(folder, phase) that the path of a memory names: `long-term/people/a.md` is in folder
    `people`, with the phase older programs meant by `long-term`. No folder is "", no phase None."""
    top, _, path_below = path.partition("/")
    if not path_below:
        return "", None
    old_phase = _OLD_FOLDERS.get(top)
    if old_phase:
        return path_below.partition("/")[0], old_phase
    return top, None


def _written_category(note: Note, header: Mapping[str, Any]) -> str:
    """The category that the header of a memory names; "" without one, with a warning if bad."""
    category = _text(header.get("category"))
    if category and category not in model.CATEGORIES:
        note.warnings.append(f'bad category "{category}" ignored')
        return ""
    return category


def _written_phase(note: Note, header: Mapping[str, Any]) -> str:
    """The phase that the header of a memory names; "" without one, with a warning if bad."""
    phase = _text(header.get("phase"))
    if phase == model.ARCHIVED:
        # The place decides: somebody may have moved it out of the archive by hand.
        return ""
    if phase in model.PHASES:
        return phase
    if phase:
        note.warnings.append(f'bad phase "{phase}" ignored')
    return model.OLD_PHASES.get(note.type, "")


def phase_of_category(category: str) -> str:
    """The phase of a memory whose header and place name none."""
    if category == model.INBOX:
        return model.INBOX
    return model.ORGANIZED


def _memory_relations(note: Note) -> list[Relation]:
    """The relations in the text of a memory, and one for each of its key `links` beside them."""
    relations = [relation for relation in note.relations if len(relation.target) <= _LINK_LENGTH]
    if not note.links:
        return relations
    linked: set[str] = set()
    for relation in relations:
        if relation.type == LINKS_TO and relation.project is None:
            linked.add(relation.target)
    line = note.text.count("\n", 0, note.text.find("\nlinks") + 1) + 1
    for link in note.links:
        if link not in linked:
            relations.append(Relation(LINKS_TO, link, None, None, line))
    return relations


_FIRST_KEYS = ("id", "title", "type", "permalink", "tags", "created_at")
_DECIDED_KEYS = ("title", "type", "tags")


class _WrittenHeader(NamedTuple):
    """A header as somebody wrote it: its values, and (key, lines) of each key in their order."""

    values: dict[str, Any]
    rows: list[tuple[str, str]]


_NO_HEADER = _WrittenHeader({}, [])


def compose_note(
    content: str,
    *,
    title: str,
    permalink: str,
    created: datetime | None,
    type: str | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    keep: Mapping[str, Any] | None = None,
    old: str = "",
    habits: Collection[str] | None = None,
) -> str:
    """Compose the file of a note: the header, then the body as given with a final newline.

    The header begins with `id`, `title`, `type`, `permalink`, `tags` and `created_at`.

    content: the text. It may begin with its own frontmatter, whose keys stay as written; but
        `title`, `type`, `tags` (united) and `metadata` override them.
    permalink: for a note whose content names no permalink.
    created: for a note whose content names no date; None for a note of unknown age.
    keep: `id`, `permalink` and `created_at` of a note that is replaced. They override all others.
    old: the text of the replaced note. Its keys stay unless they are set now.
    habits: only these keys, and those asked for, are written. A note without any has no header.

    Raises InvalidInput if the frontmatter of `content` is not valid YAML.
    """
    own_header, body = _own_header(content)
    replaced = _header_of_replaced(old)
    values = replaced.values | own_header.values
    rows = [*own_header.rows, *_rows_that_stay(replaced, own_header, bool(keep))]
    other_keys = dict(metadata or {})
    # Title and type have their own arguments.
    other_keys.pop("title", None)
    other_keys.pop("type", None)
    all_tags = [
        *_listed_texts(own_header.values.get("tags")),
        *_listed_texts(other_keys.pop("tags", None)),
        *tags,
    ]

    # The stronger, the later.
    chosen = dict(other_keys)
    chosen |= _keys_of_arguments(title, type, all_tags, values, habits)
    chosen |= _without_none(keep or {})
    written = {key: lines for key, lines in rows if values.get(key) is not None}
    defaults = _defaults(permalink, created, values, habits)

    lines = _first_lines(chosen, written, defaults)
    lines += [text for key, text in rows if key not in _FIRST_KEYS and key not in other_keys]
    lines.append(dump({key: value for key, value in other_keys.items() if key not in _FIRST_KEYS}))
    return _file_text("".join(lines), body, may_be_bare=habits is not None)


def _file_text(header: str, body: str, *, may_be_bare: bool) -> str:
    """The text of a file, with the line breaks of its body and one at its end.

    may_be_bare: whether a file without keys has no `---` lines either.
    """
    newline = "\r\n" if is_crlf(body) else "\n"
    if not body.endswith("\n"):
        body += newline
    if may_be_bare and not header:
        return body
    return f"---\n{header}---\n".replace("\n", newline) + body


def _keys_of_arguments(
    title: str,
    type: str | None,
    tags: Sequence[str],
    values: Mapping[str, Any],
    habits: Collection[str] | None,
) -> dict[str, Any]:
    """Title, type and tags of a note that is composed. `values` is its own header."""
    decided: dict[str, Any] = {}
    if _is_habit("title", habits):
        decided["title"] = title
    kind = type or values.get("type")
    if not kind and _is_habit("type", habits):
        kind = "note"
    if kind:
        decided["type"] = kind
    all_tags = united(tags or _listed_texts(values.get("tags")))
    if all_tags:
        decided["tags"] = all_tags
    return decided


def _defaults(
    permalink: str,
    created: datetime | None,
    values: Mapping[str, Any],
    habits: Collection[str] | None,
) -> dict[str, Any]:
    """The values of keys that nobody set. `values` is the note's own header."""
    defaults: dict[str, Any] = {}
    if _is_habit("permalink", habits):
        defaults["permalink"] = permalink
    if created is not None and not values.get("created") and _is_habit("created_at", habits):
        defaults["created_at"] = created
    return defaults


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _is_habit(key: str, habits: Collection[str] | None) -> bool:
    """Whether a key that nobody asked for is written."""
    return habits is None or key in habits


def _first_lines(
    chosen: Mapping[str, Any], written: Mapping[str, str], defaults: Mapping[str, Any]
) -> list[str]:
    """The lines of `_FIRST_KEYS`: each from the first of the three mappings that has the key. Lines
    of title, type and tags never stay as written."""
    lines: list[str] = []
    for key in _FIRST_KEYS:
        if key in chosen:
            lines.append(dump({key: chosen[key]}))
        elif key in written and key not in _DECIDED_KEYS:
            lines.append(written[key])
        elif key in defaults:
            lines.append(dump({key: defaults[key]}))
    return lines


def _header_of_replaced(text: str) -> _WrittenHeader:
    """The header of a note that is replaced; an empty one when it cannot be read."""
    try:
        header, _ = _own_header(text)
    except InvalidInput:
        return _NO_HEADER
    return header


def _rows_that_stay(
    replaced: _WrittenHeader, own_header: _WrittenHeader, has_kept_date: bool
) -> list[tuple[str, str]]:
    """(key, lines) of a replaced note's header that its new text does not set."""
    rows: list[tuple[str, str]] = []
    for key, lines in replaced.rows:
        # The kept `created_at` says it already.
        is_said_twice = key == "created" and has_kept_date
        if key not in own_header.values and not is_said_twice:
            rows.append((key, lines))
    return rows


def _own_header(content: str) -> tuple[_WrittenHeader, str]:
    """(header, body) of content that may begin with its own frontmatter.

    Raises InvalidInput when that is not valid YAML.
    """
    yaml_text, body_at = split(content)
    if yaml_text is None:
        return _NO_HEADER, content[body_at:]
    yaml_text = yaml_text.replace("\r\n", "\n")
    try:
        values = parse(yaml_text)
    except ValueError as error:
        if not looks_like_header(yaml_text):
            # A rule, and text below it.
            return _NO_HEADER, content.removeprefix("\ufeff")
        raise InvalidInput(
            "Parameter `content` begins with frontmatter that is not valid YAML: "
            f"{error}. Fix it or leave it out."
        ) from None
    if not values and yaml_text.strip():
        # Nothing but a heading, which YAML takes for a comment.
        return _NO_HEADER, content.removeprefix("\ufeff")
    return _WrittenHeader(values, _rows_as_written(yaml_text, values)), content[body_at:]


def _rows_as_written(yaml_text: str, own_keys: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(key, lines) of a header's keys. Lines that say the same alone stay; the others, such as an
    alias of an anchor elsewhere, are written with the value they mean."""
    lines = {key: text for key, text in entries(yaml_text) if _says(text, key, own_keys.get(key))}
    if len(lines) == len(own_keys):
        return [(key, lines[key]) for key in own_keys]
    values = parse_as_written(yaml_text)
    return [
        (str(key), lines[key] if key in lines else dump({key: value}))
        for key, value in values.items()
    ]


def _says(text: str, key: str, value: Any) -> bool:
    """Whether these lines alone are a header with this one key and value."""
    try:
        return parse(text) == {key: value}
    except ValueError:
        return False


def _listed_texts(value: Any) -> list[str]:
    values = unpack_list(value)
    if isinstance(values, str):
        return values.split(",")
    if not isinstance(values, (list, tuple)):
        return []
    return [str(item) for item in values if item is not None and not isinstance(item, (list, dict))]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Record(FrozenValueObject):
    """One memory. Times are aware UTC.

    phase: None means the default of the category: inbox in category `inbox`, otherwise organized.
    further: the keys after `version`, unknown ones too, in order.
    """

    id: str
    content: str
    category: str
    created: datetime
    updated: datetime
    scope: str = model.GLOBAL
    phase: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None
    expires: datetime | None = None
    access_count: int = 0
    links: tuple[str, ...] = ()
    version: int = 1
    further: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """The whole file, keys in the order of contract 001, 2. The content is kept byte for byte,
        one newline added."""
        digest = sha256(self.content.encode("utf-8", "surrogatepass"))
        phase = self.phase or phase_of_category(self.category)
        values = (
            self.id,
            digest,
            phase,
            self.category,
            self.scope,
            united(self.tags),
            self.source or "manual",
            self.created,
            self.updated,
            self.expires,
            self.access_count,
            list(self.links),
            self.version,
        )
        header = {
            key: value for key, value in zip(model.MEMORY_KEYS, values, strict=True) if value != []
        }
        return f"---\n{dump(header | self.further)}---\n{self.content}\n"
