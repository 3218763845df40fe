//! Benchmarks: how long things take and how much they need, in release builds, never in timed tests. They lie in `benches/`; run
//! one with `cargo bench -p bellwether-benches --bench NAME`.
