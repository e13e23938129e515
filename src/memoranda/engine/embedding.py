"""Searching by meaning: the vectors of the home's texts, made in the background.

A vector is a row of numbers from a model; texts of like meaning have vectors near each other. A
passage is the piece of a note that gets one vector. docs/semantic.md explains the whole.
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
from memoranda.index.vectors import ModelSettings, identify
from memoranda.index.vectors import NoModel as NoModel
from memoranda.sources.files import make_private, reason
from memoranda.sources.layout import Layout

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.index.search.ranking import Nearness
    from memoranda.index.vectors.nearest import EmbeddingCounts, KnownTexts, Vectors

# Passages embedded in one call of the model while somebody may wait.
AT_ONCE = 8
CHARACTERS = 2_000
"""Passages, and characters of them, embedded at once while others call: a tenth of a second on one
core, which the model does not share among threads."""
# Passages embedded in one call of the model when nobody waits.
THOROUGH_AT_ONCE = 32
THOROUGH_CHARACTERS = 8_000
"""The same where somebody waits for all of them: as many cores as there are."""
# Notes cut into passages under the lock.
_NOTES_AT_ONCE = 10
# How many of the nearest passages are ranked, beside the notes that hold words of the question.
_NEAREST_PASSAGES = 60


def known_texts(settings: Settings, texts: tuple[str, ...]) -> KnownTexts | None:
    """The vectors of the program's own `texts`, kept in the home. None without a model."""
    try:
        choice = ModelSettings(
            settings.semantic_model, settings.semantic_endpoint, settings.semantic_key
        )
        return _known_texts(Layout(settings.home).vectors, choice, texts)
    except NoModel:
        return None


@lru_cache(maxsize=1)
def _known_texts(folder: Path, choice: ModelSettings, texts: tuple[str, ...]) -> KnownTexts:
    """The vectors of the program's own texts, made at most once. Raises NoModel."""
    # Without a model, numpy need not be imported
    identify(choice)
    from memoranda.index.vectors.nearest import KnownTexts

    return KnownTexts(folder, choice, texts)


class Embedding:
    """The vectors of the home of `memory`, for the caller of `memory`.

    Without a model, no text is embedded, and no note is near to a question.
    """

    def __init__(self, memory: HomeSession):
        self.memory = memory
        self.engine = memory.engine

    @property
    def vectors(self) -> Vectors | None:
        """The vectors, opened at the first use.

        They are made by the configured model, or else by an installed one. None without a model.
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
        if (vectors := self.vectors) is None:
            return None
        return vectors.identity.name

    @property
    def nearness(self) -> Nearness | None:
        """The function that tells the ranking how near notes are to a question.

        None without a model, and before any text is embedded.
        """
        vectors = self.vectors
        if vectors is None or not self.engine.layout.vectors.exists():
            return None

        def near(text: str, rows: Collection[int]) -> dict[int, float]:
            """Return the nearness of the nearest among the notes `rows`, by row. Empty if the model
            fails.
            """
            try:
                return vectors.cosines(text, rows, _NEAREST_PASSAGES, viewer=self.memory.agent)
            except NoModel as error:
                self._give_up(error)
                return {}

        return near

    @verb
    def counts(self) -> EmbeddingCounts | None:
        """The progress of embedding. None without a model."""
        self.engine.fresh()
        if (vectors := self.vectors) is None:
            return None
        return vectors.counts()

    def some(
        self,
        seconds: float,
        *,
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], None] | None = None,
        thorough: bool = False,
    ) -> int:
        """Embed waiting passages. Returns how many were embedded.

        The number is 0 if no passage waits, if the model is missing, or if another process is
        embedding. The guard is released between batches.

        seconds: for about how long.
        stop: asked between batches whether to end.
        progress: called with (done, total).
        thorough: look at every note, wait for another process, and drop the vectors of texts that
            are gone.

        Raises NoModel (the model cannot be loaded), NoAnswer, StorageError.
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
        """Embed waiting passages until the time `end`. Returns how many were embedded.

        end: a value of time.monotonic.
        thorough: see `some`.
        """
        embedded = 0
        total = 0
        is_first_look = thorough
        while not stop():
            self._find_waiting(vectors, is_first_look, end, stop)
            is_first_look = False
            if progress is not None and not embedded:
                total = vectors.counts().waiting
            texts = self._waiting_notes(vectors, thorough)
            if not texts:
                if embedded or thorough or not self.engine.vectors_collected:
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
        """Cut notes into passages and note which lack a vector, until `end` or until none is left.

        is_first_look: whether to look at every note, instead of only the changed ones.
        """
        while self._part(vectors, is_first_look) and not stop() and time.monotonic() < end:
            is_first_look = False

    @verb
    def _part(self, vectors: Vectors, anew: bool) -> int:
        """Cut a few notes into passages. Returns how many notes; 0 when none is left.

        anew: whether to look at every note again.
        """
        self.engine.fresh()
        with self.engine.ledger.lock, self.engine.index.transaction():
            return vectors.part(_NOTES_AT_ONCE, anew=anew)

    @verb
    def _waiting_notes(self, vectors: Vectors, thorough: bool) -> dict[int, str]:
        """The next passages without a vector, to be embedded in one call of the model."""
        return vectors.waiting(
            *(THOROUGH_AT_ONCE, THOROUGH_CHARACTERS) if thorough else (AT_ONCE, CHARACTERS)
        )

    @verb
    def gone(self) -> int:
        """How many vectors belong to texts that no note has now.

        0 also while notes still wait to be embedded.
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
        """Drop every vector of a text that no note has now.

        Without a model the owners of vectors are unknown, so all vectors are deleted. Raises
        StorageError.
        """
        engine = self.engine
        vectors = self.vectors
        folder = engine.layout.vectors
        if vectors is None:
            for vector_file in folder.glob("*") if folder.exists() else ():
                vector_file.unlink(missing_ok=True)
            return
        while self._part(vectors, False):
            continue
        with engine.ledger.lock, engine.index.transaction():
            vectors.forget_gone()
        vectors.collect(engine.layout.indexes(), least_share=0.0)

    @verb
    def _collect(self, vectors: Vectors, thorough: bool) -> None:
        """Drop the vectors of texts that no note has now.

        They are dropped only for the home's own index. An index that shows further projects must
        not decide for the other indexes.
        """
        engine = self.engine
        engine.vectors_collected = True
        with engine.ledger.lock, engine.index.transaction():
            vectors.forget_gone()
        if not engine.extra:
            vectors.collect(engine.layout.indexes(), least_share=0.0 if thorough else 0.25)

    def _give_up(self, error: NoModel) -> None:
        """Work without vectors from now on, and keep the reason for `trouble`."""
        with self.engine.guard:
            self.engine.vectors, self.engine.no_vectors = None, str(error)
