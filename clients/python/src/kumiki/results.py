"""The results of a run: its end, and the tables of its folder as data frames."""

from __future__ import annotations

import importlib
import json
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from kumiki import _arguments
from kumiki.errors import MissingPackageError, ResultsError, StrategyFaultError
from kumiki.times import to_datetime

__all__ = ["RunResult"]


@dataclass(frozen=True)
class RunResult:
    """A run that is over.

    The frames are read from the Parquet files of `run_dir`; `kumiki.schema("replay-run.json")` describes every
    column. They need pandas with pyarrow, or polars.
    """

    run_id: str
    strategy_id: str
    #: completed (at the end of its data), stopped (by a command) or fault (the strategy failed). A live run has no
    #: end of its own.
    status: str
    #: Cash and positions at the last price, in yen. Of a live run, also on paper, the profit or loss without fees.
    final_equity: Decimal
    #: The folder of the results. The engine keeps the last 20 replays, and all live runs.
    run_dir: pathlib.Path
    #: Trades or bars that the strategy got.
    rows_done: int
    #: The end in the time of the market: nanoseconds since 1970 UTC.
    ts_event_ns: int
    #: Why the strategy failed, as a code and in words.
    fault_code: str | None = None
    fault_message: str | None = None

    def __str__(self) -> str:
        end = to_datetime(self.ts_event_ns)
        what, told = "equity", {}
        try:
            if self.manifest().get("run_kind") in ("live", "paper"):
                what = "profit or loss"
            told = {"warning": self.warning(), "not modelled": self.not_modelled()}
        except (OSError, ValueError, AttributeError):
            # The engine keeps the last 20 folders; a result is shown without its own too.
            pass
        lines = [f"run {self.run_id}: {self.status} at {end:%Y-%m-%d %H:%M}, {what} {self.final_equity:,} yen"]
        lines += [f"{name}: {words}" for name, words in told.items() if words]
        return "\n".join(lines)

    def warning(self) -> str | None:
        """A warning for readers of the numbers, for example about price jumps that look like an unknown split."""
        words: str | None = self.manifest().get("warning")
        return words

    def not_modelled(self) -> str | None:
        """What the simulated exchange does not model."""
        words: str | None = self.manifest().get("rules", {}).get("NOT MODELLED")
        return words

    def orders(self, *, backend: str = "pandas", exact: bool = True) -> Any:
        """The orders, one a row, in the order in which they ended."""
        return self.table("orders", backend=backend, exact=exact)

    def fills(self, *, backend: str = "pandas", exact: bool = True) -> Any:
        """The fills, one a row."""
        return self.table("fills", backend=backend, exact=exact)

    def equity(self, *, backend: str = "pandas", exact: bool = True) -> Any:
        """Cash and equity in yen, a row for each minute with trades."""
        return self.table("equity", backend=backend, exact=exact)

    def table(self, name: str, *, backend: str = "pandas", exact: bool = True) -> Any:
        """A table of the run as a data frame: orders, fills, round_trips, positions, equity, marks, days, signals,
        narrative or log.

        `backend` is "pandas" or "polars". Yen are exact decimal numbers; with `exact=False` they are floats, which
        plots and statistics want. Times are UTC. Raises MissingPackageError if a package is not installed, and
        FileNotFoundError if the folder is gone.
        """
        path = self.run_dir / f"{_arguments.text('name', name, 'the name of a table like fills')}.parquet"
        if not path.is_file():
            raise FileNotFoundError(f"there is no {path}; the engine keeps the last runs only")
        return frame(path, backend=backend, exact=exact)

    def summary(self) -> dict[str, Any]:
        """The numbers of the run, as `kumiki.schema("statistics.md")` defines them; money in yen as text."""
        return self._json("summary.json")

    def manifest(self) -> dict[str, Any]:
        """What the run was made from: strategy, parameters, data, execution."""
        return self._json("manifest.json")

    def _json(self, name: str) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads((self.run_dir / name).read_text(encoding="utf-8"))
        return fields


def frame(path: pathlib.Path, *, backend: str, exact: bool) -> Any:
    """A Parquet table as a data frame of pandas or polars, with exact decimals or floats."""
    if backend not in ("pandas", "polars"):
        raise _arguments.wrong("backend", backend, "pandas or polars")
    if backend == "polars":
        polars = _package("polars", "polars")
        table = polars.read_parquet(path)
        return table if exact else table.with_columns(polars.selectors.decimal().cast(polars.Float64))
    _package("pandas", "pandas pyarrow")
    arrow, parquet = _package("pyarrow", "pandas pyarrow"), _package("pyarrow.parquet", "pandas pyarrow")
    rows = parquet.read_table(path)
    if not exact:
        for place, field in enumerate(rows.schema):
            if arrow.types.is_decimal(field.type):
                column = rows.column(place).cast(arrow.float64())
                rows = rows.set_column(place, field.name, column)
    return rows.to_pandas()


def of_event(event: Mapping[str, Any]) -> RunResult:
    """The result in an EngineStopped event.

    Raises StrategyFaultError where the strategy failed, and ResultsError where there are no results.
    """
    fault = event.get("fault") or {}
    result = RunResult(
        run_id=event["run_id"], strategy_id=event["strategy_id"], status=event["status"],
        final_equity=event["final_equity"], run_dir=pathlib.Path(event["run_dir"]), rows_done=event["rows_done"],
        ts_event_ns=event["ts_event_ms"] * 1_000_000, fault_code=fault.get("code"), fault_message=fault.get("message"),
    )
    if result.status != "fault":
        return result
    message = result.fault_message or "the strategy failed"
    if result.fault_code == "results_failed":
        raise ResultsError(message, code="results_failed", result=result)
    raise StrategyFaultError(message, result=result)


def _package(name: str, packages: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackageError(f"{error}; frames need it: pip install {packages}") from None
