//! JPEG: a payload taken for the grey values of a picture, compressed with loss (ITU-T T.81, baseline).

use jpeg_encoder::{Encoder, ImageBuffer, JpegColorType};

use super::{Kernel, Packet};

/// Pixels of a row: two blocks of 8 x 8.
const WIDTH: usize = 16;
/// Quality of the Independent JPEG Group's scale: its own default.
const QUALITY: u8 = 75;
/// Most pixels of a picture: as many as the longest packet of a capture has.
const MOST_PIXELS: usize = 1 << 18;

/// Rows of grey values. `Encoder::encode` takes bytes as well, but brings the whole encoder once for each of its nine
/// kinds of picture: a fifth of what this crate takes to compile.
struct Grey<'a>(&'a [u8]);

impl ImageBuffer for Grey<'_> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        JpegColorType::Luma
    }

    fn width(&self) -> u16 {
        WIDTH as u16
    }

    fn height(&self) -> u16 {
        (self.0.len() / WIDTH) as u16
    }

    fn fill_buffers(&self, row: u16, buffers: &mut [Vec<u8>; 4]) {
        let start = usize::from(row) * WIDTH;
        for &value in &self.0[start..start + WIDTH] {
            buffers[0].push(value);
        }
    }
}

/// Compresses pictures.
pub struct Jpeg {
    pixels: Vec<u8>,
}

impl Jpeg {
    /// A place for a picture.
    pub fn new() -> Self {
        Self { pixels: Vec::with_capacity(MOST_PIXELS) }
    }
}

impl Kernel for Jpeg {
    /// Says how many bytes the picture takes; 0: it does not fit.
    fn process(&mut self, packet: &mut Packet<'_>) -> u64 {
        self.pixels.clear();
        self.pixels.extend_from_slice(&packet.frame[packet.payload..packet.end]);
        // The last row is filled up with its last value.
        let rows = self.pixels.len().div_ceil(WIDTH).max(1);
        let last = self.pixels.last().copied().unwrap_or(0);
        self.pixels.resize(rows * WIDTH, last);
        let room = packet.out.len();
        let mut out = &mut *packet.out;
        let encoder = Encoder::new(&mut out, QUALITY);
        match encoder.encode_image(Grey(&self.pixels)) {
            Ok(()) => (room - out.len()) as u64,
            Err(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::packets::tests::of_size;
    use crate::workload::request::Content;

    #[test]
    fn pictures_come_back_nearly_as_they_were() {
        let mut jpeg = Jpeg::new();
        for size in [64, 594, 1518] {
            for content in [Content::Words, Content::Random] {
                let mut packets = of_size(size, 2, content);
                let mut packet = packets.packet(0);
                let bytes = jpeg.process(&mut packet) as usize;
                assert!(bytes > 0);
                let mut decoder = jpeg_decoder::Decoder::new(&packet.out[..bytes]);
                let back = decoder.decode().unwrap();
                let payload = packet.payload();
                assert_eq!(back.len(), payload.len().div_ceil(WIDTH) * WIDTH);
                let square: f64 = payload
                    .iter()
                    .zip(&back)
                    .map(|(&before, &after)| (f64::from(before) - f64::from(after)).powi(2))
                    .sum::<f64>()
                    / payload.len() as f64;
                // Coefficients are rounded to steps of at most 61 at this quality (T.81, table K.1), evenly: their
                // error has a variance of at most 61^2 / 12, and the transform keeps the sum of squares.
                assert!(square < 61.0 * 61.0 / 12.0, "{square}");
            }
        }
    }
}
