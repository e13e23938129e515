"""`memory serve`: a round of upkeep on its interval (its steps: `Scheduler` in jobs/lifecycle.py),
beside the socket and HTTP; and the unit files that start it (contract 001, 13)."""

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
from memoranda.serve.sessions import McpSessions
from memoranda.serve.socket import Listener, Methods, Protocol, SocketServer
from memoranda.serve.turns import KEPT_UP_AFTER
from memoranda.sources.files import lock_file, lock_owner
from memoranda.sources.layout import Layout

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.tool import Registry
    from memoranda.jobs.lifecycle import Scheduler, Step
    from memoranda.serve.http import HttpServer

    Web = Callable[[ThreadPoolExecutor, threading.Event], HttpServer]
    """Makes the server of HTTP, which calls on these threads and ends with this event."""

_log = logging.getLogger("memoranda.daemon")
# How many changing calls may wait for the disk together. They run one after the other anyway.
_CALLS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step of a round: when it ended, how many items it processed, and the error if it failed."""

    at: datetime
    count: int = 0
    error: str = ""


@dataclass(slots=True)
class Rounds:
    """When the last round of upkeep began and the next one will, and what came of each step, by
    name.
    """

    began: datetime | None = None
    next: datetime | None = None
    steps: dict[str, StepDone] = field(default_factory=dict)


class Running(MemorandaError):
    """Another daemon serves this home."""

    code = "running"

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
    """Hold the lock of a home's one daemon; the system releases it should the process die. Its file
    says whether a client started the daemon. Raises Running, OSError.
    """
    try:
        lock = _hold_file(path, *([AUTOSTARTED] if is_autostarted else []))
    except BlockingIOError:
        owner = lock_owner(path)
        if owner and owner.pid:
            process = owner.pid
        else:
            process = "unknown"
        raise Running(path, process, was_autostarted(path)) from None
    with lock:
        yield


@contextmanager
def http_noted(path: Path, address: str) -> Iterator[None]:
    """Keep a file at `path` with the `address` served over HTTP, while this context is open (see
    `http_address`).
    """
    with ExitStack() as stack:
        # Another process serves this home too, and said so
        with suppress(OSError):
            stack.enter_context(_hold_file(path, address))
        yield


def _hold_file(path: Path, *lines: str) -> ExitStack:
    """Lock the file and write the process and `lines` into it, until the end of the context. Raises
    OSError.
    """
    fd = lock_file(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with ExitStack() as stack:
        stack.callback(os.close, fd)
        stack.callback(os.ftruncate, fd, 0)
        os.ftruncate(fd, 0)
        os.pwrite(fd, "".join(f"{line}\n" for line in (os.getpid(), *lines)).encode(), 0)
        return stack.pop_all()


def http_address(path: Path) -> str | None:
    """The address at which this home is served over HTTP on this machine, if it is.

    None if it is not served.
    """
    with suppress(OSError):
        if lock_owner(path) is not None:
            return "".join(path.read_text().splitlines()[1:2]) or None
    return None


class Daemon:
    """Upkeep of `memory`'s home every `interval`, unless another process does it (`has_upkeep`),
    and with a `listener` its tools on the socket, with `web` on HTTP. `memory` is the owner's;
    `served` is what the socket's callers get. Both transports share the registry, the threads and
    the size of a request. The daemon ends `idle` after its last client (None: never)."""

    def __init__(
        self,
        scheduler: Scheduler,
        interval: timedelta,
        served: MemorySession | None = None,
        registry: Registry | None = None,
        listener: Listener | None = None,
        methods: Methods | None = None,
        web: Web | None = None,
        sessions: McpSessions | None = None,
        has_upkeep: bool = True,
        idle: timedelta | None = None,
    ):
        self._scheduler = scheduler
        self._has_upkeep = has_upkeep
        self._interval = interval.total_seconds()
        if idle is None:
            self._idle = None
        else:
            self._idle = idle.total_seconds()
        self._stopping = threading.Event()
        scheduler.stop = self._stopping.is_set
        self._server = self._http = None
        self._spaces: dict[str, Scheduler | None] = {}
        self._held = ExitStack()
        threads = ThreadPoolExecutor(_CALLS_AT_ONCE, thread_name_prefix="call")
        if listener is not None and served is not None and registry is not None:
            own_methods = {STATE: lambda _memory, _params: self.state()}
            protocol = Protocol(served, registry, {**(methods or {}), **own_methods})
            answer = waits_until(self._stopping)(protocol.answer)
            self._server = SocketServer(listener, answer, registry.hooks.session, threads, sessions)
        self._sessions = sessions
        self._rounds = Rounds()
        if web is not None:
            self._http = web(threads, self._stopping)
            if has_upkeep:
                self._http.app.state.rounds = self._rounds
            else:
                self._http.app.state.rounds = None
            self._http.app.state.sessions = sessions

    def round(self) -> bool:
        """Run one round. Returns whether all went well.

        A step that fails is logged and does not stop the others. If a long call prevents the round,
        it waits for the next time.
        """
        now = clock.now
        self._rounds.began = now()
        self._rounds.next = None
        good = self._steps_of("", self._scheduler)
        if good:
            good = self._step("transcripts", self._read_transcripts)
        if self._http is not None:
            good &= self._step("spaces", self._open_spaces)
            for space, scheduler in list(self._spaces.items()):
                if scheduler is not None:
                    good &= self._steps_of(f"{space}: ", scheduler)
        self._rounds.next = now() + timedelta(seconds=self._interval)
        return good

    def _read_transcripts(self) -> int:
        """Index new transcripts if the owner allows reading them. Returns the number of new turns."""
        memory = self._scheduler.memory
        if not memory.settings.transcripts:
            return 0
        from memoranda.transcripts.tier import Transcripts

        return Transcripts(memory).sync().turns

    def _steps_of(self, prefix: str, scheduler: Scheduler) -> bool:
        """Run the steps of one home; whether all went well."""
        steps: list[Step] = []

        def begin() -> int:
            steps.extend(scheduler.steps())
            return 0

        good = self._step(f"{prefix}round", begin)
        for name, step in steps:
            good &= self._step(f"{prefix}{name}", step)
        return good

    def _step(self, name: str, step: Callable[[], int]) -> bool:
        """Run one step and note what came of it; whether it went well."""
        if self._stopping.is_set():
            return True
        try:
            with waits_until(self._stopping):
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
        """The state of the daemon as JSON: its clients, and its rounds with the steps that failed."""
        failed = {
            name: step_state.error
            for name, step_state in self._rounds.steps.items()
            if step_state.error
        }
        return {
            "clients": self._server.clients if self._server is not None else 0,
            "round": _stamp(self._rounds.began),
            "next_round": _stamp(self._rounds.next),
            "failed": failed,
        }

    def _open_spaces(self) -> int:
        """Open the spaces that exist now. Raises the error of a space after the others are open."""
        assert self._http is not None
        trouble = None
        known_spaces = self._http.access.spaces()
        self._spaces = {name: space for name, space in self._spaces.items() if name in known_spaces}
        for name in known_spaces.keys() - self._spaces.keys():
            try:
                memory = self._http.homes.memory(known_spaces[name])
                # As long as another daemon does its rounds
                self._spaces[name] = None
                self._held.enter_context(daemon_lock(Layout(memory.home).daemon_lock))
                scheduler = type(self._scheduler)(
                    memory.as_caller(None, self._scheduler.memory.face)
                )
                scheduler.stop = self._stopping.is_set
                self._spaces[name] = scheduler
            except Running:
                continue
            except (MemorandaError, OSError) as error:
                self._spaces.pop(name, None)
                trouble = error
        if trouble is not None:
            raise trouble
        return 0

    def serve(self, ready: Callable[[], None], stopping: Callable[[], None]) -> None:
        """Serve until SIGINT or SIGTERM. Then finish the running action, answer open requests, and
        return.

        ready: called when the socket listens.
        stopping: called at the signal.
        """
        asyncio.run(self._serve(ready, stopping))

    async def _serve(self, ready: Callable[[], None], stopping: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()

        def on_signal() -> None:
            if not stop.is_set():
                self._stopping.set()
                stop.set()
                stopping()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, on_signal)
        if self._server is not None:
            await self._server.start()
        if self._http is not None:
            await self._http.start()
        ready()
        try:
            while self._has_upkeep and not stop.is_set():
                await asyncio.to_thread(self._logged_round)
                end = loop.time() + self._interval
                while not stop.is_set() and (seconds_left := end - loop.time()) > 0:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(stop.wait(), min(seconds_left, KEPT_UP_AFTER))
                    # Changes by callers of the socket are shown before that.
                    await asyncio.to_thread(self._keep_up)
                    if self._is_idle(loop.time()):
                        on_signal()
            await stop.wait()
        finally:
            if self._sessions is not None:
                self._sessions.stop()
            stops = [server.stop() for server in (self._server, self._http) if server is not None]
            await asyncio.gather(*stops)
            self._held.close()
            if self._has_upkeep:
                self._keep_up()

    def _is_idle(self, now: float) -> bool:
        """Whether the daemon has been without a client for as long as it waits for one."""
        if self._idle is None or self._server is None:
            return False
        quiet_since = self._server.quiet_since
        return quiet_since is not None and now - quiet_since >= self._idle

    def _logged_round(self) -> None:
        """Run a round, and log any error so that the daemon goes on."""
        try:
            self.round()
        except Exception as error:
            _log_failure("round", error)

    def _keep_up(self) -> None:
        try:
            with waits_until(self._stopping):
                self._scheduler.keep_up()
        except Exception as error:
            # As in a round, errors are reported, and the daemon goes on.
            _log_failure("memory.md", error)


def _log_failure(name: str, error: Exception) -> None:
    """Log the failure of a step, with the traceback if it is a fault of ours."""
    if isinstance(error, Busy):
        _log.info("[%s] put off: %s", name, error)
        return
    if isinstance(error, MemorandaError):
        fault = None
    else:
        fault = error
    _log.error("[%s] %s", name, error, exc_info=fault)


def _stamp(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return clock.stamp(moment)


UNITS = {"systemd": "systemd.service", "launchd": "launchd.plist"}


def unit_file(kind: str, arguments: Sequence[str], log: Path) -> str:
    """The unit file of `kind` (see UNITS) that runs the command line `arguments`; launchd's writes
    stderr to `log`.
    """
    template = files("memoranda.serve").joinpath("units", UNITS[kind]).read_text("utf-8")
    if kind == "systemd":
        # as systemd reads them: `%` and `$` doubled, quoted if it has blanks or quotes
        texts = (
            argument.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$")
            for argument in arguments
        )
        quoted = (
            '"' + text.replace('"', '\\"') + '"' if re.search(r"[ \t\"'\\]", text) else text
            for text in texts
        )
        return template.replace("{command}", " ".join(quoted))
    from xml.sax.saxutils import escape

    rows = "\n".join(f"    <string>{escape(argument)}</string>" for argument in arguments)
    return template.replace("{arguments}", rows).replace("{log}", escape(str(log)))
