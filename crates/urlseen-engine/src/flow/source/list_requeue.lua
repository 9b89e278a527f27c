-- Pushes to a Redis list that is a source. TAKE_FROM ('left' or 'right') is the end from which
-- items are taken. PUSH is the command that pushes to the other end.

local TO = TAKE_FROM == 'left' and 'RIGHT' or 'LEFT'

local function source_push_refusal(source, oversize)
    return type_refusal(source, 'list')
        or permission_refusal(PUSH, source, '')
        or oversize and permission_refusal('LMOVE', oversize, source, 'LEFT', TO)
        or nil
end

local function source_push(source, first, last)
    for from = first, last, CHUNK do
        redis.call(PUSH, source, unpack(ARGV, from, math.min(from + CHUNK - 1, last)))
    end
end

local function source_push_from(source, oversize)
    redis.call('LMOVE', oversize, source, 'LEFT', TO)
end
