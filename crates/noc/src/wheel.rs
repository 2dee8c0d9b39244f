//! Events of the next cycles: flits on wires, credits on their way back, heads in the routing stage.

/// A ring of lists, two for each cycle of the near future: for routers and for nodes.
#[derive(Debug, Clone)]
pub struct Wheel<T> {
    slots: Vec<Vec<T>>,
    mask: usize,
    /// Number of events.
    count: usize,
}

impl<T> Wheel<T> {
    /// A wheel for delays of at most `longest` cycles.
    #[must_use]
    pub fn new(longest: u64) -> Self {
        let size = 2 * (longest as usize + 1).next_power_of_two();
        Self { slots: (0..size).map(|_| Vec::new()).collect(), mask: size - 1, count: 0 }
    }

    #[inline]
    fn slot(&mut self, cycle: u64, node: u32) -> &mut Vec<T> {
        let slot = (2 * cycle as usize + node as usize) & self.mask;
        &mut self.slots[slot]
    }

    /// Whether it holds no event.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Schedules an event at `cycle`, at most the longest delay after the current cycle, at a router (`node` is 0) or
    /// at a node (1).
    #[inline]
    pub fn push(&mut self, cycle: u64, node: u32, thing: T) {
        self.slot(cycle, node).push(thing);
        self.count += 1;
    }

    /// Takes the list of a cycle; `give_back` returns its memory.
    #[inline]
    pub fn take(&mut self, cycle: u64, node: u32) -> Vec<T> {
        let taken = std::mem::take(self.slot(cycle, node));
        self.count -= taken.len();
        taken
    }

    /// Keeps the memory of a list for a later lap.
    #[inline]
    pub fn give_back(&mut self, cycle: u64, node: u32, mut list: Vec<T>) {
        list.clear();
        *self.slot(cycle, node) = list;
    }

    /// All pending events, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }
}
