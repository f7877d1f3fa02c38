"""What a session knows by the events that come in: where it stands, the account, and how runs ended."""

from __future__ import annotations

import asyncio
from collections import deque

from kumiki.errors import KumikiError, SessionClosedError
from kumiki.events import Event
from kumiki.records import BuyingPower

#: Runs whose ends are remembered for who asks late.
_ENDS_KEPT = 100
#: Answers whose ids are remembered for what is said of them afterwards.
_ANSWERS_KEPT = 100
#: Texts of what was left out that wait for somebody who asks.
_LEFT_OUT_KEPT = 1_000


class State:
    """Takes all events of a connection, before anybody else."""

    def __init__(self, session_state: str) -> None:
        #: idle, loaded, running, stopping, stopped or errored.
        self.status = session_state.lower()
        self.portfolio: BuyingPower | None = None
        #: Name of the strategy that runs, where it is known.
        self.strategy_id: str | None = None
        self._left_out: deque[str] = deque(maxlen=_LEFT_OUT_KEPT)
        self._answered: deque[str] = deque(maxlen=_ANSWERS_KEPT)
        self._ends: dict[str, asyncio.Future[Event]] = {}
        self._lost: KumikiError | None = None

    def put(self, event: Event) -> None:
        """Takes an event."""
        if event.name == "ReplayBuyingPower":
            self.portfolio = BuyingPower.of(event)
        elif event.name == "ReplayDataLoaded":
            self.status = "loaded"
        elif event.name == "EngineStarted":
            self.status, self.strategy_id = "running", event["strategy_id"]
        elif event.name == "EngineStopped":
            self.status = "errored" if event["status"] == "fault" else "stopped"
            self.strategy_id = None
            end = self.end_of(event["run_id"])
            if not end.done():
                end.set_result(event)
        elif event.name in ("PositionsUpdated", "BuyingPowerUpdated"):
            # Those of an order's fill answer nobody.
            if event.get("request_id"):
                self._answered.append(event["request_id"])
        elif event.name == "Error" and event.get("request_id") in self._answered:
            # A refusal comes in the place of an answer, this behind it.
            self._left_out.append(event["message"])
        elif event.name == "OrderDiscrepancy" and event["discrepancy"] == "unreadable":
            self._left_out.append(event["message"])

    def take_left_out(self) -> list[str]:
        """What the engine left out of what it gave, as far as nobody was told."""
        left_out = list(self._left_out)
        self._left_out.clear()
        return left_out

    def end(self, error: KumikiError | None) -> None:
        """There are no more events: nothing that was under way is followed any more."""
        self._lost = error or SessionClosedError()
        if error is not None:
            self.status = "errored"
        else:
            self.status = {"running": "stopped", "stopping": "stopped", "loaded": "idle"}.get(self.status, self.status)
        self.strategy_id = None
        for end in self._ends.values():
            if not end.done():
                self._give_up(end)

    def end_of(self, run_id: str) -> asyncio.Future[Event]:
        """The EngineStopped of a run, whether it came or is still to come."""
        end = self._ends.get(run_id)
        if end is None:
            end = self._ends[run_id] = asyncio.get_running_loop().create_future()
            for old in list(self._ends)[:-_ENDS_KEPT]:
                if self._ends[old].done():
                    del self._ends[old]
            if self._lost is not None:
                self._give_up(end)
        return end

    def _give_up(self, end: asyncio.Future[Event]) -> None:
        if self._lost is not None:
            end.set_exception(self._lost)
            # Nobody may ever ask for it.
            end.exception()
