"""What strategies hold at a simulated broker, and a person's decisions: `kumiki live positions` and `adjust`, `kumiki
order settle`, and the refusals of `kumiki live run --real` before anything starts."""

import json
import os
import subprocess
from decimal import Decimal

import kumiki
import pytest
from conftest import program
from plain_client import PATIENCE
from web_broker import CLEAN, SECOND_PASSWORD, Broker, Trading, dialect


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    dialect("web-broker-spec")
    broker = Broker(tmp_path_factory.mktemp("sim") / "broker")
    yield broker
    broker.kill()


@pytest.fixture
def engine(broker, tmp_path):
    engines = [Trading(tmp_path / "engine", broker.url)]

    def again():
        engines[-1].kill()
        engines.append(Trading(tmp_path / "engine", broker.url))
        return engines[-1]

    engines[0].again = again
    yield engines[0]
    engines[-1].kill()
    print(engines[-1].stderr.read_text(encoding="utf-8", errors="replace"))


def kumiki_says(engine, *words):
    """Runs a command without a terminal: exit code, standard output, standard error."""
    command = [program(), *words, "--config-dir", engine.config]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE,
                           stdin=subprocess.DEVNULL, env={**os.environ, **CLEAN})
    return ended.returncode, ended.stdout, ended.stderr


ADJUST = ("live", "adjust", "mine", "7203.TSE", "200", "1325.25", "--why", "split 1 to 2")


def test_p125_a_person_corrects_what_a_strategy_holds(engine):
    """Shown before it is written, in the log of the orders after it, and still there after a kill -9."""
    assert kumiki_says(engine, "live", "positions") == (0, "no strategy holds shares\n", "")
    code, told, why = kumiki_says(engine, *ADJUST)
    assert (code, told) == (2, "") and "give --yes" in why
    assert "mine holds: no shares\nfrom now on: 7203.TSE 200 at 1,325.25\nwhy: split 1 to 2\n" in why
    assert kumiki_says(engine, "live", "positions")[1] == "no strategy holds shares\n"
    code, told, _ = kumiki_says(engine, *ADJUST, "--yes")
    assert (code, told) == (0, "mine: 7203.TSE 200 at 1,325.25\n")
    engine = engine.again()
    code, told, _ = kumiki_says(engine, "live", "positions", "--format", "json")
    held = {"strategy_id": "mine", "instrument_id": "7203.TSE", "quantity": "200", "average_price": "1325.25",
            "margin_quantity": "0"}
    assert code == 0 and json.loads(told)["positions"] == [held]
    code, told, _ = kumiki_says(engine, "live", "positions")
    assert code == 0 and "mine" in told and "1,325.25" in told
    with kumiki.LiveSession(attach=engine.config) as one:
        exact = {**held, "quantity": 200, "average_price": Decimal("1325.25"), "margin_quantity": 0}
        assert one.strategy_positions() == [kumiki.StrategyPosition(**exact)]
        none = one.adjust_strategy_position(strategy_id="mine", instrument_id="7203.TSE", quantity=0, average_price=0,
                                            why="sold by hand")
        assert (none.quantity, none.average_price) == (0, None)
        assert one.strategy_positions() == []
        with pytest.raises(kumiki.ValidationError, match="^WHY: "):
            one.adjust_strategy_position(strategy_id="mine", instrument_id="7203.TSE", quantity=100,
                                         average_price=2_850, why="two\nlines")


def test_p124_an_order_that_is_known_is_not_settled(engine):
    """Neither one that nobody sent, nor one that the broker has accepted."""
    with kumiki.LiveSession(attach=engine.config) as one:
        one.login()
        one.set_second_password(value=SECOND_PASSWORD)
        sent = one.submit_order(client_order_id="known", instrument_id="7203.TSE", order_side="BUY",
                                order_type="LIMIT", quantity=100, price=2_700)
        before = engine.log()
        for words in (("nobody", "--number", "1"), ("known", "--not-at-broker"), ("known", "--number", "1"),
                      ("known", "--strategy", "--not-at-broker")):
            code, told, why = kumiki_says(engine, "order", "settle", *words, "--yes")
            assert (code, told) == (1, "") and "error: " in why, (words, why)
        assert engine.log() == before, "nothing was written"
        row, = (row for row in one.order_list() if row.client_order_id == "known")
        assert (row.status, row.venue_order_id) == ("ACCEPTED", sent.venue_order_id)
        one.cancel_order(client_order_id="known")


def test_p122_p123_p126_real_orders_are_refused_before_anything_starts(engine):
    """Without a terminal nobody can be asked, without limits nothing holds a strategy back; and what P83 forbids."""
    run = ("live", "run", "sma-cross", "--instrument", "7203.TSE", "--real")
    limits = ("--max-qty", "100", "--max-notional", "500000")
    for words, why in (
        ((*run, *limits), "give --yes to start without asking"),
        ((*run, "--yes"), "--real needs --max-qty"),
        ((*run, "--yes", "--max-qty", "100"), "--real needs --max-notional"),
        ((*run, *limits, "--yes", "--cash", "1000000"), "cannot be used with"),
        ((*run, *limits, "--yes", "--execution", "strict"), "cannot be used with"),
    ):
        code, told, said = kumiki_says(engine, *words)
        assert (code, told) == (2, "") and why in said, said
    with kumiki.LiveSession(attach=engine.config) as one:
        assert one.session().state == "Idle"
