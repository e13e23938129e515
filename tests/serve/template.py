"""A process that has imported what our programs import, and becomes them: see forked.py, which
starts it.

It hears on the socket whose descriptor it is given: of each program a JSON object with its size
before it, the standard streams, and a pipe that is told the id of its process and how it ended.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import sys
import time
import types
from typing import Any

NUMBER = struct.Struct("!q")
PACKAGES = ("cli", "engine", "faces", "index.search", "jobs", "serve", "transfer")
MODULES = ("anyio._backends._asyncio", "memoranda.index.sync", "memoranda.index.watch", "termios")


def preload() -> None:
    """Import what a server or a command does."""
    for name in PACKAGES:
        package = importlib.import_module(f"memoranda.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for name in MODULES:
        importlib.import_module(name)
    gc.collect()
    # The children share these pages
    gc.freeze()


def next_program(wire: socket.socket) -> dict[str, Any]:
    """What to become: returns in a new process each time; this one ends when nobody can ask any
    more.
    """
    heard, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ends: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([wire, heard], [], [])
        if heard in ready:
            os.read(heard, 4096)
            while ends:
                pid, ending = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                status = os.waitstatus_to_exitcode(ending)
                tell(ends.pop(pid), status)
        if wire not in ready:
            continue
        head, fds, _, _ = socket.recv_fds(wire, NUMBER.size, 4)
        if not head:
            sys.exit()
        size = NUMBER.unpack(head)[0]
        data = b""
        while len(data) < size:
            data += wire.recv(size - len(data))
        *streams, end = fds
        child = os.fork()
        if not child:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number, fd in enumerate(streams):
                os.dup2(fd, number)
            wire.detach()
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            return json.loads(data)
        ends[child] = end
        os.write(end, NUMBER.pack(child))
        for fd in streams:
            os.close(fd)


def tell(end: int, status: int) -> None:
    """Say how a process ended to who started it, if he is still there."""
    try:
        os.write(end, NUMBER.pack(status))
    except BrokenPipeError:
        pass
    os.close(end)


def become(program: dict[str, Any]) -> None:
    """Run the program as a fresh interpreter would."""
    os.environ.clear()
    os.environ.update(program["env"])
    time.tzset()
    os.chdir(program["cwd"])
    if program["umask"] >= 0:
        os.umask(program["umask"])
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        more = {"encoding": old.encoding, "errors": old.errors, "closefd": False}
        setattr(sys, name, os.fdopen(fd, "w" if fd else "r", 1 if fd == 2 else -1, **more))
    command = program["command"]
    sys.orig_argv[:] = command
    match command[1:]:
        case ["-m", module, *arguments]:
            sys.argv = [module, *arguments]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *arguments]:
            sys.argv, main = ["-c", *arguments], types.ModuleType("__main__")
            sys.modules["__main__"] = main
            exec(compile(code, "<string>", "exec"), vars(main))
        case [script, *arguments]:
            sys.argv = [script, *arguments]
            runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    preload()
    become(next_program(socket.socket(fileno=int(sys.argv[1]))))
