//! The error responses of the API in the OpenAPI document, for operations that do not describe their own.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, Response, ResponseBuilder};

const OF_A_READ: [(&str, &str); 2] = [("4XX", "The request failed"), ("5XX", "The request failed")];

const OF_A_CHANGE: [(&str, &str); 2] =
    [("4XX", "Nothing was changed"), ("5XX", "Nothing was changed, or the outcome is unknown")];

/// Adds the responses that are missing.
pub(super) fn describe(document: &mut OpenApi) {
    for (_, item) in document.paths.paths.iter_mut().filter(|(path, _)| path.starts_with("/v1/")) {
        let PathItem { get, put, post, patch, delete, .. } = item;
        if let Some(operation) = get {
            add(operation, OF_A_READ);
        }
        for operation in [put, post, patch, delete].into_iter().flatten() {
            add(operation, OF_A_CHANGE);
        }
    }
}

fn add(operation: &mut Operation, failures: [(&str, &str); 2]) {
    for (status, description) in failures {
        let response = || problem(description).into();
        operation.responses.responses.entry(status.to_owned()).or_insert_with(response);
    }
}

fn problem(description: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    ResponseBuilder::new().description(description).content("application/problem+json", content).build()
}

#[cfg(test)]
mod tests {
    use crate::openapi;

    #[test]
    fn every_operation_of_the_api_describes_its_problems() {
        let document = openapi();
        let paths = document["paths"].as_object().unwrap();
        let api = paths.iter().filter(|(path, _)| path.starts_with("/v1/"));
        let operations = api.flat_map(|(_, item)| item.as_object().unwrap().values());
        let mut count = 0;
        for responses in operations.map(|operation| &operation["responses"]) {
            for status in ["4XX", "5XX"] {
                let schema = &responses[status]["content"]["application/problem+json"]["schema"];
                assert_eq!(schema["$ref"], "#/components/schemas/Problem", "{responses}");
            }
            count += 1;
        }
        assert!(count > 50, "{count} operations");
        assert!(document["components"]["schemas"]["Problem"].is_object());
        let failed =
            |path: &str, method: &str| &document["paths"][path][method]["responses"]["4XX"]["description"];
        assert_eq!(failed("/v1/jobs/{id}", "get"), "The request failed");
        assert_eq!(failed("/v1/jobs/{id}/cancel", "post"), "Nothing was changed");
        assert_eq!(failed("/v1/jobs", "post"), "Not accepted");
    }
}
