-- What both kinds of commits share: the head, and the list of rejects.

local function head_refusal(state, seq, tip)
    local head = redis.call('HMGET', state, 'seq', 'tip')
    if head[1] ~= seq or head[2] ~= tip then
        return {'head', head[1] or '', head[2] or ''}
    end
end

local function rejects_refusal(rejected, count)
    return count > 0 and (
        permission_refusal('RPUSH', rejected, '')
        or permission_refusal('LTRIM', rejected, 0, -1)) or nil
end

-- Pushes the arguments from `first` on to a list that has `length` rejects and may have `most` (0:
-- no bound). Answers how many there are then, and how many were dropped.
local function push_rejects(rejected, length, first, most)
    local count, dropped = #ARGV - first + 1, 0
    for from = first, #ARGV, CHUNK do
        redis.call('RPUSH', rejected, unpack(ARGV, from, math.min(from + CHUNK - 1, #ARGV)))
    end
    length = length + count
    if count > 0 and most > 0 and length > most then
        dropped = length - most
        redis.call('LTRIM', rejected, dropped, -1)
    end
    return length - dropped, dropped
end
