"""Names and addresses: slugs, permalinks, folded keys, the inside of `[[…]]`, `memory://`, file
names; and what one list item says: an observation, a relation, or neither.

Texts and names that Markdown cannot hold stand coded, as a JSON string in a code span (contract
002, 5.2). Source: contract 000b, 3.2 to 3.4, 4 and 7 (write_note); contract 001, 2.
"""

from __future__ import annotations

import json
import posixpath
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from memoranda.errors import InvalidInput, OutsideError
from memoranda.note import notion
from memoranda.note.model import ARCHIVE_PROJECT, Observation, Relation
from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import CONTROL, SURROGATES, cut_bytes

SCHEME = "memory://"
# Characters of an address or a pattern of names.
ADDRESS_LENGTH = 2048
# File systems allow 255; what is added to a name has to fit.
FILE_NAME_BYTES = 200
UNTITLED = "untitled"
# Characters of a slug; a longer title is cut at a word.
_SLUG_LENGTH = 48

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
# The names a project may have.
PROJECT_NAME = lazy_pattern(r"[\w .\-]{1,64}")
# Signs that part a link's target from its alias and heading.
_LINK_SIGNS = lazy_pattern("[|#:]")
# The inside of a wikilink.
_WIKILINK = lazy_pattern(r"\[\[([^\[\]\n]+)\]\]")
# An extension that is not Markdown's: the target is a file of another kind.
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
# A scheme at the beginning: the target is an address, no path.
_SCHEME_AHEAD = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.\-]*:")
# Characters of a Markdown link's text.
_MOST_LABEL_CHARACTERS = 2000
# The scheme of an address with two slashes.
_SCHEME = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.\-]*)://")
# A path of Windows with its drive.
_DRIVE = lazy_pattern(r"[A-Za-z]:[\\/]")
# Signs of a title that a file's name cannot have.
_FILE_REPLACED = lazy_pattern(rf'[/\\:*?"<>|{CONTROL}{SURROGATES}]')
# Where Latin and CJK touch. Compiled when first needed: it takes `re` longer than a whole `memory
# read` may.
_GLUED = rf"(?<=[{_LATIN}])(?=[{_CJK}])|(?<=[{_CJK}])(?=[{_LATIN}])"


def without_suffix(path: str) -> str:
    """`path` without a final `.md` or `.markdown`."""
    if path[-1:] in "dDnN":
        return _SUFFIX.sub("", path)
    return path


def slug(path: str) -> str:
    """The slug of a path with folders, extension `.md` dropped (contract 000b, 4.1); it may be
    empty.
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
    # A part of dots alone would be no address.
    if "." in text:
        text = "/".join(part for part in text.split("/") if part.strip(".-"))
    return text


def _slug_of_scripts(text: str) -> str:
    """The slug of text that is not ASCII, its edges excepted: Latin letters without their marks,
    other letters as they are, one dash for what is between words."""
    text = _parted_at_capitals(re.sub(_GLUED, "-", text))
    letters: list[str] = []
    is_on_latin = False
    for char in text.lower().translate(_APOSTROPHES):
        if char in "/." or char.isalnum():
            base = unicodedata.normalize("NFD", char)[0]
            is_on_latin = "a" <= base <= "z"
            letters.append(base if is_on_latin else char)
        elif letters and letters[-1] not in "-/." and unicodedata.category(char)[0] == "M":
            # Combining marks stay on letters that are not Latin.
            if not is_on_latin:
                letters.append(char)
        elif not letters or letters[-1] != "-":
            letters.append("-")
    return unicodedata.normalize("NFC", "".join(letters))


def _parted_at_capitals(text: str) -> str:
    """`text` with a dash before each capital that follows a small letter or a digit."""
    chars: list[str] = []
    before = " "
    for char in text:
        if char.isupper() and (before.islower() or before.isdigit()):
            chars.append("-")
        chars.append(char)
        before = char
    return "".join(chars)


def permalink_for(project: str, path: str) -> str:
    """The permalink derived from the path: `<project>/<slug of the path without extension>`."""
    return f"{lead(project)}/{slug(path) or UNTITLED}"


# Asked for each note that is read or found
@lru_cache(maxsize=256)
def lead(project: str) -> str:
    """The first part of a project's derived permalinks, before the `/`."""
    if project == ARCHIVE_PROJECT:
        return "archive"
    return slug(project) or project.lower()


