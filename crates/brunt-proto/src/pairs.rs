//! Which replies an operation can have: the mechanism, one table for each protocol.
//!
//! Invariant: a pair that is not in the table of its protocol is no reply to that operation, so that requests and
//! replies are out of step.

use crate::Form;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::ReplyKind;

/// These operations can have a reply of this form, and it means this to them. What an error means is what it says.
pub(crate) type Row = (&'static [OpKind], Form, ReplyKind);

/// The table of a protocol with `FORMS` forms, looked up by operation and form.
#[derive(Debug)]
pub(crate) struct Pairs<const FORMS: usize> {
    cells: [[Option<ReplyKind>; FORMS]; OpKind::COUNT],
}

impl<const FORMS: usize> Pairs<FORMS> {
    /// The table that these rows make.
    ///
    /// # Panics
    /// If two rows speak of the same pair, or a form has no place.
    pub(crate) const fn of(rows: &[Row]) -> Self {
        let mut cells = [[None; FORMS]; OpKind::COUNT];
        let mut at = 0;
        while at < rows.len() {
            let (kinds, Form(form), meaning) = rows[at];
            let mut index = 0;
            while index < kinds.len() {
                let cell = &mut cells[kinds[index] as usize][form as usize];
                assert!(cell.is_none(), "a pair has one meaning");
                *cell = Some(meaning);
                index += 1;
            }
            at += 1;
        }
        Self { cells }
    }

    /// What a reply means to an operation; `None` if it is none to this one.
    #[inline]
    pub(crate) fn meaning(&self, kind: OpKind, reply: ReplyKind, Form(form): Form) -> Option<ReplyKind> {
        let meaning = self.cells[kind as usize][usize::from(form)]?;
        Some(if reply.is_error() { reply } else { meaning })
    }
}

#[cfg(test)]
mod tests;
