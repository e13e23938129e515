"""Shows the health of the memory: its size and growth, the index, upkeep, the doctor's findings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from starlette.responses import Response

from memoranda.engine.doctor import examine, repair
from memoranda.engine.embedding import Embedding
from memoranda.engine.overview import figures
from memoranda.jobs.job import last_dream
from memoranda.jobs.lifecycle import IDLE
from memoranda.serve.page.visit import Visit

# A file of the documentation, which is not on the page.
_DOCUMENT = re.compile(r" \(docs/[\w.-]+\)")
# The sentences for the steps of upkeep that change something. Other steps only examine.
_STEP_SENTENCES = {
    "expire": "Removed what had ended",
    "decay": "Let unused notes fade",
    "upgrade": "Sorted from the inbox",
    "consolidate": "Merged what says the same",
    "notify": "Reminders sent",
    "purge": "Forgot old texts",
    "embed": "Passages embedded",
}


def show(visit: Visit) -> Response:
    """Show the page. Its script asks for the doctor's findings, which take a while."""
    visit.begin_page()
    memory = visit.memory
    embedding = Embedding(memory)
    size = figures(memory)
    changed = memory.last_change("daemon")
    # A dream is a deeper upkeep. Each level of it comes when nothing was changed for some time.
    dreams = []
    if changed and memory.settings.dream:
        dreams = [(level, changed + idle) for level, idle in reversed(IDLE)]
    return visit.html(
        "health.html",
        figures=size,
        sync=memory.sync(),
        highest=max((number for _, number in size.weeks), default=0) or 1,
        embedding=embedding,
        trouble=_DOCUMENT.sub("", embedding.trouble),
        vectors=embedding.counts(),
        unreadable=memory.unreadable,
        warnings=memory.warnings,
        rounds=visit.request.app.state.rounds,
        dream=last_dream(memory.home),
        dreams=dreams,
        steps_told=_STEP_SENTENCES,
    )


def doctor(visit: Visit) -> Response:
    """Show the findings of the doctor. A POST repairs the faults that can be repaired."""
    findings = examine(visit.memory)
    if visit.is_post:
        repair(visit.memory, findings)
    return visit.part_or_page(
        "findings.html", "doctor.html", findings=findings, remedies=_remedies()
    )


@cache
def _remedies() -> Mapping[str, str]:
    """Return what a person can do about a finding, by its code. Others need nothing to be done."""
    return json.loads(files(__package__).joinpath("texts", "remedies.json").read_text("utf-8"))
