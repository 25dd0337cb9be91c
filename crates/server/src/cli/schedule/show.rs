//! `schedule show`.

use bellwether::DurationText;
use bellwether::client::{ScheduleRecordView, ScheduleView};
use bellwether::schedule::{Skipped, instant};

use super::super::Global;
use super::super::exit::Failure;
use super::super::output::{Format, Output};
use super::{Names, documents, each, state};
use bellwether_documents::sentence;

pub(super) async fn run(global: &Global, output: Output, names: &Names) -> Result<(), Failure> {
    let ids = &names.schedules;
    let (views, wrong) = each(global, ids, async |client, id| client.schedules().get(id).await).await?;
    match output.format {
        Format::Json => documents(output, ids.len() == 1, &views)?,
        Format::Table => {
            for (at, view) in views.iter().enumerate() {
                if at > 0 {
                    output.text("")?;
                }
                output.fields(fields(view))?;
            }
        }
    }
    Failure::all(wrong)
}

/// The fields of a schedule that have a value.
fn fields(view: &ScheduleView) -> Vec<[String; 2]> {
    let mut fields = vec![("id", view.id.to_string()), ("state", state(view).to_owned())];
    match &view.record {
        Ok(record) => fields.extend(record_fields(view, record)),
        Err(error) => fields.push(("error", error.to_string())),
    }
    fields.into_iter().map(|(name, value)| [name.to_owned(), value]).collect()
}

fn record_fields(
    view: &ScheduleView,
    record: &ScheduleRecordView,
) -> impl Iterator<Item = (&'static str, String)> {
    let limits = record.catch_up_limit.zip(record.catch_up_within);
    let catch_up =
        limits.map(|(limit, within)| format!("at most {limit} ticks within {}", DurationText(within)));
    [
        ("when", Some(record.when.to_string())),
        ("next", record.next.map(instant)),
        ("kind", Some(record.kind.to_string())),
        ("job id", record.job_id.as_ref().map(ToString::to_string)),
        ("expires after", record.expires_after.map(|after| DurationText(after).to_string())),
        ("misfire", Some(record.misfire.as_str().to_owned())),
        ("catch up", catch_up),
        ("grace", Some(DurationText(record.grace).to_string())),
        ("overlap", Some(record.overlap.as_str().to_owned())),
        ("ticked", Some(record.ticked.to_string())),
        ("last tick", record.last_tick.map(instant)),
        ("last job", view.last_job().map(|job| job.to_string())),
        ("skipped", Some(record.skipped.to_string())),
        ("last skipped", record.last_skipped.map(last_skipped)),
        ("cursor", Some(instant(record.cursor))),
        ("spec version", Some(record.spec_version.to_string())),
        ("created", Some(instant(record.created_at))),
        ("changed", record.changed.as_ref().map(sentence)),
        ("payload", Some(String::from_utf8_lossy(record.payload.bytes()).into_owned())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
}

fn last_skipped(Skipped { reason, from, through, count, .. }: Skipped) -> String {
    format!("{count} from {} to {}: {}", instant(from), instant(through), reason.as_str())
}
