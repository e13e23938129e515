"""How long the page takes with 10,000 notes, in Chromium: `make bench-page`.

    python bench/page.py [--notes 10000] [--rounds 7] [--home DIR] [--json]

First paint is the browser's own first-contentful-paint of a page opened in a new tab. Search is the time
from a key to the shown hits of a query nobody asked before, with the pause while somebody types (80
ms) and without. Beside each the processor time the server took until then, which says more on a
machine that has other work; so does the browser's own ("browser": all its processes, until the page
was loaded). Each page is left to finish what it asks for later (the questions of
Review, the drawing of a graph, the doctor): "all of it". The server runs as users run it, in a
separate process. A home that is not there yet is made first: so that a quiet measurement can
follow later, name it. Needs Debian's chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browser.chromium import open_browser
from browser.house import Served
from memoranda.engine import open_session
from vault import make_vault, rare_word

BUDGET = 150.0
"""Milliseconds a first paint may take."""
BUDGET_OF_SEARCH = 60.0
"""Milliseconds from a key to the hits."""
LONGEST = 60.0
"""Seconds a page may take to finish what it asks for later; a request that never ends counts so."""
_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
_PAGES = {
    "a refusal (no work)": "/page/enter",
    "Today": "/page",
    "Search": "/page/search?q=harbour",
    "Note": "/page/find?ref=",
    "Review": "/page/review",
    "Graph, clusters": "/page/graph",
    "Graph, 1,000 notes": "/page/graph?q=garden&depth=3&limit=1000",
    "Calendar": "/page/calendar?month=2025-06",
    "Agents": "/page/agents",
    "People": "/page/people",
    "Health": "/page/health",
}
_SEARCH = """async (words) => {
  const box = document.querySelector("#search input[type=search]"), hits = document.querySelector("#hits");
  const shown = new Promise((done) => new MutationObserver((_, self) => { self.disconnect(); requestAnimationFrame(
    () => done(performance.now())); }).observe(hits, { childList: true }));
  const begin = performance.now();
  box.value = words;
  box.dispatchEvent(new InputEvent("input", { bubbles: true }));
  return (await shown) - begin;
}"""


def furnish(home: Path, notes: int) -> None:
    """Make a home with a vault of `notes` notes, and index it."""
    vault = home.parent / "vault"
    make_vault(vault, notes)
    with open_session(home) as memory:
        memory.add_project("vault", str(vault))
        memory.sync()
        for number in range(20):
            memory.edit(memory.list("", limit=1)[0][0], _append(f"line {number}"))


def _append(text: str) -> Any:
    from memoranda.note.edit import Append

    return Append(text)


def browser_ms() -> float:
    """The processor time that all processes of the browser, descendants of this one, have used."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = place.read_text().rpartition(")")
        except OSError:
            # It has ended meanwhile.
            continue
        fields = rest.split()
        process = int(place.parent.name)
        parents[process] = int(fields[1])
        if "chrom" in name:
            used[process] = (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
    return sum(spent for process, spent in used.items() if _descends(process, parents))


def _descends(process: int, parents: dict[int, int]) -> bool:
    """Whether a process was started by this one, or by one that this one started."""
    while process > 1:
        if process == os.getpid():
            return True
        process = parents.get(process, 0)
    return False


def painted(page: Any) -> float:
    """When the page was painted first; the policy of the page lets no script wait for it."""
    while (moment := page.evaluate(_PAINT)) is None:
        time.sleep(0.01)
    return float(moment)


def measure(home: Path, notes: int, rounds: int) -> dict[str, list[float]]:
    """By what was done, the milliseconds of each round."""
    times: dict[str, list[float]] = {}
    served = Served(home)
    try:
        with open_browser() as browser:
            page = browser.new_context(viewport={"width": 1200, "height": 800}).new_page()
            flying: set[Any] = set()
            page.on(
                "request",
                lambda request: None if "/page/live" in request.url else flying.add(request.url),
            )
            for end in ("requestfinished", "requestfailed"):
                page.on(end, lambda request: flying.discard(request.url))
            page.goto(served.way_in())
            page.wait_for_url("**/page")
            with open_session(home) as memory:
                refs = [memory.list("", limit=1, offset=turn * 37)[0][0] for turn in range(rounds)]
            for name, path in _PAGES.items():
                for number in range(rounds):
                    ref = refs[number].id if path.endswith("=") else ""
                    begin = time.perf_counter()
                    used = served.processor_ms()
                    used_by_browser = browser_ms()
                    page.goto(served.url + path + ref, wait_until="load")
                    times.setdefault(f"first paint, {name}", []).append(painted(page))
                    times.setdefault(f"  server, {name}", []).append(served.processor_ms() - used)
                    times.setdefault(f"  browser, {name}", []).append(
                        browser_ms() - used_by_browser
                    )
                    while flying and time.perf_counter() - begin < LONGEST:
                        page.wait_for_timeout(10)
                    flying.clear()
                    # A graph that is still being laid out would hold up the paint of the next page.
                    if page.locator("canvas").count():
                        drawn = page.locator("canvas[data-drawn]")
                        longest_ms = LONGEST * 1000
                        drawn.wait_for(timeout=longest_ms)
                    times.setdefault(f"  all of it, {name}", []).append(
                        (time.perf_counter() - begin) * 1000
                    )
            page.goto(f"{served.url}/page/search")
            words = [
                "harbour lights",
                "what is the river",
                "bridge market winter",
                "garden",
                "memory of summer",
            ]
            words += [rare_word(turn * 31 % notes) for turn in range(rounds)]
            for word in words:
                used = served.processor_ms()
                times.setdefault("search, key to hits", []).append(page.evaluate(_SEARCH, word))
                times.setdefault("  server, search", []).append(served.processor_ms() - used)
    finally:
        served.close()
    return times


def budget_of(name: str) -> float:
    """The milliseconds that a row may take; those that only explain another have no limit."""
    if name.startswith("  "):
        return inf
    return BUDGET_OF_SEARCH if name.startswith("search") else BUDGET


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--home", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memoranda-page-") as folder:
        home = options.home or Path(folder) / "home"
        begin = time.perf_counter()
        if not home.exists():
            furnish(home, options.notes)
        seconds_to_furnish = time.perf_counter() - begin
        times = measure(home, options.notes, options.rounds) if options.rounds else {}
    rows = {
        name: {"median_ms": round(median(values), 1), "worst_ms": round(max(values), 1)}
        for name, values in times.items()
    }
    late = [name for name, row in rows.items() if row["median_ms"] > budget_of(name)]
    if options.json:
        print(json.dumps({"notes": options.notes, "rows": rows, "late": late}))
        return int(bool(late))
    print(f"{options.notes:,} notes (made and indexed in {seconds_to_furnish:.0f} s)")
    for name, row in rows.items():
        remark = f"  over {budget_of(name):.0f} ms" if name in late else ""
        print(f"{name:40} {row['median_ms']:8.1f} ms  worst {row['worst_ms']:8.1f} ms{remark}")
    return int(bool(late))


if __name__ == "__main__":
    sys.exit(main())
