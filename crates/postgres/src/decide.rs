//! Rules without a database: what an error code means, which of the user's statements may run, what a page's rows say.

pub(crate) mod failure;
pub(crate) mod page;
pub(crate) mod user_sql;
