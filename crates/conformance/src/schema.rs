//! The schema: the same whether made today or migrated, and every SQL file fits it.

use crate::Subject;

pub async fn a_fresh_schema_is_the_migrated_one(subject: &dyn Subject) {
    let schemas = subject.schemas().await;
    assert!(schemas.fresh.contains("heads"), "a description of a schema: {:?}", schemas.fresh);
    for (number, (fresh, migrated)) in schemas.fresh.lines().zip(schemas.migrated.lines()).enumerate() {
        assert_eq!(fresh, migrated, "line {number}: fresh on the left, migrated on the right");
    }
    assert_eq!(schemas.fresh, schemas.migrated);
}

pub async fn every_sql_file_prepares(subject: &dyn Subject) {
    let prepared = subject.prepare_all().await;
    assert!(prepared.len() >= 15, "only {} files were tried", prepared.len());
    let refused: Vec<_> = prepared.iter().filter(|file| file.refused.is_some()).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}
