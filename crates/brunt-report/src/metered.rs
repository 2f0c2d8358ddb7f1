//! Metered quantities: their units, and the one that every report shows.
//!
//! Not the numbers themselves (those are a meter's summary) and not latencies.

use brunt_plan::plan::MeterKind;
use brunt_plan::quantile::Quantile;
use brunt_stats::meter::MeterSummary;
use brunt_stats::summary::Summary;

/// What a metered number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Requests in flight.
    Requests,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    /// The unit of a kind.
    pub(crate) const fn of(kind: MeterKind) -> Self {
        match kind {
            MeterKind::Outstanding => Self::Requests,
            MeterKind::RequestSize | MeterKind::ResponseSize | MeterKind::ValueReceived => Self::Bytes,
            MeterKind::ConnectTime
            | MeterKind::ConnectionTime
            | MeterKind::FirstByte
            | MeterKind::HitTime
            | MeterKind::MissTime
            | MeterKind::HandshakeTime
            | MeterKind::Oversleep
            | MeterKind::SendCost
            | MeterKind::StackOut
            | MeterKind::WireAndServer
            | MeterKind::StackIn
            | MeterKind::WithoutClient => Self::Nanoseconds,
        }
    }

    /// The word in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Bytes => "bytes",
            Self::Nanoseconds => "ns",
        }
    }
}

/// A percentile of a meter; `None` where fewer than ten values lie above it.
pub(crate) fn percentile(summary: &MeterSummary, quantile: Quantile) -> Option<u64> {
    summary.percentiles.iter().find(|(held, _)| *held == quantile).and_then(|(_, value)| *value)
}

/// A percentile of what one send cost, in nanoseconds: metered in every run, asked for or not.
pub(crate) fn send_cost_ns(summary: &Summary, quantile: Quantile) -> Option<u64> {
    let meter = summary.meters.iter().find(|meter| meter.kind == MeterKind::SendCost)?;
    percentile(&meter.summary(), quantile)
}
