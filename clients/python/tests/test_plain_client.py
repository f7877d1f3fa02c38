"""The client of the engine's tests, by itself: what it computes, and that it sees what is wrong."""

import hashlib
import json

import jsonschema
import plain_client
import pytest

TOKEN = "an-engine-token"
SERVER_NONCE = bytes(range(32)).hex()
CLIENT_NONCE = "cafe"


def test_the_proofs_are_those_of_openssl():
    # printf 'client:%s:%s:replay' $SERVER_NONCE $CLIENT_NONCE | openssl dgst -sha256 -hmac an-engine-token
    client = plain_client.proof(TOKEN, "client", SERVER_NONCE, CLIENT_NONCE, "replay")
    assert client == "c5fe4c22be34ade978d2087233b00d25119b4ad25d70eb235d69f5f4bd500b9c"
    server = plain_client.proof(TOKEN, "server", CLIENT_NONCE, SERVER_NONCE, "replay")
    assert server == "de404ebe49dfe5b1e09cc1d313de3f7a9007d4979ef431c9c47d0438048325bb"


def test_the_proof_is_the_construction_of_rfc_2104():
    key = TOKEN.encode().ljust(64, b"\0")
    message = f"client:{SERVER_NONCE}:{CLIENT_NONCE}:replay".encode()
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).hexdigest()
    assert plain_client.proof(TOKEN, "client", SERVER_NONCE, CLIENT_NONCE, "replay") == outer


def test_messages_are_held_against_the_schemas():
    plain_client.check_command({"op": "GetSession", "request_id": "a"})
    plain_client.check_event({"event": "ClientConnected", "count": 1})
    for wrong in ({}, {"request_id": ""}, {"request_id": 1}, {"request_id": "a", "x": 1}):
        with pytest.raises(jsonschema.ValidationError):
            plain_client.check_command({"op": "GetSession", **wrong})
    for wrong in ({"event": "ClientConnected"}, {"event": "ClientConnected", "count": "1"}):
        with pytest.raises(jsonschema.ValidationError):
            plain_client.check_event(wrong)
    with pytest.raises(AssertionError):
        plain_client.check_event({"event": "Nothing"})


def test_what_a_schema_cannot_say_is_seen_too():
    assert plain_client.parse('{"event": "x", "n": 1}') == {"event": "x", "n": 1}
    for wrong in ('{"a": 1, "a": 1}', '{"a": {"b": 1, "b": 2}}', '{"a": 1.5}', '{"a": NaN}', b"{}", "[]", "1"):
        with pytest.raises(AssertionError):
            plain_client.parse(wrong)
    for amount in ("0", "1", "-1", "10", "141.5", "0.0001", "-0.5"):
        plain_client.check_decimals([{"cash": amount}])
    for amount in ("1.0", "01", "1.", ".5", "-0", "1.50", "1.00001", "1e3", ""):
        with pytest.raises(AssertionError):
            plain_client.check_decimals({"rows": [{"cash": amount}]})


def test_what_is_alike_to_its_schema_is_held_against_it_once():
    trade = {"price": "857.5", "qty": "100", "side": "buy", "side_rule": None, "ts_ms": 1, "ts_ns": 1,
             "sequence_id": 1, "received_ms": None}
    event = {"event": "Trades", "venue": "replay", "exchange": "TSE", "ticker": "7203", "instrument_id": "7203.TSE",
             "stream_session_id": "s", "trades": [trade] * 3}
    right = [{}, {"price": "1200"}, {"ts_ms": 2**53}, {"qty": "5"}, {"ts_ms": 0}, {"side": "sell"}]
    for change in right * 2:
        plain_client.check_many({**event, "trades": [trade, {**trade, **change}, trade]})
    wrong = [{"price": "857.50"}, {"price": "-0"}, {"price": 857}, {"qty": "many"}, {"side": "BUY"}, {"ts_ms": -1},
             {"ts_ms": "1"}, {"ts_ms": True}, {"ts_ms": None}, {"received_ms": "x"}, {"more": 1}, {"sequence_id": -1}]
    for change in wrong * 2:
        with pytest.raises((jsonschema.ValidationError, AssertionError)):
            plain_client.check_many({**event, "trades": [trade, trade, {**trade, **change}]})
    for name in trade.keys() - {"ts_ns"}:
        less = {key: value for key, value in trade.items() if key != name}
        with pytest.raises(jsonschema.ValidationError):
            plain_client.check_many({**event, "trades": [trade, less]})
    speed = {"op": "SetReplaySpeed", "request_id": "a", "multiplier": 2}
    for change in ({}, {"multiplier": 1_000_000}, {"multiplier": "max"}, {"request_id": "x" * 64}):
        plain_client.check_many({**speed, **change})
    for change in ({"multiplier": 0}, {"multiplier": 1_000_001}, {"request_id": ""}, {"request_id": "x" * 65},
                   {"request_id": 5}, {"op": "GetSession"}):
        with pytest.raises(jsonschema.ValidationError):
            plain_client.check_many({**speed, **change})


