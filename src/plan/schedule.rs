//! Decides in which order the chunks of all tensors are computed, and which are computed more than once.
//!
//! A *barrier* is a tensor that a group norm measures: all of it must have been computed once before anyone can read it. (Attention reads all of its
//! keys and values, too, but they may come and go like anything else.) Everything between two barriers is local, a row or two wider at every filter. So a decode is a sequence of passes, each with
//! a *goal*: a stage whose chunks it computes from first to last. What a chunk reads is computed right before it, if it is not there:
//!
//! ```text
//! goal conv2, nothing kept        conv1[0] conv1[1] conv2[0]  conv1[2] conv2[1]  conv1[3] conv2[2] ...
//! goal conv2, conv1 kept                            conv2[0]           conv2[1]           conv2[2] ...
//! ```
//!
//! [`Keep`] says how many of a stage's first chunks stay for later passes: all of them for a plan that computes nothing twice, if a later pass reads them. The others are forgotten at the end of the pass that computed them, and computed again by the next that reads them.
//! Nobody frees anything here: a chunk lives from its production to its last reader.
//!
//! A residual sum takes the place of its residual, chunk by chunk. Whoever reads the residual comes first within a pass, because the sum's
//! branch does; a later pass finds the sum there, and not the residual.
//!
//! Not done here: sizes of chunks ([`crate::plan::partition`]), how many to keep (`residence`, `budget`), launches (`lower`).

use crate::plan::node::Node;

/// How many of each stage's first chunks are kept for later passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep(pub Vec<usize>);

impl Keep {
    /// As many as it takes to compute nothing twice. Where one pass makes most of what is stored: all chunks of what a later pass reads; what only its own pass reads
    /// comes and goes within that. Else all chunks up to the last barrier, which gives each stage a pass, and its scratch memory, of its own.
    pub fn whole(nodes: &[Node]) -> Self {
        if streams(nodes) {
            return Self::read_later(nodes);
        }
        let last = nodes.iter().rposition(|node| node.barrier).unwrap_or(0);
        let kept = |(stage, node): (usize, &Node)| if stage <= last { node.partition.count() } else { 0 };
        Self(nodes.iter().enumerate().map(kept).collect())
    }

    fn read_later(nodes: &[Node]) -> Self {
        let goals = goals(nodes);
        let mut kept = vec![0; nodes.len()];
        for (reader, node) in nodes.iter().enumerate() {
            for read in node.reads.iter().map(|read| read.stage).chain(node.replaces) {
                if goals[read] != goals[reader] {
                    kept[read] = nodes[read].partition.count();
                }
            }
        }
        Self(kept)
    }
}

/// For each stage, the goal of the pass that computes it first, where nothing is computed twice: the next barrier.
fn goals(nodes: &[Node]) -> Vec<usize> {
    let mut goal = nodes.len().saturating_sub(1);
    let mut goals: Vec<usize> = (0..nodes.len())
        .rev()
        .map(|stage| {
            if nodes[stage].barrier {
                goal = stage;
            }
            goal
        })
        .collect();
    goals.reverse();
    goals
}

/// Whether one pass makes most of what a plan that computes nothing twice stores. Not most of the work: attention over a large image is that in any network.
pub fn streams(nodes: &[Node]) -> bool {
    let mut bytes = vec![0_u64; nodes.len()];
    for (node, goal) in nodes.iter().zip(goals(nodes)) {
        bytes[goal] = bytes[goal].saturating_add(node.row_bytes.saturating_mul(u64::from(node.partition.height)));
    }
    let all = bytes.iter().copied().fold(0, u64::saturating_add);
    bytes.into_iter().any(|bytes| bytes > all / 2)
}

/// One chunk of one stage, computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The stage.
    pub stage: usize,
    /// The chunk of its output.
    pub chunk: usize,
}

/// A run over all chunks of one stage, and of what is computed on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The stage it is for.
    pub goal: usize,
    /// By index into [`Schedule::tasks`].
    pub tasks: std::ops::Range<usize>,
}

/// A piece of memory that holds one chunk, or one after the other several that replace each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Bytes.
    pub bytes: u64,
    /// The task that fills it first.
    pub born: usize,
    /// The last task that reads it.
    pub last: usize,
    /// The stage that was in it last.
    pub stage: usize,
}

/// What is computed, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// In execution order.
    pub tasks: Vec<Task>,
    /// In execution order; together they are all tasks.
    pub passes: Vec<Pass>,
    /// The memory of all chunks.
    pub places: Vec<Place>,
    /// Multiply-adds.
    pub macs: u64,
    /// What it took to make: chunks computed, and chunks that those read.
    pub looks: u64,
}

