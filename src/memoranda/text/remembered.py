"""A cache of the results of pure functions, for the time in which one change is made.

A large change is checked twice: before it takes the lock, so that others need not wait, and again
when it has the lock. The second check reuses the results of the first. If a long note is edited, most
of its passages stay the same, so the results for its old text are reused for the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

_results: ContextVar[dict[Any, Any] | None] = ContextVar("results", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Let functions marked by `remembered` keep their results while the context is open.

    Leaving the context drops the results. Inside another such context it does nothing.
    """
    if _results.get() is not None:
        yield
        return
    token = _results.set({})
    try:
        yield
    finally:
        _results.reset(token)


def is_remembering() -> bool:
    """Whether functions marked by `remembered` keep their results now."""
    return _results.get() is not None


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function: inside `remembering`, a repeated call returns the earlier result.

    The function must be pure and take positional arguments. Its results must not be changed.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        results = _results.get()
        if results is None or kwargs:
            return function(*args, **kwargs)
        key = (function, args)
        try:
            return cast(T, results[key])
        except KeyError:
            result = function(*args, **kwargs)
        results[key] = result
        return result

    return call
