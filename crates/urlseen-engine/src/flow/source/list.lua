-- A Redis list as source. TAKE_FROM ('left' or 'right') is the end that items are taken from.

local function source_refusal(taken, length)
    local found = redis.call('LLEN', taken)
    if found ~= length then
        return {'taken', found}
    end
    return permission_refusal('LTRIM', taken, 0, -1)
end

-- Moves the first item to the right end of another list. It does not pass through Lua.
local function source_move_first(taken, list)
    redis.call('LMOVE', taken, list, TAKE_FROM == 'left' and 'LEFT' or 'RIGHT', 'RIGHT')
end

local function source_remove(taken, count)
    if TAKE_FROM == 'left' then
        redis.call('LTRIM', taken, count, -1)
    else
        redis.call('LTRIM', taken, 0, -count - 1)
    end
end
