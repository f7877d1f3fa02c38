"""What `kumiki serve --mode replay` refuses, and that nobody else notices: greetings, frames, commands, starts."""

import json
import os
import pathlib
import socket
import subprocess

import pytest
from conftest import program  # noqa: E402
from engine_process import Market, not_under_wine, spawn, start_line, wait_until
from plain_client import PATIENCE, REFUSALS
from websockets.exceptions import ConnectionClosed, InvalidStatus

MIB = 1 << 20
GREETINGS = {
    "another token": (lambda hello: {"proof": "0" * 64}, "auth_failed"),
    "no hexadecimal": (lambda hello: {"proof": "z"}, "auth_failed"),
    "an empty proof": (lambda hello: {"proof": ""}, "auth_failed"),
    "capitals": (lambda hello: {"proof": hello["proof"].upper()}, "auth_failed"),
    "another nonce": (lambda hello: {"client_nonce": "00" * 32}, "auth_failed"),
    "another major version": (lambda hello: {"schema_major": 2}, "schema_mismatch"),
    "an older major version": (lambda hello: {"schema_major": 0}, "schema_mismatch"),
}


@pytest.fixture
def engine(start):
    return start()


@pytest.fixture
def bystander(engine):
    """A client that must not notice what others do; it is asked at the end."""
    with engine.client() as client:
        yield client
        assert client.is_alive(), "the ping of another client was answered"
        assert client.ask("GetSession", "Session")["state"] == "Idle"


def ended(client):
    """Takes all that still comes, and gives the code and the reason of the connection's end."""
    return client.closed(), client.socket.close_reason


def refused_greeting(client, greeting):
    """The code that a greeting is refused with: one EngineError, and the connection ends with the same word."""
    client.wrong(greeting if isinstance(greeting, str) else json.dumps(greeting))
    close = ended(client)
    assert [event["event"] for event in client.events] == ["Challenge", "EngineError"], client.events
    error = client.events[-1]
    assert close == (1008, error["code"]) and "strategy_id" not in error and "request_id" not in error, (close, error)
    assert client.token not in error["message"]
    return error["code"]


@pytest.mark.parametrize("what", GREETINGS)
def test_a_wrong_greeting_is_refused(engine, bystander, what):
    """Pin P62."""
    change, code = GREETINGS[what]
    with engine.client(greet=False) as client:
        client.take_challenge()
        hello = client.hello()
        assert refused_greeting(client, {**hello, **change(hello)}) == code


def test_a_greeting_for_the_other_mode_is_refused(engine, bystander):
    with engine.client(greet=False, mode="live") as client:
        client.take_challenge()
        assert refused_greeting(client, client.hello()) == "mode_mismatch"


def test_a_proof_for_one_mode_is_none_for_the_other(engine, bystander):
    with engine.client(greet=False, mode="live") as client:
        client.take_challenge()
        assert refused_greeting(client, {**client.hello(), "mode": "replay"}) == "auth_failed"


def test_a_proof_is_good_for_one_connection(engine, bystander):
    with engine.client(greet=False) as first, engine.client(greet=False) as second:
        first.take_challenge()
        second.take_challenge()
        assert first.challenge["server_nonce"] != second.challenge["server_nonce"]
        hello = first.hello()
        first.raw(json.dumps(hello))
        assert first.next()["event"] == "Ready"
        assert refused_greeting(second, hello) == "auth_failed"
        assert first.is_alive()


def test_the_proof_of_the_server_is_none_of_a_client(engine, bystander):
    """What another connection's server shows cannot be sent back to it."""
    with engine.client(greet=False) as client:
        challenge = client.take_challenge()
        greeting = {**client.hello(), "client_nonce": challenge["server_nonce"]}
        greeting["proof"] = bystander.ready["proof"]
        assert refused_greeting(client, greeting) == "auth_failed"


def test_a_higher_minor_version_is_taken(engine):
    with engine.client(greet=False) as client:
        client.take_challenge()
        client.raw(json.dumps(client.hello(schema_minor=99)))
        assert client.next()["event"] == "Ready"


@pytest.mark.parametrize("field", ["proof", "client_nonce", "mode", "schema_major", "schema_minor", "client_version"])
def test_a_greeting_without_a_field_opens_nothing(engine, bystander, field):
    with engine.client(greet=False) as client:
        client.take_challenge()
        hello = client.hello()
        del hello[field]
        message = opens_nothing(client, json.dumps(hello), "validation_error")
        assert message.startswith(f"{field.upper()}: missing field"), message


