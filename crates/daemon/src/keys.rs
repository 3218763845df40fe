//! The documents an event goes to.

/// Collects the keys of the documents that one event changes.
///
/// Kept in one run of text, so that an event that goes to thousands of documents costs the bytes of its keys and 8 more each.
/// Duplicates are applied twice; push a key once per event.
#[derive(Debug, Default)]
pub struct Keys {
    text: String,
    ends: Vec<usize>,
}

impl Keys {
    /// Adds a key: 1 to 1,024 bytes of UTF-8 without control characters. A key that is not of this form makes the event a
    /// dead letter.
    pub fn push(&mut self, key: impl AsRef<str>) {
        self.text.push_str(key.as_ref());
        self.ends.push(self.text.len());
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the event goes nowhere.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The keys, in the order they were pushed.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|index| self.at(index))
    }

    pub(crate) fn at(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_in_order_and_apart() {
        let mut keys = Keys::default();
        for key in ["a", "bc", "", "d"] {
            keys.push(key);
        }
        assert_eq!(keys.iter().collect::<Vec<_>>(), ["a", "bc", "", "d"]);
        assert!(!keys.is_empty() && keys.len() == 4);
    }
}
