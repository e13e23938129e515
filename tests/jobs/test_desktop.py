"""Showing reminders on the desktop: the text is an argument, a failure is a sentence (contract 001,
8).
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.config import Settings
from memoranda.jobs import reminders

pytestmark = pytest.mark.promise("001-17.9")

NASTY = "it's \"5\" o'clock; $(touch owned) `touch owned` ${HOME} \\ %s\n-- <b>\n"
RECORDER = '#!/bin/sh\nfor each in "$@"; do printf "%s\\0" "$each"; done > "$0.arguments"\n'


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return folder


def program(folder: Path, name: str, text: str = RECORDER) -> Path:
    place = folder / name
    place.write_text(text)
    place.chmod(0o755)
    return place


def arguments(place: Path) -> list[str]:
    return Path(f"{place}.arguments").read_text(encoding="utf-8").split("\0")[:-1]


def settings(folder: Path, method: str, **more: bool) -> Settings:
    return replace(Settings(folder, folder / "config.yaml"), notify_method=method, **more)


@pytest.mark.parametrize("method", ["notify-send", "osascript"])
@pytest.mark.parametrize("text", [NASTY, "-u critical", "", "提醒 😀"])
def test_the_text_arrives_as_it_is_and_as_one_argument(
    programs: Path, method: str, text: str
) -> None:
    place = program(programs, method)
    assert reminders.show(settings(programs, method), [text]) is None
    given_arguments = arguments(place)
    assert given_arguments[given_arguments.index("--") + 1 :] == (
        [text, "Memory CLI"] if method == "osascript" else ["Memory CLI", text]
    )
    paths = list(programs.parent.rglob("owned"))
    assert paths == []


def test_the_script_for_osascript_is_always_the_same(programs: Path) -> None:
    place = program(programs, "osascript")
    scripts = []
    for text in (NASTY, "x"):
        reminders.show(settings(programs, "osascript"), [text])
        given_arguments = arguments(place)
        scripts.append(given_arguments[: given_arguments.index("--")])

    assert scripts[0] == scripts[1]
    assert scripts[0][:2] == ["-e", "on run argv"]


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [("é" * 100, "é" * 100), ("é" * 101, "é" * 100 + "..."), ("a\0b", "a b")],
)
def test_a_long_text_is_cut_at_100_characters(
    programs: Path, text: str, expected_text: str
) -> None:
    place = program(programs, "notify-send")
    reminders.show(settings(programs, "notify-send"), [text])
    assert arguments(place)[-1] == expected_text


def test_of_several_only_the_number_is_shown(programs: Path) -> None:
    place = program(programs, "notify-send")
    reminders.show(settings(programs, "notify-send"), ["a", "b", "c"])
    assert arguments(place) == ["--", "Memory CLI", "You have 3 reminder(s)"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "it is not installed"),
        ("#!/bin/sh\necho no bus >&2\necho more >&2\nexit 1\n", "no bus"),
        ("#!/bin/sh\nexit 3\n", "it ended with status 3"),
        ("#!/nowhere/interpreter\n", "it is not installed"),
    ],
)
def test_what_goes_wrong_is_said_in_one_line(programs: Path, text: str | None, reason: str) -> None:
    if text is not None:
        program(programs, "notify-send", text)
    assert (
        reminders.show(settings(programs, "notify-send"), ["x"])
        == f"notify: notify-send failed: {reason}"
    )


def test_a_program_that_does_not_end_is_not_waited_for(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(programs, "notify-send", "#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.setattr(reminders, "SECONDS", 0.2)
    start = time.monotonic()
    complaint = reminders.show(settings(programs, "notify-send"), ["x"])
    seconds = time.monotonic() - start

    assert complaint == "notify: notify-send failed: no answer within 0.2 s"
    assert seconds < 30


@pytest.mark.parametrize(
    ("method", "more"), [("file", {}), ("notify-send", {"notify": False}), ("auto", {})]
)
def test_nothing_is_started_when_nothing_is_to_be_shown(
    programs: Path, method: str, more: dict[str, bool]
) -> None:
    place = program(programs, "notify-send")
    assert reminders.show(settings(programs, method, **more), ["x"]) is None
    assert not os.path.exists(f"{place}.arguments")


def test_auto_is_the_desktop_where_there_is_one(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = program(programs, "notify-send")
    script = program(programs, "osascript")

    def shown() -> str:
        """The name of the program that `auto` starts now, "" for none."""
        for place in (sender, script):
            Path(f"{place}.arguments").unlink(missing_ok=True)
        assert reminders.show(settings(programs, "auto"), ["x"]) is None
        return " ".join(
            place.name for place in (sender, script) if os.path.exists(f"{place}.arguments")
        )

    monkeypatch.setattr("sys.platform", "darwin")
    assert shown() == "osascript"
    monkeypatch.setattr("sys.platform", "linux")
    assert shown() == ""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(programs))
    assert shown() == ""
    (programs / "bus").touch()
    assert shown() == "notify-send"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/x")
    assert shown() == "notify-send"
    sender.unlink()
    assert shown() == ""
