"""Links that lead nowhere, as `memory doctor` names them, in every project."""

from __future__ import annotations

import json
import re

import pytest

from memoranda import Draft
from memoranda.cli import main
from memoranda.engine import open_session


@pytest.mark.parametrize("count", [0, 1, 5])
def test_doctor_counts_the_broken_links_of_a_project_and_names_the_first(tmp_path, capsys, count):
    home = tmp_path / "home"
    with open_session(home) as memory:
        memory.write(Draft("here", title="Here", project="notes"))
        links = "\n".join(f"see [[Gone {number}]]" for number in range(count))
        memory.write(Draft(f"see [[Here]]\n{links}", title="Source", project="notes"))
    main(["--home", str(home), "--json", "doctor"])
    answer = json.loads(capsys.readouterr().out)
    findings = [row for row in answer["findings"] if row["code"] == "broken_links"]
    assert answer["problems"] == 0
    assert len(findings) == (count > 0)
    for row in findings:
        assert row["level"] == "info"
        assert row["path"] == "notes"
        named_targets = re.findall(r"\[\[(.*?)\]\]", row["text"])
        assert named_targets == ["Gone 0", "Gone 1", "Gone 2"][:count]
        assert row["text"].startswith("one link" if count == 1 else f"{count} links")
