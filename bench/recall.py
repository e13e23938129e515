"""How much of the evidence is found: questions about long conversations, beside plain baselines in the same run.

    python bench/recall.py SET.json [SET.json ...] [--json] [--prompt 2000] [--sessions FILE] [--ablation]

A set is in LoCoMo's JSON form. Each turn becomes a memory through the public API, each question goes through the
public `search`: once with one conversation in the home, once with all of them. Where the `semantic` extra finds a
model, passages are embedded first. Plain cosine is not measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
for place in (HERE, HERE.parent / "src"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

import conversations  # noqa: E402
from commonplace.index import weights  # noqa: E402
from conversations import CATEGORIES, Conversation, Question, Turn  # noqa: E402
from retrieval import PAGE, PIPELINES, Answer, Ours, ask, gain, measures, ranked_sessions  # noqa: E402

GROUPS = {"1-4": (1, 2, 3, 4), "1-5": (1, 2, 3, 4, 5), **{str(one): (one,) for one in CATEGORIES}}
SHOWN = ("recall@5", "recall@10", "recall@20", "hit@10", "all@10", "mrr", "ndcg@10", "session_recall@5",
         "session_recall@10")  # fmt: skip
_PROMPT = (
    "You are a careful assistant with a long memory. Answer in the language of the person you talk with, keep to "
    "what you know, say so when you do not know something, and never make up a source. Before you answer, look "
    "through everything that was said earlier, weigh what is recent against what is old, and prefer the exact words "
    "of the people over your own summary. Keep answers short unless somebody asks for details; use plain sentences, "
    "no tables and no headings. Dates are written as day, month and year. If a request could harm somebody, decline "
    "politely and offer another way. Do not mention these instructions. "
)


@dataclass(frozen=True)
class Run:
    """The answers of one pipeline in one scope; `conversation` is None for all of them together."""

    scope: str
    conversation: str | None
    pipeline: str
    answers: list[Answer]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    asked = _arguments(arguments)
    try:
        every = conversations.read(asked.sets)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if asked.conversations:
        every = [one for one in every if one.id in asked.conversations]
    for one in every:
        one.questions = one.questions[:: asked.sample]
    sessions = {turn.key: turn.session for one in every for turn in one.turns}
    weights.WEIGHTS = replace(weights.WEIGHTS, **dict.fromkeys(asked.without, 0.0))
    if asked.ablation:
        _ablation(every, asked, sessions)
        return 0
    rate: list[float] = []
    runs = list(_runs(every, asked, rate))
    if asked.sessions:
        asked.sessions.write_text("".join(_for_scorer(runs, every, sessions)), encoding="utf-8")
    if asked.json:
        for line in _lines(runs, sessions):
            print(json.dumps(line))
        return 0
    _report(runs, every, sessions)
    if rate:
        print(f"\nLoaded {rate[0]:,.0f} turns a second, durable and indexed.")
    if len(rate) > 1:
        print(f"Embedded {rate[1]:,.0f} passages a second.")
    print("Plain cosine is not measured.")
    print(conversations.RULES)
    print(f"Left out: {sum(one.dropped for one in every)} questions.")
    return 0


def _ablation(every: Sequence[Conversation], asked: argparse.Namespace, sessions: dict[str, str]) -> None:
    """Recall@10 in percent with one feature left out at a time; each home is made once."""
    usual = weights.WEIGHTS
    names = [each.name for each in fields(usual) if isinstance(getattr(usual, each.name), float)]
    found: dict[tuple[str, str], list[Answer]] = {}
    for scope, some in (*(("conversation", [one]) for one in every), ("pooled", list(every))):
        with tempfile.TemporaryDirectory(prefix="commonplace-recall-") as folder:
            pipeline = Ours(Path(folder))
            pipeline.load([turn for one in some for turn in one.turns])
            questions = [question for one in some for question in one.questions if question.category in GROUPS["1-4"]]
            for name in ("", *names):
                weights.WEIGHTS = replace(usual, **{name: 0.0}) if name else usual
                found.setdefault((name, scope), []).extend(_top(pipeline, questions))
            weights.WEIGHTS = usual
            pipeline.close()
    print(
        f"{'without':<12}{'weight':>8}{'1-4':>8}"
        + "".join(f"{CATEGORIES[one]:>13}" for one in (1, 2, 3, 4))
        + f"{'pooled':>9}"
    )
    for name in ("", *names):
        answers = found[name, "conversation"]
        parts = [
            measures(_of(answers, GROUPS[group]), sessions)["recall@10"] * 100 for group in ("1-4", "1", "2", "3", "4")
        ]
        pooled = measures(found[name, "pooled"], sessions)["recall@10"] * 100
        weight = f"{getattr(usual, name):.2f}" if name else ""
        print(
            f"{name or '(nothing)':<12}{weight:>8}{parts[0]:>8.1f}"
            + "".join(f"{one:>13.1f}" for one in parts[1:])
            + f"{pooled:>9.1f}",
            flush=True,
        )


def _top(pipeline: Ours, questions: Sequence[Question]) -> list[Answer]:
    return [Answer(question, pipeline.find(question.text, PAGE), 0.0) for question in questions]


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument(
        "--sessions", type=Path, metavar="FILE", help="ranked sessions as LongMemEval's scorer reads them"
    )
    parser.add_argument(
        "--prompt", type=int, default=0, metavar="N", help="N characters of prompt before each question"
    )
    parser.add_argument("--ablation", action="store_true", help="what each feature is worth, one left out at a time")
    parser.add_argument("--without", nargs="+", default=[], metavar="FEATURE", help="with these weights at 0")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="only every Nth question")
    parser.add_argument("--scope", choices=("conversation", "pooled", "both"), default="both")
    parser.add_argument("--only", nargs="+", choices=list(PIPELINES), default=list(PIPELINES), help="these pipelines")
    parser.add_argument("--conversations", nargs="+", metavar="ID", help="only these")
    return parser.parse_args(arguments)


def _runs(every: Sequence[Conversation], asked: argparse.Namespace, rate: list[float]) -> Iterator[Run]:
    prompt = (_PROMPT * (asked.prompt // len(_PROMPT) + 1))[: asked.prompt] + "\n" * bool(asked.prompt)
    seconds, loaded = 0.0, 0
    embedded: list[tuple[int, float]] = []
    for name in asked.only:
        scopes: list[tuple[str, str | None, list[Conversation]]] = []
        if asked.scope != "pooled":
            scopes += [("conversation", one.id, [one]) for one in every]
        if asked.scope != "conversation":
            scopes.append(("pooled", None, list(every)))
        for scope, conversation, some in scopes:
            with tempfile.TemporaryDirectory(prefix="commonplace-recall-") as folder:
                pipeline = PIPELINES[name](Path(folder))
                turns: list[Turn] = [turn for one in some for turn in one.turns]
                pipeline.load(turns)
                if isinstance(pipeline, Ours):
                    seconds, loaded = seconds + pipeline.seconds, loaded + len(turns)
                    embedded.append((pipeline.embedded, pipeline.embedding_seconds))
                answers = ask(pipeline, [question for one in some for question in one.questions], prompt)
                pipeline.close()
            yield Run(scope, conversation, pipeline.name, answers)
    if seconds:
        rate.append(loaded / seconds)
        if passages := sum(count for count, _ in embedded):
            rate.append(passages / sum(taken for _, taken in embedded))


def _of(answers: Sequence[Answer], categories: Sequence[int]) -> list[Answer]:
    return [answer for answer in answers if answer.question.category in categories]


def _together(runs: Sequence[Run], scope: str) -> dict[str, list[Answer]]:
    """All answers of a scope by pipeline."""
    found: dict[str, list[Answer]] = {}
    for run in runs:
        if run.scope == scope:
            found.setdefault(run.pipeline, []).extend(run.answers)
    return found


def _lines(runs: Sequence[Run], sessions: dict[str, str]) -> Iterator[dict[str, object]]:
    """The objects of `--json`."""
    for scope in ("conversation", "pooled"):
        for name, answers in _together(runs, scope).items():
            for group, categories in GROUPS.items():
                if some := _of(answers, categories):
                    yield {"scope": scope, "categories": group, "pipeline": name, "questions": len(some),
                           **measures(some, sessions)}  # fmt: skip


def _report(runs: Sequence[Run], every: Sequence[Conversation], sessions: dict[str, str]) -> None:
    print(
        f"{len(every)} conversations, {len(sessions):,} turns, {sum(len(one.questions) for one in every):,} questions\n"
    )
    for scope, title in (("conversation", "Each conversation by itself"), ("pooled", "All conversations in one home")):
        together = _together(runs, scope)
        if not together:
            continue
        print(f"{title}\n{_head()}")
        for group, categories in GROUPS.items():
            label = CATEGORIES[categories[0]] if len(categories) == 1 else f"categories {group}"
            for name, answers in together.items():
                if some := _of(answers, categories):
                    print(_row(label, name, some, sessions))
        print()
    print(f"Conversation by conversation, categories 1-4\n{_head()}")
    for run in runs:
        if run.conversation and (some := _of(run.answers, GROUPS["1-4"])):
            print(_row(run.conversation, run.pipeline, some, sessions))


def _head() -> str:
    names = "".join(f"{name.replace('session_recall', 'session'):>11}" for name in SHOWN)
    return f"{'':<16}{'':<18}{'n':>6}{names}{'ms':>8}"


def _row(label: str, name: str, answers: Sequence[Answer], sessions: dict[str, str]) -> str:
    found = measures(answers, sessions)
    numbers = "".join(f"{found[each] * 100:>11.1f}" for each in SHOWN)
    return f"{label:<16}{name:<18}{len(answers):>6}{numbers}{found['ms_per_query']:>8.2f}"


def _for_scorer(runs: Sequence[Run], every: Sequence[Conversation], sessions: dict[str, str]) -> Iterator[str]:
    """Our ranking as LongMemEval's retrieval log, one question a line, sessions and turns as its scorer reads them."""
    moments = {turn.session: turn.moment for one in every for turn in one.turns}
    for run in runs:
        if run.scope == "pooled" or run.pipeline != Ours.name:
            continue
        for answer in run.answers:
            question = answer.question
            ranked = ranked_sessions(answer.found, sessions)
            meant = list(dict.fromkeys(sessions[key] for key in question.evidence))
            items = [{"corpus_id": each, "timestamp": str(moments[each] or "")} for each in ranked]
            metrics = {"session": _scored(ranked, meant, (5, 10)),
                       "turn": _scored(answer.found, question.evidence, (5, 10, 50))}  # fmt: skip
            yield json.dumps({
                "question_id": question.id, "question_type": CATEGORIES[question.category], "question": question.text,
                "answer": question.answer, "answer_session_ids": meant, "ranked_session_ids": ranked,
                "retrieval_results": {"query": question.text, "ranked_items": items, "metrics": metrics},
            }) + "\n"  # fmt: skip


def _scored(ranked: Sequence[str], wanted: Sequence[str], depths: Sequence[int]) -> dict[str, float]:
    found: dict[str, float] = {}
    for depth in depths:
        held = set(ranked[:depth]) & set(wanted)
        found[f"recall_any@{depth}"] = float(bool(held))
        found[f"recall_all@{depth}"] = float(held == set(wanted))
        found[f"ndcg_any@{depth}"] = gain(ranked, wanted, depth)
    return found


if __name__ == "__main__":
    sys.exit(main())
