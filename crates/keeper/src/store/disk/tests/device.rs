//! A simulated disk that can lose power or become full.
//!
//! Between two syncs a real disk can write any part of its pending writes, in any order. This one separates synced from
//! pending writes. At a power loss each pending write is kept or lost at random: whole writes, single sectors, or a
//! write cut in the middle. This is harsher than a page cache, which never keeps a later byte of a sector without the
//! earlier ones.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use fastrand::Rng;
use redb::StorageBackend;

/// The size that a disk is assumed to write atomically.
const SECTOR: usize = 512;
/// The allocation unit of the file system.
const BLOCK: u64 = 4_096;

/// A disk with one file. Clones share the disk.
#[derive(Debug, Clone)]
pub(super) struct Device(Arc<Mutex<Platter>>);

#[derive(Debug)]
struct Platter {
    /// The content that survives a power loss.
    durable: Vec<u8>,
    /// The content that a reader sees.
    current: Vec<u8>,
    /// Steps since the last sync.
    pending: Vec<Step>,
    /// Steps until the power loss.
    fuse: Option<u64>,
    /// The power is off: every call fails.
    dead: bool,
    /// Blocks allocated to the file.
    blocks: HashSet<u64>,
    /// Limit of allocated blocks.
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

    /// Schedules a power loss at the `steps`th write, sync or change of length from now.
    pub(super) fn light_fuse(&self, steps: u64) {
        self.platter().fuse = Some(steps);
    }

    /// Limits the file to `more` additional blocks; `None` removes the limit.
    pub(super) fn set_free_blocks(&self, more: Option<usize>) {
        let mut platter = self.platter();
        platter.capacity = more.map(|more| platter.blocks.len() + more);
    }

    /// Returns the number of writes, syncs and changes of length so far.
    pub(super) fn steps(&self) -> u64 {
        self.platter().steps
    }

    /// Turns the power off, if it is on, and on again.
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

    /// Flips bits of one byte, without a step.
    pub(super) fn flip(&self, at: usize, mask: u8) {
        let mut platter = self.platter();
        platter.current[at] ^= mask;
        platter.durable[at] ^= mask;
    }

    pub(super) fn length(&self) -> usize {
        self.platter().current.len()
    }

    /// Returns another disk with the same content.
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

/// The effect of a power loss on pending steps.
enum Manner {
    /// All are lost.
    Drop,
    /// All are kept.
    Keep,
    /// Steps before this one are kept, this one is torn, later ones are lost.
    CutAt(usize),
    /// Each step is kept with this probability.
    Steps(f32),
    /// Each sector is kept with this probability.
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

    /// Returns how many bytes of a sector are kept. For `Steps` the random generator is seeded by the step, so that all
    /// sectors of a step have the same result.
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
    /// Counts one step towards the power loss.
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
            true => Err(io::Error::other("the power is off")),
            false => Ok(()),
        }
    }

    /// Allocates the blocks of a write, as many as are free.
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
