//! How answers about fingerprints become a reply.

use super::command::ReplyShape;
use super::reply::Reply;
use urlseen_engine::engine::{Answer, Wanted};

/// What RedisBloom says where a filter can take no more.
const FULL: &str = "ERR non scaling filter is full";

/// The reply to a command that wanted for each of its members what was answered.
pub(super) fn reply(shape: ReplyShape, wanted: Wanted, answers: &[Answer]) -> Reply {
    // `BF.ADD` says whether something is new, `BF.EXISTS` whether it is there.
    let is = |answer: Answer| match wanted {
        Wanted::Add => answer == Answer::Unseen,
        Wanted::Test | Wanted::Forget => answer == Answer::Seen,
    };
    let bloom = |answer: Answer| match answer {
        Answer::Full => Reply::error(FULL),
        answer => Reply::Bool(is(answer)),
    };
    let count = |full: &str| {
        if answers.contains(&Answer::Full) {
            return Reply::error(full);
        }
        let count = answers.iter().filter(|&&answer| is(answer)).count();
        super::filter::number(count as u64)
    };
    let first = answers.first().copied().unwrap_or(Answer::Unseen);
    match shape {
        ReplyShape::Bool => bloom(first),
        ReplyShape::Bools => {
            // What follows on the first that had no room is not said, as RedisBloom has it.
            let end = answers.iter().position(|&answer| answer == Answer::Full);
            let said = &answers[..end.map_or(answers.len(), |end| end + 1)];
            Reply::Array(said.iter().copied().map(bloom).collect())
        }
        ReplyShape::Number => Reply::Number(i64::from(is(first))),
        ReplyShape::Numbers => {
            let all = answers.iter().map(|&answer| Reply::Number(i64::from(is(answer))));
            Reply::Array(all.collect())
        }
        ReplyShape::Added => count(FULL),
        ReplyShape::Removed => count(
            "ERR as many fingerprints are forgotten as forget.max_len allows; those must pass \
             again first",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Answer::{Full, Seen, Unseen};

    #[test]
    fn adding_says_what_is_new_and_testing_what_is_there() {
        let all = [Seen, Unseen];
        let bools = |wanted| reply(ReplyShape::Bools, wanted, &all);
        let said = |first, second| Reply::Array(vec![Reply::Bool(first), Reply::Bool(second)]);
        assert_eq!(bools(Wanted::Add), said(false, true));
        assert_eq!(bools(Wanted::Test), said(true, false));
        assert_eq!(
            reply(ReplyShape::Added, Wanted::Add, &[Seen, Unseen, Unseen]),
            Reply::Number(2)
        );
        assert_eq!(reply(ReplyShape::Removed, Wanted::Forget, &[Seen, Unseen]), Reply::Number(1));
    }

    #[test]
    fn nothing_is_said_behind_the_first_that_had_no_room() {
        let full = || Reply::error(FULL);
        let said = reply(ReplyShape::Bools, Wanted::Add, &[Unseen, Full, Full]);
        assert_eq!(said, Reply::Array(vec![Reply::Bool(true), full()]));
        assert_eq!(reply(ReplyShape::Added, Wanted::Add, &[Unseen, Full]), full());
    }
}
