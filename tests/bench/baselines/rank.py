"""The same rankings with numpy and Polars, as baselines of `cargo xtask bench rank`.

Started by the bench with the folder of the columns (raw little-endian doubles, day by day), the number
of days and of issues. Each line of standard input is a request in JSON; each is answered with a line:
the milliseconds taken, and the SHA-256 of the rows found (issue as u32, value as f64, in order), so
that the bench can see that the answer is right.
"""

import hashlib
import json
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

NAMES = ("open", "high", "low", "close", "volume")
CHUNK_DAYS = 16

# Each formula over a function that gives a column with a lag.
FORMULAS = {
    "1lag": lambda get: (get("close", 0) - get("close", 5)) / get("close", 5) * 100.0,
    "3lags": lambda get: get("close", 0) / get("close", 1) * 0.5
    + get("close", 0) / get("close", 5) * 0.3
    + get("close", 0) / get("close", 20) * 0.2,
    "lag250": lambda get: get("close", 0) / get("close", 250) * 100.0,
    "nolag": lambda get: (get("high", 0) - get("low", 0)) / get("close", 0) * 100.0,
    "cxv": lambda get: get("close", 0) * get("volume", 0),
}
REACH = {"1lag": 5, "3lags": 20, "lag250": 250, "nolag": 0, "cxv": 0}


class Data:
    def __init__(self, folder, days, codes):
        self.days, self.codes = days, codes
        self.columns = {
            name: np.fromfile(Path(folder) / f"{name}.f64", "<f8").reshape(days, codes) for name in NAMES
        }
        frame = {
            "day": np.repeat(np.arange(days, dtype=np.int32), codes),
            "code": np.tile(np.arange(codes, dtype=np.int32), days),
        }
        frame |= {name: pl.Series(column.ravel()).fill_nan(None) for name, column in self.columns.items()}
        self.frame = pl.DataFrame(frame)


def by_numpy(data, case, first, end, limit):
    """Chunks of days that fit into the cache; partition, then the few that are left sorted."""
    found = []
    for start in range(max(first, REACH[case]), end, CHUNK_DAYS):
        stop = min(start + CHUNK_DAYS, end)
        values = FORMULAS[case](lambda name, lag: data.columns[name][start - lag : stop - lag])
        close = data.columns["close"][start:stop]
        np.copyto(values, -np.inf, where=~np.isfinite(values) | np.isnan(close))
        places = np.argpartition(values, data.codes - limit, axis=1)[:, data.codes - limit :]
        # Ties at the border: every place with the border's value may be the one with the lower code.
        border = np.take_along_axis(values, places, 1).min(1)
        tied = (values >= border[:, None]).sum(1) > limit
        for row in np.flatnonzero(tied):
            best = np.flatnonzero(values[row] >= border[row])
            places[row] = best[np.lexsort((best, -values[row][best]))][:limit]
        chosen = np.take_along_axis(values, places, 1)
        order = np.lexsort((places, -chosen), axis=1)
        places = np.take_along_axis(places, order, 1)
        chosen = np.take_along_axis(chosen, order, 1)
        kept = chosen > -np.inf
        closes = np.take_along_axis(close, places, 1)[kept]
        volumes = np.take_along_axis(data.columns["volume"][start:stop], places, 1)[kept]
        found.append((places[kept], chosen[kept], closes, volumes))
    return [np.concatenate(part) for part in zip(*found)][:2]


def by_polars(data, case, first, end, limit):
    """Dense frame: a lag is a shift by so many times the issues. A border for each day, then a sort."""
    start = max(first - REACH[case], 0)
    frame = data.frame.slice(start * data.codes, (end - start) * data.codes).lazy()
    value = FORMULAS[case](lambda name, lag: pl.col(name).shift(lag * data.codes) if lag else pl.col(name))
    ranked = (
        frame.with_columns(value=value)
        .select("day", "code", "value", "close", "volume")
        .filter(pl.col("day") >= first, pl.col("close").is_not_null(), pl.col("value").is_not_null())
    )
    border = ranked.group_by("day").agg(border=pl.col("value").top_k(limit).min())
    rows = (
        ranked.join(border, on="day")
        .filter(pl.col("value") >= pl.col("border"))
        .sort("day", "value", "code", descending=[False, True, False])
        .group_by("day", maintain_order=True)
        .head(limit)
        .collect()
    )
    return rows["code"].to_numpy(), rows["value"].to_numpy()


def main():
    data = Data(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    versions = {"numpy": np.__version__, "polars": pl.__version__, "polars_threads": pl.thread_pool_size()}
    print(json.dumps(versions), flush=True)
    engines = {"numpy": by_numpy, "polars": by_polars}
    for line in sys.stdin:
        asked = json.loads(line)
        started = time.perf_counter()
        codes, values = engines[asked["engine"]](
            data, asked["case"], asked["first"], asked["end"], asked["limit"]
        )
        taken = time.perf_counter() - started
        rows = np.empty(len(codes), dtype=[("code", "<u4"), ("value", "<f8")])
        rows["code"], rows["value"] = codes, values
        digest = hashlib.sha256(rows.tobytes()).hexdigest()
        print(json.dumps({"ms": taken * 1e3, "rows": len(codes), "sha256": digest}), flush=True)


if __name__ == "__main__":
    main()
