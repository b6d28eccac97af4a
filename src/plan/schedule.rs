//! Orders the computation of all chunks, and decides which chunks are computed more than once.
//!
//! A *barrier* is a tensor that a group norm or linear attention measures: all of it must be
//! computed once before any stage reads it. (Softmax attention reads all of its keys and values,
//! too, but these may be freed and recomputed like other chunks.) Everything between two barriers
//! is local, a row or two wider at every filter. So a decode is a sequence of passes. Each pass has
//! a *goal*: a stage whose chunks it computes from first to last. Right before each chunk, the pass
//! computes what that chunk reads and is not there:
//!
//! ```text
//! goal conv2, nothing kept    conv1[0] conv1[1] conv2[0]  conv1[2] conv2[1]  conv1[3] conv2[2] ...
//! goal conv2, conv1 kept                        conv2[0]           conv2[1]           conv2[2] ...
//! ```
//!
//! [`RetainedChunks`] says how many of a stage's first chunks stay for later passes. A plan that
//! computes nothing twice keeps all chunks that a later pass reads. The schedule forgets the other
//! chunks at the end of the pass that computed them, and computes them again in the next pass that
//! reads them. It never frees a chunk explicitly: a chunk lives from its production to its last
//! reader.
//!
//! A residual sum overwrites its residual, chunk by chunk. Within a pass the readers of the
//! residual come before the sum, because they belong to the sum's branch. A later pass finds the
//! sum in that place, and not the residual.
//!
//! Decided elsewhere: sizes of chunks ([`crate::plan::partition`]), how many to keep (`retention`,
//! `budget`), launches (`lower`).

use std::ops::Range;
use std::rc::Rc;

use crate::plan::node::Node;

/// Number of each stage's first chunks that are kept for later passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedChunks(pub Vec<usize>);

impl RetainedChunks {
    /// Returns the number of chunks to keep of each stage so that nothing is computed twice. If
    /// [`streams`] is true of `nodes`, these are all chunks that a later pass reads; a chunk that
    /// only its own pass reads comes and goes within that pass. Otherwise these are all chunks up
    /// to the last barrier: each stage gets a pass, and so its scratch memory, of its own.
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

/// Returns the goal of the pass that first computes each stage if nothing is computed twice: the
/// next barrier.
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

/// True if one pass makes most of the bytes that a plan stores when it computes nothing twice. Work
/// would be the wrong measure: attention over a large image is most of it in any network.
pub fn streams(nodes: &[Node]) -> bool {
    let mut bytes = vec![0_u64; nodes.len()];
    for (node, goal) in nodes.iter().zip(goals(nodes)) {
        bytes[goal] = bytes[goal].saturating_add(node.row_bytes.saturating_mul(u64::from(node.partition.height)));
    }
    let all = bytes.iter().copied().fold(0, u64::saturating_add);
    bytes.into_iter().any(|bytes| bytes > all / 2)
}

/// The computation of one chunk of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkTask {
    /// The stage.
    pub stage: usize,
    /// The chunk of its output.
    pub chunk: usize,
}

/// A sequence of tasks that computes all chunks of one stage, and what they need on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Stage whose chunks the pass computes.
    pub goal: usize,
    /// Tasks of the pass, by index into [`Schedule::tasks`].
    pub tasks: Range<usize>,
}

/// Memory that holds one chunk, or several chunks that overwrite each other in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLife {
    /// Size in bytes.
    pub bytes: u64,
    /// Task that fills it first.
    pub born: usize,
    /// Last task that uses it.
    pub last: usize,
    /// Stage that used it last.
    pub stage: usize,
}

/// All tasks of a plan, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Tasks in execution order.
    pub tasks: Vec<ChunkTask>,
    /// Passes in execution order; together they cover all tasks.
    pub passes: Vec<Pass>,
    /// Memory of all chunks.
    pub places: Vec<ChunkLife>,
    /// Multiply-adds.
    pub macs: u64,
    /// Cost of making the schedule: chunks computed, and chunks that these read.
    pub looks: u64,
}

impl Schedule {
    /// Schedules `nodes`, which are in an order in which they could run one after the other. The
    /// last node is the goal of the whole schedule. Returns `None` if that takes more than `most`
    /// looks.
    pub fn new(nodes: &[Node], keep: &RetainedChunks, most: u64) -> Option<Self> {
        Building::new(nodes, most, 0).run(keep, 0)
    }

    /// Returns the stages that `pass` computes chunks of, in order; `count` is the number of all
    /// stages.
    pub fn stages(&self, pass: &Pass, count: usize) -> Vec<usize> {
        let mut takes_part = vec![false; count];
        for task in &self.tasks[pass.tasks.clone()] {
            takes_part[task.stage] = true;
        }
        (0..count).filter(|stage| takes_part[*stage]).collect()
    }

