"""Comparing texts within a budget of work."""

from __future__ import annotations

import random
import time
from difflib import SequenceMatcher

import pytest

from memoranda.text import compare
from memoranda.text.compare import grouped_changes

N = 2_900


def applied(old, new, groups):
    """The old text with the changes of `groups`, which must be the new one."""
    lines = []
    at = 0
    for group in groups:
        for tag, start, end, new_start, new_end in group:
            lines += old[at:start]
            lines += old[start:end] if tag == "equal" else new[new_start:new_end]
            at = end
    return lines + old[at:]


def shuffled(lines):
    lines = list(lines)
    random.Random(1).shuffle(lines)
    return lines


HARD = {
    "like lines": (["x"] * N, ["x"] * (N - 1) + ["y"] + ["x"]),
    "two kinds": (["a", "b"] * (N // 2), ["b", "a", "a"] * (N // 3)),
    "reversed": ([str(n) for n in range(N)], [str(n) for n in reversed(range(N))]),
    "shuffled": ([str(n) for n in range(N)], shuffled(str(n) for n in range(N))),
    "blank lines": (
        [line for n in range(N) for line in (str(n), "")],
        [line for n in range(N) for line in (str(-n), "")],
    ),
    "very long": (["x"] * 40_000, ["y", "x"] * 20_000),
}


@pytest.mark.promise("bounded-work")
@pytest.mark.parametrize("name", HARD)
def test_texts_that_are_hard_to_compare_take_little_time(name):
    old, new = HARD[name]
    begun = time.process_time()
    groups = grouped_changes(old, new, 2)
    assert time.process_time() - begun < 1.0
    assert applied(old, new, groups) == new


def test_usual_texts_are_compared_as_difflib_does():
    generator = random.Random(2)
    for _ in range(50):
        old = [generator.choice("abcdefgh") for _ in range(generator.randrange(60))]
        new = [line for line in old if generator.random() > 0.2] + ["z"]
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        assert grouped_changes(old, new, 2) == [
            list(get_grouped_opcode) for get_grouped_opcode in matcher.get_grouped_opcodes(2)
        ]


def test_texts_too_long_to_compare_keep_their_common_beginning_and_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compare, "STEPS", 0)
    assert compare.changes("abxyc", "abzc") == [
        ("equal", 0, 2, 0, 2),
        ("replace", 2, 4, 2, 3),
        ("equal", 4, 5, 3, 4),
    ]
    assert compare.changes("ac", "abc")[1] == ("insert", 1, 1, 1, 2)
    assert compare.changes("abc", "ab") == [("equal", 0, 2, 0, 2), ("delete", 2, 3, 2, 2)]
    assert compare.changes("x", "y") == [("replace", 0, 1, 0, 1)]
