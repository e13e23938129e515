"""The first hits of a ranked search in the order of a model behind an endpoint (docs/semantic.md).

It is off unless `semantic.rerank` names a model. Where the endpoint gives no answer, the hits stay
as they were found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from memoranda.index.rows import Hit, Hits
from memoranda.llm import NoAnswer, Reranker
from memoranda.note.model import KV_PROJECT

REASON = "reranked"
"""What `why` says of such a hit."""

# Seconds that somebody who searches waits for the endpoint.
_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RerankModel:
    """A model behind an endpoint, and the key it wants."""

    endpoint: str
    name: str
    key: str | None = field(default=None, repr=False)


def rerank(model: RerankModel, question: str, hits: Hits, most: int) -> None:
    """Put the first `most` hits in the order of the model, in place.

    Their scores stay with the places, so that scores fall from hit to hit. Values of keys are not
    sent, as they are not embedded either: such hits keep their places.
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


# One for each endpoint, which remembers that it failed
@lru_cache(maxsize=8)
def _endpoint(model: RerankModel) -> Reranker:
    return Reranker(model.endpoint, model.name, model.key, seconds=_SECONDS)


def _document(hit: Hit) -> str:
    """The text of a hit that the model is shown."""
    return f"{hit.note.title}\n{hit.passage}"
