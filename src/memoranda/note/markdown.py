"""A file's text as a `Note`, and the text of new files: notes of write_note, memories.

Source: contract 000b, 2, 3 and 7; for project `categories` contract 001, 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha1, sha256
from typing import Any

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
from memoranda.note.model import BAD_HEADER, PARTLY_READ, Note, Relation, coded, united
from memoranda.note.names import UUID

_NAMESPACE_URL = bytes.fromhex("6ba7b8119dad11d180b400c04fd430c8")
_PAGE = re.compile(r"\[\[([^\[\]]+)\]\]")
# How many units a second has in times counted since 1970, by the number of their digits today.
_UNITS_PER_SECOND = {10: 1, 13: 1000}
_KEPT_WHEN_BROKEN = re.compile(r"^(scope|locked)[ \t]*:[ \t]*([^\r\n]*)", re.MULTILINE)
_OLD_FOLDERS = {"short-term": model.INBOX, "long-term": model.ORGANIZED}
_LINK_LENGTH = 200
_WITHOUT_PAGES = (*model.MEMORY_PROJECTS, model.KV_PROJECT)
TAG_KEYS = ("tags", "tag")
# Header keys of tags and of aliases, compared without case.
_ALIAS_KEYS = ("aliases", "alias")
TITLE_LENGTH = 2_000
"""Characters of a title that count: the first line of a memory may be its whole text, however long.
"""
_AS_WRITTEN = {True: "true", False: "false"}


def parse_note(
    text: str,
    *,
    project: str,
    path: str,
    changed: datetime,
    born: datetime | None = None,
    entity: bool = False,
) -> Note:
    """The note that `text`, the whole file at `path` of `project`, says; never an error. `changed`
    is the file's mtime, `born` its birth time where there is one; both aware UTC. With `entity` it
    is read as one of project `graph`. What cannot be read is left out and named in `warnings`.
    `etag` is left to the caller."""
    yaml_text, body_at = split(text)
    header: dict[str, Any] = {}
    readable: dict[str, Any] = {}
    warnings: list[str] = []
    start = body_at
    if yaml_text:
        try:
            header = parse(yaml_text)
        except ValueError as error:
            warnings.append(coded(BAD_HEADER, f"the frontmatter is not read, {error}"))
            if project in model.MEMORY_PROJECTS:
                readable = _readable_keys(yaml_text)
            else:
                body_at = 0
    entity = entity or project == model.GRAPH_PROJECT
    observations, relations, headings = scan(text, start, graph=entity)
    if yaml_text and not entity and "[[" in yaml_text:
        relations = _with_header_links(relations, yaml_text)
    # Of a memory the keys still say which it is, though the header as a whole says nothing
    keys = header or readable
    get = keys.get
    permalink = _text(get("permalink"))
    identity = _text(get("id"))
    kind = get("type")
    note = Note(
        project,
        path,
        text,
        header,
        body_at,
        identity or default_id(project, path),
        "",
        kind
        if entity and isinstance(kind, str)
        # An entity's as it is, be it empty
        else _text(kind) or "note",
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
    if not entity and is_cut(note):
        text = (
            f"links, observations and headings after {STRUCTURED:,} characters, or {MOST:,} of a "
            "kind, are not read. Split the note."
        )
        warnings.append(coded(PARTLY_READ, text))
    for key, value in keys.items():
        if value is not None and key in _READERS:
            attribute, read = _READERS[key]
            setattr(note, attribute, read(note, value))
    counted_time = _counted_time(get("updated"))
    if note.updated is None and counted_time is not None:
        note.updated = counted_time
    tags = _all_texts(keys, TAG_KEYS)
    note.tags = tuple(united(tag.removeprefix("[[").removesuffix("]]") for tag in tags))
    note.aliases = tuple(dict.fromkeys(_all_texts(keys, _ALIAS_KEYS)))
    # Of a header that cannot be read, what closes the note still counts
    if yaml_text and not header:
        for key, value in _KEPT_WHEN_BROKEN.findall(yaml_text):
            attribute, read = _READERS[key]
            setattr(note, attribute, read(note, value.strip().strip("\"'")))
    written = None
    for key in ("created_at", "created"):
        if written is None and get(key) is not None:
            written = _moment(note, get(key))
    if written is not None or (born is not None and born < changed and not entity):
        note.created = written or born or changed
    if project in model.MEMORY_PROJECTS:
        _read_memory(note, keys, yaml_text is None)
    note.title = _title(note, keys, entity)
    if not entity and project not in _WITHOUT_PAGES and ":: " in text:
        _read_page_fields(note)
    return note


def _read_page_fields(note: Note) -> None:
    """Take title and aliases from the `key:: value` lines a page of Logseq begins with."""
    fields = page_fields(note.text[note.body_at :])
    names = [name for key in _ALIAS_KEYS for name in listed_names(fields.get(key, ""))]
    note.aliases = tuple(dict.fromkeys((*note.aliases, *names)))
    if fields.get("title") and not note.header.get("title"):
        note.title = fields["title"][:TITLE_LENGTH]


def other_tag_keys(header: Mapping[str, Any]) -> list[str]:
    """The keys of a header that hold tags and are not `tags`: `tag`, `Tags` and the like."""
    return [key for key in header if key != "tags" and key.lower() in TAG_KEYS]


def _readable_keys(yaml_text: str) -> dict[str, Any]:
    """What those keys of a broken header say whose lines can be read alone."""
    keys: dict[str, Any] = {}
    for key, text in entries(yaml_text.replace("\r\n", "\n")):
        with suppress(ValueError):
            value = parse(text).get(key)
            if value is not None and not isinstance(value, dict):
                keys.setdefault(key, value)
    return keys


def _with_header_links(relations: list[Relation], yaml_text: str) -> list[Relation]:
    from memoranda.note.header_links import header_links, relation_type

    relations_by_key = {
        relation_key(
            this_relation.type, this_relation.target, this_relation.project, this_relation.rest
        ): this_relation
        for this_relation in relations
    }
    header_relations: list[Relation] = []
    for key, line, link in header_links(yaml_text):
        kind = relation_type(key, LINKS_TO)
        same = relation_key(kind, link.target, link.project, link.rest)
        if same not in relations_by_key:
            relation = Relation(kind, link.target, None, link.project, line, rest=link.rest)
            relations_by_key[same] = relation
            header_relations.append(relation)
    return [*header_relations, *relations]


def own_permalink(text: str) -> str | None:
    """The permalink a note's text gives itself, as `parse_note` reads it; None without one."""
    try:
        return _text(parse(split(text)[0] or "").get("permalink")) or None
    except ValueError:
        return None


