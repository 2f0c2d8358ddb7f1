//! Colours by purpose, in a light, a dark and a grey theme.
//!
//! Invariant: text has a contrast of at least 4.5 to the page, and what is drawn in lines at least 3, in all themes.

use std::fmt;

/// A colour of the screen, 8 bits a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Color {
    /// Red.
    pub red: u8,
    /// Green.
    pub green: u8,
    /// Blue.
    pub blue: u8,
}

impl Color {
    /// No light at all.
    pub const BLACK: Self = Self::of(0);
    /// All of it.
    pub const WHITE: Self = Self::of(0xff_ffff);

    /// A colour as it is written in style sheets: `0xrrggbb`.
    const fn of(hex: u32) -> Self {
        Self { red: (hex >> 16) as u8, green: (hex >> 8) as u8, blue: hex as u8 }
    }
}

/// Which page the picture lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Dark on white.
    Light,
    /// Light on near black.
    Dark,
    /// Black and greys on white, for print without colour.
    Grey,
}

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ink {
    /// The page itself.
    Page,
    /// What is read first.
    Text,
    /// What is read second: labels of axes, notes.
    Soft,
    /// The lines of axes.
    Axis,
    /// Lines that lead the eye from an axis into the plot.
    Grid,
    /// A series of data, from 0; the colours repeat after [`Ink::SERIES`].
    Series(usize),
    /// A step of a heat map, from 0, the least, to [`Ink::HEAT_STEPS`] − 1; higher ones are as the last.
    Heat(usize),
    /// Something that may be relied on.
    Ok,
    /// Something that needs a second look.
    Caution,
    /// Something that must not be relied on.
    Invalid,
    /// One colour for light and for dark pages.
    Fixed(Color),
}

/// Every colour that differs between the themes, with its name in classes of style sheets, on light, dark and grey pages. Series are told apart
/// by the colour-blind, too: the least ΔE2000 of a pair in normal, protan, deutan and tritan sight is 13. Heat leads from what is nearly the
/// page to what stands out most.
const INKS: [(Ink, &str, [u32; 3]); 8 + Ink::SERIES + Ink::HEAT_STEPS] = [
    (Ink::Page, "page", [0xff_ffff, 0x13_171c, 0xff_ffff]),
    (Ink::Text, "text", [0x1a_1f24, 0xe8_ecf0, 0x00_0000]),
    (Ink::Soft, "soft", [0x57_606a, 0x9a_a5b1, 0x26_2626]),
    (Ink::Axis, "axis", [0x8c_959f, 0x6b_7683, 0x33_3333]),
    (Ink::Grid, "grid", [0xd0_d7de, 0x2b_333b, 0xdd_dddd]),
    (Ink::Ok, "ok", [0x08_707a, 0x5f_e0ea, 0x59_5959]),
    (Ink::Caution, "caution", [0x9a_5200, 0xf7_d23e, 0x40_4040]),
    (Ink::Invalid, "invalid", [0x7d_0f2e, 0xee_6a86, 0x00_0000]),
    (Ink::Series(0), "series-0", [0x0f_5fb0, 0x86_b6f2, 0x00_0000]),
    (Ink::Series(1), "series-1", [0xa0_3000, 0xd2_664e, 0x59_5959]),
    (Ink::Series(2), "series-2", [0x4a_9a86, 0xa6_f5d8, 0x8c_8c8c]),
    (Ink::Series(3), "series-3", [0x3a_0d6e, 0xa4_5cf0, 0x33_3333]),
    (Ink::Series(4), "series-4", [0xa5_842a, 0xf5_c62c, 0x00_0000]),
    (Ink::Heat(0), "heat-0", [0xdf_e9f3, 0x1f_2f40, 0xee_eeee]),
    (Ink::Heat(1), "heat-1", [0xbc_d4ea, 0x24_4767, 0xd2_d2d2]),
    (Ink::Heat(2), "heat-2", [0x8f_b9de, 0x2d_6593, 0xb2_b2b2]),
    (Ink::Heat(3), "heat-3", [0x5f_99cb, 0x44_89bd, 0x92_9292]),
    (Ink::Heat(4), "heat-4", [0x38_78b3, 0x6f_adda, 0x72_7272]),
    (Ink::Heat(5), "heat-5", [0x1b_5690, 0xa8_d0f0, 0x4c_4c4c]),
    (Ink::Heat(6), "heat-6", [0x0a_3563, 0xe8_f5ff, 0x1c_1c1c]),
];

impl Ink {
    /// How many series can be told apart by colour.
    pub const SERIES: usize = 5;
    /// How many steps a heat map has.
    pub const HEAT_STEPS: usize = 7;

    /// Every colour that differs between the themes.
    pub fn all() -> impl Iterator<Item = Self> {
        INKS.iter().map(|(ink, ..)| *ink)
    }

    /// The colour on a page.
    pub fn color(self, theme: Theme) -> Color {
        match self {
            Self::Fixed(color) => color,
            _ => Color::of(self.entry().2[theme as usize]),
        }
    }

    fn entry(self) -> &'static (Self, &'static str, [u32; 3]) {
        let ink = match self {
            Self::Series(index) => Self::Series(index % Self::SERIES),
            Self::Heat(step) => Self::Heat(step.min(Self::HEAT_STEPS - 1)),
            other => other,
        };
        INKS.iter().find(|(held, ..)| *held == ink).expect("all colours but fixed ones have a row")
    }
}

/// The name in classes of style sheets: `page`, `series-0`, `heat-6`; of a fixed colour `0a0b0c`.
impl fmt::Display for Ink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(Color { red, green, blue }) => write!(out, "{red:02x}{green:02x}{blue:02x}"),
            _ => out.write_str(self.entry().1),
        }
    }
}

/// As style sheets have it: `#0a0b0c`.
impl fmt::Display for Color {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contrast as the Web Content Accessibility Guidelines 2.2 define it, from relative luminance.
    fn contrast(one: Color, other: Color) -> f64 {
        let luminance = |color: Color| {
            let channel = |value: u8| {
                let value = f64::from(value) / 255.0;
                if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * channel(color.red) + 0.7152 * channel(color.green) + 0.0722 * channel(color.blue)
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn every_ink_can_be_seen_on_either_page() {
        let mut inks = vec![
            (Ink::Text, 4.5),
            (Ink::Soft, 4.5),
            (Ink::Axis, 3.0),
            (Ink::Ok, 4.5),
            (Ink::Caution, 4.5),
            (Ink::Invalid, 4.5),
        ];
        inks.extend((0..Ink::SERIES).map(|index| (Ink::Series(index), 3.0)));
        for theme in [Theme::Light, Theme::Dark, Theme::Grey] {
            for (ink, at_least) in &inks {
                let contrast = contrast(ink.color(theme), Ink::Page.color(theme));
                assert!(contrast >= *at_least, "{ink:?} {theme:?}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn each_step_of_heat_stands_out_more_than_the_one_before() {
        for theme in [Theme::Light, Theme::Dark, Theme::Grey] {
            let contrasts: Vec<f64> = (0..Ink::HEAT_STEPS)
                .map(|step| contrast(Ink::Heat(step).color(theme), Ink::Page.color(theme)))
                .collect();
            assert!(contrasts.windows(2).all(|pair| pair[1] > pair[0] * 1.2), "{theme:?}: {contrasts:.2?}");
        }
    }
}
