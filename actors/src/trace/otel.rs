//! Spans with the trace context of OpenTelemetry's layer.

use bellwether_core::trace::TraceContext;
use opentelemetry::trace::{SpanContext, SpanId, Status, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Puts a span that was not entered yet into a trace, if the process's subscriber has OpenTelemetry's layer and the
/// layer records the span.
pub fn follow(span: &Span, trace: Option<&TraceContext>) {
    let Some(trace) = trace else { return };
    let parent = SpanContext::new(
        TraceId::from_bytes(trace.trace()),
        SpanId::from_bytes(trace.span()),
        TraceFlags::new(trace.flags()),
        true,
        TraceState::NONE,
    );
    if let Err(error) = span.set_parent(opentelemetry::Context::new().with_remote_span_context(parent)) {
        tracing::trace!(%error, "the process cannot link a span to its trace");
    }
}

/// Returns the trace context for the span's children; `None` if the span has no id.
#[must_use]
pub fn context(span: &Span) -> Option<TraceContext> {
    let context = span.context();
    let span = context.span();
    let span = span.span_context();
    TraceContext::new(span.trace_id().to_bytes(), span.span_id().to_bytes(), span.trace_flags().to_u8()).ok()
}

pub(super) fn failed(span: &Span, why: &str) {
    span.set_status(Status::error(why.to_owned()));
}
