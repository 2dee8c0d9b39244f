//! Adaptive routing of a grid, computed before the simulation: flow after flow takes the shortest path whose most
//! loaded link is the least loaded so far (`GreedyPaths` in `packages/routecast-noc/routecast/noc/routing/policies.py` explains this
//! interpretation of Li (2012)).
//!
//! The search for the best path of a flow goes backwards from its target over the rectangle of its two ends:
//!
//! ```text
//!   least bottleneck from here = min over the two next links of max(load of the link, least bottleneck after it)
//! ```

use std::cmp::Ordering;
use std::ops::ControlFlow;

/// Loads have 12 decimals: loads that differ by rounding alone are equal, so that a rule breaks their ties.
const UNITS: f64 = 1e12;
/// From here on doubles are further apart than numbers with 12 decimals.
const FINE: f64 = 8192.0;
/// Number of flows between two reports of progress.
const LOOK: usize = 1024;
/// Marks a direction without a link.
const EDGE: u32 = u32::MAX;

/// A grid of routers, numbered row by row.
#[derive(Debug, Clone, Copy)]
pub struct Routers {
    /// Routers in a row.
    pub columns: usize,
    /// Routers in a column.
    pub rows: usize,
    /// Whether rows and columns close to rings.
    pub rings: bool,
}

/// Returns the links of one shortest path for every pair of routers, source by source and target by target, without
/// separators. `report` gets the finished share from time to time; if it returns `Break`, the result is empty.
///
/// `demand` has a row for each source. Links are numbered by the router that they leave, and at a router in the order
/// east, west, south, north. Larger flows come first; of equal flows, those over a shorter distance. Flows without
/// demand go along x, then along y, and load no link.
///
/// # Panics
///
/// If the demand is not a square with a row for each router.
pub fn greedy(routers: Routers, demand: &[f64], report: &dyn Fn(f64) -> ControlFlow<()>) -> Vec<u32> {
    let count = routers.columns * routers.rows;
    assert_eq!(demand.len(), count * count, "a row and a column for each router");
    let distance = |flow: usize| {
        let (along_x, along_y) = routers.ways(flow / count, flow % count);
        along_x[0].unsigned_abs() + along_y[0].unsigned_abs()
    };
    let mut ends = vec![0];
    ends.extend((0..count * count).scan(0, |end, flow| {
        *end += distance(flow);
        Some(*end)
    }));
    let rate = |flow: usize| (demand[flow] * UNITS).round_ties_even() / UNITS;
    let (mut flows, idle): (Vec<usize>, Vec<usize>) = (0..count * count).partition(|&flow| rate(flow) > 0.0);
    // The sort is stable: flows of equal rate and distance stay in the order of their numbers.
    flows.sort_by(|&a, &b| rate(b).total_cmp(&rate(a)).then_with(|| distance(a).cmp(&distance(b))));
    let mut paths = vec![EDGE; ends[count * count]];
    let mut search = Search::new(routers);
    for (done, &flow) in flows.iter().enumerate() {
        if done % LOOK == 0 && report(done as f64 / flows.len() as f64).is_break() {
            return Vec::new();
        }
        search.route(flow / count, flow % count, demand[flow], &mut paths[ends[flow]..ends[flow + 1]]);
    }
    for flow in idle {
        let (along_x, along_y) = routers.ways(flow / count, flow % count);
        search.straight(flow / count, along_x[0], along_y[0], &mut paths[ends[flow]..ends[flow + 1]]);
    }
    paths
}

impl Routers {
    /// The shortest signed offsets along x and along y, twice the same, or forwards and backwards where both directions
    /// round a ring are equally short.
    fn ways(self, source: usize, target: usize) -> ([isize; 2], [isize; 2]) {
        let along = |from: usize, to: usize, size: usize| {
            let (straight, size) = (to as isize - from as isize, size as isize);
            let forward = straight.rem_euclid(size);
            let backward = forward - size;
            match forward.cmp(&-backward) {
                _ if !self.rings || straight == 0 => [straight; 2],
                Ordering::Less => [forward; 2],
                Ordering::Equal => [forward, backward],
                Ordering::Greater => [backward; 2],
            }
        };
        (
            along(source % self.columns, target % self.columns, self.columns),
            along(source / self.columns, target / self.columns, self.rows),
        )
    }

