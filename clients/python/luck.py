"""The deflated Sharpe ratio and the probability of backtest overfitting from their papers, with numpy and
scipy and nothing of ours, and the golden vectors that the tests of both languages read:

    python clients/python/luck.py

writes `tests/golden/luck.json` anew.

Bailey, Lopez de Prado (2014): The Deflated Sharpe Ratio. Journal of Portfolio Management 40 (5).
Bailey, Borwein, Lopez de Prado, Zhu (2015): The Probability of Backtest Overfitting. Journal of
Computational Finance.
"""

import itertools
import json
import pathlib

import numpy as np
from scipy import stats

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "luck.json"
BLOCKS = 16


def sharpe(returns):
    """Sharpe ratios of a day of the columns; not a number where returns do not differ."""
    deviation = np.std(returns, axis=0, ddof=1)
    differ = np.ptp(returns, axis=0) > 0
    return np.where(differ, np.mean(returns, axis=0) / np.where(differ, deviation, 1), np.nan)


def expected_max_sharpe(sharpes):
    """The Sharpe ratio that the best of trials without skill shows (equation 1 of the first paper)."""
    trials = len(sharpes)
    if trials < 2:
        return 0.0
    quantiles = stats.norm.isf([1 / trials, 1 / (trials * np.e)])
    return float(np.std(sharpes, ddof=1) * np.dot([1 - np.euler_gamma, np.euler_gamma], quantiles))


def deflated_sharpe(returns, trial_sharpes):
    """Of one run, chosen from trials (equation 2); none where its returns do not differ."""
    own = float(sharpe(returns[:, None])[0])
    if np.isnan(own) or len(returns) < 3:
        return None
    skewness, kurtosis = stats.skew(returns), stats.kurtosis(returns, fisher=False)
    error = np.sqrt(1 - skewness * own + (kurtosis - 1) / 4 * own**2)
    above = (own - expected_max_sharpe(trial_sharpes)) * np.sqrt(len(returns) - 1)
    return float(stats.norm.cdf(above / error))


def overfitted_choices(returns):
    """Of how many choices of half of the blocks the best run is in the lower half on the other half: days
    down, runs across. A run whose returns do not differ counts as a Sharpe ratio of 0."""
    blocks = np.array_split(returns, BLOCKS)
    chosen = np.array(list(itertools.combinations(range(BLOCKS), BLOCKS // 2)))
    # The last combination is the complement of the first, and so on inwards.
    others = chosen[::-1]
    inside, outside = (half_sharpes(blocks, half) for half in (chosen, others))
    best = np.argmax(inside, axis=1)
    ranks = stats.rankdata(outside, axis=1)[np.arange(len(best)), best]
    relative = ranks / (returns.shape[1] + 1)
    return int(np.sum(np.log(relative / (1 - relative)) <= 0))


def half_sharpes(blocks, halves):
    """The Sharpe ratios of the runs on the days of each half, from sums of returns and of squares."""
    days = np.array([len(block) for block in blocks])[halves].sum(axis=1)[:, None]
    sums = np.array([block.sum(axis=0) for block in blocks])[halves].sum(axis=1)
    squares = np.array([(block**2).sum(axis=0) for block in blocks])[halves].sum(axis=1)
    variance = (squares - sums**2 / days) / (days - 1)
    return np.where(variance > 0, sums / days / np.sqrt(np.where(variance > 0, variance, 1)), 0)


def matrices():
    """Daily returns with a name: noise, skill, fat tails, a period that blocks cannot share evenly, runs
    that do the same and one that does nothing."""
    random = np.random.default_rng(20150227)

    def noise(days, runs, scale=0.01):
        return random.normal(0, scale, (days, runs))

    skill = noise(64, 5)
    skill[:, 3] += 0.006
    tails = random.standard_t(3, (80, 6)) * 0.005
    twins = noise(48, 5)
    twins[:, 4] = twins[:, 1]
    twins[:, 0] = 0
    return {
        "noise": noise(96, 8),
        "skill": skill,
        "fat tails": tails,
        "uneven blocks": noise(45, 4) + 0.001,
        "twins and one that does nothing": twins,
        "fewest days": noise(32, 3),
    }


def vector(name, returns):
    # Enough digits that no sum of returns is zero by chance: a run that does nothing would tie with it.
    returns = np.round(returns, 12)
    sharpes = sharpe(returns)
    trials = sharpes[~np.isnan(sharpes)]
    return {
        "name": name,
        "runs": [[float(day) for day in run] for run in returns.T],
        "expected_max_sharpe": expected_max_sharpe(trials),
        "deflated_sharpe": [deflated_sharpe(run, trials) for run in returns.T],
        "overfitted_choices": overfitted_choices(returns),
    }


def golden():
    return {"vectors": [vector(name, returns) for name, returns in matrices().items()]}


if __name__ == "__main__":
    lines = ",\n".join("  " + json.dumps(one) for one in golden()["vectors"])
    GOLDEN.write_text('{"vectors": [\n' + lines + "\n]}\n", encoding="utf-8")
