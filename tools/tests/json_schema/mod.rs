//! Validates JSON documents against their schemas: it knows the part of JSON Schema that the schemas of docs use, and
//! refuses any other keyword.

use serde_json::{Map, Value as Json, json};

/// Why a value does not have the form that a schema asks for; `None` if it does.
pub fn trouble(root: &Json, schema: &Json, value: &Json, at: &str) -> Option<String> {
    let is_of = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("the judge does not know the type {other}"),
    };
    let wrong = |why: String| Some(format!("{at}: {why}"));
    let list = |items: &Json| items.as_array().unwrap().clone();
    for (keyword, asked) in schema.as_object().unwrap() {
        let length = value.as_array().map_or(0, Vec::len);
        let found = match (keyword.as_str(), value) {
            ("$schema" | "$defs" | "title" | "description", _) => None,
            ("$ref", _) => trouble(root, root.pointer(&asked.as_str().unwrap()[1..]).unwrap(), value, at),
            ("type", _) => {
                let kinds = asked.as_str().map_or_else(|| list(asked), |kind| vec![json!(kind)]);
                let fits = kinds.iter().any(|kind| is_of(kind.as_str().unwrap()));
                if fits { None } else { wrong(format!("{value} is not of type {asked}")) }
            }
            ("const", _) if value != asked => wrong(format!("{value} is not {asked}")),
            ("enum", _) if !list(asked).contains(value) => wrong(format!("{value} is none of {asked}")),
            ("oneOf", _) => {
                let troubles: Vec<_> = list(asked).iter().map(|one| trouble(root, one, value, at)).collect();
                let fitting = troubles.iter().filter(|trouble| trouble.is_none()).count();
                if fitting == 1 { None } else { wrong(format!("{fitting} forms fit: {troubles:?}")) }
            }
            ("minimum", Json::Number(number)) if number.as_f64() < asked.as_f64() => {
                wrong(format!("{number} is below {asked}"))
            }
            ("minLength", Json::String(text)) if (text.len() as u64) < asked.as_u64().unwrap() => {
                wrong("the text is too short".into())
            }
            ("minItems", Json::Array(_)) if (length as u64) < asked.as_u64().unwrap() => {
                wrong(format!("{length} items"))
            }
            ("maxItems", Json::Array(_)) if length as u64 > asked.as_u64().unwrap() => {
                wrong(format!("{length} items"))
            }
            ("items", Json::Array(items)) => {
                let mut items = items.iter().enumerate();
                items.find_map(|(index, item)| trouble(root, asked, item, &format!("{at}[{index}]")))
            }
            ("prefixItems", Json::Array(items)) => {
                let mut pairs = list(asked).into_iter().zip(items).enumerate();
                pairs.find_map(|(index, (one, item))| trouble(root, &one, item, &format!("{at}[{index}]")))
            }
            ("required", Json::Object(fields)) => {
                let missing =
                    list(asked).into_iter().find(|name| !fields.contains_key(name.as_str().unwrap()));
                missing.and_then(|name| wrong(format!("{name} is missing")))
            }
            ("properties", Json::Object(fields)) => fields
                .iter()
                .find_map(|(name, field)| trouble(root, asked.get(name)?, field, &format!("{at}.{name}"))),
            ("additionalProperties", Json::Object(fields)) => {
                let none = Map::new();
                let known = schema.get("properties").map_or(&none, |known| known.as_object().unwrap());
                let mut others = fields.iter().filter(|(name, _)| !known.contains_key(*name));
                match asked {
                    Json::Bool(false) => {
                        others.next().and_then(|(name, _)| wrong(format!("{name} is unknown")))
                    }
                    _ => {
                        others.find_map(|(name, field)| trouble(root, asked, field, &format!("{at}.{name}")))
                    }
                }
            }
            (
                "const"
                | "enum"
                | "minimum"
                | "minLength"
                | "minItems"
                | "maxItems"
                | "items"
                | "prefixItems"
                | "required"
                | "properties"
                | "additionalProperties",
                _,
            ) => None,
            (other, _) => panic!("the judge does not know the keyword {other}"),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}