    /// The link that leaves each router to the east, west, south and north.
    fn leaving(self) -> [Vec<u32>; 4] {
        let mut leaving = [const { Vec::new() }; 4];
        let mut links = 0;
        for router in 0..self.columns * self.rows {
            let coordinates = [(router % self.columns, self.columns), (router / self.columns, self.rows)];
            for (direction, numbers) in leaving.iter_mut().enumerate() {
                let (coordinate, size) = coordinates[direction / 2];
                let edge = if direction % 2 == 0 { size - 1 } else { 0 };
                let is_there = if self.rings { size > 1 } else { coordinate != edge };
                numbers.push(if is_there { links } else { EDGE });
                links += u32::from(is_there);
            }
        }
        leaving
    }
}

/// The loads of all links so far, and buffers for the search in one rectangle.
struct Search {
    routers: Routers,
    leaving: [Vec<u32>; 4],
    /// The direction of each link, and the router that it leaves.
    links: Vec<(usize, usize)>,
    /// By direction and router, so that the search reads one number after the other.
    loads: [Vec<f64>; 4],
    /// The number of the first router in each row of the rectangle, by remaining hops along y.
    row_starts: Vec<usize>,
    /// Least bottlenecks of one column of the rectangle, by remaining hops along y.
    least: Vec<f64>,
    /// Whether the best path continues along x, by remaining hops along x and then along y.
    goes_along_x: Vec<bool>,
    path: Vec<u32>,
}

impl Search {
    fn new(routers: Routers) -> Self {
        let leaving = routers.leaving();
        let count = routers.columns * routers.rows;
        let numbered = |router: usize| (0..4).map(move |direction| (direction, router));
        let links = (0..count).flat_map(numbered).filter(|&(direction, router)| leaving[direction][router] != EDGE);
        Self {
            routers,
            links: links.collect(),
            leaving,
            loads: [const { Vec::new() }; 4].map(|_: Vec<f64>| vec![0.0; count]),
            row_starts: Vec::new(),
            least: Vec::new(),
            goes_along_x: Vec::new(),
            path: Vec::new(),
        }
    }

    /// Puts a flow on the shortest path whose most loaded link is the least loaded.
    fn route(&mut self, source: usize, target: usize, rate: f64, path: &mut [u32]) {
        let (along_x, along_y) = self.routers.ways(source, target);
        let mut best = f64::INFINITY;
        for (number, &across) in along_x.iter().enumerate() {
            for (other, &down) in along_y.iter().enumerate() {
                let is_known = (number == 1 && across == along_x[0]) || (other == 1 && down == along_y[0]);
                if is_known {
                    continue;
                }
                let bottleneck = self.in_rectangle(source, across, down);
                if bottleneck < best {
                    best = bottleneck;
                    path.copy_from_slice(&self.path);
                }
            }
        }
        for &link in &*path {
            let (direction, router) = self.links[link as usize];
            let load = &mut self.loads[direction][router];
            *load = rounded(*load + rate);
        }
    }

    /// Finds the best path of one rectangle; returns its bottleneck.
    fn in_rectangle(&mut self, source: usize, across: isize, down: isize) -> f64 {
        let Self { routers, leaving, links: _, loads, row_starts, least, goes_along_x, path } = self;
        let (wide, high) = (across.unsigned_abs(), down.unsigned_abs());
        let (along, beside) = (usize::from(across <= 0), 2 + usize::from(down <= 0));
        let (horizontal, vertical) = (&leaving[along], &leaving[beside]);
        let (horizontal_loads, vertical_loads) = (&loads[along], &loads[beside]);
        let (x, y) = (source % routers.columns, source / routers.columns);
        let column_at = |left: usize| step(x, across, wide - left, routers.columns);
        row_starts.clear();
        row_starts.extend((0..=high).map(|below| step(y, down, high - below, routers.rows) * routers.columns));
        least.clear();
        least.resize(high + 1, 0.0);
        goes_along_x.clear();
        for left in 0..=wide {
            let column = column_at(left);
            let mut nearer = f64::INFINITY;
            for (below, (least, &row_start)) in least.iter_mut().zip(&*row_starts).enumerate() {
                let router = row_start + column;
                let along_x = if left > 0 { larger(horizontal_loads[router], *least) } else { f64::INFINITY };
                let along_y = if below > 0 { larger(vertical_loads[router], nearer) } else { f64::INFINITY };
                nearer = if left + below > 0 { smaller(along_x, along_y) } else { 0.0 };
                *least = nearer;
                goes_along_x.push(along_x < along_y || (along_x == along_y && left >= below));
            }
        }
        path.clear();
        let (mut left, mut below) = (wide, high);
        while left + below > 0 {
            let router = row_starts[below] + column_at(left);
            if goes_along_x[left * (high + 1) + below] {
                path.push(horizontal[router]);
                left -= 1;
            } else {
                path.push(vertical[router]);
                below -= 1;
            }
        }
        least[high]
    }

