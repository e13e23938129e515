"""The write gate decides which texts a change may write, and which origin the ledger records for
them.

New text is checked before it is written, by the rules of text/gate.rules and the owner's own
(docs/gate.md). A secret is refused, redacted, or written with a warning, as `gate.secrets` says for
agents and `gate.own_secrets` for the owner. Text that was already in the replaced notes is let
through. How large a note may be, and how much an agent may write in a day, is counted from the
ledger (docs/trust.md).

A note has the least trust of all its sources. An edit adds the writer to them. A text that replaces
a whole note has only its writer as a source. A change of the header alone (tags, links, counts)
leaves the trust as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.clock import EPOCH, parse_stamp, to_utc
from memoranda.config import Settings
from memoranda.errors import ConfigFileError, LimitExceeded, SecretRefused
from memoranda.index.index import Index
from memoranda.ledger.change import IMPORTING, Change
from memoranda.ledger.history import History
from memoranda.note.model import CATEGORY_PROJECT, Provenance, least
from memoranda.sources.base import File, sha256
from memoranda.sources.layout import PRIVATE
from memoranda.sources.step import Step, StepKind
from memoranda.value_object import ValueObject

# text/gate.py is imported by the first text to be looked at: most commands have none.
if TYPE_CHECKING:
    from memoranda.text.gate import GateMatch, Rules

ALLOW = "allow"
WARN = "warn"
REDACT = "redact"
REFUSE = "refuse"
_RESTORING = ("undo", "restore")
# Verbs that replace a note's text as a whole.
_WHOLE = ("write", "overwrite", "create")
_UNKNOWN = Provenance()
_SLACK = timedelta(days=1)
# Verbs that write nothing new, but into notes the agent does not see: their sizes would tell of
# those.
_OF_OTHERS = frozenset(("delete", "undo"))


class Gate:
    """The rules in force in the home at `root`, and what is done when one matches."""

    def __init__(self, settings: Settings, root: Path):
        self._settings = settings
        self._root = root
        self._rules: Rules | None = None

    def rules(self) -> Rules:
        """The program's and the owner's. Raises ConfigError for a file of the owner's that cannot
        be read.
        """
        if self._rules is None:
            from memoranda.text.gate import default_rules

            gate_rules = default_rules()
            name = self._settings.gate_rules
            if name is not None:
                try:
                    gate_rules = gate_rules.with_file(self._root / name)
                except (OSError, ValueError) as error:
                    why = getattr(error, "strerror", None) or str(error)
                    raise ConfigFileError("gate.rules", f"{name}: {why}") from None
            self._rules = gate_rules
        return self._rules

    def suspicious(self, text: str) -> tuple[str, ...]:
        """The rules by which `text` seems to hold injected instructions, each once."""
        if not self._settings.gate_suspicious:
            return ()
        from memoranda.text.gate import SUSPICIOUS, default_rules

        gate_rules = default_rules()
        # Writing says so; reading goes on
        with suppress(ConfigFileError):
            gate_rules = self.rules()
        findings = gate_rules.find(text, SUSPICIOUS)
        if findings:
            return tuple(dict.fromkeys(finding.rule.id for finding in findings))
        return ()

    def admit(self, steps: Sequence[Step], verb: str, is_owner: bool) -> list[str]:
        """Check the texts that `steps` would write, and redact secrets in their data.

        Returns the notices for the caller. Raises SecretRefused.
        """
        notices: list[str] = []
        # Texts that are restored were admitted once.
        if verb in _RESTORING:
            return notices
        for step in steps:
            if step.do == StepKind.PUT and step.data is not None and step.project != PRIVATE:
                old = (old_file.data for old_file in _files_before(steps))
                self._admit_text(step, step.data.decode("utf-8", "replace"), is_owner, notices, old)
            name = _new_name(step)
            if name:
                file = f"a file of {step.project}"
                secrets = self.check(name, file, is_owner, notices, where="its name")
                if secrets:
                    raise SecretRefused(secrets[0].rule.id, secrets[0].rule.why, "its name")
        return notices

    def _admit_text(
        self, step: Step, text: str, is_owner: bool, notices: list[str], old: Iterable[bytes]
    ) -> None:
        """Check the text that a step would write, and redact the secrets in it (see `check`)."""
        is_memory = step.project == CATEGORY_PROJECT
        place = f"{step.project}/{step.path}"
        if is_memory:
            # A memory's file name begins with its first line, so it is named by its id.
            place = f"memory {step.path.removesuffix('.md')[-8:]}"
        secrets = self.check(text, place, is_owner, notices, old)
        if secrets:
            _redact_step(step, text, secrets, is_memory)

    def check(
        self,
        text: str,
        place: str,
        is_owner: bool,
        notices: list[str],
        old: Iterable[bytes] = (),
        where: str = "",
    ) -> list[GateMatch]:
        """Find the secrets to redact in a text about to be written. Warnings are added to
        `notices`.

        text: the text.
        place: what it is called in notices.
        is_owner: whether the owner writes it.
        notices: the list to add warnings to.
        old: texts whose secrets do not count.
        where: the position to name; by default the line.

        Raises SecretRefused if secrets are refused, or if one is at a place where it cannot be
        redacted.
        """
        from memoranda.text.gate import SECRET

        mode = self._settings.gate_secrets
        if is_owner:
            mode = self._settings.gate_own_secrets
        if mode == ALLOW:
            return []
        secrets = self.rules().find(text, SECRET)
        if not secrets:
            return []
        secrets = _without_known(secrets, text, old)
        body_start = _body_at(text)
        for secret in secrets:
            rule = secret.rule
            is_in_header = secret.start < body_start
            position = where or _position_of(secret, text, body_start)
            # Names and links follow from the title, so a header is not redacted.
            if mode == REFUSE or (mode == REDACT and is_in_header):
                raise SecretRefused(rule.id, rule.why, position)
            outcome = "written all the same"
            if mode == REDACT:
                outcome = "redacted"
            shown_place = place
            if is_in_header:
                # The place itself may contain the secret.
                shown_place = f"a note of {place.partition('/')[0]}"
            notices.append(
                f"{shown_place}, {position}: looks like {rule.why} (rule {rule.id}); {outcome}"
            )
        if mode == REDACT:
            return secrets
        return []


def _files_before(steps: Iterable[Step]) -> Iterator[File]:
    """The files that steps replace or remove, as they were before."""
    for step in steps:
        if isinstance(step.old, File):
            yield step.old


def _new_name(step: Step) -> str:
    """The path that a step gives to a file. Empty for a memory, whose name follows its text."""
    if step.to:
        return step.to
    if step.do == StepKind.SET or step.old or step.project == CATEGORY_PROJECT:
        return ""
    return step.path


def _without_known(
    secrets: Iterable[GateMatch], text: str, old: Iterable[bytes]
) -> list[GateMatch]:
    """The secrets of a text that none of the `old` texts contains."""
    old_texts = [data.decode("utf-8", "replace") for data in old]
    new_secrets: list[GateMatch] = []
    for secret in secrets:
        words = text[secret.start : secret.end]
        if not any(words in old_text for old_text in old_texts):
            new_secrets.append(secret)
    return new_secrets


def _position_of(secret: GateMatch, text: str, body_start: int) -> str:
    """The position of a secret in a note as notices name it, such as `line 3`."""
    if secret.start < body_start:
        return "its title or header"
    row = text.count("\n", body_start, secret.start) + 1
    return f"line {row}"


def _redact_step(step: Step, text: str, secrets: list[GateMatch], is_memory: bool) -> None:
    """Replace the secrets in the text that a step would write.

    A memory names the hash of its content in its header, and a new one has a file name that is made
    from its content: both follow.
    """
    from memoranda.note import edit, frontmatter, links
    from memoranda.text.gate import redact

    new = redact(text, secrets)
    if is_memory:
        header_text, body_at = frontmatter.split(new)
        content = new[body_at:].removesuffix("\n")
        identity = str(frontmatter.parse(header_text or "").get("id", ""))
        folder, _, name = step.path.rpartition("/")
        before = text[_body_at(text) :].removesuffix("\n")
        if step.old is None and name == links.memory_file_name(before, identity):
            step.path = f"{folder}/{links.memory_file_name(content, identity)}"
        new = edit.SetKeys({"content_hash": sha256(content.encode())}).apply(new).text
    step.data = new.encode()


def _body_at(text: str) -> int:
    if not text.startswith("---"):
        return 0
    from memoranda.note.frontmatter import split

    return split(text)[1]


@dataclass(slots=True, eq=False, repr=False)
class Use(ValueObject):
    """The amount that one agent wrote on a day: new notes, and bytes in all."""

    notes: int = 0
    bytes: int = 0


class DayUse:
    """The use of all agents of one home on the day of the last question. Each line of the ledger
    is read once.
    """

    def __init__(self, history: History):
        self._history = history
        self._begins = self._ends = EPOCH
        self._last = 0
        self._agents: dict[str, Use] = {}

    def since_midnight(self, now: datetime, settings: Settings) -> dict[str, Use]:
        """How much each agent wrote on the day of `now`."""
        history = self._history
        if not self._begins <= now < self._ends or self._last > history.last:
            day = now.astimezone(settings.zone).date()
            self._begins, self._ends = (
                to_utc(datetime.combine(bound, time()), settings.zone)
                for bound in (day, day + timedelta(days=1))
            )
            self._last = 0
            self._agents = {}
        for change in history.changes() if history.last != self._last else ():
            if change.number <= self._last or parse_stamp(change.time) < self._begins:
                break
            self._add(change)
        self._last = history.last
        return self._agents

    def count(self, change: Change) -> None:
        """Count the change that was just made here, so that it is not read again."""
        if self._last == change.number - 1:
            self._last = change.number
            self._add(change)

    def _add(self, change: Change) -> None:
        if change.agent is None:
            return
        use = self._agents.setdefault(change.agent, Use())
        if change.verb not in _OF_OTHERS:
            use.bytes += sum(file.size for file in change.files)
        new = sum(file.do == StepKind.PUT and file.old is None for file in change.files)
        use.notes += max(0, new - sum(file.do == StepKind.REMOVE for file in change.files))


def check_limits(
    steps: Sequence[Step], settings: Settings, agent: str | None, day: DayUse, now: datetime
) -> None:
    """Raises LimitExceeded when a note is too large, or `agent` (None: the owner) would write too
    much today.
    """
    puts = _writing_steps(steps)
    _check_sizes(puts, "limits.note_bytes", settings.note_bytes)
    if agent is None:
        return
    _check_sizes(puts, "limits.agent_note_bytes", settings.agent_note_bytes)
    use = day.since_midnight(now, settings).get(agent, Use())
    new = sum(step.old is None for step in puts) - sum(step.do == StepKind.REMOVE for step in steps)
    size = sum(len(step.data or b"") for step in puts)
    for name, limit, used, added, unit in (
        ("agent_notes_per_day", settings.agent_notes_per_day, use.notes, max(new, 0), "new notes"),
        ("agent_bytes_per_day", settings.agent_bytes_per_day, use.bytes, size, "bytes"),
    ):
        if limit and added and used + added > limit:
            raise LimitExceeded(
                f"Agent {agent} wrote {used:,} of the {limit:,} {unit} it may write a day; this is {added:,} more. "
                f"Nothing was changed. Go on tomorrow, or let the owner raise limits.{name}."
            )


def _check_sizes(puts: Sequence[Step], key: str, most_bytes: int) -> None:
    """Raise LimitExceeded if a note would become larger than allowed and does not shrink.

    most_bytes: the allowed bytes; 0 means any number.
    key: the key of the configuration, for the error.
    """
    for step in puts if most_bytes else ():
        size = len(step.data or b"")
        before = len(step.old.data) if step.old else 0
        if size > max(most_bytes, before):
            raise LimitExceeded(
                f"{step.path} would have {size:,} bytes; a note may have {most_bytes:,}. "
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
    """Record in each `put` step where its text comes from, in addition to the caller
    (`Touched.by`).

    agent: the agent that makes the change; None means the owner.
    made_from: the origins of the notes that new notes are made from.
    """
    removed_steps = [step for step in steps if step.do == StepKind.REMOVE and step.old is not None]
    own_trust = _own_trust(verb, agent)
    for step in _writing_steps(steps):
        if verb in _RESTORING and _sign_restored(step, history):
            continue
        if verb in _WHOLE:
            continue
        origin_of_same_text = _same_text(steps, step, verb, removed_steps, index)
        if origin_of_same_text is not None:
            step.by = origin_of_same_text.row()
            continue
        sources = _sources(step, verb, removed_steps, index)
        if step.old is None:
            sources += made_from
        trust = least(own_trust, *(source.trust for source in sources))
        if trust != own_trust:
            step.by = (step.by or {}) | {"trust": trust}


def _writing_steps(steps: Iterable[Step]) -> list[Step]:
    """The steps that write the text of a file."""
    return [step for step in steps if step.do == StepKind.PUT and step.data is not None]


def _sign_restored(step: Step, history: History) -> bool:
    """Record in a step who wrote the text that it restores. Whether the history knows that."""
    writer = history.writer_of(sha256(step.data or b""))
    if not writer:
        return False
    step.by = (step.by or {}) | writer.row()
    return True


def _own_trust(verb: str, agent: str | None) -> str:
    """The trust in texts that the caller writes itself."""
    if verb in IMPORTING:
        return "import"
    if agent is None:
        return "owner"
    return "agent"


def _same_text(
    steps: Sequence[Step], step: Step, verb: str, removed_steps: Sequence[Step], index: Index
) -> Provenance | None:
    """The origin of a text that the step leaves unchanged, perhaps at another path.

    None if the step writes a different text.
    """
    if verb == "move":
        moved = _moved_by(steps, step)
        if moved is not None:
            # Only its links are other ones
            return _origin_in_index(index, moved)
    if verb in ("merge", "edit"):
        return None
    if step.old is not None and _body(step.old.data) != _body(step.data):
        return None
    sources = _sources(step, verb, removed_steps, index)
    return sources[0] if sources else None


def _sources(
    step: Step, verb: str, removed_steps: Sequence[Step], index: Index
) -> list[Provenance]:
    """The origins of the texts that make up the new text: the one before, and those it merges."""
    if step.old:
        sources = [_origin_in_index(index, step)]
    else:
        # Perhaps the same note under another path, in the archive or out of it
        body = _body(step.data)
        sources = [
            _origin_in_index(index, item)
            for item in removed_steps
            if item.old and _body(item.old.data) == body
        ]
    if verb == "merge":
        sources += [_origin_in_index(index, item) for item in removed_steps]
    return sources


def _moved_by(steps: Sequence[Step], step: Step) -> Step | None:
    """The step that has the former bytes of a note written by a move: itself, or the removal after
    it.

    None if neither has them.
    """
    if step.old is not None:
        return step
    following = steps[steps.index(step) + 1 :][:1]
    return next(
        (next_step for next_step in following if next_step.do == StepKind.REMOVE and next_step.old),
        None,
    )


def _origin_in_index(index: Index, step: Step) -> Provenance:
    """The origin of the text that a step replaces, if the index has seen these bytes."""
    info = index.notes.get(step.project, step.path)
    assert step.old is not None
    if info is not None and info.etag == step.old.etag:
        return info.provenance
    return _UNKNOWN


def _body(data: bytes | None) -> bytes:
    """The text after the header, without blanks around it."""
    from memoranda.note.frontmatter import split

    text = (data or b"").decode("utf-8", "replace")
    return text[split(text)[1] :].strip().encode()
