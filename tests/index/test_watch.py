"""What the kernel says was touched since the last look."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.index.watch import Changes, Watch

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("a")
    (folder / "sub" / "b.md").write_text("b")
    return folder


@pytest.fixture
def watch(vault: Path) -> Iterator[Watch]:
    opened = Watch.open(
        [("vault", str(vault), str(vault)), ("vault", str(vault), str(vault / "sub"))]
    )
    assert opened is not None
    yield opened
    opened.close()


def test_a_write_is_told_before_the_file_is_closed_and_a_changed_time_too(
    watch: Watch, vault: Path
) -> None:
    changes = Changes(files={("vault", "a.md")})
    with (vault / "a.md").open("a") as file:
        file.write("more")
        file.flush()
        assert watch.drain() == changes
    watch.drain()
    os.utime(vault / "a.md", (1, 1))
    assert watch.drain() == changes


def test_a_project_whose_folder_goes_is_lost(watch: Watch, vault: Path) -> None:
    vault.rename(vault.with_name("away"))
    assert watch.drain().lost


def test_more_events_than_the_queue_holds_are_lost(watch: Watch, vault: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 50_000:
        pytest.skip("the queue is too long to fill")
    for number in range(limit + 10):
        os.utime(vault / ("a.md" if number % 2 else "sub/b.md"))
    assert watch.drain().lost


def test_folders_that_are_gone_already_are_no_failure(vault: Path) -> None:
    root = str(vault)
    gone_folder = str(vault / "gone")
    opened = Watch.open([("vault", root, root), ("vault", root, gone_folder)])
    assert opened is not None
    assert opened.drain() == Changes()
    opened.close()


def test_where_no_watch_can_be_had_there_is_none(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import inotify_simple

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(inotify_simple.INotify, "add_watch", refuse)
    root = str(vault)
    assert Watch.open([("vault", root, root)]) is None
