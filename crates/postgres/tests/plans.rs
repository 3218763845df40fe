//! What the planner makes of the statements, with many tenants and many places.

#[allow(dead_code, reason = "each test file takes what it needs")]
#[path = "server/scene.rs"]
mod scene;

use bellwether_postgres::sql_files;
use bellwether_storage::{EventLog, Place, Tenants};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};

use crate::scene::{append, batch, direct, entry, event, fresh, handle, log, number, run, tenant};

/// A hundred places beside the sixteen shared ones, and 2,100 tenants, the first of them with a long log.
const CROWD: &str = "
DO $$
BEGIN
    FOR place IN 1000..1099 LOOP
        EXECUTE format('CREATE TABLE events_p%s (LIKE events INCLUDING ALL)', place);
        EXECUTE format('ALTER TABLE events_p%s ADD CHECK (place IS NOT NULL AND place = %s)', place, place);
        EXECUTE format('ALTER TABLE events ATTACH PARTITION events_p%s FOR VALUES IN (%s)', place, place);
    END LOOP;
END
$$;
INSERT INTO tenants (id) SELECT 't' || n FROM generate_series(1, 2100) n;
INSERT INTO heads SELECT tenant_no, 0, true, tenant_no % 16, 0, pg_current_xact_id() FROM tenants;
INSERT INTO events (place, tenant_no, at, seq, stream, version, id, type, encoding, size, headers, body)
SELECT 1, 1, 0, n, 's' || (n % 100), (n - 1) / 100 + 1, gen_random_uuid(), 'T' || (n % 10), 0, 300, '', repeat('x', 200)::bytea
  FROM generate_series(1, 30000) n;
UPDATE heads SET head = 30000 WHERE tenant_no = 1;
";

fn file(path: &str) -> &'static str {
    sql_files().iter().find(|(name, _)| *name == path).expect("a file").1
}

async fn crowd(what: &'static str) -> Option<(String, PgConnection)> {
    let url = fresh(what).await?;
    handle(&url).await;
    let mut connection = direct(&url).await;
    run(&mut connection, CROWD).await;
    run(&mut connection, "SET plan_cache_mode = force_custom_plan; SET jit = off").await;
    Some((url, connection))
}

/// What EXPLAIN says of a statement with these arguments.
async fn explain(
    connection: &mut PgConnection,
    path: &str,
    types: &str,
    arguments: &str,
    how: &str,
) -> String {
    let prepare = format!("DEALLOCATE ALL; PREPARE examined ({types}) AS {}", file(path));
    run(connection, &prepare).await;
    let text = format!("EXPLAIN ({how}) EXECUTE examined ({arguments})");
    let rows = sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(connection).await.expect("a plan");
    rows.iter().map(|row| row.get::<String, _>(0) + "\n").collect()
}

/// Partitions named in a plan.
fn partitions(plan: &str) -> Vec<&str> {
    let mut named: Vec<&str> = plan
        .split_whitespace()
        .filter(|word| word.starts_with("events_p") && !word.contains("_pkey") && !word.contains("_key"))
        .collect();
    named.sort_unstable();
    named.dedup();
    named
}

/// Partitions and their indexes that a transaction holds locks on after these statements.
async fn locked(connection: &mut PgConnection, statements: &str) -> i64 {
    run(connection, &format!("BEGIN; {statements}")).await;
    let held = number(
        connection,
        "SELECT count(*) FROM pg_locks JOIN pg_class c ON c.oid = relation
         WHERE pid = pg_backend_pid() AND c.relname LIKE 'events_p%'",
    )
    .await;
    run(connection, "ROLLBACK").await;
    held
}

const PAGE_TYPES: &str = "int4, int4, int8, int8, text[], int8, int8";

// T1: plans cost the same with 2,100 tenants in 116 places as with one.
#[tokio::test]
async fn reads_plan_for_one_partition_only() {
    let Some((_, mut connection)) = crowd("reads_plan_for_one_partition_only").await else { return };
    let reads = [
        ("events/page.sql", PAGE_TYPES, "1, 1, 0, 20000, NULL, 500, 1000000"),
        ("events/stream_page.sql", "int4, int4, text, int8, int8, int8", "1, 1, 's1', 0, 500, 1000000"),
        ("streams/versions.sql", "int4, int4, text[]", "1, 1, '{s1,s2,s3}'"),
    ];
    for (path, types, arguments) in reads {
        let plan = explain(&mut connection, path, types, arguments, "COSTS OFF").await;
        assert_eq!(partitions(&plan), ["events_p1"], "{path}:\n{plan}");
        assert!(!plan.contains("Seq Scan on events"), "{path} reads a whole partition:\n{plan}");
        let held = locked(&mut connection, &format!("EXECUTE examined ({arguments})")).await;
        assert_eq!(held, 3, "{path}: a partition and its two indexes");
    }
}

