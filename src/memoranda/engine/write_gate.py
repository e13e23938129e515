"""Decide which texts a change may write, and which origin the ledger records for them.

New text is checked before it is written (`Gate`), by the rules of text/gate.rules and the owner's
own rules (docs/gate.md). A secret is refused, redacted, or written with a warning. The setting
`gate.secrets` decides that for agents, `gate.own_secrets` for the owner. A secret that was already
in the replaced note does not count. `check_limits` limits the size of a note, and the amount that
an agent may write in a day (docs/trust.md).

The origin of a text is its provenance: the writer, and how far it is trusted (`sign`). A note has
the least trust of all its sources. An edit adds the writer to them. A text that replaces a whole
note has only its writer as a source. A change of the header alone (tags, links, counts) leaves the
trust as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memoranda.clock import EPOCH, parse_stamp, to_utc
from memoranda.config import Settings
from memoranda.errors import ConfigFileError, LimitExceeded, SecretRefused
from memoranda.index.index import Index
from memoranda.ledger.change import FIRST_OF_MACHINE, IMPORTING, Change, is_of_machine
from memoranda.ledger.history import History
from memoranda.note.model import CATEGORY_PROJECT, Note, Provenance, least
from memoranda.sources.base import File, sha256
from memoranda.sources.layout import PRIVATE
from memoranda.sources.step import Step, StepKind
from memoranda.value_object import ValueObject

# text/gate.py is only imported when a text is checked, because most commands check none.
if TYPE_CHECKING:
    from memoranda.text.gate import GateMatch, Rules

# How secrets are treated.
ALLOW = "allow"
WARN = "warn"
REDACT = "redact"
REFUSE = "refuse"
# Verbs that bring back an earlier text.
RESTORING = ("undo", "restore")
# Verbs that replace a note's text as a whole.
_REPLACING = ("write", "overwrite", "create")
_UNKNOWN = Provenance()
# Verbs whose bytes are not counted. They also rewrite links in notes that the agent does not see,
# and the sizes would tell about those notes.
_UNCOUNTED = frozenset(("delete", "undo"))


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts in a value of a header. Lists and mappings are searched, too, with their keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in (*value.keys(), *value.values()):
            yield from texts_in(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from texts_in(item)


def _in_paragraphs(note: Note) -> str:
    """Return the text of a note with a blank line between its header and its body.

    Without it, the last value of the header and the first words of the body would be one sentence.
    """
    return f"{note.text[: note.body_at]}\n\n{note.body}"


class Gate:
    """Checks texts by the rules of a home.

    root: the folder of the home, which has the owner's file of rules.
    """

    def __init__(self, settings: Settings, root: Path):
        self._settings = settings
        self._root = root
        self._rules: Rules | None = None

    def rules(self) -> Rules:
        """Return the rules of the program and of the owner.

        Raises ConfigFileError if the owner's file of rules cannot be read.
        """
        if self._rules is None:
            from memoranda.text.gate import default_rules

            gate_rules = default_rules()
            name = self._settings.gate_rules
            # An empty name is no file, as for every setting that names one.
            if name:
                try:
                    gate_rules = gate_rules.with_file(self._root / name)
                except (OSError, ValueError) as error:
                    why = getattr(error, "strerror", None) or str(error)
                    hint = f"Correct {name}, or use no rules of your own: memory config unset gate.rules"
                    raise ConfigFileError("gate.rules", f"{name}: {why}", hint=hint) from None
            self._rules = gate_rules
        return self._rules

    def rules_for_reading(self) -> Rules:
        """Return `rules`. If the owner's file of rules cannot be read, return the program's rules.

        A bad file of rules must not prevent reading. The next write reports it.
        """
        with suppress(ConfigFileError):
            return self.rules()
        from memoranda.text.gate import default_rules

        return default_rules()

    def suspicious(self, note: Note) -> tuple[str, ...]:
        """Return the ids of the rules that take a text in a note for injected instructions.

        Each value of the header is also checked without its quotes. The rules take an order in
        quotes for a quotation, but YAML puts a value in quotes only because of its characters. The
        path is checked, too, because a session sees the note with its address.
        """
        if not self._settings.gate_suspicious:
            return ()
        from memoranda.text.gate import may_be_order, possible_orders_in_name

        header_values = [text for text in texts_in(note.header) if may_be_order(text)]
        name = possible_orders_in_name(note.path)
        # The title of a note is often its name, and is then checked once.
        texts = dict.fromkeys([_in_paragraphs(note), name, "\n\n".join(header_values)])
        gate_rules = self.rules_for_reading()
        rule_ids: list[str] = []
        for text in filter(None, texts):
            rule_ids += gate_rules.suspicions(text)
        # Each id once, in their order.
        return tuple(dict.fromkeys(rule_ids))

    def mode(self, is_owner: bool) -> str:
        """Return how the settings treat secrets: ALLOW, WARN, REDACT or REFUSE.

        is_owner: whether the owner writes the text.
        """
        if is_owner:
            return self._settings.gate_own_secrets
        return self._settings.gate_secrets

    def admit(self, steps: Sequence[Step], verb: str, mode: str) -> list[str]:
        """Check the texts and file names that `steps` would write.

        If the mode is REDACT, the secrets in the texts are replaced.

        verb: the verb of the change.
        mode: how secrets are treated: ALLOW, WARN, REDACT or REFUSE.

        Returns notices for the caller, one line each. Raises SecretRefused.
        """
        notices: list[str] = []
        # A text that is restored was checked when it was first written.
        if verb in RESTORING:
            return notices
        # A secret that the change only moves or keeps was accepted when it was first written.
        old_texts = [file.data for file in _files_before(steps)]
        for step in steps:
            if step.do == StepKind.PUT and step.data is not None and step.project != PRIVATE:
                text = step.data.decode("utf-8", "replace")
                self._admit_text(step, text, mode, notices, old_texts)
            name = _new_name(step)
            if name:
                file = f"a file of {step.project}"
                secrets = self.check(name, file, mode, notices, where="its name")
                # The name of a file cannot be redacted.
                if secrets:
                    raise SecretRefused(secrets[0].rule.id, secrets[0].rule.why, "its name")
        return notices

    def _admit_text(
        self, step: Step, text: str, mode: str, notices: list[str], old_texts: Iterable[bytes]
    ) -> None:
        """Check the text that a step would write, and redact the secrets in it. Raises SecretRefused.

        step: the step that would write. A redacted text is put into it.
        text: the text that it would write.
        mode: how secrets are treated: ALLOW, WARN, REDACT or REFUSE.
        notices: a list to which a line is added for each secret.
        old_texts: the texts before the change. A secret that is in one of them does not count.
        """
        is_memory = step.project == CATEGORY_PROJECT
        place = f"{step.project}/{step.path}"
        if is_memory:
            # A memory's file name begins with its first line, so it is named by its id.
            place = f"memory {step.path.removesuffix('.md')[-8:]}"
        secrets = self.check(text, place, mode, notices, old_texts)
        if secrets:
            _redact_step(step, text, secrets, is_memory)

    def check(
        self,
        text: str,
        place: str,
        mode: str,
        notices: list[str],
        old: Iterable[bytes] = (),
        where: str = "",
    ) -> list[GateMatch]:
        """Return the secrets in a text that the caller has to redact before the text is written.

        place: the name of the text in notices, such as `notes/plan.md`.
        mode: how secrets are treated: ALLOW, WARN, REDACT or REFUSE.
        notices: a list to which a line is added for each secret.
        old: earlier texts. A secret that is in one of them does not count.
        where: how notices name the position of a secret. If it is "", they name the line.

        The result is empty if secrets are allowed, or only warned of. Raises SecretRefused if
        they are refused. A secret in the header cannot be redacted, so it is
        refused, too.
        """
        from memoranda.text.gate import SECRET

        if mode == ALLOW:
            return []
        secrets = self.rules().find(text, SECRET)
        if not secrets:
            return []
        secrets = _without_known(secrets, text, old)
        body_start = _body_at(text)
        outcome = "redacted" if mode == REDACT else "written all the same"

        spots = [_spot_of(secret, text, body_start, place, where) for secret in secrets]
        for secret, spot in zip(secrets, spots, strict=True):
            rule = secret.rule
            # File names and links are made from the title, so a header cannot be redacted.
            is_refused = mode == REFUSE or (mode == REDACT and spot.is_in_header)
            if is_refused:
                others = [
                    (other.rule.why, other_spot.line)
                    for other, other_spot in zip(secrets, spots, strict=True)
                    if other is not secret
                ]
                raise SecretRefused(
                    rule=rule.id, why=rule.why, where=spot.position, line=spot.line, others=others
                )
            notices.append(
                f"{spot.place}, {spot.position}: looks like {rule.why} (rule {rule.id}); {outcome}"
            )
        return secrets if mode == REDACT else []


class _Spot(NamedTuple):
    """Where a secret is, as notices and errors name it.

    place: the name of the text, such as `notes/plan.md`.
    position: the position in it, such as `line 3`.
    line: the number of the line, from 1, of the text below the header; 0 if it is elsewhere.
    is_in_header: whether it is in the header of the text.
    """

    place: str
    position: str
    line: int
    is_in_header: bool


def _spot_of(secret: GateMatch, text: str, body_start: int, place: str, where: str) -> _Spot:
    """Return where a secret is in a text.

    text: the text with the secret.
    body_start: the position at which the header of the text ends.
    place: the name of the text in notices, such as `notes/plan.md`.
    where: how notices name the position of the secret; "" for the number of its line.
    """
    if secret.start < body_start:
        # The path may have been made from the title, so it may contain the secret.
        project = place.partition("/")[0]
        return _Spot(f"a note of {project}", _position(0, where), line=0, is_in_header=True)
    if where:
        return _Spot(place, where, line=0, is_in_header=False)
    line = text.count("\n", body_start, secret.start) + 1
    return _Spot(place, _position(line, where), line, is_in_header=False)


def _files_before(steps: Iterable[Step]) -> Iterator[File]:
    """Yield the files that steps replace or remove, with their texts before the change."""
    for step in steps:
        if isinstance(step.old, File):
            yield step.old


def _new_name(step: Step) -> str:
    """Return the path that a step gives to a file. "" if the step gives no file a new path.

    A memory does not count: its name is made from its text, which is checked separately.
    """
    if step.to:
        return step.to
    is_ledger_row = step.do == StepKind.SET
    is_memory = step.project == CATEGORY_PROJECT
    has_file = step.old is not None
    if is_ledger_row or is_memory or has_file:
        return ""
    return step.path


def _without_known(
    secrets: Iterable[GateMatch], text: str, old: Iterable[bytes]
) -> list[GateMatch]:
    """Return the secrets of a text that no text in `old` has."""
    old_texts = [data.decode("utf-8", "replace") for data in old]
    new_secrets: list[GateMatch] = []
    for secret in secrets:
        words = text[secret.start : secret.end]
        if not any(words in old_text for old_text in old_texts):
            new_secrets.append(secret)
    return new_secrets


def _position(line: int, where: str) -> str:
    """Return the position of a secret as notices name it, such as `line 3`.

    line: the line of the text below the header. 0 if the secret is in another part.
    where: the name of the other part. "" for the header.
    """
    if line:
        return f"line {line}"
    return where or "its title or header"


def _redact_step(step: Step, text: str, secrets: list[GateMatch], is_memory: bool) -> None:
    """Replace the secrets in the text that a step would write.

    The header of a memory has a hash of its content, and the file name of a new memory is made from
    its content. Both are made again from the redacted text.

    text: the text with the secrets.
    secrets: where they are in the text.
    is_memory: whether the note is a memory of the project `categories`.
    """
    from memoranda.note import edit, frontmatter, links
    from memoranda.text.gate import redact

    redacted_text = redact(text, secrets)
    if not is_memory:
        step.data = redacted_text.encode()
        return
    header_text, body_at = frontmatter.split(redacted_text)
    redacted_content = redacted_text[body_at:].removesuffix("\n")

    # The file name, unless somebody gave the file another one.
    memory_id = str(frontmatter.parse(header_text or "").get("id", ""))
    folder, _, name = step.path.rpartition("/")
    content = text[_body_at(text) :].removesuffix("\n")
    is_named_by_content = name == links.memory_file_name(content, memory_id)
    is_new = step.old is None
    if is_new and is_named_by_content:
        step.path = f"{folder}/{links.memory_file_name(redacted_content, memory_id)}"

    # The hash in the header.
    new_hash = edit.SetKeys({"content_hash": sha256(redacted_content.encode())})
    step.data = new_hash.apply(redacted_text).text.encode()


def _body_at(text: str) -> int:
    """Return the position in a note's text after its header; 0 without a header."""
    if not text.startswith("---"):
        return 0
    from memoranda.note.frontmatter import split

    return split(text)[1]


