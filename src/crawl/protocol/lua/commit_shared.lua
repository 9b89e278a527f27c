-- Commits one batch to a filter in Redis: tests the items, adds the unseen items to the filter,
-- pushes them, and advances the head, in one step. Other programs that share the filter see all
-- changes or none. Redis does not roll a script back, so every possible failure comes before the
-- first write. Only new bits and members are written: a seen item adds nothing to the append-only
-- file.
-- KEYS: lease, state, claimed items, sink, rejected, keys of the filter
-- ARGV: token, seq, commit_id, next seq, next commit_id, number of claimed items, number of items
--       of the batch, maximum number of rejects (0: no limit), numbers of items to test and of
--       extras, the places, the items, the extras, the rejects
-- The function `judge`, which belongs to the kind of filter, reads the places and the extras.
-- Answers 'ok', length of the sink, number of rejects, number of dropped rejects, number of unseen
--         items.
local lease, state, claimed, sink, rejected = unpack(KEYS, 1, 5)
local token, seq, commit_id, next_seq, next_commit_id = unpack(ARGV, 1, 5)
local before, count, rejected_max = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local judged, extra, places = tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11]
local first_item = 12
local first_extra = first_item + judged
local first_reject = first_extra + extra
local rejects = #ARGV - first_reject + 1

local filter = {}
for index = 6, #KEYS do
    filter[index - 5] = KEYS[index]
end
local refusal = lease_refusal(lease, token)
    or head_refusal(state, seq, commit_id)
    or source_refusal(claimed, before)
    or sink_push_refusal(sink)
    or rejects_refusal(rejected, rejects)
    or filter_refusal(filter)
    or permission_refusal('HSET', state, 'seq', next_seq, 'commit_id', next_commit_id)
if refusal then
    return refusal
end
-- These commands also refuse keys of another type.
local sink_len = sink_length(sink)
local rejected_len = redis.call('LLEN', rejected)
local unseen_before = tonumber(redis.call('HGET', state, 'unseen') or 0) or 0
local onward, unseen, remember = judge(
    filter, places, first_item, first_extra - 1, first_extra)

-- After this line nothing can fail.
remember()
for from = 1, #onward, CHUNK do
    sink_push(sink, onward, from, math.min(from + CHUNK - 1, #onward))
end
push_rejects(rejected, first_reject)
source_commit(claimed, count)
redis.call(
    'HSET', state, 'seq', next_seq, 'commit_id', next_commit_id,
    'unseen', string.format('%.0f', unseen_before + unseen))
local dropped
rejected_len, dropped =
    bound_rejects(rejected, rejected_len + rejects, rejects > 0 and rejected_max or 0)
-- A push need not make a sorted set longer, so the script asks for the length again.
if #onward > 0 then
    sink_len = sink_length(sink)
end
return {'ok', sink_len, rejected_len, dropped, unseen}
