//! The ways in which a store is broken here, one at a time.

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What is wrong with a store.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Fault {
            /// Nothing.
            None,
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// Every one of them.
            pub(crate) const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

faults! {
    /// A page of an older or newer generation goes in.
    AcceptsAStaleGeneration,
    /// A page of somebody else goes in.
    AcceptsAnotherOwner,
    /// A page goes in wherever the row stands.
    AcceptsAnyPosition,
    /// The progress moves, the documents are gone.
    CommitsProgressWithoutDocuments,
    /// Documents are committed first, the progress afterwards.
    CommitsInTwoSteps,
    /// A page rolled back leaves its documents.
    CommitsOnRollBack,
    /// The last dead letter of a page is lost.
    DropsADeadLetter,
    /// Two events carry one number.
    ReusesANumber,
    /// A lock that is dropped keeps its number, as a sequence of a database would.
    LeavesAHole,
    /// The log of one tenant holds events of another.
    MixesEventsOfTenants,
    /// Documents of one tenant are another's.
    MixesDocumentsOfTenants,
    /// A rebuild writes into the documents that are read.
    MixesDocumentsOfBuilds,
    /// A commit whose answer is lost counts as done.
    TakesUnknownForDone,
    /// A commit whose answer is lost counts as failed.
    TakesUnknownForUnavailable,
    /// A page goes through one more than there is.
    ReadsPastTheHead,
    /// A page overlooks where it should end.
    ReadsPastItsBound,
    /// What is missing is passed over.
    SkipsAHole,
    /// What does not fit is passed over.
    SkipsALargeEvent,
    /// The head is read before the events, in another snapshot.
    ReadsTheHeadEarlier,
    /// A stale expectation is repaired behind the caller's back.
    AppendsUnderAStaleHead,
    /// A batch goes in whichever server it was decided on.
    BelievesAnyServer,
    /// Each tenant of a batch has a commit of its own.
    CommitsHalfABatch,
    /// Streams whose names differ in case are one.
    FoldsCase,
    /// Documents whose keys differ in Unicode normal form are one.
    FoldsNormalForms,
    /// The cursor runs ahead of a commit.
    MissesACommit,
    /// A cursor counts whichever server gave it.
    BelievesAnyCursor,
    /// A take-over does not compare.
    TakesOverUnseen,
    /// Append ids are not recorded.
    ForgetsAppendIds,
    /// Heads lose their upper half.
    KeepsNumbersIn32Bits,
    /// Deleted documents stay.
    ForgetsToDelete,
}
