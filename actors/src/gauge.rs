//! Gauges to which several nodes of one process contribute: a gateway runs a node for each remote worker.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The parts of all gauges of this process, by the name of the gauge and the number of the part.
static PARTS: Mutex<BTreeMap<&'static str, BTreeMap<u64, f64>>> = Mutex::new(BTreeMap::new());

/// How the parts of a gauge make its value.
#[derive(Debug, Clone, Copy)]
enum Value {
    Sum,
    Minimum,
}

impl Value {
    fn of(self, parts: &BTreeMap<u64, f64>) -> f64 {
        match self {
            Self::Sum => parts.values().sum(),
            Self::Minimum => parts.values().copied().reduce(f64::min).unwrap_or_default(),
        }
    }
}

/// The part that one node has in a gauge. It ends when it is dropped; a gauge without parts is 0.
#[derive(Debug)]
pub struct GaugePart {
    name: &'static str,
    number: u64,
    value: Value,
}

impl GaugePart {
    /// A part of a gauge that shows the sum of its parts. It starts with 0.
    #[must_use]
    pub fn of_sum(name: &'static str) -> Self {
        Self::new(name, Value::Sum)
    }

    /// A part of a gauge that shows the smallest of its parts. It starts with 0.
    #[must_use]
    pub fn of_minimum(name: &'static str) -> Self {
        Self::new(name, Value::Minimum)
    }

    fn new(name: &'static str, value: Value) -> Self {
        let mut number = 0;
        change(name, value, |parts| {
            number = parts.last_key_value().map_or(0, |(last, _)| last + 1);
            parts.insert(number, 0.0);
        });
        Self { name, number, value }
    }

    /// Sets the part.
    pub fn set(&self, to: f64) {
        change(self.name, self.value, |parts| _ = parts.insert(self.number, to));
    }
}

impl Drop for GaugePart {
    fn drop(&mut self) {
        change(self.name, self.value, |parts| _ = parts.remove(&self.number));
    }
}

/// Changes the parts of a gauge and sets the gauge. The lock is held until the gauge is set, so the last change wins.
fn change(name: &'static str, value: Value, change: impl FnOnce(&mut BTreeMap<u64, f64>)) {
    let mut all = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
    let parts = all.entry(name).or_default();
    change(parts);
    metrics::gauge!(name).set(value.of(parts));
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    /// Returns the value of the gauge after each change.
    fn shown<const N: usize>(name: &str, changes: [Box<dyn FnOnce() + '_>; N]) -> [f64; N] {
        let recorder = PrometheusBuilder::new().build_recorder();
        changes.map(|change| {
            metrics::with_local_recorder(&recorder, change);
            let text = recorder.handle().render();
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value.unwrap().parse().unwrap()
        })
    }

    #[test]
    fn a_sum_contains_the_parts_that_exist() {
        const NAME: &str = "sum";
        let (one, two) = (GaugePart::of_sum(NAME), GaugePart::of_sum(NAME));
        let shown =
            shown(NAME, [Box::new(|| one.set(3.0)), Box::new(|| two.set(4.0)), Box::new(|| two.set(5.0))]);
        assert_eq!(shown, [3.0, 7.0, 8.0]);
        let shown = self::shown(NAME, [Box::new(|| drop(one)), Box::new(|| drop(two))]);
        assert_eq!(shown, [5.0, 0.0], "the end of a part does not reset the others");
    }

    #[test]
    fn a_minimum_is_that_of_the_parts_that_exist() {
        const NAME: &str = "minimum";
        let (one, two) = (GaugePart::of_minimum(NAME), GaugePart::of_minimum(NAME));
        let shown = shown(NAME, [Box::new(|| one.set(3.0)), Box::new(|| two.set(4.0))]);
        assert_eq!(shown, [0.0, 3.0]);
        let shown = self::shown(NAME, [Box::new(|| drop(one)), Box::new(|| drop(two))]);
        assert_eq!(shown, [4.0, 0.0]);
    }
}
