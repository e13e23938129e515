"""The private folder of a home that `storage.state` puts outside it."""

from __future__ import annotations

import os
import shutil
from fnmatch import fnmatch
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.ledger.copying import copy_ledger
from memoranda.ledger.lock import HomeLock
from memoranda.sources.files import make_private, sync_folder, write_file
from memoranda.sources.layout import PRIVATE, TEMP_PREFIX, Layout

# Which home the folder is of.
_OWNER = "home"
# What is made again, or is of a process.
_LEFT = ("index*.db*", "lock", "ledger.db-*", "daemon.log")


def open_state(layout: Layout) -> None:
    """Prepare the folder for the ledger, if it is outside the home.

    The first time, the files that the home kept inside itself are copied there. They stay in the
    home too, for other machines.

    Raises StorageError where the folder is of another home, OSError.
    """
    if not layout.is_apart:
        return
    if not layout.private.exists():
        _copy_former(layout)
    owner = layout.private / _OWNER
    if not owner.exists():
        make_private(layout.private)
        write_file(str(owner), os.fsencode(layout.root))
        sync_folder(layout.private)
        return
    home = os.fsdecode(owner.read_bytes())
    if home != str(layout.root):
        raise StorageError(
            "storage.state",
            f"{layout.private} is the state of {home}: name another folder, or remove {owner} "
            "if that home was moved here",
        )


def _copy_former(layout: Layout) -> None:
    """Copy the private folder of the home. All of the copy appears at once, by a rename."""
    former = layout.root / PRIVATE
    if not former.is_dir():
        return
    # Needed once in the life of a home
    import tempfile

    make_private(layout.private.parent)
    copy = Path(tempfile.mkdtemp(prefix=TEMP_PREFIX, dir=layout.private.parent))
    try:
        # So that nobody writes meanwhile
        with HomeLock(former, lambda _: None):
            _copy_files(former, copy)
        os.sync()
        os.rename(copy, layout.private)
        sync_folder(layout.private.parent)
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _copy_files(former: Path, copy: Path) -> None:
    for path in sorted(former.iterdir()):
        if any(fnmatch(path.name, pattern) for pattern in _LEFT) or path.is_symlink():
            continue
        if path.name == "ledger.db":
            copy_ledger(path, copy / path.name)
        elif path.is_dir():
            shutil.copytree(path, copy / path.name, symlinks=True)
        elif path.is_file():
            shutil.copy2(path, copy / path.name)
