"""The password of the local broker's gateway and every token that it gave go through every flow, with the log at
trace, and the gateway repeats both wherever it says something: afterwards none stands in any file of the engine, in its
log, or in any frame to a client."""

import json

import pytest

pytest.register_assert_rewrite("live_world")
from go_between import GoBetween  # noqa: E402
from live_world import Seen  # noqa: E402
from local_world import PASSWORD, SPEC, VENDOR, LocalWorld, all_trades, stream, venue_state  # noqa: E402
from plain_client import Refused  # noqa: E402
from secret_search import forms, found_in, texts_of  # noqa: E402

WRONG = "canary-refused-2205"
QUESTIONS = (("GetBuyingPower", "BuyingPowerUpdated", {}), ("GetOrderList", "OrderListUpdated", {"filter": {}}),
             ("GetPositions", "PositionsUpdated", {}), ("GetBoard", "DepthSnapshot", {"ticker": "7203"}))


class Repeating(GoBetween):
    """Knows every token that the gateway gave, and makes it repeat password and tokens: in what it says of a refusal,
    and in the texts of its boards, orders and positions."""

    def __init__(self, gateway):
        super().__init__(gateway.port)
        self.tokens, self.passwords, self.board = [], {PASSWORD}, None

    def heard(self, path, sent):
        if path.endswith("/token"):
            self.passwords.add(json.loads(sent)["APIPassword"])
        return path

    def changed(self, body, asked):
        try:
            told = json.loads(body)
        except ValueError:
            # An answer that is none: with what it may have been.
            return body + self.words().encode()
        if "Token" in told:
            self.tokens.append(told["Token"])
        elif "Code" in told:
            told["Message"] += self.words()
        elif isinstance(told, list):
            told = [{**row, "SymbolName": self.words(), "Further": {self.words(): [self.words()]}} for row in told]
        elif "SymbolName" in told:
            self.board = told = {**told, "SymbolName": self.words()}
        return json.dumps(told, ensure_ascii=False).encode()

    def words(self):
        """As they are, in JSON, and where they are cut in two."""
        secrets = [*sorted(self.passwords), *self.tokens[-3:]]
        return " ".join(["", *secrets, json.dumps(secrets), " " * 120, *secrets])


@pytest.fixture(params=[SPEC, VENDOR])
def between(tmp_path, request):
    """Starts a gateway that repeats secrets, and an engine that says all that it can."""
    worlds, goes = [], []

    def address(gateway):
        goes.append(Repeating(gateway))
        return f"http://127.0.0.1:{goes[0].port}"

    def start(*settings, **environment):
        worlds.append(LocalWorld(tmp_path / "world", f"record_dir={tmp_path / 'world' / 'engine' / 'recordings'}",
                                 *settings, form=request.param, address=address,
                                 environment={"KUMIKI_LOG": "trace", **environment}))
        return worlds[0], goes[0]

    yield start
    for one in [*worlds, *goes]:
        one.close()


def hold(world, go, *clients):
    """Holds all that an engine has left behind against all secrets, and takes care that there were some."""
    known = {secret: forms(secret) for secret in (*go.passwords, *go.tokens)}
    places = list(texts_of(world.folder / "engine"))
    names = {name for name, _ in places}
    assert "engine.err" in names and any(name.startswith("registered-") for name in names), names
    places += [("a frame to a client", frame.encode()) for client in clients for frame in client.received]
    assert not found_in(places, known)


def seen(world):
    return Seen(world.engine.port, world.engine.token)


def questions(client):
    """Asks for all that the gateway can be asked for, and gives how that ends."""
    told = []
    for command, answer, fields in QUESTIONS:
        try:
            told.append(client.ask(command, answer, venue="local_broker", **fields)["event"])
        except Refused as refused:
            told.append(refused.event["code"])
    return told


