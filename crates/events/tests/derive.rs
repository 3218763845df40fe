//! What `#[derive(Event)]` writes: names, contents, and helpful refusals.

use std::collections::BTreeMap;

use bellwether_events::{CodecError, Event};
use bellwether_storage::Encoding;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Address {
    street: String,
}

/// Neither `Serialize` nor `Deserialize`: only the fields are.
#[derive(Debug, Clone, PartialEq, Event)]
#[serde(rename_all_fields = "camelCase")]
enum Customer {
    Joined,
    #[event(name = "customer/named")]
    Named {
        full_name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nick: Option<String>,
    },
    Moved(Address),
    Scored(u32, f64),
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    Tagged {
        all_tags: BTreeMap<String, String>,
        #[serde(rename = "n")]
        count: u64,
        #[serde(with = "as_text")]
        r#type: i64,
    },
    // A type of the same name as the variant.
    Address {
        address: Address,
    },
}

mod as_text {
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub(super) fn serialize<S: Serializer>(number: &i64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&number.to_string())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[derive(Debug, Clone, PartialEq, Event)]
#[event(name = "measured")]
struct Measured {
    celsius: f64,
}

#[derive(Debug, Clone, PartialEq, Event)]
struct Pinged;

fn all() -> Vec<Customer> {
    let address = Address { street: "Main".into() };
    vec![
        Customer::Joined,
        Customer::Named { full_name: "Ada".into(), nick: None },
        Customer::Moved(address.clone()),
        Customer::Scored(7, 0.5),
        Customer::Tagged { all_tags: BTreeMap::from([("a".into(), "b".into())]), count: 3, r#type: -9 },
        Customer::Address { address },
    ]
}

#[test]
fn names_are_identifiers_unless_given() {
    assert_eq!(Customer::TYPES, ["Joined", "customer/named", "Moved", "Scored", "Tagged", "Address"]);
    let names: Vec<_> = all().iter().map(Event::type_name).collect();
    assert_eq!(names, Customer::TYPES);
    assert_eq!((Measured::TYPES, Pinged::TYPES), (&["measured"][..], &["Pinged"][..]));
}

#[test]
fn every_kind_of_variant_comes_back_in_both_encodings() {
    for encoding in [Encoding::MessagePack, Encoding::Json] {
        for event in all() {
            let body = event.encode(encoding).unwrap();
            assert_eq!(Customer::decode(event.type_name(), encoding, &body).unwrap(), event);
        }
        let measured = Measured { celsius: 21.5 };
        assert_eq!(
            Measured::decode("measured", encoding, &measured.encode(encoding).unwrap()).unwrap(),
            measured
        );
        assert_eq!(Pinged::decode("Pinged", encoding, &Pinged.encode(encoding).unwrap()).unwrap(), Pinged);
    }
}

#[test]
fn only_the_content_is_encoded_with_the_attributes_of_its_fields() {
    let json = |event: &Customer| String::from_utf8(event.encode(Encoding::Json).unwrap()).unwrap();
    let shown: Vec<_> = all().iter().map(json).collect();
    assert_eq!(
        shown,
        [
            r#"{}"#,
            r#"{"fullName":"Ada"}"#,
            r#"{"street":"Main"}"#,
            r#"[7,0.5]"#,
            r#"{"ALL_TAGS":{"a":"b"},"n":3,"TYPE":"-9"}"#,
            r#"{"address":{"street":"Main"}}"#,
        ]
    );
}

#[test]
fn fields_may_come_and_go() {
    // Written by an older program, without the nickname, and by a newer one, with a field this one does not know.
    for body in [r#"{"fullName":"Ada"}"#, r#"{"fullName":"Ada","nick":null,"since":1815}"#] {
        let read = Customer::decode("customer/named", Encoding::Json, body.as_bytes()).unwrap();
        assert_eq!(read, Customer::Named { full_name: "Ada".into(), nick: None });
    }
    assert_eq!(Customer::decode("Joined", Encoding::Json, br#"{"by":"mail"}"#).unwrap(), Customer::Joined);
}

#[test]
fn unknown_names_and_foreign_bytes_are_told_apart() {
    let unknown = Customer::decode("Left", Encoding::Json, b"{}").unwrap_err();
    assert!(
        matches!(unknown, CodecError::UnknownType { .. }) && unknown.to_string().contains("customer/named")
    );
    let foreign = Customer::decode("Moved", Encoding::MessagePack, &[0xc1]).unwrap_err();
    assert!(matches!(foreign, CodecError::Decode { .. }));
    // Names compare byte for byte.
    assert!(Customer::decode("joined", Encoding::Json, b"{}").is_err());
}

#[test]
fn what_cannot_be_an_event_is_refused_with_advice() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
