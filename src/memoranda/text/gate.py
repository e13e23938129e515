"""Find secrets and injected instructions in a text, by the rules of the write gate (docs/gate.md).

A rule has a regular expression and words (`near`). The expression is tried only if a text has one of
these words, so that most texts cost microseconds. Rules are read from `gate.rules` in this folder and
from the owner's own file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.text.pattern import lazy_pattern
from memoranda.text.remembered import remembered

if TYPE_CHECKING:
    from memoranda.text.orders import Orders

SECRET = "secret"
SUSPICIOUS = "suspicious"
OFF = "off"
_KINDS = (SECRET, SUSPICIOUS, OFF)
SPAN = 500_000
"""How many characters are searched at the beginning and at the end of a long text.

A write holds the lock while it waits for the gate.
"""
_DIGITS = "0123456789"
# If there are fewer words of `near`, each is looked for, whatever its signs.
_FEW_WORDS = 30
# A run of letters beyond ASCII, and what stands for each run where only ASCII is searched. Without
# it, the words before and after the run would become one.
_BEYOND_ASCII = lazy_pattern(r"[^\x00-\x7f]+")
_BEYOND_ASCII_MARK = "\x80"
# The fewest digits of the number of a card.
_CARD_DIGITS = 13
# A secret may go over a cut. So this many characters behind the cut are looked at, too.
_LONGEST_SECRET = 4_000
# The fewest different words of a seed phrase.
_SEED_WORDS = 9
# Signs that people put into passwords.
_SYMBOLS = frozenset("!@#$%^&*+~")
# A check in a rules file: its name, and the least value that passes.
_CHECK = r"(luhn|entropy|value|given|token|words)(?: ([0-9.]+))?"
# Words of `near` that mean a kind of character, and not the word itself.
_KINDS_OF_CHARACTERS = ("unseen", "digits")
# The common characters of texts, the most common last. All other characters are rarer.
_COMMON_CHARACTERS = "zqjx0987654321vkw:/-_.ybpgfmculdhr isnoate"
# The keys of a rule in a rules file.
_KEYS = (
    "kind",
    "why",
    "near",
    "then",
    "match",
    "parts",
    "likeness",
    "longer",
    "check",
    "yes",
    "no",
)
# The signs between the words of a name.
_NAME_SIGNS = lazy_pattern(r"[\W_]+")
# The shortest order has this many blanks.
_FEWEST_ORDER_BLANKS = 2
# A part of a name that reads as a word: passwords have few of them.
_WORDLIKE = lazy_pattern(r"[A-Z]?[a-z]{2,}\d{0,5}|[A-Z]{2,}\d{0,3}")
# Words that say that a value is an example.
_SAMPLE = lazy_pattern(r"(?i)your|example|sample|x{4}|\.{3}")
# The beginning of a value that is only an example or a reference in the place of a secret.
_PLACEHOLDER = (
    r"(?i)[<\[{(%*•.…/~-]|\$[{(A-Z_a-z]|(.)\1*\Z|(?:your|my|the|a)?[_-]?(?:password|passwd|pass|pwd?|secret|token|key"
    r"|api[_-]?key)\Z|your|example|changeme|redacted|hidden|none|null|true|false|xxx|https?:|process\.|os\.|env"
    r"|[A-Za-z_][\w.]{0,60}[\[(]|:?\*+|![A-Za-z]{2,12}\Z|replace|op://|vault:|insert|dummy|placeholder|to-?do\Z|tbd\Z|getenv|config\."
    r"|[\w.-]{0,12}your[_-]|[a-z]{2,8}[-_]x{3,}|[\w-]{2,12}\.\.\."
)


@dataclass(slots=True)
class GateRule:
    """A rule of the gate (see the head of gate.rules).

    kind: SECRET, SUSPICIOUS, or OFF for a rule that the owner switched off.
    why: the reason shown to the user.
    near: the words in lower case. A text must have one of them.
    then: a regular expression for the text directly behind such a word. "" for any text.
    match: the regular expression of the text to find.
    parts: combinations of words in a sentence, such as `drop + earlier|every + orders` (orders.py).
    likeness: how much like an order the words around a match of `parts` must be, as a score from
        about -5 to 5 (likeness.py). Without `parts`, any words of the text. None means no limit.
    longer: a text with more characters than this matches, whatever it says. None means no limit.
    checks: further checks of a match, each with its name and the least value that passes.
    yes, no: example texts that the rule must match, and must not match.
    """

    id: str
    kind: str = ""
    why: str = ""
    near: tuple[str, ...] = ()
    then: str = ""
    match: str = ""
    parts: list[str] = field(default_factory=list)
    likeness: float | None = None
    longer: int | None = None
    checks: tuple[tuple[str, float], ...] = ()
    yes: list[str] = field(default_factory=list)
    no: list[str] = field(default_factory=list)
    _compiled: re.Pattern[str] | None = None
    _compiled_then: re.Pattern[str] | None = None

    def may_match(self, text: str) -> bool:
        """Whether the rule could match a text, by a quick check before `pattern` is tried.

        The text must match `then` right behind a word of `near`. Finding a word is much faster than
        trying an expression at each place of a text.
        """
        lower = text.lower()
        # A few letters become two in lower case. Then positions in `lower` are wrong in `text`.
        has_other_positions = len(lower) != len(text)
        if not self.then or has_other_positions:
            return True
        if self._compiled_then is None:
            self._compiled_then = re.compile(self.then, re.ASCII)
        for word in self.near:
            position = lower.find(word)
            while position >= 0:
                if self._compiled_then.match(text, position + len(word)):
                    return True
                position = lower.find(word, position + 1)
        return False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The regular expression `match`, compiled at first use."""
        if self._compiled is None:
            # Secrets are ASCII. Instructions may be in any script.
            flags = 0 if self.kind == SUSPICIOUS else re.ASCII
            self._compiled = re.compile(self.match, flags)
        return self._compiled


