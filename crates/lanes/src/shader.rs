//! The text of a tape in WGSL, the shading language of WebGPU.
//!
//! Constants that are more than a few are no part of the text, but handed to it: keys, costs, gaps. So one text, compiled once,
//! runs all seeds, replications and rates of a router.
//!
//! Masks are `bool`, all else `u32`; there are no floats, so that compilers and devices agree on every bit. A lane is an
//! invocation: its words, and its lists, lie beside those of the other lanes.

use std::fmt::Write as _;

use crate::tape::{Statement, Tape, Traced, Two, Value};

/// Lanes of a workgroup.
pub const WORKGROUP: u32 = 64;

/// What a shader is made of.
pub(crate) struct Shader<'a> {
    /// Takes a lane one event further, and moves it to the instant at which it stopped.
    pub step: Part<'a>,
    pub settle: Part<'a>,
    /// The mask of lanes that had not come to their ends.
    pub goes_on: Traced,
    /// Which word is the instant at which a lane stops, and which are counts.
    pub end: usize,
    pub counts: std::ops::Range<usize>,
    /// Vectors of four constants.
    pub constants: usize,
    /// Histograms of a part.
    pub histograms: u32,
    /// Whether the device has 64-bit integers.
    pub has_u64: bool,
}

/// What is done with the words of the state.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub tape: &'a Tape,
    /// The words at the end, in order.
    pub words: &'a [Traced],
    /// The first letter of its values.
    pub letter: char,
    /// Where the lists of the state begin among a lane's words of memory, and how long they are.
    pub lists: &'a [(u32, u32)],
    /// Bins of a histogram, the last for what is not counted.
    pub bins: u32,
    /// The number of each value among the constants that are handed over, if it is one.
    pub numbers: &'a [usize],
}

/// The least constant that is handed over: shifts and small counts belong to the text, where compilers make more of them.
const LEAST_HANDED_OVER: u32 = 64;

/// Whether a constant is handed over.
fn is_handed_over(word: u32) -> bool {
    (LEAST_HANDED_OVER..u32::MAX).contains(&word)
}

/// Adds the constants of a tape that are handed over; returns the number of each value among all, if it is one.
pub(crate) fn hand_over(tape: &Tape, constants: &mut Vec<u32>) -> Vec<usize> {
    let number = |value: &Value| match value {
        Value::Known(word) if is_handed_over(*word) => {
            constants.push(*word);
            constants.len() - 1
        }
        _ => usize::MAX,
    };
    tape.values.iter().map(number).collect()
}

/// A lane has a list of stops, (end, slot, part) each: it settles at the end, writes its counts to the slot unless that is the
/// last number, counts in the part's histograms on the way there, and goes on to the next stop.
const BINDINGS: &str = "@group(0) @binding(0) var<uniform> run: Run;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;
@group(0) @binding(2) var<storage, read_write> memory: array<u32>;
@group(0) @binding(3) var<storage, read> tables: array<u32>;
@group(0) @binding(4) var<storage, read_write> bins: array<atomic<u32>>;
@group(0) @binding(5) var<storage, read_write> going: array<atomic<u32>>;
@group(0) @binding(6) var<storage, read> stops: array<u32>;
@group(0) @binding(7) var<storage, read_write> counts: array<u32>;
";

/// The upper half of a product: WGSL has none.
const TIMES_HIGH: &str = "fn times_high(a: u32, b: u32) -> u32 {
  let al = a & 0xffffu; let ah = a >> 16u; let bl = b & 0xffffu; let bh = b >> 16u;
  let m = ah * bl; let n = al * bh;
  let carry = ((al * bl) >> 16u) + (m & 0xffffu) + (n & 0xffffu);
  return ah * bh + (m >> 16u) + (n >> 16u) + (carry >> 16u);
}
";
const TIMES_HIGH_64: &str = "fn times_high(a: u32, b: u32) -> u32 { return u32((u64(a) * u64(b)) >> 32u); }
";

