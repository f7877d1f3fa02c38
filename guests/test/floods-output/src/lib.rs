//! Makes the host keep something at every trade: the parameter `flood` says what, `count` how many,
//! `bytes` how long each is; `at` is the number of the only trade, from 1.

use kumiki_sdk::prelude::*;

/// What the host is made to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flood {
    Lines,
    OrderId,
    Tags,
    SignalTag,
    Note,
    Title,
    Body,
    UnknownCancels,
    RejectedOrders,
}

const FLOODS: [(&str, Flood); 9] = [
    ("lines", Flood::Lines),
    ("order-id", Flood::OrderId),
    ("tags", Flood::Tags),
    ("signal-tag", Flood::SignalTag),
    ("note", Flood::Note),
    ("title", Flood::Title),
    ("body", Flood::Body),
    ("unknown-cancels", Flood::UnknownCancels),
    ("rejected-orders", Flood::RejectedOrders),
];

/// The strategy.
#[derive(Debug)]
pub struct FloodsOutput {
    flood: Flood,
    count: usize,
    bytes: usize,
    answers: bool,
    at: usize,
    seen: usize,
    made: u64,
}

impl FloodsOutput {
    fn text(&self) -> String {
        "x".repeat(self.bytes)
    }

    /// An order of one share, which is no multiple of the lot.
    fn rejected(&mut self, context: &mut Context, instrument: InstrumentIx) {
        self.made += 1;
        let id = format!("{:036}", self.made);
        context.submit(Order::market(instrument, Side::Buy, Quantity::new(1)).with_id(id));
    }

    fn one(&mut self, context: &mut Context, instrument: InstrumentIx) {
        let text = self.text();
        let order = Order::market(instrument, Side::Buy, Quantity::new(1));
        let mut mark = |tag: Option<&str>, note: Option<&str>| {
            context.emit_signal(instrument, SignalKind::Annotate, None, None, tag, note);
        };
        match self.flood {
            Flood::SignalTag => mark(Some(&text), None),
            Flood::Note => mark(None, Some(&text)),
            Flood::Lines => context.info(&text),
            Flood::Title => context.narrate(None, &text, ""),
            Flood::Body => context.narrate(None, "", &text),
            Flood::UnknownCancels => context.cancel(&text),
            Flood::RejectedOrders => self.rejected(context, instrument),
            Flood::OrderId => {
                self.made += 1;
                context.submit(order.with_id(format!("{text}{}", self.made)));
            }
            Flood::Tags => {
                let order = (0..self.count).fold(order, |order, _| order.with_tag("x", &text));
                context.submit(order);
            }
        }
    }
}

impl Strategy for FloodsOutput {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        let name = params.text("flood", "lines")?;
        let known = FLOODS.iter().find(|(known, _)| *known == name);
        let flood = known.ok_or_else(|| ParamError::new(format!("no flood is called `{name}`")))?.1;
        Ok(Self {
            flood,
            count: params.count("count", 1, 1..=usize::MAX)?,
            bytes: params.count("bytes", 0, 0..=usize::MAX)?,
            answers: params.boolean("answers", false)?,
            at: params.count("at", 0, 0..=usize::MAX)?,
            seen: 0,
            made: 0,
        })
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        self.seen += 1;
        if self.at != 0 && self.at != self.seen {
            return;
        }
        let times = if self.flood == Flood::Tags { 1 } else { self.count };
        for _ in 0..times {
            self.one(context, trade.instrument);
        }
    }

    fn on_order_event(&mut self, context: &mut Context, event: &OrderEvent) {
        if self.answers {
            self.one(context, event.instrument);
        }
    }
}

kumiki_sdk::register!(FloodsOutput);
