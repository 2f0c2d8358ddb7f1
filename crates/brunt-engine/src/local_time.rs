//! How far local time is ahead of UTC, by the C library, which knows the zone of this host or of the variable `TZ`.

/// Seconds that local time is ahead of UTC at this instant, in seconds since 1970; 0 where the C library does not know.
#[expect(unsafe_code, reason = "no safe wrapper of localtime_r exists in what we depend on")]
pub fn utc_offset_s(unix_s: i64) -> i64 {
    let mut local = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: localtime_r reads one time_t and writes one tm, both valid for that; it fails where a year does not fit, and an
    // all-zero tm, which is then left as it is, is a valid value: integers and a pointer that may be null and is not followed.
    let local = unsafe {
        libc::localtime_r(&unix_s, local.as_mut_ptr());
        local.assume_init()
    };
    local.tm_gmtoff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets are whole quarters of an hour in our century, from -12 h to +14 h.
    #[test]
    fn offsets_are_those_of_zones() {
        for unix_s in [1_700_000_000, 1_750_000_000] {
            let offset_s = utc_offset_s(unix_s);
            assert!((-12 * 3_600..=14 * 3_600).contains(&offset_s) && offset_s % 900 == 0, "{offset_s}");
        }
    }
}
