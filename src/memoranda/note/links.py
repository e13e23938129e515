"""Read and make the names of notes, the links to them, and the meaning of one list item.

A slug is a name for addresses: `my-notes/tea` for `My Notes/Tea.md`. A permalink is the address of
a note: its project, `/` and its slug. A list item may be an observation, `[idea] Sell tea #shop`,
or a relation, `part_of [[Shop]]`. A text that Markdown cannot hold is coded: written as a JSON
string in a code span (contract 002, 5.2).

Source: contract 000b, 3.2 to 3.4, 4 and 7 (write_note); contract 001, 2.
"""

from __future__ import annotations

import json
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count, islice
from typing import NamedTuple

from memoranda.errors import InvalidInput, OutsideError, project_title
from memoranda.note import notion
from memoranda.note.model import ARCHIVE_PROJECT, Observation, Relation
from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import CONTROL, SURROGATES, cut_bytes

SCHEME = "memory://"
# How many characters an address, or a pattern of names, may have.
ADDRESS_LENGTH = 2048
# File systems allow 255. The difference leaves room for an extension or a number.
FILE_NAME_BYTES = 200
UNTITLED = "untitled"
# Characters of a slug; a longer title is cut at a word.
_SLUG_LENGTH = 48
# A longer first line of a memory is read up to here.
_MOST_LINE_CHARACTERS = 10_000

# The extensions of Markdown, which a link may leave out.
_SUFFIX = lazy_pattern(r"\.(?:md|markdown)$", re.IGNORECASE)
_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff"
)
_LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff"
# The place between two parts of a name in camel case.
_CAMEL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_APOSTROPHES = dict.fromkeys(map(ord, "'’ʼ"))
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
# Signs that a slug cannot have.
_OTHER = lazy_pattern(r"[^a-z0-9/.]+")
# Hyphens at the edges of a folder's name.
_EDGES = lazy_pattern(r"-*/[-/]*")
# A path that is its own slug.
_PLAIN_SLUG = lazy_pattern(r"[a-z0-9]+(?:[-/.][a-z0-9]+)*")
# Signs that count as one blank when names are compared.
_BLANKS = lazy_pattern(r"[\s_\-]+")
_ASCII_SIGNS = dict.fromkeys(code for code in range(128) if not chr(code).isalnum())
# The characters of the longest name that a project may have.
_MOST_PROJECT_NAME_CHARACTERS = 64
# Signs that separate a link's target from its alias, its heading and its project.
_LINK_SIGNS = lazy_pattern("[|#:]")
# The inside of a wikilink.
_WIKILINK = lazy_pattern(r"\[\[([^\[\]\n]+)\]\]")
# An extension other than Markdown's: the target is a file of another kind.
_ATTACHMENT = lazy_pattern(
    r"\.(?!(?:md|markdown)$)(?=[0-9]*[A-Za-z])[A-Za-z0-9]{1,10}$", re.IGNORECASE
)
# The destination of a link `[text](destination "title")`.
_DESTINATION = lazy_pattern(
    r"\]\([ \t]*(<[^<>\n]*>|[^\s<>()]+(?:\([^\s()]*\)[^\s()]*)*)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*\)"
)
# The characters of a path that a Markdown destination cannot have as they are.
_ENCODED = frozenset(' %()<>"?#[]\\^`{}|')
# A scheme at the beginning: the target is an address, not a path.
_SCHEME_AHEAD = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.\-]*:")
# Characters of a Markdown link's text.
_MOST_LABEL_CHARACTERS = 2000
# The scheme of an address with two slashes.
_SCHEME = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.\-]*)://")
# A path of Windows with its drive.
_DRIVE = lazy_pattern(r"[A-Za-z]:[\\/]")
# Signs of a title that a file's name cannot have.
_FILE_REPLACED = lazy_pattern(rf'[/\\:*?"<>|{CONTROL}{SURROGATES}]')
# The place between a Latin sign and a CJK sign. Compiled when first needed, as it takes `re` longer
# than a whole `memory read` may take.
_GLUED = rf"(?<=[{_LATIN}])(?=[{_CJK}])|(?<=[{_CJK}])(?=[{_LATIN}])"


