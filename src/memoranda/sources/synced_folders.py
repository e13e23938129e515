"""Recognises folders that another program copies between machines, and network disks.

Notes may be there. A database in use may not: its file and its log are copied at different
moments, and two machines that write it at once damage it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

# Names of files that a program puts into the top folder that it copies -> the program.
_MARKS = {
    ".stfolder": "Syncthing",
    ".dropbox": "Dropbox",
    ".dropbox.cache": "Dropbox",
    ".owncloudsync.log": "Nextcloud",
    ".nextcloudsync.log": "Nextcloud",
}
# Paths of folders that a program copies. Without a name here, the group is the program.
_FOLDERS = (
    (re.compile(r"/Library/Mobile Documents(/|$)|/iCloud ?Drive(/|$)"), "iCloud Drive"),
    (re.compile(r"/Library/CloudStorage/([A-Za-z]+)"), ""),
    (re.compile(r"/OneDrive( - [^/]+)?(/|$)"), "OneDrive"),
    (re.compile(r"/Dropbox( \([^/]+\))?(/|$)"), "Dropbox"),
    (re.compile(r"/Google ?Drive(/|$)"), "Google Drive"),
)
# File systems on which SQLite's locks cannot be trusted.
_NETWORK = {"nfs": "NFS", "nfs4": "NFS", "cifs": "SMB", "smb3": "SMB", "smbfs": "SMB"}
_MOUNTS = Path("/proc/mounts")
# A character that /proc/mounts writes as an octal number, such as a blank.
_OCTAL = re.compile(r"\\([0-7]{3})")


def synced_by(folder: Path, mounts: Path = _MOUNTS) -> str:
    """Return the program that copies a folder to other machines, or its kind of network disk.

    `Syncthing`, or `NFS`. "" if the folder seems to be only on this machine.

    mounts: a file in the format of /proc/mounts, which names the file system of each mounted disk.
    """
    real_folder = Path(os.path.realpath(folder))
    for place in (real_folder, *real_folder.parents):
        for name, program in _MARKS.items():
            if os.path.lexists(place / name):
                return program
    for pattern, program in _FOLDERS:
        match = pattern.search(str(real_folder))
        if match is not None:
            return program or match[1]
    return _NETWORK.get(_file_system(real_folder, mounts), "")


def _file_system(place: Path, mounts: Path) -> str:
    """Return the kind of the file system of an absolute path, such as `nfs4`. "" if unknown.

    mounts: a file in the format of /proc/mounts.
    """
    kinds: dict[str, str] = {}
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    # A later line is about the file system that hides an earlier one at the same folder.
    for line in lines:
        fields = line.split(" ")
        if len(fields) > 2:
            # A blank in a name is written as `\040`.
            folder = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[1])
            kinds[folder] = fields[2]
    for parent in (place, *place.parents):
        if str(parent) in kinds:
            return kinds[str(parent)]
    return ""
