"""Questions of the jobs to the owner (engine/review.py): merge? category?
archive? reminder? which of two?

The daemon does none of this unasked.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.engine.overview import contents
from memoranda.engine.review import ReviewBatch, ReviewItem, ReviewSource
from memoranda.engine.telling import author
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import NotFound
from memoranda.index.rows import NoteInfo, day_of
from memoranda.jobs.classify import FALLBACK, Classifier, shortened
from memoranda.jobs.dedup import near_pairs
from memoranda.jobs.job import (
    MERGE,
    OWNER,
    Action,
    MemoryState,
    Round,
    apply,
    organize_all,
    states_of,
)
from memoranda.jobs.lifecycle import (
    archive_named,
    kept_for_reminders,
    plan_decay,
    plan_expire,
    plan_upgrade_of,
)
from memoranda.jobs.reminders import listed
from memoranda.jobs.text_reminders import outdated, plan_from_text
from memoranda.jobs.text_times import VAGUE_DAY
from memoranda.note.edit import FindReplace
from memoranda.note.model import CATEGORY_PROJECT, INBOX, KV_PROJECT
from memoranda.query import Query
from memoranda.store.base import sha256

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

_NO = ("n", "no")
_ALWAYS = datetime.max.replace(tzinfo=UTC)


def _mark(*memories: MemoryState) -> str:
    return sha256(
        "\0".join(memory.content for memory in memories).encode("utf-8", "surrogatepass")
    )[:8]


def _carry_out(memory: MemorySession, action: Action) -> bool:
    """Raises NotFound for a memory that is gone; Conflict, Locked."""
    infos = {memory_state.id: memory_state.info for memory_state in Round(memory).memories}
    if action.id not in infos and action.record is None:
        raise NotFound(action.id, CATEGORY_PROJECT)
    apply(Upkeep(memory), action, infos.get(action.id), infos.get(action.target or ""))
    return True


def _merges(memory: MemorySession) -> Iterator[ReviewItem]:
    memories = Round(memory).memories
    memories_by_id = {
        memory_state.id: memory_state
        for memory_state in memories
        if not memory_state.header.get("reminder_of")
    }
    # Of several memories that say the same each is asked about once: what the answer leaves is the
    # next question.
    asked_ids: set[str] = set()
    for _, a, b in near_pairs(list(memories_by_id.values()), linked=True):
        first_memory = memories_by_id[a]
        second_memory = memories_by_id[b]
        key = f"merge:{a}:{b}:{_mark(first_memory, second_memory)}"
        if memory.decision(key) is None:
            if a in asked_ids or b in asked_ids:
                continue
            asked_ids |= {a, b}
        text = f'Do these say the same? "{shortened(first_memory.content)}" and "{shortened(second_memory.content)}"'
        choices = (
            ("1", "keep the first, merge the second into it"),
            ("2", "keep the second, merge the first into it"),
        )
        yield ReviewItem(key, "merge", text, (a, b), (*choices, ("n", "keep both")))


def _categories(memory: MemorySession) -> Iterator[ReviewItem]:
    """Of what stays in the inbox: nobody need sort what expires."""
    turn = Round(memory)
    passing = {
        item.id for item in plan_expire(turn.memories, memory.settings, _ALWAYS, careful=True)
    }
    inbox = [
        item
        for item in turn.memories
        if item.phase == INBOX == item.category and item.id not in passing
    ]
    classifier = Classifier(memory.settings, turn.memories if inbox else ())
    for item in inbox:
        choice = classifier.choose(item)
        if not choice.is_sure:
            names = [
                name for name in dict.fromkeys((choice.category, choice.second, FALLBACK)) if name
            ]
            choices = (*((str(number), name) for number, name in enumerate(names, 1)), _NO_CATEGORY)
            text = f'"{shortened(item.content)}"'
            key = f"category:{item.id}:{_mark(item)}"
            line = f"{text} -> {names[0]}"
            yield ReviewItem(
                key, "category", f"Which category has {text}?", (item.id,), choices, (line,)
            )


_NO_CATEGORY = ("n", "leave it in the inbox")


def _categorize(memory: MemorySession, item: ReviewItem, choice: str) -> bool:
    if choice == "n":
        return False
    (state,) = states_of(memory, [memory.memory_id(item.refs[0])])
    action = plan_upgrade_of(state, Classifier(memory.settings), dict(item.choices)[choice], OWNER)
    if action is not None:
        apply(Upkeep(memory), action, state.info, None)
    return True


def _sort_all(memory: MemorySession, items: Sequence[ReviewItem]) -> None:
    """Each into the first of the categories asked about."""
    infos = [memory.memory_id(item.refs[0]) for item in items]
    states = states_of(memory, infos)
    classifier = Classifier(memory.settings)
    organize_all(
        Upkeep(memory),
        infos,
        [
            plan_upgrade_of(state, classifier, item.choices[0][1])
            for state, item in zip(states, items, strict=True)
        ],
    )


# How long nobody must have read or used what the owner is asked about: it does no harm where it is.
_UNREAD = timedelta(days=365)


def _unused(memory: MemorySession) -> Iterator[ReviewItem]:
    turn = Round(memory)
    settings = memory.settings
    memories_by_id = {memory_state.id: memory_state for memory_state in turn.memories}
    sure = {action.id for action in plan_decay(turn.memories, settings, turn.now, careful=True)}
    kept_until = kept_for_reminders(turn.memories, settings)
    long = replace(settings, decay_threshold=max(_UNREAD, settings.decay_threshold))
    for action in plan_decay(turn.memories, long, turn.now):
        memory_state = memories_by_id[action.id]
        # What is sure the daemon archives unasked; what has a reminder ahead it keeps until then,
        # unasked too.
        if (
            memory_state.id not in sure
            and memory_state.category not in settings.keep
            and kept_until.get(memory_state.id, turn.now) <= turn.now
        ):
            since = f"{memory_state.created.astimezone(settings.reading_zone):%Y-%m-%d}"
            line = f'"{shortened(memory_state.content)}" ({memory_state.category}), {since}'
            text = (
                f'Archive "{shortened(memory_state.content)}" ({memory_state.category})? '
                f"It was never read since {since}"
            )
            key = f"archive:{memory_state.id}:{_mark(memory_state)}"
            yield ReviewItem(
                key,
                "archive",
                text,
                (memory_state.id,),
                (("y", "archive it"), ("n", "keep it")),
                (line,),
            )


def _doubtful(memory: MemorySession) -> Iterable[tuple[ReviewItem, Action]]:
    turn = Round(memory)
    for action in plan_from_text(turn.memories, memory.settings, turn.now, [], VAGUE_DAY):
        assert action.record is not None
        text = f'Remind you of "{shortened(action.record.content)}"? {action.reason}'
        refs = (action.target or "",)
        yield (
            ReviewItem(
                f"reminder:{action.id}", "reminder", text, refs, (("y", "remind me then"), _NO)
            ),
            action,
        )


_OUTDATED = "reminder:outdated:"


def _outdated(memory: MemorySession) -> Iterator[ReviewItem]:
    """About reminders whose memory does not ask for them any more. Without an answer they fire, and
    say so.
    """
    reminders_by_id = {info.id: (info, reminder) for info, reminder in listed(memory)}
    for id, now in outdated(memory, [info for info, _ in reminders_by_id.values()]).items():
        info, reminder = reminders_by_id[id]
        if reminder.due:
            due = reminder.due.astimezone(memory.settings.reading_zone)
        else:
            due = None
        if due:
            when = f" on {due:%Y-%m-%d at %H:%M}"
        else:
            when = ""
        if now is None:
            why = "is gone"
        else:
            why = f'says now "{shortened(now)}"'
        text = (
            f'Keep the reminder "{shortened(contents(memory, [info])[0])}"{when}? Its memory {why}'
        )
        mark = sha256((now or "").encode("utf-8", "surrogatepass"))[:8]
        yield ReviewItem(
            f"{_OUTDATED}{id}:{mark}",
            "reminder",
            text,
            (id,),
            (("y", "keep it"), ("n", "delete it")),
        )


def _remind(memory: MemorySession, item: ReviewItem, choice: str) -> bool:
    if item.key.startswith(_OUTDATED):
        if all(item_found.key != item.key for item_found in _outdated(memory)):
            raise NotFound(item.key, "the open questions")
        if choice == "n":
            memory.delete(memory.memory_id(item.refs[0]))
        return choice == "n"
    action = next(
        (action for item_found, action in _doubtful(memory) if item_found.key == item.key), None
    )
    if action is None:
        raise NotFound(item.key, "the open questions")
    return choice == "y" and _carry_out(memory, action)


MERGES = ReviewSource(
    _merges,
    lambda memory, item, choice: (
        choice != "n"
        and _carry_out(
            memory,
            Action(
                "review",
                MERGE,
                item.refs[choice == "1"],
                "asked for",
                "",
                target=item.refs[choice != "1"],
            ),
        )
    ),
)
CATEGORIES = ReviewSource(
    _categories,
    _categorize,
    ReviewBatch(
        "Sort these {} memories of the inbox as shown?",
        "sort them so",
        "leave them in the inbox",
        _sort_all,
    ),
)
ARCHIVES = ReviewSource(
    _unused,
    lambda memory, item, choice: (
        choice == "y"
        and _carry_out(memory, Action("review", "decay", item.refs[0], "asked for", ""))
    ),
    ReviewBatch(
        "Archive these {} notes nobody read for a year?",
        "archive them",
        "keep them",
        lambda memory, items: archive_named(memory, [item.refs[0] for item in items]),
    ),
)
REMINDERS = ReviewSource(
    lambda memory: chain(_outdated(memory), (item for item, _ in _doubtful(memory))), _remind
)


KIND = "contradiction"
_CHOICES = (("n", "the second holds now"), ("o", "the first holds now"), ("b", "both are true"))
# With more values a key is a list
_MOST_VALUES = 3
_LONGEST_SENTENCE = 200
_Subject = tuple[str, ...]
_KEY_VALUE = re.compile(r"([^:：\[\](){}/.]{1,40}?)\s*[:：]\s*(\S.*)")
_END = re.compile(r"\)\s*$")


@dataclass(frozen=True, slots=True)
class _Statement:
    """One value of a subject, as a note gives it.

    name: the subject, for people.
    line: the line in the file, from 1; 0 for a memory that is the statement as a whole.
    """

    info: NoteInfo
    name: str
    value: str
    line: int = 0

    @property
    def ref(self) -> str:
        """The memory and the line as one text."""
        if self.line:
            return f"{self.info.id}:{self.line}"
        return self.info.id


@cache
def _rules() -> dict[str, Any]:
    rules = tomllib.loads(Path(__file__).with_name("contradictions.toml").read_text("utf-8"))
    relations = rules["relations"].split()
    sentences = rules["sentences"]
    line = "|".join(re.escape(relation).replace("_", "[ _-]") for relation in relations)
    return {
        "relations": set(relations),
        "no_keys": set(rules["no_keys"].split()),
        "sentences": [re.compile(rf"{sentence}[.!。！]?", re.I) for sentence in sentences],
        "over": re.compile(rules["over"], re.I),
        "promising": re.compile(
            rf'^[ \t]*[-*+] (?:"?(?:{line})\b|[^:：\n]{{1,60}}[:：])', re.I | re.M
        ),
    }


def _pairs(memory: MemorySession) -> Iterator[tuple[ReviewItem, _Statement, _Statement]]:
    """Each question with the two statements it is about, the earlier first."""
    for subject, statements in _statements_by_subject(memory).items():
        statements.sort(key=lambda item: (item.info.date or item.info.created, item.line))
        values = {_folded(item.value): item for item in statements}
        # With more values a key is a list.
        if len(values) > _MOST_VALUES:
            continue
        for (first_value, first), (second_value, second) in pairwise(values.items()):
            # The longer value only says more.
            if first_value in second_value or second_value in first_value:
                continue
            question = _question_of(memory, subject, first, second)
            text = question.text + _weights(statements, first_value, second_value)
            yield replace(question, text=" ".join(text.split())), first, second


def _question_of(
    memory: MemorySession, subject: _Subject, first: _Statement, second: _Statement
) -> ReviewItem:
    """The question which of two statements about a subject holds."""
    refs = (first.ref, second.ref)
    whole = "\0".join([*subject, *refs, first.value, second.value])
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
    first_day = day_of(first.info, memory.settings.zone)
    second_day = day_of(second.info, memory.settings.zone)
    text = f'{first.name} "{first.value}" ({first_day}) or "{second.value}" ({second_day})?'
    return ReviewItem(f"{KIND}:{digest[:16]}", KIND, text, refs, _CHOICES)


def _statements_by_subject(memory: MemorySession) -> dict[_Subject, list[_Statement]]:
    """The statements of notes that hold now, by subject. Of a subject one value can be true."""
    infos, _ = memory.list(Query(valid_at=memory.clock(), order="path"), limit=0)
    infos = [info for info in infos if info.project != KV_PROJECT]
    statements: dict[_Subject, list[_Statement]] = {}
    for info, text in zip(infos, contents(memory, infos), strict=True):
        for subject, statement in _statements_of(memory, info, text):
            statements.setdefault(subject, []).append(statement)
    return statements


def _statements_of(
    memory: MemorySession, info: NoteInfo, text: str
) -> Iterator[tuple[_Subject, _Statement]]:
    """The statements of one note, each with its subject."""
    line = text.strip()
    if info.project == CATEGORY_PROJECT and "\n" not in line and len(line) <= _LONGEST_SENTENCE:
        match = _sentence_match(line)
        if match:
            name = f"{match[1]} {match[2]}"
            subject = (info.scope, _folded(match[1]), match[2].lower())
            yield subject, _Statement(info, name, match[3])
    # Lines contradict lines of the same note only, so one alone contradicts nothing.
    if len(_rules()["promising"].findall(text)) >= 2:
        yield from _relation_statements(memory, info)
        yield from _observation_statements(memory, info)


def _sentence_match(line: str) -> re.Match[str] | None:
    """`X lives in Y` and the like: its subject, its verb, its value."""
    for sentence in _rules()["sentences"]:
        match: re.Match[str] | None = sentence.fullmatch(line)
        if match:
            return match
    return None


def _relation_statements(
    memory: MemorySession, info: NoteInfo
) -> Iterator[tuple[_Subject, _Statement]]:
    """The relations of which one can be true, and that are not said to be over."""
    rules = _rules()
    for edge in memory.outgoing(info):
        kind = re.sub("[ -]", "_", edge.type.lower())
        if kind in rules["relations"] and not rules["over"].search(edge.context or ""):
            statement = _Statement(info, f"{info.title}: {kind}", edge.target, edge.line)
            yield (info.project, info.path, kind), statement


def _observation_statements(
    memory: MemorySession, info: NoteInfo
) -> Iterator[tuple[_Subject, _Statement]]:
    """The observations `key: value` of which one can be true, and that are not said to be over."""
    rules = _rules()
    for item in memory.observations(info):
        match = _KEY_VALUE.fullmatch(item.content)
        if not match or rules["over"].search(item.context or ""):
            continue
        key = match[1].lower()
        if key not in rules["no_keys"]:
            statement = _Statement(info, f"{info.title}: {match[1]}", match[2], item.line)
            yield (info.project, info.path, f"{key}:"), statement


def _weights(statements: Sequence[_Statement], first_claim: str, second_claim: str) -> str:
    """How many notes say each of two values, and from how many sources, where that differs from one
    note each. What one agent says in many notes counts as one source.
    """
    sayings = []
    for value in (first_claim, second_claim):
        infos = [statement.info for statement in statements if _folded(statement.value) == value]
        sources = sorted({author(info.provenance) for info in infos})
        notes = len({info.id for info in infos})
        if len(sources) == 1:
            source = f"{sources[0]} alone"
        else:
            source = f"{len(sources)} sources"
        sayings.append((notes, f"{notes} {'note' if notes == 1 else 'notes'} of {source}"))
    if all(notes == 1 for notes, _ in sayings):
        return ""
    return f" The first: {sayings[0][1]}; the second: {sayings[1][1]}."


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .。!！")


def _apply(memory: MemorySession, item: ReviewItem, choice: str) -> bool:
    """`n` and `o`: what does not hold any more gets its end, today."""
    if choice == "b":
        return False
    first, second = next(pair for item_found, *pair in _pairs(memory) if item_found.key == item.key)
    if choice == "n":
        old = first
        new = second
    else:
        old = second
        new = first
    if not old.line:
        memory.supersede(old.info, new.info)
        return True
    line = memory.text_of(old.info).split("\n")[old.line - 1].rstrip("\r")
    until = f"until {memory.clock():%Y-%m-%d})"
    if _END.search(line):
        # It has a context already, which gets one more part.
        ended_line = _END.sub(f", {until}", line)
    else:
        ended_line = f"{line} ({until}"
    memory.edit(old.info, FindReplace(line, ended_line))
    return True


CONTRADICTIONS = ReviewSource(lambda memory: (item for item, *_ in _pairs(memory)), _apply)
