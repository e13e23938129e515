"""`cat`, `grep`, `ls`, `find` and `tail` of Basic Memory: reading notes as a shell would (contract
000b, 10).

They route by themselves: projects are the folders at the root. A path that begins with a project's
name leads there, and the paths in the reply begin with it too; where there are several projects,
one has to be named.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from memoranda.errors import InvalidInput, NotFound
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes import drop_in_reading as reading
from memoranda.faces.notes import drop_in_replies as replies
from memoranda.faces.notes.drop_in_replies import bounded, data_reply, json_reply, paged
from memoranda.faces.notes.replies import short
from memoranda.faces.reply import Reply
from memoranda.index.rows import Hit
from memoranda.note.grammar import scan
from memoranda.note.links import slug
from memoranda.note.model import Note
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.notes.drop_in_replies import Vault

_DEEPEST = 10
_MOST_ROWS = 200
_MOST_LINES = 100
_WORD = re.compile(r"([\w.-]+)\s+(in|has|between)\s+(.+)", re.ASCII)
_SIGN = re.compile(r"([\w.-]+)\s*(>=|<=|=|>|<)\s*(.*)", re.ASCII)
_KEY = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')
_OPERATORS = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}


def _route(
    vault: Vault, memory: MemorySession, args: Arguments, path: str = ""
) -> tuple[str, str, str]:
    """(our project, the path in it, what goes before paths in the reply) that a call means. Raises
    InvalidInput when the path and `project` disagree, or nothing says which of several projects."""
    projects = vault.projects(memory)
    named = vault.only or args.get("project") or args.get("project_id")
    path = path.removeprefix("memory://").strip().strip("/")
    first, _, rest = path.partition("/")
    mounted = vault.known(memory, first) if first else None
    if args.get("project_id") or mounted is None:
        if not named and len(projects) > 1:
            known = ", ".join(sorted(f"{slug(name)}/" for name, _ in projects))
            if first:
                what = f"no project '{first}'"
            else:
                what = "no project specified"
            raise InvalidInput(f"{what} — active projects: {known}")
        return vault.named(memory, args), path, ""
    if named and vault.named(memory, args) != mounted[1].name:
        raise InvalidInput(
            f"path names project '{mounted[0]}' but project '{named}' was passed. Name one of them."
        )
    return mounted[1].name, rest, slug(mounted[0])


def _placed(row: dict[str, Any], prefix: str) -> dict[str, Any]:
    """`row` with its paths as the same tools take them again."""
    for key, before in (("file_path", f"{prefix}/"), ("directory_path", f"/{prefix}")):
        if prefix and row.get(key):
            row[key] = before + row[key]
    return row


def _cat(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    first = args.get("start_line")
    last = args.get("end_line")
    section = args.get("section")
    ranged = first is not None or last is not None
    most = args.get("max_tokens")
    whole_text = args.get("include_frontmatter") is not False
    if section is not None and ranged:
        raise InvalidInput("cat: 'section' cannot be combined with start_line/end_line.")
    for name in ("max_tokens", "start_line"):
        bounded(args, name, 1)
    if last is not None and last < (first or 1):
        raise InvalidInput(f"end_line must be >= start_line, got {last}")
    if most is not None and ranged and not whole_text:
        raise InvalidInput(
            "cat: max_tokens with a line range requires include_frontmatter=True; leave one out."
        )
    project, path, prefix = _route(vault, memory, args, args["identifier"])
    if prefix and not path:
        raise InvalidInput(
            f"cat: '{args['identifier']}' names a project, not a note. ls shows what is in it."
        )
    note = memory.read(path, project=project)
    data = _placed(replies.identity(note), prefix) | {
        "content": note.text,
        "frontmatter": note.header,
    }
    lines = note.text.splitlines()
    begin = first or 1
    if section is not None:
        found, begin, last = _section(note, len(lines), section)
        data |= {"section": found, "frontmatter": None}
    elif most is not None:
        data["frontmatter"] = None
        if not ranged:
            begin = note.text[: note.body_at].count("\n") + 1
    elif not whole_text:
        data["content"] = note.text[note.body_at :].strip("\n")
        lines = data["content"].splitlines()
    if section is None and most is None and not ranged:
        return data_reply(data)
    if begin > len(lines):
        raise InvalidInput(
            f"cat: start_line {begin} is past the end of the document ({len(lines)} lines)"
        )
    last = min(last or len(lines), len(lines))
    shown = lines[begin - 1 : last]
    if most is not None and len("\n".join(shown)) > most * 4:
        shown = _fitting(shown, most * 4)
        last = begin + len(shown) - 1
        data |= {"truncated": True, "continue_line": last + 1}
        shown.append(f"… [truncated at max_tokens={most}; continue with start_line={last + 1}]")
    place = {"start_line": begin, "end_line": last, "total_lines": len(lines)}
    return data_reply(data | {"content": "\n".join(shown)} | place)


def _fitting(lines: list[str], room: int) -> list[str]:
    """As many lines as fit, at least one, up to a heading or an empty line where there is one."""
    used = 0
    count = 0
    while count < len(lines) and (used := used + len(lines[count]) + 1) <= room:
        count += 1
    ends = [n for n in range(1, count + 1) if not lines[n - 1].strip() or lines[n].startswith("#")]
    return lines[: max(ends[-1] if ends else count, 1)]


def _section(note: Note, total: int, wanted: str) -> tuple[str, int, int]:
    """(path of headings, first line, last line) of a section named `Heading`, `Above/Heading` or
    `Heading[1]`. Raises InvalidInput that lists the sections."""
    headings = scan(note.text, note.body_at)[2]
    above: list[Any] = []
    known: dict[str, tuple[int, int]] = {}
    for at, heading in enumerate(headings):
        above = [*(one for one in above if one.level < heading.level), heading]
        path = "/".join(one.text for one in above)
        twins = sum(name.partition("[")[0] == path for name in known)
        end = next(
            (heading.line - 1 for heading in headings[at + 1 :] if heading.level <= heading.level),
            total,
        )
        known[f"{path}[{twins}]" if twins else path] = heading.line, end
    name = wanted.strip().lstrip("#").strip()
    found = [path for path in known if path == name or path.endswith(f"/{name}")]
    if not found:
        raise InvalidInput(
            f"cat: no section '{wanted}'. Available sections: {', '.join(known) or 'none'}"
        )
    if len(found) > 1:
        raise InvalidInput(
            f"cat: section '{wanted}' names several: {', '.join(found)}. Name one of them."
        )
    begin, end = known[found[0]]
    lines = note.text.splitlines()
    while end > begin and not lines[end - 1].strip():
        end -= 1
    return found[0], begin, end


def _grep(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    pattern = args["pattern"]
    around = args.get("context_lines")
    most = args.get("max_matches")
    if not pattern.strip():
        raise InvalidInput("pattern must not be empty")
    page, size = paged(args, 10, _MOST_ROWS)
    if around is None and most not in (None, 10):
        raise InvalidInput("grep: max_matches requires context_lines")
    most = bounded(args, "max_matches", 10, 100)
    if around is not None and (args.get("semantic") or "\n" in pattern or not 0 <= around <= 10):
        raise InvalidInput(
            "grep: context_lines must be between 0 and 10, for a single-line pattern, and cannot be combined with "
            "semantic=True"
        )
    project, _, _ = _route(vault, memory, args)
    hits = memory.search(
        Query(text=pattern, projects=(project,)), limit=size, offset=(page - 1) * size
    )
    if around is None:
        return _results(
            [reading.entity_row(memory, hit) for hit in hits],
            hits.total,
            page,
            size,
            hits.is_lower_bound,
        )
    rows = []
    for hit in hits:
        lines = memory.read(hit.note, count=False).text.splitlines()
        at = [
            number for number, line in enumerate(lines, 1) if pattern.casefold() in line.casefold()
        ]
        windows: list[dict[str, Any]] = []
        for number in at[:most]:
            first = max(number - around, 1)
            last = min(number + around, len(lines))
            if windows and first <= windows[-1]["end_line"] + 1:
                windows[-1]["match_lines"].append(number)
                windows[-1]["end_line"] = last
            else:
                windows.append({"start_line": first, "end_line": last, "match_lines": [number]})
        for window in windows:
            window["content"] = "\n".join(lines[window["start_line"] - 1 : window["end_line"]])
        row = replies.identity(hit.note) | {"external_id": hit.note.id, "total_lines": len(lines)}
        row |= {"match_count": len(at), "windows": windows}
        rows.append(row | {"next_match_line": at[most] if len(at) > most else None})
    return _results(
        rows, hits.total, page, size, hits.is_lower_bound, pagination_scope="search_candidates"
    )


def _results(
    rows: list[dict[str, Any]],
    total: int,
    page: int,
    size: int,
    is_lower_bound: bool = False,
    **more: str,
) -> Reply:
    sums = {
        "current_page": page,
        "page_size": size,
        "total": total,
        "total_is_exact": not is_lower_bound,
    }
    return data_reply(
        {"results": rows, **sums, "has_more": is_lower_bound or page * size < total, **more}
    )


def _ls(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    path = (args.get("path") or "/").strip("/")
    if path or vault.only or args.get("project") or args.get("project_id"):
        return _listed(vault, memory, args, path, 1, None)
    page, size = paged(args, 50, _MOST_ROWS)
    shown = sorted((slug(name), name) for name, _ in vault.projects(memory))
    nodes = [
        {"name": name, "directory_path": f"/{link}", "permalink": link, "type": "directory"}
        for link, name in shown[(page - 1) * size : page * size]
    ]
    sums = {
        "page": page,
        "page_size": size,
        "total": len(shown),
        "has_more": page * size < len(shown),
    }
    return data_reply({"nodes": nodes, **sums})


def _listed(
    vault: Vault, memory: MemorySession, args: Arguments, path: str, depth: int, glob: str | None
) -> Reply:
    page, size = paged(args, 50, _MOST_ROWS)
    project, folder, prefix = _route(vault, memory, args, path)
    try:
        found = memory.directory(
            project, folder, depth=depth, glob=glob, limit=size, offset=(page - 1) * size
        )
        entries = found.entries
        total = found.total
    except NotFound:
        entries = []
        total = 0
    nodes = [
        _placed(
            reading.node(entry.kind, entry.path, entry.title, entry.permalink, entry.changed),
            prefix,
        )
        for entry in entries
    ]
    return data_reply(
        {
            "nodes": nodes,
            "page": page,
            "page_size": size,
            "total": total,
            "has_more": page * size < total,
        }
    )


def _find(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    meta = args.get("meta")
    fields = args.get("fields")
    depth = args.get("depth")
    path = (args.get("path") or "/").removeprefix("./").strip("/")
    if depth is not None and not 1 <= depth <= _DEEPEST:
        raise InvalidInput(f"depth must be between 1 and {_DEEPEST}, got {depth}")
    if meta is None and fields is not None:
        raise InvalidInput("find: 'fields' requires 'meta', which says of which notes.")
    if meta is None:
        return _listed(vault, memory, args, path, depth or _DEEPEST, args.get("name"))
    if not meta:
        raise InvalidInput(
            "find: 'meta' must carry at least one predicate; leave it out to list files."
        )
    for name, given in (("name", args.get("name")), ("depth", depth not in (None, _DEEPEST))):
        if given:
            raise InvalidInput(
                f"find: '{name}' cannot combine with 'meta'; 'path' narrows the search to a folder."
            )
    if fields is None:
        fields = None
    else:
        fields = [str(field).strip() for field in fields]
    if fields is not None and not all(fields or [""]):
        raise InvalidInput("find: 'fields' entries must be non-empty names of frontmatter keys.")
    bad = next((field for field in fields or () if not _KEY.fullmatch(field)), None)
    if bad:
        raise InvalidInput(
            f"find: malformed field path '{bad}'; a path is names with dots, as in review.approved"
        )
    wanted = _predicates([str(each) for each in meta])
    page, size = paged(args, 50, _MOST_ROWS)
    project, folder, prefix = _route(vault, memory, args, path)
    # They are missing or null
    absent = [key for key, value in wanted.items() if value is None]
    types = wanted.pop("type", None)
    if isinstance(types, dict):
        types = types.get("$in", ())
    elif types:
        types = [types]
    else:
        types = ()
    metadata = {key: value for key, value in wanted.items() if value is not None}
    query = Query(projects=(project,), metadata=metadata, types=tuple(map(str, types)))
    infos = []
    for info in memory.list(query, limit=0, order="path")[0]:
        if absent:
            header = memory.read(info, count=False).header
        else:
            header = {}
        if info.path.startswith(f"{folder}/" if folder else "") and all(
            _value(header, key) is None for key in absent
        ):
            infos.append(info)
    rows = []
    for info in infos[(page - 1) * size : page * size]:
        row = _placed(reading.entity_row(memory, Hit(info, "", 0.0, [])), prefix)
        if fields is not None:
            header = memory.read(info, count=False).header
            kept = ("title", "permalink", "file_path", "external_id", "updated_at")
            row = {key: row[key] for key in kept} | {
                "fields": {field: _value(header, field) for field in fields}
            }
        rows.append(row)
    return _results(rows, len(infos), page, size)


def _value(header: dict[str, Any], path: str) -> Any:
    """What stands under a dotted key, numbers and truth values as such."""
    value: Any = header
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, str):
        return _scalar(value)
    return value


def _scalar(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict | list):
        return text
    return value


def _predicates(texts: list[str]) -> dict[str, Any]:
    """metadata_filters from texts such as `status=active`. Raises InvalidInput that names what is
    wrong.
    """
    filters: dict[str, Any] = {}
    for text in texts:
        match = _WORD.fullmatch(text.strip()) or _SIGN.fullmatch(text.strip())
        if match is None:
            raise InvalidInput(
                f"find: unsupported predicate operator in '{text}'; use = > >= < <= in has between"
            )
        key, operator, given = match.groups()
        key = "type" if key == "note_type" else key
        if not _KEY.fullmatch(key):
            raise InvalidInput(
                f"find: malformed predicate key '{key}' in '{text}'; a key is names with dots"
            )
        if key in filters:
            raise InvalidInput(
                f"find: duplicate predicate key '{key}'; a range is 'between': {key} between 1,2"
            )
        if not given.strip():
            raise InvalidInput(f"find: predicate '{text}' has no value")
        is_list = operator in ("in", "has", "between")
        # A comma in quotes is the value's
        whole = _QUOTED.sub(lambda found: found[0].replace(",", "\0"), given)
        if is_list:
            parts = [each.strip().replace("\0", ",") for each in whole.split(",")]
        else:
            parts = [given.strip()]
        if not all(parts):
            raise InvalidInput(f"find: predicate '{text}' has an empty list element")
        values = []
        for part in parts:
            if part[0] in "=<>":
                raise InvalidInput(
                    f"find: unsupported predicate operator in '{text}'; a value that begins with = < or > is quoted"
                )
            if re.sub(r"\\.", "", part).count('"') % 2:
                raise InvalidInput(f"find: predicate '{text}' has an unterminated quoted value")
            value = _scalar(part)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if is_number and not abs(value) <= sys.float_info.max:
                if isinstance(value, float):
                    why = "a non-finite number"
                else:
                    why = "an integer that is not a finite number here:"
                named = f"predicate '{short(text)}' has {why} '{short(part)}'"
                raise InvalidInput(f"find: {named}; quote it to mean the text")
            values.append(value)
        if None in values and operator != "=":
            raise InvalidInput(
                f"find: predicate '{text}' uses null with '{operator}'; null goes with = only"
            )
        if operator == "between" and len(values) != 2:
            raise InvalidInput(f"find: 'between' needs exactly min,max in '{text}'")
        forms = {
            "in": {"$in": values},
            "has": values,
            "between": {"$between": values},
            "=": values[0],
        }
        filters[key] = forms[operator] if operator in forms else {_OPERATORS[operator]: values[0]}
    return filters


def _tail(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    most = bounded(args, "lines", 10, _MOST_LINES)
    project, _, _ = _route(vault, memory, args)
    infos, _, _ = memory.recent(args.get("timeframe") or "7d", projects=(project,), limit=most)
    return json_reply(
        [
            {
                "type": "entity",
                **replies.identity(info),
                "created_at": info.created,
                "updated_at": info.changed,
            }
            for info in infos
        ]
    )


TOOLS: dict[str, Callable[[Vault, MemorySession, Arguments], Reply]] = {
    run.__name__[1:]: run for run in (_cat, _grep, _ls, _find, _tail)
}
