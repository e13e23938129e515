"""The folder of JSON files with entries, as several processes use it (contract 004, 7)."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from memoranda.sources.json_files import EntryCount, JsonFiles


def test_entries_counted_by_two_the_later_count_is_written(tmp_path: Path) -> None:
    files = JsonFiles(tmp_path)
    later = threading.Thread(target=files.write_count, args=(lambda: EntryCount(80, 1),))

    def count() -> EntryCount:
        later.start()
        # The other one has to wait until this count is written
        later.join(0.2)
        return EntryCount(79, 1)

    files.write_count(count)
    later.join()
    meta = json.loads((tmp_path / "_meta.json").read_text())
    assert meta == {"total_entries": 80, "namespace_count": 1}
