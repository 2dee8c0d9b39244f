//! Which member takes which flow: a table of rows, a pure function of the members, their weights and a seed.
//!
//! Rendezvous hashing (Thaler and Ravishankar, IEEE/ACM Trans. Networking 6(1), 1998), weighted as in Schindelhauer and
//! Schomaker, "Weighted distributed hash tables", SPAA 2005: of each row the members in the order of their scores
//! −w / ln u, where u in (0, 1) is a hash of row and member. A row's second choice is what its first would be without that
//! member, so the death of a member moves its rows and no others, and so does its planned removal.

/// Rows of a table, as in `bpf/balance.bpf.c`.
pub const ROWS: usize = 1 << 16;
/// Most members of a router.
pub const MEMBERS: usize = 64;
/// Choices that a row holds, an octet each.
pub const CHOICES: usize = 8;
/// Marks that a row has no further choice.
pub const NOBODY: u8 = 0xff;

/// A member of the router: its number, which is that of its tables, and its share of the flows (relative).
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// 0 to 63.
    pub number: u8,
    /// More than 0; at 0 it takes none.
    pub weight: f64,
}

/// The choices of every row, the first in the lowest octet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// [`ROWS`] of them.
    pub rows: Vec<u64>,
}

/// 64 pseudo-random bits (`SplitMix64`'s finaliser).
fn mixed(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn score(row: u64, member: Weight, seed: u64) -> f64 {
    let bits = mixed(mixed(seed ^ (u64::from(member.number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ row);
    // 53 bits, in the middle of their steps: never 0 and never 1.
    let uniform = ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -member.weight / uniform.ln()
}

impl Table {
    /// The table of these members; their order does not matter, and members of weight 0 own no rows.
    #[must_use]
    pub fn new(members: &[Weight], seed: u64) -> Self {
        let mut taking: Vec<Weight> = members.iter().copied().filter(|member| member.weight > 0.0).collect();
        taking.sort_by_key(|member| member.number);
        let mut scores: Vec<(f64, u8)> = Vec::with_capacity(taking.len());
        let rows = (0..ROWS as u64)
            .map(|row| {
                scores.clear();
                scores.extend(taking.iter().map(|&member| (score(row, member, seed), member.number)));
                scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                let mut choices = [NOBODY; CHOICES];
                for (choice, &(_, number)) in choices.iter_mut().zip(&scores) {
                    *choice = number;
                }
                u64::from_le_bytes(choices)
            })
            .collect();
        Self { rows }
    }

    /// The owner of a row while all members are alive.
    #[must_use]
    pub fn owner(&self, row: usize) -> u8 {
        self.rows[row].to_le_bytes()[0]
    }

    /// Share of the rows that each number owns.
    #[must_use]
    pub fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; MEMBERS];
        for row in 0..ROWS {
            if let Some(share) = shares.get_mut(usize::from(self.owner(row))) {
                *share += 1.0 / ROWS as f64;
            }
        }
        shares
    }

    /// Share of the rows whose owner differs from the one in `before`.
    #[must_use]
    pub fn moved_from(&self, before: &Self) -> f64 {
        let moved = (0..ROWS).filter(|&row| self.owner(row) != before.owner(row)).count();
        moved as f64 / ROWS as f64
    }

    /// A hash of all rows (FNV-1a, 64 bits), for audits: equal tables have equal ones, on every machine.
    #[must_use]
    pub fn digest(&self) -> u64 {
        digest(&self.rows)
    }
}

/// The hash of [`Table::digest`] for rows that were read back.
#[must_use]
pub fn digest(rows: &[u64]) -> u64 {
    rows.iter()
        .flat_map(|row| row.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3))
}
