"""The server of the bundle: `memory mcp`."""

import sys

from memoranda.cli import run

sys.argv = ["memory", "mcp"]
run()
