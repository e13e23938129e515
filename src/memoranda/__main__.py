"""`python -m memoranda` is the `memory` command, for configurations without a PATH."""

from __future__ import annotations

from memoranda.cli import run

if __name__ == "__main__":
    run()