def fold(name: str) -> str:
    """A coarse key: if any step of contract 000b, 3.4 matches a target by a name, their folds are
    equal. Without `.md`, case, marks and everything that is neither letter nor digit; a name of
    signs alone folds to `fold_title` of itself. A relative path (`../x`) must be resolved before it
    is folded."""
    text = without_suffix(name.strip())
    if text.isascii():
        return text.lower().translate(_ASCII_SIGNS) or fold_title(text) or text
    normalized = unicodedata.normalize("NFC", text).translate(_APOSTROPHES)
    # Signs go before compatibility forms are taken: a slug loses `™` too, where NFKD would make it
    # `tm`.
    letters = "".join(filter(str.isalnum, normalized))
    letters_without_marks = unicodedata.normalize(
        "NFKD", unicodedata.normalize("NFKD", letters).casefold()
    )
    return (
        "".join(filter(str.isalnum, letters_without_marks.translate(_APOSTROPHES)))
        or fold_title(letters or text)
        or text
    )


def fold_title(name: str) -> str:
    """Step 7's form of a title: without case; `_`, `-` and runs of blanks alike, trimmed."""
    if name.isascii():
        return _BLANKS.sub(" ", name.lower()).strip()
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return _BLANKS.sub(" ", folded).strip()


def parse_link(inner: str) -> tuple[str | None, str]:
    """(project or None, target) of the inside of `[[…]]`; the target is trimmed and may be empty.
    `|shown`, `#heading` and `#^block` are dropped (a `#` that ends the target stays: `C#`)."""
    target = inner
    if not _LINK_SIGNS.search(inner):
        return None, inner.strip()
    if "|" in target:
        target = target.partition("|")[0].removesuffix("\\")
    project = None
    if "::" in target:
        head, _, target_in_project = target.partition("::")
        if PROJECT_NAME.fullmatch(head.strip()) and target_in_project.strip():
            project = head.strip()
            target = target_in_project
    if "#" in target:
        name, _, heading = target.partition("#")
        if heading.strip() or not name.strip():
            target = name
    return project, target.strip()


def link_rest(inner: str) -> str:
    """The part after the target in `[[…]]`, from the `#` to the `|`. Empty if none exists."""
    if "#" not in inner:
        return ""
    if "|" in inner:
        name = inner.partition("|")[0].removesuffix("\\")
    else:
        name = inner
    target, _, heading = name.partition("#")
    if heading.strip() or not target.strip():
        return name[len(target.rstrip()) :].rstrip()
    return ""


class WrittenLink(NamedTuple):
    """A link as a line has it. `raw` is what stands between the brackets, or the destination of a
    Markdown link; `start` is where that begins in the line."""

    raw: str
    start: int
    project: str | None
    target: str
    rest: str
    is_markdown: bool
    is_embed: bool


def holds_link(text: str) -> bool:
    """Whether a line may hold a link to a note."""
    return "[[" in text or "](" in text or "notion." in text


def written_links(text: str, masked: str) -> list[WrittenLink]:
    """The links to notes in a line, in their order; `masked` hides code spans."""
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
    for match in _WIKILINK.finditer(masked):
        start = match.start()
        if is_escaped(masked, start):
            continue
        raw = text[start + 2 : match.end() - 2]
        if raw[-1] == "\\":
            continue
        project, target = parse_link(raw)
        is_embed = start > 0 and masked[start - 1] == "!"
        if not target or (is_embed and _ATTACHMENT.search(target)):
            continue
        yield WrittenLink(raw, start + 2, project, target, link_rest(raw), False, is_embed)


def _markdown_links(text: str, masked: str) -> Iterator[WrittenLink]:
    for match in _DESTINATION.finditer(masked):
        opening = _opening_bracket(masked, match.start())
        if opening is None or is_escaped(masked, match.start()):
            continue
        raw = text[match.start(1) : match.end(1)]
        target, part_after_name = destination_parts(raw)
        if target:
            is_embed = opening > 0 and masked[opening - 1] == "!"
            yield WrittenLink(raw, match.start(1), None, target, part_after_name, True, is_embed)


def _web_links(masked: str) -> Iterator[WrittenLink]:
    """Addresses of Notion pages that stand in the text as they are."""
    for start, address in notion.bare_addresses(masked):
        target = notion.page_address(address)
        if target:
            yield WrittenLink(address, start, None, target, "", False, False)


def destination_parts(raw: str) -> tuple[str, str]:
    """The path and the `#heading` of a Markdown link's destination. Empty if it does not lead to a
    note.

    The address of a Notion page becomes the path `notion.so/0123…`.
    """
    if raw.startswith("<"):
        raw_address = raw[1:-1]
    else:
        raw_address = raw
    page = notion.page_address(raw_address) if "notion." in raw_address else ""
    if page:
        return page, ""
    path, sign, heading = raw_address.partition("#")
    path = _unquoted(path)
    if not _SUFFIX.search(path) or _SCHEME_AHEAD.match(path) or "\0" in path:
        return "", ""
    if "/../" in path or path.startswith(("./", "../")):
        path = posixpath.normpath(path)
        if not path.startswith("../"):
            path = f"./{path}"
    return path, sign + heading


