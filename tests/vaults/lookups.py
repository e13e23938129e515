"""Look-ups as people and agents make them, in a generated vault: words, and the note to be found.

python -m vaults.lookups --notes 5000      (in tests/, for the laboratory)
"""

from __future__ import annotations

import argparse
import posixpath
import sys
import tempfile
import unicodedata
from collections.abc import Callable
from pathlib import Path

from memoranda.engine import MemorySession, open_session
from vaults.generator import WORDS, Vault

LOOK_UPS = 40
FIRST = 3

LookUp = tuple[str, str]
"""What is asked, and the path of the note that is meant."""


def _title(path: str) -> str:
    return posixpath.basename(path)[:-3]


def _plain(text: str) -> str:
    """As somebody types it in haste: small letters, no marks."""
    folded = unicodedata.normalize("NFKD", text.lower())
    return "".join(sign for sign in folded if not unicodedata.combining(sign))


def look_ups(vault: Vault) -> list[LookUp]:
    """Forty look-ups of ten kinds, over notes whose names are theirs alone."""
    titles = [_title(path) for path in vault.paths]
    chosen_files = [
        (number, path)
        for number, path in enumerate(vault.paths)
        if titles.count(_title(path)) == 1 and any(sign.isdigit() for sign in _title(path))
    ]
    lookups: list[LookUp] = []
    kinds: tuple[tuple[Callable[[int, str], bool], Callable[[int, str], str]], ...] = (
        (_any, lambda _, path: _title(path)),
        (_any, lambda _, path: _plain(_title(path))),
        (_any, lambda number, _: f"word{number}"),
        (_has_alias, lambda number, _: f"Alias {number}"),
        (_has_header, lambda number, _: f"Client{number % 50} word{number}"),
        (_has_tags, lambda number, path: f"tag:area/{number % 12} {_title(path)}"),
        (_has_tags, lambda number, path: f"tag:area word{number}"),
        (_any, lambda number, path: f"tag:topic/{WORDS[number % 60]} {_plain(_title(path))}"),
        (_any, lambda number, path: f"{posixpath.dirname(path).rpartition('/')[2]} word{number}"),
        (_any, lambda _, path: f"About {_title(path)}"),
    )
    for place, (is_fit, words) in enumerate(kinds):
        fitting = [
            (number, path)
            for number, path in chosen_files
            if is_fit(number, vault.texts[path].decode())
        ]
        step = max(1, len(fitting) // 5)
        chosen = fitting[place::step][: LOOK_UPS // len(kinds)]
        lookups += [(words(number, path), path) for number, path in chosen]
    return lookups


def _any(number: int, text: str) -> bool:
    return True


def _has_header(number: int, text: str) -> bool:
    return text.lstrip("\ufeff").startswith("---")


def _has_alias(number: int, text: str) -> bool:
    return f"Alias {number}" in text


def _has_tags(number: int, text: str) -> bool:
    return "Tags:" in text


def missed(memory: MemorySession, vault: Vault) -> list[str]:
    """The look-ups whose note is not among the first three."""
    wrong = []
    for words, path in look_ups(vault):
        hits = [hit.note.path for hit in memory.search(words, limit=FIRST).hits]
        if path not in hits:
            wrong.append(f"{words} => {path}: {hits}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    vault = Vault(options.notes, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "vault"
        vault.write(root)
        with open_session(Path(folder) / "home", projects={"vault": root}) as memory:
            memory.sync()
            wrong = missed(memory, vault)
    print(*wrong, sep="\n")
    total = len(look_ups(vault))
    print(f"{total - len(wrong)} of {total} look-ups found in the first {FIRST}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
