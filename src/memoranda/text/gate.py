"""The write gate's rules: shapes of secrets, and markers of injected instructions (docs/gate.md).

They are read from `gate.rules` beside this module and from the owner's own file. A rule is compiled
when a word it needs stands in a text, so that a text without any costs some microseconds and a
start nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

SECRET = "secret"
SUSPICIOUS = "suspicious"
OFF = "off"
_KINDS = (SECRET, SUSPICIOUS, OFF)
SPAN = 500_000
"""Longer texts are looked at in part: a write waits for the gate, with the lock held."""
_DIGITS = "0123456789"
_CARD_DIGITS = 13
_SYMBOLS = frozenset("!@#$%^&*+~")
_CHECK = r"(luhn|entropy|value|given)(?: ([0-9.]+))?"
_KEYS = ("kind", "why", "near", "match", "check", "yes", "no")
_PLACEHOLDER = (
    r"(?i)[<\[{(%*•.…/~-]|\$[{(A-Z_a-z]|(.)\1*\Z|(?:your|my|the|a)?[_-]?(?:password|passwd|pass|pwd?|secret|token|key"
    r"|api[_-]?key)\Z|your|example|changeme|redacted|hidden|none|null|true|false|xxx|https?:|process\.|os\.|env"
)
"""What stands in the place of a secret without being one."""


@dataclass(slots=True)
class GateRule:
    """One shape to look for: see the head of gate.rules."""

    id: str
    kind: str = ""
    why: str = ""
    near: tuple[str, ...] = ()
    match: str = ""
    checks: tuple[tuple[str, float], ...] = ()
    yes: list[str] = field(default_factory=list)
    no: list[str] = field(default_factory=list)
    _compiled: re.Pattern[str] | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """`match`, compiled at first use."""
        if self._compiled is None:
            self._compiled = re.compile(self.match, 0 if self.kind == SUSPICIOUS else re.ASCII)
        return self._compiled


@dataclass(frozen=True, slots=True)
class GateMatch:
    """A place of a text where a rule matches; `start` to `end` is what would be redacted."""

    rule: GateRule
    start: int
    end: int


class Rules:
    """Rules by id, asked by kind."""

    def __init__(self, rules: dict[str, GateRule]):
        self._rules = rules
        self._by_kind = {
            kind: [each for each in rules.values() if each.kind == kind] for kind in _KINDS
        }

    def __iter__(self) -> Iterator[GateRule]:
        return iter(self._rules.values())

    def with_file(self, file: Path) -> Rules:
        """These rules and those of the owner's file, which replace any of the same id. Raises
        OSError, ValueError.
        """
        own = parse(file.read_text(encoding="utf-8-sig"))
        for rule in own.values():
            try:
                _ = rule.pattern
            except re.error as error:
                raise ValueError(
                    f"rule {rule.id}: match is no regular expression: {error}"
                ) from None
        return Rules(self._rules | own)

    def find(self, text: str, kind: str) -> list[GateMatch]:
        """Where rules of `kind` match, in the order of the text; of overlapping matches the first.
        Of a text of more than 2 * SPAN characters only the first and the last SPAN are looked
        at."""
        if len(text) > 2 * SPAN:
            shift = len(text) - SPAN
            ends = self.find(text[shift:], kind)
            moved = [GateMatch(each.rule, each.start + shift, each.end + shift) for each in ends]
            return self.find(text[:SPAN], kind) + moved
        lower = text.lower()
        found = []
        near = set() if text.isascii() else {"unseen"}
        if kind == SECRET and sum(map(text.count, _DIGITS)) >= _CARD_DIGITS:
            near.add("digits")
        for rule in self._by_kind[kind]:
            for word in rule.near:
                if word in lower or word in near:
                    break
            else:
                continue
            for match in rule.pattern.finditer(text):
                start, end = match.span("secret" if "secret" in rule.pattern.groupindex else 0)
                if all(_passes(text[start:end], *check) for check in rule.checks):
                    found.append(GateMatch(rule, start, end))
        kept: list[GateMatch] = []
        for each in sorted(found, key=lambda each: (each.start, -each.end)) if found else ():
            if not kept or each.start >= kept[-1].end:
                kept.append(each)
        return kept

    def redacted(self, text: str) -> str:
        """`text` with `[redacted: id]` for every secret."""
        return redact(text, self.find(text, SECRET))


def redact(text: str, findings: list[GateMatch]) -> str:
    """`text` with `[redacted: id]` in the place of each finding."""
    parts = []
    at = 0
    for each in findings:
        if each.start >= at:
            parts += [text[at : each.start], f"[redacted: {each.rule.id}]"]
            at = each.end
    return "".join([*parts, text[at:]])


@cache
def default_rules() -> Rules:
    """The rules that come with the program."""
    return Rules(parse(Path(__file__).with_name("gate.rules").read_text(encoding="utf-8")))


def parse(text: str) -> dict[str, GateRule]:
    """The rules a file holds, by id. Raises ValueError that names the line."""
    rules: dict[str, GateRule] = {}
    rule: GateRule | None = None
    for number, row in enumerate(text.splitlines(), 1):
        if not row.strip() or row.startswith("#"):
            continue
        if row.startswith("["):
            rule = rules[row.strip("[] ")] = GateRule(row.strip("[] "))
            continue
        key, colon, value = (each.strip() for each in row.partition(":"))
        if rule is None or not colon or key not in _KEYS:
            raise ValueError(f"line {number}: expected [id], or one of {', '.join(_KEYS)}")
        if key in ("yes", "no"):
            getattr(rule, key).append(value)
        elif key == "near":
            rule.near = tuple(each.replace("~", " ") for each in value.lower().split())
        elif key == "check":
            rule.checks = tuple(
                (name, float(number or 0)) for name, number in re.findall(_CHECK, value)
            )
        elif key == "kind" and value not in _KINDS:
            raise ValueError(f"line {number}: kind must be one of {', '.join(_KINDS)}")
        else:
            setattr(rule, key, value)
    for each in rules.values():
        if each.kind != OFF and not (each.kind and each.near and each.match):
            raise ValueError(f"rule {each.id}: kind, near and match are needed")
    return rules


def example(text: str) -> str:
    """A text of `yes` or `no` as it is tried: without `~`, the escapes `\\u` and `\\U` resolved."""
    escaped = r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})"
    return re.sub(escaped, lambda found: chr(int(found[1] or found[2], 16)), text.replace("~", ""))


def _passes(text: str, check: str, least: float) -> bool:
    # Whether the last digit of a card number checks the others
    if check == "luhn":
        digits = [int(each) for each in reversed(text) if each.isdigit()]
        return (
            sum(digits[::2]) + sum(sum(divmod(2 * each, 10)) for each in digits[1::2])
        ) % 10 == 0
    # Bits per character, by how often each occurs
    if check == "entropy":
        shares = [text.count(each) / len(text) for each in set(text)]
        return -sum(share * math.log2(share) for share in shares) >= least
    value = text.rstrip(".!?):")
    if len(value) < 3 or re.match(_PLACEHOLDER, value):
        return False
    return check == "given" or (
        len(value) > 3 and any(each.isdigit() or each in _SYMBOLS for each in value)
    )
