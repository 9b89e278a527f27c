-- Commits one batch. The emitted items are arguments, and the script pushes them after every check.
-- Redis does not roll a script back, so every possible failure is checked before the first write.
-- KEYS: lease, state, claimed items, sink, rejected
-- ARGV: token, seq, commit_id, next seq, next commit_id, number of claimed items, number of items
--       of the batch, maximum number of rejects (0: no limit), number of emitted items, the
--       emitted items, the rejects
-- Answers 'ok', length of the sink, number of rejects, number of dropped rejects.
local lease, state, claimed, sink, rejected = unpack(KEYS)
local token, seq, commit_id, next_seq, next_commit_id = unpack(ARGV, 1, 5)
local before, count = ARGV[6], tonumber(ARGV[7])
local rejected_max, onward = tonumber(ARGV[8]), tonumber(ARGV[9])
local first_item = 10
local first_reject = first_item + onward
local rejects = #ARGV - first_reject + 1

local refusal = lease_refusal(lease, token)
    or head_refusal(state, seq, commit_id)
    or source_refusal(claimed, before)
    or sink_push_refusal(sink)
    or rejects_refusal(rejected, rejects)
    or permission_refusal('HSET', state, 'seq', next_seq, 'commit_id', next_commit_id)
if refusal then
    return refusal
end
-- These commands also refuse keys of another type.
local sink_len = sink_length(sink)
local rejected_len = redis.call('LLEN', rejected)

-- After this line nothing can fail.
for from = first_item, first_reject - 1, CHUNK do
    sink_push(sink, ARGV, from, math.min(from + CHUNK, first_reject) - 1)
end
push_rejects(rejected, first_reject)
source_commit(claimed, count)
redis.call('HSET', state, 'seq', next_seq, 'commit_id', next_commit_id)
local dropped
rejected_len, dropped =
    bound_rejects(rejected, rejected_len + rejects, rejects > 0 and rejected_max or 0)
if onward > 0 then
    sink_len = sink_length(sink)
end
return {'ok', sink_len, rejected_len, dropped}
