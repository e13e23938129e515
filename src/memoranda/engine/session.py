"""The session: an open home as one caller may use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Self, TypeVar

from memoranda.clock import waits_at_most
from memoranda.engine.engine import Engine
from memoranda.errors import InvalidInput, NotText, SecretRefused
from memoranda.note.model import GLOBAL, SCOPE, SCOPE_HINT, Note
from memoranda.note.project_access import is_among
from memoranda.sources.base import File
from memoranda.text.outside import outside_name

T = TypeVar("T")


class HomeSession:
    """An open home as one caller uses it.

    agent: the caller's name. An agent sees notes of scope `global` and of its own scope. None is
        the owner, who sees every note.
    face: the interface through which the caller came, such as `mcp`, `cli` or `hook`. The history
        records it.
    by: further facts about the caller. The keys are `client` (the program and its version),
        `session` and `tool`; one that is not known is missing.
    """

    def __init__(
        self, engine: Engine, agent: str | None, face: str, by: dict[str, str] | None = None
    ):
        self.engine = engine
        self.index = engine.index
        self.clock = engine.clock
        self.home = engine.layout.root
        """The home's root folder."""
        self.agent = None if agent is None else agent.lower()
        self.face = face
        self.by = _recorded(by or {})
        self.notices: list[str] = []
        """The notices of the write gate about the last change. For commands, about all changes."""
        self.own_secret_mode: str | None = None
        """How the write gate treats secrets of this caller. None means as the settings say."""
        self.run: int | None = None
        """The run of a job that the changes belong to: the number of its first change.

        0 means that the next change begins a run. None means that no job makes the changes.
        """
        self.changed = 0
        """The number of the change that this session made last."""
        self.served: list[str] = []
        """The ids of the notes that this caller has received so far."""
        self.only_reads = False
        """Whether the caller may change nothing. Then reading an archived memory does not bring it
        back from the archive.
        """

    def sees(self, scope: str) -> bool:
        """Whether this caller may see notes of `scope`."""
        if self.agent is None:
            return True
        folded = scope.lower()
        return folded in (GLOBAL, f"agent:{self.agent}") or is_among(folded, self.agent)

    def check_scope(self, scope: str) -> str:
        """Return a scope in lower case.

        Raises InvalidInput if it is not a scope, or if the caller may not see its notes (contract
        001, 1).
        """
        lower_scope = scope.lower()
        if not SCOPE.fullmatch(lower_scope) or not self.sees(lower_scope):
            raise InvalidInput(f'invalid scope "{scope}"', SCOPE_HINT)
        return lower_scope

    @property
    def is_owner(self) -> bool:
        """Whether the owner acts directly.

        False for an agent, and for a program that calls tools on behalf of an agent.
        """
        return self.agent is None and self.face not in ("mcp", "anthropic", "socket")

    @property
    def secret_mode(self) -> str:
        """How the write gate treats secrets in the texts of this caller."""
        return self.own_secret_mode or self.engine.gate.mode(self.is_owner)

    def admitted(
        self, text: str, place: str, old: Iterable[bytes] = (), *, whole: bool = False
    ) -> str:
        """Check a text for the file of another program, and return it with secrets redacted.

        text: the text that is going to be written.
        place: the name of the file in notices.
        old: the texts that the text replaces. A secret that is already in them is accepted.
        whole: whether a text with a secret is refused, because a redacted one would be useless.

        Raises SecretRefused for a secret if `whole` is set, or if the settings say so.
        """
        secrets = self.engine.gate.check(text, place, self.secret_mode, self.notices, old)
        if not secrets:
            return text
        if whole:
            rule = secrets[0].rule
            raise SecretRefused(rule.id, rule.why, place)
        from memoranda.text.gate import redact

        return redact(text, secrets)

    def as_caller(self, agent: str | None, face: str | None = None, **by: str) -> Self:
        """Return a session of the same open home for another caller.

        agent: the caller's name; None for the owner.
        face: the caller's interface; None for the interface of this session.
        by: further facts about the caller: `client`, `session` and `tool`.
        """
        session_class = type(self)
        return session_class(self.engine, agent, face or self.face, by)

    def using(self, tool: str) -> Self:
        """Return a session of the same caller that records `tool` as the tool that makes changes.

        Both sessions collect their notices in one list.
        """
        session_class = type(self)
        facts = self.by | {"tool": tool}
        session = session_class(self.engine, self.agent, self.face, facts)
        session.notices = self.notices
        session.own_secret_mode = self.own_secret_mode
        session.run = self.run
        session.only_reads = self.only_reads
        return session

    def in_turn(self, work: Callable[[], T]) -> T:
        """Call `work`, which makes one change, and return its result.

        The change may be written to the disk together with changes of other threads. If that fails,
        `work` is called again. So it must not write files except by the change.
        """
        with waits_at_most(self.engine.call_waits):
            return self.engine.guard.run(work)

    def parse(self, project: str, path: str, file: File) -> Note:
        """Parse a file as a note.

        path: its path in the project.

        Raises NotText if it is not text.
        """
        note = self.engine.parse(project, path, file)
        if note is None:
            raise NotText(path)
        return note

    def as_indexed(self, note: Note) -> Note:
        """Complete a note that was read from its file with facts that only the index has. Returns
        the note.

        These are its permalink, its marks of suspicious text, its provenance (who wrote the text),
        and the reads that are not added to its header yet. The marks and the provenance are left
        out if the file has changed since it was indexed.
        """
        info = self.index.notes.get(note.project, note.path)
        if info is not None:
            note.permalink = info.permalink
            # The marks and the provenance are facts about the text that the index has. Another
            # program may have written another text since.
            has_same_text = info.etag == note.etag
            if has_same_text:
                note.suspicious = info.suspicious
                note.provenance = info.provenance
        uncounted_reads = self.engine.reads.counts([note.id])[note.id]
        note.access_count += uncounted_reads
        return note


def _recorded(by: dict[str, str]) -> dict[str, str]:
    """Return the facts about a caller that the ledger records with a change.

    The client and the session are named by other programs, so their names are made safe.
    """
    recorded: dict[str, str] = {}
    for key, name in by.items():
        recorded[key] = name if key == "tool" else outside_name(name)
    return recorded
