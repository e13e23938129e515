"""The bench of public sets: their forms are read, and figures and intervals are right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import held_out
import public_sets
from conversations import Question


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with four made-up sets in the forms of the public ones."""
    daily = tmp_path / "MemSim/data_generation/final_dataset/messages_and_QAs"
    daily.mkdir(parents=True)
    messages = [
        {"mid": at, "message": text, "time": "2024年04月01日 周一 08:12"}
        for at, text in enumerate(("我在上海工作", "我养了一只猫"))
    ]
    questions = [{"qid": 0, "question": "谁有一只猫？", "target_step_id": [1, 1]}]
    content = [{"tid": 0, "message_list": messages, "question_list": questions}]
    (daily / "01_simple_roles.json").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "xquad").mkdir()
    paragraphs = [
        {"context": text, "qas": [{"id": text[:3], "question": f"{text.split()[1]}?"}]}
        for text in ("The heron waits", "The kettle sings")
    ]
    squad = {"data": [{"paragraphs": paragraphs}]}
    (tmp_path / "xquad/xquad.en.json").write_text(json.dumps(squad), encoding="utf-8")
    cisi = tmp_path / "Information-Retrieval-on-CISI"
    cisi.mkdir()
    documents = ".I 1\n.T\nOld catalogues\n.A\nNobody\n.W\nCards in drawers.\n.X\n1\t5\t1\n"
    documents += ".I 2\n.T\nNew shelves\n.A\nNobody\n.W\nBooks by colour.\n.X\n2\t5\t1\n"
    (cisi / "CISI.ALL").write_text(documents, encoding="utf-8")
    (cisi / "CISI.QRY").write_text(
        ".I 1\n.W\nWhere are the cards?\n.I 2\n.W\nWho?\n", encoding="utf-8"
    )
    (cisi / "CISI.REL").write_text("     1      1\t0\t0.000000\n", encoding="utf-8")
    (tmp_path / "REALTALK/data").mkdir(parents=True)
    turns = [
        {"clean_text": "I paint boats", "speaker": "Ada", "dia_id": "D1:1"},
        {"clean_text": "Nice!", "speaker": "Mel", "dia_id": "D1:2"},
    ]
    chat = {
        "session_1": turns,
        "session_1_date_time": "29.12.2023, 22:42:04",
        "qa": [{"question": "What does Ada paint?", "evidence": ["D1:1"], "category": 1}],
    }
    (tmp_path / "REALTALK/data/Chat_1.json").write_text(json.dumps(chat), encoding="utf-8")
    return tmp_path


def test_every_set_in_the_folder_is_measured_and_compared(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept_file = folder / "kept.json"
    assert held_out.main([str(folder), "--keep", str(kept_file)]) == 0
    figures = json.loads(kept_file.read_text(encoding="utf-8"))
    assert list(figures) == [
        "REALTALK",
        "REALTALK, keywords",
        "REALTALK, two words",
        "MemDaily",
        "CISI",
        "CISI, two words",
        "CISI, titles",
        "XQuAD en",
    ]
    assert [len(some) for some in figures.values()] == [1, 1, 1, 1, 1, 2, 2, 1]
    assert all(value == 1.0 for some in figures.values() for value in some.values())
    capsys.readouterr()
    assert held_out.main([str(folder), "--only", "MemDaily", "--beside", str(kept_file)]) == 0
    assert "+0.0 [+0.0 +0.0]" in capsys.readouterr().out


def test_an_empty_folder_is_said_to_hold_no_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert held_out.main([str(tmp_path)]) == 1
    assert "--where" in capsys.readouterr().err
    assert held_out.main(["--where"]) == 0
    assert "danny911kr/REALTALK" in capsys.readouterr().out


def test_keywords_are_the_informative_words_without_a_question_mark() -> None:
    home = public_sets.Home("a", [], [Question("q", "What did Ada paint?", "", 1, ("k",), ("k",))])
    assert public_sets.keywords(home).questions[0].text == "ada paint"


@pytest.mark.parametrize(("measure", "share"), [("recall", 1.0), ("recall3", 0.5)])
def test_the_depth_of_a_figure_is_that_of_its_set(measure: str, share: float) -> None:
    question = Question("q", "", "", "all", ("a", "d"), ("a", "d"))
    assert held_out.figure(measure, ["a", "b", "c", "d"], question) == share


def test_the_interval_lies_around_the_mean_and_is_the_same_every_time() -> None:
    differences = [0.0, 1.0] * 50
    low, high = held_out.interval(differences)
    assert 30 < low < 50 < high < 70
    assert held_out.interval(differences) == (low, high)
