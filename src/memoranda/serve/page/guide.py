"""Shows the page "How it fits together": a picture of this memory, and the words of the page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from starlette.responses import Response

from memoranda.engine.overview import writers
from memoranda.note.model import TRACE_PROJECT
from memoranda.serve.page.graph.names import project_title
from memoranda.serve.page.note_text import LinkTargets, as_html
from memoranda.serve.page.package_files import TEXTS, text_in
from memoranda.serve.page.shell import LATELY
from memoranda.serve.page.visit import Visit
from memoranda.text.user_path import user_folder

# The files of the text, by language.
_NAMES = {"en": "help.md", "zh": "help.zh.md"}
# Agents that the picture names. A phone has no room for more.
_MAX_AGENTS = 4
# Projects that the picture names.
_MAX_PROJECTS = 8


def show(visit: Visit) -> Response:
    """Show the picture, and the text in the reader's language."""
    memory = visit.memory
    text = text_in(TEXTS, _NAMES[visit.language])
    counts = memory.stats()
    projects = Counter(
        {name: notes for name, notes in counts.projects.items() if notes and name != TRACE_PROJECT}
    )
    latest = memory.log(limit=1)
    changes = _changes_by_agent(visit)
    agents = changes.most_common(_MAX_AGENTS)
    return visit.html(
        "help.html",
        # The text is of no note, and has no links to notes.
        terms=[as_html(term, project="", path="", targets=LinkTargets()) for term in _terms(text)],
        agents=agents,
        other_agents=len(changes) - len(agents),
        folder=_short_path(memory.home),
        notes=projects.total(),
        projects=projects.most_common(_MAX_PROJECTS),
        project_title=partial(project_title, visit.language),
        last_change=latest[0].number if latest else 0,
        lines_in=_lines(len(agents) + 1, is_upwards=False),
        lines_out=_lines(2, is_upwards=True),
    )


def _terms(text: str) -> list[str]:
    """Cut the text of the page at its headings, each of which is a term."""
    _, *terms = re.split(r"(?m)^(?=## )", text)
    return terms


def _changes_by_agent(visit: Visit) -> Counter[str]:
    """Return how many changes each agent made lately, by its name."""
    changes: Counter[str] = Counter()
    for writer in writers(visit.memory, visit.now - LATELY):
        if writer.agent:
            changes[writer.agent] += writer.verbs.total()
    return changes


def _short_path(path: Path) -> str:
    """Return a path as people write it: `~/.memory`."""
    own_folder = user_folder()
    if own_folder is not None and path.is_relative_to(own_folder):
        return f"~/{path.relative_to(own_folder)}"
    return str(path)


def _lines(columns: int, *, is_upwards: bool) -> Sequence[str]:
    """Return lines that join several columns with one box below them, as paths of SVG.

    The columns have equal width. The picture is 100 wide and 24 high.

    is_upwards: whether the box is above the columns instead.
    """
    columns_height = 24 if is_upwards else 0
    box_height = 0 if is_upwards else 24
    centres = [100 * (2 * column + 1) / (2 * columns) for column in range(columns)]
    # From each column to the middle height, there from the first column to the last, and from the
    # middle to the box.
    drops = [f"M{centre:.2f} {columns_height}V12" for centre in centres]
    across = f"M{centres[0]:.2f} 12H{centres[-1]:.2f}"
    return [*drops, across, f"M50 12V{box_height}"]