def without_suffix(path: str) -> str:
    """Return `path` without a final `.md` or `.markdown`."""
    if path[-1:] in "dDnN":
        return _SUFFIX.sub("", path)
    return path


def slug(path: str) -> str:
    """Return the slug of a path: `my-notes/green-tea` for `My Notes/GreenTea.md`.

    It may be empty, for a path without letters and digits (contract 000b, 4.1).
    """
    path = without_suffix(path)
    if _PLAIN_SLUG.fullmatch(path):
        return path
    if path.isascii():
        text = path
    else:
        text = unicodedata.normalize("NFC", path).translate(_FULL_WIDTH)
    if text.isascii():
        text = _OTHER.sub("-", _CAMEL.sub("-", text).lower().replace("'", ""))
    else:
        text = _slug_of_scripts(text)
    if "/" in text:
        text = _EDGES.sub("/", text)
    text = text.strip("-/")
    # A part that consists of dots, such as `..`, cannot be in an address.
    if "." in text:
        text = "/".join(part for part in text.split("/") if part.strip(".-"))
    return text


def _slug_of_scripts(text: str) -> str:
    """Return the slug of text that is not ASCII: `cafe-茶` for `Café茶`.

    Latin letters lose their marks, and other letters stay. One dash replaces the signs between
    words. The caller still has to strip dashes at the edges of the parts.
    """
    text = _parted_at_capitals(re.sub(_GLUED, "-", text))
    letters: list[str] = []
    # Whether the last letter is a Latin one.
    is_after_latin = False
    for char in text.lower().translate(_APOSTROPHES):
        previous = letters[-1] if letters else ""
        if char in "/." or char.isalnum():
            # The letter without its marks.
            base = unicodedata.normalize("NFD", char)[0]
            is_latin = "a" <= base <= "z"
            letters.append(base if is_latin else char)
            is_after_latin = is_latin
            continue
        is_mark_of_letter = previous not in ("", "-", "/", ".") and _is_combining_mark(char)
        if is_mark_of_letter:
            # Combining marks stay on letters that are not Latin.
            if not is_after_latin:
                letters.append(char)
        elif previous != "-":
            # A sign, such as a blank.
            letters.append("-")
    return unicodedata.normalize("NFC", "".join(letters))


def _is_combining_mark(char: str) -> bool:
    """Whether a character is a mark that belongs to the letter before it."""
    return unicodedata.category(char)[0] == "M"


def _parted_at_capitals(text: str) -> str:
    """Put a dash before each capital that follows a small letter or a digit.

    `GreenTea` becomes `Green-Tea`.
    """
    chars: list[str] = []
    before = " "
    for char in text:
        if char.isupper() and (before.islower() or before.isdigit()):
            chars.append("-")
        chars.append(char)
        before = char
    return "".join(chars)


def permalink_for(project: str, path: str) -> str:
    """Return the permalink that a note has by its path: `main/drinks/tea` for `drinks/Tea.md`."""
    return f"{lead(project)}/{slug(path) or UNTITLED}"


def numbered(permalink: str) -> Iterator[str]:
    """Yield a permalink, and the permalinks for notes that find it taken: `tea`, `tea-1`, `tea-2`."""
    yield permalink
    for number in count(1):
        yield f"{permalink}-{number}"


# Cached because it is called for each note that is read or found.
@lru_cache(maxsize=256)
def lead(project: str) -> str:
    """Return the part before the first `/` in the permalinks of a project's notes."""
    # Its name `.archive` has a dot, which addresses do without.
    if project == ARCHIVE_PROJECT:
        return "archive"
    title = project_title(project)
    return slug(title) or title.lower()


