-- Ends the transaction that commits one batch. A plain command before this script has pushed the
-- emitted items to the sink: to pass each item through Lua takes four times as long. If the batch
-- may be committed, the script completes the commit. Otherwise it takes the push back. Redis serves
-- no other client in between, so no client has seen the push.
-- If memory is short, Redis refuses the whole transaction.
-- Further ARGV: number of pushed items, the last pushed item, the rejects
local onward, last_onward, first_reject = tonumber(ARGV[9]), ARGV[10], 11

local function commit()
    local refusal = commit_refusal(first_reject)
    if refusal then
        return refusal
    end
    local sink_len, rejected_len = lengths()
    -- After this line nothing can fail.
    return complete_commit(first_reject, sink_len, rejected_len)
end

-- Redis executes a transaction to its end even if a command fails. So the push may be missing.
if onward > 0 then
    local refusal = sink_refusal(sink, last_onward)
    if refusal then
        return refusal
    end
end
local is_done, answer = pcall(commit)
if not is_done and type(answer) == 'string' then
    answer = redis.error_reply(answer)
end
if onward > 0 and answer[1] ~= 'ok' then
    sink_take_back(sink, onward)
end
return answer
