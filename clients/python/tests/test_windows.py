"""What is otherwise on Windows; `docs/howto/windows.md` says it. Collected there only, also under Wine."""

import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import urllib.request

import pytest

from conftest import program
from engine_process import OWN_CONSOLE, PATIENCE, interrupt, not_under_wine, wait_until

RUN = "replay run sma-cross --data data --instrument 7203.TSE --quiet --out".split()


@pytest.fixture
def place(tmp_path):
    """A folder with sample data, and the program as a function there."""

    def call(*arguments, **how):
        environment = {**os.environ, "KUMIKI_CACHE": str(tmp_path / "cache")}
        return subprocess.run(
            [str(program()), *map(str, arguments)], cwd=tmp_path, env=environment, capture_output=True, text=True,
            encoding="utf-8", timeout=120, **how)

    made = call("data", "sample", "--out", "data", "--instrument", "7203.TSE", "--days", "2")
    assert made.returncode == 0, made.stderr
    return tmp_path, call


@pytest.mark.parametrize("name", ["CON", "nul.txt", "COM1", "run.", "run ", "a:b"])
def test_names_that_windows_refuses_are_refused_before_the_run(place, name):
    folder, call = place
    ended = call(*RUN, f"runs/{name}")
    assert ended.returncode == 1 and "Windows has no file or folder named" in ended.stderr, ended
    assert "name another" in ended.stderr and not list((folder / "runs").glob("*")), ended.stderr


def test_paths_may_be_longer_than_260_characters(place):
    folder, call = place
    long = pathlib.Path(*["x" * 100] * 3, "run")
    ended = call(*RUN, long)
    assert ended.returncode == 0, ended.stderr
    assert pathlib.Path(f"\\\\?\\{folder / long}").joinpath("report.html").is_file()
    ended = call("replay", "verify", long)
    assert ended.returncode == 0, ended.stderr


def test_a_folder_is_the_same_whatever_its_case(place):
    folder, call = place
    for name in ("Run1", "run1"):
        ended = call(*RUN, name)
        assert ended.returncode == 0, ended.stderr
    assert [entry.name.lower() for entry in folder.iterdir() if entry.name.lower() == "run1"] == ["run1"]


def test_a_path_may_have_a_drive_and_no_root(place):
    folder, call = place
    ended = call(*RUN, f"{folder.drive}by-drive")
    assert ended.returncode == 0, ended.stderr
    assert (folder / "by-drive" / "report.html").is_file()


@pytest.mark.parametrize("form", ["\\\\?\\{folder}", pytest.param("\\\\localhost\\{drive}${rest}", marks=not_under_wine(
    "it shares no folders"))])
def test_a_path_may_be_verbatim_or_that_of_a_share(place, form):
    folder, call = place
    form = form.format(folder=folder, drive=folder.drive[0], rest=str(folder)[2:])
    ended = call(*RUN, f"{form}\\elsewhere")
    assert ended.returncode == 0, ended.stderr
    assert (folder / "elsewhere" / "report.html").is_file()


@not_under_wine("it sends no Ctrl-Break")
def test_ctrl_break_ends_the_engine_cleanly(place):
    folder, _ = place
    command = [str(program()), "serve", "--mode", "replay", "--standalone", "--port", "0", "--config-dir", "config"]
    group = subprocess.CREATE_NEW_PROCESS_GROUP
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, creationflags=group) as engine:
        engine.stdout.readline()
        engine.send_signal(signal.CTRL_BREAK_EVENT)
        assert engine.wait(PATIENCE) == 0
    assert not (folder / "config" / "engine-session.json").exists()


def test_what_is_written_to_a_pipe_is_utf_8(place):
    _, call = place
    ended = call(*RUN, "トヨタ")
    assert ended.returncode == 0 and "report: トヨタ\\report.html" in ended.stdout, ended


def test_lines_from_a_pipe_may_end_as_those_of_windows(place):
    _, call = place
    assert call("data", "sample", "--daily", "--issues", "5", "--days", "5", "--prices", "prices").returncode == 0
    ended = call("sql", "--prices", "prices", "--format", "jsonl", input="SELECT 7 AS seven,\r\n  8 AS eight;\r\n")
    assert ended.returncode == 0 and "seven" in ended.stdout and "eight" in ended.stdout, ended


def test_what_another_program_holds_is_told(place):
    """Python opens files so that nobody can replace them meanwhile, as a spreadsheet does."""
    folder, call = place
    assert call("data", "sample", "--daily", "--issues", "5", "--days", "5", "--prices", "prices").returncode == 0
    query = ("rank", "query", "--prices", "prices", "--out", "rows.csv")
    assert call(*query).returncode == 0
    before = (folder / "rows.csv").read_bytes()
    with (folder / "rows.csv").open("rb"):
        ended = call(*query)
    assert ended.returncode == 1 and "rows.csv" in ended.stderr, ended
    assert "another program may have it open: close that, and try again" in ended.stderr, ended
    assert (folder / "rows.csv").read_bytes() == before
    assert call(*query).returncode == 0


