//! Numbers that ascend: which of them can be believed, and what those that cannot must have been.

/// Stands for a number that is not known. It is no id and no row.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// Makes unknown what stands in the way of an ascending order: of two numbers out of order, the earlier one if
/// the rest ascends without it, otherwise the later one.
pub(super) fn believe(numbers: &mut [u64]) {
    // The last two that are believed.
    let (mut before, mut last) = (None, None);
    for at in 0..numbers.len() {
        let number = numbers[at];
        let above = |other: Option<usize>| other.is_none_or(|other| numbers[other] < number);
        if number == UNKNOWN {
            continue;
        }
        if above(last) {
            (before, last) = (last, Some(at));
        } else if above(before) {
            numbers[last.expect("above none")] = UNKNOWN;
            last = Some(at);
        } else {
            numbers[at] = UNKNOWN;
        }
    }
}

/// Finds unknown numbers between known ones that leave just as many between them. All are below `end`, if
/// that is known. Gives how many were found.
pub(super) fn find_between(numbers: &mut [u64], end: Option<u64>) -> usize {
    let (mut at, mut found) = (0, 0);
    while at < numbers.len() {
        let unknown = numbers[at..].iter().take_while(|&&n| n == UNKNOWN).count();
        if unknown == 0 {
            at += 1;
            continue;
        }
        let low = at.checked_sub(1).map_or(0, |before| numbers[before] + 1);
        let high = numbers.get(at + unknown).copied().or(end);
        let run = &mut numbers[at..at + unknown];
        if high.and_then(|high| high.checked_sub(low)) == Some(unknown as u64) {
            run.iter_mut().zip(low..).for_each(|(n, found)| *n = found);
            found += unknown;
        }
        at += unknown;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const U: u64 = UNKNOWN;

    fn believed<const N: usize>(mut numbers: [u64; N]) -> [u64; N] {
        believe(&mut numbers);
        numbers
    }

    #[test]
    fn one_wrong_number_costs_one() {
        assert_eq!(believed([0, 1, 2, 3]), [0, 1, 2, 3]);
        assert_eq!(believed([0, 900, 2, 3]), [0, U, 2, 3]);
        assert_eq!(believed([900, 1, 2, 3]), [U, 1, 2, 3]);
        assert_eq!(believed([5, 6, 0, 8]), [5, 6, U, 8]);
        assert_eq!(believed([5, 6, 7, 0]), [5, 6, 7, U]);
        assert_eq!(believed([5, 6, 6, 7]), [5, U, 6, 7]);
        assert_eq!(believed([5, U, 900, 7, U, 8]), [5, U, U, 7, U, 8]);
    }

    #[test]
    fn numbers_are_found_only_where_there_is_one_way() {
        let found = |mut numbers: [u64; 5], end| (find_between(&mut numbers, end), numbers);
        assert_eq!(found([0, U, U, 3, 4], None), (2, [0, 1, 2, 3, 4]));
        assert_eq!(found([0, U, U, 4, 5], None), (0, [0, U, U, 4, 5]));
        assert_eq!(found([U, 1, 2, 3, U], None), (1, [0, 1, 2, 3, U]));
        assert_eq!(found([U, 1, 2, 3, U], Some(5)), (2, [0, 1, 2, 3, 4]));
        assert_eq!(found([U, U, U, U, U], Some(6)), (0, [U; 5]));
        assert_eq!(found([3, U, 2, 3, U], Some(1)), (0, [3, U, 2, 3, U]));
    }
}
