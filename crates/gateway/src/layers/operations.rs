//! Name and required role of each operation. They are read from the OpenAPI document, so that the documented role is
//! the enforced one.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::MatchedPath;
use axum::http::Method;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::Operation as Described;

use crate::access::Role;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) name: &'static str,
    pub(super) role: Role,
}

/// All operations, by path and method.
#[derive(Debug, Clone)]
pub(crate) struct Operations(Arc<HashMap<(String, Method), Operation>>);

impl Operations {
    pub(crate) fn of_document(document: &OpenApi) -> Self {
        let mut operations = HashMap::new();
        for (path, item) in &document.paths.paths {
            let described = [
                (Method::GET, &item.get),
                (Method::POST, &item.post),
                (Method::PUT, &item.put),
                (Method::PATCH, &item.patch),
                (Method::DELETE, &item.delete),
            ];
            for (method, operation) in described {
                if let Some(operation) = operation {
                    operations.insert((path.clone(), method), described_as(operation));
                }
            }
        }
        Self(Arc::new(operations))
    }

    /// Returns `None` for requests that are not operations: unknown paths and methods, and the documentation.
    pub(super) fn of(&self, method: &Method, route: Option<&MatchedPath>) -> Option<Operation> {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        self.0.get(&(route?.as_str().to_owned(), method.clone())).copied()
    }
}

/// An operation that documents no role needs the highest role.
fn described_as(operation: &Described) -> Operation {
    let mut scopes = operation.security.iter().flatten().flat_map(|security| {
        let security = serde_json::to_value(security).unwrap_or_default();
        let scopes = security.get("token").and_then(|scopes| scopes.as_array()).cloned().unwrap_or_default();
        scopes.into_iter().filter_map(|scope| scope.as_str()?.parse::<Role>().ok())
    });
    let role = scopes.next().unwrap_or(Role::Admin);
    let name = operation.operation_id.clone().unwrap_or_default();
    // Leaked once per operation and gateway, so that an audit line needs no copy.
    Operation { name: Box::leak(name.into_boxed_str()), role }
}

#[cfg(test)]
mod tests {
    use utoipa::openapi::security::SecurityRequirement;

    use super::*;

    #[test]
    fn an_operation_needs_its_documented_role_or_else_the_highest() {
        let mut operation = Described::new();
        assert_eq!(described_as(&operation).role, Role::Admin);
        for (scopes, role) in
            [(&["read"][..], Role::Read), (&["operate"], Role::Operate), (&["root"], Role::Admin)]
        {
            operation.security = Some(vec![SecurityRequirement::new("token", scopes.iter().copied())]);
            assert_eq!(described_as(&operation).role, role, "{scopes:?}");
        }
    }
}
