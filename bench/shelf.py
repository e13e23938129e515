"""The embedding model of a run, and plain cosine with it: each text is embedded once for all homes
and pipelines.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda import config
from memoranda.index.vectors import ModelSettings, identify

if TYPE_CHECKING:
    from memoranda.index.vectors.runtimes import np

AT_ONCE = 256


class Shelf:
    """The model that a home finds by itself. While `keeping`, it remembers the vector of each text.

    Raises NoModel where the `semantic` extra finds none.
    """

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory(prefix="memoranda-shelf-") as folder:
            settings = config.load(Path(folder))
        self.choice = ModelSettings(
            settings.semantic_model, settings.semantic_endpoint, settings.semantic_key
        )
        self.name = identify(self.choice).name
        from memoranda.index.vectors import runtimes

        self._model = runtimes.open_model(self.choice)
        self._held: dict[str, np.ndarray] = {}
        self._keeping = False
        self.fresh = 0
        self.seconds = 0.0

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Texts embedded in here are remembered; `fresh` counts those the model was asked for.
        Questions never are: each is to take the time it takes."""
        self._keeping = True
        try:
            yield
        finally:
            self._keeping = False

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Every home opened in here has this model, which is loaded already."""
        from memoranda.index.vectors import runtimes

        usual = runtimes.open_model
        runtimes.open_model = lambda choice: self
        try:
            yield
        finally:
            runtimes.open_model = usual

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """A unit vector for each text, a row each."""
        if not self._keeping:
            return self._model.embed(texts)
        from memoranda.index.vectors.runtimes import np

        new = [text for text in dict.fromkeys(texts) if text not in self._held]
        if new:
            begin = time.perf_counter()
            self._held.update(zip(new, self._model.embed(new), strict=True))
            self.fresh, self.seconds = (
                self.fresh + len(new),
                self.seconds + time.perf_counter() - begin,
            )
        return np.stack([self._held[text] for text in texts])

    def reads(self, text: str) -> bool:
        return self._model.reads(text)


class Nearest:
    """Texts by the cosine between their vectors and a question's, nothing else: each text as it
    stands.
    """

    def __init__(self, shelf: Shelf):
        self._shelf = shelf
        self._keys: list[str] = []
        self._rows: list[np.ndarray] = []
        self._asked: tuple[str, np.ndarray] | None = None

    def add(self, keys: Sequence[str], texts: Sequence[str]) -> None:
        """Take up texts and what they are called."""
        with self._shelf.keeping():
            for at in range(0, len(texts), AT_ONCE):
                self._rows.append(self._shelf.embed(texts[at : at + AT_ONCE]))
        self._keys += keys

    def nearest(self, text: str, depth: int) -> list[str]:
        """The keys of the nearest texts, nearest first."""
        from memoranda.index.vectors.runtimes import np

        if len(self._rows) > 1:
            self._rows = [np.concatenate(self._rows)]
        if self._asked is None or self._asked[0] != text:
            self._asked = (text, self._shelf.embed([text])[0])
        order = np.argsort(-(self._rows[0] @ self._asked[1]), kind="stable")
        return [self._keys[at] for at in order[:depth].tolist()]
