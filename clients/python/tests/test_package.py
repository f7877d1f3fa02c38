"""The Python package by itself: its types, its numbers and times, and what it needs."""

import datetime
import importlib.util
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
from decimal import Decimal

import pytest

import kumiki
from conftest import ROOT, SOURCE, program
from engine_process import OWN_CONSOLE, component, interrupt
from kumiki import records
from kumiki._refusals import of_event
from kumiki.events import Event, amount_text, decode
from plain_client import PATIENCE

SCHEMA = json.loads((ROOT / "schemas" / "ipc.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("platform", ["linux", "win32", "darwin"])
def test_the_types_are_right(tmp_path, platform):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    pytest.importorskip("websockets")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "--platform", platform]
    checked = subprocess.run([*command, str(SOURCE / "kumiki")], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_no_file_is_long_and_the_types_are_shipped():
    assert (SOURCE / "kumiki" / "py.typed").is_file()
    lines = {path.name: path.read_text(encoding="utf-8").count("\n") for path in (SOURCE / "kumiki").glob("*.py")}
    assert len(lines) > 10 and max(lines.values()) <= 360, lines


def test_everything_that_is_promised_is_there():
    for name in kumiki.__all__:
        assert getattr(kumiki, name) is not None, name
    assert set(kumiki.__all__) == set(dir(kumiki))
    with pytest.raises(AttributeError):
        kumiki.NothingOfThatName
    errors = [one for one in vars(kumiki.errors).values() if isinstance(one, type) and issubclass(one, Exception)
              and not issubclass(one, Warning)]
    assert len(errors) > 15 and all(issubclass(one, kumiki.KumikiError) for one in errors)
    for one in errors:
        copy = pickle.loads(pickle.dumps(one("words")))
        assert type(copy) is one and "words" in str(copy) and copy.code == one("words").code


def test_the_package_says_how_a_first_replay_is_made(tmp_path):
    """The lines of its own docstring are run as they stand; the program is the built one."""
    _, *blocks = re.split(r"\n\n    ", kumiki.__doc__)
    lines = textwrap.dedent("    " + blocks[0].partition("\n\n")[0]).splitlines()
    assert len(lines) == 5 and lines[0] == "import kumiki, subprocess"
    script = "import kumiki, sys\nkumiki.program = lambda: sys.argv[1]\n" + "\n".join(lines)
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("KUMIKI_DATA", "KUMIKI_ENGINE_TOKEN")},
        "PYTHONPATH": str(SOURCE), "KUMIKI_PROGRAM": str(program()), "KUMIKI_CACHE": str(tmp_path / "cache"),
        "KUMIKI_STRATEGIES": str(pathlib.Path(component("sma-cross")).parent),
    }
    told = subprocess.run([sys.executable, "-c", script, str(program())], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, encoding="utf-8")
    assert told.returncode == 0, told.stderr
    assert re.search(r"^run \S+: completed at ", told.stdout, re.MULTILINE), told.stdout
    assert (tmp_path / "data").is_dir()


def test_the_wheel_is_told_of_its_readme():
    """It is what `pip show` and an index of packages tell of it."""
    project = SOURCE.parent
    settings = (project / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r'^readme = "(.*)"$', settings, re.MULTILINE) == ["README.md"]
    assert (project / "README.md").is_file()


