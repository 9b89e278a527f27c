//! Replies to questions about fingerprints.

use super::command::ReplyShape;
use super::reply::Reply;
use urlseen_engine::engine::{Answer, Wanted};

/// Error of RedisBloom for a filter that is full.
const FULL: &str = "ERR non scaling filter is full";

/// Builds the reply to a command from the answers for its members.
pub(super) fn reply(shape: ReplyShape, wanted: Wanted, answers: &[Answer]) -> Reply {
    // `BF.ADD` reports 1 for a new member, and `BF.EXISTS` reports 1 for a present member.
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
        Reply::count(count as u64)
    };
    let first = answers.first().copied().unwrap_or(Answer::Unseen);
    match shape {
        ReplyShape::Bool => bloom(first),
        ReplyShape::Bools => {
            // As in RedisBloom, the reply ends with the first member that had no room.
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
            "ERR the number of forgotten fingerprints has reached its maximum (forget.max_len): \
             some of the forgotten URLs must pass again first",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Answer::{Full, Seen, Unseen};

    #[test]
    fn adding_reports_new_members_and_testing_reports_present_ones() {
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
    fn the_reply_ends_with_the_first_member_without_room() {
        let full = || Reply::error(FULL);
        let said = reply(ReplyShape::Bools, Wanted::Add, &[Unseen, Full, Full]);
        assert_eq!(said, Reply::Array(vec![Reply::Bool(true), full()]));
        assert_eq!(reply(ReplyShape::Added, Wanted::Add, &[Unseen, Full]), full());
    }
}
