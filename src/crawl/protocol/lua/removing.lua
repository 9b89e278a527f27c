-- Removes items from the front of a list of claimed items. TAKE_FROM ('left' or 'right') is the end
-- from which items are taken.

-- Refuses a list of other than `before` items, or if the user may not remove items.
local function source_refusal(claimed, before, oversize, rejects)
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

-- Removes a batch of `count` items. Beginning with the argument `first`, the arguments are pairs of
-- the place of an item in the batch and a reject. Pushes the reject, and then the item, to the
-- right end of `oversize`. LMOVE moves the item within Redis, so that it does not pass through Lua.
local function source_commit(claimed, count, oversize, first)
    local gone = 0
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
