use bellwether_events::Event;

#[derive(Event)]
enum Money {
    #[event(name = "")]
    Opened,
    #[event(name = "a name that is far too long to be written with every event of a log, because every byte of it is paid for again and again, on every disk and every wire")]
    Deposited { cents: i64 },
    #[event(name = "with\nnewline")]
    Withdrawn { cents: i64 },
    #[event(name = 7)]
    Closed,
    #[event(name = "a", name = "b")]
    Reopened,
}

fn main() {}
