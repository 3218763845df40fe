use bellwether_events::Event;

#[derive(Event)]
enum Changed<T> {
    To(T),
}

fn main() {}
