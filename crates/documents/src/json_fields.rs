//! The fields of an answer, for the help of a command.

use utoipa::PartialSchema;

/// Returns the sentence about the fields of a document, by name.
pub fn json_fields<T: PartialSchema>() -> String {
    let schema = serde_json::to_value(T::schema()).expect("a schema is JSON");
    let fields = schema["properties"].as_object().expect("a document is an object");
    format!("JSON fields: {}.", fields.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LaneDocument, PurgedDocument};

    #[test]
    fn the_sentence_has_each_field_of_the_document() {
        assert_eq!(json_fields::<PurgedDocument>(), "JSON fields: complete, matched, removed, too_recent.");
        assert_eq!(json_fields::<LaneDocument>(), "JSON fields: first, jobs, lane.");
    }
}
