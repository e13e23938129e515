"""Recognises a pooler that gives each transaction another connection to the server.

Such a pooler (pgbouncer with `pool_mode = transaction`, Supabase at port 6543, Neon's `-pooler`
address) keeps no session, so the lock of a writer would be lost.

Two facts are compared. At the start of a connection, a pooler sends a process number of its own,
but a query returns the number of the server's process. Then further connections are opened. If one
of them gets the process of the first connection, which is still open, the pooler shares processes.
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
# This many further connections are opened. Each of them keeps one process of the server busy.
_PROBES = 3


def shares_processes(db: Server, connect: Callable[[], Server]) -> bool:
    """Whether `db` leads to a pooler that gives its server process to others between transactions.

    connect: opens another connection in the same way.

    Raises psycopg.Error.
    """
    own_process = _process(db)
    is_server_itself = own_process == db.info.backend_pid
    if is_server_itself:
        return False
    with ExitStack() as stack:
        for _ in range(_PROBES):
            other_db = stack.enter_context(connect())
            # Inside a transaction, a connection keeps its process
            stack.enter_context(other_db.transaction())
            if _process(other_db) == own_process:
                return True
        # The others may have made the pooler give `db` another process
        return _process(db) != own_process


def _process(db: Server) -> int:
    """Return the number of the server process that runs this query."""
    ((process,),) = db.execute("select pg_backend_pid()").fetchall()
    return int(process)
