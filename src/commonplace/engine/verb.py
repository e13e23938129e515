"""What makes a method a verb of an open memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from commonplace.errors import CommonplaceError, Conflict, StorageError
from commonplace.index.index import Index
from commonplace.store.atomic import reason

P = ParamSpec("P")
T = TypeVar("T")


def verb(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """One caller inside at a time; a damaged index is made anew and the call repeated.

    For methods of Memory and of what else holds its `_core`.
    """

    @wraps(method)
    def call(self: Any, *args: P.args, **kwargs: P.kwargs) -> T:
        core = self._core
        with core.guard:
            outermost, commits = core.enter(), core.commits
            try:
                if outermost and kwargs.get("checksum") is None:
                    return repeated(lambda: method(self, *args, **kwargs))
                return method(self, *args, **kwargs)
            except sqlite3.Error as error:
                if not outermost:
                    raise
                if not Index.is_corrupt(error):
                    raise StorageError("the index", Index.explain(error)) from None
                core.rebuild()
                if core.commits != commits:  # it is written; repeated, it would be written twice
                    raise CommonplaceError("The change is made, but the index was damaged; it is made anew.") from None
                return method(self, *args, **kwargs)
            except OSError as error:
                raise StorageError("the memory", reason(error)) from None
            finally:
                core.leave()

    return call


def repeated(run: Callable[[], T]) -> T:
    """`run`, again if a file changed between its reading and its writing; the fifth Conflict passes."""
    for _ in range(4):
        try:
            return run()
        except Conflict:
            continue
    return run()
