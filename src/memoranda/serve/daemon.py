"""Runs the daemon of a home, `memory serve` (contract 001, 13).

A daemon serves the home on a socket and over HTTP. Between, it runs rounds of upkeep at intervals;
the steps of a round are made by `Scheduler` (jobs/lifecycle.py). A home has one daemon at a time,
which holds its lock. `unit_file` makes the files with which systemd or launchd start a daemon.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda import clock
from memoranda.clock import waits_until
from memoranda.engine.daemon_client import AUTOSTARTED, STATE
from memoranda.errors import Busy, MemorandaError
from memoranda.serve.call_queue import KEPT_UP_AFTER
from memoranda.serve.sessions import McpSessions
from memoranda.serve.socket import Listener, Methods, Protocol, SocketServer
from memoranda.sources.files import lock_file, lock_owner
from memoranda.sources.layout import Layout

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.tool import Registry
    from memoranda.jobs.lifecycle import Scheduler, Step
    from memoranda.serve.auth import Space
    from memoranda.serve.http import HttpServer

    MakeHttpServer = Callable[[ThreadPoolExecutor, threading.Event], HttpServer]
    """Makes the server of HTTP, which calls on these threads and ends with this event."""

_log = logging.getLogger("memoranda.daemon")
# Calls run on this many threads. Changes run one after the other anyway, but their waits for the disk
# overlap.
_CALL_THREADS = 64


@dataclass(frozen=True, slots=True)
class StepDone:
    """The outcome of one step in a round of upkeep.

    at: when the step ended.
    count: how many items it processed.
    error: the error message. "" if it succeeded.
    """

    at: datetime
    count: int = 0
    error: str = ""


@dataclass(slots=True)
class Rounds:
    """When the daemon did its upkeep, and when it does it next. A round runs all steps.

    began: when the last round began. None before the first.
    next: when the next round begins. None while one runs.
    steps: the last outcome of each step, by name.
    """

    began: datetime | None = None
    next: datetime | None = None
    steps: dict[str, StepDone] = field(default_factory=dict)


class Running(MemorandaError):
    """Another daemon serves this home."""

    code = "running"
    hint = "End that one: memory serve --stop"

    def __init__(self, path: Path, pid: str, is_autostarted: bool = False):
        super().__init__(f"daemon already running (lock file: {path}, held by process {pid})")
        self.is_autostarted = is_autostarted


def was_autostarted(path: Path) -> bool:
    """Whether the daemon that holds the lock at `path` was started by a client."""
    with suppress(OSError, ValueError):
        return AUTOSTARTED in path.read_text().splitlines()
    return False


@contextmanager
def daemon_lock(path: Path, is_autostarted: bool = False) -> Iterator[None]:
    """Hold the lock of a home's only daemon while this context is open.

    The system releases the lock if the process dies. Raises Running, OSError.

    path: the lock file.
    is_autostarted: whether a client started the daemon. The lock file then says so.
    """
    lines = [AUTOSTARTED] if is_autostarted else []
    try:
        # A file that another process holds raises BlockingIOError.
        held_file = _hold_file(path, *lines)
    except BlockingIOError:
        owner = lock_owner(path)
        pid = owner.pid if owner and owner.pid else "unknown"
        raise Running(path, pid, was_autostarted(path)) from None
    with held_file:
        yield


@contextmanager
def http_noted(path: Path, address: str) -> Iterator[None]:
    """Keep a file with the `address` where the home is served over HTTP.

    `http_address` reads the file. It is emptied when the context ends.
    """
    with ExitStack() as stack:
        # An error means that another process serves this home, too, and holds the file.
        with suppress(OSError):
            stack.enter_context(_hold_file(path, address))
        yield


def _hold_file(path: Path, *lines: str) -> ExitStack:
    """Lock a file, and write the number of this process and `lines` into it.

    Returns a context that empties and unlocks the file when it ends. Raises OSError.
    """
    fd = lock_file(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with ExitStack() as stack:
        # The last callback runs first. Closing the file unlocks it.
        stack.callback(os.close, fd)
        stack.callback(os.ftruncate, fd, 0)
        os.ftruncate(fd, 0)
        text = "".join(f"{line}\n" for line in (os.getpid(), *lines))
        os.pwrite(fd, text.encode(), 0)
        # Nothing failed, so the caller's context runs the callbacks, and not this one.
        return stack.pop_all()


def http_address(path: Path) -> str | None:
    """Return the address where a home is served over HTTP on this machine.

    None if it is not served.

    path: the file that `http_noted` writes. Its first line is the number of the process, its second
        line the address.
    """
    try:
        if lock_owner(path) is None:
            return None
        lines = path.read_text().splitlines()
    except OSError:
        return None
    has_address = len(lines) > 1 and lines[1] != ""
    if not has_address:
        return None
    return lines[1]


class Daemon:
    """Serves a home on a socket and over HTTP, and runs rounds of upkeep.

    Both transports share the registry and the threads. A signal ends the daemon.

    scheduler: has the steps of a round, with the memory of the home's owner.
    interval: the time between two rounds.
    served: the memory that callers on the socket use.
    registry: the tools for callers on the socket.
    listener: the listening socket. None means that nothing is served on a socket.
    methods: further methods for the socket, by name. None for none.
    web: makes the HTTP server. None means that nothing is served over HTTP.
    sessions: the MCP sessions on the socket.
    has_upkeep: whether this process does the upkeep, and not another one.
    idle: the time without a client after which the daemon ends. None means never.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        interval: timedelta,
        served: MemorySession | None = None,
        registry: Registry | None = None,
        listener: Listener | None = None,
        methods: Methods | None = None,
        web: MakeHttpServer | None = None,
        sessions: McpSessions | None = None,
        has_upkeep: bool = True,
        idle: timedelta | None = None,
    ):
        self._scheduler = scheduler
        self._has_upkeep = has_upkeep
        self._interval_seconds = interval.total_seconds()
        self._idle_seconds = None if idle is None else idle.total_seconds()
        self._must_stop = threading.Event()
        scheduler.stop = self._must_stop.is_set
        self._server: SocketServer | None = None
        self._http: HttpServer | None = None
        # The upkeep of each space, by name. None while another daemon does it.
        self._space_schedulers: dict[str, Scheduler | None] = {}
        self._space_locks = ExitStack()

        # Calls from the socket and over HTTP run on the same threads.
        threads = ThreadPoolExecutor(_CALL_THREADS, thread_name_prefix="call")
        # Without a listener, tools or a memory, nothing is served on the socket.
        if listener is not None and served is not None and registry is not None:
            all_methods = {**(methods or {}), STATE: lambda _memory, _params: self.state()}
            protocol = Protocol(served, registry, all_methods)
            # A call waits for locks only until the daemon must stop.
            answer = waits_until(self._must_stop)(protocol.answer)
            self._server = SocketServer(listener, answer, registry.hooks.session, threads, sessions)
        self._sessions = sessions
        self._rounds = Rounds()
        if web is not None:
            self._http = web(threads, self._must_stop)
            # The page shows the rounds of upkeep and the sessions.
            self._http.app.state.rounds = self._rounds if has_upkeep else None
            self._http.app.state.sessions = sessions

    def round(self) -> bool:
        """Run one round of upkeep. Returns whether every step succeeded.

        A step that fails is logged and does not stop the others. A step that must wait too long for
        the memory is run in the next round.
        """
        self._rounds.began = clock.now()
        self._rounds.next = None
        # `&=` calls the function on its right in any case, unlike `and`.
        all_succeeded = self._run_steps("", self._scheduler)
        all_succeeded &= self._run_step("transcripts", self._read_transcripts)
        if self._http is not None:
            all_succeeded &= self._run_step("spaces", self._open_spaces)
            for space, scheduler in list(self._space_schedulers.items()):
                if scheduler is not None:
                    all_succeeded &= self._run_steps(f"{space}: ", scheduler)
        self._rounds.next = clock.now() + timedelta(seconds=self._interval_seconds)
        return all_succeeded

    def _read_transcripts(self) -> int:
        """Index new transcripts if the owner allows reading them. Returns the number of new turns."""
        memory = self._scheduler.memory
        if not memory.settings.transcripts:
            return 0
        from memoranda.transcripts.tier import Transcripts

        return Transcripts(memory).sync().turns

    def _run_steps(self, prefix: str, scheduler: Scheduler) -> bool:
        """Run the steps of one home. Returns whether every step succeeded.

        prefix: the beginning of the names of the steps: "" for the home, "team: " for the space
            "team".
        scheduler: has the steps of the home.
        """
        steps: list[Step] = []

        def list_steps() -> int:
            steps.extend(scheduler.steps())
            return 0

        # Listing the steps reads the memory, so it is a step that may fail. Then there are none.
        all_succeeded = self._run_step(f"{prefix}round", list_steps)
        for name, step in steps:
            all_succeeded &= self._run_step(f"{prefix}{name}", step)
        return all_succeeded

    def _run_step(self, name: str, step: Callable[[], int]) -> bool:
        """Run one step and record its outcome. Returns whether it succeeded.

        step: returns how many items it processed.
        """
        if self._must_stop.is_set():
            return True
        try:
            with waits_until(self._must_stop):
                count = step()
        except Exception as error:
            # The outermost loop of the daemon: errors are reported, and the next step runs.
            _log_failure(name, error)
            self._rounds.steps[name] = StepDone(clock.now(), error=str(error))
            return False
        if count:
            _log.info("[%s] processed %d items", name, count)
        self._rounds.steps[name] = StepDone(clock.now(), count)
        return True

    def state(self) -> dict[str, Any]:
        """Return the number of clients, the times of the rounds and the errors of steps, as JSON."""
        steps = self._rounds.steps
        failed = {name: outcome.error for name, outcome in steps.items() if outcome.error}
        return {
            "clients": self._server.clients if self._server is not None else 0,
            "round": _stamp(self._rounds.began),
            "next_round": _stamp(self._rounds.next),
            "failed": failed,
        }

    def _open_spaces(self) -> int:
        """Open the new spaces for upkeep, and forget those that no longer exist.

        Returns 0, the number of processed items, since it is a step of a round. An error of one
        space is raised after the others are open.
        """
        assert self._http is not None
        last_error = None
        spaces = self._http.access.spaces()
        self._space_schedulers = {
            name: scheduler for name, scheduler in self._space_schedulers.items() if name in spaces
        }
        for name in spaces.keys() - self._space_schedulers.keys():
            try:
                self._space_schedulers[name] = self._space_scheduler(spaces[name])
            except (MemorandaError, OSError) as error:
                # The next round tries again.
                last_error = error
        if last_error is not None:
            raise last_error
        return 0

    def _space_scheduler(self, space: Space) -> Scheduler | None:
        """Open a space, and return the steps of its upkeep.

        None if another daemon does the upkeep of this space. Raises MemorandaError, OSError.
        """
        assert self._http is not None
        memory = self._http.homes.memory(space)
        try:
            # The daemon that does the upkeep holds the lock of the space.
            self._space_locks.enter_context(daemon_lock(Layout(memory.home).daemon_lock))
        except Running:
            return None
        own_memory = self._scheduler.memory
        scheduler = type(self._scheduler)(memory.as_caller(None, own_memory.face))
        scheduler.stop = self._must_stop.is_set
        return scheduler

    def serve(self, on_ready: Callable[[], None], on_stop: Callable[[], None]) -> None:
        """Serve until SIGINT or SIGTERM, or until the daemon has been idle for long.

        Then finish the running step, answer open requests, and return.

        on_ready: called when the socket listens.
        on_stop: called as soon as the daemon begins to end.
        """
        asyncio.run(self._serve(on_ready, on_stop))

    async def _serve(self, on_ready: Callable[[], None], on_stop: Callable[[], None]) -> None:
        """Serve until a signal ends the daemon, and do upkeep in between.

        on_ready: called as soon as clients can connect.
        on_stop: called when the daemon begins to stop.
        """
        loop = asyncio.get_running_loop()
        stop_event = asyncio.Event()

        def begin_stop() -> None:
            if not stop_event.is_set():
                self._must_stop.set()
                stop_event.set()
                on_stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, begin_stop)
        if self._server is not None:
            await self._server.start()
        if self._http is not None:
            await self._http.start()
        on_ready()
        try:
            while self._has_upkeep and not stop_event.is_set():
                await asyncio.to_thread(self._run_logged_round)
                await self._pass_interval(stop_event, begin_stop)
            await stop_event.wait()
        finally:
            await self._stop_servers()

    async def _pass_interval(
        self, stop_event: asyncio.Event, begin_stop: Callable[[], None]
    ) -> None:
        """Wait until the next round is due or `stop_event` is set, and keep `memory.md` up to date.

        begin_stop: sets `stop_event`. It is called when the daemon has been idle for long.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._interval_seconds
        seconds_left = self._interval_seconds
        while not stop_event.is_set() and seconds_left > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop_event.wait(), min(seconds_left, KEPT_UP_AFTER))
            # Changes by callers on the socket must be shown before the next round.
            await asyncio.to_thread(self._keep_up)
            if self._is_idle(loop.time()):
                begin_stop()
            seconds_left = end - loop.time()

    async def _stop_servers(self) -> None:
        """Stop the servers after their open requests, and bring `memory.md` up to date."""
        if self._sessions is not None:
            self._sessions.stop()
        stops = [server.stop() for server in (self._server, self._http) if server is not None]
        await asyncio.gather(*stops)
        self._space_locks.close()
        if self._has_upkeep:
            self._keep_up()

    def _is_idle(self, now: float) -> bool:
        """Whether the daemon has had no client for so long that it must end.

        now: the time on the clock of the event loop.
        """
        if self._idle_seconds is None or self._server is None:
            return False
        quiet_since = self._server.quiet_since
        return quiet_since is not None and now - quiet_since >= self._idle_seconds

    def _run_logged_round(self) -> None:
        """Run a round, and log any error so that the daemon goes on."""
        try:
            self.round()
        except Exception as error:
            _log_failure("round", error)

    def _keep_up(self) -> None:
        """Bring the overview `memory.md` up to date. Errors are logged."""
        try:
            with waits_until(self._must_stop):
                self._scheduler.keep_up()
        except Exception as error:
            # As in a round, errors are reported, and the daemon goes on.
            _log_failure("memory.md", error)


def _log_failure(name: str, error: Exception) -> None:
    """Log the failure of a step. The log has a traceback only if it is a fault of ours."""
    if isinstance(error, Busy):
        _log.info("[%s] put off: %s", name, error)
        return
    is_our_fault = not isinstance(error, MemorandaError)
    _log.error("[%s] %s", name, error, exc_info=error if is_our_fault else None)


def _stamp(moment: datetime | None) -> str | None:
    """Return a time as a stamp. None for None."""
    if moment is None:
        return None
    return clock.stamp(moment)


UNITS = {"systemd": "systemd.service", "launchd": "launchd.plist"}
"""The programs that can start a daemon, each with the name of our template for its unit file."""


def unit_file(kind: str, arguments: Sequence[str], log: Path) -> str:
    """Return the text of a unit file that runs the daemon.

    kind: "systemd" or "launchd".
    arguments: the command line to run.
    log: the file for stderr. systemd ignores it, and has its own log.
    """
    template = files("memoranda.serve").joinpath("units", UNITS[kind]).read_text("utf-8")
    if kind == "systemd":
        command = " ".join(_systemd_word(argument) for argument in arguments)
        return template.replace("{command}", command)
    from xml.sax.saxutils import escape

    rows = "\n".join(f"    <string>{escape(argument)}</string>" for argument in arguments)
    return template.replace("{arguments}", rows).replace("{log}", escape(str(log)))


def _systemd_word(argument: str) -> str:
    """Return an argument as a word of a systemd command line: `50% off` as `"50%% off"`."""
    word = argument.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$")
    needs_quotes = re.search(r"[ \t\"'\\]", word)
    if needs_quotes:
        return '"' + word.replace('"', '\\"') + '"'
    return word
