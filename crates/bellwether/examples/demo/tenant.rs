//! From a tenant's display name to its id.

use bellwether::storage::TenantId;

/// Readable where the name allows it, unique by the digest of the name: `lib-x-5a1c…`.
pub(crate) fn tenant_id(display_name: &str) -> TenantId {
    let mut slug: String = display_name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(40)
        .collect();
    slug = slug.trim_matches('-').to_owned();
    let digest = digest([display_name.as_bytes()]);
    let id = if slug.is_empty() { format!("{digest:016x}") } else { format!("{slug}-{digest:016x}") };
    TenantId::new(id)
        .expect("letters, digits and dashes only, the first a letter or digit, at most 57 of them")
}

/// FNV-1a over parts, each ended by a byte that UTF-8 does not hold. The same in every build, for ever.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    parts.into_iter().fold(0xcbf2_9ce4_8422_2325, digest_on)
}

/// Goes on with a digest.
pub(crate) fn digest_on(digest: u64, part: &[u8]) -> u64 {
    part.iter()
        .chain(&[0xff])
        .fold(digest, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_valid_and_differ_where_names_differ() {
        let names = ["(root)", "lib", "Lib", "lib-", "lib/x", "lib-x", "ä", "日本", "-", &"x".repeat(500)];
        let ids: std::collections::BTreeSet<_> = names.iter().map(|name| tenant_id(name)).collect();
        assert_eq!(ids.len(), names.len());
    }
}
