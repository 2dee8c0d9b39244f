//! A word that writes down what is done with it: the description of a step as a list of integer instructions.
//!
//! The step of lanes is written once, over [`Word`]. Run with a [`Traced`] word it computes nothing, but leaves a [`Tape`]:
//! values, each made of earlier ones, and what is written to lists. `any` is true unless nothing can be set, so that both
//! sides of every condition are on the tape; that changes nothing, since everything is masked by the lanes it belongs to.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::words::Word;

/// How often a loop goes round on a device; lanes that need more are given up.
const ROUNDS: u32 = 8;

/// The number of a value on the tape of this thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Traced(pub u32);

/// Instructions of two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Two {
    Plus,
    Minus,
    Times,
    TimesHigh,
    Or,
    And,
    Xor,
    LeftBy,
    RightBy,
    Below,
    BelowSigned,
    Equals,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    Known(u32),
    /// A word of the state at the beginning.
    State(u32),
    Two(Two, Traced, Traced),
    LeadingZeros(Traced),
    /// The second where the first, a mask, is set, the third elsewhere.
    Choose(Traced, Traced, Traced),
    /// The word of a table of the program.
    Entry {
        table: u32,
        place: Traced,
    },
    /// The word of a list of the state, after so many writes.
    Read {
        list: u32,
        place: Traced,
        after: u32,
    },
    /// The present word of a list that is changed as a whole.
    Each,
}

/// What is done, in order.
#[derive(Debug, Clone)]
pub(crate) enum Statement {
    Let(Traced),
    Put {
        list: u32,
        place: Traced,
        word: Traced,
    },
    /// One is added at a place of a histogram.
    Count {
        histogram: u32,
        place: Traced,
    },
    /// Each word of some places of a list is replaced by what the statements make of [`Value::Each`].
    Change {
        list: u32,
        from: u32,
        to: u32,
        body: Vec<Statement>,
        word: Traced,
    },
}

/// A list of the state, or a histogram, by where it lies in memory while it is traced.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: usize,
    words: usize,
    is_histogram: bool,
    number: u32,
}

/// What was written down.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    pub values: Vec<Value>,
    pub is_mask: Vec<bool>,
    pub statements: Vec<Statement>,
    /// Tables of the program, one after the other: where each begins, and its length.
    pub tables: Vec<u32>,
    pub table_at: Vec<(u32, u32)>,
    numbers: HashMap<Value, Traced>,
    table_of: HashMap<(usize, usize), u32>,
    lists: Vec<Place>,
    writes: u32,
}

thread_local! {
    static TAPE: RefCell<Tape> = RefCell::default();
}

/// Writes down what a closure does with traced words; returns what it returns, and the tape.
pub(crate) fn written<T>(of: impl FnOnce() -> T) -> (T, Tape) {
    TAPE.with_borrow_mut(|tape| *tape = Tape::default());
    let result = of();
    (result, TAPE.take())
}

/// Makes lists known, in order, and histograms likewise.
pub(crate) fn know(lists: &[&[u32]], histograms: &[&[u32]]) {
    let place = |(number, list): (usize, &&[u32]), is_histogram| Place {
        start: list.as_ptr() as usize,
        words: list.len(),
        is_histogram,
        number: number as u32,
    };
    TAPE.with_borrow_mut(|tape| {
        tape.lists = lists.iter().enumerate().map(|list| place(list, false)).collect();
        tape.lists.extend(histograms.iter().enumerate().map(|list| place(list, true)));
    });
}

/// The words of the state at the beginning.
pub(crate) fn state(number: usize) -> Traced {
    TAPE.with_borrow_mut(|tape| tape.value(Value::State(number as u32)))
}

impl Two {
    pub(crate) fn of(self, a: u32, b: u32) -> u32 {
        match self {
            Self::Plus => a.plus(b),
            Self::Minus => a.minus(b),
            Self::Times => a.times(b),
            Self::TimesHigh => a.times_high(b),
            Self::Or => a.or(b),
            Self::And => a.and(b),
            Self::Xor => a.xor(b),
            Self::LeftBy => a.left_by(b),
            Self::RightBy => a.right_by(b),
            Self::Below => a.below(b),
            Self::BelowSigned => a.below_signed(b),
            Self::Equals => a.equals(b),
        }
    }
}

