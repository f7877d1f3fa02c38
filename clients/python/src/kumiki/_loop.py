"""An event loop on a thread of its own, for callers that are not in one, or that are in one and do not await."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import threading
from collections.abc import Coroutine
from typing import Any, Callable, TypeVar

from kumiki.errors import SessionClosedError

T = TypeVar("T")
P = TypeVar("P")


async def _end_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=1)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


class LoopThread:
    """The loop of one session."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="kumiki-session", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            # Who still waits for something is told that the session was closed.
            self._loop.run_until_complete(_end_all())
        finally:
            self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Does it in the loop, and gives what comes of it."""
        future = self._submit(work)
        try:
            while True:
                # In pieces: a wait without an end cannot be interrupted everywhere.
                concurrent.futures.wait((future,), timeout=0.5)
                if future.done() or self._is_over():
                    return self._answer(future)
        except BaseException:
            future.cancel()
            raise

    def call_with(
        self, make: Callable[[Callable[[P], None]], Coroutine[Any, Any, T]], tell: Callable[[P], object]
    ) -> T:
        """The same for work that tells something meanwhile: `tell` is called on the caller's thread, where it may
        use the session."""
        told: queue.SimpleQueue[tuple[P] | None] = queue.SimpleQueue()
        future = self._submit(make(lambda one: told.put((one,))))
        future.add_done_callback(lambda _: told.put(None))
        try:
            while True:
                try:
                    one = told.get(timeout=0.5)
                except queue.Empty:
                    if not self._is_over():
                        continue
                    one = None
                if one is None:
                    return self._answer(future)
                tell(one[0])
        except BaseException:
            future.cancel()
            raise

    def tell(self, work: Callable[[], object]) -> None:
        """Does it in the loop, soon; not at all where the loop has ended."""
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:
            pass

    def _submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("this call would wait for itself; make it from another thread")
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            # The loop has ended.
            work.close()
            raise SessionClosedError() from None

    def _is_over(self) -> bool:
        """Whether nothing is done any more, not even what came just before the end."""
        return not self._thread.is_alive()

    def _answer(self, future: concurrent.futures.Future[T]) -> T:
        if not future.done() or future.cancelled():
            raise SessionClosedError()
        return future.result()

    def close(self) -> None:
        """Ends the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
