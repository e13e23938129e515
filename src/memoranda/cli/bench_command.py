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
    from memoranda.engine.served import notes_given

    with call.memory() as memory:
        figures = measure_recall(memory, notes, seed)
        sessions, given_ids = notes_given(memory)
        notes_by_id = {info.id: info for info in memory.list(limit=0)[0]}
    read = sum(1 for note in given_ids if note in notes_by_id and notes_by_id[note].access_count)
    if call.json:
        recall = [figure._asdict() for figure in figures]
        return call.document(recall=recall, given=len(given_ids), read=read, sessions=sessions)
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
    told_notes = plural(len(given_ids), "note")
    told_line = f"Sessions were told {told_notes} ({plural(sessions, 'session')}); {read} of these were read"
    call.table(
        ("Looked for by", "Notes", "First", "Top 10", "ms"), rows, told_line, form=_ROW, rule=56
    )