def test_every_flow(between):
    world, go = between("record=true")
    client = seen(world)
    answers = [answer for _, answer, _ in QUESTIONS]
    # Logins that are refused, and answers that are none.
    refused = (({"name": "unauthorized"}, "token_expired"),
               ({"name": "unauthorized", "value": 4_001_003}, "login_failed"),
               ({"name": "bad-request", "value": 4_001_011}, "login_failed"))
    for fault, code in refused:
        since = len(client.events)
        world.gateway.control({"do": "fault", "call": "token", "times": 1, **fault})
        client.send("RequestVenueLogin", venue="local_broker")
        assert client.wait("VenueError", "VenueReady", since=since).get("code") == code
    for name in ("garbage", "half-answer", "drop-answer"):
        world.gateway.control({"do": "fault", "name": name, "call": "token", "times": 1})
    stream(world, client)
    world.gateway.trade("2850", count=3)
    assert questions(client) == answers
    # Every token before the last is dead.
    for _ in range(3):
        world.gateway.control({"do": "end-token"})
        assert questions(client) == answers
    for call in ("wallet/cash", "wallet/margin", "orders", "positions", "board"):
        for fault in ({"name": "bad-request", "value": 4_001_010}, {"name": "unauthorized"},
                      {"name": "unauthorized", "value": 4_001_003}, {"name": "server-error"}, {"name": "garbage"},
                      {"name": "half-answer"}):
            world.gateway.control({"do": "fault", "call": call, "times": 1, **fault})
    for _ in range(6):
        questions(client)
    # Frames with what nobody expects in them.
    told = go.words()
    for frame in ({"json": go.board}, {"text": told}, {"json": {"Symbol": told}},
                  {"json": {**go.board, "Exchange": told}}, {"json": {**go.board, told: told}}):
        world.gateway.control({"do": "frame", **frame})
    world.gateway.trade("2851", count=3)
    since = len(client.events)
    client.wait("DepthSnapshot", since=since, last_price="2851")
    with seen(world) as late:
        late.ask("Subscribe", "Subscribed", venue="local_broker", ticker="7203")
        # Nobody is logged in, and then the gateway is gone.
        world.gateway.control({"do": "log-out"})
        assert questions(client) == ["token_expired"] * len(QUESTIONS)
        world.gateway.control({"do": "login-open"})
        client.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
        world.gateway.control({"do": "restart"})
        world.until(lambda: questions(client) == answers, "it goes on")
        world.gateway.kill()
        client.wait("VenueError", code="local_app_down")
        assert venue_state(late)["state"] == "AppDown"
        assert world.engine.end() == 0
        late.to_the_end()
        client.to_the_end()
    assert len(go.tokens) >= 6, "each renewal gave one"
    assert any('"***' in frame for frame in client.received), "what orders repeat is there, but for the secrets"
    log = world.log()
    for text in ("JST debug: the gateway dialect was compiled", "asks the local broker for a token",
                 "not shown: the gateway repeats a secret"):
        assert text in log, f"the log is as chatty as it can be: {text}"
    hold(world, go, client, late)


def test_an_engine_that_is_killed(between):
    """While it records."""
    world, go = between("record=true")
    with seen(world) as client:
        stream(world, client)
        questions(client)
        world.gateway.control({"do": "frame", "json": go.board})
        world.gateway.trade("2850", count=50)
        all_trades(world, client)
        world.engine.kill()
        client.to_the_end()
    assert list((world.folder / "engine" / "recordings").rglob("*.journal"))
    hold(world, go, client)


def test_a_password_that_is_refused(between):
    """It is a secret too: it may be right but for a letter."""
    world, go = between(DEV_LOCALBROKER_API_PASSWORD=WRONG)
    with seen(world) as client:
        client.send("RequestVenueLogin", venue="local_broker")
        assert client.wait("VenueError")["code"] == "login_failed"
        assert WRONG in go.passwords and go.tokens == []
        assert questions(client) == ["token_expired"] * len(QUESTIONS)
        assert world.engine.end() == 0
        client.to_the_end()
    hold(world, go, client)