    /// Returns the most bytes of chunks that exist at once, for each pass, and the first task at
    /// which they do.
    pub fn peaks(&self) -> Vec<(u64, usize)> {
        let mut ends = vec![0_u64; self.tasks.len() + 1];
        let mut begins = vec![0_u64; self.tasks.len() + 1];
        for place in &self.places {
            begins[place.born] += place.bytes;
            ends[place.last + 1] += place.bytes;
        }
        let mut live = 0;
        let peak = |pass: &Pass| {
            let mut most = (0, pass.tasks.start);
            for task in pass.tasks.clone() {
                live = live + begins[task] - ends[task];
                if live > most.0 {
                    most = (live, task);
                }
            }
            most
        };
        self.passes.iter().map(peak).collect()
    }
}

/// A schedule with a snapshot of its state at the end of each pass. Schedules that keep less of
/// what a late pass computes begin in the same way and can resume there.
#[derive(Debug, Clone)]
pub struct Traced {
    /// The schedule.
    pub schedule: Schedule,
    ends: Vec<Rc<PassEnd>>,
}

/// State of a schedule when all tasks of a pass are done, before the schedule forgets any chunk.
#[derive(Debug, Clone)]
struct PassEnd {
    places: usize,
    macs: u64,
    looks: u64,
    /// Chunks that can be read: index in the table, number of the place, and the place.
    present: Vec<(usize, u32, ChunkLife)>,
}

impl Traced {
    /// Schedules `nodes` like [`Schedule::new`].
    pub fn new(nodes: &[Node], keep: &RetainedChunks, most: u64) -> Option<Self> {
        Building::new(nodes, most, 0).traced(keep, 0, Vec::new())
    }

    /// Returns the schedule of `keep`, and the number of passes that it shares with this one.
    /// `keep` is the same as here for stages before `first`.
    pub fn keeping(&self, nodes: &[Node], keep: &RetainedChunks, first: usize, most: u64) -> Option<(Schedule, usize)> {
        let same = self.same_passes(nodes, first);
        Some((self.resumed(nodes, keep, same, most).run(keep, same)?, same))
    }

    /// Returns the same schedule as [`Self::keeping`], traced.
    pub fn traced(&self, nodes: &[Node], keep: &RetainedChunks, first: usize, most: u64) -> Option<Self> {
        let same = self.same_passes(nodes, first);
        self.resumed(nodes, keep, same, most).traced(keep, same, self.ends[..same].to_vec())
    }

    /// Returns the number of first passes that do not depend on how much is kept of stages from
    /// `first` on. These are the passes of earlier goals, and the pass of `first` if it computes
    /// all of it in any case.
    fn same_passes(&self, nodes: &[Node], first: usize) -> usize {
        let is_same = |pass: &Pass| pass.goal < first || pass.goal == first && is_whole(nodes, first);
        self.schedule.passes.partition_point(is_same)
    }

    /// Resumes after the first `same` passes of this schedule, for a schedule of `keep`.
    fn resumed<'a>(&self, nodes: &'a [Node], keep: &RetainedChunks, same: usize, most: u64) -> Building<'a> {
        let tasks = self.schedule.tasks.len();
        let mut building = Building::new(nodes, most, tasks + tasks / 2);
        if let Some(index) = same.checked_sub(1) {
            let (begun, end, passes) = (&mut building.schedule, &self.ends[index], &self.schedule.passes[..same]);
            begun.passes.extend_from_slice(passes);
            begun.tasks.extend_from_slice(&self.schedule.tasks[..passes[index].tasks.end]);
            begun.places.extend_from_slice(&self.schedule.places[..end.places]);
            (begun.macs, begun.looks) = (end.macs, end.looks);
            for (at, number, place) in &end.present {
                building.present[*at] = *number;
                begun.places[*number as usize] = *place;
            }
            building.forget(passes[index].tasks.clone(), keep);
        }
        building
    }
}

/// True if one pass computes all of `stage`, whatever is kept.
fn is_whole(nodes: &[Node], stage: usize) -> bool {
    nodes[stage].barrier || stage + 1 == nodes.len()
}

/// Entry of a chunk that is not there, in the table of places.
const ABSENT: u32 = u32::MAX;

struct Building<'a> {
    nodes: &'a [Node],
    /// Number of looks after which the schedule is given up.
    most: u64,
    /// Index of each stage's first chunk in `present`.
    firsts: Vec<usize>,
    /// Place of each chunk of each stage, while it can be read. It is one table because planning
    /// spends most of its time on look-ups here.
    present: Vec<u32>,
    schedule: Schedule,
}

impl<'a> Building<'a> {
    /// Returns a schedule without tasks, with room for `tasks`.
    fn new(nodes: &'a [Node], most: u64, tasks: usize) -> Self {
        let mut chunks = 0;
        let first = |node: &Node| {
            chunks += node.partition.count();
            chunks - node.partition.count()
        };
        let firsts = nodes.iter().map(first).collect();
        // Tables that grow are copied again and again.
        let tasks = tasks.max(chunks);
        let (tasks, places) = (Vec::with_capacity(tasks), Vec::with_capacity(tasks));
        let schedule = Schedule { tasks, passes: Vec::new(), places, macs: 0, looks: 0 };
        Self { nodes, most, firsts, present: vec![ABSENT; chunks], schedule }
    }