@dataclass(slots=True, eq=False, repr=False)
class Use(ValueObject):
    """The amount that one agent wrote on a day: new notes, and bytes in all."""

    notes: int = 0
    bytes: int = 0


class _Series(Enum):
    """The two series of numbers that the changes of a home get.

    The value of a series is the number before its first change.
    """

    COMMON = 0
    """All changes, except those of the other series."""
    MACHINE = FIRST_OF_MACHINE - 1
    """The changes of files that only this machine has, if the notes are in PostgreSQL."""


# The number before the first one of each series.
_BEFORE_ALL = {series: series.value for series in _Series}


def _series_of(number: int) -> _Series:
    """Return the series of the change with this number."""
    if is_of_machine(number):
        return _Series.MACHINE
    return _Series.COMMON


class DayUse:
    """Counts how much the agents of a home write in a day. Each change of the day is read once."""

    def __init__(self, history: History):
        self._history = history
        # The day that is counted: from its midnight until before the next one. At first, no day is
        # counted: the times are the same.
        self._day_begins = EPOCH
        self._day_ends = EPOCH
        # The number of the last change of each series that was counted.
        self._last = dict(_BEFORE_ALL)
        # How much each agent wrote on this day, by the agent's name.
        self._uses: dict[str, Use] = {}

    def since_midnight(self, now: datetime, settings: Settings) -> dict[str, Use]:
        """Return how much each agent wrote on the day of `now`, by the agent's name."""
        latest_numbers = self._history.latest_numbers
        latest = _BEFORE_ALL | {_series_of(number): number for number in latest_numbers}
        is_same_day = self._day_begins <= now < self._day_ends
        # If a damaged ledger was set aside, the numbers of the new one begin again.
        has_new_history = any(self._last[series] > latest[series] for series in latest)
        if not is_same_day or has_new_history:
            self._begin_day(now, settings)
        self._count_until(latest)
        return self._uses

    def _count_until(self, latest: dict[_Series, int]) -> None:
        """Count the changes of the day that were not counted yet.

        latest: the number of the latest change of each series.
        """
        unfinished_series = {series for series in latest if latest[series] != self._last[series]}
        if not unfinished_series:
            return
        # The changes come newest first. In each series, those up to `_last` are counted already.
        for change in self._history.changes():
            series = _series_of(change.number)
            is_counted = change.number <= self._last[series]
            if is_counted:
                unfinished_series.discard(series)
            is_of_earlier_day = parse_stamp(change.time) < self._day_begins
            if not unfinished_series or is_of_earlier_day:
                break
            # A change after `latest` was made just now, and is counted by the next call.
            if not is_counted and change.number <= latest[series]:
                self._add(change)
        self._last = latest

    def _begin_day(self, now: datetime, settings: Settings) -> None:
        """Begin to count the use of a new day.

        now: a moment of this day. The day begins at midnight in the owner's time zone.
        """
        day = now.astimezone(settings.zone).date()
        next_day = day + timedelta(days=1)
        self._day_begins = to_utc(datetime.combine(day, time()), settings.zone)
        self._day_ends = to_utc(datetime.combine(next_day, time()), settings.zone)
        self._last = dict(_BEFORE_ALL)
        self._uses = {}

    def count(self, change: Change) -> None:
        """Count a change that this process has just made.

        It then need not be read from the history.
        """
        series = _series_of(change.number)
        # If others made changes in between, the next `since_midnight` reads all of them.
        if self._last[series] == change.number - 1:
            self._last[series] = change.number
            self._add(change)

    def _add(self, change: Change) -> None:
        """Add a change to the amount that its agent has written on this day."""
        if change.agent is None:
            return
        use = self._uses.setdefault(change.agent, Use())
        if change.verb not in _UNCOUNTED:
            use.bytes += sum(file.size for file in change.files)
        created = sum(file.makes_file for file in change.files)
        removed = sum(file.do == StepKind.REMOVE for file in change.files)
        # A note that is moved to another file is removed and created.
        use.notes += max(0, created - removed)