def markdown_destination(path: str) -> str:
    """A path as the destination of a Markdown link: signs that would end or change it are encoded."""
    from urllib.parse import quote

    return "".join(quote(sign) if sign in _ENCODED else sign for sign in path)


def _opening_bracket(text: str, closing: int) -> int | None:
    """Where the `[` of the `]` at `closing` is."""
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
    """Whether an odd number of backslashes stands before `position`."""
    start = position
    while start and text[start - 1] == "\\":
        start -= 1
    return (position - start) % 2 == 1


def check_length(text: str, noun: str) -> None:
    """Raise InvalidInput for an address or pattern no note can have; `noun` names it at a
    sentence's beginning.
    """
    if len(text) > ADDRESS_LENGTH:
        raise InvalidInput(f"{noun} has at most {ADDRESS_LENGTH:,} characters. Shorten it.")


def parse_address(text: str) -> str:
    """The text of `memory://…` or an identifier (contract 000b, 4.2); only after the scheme is
    `%xx` decoded. Raises InvalidInput for another scheme, NUL, nothing at all or more than 2,048
    characters, OutsideError for an absolute path and for `..` as a segment, percent-encoded ones
    included."""
    address = text.strip()
    check_length(address, "An address")
    scheme = _SCHEME.match(address)
    if scheme and scheme[1].lower() != "memory":
        raise InvalidInput(
            f'Address "{address}" begins with {scheme[0]}. Use memory:// or an address without a scheme.'
        )
    if scheme:
        body = _unquoted(address[len(SCHEME) :])
    else:
        body = address
    if "\0" in body:
        raise InvalidInput("An address must not hold a NUL character. Remove it.")
    decoded = body
    while (unquoted_again := _unquoted(decoded)) != decoded:
        decoded = unquoted_again
    for path in (body, decoded):
        if path.startswith("/") or _DRIVE.match(path) or ".." in path.replace("\\", "/").split("/"):
            raise OutsideError(address)
    if not body.strip("/ "):
        raise InvalidInput(
            "An identifier must not be empty. Give a permalink, a path, a title or an id."
        )
    return body


def _unquoted(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)


def file_name(title: str) -> str:
    """write_note's file name for a title, `.md` included, never hidden (contract 000b, 7)."""
    name = _FILE_REPLACED.sub("-", title).strip()
    if name.strip(". ").strip() and name.startswith("."):
        name = "-" + name[1:]
    name = cut_bytes(name.rstrip(". "), FILE_NAME_BYTES).rstrip(". ")
    return f"{name or UNTITLED}.md"


def first_line(content: str) -> str:
    """The first line of `content` that is not blank, trimmed, or empty."""
    start = content.lstrip()
    if "\n" in start:
        return start[: start.find("\n")].rstrip()
    return start.rstrip()


def memory_file_name(content: str, id: str) -> str:
    """`<slug of the first line, at most 48 characters>-<first 8 of the id>.md` (contract 001, 2)."""
    name = slug(first_line(content).replace("/", "-")).strip("-.")
    if len(name) > _SLUG_LENGTH:
        whole_words = name[: _SLUG_LENGTH + 1].rpartition("-")[0]
        name = (whole_words or name[:_SLUG_LENGTH]).strip("-.")
    return f"{name or 'memory'}-{id[:8]}.md"


_CATEGORY = lazy_pattern(r"\[([^\[\]()]{1,64})\]\s+(?=\S)")
_CHECKBOX = lazy_pattern(r"\[(?:[xX_]|[^\w\[\]]\ufe0f?)\](?:\s|$)")
_CLOCK = r"[0-9]+(?::[0-9]{2})+(?:[.,][0-9]+)?"
_CLOCK_VALUE = lazy_pattern(rf"{_CLOCK}(?:\s*(?:-->|->|[-–—])\s*{_CLOCK})?")
# Marks of Latin and Indic scripts and of Thai are part of a letter.
TAG_SIGNS = r"\w/\-\u0300-\u036f\u0900-\u0963\u0966-\u0eff"
_TAGS = lazy_pattern(rf"#(?<!\S#)[{TAG_SIGNS}]++(?:#[{TAG_SIGNS}]++)*+")
_GROUP = r"\(([^()]*+(?:\([^()]*+\)[^()]*+)*+)\)"
_CODED = r'`("[^`]*")`'
_RELATION = lazy_pattern(
    rf"""(?:([^\W\d][\w\-./:+]*)|"([^"\[\]`\\]+)"|{_CODED})[ \t]+(?:\[\[([^\[\]\n]+)\]\]|{_CODED})(?:[ \t]*{_GROUP})?"""
)
_PLAIN_TARGET = lazy_pattern(r"[^\[\]|#:\\]+")
_CODED_TEXT = lazy_pattern(_CODED)
# Halves of a pair, which UTF-8 cannot write.
_SURROGATES = lazy_pattern(f"[{SURROGATES}]")


