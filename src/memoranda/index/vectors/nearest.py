"""Find the passages nearest in meaning to a text: multiply all vectors by its vector.

A *cosine* says how near two vectors are: 1 for the same direction, 0 for no relation. All vectors
have the length 1, so it is their product. A *row* of the index is a note, a *place* is a position in
the file of vectors, and a *position* is one in the list of passages. A vector of zeros stands for a
text that the model cannot read.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

from memoranda.index.database import Database
from memoranda.index.vectors import (
    Embedder,
    ModelId,
    ModelSettings,
    NoModel,
    identify,
    runtimes,
    store,
)
from memoranda.index.vectors.runtimes import np
from memoranda.llm import NoAnswer

# The vectors of this many questions are kept, since one search asks for its vector several times.
_QUESTIONS = 128
_ENDING = ".vectors"
_KNOWN_ENDING = ".known"
# `KnownTexts.learn` embeds this many texts at a time, so that others may ask in between.
_LEARNT_AT_ONCE = 32
# The vectors of a model that was not used for this many seconds are deleted.
_UNUSED_SECONDS = 7 * 86_400


class EmbeddingCounts(NamedTuple):
    """The progress of embedding.

    passages: the number of all passages.
    embedded: the passages with a vector.
    unreadable: the passages that the model cannot read.
    notes: the notes that are not cut into passages yet.
    """

    passages: int
    embedded: int
    unreadable: int
    notes: int

    @property
    def waiting(self) -> int:
        """The number of passages without a vector, plus the notes not cut into passages yet."""
        return self.passages - self.embedded - self.unreadable + self.notes


class _CutUpTo(NamedTuple):
    """How far the notes of an index are cut into passages.

    connection: the connection to the index. Rows of another one are not comparable, since the index
        may have been made again. None before the first note is cut.
    row: the last row that was looked at.
    """

    connection: sqlite3.Connection | None
    row: int


class Vectors:
    """The vectors of one home by the chosen model. Any thread may use them.

    database: the index of the home.
    folder: the folder of the files of vectors. It is created with the first vector.
    choice: the configured model.

    Raises NoModel if no model is available.
    """

    def __init__(self, database: Database, folder: Path, choice: ModelSettings):
        self.identity: ModelId = identify(choice)
        self._database = database
        self._folder = folder
        self._choice = choice
        self._file = store.VectorFile(folder / f"{self.identity.key}{_ENDING}", self.identity.name)
        self._passages = store.Passages()
        # `_match` sets the next two. An example: of three passages the second has no vector, and the
        # vectors of the others are the first two of the file. Then `_vector_places` is [0, -1, 1],
        # and `_embedded_passages` is [0, 2].
        # For each passage, the position of its vector in the file. -1 without a vector.
        self._vector_places = np.empty(0, np.int64)
        # The positions in `_passages` of the passages that have vectors.
        self._embedded_passages = np.empty(0, np.int64)
        # None until it is used first, as loading it takes long.
        self._model: Embedder | None = None
        # The vectors of the last questions. None for a question that the model cannot read.
        self._questions: dict[str, np.ndarray | None] = {}
        # Held while passages are matched with vectors and compared, so that no other thread changes
        # them meanwhile. Its holder may load the model, which takes it again: hence an RLock.
        self._lock = threading.RLock()
        self._cut_up_to = _CutUpTo(connection=None, row=0)

    @property
    def model(self) -> Embedder:
        """The model. The first use loads it. Raises NoModel."""
        with self._lock:
            if self._model is None:
                self._model = runtimes.open_model(self._choice)
            return self._model

    def cosines(
        self, text: str, rows: Collection[int], most: int, *, viewer: str | None = None
    ) -> dict[int, float]:
        """Return the cosine between `text` and the nearest passage of notes, by row, from -1 to 1.

        rows: notes to compare in any case. A note without vectors is left out.
        most: the notes of this many nearest passages are added.
        viewer: leave out notes that this agent may not see. None is the owner.

        Empty if the model cannot read the text, or if its endpoint does not answer. Raises NoModel,
        StorageError.
        """
        question = self.question(text)
        if question is None:
            return {}
        with self._lock:
            self._refresh()
            # The nearest notes, and those that the caller asks for.
            nearest_rows = self._nearest(question, most, viewer)
            other_rows = set(rows).difference(nearest_rows)
            if viewer is not None:
                other_rows = store.visible(self._database.connection, other_rows, viewer)
            # Compare all their passages, and put these in order: the lowest cosine first.
            positions, cosines = self._compare(question, nearest_rows | other_rows)
            ascending = np.argsort(cosines, kind="stable")
            note_rows = self._passages.notes[positions[ascending]].tolist()
        # Rounded, since the cosines of equal texts differ slightly with the places of the vectors.
        rounded_cosines = cosines[ascending].round(6).tolist()
        # A later passage of a note replaces an earlier one, so the nearest sets its cosine. A passage
        # that the model cannot read has the cosine 0.
        pairs = zip(note_rows, rounded_cosines, strict=True)
        return {row: cosine for row, cosine in pairs if cosine}

    def _nearest(self, question: np.ndarray, most: int, viewer: str | None) -> set[int]:
        """Return the rows of the notes with the `most` passages nearest to a question.

        question: the vector of the question.
        viewer: only notes that this agent may see count. None is the owner.

        The nearest passages may belong to notes that the viewer must not see. Then more passages
        are tried.
        """
        positions, cosines = self._compare(question, notes=None)
        # How many passages are looked at. Some may belong to deleted notes, for an agent also to
        # notes of others.
        tried_count = (most if viewer is None else 2 * most) + 16
        while True:
            # The numbers of the passages with the highest cosines, the highest first.
            best = np.arange(len(cosines))
            if len(cosines) > tried_count:
                # `argpartition` puts the highest at the end, without sorting all.
                best = np.argpartition(cosines, len(cosines) - tried_count)[-tried_count:]
            best = best[np.argsort(-cosines[best], kind="stable")]
            # A passage that the model cannot read has the cosine 0.
            best = best[cosines[best] > 0]

            # Their notes, as far as the viewer may see them.
            note_rows = self._passages.notes[positions[best]].tolist()
            visible_rows = store.visible(self._database.connection, set(note_rows), viewer)
            nearest_rows = [row for row in note_rows if row in visible_rows][:most]
            # If `best` is shorter than it could be, all passages with a cosine above 0 are in it.
            has_tried_all = len(best) < tried_count
            if len(nearest_rows) == most or has_tried_all:
                return set(nearest_rows)
            tried_count *= 4

    def question(self, text: str) -> np.ndarray | None:
        """Return the vector of a question.

        Return None if the model cannot read the text, or if its endpoint does not answer.

        Raises NoModel.
        """
        with self._lock:
            if text in self._questions:
                return self._questions[text]
            vector = None
            if self.model.reads(text):
                try:
                    vector = self.model.embed([self.identity.manner.question + text])[0]
                except NoAnswer:
                    # The endpoint may answer next time.
                    return None
            if len(self._questions) >= _QUESTIONS:
                self._questions.clear()
            self._questions[text] = vector
            return vector

    def part(self, limit: int, *, of_all: bool = False) -> int:
        """Cut up to `limit` notes into passages. Return how many notes were cut.

        of_all: whether to look at all notes, not only at notes added since the last call.

        Must run inside a transaction.
        """
        db = self._database.connection
        after = 0
        if self._cut_up_to.connection is db and not of_all:
            after = self._cut_up_to.row
        count, last_row = store.add_passages(db, limit, after)
        self._cut_up_to = _CutUpTo(db, last_row)
        return count

    def waiting(self, most: int, characters: int) -> dict[int, str]:
        """Return texts of passages that have no vector yet, by key.

        most: the most passages to look at.
        characters: the most characters of all texts together. A longer first text comes alone.
        """
        with self._lock:
            self._refresh()
            # The positions of the passages without a vector, whose place is -1.
            positions = np.flatnonzero(self._vector_places < 0)
            texts_by_key: dict[int, str] = {}
            # One group is enough. But if all notes of a group were deleted, it has no texts, and the
            # next one is read.
            for begin in range(0, len(positions), most):
                group = positions[begin : begin + most]
                keys = set(self._passages.keys[group].tolist())
                note_rows = self._passages.notes[group].tolist()
                texts_by_key = store.texts(self._database.connection, note_rows, keys)
                if texts_by_key:
                    break
            # Take as many texts as fit: for each, the characters up to its end are counted.
            lengths_so_far = accumulate([len(text) for text in texts_by_key.values()])
            fitting_count = sum(length <= characters for length in lengths_so_far)
            return dict(islice(texts_by_key.items(), max(fitting_count, 1)))

    def embed(self, texts: dict[int, str]) -> int:
        """Make and store the vectors of texts. Return how many texts the model can read.

        texts: the texts by key.

        Raises NoModel, NoAnswer, StorageError.
        """
        vectors = _vectors(self.model, list(texts.values()), self.identity.manner.passage)
        self._file.append(np.array(list(texts), np.uint64), vectors)
        # A text that the model cannot read has a vector of zeros.
        is_readable = vectors.any(axis=1)
        return int(is_readable.sum())

    def counts(self) -> EmbeddingCounts:
        """Return the progress of embedding."""
        with self._lock:
            self._refresh()
            vectors = self._file.vectors
            places = self._vector_places[self._embedded_passages]
            unreadable = 0
            if len(places):
                # A passage that the model cannot read has a vector of zeros, so its length is 0.
                # `einsum` adds up the squares of each row, without a copy of the matrix.
                squared_lengths = np.einsum("ij,ij->i", vectors, vectors)
                unreadable = int((squared_lengths[places] == 0).sum())
            (uncut_notes,) = self._database.connection.execute(
                f"select count(*) {store.UNCUT}", (0,)
            ).fetchone()
            return EmbeddingCounts(
                passages=len(self._vector_places),
                embedded=len(places) - unreadable,
                unreadable=unreadable,
                notes=uncut_notes,
            )

    def forget_gone(self) -> int:
        """Drop the passages of notes that the index no longer has. Return how many such notes.

        Must run inside a transaction.
        """
        removed = self._database.connection.execute(
            "delete from embedded where note not in (select row from note)"
        )
        return removed.rowcount

    def _keys_of_files(self, indexes: Sequence[Path]) -> tuple[np.ndarray, int]:
        """Return the keys that these indexes need, and the number of vectors they do not need.

        A vector is not needed if no index has its text any longer, or if the file has it twice.

        indexes: the index files.
        """
        keys_of_files = [store.keys_of(path) for path in indexes]
        # `concatenate` needs at least one array, even if there is not any index.
        needed_keys = np.unique(np.concatenate([np.empty(0, np.uint64), *keys_of_files]))
        self._file.refresh()
        # How many of the needed keys the file has, each once.
        needed_count = int(np.isin(needed_keys, self._file.keys).sum())
        return needed_keys, len(self._file.keys) - needed_count

    def gone(self, indexes: Sequence[Path]) -> int:
        """Return how many vectors `collect` could drop.

        indexes: the index files whose vectors are needed.
        """
        with self._lock:
            _, unused_count = self._keys_of_files(indexes)
            return unused_count

    def collect(self, indexes: Sequence[Path], *, least_share: float = 0.25) -> int:
        """Drop vectors that no index file needs. Returns how many were dropped.

        indexes: the index files.
        least_share: drop vectors only if at least this share of all vectors is not needed, since
            the whole file is rewritten. 0 always drops them.

        Files of other models are deleted, too: with a share above 0 only files that were not used
        for a week, so that two processes may use two models. Raises StorageError.
        """
        if not self._file.path.exists():
            return 0
        # The time of the file tells other processes that its model is in use.
        os.utime(self._file.path)
        removed_count = 0
        with self._lock, store.locked(self._file.path.with_suffix(".lock")):
            needed_keys, unused_count = self._keys_of_files(indexes)
            if unused_count and unused_count >= least_share * len(self._file.keys):
                removed_count = self._file.keep(needed_keys)
            self._match()
        unused_since = math.inf
        if least_share:
            unused_since = time.time() - _UNUSED_SECONDS
        # Another process may delete files at the same time.
        with suppress(FileNotFoundError):
            self._delete_other_models(unused_since)
        return removed_count

    def _delete_other_models(self, unused_since: float) -> None:
        """Delete the files of other models that were not used since a time.

        unused_since: the time in seconds since the epoch.

        Raises FileNotFoundError if another process deletes a file at the same time.
        """
        paths = list(self._folder.iterdir())
        models_to_keep = {self.identity.key}
        for path in paths:
            # The time of the vectors is the time at which a model was last used.
            if path.suffix == _ENDING and path.stat().st_mtime > unused_since:
                models_to_keep.add(path.stem)
        for path in paths:
            is_ours = path.suffix in (_ENDING, _KNOWN_ENDING, ".lock")
            if is_ours and path.stem not in models_to_keep:
                path.unlink(missing_ok=True)

    def _refresh(self) -> None:
        """Read the passages and vectors that any process added since the last call."""
        has_new_passages = self._passages.refresh(self._database.connection)
        if self._file.refresh() or has_new_passages:
            self._match()

    def _match(self) -> None:
        """Set `_vector_places` and `_embedded_passages`: find the vector of each passage by its key."""
        self._vector_places = self._file.places(self._passages.keys)
        self._embedded_passages = np.flatnonzero(self._vector_places >= 0)

    def _compare(
        self, question: np.ndarray, notes: Collection[int] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (positions of passages that have vectors, their cosines with the question).

        Both are empty if the vectors of the file have another length than the question.

        notes: the rows of the notes whose passages to compare. None means all notes.
        """
        # The passages to compare, by their positions: only those that have a vector.
        positions = self._embedded_passages
        if notes is not None:
            positions = self._passages.of(notes)
            positions = positions[self._vector_places[positions] >= 0]
        # The vectors of the file, one in each row of a matrix.
        vectors = self._file.vectors
        if vectors.shape[1] != question.shape[0]:
            return positions[:0], np.empty(0, np.float32)
        # `@` multiplies each vector by the question's vector.
        places = self._vector_places[positions]
        if notes is None:
            # Nearly all vectors are needed, so choosing them before would only copy them.
            cosines = (vectors @ question)[places]
        else:
            cosines = vectors[places] @ question
        return positions, _calibrated(cosines, self.identity.manner.floor)


