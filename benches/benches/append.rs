//! Appending single events of 300 bytes on PostgreSQL with fsync, beside what PostgreSQL does with the same rows.
//!
//! `cargo bench -p bellwether-benches --bench append` starts a private server and measures, in one run:
//!
//! * `raw`: one connection inserts the same rows set-based into the same events table, 100 to a statement and commit;
//! * `raw_heads`: that, and in the same statement one head update per tenant in the batch: what any log with a head per tenant
//!   must do;
//! * `append`: 1, 16 and 256 concurrent callers append single events through a store.
//!
//! Each over 1 and over 500 tenants, 20 streams each. A table of events per second and ratios ends the run (row X2).

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bellwether_events::{Event, Plain, Store, Stream};
use bellwether_postgres::Postgres;
use bellwether_storage::{Database, TenantId, Tenants};
use bellwether_tenants::{Placed, Rule};
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use sqlx::{Connection, PgConnection};
use tokio::runtime::Runtime;
use uuid::Uuid;

const CALLERS: [usize; 3] = [1, 16, 256];
const TENANTS: [usize; 2] = [1, 500];
const STREAMS_PER_TENANT: u64 = 20;
const BATCH: usize = 100;
const EVENT_BYTES: usize = 300;

/// Bytes of an encoded [`Written`] around its text.
const AROUND_TEXT_BYTES: usize = 9;

#[derive(Debug, Clone, Event)]
struct Written {
    text: String,
}

/// Events per second of each bench, one figure per sample.
#[derive(Default)]
struct Rates(BTreeMap<(usize, String), Vec<f64>>);

impl Rates {
    fn add(&mut self, tenants: usize, name: &str, events: u64, took: Duration) {
        let rates = self.0.entry((tenants, name.to_owned())).or_default();
        rates.push(events as f64 / took.as_secs_f64());
    }

    fn median(&self, tenants: usize, name: &str) -> Option<f64> {
        let mut rates = self.0.get(&(tenants, name.to_owned()))?.clone();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    }
}

fn main() {
    let server = bellwether_launch::Postgres::start(bellwether_launch::Options {
        fsync: true,
        ..bellwether_launch::Options::default()
    });
    let server = match server {
        Ok(server) => server,
        Err(error) => {
            println!("SKIPPED the append benchmark: {error}");
            return;
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let mut criterion = Criterion::default()
        .configure_from_args()
        .sample_size(10)
        .warm_up_time(Duration::from_secs(2))
        .measurement_time(Duration::from_secs(6));
    let mut rates = Rates::default();
    for tenants in TENANTS {
        let mut group = criterion.benchmark_group(format!("{tenants} tenants"));
        group.sampling_mode(SamplingMode::Flat);
        for with_heads in [false, true] {
            let name = if with_heads { "raw_heads" } else { "raw" };
            let url = server.fresh_database().expect("a database");
            let mut raw = runtime.block_on(Raw::open(&url, tenants, with_heads));
            group.throughput(Throughput::Elements(BATCH as u64));
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|batches| {
                    let took = runtime.block_on(raw.run(batches));
                    rates.add(tenants, name, batches * BATCH as u64, took);
                    took
                });
            });
        }
        let url = server.fresh_database().expect("a database");
        let bench = runtime.block_on(Appends::open(&url, tenants));
        for callers in CALLERS {
            let per_iteration = 16 * callers as u64;
            let name = format!("append/{callers}");
            let mut per_statement = 0.0;
            group.throughput(Throughput::Elements(per_iteration));
            group.bench_function(BenchmarkId::new("append", callers), |bencher| {
                bencher.iter_custom(|iterations| {
                    let events = iterations * per_iteration;
                    let before = bench.statements();
                    let took = bench.run(&runtime, callers, events);
                    rates.add(tenants, &name, events, took);
                    per_statement = events as f64 / (bench.statements() - before) as f64;
                    took
                });
            });
            println!(
                "{name} of {tenants} tenants: {per_statement:.1} events per statement in the last sample"
            );
        }
        runtime.block_on(bench.store.close());
        group.finish();
    }
    criterion.final_summary();
    report(&rates);
}

fn report(rates: &Rates) {
    println!("\nappend, single events of {EVENT_BYTES} bytes, fsync on (medians of this run)\n");
    println!("{:>8}  {:<12} {:>10}  {:>10}  {:>12}", "tenants", "", "events/s", "of raw", "of raw_heads");
    for tenants in TENANTS {
        let names = ["raw".to_owned(), "raw_heads".to_owned()];
        for name in names.into_iter().chain(CALLERS.map(|callers| format!("append/{callers}"))) {
            let Some(rate) = rates.median(tenants, &name) else { continue };
            let of = |yardstick| {
                rates
                    .median(tenants, yardstick)
                    .map_or_else(|| "-".to_owned(), |of| format!("{:.0} %", 100.0 * rate / of))
            };
            println!("{tenants:>8}  {name:<12} {rate:>10.0}  {:>10}  {:>12}", of("raw"), of("raw_heads"));
        }
    }
}

/// A cheap, seeded sequence: which tenant and stream comes next.
struct Choice(u64);

impl Choice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Appends through a store.
struct Appends {
    store: Store,
    streams: Arc<Vec<Stream<Plain<Written>>>>,
    event: Written,
    rounds: AtomicU64,
}

