"""What goes wrong between an engine and the local broker's gateway, through the program: the gateway restarts, is gone
and comes back, takes the token no longer, its push breaks, everybody is logged out."""

import pytest
from local_world import SPEC, VENDOR, LocalWorld, all_trades, logged_out, stream, subscribe, venue_state
from plain_client import Refused

#: Whoever tries again at such intervals is not done before a test gives up.
NEVER_AGAIN = "retry_wait_ms=60000"


@pytest.fixture(params=[SPEC, VENDOR])
def form(request):
    """In both dialects."""
    return request.param


def errors(client):
    """The codes of the outages that a client was told."""
    client.take_all()
    return [event["code"] for event in client.since(0, "VenueError")]


def refusals(client):
    """With what code each question for the gateway is refused."""
    told = []
    for command, fields in (("GetBoard", {"ticker": "7203"}), ("GetBuyingPower", {}), ("GetOrderList", {"filter": {}}),
                            ("GetPositions", {})):
        with pytest.raises(Refused) as refused:
            client.ask(command, "nothing", venue="local_broker", **fields)
        told.append(refused.value.event["code"])
    return told


def brief(rows):
    """The prices and shares of trades, and whether they tell what was missed."""
    assert all(row.get("after_gap", False) == (row["side_rule"] == "after_gap") for row in rows), rows
    return [(row["price"], row["qty"], row.get("after_gap", False)) for row in rows]


def is_streaming(client):
    return venue_state(client)["push"] == "Streaming"


def lost(world):
    """How often the stream was lost, or could not be opened, by the log."""
    return world.log().count("the local broker's stream is down")


def logins(world):
    """How often the gateway gave a token, and how often it was asked for one."""
    view = world.gateway.view()
    return view["counts"]["logins"], view["calls"]["token"]


def test_a_gateway_that_restarts_goes_on_with_the_password_in_memory(tmp_path, form):
    """P46: its token is dead and its list empty; nobody is told of an outage."""
    with LocalWorld(tmp_path, "reconnect_base_ms=200", form=form) as world, world.client() as client:
        stream(world, client)
        for price in ("2850", "2851"):
            world.gateway.trade(price)
        assert brief(all_trades(world, client)) == [("2851", "100", False)]
        # It is refused for longer than the first two tries take, and nobody is pushed the trade.
        world.gateway.control({"do": "restart", "down_ms": 1_000},
                              {"do": "trade", "symbol": "7203", "price": "2852", "quantity": 300})
        world.until(lambda: (venue_state(client)["push"] or "").startswith("Reconnecting "), "it is opened again")
        world.until(lambda: is_streaming(client), "it streams")
        assert world.registered() == ["7203"]
        for price in ("2853", "2854"):
            world.gateway.trade(price)
        assert brief(all_trades(world, client)) == [
            ("2851", "100", False), ("2853", "400", True), ("2854", "100", False)]
        assert world.gateway.view()["counts"]["logins"] == 2 and errors(client) == []
        assert venue_state(client)["state"] == "Ready" and client.since(0, "VenueReady")[1:] == []


def test_a_dead_token_is_renewed_once_for_all_that_wait(tmp_path, form):
    """P47: and no trade is lost by it."""
    with LocalWorld(tmp_path, form=form) as world, world.client() as client, world.client() as other:
        stream(world, client)
        world.gateway.control({"do": "trade", "symbol": "7203", "price": "2850", "quantity": 100, "count": 50},
                              {"do": "end-token"})
        waiting = [(one, command, one.send(command, venue="local_broker"))
                   for one in (client, other) for command in ("GetBuyingPower", "GetPositions")]
        world.gateway.trade("2851", 200, count=50)
        for one, command, request_id in waiting:
            one.wait("BuyingPowerUpdated" if command == "GetBuyingPower" else "PositionsUpdated",
                     request_id=request_id)
        world.gateway.trade("2852", 300, count=50)
        told = all_trades(world, client)
        assert len(told) == 149 and not any(row.get("after_gap") for row in told)
        assert logins(world) == (2, 2)
        assert errors(client) == errors(other) == [] and lost(world) == 0


