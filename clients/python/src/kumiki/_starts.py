"""The fields of commands that load data and start runs."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

from kumiki import _orders
from kumiki._program import Place
from kumiki.errors import NotLoadedError
from kumiki.events import Amount, amount_text
from kumiki.records import LoadedInstrument
from kumiki.times import Date

#: Times real time, 1 to 1,000,000, or as fast as possible.
Multiplier = Union[int, Literal["max"]]
#: What the strategy sees.
Granularity = Literal["Trade", "Minute", "Daily"]
#: How orders are filled: the name of a model, or its values (`ExecutionConfig` of the schemas).
Execution = Union[str, Mapping[str, Any], None]


def version() -> str:
    """The version of this package; a source tree has none."""
    try:
        return importlib.metadata.version("kumiki")
    except importlib.metadata.PackageNotFoundError:
        return "source"


def instruments(instrument_id: str | Sequence[str]) -> dict[str, Any]:
    """One instrument or several."""
    ids = [instrument_id] if isinstance(instrument_id, str) else list(instrument_id)
    if not ids:
        raise ValueError("instrument_id: name at least one instrument, like 7203.TSE")
    return {"instrument_id": ids[0], **({"instrument_ids": ids} if len(ids) > 1 else {})}


def load(instrument_id: str | Sequence[str], start_date: Date, end_date: Date, granularity: str) -> dict[str, Any]:
    """The fields of LoadReplayData."""
    return {**instruments(instrument_id), **_orders.span(start_date, end_date), "granularity": granularity}


def range_of(loaded: Sequence[LoadedInstrument]) -> dict[str, Any]:
    """All that is loaded, where its dates meet."""
    first, last = max(one.start_date for one in loaded), min(one.end_date for one in loaded)
    if first > last or len({one.granularity for one in loaded}) > 1:
        what = ", ".join(f"{one.instrument_id} {one.granularity} {one.start_date} to {one.end_date}" for one in loaded)
        text = f"what is loaded has no date in common, or not the same granularity: {what}"
        raise NotLoadedError(text, code="not_loaded")
    ids = [one.instrument_id for one in loaded]
    return {**instruments(ids), "start_date": first, "end_date": last, "granularity": loaded[0].granularity}


def config(
    strategy_file: Place, initial_cash: Amount, multiplier: Multiplier, parameters: Mapping[str, Any] | None,
    execution: Execution,
) -> dict[str, Any]:
    """The config of StartEngine for a replay, other than what is replayed."""
    fields = {
        **_strategy(strategy_file, parameters), "initial_cash": amount_text("initial_cash", initial_cash),
        "multiplier": multiplier,
    }
    if execution is not None:
        fields["execution"] = {"model": execution} if isinstance(execution, str) else dict(execution)
    return fields


def live_config(
    instrument_id: str, strategy_file: Place, max_qty: int, max_notional_jpy: int,
    parameters: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The config of StartEngine for trading."""
    limits = {"max_qty": max_qty, "max_notional_jpy": max_notional_jpy}
    return {"instrument_id": instrument_id, **_strategy(strategy_file, parameters), **limits}


def _strategy(strategy_file: Place, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    path = os.fspath(strategy_file)
    # The engine may have another working directory; what is no file here is the name of a built-in strategy.
    fields: dict[str, Any] = {"strategy_file": os.path.abspath(path) if os.path.isfile(path) else path}
    if parameters is not None:
        fields["strategy_init_kwargs"] = dict(parameters)
    return fields
