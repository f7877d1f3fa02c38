"""What schemas/ipc.md and the page on desktop programs tell of a session, held against a session.

`KUMIKI_BLESS=1` writes the transcript of schemas/ipc.md anew.
"""

import hashlib
import hmac
import inspect
import json
import os
import pathlib
import re
import subprocess
import textwrap

import pytest
from conftest import ROOT
from engine_process import spawn
from plain_client import SCHEMAS, Client

PAGE = SCHEMAS / "ipc.md"
#: What stands before the transcript and after it.
BEGIN, END = "<!-- transcript -->\n\n```\n", "\n```\n"
#: Longer texts and lists are cut off.
TEXT_LENGTH_MAX = 32
MORE = "..."


class Recorded(Client):
    """A client that keeps all frames of both sides in their order."""

    def __init__(self, *how):
        self.frames = []
        super().__init__(*how)

    def raw(self, frame):
        fields = json.loads(frame)
        # The id is what a reader looks for.
        first = {name: fields[name] for name in ("op", "request_id") if name in fields}
        self.frames.append(("client", {**first, **fields}))
        super().raw(frame)

    def next(self, *patience):
        event = super().next(*patience)
        self.frames.append(("engine", event))
        return event


def whole_session(engine, market):
    """All frames of a session with a run in which a person buys."""
    span = {"instrument_id": "7203.TSE", **market.span(), "granularity": "Trade"}
    client = Recorded(engine.port, engine.token)
    # As those of somebody who writes a client; they are only echoed.
    client.name = "request"
    client.wait("ClientConnected")
    client.ask("LoadReplayData", "ReplayDataLoaded", **span)
    client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
    client.ask("StartEngine", "EngineStarted", engine="Backtest", strategy_id="first", config={
        **span, "initial_cash": "1000000", "strategy_file": "sma-cross", "multiplier": 20,
        "strategy_init_kwargs": {"fast": 100, "slow": 500},
        # Whatever trade comes next, it is enough for all of the order.
        "execution": {"model": "realistic", "participation_percent": 100}})
    since = len(client.events)
    for name in ("Trades", "KlineUpdate"):
        client.wait(name, since=since)
    client.ask("SubmitOrder", "SubmitOrderResult", venue="replay", order={
        "client_order_id": "b7f0c2de", "instrument_id": "7203.TSE", "order_side": "BUY", "order_type": "MARKET",
        "quantity": "100", "time_in_force": "DAY", "post_only": False, "reduce_only": False})
    client.wait("PositionOpened")
    client.wait("ReplayBuyingPower", since=[event["event"] for event in client.events].index("PositionOpened"))
    client.ask("StopEngine", "ReplayStopped", strategy_id="first")
    client.wait("EngineStopped")
    client.socket.close()
    return client.frames


def essential(frames):
    """The frames without those that repeat themselves, in whose place is None."""
    kept, seen = [], set()
    for place, (who, frame) in enumerate(frames):
        name = frame.get("event")
        before, after = frames[place - 1][1].get("event"), frames[min(place + 1, len(frames) - 1)][1].get("event")
        is_tick = name == "ReplayBuyingPower" and before != "PositionOpened" and after != "ReplayStopped"
        again = name in ("Trades", "KlineUpdate") and name in seen
        seen.add(name)
        if is_tick or again or name == "Progress" and (frame["kind"] == "run" or after == "Progress"):
            if kept[-1] is not None:
                kept.append(None)
        else:
            kept.append((who, frame))
    return kept


