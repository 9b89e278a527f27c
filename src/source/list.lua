-- A Redis list as source. TAKE_FROM ('left' or 'right') is the end that items are taken from.

local function source_refusal(taken, length)
    local refusal = type_refusal(taken, 'list') or permission_refusal('LTRIM', taken, 0, -1)
    if refusal then
        return refusal
    end
    local found = redis.call('LLEN', taken)
    if found ~= length then
        return {'taken', found}
    end
end

local function source_remove(taken, count)
    if TAKE_FROM == 'left' then
        redis.call('LTRIM', taken, count, -1)
    else
        redis.call('LTRIM', taken, 0, -count - 1)
    end
end

-- Pushes the items of one list to an end of another, as many at a time as Lua hands over.
local function move(from, to, to_left)
    local length = redis.call('LLEN', from)
    for first = 0, length - 1, CHUNK do
        local last = math.min(first + CHUNK, length) - 1
        if to_left then
            -- Pushed to the left one by one, so in reverse: the last chunk first.
            local items = redis.call('LRANGE', from, -last - 1, -first - 1)
            local reversed = {}
            for i = #items, 1, -1 do
                reversed[#reversed + 1] = items[i]
            end
            redis.call('LPUSH', to, unpack(reversed))
        else
            redis.call('RPUSH', to, unpack(redis.call('LRANGE', from, first, last)))
        end
    end
    redis.call('DEL', from)
end

-- Refuses unless all will work that giving back may do.
local function source_give_back_refusal(taken, source)
    for _, key in ipairs({taken, source}) do
        local refusal = permission_refusal('LRANGE', key, 0, 0)
            or permission_refusal('LPUSH', key, '')
            or permission_refusal('RPUSH', key, '')
            or permission_refusal('DEL', key)
        if refusal then
            return refusal
        end
    end
    return permission_refusal('RENAME', taken, source)
end

-- Puts what is claimed back to the end of the source that it was taken from, moving the shorter
-- of the two lists, if that has at most `most` items. Answers what went back and what is left.
local function source_give_back(taken, source, most)
    local claimed, waiting = redis.call('LLEN', taken), redis.call('LLEN', source)
    if claimed == 0 or math.min(claimed, waiting) > most then
        return 0, claimed
    end
    if claimed <= waiting then
        move(taken, source, TAKE_FROM == 'left')
    else
        if waiting > 0 then
            move(source, taken, TAKE_FROM == 'right')
        end
        redis.call('RENAME', taken, source)
    end
    return claimed, 0
end
