//! The host's values in the words of the generated bindings.

use domain::order::{OrderSide, OrderType, TimeInForce};
use domain::order_mapping::{Allocation, BrokerAnswer, BrokerChange, BrokerOrder, Field};
use domain::price::Price;
use domain::time::JstDate;
use wasmtime::{Error, Result};

use super::wit;

fn side(side: OrderSide) -> wit::Side {
    match side {
        OrderSide::Buy => wit::Side::Buy,
        OrderSide::Sell => wit::Side::Sell,
    }
}

/// Only types that the contract has come here.
fn order_type(order_type: OrderType) -> Result<wit::OrderType> {
    match order_type {
        OrderType::Market => Ok(wit::OrderType::Market),
        OrderType::Limit => Ok(wit::OrderType::Limit),
        OrderType::StopMarket => Ok(wit::OrderType::StopMarket),
        OrderType::StopLimit => Ok(wit::OrderType::StopLimit),
        other => Err(Error::msg(format!("the host asks about an order of type {other}"))),
    }
}

fn time_in_force(time_in_force: TimeInForce) -> Result<wit::TimeInForce> {
    match time_in_force {
        TimeInForce::Day => Ok(wit::TimeInForce::Day),
        TimeInForce::Gtd => Ok(wit::TimeInForce::Gtd),
        TimeInForce::AtTheOpen => Ok(wit::TimeInForce::AtTheOpen),
        TimeInForce::AtTheClose => Ok(wit::TimeInForce::AtTheClose),
        other => Err(Error::msg(format!("the host asks about an order that lives {other}"))),
    }
}

fn price(price: Option<Price>) -> Option<String> {
    price.map(|price| price.to_string())
}

fn date(date: Option<JstDate>) -> Option<String> {
    date.map(|date| date.format("%Y%m%d").to_string())
}

pub(super) fn order(order: &BrokerOrder) -> Result<wit::Order> {
    Ok(wit::Order {
        symbol: order.symbol.to_string(),
        side: side(order.side),
        order_type: order_type(order.order_type)?,
        quantity: order.quantity.shares(),
        price: price(order.price),
        trigger_price: price(order.trigger_price),
        time_in_force: time_in_force(order.time_in_force)?,
        expire_date: date(order.expire_date),
        tags: order.tags.clone(),
    })
}

pub(super) fn allocation(allocation: &Allocation) -> wit::Allocation {
    wit::Allocation {
        position: allocation.position.clone(),
        quantity: allocation.quantity.shares(),
    }
}

pub(super) fn change(change: &BrokerChange) -> Result<wit::Change> {
    Ok(wit::Change {
        venue_order_id: change.venue_order_id.to_string(),
        business_day: change.business_day.as_deref().map(str::to_owned),
        order_type: order_type(change.order_type)?,
        quantity: change.quantity.map(|quantity| quantity.shares()),
        price: price(change.price),
        trigger_price: price(change.trigger_price),
        expire_date: date(change.expire_date),
    })
}

pub(super) fn answer(answer: &BrokerAnswer) -> wit::Answer {
    wit::Answer {
        id: answer.id.clone(),
        errno: answer.errno.clone(),
        error_text: answer.error_text.clone(),
        fields: fields(&answer.fields),
    }
}

pub(super) fn fields(fields: &[Field]) -> Vec<wit::Field> {
    let field = |one: &Field| wit::Field { name: one.name.clone(), value: one.value.clone() };
    fields.iter().map(field).collect()
}
