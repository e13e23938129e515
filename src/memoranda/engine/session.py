"""The session: an open home for one caller, with the scopes the caller may see."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Self, TypeVar

from memoranda.clock import waits_at_most
from memoranda.engine.engine import Engine
from memoranda.errors import InvalidInput, NotText, SecretRefused
from memoranda.note.model import GLOBAL, SCOPE, SCOPE_HINT, Note
from memoranda.note.project_access import is_among
from memoranda.sources.base import File
from memoranda.text.outside import outside_name

if TYPE_CHECKING:
    pass

T = TypeVar("T")


class HomeSession:
    """An open home as one caller uses it.

    agent: the caller's name. An agent sees the notes of scope `global` and its own. None is the
        owner, who sees every note.
    face: the interface through which the caller came (`mcp`, `cli`, `hook`), recorded in the
        history.
    by: further facts about the caller: `client`, `session`, `tool` (see `Provenance`).
    """

    def __init__(
        self, engine: Engine, agent: str | None, face: str, by: dict[str, str] | None = None
    ):
        self.engine = engine
        self.index = engine.index
        self.clock = engine.clock
        self.home = engine.layout.root
        """The home's root folder."""
        self.agent = agent and agent.lower()
        self.face = face
        self.by = _recorded(by or {})
        self.notices: list[str] = []
        """What the write gate has to say of the last change; of all of them, for the commands."""
        self.own_secret_mode: str | None = None
        """How the write gate treats secrets of this caller; None: as the settings say."""
        self.run: int | None = None
        """The run of a job the changes belong to (0: their first one begins it)."""
        self.changed = 0
        """The number of the last change made so."""
        self.served: list[str] = []
        """The ids of the notes this caller was given so far."""
        self.only_reads = False
        """Whether the caller may change nothing, so that reading an archived memory does not bring
        it back.
        """

    def sees(self, scope: str) -> bool:
        """Whether this caller may see notes of `scope`."""
        if self.agent is None:
            return True
        folded = scope.lower()
        return folded in (GLOBAL, f"agent:{self.agent}") or is_among(folded, self.agent)

    def check_scope(self, scope: str) -> str:
        """Return the scope in lower case.

        Raises InvalidInput for a scope nobody can read, or another agent's (contract 001, 1).
        """
        if not SCOPE.fullmatch(lower_scope := scope.lower()) or not self.sees(lower_scope):
            raise InvalidInput(f'invalid scope "{scope}"', SCOPE_HINT)
        return lower_scope

    @property
    def is_owner(self) -> bool:
        """Whether the owner acts directly: not an agent, nor a program that calls tools for an
        agent.
        """
        return self.agent is None and self.face not in ("mcp", "anthropic", "socket")

    @property
    def secret_mode(self) -> str:
        """How the write gate treats secrets in what this caller writes."""
        return self.own_secret_mode or self.engine.gate.mode(self.is_owner)

    def admitted(
        self, text: str, place: str, old: Iterable[bytes] = (), *, whole: bool = False
    ) -> str:
        """Return a text for another program's file, checked for secrets. Raises SecretRefused.

        Secrets are redacted or refused, as the owner decided.

        place: the name of the file in notices.
        old: the texts that the text replaces.
        whole: whether secrets must be refused, because a redacted text would be of no use.
        """
        problem = self.engine.gate.check(text, place, self.secret_mode, self.notices, old)
        if not problem:
            return text
        if whole:
            raise SecretRefused(problem[0].rule.id, problem[0].rule.why, place)
        from memoranda.text.gate import redact

        return redact(text, problem)

    def as_caller(self, agent: str | None, face: str | None = None, **by: str) -> Self:
        """A session of the same open home for another caller.

        face: None for the interface of this session.
        """
        return type(self)(self.engine, agent, face or self.face, by)

    def using(self, tool: str) -> Self:
        """A session of the same caller while it uses the tool named `tool`."""
        session = type(self)(self.engine, self.agent, self.face, self.by | {"tool": tool})
        session.notices = self.notices
        session.own_secret_mode = self.own_secret_mode
        session.run = self.run
        session.only_reads = self.only_reads
        return session

    def in_turn(self, work: Callable[[], T]) -> T:
        """Run `work` and return its result.

        Its one change may wait for the disk together with changes of other threads. If that shared
        wait fails, `work` is run again from the start. So everything it does to files must be part
        of that change.
        """
        with waits_at_most(self.engine.call_waits):
            return self.engine.guard.run(work)

    def parse(self, project: str, path: str, file: File) -> Note:
        """Parse these bytes as a note. Raises NotText."""
        note = self.engine.parse(project, path, file)
        if note is None:
            raise NotText(path)
        return note

    def as_indexed(self, note: Note) -> Note:
        """Return `note` with the permalink, marks, provenance and access count that the index
        knows.
        """
        info = self.index.notes.get(note.project, note.path)
        if info:
            note.permalink = info.permalink
            if info.etag == note.etag:
                note.suspicious = info.suspicious
                note.provenance = info.provenance
        note.access_count += self.engine.reads.counts([note.id])[note.id]
        return note


def _recorded(by: dict[str, str]) -> dict[str, str]:
    """Return facts about a caller as the ledger records them, all but the tool as outside names."""
    return {key: name if key == "tool" else outside_name(name) for key, name in by.items()}
