//! The rows of the generated change stream: orders of a shop, 12 columns, 16 leaves.

use std::fmt::Write as _;

use crate::random::Random;

const STATUS: [&str; 6] = ["pending", "paid", "shipped", "delivered", "cancelled", "returned"];
const CURRENCY: [&str; 5] = ["USD", "EUR", "GBP", "JPY", "SEK"];
const CITY: [&str; 12] =
    ["Springfield", "Stockholm", "Göteborg", "Berlin", "New York", "São Paulo", "Tokyo", "London", "Paris", "Lagos", "Mumbai", "Oslo"];
const COUNTRY: [&str; 8] = ["US", "SE", "DE", "BR", "JP", "GB", "FR", "NG"];
const WORDS: [&str; 24] = [
    "please",
    "leave",
    "at",
    "the",
    "door",
    "call",
    "before",
    "delivery",
    "fragile",
    "gift",
    "wrap",
    "blue",
    "urgent",
    "customer",
    "requested",
    "a",
    "refund",
    "for",
    "item",
    "number",
    "twelve",
    "repack",
    "signature",
    "required",
];
const STREETS: [&str; 10] = [
    "Main St",
    "Oak Avenue",
    "Kungsgatan",
    "Birger Jarlsgatan",
    "High Street",
    "Elm Road",
    "Rue de Rivoli",
    "Park Lane",
    "Storgatan",
    "5th Avenue",
];
const THREE_DAYS_US: i64 = 3 * 86_400_000_000;

/// Appends the row of order `id` as it stands at `now_us`, as a JSON object.
pub(crate) fn write_row(out: &mut String, random: &mut Random, (id, now_us): (i64, i64)) {
    let customer = random.between(100_000, 9_000_000);
    let (status, currency) = (random.one_of(&STATUS), random.one_of(&CURRENCY));
    let total = random.between(100, 2_000_000);
    let number = id % 100_000_000;
    let (whole, cents) = (total / 100, total % 100);
    let _ = write!(
        out,
        r#"{{"order_id":{id},"customer_id":{customer},"order_no":"ORD-2025-{number:08}","status":"{status}","currency":"{currency}","total_amount":"{whole}.{cents:02}","tax_amount":"#
    );
    if random.chance(0.2) {
        out.push_str("null");
    } else {
        let tax = random.between(0, 40_000_000);
        let _ = write!(out, r#""{}.{:04}""#, tax / 10_000, tax % 10_000);
    }
    let created = now_us - random.between(0, THREE_DAYS_US);
    let is_gift = random.chance(0.1);
    let _ = write!(out, r#","created_at":{created},"updated_at":{now_us},"is_gift":{is_gift},"shipping":"#);
    write_shipping(out, random);
    out.push_str(r#","notes":"#);
    write_notes(out, random);
    out.push('}');
}

fn write_shipping(out: &mut String, random: &mut Random) {
    let (number, street) = (random.between(1, 999), random.one_of(&STREETS));
    let (city, zip, country) = (random.one_of(&CITY), random.between(10_000, 99_999), random.one_of(&COUNTRY));
    let _ = write!(out, r#"{{"street":"{number} {street}","city":"{city}","zip":"{zip:05}","country":"{country}"}}"#);
}

fn write_notes(out: &mut String, random: &mut Random) {
    if random.chance(0.5) {
        return out.push_str("null");
    }
    out.push('"');
    for index in 0..random.between(3, 12) {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(random.one_of(&WORDS));
    }
    if random.chance(0.06) {
        out.push_str(r#"\n\"ok\""#);
    }
    out.push('"');
}
