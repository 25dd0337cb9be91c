//! Values of the library that have a name, but are no plain list of values for serde and clap.

use std::borrow::Cow;

use bellwether::client::Accepted;
use bellwether::error::Remedy;
use serde::{Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! named {
    ($($(#[$doc:meta])* $document:ident($type:ident), $description:literal: $($value:expr => $meaning:literal,)*;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $document(pub $type);

        impl $document {
            /// All values, with the meaning of each.
            const ALL: &'static [($type, &'static str)] = &[$(($value, $meaning)),*];
        }

        impl Serialize for $document {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.0.as_str())
            }
        }

        impl PartialSchema for $document {
            fn schema() -> RefOr<Schema> {
                let meanings = Self::ALL.iter().map(|(value, meaning)| format!("* `{}`: {meaning}.", value.as_str()));
                let text = [$description.to_owned(), String::new()].into_iter().chain(meanings).collect::<Vec<_>>();
                let schema = ObjectBuilder::new().schema_type(Type::String).description(Some(text.join("\n")));
                schema.enum_values(Some(Self::ALL.iter().map(|(value, _)| value.as_str()))).into()
            }
        }

        impl ToSchema for $document {
            fn name() -> Cow<'static, str> {
                stringify!($type).into()
            }
        }
    )*};
}

named! {
    /// How a submission was accepted.
    AcceptedDocument(Accepted), "How a submission was accepted.":
        Accepted::New => "A job was created",
        Accepted::Same => "The same job already existed",
        Accepted::Other => "Another job has the id, and `if_exists` is `ignore`",
        Accepted::Again(1) => "The job had ended and is open again",
    ;
    /// What the caller of a failed request can do.
    RemedyDocument(Remedy), "What the caller of a failed request can do.":
        Remedy::Retry => "Send the same request again later; repeating it is safe",
        Remedy::ReadBack => "Read the state and decide: the change may or may not have been applied",
        Remedy::FixInput => "Correct the request, or the state that it conflicts with",
        Remedy::GiveUp => "The same request cannot succeed: an operator may have to act",
    ;
}