def _calibrated(cosines: np.ndarray, floor: float) -> np.ndarray:
    """Return cosines on the scale on which 0 means that two texts have nothing in common.

    Some models give such texts a cosine of 0.7. With this `floor`, 0.7 becomes 0, 0.85 becomes 0.5,
    and 1 stays 1. Zeros are left unchanged: they mean texts that the model cannot read.

    floor: the cosine of two texts that have nothing in common (`ModelManner`).
    """
    if not floor:
        return cosines
    return np.where(cosines == 0, 0, (cosines - floor) / (1 - floor))


def _vectors(embedder: Embedder, texts: Sequence[str], before: str) -> np.ndarray:
    """Return a matrix with the vector of each text. A text that the model cannot read has zeros.

    embedder: the model.
    before: the text to put in front of each text, such as `passage: `.
    """
    readable_numbers = [number for number, text in enumerate(texts) if embedder.reads(text)]
    readable_texts = [before + texts[number] for number in readable_numbers]
    # Without any text, the length of a vector would be unknown. So a text is embedded in any case.
    embedded_rows = embedder.embed(readable_texts or ["a"])
    vector_length = embedded_rows.shape[1]
    rows = np.zeros((len(texts), vector_length), np.float32)
    rows[readable_numbers] = embedded_rows[: len(readable_numbers)]
    return rows


