"""Recognises a pooler that gives each transaction another connection to the server.

Such a pooler (pgbouncer with `pool_mode = transaction`, Supabase at port 6543, Neon's `-pooler`
address) keeps no session, so the lock of a writer would be lost. At the start of a connection, a
pooler tells another process number than the server does later. Further connections show its kind: if
one of them gets the process of the first, which is still open, processes are shared.
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
# This number of further connections is opened, each of which keeps a process busy.
_PROBES = 3


def shares_processes(db: Server, connect: Callable[[], Server]) -> bool:
    """Whether `db` leads to a pooler that gives its server process to others between transactions.

    connect: opens another connection in the same way.

    Raises psycopg.Error.
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
    """Return the number of the server process that runs this query."""
    return int(db.execute("select pg_backend_pid()").fetchall()[0][0])
