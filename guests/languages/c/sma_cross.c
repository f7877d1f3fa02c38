// The moving-average crossover of guests/strategies/sma-cross, in C: the same orders at the same events.
// It speaks the contract in wit/strategy itself, by the bindings that wit-bindgen makes (strategy.h).
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strategy.h"

#define LENGTH_MAX 100000
#define INSTRUMENTS_MAX 4
// Beyond it a split begins the averages anew, as in Rust.
#define SCALE_MAX 1000
#define ID_BYTES 24
#define REFUSAL_BYTES 512

// Names of the contract that are used often.
typedef exports_kumiki_strategy_guest_window_t window_t;
typedef kumiki_strategy_types_order_event_t order_event_t;
typedef kumiki_strategy_types_order_request_t order_t;

// The sums of the last `fast` and the last `slow` prices of one instrument.
typedef struct {
  // The last `slow` prices; `oldest` is where the next one goes.
  int64_t *prices;
  uint32_t oldest, seen;
  int64_t sum_fast, sum_slow;
  // What a price is multiplied with after splits, so that nothing is rounded; 0 and 1 are none.
  int64_t scale;
  // Whether the last order was a sell, and the day in Japan on which a buy and a sell were rejected
  // last: the same order would be rejected again, so that side waits for the next day.
  bool sent_sell;
  uint64_t rejected_on[2];
  // The order that is not done; there is one at most.
  char working[ID_BYTES];
  // Shares held, once the host was asked.
  int64_t held;
  bool knows_held;
} instrument_t;

// Parameters: `fast` and `slow` (prices in each average), `quantity` (shares).
static uint64_t fast = 20, slow = 100, quantity = 100;
static instrument_t instruments[INSTRUMENTS_MAX];
static uint64_t orders, now;
// The present window, which is ours until the next one comes.
static window_t window;
static uint32_t reached;

// C has no exceptions; what cannot be is told before the trap.
static _Noreturn void fail(const char *reason) {
  strategy_string_t message = {(uint8_t *)reason, strlen(reason)};
  kumiki_strategy_log_write(KUMIKI_STRATEGY_LOG_LEVEL_PANIC, now, &message);
  __builtin_trap();
}

static void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (memory == NULL) fail("no memory is left");
  return memory;
}

// Takes in a price; tells whether `slow` prices were seen.
static bool push(instrument_t *own, int64_t price) {
  if (own->scale > 1) price *= own->scale;
  uint32_t leaves_fast = own->oldest + (uint32_t)(slow - fast);
  if (leaves_fast >= slow) leaves_fast -= (uint32_t)slow;
  // Prices not seen yet count 0, so the sums need no special case at the start.
  own->sum_fast += price - own->prices[leaves_fast];
  own->sum_slow += price - own->prices[own->oldest];
  own->prices[own->oldest] = price;
  if (++own->oldest == slow) own->oldest = 0;
  if (own->seen < slow) own->seen++;
  return own->seen == slow;
}

// The day in Japan of the event being handled, counted from 1970.
static uint64_t today(void) {
  const uint64_t hour = 3600000000000;
  return (now + 9 * hour) / (24 * hour);
}

static bool may_send(instrument_t *own, bool is_sell) {
  if (own->rejected_on[is_sell] == today()) return false;
  own->sent_sell = is_sell;
  return true;
}

// The kept prices go on as prices of the new shares.
static void split(instrument_t *own, int64_t old, int64_t new) {
  int64_t scale = (own->scale > 1 ? own->scale : 1) * new, sum;
  bool is_large = __builtin_mul_overflow(own->sum_slow, old, &sum) || sum > INT64_MAX / 2;
  if (scale > SCALE_MAX || is_large) {
    memset(own->prices, 0, (size_t)slow * sizeof(int64_t));
    own->oldest = own->seen = 0;
    own->sum_fast = own->sum_slow = own->scale = 0;
    own->rejected_on[0] = own->rejected_on[1] = 0;
    return;
  }
  own->scale = scale;
  for (uint64_t i = 0; i < slow; i++) own->prices[i] *= old;
  own->sum_fast *= old;
  own->sum_slow *= old;
}

// Above zero while the fast average is above the slow one, below while below. The sums are compared
// across, in 128 bits, so nothing is rounded.
static int compare(const instrument_t *own) {
  __int128 one = (__int128)own->sum_fast * slow, other = (__int128)own->sum_slow * fast;
  return (one > other) - (one < other);
}

