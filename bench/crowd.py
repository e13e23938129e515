"""As many turns as are wanted: a set of conversations told again by other people, in other words,
on other days.

Each telling has other names, and half of the words that are neither very common nor rare trade
places with words about as frequent, the same throughout a telling; one turn in twenty ends with a
word that no other turn has. So texts differ while their lengths and the shares of common and of rare words stay
those of people talking. Without a set they are made up.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

import vault
from conversations import Conversation, Question, Turn

_NAMES = """
Agnes Boris Clara Dmitri Edith Felix Greta Hugo Ines Jonas Karin Leon Mabel Nils Olga Pablo Queenie Rufus Selma Tobias
Ursula Viktor Wanda Xavier Yvonne Zeno
"""
NAMES = tuple(_NAMES.split())
_WORD = re.compile(r"\w+")
_COMMON = 0.02
_RARE = 3
_BAND = 40
_APART = timedelta(days=17)
_TURNS = 20
_OWN_WORD = 20


@dataclass(frozen=True)
class Crowd:
    """`turns` to be loaded, and questions somebody could ask about them."""

    turns: list[Turn]
    questions: list[str]


def crowd(
    conversations: Sequence[Conversation], number: int, most_questions: int, seed: int = 1
) -> Crowd:
    """`number` turns and up to `most_questions` questions about them, the same ones every time."""
    chance = Random(seed)
    talks = list(conversations) or list(_made_up(number, chance))
    counts = Counter[str]()
    for conversation in talks:
        for turn in conversation.turns:
            counts.update(set(_WORD.findall(turn.spoken.lower())))
    turns: list[Turn] = []
    questions: list[str] = []
    telling = 0
    while len(turns) < number:
        for conversation in talks:
            words = _words(conversation, counts, chance) if telling else {}
            told_turns = conversation.turns[: number - len(turns)]
            for turn in told_turns:
                turns.append(_again(turn, words, telling, len(turns)) if telling else turn)
            keys = {turn.key for turn in told_turns}
            for question in conversation.questions:
                if keys.issuperset(question.evidence):
                    questions.append(_said(question.text, words))
        telling += 1
    chance.shuffle(questions)
    return Crowd(turns, list(dict.fromkeys(questions))[:most_questions])


def _words(conversation: Conversation, counts: Mapping[str, int], chance: Random) -> dict[str, str]:
    """The words this telling of a conversation puts in place of others, its people's names among
    them.
    """
    total = max(counts.values())
    ordered = [
        word
        for word, count in sorted(
            counts.items(), key=lambda word_count: (-word_count[1], word_count[0])
        )
        if _RARE < count <= max(_RARE + 1, _COMMON * total) and word.isalpha() and len(word) > 3
    ]
    replacements: dict[str, str] = {}
    for at in range(0, len(ordered), _BAND):
        moved = [word for word in ordered[at : at + _BAND] if chance.random() < 0.5]
        replacements.update(zip(moved, [*moved[1:], *moved[:1]], strict=True))
    people = list(dict.fromkeys(turn.speaker.lower() for turn in conversation.turns))
    replacements.update(
        zip(people, (name.lower() for name in chance.sample(NAMES, len(people))), strict=True)
    )
    return replacements


def _said(text: str, words: Mapping[str, str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        word = match[0]
        instead = words.get(word.lower(), word)
        if word[0].isupper():
            return instead.capitalize()
        return instead

    if words:
        return _WORD.sub(replacement, text)
    return text


def _again(turn: Turn, words: Mapping[str, str], telling: int, number: int) -> Turn:
    if number % _OWN_WORD:
        addition = ""
    else:
        addition = f" {vault.rare_word(number).capitalize()}!"
    if turn.moment is None:
        moment = None
    else:
        moment = turn.moment - telling * _APART
    return replace(
        turn,
        key=f"{telling}/{turn.key}",
        session=f"{telling}/{turn.session}",
        moment=moment,
        speaker=_said(turn.speaker, words),
        text=_said(turn.text, words) + addition,
    )


def _made_up(number: int, chance: Random) -> Iterator[Conversation]:
    """Conversations of ten sessions, each question about words of one turn."""
    turns_made = 0
    while turns_made < number:
        conversation = Conversation(f"made-{turns_made}")
        people = chance.sample(NAMES, 2)
        begin = datetime(2023, 1, 1, 9) + timedelta(days=chance.randrange(300))
        for at in range(10 * _TURNS):
            session = f"{conversation.id}/session {at // _TURNS + 1:02}"
            text = _sentences(chance)
            moment = begin + timedelta(days=7 * (at // _TURNS))
            key = f"{conversation.id}/{at}"
            conversation.turns.append(
                Turn(key, session, at % _TURNS + 1, people[at % 2], text, moment)
            )
            if at % 4 == 0:
                few = [word for word in _WORD.findall(text) if len(word) > 4][-2:]
                question = (
                    f"What did {people[at % 2]} say about the {' and the '.join(few) or 'garden'}?"
                )
                conversation.questions.append(
                    Question(f"{conversation.id}-q{at}", question, "", 4, (key,), (session,))
                )
        turns_made += len(conversation.turns)
        yield conversation


def _sentences(chance: Random) -> str:
    words, weights = vault.vocabulary()
    drawn = []
    for _ in range(chance.randint(8, 45)):
        place = chance.random() * weights[-1]
        drawn.append(words[bisect_left(weights, place)])
    return f"I {' '.join(drawn)}."
