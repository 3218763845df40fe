//! Which heads moved.

use bellwether_storage::{DiscoveryCursor, Moved, MovedHead, Result, Sequence, ServerIdentity, TenantNo};

use super::link::{Link, column};
use super::tenants::stored_id;
use crate::sql;

/// See [`Discovery::moved_heads`](bellwether_storage::Discovery::moved_heads).
///
/// A commit that moves heads gives them a number larger than any before, under the write lock. So the numbers are in commit
/// order, a snapshot holds a prefix of them, and the largest one seen is an exact cursor: nothing repeats, nothing is missed,
/// whichever process or connection wrote. (`PRAGMA data_version` would not see commits of the asking connection, and would cost
/// a second statement; the look-up through the index of these numbers reads a page or two.)
pub(crate) async fn moved_heads(
    link: &mut Link,
    cursor: Option<&DiscoveryCursor>,
    identity: ServerIdentity,
) -> Result<Moved> {
    let mut position = match cursor {
        Some(cursor) if cursor.identity == identity => cursor.position,
        _ => 0,
    };
    let query = sqlx::query(sql::HEADS_MOVED).bind(i64::try_from(position).unwrap_or(i64::MAX));
    let mut heads = Vec::new();
    link.each(query, |row| {
        heads.push(MovedHead {
            tenant: TenantNo(column(row, 0)?),
            id: stored_id(column(row, 1)?)?,
            head: Sequence::from_i64(column(row, 2)?)?,
        });
        position = position.max(column(row, 3)?);
        Ok(())
    })
    .await?;
    Ok(Moved { heads, cursor: DiscoveryCursor { identity, position } })
}
