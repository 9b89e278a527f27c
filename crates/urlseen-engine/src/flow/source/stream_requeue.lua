-- Pushes to a Redis stream that is a source. FIELD is the field with the item.

local function source_push_refusal(source, oversize)
    return type_refusal(source, 'stream')
        or permission_refusal('XADD', source, '*', FIELD, '')
        or oversize and permission_refusal('LPOP', oversize)
        or nil
end

local function source_push(source, first, last)
    for index = first, last do
        redis.call('XADD', source, '*', FIELD, ARGV[index])
    end
end

-- No command of Redis moves an item from a list to a stream, so the item passes through Lua.
local function source_push_from(source, oversize)
    redis.call('XADD', source, '*', FIELD, redis.call('LPOP', oversize))
end
