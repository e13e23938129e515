"""Read the text of a Markdown file as a `Note`, and compose the text of new files.

`parse_note` reads any file. `compose_note` writes the file of a note, `Record` the file of a memory.
A header is the YAML between two lines `---` at the top of a file.

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
# Of a time counted since 1970: the number of its digits today → how many of its units are a second.
_UNITS_PER_SECOND = {10: 1, 13: 1000}
# Keys that close a note. They count even in a header that YAML cannot read.
_KEPT_WHEN_BROKEN = lazy_pattern(r"^(scope|locked)[ \t]*:[ \t]*([^\r\n]*)", re.MULTILINE)
# The category of an organized memory when neither its header nor its folder names one.
_ORGANIZED_CATEGORY = "knowledge"
# A longer target is a text in brackets, not a link.
_LINK_LENGTH = 200
# Projects whose files are not pages of Logseq.
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
# The beginning of a memory as memoranda writes it.
_CUT_HEADER = lazy_pattern(r"\ufeff?---\r?\nid: [0-9a-f]{8}-[0-9a-f]{4}-")
_CUT_HEADER_TEXT = (
    "the frontmatter is not read, its last line --- is missing: the file is not whole, or that line "
    "was deleted"
)
# The lines of a conflict, in their order.
_CONFLICT_MARKS = (
    lazy_pattern(r"(?m)^<<<<<<< "),
    lazy_pattern(r"(?m)^=======\r?$"),
    lazy_pattern(r"(?m)^>>>>>>> "),
)
_CODE_FENCE = lazy_pattern(r"(?m)^ {0,3}(?:```|~~~)")
_CONFLICT_TEXT = (
    "a merge stopped at line {}, and both texts are in the note: keep what holds, and delete the "
    "lines that begin with <<<<<<<, ======= and >>>>>>>"
)


class _Header(NamedTuple):
    """The header of a note's text.

    yaml: the text between the `---` lines; None if the note has no header.
    values: the header as a mapping; empty if it is not valid YAML.
    keys: the keys and values that the note's fields are read from. These are `values`, except for
        a memory whose header is broken: then the keys whose own lines can be read.
    end: the offset behind the closing `---` line.
    body_at: the offset where the body begins. It equals `end`, except for a note whose header is
        broken: then it is 0, so that the header is shown as text. A memory's is always `end`.
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
    """Read the text of a file as a note.

    Any text is a note. Parts that cannot be read are left out and named in the note's `warnings`.

    text: the whole file.
    project, path: where the file is.
    changed: the file's mtime, aware UTC.
    born: the file's birth time, aware UTC. None if the disk does not tell it.
    entity: whether to read it as an entity, as the notes of project `graph` are.

    The caller sets `etag`, which is "" here.
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
        project=project,
        path=path,
        text=text,
        header=header.values,
        body_at=header.body_at,
        id=identity or default_id(project, path),
        # The title is set below.
        title="",
        type=_type_of(keys, is_entity),
        permalink=permalink or permalink_for(project, path),
        # Replaced below, if the header or the disk tells when it was created.
        created=changed,
        changed=changed,
        own_permalink=bool(permalink),
        own_id=bool(identity),
        observations=observations,
        relations=relations,
        headings=headings,
        warnings=warnings,
    )
    if not is_entity and is_cut(note):
        warnings.append(_PARTLY_READ_WARNING)
    conflict_line = _conflict_line(text)
    if conflict_line:
        warnings.append(with_code(model.MERGE_CONFLICT, _CONFLICT_TEXT.format(conflict_line)))
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


def _conflict_line(text: str) -> int:
    """Return the line where the first conflict of a merge begins, as `git` marks it. 0 without one.

    Marks in a block of code are an example.
    """
    # Nearly every text ends here.
    if "<<<<<<< " not in text:
        return 0
    begin = None
    position = 0
    for mark in _CONFLICT_MARKS:
        match = mark.search(text, position)
        if match is None:
            return 0
        begin = match.start() if begin is None else begin
        position = match.end()
    before = text[:begin]
    is_in_code = len(_CODE_FENCE.findall(before)) % 2 == 1
    return 0 if is_in_code else before.count("\n") + 1


def _read_header(text: str, project: str, warnings: list[str]) -> _Header:
    """Read the header of a note's text. Adds a warning to `warnings` if it cannot be read."""
    yaml_text, end = split(text)
    # There is no header, or an empty one.
    if not yaml_text:
        if project in model.MEMORY_PROJECTS and _CUT_HEADER.match(text):
            warnings.append(with_code(BAD_HEADER, _CUT_HEADER_TEXT))
        return _Header(yaml_text, values={}, keys={}, end=end, body_at=end)
    try:
        values = parse(yaml_text)
    except ValueError as error:
        warnings.append(with_code(BAD_HEADER, f"the frontmatter is not read, {error}"))
        if project in model.MEMORY_PROJECTS:
            # A bad line must not cost a memory its id and its category.
            keys = _readable_keys(yaml_text)
            return _Header(yaml_text, values={}, keys=keys, end=end, body_at=end)
        return _Header(yaml_text, values={}, keys={}, end=end, body_at=0)
    return _Header(yaml_text, values=values, keys=values, end=end, body_at=end)


