"""The client of the engine's tests, by itself: what it computes, and that it sees what is wrong."""

import hashlib

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
    for wrong in ('{"a": 1, "a": 1}', '{"a": {"b": 1, "b": 2}}', '{"a": 1.5}', '{"a": NaN}', b"{}"):
        with pytest.raises(AssertionError):
            plain_client.parse(wrong)
    for amount in ("0", "1", "-1", "10", "141.5", "0.0001", "-0.5"):
        plain_client.check_decimals([{"cash": amount}])
    for amount in ("1.0", "01", "1.", ".5", "-0", "1.50", "1.00001", "1e3", ""):
        with pytest.raises(AssertionError):
            plain_client.check_decimals({"rows": [{"cash": amount}]})


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
