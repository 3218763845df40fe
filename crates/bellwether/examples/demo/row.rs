//! One row of a history.

/// Names of the columns, as the first line must hold them.
pub(crate) const HEADER: &str = "commit\tunix_time\tauthor\tadded\tremoved\tpath";

/// More lines than any file has, so that no sum can overflow.
const LINES_MAX: u64 = 1_000_000_000_000;

/// Years 0001 to 9999, so that every day has a name.
const UNIX_TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A file changed by a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) commit: String,
    pub(crate) unix_time: i64,
    pub(crate) author: String,
    /// Lines added and removed; `None` for a binary file.
    pub(crate) lines: Option<(u64, u64)>,
    pub(crate) path: String,
}

impl Row {
    /// Reads the columns of a line.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let columns: Vec<&str> = line.split('\t').collect();
        let [commit, unix_time, author, added, removed, path] = columns[..] else {
            return Err(format!("{} columns instead of 6", columns.len()));
        };
        Self::from_columns(commit, unix_time, author, (added, removed), path)
    }

    pub(crate) fn from_columns(
        commit: &str,
        unix_time: &str,
        author: &str,
        (added, removed): (&str, &str),
        path: &str,
    ) -> Result<Self, String> {
        let unix_time: i64 =
            unix_time.parse().map_err(|_| format!("unix_time {unix_time:?} is not a number of seconds"))?;
        if !UNIX_TIMES.contains(&unix_time) {
            return Err(format!("unix_time {unix_time} lies outside the years 1 to 9999"));
        }
        let lines = match (added, removed) {
            ("-", "-") => None,
            _ => Some((lines("added", added)?, lines("removed", removed)?)),
        };
        text("commit", commit, 128)?;
        text("author", author, 512)?;
        text("path", path, 512)?;
        Ok(Self { commit: commit.into(), unix_time, author: author.into(), lines, path: path.into() })
    }

    /// The display name of the tenant: the first `depth` leading directories, fewer where the path has fewer.
    pub(crate) fn tenant(&self, depth: usize) -> &str {
        let directories = self.path.rfind('/').unwrap_or(0);
        let end = self.path[..directories]
            .match_indices('/')
            .map(|(at, _)| at)
            .nth(depth.wrapping_sub(1))
            .unwrap_or(directories);
        match depth == 0 || end == 0 {
            true => "(root)",
            false => &self.path[..end],
        }
    }

    /// The day of the commit in UTC: `2016-02-21`.
    pub(crate) fn day(&self) -> String {
        day(self.unix_time)
    }
}

fn lines(column: &str, value: &str) -> Result<u64, String> {
    let number: u64 =
        value.parse().map_err(|_| format!("{column} {value:?} is neither a number of lines nor -"))?;
    match number <= LINES_MAX {
        true => Ok(number),
        false => Err(format!("{column} {number} is more than {LINES_MAX}")),
    }
}

fn text(column: &str, value: &str, bytes_max: usize) -> Result<(), String> {
    if value.is_empty() {
        return Err(format!("{column} is empty"));
    }
    if value.len() > bytes_max {
        return Err(format!("{column} has {} bytes, at most {bytes_max} are stored", value.len()));
    }
    if value.chars().any(char::is_control) {
        return Err(format!("{column} {value:?} holds a control character"));
    }
    Ok(())
}

/// The day of a moment, by the Gregorian calendar: years of 400 repeat after 146,097 days.
pub(crate) fn day(unix_time: i64) -> String {
    let days = unix_time.div_euclid(86_400) + 719_468; // since 0000-03-01, so that leap days come last
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_names() {
        for (unix_time, name) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (951_782_400, "2000-02-29"),
            (1_456_094_077, "2016-02-21"),
            (4_107_542_399, "2100-02-28"),
            (4_107_542_400, "2100-03-01"),
            (*UNIX_TIMES.start(), "0001-01-01"),
            (*UNIX_TIMES.end(), "9999-12-31"),
        ] {
            assert_eq!(day(unix_time), name);
        }
    }

    #[test]
    fn tenants_are_leading_directories() {
        for (path, depth, tenant) in [
            ("README.md", 1, "(root)"),
            ("lib/a.ex", 0, "(root)"),
            ("lib/a.ex", 1, "lib"),
            ("lib/a.ex", 2, "lib"),
            ("lib/x/a.ex", 1, "lib"),
            ("lib/x/a.ex", 2, "lib/x"),
            ("lib/x/y/a.ex", 2, "lib/x"),
            ("ä/b/c", 1, "ä"),
        ] {
            let row =
                Row { commit: "c".into(), unix_time: 0, author: "a".into(), lines: None, path: path.into() };
            assert_eq!(row.tenant(depth), tenant, "{path} at {depth}");
        }
    }

    #[test]
    fn bad_rows_say_why() {
        for (line, reason) in [
            ("c\t1\ta\t1\t1", "5 columns"),
            ("c\tx\ta\t1\t1\tp", "unix_time"),
            ("c\t1\ta\t-\t1\tp", "added"),
            ("c\t1\ta\t1\t-1\tp", "removed"),
            ("c\t1\ta\t1\t9999999999999\tp", "more than"),
            ("c\t1\t\t1\t1\tp", "author is empty"),
            ("c\t1\ta\t1\t1\t", "path is empty"),
            ("c\t999999999999999\ta\t1\t1\tp", "years"),
        ] {
            let refused = Row::parse(line).unwrap_err();
            assert!(refused.contains(reason), "{line:?}: {refused}");
        }
        assert_eq!(Row::parse("c\t1\ta\t-\t-\tp").unwrap().lines, None);
    }
}