impl Tape {
    pub(crate) fn known(&self, word: Traced) -> Option<u32> {
        if let Value::Known(word) = self.values[word.0 as usize] { Some(word) } else { None }
    }

    fn value(&mut self, value: Value) -> Traced {
        if let Some(&number) = self.numbers.get(&value) {
            return number;
        }
        let number = Traced(self.values.len() as u32);
        self.is_mask.push(self.makes_mask(&value));
        self.values.push(value);
        self.numbers.insert(value, number);
        self.statements.push(Statement::Let(number));
        number
    }

    /// Whether a value is all ones or all zeros, whatever the state.
    fn makes_mask(&self, value: &Value) -> bool {
        let is = |word: &Traced| self.is_mask[word.0 as usize];
        match value {
            Value::Known(word) => *word == 0 || *word == u32::MAX,
            Value::Two(Two::Below | Two::BelowSigned | Two::Equals, ..) => true,
            Value::Two(Two::And | Two::Or | Two::Xor, a, b) => is(a) && is(b),
            Value::Choose(_, set, clear) => is(set) && is(clear),
            _ => false,
        }
    }

    fn two(&mut self, what: Two, a: Traced, b: Traced) -> Traced {
        let (left, right) = (self.known(a), self.known(b));
        let all = Some(u32::MAX);
        match (what, left, right) {
            (_, Some(left), Some(right)) => return self.value(Value::Known(what.of(left, right))),
            (Two::Plus | Two::Or | Two::Xor, Some(0), _)
            | (Two::And | Two::Times | Two::TimesHigh, _, Some(0))
            | (Two::Or, _, Some(u32::MAX))
            | (Two::And, Some(u32::MAX), _)
            | (Two::Times, Some(1), _) => return b,
            (Two::Plus | Two::Minus | Two::Or | Two::Xor | Two::LeftBy | Two::RightBy, _, Some(0))
            | (Two::And | Two::Times | Two::TimesHigh, Some(0), _)
            | (Two::Or, Some(u32::MAX), _)
            | (Two::And, _, Some(u32::MAX))
            | (Two::Times, _, Some(1)) => return a,
            (Two::Below, _, Some(0)) => return self.value(Value::Known(0)),
            _ => {}
        }
        if a == b {
            match what {
                Two::And | Two::Or => return a,
                Two::Xor | Two::Minus | Two::Below | Two::BelowSigned => return self.value(Value::Known(0)),
                Two::Equals => return self.value(Value::Known(u32::MAX)),
                _ => {}
            }
        }
        // Twice not is what it was.
        if what == Two::Xor
            && right == all
            && let Value::Two(Two::Xor, inner, turned) = self.values[a.0 as usize]
            && self.known(turned) == all
        {
            return inner;
        }
        self.value(Value::Two(what, a, b))
    }

    fn choose(&mut self, mask: Traced, set: Traced, clear: Traced) -> Traced {
        match self.known(mask) {
            Some(0) => clear,
            Some(_) => set,
            None if set == clear => set,
            None => self.value(Value::Choose(mask, set, clear)),
        }
    }

    /// The list of the state that begins or lies at an address, and how far behind its beginning.
    fn list(&self, list: &[u32]) -> Option<(Place, u32)> {
        let start = list.as_ptr() as usize;
        let is_it = |place: &&Place| place.words > 0 && (place.start..place.start + 4 * place.words).contains(&start);
        self.lists.iter().find(is_it).map(|place| (*place, ((start - place.start) / 4) as u32))
    }

    fn look_up(&mut self, list: &[u32], place: Traced) -> Traced {
        if let Some((known, _)) = self.list(list) {
            return self.value(Value::Read { list: known.number, place, after: self.writes });
        }
        if let Some(place) = self.known(place) {
            return self.value(Value::Known(place.look_up(list)));
        }
        if list.iter().all(|word| *word == list[0]) {
            return self.value(Value::Known(list[0]));
        }
        let table = *self.table_of.entry((list.as_ptr() as usize, list.len())).or_insert_with(|| {
            self.table_at.push((self.tables.len() as u32, list.len() as u32));
            self.tables.extend(list);
            self.table_at.len() as u32 - 1
        });
        self.value(Value::Entry { table, place })
    }
}

