"""Find memories with the same text, to merge, and with nearly the same text, to link.

- A *duplicate* is a memory whose lines are all lines of another memory, in the same order. Blanks
  do not count. If A is a duplicate of B, and B of C, both are merged into C at once, so that a
  second run finds nothing.
- *Similar* memories share nearly all their terms (words, and pairs of Chinese characters).
- *Near* memories make the same statement in other words.

All functions are pure: they plan over `MemoryState` values. Memories are only compared within their
block (`MemoryState.block`). Source: contract 001, 5 (dream level 2) and 18.6.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import chain, combinations, pairwise
from operator import add
from sys import intern
from typing import TYPE_CHECKING, NamedTuple

from memoranda.jobs.job import DREAM, LINK, MERGE, Action, MemoryState, after_actions, linked_pairs
from memoranda.note.model import REMINDERS
from memoranda.text.compare import changes
from memoranda.text.tokens import is_cjk, stop_words, tokens
from memoranda.text.unicode import compared_lines

if TYPE_CHECKING:
    from datetime import datetime

FEWEST_TERMS = 5
"""Number of terms that a memory needs to be compared by them."""
MOST_LINKS = 10
"""Number of links to similar memories that a memory gets, together with the links it has."""

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
# Two Chinese characters or more in a row.
_HAN_RUN = re.compile(f"[{_HAN}]{{2,}}")
# Separates words that are joined to one text. No word contains it.
_SEPARATOR = "\0"
_LETTER = f"[^\\W_{_HAN}]"
# `don't`, `kube-proxy`, `config.yaml`, `max_retries` are one word each.
_WORD = re.compile(f"{_LETTER}+(?:(?:[.'-]|_+){_LETTER}+)*")


def lower_form(text: str) -> str:
    """Return a text in lower case and in Unicode's compatibility form: `Ｔｅａ` becomes `tea`."""
    # ASCII text is in compatibility form already.
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()


def words(lower_text: str) -> list[str]:
    """Return the words of a text: `anna's kube-proxy` has `anna` and `kube-proxy`.

    Equal words of all texts are one object, which saves memory and makes comparing fast.

    lower_text: the text, as `lower_form` returns it.
    """
    lower_text = lower_text.replace("’", "'")
    word_list = _WORD.findall(lower_text)
    if "'s" in lower_text:
        return [intern(word.removesuffix("'s")) for word in word_list]
    return list(map(intern, word_list))


def han_runs(lower_text: str) -> list[str]:
    """Return the runs of two or more Han characters: `喝茶 ok 咖啡` has `喝茶` and `咖啡`."""
    if lower_text.isascii():
        return []
    return _HAN_RUN.findall(lower_text)


def neighbouring_pairs(characters: str) -> Iterator[str]:
    """Return the pairs of neighbouring characters: `喝绿茶` has `喝绿` and `绿茶`."""
    # Faster than a loop, and there may be many thousand texts.
    return map(add, characters, characters[1:])


def terms(lower_text: str) -> frozenset[str]:
    """Return the words of a text and its pairs of neighbouring Han characters.

    `tea 喝绿茶` has the terms `tea`, `喝绿` and `绿茶`.
    """
    pairs_of_runs = map(neighbouring_pairs, han_runs(lower_text))
    return frozenset(words(lower_text)).union(*pairs_of_runs)


ENDING = re.compile(r"(?<=[^\W_]{3})(?:ing|ed|es|s|ly)(?![^\W_])")
"""Finds the ending of an English word, roughly. At least three letters stay: `walk|ing`, `need`."""
_FINAL_SIGNS = ".。!！"


# An English sentence of three words or more. The case of its first letter means nothing.
_SENTENCE = re.compile(r"[A-Z][a-z]+(?: [\w'’,;:()-]+){2,}[.!?]?", re.A)
# Signs of keys, flags and commands: in such lines a capital counts.
_CODE = re.compile(r"[_\d]|(?:^| )-|[a-z][A-Z]")