@pytest.mark.parametrize("first, code", [
    *((wrong, "validation_error") for wrong in ("{", "[]", "null", '{"op":"Hello"}', "", "[" * 100_000)),
    ('{"op":"GetSession","request_id":"a"}', "auth_failed"),
    ('{"op":"Shutdown","request_id":"a"}', "auth_failed"),
], ids=["half", "list", "null", "empty Hello", "nothing", "deep", "GetSession", "Shutdown"])
def test_without_a_greeting_nothing_is_answered(engine, bystander, first, code):
    with engine.client(greet=False) as client:
        client.take_challenge()
        opens_nothing(client, first, code)


def opens_nothing(client, frame, code):
    """A first frame that is no greeting: it is refused, and no command is taken after it. Gives the words."""
    client.wrong(frame)
    try:
        client.raw('{"op":"GetSession","request_id":"after"}')
    except ConnectionClosed:
        pass
    close = ended(client)
    assert [event["event"] for event in client.events] == ["Challenge", "EngineError"], client.events
    assert (client.events[-1]["code"], close) == (code, (1008, code))
    return client.events[-1]["message"]


def test_a_token_in_the_open_is_no_greeting(engine, bystander):
    with engine.client(greet=False) as client:
        client.take_challenge()
        greeting = client.hello()
        del greeting["proof"], greeting["client_nonce"]
        message = opens_nothing(client, json.dumps({**greeting, "token": engine.token}), "validation_error")
        assert message.startswith("TOKEN: unknown field") and engine.token not in message, message


def test_who_does_not_greet_is_sent_away(engine, bystander):
    with engine.client(greet=False) as client:
        client.take_challenge()
        assert ended(client) == (1008, "handshake_timeout")
        assert [event["event"] for event in client.events] == ["Challenge", "EngineError"]
        assert client.events[-1]["code"] == "handshake_timeout"


@pytest.mark.parametrize("is_greeted", [True, False], ids=["greeted", "not greeted"])
@pytest.mark.parametrize("frame, close", [
    (b"\x00binary", (1003, "only_text")),
    ("x" * (MIB + 1), (1009, "too_long")),
    ("x" * (10 * MIB), (1009, "too_long")),
], ids=["binary", "too long", "far too long"])
def test_a_frame_that_is_none_ends_the_connection(engine, bystander, frame, close, is_greeted):
    """Pin P62."""
    with engine.client(greet=is_greeted) as client:
        if not is_greeted:
            client.take_challenge()
        client.wrong(frame)
        assert ended(client) == close
        assert {event["event"] for event in client.events} <= {"Challenge", "Ready", "ClientConnected"}, client.events


@pytest.mark.parametrize("is_greeted", [True, False], ids=["greeted", "not greeted"])
@pytest.mark.parametrize("text", [b"\xff", b'{"op":"GetSession","request_id":"\xc3"}', b"\xed\xa0\x80"])
def test_text_that_is_no_utf_8_ends_the_connection(engine, bystander, text, is_greeted):
    """Pin P62."""
    with engine.client(greet=is_greeted) as client:
        if not is_greeted:
            client.take_challenge()
        client.socket.send_wrong(text, text=True)
        assert ended(client) == (1007, "no_utf8")
        assert {event["event"] for event in client.events} <= {"Challenge", "Ready", "ClientConnected"}, client.events


def test_a_client_that_is_killed_is_a_lost_connection(engine, bystander):
    """It breaks no rule, and nobody has sent it away."""
    with engine.client() as client:
        client.ask("GetSession", "Session")
        client.socket.socket.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: "the connection of a client was lost" in engine.stderr.read_text(), "the engine says so")
    said = engine.stderr.read_text()
    assert "protocol_error" not in said and "disconnects a client" not in said, said


def test_a_frame_may_have_a_mebibyte(engine, bystander):
    with engine.client() as client:
        command = '{"op":"GetSession","request_id":"long"}'
        client.raw(command + " " * (MIB - len(command)))
        assert client.wait("Session", request_id="long")["state"] == "Idle"


