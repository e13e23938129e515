"""Read the files of each source, such as an Obsidian vault (contract 001, 11).

A source (`Program`) has a usual folder and a function that yields a `SourceNote` for each file. It
reads the folder through a `Tree`, which collects warnings.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from memoranda.note import frontmatter, grammar
from memoranda.note.inline import listed_names, listed_tags, page_fields
from memoranda.note.links import TAG_SIGNS, without_suffix
from memoranda.note.markdown import unpack_list
from memoranda.sources.files import reason
from memoranda.text.unicode import is_valid_unicode

# How many bytes a file may have to be read.
MOST_BYTES = 1 << 20


class Tree:
    """Reads the files of a folder, and collects warnings about files that cannot be read.

    root: the folder; "" if it is unknown. A missing folder counts as empty.
    excluded_folders: folders that are never entered, such as the memory home.
    warnings: the files that were left out, each with the reason.
    seen: the number of files that were read.
    """

    def __init__(self, root: Path | None, excluded_folders: Collection[Path] = ()):
        self.root = "" if root is None else str(root)
        self.warnings: list[str] = []
        self.seen = 0
        self._real_root = os.path.realpath(self.root)
        self._excluded_paths = {os.path.realpath(folder) for folder in excluded_folders}

    def notes(self, folder: str = "", *, hidden: bool, deep: bool = True) -> list[str]:
        """Return the paths of all `*.md` files in a folder, relative to the root and sorted.

        folder: relative to the root, which is "".
        hidden: whether to include hidden files, and files in hidden folders.
        deep: whether to include files in folders inside the folder.

        Symbolic links that stay inside the root are followed, but no folder is visited twice.
        """
        if not self.root:
            return []
        paths: list[str] = []
        followed_targets: set[str] = set()
        # Folders reached by links are put at the left, and read after all others. So a file that
        # is also reached without a link gets that path.
        folders = deque([folder])
        while folders:
            for path, entry, target in self._followed_entries(folders.pop(), hidden=hidden):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif target not in followed_targets and _leads_to_other_folder(entry, target):
                    followed_targets.add(target)
                    folders.appendleft(path)
                if entry.name.endswith(".md") and entry.is_file():
                    paths.append(path)
            if not deep:
                break
        return sorted(paths)

    def _followed_entries(self, folder: str, *, hidden: bool) -> Iterator[_FollowedEntry]:
        """Yield the entries of a folder that can be read.

        hidden: whether to include hidden ones.
        """
        for entry in self._entries(folder):
            path = os.path.join(folder, entry.name)
            if entry.name.startswith(".") and not hidden:
                continue
            target = ""
            if entry.is_symlink():
                target = self._target(entry, path, hidden=hidden)
                if not target:
                    continue
            yield _FollowedEntry(path, entry, target)

    def _target(self, entry: os.DirEntry[str], path: str, *, hidden: bool) -> str:
        """Return the path that a link leads to. "" for a link that is left out.

        A link that leads out of the root gets a warning.

        entry: the link.
        path: its path below the root.
        hidden: whether hidden files and folders count.
        """
        # The link leads nowhere, or to itself.
        if not os.path.exists(entry.path):
            return ""
        target = os.path.realpath(entry.path)
        if not self._is_inside(target):
            # Nobody expects notes behind other links
            if entry.is_dir() or entry.name.endswith(".md"):
                self.warn(path, "a link out of the folder is not followed")
            return ""
        path_below_root = target[len(self._real_root.rstrip("/")) :]
        if not hidden and "/." in path_below_root:
            return ""
        return target

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of a folder whose names are valid.

        Yields nothing for a folder that is missing, excluded, unreadable or outside the root.
        """
        place = os.path.join(self.root, folder) if folder else self.root
        real_place = os.path.realpath(place)
        if real_place in self._excluded_paths or not self._is_inside(real_place):
            return
        try:
            with os.scandir(place) as scanned:
                entries = list(scanned)
        except FileNotFoundError:
            return
        except OSError as error:
            self.warn(folder or self.root, f"cannot be read ({reason(error)})")
            return
        for entry in entries:
            if entry.name.isprintable() or is_valid_unicode(entry.name):
                yield entry
            else:
                self.warn(f"{folder}/{entry.name}".lstrip("/"), "its name is not valid UTF-8")

    def _is_inside(self, real_path: str) -> bool:
        """Whether a path without symbolic links is the root or inside it."""
        if real_path == self._real_root:
            return True
        return real_path.startswith(self._real_root.rstrip("/") + "/")

    def text(self, path: str) -> str:
        """Return the text of a file without its byte order mark.

        A file that is too large, unreadable or not UTF-8 adds a warning, and "" is returned.
        """
        self.seen += 1
        try:
            with open(os.path.join(self.root, path), "rb") as file:
                data = file.read(MOST_BYTES + 1)
            if len(data) <= MOST_BYTES:
                return data.decode("utf-8-sig")
            self.warn(path, "larger than 1 MB")
        except OSError as error:
            self.warn(path, f"cannot be read ({reason(error)})")
        except UnicodeDecodeError:
            self.warn(path, "not UTF-8 text")
        return ""

    def warn(self, path: str, why: str) -> None:
        """Add a warning that `path` was not read, with the reason `why`."""
        printable_path = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        self.warnings.append(f"{printable_path}: {why}")


