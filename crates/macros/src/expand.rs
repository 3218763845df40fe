//! The generated code: the impl, and two private structs per type of event.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Fields, Ident};

use crate::attributes::of_field;
use crate::input::{EventCase, EventInput};

/// Writes the impl. `root` is the path of the hidden module.
pub(crate) fn expand(input: &EventInput, root: &TokenStream) -> TokenStream {
    let ident = &input.ident;
    let names: Vec<_> = input.cases.iter().map(|case| &case.name).collect();
    let type_names = input.cases.iter().map(|case| {
        let (path, name) = (path(case), &case.name);
        quote!(#path { .. } => #name)
    });
    let encodes = input.cases.iter().map(|case| encode(case, root));
    let decodes = input.cases.iter().map(|case| decode(case, root));
    quote! {
        const _: () = {
            #[automatically_derived]
            impl #root::Event for #ident {
                const TYPES: &'static [&'static str] = &[#(#names),*];

                fn type_name(&self) -> &'static str {
                    match self { #(#type_names),* }
                }

                fn encode(&self, encoding: #root::Encoding) -> ::core::result::Result<#root::Vec<u8>, #root::CodecError> {
                    match self { #(#encodes),* }
                }

                fn decode(
                    type_name: &str,
                    encoding: #root::Encoding,
                    body: &[u8],
                ) -> ::core::result::Result<Self, #root::CodecError> {
                    match type_name {
                        #(#decodes,)*
                        _ => ::core::result::Result::Err(#root::unknown_type(type_name, <Self as #root::Event>::TYPES)),
                    }
                }
            }
        };
    }
}

fn path(case: &EventCase) -> TokenStream {
    match &case.variant {
        Some(variant) => quote!(Self::#variant),
        None => quote!(Self),
    }
}

fn content_ident(case: &EventCase) -> Ident {
    let of = case.variant.as_ref().map_or_else(|| "Struct".to_owned(), |variant| variant.unraw().to_string());
    format_ident!("__ContentOf{of}")
}

fn encode(case: &EventCase, root: &TokenStream) -> TokenStream {
    let (path, name, content) = (path(case), &case.name, content_ident(case));
    let (pattern, values) = bindings(&case.fields);
    let body = fields(&case.fields, true);
    let lifetime = (!case.fields.is_empty()).then(|| quote!(<'__content>));
    let serde = serde_path(root);
    let attributes = &case.attributes;
    let serialize = quote!(#[derive(#root::serde::Serialize)] #[serde(crate = #serde)] #[allow(non_camel_case_types, dead_code)]);
    quote! {
        #path #pattern => {
            #serialize
            #attributes
            struct #content #lifetime #body
            #root::encode_content(#name, encoding, &#content #values)
        }
    }
}

fn decode(case: &EventCase, root: &TokenStream) -> TokenStream {
    let (path, name, content) = (path(case), &case.name, content_ident(case));
    let (pattern, values) = bindings(&case.fields);
    let body = fields(&case.fields, false);
    let serde = serde_path(root);
    let attributes = &case.attributes;
    quote! {
        #name => {
            #[derive(#root::serde::Deserialize)]
            #[serde(crate = #serde)]
            #[allow(non_camel_case_types, dead_code)]
            #attributes
            struct #content #body
            let #content #pattern = #root::decode(#name, encoding, body)?;
            ::core::result::Result::Ok(#path #values)
        }
    }
}

fn serde_path(root: &TokenStream) -> String {
    format!("{root}::serde").replace(' ', "")
}

/// Definition of the fields of a content, borrowed or owned; without fields an empty map, so that some may come.
fn fields(fields: &Fields, borrowed: bool) -> TokenStream {
    let reference = borrowed.then(|| quote!(&'__content));
    let definitions = fields.iter().map(|field| {
        let (attributes, ty) = (of_field(&field.attrs), &field.ty);
        let name = field.ident.as_ref().map(|ident| quote!(#ident:));
        // The type's place in the source, so that "does not implement Serialize" points there.
        quote_spanned!(ty.span()=> #attributes #name #reference #ty)
    });
    match fields {
        Fields::Unnamed(_) if !fields.is_empty() => quote!((#(#definitions),*);),
        _ => quote!({ #(#definitions),* }),
    }
}

/// The same fields as a pattern and as values, bound to names of ours.
fn bindings(fields: &Fields) -> (TokenStream, TokenStream) {
    let bound: Vec<_> = (0..fields.len()).map(|index| format_ident!("__field{index}")).collect();
    let both = match fields {
        Fields::Unnamed(_) if !fields.is_empty() => quote!((#(#bound),*)),
        _ => {
            let names = fields.iter().map(|field| &field.ident);
            quote!({ #(#names: #bound),* })
        }
    };
    (both.clone(), both)
}
