//! Renders a board as JSON for Grafana.

use serde_json::{Map, Value, json};

use crate::boards::{Board, Limits, Panel, Row, Scope, Shape, Unit};
use crate::promql;

/// The number of columns of Grafana's grid.
const COLUMNS: u32 = 24;

/// The schema version of Grafana 10. Newer versions migrate it when they load the dashboard.
const SCHEMA: u32 = 39;

/// The colours for good, warning and critical.
const COLOURS: [&str; 3] = ["green", "orange", "red"];

/// Returns the contents of the dashboard's file.
#[must_use]
pub fn dashboard(board: &Board) -> String {
    let document = json!({
        "uid": board.slug,
        "title": board.title,
        "description": board.about,
        "tags": ["bellwether"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": { "from": "now-1h", "to": "now" },
        "timezone": "browser",
        "links": [{
            "title": "Bellwether",
            "type": "dashboards",
            "tags": ["bellwether"],
            "asDropdown": true,
            "keepTime": true,
            "includeVars": true,
        }],
        "templating": { "list": variables(board.scope) },
        "panels": panels(board),
    });
    let text = serde_json::to_string_pretty(&sorted(document)).expect("the document is valid JSON");
    format!("{text}\n")
}

/// The dashboard's own variables: name and query.
#[must_use]
pub fn queries(scope: Scope) -> Vec<(&'static str, &'static str)> {
    let job = ("job", "label_values(bellwether_session_connected, job)");
    match scope {
        Scope::Namespace => vec![job],
        Scope::Kinds => {
            vec![job, ("kind", "label_values(bellwether_job_attempts_total{job=\"$job\"}, kind)")]
        }
        Scope::Nodes => {
            vec![job, ("instance", "label_values(bellwether_session_connected{job=\"$job\"}, instance)")]
        }
    }
}

/// Adds the labels of the scope to an expression.
#[must_use]
pub fn expression(scope: Scope, expr: &str) -> String {
    promql::scoped(expr, |series| {
        let of_target = !series.contains(':');
        let mut labels = vec!["job=\"$job\""];
        match scope {
            Scope::Namespace => {}
            Scope::Kinds if promql::has_label(series, "kind") => labels.push("kind=~\"$kind\""),
            Scope::Kinds => {}
            Scope::Nodes if of_target => labels.push("instance=~\"$instance\""),
            Scope::Nodes => {}
        }
        labels.join(", ")
    })
}

fn variables(scope: Scope) -> Vec<Value> {
    let source = json!({
        "name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus",
    });
    let queries = queries(scope).into_iter().map(|(name, query)| {
        let several = name != "job";
        let label = match name {
            "job" => "Namespace",
            "kind" => "Kind",
            _ => "Node",
        };
        json!({
            "name": name,
            "label": label,
            "type": "query",
            "datasource": source_of_panels(),
            "query": { "query": query, "refId": name },
            "definition": query,
            "refresh": 2,
            "sort": 1,
            "multi": several,
            "includeAll": several,
            "allValue": if several { json!(".*") } else { Value::Null },
        })
    });
    std::iter::once(source).chain(queries).collect()
}

fn source_of_panels() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn panels(board: &Board) -> Vec<Value> {
    let mut panels = Vec::new();
    let mut y = 0;
    for Row { title, panels: of_row } in &board.rows {
        panels.push(json!({
            "id": panels.len() + 1,
            "type": "row",
            "title": title,
            "collapsed": false,
            "gridPos": { "x": 0, "y": y, "w": COLUMNS, "h": 1 },
            "panels": [],
        }));
        y += 1;
        let (mut x, mut tallest) = (0, 0);
        for panel in of_row {
            let (width, height) = size(panel.shape);
            if x + width > COLUMNS {
                (x, y, tallest) = (0, y + tallest, 0);
            }
            let place = json!({ "x": x, "y": y, "w": width, "h": height });
            panels.push(drawn(board.scope, panel, panels.len() + 1, place));
            (x, tallest) = (x + width, tallest.max(height));
        }
        y += tallest;
    }
    panels
}

fn size(shape: Shape) -> (u32, u32) {
    match shape {
        Shape::Stat => (4, 4),
        Shape::Lines | Shape::States(_) | Shape::Heatmap => (8, 8),
    }
}

fn drawn(scope: Scope, panel: &Panel, id: usize, place: Value) -> Value {
    let lines = panel.lines.iter().enumerate();
    let targets = lines.map(|(index, line)| {
        json!({
            "refId": reference(index),
            "datasource": source_of_panels(),
            "expr": expression(scope, &line.expr),
            "legendFormat": line.legend,
            "range": true,
            "format": if panel.shape == Shape::Heatmap { "heatmap" } else { "time_series" },
        })
    });
    let mut defaults = json!({ "unit": unit(panel.unit), "thresholds": thresholds(panel.limits) });
    let (kind, options) = match panel.shape {
        Shape::Stat => {
            defaults["color"] = json!({ "mode": "thresholds" });
            let reduce = json!({ "calcs": ["lastNotNull"], "fields": "", "values": false });
            ("stat", json!({ "reduceOptions": reduce, "graphMode": "area", "colorMode": "value" }))
        }
        Shape::Lines => {
            let limits = if panel.limits == Limits::Any { "off" } else { "dashed" };
            defaults["custom"] = json!({
                "drawStyle": "line", "fillOpacity": 10, "lineWidth": 1, "showPoints": "never",
                "thresholdsStyle": { "mode": limits },
            });
            defaults["min"] = json!(0);
            let legend =
                json!({ "displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"] });
            ("timeseries", json!({ "legend": legend, "tooltip": { "mode": "multi", "sort": "desc" } }))
        }
        Shape::States(names) => {
            defaults["mappings"] = json!([{ "type": "value", "options": mappings(names) }]);
            (
                "state-timeline",
                json!({ "mergeValues": true, "showValue": "auto", "legend": { "showLegend": false } }),
            )
        }
        Shape::Heatmap => {
            let colour = json!({ "mode": "scheme", "scheme": "Oranges", "steps": 64 });
            ("heatmap", json!({ "calculate": false, "color": colour, "yAxis": { "unit": unit(panel.unit) } }))
        }
    };
    json!({
        "id": id,
        "type": kind,
        "title": panel.question,
        "description": panel.help,
        "datasource": source_of_panels(),
        "gridPos": place,
        "targets": targets.collect::<Vec<_>>(),
        "fieldConfig": { "defaults": defaults, "overrides": [] },
        "options": options,
    })
}

