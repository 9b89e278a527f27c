-- A Redis list as sink. PUSH ('LPUSH' or 'RPUSH') pushes to the end that items go to.

local function sink_refusal(sink)
    return type_refusal(sink, 'list') or permission_refusal(PUSH, sink, '')
end

-- Pushes the arguments from `first` to `last`.
local function sink_push(sink, first, last)
    for from = first, last, CHUNK do
        redis.call(PUSH, sink, unpack(ARGV, from, math.min(from + CHUNK - 1, last)))
    end
end

local function sink_length(sink)
    return redis.call('LLEN', sink)
end
