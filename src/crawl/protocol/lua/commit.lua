-- Ends the transaction that commits one batch. A plain command before this script has pushed the
-- emitted items to the sink: to pass each item through Lua takes four times as long. If the batch
-- may be committed, the script completes the commit. Otherwise it takes the push back. Redis serves
-- no other client in between, so no client has seen the push.
-- Redis does not roll a script back, so every possible failure is checked before the first write.
-- If memory is short, Redis refuses the whole transaction.
-- KEYS: lease, state, claimed items, sink, rejected
-- ARGV: token, seq, commit_id, next seq, next commit_id, number of claimed items, number of items
--       of the batch, number of pushed items, the last pushed item, maximum number of rejects (0:
--       no limit), the rejects
-- Answers 'ok', length of the sink, number of rejects, number of dropped rejects.
local lease, state, claimed, sink, rejected = unpack(KEYS)
local token, seq, commit_id, next_seq, next_commit_id = unpack(ARGV, 1, 5)
local before, count = ARGV[6], tonumber(ARGV[7])
local onward, last_onward, rejected_max = tonumber(ARGV[8]), ARGV[9], tonumber(ARGV[10])
local first_reject = 11
local rejects = #ARGV - first_reject + 1

local function commit()
    local refusal = lease_refusal(lease, token)
        or head_refusal(state, seq, commit_id)
        or source_refusal(claimed, before)
        or rejects_refusal(rejected, rejects)
        or permission_refusal('HSET', state, 'seq', next_seq, 'commit_id', next_commit_id)
    if refusal then
        return refusal
    end
    -- These commands also refuse keys of another type.
    local sink_len = sink_length(sink)
    local rejected_len = redis.call('LLEN', rejected)

    -- After this line nothing can fail.
    push_rejects(rejected, first_reject)
    source_commit(claimed, count)
    redis.call('HSET', state, 'seq', next_seq, 'commit_id', next_commit_id)
    local dropped
    rejected_len, dropped =
        bound_rejects(rejected, rejected_len + rejects, rejects > 0 and rejected_max or 0)
    return {'ok', sink_len, rejected_len, dropped}
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
