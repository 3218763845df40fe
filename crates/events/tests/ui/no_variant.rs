use bellwether_events::Event;

#[derive(Event)]
enum Nothing {}

fn main() {}
