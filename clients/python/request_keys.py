"""The key of an order request (specification 2, "request_key rules") as another implementation of xxh3
computes it, and the golden keys that the tests of both languages read:

    python clients/python/request_keys.py

writes `tests/golden/request_keys.json` anew. It needs the package xxhash.
"""

import json
import pathlib

import xxhash

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "request_keys.json"
SALT = b"order_request_key_v1"
SEED = xxhash.xxh3_64_intdigest(SALT)
FIELDS = (
    "instrument_id",
    "order_side",
    "order_type",
    "quantity",
    "price",
    "trigger_price",
    "trigger_type",
    "time_in_force",
    "expire_time_ns",
    "post_only",
    "reduce_only",
)


def field_bytes(value):
    """One field: null is the byte 0, a truth value one byte, everything else a text between 1 and 0."""
    if value is None:
        return b"\x00"
    if isinstance(value, bool):
        return bytes([value])
    return b"\x01" + str(value).encode("utf-8") + b"\x00"


def request_key(order):
    """The key of an order as it is sent; what is absent counts as null."""
    fields = b"".join(field_bytes(order.get(name)) for name in FIELDS)
    tags = "\x1f".join(sorted(set(order.get("tags") or ()), key=lambda tag: tag.encode("utf-8")))
    return xxhash.xxh3_64_intdigest(fields + field_bytes(tags), seed=SEED)


def vectors():
    """Named orders that between them use every field and every form of a missing one."""
    market = {
        "instrument_id": "7203.TSE",
        "order_side": "BUY",
        "order_type": "MARKET",
        "quantity": "100",
        "time_in_force": "DAY",
        "post_only": False,
        "reduce_only": False,
    }
    limit = {**market, "order_type": "LIMIT", "price": "2650"}
    nulls = dict.fromkeys(("price", "trigger_price", "trigger_type", "expire_time_ns", "tags"))
    cash = ["cash_margin=cash", "account_type=specific"]
    stop = {"trigger_price": "2700.5", "trigger_type": "LAST"}
    return {
        "a market order, optional fields absent": market,
        "a market order, optional fields null": {**market, **nulls},
        "a market order, no tags in the list": {**market, "tags": []},
        "another instrument, with a letter in its code": {**market, "instrument_id": "130A.TSE"},
        "a sale": {**market, "order_side": "SELL"},
        "another quantity": {**market, "quantity": "12300"},
        "a limit order": limit,
        "a price sent with a needless zero": {**limit, "price": "2650.0"},
        "an empty price is not a missing one": {**limit, "price": ""},
        "a limit order with tags": {**limit, "tags": cash},
        "tags in another order, one of them twice": {**limit, "tags": [*reversed(cash), cash[0]]},
        "Japanese text in a tag": {**limit, "tags": ["memo=寄り付き買い", "cash_margin=cash", "memo=～"]},
        "a stop order": {**market, "order_type": "STOP_MARKET", **stop},
        "a stop order with a limit": {**market, "order_type": "STOP_LIMIT", **stop, "price": "2710"},
        "a trigger without its type": {**market, "order_type": "STOP_MARKET", "trigger_price": "2700.5"},
        "good till a date": {**limit, "time_in_force": "GTD", "expire_time_ns": 1767139200000000000},
        "at the close, with a tag": {
            **limit, "time_in_force": "AT_THE_CLOSE", "tags": ["close_strategy=funari"],
        },
        "post only": {**limit, "post_only": True},
        "reduce only": {**limit, "reduce_only": True},
        "longer than 240 bytes, which hashes in another way": {
            **limit, "tags": [f"tategyoku={number:032}" for number in range(8)],
        },
    }


def golden():
    """The content of the golden file."""
    rows = [{"name": name, "order": order, "key": f"{request_key(order):016x}"}
            for name, order in vectors().items()]
    return {"seed": f"{SEED:016x}", "vectors": rows}


def main():
    text = json.dumps(golden(), ensure_ascii=False, indent=2) + "\n"
    GOLDEN.write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    main()
