//! A disk that loses power, and a disk that fills up.
//!
//! Between two syncs a real disk may write any part of what it was given, in any order. This one keeps what was
//! synced apart from what was written since, and at a power loss each written piece stays or goes by chance: whole
//! writes, single sectors of them, or a cut in the middle of one. It is harsher than a page cache, which at least
//! never keeps a later byte of a sector without the earlier ones.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use fastrand::Rng;
use redb::StorageBackend;

/// What a disk is said to write as one.
const SECTOR: usize = 512;
/// What a file system gives a file at a time.
const BLOCK: u64 = 4_096;

/// A disk of one file. Clones are the same disk.
#[derive(Debug, Clone)]
pub(super) struct Device(Arc<Mutex<Platter>>);

#[derive(Debug)]
struct Platter {
    /// What survives.
    durable: Vec<u8>,
    /// What a reader sees.
    current: Vec<u8>,
    /// What was done since the last sync.
    pending: Vec<Step>,
    /// Steps until the power goes.
    fuse: Option<u64>,
    /// The power is gone: nothing is answered.
    dead: bool,
    /// Blocks that the file has.
    blocks: HashSet<u64>,
    /// Blocks that it may have.
    capacity: Option<usize>,
    steps: u64,
}

#[derive(Debug)]
enum Step {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl Device {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Platter {
            durable: Vec::new(),
            current: Vec::new(),
            pending: Vec::new(),
            fuse: None,
            dead: false,
            blocks: HashSet::new(),
            capacity: None,
            steps: 0,
        })))
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().expect("no test panics while it holds the platter")
    }

    /// The power goes at the `steps`th write, sync or change of length from now.
    pub(super) fn light_fuse(&self, steps: u64) {
        self.platter().fuse = Some(steps);
    }

    /// Lets the file have `more` blocks than it has now; `None` is a large disk.
    pub(super) fn set_free_blocks(&self, more: Option<usize>) {
        let mut platter = self.platter();
        platter.capacity = more.map(|more| platter.blocks.len() + more);
    }

    /// Writes, syncs and changes of length so far.
    pub(super) fn steps(&self) -> u64 {
        self.platter().steps
    }

    /// The power goes, if it has not, and comes back.
    pub(super) fn power_cycle(&self, random: &mut Rng) {
        let mut platter = self.platter();
        let platter = &mut *platter;
        let steps = std::mem::take(&mut platter.pending);
        let manner = Manner::any(random, steps.len());
        let mut length = platter.durable.len();
        let mut image = std::mem::take(&mut platter.durable);
        for (index, step) in steps.iter().enumerate() {
            match step {
                Step::Length(to) if manner.keeps(index, random) => {
                    length = *to;
                    image.truncate(length);
                }
                Step::Length(_) => {}
                Step::Write(at, bytes) => {
                    for (piece, sector) in bytes.chunks(SECTOR).enumerate() {
                        let kept = manner.kept_of(index, sector.len(), random);
                        let from = at + piece * SECTOR;
                        if image.len() < from + kept {
                            image.resize(from + kept, 0);
                        }
                        image[from..from + kept].copy_from_slice(&sector[..kept]);
                    }
                }
            }
        }
        image.resize(length, 0);
        platter.current = image.clone();
        platter.durable = image;
        platter.fuse = None;
        platter.dead = false;
    }

    /// Overwrites one byte behind everybody's back.
    pub(super) fn flip(&self, at: usize, mask: u8) {
        let mut platter = self.platter();
        platter.current[at] ^= mask;
        platter.durable[at] ^= mask;
    }

    pub(super) fn length(&self) -> usize {
        self.platter().current.len()
    }

    /// Another disk with the same bytes.
    pub(super) fn copied(&self) -> Self {
        let copy = Self::new();
        {
            let mut platter = copy.platter();
            platter.durable = self.platter().durable.clone();
            platter.current = platter.durable.clone();
        }
        copy
    }
}

/// How a power loss treats what was not synced.
enum Manner {
    /// Everything is lost.
    Drop,
    /// Everything is there.
    Keep,
    /// Steps before this one are there, this one is torn, later ones are lost.
    CutAt(usize),
    /// Whole steps stay with this chance.
    Steps(f32),
    /// Single sectors stay with this chance.
    Sectors(f32),
}

impl Manner {
    fn any(random: &mut Rng, steps: usize) -> Self {
        match random.u8(..5) {
            0 => Self::Drop,
            1 => Self::Keep,
            2 => Self::CutAt(random.usize(..=steps)),
            3 => Self::Steps(random.f32()),
            _ => Self::Sectors(random.f32()),
        }
    }

    fn keeps(&self, index: usize, random: &mut Rng) -> bool {
        match self {
            Self::Drop => false,
            Self::Keep => true,
            Self::CutAt(cut) => index < *cut,
            Self::Steps(chance) | Self::Sectors(chance) => random.f32() < *chance,
        }
    }

    /// How many bytes of a sector stay. A step's sectors share their fate where the manner says so, by sharing the
    /// step's own dice.
    fn kept_of(&self, index: usize, length: usize, random: &mut Rng) -> usize {
        match self {
            Self::CutAt(cut) if index == *cut => random.usize(..=length),
            Self::Steps(chance) => {
                let mut dice = Rng::with_seed(index as u64 ^ u64::from(chance.to_bits()) << 32);
                if dice.f32() < *chance { length } else { 0 }
            }
            Self::Drop | Self::Keep | Self::CutAt(_) | Self::Sectors(_) => {
                if self.keeps(index, random) {
                    length
                } else {
                    0
                }
            }
        }
    }
}

impl Platter {
    /// Burns the fuse by one step.
    fn step(&mut self) -> io::Result<()> {
        self.alive()?;
        self.steps += 1;
        if let Some(fuse) = &mut self.fuse {
            if *fuse == 0 {
                self.dead = true;
                return self.alive();
            }
            *fuse -= 1;
        }
        Ok(())
    }

    fn alive(&self) -> io::Result<()> {
        match self.dead {
            true => Err(io::Error::other("the power is gone")),
            false => Ok(()),
        }
    }

    /// Takes the blocks of a write, or as many as there are.
    fn allocate(&mut self, at: u64, length: u64) -> io::Result<()> {
        for block in at / BLOCK..(at + length).div_ceil(BLOCK) {
            let full = self.capacity.is_some_and(|capacity| self.blocks.len() >= capacity);
            if full && !self.blocks.contains(&block) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.blocks.insert(block);
        }
        Ok(())
    }
}

impl StorageBackend for Device {
    fn len(&self) -> io::Result<u64> {
        let platter = self.platter();
        platter.alive()?;
        Ok(platter.current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let platter = self.platter();
        platter.alive()?;
        let offset = usize::try_from(offset).expect("a small disk");
        let bytes = platter.current.get(offset..offset + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut platter = self.platter();
        platter.step()?;
        platter.blocks.retain(|block| block * BLOCK < length);
        let length = usize::try_from(length).expect("a small disk");
        platter.current.resize(length, 0);
        platter.pending.push(Step::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.platter();
        platter.step()?;
        platter.durable = platter.current.clone();
        platter.pending.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut platter = self.platter();
        platter.step()?;
        platter.allocate(offset, data.len() as u64)?;
        let at = usize::try_from(offset).expect("a small disk");
        let end = at + data.len();
        if platter.current.len() < end {
            platter.current.resize(end, 0);
        }
        platter.current[at..end].copy_from_slice(data);
        platter.pending.push(Step::Write(at, data.to_vec()));
        Ok(())
    }
}
