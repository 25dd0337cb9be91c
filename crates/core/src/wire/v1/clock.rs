//! The report of a process about its wall clock.

use serde::{Deserialize, Serialize};

use crate::clock_report::{ClockReport, MAX_HOST_BYTES, Process};
use crate::name::NodeId;
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub struct ClockReportV1 {
    node: Option<String>,
    host: String,
    ahead_s: i64,
}

impl From<&ClockReport> for ClockReportV1 {
    fn from(report: &ClockReport) -> Self {
        let Process { node, host } = &report.process;
        Self { node: node.as_ref().map(ToString::to_string), host: host.clone(), ahead_s: report.ahead }
    }
}

impl TryFrom<ClockReportV1> for ClockReport {
    type Error = WireError;
    fn try_from(stored: ClockReportV1) -> Result<Self, WireError> {
        let ClockReportV1 { node, host, ahead_s: ahead } = stored;
        if host.len() > MAX_HOST_BYTES {
            let given = host.len();
            return Err(WireError::Value(format!(
                "a host name of {given} bytes: at most {MAX_HOST_BYTES} are allowed"
            )));
        }
        Ok(Self { process: Process { node: node.map(NodeId::new).transpose()?, host }, ahead })
    }
}
