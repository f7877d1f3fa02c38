"""Runs the built `kumiki` once on sample data; the tests read the run's folder."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def program():
    """The built program: as told by KUMIKI_PROGRAM, else where cargo puts it."""
    told = os.environ.get("KUMIKI_PROGRAM")
    if told:
        return pathlib.Path(told)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / ("kumiki.exe" if os.name == "nt" else "kumiki")


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """The folder of a run that trades often for 40 days."""
    kumiki = program()
    if not kumiki.is_file():
        pytest.skip(f"{kumiki} is not built; `cargo xtask test` builds it")
    desk = tmp_path_factory.mktemp("desk")
    environment = {**os.environ, "KUMIKI_CACHE": str(desk / "cache")}

    def call(*arguments):
        subprocess.run([str(kumiki), *arguments], check=True, cwd=desk, env=environment)

    call("data", "sample", "--out", "data", "--instrument", "7203.TSE", "--days", "40",
         "--trades-per-day", "2000", "--seed", "5")
    call("replay", "run", "sma-cross", "--data", "data", "--instrument", "7203.TSE", "--param", "fast=10",
         "--param", "slow=50", "--param", "quantity=500", "--cash", "3000000", "--out", "run", "--quiet")
    return desk / "run"
