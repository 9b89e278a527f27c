-- Drops the oldest rejects.
-- KEYS: aside (rejects that an interrupted sort has set aside), rejects
-- ARGV: number of rejects to drop
-- Answers the number of dropped rejects, or an error.
-- Never drops a newer reject before an older one.
local aside, rejected = unpack(KEYS)
local count = tonumber(ARGV[1])

local refusal = type_refusal(aside, 'list')
    or type_refusal(rejected, 'list')
    or permission_refusal('LTRIM', aside, 0, -1)
    or permission_refusal('LTRIM', rejected, 0, -1)
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
return dropped
