"""A BERT encoder's forward pass with numpy: tokens in, one unit vector per text out.

Sequences of a batch lie one after the other without padding: all that concerns single tokens is one
multiplication of matrices for the whole batch, and attention goes over the sequences of one length at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from commonplace.index.vectors.arrays import np

# gelu(x) = x/2 (1 + tanh(x P(x²))), P fitted to the error function: at most 7e-8 off, growing with x² for ever.
_GELU = tuple(map(np.float32, (
    0.7978842179569082, 0.036334277786118474, -3.3125721695964903e-05, -5.524142074980142e-05, 3.96927936778623e-06,
    -1.3345673395980616e-07, 1.8058437747390487e-09,
)))  # fmt: skip
_ROWS = 48
"""Rows worked on at a time, element by element: so many fit into a processor's cache."""
_STEEP = 60.0
_FEW, _SMALL = 48, 900_000
"""So few tokens, a question's, are multiplied with pieces of the weights, so many multiplications at a time: for such
products BLAS neither copies the weights first nor wakes other threads, which halves the time."""


class _Layer(NamedTuple):
    """Weights as (out, in), mapped from disk but for those of the heads: query, key and value in one, the query's
    divided by the root of a head's size."""

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
    """An encoder of the BERT family. `config` is its config.json, `weights` its arrays by name.

    `first_token`: the first token's vector stands for the text instead of the mean of all. Raises ValueError
    for an architecture this is not the forward pass of, or weights that do not fit it.
    """

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, np.ndarray], *, first_token: bool = False):
        _check(config)
        weights = {name: np.asarray(array) for name, array in weights.items()}  # slices of a memmap take long to make
        start = "bert." if "bert.embeddings.word_embeddings.weight" in weights else ""
        self._first = first_token
        self._heads = int(config["num_attention_heads"])
        self._tiny = np.float32(config.get("layer_norm_eps", 1e-12))
        try:
            self._words = weights[f"{start}embeddings.word_embeddings.weight"]
            places = weights[f"{start}embeddings.position_embeddings.weight"]
            self._places = places + weights[f"{start}embeddings.token_type_embeddings.weight"][0]
            self._norm = _pair(weights, f"{start}embeddings.LayerNorm")
            names = (f"{start}encoder.layer.{at}" for at in range(int(config["num_hidden_layers"])))
            self._layers = [_layer(weights, name, self._heads) for name in names]
        except KeyError as error:
            raise ValueError(f"the weights lack {error}") from None
        self.size: int = self._words.shape[1]
        """How many numbers a vector has."""
        self.most_tokens: int = len(self._places)

    def run(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """The unit vectors, a row each, of `texts`: token ids, at least one and at most `most_tokens` a text.

        Fastest when texts of one length stand together.
        """
        lengths = [len(each) for each in texts]
        x = self._words[np.concatenate([np.asarray(each) for each in texts])]
        x += self._places[np.concatenate([np.arange(each) for each in lengths])]
        self._normalise(x, self._norm)
        for layer in self._layers:
            seen = self._attend(_product(x, layer.heads) + layer.heads_bias, lengths)
            x += _product(seen, layer.out) + layer.out_bias
            self._normalise(x, layer.out_norm)
            wide = _product(x, layer.up)
            _gelu(wide, layer.up_bias)
            x += _product(wide, layer.down) * np.float32(0.5) + layer.down_bias
            self._normalise(x, layer.down_norm)
        starts = np.cumsum([0, *lengths[:-1]])
        found = x[starts] if self._first else np.add.reduceat(x, starts, axis=0)
        return found / np.sqrt(np.einsum("ij,ij->i", found, found))[:, None]  # the mean's length does not matter

    def _attend(self, mixed: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
        """What each token takes from the others of its text: softmax(q k) v, head by head."""
        result = np.empty((len(mixed), self.size), np.float32)
        for start, stop, count, length in _runs(lengths):
            parts = mixed[start:stop].reshape(count, length, 3, self._heads, -1)
            query, key, value = (parts[:, :, at].transpose(0, 2, 1, 3) for at in range(3))
            scores = query @ key.transpose(0, 1, 3, 2)
            if scores.max() - scores.min() > _STEEP:  # else no exponential of ours is too large or too small
                scores -= scores.max(-1, keepdims=True)
            np.exp(scores, out=scores)
            taken = scores @ value
            taken /= scores.sum(-1, keepdims=True)
            result[start:stop].reshape(count, length, self._heads, -1)[:] = taken.transpose(0, 2, 1, 3)
        return result

    def _normalise(self, x: np.ndarray, pair: tuple[np.ndarray, np.ndarray]) -> None:
        for at in range(0, len(x), 2 * _ROWS):
            rows = x[at : at + 2 * _ROWS]
            rows -= np.add.reduce(rows, -1, keepdims=True) / np.float32(self.size)  # `mean` itself takes longer
            spread = np.einsum("ij,ij->i", rows, rows) / np.float32(self.size)
            rows /= np.sqrt(spread + self._tiny)[:, None]
            rows *= pair[0]
            rows += pair[1]


def _check(config: Mapping[str, Any]) -> None:
    """Raises ValueError unless the forward pass here is the one of `config`."""
    wanted = {"model_type": ("bert",), "hidden_act": ("gelu",), "position_embedding_type": ("absolute",)}
    for name, values in wanted.items():
        if config.get(name, values[0]) not in values:
            raise ValueError(f'{name} "{config[name]}" is not known; only BERT encoders run with numpy alone')


def _layer(weights: Mapping[str, np.ndarray], name: str, heads: int) -> _Layer:
    parts = [f"{name}.attention.self.{each}" for each in ("query", "key", "value")]
    mixed = np.concatenate([weights[f"{each}.weight"] for each in parts])
    bias = np.concatenate([weights[f"{each}.bias"] for each in parts])
    size = mixed.shape[1]
    root = np.float32((size / heads) ** -0.5)
    mixed[:size] *= root
    bias[:size] *= root
    out, down = f"{name}.attention.output", f"{name}.output"
    return _Layer(
        mixed, bias,
        weights[f"{out}.dense.weight"], weights[f"{out}.dense.bias"], _pair(weights, f"{out}.LayerNorm"),
        weights[f"{name}.intermediate.dense.weight"], weights[f"{name}.intermediate.dense.bias"],
        weights[f"{down}.dense.weight"], weights[f"{down}.dense.bias"],
        _pair(weights, f"{down}.LayerNorm"),
    )  # fmt: skip


def _pair(weights: Mapping[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _product(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    if len(x) > _FEW:
        return x @ weight.T
    turned, found = np.ascontiguousarray(x.T), np.empty((len(weight), len(x)), np.float32)
    step = max(1, _SMALL // x.size)
    for at in range(0, len(weight), step):
        np.matmul(weight[at : at + step], turned, out=found[at : at + step])
    return np.ascontiguousarray(found.T)


def _gelu(x: np.ndarray, bias: np.ndarray) -> None:
    """Twice the gelu of `x + bias`, in place."""
    square, bent = (np.empty((_ROWS, x.shape[1]), np.float32) for _ in range(2))
    for at in range(0, len(x), _ROWS):
        rows = x[at : at + _ROWS]
        u, y = square[: len(rows)], bent[: len(rows)]
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


def _runs(lengths: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Neighbours of one length: (first token, behind the last token, how many texts, their length)."""
    start = 0
    for length, group in groupby(lengths):
        count = len(list(group))
        yield start, start + count * length, count, length
        start += count * length
