"""Recall for what agents really ask: turns of a talk, dialogues, long chats; ours by words beside
a plain FTS5 table.

    python bench/needs.py FOLDER [--only NAME ...] [--half fit|rest] [--homes N] [--keep FILE]
                          [--beside FILE] [--meaning] [--vectors FOLDER] [--turns]

FOLDER holds sets: folders with `notes.jsonl` and `questions.jsonl`, and files in LoCoMo's form.

The protocol. Each question is asked of the home it belongs to. Recall at 10 is the share of its evidence among
the first ten texts. Questions without evidence are left out, as are summaries and orders of events.
Where questions name `evidence_sessions`, a session is one note. The home then grows by its days, and
a session is added once all that is asked in it was asked. With `--turns` each turn is a note there, and
sessions count that have a turn among the first ten. The control is one table in memory: porter,
informative words joined by OR, bm25.

`--half` takes the questions whose hash is even, to fit on, or the others, to accept by. Intervals
are of 95 percent, by paired bootstrap. With `--meaning` the model that a home uses by default takes part,
and the second control is that model alone: the cosine of the nearest passage. Only totals are printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
for place in (HERE, HERE.parent / "src"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

from haystacks import read  # noqa: E402
from held_out import interval  # noqa: E402
from memoranda import Draft  # noqa: E402
from memoranda.text.tokens import fts_text, pairs, query_text, words  # noqa: E402
from retrieval import ByWords, Ours, Place  # noqa: E402
from shelf import ModelAlone, Shelf  # noqa: E402

PAGE = 10
_NOT_RECALL = ("abstention", "summarization", "event_ordering")
_MOMENTS = ("%Y-%m-%d", "%B-%d-%Y")


@dataclass(frozen=True)
class Text:
    """A note of a set; `day` is empty where the set names none.

    `session` is what counts as found with it: "" for the note itself.
    """

    key: str
    spoken: str
    day: str
    folder: str = ""
    title: str | None = None
    speaker: str | None = None
    session: str = ""

    @property
    def unit(self) -> str:
        """What questions have as evidence: the session of a turn, or the note."""
        return self.session or self.key

    def draft(self, project: str = "notes") -> Draft:
        """The memory an import makes of it."""
        return Draft(
            self.spoken,
            project=project,
            folder=self.folder,
            title=self.title,
            source=self.speaker,
            date=self.day or None,
        )


@dataclass(frozen=True)
class Asked:
    """A question; `day` bounds what the home holds, `without` is the text in which it is asked."""

    id: str
    text: str
    evidence: frozenset[str]
    day: str = ""
    without: str = ""


@dataclass
class Home:
    """The texts of one person and what is asked of them."""

    name: str
    texts: list[Text]
    questions: list[Asked]


@dataclass(frozen=True)
class Figure:
    """Recall of one question, and the milliseconds of processor time ours took."""

    id: str
    ours: float
    control: float
    took: float
    model: float = 0.0


class Control:
    """One FTS5 table with porter and bm25(): informative words joined by OR."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute(
            "create virtual table one using fts5(key unindexed, body,"
            " tokenize = 'porter unicode61 remove_diacritics 2')"
        )

    def close(self) -> None:
        self._db.close()

    def load(self, texts: Sequence[Text]) -> None:
        rows = [(text.key, fts_text(text.spoken)) for text in texts]
        self._db.executemany("insert into one values (?, ?)", rows)

    def find(self, text: str, depth: int) -> list[str]:
        word_pairs = []
        for word in words(text):
            word_pairs.extend(pairs(word))
        phrases = [query_text(word)[0] for word in word_pairs]
        match = " OR ".join(f'"{phrase}"' for phrase in dict.fromkeys(phrases) if phrase)
        if not match:
            return []
        sql = "select key from one where one match ? order by rank limit ?"
        return [key for (key,) in self._db.execute(sql, (match, depth))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _arguments(arguments)
    before = {}
    if options.beside:
        before = json.loads(options.beside.read_text(encoding="utf-8"))
    figures_by_set: dict[str, dict[str, float]] = {}
    shelf = Shelf(options.vectors) if options.meaning else None
    columns = f"{'n':>5}{'FTS5':>7}{'ours':>7}   ours - FTS5{'':<18}ours - before"
    print(f"{'R@10':<16}{columns}{'':<11}ms")
    for name, homes in _sets(options.folder, by_turn=options.turns):
        if options.only and name not in options.only:
            continue
        figures = []
        for home in homes[: options.homes]:
            figures.extend(_measured(home, options.half, shelf))
        if not figures:
            continue
        figures_by_set[name] = {figure.id: figure.ours for figure in figures}
        _print(name, figures, before.get(name, {}))
    if options.keep:
        options.keep.write_text(json.dumps(figures_by_set), encoding="utf-8")
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER")
    add("--only", nargs="+", metavar="NAME", help="only these sets")
    add("--half", choices=("fit", "rest"), help="only these questions")
    add("--homes", type=int, metavar="N", help="only the first N homes of each set")
    add("--meaning", action="store_true", help="with the model that a home uses by default")
    add("--turns", action="store_true", help="a note for each turn, where sessions are asked for")
    add("--vectors", type=Path, metavar="FOLDER", help="keep vectors here, for the next run")
    add("--keep", type=Path, metavar="FILE", help="write the figure of each question")
    add("--beside", type=Path, metavar="FILE", help="compare with what was kept")
    return parser.parse_args(arguments)


def _sets(folder: Path, *, by_turn: bool) -> Iterator[tuple[str, list[Home]]]:
    for path in sorted(folder.iterdir()):
        if (path / "questions.jsonl").is_file():
            yield path.name, _homes(path, by_turn=by_turn)
        elif path.suffix == ".json":
            yield path.stem, _conversations(path)


def _conversations(path: Path) -> list[Home]:
    """LoCoMo: a turn is a note; its fifth category has no answer."""
    homes = []
    for conversation in read([path]):
        texts = []
        for turn in conversation.turns:
            day = "" if turn.moment is None else turn.moment.isoformat(timespec="minutes")
            title = f"Turn {turn.number:03}"
            texts.append(Text(turn.key, turn.spoken, day, turn.session, title, turn.speaker))
        questions = [
            Asked(question.id, question.text, frozenset(question.evidence))
            for question in conversation.questions
            if question.category in (1, 2, 3, 4) and question.evidence
        ]
        homes.append(Home(conversation.id, texts, questions))
    return homes


def _homes(folder: Path, *, by_turn: bool) -> list[Home]:
    notes = _lines(folder / "notes.jsonl")
    questions = _lines(folder / "questions.jsonl")
    by_session = any("evidence_sessions" in question for question in questions)
    homes = []
    for name in dict.fromkeys(note["home"] for note in notes):
        notes_of_home = [note for note in notes if note["home"] == name]
        texts = _sittings(notes_of_home) if by_session else _turns(notes_of_home)
        days = {text.key: text.day for text in texts}
        if by_session and by_turn:
            texts = _turns_of_sessions(notes_of_home)
        home = Home(name, texts, [])
        for question in questions:
            if question["home"] == name:
                home.questions += _asked(question, days)
        homes.append(home)
    return homes


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _asked(raw: dict, days: dict[str, str]) -> list[Asked]:
    """The question, unless nothing that counts is its evidence."""
    day = _day(raw.get("asked_at"))
    without = str(raw.get("asked_in") or "").partition(":")[0]
    evidence = raw.get("evidence_sessions") or raw["evidence"]
    counted = frozenset(
        key for key in evidence if key in days and key != without and (not day or days[key] <= day)
    )
    if not counted or raw["kind"] in _NOT_RECALL:
        return []
    key = f"{raw['home']}/{raw['id']}"
    return [Asked(key, raw["question"], counted, day, without)]


def _turns(notes: Sequence[dict]) -> list[Text]:
    """Each note as it is, those of a conversation in its folder with the speaker in front."""
    texts = []
    day = ""
    for number, note in enumerate(notes, 1):
        day = _day(note["time"]) or day
        speaker = note["speaker"]
        if speaker is None:
            texts.append(Text(note["id"], note["text"], day, title=f"Memory {number:03}"))
            continue
        spoken = f"{speaker}: {note['text']}"
        title = f"Turn {number:03}"
        texts.append(Text(note["id"], spoken, day, note["session"] or "", title, speaker))
    return texts


def _turns_of_sessions(notes: Sequence[dict]) -> list[Text]:
    """Each turn as a note, by day. It counts as its session."""
    turns = [replace(turn, session=turn.folder) for turn in _turns(notes)]
    return sorted(turns, key=lambda turn: turn.day)


def _sittings(notes: Sequence[dict]) -> list[Text]:
    """Each session as one note, by day."""
    sessions: dict[str, list[dict]] = {}
    for note in notes:
        sessions.setdefault(note["session"], []).append(note)
    texts = []
    for key, turns in sessions.items():
        lines = [f"{turn['speaker']}: {turn['text']}" for turn in turns]
        spoken = "\n\n".join(lines)
        day = _day(turns[0]["time"])
        texts.append(Text(key, spoken, day, "sessions", f"Session {key}"))
    return sorted(texts, key=lambda text: text.day)


def _day(written: object) -> str:
    first = str(written or "").split(" ")[0]
    for form in _MOMENTS:
        try:
            return datetime.strptime(first, form).date().isoformat()
        except ValueError:
            continue
    return ""


def _is_chosen(question: Asked, half: str | None) -> bool:
    if half is None:
        return True
    is_even = hashlib.sha256(question.id.encode()).digest()[0] % 2 == 0
    return is_even == (half == "fit")


def _measured(home: Home, half: str | None, shelf: Shelf | None) -> Iterator[Figure]:
    questions = sorted(home.questions, key=lambda pending: (pending.day, pending.without))
    later_texts = list(home.texts)
    # The notes of the home at this time, with what counts as found with them.
    known_units: dict[str, str] = {}
    with TemporaryDirectory(prefix="memoranda-needs-") as scratch:
        pipeline = ByWords if shelf is None else Ours
        ours = pipeline(Place(Path(scratch), shelf))
        control = Control()
        alone = None if shelf is None else ModelAlone(shelf)
        finders = [ours, control] if alone is None else [ours, control, alone]
        for number, question in enumerate(questions):
            asked_later = {later.without for later in questions[number:]}
            new = [text for text in later_texts if _is_there(text, question, asked_later)]
            if new:
                for finder in finders:
                    finder.load(new)
                known_units |= {text.key: text.unit for text in new}
                later_texts = [text for text in later_texts if text.key not in known_units]
            evidence = question.evidence & set(known_units.values())
            if evidence and _is_chosen(question, half):
                yield _figure(question, evidence, known_units, ours, control, alone)
        ours.close()
        control.close()


def _figure(
    question: Asked,
    evidence: frozenset[str],
    units: dict[str, str],
    ours: ByWords,
    control: Control,
    alone: ModelAlone | None,
) -> Figure:
    """The figures of one question.

    units: what counts as found with each note.
    """
    begin = time.process_time()
    our_keys = ours.find(question.text, PAGE)
    took = (time.process_time() - begin) * 1000
    plain_keys = control.find(question.text, PAGE)
    near_keys = []
    if alone is not None:
        near_keys = alone.find(question.text, PAGE)
    recall = _recall(our_keys, evidence, units)
    plain_recall = _recall(plain_keys, evidence, units)
    near_recall = _recall(near_keys, evidence, units)
    return Figure(question.id, recall, plain_recall, took, near_recall)


def _is_there(text: Text, question: Asked, asked_later: set[str]) -> bool:
    """Whether the home holds this text by the time the question is asked: a session in which this
    or a later question is asked is not over."""
    has_come = not question.day or text.day <= question.day
    return has_come and text.unit not in asked_later


def _recall(keys: Sequence[str], evidence: frozenset[str], units: dict[str, str]) -> float:
    units_found = {units[key] for key in keys[:PAGE]}
    return len(evidence & units_found) / len(evidence)


def _print(name: str, figures: Sequence[Figure], before: dict[str, float]) -> None:
    ours = 100 * fmean(figure.ours for figure in figures)
    control = 100 * fmean(figure.control for figure in figures)
    line = f"{name:<16}{len(figures):>5}{control:>7.1f}{ours:>7.1f}   "
    differences = [figure.ours - figure.control for figure in figures]
    line += f"{_compared(differences):<28}"

    again = [figure for figure in figures if figure.id in before]
    change = ""
    if again:
        change = _compared([figure.ours - before[figure.id] for figure in again])
    took = median(figure.took for figure in figures)
    line += f"{change:<22}{took:>5.1f}"

    if any(figure.model for figure in figures):
        alone = 100 * fmean(figure.model for figure in figures)
        differences = [figure.ours - figure.model for figure in figures]
        line += f"   model {alone:.1f}, ours - model {_compared(differences)}"
    print(line, flush=True)


def _compared(differences: Sequence[float]) -> str:
    low, high = interval(differences)
    return f"{100 * fmean(differences):+.1f} [{low:+.1f} {high:+.1f}]"


if __name__ == "__main__":
    sys.exit(main())