def check_limits(
    steps: Sequence[Step], settings: Settings, agent: str | None, day: DayUse, now: datetime
) -> None:
    """Raise LimitExceeded if a note would be too large, or an agent would write too much in a day.

    steps: the steps of the change.
    agent: the agent that makes the change. None means the owner, who may write any amount.
    day: how much the agents have written today.
    now: the present time.
    """
    puts = _writing_steps(steps)
    _check_sizes(puts, "limits.note_bytes", settings.note_bytes)
    if agent is None:
        return
    _check_sizes(puts, "limits.agent_note_bytes", settings.agent_note_bytes)

    use = day.since_midnight(now, settings).get(agent, Use())
    created = sum(step.old is None for step in puts)
    removed = sum(step.do == StepKind.REMOVE for step in steps)
    # A note that is moved to another file is removed and created.
    new_notes = _DailyLimit(
        key="agent_notes_per_day",
        limit=settings.agent_notes_per_day,
        unit="new notes",
        used=use.notes,
        added=max(created - removed, 0),
    )
    new_bytes = _DailyLimit(
        key="agent_bytes_per_day",
        limit=settings.agent_bytes_per_day,
        unit="bytes",
        used=use.bytes,
        added=sum(len(step.data or b"") for step in puts),
    )
    new_notes.check(agent)
    new_bytes.check(agent)


