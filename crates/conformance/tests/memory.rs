//! The store in memory sits the exam.

mod subject {
    pub(crate) mod in_memory;
}

use subject::in_memory::InMemory;

bellwether_conformance::exam!(memory, InMemory);
