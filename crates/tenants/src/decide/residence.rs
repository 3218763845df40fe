//! Where a tenant lives, given what every database's register says of it.

use bellwether_storage::{DatabaseNo, Error, Location, Result, TenantEntry, TenantId};

/// The one database whose register knows the tenant, `None` when none does.
///
/// # Errors
///
/// `Corrupt` when two do: reading or writing either would split the tenant's log.
pub(crate) fn residence(
    tenant: &TenantId,
    registers: impl IntoIterator<Item = (DatabaseNo, Option<TenantEntry>)>,
) -> Result<Option<Location>> {
    let mut found: Option<Location> = None;
    for (database, entry) in registers {
        let Some(entry) = entry else { continue };
        if let Some(first) = found {
            return Err(Error::corrupt(format!(
                "tenant {tenant} lives in databases {} and {database} at once",
                first.database
            ))
            .fix("keep the one whose events are right and remove the tenant from the other"));
        }
        found = Some(Location { database, tenant: entry.number, place: entry.place });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use bellwether_storage::{ErrorKind, Place, TenantNo};

    use super::*;

    fn check(known_in: &[u32]) -> Result<Option<u32>> {
        let tenant = TenantId::new("acme").unwrap();
        let entry = TenantEntry { id: tenant.clone(), number: TenantNo(7), place: Place(3), open: true };
        let registers = (0..4).map(|n| (DatabaseNo(n), known_in.contains(&n).then(|| entry.clone())));
        residence(&tenant, registers).map(|found| found.map(|location| location.database.0))
    }

    #[test]
    fn a_tenant_lives_where_one_register_knows_it() {
        assert_eq!(check(&[]).unwrap(), None);
        for n in 0..4 {
            assert_eq!(check(&[n]).unwrap(), Some(n));
        }
    }

    #[test]
    fn a_tenant_in_two_databases_is_corrupt() {
        assert_eq!(check(&[1, 3]).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
