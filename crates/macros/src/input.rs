//! What may be derived: enums with at least one variant, structs; without generic parameters, with names that can be stored.

use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Ident, LitStr, Result};

use crate::attributes::{no_event_attribute, of_container, of_enum, stored_name};

/// A type of event: a variant of an enum, or a struct.
pub(crate) struct EventCase {
    /// The variant; `None` for a struct.
    pub(crate) variant: Option<Ident>,
    pub(crate) name: LitStr,
    pub(crate) fields: Fields,
    /// Attributes for the structs of its content.
    pub(crate) attributes: TokenStream,
}

/// A checked input of the derive.
pub(crate) struct EventInput {
    pub(crate) ident: Ident,
    pub(crate) cases: Vec<EventCase>,
}

impl EventInput {
    /// Checks the input; reports every problem of its variants at once.
    pub(crate) fn from_derive(input: &DeriveInput) -> Result<Self> {
        if !input.generics.params.is_empty() {
            return Err(Error::new_spanned(
                &input.generics,
                "an event cannot be generic: its stored form must be the same in every program; use concrete, owned types",
            ));
        }
        let cases = match &input.data {
            Data::Enum(data) => {
                no_event_attribute(
                    &input.attrs,
                    "each variant is a type of event; put `#[event(…)]` on the variants",
                )?;
                if data.variants.is_empty() {
                    return Err(Error::new_spanned(&input.ident, "an event enum needs at least one variant"));
                }
                enum_cases(&input.attrs, data)?
            }
            Data::Struct(data) => vec![EventCase {
                variant: None,
                name: stored_name(&input.ident, &input.attrs)?,
                fields: checked(&data.fields)?,
                attributes: of_container(&input.attrs)?,
            }],
            Data::Union(data) => {
                return Err(Error::new(
                    data.union_token.span(),
                    "a union cannot be an event; use an enum or a struct",
                ));
            }
        };
        Ok(Self { ident: input.ident.clone(), cases })
    }
}

fn enum_cases(attributes: &[syn::Attribute], data: &syn::DataEnum) -> Result<Vec<EventCase>> {
    let of_enum = of_enum(attributes)?;
    let mut problems: Option<Error> = None;
    let mut cases: Vec<EventCase> = Vec::new();
    for variant in &data.variants {
        match enum_case(variant, &of_enum, &cases) {
            Ok(case) => cases.push(case),
            Err(problem) => match &mut problems {
                Some(problems) => problems.combine(problem),
                None => problems = Some(problem),
            },
        }
    }
    problems.map_or(Ok(cases), Err)
}

fn enum_case(variant: &syn::Variant, of_enum: &TokenStream, before: &[EventCase]) -> Result<EventCase> {
    let name = stored_name(&variant.ident, &variant.attrs)?;
    if let Some(twin) = before.iter().find(|case| case.name.value() == name.value()) {
        let twin = twin.variant.as_ref().map(ToString::to_string).unwrap_or_default();
        return Err(Error::new(
            name.span(),
            format!(
                "the name {:?} is already that of variant `{twin}`; stored events could not be told apart",
                name.value()
            ),
        ));
    }
    let mut attributes = of_container(&variant.attrs)?;
    // A variant's own case rule wins over that of the enum.
    if !attributes.to_string().contains("rename_all") {
        attributes.extend(of_enum.clone());
    }
    Ok(EventCase {
        variant: Some(variant.ident.clone()),
        name,
        fields: checked(&variant.fields)?,
        attributes,
    })
}

fn checked(fields: &Fields) -> Result<Fields> {
    for field in fields {
        no_event_attribute(
            &field.attrs,
            "a field has no event attribute; `#[serde(…)]` says how it is stored",
        )?;
    }
    Ok(fields.clone())
}
