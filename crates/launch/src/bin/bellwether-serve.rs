//! Runs the test server until the standard input ends; prints its URL and version first. `cargo xtask test` starts this,
//! so that all test programs share one server.

use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let server = bellwether_launch::test_server()?;
    let mut out = io::stdout();
    writeln!(out, "{} {}", server.url("postgres"), server.binaries().version()?)?;
    out.flush()?;
    // The end of the input is the signal to leave; the server ends with this process.
    let mut input = [0_u8; 64];
    while io::stdin().read(&mut input)? > 0 {}
    Ok(())
}
