"""The usual configuration file is read without the YAML library, and just as YAML reads it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from commonplace import config_text

PIECES = ["storage", "daemon", "y", "on", "root", "a-b", "x_1", ":", ": ", "  ", " ", "\n", "168h", "1h30m", "3", "007",
          "0x1f", "1e5", "1_000", "true", "True", "no", "~", "~/notes", "null", "/a/b.c", "# note", " # c", "-", "- a",
          "12:30", "2026-05-07", '"q"', "'s'", "[soul]", "{}", "é", "\t", "\r\n", "---", "..."]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_what_is_read_without_the_library_is_what_yaml_reads(text):
    rows = config_text.read_plain(text)
    if rows is not None:
        assert rows == (yaml.safe_load(text) or {})


@given(st.lists(st.tuples(st.sampled_from(PIECES[:8]), st.lists(st.tuples(st.sampled_from(PIECES[:8]),
                st.sampled_from(PIECES[12:])))), max_size=4))  # fmt: skip
def test_so_is_what_looks_like_a_configuration(sections):
    text = "".join(f"{name}:\n" + "".join(f"  {key}: {value}\n" for key, value in rows) for name, rows in sections)
    rows = config_text.read_plain(text)
    if rows is not None:
        assert rows == (yaml.safe_load(text) or {})


@pytest.mark.parametrize(
    "text", ["", "# mine\n\nstorage:\n  root: ~/memory\ndaemon:\n  interval: 60s\n  dream: false\n"]
)
def test_sections_of_plain_values_need_no_library(text):
    assert config_text.read_plain(text) == (yaml.safe_load(text) or {})


def test_the_command_starts_without_the_yaml_library_when_the_configuration_is_plain(tmp_path):
    (tmp_path / "config.yaml").write_text("projects:\n  vault: /tmp/vault\nhistory:\n  days: 30\n")
    code = (
        "import sys; from commonplace import config;"
        f"s = config.load({str(tmp_path)!r}); assert s.history_days == 30 and s.projects;"
        "sys.exit('yaml' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
