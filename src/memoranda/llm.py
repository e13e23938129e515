"""Ask OpenAI-compatible endpoints: a language, an embedding or a reranking model.

Their help is optional: all callers work without it, too. Source: contract 003, 9.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from memoranda.errors import MemorandaError

if TYPE_CHECKING:
    from http.client import HTTPResponse

T = TypeVar("T")

# Seconds that one answer of a model may take.
SECONDS = 20.0
# The number of failures in a row after which a model is not asked for a while.
MOST_FAILURES = 3
PAUSE = 600.0
"""Seconds for which a model is not asked after three failures in a row."""


class NoAnswer(MemorandaError):
    """The endpoint gave no answer that can be used. The message says why, and has no key in it."""

    code = "llm"


class _LlmEndpoint:
    """An endpoint that is asked by HTTP. After several failures, it is not asked for a while.

    It is not thread-safe. A subclass sets:
    name: the name of the model in messages.
    path: the path that is added to the address.
    longest: how many bytes an answer may have.

    Arguments:
    base_url: the address, with http or https.
    model: the name of the model at the endpoint.
    key: the secret for the endpoint. None sends none.
    seconds: the time that an answer may take. None means 20.
    clock: returns the present time in seconds.
    """

    name = "language model"
    path = "/chat/completions"
    longest = 1 << 20

    def __init__(
        self,
        base_url: str,
        model: str,
        key: str | None = None,
        *,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._url = base_url.rstrip("/").removesuffix(self.path) + self.path
        self._model = model
        self._key = key
        self._seconds = SECONDS if seconds is None else seconds
        self._clock = clock
        self._failures = 0
        self._off_until: float | None = None

    @property
    def is_off(self) -> bool:
        """Whether it failed too often lately to be asked now."""
        if self._off_until is None:
            return False
        if self._clock() < self._off_until:
            return True
        # The pause is over.
        self._off_until = None
        return False

    def _answer(self, make: Callable[[], T]) -> T:
        """Call `make`, and return its result. Count it if the endpoint fails.

        make: asks the endpoint and checks the answer. It raises NoAnswer if the endpoint fails, and
            ValueError for an answer that cannot be used.

        Raises NoAnswer in both cases, and if the endpoint is not asked at present.
        """
        if self.is_off:
            raise NoAnswer(f"The {self.name} failed too often and is left alone for a while.")
        try:
            answer = make()
        except (NoAnswer, ValueError) as error:
            self._failures += 1
            if self._failures >= MOST_FAILURES:
                self._failures = 0
                self._off_until = self._clock() + PAUSE
            if isinstance(error, NoAnswer):
                raise
            raise NoAnswer(f"The {self.name}'s answer cannot be used: {error}") from None
        self._failures = 0
        return answer

    def _post(self, content: dict[str, Any]) -> bytes:
        """Send a request, and return the body of the reply.

        Raises NoAnswer if that fails, takes too long, or the reply is too long.
        """
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

        class NoRedirects(HTTPRedirectHandler):
            """Follow no redirect, since it could carry the texts to another server."""

            def redirect_request(self, *_: Any) -> None:
                return None

        data = json.dumps(content).encode()
        headers = {"Content-Type": "application/json"}
        try:
            request = Request(self._url, data, headers, method="POST")
            if self._key:
                request.add_unredirected_header("Authorization", f"Bearer {self._key}")
            host = urlsplit(self._url).hostname or ""
            # An endpoint on this machine is reached without a proxy.
            is_on_this_machine = host in ("localhost", "::1") or host.startswith("127.")
            handlers = [ProxyHandler({})] if is_on_this_machine else []
            opener = build_opener(NoRedirects, *handlers)
            with opener.open(request, timeout=self._seconds) as response:
                return self._body_of(response)
        except HTTPError as error:
            with error:
                raise NoAnswer(f"The {self.name}'s endpoint answered {error.code}.") from None
        except (OSError, HTTPException, ValueError) as error:
            raise NoAnswer(
                f"The {self.name}'s endpoint cannot be reached ({type(error).__name__})."
            ) from None

    def _body_of(self, response: HTTPResponse) -> bytes:
        """Return the body of a reply. Raises NoAnswer if it is too long, or takes too long."""
        # The timeout of the connection is for each read. A slow endpoint could send byte after byte,
        # so all reads together have a limit, too.
        deadline = self._clock() + self._seconds
        body = bytearray()
        while part := response.read1(65536):
            body += part
            if len(body) > self.longest or self._clock() > deadline:
                raise NoAnswer(f"The {self.name}'s reply is too long, or takes too long.")
        return bytes(body)


class Endpoint(_LlmEndpoint):
    """Ask a language model for answers in JSON."""

    def ask(self, system: str, user: str, read: Callable[[Any], T]) -> T:
        """Ask the model for JSON at temperature 0, and return the answer as `read` made it.

        system: the message that says what to do.
        user: the message with the texts.
        read: checks the value of the JSON and turns it into the result. It raises ValueError for an
            answer that cannot be used.

        Raises NoAnswer if there is no answer that can be used.
        """
        request = {
            "model": self._model,
            "temperature": 0,
            "response_format": {"type": "json_object"},
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": user},
            ],
        }
        return self._answer(lambda: read(_json_in_chat(self._post(request))))


def _json_in_chat(body: bytes) -> Any:
    """Return the value of the JSON in a reply of a language model.

    body: the reply, a chat completion. Its text may be in a fence of Markdown.

    Raises NoAnswer for another reply, and ValueError for a text that is not JSON.
    """
    try:
        content = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise NoAnswer("The language model's reply is not a chat completion.") from None
    if not isinstance(content, str):
        raise NoAnswer("The language model's reply holds no text.")
    text = content.strip()
    if text.startswith("```") and text.endswith("```"):
        # The first line of a fence may name a language.
        text = text[3:-3].partition("\n")[2]
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


class Embeddings(_LlmEndpoint):
    """Ask an embedding model for vectors of texts."""

    name = "embedding model"
    path = "/embeddings"
    longest = 1 << 25

    def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text, as the model gives it. Raises NoAnswer."""
        request = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        return self._answer(lambda: _vectors(self._post(request), len(texts)))


