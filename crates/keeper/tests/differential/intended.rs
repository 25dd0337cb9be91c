//! The differences that the keeper means to have.

use crate::run::Record;
use crate::script::Step;

/// Whether all differences of a step are intended ones.
pub(crate) fn explains(_step: &Step, _expected: &Record, _answered: &Record) -> bool {
    false
}
