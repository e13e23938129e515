"""The commands `serve`, which runs the daemon (contract 001, 13), and `page`, which opens the memory
in a browser (docs/page.md).
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from memoranda.cli import output
from memoranda.cli.invocation import Invocation
from memoranda.cli.output import Failure
from memoranda.cli.syntax import Names, Text, Usage, command, flag, option
from memoranda.errors import ConfigError, InvalidInput, StorageError
from memoranda.query import split_list
from memoranda.text.user_path import absolute_path, user_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path
    from socket import socket
    from threading import Event, Thread

    from memoranda.config import Settings
    from memoranda.engine import MemorySession
    from memoranda.faces.tool import Registry
    from memoranda.serve.auth import Access
    from memoranda.serve.daemon import MakeHttpServer
    from memoranda.serve.http import HttpServer, Place
    from memoranda.serve.sessions import McpSessions
    from memoranda.serve.socket import Listener, Methods
    from memoranda.sources.layout import Layout

_UNITS = Names("unit", lambda _: ("systemd", "launchd"))
# A log file is rotated at this size, and this many old files are kept.
_MAX_LOG_BYTES = 1_000_000
_MAX_OLD_LOGS = 5
# A daemon may take this many seconds to end.
_SECONDS_TO_END = 10.0
# A browser may take this many seconds to open.
_SECONDS_TO_OPEN = 10.0


@command("serve", example="memory serve --once")
@option(
    "--interval", metavar="TIME", help="Time between two rounds of upkeep, e.g. 30s or 5m [60s]."
)
@flag("--once", "Run one round of upkeep, without a socket, and exit.")
@flag("--no-socket", "Serve no tools on the home's socket.")
@option("--idle", metavar="TIME", help="End this long after the last client, e.g. 30m [never].")
@flag("--stop", "End the daemon of this home.")
@option("--http", metavar="HOST:PORT", help="Serve MCP over HTTP too, e.g. on 127.0.0.1:8377.")
@flag(
    "--no-token", "Let every program on this machine call over HTTP; only on 127.0.0.1.", "is_open"
)
@option(
    "--public-url",
    metavar="URL",
    help="The https address of the server from outside; turns OAuth on.",
)
@option(
    "--allow-host",
    metavar="LIST",
    help="Further names of the server in calls over HTTP, separated by commas.",
)
@option(
    "--allow-origin",
    metavar="LIST",
    help="Origins whose web pages may call over HTTP, separated by commas.",
)
@option(
    "--tools", help="Toolsets, separated by commas [agent on the socket; memory,notes over HTTP]."
)
@option(
    "--log", metavar="FILE", help="Log to this file instead of stderr; rotated at 1 MB, 5 kept."
)
@option(
    "--print-unit",
    type=_UNITS,
    help="Print a unit file that starts the daemon at login: systemd, launchd.",
)
def serve(
    call: Invocation,
    *,
    interval: Text,
    once: bool,
    no_socket: bool,
    idle: Text,
    stop: bool,
    http: Text,
    is_open: bool,
    public_url: Text,
    allow_host: Text,
    allow_origin: Text,
    tools: Text,
    log: Text,
    print_unit: Text,
) -> int | None:
    """Run upkeep on an interval and serve tools on the home's Unix socket, until stopped.

    With --http, it also serves them over HTTP, to callers with a token: memory token add NAME
    (docs/http.md). If no daemon runs, clients start one (docs/clients.md).
    """
    settings = call.settings
    if stop:
        _stop(call, settings)
        return None
    span = settings.interval if interval is None else _span("interval", interval)
    ends_after = None if idle is None else _span("idle", idle)

    if print_unit is not None:
        # The unit starts the daemon with the options of this call.
        options: dict[str, str | bool | None] = {
            "--interval": interval,
            "--no-socket": no_socket,
            "--idle": idle,
            "--http": http,
            "--public-url": public_url,
            "--allow-host": allow_host,
            "--allow-origin": allow_origin,
            "--tools": tools,
            "--no-token": is_open,
            "--log": absolute_path(log) if log else None,
        }
        _print_unit(call, print_unit, options)
        return None
    place = _checked_place(http, is_open, public_url, allow_host, allow_origin)
    _log_to(log)
    from memoranda.faces import DEFAULT_TOOLSETS, expand, registry
    from memoranda.faces.tool import Hooks

    toolsets = tuple(split_list(tools))
    # This raises for an unknown toolset. So it comes first, even if no tools are served.
    offered_over_http = list(expand(toolsets or DEFAULT_TOOLSETS))
    # One round of upkeep needs no tools.
    if once:
        return _serve(call, settings, Service(span, is_once=True))
    if not toolsets:
        toolsets = ("agent", *DEFAULT_TOOLSETS) if place else ("agent",)
    service = Service(
        span,
        served=registry(toolsets, settings, Hooks.configured()),
        place=place,
        offered=offered_over_http,
        has_socket=not no_socket,
        ends_after=ends_after,
    )
    return _serve(call, settings, service)


def _checked_place(
    address: Text, is_open: bool, public_url: Text, hosts: Text, origins: Text
) -> Place | None:
    """Return where to serve HTTP, and which callers are allowed. None if HTTP is not served.

    address: the host and port, such as `127.0.0.1:8377`. None if HTTP is not served.
    is_open: whether callers need no token.
    public_url: the address from outside; None if there is only `address`.
    hosts: allowed values of the header Host, separated by commas. None allows only the usual ones.
    origins: allowed values of the header Origin, separated by commas. None allows only the usual
        ones.

    Raises InvalidInput, and Usage for an option that needs an address.
    """
    if address is None:
        if is_open or public_url or hosts or origins:
            raise Usage("--no-token, --public-url, --allow-host and --allow-origin need --http")
        return None
    from memoranda.serve.http import Place, host_and_port

    public = public_url.rstrip("/") if public_url else None
    host, port = host_and_port(address)
    place = Place(
        host,
        port,
        is_open=is_open,
        public=public,
        hosts=split_list(hosts),
        origins=split_list(origins),
    )
    place.check()
    return place


def _span(option: str, text: str) -> timedelta:
    """Read the time span of an option: `5m` → five minutes. Raises InvalidInput.

    option: the name of the option, for the error.
    """
    from memoranda.clock import duration

    try:
        span = duration(text)
    except InvalidInput:
        span = timedelta(0)
    if span < timedelta(seconds=1):
        raise InvalidInput(f"invalid {option}: {text}", "At least 1s, e.g. 30s, 5m or 1h30m.")
    return span


def _stop(call: Invocation, settings: Settings) -> None:
    """End the daemon of the home, and tell the person. Raises Failure if it does not end in time."""
    from memoranda.engine import daemon_client
    from memoranda.sources.layout import Layout

    try:
        process = daemon_client.stop(Layout(settings.home).daemon_lock, _SECONDS_TO_END)
    except (OSError, TimeoutError) as error:
        raise Failure(f"the daemon has not ended: {error}", "storage") from None
    if process is None:
        call.answer("No daemon runs.", stopped=None)
        return
    notice = ""
    if not daemon_client.why_not_started(settings):
        notice = " The next client starts another one."
    call.answer(f"The daemon (process {process}) has ended.{notice}", stopped=process)


def _show_page(call: Invocation, base_address: str, *, opens_browser: bool) -> Thread | None:
    """Print the address of the page with a new code, and open it in a browser.

    base_address: the address of the server, such as `http://127.0.0.1:8377`.
    opens_browser: whether to open a browser, if the machine has a screen.

    Returns the thread that opens the browser. None if none is opened.
    """
    from memoranda.serve.auth import Access, PageVisitors

    code = PageVisitors(Access(call.settings.home)).new_code()
    address = f"{base_address}/page/enter?code={code}"
    call.answer(address, address=address)
    output.write(flush=True)
    has_screen = (
        sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if not opens_browser or not has_screen:
        return None
    import webbrowser
    from threading import Thread

    # A browser may take long to start, and the server must answer it meanwhile.
    browser_thread = Thread(target=webbrowser.open, args=(address,), daemon=True)
    browser_thread.start()
    return browser_thread


@command("page", keys=("address",), example="memory page --no-open")
@option(
    "--http",
    metavar="HOST:PORT",
    help="Where to serve it, if nothing serves this home yet [127.0.0.1:8377].",
)
@flag("--no-open", "Only print the address; open no browser.")
def page(call: Invocation, *, http: Text, no_open: bool) -> int | None:
    """Open the memory in the browser: what happened, questions, notes, people, graph, calendar.

    The address can be used once, within five minutes. If no `memory serve --http` runs, this command
    serves the home until it is stopped.
    """
    from memoranda.faces import DEFAULT_TOOLSETS, registry
    from memoranda.serve.daemon import http_address
    from memoranda.sources.layout import Layout

    if call.caller is not None:
        raise InvalidInput("the page is the owner's; run memory page without an agent's name")
    settings = call.settings
    layout = Layout(settings.home)

    show = partial(_show_page, call, opens_browser=not no_open)
    running_address = http_address(layout.http)
    if running_address is not None:
        browser_thread = show(running_address)
        if browser_thread is not None:
            # The thread would end with this process.
            browser_thread.join(_SECONDS_TO_OPEN)
        return None

    # No server runs, so this command serves the page itself.
    from memoranda.serve.http import Place, host_and_port

    host, port = host_and_port(http or "127.0.0.1:8377")
    place = Place(host, port)
    place.check()
    _log_to(None, logging.WARNING)
    served = registry(("agent", *DEFAULT_TOOLSETS), settings)
    service = Service(
        settings.interval,
        served=served,
        place=place,
        offered=[*DEFAULT_TOOLSETS],
        show=show,
        takes_any_port=not http,
    )
    return _serve(call, settings, service)


def _print_unit(call: Invocation, system: str, options: Mapping[str, str | bool | None]) -> None:
    """Print a unit file that makes the system start the daemon at login.

    system: `systemd` or `launchd`.
    options: the options of `memory serve`, by name. Options that are False, None or "" are left out.

    Raises Usage for another system.
    """
    from memoranda.serve.daemon import UNITS, unit_file

    if system not in UNITS:
        raise Usage(f'invalid value "{system}" for --print-unit: use {" or ".join(UNITS)}')
    program = shutil.which("memory")
    arguments = [program] if program else [sys.executable, "-m", "memoranda"]
    arguments += ["--home", call.settings.address, *call.options, "serve"]
    for name, value in options.items():
        if not value:
            continue
        arguments.append(name)
        # True is the value of an option without an argument.
        if isinstance(value, str):
            arguments.append(value)
    log = call.settings.home / "daemon.log"
    output.text(unit_file(system, arguments, log).rstrip("\n"))


def _span_text(span: timedelta) -> str:
    """Return a time span as the options take it: `1h0m0s`, `5m0s`, `30s`."""
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    if minutes:
        return f"{minutes}m{seconds}s"
    return f"{seconds}s"


@dataclass(frozen=True)
class Service:
    """The work of a process of `memory serve` or `memory page`, and its duration.

    span: the time between two rounds of upkeep.
    served: the tools that callers of the socket get, and callers over HTTP that name no toolset.
        None for upkeep alone.
    place: where HTTP is served. None means nowhere.
    offered: the toolsets that a caller over HTTP may choose from.
    is_once: whether to end after one round of upkeep.
    has_socket: whether to serve the tools on the home's socket.
    ends_after: how long after the last client the service ends. None means that it goes on.
    show: is called with the address of HTTP once it answers. None shows nothing. A service with
        `show` also runs if another process already does the upkeep of the home.
    takes_any_port: whether to serve HTTP on another port if the port of `place` is taken.
    """

    span: timedelta
    served: Registry | None = None
    place: Place | None = None
    offered: Sequence[str] = ()
    is_once: bool = False
    has_socket: bool = True
    ends_after: timedelta | None = None
    show: Callable[[str], object] | None = None
    takes_any_port: bool = False


def _serve(call: Invocation, settings: Settings, service: Service) -> int:
    """Run a service until it ends. Return the exit status.

    Raises Running if another daemon runs, and StorageError.
    """
    from memoranda.engine import open_session
    from memoranda.jobs import dream
    from memoranda.jobs.lifecycle import FACE, Scheduler
    from memoranda.serve.call_queue import collect_garbage
    from memoranda.serve.daemon import Daemon
    from memoranda.sources.layout import Layout

    layout = Layout(settings.home)
    served = service.served
    with ExitStack() as stack:
        # Ports and sockets are opened first: if another program has one of them, this ends before
        # the memory is opened.
        has_upkeep = _hold_upkeep(stack, layout, service)
        http_socket = None
        if service.place is not None:
            listening = _listening_socket(service.place, service.takes_any_port)
            http_socket = stack.enter_context(closing(listening))
        listener = _home_socket(stack, layout, service) if has_upkeep else None

        memory = stack.enter_context(open_session(config=settings, face=FACE, serving=True))
        make_http_server = None
        address = ""
        if http_socket is not None:
            make_http_server = _http_server_maker(call, memory, service, http_socket)
            address = _published_address(stack, layout, service, http_socket)
        callers_memory = memory.as_caller(call.caller, "socket")
        sessions = None
        if served is not None and listener is not None:
            sessions = _mcp_sessions(memory, callers_memory, served)

        # All parts are made. The daemon runs until a signal ends it.
        daemon = Daemon(
            Scheduler(memory, dream.endpoint_of(settings)),
            interval=service.span,
            served=callers_memory,
            registry=served,
            listener=listener,
            methods=_home_methods(),
            web=make_http_server,
            sessions=sessions,
            has_upkeep=has_upkeep,
            idle=service.ends_after,
        )
        if service.is_once:
            is_round_done = daemon.round()
            return 0 if is_round_done else 1
        collect_garbage()
        ready = partial(_show_ready, service, listener, address)
        daemon.serve(ready, partial(_show_stopping, service))
    return 0


def _published_address(
    stack: ExitStack, layout: Layout, service: Service, http_socket: socket
) -> str:
    """Return the address of HTTP, and write it to the home until `stack` is closed.

    `memory page` reads it there, to open the page of a server that already runs.

    http_socket: the socket at which the server listens. Its port may be another one than the port
        of `service.place`.
    """
    from memoranda.serve.daemon import http_noted

    assert service.place is not None
    port = http_socket.getsockname()[1]
    address = service.place.address(port)
    stack.enter_context(http_noted(layout.http, address))
    return address


def _home_methods() -> Methods:
    """Return the methods that other processes of this home can call through the socket, by name."""
    from memoranda.clients import hook
    from memoranda.engine import freshness

    return {
        hook.METHOD: hook.served,
        hook.PAYLOAD_METHOD: hook.served_payload,
        freshness.METHOD: lambda memory, _: memory.freshen(),
    }


def _show_ready(service: Service, listener: Listener | None, address: str) -> None:
    """Tell the person that the service answers, and where.

    listener: the open socket; None without one.
    address: the address of HTTP; "" without HTTP.
    """
    if service.show is not None:
        service.show(address)
        return
    places = "no socket" if listener is None else f"socket: {listener.path}"
    if address:
        places += f", {address}/mcp"
    interval = _span_text(service.span)
    _announce(f"Memory daemon running ({places}, interval: {interval})")


def _show_stopping(service: Service) -> None:
    """Tell the person that the daemon ends. A service with a page says nothing."""
    if service.show is None:
        _announce("\nShutting down...")


def _hold_upkeep(stack: ExitStack, layout: Layout, service: Service) -> bool:
    """Let this process do the upkeep of the home until `stack` is closed. Return whether it does.

    If another process already does the upkeep, return False for a service with a page, which can
    run beside it. Raise Running for any other service.
    """
    from memoranda.serve.daemon import Running
    from memoranda.sources.files import make_private, storing

    try:
        with storing(layout.daemon_lock.name):
            make_private(layout.root)
            stack.enter_context(
                _take_daemon_lock(layout.daemon_lock, service.ends_after is not None)
            )
    except Running:
        if service.show is None:
            raise
        return False
    return True


def _home_socket(stack: ExitStack, layout: Layout, service: Service) -> Listener | None:
    """Open the home's socket until `stack` is closed.

    Returns None if the service has no socket, or if the socket cannot be opened.
    """
    from memoranda.serve.socket import Listener

    if service.served is None or not service.has_socket:
        return None
    try:
        return stack.enter_context(closing(Listener(layout.socket)))
    except StorageError as error:
        # In some folders no socket can be created. Then the home is served without a socket.
        output.failure(str(error))
    return None


def _mcp_sessions(
    memory: MemorySession, callers_memory: MemorySession, served: Registry
) -> McpSessions:
    """Return the sessions for clients whose `memory mcp` or hooks call this daemon.

    memory: the memory of the home's owner, for its settings.
    callers_memory: the memory from which the memory of each client is made.
    served: the tools, with the hooks that belong to them.
    """
    from memoranda.faces import registry
    from memoranda.serve.sessions import McpSessions

    hooks = served.hooks
    return McpSessions(
        callers_memory, lambda names, like: registry(names, memory.settings, hooks, like)
    )


def _take_daemon_lock(lock: Path, is_autostarted: bool) -> ExitStack:
    """Take the lock of the home's daemon, and hold it until the returned stack is closed.

    A daemon that a client started is stopped if a person starts one.

    is_autostarted: whether a client started this process.

    Raises Running if another daemon goes on, and OSError.
    """
    from memoranda.engine import daemon_client
    from memoranda.serve.daemon import Running, daemon_lock

    stack = ExitStack()
    try:
        stack.enter_context(daemon_lock(lock, is_autostarted))
    except Running as running:
        may_replace_it = running.is_autostarted and not is_autostarted
        if not may_replace_it:
            raise
        # A daemon that does not end in time still has the lock. Then the next line raises.
        with suppress(TimeoutError):
            daemon_client.stop(lock, _SECONDS_TO_END)
        stack.enter_context(daemon_lock(lock))
    return stack


def _listening_socket(place: Place, any_port: bool) -> socket:
    """Open the socket on which the server takes HTTP connections. Raises StorageError.

    any_port: whether to use any other port if the port of `place` is taken.
    """
    try:
        return place.listen()
    except StorageError:
        if not any_port:
            raise
    # The system chooses a free port for 0.
    return replace(place, port=0).listen()


def _warn_without_token(access: Access) -> None:
    """Warn if no token is valid, because then nobody can call over HTTP."""
    # `by_id` finds a token only if it is still valid.
    if not any(access.by_id(token.id) for token in access.tokens()):
        output.notice(
            "No token is valid, so nobody can call over HTTP. Make one: memory token add NAME"
        )


def _http_server_maker(
    call: Invocation, memory: MemorySession, service: Service, http_socket: socket
) -> MakeHttpServer:
    """Return the factory of the HTTP server. With a public address, the server has OAuth.

    memory: the memory of the home's owner.
    service: a service that serves HTTP, and tools there.
    http_socket: the socket at which the server listens.
    """
    from memoranda import __version__
    from memoranda.clients.preview import installed_programs, preview
    from memoranda.faces import registry
    from memoranda.serve.auth import Access
    from memoranda.serve.http import Homes, HttpServer
    from memoranda.serve.mcp import ServerIdentity
    from memoranda.serve.page.routes import page_routes

    served = service.served
    place = service.place
    assert served is not None
    assert place is not None
    access = Access(memory.home, memory.clock)
    # A service with `show` gives its owner a code for the page, so it works without tokens.
    needs_token = service.show is None and not place.is_open
    if needs_token:
        _warn_without_token(access)

    # A space offers the same toolsets as the home.
    offered = service.offered
    homes = Homes(memory, served, lambda space: registry(offered, space.settings, served.hooks))
    identity = ServerIdentity(
        name="memoranda",
        version=__version__,
        agent=call.caller,
        clients=memory.settings.agents,
    )
    routes = []
    if place.public:
        from memoranda.serve.oauth import oauth_routes

        routes = oauth_routes(access, place.public)

    def make_server(threads: ThreadPoolExecutor, stopping: Event) -> HttpServer:
        """Make the server once its threads and the event that stops it exist.

        threads: the threads that run the calls.
        stopping: is set when the server should end.
        """
        server = HttpServer(
            homes=homes,
            access=access,
            place=place,
            identity=identity,
            toolsets=offered,
            threads=threads,
            stopping=stopping,
            listener=http_socket,
            routes=routes,
            pages=page_routes,
        )
        # The page gets this function here: modules of the same folder may not import each other.
        server.app.state.preview = preview
        server.app.state.programs = installed_programs
        return server

    return make_server


def _announce(text: str) -> None:
    """Print a line for the process that started the daemon. That process may have ended."""
    with suppress(BrokenPipeError, Failure):
        output.text(text)
        output.write(flush=True)


def _log_to(file: str | None, level: int = logging.INFO) -> None:
    """Log the work of the daemon to `file`. None logs to stderr. Raises ConfigError.

    level: the least important messages of memoranda that are logged.
    """
    handler: logging.Handler = logging.StreamHandler()
    if file is not None:
        from memoranda.serve.log_file import PrivateLog

        try:
            handler = PrivateLog(
                str(user_path(file)), maxBytes=_MAX_LOG_BYTES, backupCount=_MAX_OLD_LOGS
            )
        except OSError as error:
            raise ConfigError(f"cannot log to {file}: {error.strerror}") from None
    handler.setFormatter(output.log_form("%(message)s"))
    for name, least in (("memoranda", level), ("uvicorn", logging.WARNING), ("mcp", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(least)
