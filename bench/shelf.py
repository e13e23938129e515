"""The embedding model of a run, and plain cosine with it: each text is embedded once for all homes
and pipelines.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memoranda import config
from memoranda.index.vectors import ModelId, ModelSettings, identify
from memoranda.text.tokens import passages

if TYPE_CHECKING:
    from memoranda.index.vectors.runtimes import np
    from memoranda.index.vectors.store import VectorFile

AT_ONCE = 256


class Spoken(Protocol):
    """A text of a set, and what it is called."""

    @property
    def key(self) -> str: ...

    @property
    def spoken(self) -> str: ...


class Shelf:
    """The model that a home uses by default. While `keeping`, it remembers the vector of each text.

    folder: where all vectors are kept for the next run, those of questions too, which then take no
        time.

    Raises NoModel where the `semantic` extra finds none.
    """

    def __init__(self, folder: Path | None = None) -> None:
        with tempfile.TemporaryDirectory(prefix="memoranda-shelf-") as scratch:
            settings = config.load(Path(scratch))
        self.choice = ModelSettings(
            settings.semantic_model, settings.semantic_endpoint, settings.semantic_key
        )
        identity = identify(self.choice)
        self.name = identity.name
        from memoranda.index.vectors import runtimes

        self._model = runtimes.open_model(self.choice)
        self._held: dict[str, np.ndarray] = {}
        self._file = None if folder is None else _file_of(folder, identity)
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
        if self._file is not None:
            return self._from_file(self._file, texts)
        if not self._keeping:
            return self._model.embed(texts)
        from memoranda.index.vectors.runtimes import np

        new = [text for text in dict.fromkeys(texts) if text not in self._held]
        if new:
            begin = time.perf_counter()
            vectors = self._model.embed(new)
            self.seconds += time.perf_counter() - begin
            self.fresh += len(new)
            self._held.update(zip(new, vectors, strict=True))
        return np.stack([self._held[text] for text in texts])

    def _from_file(self, file: VectorFile, texts: Sequence[str]) -> np.ndarray:
        from memoranda.index.vectors.runtimes import np
        from memoranda.index.vectors.store import key_of

        keys = np.array([key_of(text) for text in texts], np.uint64)
        file.refresh()
        new = np.unique(keys[file.places(keys) < 0])
        if len(new):
            begin = time.perf_counter()
            text_of = dict(zip(keys.tolist(), texts, strict=True))
            file.append(new, self._model.embed([text_of[key] for key in new.tolist()]))
            file.refresh()
            self.fresh = self.fresh + len(new)
            self.seconds = self.seconds + time.perf_counter() - begin
        return file.rows[file.places(keys)]

    def reads(self, text: str) -> bool:
        return self._model.reads(text)


def _file_of(folder: Path, identity: ModelId) -> VectorFile:
    from memoranda.index.vectors.store import VectorFile

    return VectorFile(folder / f"{identity.key}.vectors", identity.name)


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
        _, question = self._asked
        cosines = self._rows[0] @ question
        order = np.argsort(-cosines, kind="stable")
        return [self._keys[at] for at in order[:depth].tolist()]


class ModelAlone:
    """The nearest passage of each text by the embedding model, and nothing else."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._keys: list[str] = []
        self._rows: list[np.ndarray] = []

    def load(self, texts: Sequence[Spoken]) -> None:
        pieces = []
        for text in texts:
            pieces += [
                (text.key, text.spoken[passage.start : passage.end])
                for passage in passages(text.spoken)
            ]
        with self._shelf.keeping():
            for at in range(0, len(pieces), AT_ONCE):
                some = pieces[at : at + AT_ONCE]
                self._keys += [key for key, _ in some]
                self._rows.append(self._shelf.embed([piece for _, piece in some]))

    def find(self, text: str, depth: int) -> list[str]:
        question = self._shelf.embed([text])[0]
        cosines = []
        for rows in self._rows:
            cosines += [float(cosine) for cosine in rows @ question]
        order = sorted(range(len(cosines)), key=lambda at: -cosines[at])
        # A text is as near as its nearest passage
        keys: dict[str, None] = {}
        for at in order:
            keys[self._keys[at]] = None
        return list(keys)[:depth]