// T5: a page costs what it returns, not what follows it.
#[tokio::test]
async fn a_page_stops_walking_where_it_ends() {
    let Some((_, mut connection)) = crowd("a_page_stops_walking_where_it_ends").await else { return };
    // Arguments, and how many events it may walk over.
    let pages = [
        ("1, 1, 0, 20000, NULL, 100, 1000000", 110),
        ("1, 1, 0, 20000, NULL, 10000, 3000", 20),
        ("1, 1, 0, 20000, '{T3}', 10000, 3000", 140),
        ("1, 1, 0, 20000, '{T3}', 10, 1000000", 140),
    ];
    for (arguments, walked_max) in pages {
        let how = "ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF";
        let plan = explain(&mut connection, "events/page.sql", PAGE_TYPES, arguments, how).await;
        let scan = plan.lines().find(|line| line.contains("Scan using events_p1_pkey")).expect("the walk");
        let walked: f64 = scan
            .split("actual rows=")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .expect("rows")
            .parse()
            .unwrap();
        assert!(walked <= f64::from(walked_max), "{arguments} walked over {walked} events:\n{plan}");
    }
}

// T1, X2: the append touches the partitions it writes to, in a generic plan too.
#[tokio::test]
async fn an_append_touches_only_the_partitions_it_writes_to() {
    let Some((_, mut connection)) = crowd("an_append_touches_only_the_partitions_it_writes_to").await else {
        return;
    };
    let types = "int4[], int8[], int4[], int8[], int8, int4[], int8[], text[], int8[], uuid[], text[], int2[], int4[], bytea[], bytea[]";
    let arguments = "'{2,3}', '{0,0}', '{2,3}', '{1,1}', NULL, '{2,3}', '{1,1}', '{s,s}', '{1,1}',
        ARRAY[gen_random_uuid(), gen_random_uuid()], '{T,T}', '{0,0}', '{100,100}', '{\"\",\"\"}', '{\"\",\"\"}'";
    for mode in ["force_custom_plan", "force_generic_plan"] {
        run(&mut connection, &format!("SET plan_cache_mode = {mode}")).await;
        let plan = explain(&mut connection, "append/batch.sql", types, arguments, "COSTS OFF").await;
        assert_eq!(partitions(&plan), [""; 0], "{mode}: {plan}");
        assert!(!plan.contains("Seq Scan"), "{mode}: an append reads a whole table:\n{plan}");
        let held = locked(&mut connection, &format!("EXECUTE examined ({arguments})")).await;
        assert_eq!(held, 2, "{mode}: two partitions; their indexes are let go after each row");
    }
}

// X2: no index has to change when a head moves.
#[tokio::test]
async fn a_head_moves_within_its_page() {
    let Some(url) = fresh("a_head_moves_within_its_page").await else { return };
    let db = handle(&url).await;
    let acme = tenant(&db, "acme").await;
    let mut connection = direct(&url).await;
    let advance = format!("PREPARE advance (int4, int8, int8) AS {}; BEGIN", file("heads/advance.sql"));
    run(&mut connection, &advance).await;
    for _ in 0..20 {
        run(&mut connection, &format!("EXECUTE advance ({}, 1, NULL)", acme.number.0)).await;
    }
    let heads = "'heads'::regclass";
    let moved = number(&mut connection, &format!("SELECT pg_stat_get_xact_tuples_updated({heads})")).await;
    let hot = number(&mut connection, &format!("SELECT pg_stat_get_xact_tuples_hot_updated({heads})")).await;
    assert_eq!((moved, hot), (20, 20), "every move is a heap-only update");
}

// T1: a tenant that lies elsewhere than its number says is found there.
#[tokio::test]
async fn a_tenant_in_another_place_is_read_where_it_lies() {
    let Some((url, mut connection)) = crowd("a_tenant_in_another_place_is_read_where_it_lies").await else {
        return;
    };
    let db = handle(&url).await;
    let mut giant = tenant(&db, "giant").await;
    run(&mut connection, &format!("UPDATE heads SET place = 1042 WHERE tenant_no = {}", giant.number.0))
        .await;
    giant.place = Place(1042);
    append(&db, &giant, 0, vec![event("s", 1), event("s", 2)]).await.unwrap();
    let other = handle(&url).await;
    for reader in [&db, &other] {
        assert_eq!(log(reader, giant.number).await.len(), 2);
        let versions = reader.stream_versions(giant.number, &[event("s", 1).stream]).await.unwrap();
        assert_eq!((versions.place, versions.streams[0].version.get()), (Place(1042), 2));
    }
    assert_eq!(number(&mut connection, "SELECT count(*) FROM events_p1042").await, 2);
    assert_eq!(other.find_tenant(&giant.id).await.unwrap().unwrap().place, Place(1042));
}

// X2: the server's own compression is in use where it is there.
#[tokio::test]
async fn bodies_are_compressed_by_lz4() {
    let Some(url) = fresh("bodies_are_compressed_by_lz4").await else { return };
    let db = handle(&url).await;
    let acme = tenant(&db, "acme").await;
    let mut large = event("s", 1);
    large.body = vec![7; 100_000].into();
    db.append(&batch(vec![entry(&acme, 0, vec![large])])).await.unwrap();
    let mut connection = direct(&url).await;
    let built_with = "SELECT ('lz4' = ANY (enumvals))::int::int8 FROM pg_settings WHERE name = 'default_toast_compression'";
    let expected = number(&mut connection, built_with).await;
    let lz4 = "SELECT count(*) FROM events WHERE pg_column_compression(body) = 'lz4'";
    assert_eq!(number(&mut connection, lz4).await, expected);
}
