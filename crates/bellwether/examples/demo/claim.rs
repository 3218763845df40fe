//! What a store was filled with: a store that holds one history takes no other.

use bellwether::prelude::*;

use crate::Failure;
use crate::fold::Expectation;

/// The tenant that holds the claim; no display name gets this id, since those end in a digest of sixteen digits.
const TENANT: &str = "demo-claim";

#[derive(Debug, Clone, PartialEq, Event)]
enum Claim {
    Claimed { fingerprint: String, events: u64, tenant_depth: u8 },
}

#[derive(Default)]
struct Claimed;

impl Aggregate for Claimed {
    const NAME: &'static str = "claim";
    type Event = Claim;
    fn evolve(&mut self, _: &Claim) {}
}

/// Claims an empty store for this input, or finds that it is claimed for it already.
pub(crate) async fn claim(store: &Store, expectation: &Expectation, depth: u8) -> Result<(), Failure> {
    let stream = store.tenant(TENANT)?.stream::<Claimed>("input")?;
    if stream.read(Version::ZERO, 1).await?.is_empty() {
        let fingerprint = format!("{:016x}", expectation.fingerprint);
        let claimed = Claim::Claimed { fingerprint, events: expectation.events, tenant_depth: depth };
        match stream.append_expecting(Expected::None, [claimed]).await {
            Ok(_) => {}
            // Another process was first; what it claimed is looked at below.
            Err(error) if error.kind() == bellwether::storage::ErrorKind::Conflict => {}
            Err(error) => return Err(error.into()),
        }
    }
    check(store, expectation, depth).await
}

/// Refuses a store that holds another history, or none.
pub(crate) async fn check(store: &Store, expectation: &Expectation, depth: u8) -> Result<(), Failure> {
    let stream = store.tenant(TENANT)?.stream::<Claimed>("input")?;
    let claims = stream.read(Version::ZERO, 1).await?;
    let Some(first) = claims.first() else {
        return Err(Failure::Refused("the store is empty; run the demo without --check first".into()));
    };
    let Claim::Claimed { fingerprint, events, tenant_depth } = &first.event;
    if *tenant_depth != depth {
        return Err(Failure::Refused(format!(
            "the store was filled with --tenant-depth {tenant_depth}, not {depth}; use that, or another --data"
        )));
    }
    if *fingerprint != format!("{:016x}", expectation.fingerprint) {
        return Err(Failure::Refused(format!(
            "the store was filled from another input of {events} events (this one has {}); use that input, or another --data",
            expectation.events
        )));
    }
    Ok(())
}

/// Whether this tenant is not one of the history's.
pub(crate) fn is_claim(tenant: &TenantId) -> bool {
    tenant.as_str() == TENANT
}