static void send(uint16_t index, kumiki_strategy_types_order_side_t side, uint64_t shares) {
  char *id = instruments[index].working;
  int length = snprintf(id, ID_BYTES, "O-%llu", ++orders);
  kumiki_strategy_types_action_t action = {.tag = KUMIKI_STRATEGY_TYPES_ACTION_SUBMIT};
  action.val.submit = (order_t){
      .client_order_id = {(uint8_t *)id, (size_t)length},
      .instrument = index,
      .side = side,
      .order_type = KUMIKI_STRATEGY_TYPES_ORDER_TYPE_MARKET,
      .quantity = shares,
      .time_in_force = KUMIKI_STRATEGY_TYPES_TIME_IN_FORCE_DAY,
  };
  kumiki_strategy_actions_list_action_t actions = {&action, 1};
  kumiki_strategy_actions_act(&actions);
}

static int64_t held(uint16_t index) {
  instrument_t *own = &instruments[index];
  if (!own->knows_held) {
    kumiki_strategy_portfolio_position_t position;
    kumiki_strategy_portfolio_get_position(index, &position);
    own->held = position.quantity;
    own->knows_held = true;
  }
  return own->held;
}

// Takes in a price; tells whether an order was sent.
static bool on_price(uint64_t ts_event, uint16_t index, int64_t price) {
  now = ts_event;
  instrument_t *own = &instruments[index];
  if (!push(own, price) || own->working[0] != '\0') return false;
  int compared = compare(own);
  if (compared > 0 && held(index) == 0 && may_send(own, false)) {
    send(index, KUMIKI_STRATEGY_TYPES_ORDER_SIDE_BUY, quantity);
    return true;
  }
  if (compared < 0 && held(index) > 0 && may_send(own, true)) {
    send(index, KUMIKI_STRATEGY_TYPES_ORDER_SIDE_SELL, (uint64_t)held(index));
    return true;
  }
  return false;
}

static bool on_row(uint32_t row) {
  if (window.tag == EXPORTS_KUMIKI_STRATEGY_GUEST_WINDOW_TRADES) {
    const kumiki_strategy_types_trade_columns_t *rows = &window.val.trades;
    return on_price(rows->ts_event.ptr[row], rows->instrument.ptr[row], rows->price.ptr[row]);
  }
  if (window.tag == EXPORTS_KUMIKI_STRATEGY_GUEST_WINDOW_BARS) {
    const kumiki_strategy_types_bar_t *bar = &window.val.bars.ptr[row];
    return on_price(bar->ts_event, bar->instrument, bar->close);
  }
  fail("the host resumed a window that it never handed over");
}

uint32_t exports_kumiki_strategy_guest_advance(window_t *given, uint32_t limit) {
  switch (given->tag) {
    case EXPORTS_KUMIKI_STRATEGY_GUEST_WINDOW_ONE_TRADE:
      on_price(given->val.one_trade.ts_event, given->val.one_trade.instrument,
               given->val.one_trade.price);
      return 1;
    case EXPORTS_KUMIKI_STRATEGY_GUEST_WINDOW_ONE_BAR:
      on_price(given->val.one_bar.ts_event, given->val.one_bar.instrument, given->val.one_bar.close);
      return 1;
    case EXPORTS_KUMIKI_STRATEGY_GUEST_WINDOW_RESUME:
      break;
    default:
      exports_kumiki_strategy_guest_window_free(&window);
      window = *given;
      reached = 0;
  }
  while (reached < limit) {
    if (on_row(reached++)) break;
  }
  return reached;
}

static bool is_final(kumiki_strategy_types_order_status_t status) {
  return status == KUMIKI_STRATEGY_TYPES_ORDER_STATUS_FILLED ||
         status == KUMIKI_STRATEGY_TYPES_ORDER_STATUS_CANCELED ||
         status == KUMIKI_STRATEGY_TYPES_ORDER_STATUS_EXPIRED ||
         status == KUMIKI_STRATEGY_TYPES_ORDER_STATUS_REJECTED;
}

void exports_kumiki_strategy_guest_on_order_events(
    exports_kumiki_strategy_guest_list_order_event_t *events) {
  for (size_t i = 0; i < events->len; i++) {
    const order_event_t *event = &events->ptr[i];
    instrument_t *own = &instruments[event->instrument];
    const strategy_string_t *id = &event->client_order_id;
    now = event->ts_event;
    own->knows_held = false;
    if (event->status == KUMIKI_STRATEGY_TYPES_ORDER_STATUS_REJECTED) {
      own->rejected_on[own->sent_sell] = today();
    }
    bool is_ours = id->len == strlen(own->working) && !memcmp(id->ptr, own->working, id->len);
    if (is_ours && is_final(event->status)) own->working[0] = '\0';
  }
  exports_kumiki_strategy_guest_list_order_event_free(events);
}