    fn is_full(&self) -> bool {
        self.schedule.looks > self.most
    }

    /// Schedules all passes but the first `done`. Returns `None` if that takes too many looks.
    fn run(mut self, keep: &RetainedChunks, done: usize) -> Option<Schedule> {
        self.passes(keep, done, |_| ());
        (!self.is_full()).then_some(self.schedule)
    }

    /// Schedules like [`Self::run`], with a snapshot at the end of each pass. `ends` are the
    /// snapshots of the first passes.
    fn traced(mut self, keep: &RetainedChunks, done: usize, mut ends: Vec<Rc<PassEnd>>) -> Option<Traced> {
        self.passes(keep, done, |building| ends.push(Rc::new(building.end())));
        (!self.is_full()).then_some(Traced { schedule: self.schedule, ends })
    }

    fn passes(&mut self, keep: &RetainedChunks, done: usize, mut at_end: impl FnMut(&Self)) {
        let next = done.checked_sub(1).map_or(0, |last| self.schedule.passes[last].goal + 1);
        for goal in next..self.nodes.len() {
            let chunks = if is_whole(self.nodes, goal) { self.nodes[goal].partition.count() } else { keep.0[goal] };
            if chunks > 0 {
                let tasks = self.pass(goal, chunks);
                at_end(self);
                self.forget(tasks, keep);
            }
        }
    }

    /// Computes the first `chunks` chunks of `goal`.
    fn pass(&mut self, goal: usize, chunks: usize) -> Range<usize> {
        let start = self.schedule.tasks.len();
        for chunk in 0..chunks {
            if self.present[self.firsts[goal] + chunk] == ABSENT {
                self.demand(goal, chunk);
            }
        }
        let tasks = start..self.schedule.tasks.len();
        self.schedule.passes.push(Pass { goal, tasks: tasks.clone() });
        tasks
    }

    /// Forgets the chunks that `tasks` computed and that `keep` does not keep.
    fn forget(&mut self, tasks: Range<usize>, keep: &RetainedChunks) {
        for task in &self.schedule.tasks[tasks] {
            if task.chunk >= keep.0[task.stage] {
                self.present[self.firsts[task.stage] + task.chunk] = ABSENT;
            }
        }
    }

    /// Returns a snapshot of the state.
    fn end(&self) -> PassEnd {
        let Schedule { places, macs, looks, .. } = &self.schedule;
        let there = |(at, number): (usize, &u32)| Some((at, *number, *places.get(*number as usize)?));
        let mut present = Vec::with_capacity(self.present.len());
        present.extend(self.present.iter().enumerate().filter_map(there));
        PassEnd { places: places.len(), macs: *macs, looks: *looks, present }
    }

    /// Computes chunk `chunk` of `stage`, after the chunks that it reads and that are not there.
    fn demand(&mut self, stage: usize, chunk: usize) {
        if self.is_full() {
            return;
        }
        let nodes = self.nodes;
        let node = &nodes[stage];
        self.schedule.looks += 1;
        for read in &node.reads {
            let first = self.firsts[read.stage];
            self.schedule.looks += read.spans[chunk].len() as u64;
            for chunk in read.chunks(chunk) {
                if self.present[first + chunk] == ABSENT {
                    self.demand(read.stage, chunk);
                }
            }
        }
        let replaced = node.replaces.map(|replaced| self.firsts[replaced] + chunk);
        if let (Some(replaced), Some(at)) = (node.replaces, replaced)
            && self.present[at] == ABSENT
        {
            self.demand(replaced, chunk);
        }
        let (task, rows) = (self.schedule.tasks.len(), u64::from(node.partition.chunk(chunk).count()));
        let places = &mut self.schedule.places;
        for read in &node.reads {
            let first = self.firsts[read.stage];
            for index in read.chunks(chunk) {
                // Absent only if the schedule is given up.
                if let Some(place) = places.get_mut(self.present[first + index] as usize) {
                    place.last = task;
                }
            }
        }
        let taken = replaced.map_or(ABSENT, |at| std::mem::replace(&mut self.present[at], ABSENT));
        let place = match places.get_mut(taken as usize) {
            Some(place) => {
                (place.last, place.stage) = (task, stage);
                taken
            }
            None => {
                places.push(ChunkLife { bytes: rows * node.row_bytes, born: task, last: task, stage });
                u32::try_from(places.len() - 1).unwrap_or(ABSENT)
            }
        };
        self.present[self.firsts[stage] + chunk] = place;
        self.schedule.tasks.push(ChunkTask { stage, chunk });
        self.schedule.macs = self.schedule.macs.saturating_add(rows * node.row_macs);
    }
}
