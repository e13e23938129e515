"""How the key-value tools show keys and namespaces in Markdown."""

from __future__ import annotations

import itertools

import pytest

from contract.key_value import KeyValue

# Names that would be the same line if line breaks and unseen characters were only escaped.
ALIKE_NAMES = ("a\nb", r"a\nb", '"a\\nb"', "a\tb", "a b", "a\u202eb", r"a\u202eb", "a\r\nb")


@pytest.mark.parametrize("field", ["key", "namespace"])
def test_names_that_differ_are_shown_differently(entries: KeyValue, field: str) -> None:
    lines = set()
    for name in ALIKE_NAMES:
        reply, _ = entries.call("remember", **{"key": "k", "value": "v", field: name})
        lines |= {line for line in reply.split("\n") if line.startswith(f"**{field}:**")}
    assert len(lines) == len(ALIKE_NAMES)


def test_messages_about_names_that_differ_differ(entries: KeyValue) -> None:
    messages = []
    for key in ALIKE_NAMES:
        reply, _ = entries.call("remember", key=key, value="v")
        messages.append(reply.split("\n")[1])
    assert all(first != second for first, second in itertools.combinations(messages, 2))


def test_a_name_of_one_visible_line_is_shown_as_it_is(entries: KeyValue) -> None:
    reply, _ = entries.call("remember", key=r"C:\new 'x' 中文", value="v")
    assert r"**key:** C:\new 'x' 中文" in reply.split("\n")