@dataclass(frozen=True, slots=True)
class GateMatch:
    """A place in a text where a rule matches.

    rule: the rule that matches.
    start, end: the offsets of the part to redact.
    """

    rule: GateRule
    start: int
    end: int


class Rules:
    """The rules of the gate, and the search for texts that match them."""

    def __init__(self, rules: dict[str, GateRule]):
        """rules: by their ids."""
        self._rules = rules
        self._by_kind: dict[str, list[GateRule]] = {kind: [] for kind in _KINDS}
        for rule in rules.values():
            self._by_kind[rule.kind].append(rule)
        # Kind of rule → entry of `near` → the indexes of the rules that have it. An entry is a word
        # or one of `_KINDS_OF_CHARACTERS`.
        self._rules_by_entry = {kind: _rule_indexes(self._by_kind[kind]) for kind in _KINDS}
        # Kind of rule → character → the words of `near` of which it is the rarest character
        self._words_by_character = {
            kind: _by_rarest_character(self._rules_by_entry[kind]) for kind in _KINDS
        }
        # Kind of rule → all words of `near`
        self._words = {
            kind: list(chain.from_iterable(self._words_by_character[kind].values()))
            for kind in _KINDS
        }
        # Made when it is first needed
        self._orders: Orders | None = None

    def __iter__(self) -> Iterator[GateRule]:
        return iter(self._rules.values())

    def with_file(self, file: Path) -> Rules:
        """Return these rules with the rules of the owner's file, which replace equal ids.

        Raises OSError if the file cannot be read, and ValueError if a rule in it is not valid.
        """
        from memoranda.text.orders import Orders, parse_combination

        own_rules = parse(file.read_text(encoding="utf-8-sig"))
        for rule in own_rules.values():
            for key, expression in (("match", rule.match), ("then", rule.then)):
                try:
                    re.compile(expression)
                except re.error as error:
                    raise ValueError(
                        f"rule {rule.id}: {key} is no regular expression: {error}"
                    ) from None
            # This raises ValueError for a part that does not exist
            Orders([parse_combination(rule.id, line) for line in rule.parts], likeness={})
        return Rules(self._rules | own_rules)

    @remembered
    def find(
        self, text: str, kind: str, near_words: Collection[str] | None = None
    ) -> list[GateMatch]:
        """Find where rules of `kind` match a text. Returns the matches in the order of the text.

        If matches overlap, only the first is returned. A match of kind SUSPICIOUS is the whole
        text. Only the first and the last SPAN characters of a long text are searched.

        near_words: the words of `near` that the text has (`words_near`). None to look for them
            here.
        """
        if kind == SUSPICIOUS:
            return [
                GateMatch(self._rules[name], start=0, end=len(text))
                for name in self.suspicions(text)
            ]
        if len(text) > 2 * SPAN:
            end_start = len(text) - SPAN
            matches_at_beginning = self.find(text[:SPAN], kind, near_words=near_words)
            matches_at_end = [
                GateMatch(match.rule, match.start + end_start, match.end + end_start)
                for match in self.find(text[end_start:], kind, near_words=near_words)
            ]
            return matches_at_beginning + matches_at_end
        matches = self._matches(text, kind, _kinds_of_characters_in(text), near_words)
        # Of matches that begin at one place, the longest comes first and is taken.
        matches.sort(key=lambda match: (match.start, -match.end))
        separate_matches: list[GateMatch] = []
        for match in matches:
            if not separate_matches or match.start >= separate_matches[-1].end:
                separate_matches.append(match)
        return separate_matches

    @remembered
    def suspicions(self, text: str) -> tuple[str, ...]:
        """Return the ids of the rules that take `text` for an order to its reader.

        Only the first and the last SPAN characters of a long text are searched. A text whose middle
        was not searched matches the rule `unread-middle`.
        """
        # Dicts in place of sets, since they keep the order
        too_long = dict.fromkeys(
            rule.id
            for rule in self._by_kind[SUSPICIOUS]
            if rule.longer is not None and len(text) > rule.longer
        )
        if len(text) > 2 * SPAN:
            rules_at_ends = self.suspicions(text[:SPAN]) + self.suspicions(text[-SPAN:])
            return tuple(dict.fromkeys(rules_at_ends) | too_long)
        # These imports take a hook 5 ms, and most hooks check only for secrets.
        from memoranda.text.disguise import uncovered, visible_letters

        # The text with its entities and escapes replaced, and without hidden characters
        uncovered_text = uncovered(text)
        clear_text = uncovered_text
        if not uncovered_text.isascii():
            clear_text = visible_letters(uncovered_text)

        matches = self._matches(text, SUSPICIOUS, _kinds_of_characters_in(text))
        for view in dict.fromkeys((uncovered_text, clear_text)):
            if view != text:
                matches += self._matches(view, SUSPICIOUS, kinds_of_characters=set())
        names = too_long | dict.fromkeys(match.rule.id for match in matches)
        return tuple(names | self._order_rules().rules(clear_text))

    def _order_rules(self) -> Orders:
        """Return the search for sentences that meet the combinations of suspicious rules."""
        from memoranda.text.orders import Orders, parse_combination

        if self._orders is None:
            combinations = []
            likeness = {}
            for rule in self._by_kind[SUSPICIOUS]:
                combinations += [parse_combination(rule.id, line) for line in rule.parts]
                if rule.likeness is not None:
                    likeness[rule.id] = rule.likeness
            self._orders = Orders(combinations, likeness)
        return self._orders

    def name_suspicions(self, path: str) -> tuple[str, ...]:
        """Return the ids of the rules that take a name for an order to its reader.

        path: the name. In a path, each part is checked, and the path as a whole.
        """
        possible_orders = possible_orders_in_name(path)
        if not possible_orders:
            return ()
        return self.suspicions(possible_orders)

    def _matches(
        self,
        text: str,
        kind: str,
        kinds_of_characters: set[str],
        near_words: Collection[str] | None = None,
    ) -> list[GateMatch]:
        """Return all matches of the expressions of rules of `kind`. They may overlap.

        kinds_of_characters: the entries of `_KINDS_OF_CHARACTERS` that the text may have.
        near_words: the words of `near` that the text has. None to look for them here.
        """
        if near_words is None:
            near_words = self.words_near(kind, text)
        rules_by_entry = self._rules_by_entry[kind]
        rules_to_try: set[int] = set()
        for entry in [*near_words, *kinds_of_characters]:
            rules_to_try |= rules_by_entry.get(entry, set())
        matches = []
        for rule_index in sorted(rules_to_try):
            rule = self._by_kind[kind][rule_index]
            if not rule.may_match(text):
                continue
            for match in rule.pattern.finditer(text):
                start, end = _secret_span(match)
                if all(_passes(text[start:end], *check) for check in rule.checks):
                    matches.append(GateMatch(rule, start, end))
        return matches

    def redacted(self, text: str, near_words: Collection[str] | None = None) -> str:
        """Replace every secret in `text` by `[redacted: id]`, with the id of the rule that found it.

        near_words: the words of `near` that the text has (`words_near`); None to look for them here.
        """
        return redact(text, self.find(text, SECRET, near_words=near_words))

    def redacted_beginning(self, text: str, length: int) -> str:
        """Return the first `length` characters of a text after its secrets are replaced.

        A secret that goes over the cut is replaced, too. If the text were cut first, the beginning
        of such a secret would not be recognized, and would stay.
        """
        return self.redacted(text[: length + _LONGEST_SECRET])[:length]

    def near(self, kind: str) -> list[str]:
        """Return the words that rules of `kind` have in `near`. Some of them are phrases."""
        return list(self._words[kind])

    def words_near(self, kind: str, text: str) -> set[str]:
        """Return the words in `text` that rules of `kind` list in `near`.

        `find` takes them as `near_words`.
        """
        lower = text.lower()
        if len(self._words[kind]) < _FEW_WORDS:
            return {word for word in self._words[kind] if word in lower}
        words_by_character = self._words_by_character[kind]
        # An ASCII word is in both texts or in neither, and this one is shorter
        text_for_ascii = lower if lower.isascii() else _BEYOND_ASCII.sub(_BEYOND_ASCII_MARK, lower)
        words_found: set[str] = set()
        # Only words whose rarest character is in the text need to be looked for, which are few
        for character in words_by_character.keys() & set(lower):
            for word in words_by_character[character]:
                searched_text = text_for_ascii if word.isascii() else lower
                if word in searched_text:
                    words_found.add(word)
        return words_found


