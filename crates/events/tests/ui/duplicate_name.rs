use bellwether_events::Event;

#[derive(Event)]
enum Money {
    Deposited { cents: i64 },
    #[event(name = "Deposited")]
    Paid { cents: i64 },
}

fn main() {}
