"""What holds from now on: preferences and orders, in English and Chinese."""

from __future__ import annotations

import pytest

from memoranda.text.standing import says_what_holds


@pytest.mark.parametrize(
    "text",
    [
        "I prefer tea.",
        "My favourite city is Rome.",
        "I really like trains.",
        "I'd like a window seat.",
        "Thanks! From now on, answer in French.",
        "Please always use tabs.",
        "The build is green.\n- Never push on Fridays.",
        "You should never call me early.",
        "我更喜欢喝茶。",
        "好的。以后请用中文回答。",
        "请记住我住在柏林。",
    ],
)
def test_preferences_and_orders_hold_from_now_on(text: str) -> None:
    assert says_what_holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The train was late.",
        "It looks like rain.",
        "She is always late.",
        "I do remember the canoe.",
        "Preferably not.",
        "昨天下雨了。",
        "从那以后他没来过。",
    ],
)
def test_what_happened_holds_not(text: str) -> None:
    assert not says_what_holds(text)


def test_only_the_beginning_of_a_very_long_text_is_read() -> None:
    story = "The wind was high. " * 1_000
    wish = "I prefer tea."
    assert says_what_holds(wish + story)
    assert not says_what_holds(story + wish)