def nested(depth):
    """A start of an engine in which objects and arrays lie so deep in each other."""
    inside = depth - 3
    return (
        '{"op":"StartEngine","request_id":"deep","engine":"Backtest","strategy_id":"s","config":{"instrument_id":'
        f'"7203.TSE","strategy_init_kwargs":{{"a":{"[" * inside}{"]" * inside}}}}}}}'
    )


WRONG = {
    "bad JSON": "{",
    "nothing": "",
    "no object": "[1]",
    "no op": '{"request_id":"w"}',
    "an unknown op": '{"op":"Nothing","request_id":"w"}',
    "an op in small letters": '{"op":"getsession","request_id":"w"}',
    "an unknown field": '{"op":"GetSession","request_id":"w","x":1}',
    "a field twice": '{"op":"GetSession","request_id":"w","request_id":"w"}',
    "an op twice": '{"op":"GetSession","op":"GetSession","request_id":"w"}',
    "a field twice inside":
        '{"op":"GetOrderList","request_id":"w","venue":"replay","filter":{"date":null,"date":null}}',
    "an unknown field inside": '{"op":"GetOrderList","request_id":"w","venue":"replay","filter":{"x":null}}',
    "another type": '{"op":"GetSession","request_id":1}',
    "no id": '{"op":"GetSession"}',
    "an empty id": '{"op":"GetSession","request_id":""}',
    "a long id": json.dumps({"op": "GetSession", "request_id": "x" * 65}),
    "two values": '{"op":"GetSession","request_id":"w"}{"op":"GetSession","request_id":"w"}',
    "too deep": nested(33),
    "far too deep": "[" * 100_000,
    "too deep and closed": "[" * 50_000 + "]" * 50_000,
    "deep objects": '{"a":' * 50_000,
    "no number": '{"op":"SetReplaySpeed","request_id":"w","multiplier":NaN}',
    "half a surrogate": '{"op":"GetSession","request_id":"\\ud800"}',
}


#: Those of which the id can still be read, and how the answer to some begins.
IDS = dict.fromkeys((
    "no op", "an unknown op", "an op in small letters", "an unknown field", "an unknown field inside", "a field twice",
    "an op twice", "a field twice inside",
), "w")
WORDS = {
    "no op": "OP: missing field", "an unknown field": "X: unknown field", "an unknown field inside": "X: unknown field",
    "a field twice": "REQUEST_ID: duplicate field", "a field twice inside": "DATE: duplicate field",
    "an op twice": "OP: duplicate field", "no id": "REQUEST_ID: missing field", "another type": "REQUEST_ID: wrong type or value",
    "an empty id": "REQUEST_ID: ", "a long id": "REQUEST_ID: ",
}


@pytest.mark.parametrize("what", WRONG)
def test_a_command_that_is_none_is_an_error_and_the_connection_stays(engine, bystander, what):
    """Pins P61 and P62."""
    with engine.client() as client:
        client.wrong(WRONG[what])
        error = client.wait("Error")
        assert error["code"] == "validation_error", error
        assert error.get("request_id") == IDS.get(what), error
        words = "the JSON is nested deeper than 32" if "deep" in what else WORDS.get(what, "")
        assert error["message"].startswith(words) and len(error["message"]) <= 512, error
        assert client.ask("GetSession", "Session")["state"] == "Idle"
        assert [event["event"] for event in client.since(0, *REFUSALS)] == ["Error"], "one answer, and no other"


def test_what_may_be_is_taken(engine):
    """Pin P61."""
    with engine.client() as client:
        client.ask("GetSession", "Session", request_id="x" * 64)
        client.ask("GetSession", "Session", request_id="予" * 64)
        client.ask("GetSession", "Session", request_id="予" * 64)
        # The values are those of no strategy.
        client.wrong(nested(32))
        deep = client.wait("Error", "EngineBusy", "EngineError", request_id="deep")
        assert "deep" not in deep.get("message", "").lower(), deep


