use bellwether_events::Event;

#[derive(Event)]
union Either {
    a: u32,
    b: f32,
}

fn main() {}