impl Shader<'_> {
    /// The text.
    pub(crate) fn text(&self) -> String {
        let constants = self.constants;
        let mut text = format!(
            "struct Run {{ lanes: u32, steps: u32, stops: u32, unused: u32, known: array<vec4<u32>, {constants}> }};\n"
        );
        text += BINDINGS;
        text += if self.has_u64 { TIMES_HIGH_64 } else { TIMES_HIGH };
        let _ = writeln!(text, "@compute @workgroup_size({WORKGROUP})");
        text += "fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n";
        text += "  let lane = id.x;\n  if (lane >= run.lanes) { return; }\n";
        let count = self.step.words.len();
        for word in 0..count {
            let _ = writeln!(text, "  var s{word} = words[{word}u * run.lanes + lane];");
        }
        let (end, of_part) = (self.end, self.histograms * self.step.bins);
        let _ = writeln!(text, "  var stop = words[{count}u * run.lanes + lane];");
        text += "  if (stop >= run.stops) { return; }\n";
        let arrive = format!(
            "s{end} = stops[3u * stop * run.lanes + lane];
      slot = stops[(3u * stop + 1u) * run.lanes + lane];
      part = stops[(3u * stop + 2u) * run.lanes + lane] * {of_part}u;"
        );
        let _ = writeln!(text, "  var slot = 0u;\n  var part = 0u;\n  {arrive}");
        text += "  var goes_on = false;\n  for (var step = 0u; step < run.steps; step++) {\n";
        self.step.write_all(&mut text, Some(self.goes_on));
        text += "    if (goes_on) { continue; }\n";
        self.settle.write_all(&mut text, None);
        text += "    if (slot != 0xffffffffu) {\n";
        let counts = self.counts.len();
        for (number, word) in self.counts.clone().enumerate() {
            let _ = writeln!(text, "      counts[slot * {counts}u + {number}u] = s{word}; s{word} = 0u;");
        }
        let _ = writeln!(text, "    }}\n    stop++;\n    if (stop >= run.stops) {{ break; }}\n      {arrive}\n  }}");
        for word in 0..count {
            let _ = writeln!(text, "  words[{word}u * run.lanes + lane] = s{word};");
        }
        let _ = writeln!(text, "  words[{count}u * run.lanes + lane] = stop;");
        text += "  if (stop < run.stops) {\n    atomicAdd(&going[0], 1u);\n    atomicAdd(&going[1], run.stops - stop);\n  }\n}\n";
        text
    }
}

