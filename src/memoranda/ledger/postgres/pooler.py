"""Recognising a pooler that gives each transaction another connection to the server.

Such a pooler (pgbouncer with `pool_mode = transaction`, Supabase at port 6543, Neon's `-pooler`
address) keeps no session: the lock of the writers would belong to nobody. A pooler is known by the
process number it tells at the start, which is not the one the server tells. What kind it is shows a
second connection: where it gets the process of the first, which is still open, processes are
shared.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

    Server = psycopg.Connection[Any]

REFUSAL = (
    "it is reached through a pooler in transaction mode, which keeps no lock; use the address of "
    "the server itself or of a pooler in session mode (docs/teams.md)"
)
# Connections that are opened beside the first one, each keeping a process busy.
_PROBES = 3


def shares_processes(db: Server, connect: Callable[[], Server]) -> bool:
    """Whether the other end of `db` is a pooler that gives its server process to others between
    transactions. Raises psycopg.Error.

    connect: opens another connection in the same way.
    """
    own_process = _process(db)
    if own_process == db.info.backend_pid:
        # The server itself
        return False
    with ExitStack() as opened:
        for _ in range(_PROBES):
            other_db = opened.enter_context(connect())
            # Inside a transaction, so that it keeps its process
            opened.enter_context(other_db.transaction())
            if _process(other_db) == own_process:
                return True
        return _process(db) != own_process


def _process(db: Server) -> int:
    return int(db.execute("select pg_backend_pid()").fetchall()[0][0])