def _rule_indexes(rules: list[GateRule]) -> dict[str, set[int]]:
    """Return where each entry of `near` is used: entry -> the indexes of its rules."""
    indexes_by_entry: dict[str, set[int]] = {}
    for index, rule in enumerate(rules):
        for entry in rule.near:
            indexes_by_entry.setdefault(entry, set()).add(index)
    return indexes_by_entry


def _by_rarest_character(entries: Iterable[str]) -> dict[str, list[str]]:
    """Group words by their rarest character.

    entries: the words, and entries that mean a kind of character, which are left out.
    """
    words_by_character: dict[str, list[str]] = {}
    for entry in entries:
        if entry not in _KINDS_OF_CHARACTERS:
            # For a character that is not common, `find` returns -1
            character = min(entry, key=_COMMON_CHARACTERS.find)
            words_by_character.setdefault(character, []).append(entry)
    return words_by_character


def words_of_name(name: str) -> str:
    """Return the words of a name or a path: `ignore All rules md` for `ignoreAll/rules.md`."""
    from memoranda.text.words import hump

    return _NAME_SIGNS.sub(" ", hump().sub(" ", name)).strip()


def possible_orders_in_name(path: str) -> str:
    """Return the words of a name that may be orders, as a text to search. "" if none may be.

    path: the name. In a path, each part counts, and the path as a whole.
    """
    path = path.removesuffix(".md")
    names = [*path.split("/"), path]
    sentences = dict.fromkeys(words_of_name(name) for name in names)
    # As paragraphs, so that they are not read as one sentence
    return "\n\n".join(filter(may_be_order, sentences))


