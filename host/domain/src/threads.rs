//! Work on several threads, in a process to which the system may give no more of them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Does each of `parts` on a thread of its own, the calling one among them. Where the system starts no more
/// threads, those that run do the rest, if need be the calling one alone. The outcomes are in the order of
/// the parts; that of a part that panicked is what it panicked with.
pub fn in_parallel<T, W>(parts: impl IntoIterator<Item = W>) -> Vec<thread::Result<T>>
where
    T: Send,
    W: FnOnce() -> T + Send,
{
    let parts: Vec<W> = parts.into_iter().collect();
    let threads = parts.len();
    let waiting = Mutex::new(parts.into_iter().enumerate());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut done = Vec::new();
        while let Some((number, part)) = next() {
            done.push((number, catch_unwind(AssertUnwindSafe(part))));
        }
        done
    };
    let work = &work;
    let mut done = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let started: Vec<_> = (1..threads).map_while(start).collect();
        let mut done = work();
        for thread in started {
            done.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// What a thread panicked with, in words; empty where it says none.
#[must_use]
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn outcomes_are_in_the_order_of_the_parts() {
        // None ends before all have begun.
        let all = &Barrier::new(4);
        let part = |part: i32| {
            move || {
                all.wait();
                part * part
            }
        };
        let done = in_parallel((0..4).map(part));
        let done: Vec<i32> = done.into_iter().map(Result::unwrap).collect();
        assert_eq!(done, [0, 1, 4, 9]);
        assert!(in_parallel(Vec::<fn()>::new()).is_empty());
    }

    #[test]
    fn a_part_that_panics_takes_no_other_with_it() {
        let done = in_parallel((0..9).map(|part| {
            move || match part {
                4 => panic!("number {part}"),
                part => part,
            }
        }));
        let words = |panic: Box<dyn Any + Send>| panic_text(&*panic);
        let done: Vec<Result<i32, String>> =
            done.into_iter().map(|part| part.map_err(words)).collect();
        for (number, part) in (0..).zip(done) {
            let expected = if number == 4 { Err("number 4".to_owned()) } else { Ok(number) };
            assert_eq!(part, expected);
        }
    }

    #[test]
    fn the_words_of_a_panic_are_found() {
        let panic = catch_unwind(|| panic!("number {}", 7)).unwrap_err();
        assert_eq!(panic_text(&*panic), "number 7");
        let panic = catch_unwind(|| std::panic::panic_any(7)).unwrap_err();
        assert_eq!(panic_text(&*panic), "");
    }
}