def _vectors(body: bytes, count: int) -> list[list[float]]:
    """Read the vectors that a reply gives to `count` texts, in their order. Raises ValueError."""
    try:
        rows = json.loads(body)["data"]
        vectors_by_index = {row["index"]: row["embedding"] for row in rows}
        vectors = [vectors_by_index[index] for index in range(count)]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("it is no list of embeddings") from None
    for vector in vectors:
        is_list = isinstance(vector, list) and bool(vector)
        if not is_list or not all(type(number) in (int, float) for number in vector):
            raise ValueError("an embedding is no list of numbers")
    return vectors


class Reranker(_LlmEndpoint):
    """Ask a reranking model how well texts answer a question.

    Most servers reply `{"results": [{"index": 1, "relevance_score": 0.9}]}`, others `[{"index": 1,
    "score": 0.9}]`. Both are read.
    """

    name = "reranking model"
    path = "/rerank"

    def order(self, question: str, documents: Sequence[str]) -> list[int]:
        """Return the positions of the documents, the best one first. Raises NoAnswer.

        Documents that the model does not name come last, in their order.
        """
        request = {
            "model": self._model,
            "query": question,
            "documents": list(documents),
            "top_n": len(documents),
        }
        return self._answer(lambda: _order(self._post(request), len(documents)))


def _order(body: bytes, count: int) -> list[int]:
    """Read the order that a reply gives to `count` documents, the best first. Raises ValueError.

    Each document is named by its number, from 0. Documents that the reply leaves out come last.
    """
    scores = _scores(body)
    for number, score in scores.items():
        is_number = type(number) is int and 0 <= number < count
        # NaN is not equal to itself.
        is_score = type(score) in (int, float) and score == score
        if not is_number or not is_score:
            raise ValueError("a result has no document or no score")
    # Of two documents with the same score, the one that was sent first is first.
    best_first = sorted(scores, key=lambda number: (-scores[number], number))
    without_score = [number for number in range(count) if number not in scores]
    return best_first + without_score


def _scores(body: bytes) -> dict[Any, Any]:
    """Return the scores in a reply: number of a document -> score. Neither of them is checked.

    The reply is a list of results, or an object with this list. Raises ValueError.
    """
    try:
        reply = json.loads(body)
        rows = reply["results"] if isinstance(reply, dict) else reply
        # Servers name the score in one of two ways.
        scores = {row["index"]: row.get("relevance_score", row.get("score")) for row in rows}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is no list of results") from None
    if not scores:
        raise ValueError("it holds no results")
    return scores