class _FollowedEntry(NamedTuple):
    """An entry of a folder.

    path: its path relative to the root.
    target: the path to which it leads if it is a link. "" if it is not a link.
    """

    path: str
    entry: os.DirEntry[str]
    target: str


def _leads_to_other_folder(entry: os.DirEntry[str], target: str) -> bool:
    """Whether a link leads to a folder that does not contain the link.

    entry: the link.
    target: the path to which it leads. "" for a link that is left out.
    """
    if not target or not entry.is_dir():
        return False
    own_folder = os.path.realpath(os.path.dirname(entry.path))
    return not f"{own_folder}/".startswith(f"{target.rstrip('/')}/")


# How many characters of a file become a memory, for sources that shorten their texts.
LONGEST_START = 5000
# How many paths one warning names.
_NAMED_PATHS = 20
_ALIASES = ("aliases", "alias")
_CLAUDE_MEMORY = re.compile(r"projects/(?:.*/)?memory/[^/]+\.md").fullmatch
# A link, which has no group, or a tag: `#[[two words]]` in the first group, `#tag` in the second.
_TAG = re.compile(rf"\[\[[^\[\]\n]*\]\]|(?<![^\s(（])#(?:\[\[([^\[\]\n]+)\]\]|([{TAG_SIGNS}]+))")
# The beginning of an address. A `#` after it begins a part of the address, not a tag.
_BEFORE_ADDRESS = re.compile(
    r"\]\([ \t]*\Z|://\S*\Z|^[ \t]{0,3}\[[^\]\n]+\]:[ \t]*\Z", re.MULTILINE
)
# How far before a tag the beginning of an address is looked for.
_MOST_ADDRESS_CHARACTERS = 200
# A private character that no text has: see `inline_tags`.
_PLACEHOLDER = "\ue000"


