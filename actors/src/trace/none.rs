//! Spans without OpenTelemetry: they have names and fields, and no ids.

use bellwether_core::trace::TraceContext;
use tracing::Span;

/// Puts a span that was not entered yet into a trace. Does nothing in a build without the feature `otel`.
pub fn follow(_: &Span, _: Option<&TraceContext>) {}

/// Returns the trace context for the span's children: always `None` in a build without the feature `otel`.
#[must_use]
pub fn context(_: &Span) -> Option<TraceContext> {
    None
}

pub(super) fn failed(_: &Span, _: &str) {}
