"""`serve`: the daemon (contract 001, 13)."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commonplace.cli import output
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Names, Usage, command
from commonplace.errors import ConfigError, InvalidInput, StorageError
from commonplace.query import split_list

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.faces.tool import Registry
    from commonplace.serve.socket import Listener

UNITS = Names("unit", lambda: ("systemd", "launchd"))
LOG_BYTES, LOGS_KEPT = 1_000_000, 5


@command("serve")
@click.option("--interval", metavar="TIME", help="Time between two rounds of upkeep, e.g. 30s or 5m [60s].")
@click.option("--once", is_flag=True, help="One round of upkeep, without socket, then exit.")
@click.option("--no-socket", is_flag=True, help="Upkeep alone.")
@click.option("--tools", help="Toolsets on the socket, separated by commas [agent].")
@click.option("--log", metavar="FILE", help="Log to this file instead of stderr; rotated at 1 MB, 5 kept.")
@click.option("--print-unit", type=UNITS, help="Print a unit file that starts the daemon at login: systemd, launchd.")
def serve(
    call: Invocation, *, interval: str | None, once: bool, no_socket: bool, tools: str | None, log: str | None,
    print_unit: str | None,
) -> int | None:  # fmt: skip
    """Keep the memory tidy on an interval, and serve tools on the home's Unix socket, until stopped."""
    settings = call.settings()
    every = settings.interval if interval is None else _interval(interval)
    if print_unit is not None:
        from commonplace.serve.units import KINDS, unit

        if print_unit not in KINDS:
            kinds = " or ".join(KINDS)
            raise Usage(f'invalid value "{print_unit}" for --print-unit: use {kinds}', click.get_current_context())
        asked = _options(interval=interval, no_socket=no_socket, tools=tools, log=log)
        line = [*_arguments(call, settings), *asked]
        output.text(unit(print_unit, line, settings.home / "daemon.log").rstrip("\n"))
        return None
    names = tuple(split_list(tools)) or ("agent",)
    _log_to(log)
    from commonplace.faces import registry
    from commonplace.faces.hooks import Hooks

    served = None if once or no_socket else registry(names, settings, Hooks.configured())
    return _serve(call, settings, every, served, once=once)


def _serve(call: Invocation, settings: Settings, every: timedelta, served: Registry | None, *, once: bool) -> int:
    from commonplace.engine import open_memory
    from commonplace.jobs import asking
    from commonplace.jobs.tick import FACE, Tick
    from commonplace.serve.daemon import Daemon, DaemonLock
    from commonplace.store.files import make_private, reason
    from commonplace.store.layout import Layout

    layout = Layout(settings.home)
    try:
        make_private(layout.root)
        lock = DaemonLock(layout.daemon_lock)
    except OSError as error:
        raise StorageError(layout.daemon_lock.name, reason(error)) from None
    listener = None
    try:
        listener = None if served is None else _listener(layout.socket)
        with open_memory(config=settings, face=FACE) as memory:
            tick, callers = Tick(memory, asking.endpoint(settings)), memory.as_caller(call.caller, "socket")
            daemon = Daemon(tick, every, callers, served, listener)
            if once:
                return 0 if daemon.tick() else 1
            where = "no socket" if listener is None else f"socket: {listener.path}"
            banner = f"Memory daemon running ({where}, interval: {shown(every)})"
            daemon.serve(lambda: _say(banner), lambda: _say("\nShutting down..."))
        return 0
    finally:
        if listener is not None:
            listener.close()
        lock.release()


def _say(text: str) -> None:
    """A line for whoever started the daemon; should nobody read it, the daemon does its work all the same."""
    with suppress(BrokenPipeError, Failure):
        output.now(text)


def _listener(path: Path) -> Listener | None:
    """The socket; a home where there can be none is served without."""
    from commonplace.serve.socket import Listener

    try:
        return Listener(path)
    except StorageError as error:
        output.failure(str(error))
        return None


def _interval(text: str) -> timedelta:
    from commonplace.clock import duration

    try:
        value = duration(text)
    except InvalidInput:
        value = timedelta()
    if value < timedelta(seconds=1):
        raise InvalidInput(f"invalid interval: {text}")
    return value


def shown(span: timedelta) -> str:
    """A duration as `2s`, `1m0s`, `1h0m0s`."""
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


def _log_to(file: str | None) -> None:
    """What the daemon does, on stderr or in `file`. Raises ConfigError."""
    handler: logging.Handler = logging.StreamHandler(output.errors())
    if file is not None:
        from logging.handlers import RotatingFileHandler

        try:
            place = os.path.expanduser(file)
            handler = RotatingFileHandler(place, maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"cannot log to {file}: {error.strerror}") from None
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("commonplace")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def _arguments(call: Invocation, settings: Settings) -> list[str]:
    """The command line that serves this home."""
    program = shutil.which("memory")
    start = [program] if program else [sys.executable, "-m", "commonplace"]
    given = ["--config", os.path.abspath(call.config)] if call.config else []
    given += ["--agent", call.agent] if call.agent else []
    return [*start, "--home", str(settings.home), *given, "serve"]


def _options(*, interval: str | None, no_socket: bool, tools: str | None, log: str | None) -> list[str]:
    """The options of `serve` that were given."""
    found = ["--interval", interval] if interval else []
    found += ["--no-socket"] if no_socket else []
    found += ["--tools", tools] if tools else []
    return found + (["--log", os.path.abspath(os.path.expanduser(log))] if log else [])
