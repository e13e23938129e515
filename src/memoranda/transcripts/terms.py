"""Finds the subjects of a command, a piece of code or an error, as terms that can be compared. Pure.

A term is a kind and a text: `c:npm test` is a command, `t:moment` a package, a program or a name in
code, `f:api/auth` a file, `e:…` an error. The index stores hashes of terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from memoranda.text.pattern import lazy_pattern
from memoranda.transcripts.blocks import words_of

# A sign that ends a command, or one word with its quotes and escapes.
_TOKEN = lazy_pattern(
    r"&&|\|\|?|;|\n|&(?![>\d])|"
    r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s;|&'\"\\]|&(?=[>\d]))+"
)
# Signs after which another command begins.
_ENDS = frozenset(("&&", "||", "|", ";", "\n", "&"))
# A redirection of output or input.
_REDIRECT = lazy_pattern(r"\d?[<>]|&>")
# A variable set for one command.
_ASSIGNED = lazy_pattern(r"[A-Za-z_]\w*=")
# Characters of a command line that are read, and the commands in it.
_MAX_COMMAND_CHARACTERS = 2_000
_MAX_COMMANDS = 12
# Words of the longest beginning of a command that is looked for.
_MAX_BEGINNING_WORDS = 6
# Names of one piece of code.
_MAX_NAMES = 60
# Parts of a path, from its end.
_MAX_PATH_PARTS = 6
# Characters of a line that names an error.
_MAX_ERROR_CHARACTERS = 300

# Programs that install packages -> the subcommands that names of packages follow. () means that the
# name follows the program.
_INSTALL = {
    "npm": ("install", "i", "add"),
    "pnpm": ("install", "i", "add"),
    "yarn": ("add",),
    "bun": ("add", "install", "i"),
    "pip": ("install",),
    "pip3": ("install",),
    "pipx": ("install", "run"),
    "poetry": ("add",),
    "uv": ("add", "install"),
    "conda": ("install",),
    "cargo": ("add", "install"),
    "go": ("get", "install"),
    "gem": ("install",),
    "brew": ("install",),
    "apt": ("install",),
    "apt-get": ("install",),
    "composer": ("require",),
    "dotnet": ("package", "add"),
    "npx": (),
    "uvx": (),
}
# The version or the extras after a package's name.
_VERSION = lazy_pattern(r"(?<=.)(?:@[\w.^~*-]+|\[[\w,-]*\]|[=<>~!]=?[\w.*,<>=!~-]+)\Z")
# A module that a line of code imports, in many languages.
_IMPORTED = lazy_pattern(
    r"""^\s*(?:import|from)\s+([A-Za-z_@][\w.@/-]*)|\bfrom\s+['"]([^'"\n]{1,80})['"]"""
    r"""|\brequire\(\s*['"]([^'"\n]{1,80})['"]|\bimport\(\s*['"]([^'"\n]{1,80})['"]"""
    r"""|^\s*use\s+([a-z_][\w]*)(?:::|;)|^\s*import\s+['"]([^'"\n]{1,80})['"]""",
    re.M,
)
# A name in code.
_NAME = lazy_pattern(r"[A-Za-z_$][\w$]{2,60}")
# A name that ordinary prose would not have.
_DISTINCT = lazy_pattern(r"\w_\w|[a-z][A-Z]|\d[a-z_]")
# A number, which may differ from one run to the next.
_NUMBER = lazy_pattern(r"0x[0-9a-f]+|\d+")
# A quoted part of an error message.
_QUOTED = lazy_pattern(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
# A path in an error message.
_PLACE = lazy_pattern(r"(?:[A-Za-z]:)?(?:[\w.~-]*/)+[\w.-]*")
# Words that make a line of output an error, in lower case. Looking for each of them takes a hundredth
# of the time of one pattern.
_ERROR_WORDS = (
    "error",
    "failed",
    "fatal",
    "cannot",
    "can't",
    "could not",
    "couldn't",
    "not found",
    "no such",
    "denied",
    "refused",
    "invalid",
    "unknown",
    "unrecognized",
    "missing",
    "exception",
    "traceback",
    "unable",
    "panic",
    "not installed",
    "not recognized",
)
# A short form of such a word, which npm and others write: `ERR! code E404`.
_SHORT_ERROR = lazy_pattern(r"\berr[!_]")
# A line that says that there are 0 errors.
_NO_ERROR = lazy_pattern(r"\b(?:0|no|zero|without(?: any)?) (?:errors?|failures?|failed)\b", re.I)
# A line that only repeats the exit status.
_EXIT_LINE = lazy_pattern(
    r"\A\W*(?:error: )?(?:process )?exit(?:ed with)? ?(?:code|status)?\W*\d*\W*\Z", re.I
)


def hashed(term: str) -> int:
    """Return the hash of a term, a signed number of 64 bits, as the index stores it."""
    digest = blake2b(term.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def simple_commands(command: str) -> list[list[str]]:
    """Return the commands that a command line runs, each as a list of words.

    `CI=1 sudo npm test > log && ls` runs `[["npm", "test"], ["ls"]]`: assignments, programs such as
    `sudo`, and redirections are left out.
    """
    commands: list[list[str]] = []
    # The words of the command so far.
    words: list[str] = []
    skips_next_word = False
    # The last sign ends the last command.
    for token in [*_TOKEN.findall(command[:_MAX_COMMAND_CHARACTERS]), ";"]:
        if token in _ENDS:
            if words:
                commands.append(words)
            words = []
            continue
        redirect = _REDIRECT.match(token)
        if redirect:
            # In `> file`, the next word is the file. In `>file` it is not.
            skips_next_word = redirect.end() == len(token)
            continue
        if skips_next_word:
            skips_next_word = False
            continue
        if not words and (_ASSIGNED.match(token) or token in words_of("wrappers")):
            continue
        words.append(_unquoted(token))
    return commands[:_MAX_COMMANDS]


def _unquoted(word: str) -> str:
    """Return a word without the quotes around it."""
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        return word[1:-1]
    return word


def program(words: list[str]) -> str:
    """Return the name of the program that a command runs, without its folder."""
    if not words:
        return ""
    return words[0].rpartition("/")[2]


def is_trivial(words: list[str]) -> bool:
    """Whether a command is so common that its failure teaches nothing, e.g. `ls`."""
    return not words or program(words) in words_of("trivial_programs")


def command_term(words: list[str]) -> str:
    """Return the term of a command: `c:npm test`."""
    return f"c:{' '.join(words)}"


def packages(words: list[str]) -> list[str]:
    """Return the packages that a command installs: `moment` for `npm install moment@2`."""
    name = program(words)
    arguments = words[1:]
    if name in ("python", "python3") and arguments[:2] == ["-m", "pip"]:
        name = "pip"
        arguments = arguments[2:]
    # uv has a subcommand `pip`, whose own subcommand `install` names packages, as `add` does.
    if name == "uv" and arguments[:1] == ["pip"]:
        arguments = arguments[1:]
    verbs = _INSTALL.get(name)
    if verbs is None:
        return []
    if not verbs:
        # `npx PACKAGE ARGUMENTS…`
        return _package_names(arguments)[:1]
    # An option and its value may come before the verb: `pnpm --filter web add X`.
    for position, word in enumerate(arguments[:3]):
        if word in verbs:
            return _package_names(arguments[position + 1 :])
    return []


def _package_names(words: list[str]) -> list[str]:
    """Return the names of packages among these words, without versions, options and paths."""
    names = [_VERSION.sub("", word) for word in words if not word.startswith(("-", ".", "/"))]
    return [name for name in names if name]


def imported_modules(code: str) -> list[str]:
    """Return the modules that code imports: `os.path` and `os` for `import os.path`."""
    modules: dict[str, None] = {}
    for match in _IMPORTED.finditer(code):
        # Only one of the groups has matched.
        name = "".join(filter(None, match.groups()))
        # `@scope/package/part` is part of a package with two names.
        root = re.split(r"[./]", name)[0]
        if name.startswith("@"):
            root = "/".join(name.split("/")[:2])
        modules.update(dict.fromkeys((name, root)))
    # A name that begins with a dot is a file of the same project.
    return [name for name in modules if name and not name.startswith(".")]


def names_in(code: str) -> list[str]:
    """Return the names in code that are not ordinary words, such as `load_cfg` and `loadConfig`."""
    names = [name for name in _NAME.findall(code) if _DISTINCT.search(name)]
    return list(dict.fromkeys(names))[:_MAX_NAMES]


def is_distinct(name: str) -> bool:
    """Whether a name cannot be an ordinary word: `load_cfg`, `dayjs-plugin`, `api/auth`."""
    return bool(_DISTINCT.search(name) or re.search(r"\w[-./]\w", name))


def path_terms(path: str) -> list[str]:
    """Return the terms of a path by its last parts: `f:b.ts`, `f:a/b.ts` for `a/b.ts`."""
    parts = _last_parts(path)
    return [f"f:{'/'.join(parts[-count:])}" for count in range(1, len(parts) + 1)]


def path_term(path: str) -> str:
    """Return the term of a path, with at most its last 6 parts."""
    return f"f:{'/'.join(_last_parts(path))}"


def _last_parts(path: str) -> list[str]:
    """Return the last parts of a path, at most _MAX_PATH_PARTS."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    return parts[-_MAX_PATH_PARTS:]


def error_line(output: str) -> str:
    """Return the line of an output that tells the error, or "" if it has no lines.

    It is the first line with a word such as `error`, or the last line of a traceback. Without such
    a line it is the last one.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    lines = [line for line in lines if not _EXIT_LINE.match(line)]
    if not lines:
        return ""
    last_line = lines[-1]
    # The last line of a traceback names the error.
    is_traceback = any(line.startswith("Traceback") for line in lines)
    if is_traceback:
        return last_line[:_MAX_ERROR_CHARACTERS]
    line_with_error = next(filter(_names_error, lines), last_line)
    return line_with_error[:_MAX_ERROR_CHARACTERS]


def is_error(line: str) -> bool:
    """Whether a line of an output says that something went wrong."""
    return _names_error(line) and not _NO_ERROR.search(line)


def _names_error(line: str) -> bool:
    """Whether a line has a word that makes it an error."""
    lower = line.lower()
    if any(word in lower for word in _ERROR_WORDS):
        return True
    return "err" in lower and _SHORT_ERROR.search(lower) is not None


def error_term(line: str) -> str:
    """Return the term of an error. Parts that differ from run to run are left out.

    `line 7: no such file 'a.txt'` becomes `e:line 0: no such file '…'`.
    """
    # Quotes first: a path or number within them goes with them.
    text = _QUOTED.sub("'…'", line)
    text = _PLACE.sub("/…", text)
    text = _NUMBER.sub("0", text.lower())
    return f"e:{' '.join(text.split())}"


def command_terms(command: str) -> list[str]:
    """Return the terms of a command line.

    For `npm run build x`: `c:npm run build x`, `c:npm run`, `c:npm run build` and `t:npm`, and the
    packages that a command installs.
    """
    terms = []
    for words in simple_commands(command):
        terms.append(command_term(words))
        # A lesson may be about `npm run`, whatever is run.
        longest = min(len(words), _MAX_BEGINNING_WORDS + 1)
        terms += [command_term(words[:count]) for count in range(2, longest)]
        terms.append(f"t:{program(words)}")
        terms += [f"t:{package}" for package in packages(words)]
    return list(dict.fromkeys(terms))


def code_terms(code: str) -> list[str]:
    """Return the terms of code: the modules that it imports and the distinct names in it."""
    names = [*imported_modules(code), *names_in(code)]
    return [f"t:{name}" for name in dict.fromkeys(names)]


def texts_in(value: Any, most_characters: int = 40_000) -> Iterator[str]:
    """Yield the texts in the arguments of a tool, at any depth, each cut to `most_characters`."""
    if isinstance(value, str):
        yield value[:most_characters]
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_in(inner, most_characters)
    elif isinstance(value, list):
        for inner in value[:50]:
            yield from texts_in(inner, most_characters)


def project_of(folder: str) -> str:
    """Return the root of the Git repository that `folder` is in, or `folder` outside one."""
    place = Path(folder)
    if not folder or not place.is_absolute():
        return folder
    for parent in (place, *place.parents):
        if (parent / ".git").exists():
            return str(parent)
    return folder