#[inline(never)]
fn on_tape<T>(what: impl FnOnce(&mut Tape) -> T) -> T {
    TAPE.with_borrow_mut(what)
}

macro_rules! two {
    ($($name:ident $what:ident)*) => {
        $(
            #[inline(never)]
            fn $name(self, other: Self) -> Self {
                on_tape(|tape| tape.two(Two::$what, self, other))
            }
        )*
    };
}

impl Word for Traced {
    const LANES: usize = 1;
    const ROUNDS: u32 = ROUNDS;

    #[inline(never)]
    fn all(word: u32) -> Self {
        on_tape(|tape| tape.value(Value::Known(word)))
    }
    #[inline(never)]
    fn of(words: &[u32]) -> Self {
        Self::all(words[0])
    }
    #[inline(never)]
    fn get(&self, _lane: usize) -> u32 {
        on_tape(|tape| tape.known(*self)).expect("what is read lane by lane is not on the way of a step")
    }
    #[inline(never)]
    fn set(&mut self, _lane: usize, word: u32) {
        *self = Self::all(word);
    }
    #[inline(never)]
    fn write(self, to: &mut [u32]) {
        to[0] = self.get(0);
    }
    two! {
        plus Plus
        minus Minus
        times Times
        times_high TimesHigh
        or Or
        and And
        xor Xor
        left_by LeftBy
        right_by RightBy
        below Below
        below_signed BelowSigned
        equals Equals
    }
    #[inline(never)]
    fn left(self, bits: u32) -> Self {
        self.left_by(Self::all(bits))
    }
    #[inline(never)]
    fn right(self, bits: u32) -> Self {
        self.right_by(Self::all(bits))
    }
    #[inline(never)]
    fn rotate(self, bits: u32) -> Self {
        self.left(bits).or(self.right(32 - bits))
    }
    #[inline(never)]
    fn leading_zeros(self) -> Self {
        on_tape(|tape| match tape.known(self) {
            Some(word) => tape.value(Value::Known(Word::leading_zeros(word))),
            None => tape.value(Value::LeadingZeros(self)),
        })
    }
    #[inline(never)]
    fn choose(self, set: Self, clear: Self) -> Self {
        on_tape(|tape| tape.choose(self, set, clear))
    }
    #[inline(never)]
    fn any(self) -> bool {
        on_tape(|tape| tape.known(self) != Some(0))
    }
    #[inline(never)]
    fn look_up(self, list: &[u32]) -> Self {
        on_tape(|tape| tape.look_up(list, self))
    }
    #[inline(never)]
    fn put(self, list: &mut [u32], place: Self) {
        on_tape(|tape| {
            let (known, _) = tape.list(list).expect("only lists of the state are written");
            tape.writes += 1;
            tape.statements.push(Statement::Put { list: known.number, place, word: self });
        });
    }
    #[inline(never)]
    fn count_at(self, list: &mut [u32]) {
        on_tape(|tape| {
            let (known, _) = tape.list(list).expect("only histograms of the state are counted in");
            assert!(known.is_histogram, "counts go to histograms");
            tape.statements.push(Statement::Count { histogram: known.number, place: self });
        });
    }
    #[inline(never)]
    fn change(list: &mut [u32], with: impl Fn(Self) -> Self) {
        if list.is_empty() {
            return;
        }
        let (each, before) = on_tape(|tape| {
            // What the body needs of before is on the tape already, or is made anew in it.
            let before = std::mem::take(&mut tape.statements);
            (tape.value(Value::Each), before)
        });
        let word = with(each);
        on_tape(|tape| {
            let body = std::mem::replace(&mut tape.statements, before);
            let (known, from) = tape.list(list).expect("only lists of the state are changed");
            tape.writes += 1;
            let to = from + list.len() as u32;
            tape.statements.push(Statement::Change { list: known.number, from, to, body, word });
            // A value that was made in the body is not known behind it.
            tape.numbers.clear();
        });
    }
}
