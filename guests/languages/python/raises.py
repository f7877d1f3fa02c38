"""A strategy that fails at its first event; a test holds what the host says about it."""

import sma_cross
from wit_world.exports.guest import Window


class Guest(sma_cross.Guest):
    """The same strategy with a mistake."""

    @sma_cross.with_last_words
    def advance(self, window: Window, limit: int) -> int:
        prices: list[int] = []
        return prices[limit]
