"""kill -9 of a server of the socket at random moments while many clients write: nothing
acknowledged is lost.

Usage: socket_kills.py FOLDER KILLS [SEED]. A fork serves a home; each client sets its own note
to a new value, and writes a new note, again and again. The server is killed, the home is opened
again, and each note must be whole and hold the last acknowledged value or one sent after it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path

from crash.test_kill import next_process
from memoranda import faces
from memoranda.engine import open_session
from memoranda.note.frontmatter import split
from memoranda.serve.socket import Listener, Protocol, SocketServer

CLIENTS = 16
KILLS_A_HOME = 12


def serve(home: Path) -> None:
    """Serve the home's notes until killed."""
    with open_session(home) as memory:
        answer = Protocol(memory, faces.registry(["notes"], memory.settings)).answer
        threads = ThreadPoolExecutor(CLIENTS)
        server = SocketServer(Listener(home / "memory.sock"), answer, nullcontext, threads)

        async def run() -> None:
            await server.start()
            await asyncio.Event().wait()

        asyncio.run(run())


class Writer:
    """A client: the value it sent last, what its note has to hold at least, and the new notes
    acknowledged.
    """

    def __init__(self, number: int):
        self.number = number
        self.sent = self.least = 0
        self.made: set[int] = set()

    def write(self, home: Path, began: threading.Event) -> None:
        """Write until the server is gone."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(60)
                connection.connect(str(home / "memory.sock"))
                answers = connection.makefile("rb")
                while True:
                    self.sent += 1
                    for title in (f"cell {self.number}", f"new {self.number}x{self.sent}"):
                        params = {
                            "title": title,
                            "content": text_of(self.sent),
                            "directory": "",
                            "overwrite": True,
                        }
                        call = {
                            "method": "tools/call",
                            "params": {"name": "write_note", "params": params},
                        }
                        connection.sendall(json.dumps({"id": 1, **call}).encode() + b"\n")
                        answer = answers.readline()
                        if not answer.endswith(b"\n"):
                            return
                        assert b'"is_error":false' in answer.replace(b" ", b""), answer
                        if title.startswith("cell"):
                            self.least = self.sent
                    self.made.add(self.sent)
                    began.set()
        except ConnectionError:
            return


def text_of(value: int) -> str:
    return f"v{value} " * 300


def kill_one(home: Path, writers: list[Writer], chance: random.Random) -> None:
    """Start a server, let the clients write, and kill it at a random moment."""
    child = os.fork()
    if child == 0:
        try:
            serve(home)
        finally:
            os._exit(1)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX) as probe:
            if not probe.connect_ex(str(home / "memory.sock")):
                break
        threading.Event().wait(0.005)
    began = threading.Event()
    threads = [threading.Thread(target=writer.write, args=(home, began)) for writer in writers]
    for thread in threads:
        thread.start()
    assert began.wait(60)
    threading.Event().wait(chance.uniform(0, 0.15))
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    for thread in threads:
        thread.join(60)


def check(home: Path, writers: list[Writer]) -> None:
    """Every acknowledged value is there, each note is whole, indexed and in the journal, and
    nothing is left behind.
    """
    with next_process(home) as memory:
        texts = {path.stem: path.read_text() for path in (home / "notes").glob("*.md")}
        for writer in writers:
            value_found = value(texts.pop(f"cell {writer.number}", None))
            assert writer.least <= value_found <= writer.sent, (
                writer.number,
                value_found,
                writer.least,
                writer.sent,
            )
            missing = [
                number for number in writer.made if f"new {writer.number}x{number}" not in texts
            ]
            assert missing == [], (writer.number, missing)
            writer.least = value_found
        for title, text in texts.items():
            assert title.endswith(f"x{value(text)}"), title
        indexed = {info.path: info.etag for info in memory.list(limit=0)[0]}
        assert indexed == {
            path.name: sha256(path.read_bytes()).hexdigest()
            for path in (home / "notes").glob("*.md")
        }
        log = memory.log(limit=0)
        numbers = [change.number for change in log]
        assert numbers == sorted(set(numbers), reverse=True)
        written_paths = set()
        for change in log:
            written_paths |= {file.path for file in change.files if file.do == "put"}
        assert set(indexed) == written_paths


def value(text: str | None) -> int:
    """What a note holds, which must be one value throughout; 0 for a note that is not there."""
    if text is None:
        return 0
    words = text[split(text).body_at :].split()
    assert len(words) == 300, text
    assert len(set(words)) == 1, text
    return int(words[0].removeprefix("v"))


def main(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged = 0
    home = folder
    writers = [Writer(0)]
    for number in range(kills):
        if number % KILLS_A_HOME == 0:
            home = folder / f"h{number // KILLS_A_HOME}"
            writers = [Writer(client) for client in range(CLIENTS)]
            open_session(home, watch=False).close()
        before = sum(len(writer.made) for writer in writers)
        kill_one(home, writers, chance)
        acknowledged += 2 * (sum(len(writer.made) for writer in writers) - before)
        check(home, writers)
    print(
        f"done: {kills} kills, {acknowledged} acknowledged writes, nothing lost, nothing left behind"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 7)
