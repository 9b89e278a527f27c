-- Functions for a Redis list as sink. Before the script, the same transaction pushes items with the
-- command PUSH ('LPUSH' or 'RPUSH').

-- Returns a refusal unless `last` is the newest item of the sink.
local function sink_refusal(sink, last)
    local newest = redis.pcall('LINDEX', sink, PUSH == 'RPUSH' and -1 or 0)
    if type(newest) == 'table' and newest.err then
        return newest
    end
    if newest ~= last then
        return redis.error_reply('NOPERM this user may not run ' .. PUSH .. ' on the key ' .. sink)
    end
end

-- Removes the `count` items that were pushed last.
local function sink_take_back(sink, count)
    if PUSH == 'RPUSH' then
        redis.call('LTRIM', sink, 0, -count - 1)
    else
        redis.call('LTRIM', sink, count, -1)
    end
end

local function sink_length(sink)
    return redis.call('LLEN', sink)
end
