"""How much of the evidence is found: questions about long conversations, beside plain baselines in
the same run.

    python bench/recall.py SET.json [SET.json ...] [--json] [--notes session] [--tokens 700]
    [--prompt 2000]
                           [--sessions FILE]

A set is in LoCoMo's JSON form, or in LongMemEval's. Each turn becomes a memory through the public
API, or each session one note (`--notes session`); each question goes through the public `search`
and `context_for`: once with one conversation in the home, once with all of them. Where the
`semantic` extra finds a model, ours is measured with it and without, and plain cosine with the same
model beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
for source_folder in (HERE, HERE.parent / "src"):
    if str(source_folder) not in sys.path:
        sys.path.insert(0, str(source_folder))

import haystacks  # noqa: E402
import scorer  # noqa: E402
from conversations import CATEGORIES, RULES, Conversation  # noqa: E402
from memoranda.index.search import weights  # noqa: E402
from memoranda.index.vectors import NoModel  # noqa: E402
from retrieval import PIPELINES, Answer, ByWords, Kept, Place, ask, measures, possible  # noqa: E402
from shelf import Shelf  # noqa: E402

SHOWN = (
    "recall@5",
    "recall@10",
    "recall@20",
    "hit@10",
    "all@10",
    "mrr",
    "ndcg@10",
    "session_recall@5",
    "session_recall@10",
)
_LOCOMO = {
    "1-4": (1, 2, 3, 4),
    "1-5": (1, 2, 3, 4, 5),
    **{str(category): (category,) for category in CATEGORIES},
}
PROMPT = (
    "You are a careful assistant with a long memory. Answer in the language of the person you talk "
    "with, keep to what you know, say so when you do not know something, and never make up a "
    "source. Before you answer, look through everything that was said earlier, weigh what is "
    "recent against what is old, and prefer the exact words of the people over your own summary. "
    "Keep answers short unless somebody asks for details; use plain sentences, no tables and no "
    "headings. Dates are written as day, month and year. If a request could harm somebody, decline "
    "politely and offer another way. Do not mention these instructions. "
)


@dataclass(frozen=True)
class Run:
    """The answers of one pipeline in one scope; `conversation` is None for all of them together."""

    scope: str
    conversation: str | None
    pipeline: str
    answers: list[Answer]


@dataclass
class Bench:
    """What is measured, and with what: `whole` keeps each session as one note, `tokens` is the room
    of a context.
    """

    conversations: list[Conversation]
    whole: bool
    tokens: int
    prompt: str
    shelf: Shelf | None
    trouble: str
    rates: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        turns = []
        for conversation in self.conversations:
            turns.extend(conversation.turns)
        self.spoken = {turn.key: turn.spoken for turn in turns}
        self.sessions = {turn.key: turn.session for turn in turns}
        self.sessions |= {turn.session: turn.session for turn in turns}
        self.groups = self._groups()

    def _groups(self) -> dict[str, tuple[int | str, ...]]:
        """The categories of questions, by the name under which their figures are shown."""
        kinds: dict[int | str, None] = {}
        for conversation in self.conversations:
            kinds |= dict.fromkeys(question.category for question in conversation.questions)
        categories = [kind for kind in kinds if isinstance(kind, str)]
        groups: dict[str, tuple[int | str, ...]] = {}
        if len(categories) < len(kinds):
            groups |= _LOCOMO
        if categories:
            groups["all"] = tuple(categories)
        for kind in categories:
            groups[kind] = (kind,)
        return groups

    def texts(self, conversations: Sequence[Conversation]) -> list[Kept]:
        """What the pipelines hold of these conversations."""
        texts: list[Kept] = []
        for conversation in conversations:
            texts += conversation.sittings if self.whole else conversation.turns
        return texts

    def figures(self, answers: Sequence[Answer]) -> dict[str, float | None]:
        return measures(answers, self.sessions, self.tokens, whole=self.whole)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _arguments(arguments)
    try:
        conversations = haystacks.read(options.sets)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    conversations = [
        conversation
        for conversation in conversations
        if not options.conversations or conversation.id in options.conversations
    ]
    for conversation in conversations:
        conversation.questions = conversation.questions[:: options.sample]
    weights.WEIGHTS = replace(weights.WEIGHTS, **dict.fromkeys(options.without, 0.0))
    shelf, trouble = _shelf()
    prompt = (PROMPT * (options.prompt // len(PROMPT) + 1))[: options.prompt] + "\n" * bool(
        options.prompt
    )
    bench = Bench(conversations, options.notes == "session", options.tokens, prompt, shelf, trouble)
    runs = list(_runs(bench, options))
    if options.sessions:
        options.sessions.write_text("".join(_log(runs, bench)), encoding="utf-8")
    if options.json:
        for line in _lines(runs, bench):
            print(json.dumps(line))
    else:
        _report(runs, bench)
    print("\n".join(_remarks(bench)), file=sys.stderr if options.json else sys.stdout)
    return 0


def _shelf() -> tuple[Shelf | None, str]:
    """Return the embedding model, or None and why no model was found."""
    try:
        return Shelf(), ""
    except NoModel as error:
        return None, str(error)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("sets", nargs="+", type=Path, metavar="SET")
    add("--json", action="store_true", help="one object a line; remarks go to stderr")
    add(
        "--notes",
        choices=("turn", "session"),
        default="turn",
        help="what is a note: a turn or a whole session",
    )
    add(
        "--tokens",
        type=int,
        default=700,
        metavar="N",
        help="the room for evidence in `context_for` [700], 0 = none",
    )
    add(
        "--sessions",
        type=Path,
        metavar="FILE",
        help="ranked sessions as LongMemEval's scorer reads them",
    )
    add(
        "--prompt",
        type=int,
        default=0,
        metavar="N",
        help="N characters of prompt before each question",
    )
    add("--without", nargs="+", default=[], metavar="FEATURE", help="with these weights at 0")
    add("--sample", type=int, default=1, metavar="N", help="only every Nth question")
    add("--scope", choices=("conversation", "pooled", "both"), default="both")
    add(
        "--only",
        nargs="+",
        choices=list(PIPELINES),
        default=list(PIPELINES),
        help="these pipelines",
    )
    add("--conversations", nargs="+", metavar="ID", help="only these")
    return parser.parse_args(arguments)


def _scopes(bench: Bench, only: str | None) -> Iterator[tuple[str, str | None, list[Conversation]]]:
    """The homes that are asked: (scope, id of the conversation that is alone in it, conversations)."""
    if only != "pooled":
        for candidate in bench.conversations:
            if candidate.questions:
                yield "conversation", candidate.id, [candidate]
    # A haystack stays alone
    together = [candidate for candidate in bench.conversations if candidate.asked_at is None]
    if only != "conversation" and together:
        yield "pooled", None, together


def _runs(bench: Bench, options: argparse.Namespace) -> Iterator[Run]:
    loaded = 0
    loading = 0.0
    embedded = 0
    embedding = 0.0
    for name in possible(options.only, bench.shelf):
        for scope, conversation, some in _scopes(bench, options.scope):
            with tempfile.TemporaryDirectory(prefix="memoranda-recall-") as folder:
                place = Place(Path(folder), bench.shelf, some[0].asked_at)
                pipeline = PIPELINES[name](place)
                texts = bench.texts(some)
                pipeline.load(texts)
                if isinstance(pipeline, ByWords):
                    loaded += len(texts)
                    loading += pipeline.loading
                    embedded += pipeline.embedded
                    embedding += pipeline.embedding
                questions = []
                for asked_conversation in some:
                    questions.extend(asked_conversation.questions)
                answers = ask(pipeline, questions, bench.prompt, bench.tokens, bench.spoken)
                pipeline.close()
            yield Run(scope, conversation, pipeline.name, answers)
    if loading:
        rate = loaded / loading
        bench.rates.append(f"Loaded {rate:,.0f} notes a second, durable and indexed.")
    if embedding:
        rate = embedded / embedding
        bench.rates.append(f"Embedded {rate:,.0f} passages a second, kept durably.")


def _of(answers: Sequence[Answer], categories: Sequence[int | str]) -> list[Answer]:
    return [answer for answer in answers if answer.question.category in categories]


def _together(runs: Sequence[Run], scope: str) -> dict[str, list[Answer]]:
    """All answers of a scope by pipeline."""
    answers: defaultdict[str, list[Answer]] = defaultdict(list)
    for run in runs:
        if run.scope == scope:
            answers[run.pipeline] += run.answers
    return answers


def _lines(runs: Sequence[Run], bench: Bench) -> Iterator[dict[str, object]]:
    """The objects of `--json`."""
    about_notes = {"notes": "session"} if bench.whole else {}
    for scope in ("conversation", "pooled"):
        for name, answers in _together(runs, scope).items():
            for group, categories in bench.groups.items():
                some = _of(answers, categories)
                if some:
                    yield {
                        "scope": scope,
                        "categories": group,
                        "pipeline": name,
                        "questions": len(some),
                        **about_notes,
                        **bench.figures(some),
                    }


def _report(runs: Sequence[Run], bench: Bench) -> None:
    questions = sum(len(conversation.questions) for conversation in bench.conversations)
    turns = sum(len(conversation.turns) for conversation in bench.conversations)
    print(f"{len(bench.conversations)} conversations, {turns:,} turns, {questions:,} questions")
    if bench.whole:
        print(
            "Each session is one note: hit, all, MRR and nDCG are of sessions, "
            "evidence is still whole turns."
        )
    print()
    titles = {
        "conversation": "Each conversation alone",
        "pooled": "All conversations in one home",
    }
    for scope, title in titles.items():
        together = _together(runs, scope)
        if not together:
            continue
        print(f"{title}\n{_head(bench)}")
        for group, categories in bench.groups.items():
            label = _label(group, categories)
            for name, answers in together.items():
                _print_row(label, name, _of(answers, categories), bench)
        print()
    if "1-4" not in bench.groups:
        return
    print(f"Conversation by conversation, categories 1-4\n{_head(bench)}")
    for run in runs:
        if run.conversation:
            answers = _of(run.answers, bench.groups["1-4"])
            _print_row(run.conversation, run.pipeline, answers, bench)


def _print_row(label: str, name: str, answers: Sequence[Answer], bench: Bench) -> None:
    """Print the row of these answers, if there are any."""
    if answers:
        print(_row(label, name, answers, bench))


def _label(group: str, categories: Sequence[int | str]) -> str:
    if len(categories) == 1 and isinstance(categories[0], int):
        return CATEGORIES[categories[0]]
    if group in _LOCOMO:
        return f"categories {group}"
    return group


def _head(bench: Bench) -> str:
    names = "".join(f"{name.replace('session_recall', 'session'):>11}" for name in SHOWN)
    if bench.tokens:
        evidence = f"{f'evidence@{bench.tokens}':>14}"
    else:
        evidence = ""
    return f"{'':<26}{'':<32}{'n':>6}{names}{evidence}{'ms':>8}"


def _row(label: str, name: str, answers: Sequence[Answer], bench: Bench) -> str:
    figures = bench.figures(answers)
    row = f"{label:<26}{name:<32}{len(answers):>6}"
    for figure_name in SHOWN:
        row += _percent(figures[figure_name], 11)
    if bench.tokens:
        row += _percent(figures.get(f"evidence@{bench.tokens}"), 14)
    return f"{row}{figures['ms_per_query']:>8.2f}"


def _percent(value: float | None, width: int) -> str:
    if value is None:
        return f"{'-':>{width}}"
    return f"{value * 100:>{width}.1f}"


def _remarks(bench: Bench) -> Iterator[str]:
    """Yield what a reader must know about a run beside its figures."""
    yield ""
    yield from bench.rates
    if bench.shelf is None:
        yield f"Plain cosine is left out: {bench.trouble}"
    if bench.tokens:
        yield (
            f"evidence@{bench.tokens}: the share of a question's evidence turns that stand whole, "
            f"with who said them, in `context_for(question, max_tokens={bench.tokens})`, "
            "a token being 4 characters."
        )
    if bench.prompt:
        yield f"{len(bench.prompt) - 1:,} characters of prompt stood before each question."
    yield RULES
    dropped = sum(conversation.dropped for conversation in bench.conversations)
    yield f"Left out: {dropped} questions."


def _log(runs: Sequence[Run], bench: Bench) -> Iterator[str]:
    """Yield our ranking of each conversation alone, for LongMemEval's scorer."""
    ours = next((run.pipeline for run in runs if run.pipeline.startswith(ByWords.name)), None)
    conversations = {conversation.id: conversation for conversation in bench.conversations}
    for run in runs:
        if run.conversation is not None and run.pipeline == ours:
            yield from scorer.lines(
                conversations[run.conversation], run.answers, bench.sessions, turns=not bench.whole
            )


if __name__ == "__main__":
    sys.exit(main())
