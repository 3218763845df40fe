//! Runs the test server until the standard input ends; prints its URL first. `cargo xtask test` starts this, so that
//! all test programs share one server.

use std::io::{Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = bellwether_launch::test_server()?;
    let mut out = std::io::stdout();
    writeln!(out, "{} {}", server.url("postgres"), server.binaries().version()?)?;
    out.flush()?;
    // The end of the input is the signal to leave; the server ends with this process.
    let mut input = [0_u8; 64];
    while std::io::stdin().read(&mut input)? > 0 {}
    Ok(())
}
