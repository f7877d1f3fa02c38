"""A whole replay session of somebody who has `websockets`, `hmac` and the JSON Schema, and nothing of the package
`kumiki`: run as a program of its own, with the engine's port and token and what to replay as one JSON object.

It prints what it saw as one JSON object.
"""

import json
import pathlib
import sys
from decimal import Decimal

# From here on an import of the package fails, wherever it is installed.
assert "kumiki" not in sys.modules
sys.modules["kumiki"] = None
# Without the folders of the environment, only what is installed can be imported, and the client beside this file.
assert sys.flags.isolated
sys.path.append(str(pathlib.Path(__file__).resolve().parent))

from plain_client import Client  # noqa: E402
from websockets.exceptions import ConnectionClosed  # noqa: E402


def refused_proof(port, token):
    """How a wrong token is refused."""
    with Client(port, token, greet=False) as client:
        client.take_challenge()
        client.raw(json.dumps(client.hello()))
        refused = client.next()
        try:
            client.next()
        except ConnectionClosed:
            return [refused["event"], refused["code"], client.socket.close_code, client.socket.close_reason]
        raise AssertionError("it was taken")


def session(port, token, span, config):
    """Loads, runs, buys and sells as a person, and sees the run to its end."""
    with Client(port, token) as client:
        assert client.challenge["event"] == "Challenge" and client.ready["session_state"] == "Idle"
        ticker = span["instrument_id"].partition(".")[0]
        client.ask("Subscribe", "Subscribed", venue="replay", ticker=ticker)
        loaded = client.ask("LoadReplayData", "ReplayDataLoaded", **span)
        assert client.ask("GetSession", "Session")["state"] == "Loaded"
        started = client.ask("StartEngine", "EngineStarted", engine="Backtest", strategy_id="one",
                             config={**span, **config, "multiplier": 20})
        client.wait("Trades")
        for side in ("BUY", "SELL"):
            client.ask("SubmitOrder", "SubmitOrderResult", venue="replay", order={
                "client_order_id": side.lower(), "instrument_id": span["instrument_id"], "order_side": side,
                "order_type": "MARKET", "quantity": "100", "time_in_force": "DAY", "post_only": False,
                "reduce_only": False})
            client.wait("OrderFilled", client_order_id=side.lower(), leaves_qty="0")
        client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
        ended = client.wait("EngineStopped")
        place = client.events.index(ended)
        cash = Decimal(config["initial_cash"])
        fills = client.since(0, "OrderFilled")
        for fill in fills:
            value = Decimal(fill["last_price"]) * int(fill["last_qty"])
            cash += value if fill["order_side"] == "SELL" else -value
        assert ended["run_id"] == started["run_id"] and client.events[place - 1]["event"] == "ReplayBuyingPower"
        assert Decimal(client.events[place - 1]["cash"]) == cash
        rows = sum(len(event["trades"]) for event in client.since(0, "Trades"))
        client.send("Shutdown")
        code = client.closed()
        return {"loaded": loaded["trades_loaded"], "rows": rows, "done": ended["rows_done"], "status": ended["status"],
                "equity": ended["final_equity"], "cash": str(cash), "fills": len(fills), "code": code}


def main():
    how = json.loads(sys.argv[1])
    refused = refused_proof(how["port"], "another token of as many")
    told = session(how["port"], how["token"], how["span"], how["config"])
    assert sys.modules["kumiki"] is None and not [name for name in sys.modules if name.startswith("kumiki.")]
    print(json.dumps({"refused": refused, **told}))


if __name__ == "__main__":
    main()