/// The reference id of a target: A, B, C …
fn reference(index: usize) -> String {
    char::from(b'A' + u8::try_from(index % 26).expect("less than 26")).to_string()
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "short",
        Unit::PerSecond => "cps",
        Unit::Seconds => "s",
        Unit::Ratio => "percentunit",
    }
}

fn thresholds(limits: Limits) -> Value {
    let [good, look, bad] = COLOURS;
    let step = |colour: &str, from: Option<f64>| json!({ "color": colour, "value": from });
    let steps = match limits {
        Limits::Any => vec![step(good, None)],
        Limits::Above(from, worse) if from < worse => {
            vec![step(good, None), step(look, Some(from)), step(bad, Some(worse))]
        }
        // The first threshold is critical.
        Limits::Above(from, _) => vec![step(good, None), step(bad, Some(from))],
        Limits::Below(from, worse) => {
            vec![step(bad, None), step(look, Some(worse)), step(good, Some(from))]
        }
        Limits::Is(value) => vec![step(bad, None), step(good, Some(value)), step(bad, Some(value + 0.5))],
    };
    json!({ "mode": "absolute", "steps": steps })
}

fn mappings(names: &[&str]) -> Map<String, Value> {
    // With two states the first is bad. With three states the first is neutral.
    let colours: &[&str] = if names.len() == 2 { &["red", "green"] } else { &["blue", "orange", "green"] };
    let mapping = |(value, name): (usize, &&str)| {
        (value.to_string(), json!({ "text": name, "color": colours[value % colours.len()], "index": value }))
    };
    names.iter().enumerate().map(mapping).collect()
}

/// Sorts the members of each object, so the result does not depend on the map type of `serde_json`.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(sorted).collect()),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}
