-- A Redis list as source. TAKE_FROM ('left' or 'right') is the end that items are taken from.

local function source_refusal(processing, length)
    local found = redis.call('LLEN', processing)
    if found ~= length then
        return {'processing', found}
    end
    return permission_refusal('LTRIM', processing, 0, -1)
end

-- Moves the first item to the right end of another list. It does not pass through Lua.
local function source_move_first(processing, list)
    redis.call('LMOVE', processing, list, TAKE_FROM == 'left' and 'LEFT' or 'RIGHT', 'RIGHT')
end

local function source_remove(processing, count)
    if TAKE_FROM == 'left' then
        redis.call('LTRIM', processing, count, -1)
    else
        redis.call('LTRIM', processing, 0, -count - 1)
    end
end
