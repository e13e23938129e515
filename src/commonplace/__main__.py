"""`python -m commonplace` is the `memory` command, for configurations without a PATH."""

from __future__ import annotations

from commonplace.cli import run

if __name__ == "__main__":
    run()