def test_an_order_that_cannot_be_read_is_rejected_by_its_id(engine):
    """Pin P72."""
    with engine.client() as client:
        order = {"client_order_id": "mine", "instrument_id": "7203.TSE", "order_side": "buy", "quantity": "100"}
        client.wrong(json.dumps({"op": "SubmitOrder", "request_id": "w", "venue": "replay", "order": order}))
        rejected = client.wait("OrderRejected")
        assert (rejected["client_order_id"], rejected["reason_code"], rejected["request_id"]) == (
            "mine", "VALIDATION_ERROR", "w")
        client.wrong(json.dumps({"op": "CancelOrder", "request_id": "v", "client_order_id": "mine", "x": 1}))
        rejected = client.wait("OrderRejected", client_order_id="mine", request_id="v")
        assert rejected["reason_code"] == "VALIDATION_ERROR"
        del order["client_order_id"]
        client.wrong(json.dumps({"op": "SubmitOrder", "request_id": "u", "venue": "replay", "order": order}))
        assert client.wait("Error", request_id="u")["code"] == "validation_error"


def test_who_errs_a_hundred_times_is_sent_away(engine, bystander):
    """Pin P62."""
    with engine.client() as client:
        for _ in range(99):
            client.wrong("{")
        client.wait("Error", where=lambda _: len(client.since(0, "Error")) == 99)
        assert client.is_alive(), "99 errors are borne"
        client.wrong("{")
        assert ended(client) == (1008, "too_many_errors")


def test_pages_of_others_are_refused(start):
    engine = start(more=("--allow-origin", "http://localhost:3000"))
    with engine.client(origin="http://localhost:3000") as allowed, engine.client() as none:
        others = ["http://evil.example", "http://localhost:3001", "https://localhost:3000", "http://localhost",
                  "null", f"http://127.0.0.1:{engine.port}", "http://localhost:3000.evil.example"]
        for origin in others:
            with pytest.raises(InvalidStatus) as refused:
                engine.client(origin=origin)
            assert refused.value.response.status_code == 403, origin
            answer = refused.value.response
            assert answer.headers["Content-Length"] == str(len(answer.body)), origin
            assert b"allow it with --allow-origin, or send no Origin" in answer.body
        assert allowed.is_alive() and none.is_alive()
        log = engine.stderr.read_text(encoding="utf-8").splitlines()
        assert sum("clients with this Origin may not connect" in line for line in log) == len(others), log


def test_eight_clients_are_enough(engine):
    clients = [engine.client() for _ in range(8)]
    try:
        assert sent_away(engine) == (1008, "too_many_clients")
        assert all(client.is_alive() for client in clients)
        clients.pop().socket.close()
        wait_until(lambda: sent_away(engine) is None, "there is room again for one")
        assert all(client.is_alive() for client in clients)
    finally:
        for client in clients:
            client.socket.close()


def sent_away(engine):
    """The code and the reason with which a new client is sent away; none where it is taken."""
    with engine.client(greet=False) as client:
        client.take_challenge()
        client.raw(json.dumps(client.hello()))
        try:
            assert client.next()["event"] == "Ready"
        except ConnectionClosed:
            return client.socket.close_code, client.socket.close_reason
        return None


@not_under_wine("its sockets are too slow for a flood: what pings is sent away before")
def test_who_does_not_read_is_sent_away(engine, market):
    """A client that is 65,536 frames behind is closed; the others and the run go on. Pin P62."""
    with engine.client(max_queue=1) as slow, engine.client() as client:
        market.load(client)
        market.run(client)
        answers = 0
        for number in range(150_000):
            name = f"{number:064}"
            client.raw(f'{{"op":"SetReplaySpeed","request_id":"{name}","multiplier":1}}')
            # It reads along, so that it is never behind itself.
            while number - answers > 1_000:
                answers += client.read()["event"] == "ReplaySpeedChanged"
        while answers < 150_000:
            answers += client.read()["event"] == "ReplaySpeedChanged"
        assert client.is_alive()
        wait_until(lambda: "too_slow" in engine.stderr.read_text(encoding="utf-8"), "the engine says whom it sent away")
        # Who reads only now may find the connection gone, and the reason with it.
        assert ended(slow) in ((1008, "too_slow"), (1006, "")), "what is behind is not waited for"
        assert len(slow.since(0, "ReplaySpeedChanged")) < 150_000
        assert client.ask("GetSession", "Session")["state"] == "Running"


# --- Commands that do not fit.


def code_of(event):
    """What was refused with, whatever carries it."""
    return event.get("code") or event.get("reason_code") or event["event"]


