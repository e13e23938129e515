"""Who wants to be told when a resource changes: both ways the protocol has had for it.

Up to 2025-11-25 a client subscribes to an address and is told on its connection; later revisions have a
stream, `subscriptions/listen`, which the SDK serves. What changed is seen by the version each resource gives,
looked at after every call that used the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from commonplace.serve.offers import NoResource

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.tool import Resource


class Subscriptions:
    """The resources one client watches. `look` and `begin` run on the memory's thread, the rest on the loop."""

    def __init__(self, resources: Mapping[str, Resource]):
        self._resources = resources
        self._versions: dict[str, Any] = {}
        self._told: set[str] = set()
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)

    def begin(self, memory: Memory, uris: Iterable[str]) -> None:
        """Watch those of `uris` that exist from now on."""
        for uri in uris:
            if uri in self._resources:
                self._versions[uri] = self._resources[uri].version(memory)

    def look(self, memory: Memory) -> list[str]:
        """The watched resources that changed since the last look."""
        now = {uri: self._resources[uri].version(memory) for uri in self._versions}
        changed = [uri for uri, version in now.items() if version != self._versions.get(uri)]
        self._versions = now
        return changed

    def subscribe(self, uri: str) -> None:
        """Tell the connection of changes at `uri`. Raises NoResource."""
        if uri not in self._resources:
            raise NoResource(uri, (), self._resources)
        self._told.add(uri)

    def unsubscribe(self, uri: str) -> None:
        """No more of that."""
        self._told.discard(uri)

    async def tell(self, session: Any, uris: Iterable[str]) -> None:
        """Say that `uris` changed to whoever asked."""
        for uri in uris:
            if uri in self._told:
                await session.send_resource_updated(uri)
            await self._bus.publish(ResourceUpdated(uri))

    @property
    def listen(self) -> Callable[[Any, Any], Any]:
        """The SDK's handler of `subscriptions/listen`."""
        return self._listen

    def close(self) -> None:
        """End every stream with its answer, so that nothing stays unanswered."""
        self._listen.close()
