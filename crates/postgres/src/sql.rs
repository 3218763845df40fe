//! The SQL files, and the one way in which a text is completed: the name of a view's table.

use bellwether_storage::ViewNo;
use sqlx::AssertSqlSafe;

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
pub(crate) const MIGRATIONS: &[(i32, &str)] = &[(1, include_str!("../sql/migrations/0001_base.sql"))];

/// Every statement this crate sends, by its path below `sql/`, migrations apart.
///
/// `{view}` stands for the name of a view's table. [`Postgres::prepare`](crate::Postgres::prepare) checks one against a
/// database.
pub fn sql_files() -> &'static [(&'static str, &'static str)] {
    FILES
}

/// The text for one view's table. Safe: a number is all that comes from outside.
pub(crate) fn for_view(text: &str, view: ViewNo) -> AssertSqlSafe<String> {
    AssertSqlSafe(text.replace("{view}", &format!("view_{}", view.0)))
}

/// The text without the compression that this server was built without.
pub(crate) fn without_lz4(text: &str) -> String {
    text.replace(" COMPRESSION lz4", "")
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
        found.sort();
        let mut listed: Vec<_> = sql_files().iter().map(|(path, _)| (*path).to_owned()).collect();
        listed.extend(MIGRATIONS.iter().map(|(number, _)| format!("migrations/{number:04}_base.sql")));
        listed.sort();
        assert_eq!(found, listed);
    }

    #[test]
    fn a_server_without_lz4_gets_plain_columns() {
        let text = without_lz4(VIEWS_CREATE);
        assert!(VIEWS_CREATE.contains("bytea COMPRESSION lz4 NOT NULL") && text.contains("bytea NOT NULL"));
    }
}