impl Appends {
    async fn open(url: &str, tenants: usize) -> Self {
        let databases: Vec<Arc<dyn Database>> =
            vec![Arc::new(Postgres::connect(url).await.expect("a database"))];
        let directory = Arc::new(Placed::new(databases.clone(), Rule::Single));
        let store = Store::new(databases, directory);
        let mut streams = Vec::new();
        for tenant in 0..tenants {
            let tenant = store.tenant(format!("t{tenant}")).expect("a tenant");
            for stream in 0..STREAMS_PER_TENANT {
                streams.push(tenant.stream_of::<Written>(format!("s{stream}")).expect("a stream"));
            }
        }
        let event = Written { text: "x".repeat(EVENT_BYTES - AROUND_TEXT_BYTES) };
        let encoded = event.encode(bellwether_storage::Encoding::MessagePack).expect("bytes");
        assert_eq!(encoded.len(), EVENT_BYTES);
        Self { store, streams: Arc::new(streams), event, rounds: AtomicU64::new(0) }
    }

    fn statements(&self) -> u64 {
        self.store.databases()[0].counters().statements
    }

    fn run(&self, runtime: &Runtime, callers: usize, events: u64) -> Duration {
        let round = self.rounds.fetch_add(1, Ordering::Relaxed);
        let each = events / callers as u64;
        runtime.block_on(async {
            let begun = Instant::now();
            let mut tasks = tokio::task::JoinSet::new();
            for caller in 0..callers as u64 {
                let (streams, event) = (Arc::clone(&self.streams), self.event.clone());
                tasks.spawn(async move {
                    let mut choice = Choice(round * 1_000 + caller);
                    for _ in 0..each {
                        let stream = &streams[choice.below(streams.len() as u64) as usize];
                        black_box(stream.append([event.clone()]).await.expect("an append"));
                    }
                });
            }
            while let Some(done) = tasks.join_next().await {
                done.expect("a caller");
            }
            begun.elapsed()
        })
    }
}

/// The yardsticks: one connection, the same table, nothing of ours.
struct Raw {
    connection: PgConnection,
    tenants: Vec<i32>,
    heads: Vec<i64>,
    versions: Vec<i64>,
    with_heads: bool,
    choice: Choice,
}

const RAW: &str = "INSERT INTO events (place, tenant_no, at, seq, stream, version, id, type, encoding, size, headers, body)
     SELECT 0, e.tenant_no, (extract(epoch FROM clock_timestamp()) * 1000000)::int8, e.seq, e.stream, e.version, e.id,
            e.type, 0, e.size, ''::bytea, e.body
       FROM unnest($1::int4[], $2::int8[], $3::text[], $4::int8[], $5::uuid[], $6::text[], $7::int4[], $8::bytea[])
            AS e (tenant_no, seq, stream, version, id, type, size, body)";

const RAW_HEADS: &str = "WITH i AS (
     INSERT INTO events (place, tenant_no, at, seq, stream, version, id, type, encoding, size, headers, body)
     SELECT 0, e.tenant_no, (extract(epoch FROM clock_timestamp()) * 1000000)::int8, e.seq, e.stream, e.version, e.id,
            e.type, 0, e.size, ''::bytea, e.body
       FROM unnest($1::int4[], $2::int8[], $3::text[], $4::int8[], $5::uuid[], $6::text[], $7::int4[], $8::bytea[])
            AS e (tenant_no, seq, stream, version, id, type, size, body))
     UPDATE heads h
        SET head = h.head + u.n, at = (extract(epoch FROM clock_timestamp()) * 1000000)::int8, xid = pg_current_xact_id()
       FROM unnest($9::int4[], $10::int8[]) AS u (tenant_no, n)
      WHERE h.tenant_no = u.tenant_no";

impl Raw {
    async fn open(url: &str, tenants: usize, with_heads: bool) -> Self {
        let database = Postgres::connect(url).await.expect("a database");
        let mut numbers = Vec::with_capacity(tenants);
        for tenant in 0..tenants {
            let id = TenantId::new(format!("t{tenant}")).expect("a tenant");
            numbers.push(database.ensure_tenant(&id).await.expect("a tenant").number.0);
        }
        database.close().await;
        Self {
            connection: PgConnection::connect(url).await.expect("a connection"),
            heads: vec![0; tenants],
            versions: vec![0; tenants * STREAMS_PER_TENANT as usize],
            tenants: numbers,
            with_heads,
            choice: Choice(7),
        }
    }

    async fn run(&mut self, batches: u64) -> Duration {
        let begun = Instant::now();
        for _ in 0..batches {
            self.batch().await;
        }
        begun.elapsed()
    }

    async fn batch(&mut self) {
        let mut counts: BTreeMap<i32, i64> = BTreeMap::new();
        let (mut tenants, mut seqs, mut streams, mut versions) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..BATCH {
            let stream = self.choice.below(self.versions.len() as u64) as usize;
            let tenant = stream / STREAMS_PER_TENANT as usize;
            self.heads[tenant] += 1;
            self.versions[stream] += 1;
            *counts.entry(self.tenants[tenant]).or_default() += 1;
            tenants.push(self.tenants[tenant]);
            seqs.push(self.heads[tenant]);
            streams.push(format!("s{}", stream % STREAMS_PER_TENANT as usize));
            versions.push(self.versions[stream]);
        }
        let ids: Vec<Uuid> = (0..BATCH).map(|_| Uuid::now_v7()).collect();
        let body = vec![b'x'; EVENT_BYTES];
        let query = sqlx::query(if self.with_heads { RAW_HEADS } else { RAW })
            .bind(tenants)
            .bind(seqs)
            .bind(streams)
            .bind(versions)
            .bind(ids)
            .bind(vec!["Written"; BATCH])
            .bind(vec![EVENT_BYTES as i32; BATCH])
            .bind(vec![body; BATCH]);
        let query = match self.with_heads {
            true => {
                let (numbers, counts): (Vec<i32>, Vec<i64>) = counts.into_iter().unzip();
                query.bind(numbers).bind(counts)
            }
            false => query,
        };
        query.execute(&mut self.connection).await.expect("rows");
    }
}
