"""One market for both simulators, with the real engine between them: a person's order fills when the board trades
through its price, and only once, whatever happens to its answer, its list and the engine."""

import pytest
from market_world import Market, MarketWorld, end_market
from web_broker import PASSWORD, USER


@pytest.fixture
def world(tmp_path):
    with MarketWorld(tmp_path) as one:
        one.ready()
        yield one
        one.check(alone=len(one.engines) == 1)


def fills(client, name):
    """Price and shares of each fill that a client was told of an order."""
    return [(event["last_price"], event["last_qty"]) for event in client.events
            if event["event"] == "OrderFilled" and event["client_order_id"] == name]


def shown(world, price):
    """Waits until the board of the engine's client has traded at a price."""
    world.client.wait("Trades", where=lambda event: any(row["price"] == price for row in event["trades"]))


def test_a_trade_of_the_board_fills_an_order(world):
    """Not by a trade above its limit, then by no more shares than the trade has, and the board shows each trade."""
    world.boards()
    # Of the first frame comes no trade.
    world.gateway.trade("2850")
    world.placed("one", price="2840", quantity="300")
    world.gateway.trade("2841")
    shown(world, "2841")
    assert world.received("one")[0]["filled"] == 0
    world.gateway.trade("2840", 200)
    world.gateway.trade("2839", 500)
    world.client.wait("OrderFilled", client_order_id="one", where=lambda event: event["leaves_qty"] == "0")
    shown(world, "2839")
    assert fills(world.client, "one") == [("2840", "200"), ("2840", "100")]
    assert world.held() == 600
    assert world.gateway.view()["symbols"]["7203"]["price"] == "2839"
    assert [order["status"] for order in world.received("one")] == ["10"]
    assert world.unknown() == []


def test_a_lost_answer_a_late_list_and_a_kill_make_one_order(world):
    """The order is found again, and its fill is told once."""
    world.fault("drop-answer", request="CLMKabuNewOrder", times=1)
    world.fault("late-lists", value=1_500)
    since = len(world.client.events)
    told = world.submit("one", price="2840")
    assert (told["event"], told["code"]) == ("Error", "INTERNAL_ERROR"), told
    world.gateway.trade("2840")
    assert world.known("one", since)["event"] == "OrderAccepted"
    world.client.wait("OrderFilled", client_order_id="one")
    world.restart()
    rows = [row for row in world.orders() if row["client_order_id"] == "one"]
    assert [(row["status"], row["filled_qty"]) for row in rows] == [("FILLED", "100")]
    assert [order["filled"] for order in world.received("one")] == [100]
    assert (world.unknown(), len(world.broker.orders())) == ([], 1)
    every = [fill for client in world.clients for fill in fills(client, "one")]
    assert every == [("2840", "100")]


def test_a_sale_by_hand_and_a_split_change_what_the_account_holds(world):
    number = world.sell_by_hand(100)
    world.gateway.trade("2850", 100)
    assert world.held() == 200
    assert [row["client_order_id"] for row in world.orders() if row["venue_order_id"] == number] == [None]
    world.next_day(**{"7203": 2})
    assert world.held() == 400
    assert world.broker.view()["day"] == world.gateway.view()["day"].replace("-", "")


def test_the_same_seed_makes_the_same_fills(tmp_path):
    """Both doors of the program: what it tells, and how it ends."""
    outcomes = []
    for seed in (5, 5, 6):
        walk = ("--seed", seed, "--speed", "max", "--market-begins", "held", "--mean-gap", "20s")
        market = Market(tmp_path / f"market-{len(outcomes)}", market=walk)
        assert market.told["environment"]["DEV_WEBBROKER_USER_ID"] == USER
        assert market.told["environment"]["DEV_WEBBROKER_PASSWORD"] == PASSWORD
        market.broker.control(
            {"do": "order", "issue": "7203", "side": "buy", "quantity": 1000},
            {"do": "order", "issue": "7203", "side": "buy", "quantity": 300, "price": "2845"},
            {"do": "order", "issue": "7203", "side": "sell", "quantity": 300, "price": "2855"})
        market.gateway.control({"do": "market", "run": True})
        while not market.gateway.view()["market_over"]:
            pass
        outcomes.append([[(fill["price"], fill["quantity"]) for fill in order["fills"]]
                         for order in market.broker.orders()])
        assert end_market(market) == 0
    assert outcomes[0] == outcomes[1] != outcomes[2]
    assert sum(shares for _, shares in outcomes[0][0]) == 1000
