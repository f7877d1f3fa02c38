"""A disk that takes no more while a run goes on: every command is answered, what the audit log does not have was not
sent, what it has stays, and the engine goes on."""

import json

import pytest
from engine_process import wait_until
from sessions import last_trade_price, order, submit

resource = pytest.importorskip("resource", reason="limits of files")
if not hasattr(resource, "prlimit"):
    pytest.skip("limits of the files of another process", allow_module_level=True)

AUDIT, COMMANDS = "web_broker_orders_replay.jsonl", "commands.jsonl"


def limit_files(engine, most):
    """No file of the engine grows beyond so many bytes."""
    hard = resource.prlimit(engine.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(engine.process.pid, resource.RLIMIT_FSIZE, (hard if most is None else most, hard))


def growing(engine, name):
    """A file of the run that goes on."""
    file, = (engine.cache_dir / "runs").glob(f".kumiki-*/new/{name}")
    return file


def submitted(file):
    """The orders of people in an audit log; its last line may be cut."""
    lines = file.read_text(encoding="utf-8").split("\n")[:-1]
    rows = [json.loads(line) for line in lines]
    return [row["client_order_id"] for row in rows if row["phase"] == "submit"]


def running(engine, market, client, **more):
    """A run that goes on, and a price at which orders rest in it."""
    client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
    market.load(client)
    run_id = market.run(client, multiplier=20, **more)["run_id"]
    return run_id, str(int(last_trade_price(client) * 98 / 100))


def failed(engine, client, run_id):
    """Waits for the end of the run that cannot go on, and gives the audit log that stays of it."""
    error = client.wait("EngineError", code="results_failed")
    assert "File too large" in error["message"], error
    stopped = client.wait("EngineStopped")
    assert (stopped["status"], stopped["fault"]["code"]) == ("fault", "results_failed")
    folder = engine.cache_dir / "runs" / run_id
    assert {file.name for file in folder.iterdir()} == {AUDIT, COMMANDS}
    return folder / AUDIT


@pytest.mark.parametrize("full", [COMMANDS, AUDIT])
def test_an_order_that_is_not_on_the_disk_is_not_sent(start, market, full):
    """Specification 2, "Audit log", rule 1."""
    engine = start()
    with engine.client() as client, engine.client() as other:
        run_id, low = running(engine, market, client)
        for number in range(40):
            submit(client, order(f"kept-{number}", price=low))
        sizes = {name: growing(engine, name).stat().st_size for name in (AUDIT, COMMANDS)}
        room = sizes[AUDIT] - sizes[COMMANDS]
        assert room > 1_000, "a command finds room where a line of the audit log does not"
        limit_files(engine, sizes[full])
        place = len(client.events)
        asked = client.send("SubmitOrder", venue="replay", order=order("lost", price=low))
        # What is sent behind it is answered too.
        late = [client.send("SubmitOrder", venue="replay", order=order(f"late-{number}", price=low))
                for number in range(50)]
        refused = client.wait("OrderRejected", client_order_id="lost")
        assert (refused["request_id"], refused["reason_code"]) == (asked, "INTERNAL_ERROR")
        assert refused["reason_text"].startswith("NOT_SENT: "), refused
        assert refused["origin"] == "person" and refused["order_side"] == "BUY"
        audit = failed(engine, client, run_id)
        client.ask("GetSession", "Session")
        assert {event["request_id"] for event in client.since(place, "EngineBusy")} == set(late)
        told = client.since(place, "OrderSubmitted", "OrderAccepted", "OrderRejected", "SubmitOrderResult")
        assert [event["event"] for event in told] == ["OrderRejected"], "nobody is told what is not on the disk"
        assert submitted(audit) == [f"kept-{number}" for number in range(40)]
        assert audit.read_text(encoding="utf-8").endswith("}\n"), "no line is half there"
        commands = (audit.parent / COMMANDS).read_text(encoding="utf-8")
        assert "lost" not in commands and commands.count("\n") == 40, "what was not sent is not done again"
        other.wait("EngineStopped")
        # There is room again.
        limit_files(engine, None)
        market.load(client)
        place = len(client.events)
        market.run(client, multiplier="max")
        assert client.wait("EngineStopped", since=place)["status"] == "completed"


def test_what_waits_for_a_run_that_cannot_go_on_is_answered(start, market):
    engine = start()
    with engine.client() as client:
        latency = {"model": "strict", "latency_ns": 3_600_000_000_000}
        run_id, low = running(engine, market, client, execution=latency)
        for name in ("one", "two", "three"):
            client.send("SubmitOrder", venue="replay", order=order(name, price=low))
            client.wait("OrderSubmitted", client_order_id=name)
        many = client.send("CancelAllOrders", venue="replay")
        commands = growing(engine, COMMANDS)
        wait_until(lambda: commands.read_text().count("\n") == 4, "the run has taken all of them")
        limit_files(engine, commands.stat().st_size)
        cancel = client.send("CancelOrder", venue="replay", client_order_id="one")
        audit = failed(engine, client, run_id)
        assert submitted(audit) == ["one", "two", "three"]
        answered = {event["request_id"]: event for event in client.events if event.get("request_id")}
        assert answered[cancel]["reason_code"] == "INTERNAL_ERROR"
        result = client.wait("CancelAllResult", request_id=many)
        assert (result["canceled_count"], result["failed_count"]) == (0, 3)
        rejected = {event["client_order_id"] for event in client.since(0, "OrderRejected")}
        assert rejected == {"one", "two", "three"}, "nobody knows what would have become of them"
