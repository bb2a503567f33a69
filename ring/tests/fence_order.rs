//! The placement of the token rings' fences, checked on a record of every access. It covers the orders that neither
//! a model checker nor an x86-64 processor lets go wrong, because there no load is overtaken by a later store.

#[path = "model/said.rs"]
mod said;

use said::{Said, line, said};
use std::cell::RefCell;
use std::num::NonZeroU32;
use std::rc::Rc;
use zrt_ring::token_ring::mock::{DeviceInput, DeviceOutput};
use zrt_ring::token_ring::{ControlDwords, ControlLines, InputRing, OutputRing, RingMemory};

/// A memory of a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Lines,
    Count,
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Access {
    Load(Part, usize),
    Store(Part, usize),
    FenceLoads,
    FenceStores,
}

/// Ordered memory; every access of every part goes into one record.
#[derive(Clone)]
struct Recorded {
    part: Part,
    words: Rc<RefCell<Vec<u32>>>,
    record: Rc<RefCell<Vec<Access>>>,
}

impl Recorded {
    /// The memories of a ring of `dwords`.
    fn of(dwords: usize) -> [Recorded; 3] {
        let record: Rc<RefCell<Vec<Access>>> = Rc::default();
        [(Part::Lines, dwords), (Part::Count, 1), (Part::Flush, 1)].map(|(part, dwords)| Recorded {
            part,
            words: Rc::new(RefCell::new(vec![0; dwords])),
            record: record.clone(),
        })
    }

    fn taken(&self) -> Vec<Access> {
        self.record.take()
    }
}

impl RingMemory for Recorded {
    fn dwords(&self) -> usize {
        self.words.borrow().len()
    }
    fn load(&self, dword: usize) -> u32 {
        self.record.borrow_mut().push(Access::Load(self.part, dword));
        self.words.borrow()[dword]
    }
    fn store(&self, dword: usize, value: u32) {
        self.record.borrow_mut().push(Access::Store(self.part, dword));
        self.words.borrow_mut()[dword] = value;
    }
    fn fence_loads(&self) {
        self.record.borrow_mut().push(Access::FenceLoads);
    }
    fn fence_stores(&self) {
        self.record.borrow_mut().push(Access::FenceStores);
    }
}

/// True if `fence` separates each access that `before` matches from each later one that `after` matches; there must
/// be such a pair.
fn parted(
    record: &[Access],
    before: impl Fn(&Access) -> bool,
    fence: Access,
    after: impl Fn(&Access) -> bool,
) -> bool {
    let (mut open, mut pairs) = (false, 0);
    let mut seen = false;
    for access in record {
        if *access == fence {
            open = false;
        } else if after(access) {
            if open {
                return false;
            }
            pairs += usize::from(seen);
        }
        if before(access) {
            (open, seen) = (true, true);
        }
    }
    pairs > 0
}

fn is_line_load(access: &Access) -> bool {
    matches!(access, Access::Load(Part::Lines, _))
}

fn is_header(access: &Access) -> bool {
    matches!(access, Access::Store(Part::Lines, dword) if dword % 16 == 0)
}

fn is_rest(access: &Access) -> bool {
    matches!(access, Access::Store(Part::Lines, dword) if dword % 16 != 0)
}

fn is_count_store(access: &Access) -> bool {
    matches!(access, Access::Store(Part::Count, _))
}

fn is_flush(access: &Access) -> bool {
    matches!(access, Access::Store(Part::Flush, _))
}

#[test]
fn what_was_taken_is_loaded_before_it_is_counted() {
    let [lines, count, flush] = Recorded::of(2 * 16);
    let mut host = OutputRing::<Said, _>::new(lines.clone(), count.clone(), Some(flush), 1).expect("valid");
    let mut device = DeviceOutput::new(lines.clone(), count, 0, 1);
    assert!(device.put(&line(1), 0));
    lines.taken();
    assert!(host.poll().expect("sound").is_some());
    let record = lines.taken();
    assert!(parted(&record, is_line_load, Access::FenceStores, is_count_store), "{record:?}");
    assert!(parted(&record, is_count_store, Access::FenceStores, is_flush), "{record:?}");
    // The header is read again after the rest was loaded.
    let is_header_load = |access: &Access| *access == Access::Load(Part::Lines, 0);
    let is_rest_load = |access: &Access| is_line_load(access) && !is_header_load(access);
    assert!(parted(&record, is_rest_load, Access::FenceLoads, is_header_load), "{record:?}");
}

