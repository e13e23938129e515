"""Models that others run: an endpoint on the network, or a library the user has."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from commonplace.index.vectors.arrays import np
from commonplace.index.vectors.model import NoModel
from commonplace.index.vectors.scripts import is_readable, scripts
from commonplace.llm import Embeddings, NoAnswer

_AT_ONCE = 32
_SOON, _LATER = 5.0, 60.0
"""Seconds an endpoint has for a question somebody waits for, and for a batch nobody does."""


class Endpoint:
    """The `/embeddings` of an OpenAI-compatible endpoint. It is trusted to read every language."""

    def __init__(self, base_url: str, model: str, key: str | None):
        self._one = Embeddings(base_url, model, key, seconds=_SOON)
        self._many = Embeddings(base_url, model, key, seconds=_LATER)
        self._turn = threading.Lock()

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Raises NoAnswer."""
        if len(texts) == 1:
            return _unit(self._one.vectors(texts))
        with self._turn:
            parts = [self._many.vectors(texts[at : at + _AT_ONCE]) for at in range(0, len(texts), _AT_ONCE)]
        return _unit([row for part in parts for row in part])

    def reads(self, text: str) -> bool:
        return any(map(str.isalnum, text))


class SentenceTransformers:
    """A model sentence-transformers finds on this machine; nothing is downloaded."""

    def __init__(self, name: str):
        from sentence_transformers import SentenceTransformer

        try:
            self._model = SentenceTransformer(name, local_files_only=True, device="cpu")
        except (OSError, ValueError) as error:
            raise NoModel(f"sentence-transformers has no model {name} on this machine: {_first(error)}") from None
        self._scripts = _scripts(getattr(self._model, "tokenizer", None))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return _unit(self._model.encode(list(texts), show_progress_bar=False))

    def reads(self, text: str) -> bool:
        return is_readable(text, self._scripts)


class FastEmbed:
    """A model fastembed finds on this machine; nothing is downloaded."""

    def __init__(self, name: str):
        from fastembed import TextEmbedding

        try:
            self._model = TextEmbedding(name, local_files_only=True)
        except (OSError, ValueError) as error:
            raise NoModel(f"fastembed has no model {name} on this machine: {_first(error)}") from None
        self._scripts = _scripts(getattr(getattr(self._model, "model", None), "tokenizer", None))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return _unit(list(self._model.embed(list(texts))))

    def reads(self, text: str) -> bool:
        return is_readable(text, self._scripts)


def _unit(rows: Iterable[Any]) -> np.ndarray:
    """The rows as float32 of length 1. Raises NoAnswer when they are no vectors of one length."""
    try:
        found = np.asarray(rows, np.float32)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or found.shape[1] == 0:
            raise ValueError
    except (ValueError, TypeError, IndexError):
        raise NoAnswer("The embedding model's reply holds no vectors of one length.") from None
    return found / np.maximum(lengths, np.float32(1e-12))


def _scripts(tokenizer: Any) -> frozenset[str] | None:
    """The scripts of a tokenizer's vocabulary; None when it shows none."""
    vocabulary = getattr(tokenizer, "get_vocab", None)
    return None if vocabulary is None else scripts(vocabulary())


def _first(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
