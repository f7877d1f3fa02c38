"""The statistics of a run against those that public packages compute from its files."""

import csv
import json
import math
from decimal import Decimal

import pytest

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")

DAYS_PER_YEAR = 252


def rows(folder, table):
    with open(folder / f"{table}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def summary(run_folder):
    return json.loads((run_folder / "summary.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def daily(run_folder, summary):
    """Daily returns; the first day is against the cash at the start."""
    days = rows(run_folder, "days")
    equity = pd.Series([float(day["equity"]) for day in days], index=pd.to_datetime([day["date"] for day in days]))
    before = equity.shift(1)
    before.iloc[0] = float(summary["cash_start"])
    returns = equity / before - 1
    assert len(returns) >= 30 and returns.std() > 0, "the sample run is too quiet to compare anything"
    return returns


@pytest.fixture(scope="module")
def minutes(run_folder, summary):
    """Equity by minutes, the cash at the start in front."""
    equity = [float(row["equity"]) for row in rows(run_folder, "equity")]
    return pd.Series([float(summary["cash_start"]), *equity])


def close(found, wanted):
    assert found is not None
    assert math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12), f"{found} is not {wanted}"


def test_empyrical_agrees(summary, daily, minutes):
    empyrical = pytest.importorskip("empyrical")
    close(summary["sharpe"], empyrical.sharpe_ratio(daily, annualization=DAYS_PER_YEAR))
    close(summary["sortino"], empyrical.sortino_ratio(daily, annualization=DAYS_PER_YEAR))
    close(summary["volatility"], empyrical.annual_volatility(daily, annualization=DAYS_PER_YEAR))
    close(summary["cagr"], empyrical.cagr(daily, annualization=DAYS_PER_YEAR))
    close(summary["return_ratio"], empyrical.cum_returns_final(daily))
    by_minute = minutes.pct_change().dropna()
    close(summary["max_drawdown_ratio"], -empyrical.max_drawdown(by_minute))


def test_quantstats_agrees(summary, daily, minutes):
    stats = pytest.importorskip("quantstats").stats
    close(summary["sharpe"], float(stats.sharpe(daily, periods=DAYS_PER_YEAR)))
    close(summary["sortino"], float(stats.sortino(daily, periods=DAYS_PER_YEAR)))
    close(summary["volatility"], float(stats.volatility(daily, periods=DAYS_PER_YEAR)))
    close(summary["best_day"], float(stats.best(daily)))
    close(summary["worst_day"], float(stats.worst(daily)))
    drawdown = minutes / minutes.cummax() - 1
    close(summary["max_drawdown_ratio"], -float(drawdown.min()))
    close(summary["calmar"], summary["cagr"] / summary["max_drawdown_ratio"])


def test_round_trips_agree(run_folder, summary):
    pnl = [Decimal(row["pnl"]) for row in rows(run_folder, "round_trips")]
    wins = [one for one in pnl if one > 0]
    losses = [one for one in pnl if one < 0]
    assert summary["round_trips"] == len(pnl) > 10
    close(summary["win_rate"], len(wins) / len(pnl))
    close(summary["profit_factor"], float(sum(wins) / -sum(losses)))
    assert abs(Decimal(summary["expectancy"]) - sum(pnl) / len(pnl)) < Decimal("0.0001")
    assert abs(Decimal(summary["average_win"]) - sum(wins) / len(wins)) < Decimal("0.0001")
    assert abs(Decimal(summary["average_loss"]) - sum(losses) / len(losses)) < Decimal("0.0001")


def test_costs_agree(run_folder, summary):
    fills = rows(run_folder, "fills")
    value = sum(Decimal(fill["price"]) * int(fill["quantity"]) for fill in fills)
    assert Decimal(summary["turnover"]) == value
    assert Decimal(summary["slippage"]) == sum(Decimal(fill["slippage"]) for fill in fills)
    assert summary["our_volume"] == sum(int(fill["quantity"]) for fill in fills)
    close(summary["participation"], summary["our_volume"] / int(summary["market_volume"]))


def test_fills_make_the_equity(run_folder, summary):
    """Cash and positions rebuilt from the fills alone, against every minute of the equity."""
    fills = rows(run_folder, "fills")
    marks = rows(run_folder, "marks")
    cash, held, price, place = Decimal(summary["cash_start"]), 0, Decimal(0), 0
    by_minute = {row["ts_event_ns"]: row for row in marks}
    for row in rows(run_folder, "equity"):
        end = int(row["ts_event_ns"])
        while place < len(fills) and int(fills[place]["ts_event_ns"]) < end:
            fill = fills[place]
            sign = 1 if fill["side"] == "BUY" else -1
            cash -= sign * Decimal(fill["price"]) * int(fill["quantity"]) + Decimal(fill["commission"])
            held += sign * int(fill["quantity"])
            place += 1
        price = Decimal(by_minute[row["ts_event_ns"]]["price"])
        assert Decimal(row["cash"]) == cash
        assert Decimal(row["equity"]) == cash + held * price
    assert place == len(fills)


def test_parquet_holds_the_same(run_folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    for table in ["orders", "fills", "round_trips", "positions", "equity", "marks", "days", "signals", "narrative", "log"]:
        found = parquet.read_table(run_folder / f"{table}.parquet")
        wanted = rows(run_folder, table)
        assert found.num_rows == len(wanted), table
        if table == "fills":
            prices = [Decimal(row["price"]) for row in wanted]
            assert found.column("price").to_pylist() == prices
            assert str(found.schema.field("ts_event_ns").type) == "timestamp[ns, tz=UTC]"


def test_numbers_are_finite(summary):
    for name, value in summary.items():
        if isinstance(value, float):
            assert np.isfinite(value), name
