"""Lists the formats of transcripts by the names that they have in places.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import cast

from memoranda.transcripts.turn import Format

# The name of a format -> the module in this package and the class that reads it.
_CLASSES = {
    "aider": ("history", "Aider"),
    "amp": ("documents", "Amp"),
    "claude-code": ("lines", "ClaudeCode"),
    "cline": ("documents", "Cline"),
    "codex": ("lines", "Codex"),
    "continue": ("documents", "Continue"),
    "copilot-cli": ("lines", "CopilotCli"),
    "cursor-cli": ("lines", "CursorCli"),
    "cursor-editor": ("databases", "CursorEditor"),
    "gemini-cli": ("documents", "GeminiCli"),
    "goose": ("databases", "GooseDatabase"),
    "goose-lines": ("lines", "GooseLines"),
    "opencode": ("databases", "OpenCode"),
    "windsurf": ("lines", "Windsurf"),
    "zed": ("databases", "Zed"),
}


@cache
def _opened(name: str) -> Format:
    """Return the format with this name. Its module is imported first: a hook needs one of them."""
    module_name, class_name = _CLASSES[name]
    module = import_module(f"memoranda.transcripts.{module_name}")
    return cast("Format", getattr(module, class_name)())


class _Formats(Mapping[str, Format]):
    """The formats by their names, each imported when it is first used."""

    def __getitem__(self, name: str) -> Format:
        return _opened(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


FORMATS: Mapping[str, Format] = _Formats()