class _Text:
    """Hold a memory with its text in comparable form.

    lines: the lines of its text, without blank lines and blanks at line ends.
    unended_lines: the same lines, without a full stop or exclamation mark at the end of the text.
    key: a value that is equal for texts that count as the same.
    rank: a key that sorts the text that survives a merge first. It has more lines, or is longer,
        pinned, more often read, older, or has the smaller id.
    """

    def __init__(self, memory: MemoryState):
        self.memory = memory
        self.lines = compared_lines(memory.content)
        self.unended_lines = _without_final_sign(self.lines)
        self.key = _with_small_beginning(self.unended_lines)
        size = sum(map(len, self.unended_lines))
        self.rank = (
            -len(self.lines),
            -size,
            not memory.is_pinned,
            -memory.access_count,
            memory.created,
            memory.id,
        )

    def is_in(self, other_text: _Text) -> bool:
        """Whether all lines of this text are lines of `other_text`, in the same order."""
        return _are_in_order(self.lines, other_text.lines) or _are_in_order(
            self.unended_lines, other_text.unended_lines
        )


def _without_final_sign(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines of a text without a full stop or exclamation mark at its end."""
    if not lines:
        return lines
    *earlier_lines, last_line = lines
    if last_line[-1] not in _FINAL_SIGNS:
        return lines
    shortened_line = last_line[:-1].rstrip(" \t")
    # A line that is only a sign stays
    if not shortened_line:
        return lines
    return (*earlier_lines, shortened_line)


def _with_small_beginning(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines of a text. If it is one English sentence, its first letter becomes small.

    So `Anna likes tea` and `anna likes tea` are the same text. `Set_KEY to 1` stays as it is.
    """
    if len(lines) != 1:
        return lines
    (line,) = lines
    if not _SENTENCE.fullmatch(line) or _CODE.search(line):
        return lines
    return (line[0].lower() + line[1:],)


def _are_in_order(lines: Iterable[str], other_lines: Iterable[str]) -> bool:
    """Whether all `lines` are among `other_lines` in the same order."""
    # `in` consumes the iterator up to the line it finds, so the next line must come after it.
    remaining_lines = iter(other_lines)
    return all(line in remaining_lines for line in lines)


def _groups_of(memories: Iterable[MemoryState]) -> Iterable[list[MemoryState]]:
    """Return the memories of each block (see `MemoryState.block`)."""
    groups = defaultdict[Hashable, list[MemoryState]](list)
    for memory in memories:
        groups[memory.block].append(memory)
    return groups.values()


def plan_duplicates(memories: Sequence[MemoryState], job: str = "consolidate") -> list[Action]:
    """Plan to merge each memory into another one of its block that has all its lines in order.

    The other memory survives. It may have further lines between these. Of two memories with the
    same lines, the longer one survives, or else the pinned one, the one that was read more often,
    the older one, the one with the smaller id (`_Text.rank`).

    Pinned memories and memories without text are not merged into another. The plan does not depend
    on the order of `memories`. Source: contract 001, 18.6.

    job: the job that the actions name.
    """
    merges: list[_Merge] = []
    for group in _groups_of(memories):
        if len(group) > 1:
            merges += _merges_in(group)
    merges.sort(key=_Merge.order)
    actions: list[Action] = []
    for merge in merges:
        has_same_text = merge.survivor.key == merge.duplicate.key
        relation = "same text as" if has_same_text else "all its lines are in"
        survivor_id = merge.survivor.memory.id
        reason = f"{relation} {survivor_id[:8]}"
        duplicate = merge.duplicate.memory
        actions.append(
            Action(
                job=job,
                verb=MERGE,
                id=duplicate.id,
                reason=reason,
                path=duplicate.path,
                target=survivor_id,
            )
        )
    return actions


class _Merge(NamedTuple):
    """A memory that is merged away, and the memory that survives.

    duplicate: the memory that is merged.
    survivor: the memory that it is merged into.
    """

    duplicate: _Text
    survivor: _Text

    def order(self) -> tuple[str, datetime, str]:
        """A key that puts the merges into one survivor together, the oldest memory first."""
        return self.survivor.memory.id, self.duplicate.memory.created, self.duplicate.memory.id


def _merges_in(group: Iterable[MemoryState]) -> list[_Merge]:
    """Return the merges to make between the memories of one block."""
    merges: list[_Merge] = []
    # The survivor of each memory, by its id. A memory that stays is its own survivor.
    survivors: dict[str, _Text] = {}
    longer_texts = _LongerTexts()
    texts = [text for text in map(_Text, group) if text.lines]
    for text in sorted(texts, key=lambda candidate: candidate.rank):
        holder = longer_texts.holder_of(text)
        longer_texts.add(text)
        if holder is None or text.memory.is_pinned:
            # The memory stays.
            survivors[text.memory.id] = text
            continue
        # The holder may be merged into another text itself, which survives both.
        survivor = survivors[holder.memory.id]
        survivors[text.memory.id] = survivor
        merges.append(_Merge(text, survivor))
    return merges


class _LongerTexts:
    """Finds the holder of a text: another text that has all its lines in the same order.

    A holder is never shorter than the text. So the texts are added by their rank, the longest first,
    and each is looked up before it is added.
    """

    def __init__(self) -> None:
        self._first_by_key: dict[tuple[str, ...], _Text] = {}
        self._texts_by_line = defaultdict[str, list[_Text]](list)

    def add(self, text: _Text) -> None:
        """Add a text, which may hold shorter ones."""
        # Of texts with the same lines, the first one suffices.
        if text.key in self._first_by_key:
            return
        self._first_by_key[text.key] = text
        for line in {*text.lines, *text.unended_lines}:
            self._texts_by_line[line].append(text)

    def holder_of(self, text: _Text) -> _Text | None:
        """Return the first text that has all lines of `text`. None if no text does."""
        with_same_lines = self._first_by_key.get(text.key)
        if with_same_lines is not None:
            return with_same_lines
        # A text that has all lines has the rarest one, too. So only texts with it are looked at.
        for lines in (text.lines, text.unended_lines):
            texts_with_rarest_line = min((self._texts_by_line[line] for line in lines), key=len)
            for candidate in texts_with_rarest_line:
                if text.is_in(candidate):
                    return candidate
        return None


def plan_similar(memories: Sequence[MemoryState]) -> list[Action]:
    """Plan dream level 2: the merges of `plan_duplicates`, then links after them, best first.

    Two kinds of memories of one block are linked:
    - similar ones (reason `similar 0.86`): each has at least 5 terms, which overlap by 0.8 or more,
    - near ones (reason `near 0.67`): they make the same statement in other words (`near_pairs`).

    Memories that are linked already, or whose link somebody removed, get no link. No memory gets
    more than MOST_LINKS links. The plan does not depend on the order of `memories`.
    """
    merges = plan_duplicates(memories, DREAM)
    remaining = after_actions(memories, merges)
    terms_by_id = {memory.id: terms(lower_form(memory.content)) for memory in remaining}
    comparable = [memory for memory in remaining if len(terms_by_id[memory.id]) >= FEWEST_TERMS]
    similar_pairs: list[ScoredPair] = []
    for group in _groups_of(comparable):
        block = [_Terms(memory, terms_by_id[memory.id]) for memory in group]
        similar_pairs += _similar_pairs_in(block)
    similar_pairs.sort(key=ScoredPair.order)

    # A pair that is similar and near is similar.
    links = [("similar", pair) for pair in similar_pairs]
    similar_ids = {(pair.a, pair.b) for pair in similar_pairs}
    for pair in near_pairs(remaining):
        if (pair.a, pair.b) not in similar_ids:
            links.append(("near", pair))

    actions = [*merges]
    paths = {memory.id: memory.path for memory in remaining}
    for kind, pair in links:
        reason = f"{kind} {pair.score:.2f}"
        actions.append(
            Action(
                job=DREAM, verb=LINK, id=pair.a, reason=reason, path=paths[pair.a], target=pair.b
            )
        )
    return actions


class ScoredPair(NamedTuple):
    """Two memories that are much alike.

    score: how alike they are, above 0 and up to 1.
    a, b: their ids, the smaller one first.
    """

    score: float
    a: str
    b: str

    def order(self) -> tuple[float, str, str]:
        """A key that puts the best pairs first."""
        return -self.score, self.a, self.b


class _Terms(NamedTuple):
    """A memory, and the terms of its text."""

    memory: MemoryState
    terms: frozenset[str]

    def order(self) -> tuple[int, str]:
        """A key that puts memories with few terms first."""
        return len(self.terms), self.memory.id


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the share of common terms among all terms of two sets, or 0.0 if it is below 0.8.

    Neither set may be empty.

    a, b: the sets of terms.
    """
    # With c common terms, the share is c / (len(a) + len(b) - c). This is 0.8 or more if
    # 9 * c >= 4 * (len(a) + len(b)), which can be computed without rounding.
    size_of_both = len(a) + len(b)
    most_common_terms = min(len(a), len(b))
    if 9 * most_common_terms < 4 * size_of_both:
        return 0.0
    common_count = len(a & b)
    if 9 * common_count < 4 * size_of_both:
        return 0.0
    return common_count / (size_of_both - common_count)


_STOP_CHARACTERS = frozenset("的了是在我你他她它们都也就和与而且然后会要用把给，。")
# `t` is what is left of don't.
_NEGATIONS = frozenset(
    [
        "not",
        "no",
        "never",
        "none",
        "without",
        "nor",
        "cannot",
        "t",
        "不",
        "没",
        "别",
        "无",
        "未",
        "非",
        "勿",
    ]
)
# Words of comparisons. The order of the things around them matters: `tea over coffee`.
_COMPARING_WORDS = frozenset(["over", "than", "before", "after", "from", "比"])
# Words before the name of a thing: `in Heron`, `the importer`, `that Ledger will`.
_WORDS_BEFORE_THINGS = frozenset(
    [
        *("a", "an", "the", "this", "that", "these", "those", "each", "every"),
        *("my", "our", "your", "his", "her", "its", "their"),
        *("in", "of", "for", "with", "on", "at", "by", "about", "to", "into", "from", "when"),
    ]
)
# A capitalized word that does not begin a sentence, or words that stand before a colon at the
# beginning of a text.
_NAME = re.compile(r"(?<=[\w,;:'’\"“(] )[A-Z]\w+|^[A-Z]\w*(?: \w+){0,3}(?=:)")
# Number of content words that two texts must share to be near.
_LEAST_SHARED_WORDS = 3
# Share of the content words that two near texts have in common (Dice).
_LEAST_SHARE_OF_NEAR = 0.5
# The owner is asked to merge two memories that share so much of their content words (Dice), and at
# least two rare ones. A word is rare in up to 4 memories, or in one of 50 memories if these are
# more. Measured: docs/lab/categories-2026-11-28.md
_LEAST_SHARE_OF_ALIKE = 0.75
_LEAST_RARE_WORDS = 2
_MOST_MEMORIES_WITH_RARE_WORD = 4
_MEMORIES_PER_RARE_WORD = 50
# Number of memories that may share a word by which near ones are found.
_MOST_WITH_WORD = 40
# Number of words of the longest text that is compared word by word.
_MOST_COMPARED_WORDS = 80
# Number of letters by which two words count as one: allergic, allergy
_STEM_LETTERS = 5
# Number of words that each half must have in two texts with swapped halves.
_LEAST_CLAUSE_WORDS = 3


class _Statement(NamedTuple):
    """A text as words. `Anna is not allergic` has the words `anna`, `is`, `not`, `allergic`.

    words: all words in their order.
    content: the stems of the words that carry its meaning: `anna`, `aller`.
    """

    words: tuple[str, ...]
    content: frozenset[str]


def has_same_content(text: str, other_text: str) -> bool:
    """Whether two texts have the same words that count, as `is allergic` and `has an allergy`.

    A name, a thing, a number or a negation that only one of them has makes them different.

    text, other_text: the texts.
    """
    statement = _statement_of(text)
    other_statement = _statement_of(other_text)
    numbers = _numbers_and_negations(statement.words)
    other_numbers = _numbers_and_negations(other_statement.words)
    return statement.content == other_statement.content and numbers == other_numbers


def _statement_of(text: str) -> _Statement:
    """Split a text into words and content. A Chinese character is a word."""
    all_words = list[str]()
    for word in tokens(lower_form(text)):
        if is_cjk(word):
            # Each character of a run counts as a word.
            all_words += list(word)
        else:
            all_words.append(word)
    return _Statement(tuple(all_words), frozenset(map(_content, all_words)) - {""})


def _content(word: str) -> str:
    """Return the stem of a word, `aller` for `allergic`. "" for other words.

    The other words are stop words, negations and numbers.
    """
    if word in stop_words() or word in _STOP_CHARACTERS or word in _NEGATIONS or word.isdecimal():
        return ""
    return ENDING.sub("", word)[:_STEM_LETTERS]


def _nearness(a: _Statement, b: _Statement) -> float:
    """Return how much content two texts share if they state the same in other words, or else 0.0.

    Texts do not state the same if they differ in a number or a negation, if one has a different
    word at a place, or if two words are swapped. The two halves of a text may be swapped, unless it
    compares something.
    """
    shared = a.content & b.content
    has_long_text = max(len(a.words), len(b.words)) > _MOST_COMPARED_WORDS
    if len(shared) < _LEAST_SHARED_WORDS or has_long_text:
        return 0.0
    # The Dice coefficient
    score = 2 * len(shared) / (len(a.content) + len(b.content))
    if score < _LEAST_SHARE_OF_NEAR:
        return 0.0
    # Equal texts are duplicates, which are merged.
    are_duplicates = a.words == b.words
    differ_in_facts = _numbers_and_negations(a.words) != _numbers_and_negations(b.words)
    if are_duplicates or differ_in_facts:
        return 0.0
    if _swaps_compared_things(a.words, b.words, shared) or _replaces_word(a, b):
        return 0.0

    # The same words in another order may mean something else: "Anna called Bob".
    has_same_words = sorted(a.words) == sorted(b.words)
    if has_same_words and not _has_swapped_halves(a.words, b.words):
        return 0.0
    return score


def _swaps_compared_things(
    words_a: Sequence[str], words_b: Sequence[str], shared: frozenset[str]
) -> bool:
    """Whether two texts compare the same things in another order.

    `tea over coffee` and `coffee over tea` do.

    words_a, words_b: the words of the texts.
    shared: the content that both texts have.
    """
    if _COMPARING_WORDS.isdisjoint({*words_a} & {*words_b}):
        return False
    order_a = [word for word in map(_content, words_a) if word in shared]
    order_b = [word for word in map(_content, words_b) if word in shared]
    return order_a != order_b


def _replaces_word(a: _Statement, b: _Statement) -> bool:
    """Whether two texts differ in a word of content at the same place.

    `Anna drinks tea` and `Anna drinks milk` do. Such texts say different things.

    a, b: the texts as words and content.
    """
    for kind, start_a, end_a, start_b, end_b in changes(a.words, b.words):
        if kind != "replace":
            continue
        words_a = a.words[start_a:end_a]
        words_b = b.words[start_b:end_b]
        # Only of two runs of the same length, it is known which word replaces which
        if len(words_a) != len(words_b):
            continue
        for word_a, word_b in zip(words_a, words_b, strict=True):
            stem_a = _content(word_a)
            stem_b = _content(word_b)
            # A stop word has no content, so its stem is empty
            are_content = stem_a != "" and stem_b != ""
            # A word that the other text has elsewhere was only moved
            is_new_in_both = stem_a not in b.content and stem_b not in a.content
            if are_content and is_new_in_both:
                return True
    return False


def _has_swapped_halves(words: Sequence[str], other_words: Sequence[str]) -> bool:
    """Whether `other_words` are the same words with the last clause put first.

    `if it rains we take a car` and `we take a car if it rains` are.
    """
    # The words twice in a row contain every way to swap the halves.
    doubled_words = _join_words([*words, *words])
    joined_words = _join_words(other_words)
    position = doubled_words.find(joined_words)
    while position >= 0:
        first_half_size = doubled_words.count(_SEPARATOR, 0, position)
        second_half_size = len(words) - first_half_size
        if min(first_half_size, second_half_size) >= _LEAST_CLAUSE_WORDS:
            return True
        position = doubled_words.find(joined_words, position + 1)
    return False


def _join_words(words: Sequence[str]) -> str:
    """Join words, with a separator before each and at the end, so that only whole words match."""
    return f"{_SEPARATOR}{_SEPARATOR.join(words)}{_SEPARATOR}"


def _numbers_and_negations(words: Sequence[str]) -> Counter[str]:
    """Count the numbers among the words, and the negations together as `not`."""
    counts = Counter[str]()
    for word in words:
        if word in _NEGATIONS:
            counts["not"] += 1
        elif any(map(str.isnumeric, word)):
            counts[word] += 1
    return counts


def near_pairs(memories: Sequence[MemoryState], *, linked: bool = False) -> list[ScoredPair]:
    """Find memories of one block that make the same statement in other words, best pairs first.

    Reminders are left out, and so are pairs whose link somebody removed. No memory is in more than
    MOST_LINKS pairs.

    linked: whether pairs that are linked already are included.
    """
    all_pairs: list[ScoredPair] = []
    for group in _groups_of(memory for memory in memories if memory.category != REMINDERS):
        excluded_pairs = linked_pairs(group, "unlinked")
        if not linked:
            excluded_pairs = excluded_pairs | linked_pairs(group)
        all_pairs += _near_in(group, excluded_pairs)
    pair_counts = Counter[str]()
    best_pairs = []
    for pair in sorted(all_pairs, key=ScoredPair.order):
        may_have_more = pair_counts[pair.a] < MOST_LINKS and pair_counts[pair.b] < MOST_LINKS
        if may_have_more:
            pair_counts.update((pair.a, pair.b))
            best_pairs.append(pair)
    return best_pairs


def _near_in(
    group: Sequence[MemoryState], excluded_pairs: Collection[tuple[int, int]]
) -> list[ScoredPair]:
    """Find the near memories of one block.

    excluded_pairs: positions of two memories in `group` that are not looked at.
    """
    scored_pairs: list[ScoredPair] = []
    statements = [_statement_of(memory.content) for memory in group]
    for pair, count in _words_in_common(statements).items():
        # A single common word is chance.
        if count < 2 or pair in excluded_pairs:
            continue
        first, second = pair
        score = _nearness(statements[first], statements[second])
        if score:
            ids = sorted((group[first].id, group[second].id))
            scored_pairs.append(ScoredPair(score, ids[0], ids[1]))
    return scored_pairs


def _words_in_common(statements: Sequence[_Statement]) -> Counter[tuple[int, int]]:
    """Count the words that two texts share: positions of the two texts -> number of words.

    Frequent words are left out, since they would pair every text with every other.
    """
    positions_by_word = defaultdict[str, list[int]](list)
    for position, statement in enumerate(statements):
        # `_nearness` compares no longer text.
        if len(statement.words) > _MOST_COMPARED_WORDS:
            continue
        for word in statement.content.union(_han_pairs(statement.words)):
            positions_by_word[word].append(position)
    common_words = Counter[tuple[int, int]]()
    for word, positions in positions_by_word.items():
        is_single_character = is_cjk(word) and len(word) == 1
        if len(positions) <= _MOST_WITH_WORD and not is_single_character:
            common_words.update(combinations(positions, 2))
    return common_words


def _han_pairs(all_words: Sequence[str]) -> Iterator[str]:
    """Yield the pairs of neighbouring Chinese or Japanese characters: `喝绿茶` has `喝绿`, `绿茶`."""
    for first, second in pairwise(all_words):
        if is_cjk(first) and is_cjk(second):
            yield f"{first}{second}"


class _RareTerms:
    """Find sets of terms that may overlap by 0.8 or more, without comparing all pairs of sets.

    Two such sets share two of their rarest terms. These two are among the first `n // 9 + 2` terms
    of the smaller set, which has n terms, and among the first `n // 5 + 2` terms of the larger one.
    So the sets must be added in the order of their sizes, the smallest first.

    Each set is given as a list of ranks: the rank of a term is 0 for the rarest of all terms. A set
    is named by the position of its text.
    """

    def __init__(self) -> None:
        # The positions of the sets with a rank, and the rarest ranks of each set.
        self._positions_by_rank: dict[int, set[int]] = {}
        self._rarest_ranks: dict[int, list[int]] = {}

    def add(self, position: int, ranks: list[int]) -> None:
        """Add a set of terms.

        position: the position of the text that has these terms.
        ranks: the ranks of its terms, the rarest first.
        """
        self._rarest_ranks[position] = ranks[: len(ranks) // 9 + 2]
        for rank in self._rarest_ranks[position]:
            self._positions_by_rank.setdefault(rank, set()).add(position)

    def remove(self, position: int) -> None:
        """Remove a set that was added."""
        for rank in self._rarest_ranks[position]:
            self._positions_by_rank[rank].discard(position)

    def candidates(self, ranks: list[int]) -> list[int]:
        """Return the positions of smaller sets that may overlap with a set.

        They share at least two of its rarest terms.

        ranks: the ranks of the terms of the larger set, the rarest first.
        """
        shared_counts = Counter[int]()
        for rank in ranks[: len(ranks) // 5 + 2]:
            shared_counts.update(self._positions_by_rank.get(rank, ()))
        return [position for position, count in shared_counts.items() if count >= 2]


def pairs_to_ask(memories: Sequence[MemoryState]) -> list[ScoredPair]:
    """Return the pairs of `near_pairs`, linked ones too, that the owner should be asked to merge.

    Many memories share a turn of phrase (`and felt very happy`). So two texts must also share words
    that few memories have, and one text must contain nearly all content of the other. Two texts
    about two things (`In Heron, …` and `In Mobile sync, …`) are not asked about.
    """
    texts_by_id = {memory.id: memory.content for memory in memories}
    statements_by_id = {id: _statement_of(text) for id, text in texts_by_id.items()}
    contents = [statement.content for statement in statements_by_id.values()]
    # How many memories have each word.
    memory_counts = Counter(chain.from_iterable(contents))
    most_memories = max(_MOST_MEMORIES_WITH_RARE_WORD, len(memories) // _MEMORIES_PER_RARE_WORD)
    pairs = []
    for pair in near_pairs(memories, linked=True):
        if pair.score < _LEAST_SHARE_OF_ALIKE:
            continue
        a = statements_by_id[pair.a]
        b = statements_by_id[pair.b]
        shared_words = a.content & b.content
        rare_words = [word for word in shared_words if memory_counts[word] <= most_memories]
        if len(rare_words) < _LEAST_RARE_WORDS or not _contains_nearly_all(a, b):
            continue
        # A merge of texts about two things would mix these things up.
        has_two_names = _have_names_of_their_own(texts_by_id[pair.a], texts_by_id[pair.b])
        if not has_two_names and not _are_about_two_things(a, b):
            pairs.append(pair)
    return pairs


def _contains_nearly_all(a: _Statement, b: _Statement) -> bool:
    """Whether one of two texts has all content of the other, but for one word at most."""
    missing_in_b = len(a.content - b.content)
    missing_in_a = len(b.content - a.content)
    return min(missing_in_a, missing_in_b) <= 1


def _have_names_of_their_own(text: str, other_text: str) -> bool:
    """Whether each text has a name that the other one lacks: `Heron: …` and `… in Mobile sync`.

    text, other_text: the texts.
    """
    names = _names_in(text)
    other_names = _names_in(other_text)
    return bool(names - _stems_of(other_text)) and bool(other_names - _stems_of(text))


def _names_in(text: str) -> set[str]:
    """Return the stems of words that seem to be names, because they have a capital."""
    names = " ".join(_NAME.findall(text))
    return _stems_of(names)


def _stems_of(text: str) -> set[str]:
    """Return the content of a text (see `_Statement`)."""
    return set(_statement_of(text).content)


def _are_about_two_things(a: _Statement, b: _Statement) -> bool:
    """Whether two texts name different things at the same place.

    `In Heron, the importer fails` and `In Mobile sync, the importer fails` do. If only the verb
    differs, they do not: `Lena moved to Porto` and `Lena recently relocated to Porto`.

    a, b: the texts as words and content.
    """
    for kind, start_a, end_a, start_b, end_b in changes(a.words, b.words):
        if kind != "replace":
            continue
        words_a = a.words[start_a:end_a]
        words_b = b.words[start_b:end_b]
        # Content that the other text has at another place is not new. `_content` is "" for a word
        # without any.
        new_in_a = {*map(_content, words_a)} - b.content - {""}
        new_in_b = {*map(_content, words_b)} - a.content - {""}
        if not (new_in_a and new_in_b):
            continue
        if _names_thing(words_a, a.words[:start_a]) and _names_thing(words_b, b.words[:start_b]):
            return True
    return False


def _names_thing(different_words: Sequence[str], words_before: Sequence[str]) -> bool:
    """Whether the differing words of two texts seem to name a thing.

    different_words: these words in one of the texts.
    words_before: the words before them in this text.
    """
    # Chinese has no such words before a thing, so any words may name one
    if any(map(is_cjk, different_words)):
        return True
    # `the importer`: the word before the thing is before the difference, or a part of it
    has_word_before_thing = not _WORDS_BEFORE_THINGS.isdisjoint(
        [*words_before[-1:], *different_words]
    )
    if has_word_before_thing:
        return True
    # A text mostly begins with its subject, but in `we live` that is a pronoun.
    is_beginning = not words_before
    return is_beginning and _content(different_words[0]) != ""


def _counts_of_links(
    linked: Iterable[tuple[int, int]], term_sets: Sequence[frozenset[str]]
) -> Counter[int]:
    """Count the links of each memory in a block to similar memories: position -> number.

    linked: the positions of two memories in the block, for each link.
    term_sets: the terms of each memory of the block.
    """
    link_counts = Counter[int]()
    for position, other_position in linked:
        if overlap(term_sets[position], term_sets[other_position]):
            link_counts.update((position, other_position))
    return link_counts


def _similar_to(
    own_terms: frozenset[str], candidates: Iterable[int], term_sets: Sequence[frozenset[str]]
) -> list[tuple[float, int]]:
    """Return (overlap, position) of the memories that are similar to one, the most similar first.

    own_terms: the terms of the one.
    candidates: the positions of the memories to compare it with.
    term_sets: the terms of all memories, by their positions.
    """
    similar: list[tuple[float, int]] = []
    for position in candidates:
        share = overlap(own_terms, term_sets[position])
        # `overlap` returns 0.0 for every share below the one from which memories are similar.
        if share > 0:
            similar.append((share, position))
    return sorted(similar, key=_best_first)


def _similar_pairs_in(block: list[_Terms]) -> list[ScoredPair]:
    """Choose which memories of one block to link as similar.

    block: the memories with their terms. The list is sorted here.
    """
    block.sort(key=_Terms.order)
    memories = [row.memory for row in block]
    term_sets = [row.terms for row in block]
    linked = linked_pairs(memories)
    excluded_pairs = linked | linked_pairs(memories, "unlinked")
    link_counts = _counts_of_links(linked, term_sets)
    ranks_by_term = _ranks_by_rarity(term_sets)
    # The sets of terms before the present one. None of them is larger, since the block is sorted by
    # size. Sets of memories that have all their links are taken out.
    smaller_sets = _RareTerms()
    pairs: list[ScoredPair] = []
    for position, own_terms in enumerate(term_sets):
        if link_counts[position] >= MOST_LINKS:
            continue
        ranks = sorted(map(ranks_by_term.__getitem__, own_terms))
        candidates = [
            other_position
            for other_position in smaller_sets.candidates(ranks)
            if (other_position, position) not in excluded_pairs
        ]
        # Link the most similar ones, as long as this memory may have more links.
        remaining_links = MOST_LINKS - link_counts[position]
        similar = _similar_to(own_terms, candidates, term_sets)
        for share, other_position in similar[:remaining_links]:
            a, b = sorted((memories[position].id, memories[other_position].id))
            pairs.append(ScoredPair(share, a, b))
            link_counts.update((position, other_position))
            if link_counts[other_position] == MOST_LINKS:
                smaller_sets.remove(other_position)
        if link_counts[position] < MOST_LINKS:
            smaller_sets.add(position, ranks)
    return pairs


def _best_first(similar: tuple[float, int]) -> tuple[float, int]:
    """Return the sort key of an overlap and a position: the highest overlap, then the position."""
    share, position = similar
    return -share, position


def _ranks_by_rarity(term_sets: Iterable[frozenset[str]]) -> dict[str, int]:
    """Number the terms by rarity: 0 is the term that the fewest sets have."""
    set_counts = Counter(chain.from_iterable(term_sets))
    terms_by_rarity = sorted(set_counts, key=lambda term: (set_counts[term], term))
    return {term: rank for rank, term in enumerate(terms_by_rarity)}
