"""The public `Memory`: the engine's verbs, and those of what stands above it: upkeep, ingestion,
moving in and out.

Each verb imports what it needs when it is called.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from memoranda import engine

if TYPE_CHECKING:
    from memoranda.ingest import Ingestion
    from memoranda.jobs.dream import Dream
    from memoranda.jobs.job import Action, Outcome
    from memoranda.note.model import Note
    from memoranda.transfer.jsonl import Tally


class Memory(engine.Memory):
    """An open memory with the verbs of the `memory` command, bound to one caller: see
    `open_memory`.
    """

    def upkeep(self, *, dry_run: bool = False) -> list[Outcome]:
        """Run the four jobs of `memory consolidate`: expire, decay, upgrade, consolidate. With
        `dry_run` the outcomes hold the actions that would be taken. A job that fails does not stop
        the others: its outcome has the `error`."""
        from memoranda.jobs import lifecycle

        return lifecycle.consolidate(self, dry_run=dry_run)

    def decay(self, *, dry_run: bool = False) -> list[Action]:
        """Let organized memories decay that are old and were never used. Returns the actions."""
        from memoranda.jobs import lifecycle

        return lifecycle.decay(self, dry_run=dry_run)

    def dream(self, level: int = 1, *, dry_run: bool = False) -> Dream:
        """Put memories in order: level 1 sorts the inbox, 2 also merges what is similar, 3 also
        links and reminds. Raises InvalidInput for another level."""
        from memoranda.jobs import dream

        return dream.run(self, level, dry_run=dry_run, endpoint=dream.endpoint_of(self.settings))

    def remind(
        self,
        text: str,
        at: str | None = None,
        *,
        tags: Sequence[str] = (),
        scope: str = "global",
        source: str | None = None,
    ) -> Note:
        """Store a reminder at the time that `at`, else `text` itself names. Raises TimeRefused, and
        as `write`.
        """
        from memoranda.jobs import reminders

        self.check_scope(scope)
        reading = reminders.read_time(self, text if at is None else at)
        return reminders.store(self, text, reading, tags=tags, scope=scope, source=source)

    def ingest(
        self,
        source: str = "all",
        path: str | os.PathLike[str] | None = None,
        *,
        dry_run: bool = False,
        again: bool = False,
    ) -> dict[str, Ingestion]:
        """Take the notes of other programs in: `source` names them, parted by commas; `path` is the
        folder to read instead of a source's own. Returns by source how many are new, changed and
        skipped, and warnings. `again` brings back what was deleted. Raises InvalidInput for an
        unknown source or a missing folder."""
        from memoranda import ingest

        chosen = ingest.named_sources(
            source, None if path is None else os.fspath(path), self.settings
        )
        plans, done = ingest.run(self, chosen, dry_run=dry_run, again=again)
        return {each.source: outcome for each, outcome in zip(plans, done, strict=True)}

    def export(self, *, category: str | None = None, scope: str | None = None) -> Iterator[str]:
        """The memories as lines of JSON, oldest first, with all that is known of them. Raises
        InvalidInput.
        """
        from memoranda.query import check_memory
        from memoranda.transfer.jsonl import exported

        check_memory(category, scope=scope)
        return exported(self, category, scope)

    def import_(self, lines: Iterable[str | bytes], *, skip_bad: bool = False) -> Tally:
        """Take in lines of `export`; doing it twice is doing it once. Every line is looked at
        before anything is written. Returns the counts. Raises InvalidInput for a bad line, unless
        `skip_bad`."""
        from tempfile import TemporaryFile

        from memoranda.transfer.jsonl import Import, Tally

        with TemporaryFile() as file:
            for line in lines:
                data = line.encode() if isinstance(line, str) else line
                file.write(data if data.endswith(b"\n") else data + b"\n")
            importing = Import(self, file, skip_bad=skip_bad)
            tally = Tally()
            if not skip_bad:
                importing.check()
            importing.run(tally, lambda _: None)
        return tally


open_memory = Memory.open
