"""Every row of the shared table of time expressions (contract 001, 9)."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from commonplace.errors import TimeRefused
from commonplace.note.timephrase import read

DATA = Path(__file__).parents[2] / "contract" / "data" / "time_expressions.json"
TABLE = json.loads(DATA.read_text(encoding="utf-8"))


@pytest.mark.promise("001-17.2")
@pytest.mark.parametrize("row", TABLE["rows"], ids=lambda row: row["text"])
def test_a_row_of_the_table_reads_as_it_says(row):
    now = datetime.fromisoformat(row.get("now", TABLE["now"]))
    zone = ZoneInfo(row.get("timezone", TABLE["timezone"]))
    if "error" in row:
        with pytest.raises(TimeRefused) as refused:
            read(row["text"], now, zone)
        assert refused.value.code == row["error"]
        assert [moment.isoformat() for moment in refused.value.candidates] == row.get("candidates", [])
        return
    reading = read(row["text"], now, zone)
    assert reading.due.isoformat() == row["due"]
    assert (reading.all_day, reading.repeat) == (row.get("all_day", False), row.get("repeat"))