def test_each_code_has_an_exception_of_its_own():
    """Each that the engine knows, as its source and the schema list them; what was caught before still is."""
    source = (ROOT / "host" / "ipc" / "src" / "event.rs").read_text(encoding="utf-8")
    codes = re.findall(r'pub const [A-Z_]+: &str = "([a-z_]+)";', source.partition("pub mod error_code")[2])
    reasons = [one["const"] for one in SCHEMA["$defs"]["ReasonCode"]["oneOf"]]
    assert len(codes) > 20 and len(reasons) == 14
    told = {code: of_event({"event": "Error", "code": code, "message": "as told"}) for code in codes}
    rejected = {reason: of_event({"event": "OrderRejected", "reason_code": reason, "reason_text": "as told",
                                  "client_order_id": "mine"}) for reason in reasons}
    for code, error in {**told, **rejected}.items():
        assert type(error).__name__ in kumiki.__all__ and type(error).__doc__, code
        assert error.code == code and "as told" in str(error)
    kinds = [type(error) for error in (*told.values(), *rejected.values())]
    assert len(set(kinds)) == len(kinds), "one class for each code"
    assert kumiki.KumikiError not in kinds and kumiki.OrderRejectedError not in kinds
    for error in rejected.values():
        assert isinstance(error, kumiki.OrderRejectedError) and error.client_order_id == "mine"
    bases = {
        kumiki.StrategyError: ["strategy_load_failed", "strategy_init_failed", "strategy_fault", "results_failed"],
        kumiki.ValidationError: ["validation_error", "too_many_instruments"],
        kumiki.ModeError: ["value_error", "mode_mismatch"],
        kumiki.VenueNotAvailableError: ["venue_not_available", "not_in_replay_mode"],
        kumiki.VenueError: ["login_failed", "token_expired", "local_app_down", "register_full", "rate_limited",
                            "gateway_error", "venue_not_ready"],
        kumiki.GatewayError: ["token_expired", "local_app_down", "register_full", "rate_limited", "gateway_error"],
        ValueError: ["value_error", "validation_error"],
        TimeoutError: ["handshake_timeout"],
    }
    for base, of_base in bases.items():
        assert all(isinstance(told[code], base) for code in of_base), base
    # Every venue refuses logins.
    assert not isinstance(told["login_failed"], kumiki.GatewayError)
    for code in bases[kumiki.VenueError]:
        outage = of_event({"event": "VenueError", "venue": "web_broker", "code": code, "message": "as told"})
        assert (type(outage), outage.venue) == (type(told[code]), "web_broker")
    cancelled = of_event({"event": "VenueLoginCancelled", "venue": "web_broker"})
    assert (type(cancelled), cancelled.code) == (kumiki.LoginCancelledError, "login_cancelled")


def test_an_answer_that_never_came_is_no_rejection():
    """With this code the engine failed, and refused nothing; another reason is told in its own class, and a code that
    no one knows is a plain error."""
    def told(code):
        return of_event({"event": "Error", "code": code, "message": "as told"})

    assert type(told("INTERNAL_ERROR")) is kumiki.InternalError
    assert not isinstance(told("INTERNAL_ERROR"), kumiki.OrderRejectedError)
    expired = told("SESSION_EXPIRED")
    assert type(expired) is kumiki.SessionExpiredError and expired.reason_text == "as told"
    assert (type(told("of_tomorrow")), told("of_tomorrow").code) == (kumiki.KumikiError, "of_tomorrow")
    later = {"reason_code": "OF_TOMORROW", "reason_text": "as told"}
    assert type(of_event({"event": "OrderRejected", **later})) is kumiki.OrderRejectedError
    outage = of_event({"event": "VenueError", "venue": "web_broker", "code": "of_tomorrow", "message": "as told"})
    assert (type(outage), outage.code) == (kumiki.VenueError, "of_tomorrow")


def test_the_program_needs_no_other_package():
    """As in an environment where only the wheel was installed, without what it depends on."""
    script = """
import sys
sys.modules["websockets"] = None
import kumiki, kumiki.__main__
assert callable(kumiki.program) and "asyncio" not in sys.modules
kumiki.ReplaySession
try:
    kumiki.ReplaySession(attach=1, token="x" * 16).open()
except kumiki.MissingPackageError as error:
    assert "pip install 'websockets>=15'" in str(error), error
else:
    raise AssertionError("it connected")
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=SOURCE)


def test_ctrl_c_is_for_the_program(tmp_path):
    """`python -m kumiki` says nothing of its own, and ends as the program does."""
    script = """
