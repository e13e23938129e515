"""Sort the first hits of a search by a model behind an endpoint (docs/semantic.md).

It is only used if the setting `semantic.rerank` names a model. If the endpoint does not answer, the
hits keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from memoranda.index.rows import Hit, Hits
from memoranda.llm import NoAnswer, Reranker
from memoranda.note.model import KV_PROJECT

REASON = "reranked"
"""The reason that is added to `why` of a hit that the model placed."""

# A search waits at most this long for the endpoint.
_MAX_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RerankModel:
    """A reranking model behind an endpoint.

    endpoint: the URL.
    name: the name of the model.
    key: the API key. None if the endpoint needs none.
    """

    endpoint: str
    name: str
    key: str | None = field(default=None, repr=False)


def rerank(model: RerankModel, question: str, hits: Hits, most: int) -> None:
    """Sort the first hits by a model, in place.

    Only the hits change places. The scores do not, so that they still fall from hit to hit.
    Key-value entries are not sent to the endpoint, and keep their places. If the endpoint does not
    answer, nothing changes.

    question: the text of the search.
    most: how many of the first hits to sort.
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
    # `order` has the positions in `sent_hits`, the best first.
    for place, position, score in zip(places, order, scores, strict=True):
        hit = sent_hits[position]
        hit.score = score
        hit.why.append(REASON)
        hits.hits[place] = hit


@lru_cache(maxsize=8)
def _endpoint(model: RerankModel) -> Reranker:
    """Return the client of a model. A model has one client, which remembers failures."""
    return Reranker(model.endpoint, model.name, model.key, seconds=_MAX_WAIT_SECONDS)


def _document(hit: Hit) -> str:
    """Return the text of a hit for the model: title and passage."""
    return f"{hit.note.title}\n{hit.passage}"