def may_be_order(words: str) -> bool:
    """Whether a name or a value has enough words for an order."""
    # Some scripts are written without blanks.
    return words.count(" ") >= _FEWEST_ORDER_BLANKS or not words.isascii()


def _secret_span(match: re.Match[str]) -> tuple[int, int]:
    """Return the start and end of the part of a match to redact.

    A rule names this part as the group `secret`, or as `a`, `b` and so on in alternatives. Without
    such a group, it is the whole match.
    """
    for group in match.re.groupindex:
        if match[group] is not None and (group == "secret" or len(group) == 1):
            return match.span(group)
    return match.span()


def _kinds_of_characters_in(text: str) -> set[str]:
    """Return the entries of `_KINDS_OF_CHARACTERS` that the text may have."""
    kinds = set()
    if not text.isascii():
        kinds.add("unseen")
    if sum(map(text.count, _DIGITS)) >= _CARD_DIGITS:
        kinds.add("digits")
    return kinds


def redact(text: str, findings: list[GateMatch]) -> str:
    """Replace each finding in `text` by `[redacted: id]`.

    findings: the matches, in the order of the text. One that overlaps the one before is skipped.
    """
    parts = []
    copied_to = 0
    for finding in findings:
        if finding.start >= copied_to:
            parts += [text[copied_to : finding.start], f"[redacted: {finding.rule.id}]"]
            copied_to = finding.end
    return "".join([*parts, text[copied_to:]])


@cache
def default_rules() -> Rules:
    """Return the rules of `gate.rules`, which come with the program."""
    return Rules(parse(Path(__file__).with_name("gate.rules").read_text(encoding="utf-8")))