void exports_kumiki_strategy_guest_on_account_events(
    exports_kumiki_strategy_guest_list_account_event_t *events) {
  for (size_t i = 0; i < events->len; i++) {
    const kumiki_strategy_types_account_event_t *event = &events->ptr[i];
    now = event->ts_event;
    instruments[event->instrument].knows_held = false;
    if (event->kind.tag == KUMIKI_STRATEGY_TYPES_ACCOUNT_EVENT_KIND_SPLIT) {
      const kumiki_strategy_types_split_t *told = &event->kind.val.split;
      split(&instruments[event->instrument], told->old_shares, told->new_shares);
    }
  }
  exports_kumiki_strategy_guest_list_account_event_free(events);
}

void exports_kumiki_strategy_guest_start(uint64_t at) { now = at; }

void exports_kumiki_strategy_guest_stop(uint64_t at) { now = at; }

// Writes the reason with which init refuses.
static bool refuse(strategy_string_t *reason, const char *form, ...) {
  char text[REFUSAL_BYTES];
  va_list given;
  va_start(given, form);
  vsnprintf(text, sizeof text, form, given);
  va_end(given);
  strategy_string_dup(reason, text);
  return false;
}

static const char *past_space(const char *at) {
  while (isspace((unsigned char)*at)) at++;
  return at;
}

// Reads `"name": number` at the start of the text; where it ends, or NULL with the reason.
static const char *read_parameter(const char *at, strategy_string_t *reason) {
  const char *name = *at == '"' ? at + 1 : "";
  const char *end = strchr(name, '"');
  const char *value = end ? past_space(end + 1) : "";
  if (*value != ':') {
    refuse(reason, "the parameters must be a JSON object");
    return NULL;
  }
  value = past_space(value + 1);
  int name_length = (int)(end - name), value_length = (int)strcspn(value, ",} \t\r\n");
  struct { const char *name; uint64_t *place, high; } known[] = {
      {"fast", &fast, LENGTH_MAX}, {"slow", &slow, LENGTH_MAX}, {"quantity", &quantity, UINT64_MAX}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strlen(known[i].name) != (size_t)name_length || memcmp(known[i].name, name, name_length)) {
      continue;
    }
    char *stopped = NULL;
    *known[i].place = isdigit((unsigned char)*value) ? strtoull(value, &stopped, 10) : 0;
    if (*known[i].place >= 1 && *known[i].place <= known[i].high && stopped == value + value_length) {
      return past_space(stopped);
    }
    if (known[i].high == LENGTH_MAX) {
      refuse(reason, "parameter `%s` is %.*s; it must be a whole number from 1 to %d", known[i].name,
             value_length, value, LENGTH_MAX);
    } else {
      refuse(reason, "parameter `%s` is %.*s; it must be a number of shares from 1", known[i].name,
             value_length, value);
    }
    return NULL;
  }
  refuse(reason, "unknown parameter `%.*s`; this strategy has: fast, slow, quantity", name_length,
         name);
  return NULL;
}

// Reads the parameters, which are whole numbers in one flat object; false with the reason.
static bool read_parameters(const char *text, strategy_string_t *reason) {
  const char *at = past_space(text);
  if (*at == '\0') return true;
  if (*at != '{') return refuse(reason, "the parameters must be a JSON object");
  at = past_space(at + 1);
  while (*at == '"') {
    at = read_parameter(at, reason);
    if (at == NULL) return false;
    if (*at == ',') at = past_space(at + 1);
  }
  if (*at != '}') return refuse(reason, "the parameters must be a JSON object");
  if (fast < slow) return true;
  return refuse(reason, "parameter `fast` is %llu and `slow` is %llu; fast must be below slow", fast,
                slow);
}

static void report(const char *name, uint64_t value) {
  char text[ID_BYTES];
  int length = snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  strategy_string_t names = {(uint8_t *)name, strlen(name)};
  strategy_string_t values = {(uint8_t *)text, (size_t)length};
  kumiki_strategy_parameters_report(&names, &values);
}

bool exports_kumiki_strategy_guest_init(strategy_string_t *config,
                                        exports_kumiki_strategy_guest_list_instrument_t *given,
                                        strategy_string_t *reason) {
  char *text = allocate(config->len + 1, 1);
  memcpy(text, config->ptr, config->len);
  strategy_string_free(config);
  bool good = read_parameters(text, reason);
  free(text);
  if (good) {
    report("fast", fast);
    report("slow", slow);
    report("quantity", quantity);
  }
  for (size_t i = 0; good && i < given->len && i < INSTRUMENTS_MAX; i++) {
    instruments[i].prices = allocate((size_t)slow, sizeof(int64_t));
  }
  exports_kumiki_strategy_guest_list_instrument_free(given);
  return good;
}
