-- Template of all commits: the checks, then the writes. Redis does not roll a script back, so every
-- possible failure is checked before the first write.
-- KEYS of all commits: lease, state, claimed items, sink, rejected
-- ARGV of all commits: token, seq, commit_id, next seq, next commit_id, number of claimed items,
--       number of items of the batch, maximum number of rejects (0: no limit)
-- All commits answer 'ok', length of the sink, number of rejects, number of dropped rejects.
local lease, state, claimed, sink, rejected = unpack(KEYS, 1, 5)
local token, seq, commit_id, next_seq, next_commit_id = unpack(ARGV, 1, 5)
local before, count, rejected_max = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])

local function head_refusal()
    local head = redis.call('HMGET', state, 'seq', 'commit_id')
    if head[1] ~= seq or head[2] ~= commit_id then
        return {'head', head[1] or '', head[2] or ''}
    end
end

-- The checks of a batch whose rejects are the arguments from `first_reject` on.
local function commit_refusal(first_reject)
    return lease_refusal(lease, token)
        or head_refusal()
        or source_refusal(claimed, before)
        or rejects_refusal(rejected, #ARGV - first_reject + 1)
        or permission_refusal('HSET', state, 'seq', next_seq, 'commit_id', next_commit_id)
end

-- Answers the lengths of the sink and of the list of rejects. Also refuses keys of another type.
local function lengths()
    return sink_length(sink), redis.call('LLEN', rejected)
end

-- The writes after the push of the items, with further fields of the state. Nothing can fail here.
-- `sink_len` is the length of the sink, and `rejected_len` that of the rejects before this batch.
local function complete_commit(first_reject, sink_len, rejected_len, ...)
    push_rejects(rejected, first_reject)
    source_commit(claimed, count)
    redis.call('HSET', state, 'seq', next_seq, 'commit_id', next_commit_id, ...)
    local rejects, dropped = #ARGV - first_reject + 1, 0
    if rejects > 0 and rejected_max > 0 then
        dropped = math.max(rejected_len + rejects - rejected_max, 0)
    end
    if dropped > 0 then
        redis.call('LTRIM', rejected, dropped, -1)
    end
    return {'ok', sink_len, rejected_len + rejects - dropped, dropped}
end
