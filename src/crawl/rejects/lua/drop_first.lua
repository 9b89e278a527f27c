-- Drops the oldest rejects.
-- KEYS: aside (rejects that an interrupted sort has set aside), rejected, oversize
-- ARGV: number of rejects to drop, number of rejects of oversize items to drop
-- Answers the number of dropped rejects.
local aside, rejected, oversize = unpack(KEYS)
local count, large = tonumber(ARGV[1]), tonumber(ARGV[2])

local refusal = type_refusal(aside, 'list')
    or type_refusal(rejected, 'list')
    or type_refusal(oversize, 'list')
    or permission_refusal('LTRIM', aside, 0, -1)
    or permission_refusal('LTRIM', rejected, 0, -1)
    or permission_refusal('LTRIM', oversize, 0, -1)
if refusal then
    return refusal
end
local dropped = 0
for _, key in ipairs({aside, rejected}) do
    local here = math.min(count - dropped, redis.call('LLEN', key))
    if here > 0 then
        redis.call('LTRIM', key, here, -1)
    end
    dropped = dropped + here
end
large = math.min(large, math.floor(redis.call('LLEN', oversize) / 2))
if large > 0 then
    redis.call('LTRIM', oversize, 2 * large, -1)
end
return dropped + large
