"""Folders that other programs copy between machines are recognised by what is known of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda.engine import open_session
from memoranda.engine.doctor import examine
from memoranda.sources.synced_folders import synced_by


@pytest.mark.parametrize(
    ("mark", "program"), [(".stfolder", "Syncthing"), (".dropbox.cache", "Dropbox")]
)
def test_a_mark_in_a_folder_above_names_the_program(
    tmp_path: Path, mark: str, program: str
) -> None:
    home = tmp_path / "shared" / "memory"
    home.mkdir(parents=True)
    assert synced_by(home, tmp_path / "none") == ""
    (tmp_path / "shared" / mark).mkdir()
    assert synced_by(home, tmp_path / "none") == program


@pytest.mark.parametrize(
    ("folder", "program"),
    [
        ("Dropbox/notes", "Dropbox"),
        ("Dropbox (Acme)/notes", "Dropbox"),
        ("OneDrive - Acme/notes", "OneDrive"),
        ("OneDrive", "OneDrive"),
        ("Library/Mobile Documents/com~apple~CloudDocs/m", "iCloud Drive"),
        ("Library/CloudStorage/GoogleDrive-a@b.c/My Drive", "GoogleDrive"),
        ("Google Drive/m", "Google Drive"),
        ("My Dropbox notes", ""),
        ("OneDriver", ""),
    ],
)
def test_the_name_of_a_folder_names_the_program(tmp_path: Path, folder: str, program: str) -> None:
    home = tmp_path / folder
    home.mkdir(parents=True)
    assert synced_by(home, tmp_path / "none") == program


@pytest.mark.parametrize(("kind", "program"), [("nfs4", "NFS"), ("cifs", "SMB"), ("ext4", "")])
def test_a_network_disk_is_known_by_its_mount(tmp_path: Path, kind: str, program: str) -> None:
    home = tmp_path / "a disk" / "m"
    home.mkdir(parents=True)
    place = str(home.parent).replace(" ", "\\040")
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {place} {kind} rw 0 0\n")
    assert synced_by(home, mounts) == program


def test_doctor_names_the_program_and_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / ".stfolder").mkdir()
    with open_session(tmp_path / "memory", watch=False) as memory:
        findings = [finding for finding in examine(memory) if finding.code == "synced_home"]
    assert len(findings) == 1
    assert "Syncthing" in findings[0].text
    assert "memory config set storage.state" in findings[0].text
