//! TOML values with their own checks.

use serde::de::{Deserialize, Deserializer, Error as _};

/// Converts the values of a key to the texts that the command line would have.
pub(super) fn texts(value: toml::Value, several: bool) -> Result<Vec<String>, String> {
    match value {
        toml::Value::Array(values) if several => values.into_iter().map(text).collect(),
        toml::Value::Array(_) => Err("must be one value, not a list".to_owned()),
        one => text(one).map(|text| vec![text]),
    }
}

fn text(value: toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(truth) => Ok(truth.to_string()),
        other @ (toml::Value::Float(_)
        | toml::Value::Datetime(_)
        | toml::Value::Array(_)
        | toml::Value::Table(_)) => {
            Err(format!("must be a string, a number or a boolean, not a {}", other.type_str()))
        }
    }
}

/// A payload: any TOML value, converted to JSON.
pub(super) struct Json(pub(super) serde_json::Value);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json(toml::Value::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
    }
}

fn json(value: toml::Value) -> Result<serde_json::Value, String> {
    use serde_json::Value as Json;
    Ok(match value {
        toml::Value::String(text) => Json::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .map(Json::Number)
            .ok_or_else(|| format!("{number} cannot be written as JSON: give a finite number"))?,
        toml::Value::Boolean(truth) => Json::Bool(truth),
        toml::Value::Datetime(at) => Json::String(at.to_string()),
        toml::Value::Array(values) => Json::Array(values.into_iter().map(json).collect::<Result<_, _>>()?),
        toml::Value::Table(fields) => Json::Object(
            fields
                .into_iter()
                .map(|(name, value)| Ok((name, json(value)?)))
                .collect::<Result<_, String>>()?,
        ),
    })
}