impl Schedule {
    /// Schedules `nodes`, which are in an order in which they could run one after the other. The last one is the goal of all. `None` if that takes
    /// more than `most` looks.
    pub fn new(nodes: &[Node], keep: &Keep, most: u64) -> Option<Self> {
        let present: Vec<Vec<_>> = nodes.iter().map(|node| vec![None; node.partition.count()]).collect();
        let chunks = present.iter().map(Vec::len).sum();
        let (tasks, places) = (Vec::with_capacity(chunks), Vec::with_capacity(chunks));
        let schedule = Self { tasks, passes: Vec::new(), places, macs: 0, looks: 0 };
        let mut building = Building { nodes, most, present, schedule };
        for (goal, node) in nodes.iter().enumerate() {
            let all = node.barrier || goal + 1 == nodes.len();
            let chunks = if all { node.partition.count() } else { keep.0[goal] };
            if chunks > 0 {
                building.pass(goal, chunks, keep);
            }
        }
        (!building.is_full()).then_some(building.schedule)
    }

    /// The stages that `pass` computes chunks of, of `count` altogether, in their order.
    pub fn stages(&self, pass: &Pass, count: usize) -> Vec<usize> {
        let mut takes_part = vec![false; count];
        for task in &self.tasks[pass.tasks.clone()] {
            takes_part[task.stage] = true;
        }
        (0..count).filter(|stage| takes_part[*stage]).collect()
    }

    /// The most bytes of chunks that exist at once, in each pass.
    pub fn peaks(&self) -> Vec<u64> {
        let mut ends = vec![0_u64; self.tasks.len() + 1];
        let mut begins = vec![0_u64; self.tasks.len() + 1];
        for place in &self.places {
            begins[place.born] += place.bytes;
            ends[place.last + 1] += place.bytes;
        }
        let mut live = 0;
        let peak = |pass: &Pass| {
            let mut most = 0;
            for task in pass.tasks.clone() {
                live = live + begins[task] - ends[task];
                most = most.max(live);
            }
            most
        };
        self.passes.iter().map(peak).collect()
    }

    /// The task of pass `index` at which most bytes exist.
    pub fn fullest(&self, index: usize) -> usize {
        let tasks = self.passes[index].tasks.clone();
        let mut live: Vec<i128> = vec![0; tasks.len() + 1];
        for place in &self.places {
            let (from, to) = (place.born.max(tasks.start), (place.last + 1).min(tasks.end));
            if from < to {
                live[from - tasks.start] += i128::from(place.bytes);
                live[to - tasks.start] -= i128::from(place.bytes);
            }
        }
        let (mut sum, mut best) = (0, (0, tasks.start));
        for (offset, change) in live.iter().take(tasks.len()).enumerate() {
            sum += change;
            if sum > best.0 {
                best = (sum, tasks.start + offset);
            }
        }
        best.1
    }
}

struct Building<'a> {
    nodes: &'a [Node],
    /// Looks after which nothing more is scheduled.
    most: u64,
    /// The place of each chunk of each stage, while it can be read.
    present: Vec<Vec<Option<usize>>>,
    schedule: Schedule,
}

impl Building<'_> {
    fn is_full(&self) -> bool {
        self.schedule.looks > self.most
    }

    fn pass(&mut self, goal: usize, chunks: usize, keep: &Keep) {
        let start = self.schedule.tasks.len();
        for chunk in 0..chunks {
            if self.present[goal][chunk].is_none() {
                self.demand(goal, chunk);
            }
        }
        for task in &self.schedule.tasks[start..] {
            if task.chunk >= keep.0[task.stage] {
                self.present[task.stage][task.chunk] = None;
            }
        }
        let tasks = start..self.schedule.tasks.len();
        self.schedule.passes.push(Pass { goal, tasks });
    }

    /// Computes chunk `chunk` of `stage`, and first what it reads and is not there.
    fn demand(&mut self, stage: usize, chunk: usize) {
        if self.is_full() {
            return;
        }
        let nodes = self.nodes;
        let node = &nodes[stage];
        self.schedule.looks += 1;
        for read in &node.reads {
            self.schedule.looks += read.spans[chunk].len() as u64;
            for chunk in read.spans[chunk].clone() {
                if self.present[read.stage][chunk].is_none() {
                    self.demand(read.stage, chunk);
                }
            }
        }
        if let Some(replaced) = node.replaces
            && self.present[replaced][chunk].is_none()
        {
            self.demand(replaced, chunk);
        }
        let (task, rows) = (self.schedule.tasks.len(), u64::from(node.partition.chunk(chunk).count()));
        for read in &node.reads {
            for place in self.present[read.stage][read.spans[chunk].clone()].iter().flatten() {
                self.schedule.places[*place].last = task;
            }
        }
        let place = match node.replaces.and_then(|replaced| self.present[replaced][chunk].take()) {
            Some(place) => {
                let taken = &mut self.schedule.places[place];
                (taken.last, taken.stage) = (task, stage);
                place
            }
            None => {
                let bytes = rows * node.row_bytes;
                self.schedule.places.push(Place { bytes, born: task, last: task, stage });
                self.schedule.places.len() - 1
            }
        };
        self.present[stage][chunk] = Some(place);
        self.schedule.tasks.push(Task { stage, chunk });
        self.schedule.macs = self.schedule.macs.saturating_add(rows * node.row_macs);
    }
}
