//! What the three kinds of views have in common: documents with a name.

use bellwether_storage::Encoding;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{MultiView, StageView, View};

/// A type whose values are stored as documents: every [`View`], [`MultiView`] and [`StageView`]. Never implemented by hand.
///
/// `Kind` tells the three apart and is always inferred.
pub trait Readable<Kind>: Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Name of the view.
    const NAME: &'static str;
    /// Version of the view.
    const VERSION: u32;
    /// How its documents are stored.
    const ENCODING: Encoding;
}

/// [`Readable`] as a [`View`].
#[derive(Debug)]
pub enum AsView {}

/// [`Readable`] as a [`MultiView`].
#[derive(Debug)]
pub enum AsMultiView {}

/// [`Readable`] as a [`StageView`].
#[derive(Debug)]
pub enum AsStageView {}

macro_rules! readable {
    ($kind:ident, $view:ident) => {
        impl<V: $view> Readable<$kind> for V {
            const NAME: &'static str = <V as $view>::NAME;
            const VERSION: u32 = <V as $view>::VERSION;
            const ENCODING: Encoding = <V as $view>::ENCODING;
        }
    };
}

readable!(AsView, View);
readable!(AsMultiView, MultiView);
readable!(AsStageView, StageView);