def parse(text: str) -> dict[str, GateRule]:
    """Read the text of a rules file. Return the rules by id.

    Raises ValueError with the number of a bad line, or the id of a rule that lacks a key.
    """
    rules: dict[str, GateRule] = {}
    rule: GateRule | None = None
    for number, row in enumerate(text.splitlines(), 1):
        if not row.strip() or row.startswith("#"):
            continue
        if row.startswith("["):
            rule_id = row.strip("[] ")
            rule = GateRule(rule_id)
            rules[rule_id] = rule
            continue
        key, colon, value = row.partition(":")
        key = key.strip()
        value = value.strip()
        if rule is None or not colon or key not in _KEYS:
            raise ValueError(f"line {number}: expected [id], or one of {', '.join(_KEYS)}")
        if key == "kind" and value not in _KINDS:
            raise ValueError(f"line {number}: kind must be one of {', '.join(_KINDS)}")
        _set_key(rule, key, value)
    for rule in rules.values():
        _check_complete(rule)
    return rules


def _check_complete(rule: GateRule) -> None:
    """Raise ValueError if a rule lacks its kind, or the texts it looks for."""
    if rule.kind == OFF:
        return
    has_match = rule.near and rule.match
    has_limit = rule.likeness is not None or rule.longer is not None
    has_condition = has_match or rule.parts or has_limit
    if not rule.kind or not has_condition:
        raise ValueError(f"rule {rule.id}: kind, near and match are needed")


def _set_key(rule: GateRule, key: str, value: str) -> None:
    """Set the field of a rule by a line `key: value` of a rules file.

    Raises ValueError if the value of `likeness` or `longer` is not a number.
    """
    if key in ("yes", "no", "parts"):
        getattr(rule, key).append(value)
    elif key == "likeness":
        try:
            rule.likeness = float(value)
        except ValueError:
            raise ValueError(f"rule {rule.id}: likeness must be a number") from None
    elif key == "longer":
        if not value.isdecimal():
            raise ValueError(f"rule {rule.id}: longer must be a whole number")
        rule.longer = int(value)
    elif key == "near":
        rule.near = tuple(word.replace("~", " ") for word in value.lower().split())
    elif key == "check":
        checks = re.findall(_CHECK, value)
        rule.checks = tuple((name, float(number or 0)) for name, number in checks)
    else:
        setattr(rule, key, value)


def example(text: str) -> str:
    """Return an example text of `yes` or `no` as the rule is tried on it.

    In the file, `~` may break up a secret, and `\\u` and `\\U` escape a character.
    """
    escaped = r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})"
    return re.sub(escaped, lambda match: chr(int(match[1] or match[2], 16)), text.replace("~", ""))


def _passes(text: str, check: str, least: float) -> bool:
    """Whether a match passes a check, which the head of gate.rules explains.

    check: the name of the check.
    least: the least value that passes, for a check that has one.
    """
    if check == "luhn":
        return _has_check_digit(text)
    if check == "entropy":
        return _bits_per_character(text) >= least
    if check == "words":
        different_words = set(re.findall("[a-z]{3,}", text))
        return len(different_words) >= _SEED_WORDS
    # The other checks are of values behind `password:` and the like, which may be examples.
    value = text.rstrip(".!?):")
    is_placeholder = re.match(_PLACEHOLDER, value) is not None
    if len(value) < 3 or is_placeholder:
        return False
    if check == "token":
        return _is_random(value)
    if check == "given":
        return True
    # The check `value`: a plain word is no password.
    return len(value) > 3 and any(char.isdigit() or char in _SYMBOLS for char in value)


def _has_check_digit(text: str) -> bool:
    """Whether the last digit of a card number fits the other digits (the Luhn algorithm)."""
    digits = [int(char) for char in reversed(text) if char.isdigit()]
    digit_sums_of_doubles = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(digit_sums_of_doubles)) % 10 == 0


def _bits_per_character(text: str) -> float:
    """Return the entropy of a text in bits. It is high if many characters are equally frequent."""
    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * math.log2(share) for share in shares)


def _is_random(value: str) -> bool:
    """Whether a value looks drawn by a machine: `a8Xk2PqZ9w`, but not `tests/note_2024/data`.

    It must have several digits, or a digit among letters of both cases. At most half of it may be
    words between signs, as in the names of files, modules and settings.
    """
    digits = sum(char.isdigit() for char in value)
    uppers = sum(char.isupper() for char in value)
    lowers = sum(char.islower() for char in value)
    is_mixed = digits >= 1 and uppers >= 3 and lowers >= 3
    has_many_digits = digits >= 3
    if not is_mixed and not has_many_digits:
        return False
    if _SAMPLE.search(value):
        return False
    pieces = re.split("[-_./:=+~]", value)
    word_characters = sum(len(piece) for piece in pieces if _WORDLIKE.fullmatch(piece))
    return word_characters * 2 <= len(value)