def _type_of(keys: Mapping[str, Any], is_entity: bool) -> str:
    """Return the type of a note, `note` if its header names none.

    The type of an entity is exactly as written, and may be empty.

    keys: the header.
    is_entity: whether the note is an entity of the graph.
    """
    value = keys.get("type")
    if is_entity and isinstance(value, str):
        return value
    return _text(value) or "note"


def _set_fields(note: Note, header: _Header) -> None:
    """Set the fields of `note` from its header, such as `updated` from `updated_at`."""
    for key, value in header.keys.items():
        if value is not None and key in _READERS:
            _set_field(note, key, value)
    # Only its warning is needed. Whoever asks for the flag looks into the header.
    _is_set(note, "pinned", header.keys.get("pinned"))
    # Dendron writes `updated`, and as a number.
    counted_time = _counted_time(header.keys.get("updated"))
    if note.updated is None and counted_time is not None:
        note.updated = counted_time
    tags = _all_texts(header.keys, TAG_KEYS)
    note.tags = tuple(united(tag.removeprefix("[[").removesuffix("]]") for tag in tags))
    note.aliases = tuple(dict.fromkeys(_all_texts(header.keys, _ALIAS_KEYS)))
    # A note whose header is broken must stay hidden by its scope, and closed by its lock.
    if header.yaml and not header.values:
        for key, value in _KEPT_WHEN_BROKEN.findall(header.yaml):
            _set_field(note, key, value.strip().strip("\"'"))


def _set_field(note: Note, key: str, value: Any) -> None:
    """Set the field of `note` that belongs to a header key of `_READERS`."""
    reader = _READERS[key]
    setattr(note, reader.field, reader.read(note, value))


def _set_created(note: Note, keys: Mapping[str, Any], born: datetime | None) -> None:
    """Set when a note was created, from its header or else from the birth time of its file.

    keys: the header.
    born: when the file was made; None where the disk does not tell.
    """
    for key in ("created_at", "created"):
        value = keys.get(key)
        if value is None:
            continue
        moment = _moment(note, value)
        if moment is not None:
            note.created = moment
            return
    # A file born after its last change is a copy. Its birth says nothing of the note.
    if born is not None and born < note.changed:
        note.created = born


def _read_page_fields(note: Note) -> None:
    """Add the title and the aliases that the first lines of a Logseq page name.

    Such a page begins with lines like `title:: Tea` and `alias:: Cha, Chai`.
    """
    # Hardly any note has such a line, and looking for the sign is fast.
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
    """Return the keys of a header that hold tags under another spelling, such as `tag` or `Tags`."""
    return [key for key in header if key != "tags" and key.lower() in TAG_KEYS]


def _readable_keys(yaml_text: str) -> dict[str, Any]:
    """Return the keys, with their values, of a broken header whose own lines are valid YAML.

    Of `id: 1` and `tags: [a` on two lines, the result is `{"id": "1"}`. Mappings are left out.
    """
    keys: dict[str, Any] = {}
    for key, text in entries(yaml_text.replace("\r\n", "\n")):
        with suppress(ValueError):
            value = parse(text).get(key)
            if value is not None and not isinstance(value, dict):
                keys.setdefault(key, value)
    return keys


def _with_header_links(relations: list[Relation], yaml_text: str | None) -> list[Relation]:
    """Return the relations of the links in a note's header, then `relations`, which its text holds.

    A link of the header that the text has too is left out.

    yaml_text: the header; None if the note has none.
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
                Relation(kind, link.target, project=link.project, line=line, rest=link.rest)
            )
    return [*header_relations, *relations]


def own_permalink(text: str) -> str | None:
    """Return the permalink that the header of a note's text names, None if it names none."""
    try:
        return _text(parse(split(text)[0] or "").get("permalink")) or None
    except ValueError:
        return None


