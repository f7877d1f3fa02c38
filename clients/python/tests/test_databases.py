"""The databases that the daily job writes are opened by DuckDB's own Python packages: the oldest that the pages name,
the one of this program's release, and the newest."""

import gzip
import pathlib
import subprocess
import sys

import pytest

from conftest import program

VERSIONS = ("1.2.2", "1.5.6", "2.0.1")
CODES = (1301, 1305, 7203, 9984)
DAYS = ("2025-12-01", "2025-12-02", "2025-12-03")
READ = """
import sys, duckdb
for path, table in zip(sys.argv[1::2], sys.argv[2::2]):
    with duckdb.connect(path, read_only=True) as connection:
        rows = connection.execute(f"SELECT count(*), min(close), max(volume) FROM {table}").fetchone()
        print(table, *rows)
"""


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    """A data directory that the job filled from a vendor's file."""
    folder = tmp_path_factory.mktemp("prices")
    files = folder / "vendor"
    files.mkdir()
    with gzip.open(files / "equities_bars_daily_202512.csv.gz", "wt", encoding="utf-8") as file:
        print("Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor", file=file)
        for number, day in enumerate(DAYS):
            for code in CODES:
                close, volume = code + number, 100 * (code + number)
                row = (day, f"{code}0", close, close + 5, close - 5, close, 0, 0, volume, volume * close, "1.0")
                print(*row, sep=",", file=file)
    data = folder / "data"
    command = [program(), "update", "--data-dir", data, "--from-files", files]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (data / "jp" / "stocks_daily" / "mother.db").is_file(), ended.stderr
    return data


def interpreter_with(version):
    """The folder of a version of the package: installed once beside the tests' own packages."""
    folder = pathlib.Path(sys.prefix) / f"duckdb-{version}"
    if not (folder / "duckdb").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, f"duckdb=={version}"]
        ended = subprocess.run(pip, capture_output=True, text=True, timeout=600)
        if ended.returncode != 0:
            pytest.skip(f"duckdb {version} cannot be installed: {ended.stderr.strip().splitlines()[-1:]}")
    return folder


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_written_is_read_by_the_python_package(prices, version):
    path = interpreter_with(version)
    jp = prices / "jp" / "stocks_daily"
    asked = [jp / "mother.db", "daily", jp / "7203.db", "daily"]
    ended = subprocess.run(
        [sys.executable, "-c", READ, *asked], env={"PYTHONPATH": str(path)}, capture_output=True, text=True, timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["daily 12 1301.0 998600.0", "daily 3 7203.0 720500.0"]