def test_what_is_traded_while_the_push_is_broken_comes_as_one_trade(tmp_path, form):
    """P49, P55: each time anew, and all volumes add up."""
    with LocalWorld(tmp_path, form=form, environment={"KUMIKI_LOG": "debug"}) as world, world.client() as client:
        stream(world, client)
        world.gateway.trade("2850", count=2)
        for broken in range(1, 4):
            missed = {"do": "trade", "symbol": "7203", "price": "2860", "quantity": 100 * broken, "count": 2}
            assert world.gateway.control({"do": "drop-push"}, missed)["was_open"] is True
            world.until(lambda broken=broken: lost(world) == broken, "the stream is lost")
            world.until(lambda: is_streaming(client), "it streams")
            world.gateway.trade("2861")
            world.gateway.trade("2862")
        gaps = [("2861", str(200 * broken + 100), True) for broken in range(1, 4)]
        assert brief(all_trades(world, client)) == [
            ("2850", "100", False), *(row for gap in gaps for row in (gap, ("2862", "100", False)))]
        assert world.log().count("to=Ready(Reconnecting(1))") == 3, "whoever has had a frame begins anew"
        assert errors(client) == [] and logins(world) == (1, 1)


def log_lines(world, code):
    """The levels of the lines of the log that tell of an outage."""
    return [line.split(" JST ")[1].split(":")[0] for line in world.log().splitlines() if f'code="{code}"' in line]


@pytest.mark.parametrize("window, level", [((720, 721), "error"), ((-60, 60), "note")])
def test_a_gateway_that_is_gone_is_told_once_and_comes_back_by_itself(tmp_path, form, window, level):
    """P46, P49: commands fail without a try of their own. Where everybody is logged out then, it is no error."""
    with LocalWorld(tmp_path, NEVER_AGAIN, logged_out(*window), form=form) as world, world.client() as client:
        stream(world, client)
        world.gateway.kill()
        down = client.wait("VenueError")
        assert (down["venue"], down["code"]) == ("local_broker", "local_app_down"), down
        assert refusals(client) == ["local_app_down"] * 4
        with world.client() as late:
            told = venue_state(late)
            assert (told["state"], told["push"], told["code"]) == ("AppDown", None, "local_app_down")
        since = len(client.events)
        world.gateway_again()
        ready = client.wait("VenueReady", since=since)
        assert "request_id" not in ready and ready["venue"] == "local_broker"
        world.until(lambda: world.registered() == ["7203"] and is_streaming(client), "it is registered again")
        # In the forced logout it is ready, and shows nothing.
        code = "forced_logout" if level == "note" else None
        assert (venue_state(client)["state"], venue_state(client)["code"]) == ("Ready", code)
        assert errors(client) == ["local_app_down"] and log_lines(world, "local_app_down") == [level]
        if level == "error":
            world.gateway.trade("2850", count=3)
            client.wait("Trades", since=since)
        assert client.ask("GetBuyingPower", "BuyingPowerUpdated", venue="local_broker")["cash_available"] == "1234567"
        assert logins(world) == (1, 1), "the other one gave one token"


def test_who_is_logged_out_asks_for_no_token_until_somebody_wants_it(tmp_path, form):
    """P46, P47: and no board is shown meanwhile, whatever is pushed."""
    with LocalWorld(tmp_path, form=form) as world, world.client() as client:
        stream(world, client)
        world.gateway.control({"do": "log-out"})
        with pytest.raises(Refused) as refused:
            client.ask("GetBuyingPower", "BuyingPowerUpdated", venue="local_broker")
        assert refused.value.event["code"] == "token_expired"
        told = venue_state(client)
        assert (told["state"], told["push"], told["code"]) == ("TokenExpired", None, "token_expired")
        assert logins(world) == (1, 2), "it was asked for once, in vain"
        world.gateway.control({"do": "login-open"})
        seen = world.gateway.view()["counts"]["requests"]
        world.gateway.trade("2850", count=3)
        assert refusals(client) == ["token_expired"] * 4
        assert world.gateway.view()["counts"]["requests"] == seen, "the gateway is left alone"
        assert errors(client) == ["token_expired"] and client.since(0, "DepthSnapshot", "Trades") == []
        since = len(client.events)
        client.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
        assert [event["event"] for event in client.since(since)][0] == "VenueLoginStarted"
        world.until(lambda: world.registered() == ["7203"] and is_streaming(client), "it streams")
        world.gateway.trade("2851", count=2)
        client.wait("Trades", since=since)
        assert logins(world) == (2, 3) and errors(client) == ["token_expired"]


