"""Where the transcripts of agents are on this machine, by the table in places.toml."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from memoranda.transcripts.turn import SourceFile

# A variable of the environment with its default, as a shell writes it.
_VARIABLE = re.compile(r"\$\{(\w+):-([^${}]*)\}")
_SYSTEM = {"darwin": "macos"}.get(sys.platform, "linux")


@dataclass(frozen=True, slots=True)
class TranscriptStore:
    """One place where an agent writes transcripts, as places.toml describes it.

    agent: the name of the agent.
    format: the name of the format, a key of FORMATS.
    roots: the folders to look in. `~` and `${NAME:-default}` are filled in.
    files: patterns of the files below the roots.
    skip: patterns of files that are left out.
    closed: why the transcripts cannot be read, for people. "" if they can.
    in_projects: whether the folders of projects are roots, too.
    variable: an environment variable that may name the file. "" if there is none.
    """

    agent: str
    format: str
    roots: tuple[str, ...]
    files: tuple[str, ...]
    skip: tuple[str, ...] = ()
    closed: str = ""
    in_projects: bool = False
    variable: str = ""


@cache
def _table() -> dict[str, Any]:
    """Return places.toml: agent -> its title and stores."""
    return tomllib.loads(Path(__file__).with_name("places.toml").read_text("utf-8"))


def agents() -> dict[str, str]:
    """Return the agents whose transcripts are read: `claude-code` -> `Claude Code`."""
    return {agent: str(row["title"]) for agent, row in _table().items()}


def stores(system: str = _SYSTEM) -> Iterator[TranscriptStore]:
    """Yield all stores of all agents on a system, `macos` or `linux`."""
    for agent, row in _table().items():
        for store in row["stores"]:
            roots = store["roots"]
            if isinstance(roots, dict):
                roots = roots[system]
            optional_fields = {
                key: store[key] for key in ("closed", "in_projects", "variable") if key in store
            }
            yield TranscriptStore(
                agent,
                store["format"],
                tuple(roots),
                tuple(store["files"]),
                tuple(store.get("skip", ())),
                **optional_fields,
            )


def find(
    environ: Mapping[str, str] = os.environ,
    *,
    without: Collection[str] = (),
    folders: Iterable[str] = (),
) -> Iterator[SourceFile]:
    """Yield the readable files with transcripts on this machine.

    environ: the environment variables, which may name folders.
    without: agents whose transcripts are left out.
    folders: folders of projects, in which some agents leave transcripts.
    """
    for store in stores():
        if store.agent not in without and not store.closed:
            for path in _files(store, environ, folders):
                yield SourceFile(store.agent, store.format, path)


def closed(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the agents with files that only the agent itself can read, each with the reason."""
    reasons = {}
    for store in stores():
        if store.closed and any(_files(store, environ, ())):
            reasons[store.agent] = store.closed
    return reasons


def _files(
    store: TranscriptStore, environ: Mapping[str, str], folders: Iterable[str]
) -> Iterator[Path]:
    """Yield the files of a store without duplicates.

    A file that an environment variable names comes first, then the files in its folders.

    environ: the environment variables.
    folders: the folders of projects.
    """
    roots = [_expanded(root, environ) for root in store.roots]
    if store.in_projects:
        roots += [Path(folder) for folder in folders if os.path.isabs(folder)]
    paths: list[Path] = []
    configured = environ.get(store.variable, "")
    if os.path.isfile(configured):
        paths.append(Path(configured))
    for root in roots:
        paths += _matches(store, root)
    # Folders may overlap, and patterns may match folders.
    for path in dict.fromkeys(paths):
        if path.is_file():
            yield path


def _matches(store: TranscriptStore, root: Path) -> Iterator[Path]:
    """Yield the paths in a folder that match the patterns of a store, pattern by pattern."""
    for pattern in store.files:
        for path in sorted(root.glob(pattern)):
            if not _is_skipped(store, path):
                yield path


def _is_skipped(store: TranscriptStore, path: Path) -> bool:
    """Whether a path matches one of the store's `skip` patterns."""
    return any(fnmatch(str(path), f"*/{pattern}") for pattern in store.skip)


def _expanded(text: str, environ: Mapping[str, str]) -> Path:
    """Return a path with `~` and `${NAME:-default}` filled in. Variables may be nested.

    environ: the environment variables.
    """
    # The pattern matches only variables without variables in their defaults: inner ones first.
    match = _VARIABLE.search(text)
    while match:
        value = environ.get(match[1]) or match[2]
        text = text[: match.start()] + value + text[match.end() :]
        match = _VARIABLE.search(text)
    if text == "~" or text.startswith("~/"):
        home = environ.get("HOME") or os.path.expanduser("~")
        text = home + text[1:]
    return Path(text)
