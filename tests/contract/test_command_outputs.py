"""Every step of the contract's recorded cases (contract 001, 17.1). The data's `about` says how to
read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.tables import assert_has, pattern

pytestmark = pytest.mark.promise("001-17.1")

DATA = json.loads(
    Path(__file__).with_name("data").joinpath("command_outputs.json").read_text("utf-8")
)
CASES = {case["name"]: case["steps"] for case in DATA["cases"]}

ID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
MASKS = {
    "<ID>": ID,
    "<ID8>": r"[0-9a-f]{8}",
    "<TIME>": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    "<MIN>": r"\d{4}-\d\d-\d\d \d\d:\d\d",
    "<STAMP>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z",
    "<HASH>": r"[0-9a-f]{64}",
    "<ANY>": r"[^\n]*",
}


def matches(expected: str, actual: str, prefix: bool = False) -> bool:
    compare: Callable[..., Any] = re.match if prefix else re.fullmatch
    return compare(pattern(expected, MASKS), actual) is not None


class Case:
    """One case being run: what it captured, and its scratch folder."""

    def __init__(self, terminal: Any):
        self.terminal = terminal
        self.scratch = terminal.folder / "scratch"
        self.scratch.mkdir()
        self.captured: dict[str, str] = {"TMP": str(self.scratch)}

    def filled(self, value: Any) -> Any:
        """`value` with `{NAME}` and `{NAME:8}` replaced, in every text of it."""
        if isinstance(value, dict):
            return {key: self.filled(inner_value) for key, inner_value in value.items()}
        if isinstance(value, list):
            return [self.filled(element) for element in value]
        if not isinstance(value, str):
            return value
        for name, text in self.captured.items():
            value = value.replace("{" + name + "}", text).replace("{" + name + ":8}", text[:8])
        return value

    def run(self, step: dict[str, Any]) -> None:
        step = self.filled({key: value for key, value in step.items() if key != "capture"}) | {
            "capture": step.get("capture", {})
        }
        if "argv" in step:
            self.command(step)
        elif "tmp_file" in step:
            path, text = step["tmp_file"]
            (self.scratch / path).parent.mkdir(parents=True, exist_ok=True)
            (self.scratch / path).write_bytes(text.encode())
        elif "same_files" in step:
            first_bytes, second_bytes = (
                Path(file_path).read_bytes() for file_path in step["same_files"]
            )
            assert first_bytes == second_bytes
        else:
            self.home_file(step)

    def home_file(self, step: dict[str, Any]) -> None:
        for key in ("home_file", "home_file_has", "home_file_lacks"):
            if key in step:
                path, expected = step[key]
                text = (self.terminal.home / path).read_bytes().decode()
                if key == "home_file":
                    is_found = matches(expected, text)
                else:
                    is_found = expected in text
                assert is_found != (key == "home_file_lacks"), text

    def command(self, step: dict[str, Any]) -> None:
        ran = self.terminal(*step["argv"], stdin=step.get("stdin", ""))
        assert ran.status == step.get("exit", 0), (step, ran)
        prefix = step.get("prefix", False)
        if "stdout" in step:
            assert matches(step["stdout"], ran.out, prefix), (step, ran)
        if "stderr" in step:
            assert matches(step["stderr"], ran.error, prefix), (step, ran)
        if "stderr_has" in step:
            assert step["stderr_has"] in ran.err, (step, ran)
        for key in ("json_has", "stdout_json_has"):
            if key in step:
                assert_has(json.loads(ran.out), step[key], matches)
        for name, regex in step["capture"].items():
            match = re.search(regex, ran.out)
            assert match, (step, ran)
            self.captured[name] = match.group(1)


@pytest.mark.parametrize("name", CASES)
def test_the_recorded_outputs_are_given(name: str, terminal: Any) -> None:
    case = Case(terminal)
    for step in CASES[name]:
        if "note" not in step:
            case.run(step)
