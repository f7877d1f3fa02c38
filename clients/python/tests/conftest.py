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
def desk(tmp_path_factory):
    """A folder to work in, and the program as a function that runs there."""
    kumiki = program()
    if not kumiki.is_file():
        pytest.skip(f"{kumiki} is not built; `cargo xtask test` builds it")
    folder = tmp_path_factory.mktemp("desk")
    environment = {**os.environ, "KUMIKI_CACHE": str(folder / "cache")}

    def call(*arguments):
        subprocess.run([str(kumiki), *arguments], check=True, cwd=folder, env=environment)

    return folder, call


@pytest.fixture(scope="session")
def run_folder(desk):
    """The folder of a run that trades often for 40 days."""
    folder, call = desk
    call("data", "sample", "--out", "data", "--instrument", "7203.TSE", "--days", "40",
         "--trades-per-day", "2000", "--seed", "5")
    call("replay", "run", "sma-cross", "--data", "data", "--instrument", "7203.TSE", "--param", "fast=10",
         "--param", "slow=50", "--param", "quantity=500", "--cash", "3000000", "--out", "run", "--quiet")
    return folder / "run"


@pytest.fixture(scope="session")
def sweep_folder(desk, run_folder):
    """A folder with a sweep of nine runs in `sweep`, and each of them as a run in `run-FAST-SLOW`."""
    folder, call = desk
    assert run_folder.is_dir(), "it made the data"
    common = ("sma-cross", "--data", "data", "--instrument", "7203.TSE", "--param", "quantity=500", "--quiet")
    call("replay", "sweep", *common, "--grid", "fast=5,10,20", "--grid", "slow=30,50,80", "--out", "sweep")
    for fast in (5, 10, 20):
        for slow in (30, 50, 80):
            call("replay", "run", *common, "--param", f"fast={fast}", "--param", f"slow={slow}",
                 "--out", f"run-{fast}-{slow}")
    return folder
