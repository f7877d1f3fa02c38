"""Pages of the engine in the browser: who may open one, what it may ask, and what its forms are told (the pins of the
console C1 to C3, C6, C7, C20 and C22)."""

import contextlib
import json
import re
import subprocess
from urllib.parse import urlsplit

import pytest
from conftest import program
from console_pages import ANY_PORT, address
from engine_process import wait_until
from page_client import PageClient, begin, is_closed, origin_of, page, request, slow_connection
from plain_client import PATIENCE
from websockets.exceptions import InvalidStatus


def refused(client, op, **fields):
    """Sends a command that gets an Error, and gives that."""
    request_id = client.send(op, **fields)
    return client.wait("Error", request_id=request_id)


@pytest.fixture
def engine(start):
    return start(more=ANY_PORT)


def test_c1_c2_a_code_opens_one_page(engine):
    """The fragment is the code. It is good once, and the key of the session is that of its proofs."""
    with engine.client() as client:
        opened = client.ask("OpenConsole", "ConsoleOpened")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#[0-9a-f]{64}", opened["url"])
        pong = client.ask("Ping", "Pong")
        assert 50_000 < opened["expires_ms"] - pong["ts_ms"] <= 61_000
        assert begin(opened["url"].replace("#", "#0"))[0] == 401, "a guessed code"
        status, session = begin(opened["url"])
        assert (status, session["mode"], session["scope"], session["port"]) == (200, "replay", "full", engine.port)
        assert begin(opened["url"])[0] == 401, "used up"
        assert engine.token not in json.dumps(session)
        with PageClient(session, origin_of(opened["url"])) as one:
            assert one.ready["scope"] == "full" and one.ready["confirm_above_jpy"] == 3_000_000
            assert one.ask("GetSession", "Session")["state"] == "Idle"
        assert "scope" not in client.ready


def test_c2_who_is_not_the_page_gets_no_session(engine):
    """A refused request uses no code up."""
    with engine.client() as client:
        url = address(client)
        for wrong in (
            {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
            {"Content-Type": "text/plain"},
        ):
            assert begin(url, headers=wrong)[0] == 403, wrong
        assert begin(url, headers={"Host": "evil.example"})[0] == 421
        assert begin(url, more=1)[0] == 400
        assert begin(url)[0] == 200


def test_what_a_browser_may_do_with_the_page(engine):
    with engine.client() as client:
        origin = origin_of(address(client))
    status, headers, text = request(origin + "/")
    assert status == 200 and text.lstrip().lower().startswith("<!doctype html>")
    assert headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' "
        f"ws://127.0.0.1:{engine.port}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    for name, value in (
        ("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"), ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"), ("cross-origin-resource-policy", "same-origin"),
    ):
        assert headers[name] == value
    for path in ("/nothing", "/assets/../src/lib.rs", "/session", "/report/00"):
        assert request(origin + path)[0] in (404, 405), path
    for host in ("localhost", "evil.example", "127.0.0.1:1"):
        assert request(origin + "/", headers={"Host": host})[0] == 421, host


def test_c6_of_forty_slow_connections_the_oldest_go(engine):
    """Thirty-two stay, and are answered once their requests are whole."""
    with engine.client() as client:
        url = address(client)
        rest = urlsplit(url).netloc.encode() + b"\r\n\r\n"
        with contextlib.ExitStack() as stack:
            slow = [stack.enter_context(slow_connection(url)) for _ in range(40)]
            assert all(is_closed(one) for one in slow[:8])
            for one in slow[8:]:
                one.sendall(rest)
                assert one.recv(64).startswith(b"HTTP/1.1 200")


def test_headers_have_a_limit(engine):
    """It is 8 KiB."""
    with engine.client() as client:
        url = address(client)
    head = f"GET / HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nX: ".encode()
    for size, status in ((8 << 10, 200), ((8 << 10) + 1, 431)):
        with slow_connection(url, head + b"x" * (size - len(head) - 4) + b"\r\n\r\n") as one:
            assert one.recv(64).startswith(f"HTTP/1.1 {status}".encode()), size


def test_sockets_of_other_pages_are_refused(engine):
    with engine.client() as client:
        session, origin = page(client)
        port = urlsplit(origin).port
        for other in ("http://evil.example", "null", f"http://localhost:{port}", f"http://127.0.0.1:{port + 1}"):
            with pytest.raises(InvalidStatus) as refused:
                PageClient(session, other)
            assert refused.value.response.status_code == 403, other
        wrong = PageClient({**session, "key": "0" * 64}, origin, greet=False)
        wrong.take_challenge()
        wrong.raw(json.dumps(wrong.hello()))
        assert wrong.next()["code"] == "auth_failed"
        wrong.socket.close()


def test_c3_a_page_opens_no_page_and_ends_no_engine(engine):
    with engine.client() as client:
        with PageClient(*page(client)) as one:
            for op in ("OpenConsole", "Shutdown"):
                error = refused(one, op)
                assert error["code"] == "forbidden", error
        assert client.ask("Ping", "Pong")


def test_c3_a_page_that_may_only_look(engine):
    with engine.client() as client:
        with PageClient(*page(client, read_only=True)) as one:
            assert one.ready["scope"] == "read_only"
            load = dict(instrument_id="7203.TSE", start_date="2025-01-07", end_date="2025-01-07", granularity="Trade")
            asked = [
                ("LoadReplayData", load), ("StopEngine", {"strategy_id": "s"}), ("SignOut", {}),
                ("CancelAllOrders", {"venue": "replay"}), ("RequestVenueLogin", {"venue": "web_broker"}),
                ("ForgetSecondPassword", {}), ("EvictLru", {"venue": "local_broker"}),
            ]
            for op, fields in asked:
                error = refused(one, op, **fields)
                assert error["code"] == "forbidden", (op, error)
            assert one.ask("GetSession", "Session")["instruments"] == []
            assert one.ask("GetRuns", "Runs")["runs"] == []
            assert one.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")


