"""`memory serve` as a process: its lock, its signals, its rounds, its socket (contract 001, 13)."""

from __future__ import annotations

import json
import os
import signal
import threading
from datetime import UTC, datetime, timedelta

import pytest

from memoranda.engine import open_session
from memoranda.engine.upkeep import Upkeep
from memoranda.note.markdown import Record
from memoranda.serve.daemon import Daemon
from serve.daemon_process import Client, DaemonProcess
from serve.process import SECONDS

MOMENT = datetime(2026, 5, 7, 10, 0, tzinfo=UTC)


def a_record(number, content, category="people", created=MOMENT, **more):
    return Record(
        f"{number:08}-e29b-41d4-a716-446655440000", content, category, created, created, **more
    )


@pytest.mark.promise("001-17.10")
def test_it_says_where_it_listens_and_sigterm_ends_it_with_status_0_and_no_socket(home):
    with DaemonProcess(home, "--interval", "1h") as daemon:
        assert (
            daemon.ready()
            == f"Memory daemon running (socket: {home}/memory.sock, interval: 1h0m0s)"
        )
        assert (home / ".daemon.lock").read_text() == f"{daemon.process.pid}\n"
        assert (home / "memory.sock").exists()
        assert daemon.stop()[:2] == (0, "\nShutting down...\n")
    assert not (home / "memory.sock").exists()


def test_sigint_ends_it_as_well(home):
    with DaemonProcess(home, "--no-socket") as daemon:
        assert daemon.ready() == "Memory daemon running (no socket, interval: 1m0s)"
        assert daemon.stop(signal.SIGINT)[0] == 0


@pytest.mark.promise("001-17.10")
def test_a_second_one_says_who_holds_the_lock_and_after_kill_9_the_next_starts_at_once(home):
    with DaemonProcess(home) as first:
        first.ready()
        with DaemonProcess(home) as second:
            status, _, err = second.ended()
            assert status == 1
            assert err == (
                f"Error: daemon already running (lock file: {home}/.daemon.lock, held by process {first.process.pid})\n"
                "End that one: memory serve --stop\n"
            )
        first.process.kill()
        first.process.wait()
        assert (home / "memory.sock").exists()
        with DaemonProcess(home) as third:
            assert third.ready().startswith("Memory daemon running")
            with Client(home) as client:
                assert client.call("memory_list") == []


def test_one_round_does_the_jobs_in_order_says_so_in_its_log_and_exits(home, tmp_path):
    old = datetime(2020, 1, 1, tzinfo=UTC)
    with open_session(home, face="cli") as memory:
        Upkeep(memory).put(
            [
                a_record(1, "over", "inbox", expires=old, source="claude"),
                a_record(2, "nobody reads this", "knowledge", created=old, source="claude"),
                a_record(
                    3,
                    "I prefer tea",
                    "inbox",
                    access_count=5,
                    created=datetime.now(UTC),
                    expires=datetime.now(UTC) + timedelta(days=1),
                ),
            ],
            "import",
        )
    with DaemonProcess(home, "--once", "--log", str(tmp_path / "log")) as daemon:
        assert daemon.ended() == (0, "", "")
    assert (tmp_path / "log").read_text().splitlines() == [
        "[sync] processed 3 items",
        "[expire] processed 1 items",
        "[decay] processed 1 items",
        "[upgrade] processed 1 items",
        "[memory.md] processed 1 items",
    ][-4:]
    assert "## preferences (1)" in (home / "memory.md").read_text()
    assert not (home / "memory.sock").exists()


@pytest.mark.parametrize("interval", ["0s", "500ms", "soon", "-1s", ""])
def test_an_interval_it_cannot_keep_is_refused(terminal, interval):
    ran = terminal("serve", f"--interval={interval}")
    hint = "At least 1s, e.g. 30s, 5m or 1h30m."
    assert (ran.status, ran.out, ran.err) == (
        1,
        "",
        f"Error: invalid interval: {interval}\n{hint}\n",
    )


