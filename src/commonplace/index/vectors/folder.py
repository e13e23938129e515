"""A model from a folder of weights: run with numpy, or with onnxruntime if a graph lies there too."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from commonplace.index.vectors import safetensors
from commonplace.index.vectors.arrays import np
from commonplace.index.vectors.bert import Bert
from commonplace.index.vectors.model import NoModel
from commonplace.index.vectors.scripts import is_readable, scripts

_GRAPHS = ("model.onnx", "onnx/model.onnx")
_TOKENS = 512
"""Tokens that go through the model at once; more are no faster."""
_THREADS = min(4, os.cpu_count() or 1)

Run = Callable[[Sequence[Sequence[int]]], np.ndarray]


class FolderModel:
    """A model whose tokenizer and forward pass are at hand. `run` makes rows of token ids into unit vectors."""

    def __init__(self, tokenizer: Tokenizer, run: Run, most_tokens: int):
        tokenizer.no_padding()
        tokenizer.enable_truncation(most_tokens)
        self._tokenizer, self._run = tokenizer, run
        self._scripts = scripts(tokenizer.get_vocab(with_added_tokens=False))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, in batches of texts of about one length."""
        # One at a time: the tokenizer's own threads complain on stderr when the process forks.
        tokens = [self._tokenizer.encode(text).ids for text in texts]
        order = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))
        batches: list[list[list[int]]] = [[]]
        size = 0
        for at in order:
            if size >= _TOKENS:
                batches.append([])
                size = 0
            batches[-1].append(tokens[at])
            size += len(tokens[at])
        if len(batches) == 1:
            found = self._run(batches[0])
        else:
            with ThreadPoolExecutor(_THREADS) as threads:  # numpy lets the others run while it multiplies
                found = np.concatenate(list(threads.map(self._run, reversed(batches)))[::-1])
        result = np.empty_like(found)
        result[order] = found
        return result

    def reads(self, text: str) -> bool:
        return is_readable(text, self._scripts)


def open_folder(folder: Path) -> FolderModel:
    """The model in `folder`, laid out as sentence-transformers does. Raises NoModel."""
    try:
        config = _json(folder / "config.json")
        pooling = _json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
        first = bool(pooling.get("pooling_mode_cls_token"))
        if not first and not pooling.get("pooling_mode_mean_tokens"):
            raise ValueError("its pooling is neither the mean nor the first token")
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        most = int(config.get("max_position_embeddings", 512))
        most = min(most, int(_json(folder / "sentence_bert_config.json", {}).get("max_seq_length") or most))
        run = _graph(folder, first)
        if run is None:
            run = Bert(config, safetensors.read(folder / "model.safetensors"), first_token=first).run
    except OSError as error:
        raise NoModel(f"semantic.model: {folder} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        raise NoModel(f"semantic.model: {folder}: {error}.") from None
    return FolderModel(tokenizer, run, most)


def _json(path: Path, otherwise: dict[str, Any] | None = None) -> dict[str, Any]:
    if otherwise is not None and not path.is_file():
        return otherwise
    return json.loads(path.read_bytes())


def _graph(folder: Path, first_token: bool) -> Run | None:
    """The exported graph beside the weights, run by onnxruntime, if both are there."""
    graph = next((folder / name for name in _GRAPHS if (folder / name).is_file()), None)
    if graph is None:
        return None
    try:
        from onnxruntime import InferenceSession
    except ImportError:
        return None
    try:
        session = InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no base of their own
        if type(error).__module__.startswith("onnxruntime"):
            raise ValueError(f"{graph.name} cannot be used: {error}") from None
        raise
    names = {each.name for each in session.get_inputs()}

    def run(texts: Sequence[Sequence[int]]) -> np.ndarray:
        ids = np.zeros((len(texts), max(map(len, texts))), np.int64)
        mask = np.zeros_like(ids)
        for at, each in enumerate(texts):
            ids[at, : len(each)], mask[at, : len(each)] = each, 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = session.run(None, {name: array for name, array in given.items() if name in names})[0]
        found = states[:, 0] if first_token else (states * mask[:, :, None]).sum(1)
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)

    return run
