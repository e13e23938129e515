"""The formats by their names in places.toml."""

from __future__ import annotations

from memoranda.transcripts.databases import CursorEditor, GooseDatabase, OpenCode, Zed
from memoranda.transcripts.documents import Amp, Cline, Continue, GeminiCli
from memoranda.transcripts.history import Aider
from memoranda.transcripts.lines import (
    ClaudeCode,
    Codex,
    CopilotCli,
    CursorCli,
    GooseLines,
    Windsurf,
)
from memoranda.transcripts.turn import Format

FORMATS: dict[str, Format] = {
    "aider": Aider(),
    "amp": Amp(),
    "claude-code": ClaudeCode(),
    "cline": Cline(),
    "codex": Codex(),
    "continue": Continue(),
    "copilot-cli": CopilotCli(),
    "cursor-cli": CursorCli(),
    "cursor-editor": CursorEditor(),
    "gemini-cli": GeminiCli(),
    "goose": GooseDatabase(),
    "goose-lines": GooseLines(),
    "opencode": OpenCode(),
    "windsurf": Windsurf(),
    "zed": Zed(),
}
