-- Functions that all commits share: the check of the head, and the lists of rejects.

local function head_refusal(state, seq, commit_id)
    local head = redis.call('HMGET', state, 'seq', 'commit_id')
    if head[1] ~= seq or head[2] ~= commit_id then
        return {'head', head[1] or '', head[2] or ''}
    end
end

-- Refuses if there are rejects and the user may not write to the lists of rejects.
local function rejects_refusal(rejected, oversize, rejects, large)
    return rejects + large > 0 and (
        permission_refusal('RPUSH', rejected, '')
        or permission_refusal('LTRIM', rejected, 0, -1)
        or permission_refusal('LTRIM', oversize, 0, -1)
        or permission_refusal('RPUSH', oversize, '')) or nil
end

-- Answers the number of rejects in each of the two lists. A key of another type is an error.
local function rejects_lengths(rejected, oversize)
    return redis.call('LLEN', rejected), math.floor(redis.call('LLEN', oversize) / 2)
end

-- Pushes the arguments from `first` to `last` to the list of rejects.
local function push_rejects(rejected, first, last)
    for from = first, last, CHUNK do
        redis.call('RPUSH', rejected, unpack(ARGV, from, math.min(from + CHUNK - 1, last)))
    end
end

-- Drops the oldest rejects if the two lists, of `length` and `large` rejects, have more than `most`
-- rejects together (0: no limit). Rejects of oversize items are dropped last. Answers the number of
-- rejects left, and the number of dropped rejects.
local function bound_rejects(rejected, oversize, length, large, most)
    local dropped = most > 0 and math.max(length + large - most, 0) or 0
    local first = math.min(dropped, length)
    if first > 0 then
        redis.call('LTRIM', rejected, first, -1)
    end
    if dropped > first then
        redis.call('LTRIM', oversize, 2 * (dropped - first), -1)
    end
    return length + large - dropped, dropped
end
