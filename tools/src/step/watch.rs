//! Watchpoints: what stops the waves when it changes.
//!
//! Contract: a change of memory is seen before the next instruction of any wave, and was made by the instruction
//! executed last: waves run one at a time. A change of registers is seen before the next instruction of their wave, and
//! was made by the one that this wave executed last. Registers are those of the wave that was followed when the
//! watchpoint was set, and are watched until it ends. Costs a comparison for each instruction while there are any
//! watchpoints.

use super::calls::WaveName;
use super::command::Registers;
use super::wave::{EXEC_LO, HALF_LANES, M0, VCC_LO};
use zrt_isa::{Encoding, Instruction};
use zrt_script::ElementType;
use zrt_vgpu::check::debug::Stop;

/// Maximum number of watchpoints.
pub(super) const WATCHES_MAX: usize = 16;

/// Bytes of a lane of a vector register, and of a scalar register.
const DWORD_BYTES: usize = 4;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// This many bytes at an address.
    Memory(u64, usize),
    /// Registers of a wave.
    Registers(WaveName, Registers),
}

/// A watchpoint.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    /// Its number.
    pub number: u32,
    /// What its user calls it.
    pub name: String,
    pub subject: Subject,
    /// How it is printed.
    pub element: Option<ElementType>,
    /// The last value.
    value: Vec<u8>,
    /// The instruction executed last, by the wave whose registers these are, or by any that can reach the memory.
    last: Option<Executed>,
}

/// An instruction that a wave executed.
#[derive(Clone, Debug)]
pub(super) struct Executed {
    pub wave: WaveName,
    pub pc: u64,
    pub instruction: Instruction,
}

/// A change that was seen.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub number: u32,
    pub name: String,
    /// Old and new value.
    pub text: String,
    /// The instruction that made it; `None` if none did: the last one stores nothing, so it was the host or a packet.
    pub by: Option<Executed>,
}

/// All watchpoints.
#[derive(Debug, Default)]
pub(super) struct Watches {
    list: Vec<Watch>,
    made: u32,
}

impl Watches {
    /// Begins to watch; returns the number, or a complaint.
    pub fn add(
        &mut self,
        name: String,
        subject: Subject,
        element: Option<ElementType>,
        stop: &mut Stop<'_>,
    ) -> Result<u32, String> {
        if self.list.len() == WATCHES_MAX {
            return Err(format!("{WATCHES_MAX} watchpoints are possible; unwatch NUMBER removes one"));
        }
        let value =
            read(&subject, stop).ok_or_else(|| format!("{name} is not mapped, or not as far as that"))?;
        self.made += 1;
        self.list.push(Watch { number: self.made, name, subject, element, value, last: None });
        Ok(self.made)
    }

    /// Removes one, or all; returns false if there is none with that number.
    pub fn remove(&mut self, number: Option<u32>) -> bool {
        let before = self.list.len();
        self.list.retain(|watch| number.is_some_and(|number| watch.number != number));
        number.is_none() || self.list.len() < before
    }

    /// All of them.
    pub fn list(&self) -> &[Watch] {
        &self.list
    }

    /// What has changed since the last call.
    pub fn changes(&mut self, stop: &mut Stop<'_>) -> Vec<Change> {
        let mut changes = Vec::new();
        for watch in &mut self.list {
            let Some(value) = read(&watch.subject, stop).filter(|value| *value != watch.value) else {
                continue;
            };
            let is_memory_watch = matches!(watch.subject, Subject::Memory(..));
            let by = watch.last.as_ref().filter(|last| !is_memory_watch || is_memory(&last.instruction));
            let text = difference(watch, &value);
            changes.push(Change { number: watch.number, name: watch.name.clone(), text, by: by.cloned() });
            watch.value = value;
        }
        changes
    }

    /// The user changed something, which is not reported as a change. What cannot be read here was not changed here.
    pub fn refresh(&mut self, stop: &mut Stop<'_>) {
        for watch in &mut self.list {
            if let Some(value) = read(&watch.subject, stop) {
                watch.value = value;
            }
        }
    }

