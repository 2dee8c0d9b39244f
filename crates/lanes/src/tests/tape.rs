//! The tape of a step, gone through by the book, beside the step itself.

use crate::device::Written;
use crate::program::Program;
use crate::state::Lanes;
use crate::tally::BINS;
use crate::tape::{Statement, Traced, Value};
use crate::words::Word as _;

/// A lane whose steps are those of a tape.
pub(super) struct ByTape<'a> {
    written: &'a Written,
    values: Vec<u32>,
    words: Vec<u32>,
    lists: Vec<Vec<u32>>,
    histograms: Vec<Vec<u32>>,
}

impl<'a> ByTape<'a> {
    pub(super) fn new(written: &'a Written, lane: &mut Lanes<u32>) -> Self {
        let words = lane.words().into_iter().map(|word| *word).collect();
        let lists = lane.lists().map(|list| list.clone()).to_vec();
        let histograms = vec![lane.counts.latencies.clone(), lane.counts.waits.clone()];
        Self { written, values: vec![0; written.tape.values.len()], words, lists, histograms }
    }

    fn get(&self, word: Traced) -> u32 {
        self.values[word.0 as usize]
    }

    fn go_through(&mut self, statements: &[Statement], each: u32) {
        for statement in statements {
            match statement {
                Statement::Let(word) => {
                    let value = match self.written.tape.values[word.0 as usize] {
                        Value::Known(known) => known,
                        Value::State(number) => self.words[number as usize],
                        Value::Two(what, a, b) => what.of(self.get(a), self.get(b)),
                        Value::LeadingZeros(a) => self.get(a).leading_zeros(),
                        Value::Choose(mask, set, clear) => self.get(mask).choose(self.get(set), self.get(clear)),
                        Value::Entry { table, place } => {
                            let (first, length) = self.written.tape.table_at[table as usize];
                            let table = &self.written.tape.tables[first as usize..][..length as usize];
                            self.get(place).look_up(table)
                        }
                        Value::Read { list, place, .. } => self.get(place).look_up(&self.lists[list as usize]),
                        Value::Each => each,
                    };
                    self.values[word.0 as usize] = value;
                }
                Statement::Put { list, place, word } => {
                    let (word, place) = (self.get(*word), self.get(*place));
                    word.put(&mut self.lists[*list as usize], place);
                }
                Statement::Count { histogram, place } => {
                    self.get(*place).count_at(&mut self.histograms[*histogram as usize]);
                }
                Statement::Change { list, from, to, body, word } => {
                    for place in *from..*to {
                        self.go_through(body, self.lists[*list as usize][place as usize]);
                        self.lists[*list as usize][place as usize] = self.get(*word);
                    }
                }
            }
        }
    }

    /// Goes through the tape once; returns whether the lane goes on.
    pub(super) fn step(&mut self) -> bool {
        self.go_through(&self.written.tape.statements, 0);
        self.words = self.written.words.iter().map(|&word| self.get(word)).collect();
        self.written.goes_on.is_some_and(|goes_on| self.get(goes_on) != 0)
    }

    /// Where the lane is not where another one is, places of rings without a frame apart.
    pub(super) fn differs(&self, program: &Program, lane: &mut Lanes<u32>) -> Option<String> {
        let words: Vec<u32> = lane.words().into_iter().map(|word| *word).collect();
        if let Some(word) = self.words.iter().zip(&words).position(|(own, other)| own != other) {
            return Some(format!("word {word} at {}: {} for {}", lane.now, self.words[word], words[word]));
        }
        let mut own = Lanes::<u32>::blank(program);
        own.words().into_iter().zip(&self.words).for_each(|(word, own)| *word = *own);
        own.lists().into_iter().zip(&self.lists).for_each(|(list, own)| list.clone_from(own));
        if own.state(program, 0) != lane.state(program, 0) {
            return Some(format!("a ring at {}", lane.now));
        }
        let histograms = [&lane.counts.latencies, &lane.counts.waits];
        let same = self.histograms.iter().zip(histograms).all(|(own, other)| own[..BINS] == other[..BINS]);
        (!same).then(|| format!("a histogram at {}", lane.now))
    }
}

/// Takes a lane so many events further by the tape, settles it, and compares it with the step.
pub(super) fn compare(program: &Program, ticks: u64) {
    let (step, settle) = (Written::step(program), Written::settle(program));
    let mut lane = Lanes::<u32>::empty(program, &[0]);
    for round in 1..=3 {
        lane.end = (round * ticks) as u32;
        let mut by_tape = ByTape::new(&step, &mut lane);
        loop {
            let goes_on = lane.step(program) != 0;
            assert_eq!(by_tape.step(), goes_on);
            assert_eq!(by_tape.differs(program, &mut lane), None);
            if !goes_on {
                break;
            }
        }
        let mut settled = ByTape::new(&settle, &mut lane);
        settled.step();
        lane.settle(program);
        assert_eq!(settled.differs(program, &mut lane), None, "after settling");
    }
}
