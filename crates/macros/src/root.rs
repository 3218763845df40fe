//! Where the generated code finds what it needs: the events crate, or the facade that re-exports it.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

/// Path of the hidden module, as the crate that is being compiled can reach it.
pub(crate) fn private_path() -> TokenStream {
    let found = ["bellwether-events", "bellwether"]
        .into_iter()
        .find_map(|package| Some((package, crate_name(package).ok()?)));
    let name = match found {
        Some((_, FoundCrate::Name(name))) => name,
        // The package itself: its examples, tests and documentation name it as everybody does.
        Some((package, FoundCrate::Itself)) => package.replace('-', "_"),
        // Not found: the compiler's message about this path says best what is missing.
        None => "bellwether".to_owned(),
    };
    let name = Ident::new(&name, Span::call_site());
    quote!(::#name::__private)
}
