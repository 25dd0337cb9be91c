//! The kind of a message is the name of its variant. Tests inject faults at a kind.

#[cfg(feature = "testing")]
mod testing;

#[cfg(feature = "testing")]
pub use self::testing::{Kind, Kinds};

/// Gives each variant of an enum a kind: `kinds!(Message { Variant, … })`. For `Variant => Inner` the last field of the
/// variant is an enum that has kinds itself. The match has no wildcard, so a new variant must be listed. A generic enum
/// names its parameter at the end: `kinds!(Message<T> { … } for T: Bound)`.
#[macro_export]
macro_rules! kinds {
    ($message:ty { $($variant:ident $(=> $inner:ty)?),* $(,)? } $(for $generic:ident: $bound:path)?) => {
        #[cfg(feature = "testing")]
        impl<$($generic: $bound)?> $crate::Kinds for $message {
            fn all() -> Vec<$crate::Kind> {
                let kinds: &[&[$crate::Kind]] =
                    &[$(&$crate::kinds!(@all $variant $($inner)?)),*];
                kinds.concat()
            }

            fn kind(&self) -> $crate::Kind {
                match *self {
                    $($crate::kinds!(@pattern inner $variant $($inner)?) =>
                        $crate::kinds!(@kind inner $variant $($inner)?)),*
                }
            }
        }
    };
    (@all $variant:ident) => { [$crate::Kind::new(stringify!($variant))] };
    (@all $variant:ident $inner:ty) => {
        $crate::Kind::within(stringify!($variant), &<$inner as $crate::Kinds>::all())
    };
    (@pattern $bound:ident $variant:ident) => { Self::$variant { .. } };
    (@pattern $bound:ident $variant:ident $inner:ty) => { Self::$variant(.., ref $bound) };
    (@kind $bound:ident $variant:ident) => { $crate::Kind::new(stringify!($variant)) };
    (@kind $bound:ident $variant:ident $inner:ty) => {
        $crate::Kinds::kind($bound).of(stringify!($variant))
    };
}
