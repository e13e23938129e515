"""Prepares the private folder of a home if the setting `storage.state` puts it outside the home.

The private folder has the ledger and the index. It may not be in a synced folder.
"""

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

# The file in the private folder with the path of the home that it belongs to.
_OWNER = "home"
# Files that are not copied, since they are made again or belong to a process.
_NOT_COPIED = ("index*.db*", "lock", "ledger.db-*", "daemon.log")


def open_state(layout: Layout) -> None:
    """Prepare the private folder, if it is outside the home.

    The first time, the files of the private folder inside the home are copied. They stay there too,
    for other machines.

    Raises StorageError if the folder belongs to another home, OSError.
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
    """Copy the private folder inside the home to its new place.

    The copy gets its name last, so that there is never half a copy.
    """
    inside_home = layout.root / PRIVATE
    if not inside_home.is_dir():
        return
    # Imported here, since it is needed once in the life of a home
    import tempfile

    make_private(layout.private.parent)
    copy = Path(tempfile.mkdtemp(prefix=TEMP_PREFIX, dir=layout.private.parent))
    try:
        # The lock keeps other processes from writing into the folder while it is copied.
        with HomeLock(inside_home, lambda _: None):
            _copy_files(inside_home, copy)
        os.sync()
        os.rename(copy, layout.private)
        sync_folder(layout.private.parent)
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _copy_files(source: Path, copy: Path) -> None:
    """Copy the files and folders in `source` into `copy`, except `_NOT_COPIED` and links.

    source: a private folder. Its lock must be held.
    """
    for path in sorted(source.iterdir()):
        is_excluded = any(fnmatch(path.name, pattern) for pattern in _NOT_COPIED)
        if is_excluded or path.is_symlink():
            continue
        if path.name == "ledger.db":
            copy_ledger(path, copy / path.name)
        elif path.is_dir():
            shutil.copytree(path, copy / path.name, symlinks=True)
        elif path.is_file():
            shutil.copy2(path, copy / path.name)