def default_id(project: str, path: str) -> str:
    """Return the id of a note whose header names none.

    This is uuid5(NAMESPACE_URL, "memory://<project>/<path>"), computed without the slow module uuid.
    """
    name = f"memory://{project}/{path}".encode("utf-8", "surrogatepass")
    # Imported late: most notes have an id.
    from hashlib import sha1

    digest = bytearray(sha1(_NAMESPACE_URL + name, usedforsecurity=False).digest()[:16])
    # The version (5) and the variant that a UUID has at these places.
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def names(note: Note) -> tuple[str, ...]:
    """Return all names that a link may use for the note, without repetitions.

    These are its title and its aliases. For a memory, the first line of its text follows, as it is
    and without the leading `#` (contract 001, 4). A memory "Tea" with the alias "Drinks" that begins
    with `# I like tea` has the names "Tea", "Drinks", "# I like tea" and "I like tea".
    """
    all_names = [note.title, *note.aliases]
    if note.project in model.MEMORY_PROJECTS:
        line = first_line(note.content)
        all_names += [line, line.lstrip("#").strip()]
    return tuple(dict.fromkeys(name for name in all_names if name))


def _text(value: Any) -> str:
    """Return the text of a string or a flag (`true`, `false`). Empty for all other values."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return _AS_WRITTEN[value]
    return ""


def _texts(value: Any) -> list[str]:
    """Return the texts of a list, or the parts of a text between commas, without empty ones.

    `["a", " b "]` and `a, b` both become `["a", "b"]`.
    """
    items: Sequence[Any] = ()
    if isinstance(value, str):
        items = value.split(",")
    elif isinstance(value, list):
        items = value
    texts = [_text(item) for item in items]
    return [text for text in texts if text]


def _all_texts(header: Mapping[str, Any], keys: tuple[str, ...]) -> list[str]:
    """Return all texts that a header has under `keys`, in whatever case it writes them.

    A list may be written as text: `'["a", "b"]'`, and for tags also `"#a #b"`. YAML reads a page
    without quotes, `[[a]]`, as a list in a list; its text here is `a`.

    keys: the keys in lower case.
    """
    texts: list[str] = []
    for key, value in header.items():
        if key.lower() not in keys:
            continue
        for item in _texts(_with_pages(unpack_list(value))):
            # An item may itself spell a list.
            is_list = item.startswith("[") and not item.startswith("[[")
            if is_list:
                texts += _texts(unpack_list(item))
            else:
                texts.append(item)
    return texts


def _with_pages(value: Any) -> Any:
    """Replace each `[[page]]` in a YAML value by the name of the page.

    YAML reads `[[Tea]]` as `[["Tea"]]`, which becomes `["Tea"]`. `["a", [["Tea"]]]`, which is YAML
    for `[a, [[Tea]]]`, becomes `["a", "Tea"]`. All other values stay.
    """
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
    """Return the list that a text spells; any other value as it is.

    `'[a, b]'` becomes `["a", "b"]`, and `"#a #b"` becomes `["#a", "#b"]`.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    # `[[a]]` is a link to a page.
    is_in_brackets = text.startswith("[") and text.endswith("]") and not text.startswith("[[")
    if is_in_brackets:
        try:
            return parse(f"list: {text}")["list"]
        except ValueError:
            return value
    words = text.split()
    are_tags = len(words) > 1 and all(word.startswith("#") for word in words)
    if are_tags:
        return [word.rstrip(",") for word in words]
    return value


def _counted_time(value: Any) -> datetime | None:
    """Return the time that a number counts from 1970, None if the value is not such a number.

    Dendron counts milliseconds: `1700000000000`. Seconds, `1700000000`, are read too.
    """
    digits = _text(value)
    units_per_second = _UNITS_PER_SECOND.get(len(digits))
    # `isdigit` alone would accept the digits of other scripts.
    is_number = digits.isascii() and digits.isdigit()
    if units_per_second is None or not is_number:
        return None
    return datetime.fromtimestamp(int(digits) / units_per_second, UTC)


