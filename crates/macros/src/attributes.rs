//! The attributes the derive reads: `#[event(…)]`, and what of `#[serde(…)]` belongs to a content.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, LitStr, Meta, Result, Token};

/// Bytes of a stored name.
const NAME_BYTES_MAX: usize = 128;

/// The stored name of a type of event, and where it was written.
pub(crate) fn stored_name(ident: &Ident, attributes: &[Attribute]) -> Result<LitStr> {
    let mut given: Option<LitStr> = None;
    for meta in event_metas(attributes)? {
        if !meta.path().is_ident("name") {
            let key = meta.path().get_ident().map_or_else(|| "this".to_owned(), |key| format!("`{key}`"));
            return Err(Error::new_spanned(
                &meta,
                format!("unknown event attribute {key}; the only one is `name = \"…\"`"),
            ));
        }
        if given.is_some() {
            return Err(Error::new_spanned(&meta, "the name is given twice; keep one"));
        }
        given = Some(string(&meta)?);
    }
    let name = given.unwrap_or_else(|| LitStr::new(&ident.unraw().to_string(), ident.span()));
    check(&name)?;
    Ok(name)
}

/// Refuses every `#[event(…)]` here.
pub(crate) fn no_event_attribute(attributes: &[Attribute], advice: &str) -> Result<()> {
    match attributes.iter().find(|attribute| attribute.path().is_ident("event")) {
        Some(attribute) => Err(Error::new_spanned(attribute, advice)),
        None => Ok(()),
    }
}

fn event_metas(attributes: &[Attribute]) -> Result<Vec<Meta>> {
    let mut metas = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("event")) {
        metas.extend(attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?);
    }
    Ok(metas)
}

fn string(meta: &Meta) -> Result<LitStr> {
    if let Meta::NameValue(pair) = meta
        && let Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) = &pair.value
    {
        return Ok(name.clone());
    }
    Err(Error::new_spanned(meta, "write the name as a string: `#[event(name = \"account-opened\")]`"))
}

fn check(name: &LitStr) -> Result<()> {
    let value = name.value();
    let problem = if value.is_empty() {
        "an event's name cannot be empty".to_owned()
    } else if value.len() > NAME_BYTES_MAX {
        format!(
            "an event's name has at most {NAME_BYTES_MAX} bytes, this one has {}; it is written with every event",
            value.len()
        )
    } else if value.chars().any(char::is_control) {
        "an event's name cannot hold a control character".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::new(name.span(), problem))
}

/// Attributes for the structs of a content, from those of a field: all of serde's.
pub(crate) fn of_field(attributes: &[Attribute]) -> TokenStream {
    let serde = attributes.iter().filter(|attribute| attribute.path().is_ident("serde"));
    quote!(#(#serde)*)
}

/// Attributes for the structs of a content, from those of a variant or struct: those that concern its fields.
pub(crate) fn of_container(attributes: &[Attribute]) -> Result<TokenStream> {
    let metas = serde_metas(attributes)?;
    if let Some(meta) = metas.iter().find(|meta| meta.path().is_ident("default")) {
        return Err(Error::new_spanned(
            meta,
            "an event has no default as a whole; put `#[serde(default)]` on its fields",
        ));
    }
    let kept = metas
        .into_iter()
        .filter(|meta| meta.path().is_ident("rename_all") || meta.path().is_ident("deny_unknown_fields"));
    Ok(quote!(#(#[serde(#kept)])*))
}

/// Attributes for the structs of all contents, from those of the enum.
pub(crate) fn of_enum(attributes: &[Attribute]) -> Result<TokenStream> {
    let mut kept = TokenStream::new();
    for meta in serde_metas(attributes)? {
        if meta.path().is_ident("rename_all_fields")
            && let Meta::NameValue(pair) = &meta
        {
            let case = &pair.value;
            kept.extend(quote!(#[serde(rename_all = #case)]));
        }
    }
    Ok(kept)
}

fn serde_metas(attributes: &[Attribute]) -> Result<Vec<Meta>> {
    let mut metas = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        metas.extend(attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?);
    }
    Ok(metas)
}
