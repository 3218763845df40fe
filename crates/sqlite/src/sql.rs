//! The SQL files, and the two ways in which a text is completed: the name of a view's table, and more rows.

use std::sync::LazyLock;

use bellwether_storage::ViewNo;

macro_rules! files {
    ($($name:ident = $path:literal),* $(,)?) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../sql/", $path));)*

        const FILES: &[(&str, &str)] = &[$(($path, $name)),*];
    };
}

files! {
    APPEND_BATCH = "append/batch.sql",
    APPEND_IDS_FIND = "append_ids/find.sql",
    APPEND_IDS_INSERT = "append_ids/insert.sql",
    DEAD_LETTERS_LIST = "dead_letters/list.sql",
    DEAD_LETTERS_UPSERT = "dead_letters/upsert.sql",
    DOCUMENTS_DELETE = "documents/delete.sql",
    DOCUMENTS_LIST = "documents/list.sql",
    DOCUMENTS_LOAD = "documents/load.sql",
    DOCUMENTS_UPSERT = "documents/upsert.sql",
    EVENTS_INSERT = "events/insert.sql",
    EVENTS_PAGE = "events/page.sql",
    EVENTS_STREAM_PAGE = "events/stream_page.sql",
    HEADS_ADVANCE = "heads/advance.sql",
    HEADS_LOCK = "heads/lock.sql",
    HEADS_MOVED = "heads/moved.sql",
    PROGRESS_FENCE = "progress/fence.sql",
    PROGRESS_FINISH = "progress/finish.sql",
    PROGRESS_LOCK = "progress/lock.sql",
    PROGRESS_READ = "progress/read.sql",
    PROJECTIONS_ENSURE = "projections/ensure.sql",
    SERVER_IDENTITY = "server/identity.sql",
    STREAMS_VERSIONS = "streams/versions.sql",
    TENANTS_ENSURE = "tenants/ensure.sql",
    TENANTS_FIND = "tenants/find.sql",
    TENANTS_LIST = "tenants/list.sql",
    VIEWS_CREATE = "views/create.sql",
    VIEWS_ENSURE = "views/ensure.sql",
}

/// Every migration, in order: the number it leads to, and its text. Forward only; never edit one that was released.
pub(crate) const MIGRATIONS: &[(i64, &str)] = &[(1, include_str!("../sql/migrations/0001_base.sql"))];

/// Every statement this crate sends, by its path below `sql/`, migrations apart.
///
/// `{view}` stands for the name of a view's table. [`Sqlite::prepare`](crate::Sqlite::prepare) checks one against a file.
pub fn sql_files() -> &'static [(&'static str, &'static str)] {
    FILES
}

/// The text for one view's table.
pub(crate) fn for_view(text: &str, view: ViewNo) -> String {
    text.replace("{view}", &format!("view_{}", view.0))
}

/// Rows a multi-row statement may hold. Few different texts, so that each is prepared once per connection; the largest stays
/// far below SQLite's 32,766 parameters with 12 columns.
const ROWS: [usize; 4] = [64, 16, 4, 1];

/// Bytes a multi-row statement may hold, one row apart: its values are copied into the statement, so this is what a large
/// chunk or append costs in memory on top of itself.
const ROWS_BYTES_MAX: usize = 256 * 1024;

/// How many rows one statement should take of waiting ones with these sizes; at least one, where there is one.
pub(crate) fn rows_at_once(sizes: impl Iterator<Item = usize>) -> usize {
    let within = sizes
        .take(ROWS[0])
        .scan(0_usize, |bytes, size| {
            *bytes = bytes.saturating_add(size);
            Some(*bytes)
        })
        .take_while(|bytes| *bytes <= ROWS_BYTES_MAX)
        .count();
    ROWS.into_iter().find(|n| *n <= within).unwrap_or(1)
}

/// The insert of this many events; one of the answers of [`rows_at_once`].
pub(crate) fn events_insert(rows: usize) -> &'static str {
    static TEXTS: LazyLock<[String; ROWS.len()]> =
        LazyLock::new(|| ROWS.map(|rows| with_rows(EVENTS_INSERT, rows)));
    let index = ROWS.iter().position(|n| *n == rows).unwrap_or(ROWS.len() - 1);
    &TEXTS[index]
}

/// The text with its line of placeholders repeated, once per row.
pub(crate) fn with_rows(text: &str, rows: usize) -> String {
    let mut whole = String::with_capacity(text.len() + rows * 48);
    for line in text.lines() {
        if line.starts_with("    (?") {
            let (row, end) = line.rsplit_once(')').unwrap_or((line, ""));
            for n in 1..=rows {
                whole.push_str(row);
                whole.push_str(if n < rows { "),\n" } else { ")" });
            }
            whole.push_str(end);
        } else {
            whole.push_str(line);
        }
        whole.push('\n');
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_opens_with_what_holds_after_it_and_which_locks_it_takes() {
        for (path, text) in sql_files() {
            assert!(text.starts_with("-- After it: "), "{path}");
            assert!(text.contains("\n-- Locks: "), "{path}");
        }
    }

    #[test]
    fn every_file_on_disk_is_listed() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
        let mut found = Vec::new();
        for noun in std::fs::read_dir(&root).unwrap() {
            let noun = noun.unwrap().file_name().into_string().unwrap();
            for verb in std::fs::read_dir(root.join(&noun)).unwrap() {
                found.push(format!("{noun}/{}", verb.unwrap().file_name().into_string().unwrap()));
            }
        }
        let (migrations, mut found): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|path| path.starts_with("migrations/"));
        assert_eq!(migrations.len(), MIGRATIONS.len());
        found.sort();
        let mut listed: Vec<_> = sql_files().iter().map(|(path, _)| (*path).to_owned()).collect();
        listed.sort();
        assert_eq!(found, listed);
    }

    #[test]
    fn rows_are_repeated_and_what_follows_stays() {
        let text = with_rows(DOCUMENTS_UPSERT, 3);
        assert_eq!(text.matches("(?, ?, ?, ?)").count(), 3);
        assert!(text.contains("(?, ?, ?, ?)\n    ON CONFLICT"));
        assert!(with_rows(EVENTS_INSERT, 2).trim_end().ends_with(");"));
    }

    #[test]
    fn a_statement_takes_few_different_row_counts_and_bounded_bytes() {
        let rows = |count, size| rows_at_once(std::iter::repeat_n(size, count));
        assert_eq!([200, 63, 16, 5, 3, 1].map(|count| rows(count, 100)), [64, 16, 16, 4, 1, 1]);
        assert_eq!([8 * 1024, 64 * 1024, 100 * 1024, 4 << 20].map(|size| rows(64, size)), [16, 4, 1, 1]);
    }
}
