-- Removes items from the front of a list of claimed items. TAKE_FROM ('left' or 'right') is the end
-- from which items are taken.

-- Refuses a list of other than `before` items, or if the user may not remove items.
local function source_refusal(claimed, before)
    local found = redis.call('LLEN', claimed)
    if found ~= tonumber(before) then
        return {'source', 'the list of claimed items: it now holds ' .. found .. ' items'}
    end
    return permission_refusal('LTRIM', claimed, 0, -1)
end

-- Removes a batch of `count` items.
local function source_commit(claimed, count)
    if TAKE_FROM == 'left' then
        redis.call('LTRIM', claimed, count, -1)
    else
        redis.call('LTRIM', claimed, 0, -count - 1)
    end
end
