//! The main job on real input: the history of a repository becomes events, tenants' projections take turns under one budget, and
//! every stored document is compared with a plain fold over the input.
//!
//! `cargo xtask demo --help` lists the flags; start reading at [`run`].

mod args;
mod catch_up;
mod claim;
mod data;
mod fold;
mod git;
mod history;
mod import;
mod input;
mod progress;
mod report;
mod row;
mod server;
mod tenant;
mod verify;

use std::process::ExitCode;
use std::time::Duration;

use bellwether::daemon::DaemonError;
use bellwether::node::NodeError;
use bellwether::prelude::*;
use bellwether::storage::ErrorKind;
use clap::Parser;

use crate::args::Args;
use crate::catch_up::{PROJECTIONS, catch_up};
use crate::data::Place;
use crate::fold::Expectation;
use crate::input::Input;
use crate::progress::Progress;
use crate::report::{Report, Seconds, Work, peak_rss_bytes};
use crate::verify::Findings;

/// How often the work is taken up again when the store did not answer, and how long a pause is.
const TAKEN_UP_MAX: u32 = 10;
const PAUSE: Duration = Duration::from_secs(2);

/// Why the demo ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What the user asked for cannot be done; nothing was changed. Exit code 2.
    Refused(String),
    /// The store did not answer. The work is taken up again a bounded number of times; then exit code 1.
    Lost(String),
    /// Something broke on the way; run it again on the same `--data`. Exit code 1.
    Failed(String),
}

impl Failure {
    fn of(kind: ErrorKind, reason: String) -> Self {
        match kind {
            ErrorKind::Unavailable | ErrorKind::Unknown | ErrorKind::Conflict => Self::Lost(reason),
            _ => Self::Failed(reason),
        }
    }
}

impl From<bellwether::Error> for Failure {
    fn from(error: bellwether::Error) -> Self {
        Self::of(error.kind(), error.to_string())
    }
}

impl From<bellwether::events::AppendError> for Failure {
    fn from(error: bellwether::events::AppendError) -> Self {
        Self::of(error.kind(), error.to_string())
    }
}

impl From<bellwether::node::NodeError> for Failure {
    fn from(error: bellwether::node::NodeError) -> Self {
        match &error {
            NodeError::Daemon(DaemonError::Storage { source, .. }) => {
                Self::of(source.kind(), error.to_string())
            }
            // Pages that did not end in time roll back, as if they had never begun.
            NodeError::Daemon(DaemonError::StopDeadline { .. }) => Self::Lost(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<bellwether_launch::LaunchError> for Failure {
    fn from(error: bellwether_launch::LaunchError) -> Self {
        Self::Failed(error.to_string())
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("cannot start: {error}")))
        .and_then(|runtime| runtime.block_on(run(&args)));
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(Failure::Refused(reason)) => {
            eprintln!("refused: {reason}");
            ExitCode::from(2)
        }
        Err(Failure::Lost(reason) | Failure::Failed(reason)) => {
            eprintln!("failed: {reason}");
            ExitCode::from(1)
        }
    }
}

/// The whole run; returns the exit code.
async fn run(args: &Args) -> Result<u8, Failure> {
    args.validate().map_err(Failure::Refused)?;
    let (input, git_bad_rows, _spool) = input_of(args)?;
    let depth = usize::from(args.tenant_depth);

    let reading = Progress::new("read", None);
    let mut expectation = fold::fold(&input, depth, &reading).map_err(Failure::Refused)?;
    expectation.bad_rows += git_bad_rows;
    reading.end(expectation.events);

    let place = Place::open(args).await?;
    let mut work = Work::default();
    let outcome = persist(args, &place.store, &input, &expectation, &mut work).await;
    let closed = place.close().await;
    let findings = outcome?;
    closed?;

    let verified = findings.differences_total == 0;
    let mut report = Report {
        store: args.store.name(),
        events: 0,
        tenants: Default::default(),
        seconds: Seconds { import: work.import.as_secs_f64(), catch_up: work.catch_up.as_secs_f64() },
        peak_rss_bytes: peak_rss_bytes(),
        verified,
    };
    let mut findings = findings;
    report.tenants = std::mem::take(&mut findings.tenants);
    report.events = report.tenants.values().map(|figures| figures.events).sum();
    report.print((!args.check).then_some(&work), &findings);
    if let Some(file) = &args.json {
        report.write_json(file).map_err(Failure::Failed)?;
    }
    if !verified {
        return Ok(1);
    }
    if expectation.bad_rows > 0 {
        println!("{} bad rows were left out", expectation.bad_rows);
        return Ok(3);
    }
    Ok(0)
}

/// The input, how many rows of a repository were bad, and the file that holds its history meanwhile.
fn input_of(args: &Args) -> Result<(Input, u64, Option<tempfile::NamedTempFile>), Failure> {
    if let Some(repository) = &args.git {
        let spool = tempfile::NamedTempFile::new()
            .map_err(|error| Failure::Refused(format!("cannot create a temporary file: {error}")))?;
        let mut bad_rows = 0;
        git::write_history(repository, spool.path(), |bad| fold::report(&bad, &mut bad_rows))
            .map_err(Failure::Refused)?;
        return Ok((Input::File(spool.path().to_owned()), bad_rows, Some(spool)));
    }
    let input = args.input.clone().map_or(Input::Small, Input::File);
    Ok((input, 0, None))
}

/// Does the work, and takes it up again where it stopped when the store did not answer for a while.
async fn persist(
    args: &Args,
    store: &Store,
    input: &Input,
    expectation: &Expectation,
    work: &mut Work,
) -> Result<Findings, Failure> {
    let mut taken_up = 0;
    loop {
        match once(args, store, input, expectation, work).await {
            Err(Failure::Lost(reason)) if taken_up < TAKEN_UP_MAX => {
                taken_up += 1;
                eprintln!("going on in {} s: {reason}", PAUSE.as_secs());
                tokio::time::sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// Import, catch-up and verification, or verification alone.
async fn once(
    args: &Args,
    store: &Store,
    input: &Input,
    expectation: &Expectation,
    work: &mut Work,
) -> Result<Findings, Failure> {
    let depth = args.tenant_depth;
    if args.check {
        claim::check(store, expectation, depth).await?;
    } else {
        claim::claim(store, expectation, depth).await?;
        let importing = Progress::new("import", Some(expectation.events));
        work.appended += import::import(store, input, usize::from(depth), expectation, &importing).await?;
        work.import += importing.end(expectation.events);
        catch_up_phase(args, store, expectation, work).await?;
        work.statements = store.databases().iter().map(|database| database.counters().statements).sum();
    }
    let verifying = Progress::new("verify", None);
    let findings = verify::verify(store, args.store, expectation, &verifying).await?;
    verifying.end(findings.documents);
    Ok(findings)
}

/// Runs the projections until they are at the heads.
async fn catch_up_phase(
    args: &Args,
    store: &Store,
    expectation: &Expectation,
    work: &mut Work,
) -> Result<(), Failure> {
    let total = expectation.events * PROJECTIONS;
    let catching_up = Progress::new("catch-up", Some(total));
    let node = catch_up::start(store, args).await?;
    let caught_up = catch_up(&node, &catching_up).await;
    let status = node.daemon().status();
    let stopped = node.stop_projections().await;
    work.applied += status.counters.events;
    work.budget_peak_bytes = work.budget_peak_bytes.max(status.budget.bytes.peak);
    caught_up?;
    stopped?;
    work.catch_up += catching_up.end(total);
    Ok(())
}