class _DailyLimit(NamedTuple):
    """A limit of how much an agent may write a day.

    key: its key in the section `limits` of the configuration.
    limit: the amount that is allowed; 0 for any amount.
    unit: what is counted, such as `bytes`.
    used: the amount that the agent has written today.
    added: the amount that it would write now.
    """

    key: str
    limit: int
    unit: str
    used: int
    added: int

    def check(self, agent: str) -> None:
        """Raise LimitExceeded if the agent would write more than it may."""
        # A limit of 0 allows any number. A change that adds nothing is allowed beyond a limit, too.
        if self.limit == 0 or self.added == 0:
            return
        if self.used + self.added > self.limit:
            raise LimitExceeded(
                f"Agent {agent} wrote {self.used:,} of the {self.limit:,} {self.unit} it may write"
                f" a day; this is {self.added:,} more. "
                f"Nothing was changed. Go on tomorrow, or let the owner raise limits.{self.key}."
            )


def _check_sizes(puts: Sequence[Step], key: str, max_bytes: int) -> None:
    """Raise LimitExceeded if a note would become larger than allowed.

    A note that is too large already may be edited, but it must not grow.

    puts: the steps that write notes.
    key: the key of the limit in the configuration, for the error.
    max_bytes: how many bytes a note may have; 0 means any number.
    """
    if not max_bytes:
        return
    for step in puts:
        size = len(step.data or b"")
        old_size = len(step.old.data) if step.old else 0
        if size > max(max_bytes, old_size):
            raise LimitExceeded(
                f"{step.path} would have {size:,} bytes; a note may have {max_bytes:,}. "
                f"Nothing was changed. Split it, or let the owner raise {key}."
            )


