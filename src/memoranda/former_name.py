"""Files that the project left on machines under its former name, and how they are carried over.

This is the only code that knows the old name. Homes, entries in the files of clients and hooks,
install records, databases and fenced memories in transcripts are understood; nothing else is.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

NAME = "commonplace"
PRIVATE = f".{NAME}"
"""The private folder of a home. It is left as it is; nothing reads it after `adopt`."""

TAG = f"{NAME}-memory"
"""The tag that hooks put around what they told a session."""

PLUGIN = f"{NAME}@{NAME}"
"""What Claude Code and Codex call our plugin in their settings."""

# The files with tokens, reads, the last dream, install records, requests of agents, answers to
# questions, and sessions with agents. The history is not copied. Derived files are made again.
_CARRIED_OVER = (
    "access.json",
    "access.log",
    "dream-report.json",
    "install",
    "requests.json",
    "review.json",
    "sessions",
)

# Files that a person may have copied there by hand.
_FILES = (
    f"~/.config/systemd/user/{NAME}.service",
    f"~/Library/LaunchAgents/{NAME}.plist",
    f"~/.config/opencode/plugin/{NAME}.js",
)

RENAME_SCHEMA = f"""
alter schema {NAME} rename to memoranda;
do $$
declare
    policy record;
    renamed text;
begin
    for policy in select * from pg_policies where schemaname = 'memoranda' loop
        renamed := replace(policy.qual, '{NAME}.space', 'memoranda.space');
        execute format(
            'alter policy %I on memoranda.%I using (%s)', policy.policyname, policy.tablename, renamed
        );
    end loop;
end
$$;
"""
"""Gives the tables of a database their schema, and its policies the setting they ask."""

HAS_FORMER_SCHEMA = (
    f"select to_regclass('{NAME}.version') is not null and to_regclass('memoranda.version') is null"
)


def adopt(root: Path, private: Path) -> None:
    """Copy the private files of an earlier checkout into the private folder of a home.

    root: the folder of the home.
    private: the private folder. If it exists, nothing is done.

    All files appear at once, by a rename, so a second process or a second try changes nothing. If
    the folder cannot be made, nothing is raised: the next step that needs it reports the reason.
    """
    former = root / PRIVATE
    if private.exists() or not former.is_dir():
        return
    # These imports take 4 ms, and only the first start of this version needs them.
    import shutil
    import tempfile

    with suppress(OSError):
        copy = Path(tempfile.mkdtemp(prefix=f".tmp-{os.getpid()}-", dir=root))
        try:
            for name in _CARRIED_OVER:
                _copy(former / name, copy / name)
            os.rename(copy, private)
        finally:
            shutil.rmtree(copy, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a folder of files durably. Missing files and links are left out."""
    if source.is_symlink():
        return
    if source.is_dir():
        target.mkdir(mode=0o700)
        for path in sorted(source.iterdir()):
            _copy(path, target / path.name)
    elif source.is_file():
        import shutil

        shutil.copy2(source, target)
        with open(target, "rb") as file:
            os.fsync(file.fileno())


def records(root: Path, private: Path) -> Path | None:
    """Return the install records of an earlier checkout. None if they were carried over already.

    root: the folder of the home.
    private: the present folder of its private files.
    """
    if private.exists():
        return None
    return root / PRIVATE / "install" / "records.json"


def left_behind(root: Path) -> list[tuple[str, str]]:
    """Return the files that an earlier checkout left, as (path, advice for the owner).

    root: the folder of the home.
    """
    leftovers: list[tuple[str, str]] = []
    if (root / PRIVATE).is_dir():
        text = (
            "the private folder of an earlier checkout. Its history (log, undo, restore) stays there"
            " and is not shown; all else was carried over. It may be deleted"
        )
        leftovers.append((PRIVATE, text))
    # They start the same programs as our present files do.
    for path in files():
        leftovers.append((path, _ADVICE[Path(path).suffix]))
    return leftovers


# The advice for a file under the former name, by its extension, which tells which program reads it.
_ADVICE = {
    ".service": f"starts the daemon a second time: systemctl --user disable --now {NAME}, then delete it",
    ".plist": "starts the daemon a second time: launchctl unload it, then delete it",
    ".js": "calls the hooks a second time: delete it",
}


def files() -> list[str]:
    """Return the files outside the home that start the daemon or the hooks under the former name."""
    return [path for path in _FILES if os.path.isfile(os.path.expanduser(path))]


def advice() -> list[str]:
    """Return a sentence with advice about each of `files`."""
    return [f"{path} {_ADVICE[Path(path).suffix]}." for path in files()]
