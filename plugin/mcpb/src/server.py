"""The server of the bundle: `memory mcp`."""

import sys

from commonplace.cli import run

sys.argv = ["memory", "mcp"]
run()