def cut(value, name=""):
    """A value as it is shown."""
    if isinstance(value, dict):
        return {key: cut(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [cut(value[0]), MORE] if len(value) > 1 else [cut(inner) for inner in value]
    if name == "run_dir":
        # Where it was made is nobody's business.
        return f"{MORE}/runs/{pathlib.PurePath(value).name}"
    if isinstance(value, str) and len(value) > TEXT_LENGTH_MAX:
        return value[:8] + MORE
    return value


def shown(frames):
    """The lines of a transcript."""
    lines = []
    for one in frames:
        if one is None:
            lines.append(MORE)
        else:
            text = f"{one[0]}  {json.dumps(cut(one[1]), ensure_ascii=False)}"
            lines += textwrap.wrap(text, 116, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def read(transcript):
    """The frames of a transcript."""
    frames = []
    for line in transcript.splitlines():
        if line.startswith(" "):
            frames[-1] += " " + line.strip()
        elif line != MORE:
            frames.append(line)
    return [(who, json.loads(text)) for who, text in (frame.split(None, 1) for frame in frames)]


def shape(value):
    """What must not change without somebody noticing: fields, their order, and kinds of values."""
    if isinstance(value, dict):
        return [(key, shape(inner)) for key, inner in value.items()]
    if isinstance(value, list):
        return [shape(inner) for inner in value[:1]]
    return type(value).__name__


def shapes(frames):
    return [(who, frame.get("op") or frame["event"], shape(frame)) for who, frame in frames]


def test_every_code_is_on_the_page():
    source = (ROOT / "host" / "ipc" / "src" / "event.rs").read_text(encoding="utf-8")
    codes = re.findall(r'pub const \w+: &str = "(\w+)";', source)
    assert len(codes) > 20
    page = PAGE.read_text(encoding="utf-8")
    assert [code for code in codes if f"`{code}`" not in page] == []


def transcript():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == 1, "the page has one transcript"
    before, rest = page.split(BEGIN)
    text, after = rest.split(END, 1)
    return before, text, after


def test_the_transcript_is_that_of_a_session(start, market):
    frames = essential(whole_session(start(), market))
    before, text, after = transcript()
    if os.environ.get("KUMIKI_BLESS"):
        text = shown(frames)
        PAGE.write_text(before + BEGIN + text + END + after, encoding="utf-8")
    wanted = shapes(read(shown(frames)))
    assert shapes(read(text)) == wanted, f"{PAGE} is out of date; KUMIKI_BLESS=1 writes it anew"
    names = [name for _, name, _ in wanted]
    for name in ("Challenge Hello Ready LoadReplayData Subscribe StartEngine SubmitOrder OrderFilled ExecutionMarker "
                 "PositionOpened StopEngine EngineStopped").split():
        assert name in names, name
    # Nothing was left out of it that is not marked.
    assert text.count(f"\n{MORE}\n") >= 1 and max(map(len, text.splitlines())) <= 116


@pytest.mark.parametrize("change", [
    lambda frames: frames[:-1], lambda frames: [frames[1], frames[0], *frames[2:]],
    lambda frames: [(frames[0][0], {**frames[0][1], "more": 1}), *frames[1:]],
    lambda frames: [(frames[0][0], {**frames[0][1], "schema_major": "1"}), *frames[1:]],
    lambda frames: [("client", frames[0][1]), *frames[1:]],
], ids=["missing", "order", "field", "kind", "side"])
def test_another_transcript_is_seen_to_be_one(change):
    _, text, _ = transcript()
    frames = read(text)
    assert shapes(change(frames)) != shapes(frames)


def named(page, schema):
    """The messages of the schema that a page names as code, and those that it does not."""
    forms = schema["$defs"]
    known = {kind["properties"][tag]["const"] for root, tag in (("Command", "op"), ("Event", "event"))
             for kind in forms[root]["oneOf"]}
    text, _, rest = page.partition(BEGIN)
    text += rest.partition(END)[2]
    found = set(re.findall(r"`(\w+)`", text)) & known
    return found, known - found


def test_the_page_names_every_message():
    """In its text: the transcript has some of them, and does not say what they are for."""
    schema = json.loads((SCHEMAS / "ipc.schema.json").read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    found, missing = named(page, schema)
    assert not missing and len(found) > 60, missing
    assert named(page.replace("`EvictLru`", "EvictLru"), schema)[1] == {"EvictLru"}


def test_the_page_warns_of_events_longer_than_a_package_takes():
    """The default of Python's `websockets` is what the page says it is; the lists are longer in
    `test_p74_a_long_list_comes_in_pages`."""
    from websockets.sync.client import connect

    default = inspect.signature(connect).parameters["max_size"].default
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert default == 1 << 20 and "`websockets` ends the connection at 1 MiB unless `max_size` says otherwise" in page


def guide():
    """The first steps of a desktop program: their blocks of code, and their text."""
    text = (ROOT / "docs" / "howto" / "desktop-client.md").read_text(encoding="utf-8")
    _, part, _ = text.split("<!-- desktop program -->")
    blocks = [block.partition("\n")[2].strip().splitlines() for block in part.split("```")[1::2]]
    return blocks, part


def test_a_desktop_program_does_what_its_page_says(market, tmp_path):
    """Its line, what answers it, the proofs, five commands with their answers, and the end."""
    ((command, line, listening), commands), part = guide()
    assert len(commands) == 5
    assert command.split() == ["kumiki", "serve", "--mode", "replay", "--data", "data"]
    line = json.loads(line)
    assert line.keys() == {"port", "token", "config_dir", "cache_dir"}
    line.update(token="0f" * 32, config_dir=str(tmp_path / "config"), cache_dir=str(tmp_path / "cache"))
    engine = spawn(["--data", str(market.folder)], stdin=subprocess.PIPE, cwd=tmp_path)
    try:
        engine.stdin.write(json.dumps(line).encode() + b"\n")
        engine.stdin.flush()
        told = json.loads(engine.stdout.readline())
        listening = json.loads(listening)
        assert told.keys() == listening.keys() and f"ws://127.0.0.1:{listening['listening']}/" in part
        with Client(told["listening"], line["token"], greet=False) as client:
            nonces = {"server_nonce": client.take_challenge()["server_nonce"], "client_nonce": "c0" * 32}

            def shown(side):
                message, = re.findall(f"`({side}:<.*>:<.*>:replay)`", part)
                for name, nonce in nonces.items():
                    message = message.replace(f"<{name}>", nonce)
                return hmac.new(line["token"].encode(), message.encode(), hashlib.sha256).hexdigest()

            client.raw(json.dumps(client.hello(client_nonce=nonces["client_nonce"], proof=shown("client"))))
            assert client.wait("Ready")["proof"] == shown("server")
            answers = ["Session", "Subscribed", "ReplayDataLoaded", "EngineStarted", "SubmitOrderResult"]
            after = part.split("```")[-1]
            assert [name for name in re.findall(r"`(\w+)`", after) if name in answers] == answers
            for text, answer in zip(commands, answers):
                fields = json.loads(text)
                if fields["op"] == "SubmitOrder":
                    client.wait("Trades")
                client.ask(fields.pop("op"), answer, **fields)
            for name in ("KlineUpdate", "OrderFilled"):
                client.wait(name)
            engine.stdin.close()
            assert client.closed() == 1001
        assert engine.wait(60) == 0
    finally:
        engine.kill()
        engine.wait()
        engine.stdout.close()
