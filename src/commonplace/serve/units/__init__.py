"""Unit files with which the system starts the daemon: templates beside this module."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

KINDS = {"systemd": "systemd.service", "launchd": "launchd.plist"}


def unit(kind: str, arguments: Sequence[str], log: Path) -> str:
    """The unit file of `kind` that runs `arguments`; launchd's writes stderr to `log`."""
    template = files("commonplace.serve.units").joinpath(KINDS[kind]).read_text("utf-8")
    if kind == "systemd":
        return template.replace("{command}", " ".join(_systemd(each) for each in arguments))
    from xml.sax.saxutils import escape

    rows = "\n".join(f"    <string>{escape(each)}</string>" for each in arguments)
    return template.replace("{arguments}", rows).replace("{log}", escape(str(log)))


def _systemd(argument: str) -> str:
    """An argument as systemd reads it: `%` and `$` doubled, quoted where blanks or quotes are in it."""
    text = argument.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$")
    return '"' + text.replace('"', '\\"') + '"' if any(sign in text for sign in " \t\"'\\") else text
