"""`kumiki order`: orders of a person at a terminal, through a running engine at a simulated web broker."""

import json
import os
import select
import subprocess
import uuid

import kumiki
import pytest
from conftest import program
from engine_process import OWN_CONSOLE, interrupt, wait_until
from plain_client import PATIENCE
from web_broker import CLEAN, SECOND_PASSWORD, Broker, Trading, dialect



@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    dialect("web-broker-spec")
    broker = Broker(tmp_path_factory.mktemp("sim") / "broker")
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def engine(broker, tmp_path_factory):
    engine = Trading(tmp_path_factory.mktemp("live") / "engine", broker.url)
    yield engine
    engine.kill()
    print(engine.stderr.read_text(encoding="utf-8", errors="replace"))


@pytest.fixture
def password(engine):
    """The engine holds the second password, as another program has given it."""
    with kumiki.LiveSession(attach=engine.config) as one:
        # Tests are handed out to workers in any order, so this may be the first that needs the session.
        one.login()
        one.set_second_password(value=SECOND_PASSWORD)
        yield
        one.forget_second_password()


def order(engine, *arguments, stdin=subprocess.DEVNULL, typed=None):
    """Runs a command: exit code, standard output, standard error."""
    command = [program(), "order", *arguments, "--config-dir", engine.config]
    given = {"stdin": stdin} if typed is None else {"input": typed}
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE, **given,
                           env={**os.environ, **CLEAN})
    return ended.returncode, ended.stdout, ended.stderr


def at_terminal(engine, *arguments, answers):
    """Runs a command at a terminal, and types each answer after its prompt: exit code, and what the terminal shows."""
    pty = pytest.importorskip("pty", reason="terminals as Unix has them")
    command = list(map(str, [program(), "order", *arguments, "--config-dir", engine.config]))
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, {**os.environ, **CLEAN})
    shown, answers = "", list(answers)
    try:
        while select.select([terminal], [], [], PATIENCE)[0]:
            shown += os.read(terminal, 4096).decode()
            if answers and shown.endswith(answers[0][0]):
                os.write(terminal, answers.pop(0)[1].encode() + b"\n")
    except OSError:
        pass
    assert not answers, (answers, shown)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def test_a_person_sends_an_order(engine, broker):
    """The first command logs in, the order's text is shown, the second password is asked for and not shown."""
    prompts = [("Send it? [y/N] ", "y"), ("(is not shown): ", SECOND_PASSWORD)]
    before = len(broker.orders())
    code, shown = at_terminal(engine, "submit", "7203.TSE", "BUY", "100", "--price", "2700", "--id", "typed",
                              answers=prompts)
    assert code == 0 and SECOND_PASSWORD not in shown, shown
    assert "BUY 100 7203.TSE at 2700 yen or better (LIMIT, DAY)" in shown
    assert "at web_broker, the simulator at 127.0.0.1:" in shown and "the demo" not in shown
    assert "ACCEPTED: order typed, number " in shown
    code, shown = at_terminal(engine, "cancel", "typed", answers=[("Send it? [y/N] ", "")])
    assert code == 1 and "nothing was sent" in shown
    code, told, _ = order(engine, "cancel", "typed", "--yes")
    assert (code, told) == (0, "cancelled: order typed\n")
    assert len(broker.orders()) == before + 1
    with engine.client() as client:
        client.send("ForgetSecondPassword")
        client.ask("Ping", "Pong")


def test_p122_the_second_password_is_given_before_it_is_needed(engine):
    """At a terminal without being shown, and by a script as a line of standard input; it is no argument."""
    with kumiki.LiveSession(attach=engine.config) as one:
        one.login()
        for give in ("terminal", "script"):
            one.forget_second_password()
            assert one.venue_state().second_password == "none"
            if give == "terminal":
                code, shown = at_terminal(engine, "password", answers=[("(is not shown): ", SECOND_PASSWORD)])
            else:
                code, shown, _ = order(engine, "password", typed=SECOND_PASSWORD + "\n")
            assert code == 0 and "the engine holds the second password" in shown and SECOND_PASSWORD not in shown
            assert one.venue_state().second_password == "held"
        one.forget_second_password()
    code, _, why = order(engine, "password")
    assert code == 2 and "the second password is empty" in why
    code, _, why = order(engine, "password", typed="9" * 200)
    assert code == 1 and "longer than 128 bytes" in why and "999" not in why


