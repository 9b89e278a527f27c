-- Functions that all commits share: the check of the head, and the list of rejects.

local function head_refusal(state, seq, commit_id)
    local head = redis.call('HMGET', state, 'seq', 'commit_id')
    if head[1] ~= seq or head[2] ~= commit_id then
        return {'head', head[1] or '', head[2] or ''}
    end
end

-- Refuses if there are rejects and the user may not write to their list.
local function rejects_refusal(rejected, rejects)
    return rejects > 0 and (
        permission_refusal('RPUSH', rejected, '')
        or permission_refusal('LTRIM', rejected, 0, -1)) or nil
end

-- Pushes the arguments from `first` on to the list of rejects.
local function push_rejects(rejected, first)
    for from = first, #ARGV, CHUNK do
        redis.call('RPUSH', rejected, unpack(ARGV, from, math.min(from + CHUNK - 1, #ARGV)))
    end
end

-- Drops the oldest of `length` rejects if there are more than `most` (0: no limit). Answers the
-- number of rejects left, and the number of dropped rejects.
local function bound_rejects(rejected, length, most)
    local dropped = most > 0 and math.max(length - most, 0) or 0
    if dropped > 0 then
        redis.call('LTRIM', rejected, dropped, -1)
    end
    return length - dropped, dropped
end
