"""Public sets of questions nobody tuned on, read from checkouts of the repositories that hold them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random

from conversations import Question, from_locomo
from memoranda import Draft
from memoranda.text.tokens import words

REPOSITORIES = {
    "locomo": "LoCoMo's JSON: any files locomo*.json in the folder itself",
    "REALTALK": "https://github.com/danny911kr/REALTALK",
    "MemSim": "https://github.com/nuster1128/MemSim",
    "cranfield-trec-dataset": "https://github.com/oussbenk/cranfield-trec-dataset",
    "Information-Retrieval-on-CISI": "https://github.com/Shakiba-Alipour/Information-Retrieval-on-CISI",
    "xquad": "https://github.com/google-deepmind/xquad",
    "cmrc2018": "https://github.com/ymcui/cmrc2018",
    "DRCD": "https://github.com/DRCKnowledgeTeam/DRCD",
    "PrefEval": "https://github.com/amazon-science/PrefEval",
}
"""What a folder of sets may hold: the name of a checkout, and where it is found. Nothing of them is
shipped.
"""

_KNOWN_ITEMS = 300
_DAY = re.compile(r"(\d{4})年(\d\d?)月(\d\d?)日.*?(\d\d?):(\d\d)")


@dataclass(frozen=True)
class Text:
    """A text that stands alone: an abstract, a paragraph, a message."""

    key: str
    spoken: str
    title: str
    moment: datetime | None = None

    def draft(self, project: str = "notes") -> Draft:
        """The note it becomes."""
        if self.moment is None:
            date = None
        else:
            date = self.moment.isoformat(timespec="minutes")
        return Draft(self.spoken, project=project, folder="texts", title=self.title, date=date)


@dataclass(frozen=True)
class Home:
    """The texts of one home, and the questions asked there."""

    name: str
    texts: list
    questions: list[Question]


@dataclass(frozen=True)
class Collection:
    """A set by name: its homes, and the measure that is its figure: `recall`, `ndcg`, or `recall3`,
    of the first three or as many as there is evidence."""

    name: str
    measure: str
    homes: Callable[[], Iterator[Home]]


def found_in(folder: Path) -> list[Collection]:
    """The sets whose files are there."""
    sets: list[Collection] = []

    def add(name: str, measure: str, homes: Callable[[], Iterator[Home]]) -> None:
        sets.append(Collection(name, measure, homes))

    files = sorted(folder.glob("locomo*.json"))
    if files:
        add("LoCoMo", "recall", lambda: _chats(files))
        add("LoCoMo, keywords", "recall", lambda: map(keywords, _chats(files)))
    chats = sorted(folder.glob("REALTALK/data/Chat_*.json"))
    if chats:
        add("REALTALK", "recall", lambda: _chats(chats))
        add("REALTALK, keywords", "recall", lambda: map(keywords, _chats(chats)))
        add("REALTALK, two words", "ndcg", lambda: map(known_items, _chats(chats)))
    daily = sorted(folder.glob("MemSim/data_generation/final_dataset/messages_and_QAs/*.json"))
    if daily:
        add("MemDaily", "recall3", lambda: _daily(daily))
    if (place := folder / "cranfield-trec-dataset").is_dir():
        add("Cranfield", "ndcg", lambda: _cranfield(place))
        add("Cranfield, two words", "ndcg", lambda: map(known_items, _cranfield(place)))
        add(
            "Cranfield, titles",
            "ndcg",
            lambda: (known_items(home, by_title=True) for home in _cranfield(place)),
        )
    if (abstracts := folder / "Information-Retrieval-on-CISI").is_dir():
        add("CISI", "ndcg", lambda: _cisi(abstracts))
        add("CISI, two words", "ndcg", lambda: map(known_items, _cisi(abstracts)))
        add(
            "CISI, titles",
            "ndcg",
            lambda: (known_items(home, by_title=True) for home in _cisi(abstracts)),
        )
    for name, path in (
        ("XQuAD en", "xquad/xquad.en.json"),
        ("XQuAD zh", "xquad/xquad.zh.json"),
        ("CMRC zh", "cmrc2018/squad-style-data/cmrc2018_dev.json"),
        ("DRCD zh", "DRCD/DRCD_dev.json"),
    ):
        if (file := folder / path).is_file():
            add(name, "ndcg", lambda name=name, file=file: _paragraphs(name, file))
    stated = sorted(folder.glob("PrefEval/benchmark_dataset/explicit_preference/*.json"))
    if stated:
        add("Preferences", "recall", lambda: _preferences(stated))
    return sets


def keywords(home: Home) -> Home:
    """The same home, asked for the informative words of each question, without a question mark."""
    questions = [
        Question(question.id, " ".join(words(question.text)), *_rest(question))
        for question in home.questions
    ]
    return Home(home.name, home.texts, questions)


def known_items(home: Home, by_title: bool = False) -> Home:
    """The same home, asked for some of its texts: two informative words of a sentence, or of the
    title.
    """
    chance = Random(15)
    questions = []
    for text_of_home in chance.sample(home.texts, min(len(home.texts), _KNOWN_ITEMS)):
        if by_title:
            sentences = [text_of_home.title.rpartition(" ")[0]]
        else:
            sentences = re.split(r"(?<=[.!?])\s|\n|: ", text_of_home.spoken)
        possible = []
        for sentence in sentences:
            sentence_words = [word for word in words(sentence) if word.isalpha()]
            if len(sentence_words) > 1:
                possible.append(sentence_words)
        if possible:
            text = " ".join(chance.sample(chance.choice(possible), 2))
            questions.append(
                Question(
                    f"{text_of_home.key}-item",
                    text,
                    "",
                    "all",
                    (text_of_home.key,),
                    (text_of_home.key,),
                )
            )
    return Home(home.name, home.texts, questions)


def _rest(question: Question) -> tuple[str, int | str, tuple[str, ...], tuple[str, ...]]:
    return question.answer, question.category, question.evidence, question.sessions


def _chats(files: list[Path]) -> Iterator[Home]:
    """Conversations in LoCoMo's form, categories 1 to 4; REALTALK's have their texts and times
    under other names.
    """
    for file in files:
        content = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(content, dict) and "qa" in content and "conversation" not in content:
            content = [
                {"sample_id": file.stem, "conversation": _as_locomo(content), "qa": content["qa"]}
            ]
        for conversation in from_locomo(content, file.stem):
            yield Home(
                conversation.id,
                conversation.turns,
                [
                    question
                    for question in conversation.questions
                    if question.category in (1, 2, 3, 4)
                ],
            )


def _as_locomo(raw: dict) -> dict:
    locomo = {key: value for key, value in raw.items() if not key.endswith("_date_time")}
    for key, value in raw.items():
        if re.fullmatch(r"session_\d+", key):
            locomo[key] = [{**turn, "text": turn.get("clean_text")} for turn in value]
            time_key = f"{key}_date_time"
            written = raw[time_key].strip()
            moment = datetime.strptime(written, "%d.%m.%Y, %H:%M:%S")
            locomo[time_key] = f"{moment:%I:%M %p on %d %B, %Y}"
    return locomo


def _daily(files: list[Path]) -> Iterator[Home]:
    """One home for each history of messages."""
    for file in files:
        for load in json.loads(file.read_text(encoding="utf-8")):
            name = f"{file.stem}/{load['tid']}"
            texts = []
            for entry in load["message_list"]:
                day = _DAY.search(entry["time"])
                moment = datetime(*map(int, day.groups())) if day else None  # type: ignore[arg-type]
                texts.append(
                    Text(
                        f"{name}/{entry['mid']}",
                        entry["message"],
                        f"Message {entry['mid']:03}",
                        moment,
                    )
                )
            questions = []
            for entry in load["question_list"]:
                evidence = tuple(
                    f"{name}/{step}" for step in dict.fromkeys(entry["target_step_id"])
                )
                kind = file.stem.partition("_")[2].partition("_")[0]
                questions.append(
                    Question(
                        f"{name}-q{entry['qid']}", entry["question"], "", kind, evidence, evidence
                    )
                )
            yield Home(name, texts, [question for question in questions if question.evidence])


def _cranfield(folder: Path) -> Iterator[Home]:
    documents = (folder / "cran.all.1400.xml").read_text(encoding="utf-8")
    texts = []
    for number, title, body in re.findall(
        r"<doc>\s*<docno>\s*(\d+).*?<title>(.*?)</title>.*?<text>(.*?)</text>", documents, re.S
    ):
        if body.strip():
            texts.append(Text(number, _flat(body), f"{_flat(title)[:100]} {number}"))
    known_keys = {text_of_set.key for text_of_set in texts}
    relevant: dict[int, list[str]] = {}
    for line in (folder / "cranqrel.trec.txt").read_text(encoding="utf-8").splitlines():
        if len(parts := line.split()) == 4 and parts[3] != "0" and parts[2] in known_keys:
            relevant.setdefault(int(parts[0]), []).append(parts[2])
    queries = (folder / "cran.qry.xml").read_text(encoding="utf-8")
    questions = []
    # Judged by their order
    for at, text in enumerate(re.findall(r"<title>(.*?)</title>", queries, re.S), 1):
        evidence = tuple(relevant.get(at, ()))
        if evidence:
            questions.append(
                Question(f"cranfield-q{at}", _flat(text), "", "all", evidence, evidence)
            )
    yield Home("cranfield", texts, questions)


def _cisi(folder: Path) -> Iterator[Home]:
    texts = []
    questions = []
    for number, title, body in re.findall(
        r"^\.I (\d+)\n\.T\s*?\n(.*?)\n\.A.*?^\.W\s*?\n(.*?)(?=^\.X|^\.I |\Z)",
        (folder / "CISI.ALL").read_text("utf-8", "replace"),
        re.S | re.M,
    ):
        texts.append(
            Text(number, f"# {_flat(title)}\n\n{_flat(body)}", f"{_flat(title)[:100]} {number}")
        )
    known_keys = {text_of_set.key for text_of_set in texts}
    relevant: dict[str, list[str]] = {}
    for line in (folder / "CISI.REL").read_text("utf-8").splitlines():
        query, document, *_ = line.split()
        if document in known_keys:
            relevant.setdefault(query, []).append(document)
    queries = (folder / "CISI.QRY").read_text("utf-8", "replace")
    for number, text in re.findall(
        r"^\.I (\d+)\n.*?^\.W\s*?\n(.*?)(?=^\.[A-Z]|\Z)", queries, re.S | re.M
    ):
        evidence = tuple(relevant.get(number, ()))
        if evidence:
            questions.append(
                Question(f"cisi-q{number}", _flat(text), "", "all", evidence, evidence)
            )
    yield Home("cisi", texts, questions)


def _paragraphs(name: str, file: Path) -> Iterator[Home]:
    """A set in SQuAD's form: which paragraph answers the question?"""
    texts = []
    questions = []
    for article in json.loads(file.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            key = f"paragraph {len(texts) + 1}"
            texts.append(Text(key, paragraph["context"], key.capitalize()))
            for question in paragraph["qas"]:
                questions.append(
                    Question(str(question["id"]), question["question"], "", "all", (key,), (key,))
                )
    yield Home(name, texts, questions)


def _preferences(files: list[Path]) -> Iterator[Home]:
    """All preferences in one home: which one does a request call for that does not name it?"""
    texts = []
    questions = []
    for file in files:
        rows = json.loads(file.read_text(encoding="utf-8"))
        for number, row in enumerate(rows, 1):
            key = f"{file.stem}-{number}"
            title = f"Memory {len(texts) + 1}"
            texts.append(Text(key, row["preference"], title))
            questions.append(Question(key, row["question"], "", "all", (key,), (key,)))
    yield Home("preferences", texts, questions)


def _flat(text: str) -> str:
    return " ".join(text.split())