def sign(
    steps: Sequence[Step],
    verb: str,
    agent: str | None,
    made_from: Sequence[Provenance],
    index: Index,
    history: History,
) -> None:
    """Record the origin of its text in each step that writes a file (`Step.by`).

    If a text comes only from the caller, nothing needs to be recorded.

    steps: the steps of the change.
    verb: the verb of the change.
    agent: the agent that makes the change; None means the owner.
    made_from: the origins of the notes from which new notes are made.
    """
    # These verbs replace the whole text, so it comes from the caller alone.
    if verb in _REPLACING:
        return
    # The text of a removed note may go on in a note that the change writes.
    removed_steps = [step for step in steps if step.do == StepKind.REMOVE and step.old is not None]
    own_trust = _own_trust(verb, agent)
    for step in _writing_steps(steps):
        if verb in RESTORING and _sign_restored(step, history):
            continue
        origin_of_same_text = _origin_of_same_text(steps, step, verb, removed_steps, index)
        if origin_of_same_text is not None:
            step.by = origin_of_same_text.row()
            continue
        sources = _sources(step, verb, removed_steps, index)
        if step.old is None:
            sources += made_from

        # A text is trusted as little as the least trusted text that it is made from.
        trust = least(own_trust, *(source.trust for source in sources))
        if trust != own_trust:
            step.by = (step.by or {}) | {"trust": trust}