impl Part<'_> {
    /// All statements, and the change of all words at once.
    fn write_all(&self, text: &mut String, keep: Option<Traced>) {
        let needed = self.needed(keep);
        text.push_str("    {\n");
        self.write(text, &self.tape.statements, &needed, "    ");
        let changes: Vec<(usize, Traced)> =
            self.words.iter().copied().enumerate().filter(|&(number, word)| self.changes(number, word)).collect();
        for (number, word) in &changes {
            let _ = writeln!(text, "    let n{number} = {};", self.word(*word));
        }
        for (number, _) in &changes {
            let _ = writeln!(text, "    s{number} = n{number};");
        }
        if let Some(keep) = keep {
            let _ = writeln!(text, "    goes_on = {};", self.mask(keep));
        }
        text.push_str("    }\n");
    }

    fn changes(&self, number: usize, word: Traced) -> bool {
        self.tape.values[word.0 as usize] != Value::State(number as u32)
    }

    /// Which values something depends on.
    fn needed(&self, keep: Option<Traced>) -> Vec<bool> {
        let mut needed = vec![false; self.tape.values.len()];
        let mut open: Vec<Traced> = self.words.iter().copied().chain(keep).collect();
        let mut statements: Vec<&Statement> = self.tape.statements.iter().collect();
        while let Some(statement) = statements.pop() {
            match statement {
                Statement::Let(_) => {}
                Statement::Put { place, word, .. } => open.extend([*place, *word]),
                Statement::Count { place, .. } => open.push(*place),
                Statement::Change { body, word, .. } => {
                    open.push(*word);
                    statements.extend(body);
                }
            }
        }
        while let Some(word) = open.pop() {
            if std::mem::replace(&mut needed[word.0 as usize], true) {
                continue;
            }
            match self.tape.values[word.0 as usize] {
                Value::Known(_) | Value::State(_) | Value::Each => {}
                Value::Two(_, a, b) => open.extend([a, b]),
                Value::LeadingZeros(a) => open.push(a),
                Value::Choose(mask, set, clear) => open.extend([mask, set, clear]),
                Value::Entry { place, .. } | Value::Read { place, .. } => open.push(place),
            }
        }
        needed
    }

    fn write(&self, text: &mut String, statements: &[Statement], needed: &[bool], indent: &str) {
        for statement in statements {
            let line = match statement {
                Statement::Let(word) => {
                    let is_named =
                        !matches!(self.tape.values[word.0 as usize], Value::Known(_) | Value::State(_) | Value::Each);
                    if !needed[word.0 as usize] || !is_named {
                        continue;
                    }
                    format!("let {}{} = {};", self.letter, word.0, self.expression(*word))
                }
                Statement::Put { list, place, word } => {
                    format!("{} = {};", self.place(*list, *place), self.word(*word))
                }
                Statement::Count { histogram, place } => {
                    let first = histogram * self.bins;
                    let last = self.bins - 1;
                    format!("atomicAdd(&bins[part + {first}u + min({}, {last}u)], 1u);", self.word(*place))
                }
                Statement::Change { list, from, to, body, word } => {
                    let first = self.lists[*list as usize].0;
                    let _ = writeln!(text, "{indent}for (var place = {from}u; place < {to}u; place++) {{");
                    let _ = writeln!(text, "{indent}  let at = ({first}u + place) * run.lanes + lane;");
                    let _ = writeln!(text, "{indent}  let each = memory[at];");
                    self.write(text, body, needed, &format!("{indent}  "));
                    format!("  memory[at] = {};\n{indent}}}", self.word(*word))
                }
            };
            let _ = writeln!(text, "{indent}{line}");
        }
    }

    fn place(&self, list: u32, place: Traced) -> String {
        let (first, length) = self.lists[list as usize];
        format!("memory[({first}u + min({}, {}u)) * run.lanes + lane]", self.word(place), length - 1)
    }

    /// What a value is called where a word is needed.
    fn word(&self, word: Traced) -> String {
        match self.tape.values[word.0 as usize] {
            Value::Known(known) if is_handed_over(known) => {
                let number = self.numbers[word.0 as usize];
                format!("run.known[{}].{}", number / 4, ["x", "y", "z", "w"][number % 4])
            }
            Value::Known(known) => format!("{known}u"),
            Value::State(number) => format!("s{number}"),
            Value::Each => "each".into(),
            _ if self.tape.is_mask[word.0 as usize] => format!("select(0u, 0xffffffffu, {}{})", self.letter, word.0),
            _ => format!("{}{}", self.letter, word.0),
        }
    }

    /// What a value is called where a mask is needed.
    fn mask(&self, word: Traced) -> String {
        match self.tape.known(word) {
            Some(word) => (word != 0).to_string(),
            None if self.tape.is_mask[word.0 as usize] => format!("{}{}", self.letter, word.0),
            None => format!("({} != 0u)", self.word(word)),
        }
    }

    fn expression(&self, word: Traced) -> String {
        let is_mask = |word: Traced| self.tape.is_mask[word.0 as usize];
        let makes_mask = is_mask(word);
        match self.tape.values[word.0 as usize] {
            Value::Known(_) | Value::State(_) | Value::Each => unreachable!("they have names of their own"),
            Value::LeadingZeros(a) => format!("countLeadingZeros({})", self.word(a)),
            Value::Choose(mask, set, clear) if makes_mask => {
                format!("select({}, {}, {})", self.mask(clear), self.mask(set), self.mask(mask))
            }
            Value::Choose(mask, set, clear) => {
                format!("select({}, {}, {})", self.word(clear), self.word(set), self.mask(mask))
            }
            Value::Entry { table, place } => {
                let (first, length) = self.tape.table_at[table as usize];
                format!("tables[{first}u + min({}, {}u)]", self.word(place), length - 1)
            }
            Value::Read { list, place, .. } => self.place(list, place),
            Value::Two(Two::Xor, a, b) if makes_mask && self.tape.known(b) == Some(u32::MAX) => {
                format!("!{}", self.mask(a))
            }
            Value::Two(what @ (Two::And | Two::Or | Two::Xor), a, b) if makes_mask => {
                let sign = match what {
                    Two::And => "&",
                    Two::Or => "|",
                    _ => "!=",
                };
                format!("{} {sign} {}", self.mask(a), self.mask(b))
            }
            Value::Two(Two::And, a, b) if is_mask(a) => format!("select(0u, {}, {})", self.word(b), self.mask(a)),
            Value::Two(Two::And, a, b) if is_mask(b) => format!("select(0u, {}, {})", self.word(a), self.mask(b)),
            // A mask is -1: what it adds or takes away is one.
            Value::Two(Two::Minus, a, b) if is_mask(b) && self.tape.known(b).is_none() => {
                format!("{} + select(0u, 1u, {})", self.word(a), self.mask(b))
            }
            Value::Two(Two::Plus, a, b) if is_mask(b) && self.tape.known(b).is_none() => {
                format!("{} - select(0u, 1u, {})", self.word(a), self.mask(b))
            }
            Value::Two(what, a, b) => Self::two(what, &self.word(a), &self.word(b)),
        }
    }

    fn two(what: Two, a: &str, b: &str) -> String {
        match what {
            Two::Plus => format!("{a} + {b}"),
            Two::Minus => format!("{a} - {b}"),
            Two::Times => format!("{a} * {b}"),
            Two::TimesHigh => format!("times_high({a}, {b})"),
            Two::Or => format!("{a} | {b}"),
            Two::And => format!("{a} & {b}"),
            Two::Xor => format!("{a} ^ {b}"),
            Two::LeftBy => format!("{a} << ({b} & 31u)"),
            Two::RightBy => format!("{a} >> ({b} & 31u)"),
            Two::Below => format!("{a} < {b}"),
            Two::BelowSigned => format!("bitcast<i32>({a}) < bitcast<i32>({b})"),
            Two::Equals => format!("{a} == {b}"),
        }
    }
}