@pytest.mark.promise("001-17.11")
def test_clients_of_the_socket_share_one_memory_with_everybody(home):
    with DaemonProcess(home) as daemon:
        daemon.ready()
        with Client(home) as first, Client(home) as second:
            written = first.call(
                "memory_write", content="tea is in the kitchen", category="knowledge"
            )
            assert (
                second.call("memory_read", id=written["id"])["content"] == "tea is in the kitchen"
            )
            assert (
                second.ask("memory_read", params={"id": "nope"})["error"]
                == "memory not found: nope"
            )
            first.send(b"x" * (1 << 20) + b"xx\n")
            assert first.reply() == {"id": 0, "error": "request too large (limit 1048576 bytes)"}
            assert len(second.ask("tools/list")["result"]) == 7
        with open_session(home, watch=False) as memory:
            assert memory.memory_id(written["id"]).category == "knowledge"
        assert daemon.stop()[0] == 0
    assert "tea is in the kitchen" in (home / "memory.md").read_text()


@pytest.mark.promise("001-17.11")
def test_twenty_clients_write_and_read_under_the_jobs_and_nothing_is_lost(home):
    failures: list[str] = []

    def work(number):
        try:
            with Client(home) as client:
                for turn in range(5):
                    written = client.call(
                        "memory_write", content=f"note {number} {turn}", category="knowledge"
                    )
                    assert (
                        client.call("memory_read", id=written["id"])["content"]
                        == f"note {number} {turn}"
                    )
                    client.call("memory_search", query=f"note {number}")
        except Exception as error:
            failures.append(repr(error))

    with DaemonProcess(home, "--interval", "1s") as daemon:
        daemon.ready()
        clients = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for worker in clients:
            worker.start()
        for worker in clients:
            worker.join()
        assert failures == []
        status, _, err = daemon.stop()
        assert status == 0
        assert "Error" not in err
        assert "Traceback" not in err
    with open_session(home, watch=False) as memory:
        assert memory.stats().projects["categories"] == 100


def test_a_request_in_progress_is_answered_before_it_ends(home):
    with DaemonProcess(home) as daemon:
        daemon.ready()
        with Client(home) as client:
            client.send(
                b"".join(
                    json.dumps(
                        {"id": n, "method": "memory_write", "params": {"content": f"n {n}"}}
                    ).encode()
                    + b"\n"
                    for n in range(50)
                )
            )
            first = client.reply()
            assert daemon.stop()[0] == 0
            answered = [first]
            answered += client.rest()
    assert [reply["id"] for reply in answered] == list(range(len(answered)))
    with open_session(home, watch=False) as memory:
        assert memory.stats().projects["categories"] == len(answered)


def test_unit_files_start_this_command_on_this_home_as_it_was_asked_for(home, terminal):
    systemd = terminal("--home", str(home), "serve", "--print-unit", "systemd").out
    assert f"--home {home} serve\n" in systemd
    launchd = terminal("--home", str(home), "serve", "--print-unit", "launchd").out
    assert f"<string>{home}</string>\n    <string>serve</string>" in launchd
    assert terminal("serve", "--print-unit", "cron").status == 2
    options = ("--interval", "5m", "--tools", "agent,notes", "--log", "day.log")
    unit = terminal(
        "--home", str(home), "--agent", "claude", "serve", *options, "--print-unit", "systemd"
    ).out
    log = os.path.abspath("day.log")
    assert (
        f"--home {home} --agent claude serve --interval 5m --tools agent,notes --log {log}\n"
        in unit
    )
    assert (
        terminal("serve", "--no-socket", "--print-unit", "systemd").out.count(
            " serve --no-socket\n"
        )
        == 1
    )


def test_a_home_where_nothing_can_be_written_is_named(terminal):
    (terminal.home / ".daemon.lock").mkdir(parents=True)
    ran = terminal("serve", "--once")
    assert (ran.status, ran.error) == (
        1,
        "Could not write .daemon.lock: it is a folder. Nothing was changed.",
    )


def test_a_fault_between_two_rounds_is_logged_and_the_daemon_goes_on(caplog):
    class Faulty:
        stop = staticmethod(lambda: False)

        def steps(self):
            return []

        def keep_up(self):
            raise RuntimeError("nobody thought of this")

    daemon = Daemon(Faulty(), timedelta(hours=1))
    daemon.serve(lambda: os.kill(os.getpid(), signal.SIGTERM), lambda: None)
    assert "nobody thought of this" in caplog.text


def test_it_ends_in_peace_when_nobody_reads_what_it_says(home):
    with DaemonProcess(home) as daemon:
        daemon.ready()
        daemon.process.stdout.close()
        daemon.process.send_signal(signal.SIGTERM)
        stderr = daemon.process.stderr.read()
        assert "Traceback" not in stderr
        assert "Broken pipe" not in stderr
        assert daemon.process.wait(SECONDS) == 0
