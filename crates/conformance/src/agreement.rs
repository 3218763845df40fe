//! Random operations agree with the store in memory.
//!
//! A sequence of operations is drawn, decided against the memory's state (versions, heads, where a page starts), and performed on
//! both stores, over the two processes' handles; every answer must be the same. A failing sequence is shrunk. The seed is printed;
//! `BELLWETHER_EXAM_SEED` sets another.

mod call;
mod operation;
mod side;

use std::sync::Arc;

use bellwether_memory::Memory;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use self::operation::Operation;
use self::side::Side;
use crate::Subject;

const SEQUENCES: u32 = 40;
const OPERATIONS_MAX: usize = 50;
const SHRINKS_MAX: u32 = 300;

pub async fn random_operations_agree_with_memory(subject: &dyn Subject) {
    let seed = seed();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let sequences = proptest::collection::vec(operation::any(), 1..OPERATIONS_MAX);
    let memory = Memory::new();
    let mut names = 0;
    for number in 0..SEQUENCES {
        let mut tree = sequences.new_tree(&mut runner).expect("a sequence of operations");
        let Err(mut difference) = run(subject, &memory, &mut names, &tree.current()).await else { continue };
        for _ in 0..SHRINKS_MAX {
            if !tree.simplify() {
                break;
            }
            match run(subject, &memory, &mut names, &tree.current()).await {
                Err(smaller) => difference = smaller,
                Ok(()) if tree.complicate() => {}
                Ok(()) => break,
            }
        }
        panic!(
            "sequence {number} of seed {seed} (set BELLWETHER_EXAM_SEED={seed} to repeat it): {difference}"
        );
    }
}

fn seed() -> u64 {
    std::env::var("BELLWETHER_EXAM_SEED")
        .map_or(0xbe11_3e74, |text| text.parse().expect("BELLWETHER_EXAM_SEED is a number"))
}

/// Performs one sequence on tenants of its own; says where and how the stores differ.
async fn run(
    subject: &dyn Subject,
    memory: &Memory,
    names: &mut u32,
    operations: &[Operation],
) -> Result<(), String> {
    *names += 1;
    let model = Side::new([Arc::new(memory.clone()), Arc::new(memory.another_handle())], *names).await;
    let examined = Side::new([subject.first().clone(), subject.second().clone()], *names).await;
    for (index, operation) in operations.iter().enumerate() {
        let call = model.decide(operation).await;
        let expected = model.perform(&call).await;
        let found = examined.perform(&call).await;
        if expected != found {
            let before =
                operations[..index].iter().map(|before| format!("\n  {before:?}")).collect::<String>();
            return Err(format!(
                "{operation:?} as\n  {call:?}\nanswered\n  {found}\nbut memory\n  {expected}\nafter{before}"
            ));
        }
    }
    Ok(())
}
