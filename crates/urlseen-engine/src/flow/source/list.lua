-- A Redis list as source. TAKE_FROM ('left' or 'right') is the end from which items are taken. A
-- place is the number of items after it, and a span is the number of items of a batch. The mark of
-- an item is its number in the batch, counted from 0.

local function source_refusal(claimed, state, before, span, oversize, rejects)
    local found = redis.call('LLEN', claimed)
    if found ~= tonumber(before) then
        return {'source', 'the list of claimed items: it now holds ' .. found .. ' items'}
    end
    return permission_refusal('LTRIM', claimed, 0, -1)
        or rejects > 0 and permission_refusal('LMOVE', claimed, oversize, 'LEFT', 'RIGHT') or nil
end

local function trim(claimed, count)
    if TAKE_FROM == 'left' then
        redis.call('LTRIM', claimed, count, -1)
    else
        redis.call('LTRIM', claimed, 0, -count - 1)
    end
end

-- LMOVE moves a rejected item within Redis, so that the item does not pass through Lua.
local function source_commit(claimed, state, span, oversize, first)
    local count, gone = tonumber(span), 0
    for index = first, #ARGV, 2 do
        local place = tonumber(ARGV[index])
        redis.call('RPUSH', oversize, ARGV[index + 1])
        if place > gone then
            trim(claimed, place - gone)
        end
        redis.call('LMOVE', claimed, oversize, TAKE_FROM == 'left' and 'LEFT' or 'RIGHT', 'RIGHT')
        gone = place + 1
    end
    if count > gone then
        trim(claimed, count - gone)
    end
end
