-- Sets all rejects aside, if no rejects are aside yet.
-- KEYS: aside, rejected
-- Answers the number of rejects aside; -1 if rejects were aside before. Then nothing was done.
local aside, rejected = unpack(KEYS)

local refusal = type_refusal(aside, 'list')
    or type_refusal(rejected, 'list')
    or permission_refusal('RENAME', rejected, aside)
if refusal then
    return refusal
end
if redis.call('EXISTS', aside) == 1 then
    return -1
end
if redis.call('EXISTS', rejected) == 0 then
    return 0
end
redis.call('RENAME', rejected, aside)
return redis.call('LLEN', aside)
