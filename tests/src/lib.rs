//! Whole-system tests: real processes on real stores, and the rules of the workspace itself.
//!
//! The tests lie in `tests/`, one file per claim; the programs that they start and measure from outside lie in `src/bin`.
//! `cargo xtask test` gives them the demo (`BELLWETHER_DEMO`) and one PostgreSQL for all (`BELLWETHER_TEST_POSTGRES`).
