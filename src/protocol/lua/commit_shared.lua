-- Commits one batch to a filter that is in Redis: judges its items, remembers those that are
-- unseen, pushes them, and does the rest, all at once. Whoever else shares the filter sees all of it
-- or nothing.
-- Redis does not roll a script back, so all that can fail is done before the first write. Only what
-- was not there is written: a seen item adds nothing to the append-only file.
-- KEYS: lease, state, taken, sink, rejected, those of the filter
-- ARGV: token, seq, tip, next seq, next tip, length of taken, items in the batch, longest list of
--       rejects (0: no bound), items to be judged, extras, places, those items, the extras, the
--       rejects
-- Places and extras are what `judge` goes by.
-- Answers 'ok', length of sink, length of rejected, rejects dropped, items found unseen.
local lease, state, taken, sink, rejected = unpack(KEYS, 1, 5)
local token, seq, tip, next_seq, next_tip = unpack(ARGV, 1, 5)
local taken_len, count, rejected_max = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
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
    or head_refusal(state, seq, tip)
    or source_refusal(taken, taken_len)
    or sink_push_refusal(sink)
    or rejects_refusal(rejected, rejects)
    or filter_refusal(filter)
    or permission_refusal('HSET', state, 'seq', next_seq, 'tip', next_tip)
if refusal then
    return refusal
end
-- These refuse keys of another type, too.
local sink_len, rejected_len = sink_length(sink), redis.call('LLEN', rejected)
local unseen_before = tonumber(redis.call('HGET', state, 'unseen') or 0) or 0
local onward, unseen, remember = judge(
    filter, places, first_item, first_extra - 1, first_extra)

-- From here on nothing fails.
remember()
for from = 1, #onward, CHUNK do
    sink_push(sink, onward, from, math.min(from + CHUNK - 1, #onward))
end
local dropped
rejected_len, dropped = push_rejects(rejected, rejected_len, first_reject, rejected_max)
source_remove(taken, count)
redis.call(
    'HSET', state, 'seq', next_seq, 'tip', next_tip,
    'unseen', string.format('%.0f', unseen_before + unseen))
-- What was in the sink before may be no more than before.
if #onward > 0 then
    sink_len = sink_length(sink)
end
return {'ok', sink_len, rejected_len, dropped, unseen}
