"""The write gate's rules: shapes of secrets, and markers of injected instructions (docs/gate.md).

They are read from `gate.rules` beside this module and from the owner's own file. A rule is compiled
when a word it needs is in a text, so that a text without any costs some microseconds and a
start nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path

from memoranda.text.disguise import uncovered, visible_letters
from memoranda.text.orders import Orders, combination
from memoranda.text.pattern import lazy_pattern
from memoranda.text.remembered import remembered

SECRET = "secret"
SUSPICIOUS = "suspicious"
OFF = "off"
_KINDS = (SECRET, SUSPICIOUS, OFF)
SPAN = 500_000
"""Longer texts are looked at in part: a write waits for the gate, with the lock held."""
_DIGITS = "0123456789"
# Words that are looked for one by one.
_FEW_WORDS = 30
# The shortest number of a card.
_CARD_DIGITS = 13
# Different words that a seed phrase has at least.
_SEED_WORDS = 9
# Signs that people put into passwords.
_SYMBOLS = frozenset("!@#$%^&*+~")
_CHECK = r"(luhn|entropy|value|given|token|words)(?: ([0-9.]+))?"
_KINDS_OF_CHARACTERS = ("unseen", "digits")
# Signs that texts are made of, the commonest last; all others are rarer.
_COMMON_SIGNS = "zqjx0987654321vkw:/-_.ybpgfmculdhr isnoate"
_KEYS = ("kind", "why", "near", "match", "parts", "check", "yes", "no")
# A part of a name that reads as a word: passwords have few of them.
_WORDLIKE = lazy_pattern(r"[A-Z]?[a-z]{2,}\d{0,5}|[A-Z]{2,}\d{0,3}")
# Words that say that a value is an example.
_SAMPLE = lazy_pattern(r"(?i)your|example|sample|x{4}|\.{3}")
# What is in the place of a secret without being one.
_PLACEHOLDER = (
    r"(?i)[<\[{(%*•.…/~-]|\$[{(A-Z_a-z]|(.)\1*\Z|(?:your|my|the|a)?[_-]?(?:password|passwd|pass|pwd?|secret|token|key"
    r"|api[_-]?key)\Z|your|example|changeme|redacted|hidden|none|null|true|false|xxx|https?:|process\.|os\.|env"
    r"|[A-Za-z_][\w.]{0,60}[\[(]|:?\*+|![A-Za-z]{2,12}\Z|replace|op://|vault:|insert|dummy|placeholder|to-?do\Z|tbd\Z|getenv|config\."
    r"|[\w.-]{0,12}your[_-]|[a-z]{2,8}[-_]x{3,}|[\w-]{2,12}\.\.\."
)


@dataclass(slots=True)
class GateRule:
    """One shape to look for: see the head of gate.rules."""

    id: str
    kind: str = ""
    why: str = ""
    near: tuple[str, ...] = ()
    match: str = ""
    parts: list[str] = field(default_factory=list)
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
        self._by_kind: dict[str, list[GateRule]] = {kind: [] for kind in _KINDS}
        for rule in rules.values():
            self._by_kind[rule.kind].append(rule)
        self._near = {kind: _by_sign(self._by_kind[kind]) for kind in _KINDS}
        self._near_words = {
            kind: dict(chain.from_iterable(words for sign, words in signs.items() if sign))
            for kind, signs in self._near.items()
        }
        self._orders: Orders | None = None

    def __iter__(self) -> Iterator[GateRule]:
        return iter(self._rules.values())

    def with_file(self, file: Path) -> Rules:
        """These rules and the rules in the owner's file, which replace rules with the same id.

        Raises OSError, ValueError.
        """
        own_rules = parse(file.read_text(encoding="utf-8-sig"))
        for rule in own_rules.values():
            try:
                _ = rule.pattern
                Orders([combination(rule.id, line) for line in rule.parts])
            except re.error as error:
                raise ValueError(
                    f"rule {rule.id}: match is no regular expression: {error}"
                ) from None
        return Rules(self._rules | own_rules)

    @remembered
    def find(self, text: str, kind: str, held: Collection[str] | None = None) -> list[GateMatch]:
        """The matches of rules of `kind`, in the order of the text. If matches overlap, only the
        first.

        A suspicious text is suspicious as a whole: those matches have the place of the text. Only
        the first and the last SPAN characters of a text are searched.

        text: the text.
        kind: the kind of rules.
        held: the words of `near` that the text, in lower case, is known to hold. None looks for
            them.
        """
        if kind == SUSPICIOUS:
            whole_span = (0, len(text))
            return [GateMatch(self._rules[name], *whole_span) for name in self.suspicions(text)]
        if len(text) > 2 * SPAN:
            shift = len(text) - SPAN
            moved = [
                GateMatch(match.rule, match.start + shift, match.end + shift)
                for match in self.find(text[shift:], kind, held=held)
            ]
            return self.find(text[:SPAN], kind, held=held) + moved
        matches = self._matches(text, kind, _words_near(text), held)
        matches.sort(key=lambda match: (match.start, -match.end))
        separate_matches: list[GateMatch] = []
        for match in matches:
            if not separate_matches or match.start >= separate_matches[-1].end:
                separate_matches.append(match)
        return separate_matches

    @remembered
    def suspicions(self, text: str) -> tuple[str, ...]:
        """The names of the rules by which `text` tries to instruct its reader, each once."""
        if len(text) > 2 * SPAN:
            rules_at_ends = self.suspicions(text[:SPAN]) + self.suspicions(text[-SPAN:])
            return tuple(dict.fromkeys(rules_at_ends))
        names = {
            match.rule.id: None for match in self._matches(text, SUSPICIOUS, _words_near(text))
        }
        # Text without entities and hidden characters.
        clear = uncovered(text)
        if clear.isascii():
            unmarked_text = clear
        else:
            unmarked_text = visible_letters(clear)
        for view in dict.fromkeys((clear, unmarked_text)):
            if view != text:
                names |= {match.rule.id: None for match in self._matches(view, SUSPICIOUS, set())}
        if self._orders is None:
            combinations = []
            for rule in self._by_kind[SUSPICIOUS]:
                combinations += [combination(rule.id, line) for line in rule.parts]
            self._orders = Orders(combinations)
        return tuple(names | self._orders.rules(unmarked_text))

    def _matches(
        self,
        text: str,
        kind: str,
        needed_words: set[str],
        rule_numbers: Collection[str] | None = None,
    ) -> list[GateMatch]:
        """Every place where the expression of a rule of `kind` matches."""
        by_sign = self._near[kind]
        to_try = [numbers for word, numbers in by_sign.get("", ()) if word in needed_words]
        if rule_numbers is None:
            rule_numbers = self.words_near(kind, text)
        to_try += [self._near_words[kind][word] for word in rule_numbers]
        matches = []
        for number in sorted(set[int]().union(*to_try)):
            rule = self._by_kind[kind][number]
            for match in rule.pattern.finditer(text):
                start, end = _secret_span(match)
                if all(_passes(text[start:end], *check) for check in rule.checks):
                    matches.append(GateMatch(rule, start, end))
        return matches

    def redacted(self, text: str, held: Collection[str] | None = None) -> str:
        """`text` with `[redacted: id]` for every secret. `held` as for `find`."""
        return redact(text, self.find(text, SECRET, held=held))

    def phrases_near(self, kind: str) -> list[str]:
        """Those words of `words_near` that are several."""
        return [word for word in self._near_words[kind] if " " in word]

    def words_near(self, kind: str, text: str) -> set[str]:
        """The words in `text` without which no rule of `kind` matches it: for `held` of `find`."""
        lower = text.lower()
        if len(self._near_words[kind]) < _FEW_WORDS:
            return {word for word in self._near_words[kind] if word in lower}
        by_sign = self._near[kind]
        words: set[str] = set()
        # Few words are looked for: those whose rarest sign the text has.
        for sign in by_sign.keys() & set(lower):
            words.update(word for word, _ in by_sign[sign] if word in lower)
        return words


def _by_sign(rules: list[GateRule]) -> dict[str, list[tuple[str, set[int]]]]:
    """The words of `near` by their rarest sign, each with the numbers of its rules; "" has those
    that mean a kind of character.
    """
    by_word: dict[str, set[int]] = {}
    for number, rule in enumerate(rules):
        for word in rule.near:
            by_word.setdefault(word, set()).add(number)
    words_by_sign: dict[str, list[tuple[str, set[int]]]] = {}
    for word, numbers in by_word.items():
        if word in _KINDS_OF_CHARACTERS:
            sign = ""
        else:
            sign = min(word, key=_COMMON_SIGNS.find)
        words_by_sign.setdefault(sign, []).append((word, numbers))
    return words_by_sign


def _secret_span(match: re.Match[str]) -> tuple[int, int]:
    """The part of a match to redact: the group `secret`, or the group of one letter that took part.

    Without such a group, the whole match.
    """
    for group in match.re.groupindex:
        if match[group] is not None and (group == "secret" or len(group) == 1):
            return match.span(group)
    return match.span()


def _words_near(text: str) -> set[str]:
    """The words of `near` that mean a kind of character, if the text has such characters."""
    needed_words = set()
    if not text.isascii():
        needed_words.add("unseen")
    if sum(map(text.count, _DIGITS)) >= _CARD_DIGITS:
        needed_words.add("digits")
    return needed_words


def redact(text: str, findings: list[GateMatch]) -> str:
    """`text` with `[redacted: id]` in the place of each finding."""
    parts = []
    copied_to = 0
    for finding in findings:
        if finding.start >= copied_to:
            parts += [text[copied_to : finding.start], f"[redacted: {finding.rule.id}]"]
            copied_to = finding.end
    return "".join([*parts, text[copied_to:]])


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
            name = row.strip("[] ")
            rule = GateRule(name)
            rules[name] = rule
            continue
        key, colon, value = row.partition(":")
        if rule is None or not colon or key.strip() not in _KEYS:
            raise ValueError(f"line {number}: expected [id], or one of {', '.join(_KEYS)}")
        if key.strip() == "kind" and value.strip() not in _KINDS:
            raise ValueError(f"line {number}: kind must be one of {', '.join(_KINDS)}")
        _set(rule, key.strip(), value.strip())
    for rule in rules.values():
        _check_whole(rule)
    return rules


def _check_whole(rule: GateRule) -> None:
    """Raise ValueError if a rule lacks its kind, or the texts it looks for."""
    has_match = rule.near and rule.match
    if rule.kind != OFF and not (rule.kind and (has_match or rule.parts)):
        raise ValueError(f"rule {rule.id}: kind, near and match are needed")


def _set(rule: GateRule, key: str, value: str) -> None:
    """Set what one line of a rules file says."""
    if key in ("yes", "no", "parts"):
        getattr(rule, key).append(value)
    elif key == "near":
        rule.near = tuple(word.replace("~", " ") for word in value.lower().split())
    elif key == "check":
        checks = re.findall(_CHECK, value)
        rule.checks = tuple((name, float(number or 0)) for name, number in checks)
    else:
        setattr(rule, key, value)


def example(text: str) -> str:
    """A text of `yes` or `no` as it is tried: without `~`, the escapes `\\u` and `\\U` resolved."""
    escaped = r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})"
    return re.sub(escaped, lambda match: chr(int(match[1] or match[2], 16)), text.replace("~", ""))


def _passes(text: str, check: str, least: float) -> bool:
    """Whether a match passes one of the checks at the head of gate.rules."""
    if check == "luhn":
        return _has_check_digit(text)
    if check == "entropy":
        return _bits_per_character(text) >= least
    if check == "words":
        return len(set(re.findall("[a-z]{3,}", text))) >= _SEED_WORDS
    value = text.rstrip(".!?):")
    if len(value) < 3 or re.match(_PLACEHOLDER, value):
        return False
    if check == "token":
        return _is_random(value)
    if check == "given":
        return True
    return len(value) > 3 and any(char.isdigit() or char in _SYMBOLS for char in value)


def _has_check_digit(text: str) -> bool:
    """Whether the last digit of a card number checks the others."""
    digits = [int(char) for char in reversed(text) if char.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _bits_per_character(text: str) -> float:
    """The entropy of a text, by how often each character occurs in it."""
    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * math.log2(share) for share in shares)


def _is_random(value: str) -> bool:
    """Whether a value looks drawn by a machine: digits among letters, and no words that signs
    part, as in names of files, modules and settings.
    """
    digits = sum(char.isdigit() for char in value)
    uppers = sum(char.isupper() for char in value)
    lowers = sum(char.islower() for char in value)
    is_mixed = digits >= 1 and uppers >= 3 and lowers >= 3
    if not (is_mixed or digits >= 3) or _SAMPLE.search(value):
        return False
    pieces = re.split("[-_./:=+~]", value)
    wordlike = sum(len(piece) for piece in pieces if _WORDLIKE.fullmatch(piece))
    return wordlike * 2 <= len(value)