def test_what_cannot_be_loaded_changes_nothing(engine, market):
    """Pin P63."""
    with engine.client() as client:
        market.load(client)
        before = client.ask("GetSession", "Session")["instruments"]
        base = {"instrument_id": "7203.TSE", **market.span(), "granularity": "Trade"}
        for change, code in [
            ({"instrument_id": "1234.TSE"}, "data_not_found"),
            ({"start_date": "2001-01-04", "end_date": "2001-01-05"}, "data_not_found"),
            ({"instrument_ids": ["7203.TSE", "1234.TSE"]}, "data_not_found"),
            ({"instrument_id": "9984.TSE", "instrument_ids": ["9984.TSE", "1234.TSE"]}, "data_not_found"),
            ({"instrument_ids": ["9984.TSE", "7203.TSE"]}, "validation_error"),
            ({"instrument_ids": []}, "validation_error"),
            ({"instrument_id": "7203"}, "validation_error"),
            ({"start_date": market.days[2], "end_date": market.days[1]}, "validation_error"),
            ({"start_date": "2025-02-30"}, "validation_error"),
            ({"start_date": market.days[1].replace("-", "")}, "validation_error"),
        ]:
            refused = client.refusal("LoadReplayData", **{**base, **change})
            assert (refused["event"], refused["code"]) == ("Error", code), (change, refused)
            assert client.ask("GetSession", "Session")["instruments"] == before
        # Loads add up, and the same instrument takes its own place.
        assert market.load(client, instruments=["9984.TSE"])["instrument_ids"] == ["7203.TSE", "9984.TSE"]
        again = market.load(client, 1, 2)
        assert sorted(again["instrument_ids"]) == ["7203.TSE", "9984.TSE"] and again["session_epoch"] == 3


def test_a_fifth_instrument_is_refused(start, desk):
    """Pin P63."""
    folder, call = desk
    five = [f"{code}.TSE" for code in (1301, 1605, 6758, 7203, 9984)]
    arguments = [word for issue in five for word in ("--instrument", issue)]
    call("data", "sample", "--out", "five", *arguments, "--days", "1", "--trades-per-day", "50", "--seed", "3")
    few = Market(folder / "five", five)
    with start(data=few.folder).client() as client:
        span = {**few.span(0, 0), "granularity": "Trade"}
        refused = client.refusal("LoadReplayData", instrument_id=five[0], instrument_ids=five, **span)
        assert code_of(refused) == "too_many_instruments"
        assert few.load(client, 0, 0, instruments=five[:4])["instrument_ids"] == five[:4]
        refused = client.refusal("LoadReplayData", instrument_id=five[4], **span)
        assert code_of(refused) == "too_many_instruments"
        assert len(few.load(client, 0, 0, instruments=five[1:3])["instrument_ids"]) == 4


def test_a_start_is_refused_in_the_order_of_its_checks(engine, market, tmp_path):
    """Pin P65."""
    junk = tmp_path / "junk.wasm"
    junk.write_bytes(b"\0asm" + b"\xff" * 100)
    good = market.config("empty")
    nowhere = {**good, "strategy_file": str(tmp_path / "nowhere.wasm")}

    with engine.client() as client:
        def refusal(config=good, engine="Backtest", strategy_id="one"):
            return client.refusal("StartEngine", engine=engine, strategy_id=strategy_id, config=config)

        def check(config, code, **more):
            refused = refusal(config, **more)
            assert code_of(refused) == code, refused
            return refused

        # Shape goes before everything, whatever else is wrong.
        client.wrong(json.dumps({"op": "StartEngine", "request_id": "w", "engine": "Live", "strategy_id": "one",
                                 "config": {**good, "x": 1}}))
        assert client.wait("Error", request_id="w")["code"] == "validation_error"
        for long in ("", "x" * 65):
            assert check(good, "validation_error", strategy_id=long, engine="Live")["event"] == "Error"
        # The engine goes before the sets of the config.
        refused = check({**good, "max_qty": 100}, "value_error", engine="Live")
        assert refused["event"] == "EngineError"
        # The sets go before the state: nothing is loaded yet.
        check_sets(check, nowhere)
        # The state goes before what is loaded.
        assert code_of(refusal(nowhere)) in ("EngineBusy", "not_loaded")

        market.load(client)
        check_sets(check, nowhere)
        # What is loaded goes before the file.
        for change in [
            {**market.span(1, 2)}, {**market.span(0, 1)}, {"granularity": "Minute"}, {"instrument_id": "9984.TSE"},
            {"instrument_ids": market.instruments},
        ]:
            assert check({**nowhere, **change}, "not_loaded")["event"] == "Error"
        # The file goes before its start.
        for file in (nowhere["strategy_file"], str(junk), str(tmp_path)):
            check({**good, "strategy_file": file, "strategy_init_kwargs": {"fast": -1}}, "strategy_load_failed")
        failed = {**market.config("sma-cross"), "strategy_init_kwargs": {"fast": -1}}
        check(failed, "strategy_init_failed")
        assert client.ask("GetSession", "Session")["state"] == "Loaded"
        assert not client.since(0, "EngineStarted", "EngineStopped")

        # And what is whole is taken, after all of these.
        started = market.run(client, multiplier="max")
        assert client.wait("EngineStopped")["run_id"] == started["run_id"]


