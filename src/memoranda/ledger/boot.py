"""Tells the starts (boots) of the machine apart.

Files that were written before a restart may not have reached the disk.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path


@cache
def boot_id() -> str:
    """Return a value that changes with every start of the machine, "" if the system has none."""
    if sys.platform == "darwin":
        import subprocess

        ran = subprocess.run(
            ["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False
        )
        return ran.stdout.strip()
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
