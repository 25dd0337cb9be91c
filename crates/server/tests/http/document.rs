//! The OpenAPI document, its page, and other paths outside of the API.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_served_with_a_page_that_loads_nothing_from_other_hosts() {
    let stage = Stage::new("http-docs").await;
    let document = stage.get("/openapi.json").await.is(200).json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document, bellwether_gateway::openapi());
    // A proxy may serve the gateway under a prefix.
    assert_eq!(stage.get("/docs").await.is(303).header("location"), Some("docs/"));
    let page = stage.get("/docs/").await.is(200).text();
    assert!(page.contains("swagger-ui-bundle.js"), "{page}");
    for part in ["swagger-ui-bundle.js", "swagger-ui.css", "swagger-initializer.js"] {
        let text = stage.get(&format!("/docs/{part}")).await.is(200).text();
        assert!(!text.is_empty());
    }
    let foreign = page.split('"').filter(|text| text.starts_with("http") || text.starts_with("//"));
    assert_eq!(foreign.collect::<Vec<_>>(), Vec::<&str>::new());
    let initializer = stage.get("/docs/swagger-initializer.js").await.text();
    assert!(initializer.contains("/openapi.json"), "{initializer}");
    let console = stage.get("/").await.is(200).text();
    assert!(console.contains("console/main.js"), "{console}");
}

/// Clients are generated from the document, so the schema of a job must match the actual JSON.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_the_documented_fields() {
    let stage = Stage::new("http-form").await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sum"}"#).await.is(201);
    let job = stage.get("/v1/jobs/a").await.is(200).json();
    let written = job.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let document = bellwether_gateway::openapi();
    let schema = &document["components"]["schemas"]["Job"];
    let described = schema["properties"].as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(written, described);
    let required =
        schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
    assert_eq!(written, required.collect(), "all fields are always present");
}

/// Returns the names of all schemas that a part of the document refers to.
fn references(part: &Value, found: &mut BTreeSet<String>) {
    match part {
        Value::Object(fields) => {
            let name =
                |target: &Value| target.as_str()?.strip_prefix("#/components/schemas/").map(str::to_owned);
            found.extend(fields.get("$ref").map(|target| name(target).expect("a reference to a schema")));
            fields.values().for_each(|part| references(part, found));
        }
        Value::Array(parts) => parts.iter().for_each(|part| references(part, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn each_reference_leads_to_a_schema_and_each_schema_is_used() {
    let document = bellwether_gateway::openapi();
    let mut referred = BTreeSet::new();
    references(&document, &mut referred);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert_eq!(referred, schemas.keys().cloned().collect());
}

#[test]
fn each_operation_has_a_name_a_summary_a_role_and_error_answers() {
    let document = bellwether_gateway::openapi();
    let mut names = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let at = format!("{method} {path}");
            assert!(operation["summary"].as_str().unwrap().ends_with('.'), "{at}");
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{at}");
            assert!(operation["security"].is_array(), "{at}");
            let answers = operation["responses"].as_object().unwrap();
            if path.starts_with("/v1/") {
                assert!(answers.contains_key("4XX") && answers.contains_key("5XX"), "{at}");
            }
            let schemas = answers.iter().filter(|(status, _)| status.starts_with(['4', '5']));
            for (status, answer) in schemas {
                let problem = &answer["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(problem, &Value::from("#/components/schemas/Problem"), "{at} {status}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_endpoints_report_liveness_and_readiness() {
    let stage = Stage::new("http-health").await;
    assert_eq!(stage.get("/healthz").await.is(200).text(), "ok");
    assert_eq!(stage.get("/readyz").await.is(200).text(), "ready");
    stage.get("/metrics").await.problem(404, "not-found", "does not record metrics");
}
