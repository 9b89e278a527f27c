-- Commits one batch. The emitted items are arguments, and the script pushes them after every check.
-- Further ARGV: number of emitted items, the emitted items, the rejects
local onward, first_item = tonumber(ARGV[9]), 10
local first_reject = first_item + onward

local refusal = commit_refusal(first_reject) or sink_push_refusal(sink)
if refusal then
    return refusal
end
local sink_len, rejected_len = lengths()

-- After this line nothing can fail.
for from = first_item, first_reject - 1, CHUNK do
    sink_push(sink, ARGV, from, math.min(from + CHUNK, first_reject) - 1)
end
if onward > 0 then
    sink_len = sink_length(sink)
end
return complete_commit(first_reject, sink_len, rejected_len)
