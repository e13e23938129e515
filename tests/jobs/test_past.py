"""Which sentences tell that something happened on a day, and which that something is to come."""

from __future__ import annotations

import pytest

from memoranda.jobs.past import is_past


@pytest.mark.parametrize(
    ("sentence", "phrase"),
    [
        ("Seen again on Thursday", "Thursday"),
        ("The server crashed again on Thursday", "Thursday"),
        ("- Visited Anna on Friday", "Friday"),
        ("We met Lukas on Friday in Porto", "Friday"),
        ("Anna called on Monday", "Monday"),
        ("The party was on Friday", "Friday"),
        ("周四又看到了那只鸟", "周四"),
        ("周五和卢卡斯见过面", "周五"),
        ("星期一已经修好", "星期一"),
    ],
)
def test_a_day_after_a_verb_in_the_past_is_over(sentence, phrase):
    assert is_past(sentence, phrase)


@pytest.mark.parametrize(
    ("sentence", "phrase"),
    [
        ("Ask Lukas on Friday about the budget", "Friday"),
        ("Dinner with friends on Friday", "Friday"),
        ("The review was moved to Friday", "Friday"),
        ("Anna invited us for dinner on Friday", "Friday"),
        ("I was told to call Anna on Friday", "Friday"),
        ("Met Lukas, dinner on Friday", "Friday"),
        ("The shared dinner on Friday", "Friday"),
        ("Feed the cat on Friday", "Friday"),
        ("周四约了牙医", "周四"),
        ("会议改到了周五", "周五"),
        ("周五别忘了打电话", "周五"),
        ("周五要交报告了", "周五"),
        ("周五和朋友吃饭", "周五"),
    ],
)
def test_a_day_that_was_arranged_or_has_no_past_is_to_come(sentence, phrase):
    assert not is_past(sentence, phrase)
