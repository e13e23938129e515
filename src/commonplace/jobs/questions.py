"""What the jobs are unsure of, as questions to the owner (engine/review.py): merge? category? archive? reminder?

The daemon does nothing of what stands here unasked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from commonplace.engine.review import ReviewItem, ReviewSource
from commonplace.engine.upkeep import Upkeep
from commonplace.errors import NotFound
from commonplace.jobs.classify import FALLBACK, Classifier, shortened
from commonplace.jobs.dedup import near_pairs
from commonplace.jobs.job import MERGE, OWNER, Action, MemoryState, Round, apply
from commonplace.jobs.lifecycle import plan_decay, plan_upgrade_of
from commonplace.jobs.reminders import VAGUE_DAY, plan_from_text
from commonplace.note.model import CATEGORY_PROJECT, INBOX
from commonplace.store.base import sha256

if TYPE_CHECKING:
    from commonplace.engine import Memory

_NO = ("n", "no")


def _mark(*memories: MemoryState) -> str:
    """What changes with any of the texts a question is about."""
    return sha256("\0".join(each.content for each in memories).encode("utf-8", "surrogatepass"))[:8]


def _carry_out(memory: Memory, action: Action) -> bool:
    """Raises NotFound for a memory that is gone; Conflict, Locked."""
    infos = {each.id: each.info for each in Round(memory).memories}
    if action.id not in infos and action.record is None:
        raise NotFound(action.id, CATEGORY_PROJECT)
    apply(Upkeep(memory), action, infos.get(action.id), infos.get(action.target or ""))
    return True


def _merges(memory: Memory) -> Iterator[ReviewItem]:
    memories = Round(memory).memories
    known = {each.id: each for each in memories if not each.header.get("reminder_of")}
    for _, a, b in near_pairs(list(known.values()), linked=True):
        one, other = known[a], known[b]
        text = f'Do these say the same? "{shortened(one.content)}" and "{shortened(other.content)}"'
        choices = (("1", "keep the first, merge the second into it"), ("2", "keep the second, merge the first into it"))
        yield ReviewItem(f"merge:{a}:{b}:{_mark(one, other)}", "merge", text, (a, b), (*choices, ("n", "keep both")))


def _merge(memory: Memory, item: ReviewItem, choice: str) -> bool:
    kept, gone = item.refs if choice == "1" else reversed(item.refs)
    return choice != "n" and _carry_out(memory, Action("review", MERGE, gone, "asked for", "", target=kept))


def _categories(memory: Memory) -> Iterator[ReviewItem]:
    memories = Round(memory).memories
    inbox = [each for each in memories if each.phase == INBOX == each.category]
    classifier = Classifier(memory.settings, memories if inbox else ())
    for each in inbox:
        choice = classifier.choose(each)
        if not choice.is_sure:
            names = [name for name in dict.fromkeys((choice.category, choice.second, FALLBACK)) if name]
            choices = tuple((str(number), name) for number, name in enumerate(names, 1))
            text = f'Which category has "{shortened(each.content)}"?'
            key = f"category:{each.id}:{_mark(each)}"
            yield ReviewItem(key, "category", text, (each.id,), (*choices, ("n", "leave it in the inbox")))


def _categorize(memory: Memory, item: ReviewItem, choice: str) -> bool:
    if choice == "n":
        return False
    upkeep = Upkeep(memory)
    info = memory.memory_id(item.refs[0])
    state = MemoryState.of(info, upkeep.content(info))
    action = plan_upgrade_of(state, Classifier(memory.settings), dict(item.choices)[choice], OWNER)
    if action is not None:
        apply(upkeep, action, info, None)
    return True


def _unused(memory: Memory) -> Iterator[ReviewItem]:
    turn = Round(memory)
    known = {each.id: each for each in turn.memories}
    sure = {action.id for action in plan_decay(turn.memories, memory.settings, turn.now, careful=True)}
    for action in plan_decay(turn.memories, memory.settings, turn.now):
        if action.id in sure:
            continue  # the daemon archives it unasked
        each = known[action.id]
        text = f'Archive "{shortened(each.content)}" ({each.category})? It was {action.reason}'
        key = f"archive:{each.id}:{_mark(each)}"
        yield ReviewItem(key, "archive", text, (each.id,), (("y", "archive it"), ("n", "keep it")))


def _archive(memory: Memory, item: ReviewItem, choice: str) -> bool:
    return choice == "y" and _carry_out(memory, Action("review", "decay", item.refs[0], "asked for", ""))


def _doubtful(memory: Memory) -> Iterable[tuple[ReviewItem, Action]]:
    turn = Round(memory)
    for action in plan_from_text(turn.memories, memory.settings, turn.now, [], VAGUE_DAY):
        assert action.record is not None
        text = f'Remind you of "{shortened(action.record.content)}"? {action.reason}'
        refs = (action.target or "",)
        yield ReviewItem(f"reminder:{action.id}", "reminder", text, refs, (("y", "remind me then"), _NO)), action


def _remind(memory: Memory, item: ReviewItem, choice: str) -> bool:
    action = next((action for each, action in _doubtful(memory) if each.key == item.key), None)
    if action is None:
        raise NotFound(item.key, "the open questions")
    return choice == "y" and _carry_out(memory, action)


MERGES = ReviewSource(_merges, _merge)
CATEGORIES = ReviewSource(_categories, _categorize)
ARCHIVES = ReviewSource(_unused, _archive)
REMINDERS = ReviewSource(lambda memory: (item for item, _ in _doubtful(memory)), _remind)
