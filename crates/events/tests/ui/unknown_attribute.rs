use bellwether_events::Event;

#[derive(Event)]
enum Money {
    #[event(rename = "opened")]
    Opened,
}

fn main() {}