def _writing_steps(steps: Iterable[Step]) -> list[Step]:
    """Return the steps that write the text of a file."""
    return [step for step in steps if step.do == StepKind.PUT and step.data is not None]


def _sign_restored(step: Step, history: History) -> bool:
    """Record in a step who wrote the text that the step restores.

    Returns whether the history knows the writer. If not, nothing is recorded.
    """
    writer = history.writer_of(sha256(step.data or b""))
    if not writer:
        return False
    step.by = (step.by or {}) | writer.row()
    return True


def _own_trust(verb: str, agent: str | None) -> str:
    """Return how far texts of the caller are trusted: `import`, `owner` or `agent`.

    verb: the verb of the change.
    """
    if verb in IMPORTING:
        return "import"
    if agent is None:
        return "owner"
    return "agent"


def _origin_of_same_text(
    steps: Sequence[Step], step: Step, verb: str, removed_steps: Sequence[Step], index: Index
) -> Provenance | None:
    """Return the origin of a text that the step does not change. None if the step changes the text.

    Only the text after the header is compared. The step may write it to another path.

    steps: the steps of the change.
    step: the step that writes the text.
    verb: the verb of the change.
    removed_steps: the steps of the change that remove a note.
    """
    # A move may change links in the text, but the text still has the same origin.
    if verb == "move":
        old_step = _step_with_old_text(steps, step)
        if old_step is not None:
            return _origin_in_index(index, old_step)

    # After a merge or an edit, the caller counts as a further source, even for the same text.
    if verb in ("merge", "edit"):
        return None

    # The step changes the text of its file.
    if step.old is not None and _body(step.old.data) != _body(step.data):
        return None

    # The step changes only the header, or writes the text of a note that the change removes.
    sources = _sources(step, verb, removed_steps, index)
    return sources[0] if sources else None


def _sources(
    step: Step, verb: str, removed_steps: Sequence[Step], index: Index
) -> list[Provenance]:
    """Return the origins of the texts that a step uses to make its text.

    step: a step that writes the text of a file.
    verb: the verb of the change.
    removed_steps: the steps of the same change that remove a note.
    """
    if step.old is not None:
        # The step replaces a text.
        sources = [_origin_in_index(index, step)]
    else:
        # The step writes a new file. A note that goes into the archive or comes out of it is such a
        # file, and another step removes the note with the same text from its old place.
        sources = [
            _origin_in_index(index, removed)
            for removed in removed_steps
            if removed.old is not None and _body(removed.old.data) == _body(step.data)
        ]
    if verb == "merge":
        # A merge makes its text from all the notes that it removes. A note with the same text comes
        # twice then, which does no harm: only the least trusted origin counts.
        sources += [_origin_in_index(index, removed) for removed in removed_steps]
    return sources


def _step_with_old_text(steps: Sequence[Step], step: Step) -> Step | None:
    """Return the step of a move that has the old text of a note, if `step` writes its new text.

    A move whose links change has two steps for a note: the first writes the new text to the new
    path, and the next removes the file at the old path. So the old text is in that next step,
    unless `step` overwrites a file. None if neither step has the old text.
    """
    if step.old is not None:
        return step
    next_index = steps.index(step) + 1
    if next_index == len(steps):
        return None
    next_step = steps[next_index]
    is_removal = next_step.do == StepKind.REMOVE and next_step.old is not None
    return next_step if is_removal else None


def _origin_in_index(index: Index, step: Step) -> Provenance:
    """Return the origin of the text that a step replaces.

    The origin is unknown if the file was changed since the index read it.
    """
    info = index.notes.get(step.project, step.path)
    assert step.old is not None
    if info is not None and info.etag == step.old.etag:
        return info.provenance
    return _UNKNOWN


def _body(data: bytes | None) -> bytes:
    """Return the text after the header, without blanks around the text."""
    from memoranda.note.frontmatter import split

    text = (data or b"").decode("utf-8", "replace")
    return text[split(text)[1] :].strip().encode()
