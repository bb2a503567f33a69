//! Whatever a caller passes to the constructors that take counts and sizes, the result is a value or a typed error
//! with the value in it; never a panic, a wrap or more memory than the named limit.

use proptest::prelude::*;
use zrt_mem::heap::{REGION_ALIGNMENT, RegionPlanner};
use zrt_mem::pages::{COUNT_MAX, CountError, Owner};
use zrt_mem::{ByteLen, DwordLen, GpuVa, PageAllocator, SharedView};

/// Numbers of all sizes: arbitrary, small, and next to powers of two.
fn number() -> impl Strategy<Value = u64> {
    let beside = (0u32..64, -2i64..3).prop_map(|(bit, by)| (1u64 << bit).wrapping_add_signed(by));
    prop_oneof![any::<u64>(), 0u64..70, beside]
}

/// Refused counts and small ones; the values between would take up to a gibibyte.
fn count() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..1000, Just(COUNT_MAX + 1), COUNT_MAX + 1.., Just(u32::MAX)]
}

proptest! {
    #[test]
    fn an_allocator_has_the_pages_asked_for_or_says_how_many_it_may_have(
        pages in count(),
        shares in count(),
        seed in any::<u64>(),
        wanted in number(),
        slot in any::<u32>(),
    ) {
        let mut allocator = match PageAllocator::with_share_limit(pages, shares) {
            Ok(allocator) => allocator.with_order_seed(seed),
            Err(error) => {
                prop_assert_eq!(error, CountError::TooMany { pages, shares });
                prop_assert!(pages > COUNT_MAX || shares > COUNT_MAX);
                prop_assert!(error.to_string().contains(&pages.to_string()));
                return Ok(());
            }
        };
        prop_assert_eq!((allocator.page_count(), allocator.free_count()), (pages, pages));
        let (owner, wanted) = (Owner { slot, serial: 1 }, wanted as u32);
        let granted = allocator.grant(owner, wanted, &mut Vec::new());
        prop_assert_eq!(granted.is_ok(), wanted <= pages);
        prop_assert!(allocator.release(wanted, owner).is_err() || wanted < pages);
        prop_assert!(allocator.share(wanted, owner).is_err() || wanted < pages);
        allocator.release_all(owner);
        prop_assert_eq!(allocator.free_count(), pages);
    }

    #[test]
    fn regions_lie_behind_each_other_or_nowhere(lengths in proptest::collection::vec(number(), 0..8)) {
        let mut planner = RegionPlanner::new();
        let mut end = 0u128;
        for len in lengths {
            let start = end.next_multiple_of(u128::from(REGION_ALIGNMENT));
            match planner.push(ByteLen(len)) {
                Some(region) => {
                    prop_assert_eq!((u128::from(region.offset.0), region.len.0), (start, len));
                    end = start + u128::from(len);
                }
                None => prop_assert!(start + u128::from(len) > u128::from(u64::MAX)),
            }
        }
        let whole = end.next_multiple_of(u128::from(REGION_ALIGNMENT));
        prop_assert_eq!(planner.len().map(|len| u128::from(len.0)), Some(whole).filter(|len| *len <= u128::from(u64::MAX)));
    }

    #[test]
    fn lengths_and_addresses_do_not_wrap(value in number(), by in number(), bit in 0u32..64) {
        let (wide, alignment) = (u128::from(value), 1u64 << bit);
        let fits = |sum: u128| u64::try_from(sum).ok();
        prop_assert_eq!(GpuVa(value).offset(ByteLen(by)).map(|va| va.0), fits(wide + u128::from(by)));
        let up = ByteLen(value).align_up(alignment).map(|len| len.0);
        prop_assert_eq!(up, fits(wide.next_multiple_of(u128::from(alignment))));
        prop_assert_eq!(DwordLen(value as u32).bytes().0, u64::from(value as u32) * 4);
    }

    #[test]
    fn views_have_the_bytes_asked_for(len in 0usize..70_000) {
        let view = SharedView::zeroed(len).expect("memory");
        prop_assert!(view.len() == len && (0..len).all(|at| view.load_u8(at) == 0));
    }
}