def fold(name: str) -> str:
    """Return a rough key of a name. Notes that a link may mean have the same key as the link.

    `Green Tea.md`, `green-tea` and `GREENTEA` have the key `greentea`. A note whose name matches a
    link by any step of contract 000b, 3.4 has the same key as the link. The key consists of letters
    and digits without case and marks. A name without letters and digits has its `fold_title` as
    key. A relative path (`../x`) must be resolved first.
    """
    text = without_suffix(name.strip())
    # Quicker, and true of most names.
    if text.isascii():
        return text.lower().translate(_ASCII_SIGNS) or fold_title(text) or text
    normalized = unicodedata.normalize("NFC", text).translate(_APOSTROPHES)
    # Signs are removed before NFKD, which would turn `™` into the letters `tm`. A slug has no `™`.
    letters = "".join(filter(str.isalnum, normalized))
    # NFKD parts a letter from its marks. Folding may bring new ones: hence a second time.
    folded = unicodedata.normalize("NFKD", letters).casefold()
    parted = unicodedata.normalize("NFKD", folded).translate(_APOSTROPHES)
    key = "".join(filter(str.isalnum, parted))
    return key or fold_title(letters or text) or text


def fold_title(name: str) -> str:
    """Return a title in a form for comparing, step 7 of contract 000b, 3.4.

    ` Green_Tea ` becomes `green tea`: without case, and with one blank for each run of `_`, `-` and
    blanks.
    """
    if name.isascii():
        return _BLANKS.sub(" ", name.lower()).strip()
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return _BLANKS.sub(" ", folded).strip()


def parse_link(inner: str) -> tuple[str | None, str]:
    """Split the inside of `[[…]]` into the project (None if not named) and the target.

    `main::Tea#Taste|a drink` becomes `("main", "Tea")`. The heading, `#^block` and the shown text
    are left out. A `#` at the end of the target stays: `C#`. The target is trimmed, and may be
    empty.
    """
    if not _LINK_SIGNS.search(inner):
        return None, inner.strip()
    target = inner
    if "|" in target:
        # In a table, the bar is escaped.
        target = target.partition("|")[0].removesuffix("\\")
    project = None
    if "::" in target:
        project_name, _, target_in_project = target.partition("::")
        project_name = project_name.strip()
        # Otherwise the `::` is part of the name.
        if _may_be_project_name(project_name) and target_in_project.strip():
            project = project_name
            target = target_in_project
    if "#" in target:
        name, _, heading = target.partition("#")
        # Without a heading, the `#` is part of the name.
        has_heading = heading.strip() or not name.strip()
        if has_heading:
            target = name
    return project, target.strip()


def link_rest(inner: str) -> str:
    """Return the part after the target in the inside of `[[…]]`, "" if it has no such part.

    `Tea#Taste|a drink` becomes `#Taste`, and `Volume #3` becomes ` #3`.
    """
    if "#" not in inner:
        return ""
    name = inner
    if "|" in inner:
        # In a table, the bar is escaped.
        name = inner.partition("|")[0].removesuffix("\\")
    target, _, heading = name.partition("#")
    has_heading = heading.strip() or not target.strip()
    if has_heading:
        return name[len(target.rstrip()) :].rstrip()
    return ""


class WrittenLink(NamedTuple):
    """A link as it is written in a line.

    raw: the text between the brackets, or the destination of a Markdown link.
    start: the position in the line where `raw` begins.
    project: None if the link names no project.
    rest: the part after the target, such as `#heading`, or "".
    is_markdown: whether it is written `[text](destination)`.
    is_embed: whether a `!` before it asks to show the target in its place.
    """

    raw: str
    start: int
    project: str | None
    target: str
    rest: str
    is_markdown: bool
    is_embed: bool


def holds_link(text: str) -> bool:
    """Whether a line may hold a link to a note. A quick check before `written_links`."""
    return "[[" in text or "](" in text or "notion." in text


def written_links(text: str, masked: str) -> list[WrittenLink]:
    """Find the links to notes in a line. Returns them in their order.

    masked: the line with NUL for each character of a code span, in which no link is read.
    """
    return list(each_written_link(text, masked))