    /// The instruction of this stop is about to be executed.
    pub fn execute(&mut self, stop: &Stop<'_>) {
        let wave = (stop.workgroup, stop.wave_index);
        self.executed(&Executed { wave, pc: stop.pc, instruction: *stop.instruction });
    }

    fn executed(&mut self, one: &Executed) {
        for watch in &mut self.list {
            if !matches!(watch.subject, Subject::Registers(wave, _) if wave != one.wave) {
                watch.last = Some(one.clone());
            }
        }
    }

    /// A wave ends: its watchpoints are removed and returned.
    pub fn end(&mut self, wave: WaveName) -> Vec<Watch> {
        let is_over = |watch: &Watch| matches!(watch.subject, Subject::Registers(of, _) if of == wave);
        let over = self.list.iter().filter(|watch| is_over(watch)).cloned().collect();
        self.list.retain(|watch| !is_over(watch));
        over
    }
}

/// The value; `None` if it cannot be read at this stop.
fn read(subject: &Subject, stop: &mut Stop<'_>) -> Option<Vec<u8>> {
    match subject {
        Subject::Memory(va, bytes) => {
            let mut value = vec![0; *bytes];
            stop.read_memory(*va, &mut value).then_some(value)
        }
        Subject::Registers(wave, _) if *wave != (stop.workgroup, stop.wave_index) => None,
        Subject::Registers(_, registers) => {
            let wave = &stop.wave;
            let words: Vec<u32> = match *registers {
                Registers::Scalar(first, last) => wave.scalar[first.into()..=last.into()].to_vec(),
                Registers::Vector(first, last) => {
                    let banks = [Some(&wave.vector), wave.other_half.as_ref()];
                    let rows = banks.into_iter().flatten().map(|bank| &bank[first.into()..=last.into()]);
                    rows.flat_map(|rows| rows.iter().flat_map(|row| row.0)).collect()
                }
                Registers::Exec => return Some(wave.scalar_pair(EXEC_LO).to_le_bytes().into()),
                Registers::Vcc => return Some(wave.scalar_pair(VCC_LO).to_le_bytes().into()),
                Registers::Scc => vec![wave.scc.into()],
                Registers::M0 => vec![wave.scalar[usize::from(M0)]],
                Registers::Mode => vec![wave.mode],
            };
            Some(words.iter().flat_map(|word| word.to_le_bytes()).collect())
        }
    }
}

/// Whether an instruction may store to memory.
fn is_memory(instruction: &Instruction) -> bool {
    use Encoding::{Vbuffer, Vflat, Vglobal, Vscratch};
    matches!(instruction.encoding, Vbuffer | Vflat | Vglobal | Vscratch)
}