#[test]
fn what_is_told_is_loaded_before_a_line_is_used_again() {
    let [lines, count, flush] = Recorded::of(2 * 16);
    let mut host = InputRing::<Said, _>::new(lines.clone(), count.clone(), Some(flush)).expect("valid");
    let mut device = DeviceInput::new(lines.clone(), count, 0, 1);
    (0..2).for_each(|_| host.push(&said(1)).expect("room"));
    device.take().expect("an entry");
    device.tell();
    lines.taken();
    host.push(&said(1)).expect("room for one");
    let record = lines.taken();
    let is_count_load = |access: &Access| matches!(access, Access::Load(Part::Count, _));
    assert!(parted(&record, is_count_load, Access::FenceLoads, is_rest), "{record:?}");
    assert!(parted(&record, is_rest, Access::FenceStores, is_header), "{record:?}");
    assert!(parted(&record, is_header, Access::FenceStores, is_flush), "{record:?}");
}

#[test]
fn rings_are_cleared_before_they_are_used() {
    let [lines, count, flush] = Recorded::of(2 * 16);
    InputRing::<Said, _>::new(lines.clone(), count.clone(), Some(flush.clone())).expect("valid");
    let record = lines.taken();
    assert!(parted(&record, is_rest, Access::FenceStores, is_count_store), "{record:?}");
    assert!(parted(&record, is_count_store, Access::FenceStores, is_flush), "{record:?}");
    OutputRing::<Said, _>::new(lines.clone(), count, Some(flush), 1).expect("valid");
    let record = lines.taken();
    assert!(parted(&record, is_rest, Access::FenceStores, is_count_store), "{record:?}");
    assert!(parted(&record, is_count_store, Access::FenceStores, is_flush), "{record:?}");
}

/// Every word of a control line is stored between two fences, pages before their serial, and a flush ends each
/// call.
#[test]
fn a_word_to_a_slot_stands_between_fences() {
    let [lines, _, flush] = Recorded::of(2 * 16);
    let at = ControlDwords {
        cancel_serial: 0,
        preempt_serial: 1,
        hold_serial: 2,
        granted_pages: 3,
        granted_serial: 4,
    };
    let mut control = ControlLines::new(lines.clone(), at, Some(flush)).expect("long enough");
    let record = lines.taken();
    assert!(parted(&record, is_rest, Access::FenceStores, is_flush), "{record:?}");
    let serial = NonZeroU32::new(9).expect("not zero");
    let mut line = control.slot(1).expect("there is such a slot");
    let mut said = |words: &[usize], call: &mut dyn FnMut(&mut zrt_ring::token_ring::ControlLine<'_, _>)| {
        call(&mut line);
        let word =
            |word: &usize| [Access::FenceStores, Access::Store(Part::Lines, 16 + word), Access::FenceStores];
        let mut expected: Vec<Access> = words.iter().flat_map(word).collect();
        expected.push(Access::Store(Part::Flush, 0));
        assert_eq!(lines.taken(), expected);
    };
    said(&[0, 1, 2], &mut |line| line.renew());
    said(&[0], &mut |line| line.cancel(serial));
    said(&[1], &mut |line| line.preempt(serial));
    said(&[1], &mut |line| line.run());
    said(&[2], &mut |line| line.hold(serial));
    said(&[2], &mut |line| line.release());
    said(&[3, 4], &mut |line| line.grant(serial, 2).expect("the first grant"));
    said(&[3], &mut |line| line.grant(serial, 3).expect("it grows"));
}
