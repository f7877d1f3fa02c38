"""Streams of events, one after another, in an event loop or in threads."""

from __future__ import annotations

import asyncio
import collections
import queue
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Callable, Generic, Optional, TypeVar, Union

from kumiki import _arguments
from kumiki.errors import EngineTimeoutError, KumikiError, TooSlowError
from kumiki.events import Event

#: Bytes of events that wait for who takes them: with more something is too slow to ever keep up. A replay at full
#: speed sends some hundred bytes for each trade that is subscribed.
WAITING_BYTES_MAX = 1 << 30


R = TypeVar("R")


class _End:
    """The end of the events, and why."""

    def __init__(self, error: KumikiError | None) -> None:
        self.error = error


_Item = Union[Event, _End]


class _Stream:
    """What both kinds of streams do in the event loop."""

    def __init__(self, names: tuple[str, ...], timeout: float | None) -> None:
        self._names = frozenset(_arguments.texts("names", names, "names of events"))
        self._timeout = _arguments.maybe_seconds("timeout", timeout)
        self._over = False
        # Bytes put in and taken out; each is counted on a thread of its own.
        self._bytes_in = self._bytes_out = 0
        #: Gives the events up; set by who registers the stream.
        self.leave: Callable[[], object] = lambda: None

    def put(self, event: Event) -> None:
        """Takes an event."""
        if self._over or (self._names and event.name not in self._names):
            return
        self._bytes_in += event.size
        if self._bytes_in - self._bytes_out <= WAITING_BYTES_MAX:
            return self._push(event)
        text = f"{WAITING_BYTES_MAX >> 20:,} MiB of events were waiting; take them faster, or subscribe less"
        return self.end(TooSlowError(text))

    def end(self, error: KumikiError | None) -> None:
        """There are no more."""
        if not self._over:
            self._over = True
            self._push(_End(error))

    def _push(self, item: _Item) -> None:
        raise NotImplementedError


def _late(timeout: float) -> EngineTimeoutError:
    return EngineTimeoutError(f"no such event within {timeout:g} s")


class AsyncEventStream(_Stream):
    """Events in their order, for `async for`. It ends with the session; a lost connection raises
    ConnectionLostError, and more than 1 GiB of waiting events TooSlowError."""

    def __init__(self, names: tuple[str, ...] = (), timeout: float | None = None) -> None:
        super().__init__(names, timeout)
        self._items: collections.deque[_Item] = collections.deque()
        self._wake: Optional[asyncio.Future[None]] = None

    def _push(self, item: _Item) -> None:
        self._items.append(item)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._items:
            self._wake = asyncio.get_running_loop().create_future()
            done, _ = await asyncio.wait({self._wake}, timeout=self._timeout)
            if not done:
                raise _late(self._timeout or 0)
        item = self._items.popleft()
        if isinstance(item, Event):
            self._bytes_out += item.size
            return item
        self._items.append(item)
        if item.error is not None:
            raise item.error
        raise StopAsyncIteration

    def close(self) -> None:
        """Gives the events up."""
        self.leave()
        self._items.clear()
        self._over = False
        self.end(None)

    async def __aenter__(self) -> AsyncEventStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class EventStream(_Stream):
    """Events in their order, for `for`. It ends with the session; a lost connection raises
    ConnectionLostError, and more than 1 GiB of waiting events TooSlowError."""

    def __init__(self, names: tuple[str, ...] = (), timeout: float | None = None) -> None:
        super().__init__(names, timeout)
        self._items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._last: _End | None = None

    def _push(self, item: _Item) -> None:
        self._items.put(item)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        item = self._last or self._take()
        if isinstance(item, Event):
            self._bytes_out += item.size
            return item
        self._last = item
        if item.error is not None:
            raise item.error
        raise StopIteration

    def _take(self) -> _Item:
        end = None if self._timeout is None else time.monotonic() + self._timeout
        while True:
            # In pieces: a wait without an end cannot be interrupted everywhere.
            left = 0.5 if end is None else min(0.5, end - time.monotonic())
            try:
                return self._items.get(timeout=max(left, 0))
            except queue.Empty:
                if end is not None and time.monotonic() >= end:
                    raise _late(self._timeout or 0) from None

    def close(self) -> None:
        """Gives the events up."""
        self._last = _End(None)
        self._over = True
        self.leave()

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncRecordStream(Generic[R]):
    """Records of one kind in their order, for `async for`; it ends as the events do of which they are made."""

    def __init__(self, events: AsyncEventStream, read: Callable[[Event], list[R]]) -> None:
        self._events, self._read = events, read
        self._waiting: collections.deque[R] = collections.deque()

    def __aiter__(self) -> AsyncIterator[R]:
        return self

    async def __anext__(self) -> R:
        while not self._waiting:
            self._waiting.extend(self._read(await self._events.__anext__()))
        return self._waiting.popleft()

    def close(self) -> None:
        """Ends the subscription."""
        self._events.close()

    async def __aenter__(self) -> AsyncRecordStream[R]:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()


class RecordStream(Generic[R]):
    """Records of one kind in their order, for `for`; it ends as the events do of which they are made."""

    def __init__(self, events: EventStream, read: Callable[[Event], list[R]]) -> None:
        self._events, self._read = events, read
        self._waiting: collections.deque[R] = collections.deque()

    def __iter__(self) -> Iterator[R]:
        return self

    def __next__(self) -> R:
        while not self._waiting:
            self._waiting.extend(self._read(next(self._events)))
        return self._waiting.popleft()

    def close(self) -> None:
        """Ends the subscription."""
        self._events.close()

    def __enter__(self) -> RecordStream[R]:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