def each_written_link(text: str, masked: str) -> Iterable[WrittenLink]:
    """Return the links to notes in a line, in their order (see `written_links`).

    A line with wikilinks alone is read no further than its links are asked for.
    """
    has_other_links = "](" in masked or "notion." in masked
    if not has_other_links:
        return _wikilinks(text, masked)
    links: list[WrittenLink] = []
    if "[[" in masked:
        links += _wikilinks(text, masked)
    if "](" in masked:
        links += _markdown_links(text, masked)
    if "notion." in masked:
        links += _web_links(masked)
    if len(links) > 1:
        links.sort(key=lambda link: link.start)
    return links


def _wikilinks(text: str, masked: str) -> Iterator[WrittenLink]:
    """Yield the links `[[…]]` of a line.

    masked: the line with NUL for each character of a code span, in which no link is read.
    """
    for match in _WIKILINK.finditer(masked):
        start = match.start()
        if is_escaped(masked, start):
            continue
        raw = text[start + 2 : match.end() - 2]
        # The closing brackets are escaped.
        if raw[-1] == "\\":
            continue
        project, target = parse_link(raw)
        # `![[Plan]]` shows the note Plan, but `![[plan.png]]` shows a file that is not a note.
        is_embed = start > 0 and masked[start - 1] == "!"
        is_attachment = is_embed and _ATTACHMENT.search(target) is not None
        # Without a target, it is a link to a heading of this note: `[[#Costs]]`.
        if not target or is_attachment:
            continue
        yield WrittenLink(
            raw,
            start + 2,
            project,
            target,
            link_rest(raw),
            is_markdown=False,
            is_embed=is_embed,
        )


def _markdown_links(text: str, masked: str) -> Iterator[WrittenLink]:
    """Yield the links `[text](note.md)` of a line.

    masked: the line with NUL for each character of a code span, in which no link is read.
    """
    for match in _DESTINATION.finditer(masked):
        opening = _opening_bracket(masked, match.start())
        if opening is None or is_escaped(masked, match.start()):
            continue
        raw = text[match.start(1) : match.end(1)]
        target, part_after_name = destination_parts(raw)
        if target:
            is_embed = opening > 0 and masked[opening - 1] == "!"
            yield WrittenLink(
                raw,
                match.start(1),
                project=None,
                target=target,
                rest=part_after_name,
                is_markdown=True,
                is_embed=is_embed,
            )


def _web_links(masked: str) -> Iterator[WrittenLink]:
    """Yield the addresses of Notion pages that a line holds outside brackets."""
    for start, address in notion.bare_addresses(masked):
        target = notion.page_address(address)
        if target:
            yield WrittenLink(
                address,
                start,
                project=None,
                target=target,
                rest="",
                is_markdown=False,
                is_embed=False,
            )


def destination_parts(raw: str) -> tuple[str, str]:
    """Split the destination of a Markdown link into a path and its `#heading`.

    `my%20tea.md#taste` becomes `("my tea.md", "#taste")`. The address of a Notion page becomes the
    path `notion.so/0123…`. Both parts are "" if the destination is not a note.
    """
    # A destination with blanks is in angle brackets.
    destination = raw[1:-1] if raw.startswith("<") else raw
    page = notion.page_address(destination) if "notion." in destination else ""
    if page:
        return page, ""
    path, sign, heading = destination.partition("#")
    path = _unquoted(path)
    is_markdown_file = _SUFFIX.search(path) and not _SCHEME_AHEAD.match(path)
    if not is_markdown_file or "\0" in path:
        return "", ""
    if "/../" in path or path.startswith(("./", "../")):
        path = posixpath.normpath(path)
        # `normpath` removes the `./` that marks a path as relative to the note's folder.
        if not path.startswith("../"):
            path = f"./{path}"
    return path, sign + heading


def markdown_destination(path: str) -> str:
    """Return a path as the destination of a Markdown link: `my%20tea.md` for `my tea.md`.

    Signs that would end or change the destination are encoded.
    """
    from urllib.parse import quote

    return "".join(quote(sign) if sign in _ENCODED else sign for sign in path)


