//! The pace of a source: gaps between its frames, and the cells at whose borders Poisson arrivals are drawn anew.
//!
//! ```text
//!   rate      ├───────── era 0 ─────────┤├──────── era 1 ────────┤
//!   cells     ├──────┤├──────┤├──────┤├─┤├──────┤├──────┤├──────┤
//!                                        ▲ the last cell of an era ends with it
//! ```

use crate::router::SourceProgram;

/// Where a rate changes, a gap keeps so many bits at least.
const LEAST_GAP: u32 = 1 << 20;

/// When the frames of a source come.
#[derive(Debug, Clone)]
pub(crate) enum Pace {
    /// Mean gaps in ticks, `bits` fraction bits.
    Poisson { eras: Vec<Era>, bits: u32 },
    /// Ticks of a gap and of the first frame, 32 fraction bits.
    Even { gap: u64, first: u64 },
}

/// A time with one rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Era {
    /// Its first instant, ticks.
    pub from: u64,
    /// Its first cell.
    pub cell: u64,
    /// Its mean gap.
    pub gap: u32,
}

impl Pace {
    /// Poisson arrivals of mean gaps in ticks, each from an instant on; the first from 0.
    ///
    /// A gap that is floored to ticks is geometric, of mean 1 / (exp(1 / m) - 1): m makes that the mean gap.
    pub(crate) fn poisson(gaps: &[(u64, f64)]) -> Option<Self> {
        let most = f64::from(1_u32 << 24);
        let parameters: Vec<f64> = gaps.iter().map(|gap| 1.0 / (1.0 / gap.1).ln_1p()).collect();
        if !parameters.iter().all(|parameter| (0.5..most).contains(parameter)) {
            return None;
        }
        let bits = 29 - parameters.iter().copied().fold(0.5, f64::max).log2().floor() as i32;
        let gap = |parameter: f64| (parameter * f64::from(bits).exp2()).round() as u32;
        let era = |(&(from, _), parameter)| Era { from, cell: 0, gap: gap(parameter) };
        let eras: Vec<Era> = gaps.iter().zip(parameters).map(era).collect();
        eras.iter().all(|era| era.gap >= LEAST_GAP).then_some(Self::Poisson { eras, bits: bits as u32 })
    }

    /// Ticks of the least and of the greatest mean gap.
    pub(crate) fn gap_ticks(&self) -> (u32, u32) {
        match self {
            Self::Poisson { eras, bits } => {
                let gaps = || eras.iter().map(|era| era.gap >> bits);
                (gaps().min().unwrap_or(0), gaps().max().unwrap_or(0))
            }
            Self::Even { gap, .. } => ((gap >> 32) as u32, (gap >> 32) as u32),
        }
    }

    /// Numbers the cells of 2^`cell_bits` ticks; the last one of an era is shorter.
    pub(crate) fn number_cells(&mut self, cell_bits: u32) {
        let Self::Poisson { eras, .. } = self else { return };
        let mut last = (0, 0);
        for era in eras.iter_mut() {
            era.cell = last.1 + (era.from - last.0).div_ceil(1 << cell_bits);
            last = (era.from, era.cell);
        }
    }
}

impl SourceProgram {
    fn eras(&self) -> &[Era] {
        match &self.pace {
            Pace::Poisson { eras, .. } => eras,
            Pace::Even { .. } => &[],
        }
    }

    /// The mean gap in a cell of Poisson arrivals.
    pub(crate) fn gap_in(&self, cell: u32) -> u32 {
        match self.eras() {
            [] => 0,
            [only] => only.gap,
            eras => eras[eras.partition_point(|era| era.cell <= u64::from(cell)) - 1].gap,
        }
    }

    /// The cell of Poisson arrivals that an instant lies in, and its beginning, ticks.
    pub(crate) fn cell_at(&self, at: u64, cell_bits: u32) -> (u64, u64) {
        let eras = self.eras();
        let era = eras[eras.partition_point(|era| era.from <= at) - 1];
        let cells = (at - era.from) >> cell_bits;
        (era.cell + cells, era.from + (cells << cell_bits))
    }

    /// The end of a cell of Poisson arrivals, ticks.
    pub(crate) fn cell_end(&self, cell: u32, cell_bits: u32) -> u64 {
        let (eras, cell) = (self.eras(), u64::from(cell));
        let next = eras.partition_point(|era| era.cell <= cell);
        let era = eras[next - 1];
        let end = era.from + ((cell + 1 - era.cell) << cell_bits);
        eras.get(next).map_or(end, |next| end.min(next.from))
    }
}
