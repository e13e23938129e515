"""The sources: where they are, and how their files are read (contract 001, 11)."""

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
from typing import Any
from urllib.parse import unquote

from memoranda.note import frontmatter, grammar
from memoranda.note.inline import listed_names, listed_tags, page_fields
from memoranda.note.links import TAG_SIGNS, without_suffix
from memoranda.note.markdown import unpack_list
from memoranda.sources.files import reason
from memoranda.text.unicode import is_valid_unicode

# Bytes of a file that are taken in; it is named when it is longer.
MOST_BYTES = 1 << 20


class Tree:
    """A folder being read. None, or a missing folder, is empty. Nothing here writes.

    warnings: what was left out and why.
    seen: how many files were asked for.
    apart: folders that are never entered (the memory home).
    """

    def __init__(self, root: Path | None, excluded_folders: Collection[Path] = ()):
        if root is None:
            self.root = ""
        else:
            self.root = str(root)
        self.warnings: list[str] = []
        self.seen = 0
        self._real = os.path.realpath(self.root)
        self._apart = {os.path.realpath(folder) for folder in excluded_folders}

    def notes(self, folder: str = "", *, hidden: bool, deep: bool = True) -> list[str]:
        """Paths of all `*.md` below a folder of the root, sorted; with `hidden` also those in
        hidden folders. Without `deep` only those in the folder itself. Symbolic links that stay
        below the root are followed, each folder reached so once; others are not."""
        if not self.root:
            return []
        paths: list[str] = []
        followed: set[str] = set()
        # Folders reached by links are at the left, read after all others: a file that is reached
        # both ways is known by its own path.
        folders = deque([folder])
        while folders:
            for path, entry, target in self._followed_entries(folders.pop(), hidden=hidden):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif target not in followed and _leads_to_other_folder(entry, target):
                    followed.add(target)
                    folders.appendleft(path)
                if entry.name.endswith(".md") and entry.is_file():
                    paths.append(path)
            if not deep:
                break
        return sorted(paths)

    def _followed_entries(
        self, folder: str, *, hidden: bool
    ) -> Iterator[tuple[str, os.DirEntry[str], str]]:
        """(path, entry, target of a link) of the readable entries in a folder.

        The target is "" without a link.
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
            yield path, entry, target

    def _target(self, entry: os.DirEntry[str], path: str, *, hidden: bool) -> str:
        """Where a link leads; "" for one that is left out. Warns of one out of the root."""
        # The link leads nowhere, or to itself.
        if not os.path.exists(entry.path):
            return ""
        target = os.path.realpath(entry.path)
        if not self._is_inside(target):
            if entry.is_dir() or entry.name.endswith(".md"):
                self.warn(path, "a link out of the folder is not followed")
            return ""
        if not hidden and "/." in target[len(self._real.rstrip("/")) :]:
            return ""
        return target

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        """The entries of a folder; nothing when it is missing, apart, unreadable, or reached by a
        link out of the root."""
        if folder:
            place = os.path.join(self.root, folder)
        else:
            place = self.root
        real = os.path.realpath(place)
        if real in self._apart or not self._is_inside(real):
            return
        try:
            with os.scandir(place) as entries:
                listed = list(entries)
        except FileNotFoundError:
            return
        except OSError as error:
            self.warn(folder or self.root, f"cannot be read ({reason(error)})")
            return
        for entry in listed:
            if entry.name.isprintable() or is_valid_unicode(entry.name):
                yield entry
            else:
                self.warn(f"{folder}/{entry.name}".lstrip("/"), "its name is not valid UTF-8")

    def _is_inside(self, real: str) -> bool:
        return real == self._real or real.startswith(self._real.rstrip("/") + "/")

    def text(self, path: str) -> str:
        """The file's text without a byte order mark; "", with a warning, when it is too large or no
        UTF-8.
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
        """Note that `path` was not read as a whole."""
        printable_path = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        self.warnings.append(f"{printable_path}: {why}")


def _leads_to_other_folder(entry: os.DirEntry[str], target: str) -> bool:
    """Whether a link leads to a folder that it is not in itself."""
    if not target or not entry.is_dir():
        return False
    own_folder = os.path.realpath(os.path.dirname(entry.path))
    return not f"{own_folder}/".startswith(f"{target.rstrip('/')}/")