    /// Writes the path along x and then along y.
    fn straight(&self, source: usize, across: isize, down: isize, path: &mut [u32]) {
        let Routers { columns, rows, .. } = self.routers;
        let (x, y, wide) = (source % columns, source / columns, across.unsigned_abs());
        for (hop, link) in path.iter_mut().enumerate() {
            let router =
                step(y, down, hop.saturating_sub(wide), rows) * columns + step(x, across, hop.min(wide), columns);
            let direction = if hop < wide { usize::from(across <= 0) } else { 2 + usize::from(down <= 0) };
            *link = self.leaving[direction][router];
        }
    }
}

/// The larger of two numbers; `f64::max` also minds numbers that are none, which no load is.
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The smaller of two numbers.
fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The coordinate after `hops` hops in the direction of `way`; past the end of a ring it wraps.
fn step(from: usize, way: isize, hops: usize, size: usize) -> usize {
    let there = if way > 0 { from + hops } else { from + size - hops };
    if there < size { there } else { there - size }
}

/// The nearest number with 12 decimals, equal to the value that formatting with 12 decimals gives.
fn rounded(load: f64) -> f64 {
    let scaled = load * UNITS;
    let units = scaled.round_ties_even();
    // Scaling may round across a half, by half a unit in the last place at most; formatting then decides.
    if scaled.abs() < 1e15 && ((scaled - units).abs() - 0.5).abs() > scaled.abs() * f64::EPSILON {
        units / UNITS
    } else if (0.0..FINE).contains(&load) {
        rounded_exactly(load)
    } else {
        // Numbers with 12 decimals lie closer together than doubles of this size, so the nearest is read as the same.
        load
    }
}

/// As [`rounded`], with integers: `load` is at least 0 and less than [`FINE`].
fn rounded_exactly(load: f64) -> f64 {
    let (bits, fraction) = (load.to_bits(), f64::MANTISSA_DIGITS - 1);
    let (exponent, mantissa) = (bits >> fraction, bits & ((1 << fraction) - 1));
    // A load is mantissa / 2^shift; 53 bits times the 40 of a million million fit.
    let (mantissa, shift) = if exponent == 0 { (mantissa, 1074) } else { (mantissa | 1 << fraction, 1075 - exponent) };
    if shift > 120 {
        return 0.0;
    }
    let scaled = u128::from(mantissa) * 1_000_000_000_000;
    let (units, rest, half) = (scaled >> shift, scaled & ((1 << shift) - 1), 1 << (shift - 1));
    let is_up = rest > half || (rest == half && units & 1 == 1);
    (units + u128::from(is_up)) as f64 / UNITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn loads_are_rounded_as_they_are_written(units in 0_u64..20_000_000_000_000, tenths in 0_u32..10) {
            let load = (units as f64 + f64::from(tenths) / 10.0) / UNITS;
            for near in [load, load.next_up(), load.next_down(), load * 1024.0] {
                prop_assert_eq!(rounded(near), format!("{near:.12}").parse::<f64>().unwrap());
            }
        }
    }

    #[test]
    fn the_second_of_two_like_flows_turns_where_the_first_did_not() {
        let mut demand = [0.0; 16];
        // On 2 x 2 routers from (0, 0) to (1, 1), after a flow along the first row that takes its link.
        (demand[1], demand[3]) = (0.5, 0.25);
        let paths = greedy(Routers { columns: 2, rows: 2, rings: false }, &demand, &|_| ControlFlow::Continue(()));
        // Router 0: to 1 over link 0 (east), to 2 over link 1 (south), to 3 over link 1 and then east from router 2.
        assert_eq!(paths[..4], [0, 1, 1, 4]);
    }

    #[test]
    fn a_report_that_breaks_ends_the_search() {
        let stop =
            greedy(Routers { columns: 2, rows: 1, rings: true }, &[0.0, 1.0, 1.0, 0.0], &|_| ControlFlow::Break(()));
        assert!(stop.is_empty());
    }
}
