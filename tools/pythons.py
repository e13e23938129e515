"""Run tests on every supported Python that is on this machine, and name those that are missing.

    python tools/pythons.py [--quick] [--seconds N]

Interpreters are looked for with uv, on PATH and in ~/.pyenv. Each gets an environment in
.venv/pythons, as requirements-dev.txt pins it. `--quick` runs the tests that differ by version
(connections, types, arguments, dates), not all of `make test-fast`, and leaves out the Python that
runs this program. `--seconds` is for the tests of all of them together.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
SLOW = ("bench", "browser", "cli", "contract", "crash", "postgres", "requirements", "serve")
QUICK = (
    "tests/test_library.py",
    "tests/test_api.py",
    "tests/test_clock.py",
    "tests/test_query.py",
    "tests/index/test_database.py",
    "tests/index/test_search.py",
    "tests/index/test_links.py",
    "tests/engine/test_memories.py",
    "tests/faces/agent",
)
OUTCOMES = {0: "passed", 124: "stopped: no time is left"}
"""By the status of the tests."""
_ASK = "import platform; print(platform.python_implementation(), platform.python_version())"


def candidates() -> list[str]:
    """Programs that may be a Python, the likeliest first."""
    programs = [shutil.which(f"python{version}") for version in SUPPORTED]
    if shutil.which("uv"):
        for version in SUPPORTED:
            ran = subprocess.run(
                ["uv", "python", "find", "--no-python-downloads", version],
                capture_output=True,
                text=True,
                check=False,
            )
            programs.append(ran.stdout.strip())
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    programs += [str(path / "bin" / "python") for path in sorted(versions.glob("3.*"))]
    return [program for program in programs if program]


def interpreters() -> dict[str, str]:
    """Every supported version that is here, with its program."""
    programs: dict[str, str] = {}
    for program in candidates():
        try:
            ran = subprocess.run(
                [program, "-c", _ASK], capture_output=True, text=True, check=True, timeout=30
            )
        except (OSError, subprocess.SubprocessError):
            continue
        kind, version = ran.stdout.split()
        if kind == "CPython" and version.rpartition(".")[0] in SUPPORTED:
            programs.setdefault(version, program)
    return dict(sorted(programs.items()))


def environment(version: str, program: str) -> Path:
    """The Python of an environment with all that tests need. Raises CalledProcessError."""
    folder = ROOT / ".venv" / "pythons" / version
    python = folder / "bin" / "python"
    ready = folder / "ready"
    pins = ROOT / "requirements-dev.txt"
    if ready.exists() and ready.stat().st_mtime > pins.stat().st_mtime:
        return python
    if shutil.which("uv"):
        create = ["uv", "venv", "--quiet", "--allow-existing", "--python", program]
        install = ["uv", "pip", "install", "--quiet", "--python", str(python)]
    else:
        create = [program, "-m", "venv"]
        install = [str(python), "-m", "pip", "install", "--quiet"]
    pinned = ["--require-hashes", "-r", str(pins)]
    ours = ["--no-deps", "--no-build-isolation", "-e", str(ROOT)]
    subprocess.run([*create, str(folder)], check=True)
    subprocess.run([*install, *pinned], check=True)
    subprocess.run([*install, *ours], check=True)
    ready.touch()
    return python


def test(python: Path, quick: bool, seconds: float) -> int:
    """Run the tests, with every warning an error. Returns the status of pytest, 124 after that
    time."""
    arguments = ["-m", "not slow", "-p", "no:cacheprovider"]
    if quick:
        arguments += [*QUICK, "-n", "2"]
    else:
        arguments += [f"--ignore=tests/{name}" for name in (*SLOW, "sessions")]
        arguments += ["-n", str((os.cpu_count() or 1) + 1), "--dist", "worksteal"]
    command = [str(python), "-W", "error", "-m", "pytest", "-q", *arguments]
    with subprocess.Popen(command, cwd=ROOT) as running:
        try:
            return running.wait(max(seconds, 1))
        except subprocess.TimeoutExpired:
            running.terminate()
            return 124


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=3600.0)
    options = parser.parse_args()
    programs = interpreters()
    outcomes = test_all(programs, options.quick, options.seconds)
    present = {version.rpartition(".")[0] for version in programs}
    for version in SUPPORTED:
        if version not in present:
            outcomes[version] = "skipped: not on this machine"
    for version, outcome in outcomes.items():
        print(f"Python {version}: {outcome}")
    has_failed = any(outcome.startswith("failed") for outcome in outcomes.values())
    return int(has_failed)


def test_all(programs: dict[str, str], quick: bool, seconds: float) -> dict[str, str]:
    """Run the tests on each Python, for that many seconds in all. Returns the outcomes by version."""
    outcomes: dict[str, str] = {}
    seconds_left = seconds
    for version, program in programs.items():
        if quick and version == platform.python_version():
            outcomes[version] = "skipped: it runs everything else"
            continue
        if seconds_left <= 0:
            outcomes[version] = "skipped: no time is left"
            continue
        print(f"Python {version}", flush=True)
        python = environment(version, program)
        begin = time.monotonic()
        status = test(python, quick, seconds_left)
        seconds_left -= time.monotonic() - begin
        outcomes[version] = OUTCOMES.get(status, f"failed ({status})")
    return outcomes


if __name__ == "__main__":
    raise SystemExit(main())
