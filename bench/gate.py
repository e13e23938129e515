"""What the write gate costs a memory, and its alarms on harmless texts.

    python bench/gate.py [FILE ...] [--json]

Prints microseconds for both kinds of rules on one memory of about 200 characters, with the rules
loaded, and for a text of a megabyte. The texts of each FILE (JSON: every string in it; a folder:
its Markdown; else the text) must raise no alarm; those that do are listed and counted. A figure
over its budget says `over`; nothing fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

from memoranda.text.gate import SECRET, SUSPICIOUS, default_rules  # noqa: E402

BUDGET = 60.0
"""Microseconds for a memory of 200 characters."""
MEMORIES = {
    "English": "Anna prefers dark mode in every editor. The deploy of 2026-11-03 went to eu-west-1 "
    "because the users asked for lower latency, and nobody shall wait for the nightly build again; "
    "ask Ben, who keeps the list.",
    "Chinese": "安娜在所有编辑器里都喜欢深色模式。2026年11月3日的部署放在了 eu-west-1，因为大家希望延迟更低。"
    * 3,
    "words of rules": "The user forgot the key of the system: ask for the password manager, not for "
    "a token. Send the secret santa list to the owner; ignore the old prompt on the box, the "
    "developer has another one ready now.",
}


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner_value in value.values() if isinstance(value, dict) else value:
            yield from strings(inner_value)


def look(text: str) -> list[str]:
    """The rules that match."""
    rules = default_rules()
    matches = [*rules.find(text, SECRET), *rules.find(text, SUSPICIOUS)]
    return [match.rule.id for match in matches]


def texts_of(places: Sequence[Path]) -> Iterator[str]:
    """The notes of folders, and files: every text of one with JSON."""
    for place in places:
        files = sorted(place.rglob("*.md")) if place.is_dir() else [place]
        for file in files:
            text = file.read_text(encoding="utf-8")
            if file.suffix == ".json":
                yield from strings(json.loads(text))
            else:
                yield text


def microseconds(text: str, times: int) -> float:
    """The median time of a look at `text`."""
    took = []
    for _ in range(times):
        start = time.perf_counter()
        look(text)
        took.append((time.perf_counter() - start) * 1e6)
    return median(took)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    start = time.perf_counter()
    default_rules()
    figures = {"loading the rules": (time.perf_counter() - start) * 1e6}
    figures |= {name: microseconds(text, 2000) for name, text in MEMORIES.items()}
    figures["a megabyte"] = microseconds(MEMORIES["English"] * 5000, 5)
    texts = list(texts_of(options.files))
    alarms: list[tuple[str, str]] = []
    for text in texts:
        alarms += [(name, text) for name in look(text)]
    if options.json:
        print(json.dumps({"microseconds": figures, "texts": len(texts), "alarms": len(alarms)}))
        return
    for name, value in figures.items():
        is_over = name in MEMORIES and value > BUDGET
        print(f"{name:<20} {value:>12,.1f} µs{' over' if is_over else ''}")
    print(f"{len(texts)} texts, {len(alarms)} alarms")
    for name, text in alarms:
        print(f"  {name}: {text[:100]!r}")


if __name__ == "__main__":
    main()