def test_a_schema_looks_at_no_more_than_is_compared():
    """What `likeness` leaves out is told nowhere: no other form has a length, a highest value, or a pattern."""
    forms = json.loads((plain_client.SCHEMAS / "ipc.schema.json").read_text(encoding="utf-8"))["$defs"]
    words = {"maximum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "maxItems", "minItems", "uniqueItems",
             "contains", "pattern", "maxLength", "minLength", "minProperties", "maxProperties"}
    found = set()

    def look(form, name, inside):
        if isinstance(form, list):
            for one in form:
                look(one, name, inside)
        if isinstance(form, dict):
            found.update((inside, name, word) for word in words & form.keys() if not isinstance(form[word], dict))
            if "$ref" in form:
                look(forms[form["$ref"].split("/")[-1]], name, form["$ref"].split("/")[-1])
            for key, one in form.items():
                if key == "properties":
                    for field, inner in one.items():
                        look(inner, field, inside)
                elif key not in words:
                    look(one, name, inside)

    look(forms["Event"], "", "Event")
    assert {(inside, word) for inside, _, word in found} == {
        ("Decimal", "pattern"), ("ShareCount", "pattern"), ("StrategyPosition", "pattern"), ("Multiplier", "maximum")}
    amounts = {name for inside, name, _ in found if inside != "Multiplier"}
    assert amounts <= plain_client.DECIMALS and not amounts & plain_client.IDS
    assert {name for inside, name, _ in found if inside == "Multiplier"} == {"multiplier"}


def test_frames_that_are_wrong_are_sent_by_that_name_alone(client):
    for wrong in ("{", "[]", '{"op":"Nothing"}', '{"op":"Ping","request_id":""}',
                  '{"op":"Ping","request_id":"a","x":1}'):
        with pytest.raises((AssertionError, ValueError, LookupError, jsonschema.ValidationError)):
            client.raw(wrong)
    with pytest.raises(jsonschema.ValidationError):
        client.send("Ping", x=1)
    assert client.is_alive()
    for wrong in ('{"op":"Ping"}', b'{"op":"Ping","request_id":"a"}'):
        with pytest.raises((AssertionError, jsonschema.ValidationError)):
            client.socket.send(wrong)
    client.raw('{"op":"Ping","request_id":"a"}')
    assert client.read()["request_id"] == "a" and client.refusal("Ping", x=1)["code"] == "validation_error"


def test_frames_of_the_package_are_held_against_the_schemas_too(session, frames):
    """The fixture that every test has keeps them, both ways, and a wrong one fails."""
    one = session()
    one.session()
    sent = [plain_client.parse(frame)["op"] for frame in frames.sent]
    received = [plain_client.parse(frame)["event"] for frame in frames.received]
    assert sent == ["Hello", "GetSession"] and received == ["Challenge", "Ready", "ClientConnected", "Session"]
    frames.check()
    one._loop.call(one._core._connection._send({"op": "Ping", "request_id": ""}))
    with pytest.raises(jsonschema.ValidationError, match="'' should be non-empty"):
        frames.check()
    one.session()
    frames.sent.clear()
    frames.check()
    frames.received.append(frames.received[-1].replace('"rows_done":0', '"rows_done":-1'))
    with pytest.raises(jsonschema.ValidationError, match="-1 is less than the minimum"):
        frames.check()
    frames.received[-1] = frames.received[0].replace('"server_nonce"', '"nonce"')
    with pytest.raises(jsonschema.ValidationError, match="nonce"):
        frames.check()
    frames.received.clear()