# Characters of a file that become a memory. The file itself is not changed.
LONGEST_START = 5000
# Paths that one warning names.
_NAMED_PATHS = 20
_ALIASES = ("aliases", "alias")
_CLAUDE_MEMORY = re.compile(r"projects/(?:.*/)?memory/[^/]+\.md").fullmatch
# Marks of Latin and Indic scripts and of Thai are part of a letter.
_TAG = re.compile(rf"\[\[[^\[\]\n]*\]\]|(?<![^\s(（])#(?:\[\[([^\[\]\n]+)\]\]|([{TAG_SIGNS}]+))")
# The beginning of an address: a `#` after it is a fragment, no tag.
_BEFORE_ADDRESS = re.compile(
    r"\]\([ \t]*\Z|://\S*\Z|^[ \t]{0,3}\[[^\]\n]+\]:[ \t]*\Z", re.MULTILINE
)
_PLACEHOLDER = "\ue000"


@dataclass(frozen=True, slots=True)
class SourceNote:
    """The text of one file that may become a memory.

    content: trimmed, and not empty.
    own_tags: the tags that its place and header give it.
    inline: which tags in the text count: none (None), `#tag` (""), also `#[[two words]]` ("[[").
    date: the day the text is about, as written, if the file names one.
    source_ref: `<source>:<path relative to the root>`.
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
        # A name that outlives runs and systems: file systems differ in how they compose letters.
        object.__setattr__(
            self, "source_ref", f"{self.source}:{unicodedata.normalize('NFC', self.path)}"
        )
        object.__setattr__(self, "content_hash", hashlib.sha256(self.content.encode()).hexdigest())

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags in lower case without leading `#`, each once. Reads the text, which files that
        are known already need not."""
        inline = (
            () if self.inline is None else inline_tags(self.content, bracketed=self.inline == "[[")
        )
        normalized_tags = (
            tag.strip().lstrip("#").strip().lower() for tag in (*self.own_tags, *inline)
        )
        return tuple(dict.fromkeys(tag for tag in normalized_tags if tag))


def scan_claude(tree: Tree) -> Iterator[SourceNote]:
    """Claude Code: every file whose name ends in `CLAUDE.md`, and `projects/**/memory/*.md`."""
    for path in tree.notes(hidden=True):
        if path.endswith("CLAUDE.md"):
            kind = "instructions"
        elif _CLAUDE_MEMORY(path):
            kind = "project-memory"
        else:
            kind = None
        if kind and (content := tree.text(path).strip()):
            yield SourceNote("claude", path, content, stem(path), ("claude", kind))


def scan_car_agent(tree: Tree) -> Iterator[SourceNote]:
    """Car agent: all `*.md`, the first 5,000 characters of each."""
    for path in tree.notes(hidden=True):
        content = shorten(tree.text(path))
        if content:
            yield SourceNote("car-agent", path, content, stem(path), ("car-agent",))


def scan_fingersaver(tree: Tree) -> Iterator[SourceNote]:
    """Fingersaver: `chat.md`, its first 5,000 characters."""
    if "chat.md" in tree.notes(hidden=True, deep=False) and (
        content := shorten(tree.text("chat.md"))
    ):
        yield SourceNote("fingersaver", "chat.md", content, "chat", ("fingersaver", "chat"))


def scan_logseq(tree: Tree) -> Iterator[SourceNote]:
    """Logseq: `journals/**/*.md` and `pages/**/*.md` of a graph.

    A page with nothing but empty bullets is not a note. One warning names these pages.
    """
    empty: list[str] = []
    for folder in ("journals", "pages"):
        for path in tree.notes(folder, hidden=False):
            content = tree.text(path).strip()
            if content.strip("-*+ \t\r\n"):
                yield _logseq_note(folder, path, content)
            else:
                empty.append(path)
    if empty:
        tree.warn(_named_paths(empty), "left out, as nothing is written there")


def _named_paths(paths: Sequence[str]) -> str:
    """The first paths, and the number of the others."""
    first_paths = ", ".join(paths[:_NAMED_PATHS])
    if len(paths) > _NAMED_PATHS:
        return f"{first_paths} and {len(paths) - _NAMED_PATHS} more"
    return first_paths


def _logseq_note(folder: str, path: str, content: str) -> SourceNote:
    name = stem(path)
    header, length = _header(content)
    fields = page_fields(content[length:])
    aliases: list[str] = []
    for key in _ALIASES:
        aliases += listed_names(fields.get(key, ""))
    aliases += _texts(header, ",", *_ALIASES)
    tags: list[str] = []
    for key in ("tags", "tag"):
        tags += listed_tags(fields.get(key, ""))
    tags += _texts(header, ",", "tags", "tag")
    known_as = tuple(dict.fromkeys(aliases))
    if folder == "journals":
        date = day(name.replace("_", "-"))
        own_tags = ("logseq", "journal", name, *tags)
        return SourceNote("logseq", path, content, name, own_tags, "[[", known_as, date)
    title = fields.get("title") or _text(header, "title") or logseq_page(name)
    return SourceNote("logseq", path, content, title, ("logseq", title, *tags), "[[", known_as)