def _opening_bracket(text: str, closing: int) -> int | None:
    """Return the position of the `[` that belongs to the `]` at `closing`, None if it has none."""
    depth = 0
    for position in range(closing, max(-1, closing - _MOST_LABEL_CHARACTERS), -1):
        if text[position] == "]" and not is_escaped(text, position):
            depth += 1
        elif text[position] == "[" and not is_escaped(text, position):
            depth -= 1
            if not depth:
                return position
    return None


def is_escaped(text: str, position: int) -> bool:
    """Whether an odd number of backslashes is before `position`, which makes the sign there text."""
    start = position
    while start and text[start - 1] == "\\":
        start -= 1
    return (position - start) % 2 == 1


def check_project_name(name: str) -> None:
    """Raise InvalidInput if a project may not have this name."""
    has_letter_or_digit = any(character.isalnum() for character in name)
    if not _may_be_project_name(name) or not has_letter_or_digit:
        raise InvalidInput(f"invalid project name: {name}")
    # Such names are those of the ledger and the index for places that are not projects. Their
    # changes are hidden, and pass no gate.
    if name.startswith("."):
        raise InvalidInput(f"invalid project name: {name}. Take one that begins with no dot.")


def _may_be_project_name(text: str) -> bool:
    """Whether a text has only signs that a project's name may have, and not too many.

    These are letters and digits of any script, blanks, `.`, `_` and `-`. Vowel signs and accents
    count as letters, because Hindi, Thai and pointed Hebrew cannot be written without them.
    """
    if not 0 < len(text) <= _MOST_PROJECT_NAME_CHARACTERS:
        return False
    return all(
        sign in " ._-" or sign.isalnum() or unicodedata.category(sign)[0] == "M" for sign in text
    )


def check_length(text: str, noun: str) -> None:
    """Raise InvalidInput for an address or a pattern that is longer than any note's.

    noun: the beginning of the error's message, such as `An address`.
    """
    if len(text) > ADDRESS_LENGTH:
        raise InvalidInput(f"{noun} has at most {ADDRESS_LENGTH:,} characters. Shorten it.")


def parse_address(text: str) -> str:
    """Return an address without its scheme `memory://` (contract 000b, 4.2).

    `memory://main/my%20tea` becomes `main/my tea`. An address without a scheme, such as `main/tea`,
    stays as it is; its `%xx` are not decoded.

    Raises InvalidInput for another scheme, for NUL, and for an empty address or one of more than
    ADDRESS_LENGTH characters. Raises OutsideError for an absolute path, and for `..` as a part of
    the path, percent-encoded too.
    """
    address = text.strip()
    check_length(address, "An address")
    scheme = _SCHEME.match(address)
    if scheme and scheme[1].lower() != "memory":
        raise InvalidInput(
            f'Address "{address}" begins with {scheme[0]}. Use memory:// or an address without a scheme.'
        )
    body = _unquoted(address[len(SCHEME) :]) if scheme else address
    if "\0" in body:
        raise InvalidInput("An address must not hold a NUL character. Remove it.")
    # Something behind this may decode the path once more.
    for path in (body, _fully_unquoted(body)):
        is_absolute = path.startswith("/") or _DRIVE.match(path)
        climbs_up = ".." in path.replace("\\", "/").split("/")
        if is_absolute or climbs_up:
            raise OutsideError(address)
    if not body.strip("/ "):
        raise InvalidInput(
            "An identifier must not be empty. Give a permalink, a path, a title or an id."
        )
    return body


def _unquoted(text: str) -> str:
    """Decode each `%xx` once: `%20` becomes a blank."""
    if "%" not in text:
        return text
    # Imported late: most texts have no `%`.
    from urllib.parse import unquote

    return unquote(text)


def _fully_unquoted(text: str) -> str:
    """Decode `%xx` until nothing changes: `%252e` becomes `%2e` and then `.`."""
    while True:
        unquoted_text = _unquoted(text)
        if unquoted_text == text:
            return text
        text = unquoted_text


