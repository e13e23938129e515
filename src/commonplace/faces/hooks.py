"""Hooks around tool calls, and the events of a session (contract 001, 14).

A hook is any object with some of `before_tool_call(ctx, name, params) -> bool` (False blocks),
`after_tool_call(ctx, name, params, result) -> result | None` and `on_event(event)`. Hooks come from the
Python API or from entry points of the group `commonplace.hooks`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from commonplace.clock import Clock, now, stamp
from commonplace.errors import ConfigError
from commonplace.faces.reply import Reply, refused

QUEUE = 64
_log = logging.getLogger("commonplace.hooks")


@dataclass(slots=True)
class HookContext:
    """Who calls: `agent` is the caller's identity, None the owner."""

    agent: str | None


@dataclass(slots=True)
class Event:
    """`type` is agent_start, agent_end, tool_start, tool_end or error; `timestamp` ISO 8601 UTC."""

    type: str
    timestamp: str
    tool_name: str | None = None
    data: Any = None
    error: str | None = None


@dataclass(slots=True)
class Subscription:
    """Events in order for one subscriber; at most 64 wait, the oldest goes first."""

    waiting: deque[Event] = field(default_factory=lambda: deque(maxlen=QUEUE))

    def drain(self) -> list[Event]:
        """All waiting events, oldest first; afterwards none wait."""
        events = list(self.waiting)
        self.waiting.clear()
        return events


class Hooks:
    """The hooks and subscribers of one registry."""

    def __init__(self, hooks: Iterable[Any] = (), clock: Clock = now):
        self._hooks = list(hooks)
        self._clock = clock
        self._subscriptions: list[Subscription] = []

    @classmethod
    def configured(cls, more: Iterable[Any] = (), clock: Clock = now) -> Hooks:
        """Hooks from the entry points `commonplace.hooks`, then `more`. Raises ConfigError for an entry point that
        cannot be loaded."""
        from importlib.metadata import entry_points

        hooks = []
        for each in entry_points(group="commonplace.hooks"):
            try:
                hooks.append(each.load()())
            except Exception as error:  # foreign code; to go on without it would let through what it should block
                raise ConfigError(f'the hooks "{each.name}" ({each.value}) cannot be loaded: {error}') from error
        return cls([*hooks, *more], clock)

    def subscribe(self) -> Subscription:
        """A queue that receives every event from now on."""
        subscription = Subscription()
        self._subscriptions.append(subscription)
        return subscription

    @contextmanager
    def session(self):
        """agent_start now, agent_end at the end."""
        self._emit("agent_start")
        try:
            yield self
        finally:
            self._emit("agent_end")

    def call(self, agent: str | None, name: str, arguments: Any, run: Callable[[Any], Reply]) -> Reply:
        """`run(arguments)` with hooks and events around it."""
        if not self._hooks and not self._subscriptions:
            return run(arguments)
        context = HookContext(agent)
        self._emit("tool_start", name, arguments)
        if all(_allows(hook, context, name, arguments) for hook in self._having("before_tool_call")):
            reply = run(arguments)
            for hook in self._having("after_tool_call"):
                try:
                    changed = hook.after_tool_call(context, name, arguments, reply)
                    if changed is not None and not isinstance(changed, Reply):
                        raise TypeError(f"it returned a {type(changed).__name__}, not a Reply or None")
                    reply = changed or reply
                except Exception as error:  # a hook is foreign code; it may not break the call
                    _warn("after_tool_call", hook, error)
        else:
            reply = refused(f"tool {name} blocked by before_tool_call hook", "blocked")
        if reply.is_error:
            self._emit("error", name, error=reply.text)
        else:
            self._emit("tool_end", name, reply)
        return reply

    def _having(self, method: str) -> list[Any]:
        return [hook for hook in self._hooks if hasattr(hook, method)]

    def _emit(self, kind: str, tool: str | None = None, data: Any = None, error: str | None = None) -> None:
        event = Event(kind, stamp(self._clock()), tool, data, error)
        for subscription in self._subscriptions:
            subscription.waiting.append(event)
        for hook in self._having("on_event"):
            try:
                hook.on_event(event)
            except Exception as failure:  # foreign code again
                _warn("on_event", hook, failure)


def _warn(method: str, hook: Any, error: Exception) -> None:
    _log.warning("%s of %s failed: %s", method, type(hook).__name__, error)


def _allows(hook: Any, context: HookContext, name: str, arguments: Any) -> bool:
    try:
        return bool(hook.before_tool_call(context, name, arguments))
    except Exception as error:  # foreign code that fails must not let the call through
        _warn("before_tool_call", hook, error)
        return False
