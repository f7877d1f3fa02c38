"""The golden keys of order requests, which the tests in Rust read too, computed anew."""

import json
import pathlib
import sys

import pytest

pytest.importorskip("xxhash")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import request_keys  # noqa: E402  (it stands beside the tests' folder)


@pytest.fixture(scope="module")
def golden():
    return json.loads(request_keys.GOLDEN.read_text(encoding="utf-8"))


def test_the_golden_keys_are_what_xxhash_computes(golden):
    assert golden == request_keys.golden()


def test_every_field_is_in_a_golden_order(golden):
    orders = [vector["order"] for vector in golden["vectors"]]
    for name in (*request_keys.FIELDS, "tags"):
        values = {json.dumps(order.get(name)) for order in orders}
        assert len(values) > 1, name
