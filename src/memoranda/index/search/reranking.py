"""Sort the first hits of a search by a model behind an endpoint (docs/semantic.md).

This is off unless `semantic.rerank` names a model. If the endpoint gives no answer, the hits keep
their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from memoranda.index.rows import Hit, Hits
from memoranda.llm import NoAnswer, Reranker
from memoranda.note.model import KV_PROJECT

REASON = "reranked"
"""The reason that is added to `why` of such a hit."""

# How long a search waits for the endpoint.
_MAX_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RerankModel:
    """A model behind an endpoint.

    endpoint: its URL.
    key: the API key. None if it needs no key.
    """

    endpoint: str
    name: str
    key: str | None = field(default=None, repr=False)


def rerank(model: RerankModel, question: str, hits: Hits, most: int) -> None:
    """Sort the first `most` hits by the model, in place.

    The scores keep their places, so that they still fall from hit to hit. Key-value entries are not
    sent to the endpoint and keep their places.
    """
    places = [place for place, hit in enumerate(hits.hits[:most]) if hit.note.project != KV_PROJECT]
    if len(places) < 2:
        return
    sent_hits = [hits.hits[place] for place in places]
    try:
        order = _endpoint(model).order(question, [_document(hit) for hit in sent_hits])
    except NoAnswer:
        return
    scores = [hit.score for hit in sent_hits]
    for place, number, score in zip(places, order, scores, strict=True):
        hit = sent_hits[number]
        hit.score = score
        hit.why.append(REASON)
        hits.hits[place] = hit


@lru_cache(maxsize=8)
def _endpoint(model: RerankModel) -> Reranker:
    """Return the client of a model, always the same one, which remembers that it failed."""
    return Reranker(model.endpoint, model.name, model.key, seconds=_MAX_WAIT_SECONDS)


def _document(hit: Hit) -> str:
    """Return the text of a hit for the model: title and passage."""
    return f"{hit.note.title}\n{hit.passage}"
