"""Where Obsidian says that a link leads: its documented rules, written without our code.

"Internal links" and "Settings, files and links" in Obsidian's help: a link names a note by its
name, by the end of its path, by its path in the vault, or by a path relative to its own folder
(`./`, `../`). Case does not count, nor does `.md`. A note of the link's own folder comes first.
Where several notes fit, Obsidian opens one of them without saying so; here all are named.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable


def key(path: str) -> str:
    """A path as it is compared: composed, without case, without `.md`."""
    folded = unicodedata.normalize("NFC", path).casefold()
    return folded.removesuffix(".md")


class Links:
    """Resolves the links of one vault."""

    def __init__(self, paths: Iterable[str]):
        self.by_path = {key(path): path for path in paths}
        self.by_name: dict[str, list[str]] = {}
        for folded, path in self.by_path.items():
            self.by_name.setdefault(posixpath.basename(folded), []).append(path)

    def wikilink(self, text: str, source: str) -> list[str]:
        """The notes that `[[text]]` in the note `source` may mean."""
        folder = posixpath.dirname(source)
        wanted_key = key(text)
        if wanted_key.startswith(("./", "../")):
            return self._at(posixpath.normpath(posixpath.join(key(folder), wanted_key)))
        if wanted_key.startswith("/"):
            return self._at(wanted_key.lstrip("/"))
        beside = self._at(posixpath.join(key(folder), wanted_key))
        if beside:
            return beside
        at_root = self._at(wanted_key)
        if at_root:
            return at_root
        paths_of_name = self.by_name.get(posixpath.basename(wanted_key), [])
        return [path for path in paths_of_name if key(path).endswith(f"/{wanted_key}")]

    def markdown(self, path: str, source: str) -> list[str]:
        """The notes that `[shown](path)` in the note `source` may mean, decoded."""
        folder = posixpath.dirname(source)
        beside = self._at(posixpath.normpath(posixpath.join(key(folder), key(path))))
        return beside or self.wikilink(path, source)

    def _at(self, folded: str) -> list[str]:
        path = self.by_path.get(folded)
        return [] if path is None else [path]
