"""Telling a person of reminders on the desktop (contract 001, 8, "Methods").

What a reminder says goes to other programs as one argument, never into a script or through a shell.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commonplace.config import Settings

TITLE = "Memory CLI"
SECONDS = 5.0
"""How long a program may take that shows a notification."""
_LENGTH = 100
_OSASCRIPT = (
    "osascript", "-e", "on run argv",
    "-e", "display notification (item 1 of argv) with title (item 2 of argv)", "-e", "end run", "--",
)  # fmt: skip


def push(settings: Settings, texts: Sequence[str]) -> str | None:
    """Show a notification of reminders with these texts, as configured (`notification.*`).

    Returns None when that went well or nothing is to be shown, else what is said on stderr.
    """
    if not settings.notify or not texts:
        return None
    method = chosen(settings.notify_method)
    said = _shortened(texts[0]) if len(texts) == 1 else f"You have {len(texts)} reminder(s)"
    if method == "file":
        return None
    command = (*_OSASCRIPT, said, TITLE) if method == "osascript" else (method, "--", TITLE, said)
    why = _run(command)
    return f"notify: {method} failed: {why}" if why else None


def chosen(method: str) -> str:
    """The method `auto` stands for on this system; any other one itself."""
    if method != "auto":
        return method
    if sys.platform == "darwin":
        return "osascript"
    return "notify-send" if _has_session_bus() and shutil.which("notify-send") else "file"


def _has_session_bus() -> bool:
    if os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return True
    folder = os.environ.get("XDG_RUNTIME_DIR")
    return bool(folder) and os.path.exists(os.path.join(folder or "", "bus"))


def _shortened(text: str) -> str:
    text = text.replace("\0", " ")  # no argument can hold one
    return text if len(text) <= _LENGTH else text[:_LENGTH] + "..."


def _run(command: Sequence[str]) -> str | None:
    """Run a program to its end. Returns why it failed, None when it did not."""
    try:
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            timeout=SECONDS, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no answer within {SECONDS:g} s"
    except FileNotFoundError:
        return "it is not installed"
    except OSError as error:
        return (error.strerror or "it cannot be run").lower()
    if ran.returncode == 0:
        return None
    lines = ran.stderr.decode("utf-8", "replace").split("\n", 1)
    return lines[0].strip() or f"it ended with status {ran.returncode}"