def with_counted_time(before: str, after: str, now: datetime) -> str:
    """Return the new text of a note with the time of the edit under `updated`, if it is Dendron's.

    Dendron, another notes program, writes the time of the last change as a number under `updated`,
    so that other programs that change a note have to set it. `after` is returned as it is if the
    edit set the key itself, or if `updated` is missing or not such a number.

    before, after: the file's text before and after an edit.
    now: the time of the edit.
    """
    # Hardly any note has the key. Parsing each header to look for it would take long.
    if after == before or "updated" not in before:
        return after
    try:
        old_value = parse(split(before)[0] or "").get("updated")
        new_value = parse(split(after)[0] or "").get("updated")
    except ValueError:
        return after
    is_dendrons = _counted_time(old_value) is not None
    was_set_by_edit = new_value != old_value
    if not is_dendrons or was_set_by_edit:
        return after
    # In seconds or milliseconds, as before.
    units_per_second = _UNITS_PER_SECOND[len(_text(old_value))]
    try:
        return set_keys(after, {"updated": int(now.timestamp() * units_per_second)})
    except ValueError:
        return after


def _moment(note: Note, value: Any) -> datetime | None:
    """Return a time of a header as aware UTC, such as `2026-01-31` or `2026-01-31T12:00:00Z`.

    For a value that is not a time, add a warning to the note and return None.
    """
    counted_time = _counted_time(value)
    if counted_time is not None:
        return counted_time
    text = _text(value)
    # Python 3.11 reads only a capital Z as UTC.
    iso_text = text.upper() if text[-1:] == "z" else text
    try:
        moment = datetime.fromisoformat(iso_text)
        # Most times are UTC already. Converting them takes nearly as long as reading them.
        if moment.tzinfo is UTC:
            return moment
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        # A value such as a list has no text, so it is shown as Python writes it.
        note.warnings.append(f'bad date "{text or value}" ignored')
        return None


# The functions from here to `_READERS` read the value of a header key. All of them get the note, to
# which some add a warning.


def _unique_texts(note: Note, value: Any) -> tuple[str, ...]:
    """Return the texts of a list, each once."""
    return tuple(dict.fromkeys(_texts(value)))


def _text_or_none(note: Note, value: Any) -> str | None:
    """Return a text, or None for an empty one."""
    return _text(value) or None


def _is_locked(note: Note, value: Any) -> bool:
    """Whether a note is locked. A value that is not a flag adds a warning."""
    return _is_set(note, "locked", value)


def _is_set(note: Note, key: str, value: Any) -> bool:
    """Whether the flag under a header key is set.

    A value that is not a flag adds a warning.
    """
    is_set = model.flag(value)
    if is_set is None:
        note.warnings.append(f'bad {key} "{_text(value) or value}" ignored; use true or false')
    return is_set is True


def _date(note: Note, value: Any) -> str | None:
    """Return a date as it is written. Another value adds a warning, and is None."""
    if _moment(note, value) is None:
        return None
    return _text(value)


def _access_count(note: Note, value: Any) -> int:
    """Return how often the note was read."""
    return _count(note, "access_count", value, least=0)


def _version(note: Note, value: Any) -> int:
    """Return how often the note was changed, from 1."""
    return _count(note, "version", value, least=1)


def _superseded(note: Note, value: Any) -> tuple[str, ...]:
    """Return the ids or names of the notes that this note replaces.

    A comma separates ids and links: `[[Tea]], [[Milk]]` are two names. Elsewhere a comma may be
    part of a name: `Tea, Milk` is one.
    """
    value = _with_pages(unpack_list(value))
    items = value if isinstance(value, list) else [value]
    names: list[str] = []
    for item in items:
        if isinstance(item, (dict, list)):
            note.warnings.append(f'bad supersedes "{item}" ignored; use names or ids')
        text = _text(item)
        parts = _texts(text)
        are_ids_and_links = all(UUID.fullmatch(part) or _PAGE.fullmatch(part) for part in parts)
        names += parts if are_ids_and_links else [text]

    # Each name once, without its brackets.
    bare_names: dict[str, None] = {}
    for name in names:
        page = _PAGE.fullmatch(name)
        bare_name = page[1] if page else name
        if bare_name:
            bare_names[bare_name] = None
    return tuple(bare_names)


def _count(note: Note, key: str, value: Any, least: int) -> int:
    """Return the whole number under a header key, at least `least`.

    Another value counts as `least`. In a memory or a stored value, it also adds a warning.
    """
    text = _text(value)
    # SQLite keeps numbers of up to 18 digits whole.
    is_storable_number = text.isascii() and text.isdigit() and len(text) < 19
    if is_storable_number:
        return max(int(text), least)
    if note.project in (*model.MEMORY_PROJECTS, model.KV_PROJECT):
        note.warnings.append(f'bad {key} "{text or value}" ignored')
    return least


