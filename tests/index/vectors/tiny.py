"""A small model made here, in the form of a real one, and the forward pass as the paper has it."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

WORDS = tuple(
    (  # noqa: SIM905
        "the a we you they is are was to of in on and for with not new old big small red blue dark light mode editor "
        "theme bread cheese soup dinner lunch breakfast cook bake oven kitchen database server billing invoice service "
        "migrate deploy release branch commit review test build fix bug error crash slow fast memory note file folder "
        "train plane car bike road city house garden tree flower river lake mountain snow rain sun wind summer winter "
        "doctor dentist friend sister brother mother father child birthday wedding party music piano guitar song book "
        "novel poem paint color paper pencil school teacher student lesson exam answer question monday tuesday friday "
        "sunday week month year today tomorrow meeting call mail letter phone money bank price cheap market shop"
    ).split()
)
SHAPE = {
    "hidden_size": 24,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "intermediate_size": 40,
}


def make(folder: Path, *, seed: int = 1, first_token: bool = False, **config: Any) -> Path:
    """Write a model of random weights into `folder`: config.json, tokenizer.json,
    model.safetensors. Returns it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        *"0123456789.,:?!-",
        *letters,
        *(f"##{letter}" for letter in letters),
    ]
    vocabulary = {piece: at for at, piece in enumerate(dict.fromkeys([*pieces, *WORDS]))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    # As the real one's file has it; no vector may depend on it
    tokenizer.enable_padding(length=32)
    tokenizer.save(str(folder / "tokenizer.json"))
    shape = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 48,
        "vocab_size": len(vocabulary),
        **SHAPE,
        **config,
    }
    (folder / "config.json").write_text(json.dumps(shape))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"pooling_mode_cls_token": first_token, "pooling_mode_mean_tokens": not first_token}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    write_safetensors(folder / "model.safetensors", weights(shape, seed))
    return folder


def weights(shape: dict[str, Any], seed: int) -> dict[str, np.ndarray]:
    """Random weights; words differ much, and the layers change little, so that texts of common
    words are alike.
    """
    chance = np.random.default_rng(seed)
    size = shape["hidden_size"]
    wide = shape["intermediate_size"]

    def array(*sides: int, scale: float = 0.15) -> np.ndarray:
        return (chance.standard_normal(sides) * scale).astype(np.float32)

    found = {
        "embeddings.word_embeddings.weight": array(shape["vocab_size"], size, scale=1),
        "embeddings.position_embeddings.weight": array(
            shape["max_position_embeddings"], size, scale=0.05
        ),
        "embeddings.token_type_embeddings.weight": array(2, size, scale=0.05),
    }
    norms = ["embeddings.LayerNorm"]
    for at in range(shape["num_hidden_layers"]):
        start = f"encoder.layer.{at}"
        sides = {
            "attention.self.query": (size, size),
            "attention.self.key": (size, size),
            "attention.self.value": (size, size),
            "attention.output.dense": (size, size),
            "intermediate.dense": (wide, size),
            "output.dense": (size, wide),
        }
        for name, (rows, columns) in sides.items():
            found[f"{start}.{name}.weight"] = array(rows, columns)
            found[f"{start}.{name}.bias"] = array(rows)
        norms += [f"{start}.attention.output.LayerNorm", f"{start}.output.LayerNorm"]
    for name in norms:
        found[f"{name}.weight"] = 1 + array(size)
        found[f"{name}.bias"] = array(size)
    return found


def write_safetensors(
    path: Path, arrays: dict[str, np.ndarray], types: dict[str, str] | None = None
) -> None:
    """The arrays as a safetensors file; `types` names the type of those that are not float32."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    blob = b""
    for name, array in arrays.items():
        data = array.tobytes()
        header[name] = {
            "dtype": (types or {}).get(name, "F32"),
            "shape": list(array.shape),
            "data_offsets": [len(blob), len(blob) + len(data)],
        }
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob)


def reference(folder: Path, ids: list[int], *, first_token: bool = False) -> np.ndarray:
    """The unit vector of one text in double precision, token by token and head by head."""
    config = json.loads((folder / "config.json").read_text())
    data = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])

    def weight(name: str) -> np.ndarray:
        start, stop = header[name]["data_offsets"]
        assert header[name]["dtype"] == "F32"
        array = np.frombuffer(data[8 + size + start : 8 + size + stop], "<f4")
        return array.astype(float).reshape(header[name]["shape"])

    def dense(name: str, vector: np.ndarray) -> np.ndarray:
        return weight(f"{name}.weight") @ vector + weight(f"{name}.bias")

    def norm(name: str, vector: np.ndarray) -> np.ndarray:
        around = vector - vector.mean()
        scaled = around / math.sqrt((around**2).mean() + config["layer_norm_eps"])
        return scaled * weight(f"{name}.weight") + weight(f"{name}.bias")

    names = ("word", "position", "token_type")
    words, places, kinds = (weight(f"embeddings.{name}_embeddings.weight") for name in names)
    tokens = [
        norm("embeddings.LayerNorm", words[one] + places[at] + kinds[0])
        for at, one in enumerate(ids)
    ]
    heads = config["num_attention_heads"]
    each = config["hidden_size"] // heads
    for layer in range(config["num_hidden_layers"]):
        start = f"encoder.layer.{layer}"
        query, key, value = (
            [dense(f"{start}.attention.self.{name}", one) for one in tokens]
            for name in ("query", "key", "value")
        )
        after = []
        for at, token in enumerate(tokens):
            seen = np.zeros(config["hidden_size"])
            for head in range(heads):
                part = slice(head * each, head * each + each)
                scores = np.array([query[at][part] @ one[part] / math.sqrt(each) for one in key])
                shares = np.exp(scores - scores.max())
                shares /= shares.sum()
                seen[part] = sum(
                    share * one[part] for share, one in zip(shares, value, strict=True)
                )
            token = norm(
                f"{start}.attention.output.LayerNorm",
                token + dense(f"{start}.attention.output.dense", seen),
            )
            wide = dense(f"{start}.intermediate.dense", token)
            wide = np.array([0.5 * one * (1 + math.erf(one / math.sqrt(2))) for one in wide])
            after.append(
                norm(f"{start}.output.LayerNorm", token + dense(f"{start}.output.dense", wide))
            )
        tokens = after
    if first_token:
        found = tokens[0]
    else:
        found = np.mean(tokens, axis=0)
    return found / np.linalg.norm(found)
