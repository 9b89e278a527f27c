-- Commits one batch to a sink whose pushes cannot be taken back. The emitted items are arguments;
-- the script pushes them once nothing can fail any more.
-- Redis does not roll a script back, so all that can fail is done before the first write.
-- KEYS: lease, state, claimed items, sink, rejected, oversize
-- ARGV: token, seq, commit_id, next seq, next commit_id, the source's place and span,
--       most rejects (0: no limit), number of emitted items, number of rejects, those items,
--       those rejects, then mark and reject of each item that is too large to be in one
-- Answers 'ok', length of sink, length of rejected, rejects dropped.
local lease, state, claimed, sink, rejected, oversize = unpack(KEYS)
local token, seq, commit_id, next_seq, next_commit_id = unpack(ARGV, 1, 5)
local before, span = ARGV[6], ARGV[7]
local rejected_max, onward, rejects = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local first_item = 11
local first_reject = first_item + onward
local first_large = first_reject + rejects
local large = (#ARGV - first_large + 1) / 2

local refusal = lease_refusal(lease, token)
    or head_refusal(state, seq, commit_id)
    or source_refusal(claimed, state, before, span, oversize, rejects + large)
    or sink_push_refusal(sink)
    or rejects_refusal(rejected, oversize, rejects, large)
    or permission_refusal('HSET', state, 'seq', next_seq, 'commit_id', next_commit_id)
if refusal then
    return refusal
end
-- These refuse keys of another type, too.
local sink_len = sink_length(sink)
local rejected_len, large_len = rejects_lengths(rejected, oversize)

-- From here on nothing fails.
for from = first_item, first_reject - 1, CHUNK do
    sink_push(sink, ARGV, from, math.min(from + CHUNK, first_reject) - 1)
end
push_rejects(rejected, first_reject, first_large - 1)
source_commit(claimed, state, span, oversize, first_large)
redis.call('HSET', state, 'seq', next_seq, 'commit_id', next_commit_id)
local dropped
rejected_len, dropped = bound_rejects(
    rejected, oversize, rejected_len + rejects, large_len + large,
    rejects + large > 0 and rejected_max or 0)
if onward > 0 then
    sink_len = sink_length(sink)
end
return {'ok', sink_len, rejected_len, dropped}
