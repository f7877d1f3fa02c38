"""The databases that the daily job writes are opened by DuckDB's own Python packages: the oldest that the pages name,
the one of this program's release, and the newest."""

import gzip
import pathlib
import shutil
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
    command = [program(), "data", "update", "--prices", data, "--from-files", files]
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
    jp = prices / "jp" / "stocks_daily"
    told = run_in(version, READ, jp / "mother.db", "daily", jp / "7203.db", "daily")
    assert told.splitlines() == ["daily 12 1301.0 998600.0", "daily 3 7203.0 720500.0"]


def run_in(version, *arguments):
    """What a script in Python with a version of the package prints."""
    environment = {"PYTHONPATH": str(interpreter_with(version))}
    command = [sys.executable, "-c", *arguments]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_database_of_a_newer_duckdb_is_refused_with_the_lines_that_convert_it(prices, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(prices, data)
    mother = data / "jp" / "stocks_daily" / "mother.db"
    newer = "import sys, duckdb; path = sys.argv[1]\n" \
        "with duckdb.connect(path + '.newer') as to: to.execute(f\"ATTACH '{path}' AS old (READ_ONLY)\"); " \
        "to.execute('CREATE TABLE daily AS FROM old.daily')"
    run_in("2.0.1", newer, mother)
    pathlib.Path(f"{mother}.newer").replace(mother)
    ask = [program(), "sql", "--prices", data, "--format", "csv", "SELECT count(*) AS n FROM daily"]
    refused = subprocess.run(ask, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1 and "was written by DuckDB v2.0.1" in refused.stderr
    lines = [line.strip() for line in refused.stderr.splitlines() if line.strip().startswith(("ATTACH", "COPY"))]
    assert len(lines) == 2, refused.stderr
    convert = "import sys, duckdb\n" \
        "with duckdb.connect(sys.argv[1]) as old: old.execute(sys.argv[2]); old.execute(sys.argv[3])"
    run_in("2.0.1", convert, mother, *lines)
    mother.with_suffix(".converted.db").replace(mother)
    answered = subprocess.run(ask, capture_output=True, text=True, timeout=60)
    assert (answered.returncode, answered.stdout) == (0, "n\n12\n"), answered.stderr
