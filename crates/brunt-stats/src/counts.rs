//! Structs of counts: how they are declared, added up and looked through.
//!
//! Invariant: merging adds count by count, so that the order of merging leaves no trace.

/// A count, or several under one name.
pub(crate) trait Counts {
    /// Adds each count of `other` to the same count here.
    fn add(&mut self, other: &Self);

    /// Every count.
    fn values(&self) -> impl Iterator<Item = u64>;
}

impl Counts for u64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn values(&self) -> impl Iterator<Item = u64> {
        std::iter::once(*self)
    }
}

impl<T: Counts, const N: usize> Counts for [T; N] {
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(ours, theirs)| ours.add(theirs));
    }

    fn values(&self) -> impl Iterator<Item = u64> {
        self.iter().flat_map(T::values)
    }
}

/// Declares a struct of counts: in files a count that is missing is 0.
macro_rules! counts {
    ($(#[$attribute:meta])* pub struct $name:ident { $($(#[$of_field:meta])* pub $field:ident: $type:ty),+ $(,)? }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name { $($(#[$of_field])* pub $field: $type),+ }

        impl $name {
            /// Adds other counts.
            pub fn merge(&mut self, other: &Self) {
                $crate::counts::Counts::add(self, other);
            }
        }

        impl $crate::counts::Counts for $name {
            fn add(&mut self, other: &Self) {
                $($crate::counts::Counts::add(&mut self.$field, &other.$field);)+
            }

            fn values(&self) -> impl Iterator<Item = u64> {
                std::iter::empty()$(.chain($crate::counts::Counts::values(&self.$field)))+
            }
        }
    };
}
pub(crate) use counts;