def file_name(title: str) -> str:
    """Return a file name for a new note with this title: `a-b.md` for `a/b`.

    It never begins with a dot, which would hide the file (contract 000b, 7).
    """
    name = _FILE_REPLACED.sub("-", title).strip()
    # A name of dots alone becomes UNTITLED below.
    has_text = name.strip(". ").strip()
    if has_text and name.startswith("."):
        name = "-" + name[1:]
    name = cut_bytes(name.rstrip(". "), FILE_NAME_BYTES).rstrip(". ")
    return f"{name or UNTITLED}.md"


def first_line(content: str) -> str:
    """Return the first line of `content` that is not blank, trimmed, or "" if all are blank."""
    start = content.lstrip()
    if "\n" in start:
        return start[: start.find("\n")].rstrip()
    return start.rstrip()


def memory_file_name(content: str, id: str) -> str:
    """Return a file name for a new memory: `i-like-tea-1a2b3c4d.md` (contract 001, 2).

    It has the slug of the first line, cut at a word if it is long, and the first 8 digits of the
    id. A first line without letters and digits gives `memory-1a2b3c4d.md`.
    """
    # A line may be as long as a note.
    line = first_line(content)[:_MOST_LINE_CHARACTERS]
    # In a slug, `/` would stay, and make a folder.
    words = slug(line.replace("/", "-")).strip("-.")
    if len(words) > _SLUG_LENGTH:
        words = _whole_words(words, _SLUG_LENGTH)
    return f"{words or 'memory'}-{id[:8]}.md"


def _whole_words(slug_text: str, length: int) -> str:
    """Return as many words of a slug as fit into `length` characters. A long first word is cut.

    slug_text: words joined by `-`.
    """
    # If a word ends exactly at `length`, the next character is the `-` behind it.
    words = slug_text[: length + 1].rpartition("-")[0]
    return (words or slug_text[:length]).strip("-.")


# The category of an observation: `[idea] ` before the text.
_CATEGORY = lazy_pattern(r"\[([^\[\]()]{1,64})\]\s+(?=\S)")
# The box of a task: `[x]`, `[ ]`, `[-]`.
_CHECKBOX = lazy_pattern(r"\[(?:[xX_]|[^\w\[\]]\ufe0f?)\](?:\s|$)")
_CLOCK = r"[0-9]+(?::[0-9]{2})+(?:[.,][0-9]+)?"
# A time in a transcript, `12:30`, or a span of time, `12:30 --> 12:35`.
_CLOCK_VALUE = lazy_pattern(rf"{_CLOCK}(?:\s*(?:-->|->|[-–—])\s*{_CLOCK})?")
MOST_TAGS = 1_000
"""How many tags of one item are read."""
# Marks of Latin and Indic scripts and of Thai are part of a letter.
TAG_SIGNS = r"\w/\-\u0300-\u036f\u0900-\u0963\u0966-\u0eff"
# A run of tags without blanks: `#tea#milk`. It begins the text, or follows a blank.
_TAGS = lazy_pattern(rf"#(?<!\S#)[{TAG_SIGNS}]++(?:#[{TAG_SIGNS}]++)*+")
# A text in parentheses, which may hold one level of parentheses.
_GROUP = r"\(([^()]*+(?:\([^()]*+\)[^()]*+)*+)\)"
# A coded text: a JSON string in backticks.
_CODED = r'`("[^`]*")`'
# A relation. Its groups: the type as a word, in quotes or coded; the target as the inside of
# `[[…]]` or coded; the context. Of the groups for one thing, only one matches.
_RELATION = lazy_pattern(
    rf"""(?:([^\W\d][\w\-./:+]*)|"([^"\[\]`\\]+)"|{_CODED})[ \t]+(?:\[\[([^\[\]\n]+)\]\]|{_CODED})(?:[ \t]*{_GROUP})?"""
)
# The inside of `[[…]]` that is only a target.
_PLAIN_TARGET = lazy_pattern(r"[^\[\]|#:\\]+")
_CODED_TEXT = lazy_pattern(_CODED)
# Halves of a surrogate pair, which UTF-8 cannot write.
_SURROGATES = lazy_pattern(f"[{SURROGATES}]")


