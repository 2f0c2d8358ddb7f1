//! Frames: a length of four bytes, lowest first, and as many bytes.
//!
//! Invariant: memory is bounded: a frame that announces more than the limit is rejected
//! before its first byte is kept.

/// The longest frame: what an agent has to say in the end, a million raw samples among it.
pub const FRAME_BYTES_MAX: usize = 128 << 20;

/// Puts one frame behind others.
///
/// # Errors
/// It is too long; for a user.
pub fn push(frames: &mut Vec<u8>, payload: &[u8]) -> Result<(), String> {
    let len = u32::try_from(payload.len()).ok().filter(|len| *len as usize <= FRAME_BYTES_MAX);
    let len = len.ok_or_else(|| {
        format!("cannot be sent a message of {} bytes; at most {FRAME_BYTES_MAX}", payload.len())
    })?;
    frames.extend_from_slice(&len.to_le_bytes());
    frames.extend_from_slice(payload);
    Ok(())
}

/// Takes frames out of bytes as they come.
#[derive(Debug)]
pub struct FrameReader {
    bytes: Vec<u8>,
    taken: usize,
    /// The longest frame that is taken.
    pub bytes_max: usize,
}

impl FrameReader {
    /// For frames of at most `bytes_max` bytes.
    pub const fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), taken: 0, bytes_max }
    }

    /// Takes what has come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Is there a whole frame, or one that is too long?
    pub fn has_frame(&self) -> bool {
        let Some((head, rest)) = self.bytes[self.taken..].split_first_chunk() else { return false };
        let len = u32::from_le_bytes(*head) as usize;
        len > self.bytes_max || len <= rest.len()
    }

    /// The next whole frame.
    ///
    /// # Errors
    /// It announces more bytes than it may have.
    pub fn take(&mut self) -> Result<Option<&[u8]>, String> {
        let Some((head, rest)) = self.bytes[self.taken..].split_first_chunk() else { return Ok(None) };
        let len = u32::from_le_bytes(*head) as usize;
        if len > self.bytes_max {
            return Err(format!("sent a message of {len} bytes; at most {}", self.bytes_max));
        }
        let Some(frame) = rest.get(..len) else { return Ok(None) };
        self.taken += head.len() + len;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(reader: &mut FrameReader, into: &mut Vec<Vec<u8>>) {
        while let Some(frame) = reader.take().unwrap() {
            into.push(frame.to_vec());
        }
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in(
            frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6), piece in 1..30_usize,
        ) {
            let mut bytes = Vec::new();
            frames.iter().for_each(|frame| push(&mut bytes, frame).unwrap());
            let mut reader = FrameReader::new(40);
            let mut taken = Vec::new();
            for piece in bytes.chunks(piece) {
                reader.push(piece);
                all(&mut reader, &mut taken);
            }
            prop_assert_eq!(taken, frames);
        }
    }

    #[test]
    fn oversized_frames_are_rejected_by_their_length() {
        let mut reader = FrameReader::new(3);
        reader.push(&[3, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0]);
        assert_eq!(reader.take(), Ok(Some(&[1, 2, 3][..])));
        assert_eq!(reader.take(), Err("sent a message of 4 bytes; at most 3".to_owned()));
    }
}