import sys, kumiki.__main__
path = sys.argv.pop(1)
kumiki.__main__.program = lambda: path
sys.exit(kumiki.__main__.main())
"""
    command = [sys.executable, "-c", script, program(), "sim", "local-broker", "--still", "--port", "0", "--password",
               "x"]
    process = subprocess.Popen(list(map(str, command)), cwd=SOURCE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               **OWN_CONSOLE)
    try:
        assert "listening" in json.loads(process.stdout.readline())
        interrupt(process)
        assert (process.communicate(timeout=PATIENCE), process.returncode) == ((b"", b""), 0)
    finally:
        process.kill()
        process.communicate()


def test_amounts_are_exact_and_short():
    for given, text in ((100, "100"), ("2650.50", "2650.5"), (Decimal("1E+6"), "1000000"), ("-0.0", "0"), (10, "10"),
                        (Decimal("0.0001"), "0.0001"), ("123456789012345678901234567890.5000",
                                                        "123456789012345678901234567890.5")):
        assert amount_text("price", given) == text
    for wrong in (1.5, True, None, float("nan")):
        with pytest.raises(kumiki.ValidationError, match="^price: .* was given; give an exact amount"):
            amount_text("price", wrong)
    for wrong in ("high", "", "nan", "Infinity", "1E+999999999", "0E-999999999", Decimal("1E-200"), 10**200):
        with pytest.raises(ValueError, match="^price: "):
            amount_text("price", wrong)


def test_times_are_of_japan():
    nanos = 1_736_121_600_123_456_789
    time = kumiki.to_datetime(nanos)
    assert time.isoformat() == "2025-01-06T09:00:00.123456+09:00"
    assert kumiki.to_ns(time) == nanos // 1000 * 1000 and kumiki.to_ns(nanos) == nanos
    with pytest.raises(ValueError, match="time zone"):
        kumiki.to_ns(datetime.datetime(2025, 1, 6))


def test_events_have_exact_numbers():
    event = decode('{"event":"OrderFilled","last_price":"2650.5","last_qty":"100","ts_event_ms":1736121600000,'
                   '"ts_event_ns":1736121600000000123,"order":{"price":"1","qty":"2"},"rows":[{"volume":"3"}]}')
    assert (event.last_price, event["last_qty"], event.order, event.rows) == (
        Decimal("2650.5"), 100, {"price": Decimal(1), "qty": 2}, [{"volume": 3}])
    assert (event.ts_ns, event.time.isoformat()) == (1736121600000000123, "2025-01-06T09:00:00+09:00")
    assert "last_price" in event and event.get("nothing") is None and pickle.loads(pickle.dumps(event)) == event
    assert Event({"event": "Pong", "ts_ms": 5}).ts_ns == 5_000_000 and Event({"event": "X"}).time is None
    with pytest.raises(AttributeError, match="OrderFilled has no field price"):
        event.price
    for wrong in ("", "{", "[]", '{"op":"x"}', '{"event":1}', '{"event":"x","cash":"much"}', b"{}"):
        with pytest.raises(kumiki.SchemaError):
            decode(wrong)


def test_market_data_are_read_when_somebody_looks():
    """A client that reads them all at once cannot follow a replay at full speed."""
    late = decode('{"event":"Trades","venue":"replay","trades":[{"price":"1.5","qty":"100"}],"wrong":}')
    assert late.name == "Trades"
    with pytest.raises(kumiki.SchemaError):
        late["trades"]
    event = decode('{"event":"Trades","venue":"replay","trades":[{"price":"1.5","qty":"100"}]}')
    copy = pickle.loads(pickle.dumps(event))
    assert event.trades == [{"price": Decimal("1.5"), "qty": 100}] and copy == event and len(event) == 3


@pytest.mark.parametrize("record, schema", [
    ("LoadedData", "ReplayDataLoaded"), ("SubmitOrderResult", "SubmitOrderResult"),
    ("ModifyOrderResult", "OrderUpdated"),
    ("CancelOrderResult", "OrderCanceled"), ("CancelAllResult", "CancelAllResult"), ("Order", "OrderRecordWire"),
    ("BuyingPower", "ReplayBuyingPower"), ("Position", "PositionRow"), ("SessionInfo", "Session"),
    ("LoadedInstrument", "LoadedInstrument"), ("Progress", "Progress"), ("SubmittedOrder", "SubmittedOrder"),
    ("VenueBuyingPower", "BuyingPowerUpdated"), ("VenueState", "VenueState"),
])
def test_records_have_the_fields_of_the_schema(record, schema):
    kinds = {kind["properties"]["event"]["const"]: kind for kind in SCHEMA["$defs"]["Event"]["oneOf"]}
    fields = (kinds.get(schema) or SCHEMA["$defs"][schema])["properties"]
    for name in getattr(records, record).__dataclass_fields__:
        assert name in fields or name.replace("_ns", "_ms") in fields, f"{record}.{name}"


def test_every_text_that_is_named_is_one_that_the_package_brings():
    """In an installed package there is no folder of the project: what documentation names is had by `schema()`."""
    sources = {path.name: path.read_text(encoding="utf-8") for path in (SOURCE / "kumiki").glob("*.py")}
    known = kumiki.schemas()
    assert known == sorted(path.name for path in (ROOT / "schemas").iterdir()) and len(known) > 20
    named = [name for text in sources.values() for name in re.findall(r'schema\("([^"]+)"\)', text)]
    listed = re.findall(r"- `([^`]+)`", kumiki.schema.__doc__)
    assert len(named) > 4 and len(listed) == 5 and set(named) | set(listed) <= set(known)
    for name, text in sources.items():
        elsewhere = re.findall(r"(?:schemas|clients|examples|host|wit|docs)/[\w./-]+", text)
        assert not elsewhere, f"{name} names {elsewhere}, which an installed package does not have"
        # Files of runs and engines, which are made; every other text must be one of those that are brought.
        files = set(re.findall(r"[\w.-]+\.(?:md|json|graphql)\b", text))
        made = {"engine-session.json", "summary.json", "manifest.json", "sweep.json", "sweep.partial.json"}
        assert files <= made | set(known), (name, files)
    tables = json.loads(kumiki.schema("replay-run.json"))["tables"]
    listed = kumiki.RunResult.table.__doc__
    assert all(name in listed for name in tables if name != "summary"), "the tables are named where they are read"
    assert "sharpe" in kumiki.schema("statistics.md") and "EngineBusy" in kumiki.schema("ipc.md")
    with pytest.raises(kumiki.ValidationError, match="^name: .*give one of .*statistics.md"):
        kumiki.schema("../README.md")


def test_an_installed_package_has_its_texts_inside(tmp_path):
    """As the wheel lays them out, away from the project."""
    shutil.copytree(SOURCE / "kumiki", tmp_path / "kumiki", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "kumiki" / "schemas").mkdir()
    (tmp_path / "kumiki" / "schemas" / "statistics.md").write_text("as shipped", encoding="utf-8")
    script = "import kumiki; print(kumiki.schemas(), kumiki.schema('statistics.md'))"
    told = subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, capture_output=True, text=True)
    assert told.stdout == "['statistics.md'] as shipped\n"


def test_values_of_sweeps_are_written_as_the_program_reads_them():
    numpy = pytest.importorskip("numpy")
    from kumiki._ray_driver import grid_flags, points_bytes, text

    values = (True, 5, 0.1, "x", Decimal("1E+2"), numpy.int64(5), numpy.float64(0.1), numpy.bool_(False))
    assert [text(value) for value in values] == ["true", "5", "0.1", "x", "100", "5", "0.1", "false"]
    assert grid_flags({"fast": numpy.arange(3)}) == ["--grid", "fast=0,1,2"]
    assert points_bytes([{"fast": numpy.int64(5)}]) == b'{"fast": 5}\n'
    for wrong in (None, datetime.date(2025, 1, 6), [1]):
        with pytest.raises(kumiki.ValidationError, match="^a parameter: "):
            text(wrong)
    with pytest.raises(kumiki.ValidationError, match=r"^points\[0\]\.fast: "):
        points_bytes([{"fast": object()}])


def test_temporary_files_of_programs_lie_in_pytests_folder(tmp_path_factory):
    """What a test that was killed has left is removed with it."""
    command = [sys.executable, "-c", "import tempfile; print(tempfile.gettempdir())"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert pathlib.Path(told).parent == tmp_path_factory.getbasetemp()