def _scope(note: Note, value: Any) -> str:
    """Return the scope in lower case: `global` or `agent:NAME`.

    A bad scope stays as written, and adds a warning. No agent has that scope, so the note is hidden
    from all of them rather than shown to everybody.
    """
    text = _text(value) or (f"{value}" if value else '""')
    if model.SCOPE.fullmatch(text.lower()):
        return text.lower()
    note.warnings.append(f'bad scope "{text}" hides the note; use global or agent:NAME')
    return text


class _KeyReader(NamedTuple):
    """Reads the value of a header key.

    field: the name of the field of `Note` that the key sets.
    read: returns the value of the field, from the note and the value in the header.
    """

    field: str
    read: Callable[[Note, Any], Any]


# The header keys that set one field each.
_READERS = {
    "links": _KeyReader("links", _unique_texts),
    "source": _KeyReader("source", _text_or_none),
    "locked": _KeyReader("locked", _is_locked),
    "date": _KeyReader("date", _date),
    "scope": _KeyReader("scope", _scope),
    "updated_at": _KeyReader("updated", _moment),
    "expires_at": _KeyReader("expires", _moment),
    "valid_from": _KeyReader("valid_from", _moment),
    "valid_until": _KeyReader("valid_until", _moment),
    "supersedes": _KeyReader("supersedes", _superseded),
    "access_count": _KeyReader("access_count", _access_count),
    "version": _KeyReader("version", _version),
}


def _title(note: Note, header: dict[str, Any], is_entity: bool) -> str:
    """Return the title that the header names, or else the name of the file.

    A memory without a title is called by its first line.

    header: the values of the header.
    is_entity: whether the note is an entity of the graph.
    """
    is_stored_value = note.project == model.KV_PROJECT
    value = header.get("key") if is_stored_value else header.get("title")
    # Names of entities and keys of values count exactly as written.
    is_exact = is_entity or is_stored_value
    if is_exact and isinstance(value, str):
        return value
    if isinstance(value, list):
        title = ", ".join(_texts(value))
    else:
        title = _text(value)
    if not title and note.project in model.MEMORY_PROJECTS:
        title = first_line(note.content)
    return title[:TITLE_LENGTH] or shown_stem(note.path)


def shown_stem(path: str) -> str:
    """Return the name of a file as a title: `Tea` for `drinks/Tea.md`.

    Notion's export ends each name with a blank and 32 digits, which are left out too.
    """
    return notion.without_id(without_suffix(path.rpartition("/")[2]))


def _read_memory(note: Note, header: dict[str, Any], is_bare: bool) -> None:
    """Set category, phase and relations of a memory (contract 001, 2).

    Where the folder and the header name two categories, the folder counts.

    is_bare: whether the file has no header, which means that somebody wrote it by hand.
    """
    place = _memory_place(note.path)
    written_category = _written_category(note, header)
    written_phase = _written_phase(note, header)
    category = _category_of_memory(place, written_category, written_phase)

    is_moved = place.folder in model.CATEGORIES and written_category not in ("", place.folder)
    if is_moved:
        difference = f"the folder {place.folder} counts, not {written_category} of the frontmatter"
        note.warnings.append(model.with_code(model.CATEGORY_DIFFERS, difference))
        # The phase belonged to the other category.
        written_phase = ""

    phase = written_phase or place.phase or phase_of_category(category)
    if note.project == model.ARCHIVE_PROJECT:
        phase = model.ARCHIVED
        # The archive has no inbox.
        if category == model.INBOX:
            category = _ORGANIZED_CATEGORY
    note.phase = phase
    note.category = category
    note.type = category
    if is_bare:
        note.source = "file"
    note.relations = _memory_relations(note)


def _category_of_memory(place: _MemoryPlace, written_category: str, written_phase: str) -> str:
    """Return the category of a memory, by its folder or else by its header.

    written_category, written_phase: the category and the phase that the header names, "" if it
        names none.
    """
    if place.folder in model.CATEGORIES:
        return place.folder
    if written_category:
        return written_category
    is_organized = (written_phase or place.phase) == model.ORGANIZED
    return _ORGANIZED_CATEGORY if is_organized else model.INBOX


class _MemoryPlace(NamedTuple):
    """The folder and the phase of a memory, by its path.

    folder: "" if the memory is in no folder.
    phase: None if the path names no phase.
    """

    folder: str
    phase: str | None


