-- A Redis list as source, around a run. A claim renames the list to the processing list, or moves
-- its first items there. TAKE_FROM ('left' or 'right') is the end from which items are taken.

local function source_own_refusal(keys)
    local source, processing, earlier = unpack(keys)
    local refusal = type_refusal(processing, 'list')
    if refusal then
        return refusal
    end
    -- A crawl with keys of an earlier version would otherwise count as new.
    if redis.call('TYPE', earlier).ok ~= 'none' then
        return {'earlier', earlier}
    end
end

local function source_place(state, keys)
    local length = redis.call('LLEN', keys[2])
    return tostring(length), length
end

-- Moves the first items of one list to an end of another list, in their order. Redis moves them one
-- by one, so that even large items do not pass through Lua.
local function move(from, to, to_left, count)
    local pop, push = 'LEFT', 'RIGHT'
    if to_left then
        pop, push = push, pop
    end
    for _ = 1, count do
        redis.call('LMOVE', from, to, pop, push)
    end
end

-- Moves the first `count` of `waiting` items to the processing list, which does not exist. SORT and
-- LTRIM take a sixth of the time of LMOVE, but some users may not run SORT.
local function claim_first(source, processing, waiting, count)
    local is_left = TAKE_FROM == 'left'
    if not permission_refusal('LTRIM', source, 0, -1) then
        local first = is_left and 0 or waiting - count
        local copied = redis.pcall(
            'SORT', source, 'BY', 'nosort', 'LIMIT', first, count, 'STORE', processing)
        if copied == count then
            redis.call('LTRIM', source, is_left and count or 0, is_left and -1 or first - 1)
            return
        end
    end
    move(source, processing, not is_left, count)
end

-- LLEN fails on keys of another type, which refuses such keys.
local function source_claim(state, keys, most, more)
    local source, processing = unpack(keys)
    local claimed, waiting = redis.call('LLEN', processing), redis.call('LLEN', source)
    local count = 0
    if claimed > 0 then
        count = math.min(waiting, more)
        move(source, processing, TAKE_FROM == 'right', count)
    elseif most > 0 and waiting > most then
        count = most
        claim_first(source, processing, waiting, count)
    elseif waiting > 0 then
        count = waiting
        redis.call('RENAME', source, processing)
    end
    local length = claimed + count
    return nil, tostring(length), length, 0
end

local function source_waiting(state, keys)
    return redis.call('LLEN', keys[1])
end

local function source_give_back_refusal(keys)
    local source, processing = unpack(keys)
    return type_refusal(processing, 'list')
        or type_refusal(source, 'list')
        or permission_refusal('LMOVE', processing, source, 'LEFT', 'LEFT')
        or permission_refusal('LMOVE', source, processing, 'LEFT', 'LEFT')
        or permission_refusal('RENAME', processing, source)
end

-- Gives the items back to the end from which they were taken. Moves the items of the shorter list.
local function source_give_back(keys, most)
    local source, processing = unpack(keys)
    local claimed, waiting = redis.call('LLEN', processing), redis.call('LLEN', source)
    if claimed == 0 or math.min(claimed, waiting) > most then
        return 0, claimed
    end
    if claimed <= waiting then
        move(processing, source, TAKE_FROM == 'left', claimed)
    else
        move(source, processing, TAKE_FROM == 'right', waiting)
        redis.call('RENAME', processing, source)
    end
    return claimed, 0
end
