"""The path guard: the one place where outside text becomes a path (docs/format.md)."""

from __future__ import annotations

import fcntl
import os
import sys
import unicodedata
from dataclasses import dataclass

from memoranda.errors import InvalidInput, NotFound, OutsideError, StorageError
from memoranda.sources.files import reason
from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import flat
from memoranda.value_object import ValueObject

# The limit of Linux and macOS for one name.
NAME_BYTES = 255
# Deeper paths make programs that walk them end in errors.
SEGMENTS = 64
PATH_BYTES = 1024
"""The most names, and bytes in all, that a path may have."""
# Opened folders keep a path from being exchanged while it is used.
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# The folder of a namespace without Latin letters (contract 004, 7)
_NAMELESS = lazy_pattern(r"~[0-9a-f]{10}(?:/|\Z)")


def climbs(text: str) -> bool:
    """Whether any segment is `..` after percent-decoding (until stable) and reading `\\` as `/`."""
    while True:
        if ".." in text.replace("\\", "/").split("/"):
            return True
        if "%" not in text:
            return False
        # 4 ms, which few paths need
        from urllib.parse import unquote

        decoded = unquote(text)
        if decoded == text:
            return False
        text = decoded


def clean(path: str, project: str, *, hidden: bool = False) -> str:
    """`path` as given by a caller -> project-relative with `/`, without empty and `.` segments (""
    = root).

    Refused with OutsideError: `..` in any coding, absolute paths, NUL and line breaks, names
    over 255 bytes or not valid Unicode, and hidden names unless `hidden`.
    """
    at_home = path.startswith("~") and not _NAMELESS.match(path)
    bad = (
        path.startswith("/")
        or at_home
        or "\0" in path
        or "\n" in path
        or "\r" in path
        or climbs(path)
    )
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if bad or (not hidden and any(part.startswith(".") for part in parts)):
        raise OutsideError(path, project)
    for part in parts:
        check_name(part)
    clean_path = "/".join(parts)
    check_size(clean_path)
    return clean_path


def as_on_disk(root: str, path: str) -> str:
    """`path` below `root` with each name as it is on disk.

    The disk may have another Unicode form, or a tab where a listing shows a blank. A name stays if
    it is on disk exactly, if it is not on disk, or if several names match it.
    """
    if path.isascii() and " " not in path:
        return path
    segments: list[str] = []
    for name in path.split("/"):
        folder = os.path.join(root, *segments)
        segments.append(_name_on_disk(folder, name))
    return "/".join(segments)


def _name_on_disk(folder: str, name: str) -> str:
    if (name.isascii() and " " not in name) or os.path.lexists(os.path.join(folder, name)):
        return name
    shown_name = _name_shown(name)
    try:
        matches = [
            candidate for candidate in os.listdir(folder) if _name_shown(candidate) == shown_name
        ]
    except OSError:
        return name
    if len(matches) == 1:
        return matches[0]
    return name


def _name_shown(name: str) -> str:
    if name.isascii():
        return flat(name)
    return unicodedata.normalize("NFC", flat(name))


def check_size(path: str) -> None:
    """Raise InvalidInput for a path of too many names or bytes: systems and walks have limits."""
    names = path.count("/") + 1
    size = len(path.encode("utf-8", "surrogatepass"))
    if names > SEGMENTS or size > PATH_BYTES:
        raise InvalidInput(
            f"Invalid path: it has {names:,} names and {size:,} bytes; at most {SEGMENTS} names and"
            f" {PATH_BYTES:,} bytes are allowed. Put the note into a folder further up."
        )


def check_name(name: str) -> None:
    """Raise InvalidInput for a name no file system takes: over 255 bytes, or lone surrogates."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidInput(
            "A path must be valid Unicode text. Remove the lone surrogate."
        ) from None
    if size > NAME_BYTES:
        raise InvalidInput(
            f"A name may have at most {NAME_BYTES} bytes; this one has {size}: {name[:40]}…"
        )


def real_path(fd: int) -> str:
    """Where an open folder really is, all links resolved by the system."""
    if sys.platform == "darwin":
        return fcntl.fcntl(fd, fcntl.F_GETPATH, b"\0" * 1024).rstrip(b"\0").decode()
    return os.readlink(f"/proc/self/fd/{fd}")


@dataclass(slots=True, eq=False, repr=False)
class Folder(ValueObject):
    """An open folder inside a project: the check and the access use this same handle.

    path: its real place, relative to the project ("" = its root).
    """

    fd: int
    path: str

    def __enter__(self) -> Folder:
        return self

    def close(self, *_: object) -> None:
        os.close(self.fd)

    __exit__ = close

    def at(self, name: str) -> str:
        """The project-relative path of `name` in this folder."""
        if self.path:
            return f"{self.path}/{name}"
        return name


def open_folder(root: str, path: str, project: str, *, links: bool = False) -> Folder:
    """Open the folder `path` of the project at `root`, and verify its real place.

    links: follow symlinks that stay inside. Otherwise any symlink on the way is refused.

    Raises NotFound, OutsideError, StorageError.
    """
    try:
        fd = os.open(os.path.join(root, path) if path else root, _FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(path, project) from None
    except OSError as error:
        raise StorageError(path or project, reason(error)) from None
    try:
        real = base = real_path(fd)
        # Where the project really is: one question to the system, not one for each part of its path
        if path:
            try:
                with Folder(os.open(root, _FOLDER), "") as top:
                    base = real_path(top.fd)
            except OSError:
                # The folder may be passed through, but not read.
                base = os.path.realpath(root)
        if real == base:
            inside = ""
        elif real.startswith(base.rstrip("/") + "/"):
            inside = real[len(base) + 1 :]
        else:
            inside = None
        if inside is None or (not links and inside != path and has_link(root, path)):
            raise OutsideError(path, project)
        return Folder(fd, inside if links else path)
    except BaseException:
        os.close(fd)
        raise


def has_link(root: str, path: str) -> bool:
    """Whether a segment is a symlink (a file system that folds case may spell a name differently)."""
    place = root
    for part in path.split("/"):
        place = os.path.join(place, part)
        if os.path.islink(place):
            return True
    return False