def test_c3_c22_a_session_ends_by_its_sign_out(engine):
    with engine.client() as client:
        session, origin = page(client)
        one, other = PageClient(session, origin), PageClient(session, origin)
        one.send("SignOut")
        for connection in (one, other):
            assert connection.closed() == 1008
            assert connection.socket.close_reason == "signed_out"
        again = PageClient(session, origin, greet=False)
        again.take_challenge()
        again.raw(json.dumps(again.hello()))
        ended = again.next()
        assert (ended["event"], ended["code"]) == ("EngineError", "auth_failed")
        again.socket.close()
        assert refused(client, "SignOut")["code"] == "validation_error", "it is no page"


def test_c2_a_ninth_session_takes_the_place_of_one_without_a_connection(engine):
    with engine.client() as client:
        sessions = [page(client) for _ in range(8)]
        with PageClient(*sessions[0]):
            page(client)
            with PageClient(*sessions[2]):
                pass
            session, origin = sessions[1]
            gone = PageClient(session, origin, greet=False)
            gone.take_challenge()
            gone.raw(json.dumps(gone.hello()))
            assert gone.next()["code"] == "auth_failed"
            gone.socket.close()


def test_c20_the_port_of_another_program_is_named(start):
    """And 0 is any that is free."""
    with start(more=ANY_PORT).client() as client, start(more=ANY_PORT).client() as other:
        taken, free = (urlsplit(address(one)).port for one in (client, other))
    assert len({taken, free, 0}) == 3
    with start(more=("--console-port", str(taken))).client() as client:
        error = refused(client, "OpenConsole")
        assert error["code"] == "console_port_in_use" and "--console-port" in error["message"], error


def test_c7_what_the_forms_are_told(engine, market):
    with engine.client() as client:
        catalog = client.ask("GetDataCatalog", "DataCatalog")
        kinds = {span["granularity"] for span in catalog["files"]}
        assert kinds == {"Trade", "Minute", "Daily"}
        for span in catalog["files"]:
            assert span["start_date"] <= market.days[0] and span["end_date"] >= market.days[-1], span
        names = [one["strategy_file"] for one in client.ask("GetStrategies", "Strategies")["strategies"]]
        assert "sma-cross" in names
        told = client.ask("GetStrategyParameters", "StrategyParameters", strategy_file="sma-cross")
        kinds = {one["name"]: (one["kind"], one["default"]) for one in told["parameters"]}
        assert kinds["fast"] == ("integer", 20), kinds
        error = refused(client, "GetStrategyParameters", strategy_file="no-such")
        assert error["code"] == "strategy_load_failed", error
        unit = dict(venue="replay", instrument_id="7203.TSE")
        assert refused(client, "GetInstrument", **unit)["code"] == "not_loaded"
        market.load(client)
        instrument = client.ask("GetInstrument", "Instrument", **unit)
        assert instrument["lot"] == 100 and instrument["ticks"][-1]["up_to"] is None
        assert refused(client, "GetInstrument", **{**unit, "instrument_id": "?"})["code"] == "validation_error"
        assert refused(client, "GetInstrument", **{**unit, "venue": "paper"})["code"] == "venue_not_available"


def test_runs_are_listed_and_a_report_is_shown_once(engine, market):
    with engine.client() as client:
        market.load(client)
        market.run(client, "buy-and-hold", multiplier="max")
        client.wait("EngineStopped")
        wait_until(lambda: client.ask("GetRuns", "Runs")["runs"], "the run has a folder")
        (run,) = client.ask("GetRuns", "Runs")["runs"]
        assert (run["run_kind"], run["status"], run["report"]) == ("replay", "completed", True)
        assert run["instrument_ids"] == ["7203.TSE"] and run["start_date"] == market.days[1]
        url = client.ask("OpenReport", "ReportOpened", run_id=run["run_id"])["url"]
        status, headers, text = request(url)
        assert status == 200 and (run["run_id"] in text or "7203" in text)
        assert headers["content-security-policy"].startswith("sandbox allow-scripts")
        assert request(url)[0] == 404, "once"
        for wrong in ("../../config", "none"):
            assert refused(client, "OpenReport", run_id=wrong)["code"] == "validation_error"


def test_the_command_prints_an_address(start, tmp_path):
    engine = start(standalone=True, more=ANY_PORT)
    attach = ["--config-dir", engine.config_dir]

    def console(*arguments, **how):
        command = list(map(str, [program(), "console", *arguments, *attach]))
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, **how)

    printed = console("--print", "--read-only")
    told = json.loads(printed.stdout)
    assert printed.returncode == 0 and set(told) == {"url", "expires_ms"}, printed
    assert begin(told["url"])[1]["scope"] == "read_only"
    nobody = subprocess.run(
        [program(), "console", "--print", "--config-dir", str(tmp_path / "none")], capture_output=True, text=True,
        timeout=PATIENCE,
    )
    assert nobody.returncode == 1 and "no engine runs" in nobody.stderr, nobody
    assert console("--mode", "live", "--print").returncode == 1, "the engine replays"
