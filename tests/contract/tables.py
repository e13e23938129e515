"""The tables of cases below `data`, which say nothing of Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def tables(name: str) -> dict[str, Any]:
    """The content of `data/NAME.json`."""
    return json.loads((Path(__file__).parent / "data" / f"{name}.json").read_text(encoding="utf-8"))
