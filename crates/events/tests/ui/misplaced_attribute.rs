use bellwether_events::Event;

#[derive(Event)]
#[event(name = "money")]
enum Money {
    Opened,
}

#[derive(Event)]
struct Deposited {
    #[event(name = "c")]
    cents: i64,
}

#[derive(Event, Default)]
#[serde(default)]
struct Withdrawn {
    cents: i64,
}

fn main() {}