def logseq_page(name: str) -> str:
    """The page a file is: `%2F` and `___` mean `/`, other signs no file name may have for
    themselves.
    """
    name = name.replace("___", "/")
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        return name


def scan_obsidian(tree: Tree) -> Iterator[SourceNote]:
    """Obsidian: all `*.md` of a vault that are not hidden; the frontmatter is taken out of the
    content. A note that shares its file name with another is also known by its path: so do links in
    a vault name it."""
    paths = tree.notes(hidden=False)
    files = Counter(stem(path).casefold() for path in paths)
    for path in paths:
        text = tree.text(path)
        header, length = _header(text)
        if not length and frontmatter.split(text).yaml is not None:
            tree.warn(path, "its frontmatter is not valid YAML and stays in the text")
        content = text[length:].strip()
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
        if folder and files[stem(path).casefold()] > 1:
            aliases = tuple(dict.fromkeys((*aliases, without_suffix(path))))
        yield SourceNote(
            "obsidian", path, content, stem(path), tags, "", aliases, day(_text(header, "date"))
        )


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of folder.

    root: its usual place. None if it has none.
    """

    name: str
    root: str | None
    scan: Callable[[Tree], Iterator[SourceNote]]


_EVERY = (
    Source("claude", "~/.claude", scan_claude),
    Source("car-agent", "~/.car-agent", scan_car_agent),
    Source("fingersaver", "~/.fingersaver", scan_fingersaver),
    Source("logseq", "~/logseq", scan_logseq),
    Source("obsidian", None, scan_obsidian),
)
SOURCES = {source.name: source for source in _EVERY}
"""Every source by its name, in the order of the contract."""


def stem(path: str) -> str:
    """The file's name without folders and `.md`."""
    return unicodedata.normalize("NFC", without_suffix(path.rpartition("/")[2]))


def shorten(text: str) -> str:
    """The text trimmed. A longer text is cut after 5,000 characters, and `...` is added."""
    text = text.strip()
    if len(text) <= LONGEST_START:
        return text
    return text[:LONGEST_START] + "..."


def day(text: str) -> str | None:
    """`text` if it begins with a day that exists, as YYYY-MM-DD."""
    try:
        datetime.date.fromisoformat(text[:10])
    except ValueError:
        return None
    if len(text) == 10 or text[10] in "T ":
        return text
    return None


def _header(text: str) -> tuple[dict[str, Any], int]:
    """The frontmatter's keys in lower case, and its length in characters.

    Empty and 0 if unreadable.
    """
    yaml_text, body_at = frontmatter.split(text)
    try:
        keys = frontmatter.parse(yaml_text or "")
    except ValueError:
        yaml_text = None
    if yaml_text is None:
        return ({}, 0)
    return ({key.lower(): value for key, value in keys.items()}, body_at)


def _text(header: dict[str, Any], key: str) -> str:
    value = header.get(key)
    if isinstance(value, str):
        return value.strip()
    return ""


def _texts(header: dict[str, Any], separator: str, *keys: str) -> tuple[str, ...]:
    """The texts of some keys, a list each or separated."""
    texts: list[str] = []
    for value in map(unpack_list, map(header.get, keys)):
        if isinstance(value, str):
            parts: list[Any] = re.split(separator, value)
        elif isinstance(value, list):
            parts = value
        else:
            parts = []
        texts += [part.strip() for part in parts if isinstance(part, str) and part.strip()]
    return tuple(dict.fromkeys(texts))


def inline_tags(text: str, *, bracketed: bool = False) -> tuple[str, ...]:
    """The tags in a text in lower case, in order, each once: `#tag`, `#a/b`, `#标签`; with
    `bracketed` also `#[[two words]]`. A tag stands after the start of a line, a blank or `(`, and
    is not of digits alone, nor in code, comments or an address."""
    names: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        if match[1] is None:
            name = (match[2] or "").strip("/")
        elif bracketed:
            name = match[1].strip()
        else:
            name = ""
        name = name.lower()
        is_tag = any(map(str.isalnum, name)) and not name.isdigit()
        if not is_tag or _BEFORE_ADDRESS.search(text, max(0, match.start() - 200), match.start()):
            return match[0]
        names.append(name)
        return f"[[{_PLACEHOLDER}{len(names) - 1}]]"

    # A wikilink in place of a tag is a relation exactly if the tag is text. The grammar decides
    # what is code.
    probe = _TAG.sub(placeholder, text)
    if not names:
        return ()
    targets = {relation.target for relation in grammar.scan(probe)[1]}
    return tuple(
        dict.fromkeys(
            name for number, name in enumerate(names) if f"{_PLACEHOLDER}{number}" in targets
        )
    )
