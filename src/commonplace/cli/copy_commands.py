"""`mirror` and `move-home`: copies of a whole memory (docs/teams.md)."""

from __future__ import annotations

import gc
import threading
from dataclasses import asdict
from pathlib import Path

from commonplace.cli import output
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Names, Text, Usage, command, flag, option
from commonplace.errors import InvalidInput

_MIRROR_KEYS = ("files", "copied", "removed", "restored", "commits", "change", "left", "notices")
_MOVE_KEYS = ("files", "bytes", "changes", "texts", "checksum", "rewritten", "outside", "left")
_LOOKS, _ANYWAY = 1.0, 60
"""Seconds between two looks at the journal, and looks after which the files are compared anyway."""


def _after_erase(*_: object) -> tuple[str, ...]:
    from commonplace.transfer.git_history import AFTER_ERASE

    return AFTER_ERASE


@command("mirror", "DIR", keys=_MIRROR_KEYS, example="memory mirror ~/memory-mirror --git")
@flag("--git", "Commit each change, by its author; once it was given, always.")
@option("--after-erase", type=Names("what", _after_erase),
        help="With commits that hold what was erased since: rewrite them, or keep them.")  # fmt: skip
@flag("--watch", "Go on until stopped, and follow each change.")
def mirror(call: Invocation, folder: str, *, git: bool, after_erase: Text, watch: bool) -> int:
    """Keep the folder DIR like the memory: every file of it, byte for byte, others' private notes included.

    A run copies what changed since the last one, also after a kill. What somebody changes in DIR is put back.
    `memory import --from mirror DIR` brings it all into a home.
    """
    if after_erase is not None and after_erase not in _after_erase():
        raise Usage(f'invalid value "{after_erase}" for --after-erase: use {" or ".join(_after_erase())}')
    gc.enable()
    with call.memory(watch=True) as memory:
        from commonplace.transfer.whole_home import Mirror

        copy, seen, looks = Mirror(memory, Path(folder)), "", 0
        while True:
            if seen != (now := memory.journal_stamp()) or looks >= _ANYWAY:
                seen, looks = now, 0
                with output.progress("Mirroring") as progress:
                    done = copy.run(git=git, after_erase=after_erase, progress=progress)
                unread = (f"{each} could not be read; its copy stays as it was" for each in done.left)
                for each in (*unread, *done.notices):
                    output.notice(f"warning: {each}")
                if not watch or done.copied or done.removed or done.restored or done.commits:
                    did = [f"{done.copied} copied", f"{done.removed} removed"]
                    did += [f"{done.restored} put back"] if done.restored else []
                    did += [f"{done.commits} commits"] if done.commits else []
                    said = f"{folder}: {done.files} files ({', '.join(did)}), as of change #{done.change}"
                    call.answer(said, **asdict(done))
                    output.flush()
            if not watch:
                return 1 if done.left else 0
            looks += 1
            threading.Event().wait(_LOOKS)


@command("move-home", "FROM", "TO", keys=_MOVE_KEYS, example="memory move-home ~/.memory /srv/memory --dry-run")
@flag("--dry-run", "Only say what would be moved.")
def move_home(call: Invocation, source: str, target: str, *, dry_run: bool) -> None:
    """Copy the whole memory at FROM to TO, with its history, and prove that all of it is there. FROM stays.

    Each is a folder, or one of them postgresql://…?space=NAME. TO must be empty, or hold a move from FROM that was cut
    off: it goes on.
    """
    from commonplace.transfer.whole_home import move

    if call.caller is not None:
        raise InvalidInput("moving a home is the owner's; run this without an agent's name")
    gc.enable()
    with output.progress("Moving") as progress:
        moved = move(source, target, dry_run=dry_run, progress=progress)
    source, target = _shown(source), _shown(target)
    what = f"{moved.files} files, {moved.changes} changes, {moved.texts} older texts"
    lines = [f"{'Would move' if dry_run else 'Moved'} {what} from {source} to {target}"]
    lines += [f"All notes read again at {target} are the same: {moved.checksum}"] if moved.checksum else []
    lines += [f"{each}: its paths are now those of {target}" for each in moved.rewritten]
    lines += [f"project {each} lies elsewhere and stays there" for each in moved.outside]
    lines += [f"{each} is no file of a memory and stays" for each in moved.left]
    lines += [] if dry_run else [f"Nothing at {source} was changed. Use the new home with --home or MEMORY_HOME."]
    call.answer("\n".join(lines), **asdict(moved))


def _shown(place: str) -> str:
    """A folder, or the address of a database without a password."""
    from urllib.parse import parse_qsl, urlencode, urlsplit

    from commonplace.transfer.whole_home import DATABASE

    if not place.startswith(DATABASE):
        return place
    parts = urlsplit(place)
    query = urlencode([each for each in parse_qsl(parts.query) if "password" not in each[0]], safe="/")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query).geturl()
