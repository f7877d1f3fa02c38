"""The fields of commands that load data and start runs."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

from kumiki import _arguments, _orders
from kumiki._program import Place
from kumiki.errors import NotLoadedError, ValidationError
from kumiki.events import Amount, amount_text
from kumiki.records import LoadedInstrument
from kumiki.times import Date

#: Times real time, 1 to 1,000,000, or as fast as possible.
Multiplier = Union[int, Literal["max"]]
#: What the strategy sees.
Granularity = Literal["Trade", "Minute", "Daily"]
#: How orders are filled: the name of a model, or its values (`ExecutionConfig` of the schemas).
Execution = Union[str, Mapping[str, Any], None]
#: Yen at the start of a replay, as of `kumiki replay run`: the same strategy has the same result in both.
CASH = 10_000_000


def version() -> str:
    """The version of this package; a source tree has none."""
    try:
        return importlib.metadata.version("kumiki")
    except importlib.metadata.PackageNotFoundError:
        return "source"


def instruments(instrument_id: str | Sequence[str]) -> dict[str, Any]:
    """One instrument or several."""
    if isinstance(instrument_id, str):
        ids = [_arguments.text("instrument_id", instrument_id)]
    else:
        ids = _arguments.texts("instrument_id", instrument_id, f"{_orders.INSTRUMENT}, or a list of them")
    if not ids:
        raise ValidationError("instrument_id: name at least one, like 7203.TSE", code="validation_error")
    return {"instrument_id": ids[0], **({"instrument_ids": ids} if len(ids) > 1 else {})}


def load(instrument_id: str | Sequence[str], start_date: Date, end_date: Date, granularity: str) -> dict[str, Any]:
    """The fields of LoadReplayData."""
    granularity = _arguments.text("granularity", granularity, "Trade, Minute or Daily")
    return {**instruments(instrument_id), **_orders.span(start_date, end_date), "granularity": granularity}


def range_of(loaded: Sequence[LoadedInstrument]) -> dict[str, Any]:
    """All that is loaded, where its dates meet."""
    first, last = max(one.start_date for one in loaded), min(one.end_date for one in loaded)
    if first > last or len({one.granularity for one in loaded}) > 1:
        what = ", ".join(f"{one.instrument_id} {one.granularity} {one.start_date} to {one.end_date}" for one in loaded)
        text = f"the loaded data has no common date, or several granularities: {what}; load them again"
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
        "multiplier": _arguments.multiplier(multiplier),
    }
    if isinstance(execution, str):
        fields["execution"] = {"model": _arguments.text("execution", execution)}
    elif execution is not None:
        wanted = 'the name of a model, or a dict of its values, as {"model": "strict", "latency_ns": 5_000_000}'
        fields["execution"] = _arguments.values("execution", execution, wanted)
    return fields


def live_config(
    instrument_id: str, strategy_file: Place, max_qty: int, max_notional_jpy: int,
    parameters: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The config of StartEngine for trading."""
    limits = {
        "max_qty": _arguments.whole("max_qty", max_qty, "shares as a whole number"),
        "max_notional_jpy": _arguments.whole("max_notional_jpy", max_notional_jpy, "yen as a whole number"),
    }
    instrument_id = _arguments.text("instrument_id", instrument_id, _orders.INSTRUMENT)
    return {"instrument_id": instrument_id, **_strategy(strategy_file, parameters), **limits}


def _strategy(strategy_file: Place, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    path = _arguments.place("strategy_file", strategy_file)
    # The engine may have another working directory; what is no file here is the name of a built-in strategy.
    path = os.path.abspath(path) if os.path.isfile(path) else path
    fields: dict[str, Any] = {"strategy_file": _arguments.text("strategy_file", path, "a path")}
    if parameters is not None:
        wanted = 'the parameters by their names, as {"fast": 10}'
        fields["strategy_init_kwargs"] = _arguments.values("strategy_init_kwargs", parameters, wanted)
    return fields
