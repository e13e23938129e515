"""`bench`: how well the notes of this memory are found."""

from __future__ import annotations

from memoranda.cli.invocation import Invocation
from memoranda.cli.syntax import Number, command, option
from memoranda.documents.wording import plural

_ROW = "{:<20} {:>6} {:>8} {:>8} {:>9}"


@command(
    "bench",
    keys=("recall", "given", "read", "sessions"),
    example="memory bench --notes 30",
)
@option("--notes", type=Number(), default=60, help="How many notes to look for.")
@option("--seed", type=Number(), default=1, help="Another number draws other notes and words.")
def bench(call: Invocation, *, notes: int, seed: int) -> None:
    """Measure how well your own notes are found, and whether sessions used what they were told.

    Notes are drawn at random and looked for by their own words: two of them, a part of a sentence,
    a question, the title. Nothing leaves the machine, and nothing is changed.
    """
    from memoranda.engine.measuring import measure_recall
    from memoranda.engine.telling.served import notes_given

    with call.memory() as memory:
        figures = measure_recall(memory, notes, seed)
        session_count, told_ids = notes_given(memory)
        infos, _ = memory.list(limit=0)
    ids_of_read_notes = {info.id for info in infos if info.access_count}
    read_count = sum(1 for id in told_ids if id in ids_of_read_notes)
    if call.json:
        return call.document(
            recall=[figure._asdict() for figure in figures],
            given=len(told_ids),
            read=read_count,
            sessions=session_count,
        )
    if not figures:
        return call.answer("There is no note that says enough to look for it.")
    rows = [
        (
            figure.kind,
            str(figure.asked),
            f"{figure.first:.0f}%",
            f"{figure.page:.0f}%",
            f"{figure.milliseconds:.1f}",
        )
        for figure in figures
    ]
    told_line = (
        f"Sessions were told {plural(len(told_ids), 'note')} "
        f"({plural(session_count, 'session')}); {read_count} of these were read"
    )
    head = ("Looked for by", "Notes", "First", "Top 10", "ms")
    call.table(head, rows, told_line, form=_ROW, rule=56)
