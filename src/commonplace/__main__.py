"""`python -m commonplace` is the `memory` command, for configurations without a PATH."""

from __future__ import annotations

import sys

from commonplace.cli import main

if __name__ == "__main__":
    sys.exit(main())
