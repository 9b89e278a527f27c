-- Pushes to a Redis list from within a script. PUSH is 'LPUSH' or 'RPUSH'.

local function sink_push_refusal(sink)
    return permission_refusal(PUSH, sink, '')
end

-- Pushes the elements `from` to `to` of `items`.
local function sink_push(sink, items, from, to)
    redis.call(PUSH, sink, unpack(items, from, to))
end

local function sink_length(sink)
    return redis.call('LLEN', sink)
end
