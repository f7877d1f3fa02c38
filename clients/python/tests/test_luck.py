"""How much of a sweep's best run may be luck: our numbers against the papers' formulas, and those against a
public package."""

import csv
import json
import math
import pathlib
import sys

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("scipy")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import luck  # noqa: E402  (it stands beside the tests' folder)

WAYS = math.comb(luck.BLOCKS, luck.BLOCKS // 2)


@pytest.fixture(scope="module")
def golden():
    return json.loads(luck.GOLDEN.read_text(encoding="utf-8"))["vectors"]


def close(found, wanted, tolerance=1e-9):
    assert found is not None and wanted is not None
    assert math.isclose(found, wanted, rel_tol=tolerance, abs_tol=tolerance), f"{found} is not {wanted}"


def test_the_golden_vectors_are_what_the_papers_give(golden):
    for vector in golden:
        again = luck.vector(vector["name"], np.array(vector["runs"]).T)
        assert again["overfitted_choices"] == vector["overfitted_choices"], vector["name"]
        close(again["expected_max_sharpe"], vector["expected_max_sharpe"])
        for found, wanted in zip(again["deflated_sharpe"], vector["deflated_sharpe"], strict=True):
            assert (found is None) == (wanted is None)
            if wanted is not None:
                close(found, wanted)


def test_a_public_package_agrees(golden):
    sharpebench = pytest.importorskip("sharpebench")
    for vector in golden:
        returns = np.array(vector["runs"]).T
        sharpes = luck.sharpe(returns)
        sharpes = sharpes[~np.isnan(sharpes)]
        deviation, trials = float(np.std(sharpes, ddof=1)), len(sharpes)
        # Its normal distribution has seven digits.
        close(sharpebench.expected_max_sharpe(deviation, trials), vector["expected_max_sharpe"], 1e-6)
        for run, wanted in zip(returns.T, vector["deflated_sharpe"], strict=True):
            if wanted is not None:
                found = sharpebench.deflated_sharpe_ratio(run.tolist(), n_trials=trials, trials_sr_std=deviation)
                close(found, wanted, 1e-6)
        # What it does with runs that are equal is its own affair.
        even = len(returns) % luck.BLOCKS == 0 and "twins" not in vector["name"]
        if even:
            found = sharpebench.probability_of_backtest_overfitting(returns.tolist(), luck.BLOCKS)
            close(found, vector["overfitted_choices"] / WAYS)


def test_a_sweep_says_the_same(sweep_folder):
    """The returns of each run come from single runs of the same parameters."""
    manifest = json.loads((sweep_folder / "sweep" / "sweep.json").read_text(encoding="utf-8"))
    with open(sweep_folder / "sweep" / "sweep.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    returns = []
    for row in table:
        folder = sweep_folder / f"run-{row['param_fast']}-{row['param_slow']}"
        with open(folder / "days.csv", newline="", encoding="utf-8") as file:
            equity = [float(day["equity"]) for day in csv.DictReader(file)]
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        assert summary["event_log_digest"] == row["digest"]
        returns.append(np.diff(equity, prepend=float(summary["cash_start"])) / [float(summary["cash_start"]), *equity[:-1]])
    returns = np.array(returns).T
    sharpes = luck.sharpe(returns)
    assert len(table) == 9 and not np.isnan(sharpes).any() and len(set(sharpes)) == 9
    found = manifest["luck"]
    year = math.sqrt(252)
    assert found["trials"] == found["overfitting_runs"] == 9
    close(found["trial_sharpe_deviation"], float(np.std(sharpes, ddof=1)) * year)
    close(found["expected_max_sharpe"], luck.expected_max_sharpe(sharpes) * year)
    best = manifest["best_run"]
    assert best == int(np.argmax(sharpes))
    close(found["deflated_sharpe"], luck.deflated_sharpe(returns[:, best], sharpes))
    close(found["overfitting_probability"], luck.overfitted_choices(returns) / WAYS)
    for run, row in zip(returns.T, table, strict=True):
        close(float(row["deflated_sharpe"]), luck.deflated_sharpe(run, sharpes))
        assert row["verified"] == "yes"