def default_id(project: str, path: str) -> str:
    """The id of a note without one: uuid5(NAMESPACE_URL, "memory://<project>/<path>")."""
    name = f"memory://{project}/{path}".encode("utf-8", "surrogatepass")
    digest = bytearray(sha1(_NAMESPACE_URL + name, usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def names(note: Note) -> tuple[str, ...]:
    """The titles a link may name the note by: title, aliases; of a memory also its first line, with
    and without leading `#` (contract 001, 4)."""
    names_found = [note.title, *note.aliases]
    if note.project in model.MEMORY_PROJECTS:
        line = first_line(note.content)
        names_found += [line, line.lstrip("#").strip()]
    return tuple(dict.fromkeys(name for name in names_found if name))


def _text(value: Any) -> str:
    """A scalar as written; empty for nothing and for what is no scalar."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return _AS_WRITTEN[value]
    return ""


def _texts(value: Any) -> list[str]:
    """A list of scalars, or text split at commas; empty ones dropped."""
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
        for item in _texts(_with_pages(unpacked(value))):
            is_list = item.startswith("[") and not item.startswith("[[")
            texts += _texts(unpacked(item)) if is_list else [item]
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


def unpacked(value: Any) -> Any:
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
    """A time counted since 1970: in milliseconds, as Dendron writes it, or in seconds."""
    units_per_second = _UNITS_PER_SECOND.get(len(_text(value)))
    if units_per_second is None or not _text(value).isascii() or not _text(value).isdigit():
        return None
    return datetime.fromtimestamp(int(_text(value)) / units_per_second, UTC)


def with_counted_time(before: str, after: str, now: datetime) -> str:
    """`after`, an edit of `before`, with the present as its time of change where the note counts it.

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
    """A written time as aware UTC; None with a warning when it is not one."""
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
    value = _with_pages(unpacked(value))
    names: list[str] = []
    for item in value if isinstance(value, list) else [value]:
        text = _text(item)
        parts = _texts(text)
        if all(UUID.fullmatch(part) or _PAGE.fullmatch(part) for part in parts):
            names += parts
        else:
            names.append(text)
    pages = [_PAGE.fullmatch(name) for name in names]
    plain = [page[1] if page else name for page, name in zip(pages, names, strict=True)]
    return tuple(dict.fromkeys(name for name in plain if name))


def _count(note: Note, key: str, value: Any, least: int) -> int:
    text = _text(value)
    if text.isascii() and text.isdigit() and len(text) < 19:
        return max(int(text), least)
    if note.project in (*model.MEMORY_PROJECTS, model.KV_PROJECT):
        note.warnings.append(f'bad {key} "{text or value}" ignored')
    return least


def _scope(note: Note, value: Any) -> str:
    """A scope counts without case. One nobody can read stays as written: it must not show the note
    to everybody.
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
    """Category, phase and links of a memory; the folder outranks the frontmatter (contract 001, 2)."""
    top, _, rest = note.path.partition("/")
    if rest:
        old = _OLD_FOLDERS.get(top)
    else:
        old = None
    if old:
        folder = rest.partition("/")[0]
    elif rest:
        folder = top
    else:
        folder = ""
    written = _text(header.get("category"))
    if written in model.CATEGORIES:
        category = written
    else:
        category = ""
    if written and not category:
        note.warnings.append(f'bad category "{written}" ignored')
    phase = _text(header.get("phase"))
    # The place decides: somebody may have moved it out of the archive by hand
    if phase == model.ARCHIVED:
        phase = ""
    elif phase not in model.PHASES:
        if phase:
            note.warnings.append(f'bad phase "{phase}" ignored')
        phase = model.OLD_PHASES.get(note.type, "")
    if folder in model.CATEGORIES:
        note.category = folder
        if category and category != folder:
            note.warnings.append(
                f"category_differs: the folder {folder} counts, not {category} of the frontmatter"
            )
            phase = ""
    else:
        note.category = category or (
            model.INBOX if (phase or old) != model.ORGANIZED else "knowledge"
        )
    note.phase = phase or old or (model.INBOX if note.category == model.INBOX else model.ORGANIZED)
    if note.project == model.ARCHIVE_PROJECT:
        note.phase = model.ARCHIVED
        if note.category == model.INBOX:
            note.category = "knowledge"
        else:
            note.category = note.category
    note.type = note.category
    if is_bare:
        note.source = "file"
    note.relations = [
        relation for relation in note.relations if len(relation.target) <= _LINK_LENGTH
    ]
    if note.links:
        line = note.text.count("\n", 0, note.text.find("\nlinks") + 1) + 1
        linked = {
            relation.target
            for relation in note.relations
            if relation.type == LINKS_TO and relation.project is None
        }
        note.relations += [
            Relation(LINKS_TO, link, None, None, line) for link in note.links if link not in linked
        ]


_FIRST_KEYS = ("id", "title", "type", "permalink", "tags", "created_at")


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
    """The file of a note: `title`, `type`, `permalink`, `tags`, `created_at`, then other keys, then
    the body.

    `content` may begin with its own frontmatter: its keys stay as written, but `title`, `type`,
    `tags` (united) and `metadata` win; its own permalink and date stand before `permalink` and
    `created`. `keep` holds `id`, `permalink`, `created_at` of a note that is replaced and wins over
    all; of that note's text `old` the keys stay that are not set now. The body is as given, with a
    final newline. `created` is None for a note of unknown age. With `habits` only those keys are
    written that are among them or asked for, and a note without any has no header. Raises InvalidInput when content's
    frontmatter is not valid YAML.
    """
    own_keys, rows, body = _own_header(content)
    extra = {key: value for key, value in (metadata or {}).items() if key not in ("title", "type")}
    try:
        before, old_rows, _ = _own_header(old)
    except InvalidInput:
        before = {}
        old_rows = []
    rows += [
        (key, text)
        for key, text in old_rows
        if key not in own_keys and not (key == "created" and keep)
    ]
    tags_named = [
        *_listed_texts(own_keys.get("tags")),
        *_listed_texts(extra.pop("tags", None)),
        *tags,
    ]
    own_keys = before | own_keys
    listed = united(tags_named or _listed_texts(own_keys.get("tags")))
    fixed = {key: value for key, value in (keep or {}).items() if value is not None}
    put: dict[str, Any] = {
        "title": title if habits is None or "title" in habits else None,
        "type": type
        or own_keys.get("type")
        or ("note" if habits is None or "type" in habits else None),
        "tags": listed or None,
    }
    defaults: dict[str, Any] = {"permalink": permalink}
    if created is not None:
        defaults["created_at"] = created
    if habits is not None:
        defaults = {key: value for key, value in defaults.items() if key in habits}
    written = dict(rows)
    lines: list[str] = []
    for key in _FIRST_KEYS:
        if key in fixed or key in extra or put.get(key) is not None:
            value = fixed.get(key, put.get(key))
            lines.append(dump({key: extra[key] if value is None else value}))
        elif key in written and key not in put and own_keys[key] is not None:
            lines.append(written[key])
        elif key in defaults and not (key == "created_at" and own_keys.get("created")):
            lines.append(dump({key: defaults[key]}))
    lines += [text for key, text in rows if key not in _FIRST_KEYS and key not in extra]
    lines.append(dump({key: value for key, value in extra.items() if key not in _FIRST_KEYS}))
    if is_crlf(body):
        newline = "\r\n"
    else:
        newline = "\n"
    head = f"---\n{''.join(lines)}---\n".replace("\n", newline)
    if habits is not None and not any(lines):
        head = ""
    return head + body + ("" if body.endswith("\n") else newline)


def _own_header(content: str) -> tuple[dict[str, Any], list[tuple[str, str]], str]:
    """(values, lines by key, body) of content that may begin with its own frontmatter."""
    yaml_text, body_at = split(content)
    if yaml_text is None:
        return {}, [], content[body_at:]
    yaml_text = yaml_text.replace("\r\n", "\n")
    try:
        own_keys = parse(yaml_text)
    except ValueError as error:
        if not looks_like_header(yaml_text):
            # A rule, and text below it
            return {}, [], content.removeprefix("\ufeff")
        raise InvalidInput(
            f"Parameter `content` begins with frontmatter that is not valid YAML: {error}. Mend it or leave it out."
        ) from None
    if not own_keys and yaml_text.strip():
        # Nothing but a heading, which YAML takes for a comment
        return {}, [], content.removeprefix("\ufeff")
    return own_keys, _rows_as_written(yaml_text, own_keys), content[body_at:]


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
    """Whether these lines alone are a header of this one key with this value."""
    try:
        return parse(text) == {key: value}
    except ValueError:
        return False


def _listed_texts(value: Any) -> list[str]:
    values = unpacked(value)
    if isinstance(values, str):
        return values.split(",")
    if not isinstance(values, (list, tuple)):
        return []
    return [str(item) for item in values if item is not None and not isinstance(item, (list, dict))]


@dataclass(frozen=True, slots=True)
class Record:
    """One memory. Times are aware UTC; `further` holds the keys after `version`, unknown ones too,
    in their order. `phase` None means what the category says: inbox in category `inbox`, else
    organized."""

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
        digest = sha256(self.content.encode("utf-8", "surrogatepass")).hexdigest()
        phase = self.phase or (model.INBOX if self.category == model.INBOX else model.ORGANIZED)
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