def test_nothing_is_shown_while_everybody_is_logged_out(tmp_path, form):
    """P47: the gateway pushes, and the venue stays ready."""
    with LocalWorld(tmp_path, logged_out(-60, 60), form=form) as world, world.client() as client:
        stream(world, client)
        world.gateway.trade("2850", count=10)
        world.until(lambda: "1 while the gateway is logged out" in world.log(), "the first frame is not taken")
        # What is asked for is told.
        board = client.ask("GetBoard", "DepthSnapshot", venue="local_broker", ticker="7203")
        assert board["last_price"] == "2850"
        told = venue_state(client)
        assert (told["state"], told["push"], told["code"]) == ("Ready", "Streaming", "forced_logout")
        assert world.engine.end() == 0
        client.closed()
        assert client.since(0, "DepthSnapshot", "Trades", "VenueError") == [board]
        assert "dropped 10 frames" in world.log() and "10 while the gateway is logged out" in world.log()


def test_an_engine_may_log_in_when_it_starts(tmp_path, form):
    """P45: nobody has to ask for it, and a client that comes later is told by a question."""
    with LocalWorld(tmp_path, "login_at_start=true", form=form) as world, world.client() as client:
        subscribe(world, client)
        world.gateway.trade("2850", count=2)
        client.wait("Trades")
        assert venue_state(client)["state"] == "Ready" and logins(world) == (1, 1)
        client.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
        assert logins(world) == (1, 1) and errors(client) == []


def test_a_login_at_the_start_with_a_wrong_password_is_tried_once(tmp_path, form):
    environment = {"DEV_LOCALBROKER_API_PASSWORD": "marker4wrong"}
    with LocalWorld(tmp_path, "login_at_start=true", form=form, environment=environment) as world:
        with world.client() as client:
            world.until(lambda: venue_state(client)["code"] == "login_failed", "it is refused")
            assert venue_state(client)["state"] == "Disconnected" and logins(world) == (0, 1)
            assert refusals(client) == ["token_expired"] * 4, "nobody is logged in"
            assert logins(world) == (0, 1) and "marker4wrong" not in world.log()


def test_no_place_is_lost_by_readings_that_come_to_nothing(tmp_path):
    """One is under suspicion while the gateway's list is asked for, and another one of the same board comes meanwhile: both
    fail, and the client holds no place that it does not know of (P46, P51)."""
    with LocalWorld(tmp_path) as world, world.client() as client:
        client.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
        world.until(lambda: is_streaming(client), "it streams")
        listed = world.gateway.view()["calls"].get("register", 0)
        world.gateway.control({"do": "fault", "name": "drop-before", "call": "board", "times": 4},
                              {"do": "fault", "name": "delay-answer", "value": 1500, "call": "register", "times": 1})
        first = client.send("GetBoard", venue="local_broker", ticker="9984")
        world.until(lambda: world.gateway.view()["calls"].get("register", 0) > listed, "the list is asked for")
        world.gateway.control({"do": "fault", "name": "bad-request", "value": 4001008, "call": "board", "times": 1})
        second = client.send("GetBoard", venue="local_broker", ticker="9984")
        for request_id in (first, second):
            assert client.wait("Error", request_id=request_id)["code"] == "gateway_error"
        asked = [client.send("Subscribe", venue="local_broker", ticker=str(code)) for code in range(1301, 1351)]
        for request_id in asked:
            assert client.wait("Subscribed", "Error", request_id=request_id)["event"] == "Subscribed"
        assert len(world.registered()) == 50