def read_relation(text: str, number: int) -> Relation | None:
    """Read the relation of an item such as `part_of [[Shop]] (since May)`. None for other items.

    The target is "" if the brackets hold only a heading, or if it is coded as an empty string.

    number: the line of the item, from 1 in the whole file.
    """
    relation = _plain_relation(text, number)
    if relation is not None:
        return relation
    match = _RELATION.fullmatch(text)
    if match is None:
        return None
    word, quoted_type, coded_type, link_inside, coded_target, context = match.groups()
    kind = _relation_type(word, quoted_type, coded_type)
    if kind is None:
        return None
    context = (context or "").strip() or None
    if coded_target is not None:
        decoded_target = _decoded(coded_target)
        if decoded_target is None:
            return None
        return Relation(kind, decoded_target, context, line=number, is_item=True)
    is_closing_escaped = link_inside[-1] == "\\"
    if is_closing_escaped:
        return None
    project, target = parse_link(link_inside)
    rest = link_rest(link_inside)
    return Relation(kind, target, context, project, number, is_item=True, rest=rest)


def _plain_relation(text: str, number: int) -> Relation | None:
    """Read the relation of an item that is only a word and a link. None for other items.

    Most relations have this form, which needs no slow pattern.
    """
    if not text.endswith("]]"):
        return None
    # `part_of [[Shop]]`: the type `part_of`, and the target `Shop`.
    kind, opening, target = text[:-2].partition(" [[")
    is_word = kind.isascii() and kind.isidentifier()
    if not opening or not is_word or not _PLAIN_TARGET.fullmatch(target):
        return None
    return Relation(kind, target.strip(), line=number, is_item=True)


def _relation_type(word: str | None, quoted_type: str | None, coded_type: str | None) -> str | None:
    """Return the type of a relation, None if it is not valid.

    The type is written in one of three ways, and the parameters of the other two are None.

    word: `part_of`.
    quoted_type: the text between the quotes of `"part of"`.
    coded_type: the text between the backticks of `` `"part of"` ``.
    """
    if word:
        return word
    if quoted_type:
        return quoted_type.strip() or None
    return _decoded(coded_type or "")


def coded_text(text: str) -> str | None:
    """Return the string that an item like `` `"a\\nb"` `` codes. None for an item in plain text."""
    match = _CODED_TEXT.fullmatch(text)
    if match:
        return _decoded(match[1])
    return None


def _decoded(json_text: str) -> str | None:
    """Return the string that a text of JSON means, None if it is not a string of JSON."""
    try:
        text = json.loads(json_text)
    except ValueError:
        return None
    if isinstance(text, str):
        return _SURROGATES.sub("\ufffd", text)
    return None


def observation(text: str, masked: str, number: int) -> Observation | None:
    """Read the observation of an item `[category] content #tag (context)`. None for other items.

    masked: the item with NUL for each character of a code span.
    number: the line of the item, from 1 in the whole file.
    """
    if masked[:1] != "[":
        return None
    end = masked.find("]")
    # The usual form, `[word] content`, needs no slow pattern. A single letter may be a checkbox, and
    # a category has at most 64 characters.
    is_word = 2 < end < 66 and masked[1:end].isalpha()
    has_content = masked[end + 1 : end + 2] == " " and masked[end + 2 : end + 3] not in ("", " ")
    if is_word and has_content:
        category = text[1:end]
        start = end + 2
    else:
        match = _CATEGORY.match(masked)
        if match is None:
            return None
        category = text[1 : match.end(1)].strip()
        if not _is_category(category):
            return None
        start = match.end()
    return _observation(category, text, text[start:], masked[start:], number)