def _memory_place(path: str) -> _MemoryPlace:
    """Return the folder and the phase that the path of a memory names.

    `people/a.md` is in folder `people`, and names no phase. `long-term/people/a.md` is in folder
    `people`, and has the phase that older programs meant by `long-term`. `long-term/a.md` has that
    phase, and no folder.
    """
    top_folder, _, path_below = path.partition("/")
    if not path_below:
        return _MemoryPlace(folder="", phase=None)
    old_phase = model.OLD_FOLDERS.get(top_folder)
    if old_phase:
        folder, has_folder, _ = path_below.partition("/")
        return _MemoryPlace(folder if has_folder else "", old_phase)
    return _MemoryPlace(top_folder, phase=None)


def _written_category(note: Note, header: Mapping[str, Any]) -> str:
    """Return the category that the header of a memory names, "" if it names none.

    A category that does not exist adds a warning and counts as none.
    """
    category = _text(header.get("category"))
    if category and category not in model.CATEGORIES:
        note.warnings.append(f'bad category "{category}" ignored')
        return ""
    return category


def _written_phase(note: Note, header: Mapping[str, Any]) -> str:
    """Return the phase that the header of a memory names, "" if it names none.

    Without `phase`, the phase may follow from the type, as older programs wrote it. A phase that
    does not exist adds a warning.
    """
    phase = _text(header.get("phase"))
    if phase == model.ARCHIVED:
        # Only the project decides: somebody may have moved the file out of the archive by hand.
        return ""
    if phase in model.PHASES:
        return phase
    if phase:
        note.warnings.append(f'bad phase "{phase}" ignored')
    return model.OLD_PHASES.get(note.type, "")


def phase_of_category(category: str) -> str:
    """Return the phase of a memory whose header and path name none."""
    if category == model.INBOX:
        return model.INBOX
    return model.ORGANIZED


def _memory_relations(note: Note) -> list[Relation]:
    """Return the relations in the text of a memory, followed by further links of its header.

    The key `links` of the header names these.
    """
    relations = [relation for relation in note.relations if len(relation.target) <= _LINK_LENGTH]
    if not note.links:
        return relations
    linked = {
        relation.target
        for relation in relations
        if relation.type == LINKS_TO and relation.project is None
    }
    # The number of the line with the key `links`.
    key_start = note.text.find("\nlinks") + 1
    line = note.text.count("\n", 0, key_start) + 1
    for link in note.links:
        if link not in linked:
            relations.append(Relation(LINKS_TO, link, line=line))
    return relations


# The keys with which the header of a composed note begins, in this order.
_FIRST_KEYS = ("id", "title", "type", "permalink", "tags", "created_at")
# The first keys that the arguments of `compose_note` decide, whatever the old lines say.
_DECIDED_KEYS = ("title", "type", "tags")


class _Row(NamedTuple):
    """A key of a header, and its lines as somebody wrote them, such as `tags:\\n  - a\\n`."""

    key: str
    lines: str


class _WrittenHeader(NamedTuple):
    """A header as somebody wrote it: its values as a mapping, and its rows in their order."""

    values: dict[str, Any]
    rows: list[_Row]


_NO_HEADER = _WrittenHeader(values={}, rows=[])


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
    """Return the text of a note's file: its header, then its body, which ends with a line break.

    The header begins with `id`, `title`, `type`, `permalink`, `tags` and `created_at`.

    content: the text. It may begin with a header, whose keys stay as written. `title`, `type` and
        `metadata` override its keys, and `tags` are added to its tags.
    permalink: used if the header of `content` names no permalink.
    created: used if the header of `content` names no date. None if the note's age is unknown.
    metadata: further keys of the header. None for none.
    keep: `id`, `permalink` and `created_at` of the note that is replaced. They override all others.
        None if no note is replaced.
    old: the text of the replaced note. Its keys stay unless they are set now.
    habits: the keys that a note of this folder usually has. Keys that nobody asked for are only
        written if they are among these. A note without any key has no header. None writes all keys.

    Raises InvalidInput if the frontmatter of `content` is not valid YAML.
    """
    # The keys that are there already, in the new text and in the replaced note.
    own_header, body = _own_header(content)
    replaced = _header_of_replaced(old)
    values = replaced.values | own_header.values
    rows = [*own_header.rows, *_rows_that_stay(replaced, own_header, bool(keep))]

    # The keys that the arguments set. Title and type have their own arguments.
    metadata_keys = {
        key: value for key, value in (metadata or {}).items() if key not in _DECIDED_KEYS
    }
    all_tags = [
        *listed_texts(own_header.values.get("tags")),
        *listed_texts((metadata or {}).get("tags")),
        *tags,
    ]
    # Of a key that several of these set, the last value counts.
    new_values = {
        **metadata_keys,
        **_keys_of_arguments(title, type, all_tags, values, habits),
        **_without_none(keep or {}),
    }

    # The first keys, then the other rows as written, then the other keys of the metadata.
    written_lines = {row.key: row.lines for row in rows if values.get(row.key) is not None}
    defaults = _defaults(permalink, created, values, habits)
    lines = _first_lines(new_values, written_lines, defaults)
    for row in rows:
        if row.key not in _FIRST_KEYS and row.key not in metadata_keys:
            lines.append(row.lines)
    last_keys = {key: value for key, value in metadata_keys.items() if key not in _FIRST_KEYS}
    lines.append(dump(last_keys))
    return _file_text("".join(lines), body, may_be_bare=habits is not None)


