//! Values that are one text in a document.

/// Implements the traits of serde by [`FromStr`](std::str::FromStr) and [`Display`](std::fmt::Display). The error for another type of
/// value says what is expected.
macro_rules! impl_serde {
    ($type:ty, $expected:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(Text)
            }
        }
    };
}

pub(crate) use impl_serde;

/// Implements `ALL`, `as_str` and `Display` for a closed list of values with names.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_names {
    (@names $type:ident { $($value:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// All values.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Returns its name in documents.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }
        }
    };
    ($type:ident $names:tt) => {
        $crate::impl_names!(@names $type $names);

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

/// Longest part of an unknown name that an error repeats, in characters. All names are shorter.
const MAX_REPEATED: usize = 64;

/// Reads the name of one of these values.
///
/// # Errors
/// The value is not a string, or not one of the names.
#[doc(hidden)]
pub fn named<'de, T: Copy, D: serde::Deserializer<'de>>(
    deserializer: D,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, D::Error> {
    let given = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
    all.iter().copied().find(|value| name(*value) == given).ok_or_else(|| {
        let given = given.chars().take(MAX_REPEATED).collect::<String>();
        let names = all.iter().map(|value| format!("`{}`", name(*value))).collect::<Vec<_>>().join(", ");
        serde::de::Error::custom(format_args!("unknown variant `{given}`, expected one of {names}"))
    })
}

/// Implements `Deserialize` by name for types with `ALL` and `as_str`. The derived implementation would also accept an object, and
/// repeat an unknown name of any length.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_deserialize_by_name {
    ($($type:ty),*) => {$(
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::text::named(deserializer, &Self::ALL, Self::as_str)
            }
        }
    )*};
}
