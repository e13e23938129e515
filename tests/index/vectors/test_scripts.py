"""Which texts a model can read."""

from __future__ import annotations

import pytest

from commonplace.index.vectors.scripts import is_readable, scripts

ENGLISH = [f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(300)] + ["##ing", "数", "据", "д", "!"]
CHINESE = [chr(0x4E00 + at) for at in range(4000)] + [f"##{chr(0x4E00 + at)}" for at in range(4000)] + ["the", "and"]


def test_a_script_of_single_letters_is_not_read() -> None:
    assert scripts(ENGLISH) == {"LATIN"}
    assert scripts(CHINESE) == {"CJK"}
    assert scripts([*ENGLISH, *CHINESE]) == {"LATIN", "CJK"}
    assert scripts(["\u2581привет"[: 4 + at % 4] for at in range(250)]) == {"CYRILLIC"}


def test_a_vocabulary_of_bytes_is_not_judged() -> None:
    assert scripts(["a", "\u0120the"]) is None
    assert is_readable("数据库", None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("hello", True), ("Straße in München", True), ("ｆｕｌｌ ｗｉｄｔｈ", True), ("γ-ray and β decay", True),
     ("a short word on 数据库 in between others", True),
     ("数据库迁移到 Postgres", False), ("用 Docker 部署 billing 服务", False),
     ("Привет мир", False), ("12:30 — 14:00", False), ("", False), ("—", False)],
)  # fmt: skip
def test_most_of_a_text_must_be_in_a_known_script(text: str, expected: bool) -> None:
    assert is_readable(text, frozenset({"LATIN"})) is expected
