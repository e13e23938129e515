"""`kv get | set | del | list`: key-value entries for the shell, as bare values (contract 004)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from commonplace.cli import output, presets
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import Failure
from commonplace.cli.syntax import Number, command, group, option, text_from
from commonplace.note.entry import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from commonplace.engine.entries import Entries

_EVERY = 1 << 30

kv = group("kv", "kv_commands", "get set del list", "Keep short texts under a key: print, set, delete and list them.")
_namespace_option = option("--namespace", metavar="NAME", default=DEFAULT_NAMESPACE, help="Where the key is.")


@contextmanager
def _entries(call: Invocation) -> Iterator[Entries]:
    """The entries, where the kv tools have them."""
    from commonplace.engine.entries import NoteEntries

    with call.memory() as memory, presets.json_entries(presets.json_folder()) as in_files:
        yield in_files(memory) if in_files else NoteEntries(memory)


@contextmanager
def _guessing(entries: Entries, key: str, namespace: str) -> Iterator[None]:
    """Say what a missing key may have been."""
    from commonplace.engine.entries import NoEntry
    from commonplace.errors import near

    try:
        yield
    except NoEntry as error:
        guesses = near(key, (each.key for each in entries.search("", namespace, _EVERY, 0)[0]))
        raise Failure(str(error), error.code, guesses=guesses) from None


@command("get", "KEY", keys=("namespace", "key", "value"), example="memory kv get editor")
@_namespace_option
def kv_get(call: Invocation, key: str, *, namespace: str) -> None:
    """Print the value of KEY, and nothing else. Counts as one recall."""
    with _entries(call) as entries, _guessing(entries, key, namespace):
        entry = entries.count(entries.get(namespace, key))
        call.answer(entry.value, namespace=namespace, key=key, value=entry.value)


@command("set", "KEY", "VALUE...", keys=("namespace", "key", "expires_at"), example="memory kv set editor vim")
@_namespace_option
@option("--ttl", type=Number(), default=0, metavar="SECONDS", help="Forget it after so many seconds; 0 = never.")
def kv_set(call: Invocation, key: str, *words: str, namespace: str, ttl: int) -> None:
    """Keep VALUE under KEY, in place of what is there. VALUE is joined by blanks; `-` reads it from stdin."""
    from commonplace.clock import stamp
    from commonplace.faces.kv.tools import checked

    with _entries(call) as entries:
        entry = entries.put(*checked(namespace, key, text_from(words), ttl))
        expires: Any = None if entry.expires is None else stamp(entry.expires)
        call.answer(f"Set {key}", namespace=namespace, key=key, expires_at=expires)


@command("del", "KEY...", keys=("namespace", "key"), example="memory kv del editor")
@_namespace_option
def kv_del(call: Invocation, *names: str, namespace: str) -> None:
    """Delete KEY. Of several none is deleted when one is not there."""
    with _entries(call) as entries:
        if len(names) > 1:
            for name in names:
                with _guessing(entries, name, namespace):
                    entries.get(namespace, name)
        for name in dict.fromkeys(names):
            with _guessing(entries, name, namespace):
                entries.remove(namespace, name)
        rows = [{"namespace": namespace, "key": name} for name in dict.fromkeys(names)]
        call.answer_each([f"Deleted {row['key']}" for row in rows], rows)


@command("list", "[TEXT]", keys=("namespace", "entries"), example="memory kv list")
@_namespace_option
@option("--all", "every", is_flag=True, help="The entries of all namespaces, each as NAMESPACE/KEY.")
def kv_list(call: Invocation, text: str = "", *, namespace: str, every: bool) -> None:
    """Print the keys, one a line; with TEXT those that hold it in key or value."""
    with _entries(call) as entries:
        found, _ = entries.search(text, None if every else namespace, _EVERY, 0)
        found = sorted(found, key=lambda each: (each.namespace, each.key))
        names = [f"{each.namespace}/{each.key}" if every else each.key for each in found]
        if call.on_terminal and found:
            cells = [(name, each.value) for name, each in zip(names, found, strict=True)]
            return call.table(("Key", "Value"), cells)
        rows = [{"namespace": each.namespace, "key": each.key, "value": each.value} for each in found]
        if not found and not call.json:  # a script reads names, and there are none
            return output.notice("No entries.")
        call.answer("\n".join(names), namespace=None if every else namespace, entries=rows)