def _file_text(header: str, body: str, *, may_be_bare: bool) -> str:
    """Join a header and a body to the text of a file. The header gets the body's line breaks.

    header: its lines without the two `---`, with `\\n` as line breaks.
    may_be_bare: whether to leave out the `---` lines too if `header` is empty.
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
    """Return the keys `title`, `type` and `tags` that a composed note has.

    values: the keys of the content's header and of the replaced note.
    habits: the keys that a note of this folder usually has. Other keys are only written if somebody
        asked for them. None writes all keys.
    """
    keys: dict[str, Any] = {}
    if _is_habit("title", habits):
        keys["title"] = title
    note_type = type or values.get("type")
    if not note_type and _is_habit("type", habits):
        note_type = "note"
    if note_type:
        keys["type"] = note_type
    all_tags = united(tags or listed_texts(values.get("tags")))
    if all_tags:
        keys["tags"] = all_tags
    return keys


def _defaults(
    permalink: str,
    created: datetime | None,
    values: Mapping[str, Any],
    habits: Collection[str] | None,
) -> dict[str, Any]:
    """Return the values that `permalink` and `created_at` have when nobody sets them.

    permalink: the permalink that the note gets by default.
    created: when the note was created. None if nothing tells.
    values: the keys of the content's header and of the replaced note.
    habits: the keys that a note of this folder usually has. Other keys are only written if somebody
        asked for them. None writes all keys.
    """
    defaults: dict[str, Any] = {}
    if _is_habit("permalink", habits):
        defaults["permalink"] = permalink
    if created is not None and not values.get("created") and _is_habit("created_at", habits):
        defaults["created_at"] = created
    return defaults


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys whose value is not None."""
    return {key: value for key, value in values.items() if value is not None}


def _is_habit(key: str, habits: Collection[str] | None) -> bool:
    """Whether to write a key that nobody asked for.

    habits: the keys that a note of this folder usually has. None means that all keys are written.
    """
    return habits is None or key in habits


def _first_lines(
    new_values: Mapping[str, Any], written_lines: Mapping[str, str], defaults: Mapping[str, Any]
) -> list[str]:
    """Return the lines of `_FIRST_KEYS`, each from the first of the three mappings that has the key.

    new_values: the values that somebody set now, by key.
    written_lines: the lines of each key in the old header. Title, type and tags never stay as
        written.
    defaults: the values of keys that nobody set, by key.
    """
    lines: list[str] = []
    for key in _FIRST_KEYS:
        if key in new_values:
            lines.append(dump({key: new_values[key]}))
        elif key in written_lines and key not in _DECIDED_KEYS:
            lines.append(written_lines[key])
        elif key in defaults:
            lines.append(dump({key: defaults[key]}))
    return lines


def _header_of_replaced(text: str) -> _WrittenHeader:
    """Return the header of the note that is replaced. A header that cannot be read counts as empty."""
    try:
        header, _ = _own_header(text)
    except InvalidInput:
        return _NO_HEADER
    return header


def _rows_that_stay(
    replaced: _WrittenHeader, own_header: _WrittenHeader, has_kept_date: bool
) -> list[_Row]:
    """Return the rows of a replaced note's header that its new text does not set.

    replaced: the header of the old note.
    own_header: the header that the new text brings.
    has_kept_date: whether the new header gets the old note's date as `created_at`.
    """
    rows: list[_Row] = []
    for row in replaced.rows:
        repeats_date = row.key == "created" and has_kept_date
        if row.key not in own_header.values and not repeats_date:
            rows.append(row)
    return rows