def check_sets(check, config):
    """What a replay's config must have and must not have."""
    for field in ("max_qty", "max_notional_jpy"):
        refused = check({**config, field: 100}, "validation_error")
        assert refused["event"] == "Error" and refused["message"].startswith(f"{field.upper()}: "), refused
        check({**config, field: None, "start_date": None}, "validation_error")
    for field in ("start_date", "end_date", "granularity", "initial_cash", "strategy_file"):
        without = {name: value for name, value in config.items() if name != field}
        for wrong in (without, {**config, field: None}):
            refused = check(wrong, "validation_error")
            assert refused["message"].startswith(f"{field.upper()}: "), refused
    check({**config, "strategy_file": ""}, "validation_error")
    check({**config, "strategy_id": "another"}, "validation_error")


def test_what_does_not_fit_the_state_is_told_as_busy(engine, market):
    """Pins P68, P69 and P73."""
    order = {
        "client_order_id": "a", "instrument_id": "7203.TSE", "order_side": "BUY", "order_type": "MARKET",
        "quantity": "100", "time_in_force": "DAY", "post_only": False, "reduce_only": False,
    }
    of_venues = {
        "SubmitOrder": {"order": order}, "CancelOrder": {"client_order_id": "a"}, "CancelAllOrders": {},
        "ModifyOrder": {"client_order_id": "a", "change": {"new_quantity": "200"}}, "GetOrderList": {},
    }
    queries = ("GetBuyingPower", "GetPositions")

    with engine.client() as client, engine.client() as other:
        def busy(op, state, **fields):
            refused = client.refusal(op, **fields)
            assert refused["event"] == "EngineBusy", refused
            assert (refused["current_state"], refused["attempted_command"]) == (state, op)
            assert refused["reason"] and refused.get("venue") == fields.get("venue")

        def error(op, code, **fields):
            refused = client.refusal(op, **fields)
            assert (refused["event"], refused["code"]) == ("Error", code), refused
            return refused

        def outside_of_a_run(state):
            busy("StopEngine", state, strategy_id="one")
            busy("SetReplaySpeed", state, multiplier=5)
            for op, fields in of_venues.items():
                if op != "GetOrderList":
                    busy(op, state, venue="replay", **fields)
            # The list stays readable: that of the run before, until other data are loaded.
            client.ask("GetOrderList", "OrderListUpdated", venue="replay", filter={})
            for op in queries:
                busy(op, state, venue="replay")
            error("GetBuyingPower", "not_in_replay_mode", venue="web_broker")

        outside_of_a_run("Idle")
        for op, fields in of_venues.items():
            error(op, "not_in_replay_mode", venue="web_broker", **fields)
        market.load(client)
        outside_of_a_run("Loaded")
        for op, fields in of_venues.items():
            busy(op, "Loaded", venue="web_broker", **fields)

        market.run(client)
        busy("StartEngine", "Running", engine="Backtest", strategy_id="two", config=market.config("empty"))
        nowhere = {**market.config("empty"), "strategy_file": "nowhere.wasm"}
        busy("StartEngine", "Running", engine="Backtest", strategy_id="two", config=nowhere)
        span = {**market.span(), "granularity": "Trade"}
        busy("LoadReplayData", "Running", instrument_id="7203.TSE", **span)
        for op, fields in of_venues.items():
            busy(op, "Running", venue="web_broker", **fields)
        error("GetBuyingPower", "not_in_replay_mode", venue="web_broker")
        error("StopEngine", "validation_error", strategy_id="two")
        for number, multiplier in enumerate(("0", "1000001", "-1", "1.5", '"fast"', '"5"', "null", "true")):
            client.wrong(f'{{"op":"SetReplaySpeed","request_id":"m{number}","multiplier":{multiplier}}}')
            refused = client.wait("Error", request_id=f"m{number}")
            assert refused["code"] == "validation_error" and refused["message"].startswith("MULTIPLIER: "), refused
        for multiplier in (1, 1_000_000):
            assert client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier=multiplier)["multiplier"] == multiplier
        if client.ask("GetSession", "Session")["state"] == "Running":
            client.send("StopEngine", strategy_id="one")
        client.wait("EngineStopped")
        outside_of_a_run("Idle")
        # Nobody else was told.
        other.ask("GetSession", "Session")
        assert not other.since(0, "EngineBusy", "Error", "EngineError")