@dataclass(frozen=True, slots=True)
class SourceNote:
    """The text of one file that may become a memory.

    source: the name of its source, such as `obsidian`.
    path: relative to the root of the source.
    content: the text, trimmed and not empty.
    title: the title that the file names, or else its file name.
    own_tags: the tags that the file has by its place and its header.
    inline: the kinds of tags in the text that count: "" means `#tag`, and "[[" means `#tag` and
        `#[[two words]]`. None means that none count.
    aliases: other names of the note.
    date: the day the text is about, as written, None if the file names no day.
    source_ref: `<source>:<path>`, by which the file is known in later runs.
    content_hash: the SHA-256 of the content, in hex.
    """

    source: str
    path: str
    content: str
    title: str
    own_tags: tuple[str, ...] = ()
    inline: str | None = None
    aliases: tuple[str, ...] = ()
    date: str | None = None
    source_ref: str = field(init=False, default="")
    content_hash: str = field(init=False, default="")

    def __post_init__(self) -> None:
        # In one Unicode form, because file systems differ in how they compose letters.
        object.__setattr__(
            self, "source_ref", f"{self.source}:{unicodedata.normalize('NFC', self.path)}"
        )
        object.__setattr__(self, "content_hash", hashlib.sha256(self.content.encode()).hexdigest())

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags in lower case without leading `#`, each once.

        Computed on demand, because a file that is stored already does not need them.
        """
        all_tags = list(self.own_tags)
        if self.inline is not None:
            all_tags += inline_tags(self.content, bracketed=self.inline == "[[")
        normalized_tags = [tag.strip().lstrip("#").strip().lower() for tag in all_tags]
        return tuple(dict.fromkeys(filter(None, normalized_tags)))


def scan_claude(tree: Tree) -> Iterator[SourceNote]:
    """Scan the folder of Claude Code: all `*CLAUDE.md`, and `projects/**/memory/*.md`."""
    for path in tree.notes(hidden=True):
        if path.endswith("CLAUDE.md"):
            kind = "instructions"
        elif _CLAUDE_MEMORY(path):
            kind = "project-memory"
        else:
            continue
        content = tree.text(path).strip()
        if content:
            yield SourceNote("claude", path, content, stem(path), ("claude", kind))


def scan_car_agent(tree: Tree) -> Iterator[SourceNote]:
    """Scan the folder of Car agent: all `*.md`, the first LONGEST_START characters of each."""
    for path in tree.notes(hidden=True):
        content = shorten(tree.text(path))
        if content:
            yield SourceNote("car-agent", path, content, stem(path), ("car-agent",))


def scan_fingersaver(tree: Tree) -> Iterator[SourceNote]:
    """Scan the folder of Fingersaver: the first LONGEST_START characters of `chat.md`."""
    if "chat.md" not in tree.notes(hidden=True, deep=False):
        return
    content = shorten(tree.text("chat.md"))
    if content:
        yield SourceNote("fingersaver", "chat.md", content, "chat", ("fingersaver", "chat"))


def scan_logseq(tree: Tree) -> Iterator[SourceNote]:
    """Scan a graph of Logseq: `journals/**/*.md` and `pages/**/*.md`.

    A page that has only empty bullets is left out. One warning names all such pages.
    """
    empty_paths: list[str] = []
    for folder in ("journals", "pages"):
        for path in tree.notes(folder, hidden=False):
            content = tree.text(path).strip()
            if content.strip("-*+ \t\r\n"):
                yield _logseq_note(folder, path, content)
            else:
                empty_paths.append(path)
    if empty_paths:
        tree.warn(_named_paths(empty_paths), "left out, as nothing is written there")


def _named_paths(paths: Sequence[str]) -> str:
    """Return the first paths and the number of the others, in words: `a.md, b.md and 3 more`."""
    first_paths = ", ".join(paths[:_NAMED_PATHS])
    if len(paths) > _NAMED_PATHS:
        return f"{first_paths} and {len(paths) - _NAMED_PATHS} more"
    return first_paths


def _logseq_note(folder: str, path: str, content: str) -> SourceNote:
    """Return the note of a file in the folder `journals` or `pages` of a Logseq graph."""
    name = stem(path)
    # Logseq writes the fields of a page as `key:: value` at its beginning. Some have a header, too.
    header, body_at = _header(content)
    fields = page_fields(content[body_at:])
    aliases: list[str] = []
    for key in _ALIASES:
        aliases += listed_names(fields.get(key, ""))
    aliases += _texts(header, ",", *_ALIASES)
    tags: list[str] = []
    for key in ("tags", "tag"):
        tags += listed_tags(fields.get(key, ""))
    tags += _texts(header, ",", "tags", "tag")
    is_journal = folder == "journals"
    if is_journal:
        title = name
        own_tags = ("logseq", "journal", name, *tags)
    else:
        title = fields.get("title") or _text(header, "title") or logseq_page(name)
        own_tags = ("logseq", title, *tags)
    return SourceNote(
        "logseq",
        path,
        content,
        title,
        own_tags,
        inline="[[",
        aliases=tuple(dict.fromkeys(aliases)),
        # A journal is named after its day: `2026_01_31.md`.
        date=day(name.replace("_", "-")) if is_journal else None,
    )


def logseq_page(name: str) -> str:
    """Return the title of the Logseq page in a file of this name: `a/b` for `a___b` or `a%2Fb`.

    Other signs that a file name may not have are encoded too, such as `:` as `%3A`.
    """
    name = name.replace("___", "/")
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        return name


def scan_obsidian(tree: Tree) -> Iterator[SourceNote]:
    """Scan an Obsidian vault: all `*.md` that are not hidden, without their headers.

    If several files have the same name, each also gets its path as an alias: links in a vault then
    name it by its path.
    """
    paths = tree.notes(hidden=False)
    file_counts = Counter(stem(path).casefold() for path in paths)
    for path in paths:
        text = tree.text(path)
        header, body_at = _header(text)
        has_invalid_header = body_at == 0 and frontmatter.split(text).yaml is not None
        if has_invalid_header:
            tree.warn(path, "its frontmatter is not valid YAML and stays in the text")
        content = text[body_at:].strip()
        if not content:
            continue
        aliases = _texts(header, ",", *_ALIASES)
        folder = path.rpartition("/")[0]
        tags = (
            "obsidian",
            folder.replace("/", "-"),
            *_texts(header, r"[,\s]", "tags", "tag"),
            *aliases,
        )
        # The path becomes an alias after the tags are made: it is a name, but no tag.
        is_name_shared = file_counts[stem(path).casefold()] > 1
        if folder and is_name_shared:
            aliases = tuple(dict.fromkeys((*aliases, without_suffix(path))))
        yield SourceNote(
            "obsidian",
            path,
            content,
            stem(path),
            tags,
            inline="",
            aliases=aliases,
            date=day(_text(header, "date")),
        )


@dataclass(frozen=True, slots=True)
class Program:
    """Another program whose notes can be ingested from a folder.

    name: the name by which a person chooses it.
    root: the usual folder of its notes; None if there is no usual one.
    scan: yields the notes in its files.
    """

    name: str
    root: str | None
    scan: Callable[[Tree], Iterator[SourceNote]]


_EVERY = (
    Program("claude", "~/.claude", scan_claude),
    Program("car-agent", "~/.car-agent", scan_car_agent),
    Program("fingersaver", "~/.fingersaver", scan_fingersaver),
    Program("logseq", "~/logseq", scan_logseq),
    Program("obsidian", None, scan_obsidian),
)
SOURCES = {source.name: source for source in _EVERY}
"""Every source by its name, in the order of the contract."""


def stem(path: str) -> str:
    """Return the name of a file without its folders and `.md`."""
    return unicodedata.normalize("NFC", without_suffix(path.rpartition("/")[2]))


def shorten(text: str) -> str:
    """Trim a text. A longer text is cut after LONGEST_START characters, and `...` is added."""
    text = text.strip()
    if len(text) <= LONGEST_START:
        return text
    return text[:LONGEST_START] + "..."


def day(text: str) -> str | None:
    """Return `text` if it is a day `2026-01-31`, or begins with a day and goes on with a time.

    None for any other text, and for a day that does not exist.
    """
    try:
        datetime.date.fromisoformat(text[:10])
    except ValueError:
        return None
    if len(text) == 10 or text[10] in "T ":
        return text
    return None


def _header(text: str) -> tuple[dict[str, Any], int]:
    """Return the header of a text, with its keys in lower case, and the offset of the body.

    `({}, 0)` if the text has no header or it cannot be read.
    """
    yaml_text, body_at = frontmatter.split(text)
    if yaml_text is None:
        return {}, 0
    try:
        keys = frontmatter.parse(yaml_text)
    except ValueError:
        return {}, 0
    return {key.lower(): value for key, value in keys.items()}, body_at


def _text(header: dict[str, Any], key: str) -> str:
    """Return the text under a key of a header, "" if it has no text there."""
    value = header.get(key)
    if isinstance(value, str):
        return value.strip()
    return ""


def _texts(header: dict[str, Any], separator: str, *keys: str) -> tuple[str, ...]:
    """Return the texts under these keys of a header, each once.

    separator: the pattern at which to split a value that is not a list, such as `,`.
    """
    texts: list[str] = []
    for key in keys:
        value = unpack_list(header.get(key))
        parts: list[Any] = []
        if isinstance(value, str):
            parts = re.split(separator, value)
        elif isinstance(value, list):
            parts = value
        texts += [part.strip() for part in parts if isinstance(part, str)]
    return tuple(dict.fromkeys(filter(None, texts)))


def inline_tags(text: str, *, bracketed: bool = False) -> tuple[str, ...]:
    """Return the tags in a text, in lower case and in order, each once: `#tag`, `#a/b`, `#标签`.

    A tag follows the start of a line, a blank or `(`. It has more than digits, and is not in code, a
    comment or an address.

    bracketed: whether `#[[two words]]` is a tag too.
    """
    names: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        """Return a link with the index of the tag in `names`, or the match itself for other text."""
        name = _tag_name(match, bracketed)
        if not name:
            return match[0]
        names.append(name)
        return f"[[{_PLACEHOLDER}{len(names) - 1}]]"

    # The grammar of notes knows which parts of a text are code. It reads links, but not tags. So
    # each tag is replaced by a link. If the grammar then finds the link, the tag is not in code.
    text_with_links = _TAG.sub(placeholder, text)
    if not names:
        return ()
    targets = {relation.target for relation in grammar.scan(text_with_links).relations}
    tags = [name for index, name in enumerate(names) if f"{_PLACEHOLDER}{index}" in targets]
    return tuple(dict.fromkeys(tags))


def _tag_name(match: re.Match[str], bracketed: bool) -> str:
    """Return the name of a tag in lower case. "" if the match is not a tag.

    match: a match of `_TAG` in the whole text.
    bracketed: whether `#[[two words]]` is a tag too.
    """
    words_in_brackets = match[1]
    if words_in_brackets is None:
        name = (match[2] or "").strip("/").lower()
    elif bracketed:
        name = words_in_brackets.strip().lower()
    else:
        return ""
    has_letter_or_digit = any(map(str.isalnum, name))
    if not has_letter_or_digit or name.isdigit():
        return ""
    # In `https://example.org/#part`, the `#` begins a part of the address.
    search_start = max(0, match.start() - _MOST_ADDRESS_CHARACTERS)
    if _BEFORE_ADDRESS.search(match.string, search_start, match.start()):
        return ""
    return name
