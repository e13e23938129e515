"""A vault as people keep them in Obsidian, of any size, the same one for the same seed.

Names repeat across folders, notes link to each other in every way there is, and the files differ
in line ends, byte order marks and last lines. Nothing here knows how the project resolves links.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import quote

AREAS = ("Projects", "People", "Topics", "Journal", "Literature Notes", "日记", "Ideen & Pläne")
WORDS = tuple(
    """
amber anchor basil beacon birch cedar cinder clover comet coral crane delta ember falcon
fern fjord garnet glacier harbor hazel heron indigo ivory jasper juniper kestrel lantern
larch lotus maple meadow mistral nectar nickel oasis onyx opal orchid osprey pebble pepper
quarry quartz raven river saffron sage sparrow spruce summit tamarind thistle topaz tundra
umber velvet violet walnut willow zephyr
""".split()  # noqa: SIM905
)
REPEATED = ("README", "Index", "Notes", "Ideas")
ATTACHMENTS = ("Plan.canvas", "Scan 1.pdf", "Sketch.excalidraw.md", "Tasks.base", "photo.png")
FORMS = (
    "bare",
    "path",
    "path end",
    "extension",
    "relative",
    "markdown",
    "markdown path",
    "angle",
    "embed",
    "heading",
    "block",
    "shown",
    "table",
    "header",
    "other case",
)


@dataclass(frozen=True)
class Link:
    """A link as it is written in the note `source`: `text` is what stands between its brackets."""

    source: str
    text: str
    is_markdown: bool


class Vault:
    """The paths of the notes of a vault, their texts, and the links they hold."""

    def __init__(self, notes: int, seed: int = 1):
        self.random = Random(seed)
        self.paths = self._some_paths(notes)
        self.numbers = {path: number for number, path in enumerate(self.paths)}
        self.links: list[Link] = []
        self.texts = {path: self._text(path, number) for number, path in enumerate(self.paths)}

    def write(self, root: Path) -> None:
        """The files of the vault, attachments and Obsidian's own folder among them."""
        for path, text in self.texts.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)
        for name in ATTACHMENTS:
            file = root / "Attachments" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b'{"nodes": [{"text": "attachmenttext"}]}')
        (root / ".obsidian").mkdir(exist_ok=True)
        (root / ".obsidian/app.json").write_text('{"attachmentFolderPath": "Attachments"}')

    def _some_paths(self, notes: int) -> list[str]:
        folders = [""]
        for area in AREAS:
            folders.append(area)
            folders += [f"{area}/{word.title()}" for word in self.random.sample(WORDS, 5)]
        folders += [f"{folder}/Deep/Down" for folder in folders[1:8]]
        paths: dict[str, str] = {}
        while len(paths) < notes:
            folder = self.random.choice(folders)
            path = posixpath.join(folder, f"{self._name(len(paths))}.md")
            paths.setdefault(path.casefold(), path)
        return list(paths.values())

    def _name(self, number: int) -> str:
        first, second = self.random.sample(WORDS, 2)
        kind = self.random.random()
        if kind < 0.06:
            return self.random.choice(REPEATED)
        if kind < 0.10:
            return f"{first.title()} v1.{number}"
        if kind < 0.14:
            return f"{first.title()} (draft {number})"
        if kind < 0.18:
            return f"Café {first} {number}"
        if kind < 0.22:
            return f"笔记 {number}"
        if kind < 0.26:
            return f"{first} & {second}'s 100% {number}"
        if kind < 0.40:
            # A few hundred names only, so that some are in several folders
            return f"{first.title()} {second}"
        return f"{first.title()} {second} {number}"

    def _text(self, path: str, number: int) -> bytes:
        lines: list[str] = []
        if self.random.random() < 0.4:
            lines += self._header(path, number)
        lines += [f"# About {posixpath.basename(path)[:-3]}", "", f"word{number} here. ^b{number}"]
        for _ in range(self.random.randrange(6)):
            lines.append(self._line(path))
        lines += ["", "## Part one", f"status{number % 7}:: open", f"#topic/{WORDS[number % 60]}"]
        lines += ["", "```", "[[In code]] #nocode", "```", "`[[Also code]]`"]
        end = "\r\n" if number % 9 == 0 else "\n"
        text = end.join(lines)
        if number % 7:
            text += end
        if number % 11 == 0:
            text = "\ufeff" + text
        return text.encode()

    def _header(self, path: str, number: int) -> list[str]:
        lines = ["---", f"created: 2025-0{1 + number % 9}-11", f"client: Client{number % 50}"]
        if number % 5 == 0:
            lines += ["aliases:", f"  - Alias {number}"]
        if number % 3 == 0:
            link = self._wikilink(path, "bare")
            lines.append(f'up: "[[{link}]]"')
        if number % 4 == 0:
            lines += ["Tags:", f"- area/{number % 12}"]
        return [*lines, "custom: keep  # as it is", "---"]

    def _line(self, path: str) -> str:
        form = self.random.choice(FORMS)
        if form in ("markdown", "markdown path", "angle"):
            return f"see [shown]({self._destination(path, form)}) there"
        if form == "header":
            form = "bare"
        link = self._wikilink(path, form)
        if form == "table":
            return f"| a | [[{link}\\|shown]] |"
        sign = "!" if form == "embed" else ""
        return f"- about {sign}[[{link}]] and more"

    def _wikilink(self, source: str, form: str) -> str:
        target = self.random.choice(self.paths)
        plain = target[:-3]
        parts = plain.split("/")
        text = parts[-1]
        if form == "path":
            text = plain
        elif form == "path end":
            text = "/".join(parts[-2:])
        elif form == "extension":
            text = f"{parts[-1]}.md"
        elif form == "relative":
            text = posixpath.relpath(plain, posixpath.dirname(source) or ".")
            if not text.startswith("../"):
                text = f"./{text}"
        elif form == "other case":
            text = text.swapcase()
        self.links.append(Link(source, text, is_markdown=False))
        block = f"#^b{self.numbers[target]}"
        endings = {"heading": "#Part one", "block": block, "shown": "|shown text"}
        return text + endings.get(form, "")

    def _destination(self, source: str, form: str) -> str:
        target = self.random.choice(self.paths)
        folder = posixpath.dirname(source) or "."
        text = posixpath.relpath(target, folder)
        if form == "markdown path":
            text = target
        self.links.append(Link(source, text, is_markdown=True))
        if form == "angle":
            return f"<{text.replace('%', '%25')}>"
        if form == "markdown path":
            return f"{quote(text)}#Part%20one"
        return quote(text)