def _own_header(content: str) -> tuple[_WrittenHeader, str]:
    """Split content into the header it may begin with, and its body.

    Raises InvalidInput if it begins with a header that is not valid YAML.
    """
    yaml_text, body_at = split(content)
    if yaml_text is None:
        return _NO_HEADER, content[body_at:]
    yaml_text = yaml_text.replace("\r\n", "\n")
    try:
        values = parse(yaml_text)
    except ValueError as error:
        if not looks_like_header(yaml_text):
            # The first `---` is a rule of Markdown, with text below it.
            return _NO_HEADER, content.removeprefix("\ufeff")
        raise InvalidInput(
            "Parameter `content` begins with frontmatter that is not valid YAML: "
            f"{error}. Fix it or leave it out."
        ) from None
    if not values and yaml_text.strip():
        # Between two rules there is only a heading, which YAML reads as a comment.
        return _NO_HEADER, content.removeprefix("\ufeff")
    return _WrittenHeader(values, _rows_as_written(yaml_text, values)), content[body_at:]


def _rows_as_written(yaml_text: str, values: Mapping[str, Any]) -> list[_Row]:
    """Return a row for each key of a header.

    Its lines stay as written if they have the same value without the other lines. If not, they are
    written from the value: `b: *x` needs the `&x` of another key.

    yaml_text: the header as it is in the file.
    values: the header as `parse` reads it.
    """
    lines_by_key: dict[str, str] = {}
    for key, lines in entries(yaml_text):
        if _is_header_of(lines, key, values.get(key)):
            lines_by_key[key] = lines
    if len(lines_by_key) == len(values):
        return [_Row(key, lines_by_key[key]) for key in values]
    rows: list[_Row] = []
    for key, value in parse_as_written(yaml_text).items():
        lines = lines_by_key[key] if key in lines_by_key else dump({key: value})
        rows.append(_Row(str(key), lines))
    return rows


def _is_header_of(lines: str, key: str, value: Any) -> bool:
    """Whether these lines alone are a header with only this key and value."""
    try:
        return parse(lines) == {key: value}
    except ValueError:
        return False


def listed_texts(value: Any) -> list[str]:
    """Return the texts of a list, or the parts of a text between commas, untrimmed.

    `a, b` becomes `["a", " b"]`. Any other value has no texts.
    """
    values = unpack_list(value)
    if isinstance(values, str):
        return values.split(",")
    if not isinstance(values, (list, tuple)):
        return []
    # Lists, mappings and empty items have no text.
    scalars = [item for item in values if not isinstance(item, (list, dict, type(None)))]
    return [str(item) for item in scalars]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Record(FrozenValueObject):
    """A memory as a set of fields. `text` turns it into the text of its file. Times are aware UTC.

    id: the UUID of the memory.
    content: its text, without the header.
    category: such as `inbox`, `knowledge` or `preferences`.
    created, updated: when it was made and last changed.
    scope: who may see the memory: `global` or `agent:NAME`.
    phase: None means the phase of the category: `inbox` for category `inbox`, `organized` for all
        others.
    tags: its tags, without `#`.
    source: the program the memory came from; None is written as `manual`.
    expires: when it expires. None means never.
    access_count: how often it was read.
    links: the names of notes it is linked to.
    version: how often it was changed, from 1.
    further: all other keys of the header, in the order in which they follow `version`.
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
        """Return the text of the memory's file, with its keys in the order of contract 001, 2.

        One line break is added to the content, which stays as it is otherwise.
        """
        digest = sha256(self.content.encode("utf-8", "surrogatepass"))
        values = {
            "id": self.id,
            "content_hash": digest,
            "phase": self.phase or phase_of_category(self.category),
            "category": self.category,
            "scope": self.scope,
            "tags": united(self.tags),
            "source": self.source or "manual",
            "created_at": self.created,
            "updated_at": self.updated,
            "expires_at": self.expires,
            "access_count": self.access_count,
            "links": list(self.links),
            "version": self.version,
        }
        # Empty lists are left out.
        header = {key: values[key] for key in model.MEMORY_KEYS if values[key] != []}
        return f"---\n{dump(header | self.further)}---\n{self.content}\n"
