"""Which agent an MCP client is (contract 001, 1, "Identity")."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

UNNAMED = "unknown"
_OTHER = re.compile(r"[^a-z0-9._-]+")
_BEGINNING = "-._"


def agent_of(client: str, more: Mapping[str, str] | None = None) -> str:
    """The agent of a client that calls itself `client`.

    `more` is the owner's table (configuration key `agents`), which goes before ours: client name, in any
    case, to agent. A client in neither is its own name in the form a scope allows; one without any such
    character is `unknown`, so that it sees what is global and no more.
    """
    name = client.strip().lower()
    plain = _plain(name)
    own = {key.lower(): agent for key, agent in (more or {}).items()}
    for table in (own, _known()):
        for key in (name, plain):
            if key in table:
                return _plain(table[key].lower()) or UNNAMED
    return plain or UNNAMED


def _plain(name: str) -> str:
    return _OTHER.sub("-", name).lstrip(_BEGINNING)


@cache
def _known() -> Mapping[str, str]:
    return tomllib.loads(files("commonplace.serve").joinpath("clients.toml").read_text("utf-8"))
