-- Pushes items to the source again. TAKE_FROM ('left' or 'right') is the end from which items are
-- taken: they are pushed to the other end, so that they come after all waiting items.

local PUSH = TAKE_FROM == 'left' and 'RPUSH' or 'LPUSH'

-- Refuses if items cannot be pushed.
local function source_push_refusal(source)
    return type_refusal(source, 'list') or permission_refusal(PUSH, source, '')
end

-- Pushes the arguments from `first` to `last`.
local function source_push(source, first, last)
    for from = first, last, CHUNK do
        redis.call(PUSH, source, unpack(ARGV, from, math.min(from + CHUNK - 1, last)))
    end
end
