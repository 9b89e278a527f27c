-- Moves some of the rejects that were set aside back to the list. They come before its other
-- rejects, in their old order.
-- KEYS: aside, rejected
-- ARGV: maximum number of rejects to move
-- Answers the number of rejects that are still aside.
local aside, rejected = unpack(KEYS)

local refusal = type_refusal(aside, 'list')
    or type_refusal(rejected, 'list')
    or permission_refusal('LMOVE', aside, rejected, 'RIGHT', 'LEFT')
    or permission_refusal('RENAME', aside, rejected)
if refusal then
    return refusal
end
if redis.call('EXISTS', aside) == 0 then
    return 0
end
if redis.call('EXISTS', rejected) == 0 then
    redis.call('RENAME', aside, rejected)
    return 0
end
for _ = 1, math.min(tonumber(ARGV[1]), redis.call('LLEN', aside)) do
    redis.call('LMOVE', aside, rejected, 'RIGHT', 'LEFT')
end
return redis.call('LLEN', aside)
