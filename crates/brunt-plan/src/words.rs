//! Enums whose variants have names: the words of the command line, of reports and of JSON.
//!
//! Invariant: each name is written once, beside its variant.

/// Declares an enum from its variants and their names; behind a name and a colon may be words for people. With `serialized` in front the
/// names are those in files and schemas, too; the crate that uses it depends on `serde` and `schemars`.
#[macro_export]
macro_rules! named {
    (serialized $(#[$attribute:meta])* pub enum $type:ident {
        $($(#[$of_variant:meta])* $variant:ident = $name:literal $(: $words:literal)?),+ $(,)?
    }) => {
        $crate::named! {
            $(#[$attribute])*
            #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
            pub enum $type { $($(#[$of_variant])* #[serde(rename = $name)] $variant = $name $(: $words)?),+ }
        }
    };
    ($(#[$attribute:meta])* pub enum $type:ident {
        $($(#[$of_variant:meta])* $variant:ident = $name:literal: $words:literal),+ $(,)?
    }) => {
        $crate::named! { $(#[$attribute])* pub enum $type { $($(#[$of_variant])* $variant = $name),+ } }

        impl $type {
            /// In words, for people.
            pub const fn describe(self) -> &'static str {
                match self { $(Self::$variant => $words),+ }
            }
        }
    };
    ($(#[$attribute:meta])* pub enum $type:ident { $($(#[$of_variant:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[$of_variant])* $variant),+ }

        impl $type {
            /// How many there are; the number of each (`as usize`) is below this.
            pub const COUNT: usize = [$($name),+].len();

            /// Every variant, in the order of its number.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$variant),+];

            /// The name of each.
            pub const NAMES: [&'static str; Self::COUNT] = [$($name),+];

            /// The name in reports, in JSON and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The one of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|held| held.name() == name)
            }
        }
    };
}

/// As `named!`; the names are read and printed wherever a plan is.
macro_rules! words {
    ($(#[$attribute:meta])* pub enum $type:ident { $($variants:tt)+ }) => {
        $crate::named! { $(#[$attribute])* pub enum $type { $($variants)+ } }

        impl $type {
            fn of_text(text: &str) -> Result<Self, String> {
                Self::from_name(text.trim()).ok_or_else(|| {
                    let names = Self::NAMES;
                    match names.split_last() {
                        Some((last, first)) if !first.is_empty() => {
                            format!("expected {} or {last}", first.join(", "))
                        }
                        _ => format!("expected {}", names.concat()),
                    }
                })
            }

            fn write_text(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.name())
            }
        }
        $crate::units::text_form!($type);
    };
}
pub(crate) use words;
