"""Read paths that people type: expand `~`, and refuse paths of another system."""

from __future__ import annotations

import os
import re
from pathlib import Path

from memoranda.errors import InvalidInput
from memoranda.text.pattern import lazy_pattern

# A path of Windows with its drive.
_DRIVE = lazy_pattern(r"([A-Za-z]):(?:[\\/](.*))?", re.DOTALL)
# A path of a Windows server.
_SHARE = lazy_pattern(r"\\\\[^\\/]+[\\/]")


def user_path(path: str | os.PathLike[str]) -> Path:
    """Return the path with `~` expanded: `~/notes` → `/home/ada/notes`.

    Raises InvalidInput for an empty text, for a Windows path on another system, and for `~` if the
    home folder is unknown.
    """
    text = os.fspath(path)
    # Python takes it for the working folder, but it comes from a variable that is not set.
    if not text:
        raise InvalidInput("The path is an empty text. Name a file or a folder.")
    if os.name == "posix":
        _refuse_windows_path(text)
    expanded = os.path.expanduser(text)
    # As in a shell, `~draft` is the name of a file if no user is called `draft`
    is_file_name = expanded != "~" and "/" not in expanded
    if expanded.startswith("~") and not is_file_name:
        user = expanded.partition("/")[0]
        raise InvalidInput(
            f"{text}: no home folder is known for {user}. Set HOME, or give the path from /."
        )
    return Path(expanded)


def absolute_path(path: str | os.PathLike[str]) -> str:
    """Return the path from the root of the file system, with `~` expanded.

    Raises InvalidInput as `user_path` does.
    """
    return os.path.abspath(user_path(path))


def user_folder() -> Path | None:
    """Return the user's home folder.

    None if it is not known, as in a container that has no entry for the user's id.
    """
    expanded = os.path.expanduser("~")
    if expanded.startswith("~"):
        return None
    return Path(expanded)


def _refuse_windows_path(text: str) -> None:
    """Raise InvalidInput for `C:\\…`, `C:/…` and a network share, with the path to use instead."""
    drive = _DRIVE.fullmatch(text)
    if drive and not os.path.lexists(text):
        path_on_drive = (drive[2] or "").replace("\\", "/")
        place = f"/mnt/{drive[1].lower()}/{path_on_drive}".rstrip("/")
        raise InvalidInput(f"{text} is a path of Windows. Under WSL use {place}")
    if _SHARE.match(text):
        raise InvalidInput(
            f"{text} is a network path of Windows. Mount the share and give its path here."
        )
