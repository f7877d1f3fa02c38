"""`kumiki data update` and the web broker: its history comes through the venue's own session, and never while an engine
holds the account."""

import json
import os
import subprocess

import pytest
from conftest import program
from plain_client import PATIENCE
from web_broker import CLEAN, PASSWORD, USER, Broker, Trading

HISTORY = "CLMMfdsGetMarketPriceHistory"
DAY = "2026-01-06"


@pytest.fixture
def broker(tmp_path):
    one = Broker(tmp_path / "broker", "--business-day", DAY)
    yield one
    one.kill()


def update(folder, broker, config, *arguments, **environment):
    """A run for one issue, of whose sources only the web broker can answer: its exit code, and what it reports."""
    command = [program(), "data", "update", "--prices", folder / "data", "--format", "json", "--codes", "7203", "--to", DAY,
               "--days", "1", "--public-url", "http://127.0.0.1:1/q/", "--config-dir", config,
               "--web-broker", f"base_url={broker.url}", *arguments]
    keys = {"KUMIKI_WEB_BROKER_USER": USER, "KUMIKI_WEB_BROKER_PASSWORD": PASSWORD, **environment}
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE,
                           env={**os.environ, **CLEAN, **keys})
    assert ended.stdout, ended.stderr
    report = json.loads(ended.stdout)
    for text in (ended.stdout, ended.stderr):
        assert USER not in text and PASSWORD not in text and "/price/" not in text, text
    source, = (source for source in report["sources"] if source["source"] == "web_broker")
    return source, report, ended.stderr


def asked(broker):
    """The names of the requests that came."""
    requests = broker.view()["requests"]
    return [request["fields"]["sCLMID"] for request in requests if "sCLMID" in request["fields"]]


def test_the_account_of_an_engine_is_left_alone(tmp_path, broker):
    broker.trade("2850", 300)
    on = ("--web-broker", "daily_history=true")
    engine = Trading(tmp_path / "engine", broker.url)
    try:
        client = engine.client()
        client.ask("RequestVenueLogin", "VenueReady", venue="web_broker")
        before = len(asked(broker))
        source, report, told = update(tmp_path, broker, engine.config, *on)
        assert source["state"] == "given_up" and source["reason"].startswith("skipped, an engine"), source
        assert "skipped, an engine" in json.dumps(report["issues"]) + told
        # The engine's own lists come by themselves.
        assert not {"CLMAuthLoginRequest", "CLMAuthLogoutRequest", HISTORY} & set(asked(broker)[before:])
        # Its session is the same still.
        client.ask("GetBuyingPower", "BuyingPowerUpdated", venue="web_broker")
        engine.end()
    finally:
        engine.kill()
    before = len(asked(broker))
    source, report, _ = update(tmp_path, broker, engine.config, *on)
    assert asked(broker)[before:] == ["CLMAuthLoginRequest", HISTORY, "CLMAuthLogoutRequest"], report
    assert (source["state"], source["inserted"]) == ("asked", 1), report
    # Request numbers go on where the engine's have ended.
    requests = broker.view()["requests"]
    numbers = [int(request["fields"]["p_no"]) for request in requests if "p_no" in request["fields"]]
    assert numbers == sorted(set(numbers))


def test_it_is_asked_only_where_that_is_wished_for(tmp_path, broker):
    source, _, _ = update(tmp_path, broker, tmp_path / "config")
    assert source["state"] == "not_configured" and "daily_history=true" in source["reason"], source
    assert asked(broker) == [] and not (tmp_path / "config").exists()
    on = ("--web-broker", "daily_history=true")
    source, _, _ = update(tmp_path, broker, tmp_path / "config", *on, KUMIKI_WEB_BROKER_PASSWORD="wrong")
    assert source["state"] == "given_up" and "refuses the login" in source["reason"], source
    assert asked(broker) == ["CLMAuthLoginRequest"]
