-- Commits one batch to a sink whose pushes cannot be taken back: items that go on come along as
-- arguments, and are pushed once nothing can fail any more.
-- Redis does not roll a script back, so all that can fail is done before the first write.
-- KEYS: lease, state, taken, sink, rejected
-- ARGV: token, seq, tip, next seq, next tip, length of taken, items in the batch, longest list of
--       rejects (0: no bound), items that go on, those items, the rejects
-- Answers 'ok', length of sink, length of rejected, rejects dropped.
local lease, state, taken, sink, rejected = unpack(KEYS)
local token, seq, tip, next_seq, next_tip = unpack(ARGV, 1, 5)
local taken_len, count = tonumber(ARGV[6]), tonumber(ARGV[7])
local rejected_max, onward = tonumber(ARGV[8]), tonumber(ARGV[9])
local first_item = 10
local first_reject = first_item + onward
local rejects = #ARGV - first_reject + 1

local refusal = lease_refusal(lease, token)
    or head_refusal(state, seq, tip)
    or source_refusal(taken, taken_len)
    or sink_push_refusal(sink)
    or rejects_refusal(rejected, rejects)
    or permission_refusal('HSET', state, 'seq', next_seq, 'tip', next_tip)
if refusal then
    return refusal
end
-- These refuse keys of another type, too.
local sink_len, rejected_len = sink_length(sink), redis.call('LLEN', rejected)

-- From here on nothing fails.
for from = first_item, first_reject - 1, CHUNK do
    sink_push(sink, ARGV, from, math.min(from + CHUNK, first_reject) - 1)
end
local dropped
rejected_len, dropped = push_rejects(rejected, rejected_len, first_reject, rejected_max)
source_remove(taken, count)
redis.call('HSET', state, 'seq', next_seq, 'tip', next_tip)
if onward > 0 then
    sink_len = sink_length(sink)
end
return {'ok', sink_len, rejected_len, dropped}
