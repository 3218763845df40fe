//! A projection as registered: checked, numbered, without its types.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use bellwether_storage::{BoxError, EventType, ProjectionName, SqlDialect, Statement, TenantId, ViewName};

use crate::member::{Decoded, DecodedEvents, EventSet, Member, Slot, Source, Tap};
use crate::{Composite, DaemonError, Page, SqlProjection, Stage, Tx};

/// What a projection does with a page.
pub(crate) enum Body {
    /// Members with documents, in stage order.
    Members(Vec<Seat>),
    /// The user's own SQL.
    Sql(Arc<dyn ErasedSql>),
}

/// A member in its place.
pub(crate) struct Seat {
    pub(crate) member: Arc<dyn Member>,
    pub(crate) view: ViewName,
    /// The event set it works on; `None` for one that follows an earlier member.
    pub(crate) set: Option<usize>,
    /// Seats that follow this one, and what they take.
    pub(crate) taps: Vec<(usize, Tap)>,
}

/// A projection.
pub(crate) struct Projection {
    pub(crate) name: ProjectionName,
    pub(crate) version: u32,
    /// Names of all event types its sets know: only these are loaded.
    pub(crate) types: Vec<EventType>,
    pub(crate) sets: Vec<EventSet>,
    pub(crate) body: Body,
}

impl Projection {
    pub(crate) fn single(name: &str, version: u32, member: Arc<dyn Member>) -> Result<Self, DaemonError> {
        Self::of_stages(name, version, vec![Stage { members: vec![member] }])
    }

    pub(crate) fn composite(composite: Composite) -> Result<Self, DaemonError> {
        Self::of_stages(&composite.name, composite.version, composite.stages)
    }

    pub(crate) fn sql<P: SqlProjection>(projection: P) -> Result<Self, DaemonError> {
        let sets = vec![EventSet::of::<P::Event>()];
        Ok(Self {
            name: projection_name(P::NAME)?,
            version: P::VERSION,
            types: types(P::NAME, &sets)?,
            sets,
            body: Body::Sql(Arc::new(projection)),
        })
    }

    /// Name of the member at a seat, for dead letters.
    pub(crate) fn member_name(&self, seat: usize) -> &str {
        match &self.body {
            Body::Members(seats) => seats[seat].member.name(),
            Body::Sql(_) => self.name.as_str(),
        }
    }

    /// Views it writes, for the check that no two projections write the same.
    pub(crate) fn views(&self) -> impl Iterator<Item = (&ViewName, u32)> {
        let seats: &[Seat] = match &self.body {
            Body::Members(seats) => seats,
            Body::Sql(_) => &[],
        };
        seats.iter().map(|seat| (&seat.view, seat.member.version()))
    }

    fn of_stages(name: &str, version: u32, stages: Vec<Stage>) -> Result<Self, DaemonError> {
        let mut sets: Vec<EventSet> = Vec::new();
        let mut seats: Vec<Seat> = Vec::new();
        if stages.iter().all(|stage| stage.members.is_empty()) {
            return Err(DaemonError::projection(
                name,
                "it has no members",
                "add a stage with at least one view",
            ));
        }
        for stage in stages {
            let earlier = seats.len();
            for member in stage.members {
                let seat_no = seats.len();
                let set = match member.source() {
                    Source::Events(set) => {
                        Some(sets.iter().position(|known| known.id == set.id).unwrap_or_else(|| {
                            sets.push(set);
                            sets.len() - 1
                        }))
                    }
                    Source::Changes { of, of_name, tap } => {
                        let source = source(name, member.name(), of, of_name, &seats[..earlier])?;
                        seats[source].taps.push((seat_no, tap));
                        None
                    }
                };
                let view = ViewName::new(member.name()).map_err(|error| {
                    DaemonError::projection(name, error.message(), "give the member another NAME")
                })?;
                seats.push(Seat { member, view, set, taps: Vec::new() });
            }
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = seats.iter().find(|seat| !names.insert(seat.view.as_str())) {
            let problem = format!("it has two members named {}", twice.view);
            return Err(DaemonError::projection(name, problem, "give one another NAME"));
        }
        let types = types(name, &sets)?;
        Ok(Self { name: projection_name(name)?, version, types, sets, body: Body::Members(seats) })
    }
}

/// The seat whose documents a follower takes from.
fn source(
    name: &str,
    member: &str,
    of: TypeId,
    of_name: &str,
    earlier: &[Seat],
) -> Result<usize, DaemonError> {
    earlier.iter().position(|seat| seat.member.document() == of).ok_or_else(|| {
        DaemonError::projection(
            name,
            format!("member {member} takes from {of_name}, which is in no earlier stage"),
            "add that view to a stage before it",
        )
    })
}

fn projection_name(name: &str) -> Result<ProjectionName, DaemonError> {
    ProjectionName::new(name)
        .map_err(|error| DaemonError::projection(name, error.message(), "give it another name"))
}

fn types(name: &str, sets: &[EventSet]) -> Result<Vec<EventType>, DaemonError> {
    let names: BTreeSet<&str> = sets.iter().flat_map(|set| set.types.iter().copied()).collect();
    names
        .into_iter()
        .map(EventType::new)
        .collect::<Result<_, _>>()
        .map_err(|error| DaemonError::projection(name, error.message(), "rename the event type"))
}

/// What [`ErasedSql::project`] returns.
pub(crate) type Projecting<'a> = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send + 'a>>;

/// [`SqlProjection`] without its type.
pub(crate) trait ErasedSql: Send + Sync {
    fn dialects(&self) -> &'static [SqlDialect];
    fn setup(&self, dialect: SqlDialect) -> Vec<Statement>;
    /// Works on the page's events in this range of indices, as far as they could be decoded.
    fn project<'a>(
        &'a self,
        tenant: &'a TenantId,
        decoded: &'a dyn Decoded,
        range: Range<usize>,
        tx: &'a mut Tx<'_>,
    ) -> Projecting<'a>;
}

impl<P: SqlProjection> ErasedSql for P {
    fn dialects(&self) -> &'static [SqlDialect] {
        P::DIALECTS
    }

    fn setup(&self, dialect: SqlDialect) -> Vec<Statement> {
        SqlProjection::setup(self, dialect)
    }

    fn project<'a>(
        &'a self,
        tenant: &'a TenantId,
        decoded: &'a dyn Decoded,
        range: Range<usize>,
        tx: &'a mut Tx<'_>,
    ) -> Projecting<'a> {
        Box::pin(async move {
            let at = |index| match decoded.slot(index) {
                Slot::At(at) => Some(*at),
                _ => None,
            };
            let Some(first) = range.clone().find_map(at) else { return Ok(()) };
            let last = range.rev().find_map(at).unwrap_or(first);
            let typed = decoded.as_any().downcast_ref::<DecodedEvents<P::Event>>();
            let typed = typed.expect("a page is decoded as the projection's own events");
            SqlProjection::project(self, Page::new(tenant, &typed.events[first..=last]), tx).await
        })
    }
}
