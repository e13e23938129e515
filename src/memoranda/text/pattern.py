"""Regular expressions that are compiled when they are first used.

Compiling the patterns of all modules takes a third of the time in which a short command starts, and
such a command uses few of them.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")


class _Uncompiled:
    """A pattern that is compiled when one of its methods is first used."""

    def __init__(self, source: str, flags: int | re.RegexFlag):
        self.pattern = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern, self._flags)
        # The methods become attributes of this object, so that `__getattr__` is not called again
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_pattern(source: str, flags: int | re.RegexFlag = 0) -> re.Pattern[str]:
    """Return an object that behaves like `re.compile(source, flags)`.

    The pattern is compiled when one of its methods is first used. A wrong `source` raises
    `re.error` only then.
    """
    return cast("re.Pattern[str]", _Uncompiled(source, flags))