def read_relation(text: str, number: int) -> Relation | None:
    """The relation of an item `type [[target]] (context)`, or None. The target is
    empty for `[[]]`-like ones; a coded name may be the empty string."""
    relation = _plain_relation(text, number)
    if relation is not None:
        return relation
    match = _RELATION.fullmatch(text)
    if match is None:
        return None
    word, quoted, coded_type, inner, coded_target, context = match.groups()
    kind = _relation_type(word, quoted, coded_type)
    if kind is None:
        return None
    context = (context or "").strip() or None
    if coded_target is not None:
        target = _decoded(coded_target)
        if target is None:
            return None
        return Relation(kind, target, context, None, number, True)
    if inner[-1] == "\\":
        return None
    project, target = parse_link(inner)
    return Relation(kind, target, context, project, number, True, link_rest(inner))


def _plain_relation(text: str, number: int) -> Relation | None:
    """The relation of an item that is only a word and a link, as most are. None for others."""
    word, opening, link_text = text.partition(" [[")
    is_plain = opening and word.isascii() and word.isidentifier() and link_text[-2:] == "]]"
    if is_plain and _PLAIN_TARGET.fullmatch(link_text, 0, len(link_text) - 2):
        return Relation(word, link_text[:-2].strip(), None, None, number, True)
    return None


def _relation_type(word: str | None, quoted: str | None, code: str | None) -> str | None:
    """The type of a relation, written in one of three ways. None if it is not valid."""
    if word:
        return word
    if quoted:
        return quoted.strip() or None
    return _decoded(code or "")


def coded_text(text: str) -> str | None:
    """The string meant by an item that consists of `` `"…"` ``. None for plain text."""
    match = _CODED_TEXT.fullmatch(text)
    if match:
        return _decoded(match[1])
    return None


def _decoded(code: str) -> str | None:
    try:
        text = json.loads(code)
    except ValueError:
        return None
    if isinstance(text, str):
        return _SURROGATES.sub("\ufffd", text)
    return None


def observation(text: str, masked: str, number: int) -> Observation | None:
    """The observation of an item `[category] content #tag (context)`. None for any other item.

    `masked` hides code spans.
    """
    if masked[:1] != "[":
        return None
    end = masked.find("]")
    is_word = 2 < end < 66 and masked[1:end].isalpha()
    if is_word and masked[end + 1 : end + 2] == " " and masked[end + 2] != " ":
        # The usual case: a word, a blank.
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
    """Whether a text in brackets is a category."""
    sign = text.replace("\ufe0f", "")
    if not sign:
        return False
    is_checkbox = len(text) < 3 and len(sign) == 1 and (sign in "xX" or not sign.isalnum())
    is_footnote = text[0] == "^"
    is_escaped_bracket = text[-1] == "\\"
    if is_checkbox or is_footnote or is_escaped_bracket:
        return False
    is_time = text[0] in "0123456789" and _CLOCK_VALUE.fullmatch(text)
    return not is_time


def tagged(text: str, masked: str, number: int, *, is_any: bool = False) -> Observation | None:
    """The observation without category in an item with a tag. None for a checkbox or a wikilink.

    is_any: accept every item, as the section `Observations` of project `graph` does.
    """
    if not is_any and ("#" not in masked or "[[" in masked or _CHECKBOX.match(text)):
        return None
    item = _observation(None, text, text, masked, number)
    if item.tags or is_any:
        return item
    return None


def _observation(
    category: str | None, text: str, content: str, masked: str, number: int
) -> Observation:
    """`content` with its tags and its context: the parenthesised group at the very end, if its
    parentheses match.
    """
    context = None
    start = _final_group(masked)
    if start is not None:
        inner = content[start + 1 : -1].strip()
        text_before = content[:start].rstrip()
        if inner and text_before:
            context = inner
            content = text_before
            masked = masked[: len(text_before)]
    return Observation(category, content, _tags_in(masked), context, number, text)


def _final_group(text: str) -> int | None:
    """The position of the parenthesis that the last character of `text` closes.

    None if none exists.
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
    """The tags of an item without their `#`, each once whatever its case."""
    position = masked.find("#")
    if position < 0:
        return ()
    is_alone = (not position or masked[position - 1] == " ") and masked.find("#", position + 1) < 0
    if is_alone:
        tag = masked[position + 1 :].partition(" ")[0]
        # The usual case: one tag, of letters.
        if tag.isalpha():
            return (tag,)
    tags: dict[str, str] = {}
    for run in _TAGS.findall(masked):
        for tag in run[1:].split("#"):
            # `#12` is not a tag, nor is what is glued to it.
            if tag.isdecimal():
                break
            tags.setdefault(tag.casefold(), tag)
    return tuple(tags.values())