/// Old and new value: of the first number that differs, and how many do.
fn difference(watch: &Watch, value: &[u8]) -> String {
    let element = watch.element;
    let width = element.map_or(if value.len() % 4 == 0 { 4 } else { 1 }, ElementType::bytes);
    let text = |bytes: &[u8]| match element {
        Some(element) => element.text(bytes),
        None => {
            let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
            format!("0x{digits}")
        }
    };
    let pairs = || watch.value.chunks(width).zip(value.chunks(width)).enumerate();
    let mut differing = pairs().filter(|(_, (old, new))| old != new);
    let Some((index, (old, new))) = differing.next() else { return "it changed".to_owned() };
    // Lanes and registers hold a dword each, numbers of a type fewer bytes or more.
    let dword = index * width / DWORD_BYTES;
    let place = match &watch.subject {
        Subject::Registers(_, Registers::Vector(first, last)) => {
            // Registers of 32 lanes, then those of the other half of a wave64.
            let count = usize::from(last - first) + 1;
            let (half, row, lane) =
                (dword / HALF_LANES / count, dword / HALF_LANES % count, dword % HALF_LANES);
            let register = if count > 1 { format!("v{} ", usize::from(*first) + row) } else { String::new() };
            format!("{register}lane {}: ", half * HALF_LANES + lane)
        }
        Subject::Registers(_, Registers::Scalar(first, last)) if first != last => {
            format!("s{}: ", usize::from(*first) + dword)
        }
        Subject::Memory(va, _) if value.len() > width => format!("at {:#x}: ", va + (index * width) as u64),
        _ => String::new(),
    };
    let more = match differing.count() {
        0 => String::new(),
        count => format!(", and {count} more"),
    };
    format!("{place}{} -> {}{more}", text(old), text(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is printed if these bytes of a watchpoint change.
    fn told(subject: Subject, element: Option<ElementType>, bytes: usize, changed: &[usize]) -> String {
        let value = vec![0; bytes];
        let mut new = value.clone();
        changed.iter().for_each(|at| new[*at] = 1);
        difference(&Watch { number: 1, name: String::new(), subject, element, value, last: None }, &new)
    }

    fn registers(registers: Registers) -> Subject {
        Subject::Registers(([0; 3], 0), registers)
    }

    /// Two waves that take turns: whoever ran in between has not written the other's registers.
    #[test]
    fn registers_are_written_by_their_own_wave() {
        let (first, second) = (([0; 3], 0), ([0; 3], 1));
        let subjects = [
            Subject::Registers(first, Registers::Vector(0, 0)),
            Subject::Registers(second, Registers::Scc),
            Subject::Memory(0x100, 4),
        ];
        let watch = |subject| Watch {
            number: 1,
            name: String::new(),
            subject,
            element: None,
            value: Vec::new(),
            last: None,
        };
        let mut watches = Watches { list: subjects.map(watch).into(), made: 3 };
        // s_nop 0
        let instruction = zrt_isa::decode(&[0xBF80_0000]).unwrap();
        for (wave, pc) in [(first, 4), (second, 8), (first, 12), (second, 16)] {
            watches.executed(&Executed { wave, pc, instruction });
        }
        let last: Vec<_> = watches.list.iter().map(|watch| watch.last.as_ref().unwrap().pc).collect();
        assert_eq!(last, [12, 16, 16]);
    }

    #[test]
    fn numbers_of_every_width_have_the_lane_that_holds_them() {
        let vector = |element, bytes, changed: &[usize]| {
            told(registers(Registers::Vector(3, 3 + (bytes / 128 - 1) as u8)), element, bytes, changed)
        };
        // Either half of lane 5, a byte of lane 31.
        assert_eq!(vector(Some(ElementType::U16), 128, &[4 * 5]), "lane 5: 0 -> 1");
        assert_eq!(vector(Some(ElementType::U16), 128, &[4 * 5 + 2]), "lane 5: 0 -> 1");
        assert_eq!(vector(Some(ElementType::U8), 128, &[127]), "lane 31: 0 -> 1");
        assert_eq!(vector(Some(ElementType::U32), 128, &[4 * 5, 4 * 9]), "lane 5: 0 -> 1, and 1 more");
        // Two registers: a row of 32 lanes each.
        assert_eq!(vector(Some(ElementType::I16), 256, &[128 + 4 * 7]), "v4 lane 7: 0 -> 1");
        assert_eq!(vector(None, 256, &[128 + 4 * 7]), "v4 lane 7: 0x00000000 -> 0x00000001");
    }

    #[test]
    fn numbers_of_every_width_have_the_register_that_holds_them() {
        let scalar =
            |element, changed: &[usize]| told(registers(Registers::Scalar(4, 7)), element, 16, changed);
        assert_eq!(scalar(Some(ElementType::I8), &[4 * 2 + 3]), "s6: 0 -> 1");
        assert_eq!(scalar(Some(ElementType::U16), &[4 * 3]), "s7: 0 -> 1");
        assert_eq!(scalar(None, &[4]), "s5: 0x00000000 -> 0x00000001");
        let memory = told(Subject::Memory(0x100, 8), Some(ElementType::U16), 8, &[6]);
        assert_eq!(memory, "at 0x106: 0 -> 1");
    }

    /// A wave64 has its lanes from 32 on after all registers of the lower half.
    #[test]
    fn lanes_of_the_upper_half_are_counted_on() {
        let vector = |last, bytes, at| told(registers(Registers::Vector(3, last)), None, bytes, &[at]);
        assert_eq!(vector(3, 256, 4 * 31), "lane 31: 0x00000000 -> 0x00000001");
        assert_eq!(vector(3, 256, 128 + 4 * 7), "lane 39: 0x00000000 -> 0x00000001");
        assert_eq!(vector(4, 512, 4 * 9), "v3 lane 9: 0x00000000 -> 0x00000001");
        assert_eq!(vector(4, 512, 256 + 4 * 9), "v3 lane 41: 0x00000000 -> 0x00000001");
        assert_eq!(vector(4, 512, 256 + 128 + 4 * 5), "v4 lane 37: 0x00000000 -> 0x00000001");
    }

    /// What is watched as a whole has no place beside its name; bytes are shown one by one if they are no dwords.
    #[test]
    fn single_values_have_no_place() {
        assert_eq!(told(registers(Registers::Scalar(4, 4)), None, 4, &[1]), "0x00000000 -> 0x00000100");
        assert_eq!(told(registers(Registers::Exec), None, 8, &[4]), "0x00000000 -> 0x00000001");
        assert_eq!(told(Subject::Memory(0x100, 4), None, 4, &[0]), "0x00000000 -> 0x00000001");
        assert_eq!(told(Subject::Memory(0x100, 3), None, 3, &[1, 2]), "at 0x101: 0x00 -> 0x01, and 1 more");
        assert_eq!(told(Subject::Memory(0x100, 12), None, 12, &[9]), "at 0x108: 0x00000000 -> 0x00000100");
        assert_eq!(told(Subject::Memory(0x100, 4), None, 4, &[]), "it changed");
    }

    /// Numbers stay what they are when others are removed; without a number all are.
    #[test]
    fn watchpoints_are_removed_by_their_number_or_with_their_wave() {
        let watch = |number, subject| Watch {
            number,
            name: String::new(),
            subject,
            element: None,
            value: Vec::new(),
            last: None,
        };
        let (first, second) = (([0; 3], 0), ([1, 0, 0], 0));
        let all = || Watches {
            list: vec![
                watch(1, Subject::Memory(0, 4)),
                watch(2, Subject::Registers(first, Registers::Scc)),
                watch(5, Subject::Registers(second, Registers::M0)),
            ],
            made: 5,
        };
        let numbers = |watches: &Watches| watches.list().iter().map(|one| one.number).collect::<Vec<_>>();
        let mut watches = all();
        assert!(watches.remove(Some(2)) && !watches.remove(Some(2)) && !watches.remove(Some(3)));
        assert_eq!(numbers(&watches), [1, 5]);
        assert!(watches.remove(None) && watches.list().is_empty() && watches.remove(None));
        let mut watches = all();
        let ended: Vec<u32> = watches.end(second).iter().map(|one| one.number).collect();
        assert_eq!((ended, numbers(&watches)), (vec![5], vec![1, 2]));
        assert!(watches.end(second).is_empty());
    }

    /// Stores go through these encodings; LDS and scalars are no memory that is watched.
    #[test]
    fn memory_instructions_are_those_that_may_store() {
        // global_store_b32 v1, v2, s[0:1]; s_nop 0; s_load_b64 s[0:1], s[0:1], 0x0 (as llvm-mc 19 encodes them).
        for (words, expected) in [
            (&[0xee06_8000, 0x0100_0000, 0x0000_0001][..], true),
            (&[0xbf80_0000], false),
            (&[0xf400_2000, 0xf800_0000], false),
        ] {
            assert_eq!(is_memory(&zrt_isa::decode(words).unwrap()), expected, "{words:x?}");
        }
    }
}