def test_an_old_run_that_is_held_keeps_no_other(start, market):
    """Its manifest goes last, so that it is a run until it is gone; the log names it."""
    engine = start(more=("--runs-kept", "1"))
    names = []
    with engine.client() as client:

        def run():
            market.load(client)
            seen = len(client.events)
            names.append(market.run(client, multiplier="max")["run_id"])
            client.wait("EngineStopped", since=seen)

        run()
        runs = engine.cache_dir / "runs"
        with (runs / names[0] / "fills.csv").open("rb"):
            run()
            run()
            wait_until(lambda: sorted(engine.runs()) == [names[0], names[2]], "the one between them is gone")
            assert (runs / names[0] / "manifest.json").is_file()
        run()
        wait_until(lambda: list(engine.runs()) == [names[3]], "the held one is gone too")
    told = [line for line in engine.stderr.read_text(encoding="utf-8").splitlines() if "cannot remove an older" in line]
    assert told and all(names[0] in line for line in told), told


@not_under_wine("it renames a folder while files in it are open")
def test_a_run_whose_report_is_held_stays_and_the_new_one_is_told(place):
    """Python opens files so that nobody can rename them meanwhile."""
    folder, call = place
    assert call(*RUN, "run").returncode == 0
    before = (folder / "run" / "manifest.json").read_bytes()
    with (folder / "run" / "report.html").open("rb"):
        ended = call(*RUN, "run")
        assert ended.returncode == 1 and "the complete files are in" in ended.stderr, ended
    assert (folder / "run" / "manifest.json").read_bytes() == before
    complete = pathlib.Path(ended.stderr.split("the complete files are in ")[1].splitlines()[0].strip())
    assert (folder / complete / "report.html").is_file()
    assert call(*RUN, "run").returncode == 0


def test_an_engine_in_the_background_holds_no_pipe_of_who_started_it(place):
    """Whoever reads what the command says reads to its end, while the engine goes on."""
    folder, call = place
    engine = ["--config-dir", "config", "--cache-dir", "cache"]
    ports = ["--console-port", "0", "--port", "0"]
    ended = call("console", "--mode", "replay", "--print", "--data", "data", *ports, *engine)
    try:
        assert ended.returncode == 0 and "127.0.0.1" in json.loads(ended.stdout)["url"], ended
        assert (folder / "config" / "engine-session.json").is_file(), "the engine goes on"
    finally:
        call("live", "stop", "--engine", *engine[:2])


@not_under_wine("its icacls knows no access lists")
def test_files_with_secrets_are_for_their_user(place):
    """They inherit the access list of the user's profile."""
    folder, call = place
    config = pathlib.Path(os.environ["APPDATA"]) / f"kumiki-test-{os.getpid()}"
    call("console", "--mode", "replay", "--print", "--data", "data", "--console-port", "0", "--port", "0",
         "--config-dir", config)
    try:
        told = subprocess.run(["icacls", str(config / "engine-session.json")], capture_output=True, text=True)
        lines = [line.replace(str(config / "engine-session.json"), "").strip() for line in told.stdout.splitlines()]
        allowed = [line.split(":")[0] for line in lines if ":(" in line]
        user = os.environ["USERNAME"].lower()
        others = [who for who in allowed if who.split("\\")[-1].lower() not in (user, "system", "administrators")]
        assert allowed and not others, told.stdout
    finally:
        call("live", "stop", "--engine", "--config-dir", config)
        for path in config.glob("*"):
            path.unlink()
        config.rmdir()


def test_prices_are_published_while_the_service_answers(place):
    """The service holds no database that the job has to replace."""
    folder, call = place
    vendor = folder / "vendor"
    vendor.mkdir()

    def days(month, dates):
        with gzip.open(vendor / f"equities_bars_daily_{month}.csv.gz", "wt", encoding="utf-8") as file:
            print("Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor", file=file)
            for day in dates:
                print(day, "72030", 100, 105, 95, 100, 0, 0, 1000, 100_000, "1.0", sep=",", file=file)
        ended = call("data", "update", "--prices", "prices", "--from-files", "vendor")
        assert ended.returncode == 0, ended.stderr

    def last():
        with urllib.request.urlopen(f"http://{address}/health", timeout=10) as answer:
            return json.load(answer)["snapshot_last_date"]

    days("202511", ["2025-11-27", "2025-11-28"])
    command = [str(program()), "rank", "serve", "--prices", "prices", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, **OWN_CONSOLE) as service:
        try:
            address = re.search(r"127\.0\.0\.1:\d+", service.stdout.readline())[0]
            wait_until(lambda: last() == "2025-11-28", "the service has the first days")
            days("202512", ["2025-12-01"])
            wait_until(lambda: last() == "2025-12-01", "the service has the next day")
            interrupt(service)
            assert service.wait(PATIENCE) == 0
        finally:
            service.kill()
    ended = call("rank", "query", "--prices", "prices", "--out", "rows.parquet")
    assert ended.returncode == 0 and (folder / "rows.parquet").read_bytes()[:4] == b"PAR1", ended.stderr
