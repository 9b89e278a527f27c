-- Gives claimed items back to a Redis list. TAKE_FROM ('left' or 'right') is the end that items are
-- taken from.

-- Moves all items of one list to an end of another, in their order. Redis moves them one by one:
-- none passes through Lua, however large it is.
local function move(from, to, to_left)
    local pop, push = 'LEFT', 'RIGHT'
    if to_left then
        pop, push = push, pop
    end
    for _ = 1, redis.call('LLEN', from) do
        redis.call('LMOVE', from, to, pop, push)
    end
end

-- Refuses unless all will work that giving back may do.
local function source_give_back_refusal(processing, source)
    return permission_refusal('LMOVE', processing, source, 'LEFT', 'LEFT')
        or permission_refusal('LMOVE', source, processing, 'LEFT', 'LEFT')
        or permission_refusal('RENAME', processing, source)
end

-- Puts what is claimed back to the end of the source that it was taken from, moving the shorter
-- of the two lists, if that has at most `most` items. Answers what went back and what is left.
local function source_give_back(processing, source, most)
    local claimed, waiting = redis.call('LLEN', processing), redis.call('LLEN', source)
    if claimed == 0 or math.min(claimed, waiting) > most then
        return 0, claimed
    end
    if claimed <= waiting then
        move(processing, source, TAKE_FROM == 'left')
    else
        move(source, processing, TAKE_FROM == 'right')
        redis.call('RENAME', processing, source)
    end
    return claimed, 0
end
