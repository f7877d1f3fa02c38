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
#: What a strategy sees of the live market.
LiveGranularity = Literal["Trade", "Minute"]
#: How orders are filled: the name of a model, or its values (`ExecutionConfig` of the schemas).
Execution = Union[str, Mapping[str, Any], None]
#: Yen at the start of a run, as of `kumiki replay run`: the same strategy has the same result in both.
CASH = 10_000_000
#: Orders in a minute and at the same time that a strategy with real orders sends at most, unless told otherwise.
_REAL_ORDERS_PER_MINUTE, _REAL_OPEN_ORDERS = 30, 10
#: The limits of a live strategy's orders, and what is wanted where one is something else.
_SHARES, _YEN = "shares as a whole number", "yen as a whole number"
_LIMITS = {
    "max_qty": _SHARES, "max_notional_jpy": _YEN, "max_orders_per_minute": "a whole number of orders",
    "max_open_orders": "a whole number of orders", "max_daily_loss_jpy": _YEN, "max_position_qty": _SHARES,
}


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
    return {
        **_strategy(strategy_file, parameters), "initial_cash": amount_text("initial_cash", initial_cash),
        "multiplier": _arguments.multiplier(multiplier), **_execution(execution),
    }


def live_config(
    instrument_id: str | Sequence[str], strategy_file: Place, parameters: Mapping[str, Any] | None, *, paper: bool,
    granularity: str, initial_cash: Amount, execution: Execution, max_qty: int, max_notional_jpy: int,
    **limits: int | None,
) -> dict[str, Any]:
    """The config of StartEngine for the live market (pins P82, P83, P119, P123); on paper a limit that is None is
    none."""
    limits = {"max_qty": max_qty, "max_notional_jpy": max_notional_jpy, **limits}
    needed = ("max_qty", "max_notional_jpy")
    if _arguments.flag("paper", paper):
        where = {"paper": True, "initial_cash": amount_text("initial_cash", initial_cash), **_execution(execution)}
    else:
        where = {}
        for name, is_given in (("initial_cash", initial_cash != CASH), ("execution", execution is not None)):
            if is_given:
                text = f"{name}: real orders have none; leave it out, or run on paper"
                raise ValidationError(text, code="validation_error")
        usual = {
            "max_position_qty": max_qty, "max_orders_per_minute": _REAL_ORDERS_PER_MINUTE,
            "max_open_orders": _REAL_OPEN_ORDERS,
        }
        limits = {name: usual.get(name) if most is None else most for name, most in limits.items()}
    return {
        **instruments(instrument_id), **_strategy(strategy_file, parameters), **where,
        "granularity": _arguments.text("granularity", granularity, "Trade or Minute"),
        **{name: _arguments.whole(name, most, _LIMITS[name]) for name, most in limits.items()
           if most is not None or name in needed},
    }


def live_id(strategy_id: str | None, strategy_file: Place, paper: bool) -> str:
    """The name of a live run's strategy. With real orders it takes over what it holds under that name, so it is the
    file's own (pin P126)."""
    if strategy_id is not None:
        return strategy_id
    return "live-strategy" if paper else os.path.basename(str(strategy_file)).removesuffix(".wasm")


def _execution(execution: Execution) -> dict[str, Any]:
    if execution is None:
        return {}
    if isinstance(execution, str):
        return {"execution": {"model": _arguments.text("execution", execution)}}
    wanted = 'the name of a model, or a dict of its values, as {"model": "strict", "latency_ns": 5_000_000}'
    return {"execution": _arguments.values("execution", execution, wanted)}


def _strategy(strategy_file: Place, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    path = _arguments.place("strategy_file", strategy_file)
    # The engine may have another working directory; what is no file here is the name of a built-in strategy.
    path = os.path.abspath(path) if os.path.isfile(path) else path
    fields: dict[str, Any] = {"strategy_file": _arguments.text("strategy_file", path, "a path")}
    if parameters is not None:
        wanted = 'the parameters by their names, as {"fast": 10}'
        fields["strategy_init_kwargs"] = _arguments.values("strategy_init_kwargs", parameters, wanted)
    return fields
