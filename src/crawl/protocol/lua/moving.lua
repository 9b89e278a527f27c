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