def test_a_strategy_that_fails_ends_its_run(engine, market):
    """Pin P67."""
    with engine.client() as client:
        market.load(client)
        market.run(client, "panics-in-event", strategy_init_kwargs={"at": 20}, multiplier="max")
        stopped = client.wait("EngineStopped")
        failed = client.wait("EngineError", code="strategy_fault")
        assert failed["strategy_id"] == "one" and client.events.index(failed) < client.events.index(stopped)
        assert stopped["status"] == "fault" and stopped["fault"]["code"] and stopped["fault"]["message"]
        folder = engine.runs()[stopped["run_id"]]
        told = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        assert told["partial"] is True and told["fault"]
        session = client.ask("GetSession", "Session")
        assert (session["state"], session["last_run"]["status"]) == ("Idle", "fault")
        # The engine goes on.
        market.load(client)
        place = len(client.events)
        market.run(client, multiplier="max")
        assert client.wait("EngineStopped", since=place)["status"] == "completed"


# --- Starts that fail.


def failed_start(line, data, *more):
    """The exit code and the words of a start that fails; its standard input stays open."""
    process = spawn(["--data", str(data), *more], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.stdin.write(line.encode())
        process.stdin.flush()
        code = process.wait(timeout=PATIENCE)
    finally:
        process.kill()
        out, told = process.communicate()
    told = told.decode()
    assert out == b"", out
    assert len(told.strip().splitlines()) == 1, told
    assert "0f0f0f" not in told, "it told the token"
    return code


def test_a_start_that_fails_says_why(tmp_path, market):
    """Pin P63."""
    (tmp_path / "file").write_text("")
    below_a_file = tmp_path / "file" / "config"
    fine = start_line(tmp_path / "config", tmp_path / "cache")
    (tmp_path / "config").mkdir()
    (tmp_path / "cache").mkdir()
    for line in ("{\n", "\n", "[]\n", "no JSON at all\n", fine.replace("port", "prt"), fine.replace(": 0", ': "0"')):
        assert failed_start(line, market.folder) == 11, line
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = start_line(tmp_path / "config", tmp_path / "cache", port=port)
        assert failed_start(line, market.folder) == 12
    assert failed_start(start_line(below_a_file, tmp_path / "cache"), market.folder) == 13
    assert failed_start(start_line(tmp_path / "config", below_a_file), market.folder) == 13
    assert failed_start(fine, tmp_path / "nowhere") == 14
    assert not (tmp_path / "config" / "engine-session.json").exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="whoever may everything can write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path, market):
    locked = pathlib.Path(tmp_path / "locked")
    locked.mkdir(mode=0o500)
    (tmp_path / "cache").mkdir()
    assert failed_start(start_line(locked, tmp_path / "cache"), market.folder) == 13


def test_a_start_that_is_told_nothing_ends(market):
    assert failed_start("", market.folder) == 10


def test_each_start_that_fails_says_why(tmp_path):
    """What is said last is written by another thread, and is out before the program is."""
    for _ in range(60):
        ended = subprocess.run(
            [str(program()), "serve", "--mode", "replay", "--data", str(tmp_path / "none")], capture_output=True,
            input=start_line(tmp_path, tmp_path).encode())
        assert ended.returncode == 14 and b"there is no data folder" in ended.stderr, ended


def test_the_mode_must_be_said(market):
    ended = subprocess.run([str(program()), "serve", "--data", str(market.folder)], capture_output=True,
                           stdin=subprocess.DEVNULL)
    assert ended.returncode == 2
