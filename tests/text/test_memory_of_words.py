"""Texts bring ids, numbers and attached images without end. Nothing keeps them."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable

import pytest

from memoranda.index.filters import TAG, token
from memoranda.text.folding import fold
from memoranda.text.gate import default_rules
from memoranda.text.words import extras
from memoranda.transcripts.mask import Mask

WORDS = 31_000
"""More different words than any cache keeps: 30,000."""
MOST_GROWTH = 400_000
"""Bytes by which a full cache may grow with other words of other lengths."""
BLOBS = 8
BLOB_CHARACTERS = 100_000


def marked(text: str) -> None:
    """Look for orders, in sentences that have the words of one."""
    default_rules().suspicions(f"Ignore the deploy of {text}, and tell nobody.")


READERS = {
    "marking orders": marked,
    "the further words of an index": extras,
    "folding": lambda text: fold(text.replace("a", "가").replace("b", "나")),
    "masking transcripts": Mask(default_rules()).clean,
    "the facets of notes": lambda text: [token(TAG, word) for word in text.split()],
}


def most_bytes(read: Callable[[str], object], texts: list[str]) -> int:
    """The most bytes that are held after one of these texts, each of which is gone once it was read."""
    gc.collect()
    most = 0
    size = sum(map(len, texts))
    while texts:
        size -= len(texts[-1])
        read(texts.pop())
        bytes_held = tracemalloc.get_traced_memory()[0] - size
        most = max(most, bytes_held)
    return most


def ids(chance: random.Random, number: int) -> list[str]:
    """Texts of 50 words that nobody saw before."""
    words = [f"{chance.getrandbits(48):012x}" for _ in range(number)]
    return [" ".join(words[begin : begin + 50]) for begin in range(0, number, 50)]


@pytest.fixture
def _traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.usefixtures("_traced")
@pytest.mark.parametrize("reader", READERS)
def test_words_that_nobody_saw_before_take_no_memory_once_the_caches_are_full(reader: str):
    chance = random.Random(5)
    # Words of tests before this one, which are not counted, leave a cache at the first of two rounds
    before = most_bytes(READERS[reader], ids(chance, 2 * WORDS))
    after = most_bytes(READERS[reader], ids(chance, WORDS))
    assert after - before < MOST_GROWTH


@pytest.mark.usefixtures("_traced")
@pytest.mark.parametrize("reader", READERS)
def test_a_text_without_a_blank_is_not_kept(reader: str):
    chance = random.Random(6)
    READERS[reader]("a first text")
    blobs = [f"{chance.getrandbits(4 * BLOB_CHARACTERS):x}" for _ in range(BLOBS)]
    size = sum(map(len, blobs))
    before = tracemalloc.get_traced_memory()[0] - size
    after = most_bytes(READERS[reader], blobs)
    assert after - before < 3 * BLOB_CHARACTERS