def test_a_script_sends_orders(engine, broker, password):
    code, told, _ = order(engine, "submit", "7203.TSE", "BUY", "100", "--price", "2710", "--yes", "--format", "json")
    sent = json.loads(told)
    assert code == 0 and sent["event"] == "SubmitOrderResult"
    assert (sent["outcome"], sent["status"]) == ("Created", "ACCEPTED")
    assert uuid.UUID(sent["client_order_id"]).version == 4
    same = ("submit", "7203.TSE", "BUY", "100", "--price", "2710", "--yes", "--id", sent["client_order_id"])
    before = len(broker.orders())
    code, told, _ = order(engine, *same)
    assert code == 0 and sent["venue_order_id"] in told and len(broker.orders()) == before, "it is not sent again"
    code, _, why = order(engine, *same[:4], "--yes", "--id", sent["client_order_id"])
    assert code == 1 and "conflict" in why
    code, told, _ = order(engine, "modify", sent["client_order_id"], "--price", "2720", "--yes")
    assert code == 0 and told.startswith("changed: order ")
    code, told, _ = order(engine, "list", "--status", "ACCEPTED", "--format", "json")
    row, = json.loads(told)["orders"]
    assert code == 0 and (row["client_order_id"], row["price"]) == (sent["client_order_id"], "2720")
    code, told, _ = order(engine, "list")
    assert code == 0 and told.split("\n")[0].split() == [
        "number", "id", "instrument", "side", "type", "shares", "filled", "price", "trigger", "lasts", "status"]
    code, told, _ = order(engine, "cancel-all", "--side", "BUY", "--yes")
    assert (code, told) == (0, "1 cancelled, 0 still open\n")
    code, _, why = order(engine, "cancel", "--number", sent["venue_order_id"], "--yes")
    assert code == 1 and "refused: " in why
    code, _, why = order(engine, "submit", "7203.TSE", "BUY", "101", "--yes")
    assert code == 1 and "VALIDATION_ERROR: QUANTITY: " in why


def test_exit_codes(engine, tmp_path):
    wanted = ("submit", "7203.TSE", "BUY", "100", "--price", "2700", "--id", "codes")
    code, told, why = order(engine, *wanted)
    assert (code, told) == (2, "") and "give --yes" in why
    code, told, why = order(engine, *wanted, "--yes")
    assert (code, told) == (3, "") and "needs the second password" in why
    code, shown = at_terminal(engine, *wanted, "--yes", answers=[("(is not shown): ", "")])
    assert code == 3 and "nothing was sent" in shown
    code, _, why = order(engine, "modify", "codes", "--yes")
    assert code == 2 and "nothing would change" in why
    code, _, why = order(engine, "cancel", "--yes")
    assert code == 2 and "--number" in why
    nowhere = subprocess.run([program(), "order", "list", "--config-dir", tmp_path], capture_output=True, text=True)
    assert nowhere.returncode == 1 and "no engine runs with the config folder" in nowhere.stderr


def test_what_happens_is_watched(engine, broker, password):
    command = [program(), "order", "watch", "--format", "json", "--config-dir", engine.config]
    watch = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             **OWN_CONSOLE)
    try:
        said = engine.stderr.read_text()
        wait_until(lambda: said.count("has connected") < engine.stderr.read_text().count("has connected"),
                   "it is connected")
        code, _, why = order(engine, "submit", "7203.TSE", "BUY", "100", "--price", "2850", "--id", "watched", "--yes")
        assert code == 0, why
        broker.trade("2850", 100)
        seen = []
        while not seen or seen[-1]["event"] != "OrderFilled":
            seen.append(json.loads(watch.stdout.readline()))
        names = [event["event"] for event in seen if event.get("client_order_id") == "watched"]
        assert names == ["OrderSubmitted", "OrderAccepted", "OrderFilled"]
        interrupt(watch)
        assert watch.wait(PATIENCE) == 0
    finally:
        watch.kill()
        watch.communicate()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that takes nothing")
def test_a_watch_whose_lines_cannot_be_written_ends(engine, password):
    command = [program(), "order", "watch", "--config-dir", engine.config]
    said = engine.stderr.read_text().count("has connected")
    with open("/dev/full", "w") as full:
        watch = subprocess.Popen(list(map(str, command)), stdout=full, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: said < engine.stderr.read_text().count("has connected"), "it is connected")
        code, _, why = order(engine, "submit", "7203.TSE", "BUY", "100", "--price", "2600", "--id", "full", "--yes")
        assert code == 0, why
        _, errors = watch.communicate(timeout=PATIENCE)
        assert watch.returncode == 1 and errors.startswith("error: cannot print to standard output"), errors
    finally:
        watch.kill()
        watch.communicate()
    assert order(engine, "cancel", "full", "--yes")[0] == 0


def test_an_order_whose_answer_was_lost(engine, broker, password):
    lost = {"do": "fault", "name": "drop-answer", "request": "CLMKabuNewOrder", "times": 1}
    no_list = {"do": "fault", "name": "errno", "value": -2, "request": "CLMOrderList", "times": 1000}
    broker.control(lost, no_list)
    wanted = ("submit", "7203.TSE", "BUY", "100", "--price", "2690", "--id", "lost", "--yes")
    try:
        code, _, why = order(engine, *wanted)
        assert code == 4 and "OUTCOME_UNKNOWN" in why and "--id lost" in why
        code, _, why = order(engine, *wanted)
        assert code == 4 and "the order was sent before" in why
    finally:
        broker.control({"do": "clear-faults"})
    assert sum(row["content"]["price"] == "2690" for row in broker.orders()) == 1
    assert order(engine, "list")[0] == 0
    code, told, _ = order(engine, *wanted)
    assert code == 0 and "number " in told, "the list has told"
    assert sum(row["content"]["price"] == "2690" for row in broker.orders()) == 1
    assert order(engine, "cancel", "lost", "--yes")[0] == 0
