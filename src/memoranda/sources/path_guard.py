"""The path guard: the one place where text from outside becomes a path (docs/format.md).

It refuses paths that lead out of a project, by `..`, by an absolute path or by a symlink.
"""

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

NAME_BYTES = 255
"""The greatest number of bytes in one name, on Linux and macOS."""
SEGMENTS = 64
"""The greatest number of names in a path. Many programs fail on deeper paths."""
PATH_BYTES = 1024
"""The greatest number of bytes in a path."""
# A folder is opened, so that nobody can exchange it between the check and the use.
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# The folder of a namespace without Latin letters (contract 004, 7)
_NAMELESS = lazy_pattern(r"~[0-9a-f]{10}(?:/|\Z)")


def climbs(text: str) -> bool:
    """Whether any segment of a path is `..`, also if it is written `a\\..` or `a/%2e%2e/b`."""
    # A text may be percent-encoded several times
    while True:
        if ".." in text.replace("\\", "/").split("/"):
            return True
        if "%" not in text:
            return False
        # The import takes 4 ms, and few paths need it
        from urllib.parse import unquote

        decoded = unquote(text)
        if decoded == text:
            return False
        text = decoded


def clean(path: str, project: str, *, hidden: bool = False) -> str:
    """Return a caller's path relative to the project: `./notes//a.md` becomes `notes/a.md`.

    "" is the project's folder.

    project: its name, for errors.
    hidden: whether names may begin with a dot.

    Raises OutsideError for `..` in any form, absolute paths, NUL, line breaks and hidden names.
    Raises InvalidInput for names or paths that are too long, or not valid Unicode.
    """
    # `~1a2b3c4d5e` is a name, `~/notes` leads to the user's folder
    is_in_user_folder = path.startswith("~") and not _NAMELESS.match(path)
    is_absolute = path.startswith("/") or is_in_user_folder
    has_forbidden_sign = any(sign in path for sign in "\0\n\r")
    if is_absolute or has_forbidden_sign or climbs(path):
        raise OutsideError(path, project)
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    has_hidden_name = any(part.startswith(".") for part in parts)
    if has_hidden_name and not hidden:
        raise OutsideError(path, project)
    for part in parts:
        check_name(part)
    clean_path = "/".join(parts)
    check_size(clean_path)
    return clean_path


def as_on_disk(root: str, path: str) -> str:
    """Return `path` with each name as the disk below `root` spells it.

    The disk may have `é` as two characters, or a tab where a listing shows a blank. A name stays if
    it is on disk exactly, if it is not on disk, or if several names match it.
    """
    # Saves looking at each folder of the path.
    if _has_one_spelling(path):
        return path
    segments: list[str] = []
    for name in path.split("/"):
        folder = os.path.join(root, *segments)
        segments.append(_name_on_disk(folder, name))
    return "/".join(segments)


def _has_one_spelling(path: str) -> bool:
    """Whether a disk can spell a path or name in one way only.

    Letters beyond ASCII may be composed or not. A blank may stand for another sign, such as a tab.
    """
    return path.isascii() and " " not in path


def _name_on_disk(folder: str, name: str) -> str:
    """Return one name as the disk spells it in `folder`, or unchanged if that is unclear."""
    if _has_one_spelling(name) or os.path.lexists(os.path.join(folder, name)):
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
    """Return a name as listings show it: in one Unicode form, tabs as blanks."""
    if name.isascii():
        return flat(name)
    return unicodedata.normalize("NFC", flat(name))


def check_size(path: str) -> None:
    """Raise InvalidInput for a path with more than SEGMENTS names or PATH_BYTES bytes."""
    names = path.count("/") + 1
    size = len(path.encode("utf-8", "surrogatepass"))
    if names > SEGMENTS or size > PATH_BYTES:
        raise InvalidInput(
            f"Invalid path: it has {names:,} names and {size:,} bytes; at most {SEGMENTS} names and"
            f" {PATH_BYTES:,} bytes are allowed. Put the note into a folder further up."
        )


def check_name(name: str) -> None:
    """Raise InvalidInput for a name over 255 bytes, or with half a surrogate pair."""
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
    """Return the real path of an open folder, as the system resolved all links."""
    if sys.platform == "darwin":
        return fcntl.fcntl(fd, fcntl.F_GETPATH, b"\0" * 1024).rstrip(b"\0").decode()
    return os.readlink(f"/proc/self/fd/{fd}")


@dataclass(slots=True, eq=False, repr=False)
class Folder(ValueObject):
    """An open folder inside a project. A context manager that closes it.

    fd: its descriptor, by which its place was checked, and by which its files are used.
    path: its real path relative to the project, "" for the project's own folder.
    """

    fd: int
    path: str

    def __enter__(self) -> Folder:
        return self

    def close(self, *_: object) -> None:
        os.close(self.fd)

    __exit__ = close

    def at(self, name: str) -> str:
        """Return the path of `name` in this folder, relative to the project."""
        if self.path:
            return f"{self.path}/{name}"
        return name


def open_folder(root: str, path: str, project: str, *, links: bool = False) -> Folder:
    """Open the folder `path` of the project at `root`, and check that it really is inside.

    links: whether to follow symlinks that stay inside. If not, any symlink on the way is refused.

    Raises NotFound, OutsideError, StorageError.
    """
    try:
        fd = os.open(os.path.join(root, path) if path else root, _FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(path, project) from None
    except OSError as error:
        raise StorageError(path or project, reason(error)) from None
    try:
        folder_path = real_path(fd)
        # Where the folder is below the project, None if it is outside
        inner_path: str | None = ""
        if path:
            inner_path = _path_below(_real_root(root), folder_path)
        # Another real path mostly means a symlink. But on a file system that ignores case, only the
        # spelling may differ.
        has_refused_link = not links and inner_path != path and has_link(root, path)
        if inner_path is None or has_refused_link:
            raise OutsideError(path, project)
        return Folder(fd, inner_path if links else path)
    except BaseException:
        os.close(fd)
        raise


def _real_root(root: str) -> str:
    """Return the path of a project's folder without symlinks."""
    # This takes one system call, and `os.path.realpath` takes one for each part of the path
    try:
        with Folder(os.open(root, _FOLDER), "") as folder:
            return real_path(folder.fd)
    except OSError:
        # Somebody may enter the folder without the right to read it
        return os.path.realpath(root)


def _path_below(root: str, path: str) -> str | None:
    """Return the absolute `path` relative to `root`. None if it is not `root` or below it."""
    if path == root:
        return ""
    if path.startswith(root.rstrip("/") + "/"):
        return path[len(root) + 1 :]
    return None


def has_link(root: str, path: str) -> bool:
    """Whether any segment of `path` below `root` is a symlink."""
    place = root
    for part in path.split("/"):
        place = os.path.join(place, part)
        if os.path.islink(place):
            return True
    return False
