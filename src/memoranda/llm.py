"""Optional help from an OpenAI-compatible endpoint (contract 003, 9).

Its callers also work without it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from memoranda.errors import MemorandaError

T = TypeVar("T")

# Seconds for one answer of a model.
SECONDS = 20.0
# Failures in a row after which a model is not asked again.
MOST_FAILURES = 3
PAUSE = 600.0
"""After three failures in a row the endpoint is left alone so long (s)."""


class NoAnswer(MemorandaError):
    """The endpoint gave no answer that can be used; the sentence says why and holds no key."""

    code = "llm"


class _LlmEndpoint:
    """An endpoint at `base_url` (http or https, `path` is added) that is left alone for a while
    when it fails.

    An answer may take `seconds` (20), counted by `clock`, and hold `longest` bytes. Not
    thread-safe.
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
        if seconds is None:
            self._seconds = SECONDS
        else:
            self._seconds = seconds
        self._clock = clock
        self._failures = 0
        self._off_until: float | None = None

    @property
    def is_off(self) -> bool:
        """Whether it failed too often lately to be asked now."""
        if self._off_until is not None and self._clock() >= self._off_until:
            self._off_until = None
        return self._off_until is not None

    def _answer(self, make: Callable[[], T]) -> T:
        """Ask the endpoint, and have `make` check the answer.

        Raises NoAnswer when the endpoint is off or fails, or `make` raises ValueError; each but the
        first counts as a failure.
        """
        if self.is_off:
            raise NoAnswer(f"The {self.name} failed too often and is left alone for a while.")
        try:
            answer = make()
        except (NoAnswer, ValueError) as error:
            self._failures += 1
            if self._failures >= MOST_FAILURES:
                self._failures, self._off_until = 0, self._clock() + PAUSE
            if isinstance(error, NoAnswer):
                raise
            raise NoAnswer(f"The {self.name}'s answer cannot be used: {error}") from None
        self._failures = 0
        return answer

    def _post(self, asked_request: dict[str, Any]) -> bytes:
        """The body of the reply to `asked_request`, within the time and size it may take. Raises NoAnswer."""
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

        # A redirect could carry the text elsewhere
        class Staying(HTTPRedirectHandler):
            def redirect_request(self, *_: Any) -> None:
                return None

        data = json.dumps(asked_request).encode()
        headers = {"Content-Type": "application/json"}
        try:
            request = Request(self._url, data, headers, method="POST")
            if self._key:
                request.add_unredirected_header("Authorization", f"Bearer {self._key}")
            host = urlsplit(self._url).hostname or ""
            # And is reached directly
            is_here = host in ("localhost", "::1") or host.startswith("127.")
            opener = build_opener(Staying, *([ProxyHandler({})] if is_here else []))
            with opener.open(request, timeout=self._seconds) as response:
                deadline = self._clock() + self._seconds
                parts = []
                size = 0
                while part := response.read1(65536):
                    parts.append(part)
                    size += len(part)
                    if size > self.longest or self._clock() > deadline:
                        raise NoAnswer(f"The {self.name}'s reply is too long, or takes too long.")
                return b"".join(parts)
        except HTTPError as error:
            with error:
                raise NoAnswer(f"The {self.name}'s endpoint answered {error.code}.") from None
        except (OSError, HTTPException, ValueError) as error:
            raise NoAnswer(
                f"The {self.name}'s endpoint cannot be reached ({type(error).__name__})."
            ) from None


class Endpoint(_LlmEndpoint):
    """One chat endpoint: `base_url` (http or https, `/chat/completions` is added), the model, a key
    or None.
    """

    def ask(self, system: str, user: str, read: Callable[[Any], T]) -> T:
        """Ask the model for JSON, at temperature 0, and have `read` check the answer.

        Raises NoAnswer when it is off, the endpoint fails, the answer is no JSON, or `read` raises
        ValueError; each but the first counts as a failure.
        """
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        kind = {"type": "json_object"}
        request = {
            "model": self._model,
            "temperature": 0,
            "response_format": kind,
            "messages": messages,
        }

        def answer() -> T:
            try:
                content = json.loads(self._post(request))["choices"][0]["message"]["content"]
            except (ValueError, KeyError, IndexError, TypeError, RecursionError):
                raise NoAnswer("The language model's reply is not a chat completion.") from None
            if not isinstance(content, str):
                raise NoAnswer("The language model's reply holds no text.")
            text = content.strip()
            if text.startswith("```") and text.endswith("```"):
                text = text[3:-3].partition("\n")[2]
            try:
                value = json.loads(text)
            except RecursionError:
                raise ValueError("it is nested too deep") from None
            return read(value)

        return self._answer(answer)


class Embeddings(_LlmEndpoint):
    """One endpoint that makes vectors of texts: as `Endpoint`, with `/embeddings` added."""

    name = "embedding model"
    path = "/embeddings"
    longest = 1 << 25

    def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, as the model gives it. Raises NoAnswer."""
        request = {"model": self._model, "input": list(texts), "encoding_format": "float"}

        def read(body: bytes) -> list[list[float]]:
            try:
                rows = {row["index"]: row["embedding"] for row in json.loads(body)["data"]}
                ordered_rows = [rows[at] for at in range(len(texts))]
            except (ValueError, KeyError, TypeError, RecursionError):
                raise ValueError("it is no list of embeddings") from None
            numbers = (
                this_number
                for row in ordered_rows
                for this_number in (row if isinstance(row, list) and row else [None])
            )
            if not all(type(number) in (int, float) for number in numbers):
                raise ValueError("an embedding is no list of numbers")
            return ordered_rows

        return self._answer(lambda: read(self._post(request)))


class Reranker(_LlmEndpoint):
    """One endpoint that says how well texts answer a question: as `Endpoint`, with `/rerank` added.

    It answers as most servers do, with `results` of `index` and `relevance_score`, or with a list
    of `index` and `score`.
    """

    name = "reranking model"
    path = "/rerank"

    def order(self, question: str, documents: Sequence[str]) -> list[int]:
        """The numbers of the documents, the best first; those it does not name come last, in their
        order. Raises NoAnswer.
        """
        request = {
            "model": self._model,
            "query": question,
            "documents": list(documents),
            "top_n": len(documents),
        }
        return self._answer(lambda: _order(self._post(request), len(documents)))


def _order(body: bytes, count: int) -> list[int]:
    """The order a reply gives to `count` documents. Raises ValueError."""
    try:
        reply = json.loads(body)
        rows = reply["results"] if isinstance(reply, dict) else reply
        scores = {row["index"]: row.get("relevance_score", row.get("score")) for row in rows}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is no list of results") from None
    if not scores:
        raise ValueError("it holds no results")
    for number, score in scores.items():
        is_number = type(number) is int and 0 <= number < count
        # A comparison is false for what is not a number
        is_score = type(score) in (int, float) and score == score
        if not is_number or not is_score:
            raise ValueError("a result has no document or no score")
    best_first = sorted(scores, key=lambda number: (-scores[number], number))
    return best_first + [number for number in range(count) if number not in scores]
