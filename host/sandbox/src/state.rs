//! What the host keeps for one instance: limits, log, and the answers to its questions.

use domain::TsNanos;
use domain::strategy::{FaultKind, LogLevel, LogLine, PortfolioView};
use wasmtime::{Error, ResourceLimiter, Result};

use crate::bindings::kumiki::strategy::{aggressor, log, portfolio, types};
use crate::config::Limits;
use crate::convert;

/// What the host keeps for one instance.
pub(crate) struct State {
    pub(crate) limits: Limits,
    pub(crate) portfolio: PortfolioView,
    pub(crate) log: Vec<LogLine>,
    log_bytes: usize,
    pub(crate) narrative_bytes: usize,
    /// The last words of a panic, with the event it was handling.
    pub(crate) last_words: Option<(Option<TsNanos>, String)>,
    /// A breach noticed inside a call, more precise than the trap that follows.
    pub(crate) breach: Option<FaultKind>,
}

impl State {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            portfolio: PortfolioView::default(),
            log: Vec::new(),
            log_bytes: 0,
            narrative_bytes: 0,
            last_words: None,
            breach: None,
        }
    }

    fn breach<T>(&mut self, kind: FaultKind) -> Result<T> {
        let error = Error::msg(kind.to_string());
        self.breach = Some(kind);
        Err(error)
    }
}

impl ResourceLimiter for State {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool> {
        let allowed = self.limits.memory_bytes;
        if desired > allowed {
            return self.breach(FaultKind::Memory { asked: desired, allowed });
        }
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool> {
        let allowed = self.limits.table_entries;
        if desired > allowed {
            return self.breach(FaultKind::Limit {
                what: "table entries",
                used: desired as u64,
                allowed: allowed as u64,
            });
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.limits.instances
    }

    fn tables(&self) -> usize {
        self.limits.instances
    }

    fn memories(&self) -> usize {
        self.limits.instances
    }
}

impl types::Host for State {}

impl log::Host for State {
    fn write(&mut self, level: log::Level, ts_event: u64, message: String) -> Result<()> {
        let moment = (ts_event != 0).then(|| TsNanos::from_nanos(ts_event));
        let level = convert::log_level(level);
        if message.len() > self.limits.log_line_bytes && level != LogLevel::Panic {
            return self.breach(FaultKind::Limit {
                what: "bytes in one log line",
                used: message.len() as u64,
                allowed: self.limits.log_line_bytes as u64,
            });
        }
        if level == LogLevel::Panic {
            // A panic's text is cut off, not refused: it is the reason of the fault.
            let text = message.chars().take(self.limits.log_line_bytes).collect();
            self.last_words = Some((moment, text));
            return Ok(());
        }
        self.log_bytes += message.len();
        if self.log_bytes > self.limits.log_bytes {
            return self.breach(FaultKind::Limit {
                what: "bytes of log",
                used: self.log_bytes as u64,
                allowed: self.limits.log_bytes as u64,
            });
        }
        self.log.push(LogLine { ts_event: moment, level, message });
        Ok(())
    }
}

impl portfolio::Host for State {
    fn get_account(&mut self) -> Result<portfolio::Account> {
        Ok(convert::account(&self.portfolio.account))
    }

    fn get_position(&mut self, instrument: u16) -> Result<portfolio::Position> {
        match self.portfolio.positions.get(usize::from(instrument)) {
            Some(position) => Ok(convert::position(position)),
            None => {
                let count = self.portfolio.positions.len();
                self.breach(FaultKind::Protocol(format!(
                    "it asked for the position of instrument {instrument}; there are {count}"
                )))
            }
        }
    }

    fn working_orders(&mut self) -> Result<Vec<portfolio::Order>> {
        Ok(self.portfolio.working_orders.iter().map(convert::working_order).collect())
    }
}

impl aggressor::Host for State {
    /// The market data has no side, so neither replay nor today's live feed can tell.
    fn of_trade(&mut self, _row: u32) -> Result<aggressor::Side> {
        Ok(aggressor::Side::NoAggressor)
    }
}
