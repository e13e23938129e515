"""The passages whose meaning is nearest to a text."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

from commonplace.index.database import Database
from commonplace.index.facets import may_see
from commonplace.index.vectors import leading, model, opening, spans
from commonplace.index.vectors.arrays import np, product
from commonplace.index.vectors.file import VectorFile, locked
from commonplace.index.vectors.leading import Leading
from commonplace.index.vectors.model import Choice, Embedder, Identity
from commonplace.index.vectors.rough import Rough
from commonplace.llm import NoAnswer

EXACT = 100_000
"""Up to so many vectors all are compared exactly; of more, those whose signs come near."""
_ROUGH_LEAST, _ROUGH_SHARE, _ROUGH_PART = 4_000, 40, 50
"""How many are compared exactly then: at least so many, so many for each one wanted, and one in so many of all. Of
real texts that keeps 99 of the best 100."""
LEADING, _GATHERED = 20_000, 5
"""From so many vectors on most are told by their leading directions to be too far, unless one in so many is not."""
_FIRST, _MARGIN = 5, 8.0
"""So many times as many as are wanted are compared at once; so many times the error the others may be farther. Of 800
questions to real and made vectors none needed more than 7.4."""
_QUESTIONS = 128
_NOWHERE, _GONE = -1, -2
_ENDING = ".vectors"


class Near(NamedTuple):
    """A passage `text[start:stop]` of the body of the note `row`, and its cosine with the question."""

    row: int
    start: int
    stop: int
    cosine: float


class Counts(NamedTuple):
    """How far embedding is: `passages` in all, of which `embedded` have vectors and `unreadable` the model cannot
    read; `notes` are not yet parted into passages."""

    passages: int
    embedded: int
    unreadable: int
    notes: int

    @property
    def waiting(self) -> int:
        """Passages and notes that are still to be done."""
        return self.passages - self.embedded - self.unreadable + self.notes


class Vectors:
    """The vectors of one home by the chosen model, in `folder`, which is made when the first one is.

    For the one process; `database` is the home's index. Any thread may call.
    Raises NoModel when there is no model to be had.
    """

    def __init__(self, database: Database, folder: Path, choice: Choice, exact: int = EXACT):
        self.identity: Identity = model.identify(choice)
        self._database = database
        self.folder, self._choice, self._exact = folder, choice, exact
        self._file = VectorFile(folder / f"{self.identity.key}{_ENDING}", self.identity.name)
        self._spans, self._rough, self._leading = spans.Spans(), Rough(), Leading()
        self._at = np.empty(0, np.int64)  # of each passage the row of its vector, or why there is none
        self._embedded = (self._at, self._at)  # the passages that have vectors, and the rows of these
        self._generation: tuple[int, int] | None = None
        self._model: Embedder | None = None
        self._asked: dict[str, np.ndarray | None] = {}
        self._turn = threading.RLock()
        self._parted: tuple[sqlite3.Connection | None, int] = (None, 0)

    @property
    def model(self) -> Embedder:
        """The model, loaded when first needed. Raises NoModel."""
        with self._turn:
            if self._model is None:
                self._model = opening.open_model(self._choice)
            return self._model

    def nearest(
        self, text: str, most: int = 50, *, viewer: str | None = None,
        rows: Collection[int] | None = None,
    ) -> list[Near]:  # fmt: skip
        """The passages nearest to `text` that `viewer` may see (None = the owner), at most `most`, nearest first.

        With `rows` only of these notes. Notes not embedded yet are not found, and nothing is for a text the model
        cannot read or while its endpoint does not answer. Raises NoModel, StorageError.
        """
        question = self.question(text)
        if question is None:
            return []
        with self._turn:
            self._look()
            chosen = None if rows is None else self._chosen(rows)
            tried, found = (most if viewer is None else 2 * most) + 16, []
            while True:
                best, cosines = self._best(question, chosen, tried)
                found = [one for one in self._shown(best, cosines, viewer) if one.cosine > 0][:most]
                if len(found) == most or len(best) < tried:
                    return found
                tried *= 4

    def cosines(self, text: str, rows: Collection[int], most: int, *, viewer: str | None = None) -> dict[int, float]:
        """By row, how near to `text` (-1 to 1) the nearest passage is of each of the notes `rows` that has vectors, and
        of those with the `most` nearest passages that `viewer` may see. `rows` are notes of the index. Raises as
        `nearest`."""
        question = self.question(text)
        if question is None:
            return {}
        with self._turn:
            if viewer is None:
                self._look()
                best, _ = self._best(question, None, most)
                nearest = spans.there(self._database.connection, set(self._spans.note[best].tolist()).difference(rows))
            else:
                nearest = [one.row for one in self.nearest(text, most, viewer=viewer)]
                rows = spans.there(self._database.connection, set(rows).difference(nearest), viewer)
            chosen = self._chosen({*rows, *nearest})
            cosines = self._cosines(question, chosen)
            order = np.argsort(cosines, kind="stable")
            notes = self._spans.note[chosen[order]].tolist()
        # Rounded: of equal texts the cosines differ by where the vectors lie.
        return {row: cosine for row, cosine in zip(notes, cosines[order].round(6).tolist(), strict=True) if cosine}

    def question(self, text: str) -> np.ndarray | None:
        """The vector of `text`; None when the model cannot read it or its endpoint does not answer. Raises NoModel."""
        with self._turn:
            if text in self._asked:
                return self._asked[text]
            try:
                vector = self.model.embed([text])[0] if self.model.reads(text) else None
            except NoAnswer:
                return None
            if len(self._asked) >= _QUESTIONS:
                self._asked.clear()
            self._asked[text] = vector
            return vector

    def part(self, most: int, *, anew: bool = False) -> int:
        """Part notes into passages that are not yet, at most `most`. Returns how many; with `anew` all notes are looked
        at, else those that came since the last call. Expects to run inside a transaction."""
        db = self._database.connection
        after = self._parted[1] if self._parted[0] is db and not anew else 0
        count, last = spans.part(db, most, after)
        self._parted = (db, last)
        return count

    def waiting(self, most: int, characters: int) -> dict[int, str]:
        """Texts of passages that have no vector yet, by key: at most `most`, and all but the first within so many
        characters together."""
        with self._turn:
            self._look()
            bare = np.flatnonzero(self._at == _NOWHERE)
            found: dict[int, str] = {}
            for at in range(0, len(bare), most):
                some = bare[at : at + most]
                keys = self._spans.key[some]
                found.update(
                    spans.texts(self._database.connection, self._spans.note[some].tolist(), set(keys.tolist()))
                )
                gone = [key not in found for key in keys.tolist()]
                self._at[some[gone]] = _GONE
                if found:
                    break
            lengths = accumulate(len(text) for text in found.values())
            fitting = sum(length <= characters for length in lengths)
            return dict(islice(found.items(), max(fitting, 1)))

    def embed(self, texts: dict[int, str]) -> int:
        """Make and keep the vectors of `texts`, given by key. Returns how many the model could read.

        Raises NoModel, NoAnswer, StorageError.
        """
        embedder = self.model
        keys = list(texts)
        readable = [at for at, key in enumerate(keys) if embedder.reads(texts[key])]
        made = embedder.embed([texts[keys[at]] for at in readable] or ["a"])  # else how long a vector is, is not known
        rows = np.zeros((len(keys), made.shape[1]), np.float32)
        rows[readable] = made[: len(readable)]
        self._file.append(np.array(keys, np.uint64), rows)
        return len(readable)

    def counts(self) -> Counts:
        """How far embedding is."""
        with self._turn:
            self._look()
            done, blank = self._embedded[1], 0
            for at in range(0, len(done), 8192):
                blank += int((~self._file.rows[done[at : at + 8192]].any(axis=1)).sum())
            return Counts(len(self._at), len(done) - blank, blank, spans.waiting(self._database.connection))

    def forget_gone(self) -> int:
        """Drop the passages of notes that are gone from the index. Expects to run inside a transaction."""
        return spans.forget_gone(self._database.connection)

    def collect(self, indexes: Sequence[Path], *, least_share: float = 0.25) -> int:
        """Drop vectors of texts that are in none of the index files, if they are at least that share of all, and the
        vectors of other models. Returns how many of this model's went. Raises StorageError."""
        if not self._file.path.exists():
            return 0
        with self._turn, locked(self._file.path.with_suffix(".lock")):
            wanted = np.unique(np.concatenate([np.empty(0, np.uint64), *map(spans.keys_of, indexes)]))
            self._file.refresh()
            dead = len(self._file.keys) - int(np.isin(wanted, self._file.keys).sum())
            gone = self._file.keep(wanted) if dead and dead >= least_share * len(self._file.keys) else 0
        for other in self.folder.iterdir():
            if other.stem != self.identity.key and other.suffix in (_ENDING, ".lock"):
                other.unlink(missing_ok=True)
        return gone

    # --- inside -----------------------------------------------------------------------------------

    def _look(self) -> None:
        """Take up what any process added: passages and vectors, and which belong together."""
        same = self._spans.refresh(self._database.connection)
        changed = self._file.refresh()
        if not same or self._file.generation != self._generation:
            self._at = np.empty(0, np.int64)
            self._embedded = (self._at, self._at)
            if self._file.generation != self._generation:
                self._rough, self._leading = Rough(), Leading()
                self._generation = self._file.generation
        known, total = len(self._at), len(self._spans.key)
        if known < total:
            self._at = np.concatenate([self._at, np.full(total - known, _NOWHERE)])
        if not changed and known == total:
            return
        bare = np.flatnonzero(self._at == _NOWHERE)
        keys = self._file.keys
        if not len(bare) or not len(keys):
            return
        order = np.argsort(keys, kind="stable")
        wanted = self._spans.key[bare]
        place = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
        found = keys[order[place]] == wanted
        self._at[bare[found]] = order[place[found]]
        done = np.flatnonzero(self._at >= 0)
        self._embedded = (done, self._at[done])

    def _chosen(self, rows: Collection[int]) -> np.ndarray:
        """The passages of the notes `rows` that have vectors."""
        chosen = self._spans.of(rows)
        return chosen[self._at[chosen] >= 0]

    def _best(self, question: np.ndarray, chosen: np.ndarray | None, most: int) -> tuple[np.ndarray, np.ndarray]:
        """The nearest passages and their cosines, nearest first."""
        count = len(self._file.rows)
        if not count or question.shape[0] != self._file.rows.shape[1]:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        if chosen is None:
            if count <= self._exact:
                return self._best_of_all(question, most)
            chosen = self._near_by_signs(question, most)
        return _top(chosen, self._cosines(question, chosen), most)

    def _best_of_all(self, question: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        """The nearest of all passages. Where there are many, those that cannot be are left out first."""
        rows, (chosen, at) = self._file.rows, self._embedded
        is_wide = rows.shape[1] >= 2 * leading.DIRECTIONS
        if is_wide and len(rows) >= LEADING and most * _FIRST * _GATHERED <= len(chosen):
            near = self._near_by_directions(question, most)
            if len(near) * _GATHERED <= len(rows):
                return _top(near, self._cosines(question, near), most)
        return _top(chosen, product(rows, question)[at], most)

    def _near_by_directions(self, question: np.ndarray, most: int) -> np.ndarray:
        """The passages that may be among the `most` nearest."""
        self._leading.extend(self._file.rows)
        about, error = self._leading.cosines(question)
        chosen, at = self._embedded
        about = about[at]
        first = np.argpartition(about, len(about) - _FIRST * most)[-_FIRST * most :]
        exact = self._cosines(question, chosen[first])
        last = float(np.partition(exact, len(exact) - most)[len(exact) - most])
        return chosen[np.flatnonzero(about >= last - _MARGIN * error)]

    def _near_by_signs(self, question: np.ndarray, most: int) -> np.ndarray:
        self._rough.extend(self._file.rows)
        chosen, at = self._embedded
        size = max(_ROUGH_LEAST, _ROUGH_SHARE * most, len(chosen) // _ROUGH_PART)
        if len(chosen) <= size:
            return chosen
        distances = self._rough.distances(question)[at]
        within = np.cumsum(np.bincount(distances))
        return chosen[distances <= np.searchsorted(within, size)]

    def _cosines(self, question: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        if not len(chosen) or question.shape[0] != self._file.rows.shape[1]:
            return np.zeros(len(chosen), np.float32)
        return product(self._file.rows, question, self._at[chosen])

    def _shown(self, passages: np.ndarray, cosines: np.ndarray, viewer: str | None) -> list[Near]:
        """Those of `passages` that are still there as they were embedded, that the model can read (else the cosine is
        0), and that `viewer` may see."""
        notes = self._spans.note[passages].tolist()
        there = {
            row: (seq, scope)
            for row, seq, scope in self._database.connection.execute(
                "select e.note, e.seq, n.scope from embedded e join note n on n.row = e.note and n.etag = e.etag"
                " where e.note in (select value from json_each(?))",
                (json.dumps(sorted(set(notes))),),
            )
        } if notes else {}  # fmt: skip
        found = []
        for at, row, cosine in zip(passages.tolist(), notes, cosines.tolist(), strict=True):
            seq, scope = there.get(row, (None, ""))
            if seq == self._spans.seq[at] and cosine and may_see(scope, viewer):
                found.append(Near(row, int(self._spans.start[at]), int(self._spans.stop[at]), cosine))
        return found


def _top(passages: np.ndarray, cosines: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    if len(passages) > most:
        best = np.argpartition(cosines, len(cosines) - most)[-most:]
        passages, cosines = passages[best], cosines[best]
    order = np.argsort(-cosines, kind="stable")
    return passages[order], cosines[order]