class KnownTexts:
    """The vectors of the program's own texts, in a file beside the vectors of notes.

    Any thread may use them.

    folder: the folder of the files of vectors.
    choice: the configured model.
    texts: the texts of the program.

    Raises NoModel if no model is available.
    """

    def __init__(self, folder: Path, choice: ModelSettings, texts: Sequence[str]):
        identity = identify(choice)
        self._choice = choice
        self._texts = texts
        self._manner = identity.manner
        self._file = store.VectorFile(folder / f"{identity.key}{_KNOWN_ENDING}", identity.name)
        self._keys = np.array([store.key_of(text) for text in texts], np.uint64)
        self._lock = threading.Lock()

    def learn(self) -> int:
        """Embed some of the texts that have no vector. Return how many were embedded.

        Raises NoModel, NoAnswer, StorageError.
        """
        with self._lock:
            self._file.refresh()
            # The place of a text without a vector is -1.
            has_no_vector = self._file.places(self._keys) < 0
            numbers = np.flatnonzero(has_no_vector)[:_LEARNT_AT_ONCE]
            if len(numbers):
                texts = [self._texts[number] for number in numbers]
                model = runtimes.open_model(self._choice)
                self._file.append(self._keys[numbers], _vectors(model, texts, self._manner.passage))
            return len(numbers)

    def cosines(self, text: str) -> list[float]:
        """Return the cosine between `text` and each text of the program, in their order.

        Empty while a text of the program has no vector, or if the model cannot read `text`. Raises
        StorageError.
        """
        with self._lock:
            self._file.refresh()
            places = self._file.places(self._keys)
            is_any_missing = (places < 0).any()
            # With only some of the texts, the result would depend on which ones are embedded.
            if is_any_missing:
                return []
            try:
                model = runtimes.open_model(self._choice)
                (question,) = _vectors(model, [text], self._manner.question)
            except (NoAnswer, NoModel):
                return []
            # The vectors of the texts, one in each row of a matrix.
            vectors = self._file.vectors[places]
            is_readable = question.any()
            # The file may have vectors of another model of the same name.
            has_same_length = vectors.shape[1] == len(question)
            if not is_readable or not has_same_length:
                return []
            cosines: list[float] = _calibrated(vectors @ question, self._manner.floor).tolist()
            return cosines
