"""Searching by meaning: the vectors of the home's texts, which are made in the background.

A vector is a row of numbers that a model makes from a text. Texts with a similar meaning have
vectors that are near each other. A passage is a piece of a note that gets one vector. To embed a
passage is to make its vector. docs/semantic.md explains the whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.engine.engine import verb
from memoranda.engine.session import HomeSession
from memoranda.errors import StorageError
from memoranda.index.vectors import OFF as OFF
from memoranda.index.vectors import ModelSettings, identify
from memoranda.index.vectors import NoModel as NoModel
from memoranda.sources.files import make_private, reason
from memoranda.sources.layout import Layout

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.index.search.ranking import Nearness
    from memoranda.index.vectors.nearest import EmbeddingCounts, KnownTexts, Vectors

# In the background, one call of the model embeds at most this many passages and characters. That
# takes a tenth of a second on one core, so that other work is not disturbed.
AT_ONCE = 8
CHARACTERS = 2_000
# If somebody waits until all passages are embedded, one call of the model embeds at most this many.
# Then the model uses all cores.
THOROUGH_AT_ONCE = 32
THOROUGH_CHARACTERS = 8_000
# How many notes are cut into passages while the lock is held once.
_NOTES_AT_ONCE = 10
# In the background, unneeded vectors are removed once they are this share of all: removing them
# writes the whole file of vectors again.
_LEAST_SHARE_OF_UNNEEDED = 0.25
# How many of the nearest passages a search puts in order, in addition to those found by words.
_NEAREST_PASSAGES = 60


def known_texts(settings: Settings, texts: tuple[str, ...]) -> KnownTexts | None:
    """Return the vectors of texts that belong to the program, not to a note.

    The vectors are stored in the home. Returns None if no model is set up.
    """
    try:
        choice = ModelSettings(
            settings.semantic_model, settings.semantic_endpoint, settings.semantic_key
        )
        return _known_texts(Layout(settings.home).vectors, choice, texts)
    except NoModel:
        return None


@lru_cache(maxsize=1)
def _known_texts(folder: Path, choice: ModelSettings, texts: tuple[str, ...]) -> KnownTexts:
    """Return the vectors of texts that belong to the program. They are computed once and then
    stored.

    choice: the model that computes them.

    Raises NoModel.
    """
    # If there is no model, this raises NoModel before numpy is imported.
    identify(choice)
    from memoranda.index.vectors.nearest import KnownTexts

    return KnownTexts(folder, choice, texts)


class Embedding:
    """The vectors of the home, for the caller of `memory`.

    Without a model, no text is embedded, and no note is near to a question.
    """

    def __init__(self, memory: HomeSession):
        self.memory = memory
        self.engine = memory.engine

    @property
    def vectors(self) -> Vectors | None:
        """The vectors, which are opened at the first use. None without a model.

        The configured model makes them. If none is configured, an installed model does.
        """
        engine = self.engine
        with engine.guard:
            if engine.vectors is None and not engine.no_vectors:
                settings = engine.settings
                choice = ModelSettings(
                    settings.semantic_model, settings.semantic_endpoint, settings.semantic_key
                )
                try:
                    identify(choice)
                    from memoranda.index.vectors.nearest import Vectors

                    engine.vectors = Vectors(engine.index, engine.layout.vectors, choice)
                except NoModel as error:
                    engine.no_vectors = str(error)
            return engine.vectors

    @property
    def trouble(self) -> str:
        """The reason why vectors are missing. Empty if they are available."""
        if self.vectors is not None:
            return ""
        return self.engine.no_vectors

    @property
    def name(self) -> str | None:
        """The model's name. None without a model."""
        vectors = self.vectors
        if vectors is None:
            return None
        return vectors.identity.name

    @property
    def nearness(self) -> Nearness | None:
        """The function that says how near notes are to a question in meaning.

        None if there is no model, or if nothing is embedded yet.
        """
        vectors = self.vectors
        if vectors is None or not self.engine.layout.vectors.exists():
            return None

        def near(text: str, rows: Collection[int]) -> dict[int, float]:
            """Return how near each of the notes `rows` is to a text, by row.

            The nearest passage of a note counts. The result is empty if the model fails.
            """
            try:
                return vectors.cosines(text, rows, _NEAREST_PASSAGES, viewer=self.memory.agent)
            except NoModel as error:
                self._give_up(error)
                return {}

        return near

    @property
    def related(self) -> float:
        """The lowest cosine similarity of a note that is related to a question.

        Each model has its own. It is 0 without a model, and for a model for which it is not known.
        """
        vectors = self.vectors
        if vectors is None:
            return 0.0
        return vectors.identity.manner.related

    @verb
    def counts(self) -> EmbeddingCounts | None:
        """Return how many passages are embedded and how many wait. None without a model."""
        self.engine.fresh()
        vectors = self.vectors
        if vectors is None:
            return None
        return vectors.counts()

    def embed_some(
        self,
        seconds: float,
        *,
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], None] | None = None,
        thorough: bool = False,
    ) -> int:
        """Embed passages that have no vector yet, and return how many were embedded.

        Without a model, or while another process is embedding, nothing is embedded. Between two
        calls of the model, other threads may use the home.

        seconds: for about how many seconds to embed.
        stop: called between two calls of the model. If it returns True, this ends.
        progress: called with the number of embedded passages and of all passages. None calls
            nothing.
        thorough: whether to look at every note, and to remove the vectors of texts that are gone.
            If another process is embedding, this then waits for it.

        Raises NoModel if the model cannot be loaded. Raises NoAnswer, StorageError.
        """
        vectors = self.vectors
        if vectors is None:
            return 0
        from memoranda.index.vectors.store import locked

        folder = self.engine.layout.vectors
        try:
            make_private(folder)
            with locked(folder / "embedding", wait=thorough) as is_free:
                if not is_free:
                    return 0
                end = time.monotonic() + seconds
                return self._embed_until(vectors, end, stop, progress, thorough)
        except OSError as error:
            raise StorageError("the vectors", reason(error)) from None
        except NoModel as error:
            self._give_up(error)
            raise

    def _embed_until(
        self,
        vectors: Vectors,
        end: float,
        stop: Callable[[], bool],
        progress: Callable[[int, int], None] | None,
        thorough: bool,
    ) -> int:
        """Embed passages until the time `end`, and return how many were embedded.

        vectors: the vectors of the home.
        end: a value of time.monotonic.
        stop: called between two calls of the model. If it returns True, this ends.
        progress: called with the number of embedded passages and of all passages.
        thorough: whether to look at every note, and to remove the vectors of texts that are gone.
        """
        embedded = 0
        total = 0
        while not stop():
            # Notes may change while the model works, so each round looks for waiting passages.
            is_first_round = embedded == 0
            self._find_waiting(vectors, thorough and is_first_round, end, stop)
            if progress is not None and is_first_round:
                total = vectors.counts().waiting
            texts = self._waiting_notes(vectors, thorough)
            if not texts:
                # All passages have vectors now. New texts have often replaced others, so there may
                # be vectors that no passage needs. Each process looks for them at least once.
                may_have_unneeded = embedded or not self.engine.vectors_collected
                if thorough or may_have_unneeded:
                    self._collect(vectors, thorough)
                break
            vectors.embed(texts)
            embedded += len(texts)
            if progress is not None:
                progress(min(embedded, total), total)
            if time.monotonic() >= end:
                break
        return embedded

    def _find_waiting(
        self, vectors: Vectors, is_first_look: bool, end: float, stop: Callable[[], bool]
    ) -> None:
        """Cut notes into passages, and record which passages have no vector.

        This ends when no note is left, at the time `end`, or when `stop` returns True.

        vectors: the vectors of the home.
        is_first_look: whether to look at every note, and not only at changed notes.
        """
        # Only the first call marks every note as changed.
        while self._cut_some_notes(vectors, of_all=is_first_look):
            is_first_look = False
            if stop() or time.monotonic() >= end:
                return

    @verb
    def _cut_some_notes(self, vectors: Vectors, *, of_all: bool) -> int:
        """Cut a few changed notes into passages, and return how many notes were cut.

        There are only a few, so that the lock is free again soon. The result is 0 if no changed
        note remains.

        vectors: the vectors of the home.
        of_all: whether every note counts as changed.
        """
        self.engine.fresh()
        with self.engine.ledger.lock, self.engine.index.transaction():
            return vectors.part(_NOTES_AT_ONCE, of_all=of_all)

    @verb
    def _waiting_notes(self, vectors: Vectors, thorough: bool) -> dict[int, str]:
        """Return the texts of the next passages without a vector, by passage.

        They are as many as one call of the model embeds.

        vectors: the vectors of the home.
        thorough: whether to return more texts, because somebody waits until all are embedded.
        """
        if thorough:
            return vectors.waiting(THOROUGH_AT_ONCE, THOROUGH_CHARACTERS)
        return vectors.waiting(AT_ONCE, CHARACTERS)

    @verb
    def gone(self) -> int:
        """Return how many vectors belong to texts that notes no longer have.

        While notes still have to be cut into passages, the result is 0.
        """
        engine = self.engine
        vectors = self.vectors
        if vectors is None or vectors.counts().notes:
            return 0
        with engine.ledger.lock, engine.index.transaction():
            vectors.forget_gone()
        return vectors.gone(engine.layout.indexes())

    @verb
    def drop_gone(self) -> None:
        """Remove the vectors of texts that no note has any more.

        Without a model, it is unknown which texts the vectors belong to, so all vectors are
        removed. Raises StorageError.
        """
        engine = self.engine
        vectors = self.vectors
        folder = engine.layout.vectors
        if vectors is None:
            for vector_file in folder.glob("*"):
                vector_file.unlink(missing_ok=True)
            return
        while self._cut_some_notes(vectors, of_all=False):
            continue
        with engine.ledger.lock, engine.index.transaction():
            vectors.forget_gone()
        vectors.collect(engine.layout.indexes(), least_share=0.0)

    @verb
    def _collect(self, vectors: Vectors, thorough: bool) -> None:
        """Remove the vectors of texts that no note has any more.

        thorough: whether to remove even a few vectors. Otherwise few are left for later.

        All indexes of the home share the vectors. Only a process with the home's own index removes
        vectors. A process with further projects does not.
        """
        engine = self.engine
        engine.vectors_collected = True
        with engine.ledger.lock, engine.index.transaction():
            vectors.forget_gone()
        if not engine.extra:
            least_share = 0.0 if thorough else _LEAST_SHARE_OF_UNNEEDED
            vectors.collect(engine.layout.indexes(), least_share=least_share)

    def _give_up(self, error: NoModel) -> None:
        """Work without vectors from now on, and remember the reason for `trouble`."""
        with self.engine.guard:
            self.engine.vectors = None
            self.engine.no_vectors = str(error)
