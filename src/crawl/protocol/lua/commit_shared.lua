-- Commits one batch to a filter in Redis: tests the items, adds the unseen items to the filter,
-- pushes them, and advances the head, in one step. Other programs that share the filter see all
-- changes or none. Only new bits and members are written: a seen item adds nothing to the
-- append-only file.
-- Further KEYS: keys of the filter
-- Further ARGV: numbers of items to test and of extras, the places, the items, the extras, the
--       rejects
-- The function `judge`, which belongs to the kind of filter, reads the places and the extras.
-- Also answers the number of unseen items.
local judged, extra, places = tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11]
local first_item = 12
local first_extra = first_item + judged
local first_reject = first_extra + extra

local filter = {}
for index = 6, #KEYS do
    filter[index - 5] = KEYS[index]
end
local refusal = commit_refusal(first_reject) or sink_push_refusal(sink) or filter_refusal(filter)
if refusal then
    return refusal
end
local sink_len, rejected_len = lengths()
local unseen_before = tonumber(redis.call('HGET', state, 'unseen') or 0) or 0
local onward, unseen, remember = judge(
    filter, places, first_item, first_extra - 1, first_extra)

-- After this line nothing can fail.
remember()
for from = 1, #onward, CHUNK do
    sink_push(sink, onward, from, math.min(from + CHUNK - 1, #onward))
end
-- A push need not make a sorted set longer, so the script asks for the length again.
if #onward > 0 then
    sink_len = sink_length(sink)
end
local answer = complete_commit(
    first_reject, sink_len, rejected_len, 'unseen', string.format('%.0f', unseen_before + unseen))
answer[5] = unseen
return answer
