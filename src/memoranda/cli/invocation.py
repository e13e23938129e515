"""One run of the command: its global options, its memory, its input, and the form of its answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from memoranda.cli import output
from memoranda.cli.output import Failure
from memoranda.text.unicode import flat
from memoranda.text.user_path import absolute_path, user_path

if TYPE_CHECKING:
    from datetime import datetime, tzinfo
    from pathlib import Path
    from typing import TypeVar

    from memoranda.clock import Clock
    from memoranda.config import Settings
    from memoranda.documents.listed import Listed
    from memoranda.engine import MemorySession
    from memoranda.engine.note_session import NoteSession
    from memoranda.engine.read_session import ReadSession

    _Session = TypeVar("_Session", bound=ReadSession)

COMPLETE_VARIABLE = "_MEMORY_COMPLETE"
"""The environment variable with which a shell asks for completions."""
# Commands whose own output counts the unreadable files.
_REPORT_UNREADABLE = ("status", "doctor")
# A folder with any of these is a home, also without its state. The last two are in homes of an older
# program (sources/old_folders.py).
_PARTS_OF_A_HOME = (
    ".memoranda",
    "config.yaml",
    "categories",
    "notes",
    "memory.md",
    "short-term",
    "long-term",
)
# Commands that say nothing of a missing file or home: `config` writes the file, `hook` runs in the
# middle of a session, and `serve` takes the file up when it appears.
_SILENT_ABOUT_PLACES = ("config", "hook", "serve")
# With more folders beside a new home, none is looked for that the user may have meant: comparing so
# many names takes seconds.
_MOST_FOLDERS = 2_000
# The number of names, the most similar to that of a new home, that are looked at.
_MOST_SIMILAR = 3
# How alike two names must be, from 0 to 1, as `difflib` counts it.
_SIMILARITY = 0.75


def _is_home(folder: Path) -> bool:
    """Whether a folder holds a memory, or at least a part of one."""
    return any(os.path.lexists(folder / name) for name in _PARTS_OF_A_HOME)


def _similar_home(folder: Path) -> Path | None:
    """Return a home beside a folder whose name is nearly the same. None without one.

    Names that differ in a digit are not similar: `home1` and `home2` are two homes.
    """
    import difflib

    try:
        with os.scandir(folder.parent) as entries:
            folders = (entry.name for entry in entries if entry.is_dir())
            names = sorted(islice(folders, _MOST_FOLDERS + 1))
    except OSError:
        return None
    if len(names) > _MOST_FOLDERS:
        return None
    digits = [sign for sign in folder.name if sign.isdigit()]
    for name in difflib.get_close_matches(folder.name, names, _MOST_SIMILAR, _SIMILARITY):
        has_same_digits = digits == [sign for sign in name if sign.isdigit()]
        if name != folder.name and has_same_digits and _is_home(folder.parent / name):
            return folder.parent / name
    return None


def _finish_left_work(memory: ReadSession) -> None:
    """Finish the work that another process left. This needs a session with all verbs."""
    if not memory.has_left_work():
        return
    from memoranda.engine.memory import as_writer

    as_writer(memory).finish_left_work()


class Invocation:
    """One run of the command.

    The attributes are the global options, which are set while the command line is parsed:

    command: the name of the command, such as `list`.
    home: the folder of the home. None means the usual one.
    config: the configuration file. None means config.yaml of the home.
    agent: the value of `--agent`. None if it is not given.
    json: whether to print a JSON document instead of text.
    no_pager: whether a long text is printed without a pager.
    now: the value of `--now`. None means the present time.
    """

    command: str = "memory"
    home: str | None = None
    config: str | None = None
    agent: str | None = None
    json: bool = False
    no_pager: bool = False
    now: datetime | None = None
    own_clock: Clock | None = None
    """The clock that `--now` sets. None means the clock of the system."""
    offset: tzinfo | None = None
    """The offset of `--now`, in which times are read and shown (contract 001, 8). None without one.
    """
    starting: Callable[[], object]
    """A function that is called once the command line is understood, before the command runs."""
    begins_home: bool = False
    """Whether `--home` names a folder that was no home before, and no warning has said so."""
    checks_overview: bool = False
    """Whether to bring `memory.md` up to date even if this command changes nothing. A program that
    was killed may have left an old one.
    """

    @property
    def caller(self) -> str | None:
        """The name of the acting agent, from `--agent` or MEMORY_AGENT. None for the owner.

        Raises InvalidInput.
        """
        # An empty variable is a variable that is not set, but an empty option is a wrong name.
        name = self.agent
        if name is None:
            name = os.environ.get("MEMORY_AGENT") or None
        if name is None:
            return None
        from memoranda.note.project_access import check_agent

        check_agent(name)
        return name.lower()

    @property
    def options(self) -> list[str]:
        """Return `--config` and `--agent` with their values, for another command line."""
        options = []
        if self.config:
            options += ["--config", absolute_path(self.config)]
        if self.agent:
            options += ["--agent", self.agent]
        return options

    @cached_property
    def settings(self) -> Settings:
        """The settings of the home. They are read at the first use. Raises ConfigError."""
        from dataclasses import replace

        from memoranda.config import load

        settings = load(self.home, self.config)
        # A home in a database has further settings there.
        if settings.url is not None:
            from memoranda.engine.read_session import load_settings

            settings = load_settings(self.home, self.config)
        self._mention_new_places(settings)
        if self.offset is None:
            return settings
        return replace(settings, offset=self.offset)

    def _mention_new_places(self, settings: Settings) -> None:
        """Say on stderr that `--home` or `--config` seems to have a typing mistake.

        The command goes on, since any command creates the home it needs (contract 001, 1).
        """
        # What a completion says would appear in the middle of the line that is being typed.
        is_completing = COMPLETE_VARIABLE in os.environ
        if is_completing or self.command.partition(" ")[0] in _SILENT_ABOUT_PLACES:
            return
        if self.config and not os.path.lexists(settings.file):
            output.notice(flat(f"warning: there is no file {settings.file}, so the defaults hold"))
        if not self.home or settings.url is not None or _is_home(settings.home):
            return
        self.begins_home = True
        similar_home = _similar_home(settings.home)
        if similar_home is not None:
            warning = (
                f"warning: no memory was in {settings.home} before, so it is a new one. "
                f"Did you mean --home {similar_home}?"
            )
            output.notice(flat(warning))
            self.begins_home = False

    def _mention_empty_home(self) -> None:
        """Say of a new home that it is new: its empty answer looks as if all notes were lost."""
        # Reading the settings sets the attribute.
        home = self.settings.home
        if self.begins_home:
            output.notice(flat(f"No memory was in {home} before, so this one is empty."))

    @contextmanager
    def memory(
        self,
        projects: Mapping[str, os.PathLike[str]] | None = None,
        *,
        watch: bool = False,
        looks_once: bool = False,
    ) -> Iterator[MemorySession]:
        """Open the memory of the home for this command. At the end, mention unreadable files once.

        projects: name -> folder of projects that only this command has. None for none.
        watch: whether to watch the files for changes. A command of many calls uses this, so that
            not every call looks at every file.
        looks_once: whether only the first call looks at the files. A command that only reads uses
            this.
        """
        from memoranda.engine.memory import MemorySession

        if looks_once:
            self._mention_empty_home()
        with self._open(MemorySession, projects, watch=watch) as memory:
            if looks_once:
                memory.look_once()
            yield memory

    @contextmanager
    def reading(self) -> Iterator[ReadSession]:
        """Open the memory for a command that changes no note.

        This loads no code that writes, so the command starts in half the time. An exception is
        work that another process left unfinished, which is finished first. Only the first verb
        that the command calls compares the index with the files.
        """
        from memoranda.engine.read_session import ReadSession

        self._mention_empty_home()
        with self._open(ReadSession) as memory:
            _finish_left_work(memory)
            memory.look_once()
            yield memory

    @contextmanager
    def changing(self) -> Iterator[NoteSession]:
        """Open the memory for a command that changes only notes. Other code that writes is not
        loaded.
        """
        from memoranda.engine.note_session import NoteSession

        with self._open(NoteSession) as memory:
            _finish_left_work(memory)
            yield memory

    @contextmanager
    def _open(
        self,
        session_class: type[_Session],
        projects: Mapping[str, os.PathLike[str]] | None = None,
        *,
        watch: bool = False,
    ) -> Iterator[_Session]:
        """Open a session. At its end, print notices, warnings, and the number of unreadable files.

        session_class: the kind of session, which decides which verbs are loaded.
        projects: name -> folder of projects that only this command has.
        watch: whether to watch the files for changes.
        """
        from memoranda import clock

        with session_class.open(
            agent=self.caller,
            projects=projects,
            config=self.settings,
            face="cli",
            watch=watch,
            clock=self.own_clock or clock.now,
        ) as memory:
            try:
                yield memory
            finally:
                if memory.notices:
                    output.warnings(memory.notices)
            # A project may be missing, a file unread, or a database out of reach. Then the answer
            # comes from what was there before. `memory doctor` has findings about all that.
            if self.command != "doctor":
                output.warnings(memory.warnings)
            if memory.has_changed_memories or self.checks_overview:
                self._keep_overview(memory)
            count = len(memory.unreadable)
            if count and self.command not in _REPORT_UNREADABLE:
                files = "file" if count == 1 else "files"
                output.notice(f"warning: {count} unreadable {files}, run memory doctor")

    def _keep_overview(self, memory: ReadSession) -> None:
        """Bring `memory.md` up to date. If that fails, warn, and let the command succeed."""
        from memoranda.engine.overview import Overview
        from memoranda.errors import StorageError

        try:
            was_written = Overview(memory).keep_up()
            # `keep_up` looks only at changes of this process, and `refresh` at the files.
            if self.checks_overview and not was_written:
                Overview(memory).refresh(create=False)
        except StorageError as error:
            output.notice(f"warning: {error}")

    def answer(self, text: str, /, **data: Any) -> None:
        """Print the result: `text`, or with `--json` a document with the keys and values `data`."""
        if self.json:
            self.document(**data)
        else:
            output.text(text, paged=not self.no_pager)

    def answer_each(
        self, texts: Sequence[str], rows: Sequence[dict[str, Any]], between: str = "\n"
    ) -> None:
        """Print the results for the references of a command line, in their order.

        A single result is printed as by a command that takes only one reference.

        texts: the result of each reference for a person.
        rows: the result of each reference for `--json`.
        between: the text between two results.
        """
        document: dict[str, Any] = {"results": list(rows)}
        if len(rows) == 1:
            document = rows[0]
        self.answer(between.join(texts), **document)

    @property
    def on_terminal(self) -> bool:
        """Whether a person will read the answer."""
        return not self.json and output.is_terminal()

    def table(
        self,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        *last_lines: str,
        form: str = "",
        rule: int = 0,
    ) -> None:
        """Print rows as a table for a person. In a pipe, print them by the template `form`.

        last_lines: lines to print below the table.
        form: the template of a row in a pipe, with `{}` for each cell. "" if there is always a
            terminal.
        rule: the length of the line of dashes below the head in a pipe. 0 prints neither head nor
            dashes.
        """
        lines: list[str] = []
        if self.on_terminal:
            lines = output.table(head, rows)
        else:
            if rule:
                lines = [output.table_row(form, *head), "-" * rule]
            lines += [output.table_row(form, *cells) for cells in rows]
        if last_lines:
            lines += ["", *(flat(line) for line in last_lines)]
        output.text("\n".join(lines), painted=self.on_terminal, paged=not self.no_pager)

    def answer_list(self, name: str, listed: Listed, **before: Any) -> None:
        """Print the JSON document of a list.

        name: the key of the rows.
        listed: the rows to print, and the number of all rows.
        before: further keys, which come first.
        """
        document = before | {name: listed.rows}
        self.document(**document, shown=len(listed), total=listed.total)

    def document(self, **data: Any) -> None:
        """Print the JSON document of this command."""
        output.json_value({"schema": f"{self.command}/1"} | data)


def text_from(words: tuple[str, ...]) -> str:
    """Return the words joined by blanks. If the only word is `-`, return the text of stdin.

    Raises Failure if stdin is not UTF-8.
    """
    if words != ("-",):
        return " ".join(words)
    # Without stdin, the text is empty.
    if sys.stdin is None:
        return ""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        hint = "Convert it: iconv -f latin1 -t utf-8 FILE | memory …"
        raise Failure("the text on stdin is not valid UTF-8", "not_text", hint) from None


@contextmanager
def input_of(file: str | None) -> Iterator[BinaryIO]:
    """Open a file to read its bytes.

    file: the path of the file. None or `-` means stdin.

    Raises Failure, which names the file.
    """
    if file is None or file == "-":
        if sys.stdin is None:
            raise Failure("cannot read the input: stdin is closed")
        if file is None and sys.stdin.isatty():
            output.notice("Reading what you type, up to Ctrl-D; --input names a file instead.")
        yield sys.stdin.buffer
        return
    from memoranda.sources.files import reason

    try:
        stream = user_path(file).open("rb")
    except FileNotFoundError:
        raise Failure(f"open input file: {file}: no such file", "not_found") from None
    except OSError as error:
        raise Failure(f"open input file: {file}: {reason(error)}", "storage") from None
    with stream:
        yield stream