def _is_category(text: str) -> bool:
    """Whether a text in brackets is a category, and not a checkbox, a footnote or a time.

    text: the text between the brackets.
    """
    # U+FE0F only makes the sign before it an emoji.
    sign = text.replace("\ufe0f", "")
    if not sign:
        return False
    # `[x]`, `[-]`, or a sign with U+FE0F behind it.
    is_one_sign = len(text) < 3 and len(sign) == 1
    is_checkbox = is_one_sign and (sign in "xX" or not sign.isalnum())
    is_footnote = text[0] == "^"
    is_escaped_bracket = text[-1] == "\\"
    # `[12:30]`, as transcripts have it.
    is_time = text[0] in "0123456789" and _CLOCK_VALUE.fullmatch(text) is not None
    return not (is_checkbox or is_footnote or is_escaped_bracket or is_time)


def tagged(text: str, masked: str, number: int, *, is_any: bool = False) -> Observation | None:
    """Read the observation of an item that has a tag and no category, such as `Sell tea #shop`.

    Return None for an item without a tag, with a checkbox or with a link `[[…]]`.

    masked: the item with NUL for each character of a code span.
    number: the line of the item, from 1 in the whole file.
    is_any: accept every item, as the section `Observations` of project `graph` does.
    """
    if is_any:
        return _observation(category=None, text=text, content=text, masked=masked, number=number)
    # A plain text, a relation or a task.
    if "#" not in masked or "[[" in masked or _CHECKBOX.match(text):
        return None
    item = _observation(category=None, text=text, content=text, masked=masked, number=number)
    return item if item.tags else None


def _observation(
    category: str | None, text: str, content: str, masked: str, number: int
) -> Observation:
    """Return an observation with the tags of its content, and with its context.

    The context is the text in parentheses at the very end. It is taken out of the content.

    text: the whole item.
    content: the item without its category.
    masked: `content` with NUL for each character of a code span.
    """
    context = None
    start = _final_group(masked)
    if start is not None:
        inner = content[start + 1 : -1].strip()
        text_before = content[:start].rstrip()
        # `(see below)` alone is the content itself, and `()` is no context.
        if inner and text_before:
            context = inner
            content = text_before
            masked = masked[: len(text_before)]
    return Observation(
        category=category,
        content=content,
        tags=_tags_in(masked),
        context=context,
        line=number,
        text=text,
    )


def _final_group(text: str) -> int | None:
    """Return the position of the parenthesis that the last character of `text` closes.

    None if `text` does not end with `)`, or if nothing opens that parenthesis.
    """
    if text[-1:] != ")":
        return None
    depth = 0
    for sign in reversed([*re.finditer(r"[()]", text)]):
        if sign[0] == ")":
            depth += 1
        else:
            depth -= 1
        if not depth:
            return sign.start()
    return None


def _tags_in(masked: str) -> tuple[str, ...]:
    """Return the tags of an item without their `#`. Tags that differ only in case count once.

    "Sell tea #shop#idea #Shop" has the tags `shop` and `idea`. Of more than MOST_TAGS, the first
    MOST_TAGS count.
    """
    position = masked.find("#")
    if position < 0:
        return ()
    # The usual case is one `#`, at the beginning of a word, with letters behind it. Such a word is
    # a tag by any rule, so the slow pattern is not needed.
    begins_word = position == 0 or masked[position - 1] == " "
    has_one_sign = masked.find("#", position + 1) < 0
    if begins_word and has_one_sign:
        tag = masked[position + 1 :].partition(" ")[0]
        if tag.isalpha():
            return (tag,)
    # By the small letters of a tag: the tag as it was first written.
    tags: dict[str, str] = {}
    for run in _TAGS.finditer(masked):
        for tag in run[0][1:].split("#"):
            # `#12` is not a tag, and neither are tags behind it in the same run.
            if tag.isdecimal():
                break
            tags.setdefault(tag.casefold(), tag)
        if len(tags) >= MOST_TAGS:
            break
    return tuple(islice(tags.values(), MOST_TAGS))
