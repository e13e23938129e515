"""`serve`: the daemon (contract 001, 13)."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from commonplace.cli import output
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import Failure
from commonplace.cli.syntax import Names, Text, Usage, command, flag, option
from commonplace.errors import ConfigError, InvalidInput, StorageError
from commonplace.query import split_list

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.faces.tool import Registry

_UNITS = Names("unit", lambda: ("systemd", "launchd"))
_LOG_BYTES, _LOGS_KEPT = 1_000_000, 5


@command("serve", example="memory serve --once")
@option("--interval", metavar="TIME", help="Time between two rounds of upkeep, e.g. 30s or 5m [60s].")
@flag("--once", "One round of upkeep, without socket, then exit.")
@flag("--no-socket", "Upkeep alone.")
@option("--tools", help="Toolsets on the socket, separated by commas [agent].")
@option("--log", metavar="FILE", help="Log to this file instead of stderr; rotated at 1 MB, 5 kept.")
@option("--print-unit", type=_UNITS, help="Print a unit file that starts the daemon at login: systemd, launchd.")
def serve(
    call: Invocation, *, interval: Text, once: bool, no_socket: bool, tools: Text, log: Text, print_unit: Text
) -> int | None:
    """Keep the memory tidy on an interval, and serve tools on the home's Unix socket, until stopped."""
    settings = call.settings()
    every = settings.interval if interval is None else _interval(interval)
    if print_unit is not None:
        from commonplace.serve.daemon import UNITS, unit_file

        if print_unit not in UNITS:
            raise Usage(f'invalid value "{print_unit}" for --print-unit: use {" or ".join(UNITS)}')
        arguments = _program(call, settings)
        arguments += ["--interval", interval] if interval else []
        arguments += ["--no-socket"] if no_socket else []
        arguments += ["--tools", tools] if tools else []
        arguments += ["--log", os.path.abspath(os.path.expanduser(log))] if log else []
        output.text(unit_file(print_unit, arguments, settings.home / "daemon.log").rstrip("\n"))
        return None
    _log_to(log)
    from commonplace.faces import registry
    from commonplace.faces.hooks import Hooks

    names = tuple(split_list(tools)) or ("agent",)
    served = None if once or no_socket else registry(names, settings, Hooks.configured())
    return _serve(call, settings, every, served, once=once)


def _serve(call: Invocation, settings: Settings, every: timedelta, served: Registry | None, *, once: bool) -> int:
    from commonplace.clients import hook
    from commonplace.engine import open_memory
    from commonplace.jobs import dream
    from commonplace.jobs.tick import FACE, Scheduler
    from commonplace.serve.daemon import Daemon, daemon_lock
    from commonplace.serve.socket import Listener
    from commonplace.store.files import make_private, reason
    from commonplace.store.layout import Layout

    layout, listener = Layout(settings.home), None
    with ExitStack() as held:
        try:
            make_private(layout.root)
            held.enter_context(daemon_lock(layout.daemon_lock))
        except OSError as error:
            raise StorageError(layout.daemon_lock.name, reason(error)) from None
        if served is not None:
            try:
                listener = held.enter_context(closing(Listener(layout.socket)))
            except StorageError as error:  # a home where no socket can be is served without
                output.failure(str(error))
        memory = held.enter_context(open_memory(config=settings, face=FACE))
        tick, callers = Scheduler(memory, dream.endpoint_of(settings)), memory.as_caller(call.caller, "socket")
        daemon = Daemon(tick, every, callers, served, listener, {hook.METHOD: hook.served})
        if once:
            return 0 if daemon.tick() else 1
        where = "no socket" if listener is None else f"socket: {listener.path}"
        banner = f"Memory daemon running ({where}, interval: {_duration_text(every)})"
        daemon.serve(lambda: _announce(banner), lambda: _announce("\nShutting down..."))
    return 0


def _announce(text: str) -> None:
    """Print a line for whoever started the daemon, who may be gone."""
    with suppress(BrokenPipeError, Failure):
        output.text(text)
        output.finish()


def _interval(text: str) -> timedelta:
    from commonplace.clock import duration

    with suppress(InvalidInput):
        if (value := duration(text)) >= timedelta(seconds=1):
            return value
    raise InvalidInput(f"invalid interval: {text}")


def _duration_text(span: timedelta) -> str:
    """A duration as `2s`, `1m0s`, `1h0m0s`."""
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds}s"


def _log_to(file: str | None) -> None:
    """Log what the daemon does on stderr or in `file`. Raises ConfigError."""
    handler: logging.Handler = logging.StreamHandler()
    if file is not None:
        from logging.handlers import RotatingFileHandler

        try:
            place = os.path.expanduser(file)
            handler = RotatingFileHandler(place, maxBytes=_LOG_BYTES, backupCount=_LOGS_KEPT, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"cannot log to {file}: {error.strerror}") from None
    handler.setFormatter(output.log_form("%(message)s"))
    logger = logging.getLogger("commonplace")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def _program(call: Invocation, settings: Settings) -> list[str]:
    """The command line that serves this home, without the options of `serve`."""
    program = shutil.which("memory")
    start = [program] if program else [sys.executable, "-m", "commonplace"]
    config = ["--config", os.path.abspath(call.config)] if call.config else []
    agent = ["--agent", call.agent] if call.agent else []
    return [*start, "--home", str(settings.home), *config, *agent, "serve"]
